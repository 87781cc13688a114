/* home_fill.h - from the entities of a clause to the slots of actions (docs/ASK.md, section 3).
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_HOME_FILL_H
#define SHOAL_APPS_HOME_HOME_FILL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "flow/ask_plan.h"
#include "apps/home/site/home_file.h"
#include "apps/home/table/home_table.h"
#include "apps/home/table/home_words.h"

#define HOME_FILL_MAX_PLACES (HOME_MAX_SLOTS + HOME_MAX_WHEN)

struct home_entity {
    const char *type;
    uint32_t from, to; /* words of the clause */
};

struct home_clause { /* as the models understood it */
    const char *text;
    const char *intent;
    float intent_p, threshold;
    const char *router, *flow; /* flow: the meaning of the router's label: act, chat, ... */
    float router_p;
    const struct home_entity *entities;
    uint32_t n_entities;
    enum home_speech speech; /* according to the act model; the rules may still deny it */
    float speech_p;          /* confidence that the text is a command; 1: no such model */
    bool taken_back;         /* retracted by what follows it */
    bool whole;              /* it is the whole text */
    bool corrected;          /* ... which is the correction */
    const char *again;       /* words that say how it repeats; NULL: see the text */
};

/* A slot of its action, or a row of "when" of an action that has no such slot. */
struct home_place {
    const struct home_slot *slot;
    const struct home_when *when; /* NULL: the action's own slot */
};

struct home_fill { /* of one action: places with their texts, a list with several */
    struct {
        struct home_place place;
        const char *text;
    } s[HOME_FILL_MAX_PLACES];
    uint32_t n;
    const char *items[ASK_PLAN_MAX_ITEMS];
    uint32_t n_items;
};

struct home_piece {               /* an entity with its words */
    const struct home_slot *slot; /* NULL: the table knows no such type */
    const char *text, *before;
    uint32_t from, to;
    bool used;
};

struct home_place home_fill_own(const struct home_slot *s);
/* NULL: the place is free. */
const char *home_fill_get(const struct home_fill *s, struct home_place p);
/* The place must be free. */
void home_fill_set(struct home_fill *s, struct home_place p, const char *text);
void home_fill_drop(struct home_fill *s, struct home_place p);

bool home_fill_has_word(const struct home_words *plain, const struct home_list *list);
bool home_fill_has_slot(const struct home_action *x, const struct home_slot *s);

/* The entities of a clause as pieces, in out (room for n_entities); returns how many. */
uint32_t home_fill_pieces(struct arena *a, const struct home_table *t, const struct home_clause *c,
                          const struct home_words *w, struct home_piece *out);
/* Distributes pieces over the slots of one or more actions; returns how many sets. */
uint32_t home_fill_group(const struct home_table *t, const struct home_action *x,
                         struct home_piece *pieces, uint32_t n, struct home_fill *sets);
/* Completes names of the home: "room" "202" is the room "room 202", whatever the tagger says.
 * Returns the new number of pieces. */
uint32_t home_fill_names(struct arena *a, const struct home_table *t, const struct home_file *f,
                         const struct home_words *w, struct home_piece *pieces, uint32_t n);
/* How many words from the i-th on name a room; 0: none. */
uint32_t home_fill_room_at(const struct home_file *f, const struct home_words *plain, uint32_t i);
/* Rooms of the home that the tagger took for a device or missed: "office on", "suite tv off".
 * Returns the new number of pieces: at most one more. */
uint32_t home_fill_rooms(struct arena *a, const struct home_table *t, const struct home_file *f,
                         const struct home_words *w, struct home_piece *pieces, uint32_t n);
/* Finds a title or message that the tagger missed. Returns the new number of pieces: at most one
 * more. */
uint32_t home_fill_missed(struct arena *a, const struct home_table *t, const struct home_action *x,
                          const struct home_words *w, struct home_piece *pieces, uint32_t n);
/* Fills the missing slots of a set from the other sets. */
void home_fill_lend(const struct home_action *x, struct home_fill *sets, uint32_t n);
void home_fill_defaults(const struct home_action *x, struct home_fill *s,
                        const struct home_words *plain, bool names_more);

#endif
