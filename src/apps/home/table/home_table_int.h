/* home_table_int.h - shared by the readers of a home table: home_table.c reads words, slots and
 * actions, home_table_get.c common values, home_table_safety.c stop words and the program's own
 * lines, home_table_things.c the effects on things, home_table_gate.c risks and limits,
 * home_table_later.c the schedule, home_table_plans.c plans. Private to them.
 *
 * Thread:    one reader on its caller's thread.
 * Ownership: results live in the table's arena.
 * Failure:   sticky in the reader: after the first error nothing more is read. */
#ifndef SHOAL_APPS_HOME_HOME_TABLE_INT_H
#define SHOAL_APPS_HOME_HOME_TABLE_INT_H

#include "apps/home/table/home_table.h"
#include "wire/json_strict.h"

#define HOME_TABLE_MAX_LIST 2048u
#define HOME_TABLE_MAX_ACTIONS 256u
#define HOME_TABLE_MAX_WORD_BYTES 64u
#define HOME_TABLE_MAX_TEXT_BYTES 200u

struct home_reader {
    struct json_strict d;
    struct home_table *t;
};

enum home_text {
    HOME_TEXT_WORD,   /* one word, lower case: it is compared with plain words */
    HOME_TEXT_PHRASE, /* words, lower case */
    HOME_TEXT_TEXT,   /* anything */
    HOME_TEXT_NAME,   /* of a slot, an action, a label: it goes into JSON and context lines */
};

#define HOME_TABLE_VAR(name) (1u << HOME_VAR_##name)

/* A copy of s, which must be a text of this kind. */
const char *home_table_check_text(struct home_reader *r, const struct json_node *at, const char *s,
                                  enum home_text kind);
/* NULL: the key is missing. */
const char *home_table_get_text(struct home_reader *r, const struct json_node *at, const char *key,
                                enum home_text kind);
/* An object whose keys are words or phrases; max 0: the values are texts, else whole numbers. */
struct home_pairs home_table_get_pairs(struct home_reader *r, const struct json_node *at,
                                       const char *key, enum home_text kind, uint32_t min,
                                       uint32_t max);
/* An object of phrases and texts. */
struct home_pairs home_table_get_texts(struct home_reader *r, const struct json_node *at,
                                       const char *key);
/* An object of phrases and whole numbers. */
struct home_pairs home_table_get_numbers(struct home_reader *r, const struct json_node *at,
                                         const char *key, uint32_t min, uint32_t max);
/* The key of an entry, as a name. */
const char *home_table_copy_key(struct home_reader *r, const struct json_node *entry);
struct home_list home_table_read_list(struct home_reader *r, const struct json_node *at,
                                      enum home_text kind);
/* Empty if the key is missing. */
struct home_list home_table_get_list(struct home_reader *r, const struct json_node *at,
                                     const char *key, enum home_text kind);
/* A slot by its name in the text at a node; NULL after an error. */
const struct home_slot *home_table_slot_named(struct home_reader *r, const struct json_node *at);
const struct home_slot *home_table_get_slot(struct home_reader *r, const struct json_node *at,
                                            const char *key);
const struct home_action *home_table_action_named(struct home_reader *r,
                                                  const struct json_node *at);
/* allowed: HOME_TABLE_VAR of the permitted names; the slots of an action are always permitted. */
struct home_template home_table_read_template(struct home_reader *r, const struct json_node *at,
                                              uint32_t allowed, const struct home_action *action);

/* speech, stop and says of the table. */
void home_table_read_safety(struct home_reader *r, const struct json_node *root);
/* quantities, risk and limits; after the kinds and effects, which they name. */
void home_table_read_gate(struct home_reader *r, const struct json_node *root);
/* A unit by its name in the text at a node; NULL after an error. */
const struct home_unit *home_table_unit_named(struct home_reader *r, const struct json_node *at);
/* effects and kinds. */
void home_table_read_things(struct home_reader *r, const struct json_node *root);
/* plans; after the actions. */
void home_table_read_plans(struct home_reader *r, const struct json_node *root);
void home_table_read_vocabulary(struct home_reader *r, const struct json_node *root);
/* later; after the actions. */
void home_table_read_later(struct home_reader *r, const struct json_node *root);

#endif
