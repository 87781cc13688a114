/* home_table_get.c - reads the values common to all parts of a table: texts, lists, pairs, names of
 * slots and actions, templates. See home_table_int.h. */
#include <string.h>

#include "apps/home/table/home_table_int.h"
#include "apps/home/table/home_words.h"

static const char *copy(struct home_reader *r, const char *s)
{
    const char *c = arena_copy(&r->t->arena, s, strlen(s) + 1);
    if (!c)
        json_strict_no_memory(&r->d);
    return c ? c : "";
}

const char *home_table_check_text(struct home_reader *r, const struct json_node *at, const char *s,
                                  enum home_text kind)
{
    if (r->d.rc < 0)
        return "";
    if ((kind == HOME_TEXT_WORD || kind == HOME_TEXT_NAME) && strpbrk(s, " \t\n\v\f\r"))
        json_strict_fail(&r->d, at, "\"%.64s\" contains white space, expected one word", s);
    else if (kind == HOME_TEXT_NAME && strpbrk(s, ";:{}|"))
        json_strict_fail(&r->d, at, "\"%.64s\" contains one of ;:{}|", s);
    else if (kind < HOME_TEXT_TEXT && strcmp(home_words_lower(&r->t->arena, s), s) != 0)
        json_strict_fail(&r->d, at, "\"%.64s\" must be lower case", s);
    return copy(r, s);
}

static const char *read_text(struct home_reader *r, const struct json_node *at, enum home_text kind)
{
    return home_table_check_text(r, at,
                                 json_strict_text(&r->d, at,
                                                  kind == HOME_TEXT_TEXT
                                                      ? HOME_TABLE_MAX_TEXT_BYTES
                                                      : HOME_TABLE_MAX_WORD_BYTES),
                                 kind);
}

const char *home_table_get_text(struct home_reader *r, const struct json_node *at, const char *key,
                                enum home_text kind)
{
    struct json_node v = json_strict_get(at, key);
    return v.v ? read_text(r, &v, kind) : NULL;
}

const char *home_table_copy_key(struct home_reader *r, const struct json_node *entry)
{
    const char *s = json_strict_key(entry);
    if (!*s || strlen(s) > HOME_TABLE_MAX_WORD_BYTES)
        json_strict_fail(&r->d, entry, "expected a key of 1 to %u bytes",
                         HOME_TABLE_MAX_WORD_BYTES);
    return home_table_check_text(r, entry, s, HOME_TEXT_NAME);
}

struct home_list home_table_read_list(struct home_reader *r, const struct json_node *at,
                                      enum home_text kind)
{
    uint32_t n = json_strict_array(&r->d, at, HOME_TABLE_MAX_LIST), i = 0;
    const char **w = n ? arena_zalloc_n(&r->t->arena, n, sizeof(*w)) : NULL;
    if (n && !w)
        json_strict_no_memory(&r->d);
    struct json_node v = json_strict_first(at);
    for (; w && r->d.rc == 0 && v.v; v = json_strict_next(&v))
        w[i++] = read_text(r, &v, kind);
    return (struct home_list){w, w ? n : 0};
}

struct home_list home_table_get_list(struct home_reader *r, const struct json_node *at,
                                     const char *key, enum home_text kind)
{
    struct json_node v = json_strict_get(at, key);
    return home_table_read_list(r, &v, kind);
}

struct home_pairs home_table_get_pairs(struct home_reader *r, const struct json_node *at,
                                       const char *key, enum home_text kind, uint32_t min,
                                       uint32_t max)
{
    struct json_node map = json_strict_get(at, key);
    uint32_t n = json_strict_map(&r->d, &map, HOME_TABLE_MAX_LIST), i = 0;
    struct home_pair *p = n ? arena_zalloc_n(&r->t->arena, n, sizeof(*p)) : NULL;
    if (n && !p)
        json_strict_no_memory(&r->d);
    struct json_node v = json_strict_first(&map);
    for (; p && r->d.rc == 0 && v.v; v = json_strict_next(&v), i++) {
        const char *word = json_strict_key(&v);
        if (!*word || strlen(word) > HOME_TABLE_MAX_WORD_BYTES)
            json_strict_fail(&r->d, &v, "expected a key of 1 to %u bytes",
                             HOME_TABLE_MAX_WORD_BYTES);
        p[i].from = home_table_check_text(r, &v, word, kind);
        if (max)
            p[i].number = json_strict_u32(&r->d, &v, min, max, 0);
        else
            p[i].to = copy(r, json_strict_any_text(&r->d, &v, HOME_TABLE_MAX_TEXT_BYTES));
    }
    return (struct home_pairs){p, p ? n : 0};
}

struct home_pairs home_table_get_texts(struct home_reader *r, const struct json_node *at,
                                       const char *key)
{
    return home_table_get_pairs(r, at, key, HOME_TEXT_PHRASE, 0, 0);
}

struct home_pairs home_table_get_numbers(struct home_reader *r, const struct json_node *at,
                                         const char *key, uint32_t min, uint32_t max)
{
    return home_table_get_pairs(r, at, key, HOME_TEXT_PHRASE, min, max);
}

const struct home_slot *home_table_slot_named(struct home_reader *r, const struct json_node *at)
{
    const char *name = json_strict_text(&r->d, at, HOME_TABLE_MAX_WORD_BYTES);
    const struct home_slot *s = r->d.rc < 0 ? NULL : home_table_slot(r->t, name);
    if (!s)
        json_strict_fail(&r->d, at, "unknown slot \"%.64s\"", name);
    return s;
}

const struct home_slot *home_table_get_slot(struct home_reader *r, const struct json_node *at,
                                            const char *key)
{
    struct json_node v = json_strict_get(at, key);
    return v.v ? home_table_slot_named(r, &v) : NULL;
}

struct names {
    const struct home_table *t;
    const struct home_action *action; /* its slots are names too; NULL: none */
    uint32_t allowed;
};

static uint32_t find_name(void *ctx, const char *name)
{
    static const char *const names[] = {
        [HOME_VAR_ACTION] = "action", [HOME_VAR_SLOTS] = "slots",
        [HOME_VAR_RESULT] = "result", [HOME_VAR_REASON] = "reason",
        [HOME_VAR_ASK] = "ask",       [HOME_VAR_TEXT] = "text",
        [HOME_VAR_ANSWER] = "answer", [HOME_VAR_WEEKDAY] = "weekday",
        [HOME_VAR_DAY] = "day",       [HOME_VAR_MONTH] = "month",
        [HOME_VAR_YEAR] = "year",     [HOME_VAR_HOUR] = "hour",
        [HOME_VAR_MINUTE] = "minute", [HOME_VAR_N] = "n",
        [HOME_VAR_DO] = "do",         [HOME_VAR_WHEN] = "when",
        [HOME_VAR_STATE] = "state"};
    const struct names *n = ctx;
    for (uint32_t i = 0; n->action && i < n->action->n_slots; i++)
        if (strcmp(n->action->slots[i]->name, name) == 0)
            return HOME_VAR_SLOT + i;
    for (uint32_t i = 0; i < HOME_VAR_SLOT; i++)
        if ((n->allowed & (1u << i)) && strcmp(names[i], name) == 0)
            return i;
    return UINT32_MAX;
}

struct home_template home_table_read_template(struct home_reader *r, const struct json_node *at,
                                              uint32_t allowed, const struct home_action *action)
{
    struct home_template out = {0};
    struct names names = {r->t, action, allowed};
    const char *text = json_strict_text(&r->d, at, HOME_TABLE_MAX_TEXT_BYTES);
    if (r->d.rc < 0)
        return out;
    const char *wrong = home_template_compile(&out, &r->t->arena, text, find_name, &names);
    if (r->t->arena.rc < 0)
        json_strict_no_memory(&r->d);
    else if (wrong)
        json_strict_fail(&r->d, at, "%s", wrong);
    return out;
}

const struct home_action *home_table_action_named(struct home_reader *r, const struct json_node *at)
{
    const char *name = json_strict_text(&r->d, at, HOME_TABLE_MAX_WORD_BYTES);
    const struct home_action *x = r->d.rc < 0 ? NULL : home_table_action(r->t, name);
    if (!x)
        json_strict_fail(&r->d, at, "unknown action \"%.64s\"", name);
    return x;
}

const struct home_unit *home_table_unit_named(struct home_reader *r, const struct json_node *at)
{
    const char *name = json_strict_text(&r->d, at, HOME_TABLE_MAX_WORD_BYTES);
    for (uint32_t i = 0; i < r->t->n_units; i++)
        if (strcmp(r->t->unit[i].name, name) == 0)
            return &r->t->unit[i];
    json_strict_fail(&r->d, at, "unknown unit \"%.64s\"", name);
    return NULL;
}
