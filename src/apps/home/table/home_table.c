/* home_table.c - see home_table.h. */
#include "apps/home/table/home_table.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/file/file_map.h"
#include "base/mem.h"
#include "apps/home/table/home_table_base.h"
#include "apps/home/table/home_table_int.h"
#include "apps/home/table/home_words.h"

#define MAX_SLOTS 64u
#define MAX_PATH 4096u
#define MAX_DEFAULTS 256u
#define ARENA_BYTES ((size_t)8 << 20)

static void map_init(struct home_reader *r, struct strmap *m, size_t n)
{
    if (strmap_init(m, n) < 0)
        json_strict_no_memory(&r->d);
}

/* key must live as long as the table. false: duplicate, or an error. */
static bool map_put(struct home_reader *r, struct strmap *m, const char *key, uint32_t value)
{
    int rc = r->d.rc < 0 ? r->d.rc : strmap_put(m, key, strlen(key), value);
    if (rc < 0)
        json_strict_no_memory(&r->d);
    return rc == 0;
}

/* ---- words ---------------------------------------------------------------------------------- */

static void read_words(struct home_reader *r, const struct json_node *root)
{
    struct home_table *t = r->t;
    struct json_node at = json_strict_get(root, "words");
    if (!at.v || !json_strict_object(&r->d, &at, "",
                                     "articles join polite front idle said compounds elisions"))
        return;
    t->articles = home_table_get_list(r, &at, "articles", HOME_TEXT_WORD);
    t->join = home_table_get_list(r, &at, "join", HOME_TEXT_WORD);
    t->polite = home_table_get_list(r, &at, "polite", HOME_TEXT_WORD);
    t->front = home_table_get_list(r, &at, "front", HOME_TEXT_WORD);
    t->idle = home_table_get_list(r, &at, "idle", HOME_TEXT_WORD);
    t->elisions = home_table_get_list(r, &at, "elisions", HOME_TEXT_WORD);
    struct json_node compounds = json_strict_get(&at, "compounds");
    t->compounds = json_strict_bool(&r->d, &compounds, false);
}

/* ---- slots ---------------------------------------------------------------------------------- */

/* Slots without repetition into out, which has room for max; returns how many. */
static uint32_t get_slots(struct home_reader *r, const struct json_node *at, const char *key,
                          const struct home_slot **out, uint32_t max)
{
    struct json_node list = json_strict_get(at, key);
    uint32_t n = json_strict_array(&r->d, &list, max), i = 0;
    struct json_node v = json_strict_first(&list);
    for (; i < n && r->d.rc == 0; v = json_strict_next(&v), i++) {
        out[i] = home_table_slot_named(r, &v);
        for (uint32_t k = 0; k < i && r->d.rc == 0; k++)
            if (out[k] == out[i])
                json_strict_fail(&r->d, &v, "this slot occurs twice");
    }
    return i;
}

static void read_slot(struct home_reader *r, const struct json_node *at, struct home_slot *s)
{
    static const char *const types[] = {[HOME_SLOT_TEXT] = "text",
                                        [HOME_SLOT_VALUE] = "value",
                                        [HOME_SLOT_DURATION] = "duration",
                                        [HOME_SLOT_TIME] = "time",
                                        [HOME_SLOT_DATE] = "date"};
    if (!json_strict_object(&r->d, at, "type",
                            "lower strip_articles to_you several_until question known "
                            "known_endings means only"))
        return;
    struct json_node type = json_strict_get(at, "type"), v;
    const char *name = json_strict_text(&r->d, &type, HOME_TABLE_MAX_WORD_BYTES);
    size_t i = 0, n = sizeof(types) / sizeof(types[0]);
    while (i < n && strcmp(types[i], name) != 0)
        i++;
    if (i == n) {
        json_strict_fail(&r->d, &type, "the type must be text, value, duration, time or date");
        return;
    }
    s->type = (enum home_slot_type)i;
    v = json_strict_get(at, "lower");
    s->lower = json_strict_bool(&r->d, &v, false);
    v = json_strict_get(at, "strip_articles");
    s->strip_articles = json_strict_bool(&r->d, &v, false);
    v = json_strict_get(at, "to_you");
    s->to_you = json_strict_bool(&r->d, &v, false);
    s->until = home_table_get_slot(r, at, "several_until");
    s->question = home_table_get_text(r, at, "question", HOME_TEXT_TEXT);
    struct home_list known = home_table_get_list(r, at, "known", HOME_TEXT_WORD);
    if (known.n)
        map_init(r, &s->known, known.n);
    for (uint32_t k = 0; k < known.n; k++)
        (void)map_put(r, &s->known, known.w[k], k);
    s->known_endings = home_table_get_list(r, at, "known_endings", HOME_TEXT_WORD);
    v = json_strict_get(at, "only");
    s->only = json_strict_bool(&r->d, &v, false);
    s->means = home_table_get_pairs(r, at, "means", HOME_TEXT_PHRASE, 0, 0);
    bool text_only =
        s->lower || s->strip_articles || s->to_you || s->until || known.n || s->means.n;
    if (s->type != HOME_SLOT_TEXT && text_only)
        json_strict_fail(&r->d, at, "only a slot of type text may have other keys than \"type\"");
}

static void read_slots(struct home_reader *r, const struct json_node *root)
{
    static const char *const keys[] = {"action",   "id",   "result",  "ask",     "reason",
                                       "answer",   "unit", "risk",    "token",   "rest",
                                       "change",   "ids",  "unknown", "choices", "state",
                                       "simulated"}; /* of an action's object */
    const struct home_list reserved = {keys, sizeof(keys) / sizeof(keys[0])};
    struct home_table *t = r->t;
    struct json_node map = json_strict_get(root, "slots");
    uint32_t n = json_strict_map(&r->d, &map, MAX_SLOTS), i = 0;
    t->slot = arena_zalloc_n(&t->arena, (size_t)n + 1, sizeof(*t->slot));
    map_init(r, &t->slots, n);
    if (!t->slot)
        json_strict_no_memory(&r->d);
    struct json_node v = json_strict_first(&map);
    for (; r->d.rc == 0 && v.v; v = json_strict_next(&v)) { /* names first: slots name each other */
        struct home_slot *s = &t->slot[t->n_slots];
        s->name = home_table_check_text(r, &v, json_strict_key(&v), HOME_TEXT_NAME);
        if (!*s->name || strlen(s->name) > HOME_TABLE_MAX_WORD_BYTES ||
            home_table_lists(&reserved, s->name))
            json_strict_fail(&r->d, &v, "this cannot be the name of a slot");
        (void)map_put(r, &t->slots, s->name, t->n_slots++);
    }
    for (v = json_strict_first(&map); r->d.rc == 0 && v.v; v = json_strict_next(&v))
        read_slot(r, &v, &t->slot[i++]);
    t->n_id = get_slots(r, root, "id", t->id, HOME_MAX_SLOTS);
}

static void read_when(struct home_reader *r, const struct json_node *root)
{
    struct home_table *t = r->t;
    struct json_node list = json_strict_get(root, "when");
    uint32_t n = json_strict_array(&r->d, &list, HOME_MAX_WHEN);
    struct json_node v = json_strict_first(&list);
    for (; t->n_when < n && r->d.rc == 0; v = json_strict_next(&v)) {
        if (!json_strict_object(&r->d, &v, "slot", "show say key later"))
            return;
        struct home_when *w = &t->when[t->n_when++];
        struct json_node later = json_strict_get(&v, "later");
        w->slot = home_table_get_slot(r, &v, "slot");
        if (!w->slot)
            return;
        if (w->slot->type < HOME_SLOT_DURATION)
            json_strict_fail(&r->d, &v, "the slot must be a duration, a time or a date");
        w->show = home_table_get_text(r, &v, "show", HOME_TEXT_NAME);
        w->key = home_table_get_text(r, &v, "key", HOME_TEXT_NAME);
        w->show = w->show ? w->show : w->slot->name;
        w->say = home_table_get_text(r, &v, "say", HOME_TEXT_PHRASE);
        w->say = w->say ? w->say : w->slot->type == HOME_SLOT_DATE ? "" : w->show;
        w->key = w->key ? w->key : w->slot->name;
        w->later = json_strict_bool(&r->d, &later, false);
    }
}

/* ---- values --------------------------------------------------------------------------------- */

static void put_unit_words(struct home_reader *r, const struct json_node *at,
                           const struct home_list *words)
{
    for (uint32_t i = 0; i < words->n && r->d.rc == 0; i++)
        if (!map_put(r, &r->t->units, words->w[i], r->t->n_units))
            json_strict_fail(&r->d, at, "\"%.64s\" is a word of two units", words->w[i]);
}

static void read_units(struct home_reader *r, const struct json_node *root)
{
    struct home_table *t = r->t;
    struct json_node map = json_strict_get(root, "units"), v;
    uint32_t n = json_strict_map(&r->d, &map, MAX_SLOTS);
    t->unit = arena_zalloc_n(&t->arena, (size_t)n + 1, sizeof(*t->unit));
    map_init(r, &t->units, (size_t)n * 4);
    if (!t->unit)
        json_strict_no_memory(&r->d);
    for (v = json_strict_first(&map); r->d.rc == 0 && v.v; v = json_strict_next(&v)) {
        if (!json_strict_object(&r->d, &v, "words show", "show_one vague of factor offset"))
            return;
        struct home_unit *u = &t->unit[t->n_units];
        struct json_node factor = json_strict_get(&v, "factor"),
                         offset = json_strict_get(&v, "offset");
        struct json_node show = json_strict_get(&v, "show"), one = json_strict_get(&v, "show_one");
        struct home_list words = home_table_get_list(r, &v, "words", HOME_TEXT_PHRASE);
        u->name = home_table_check_text(r, &v, json_strict_key(&v), HOME_TEXT_NAME);
        u->show = home_table_read_template(r, &show, HOME_TABLE_VAR(N), NULL);
        u->show_one = one.v ? home_table_read_template(r, &one, HOME_TABLE_VAR(N), NULL) : u->show;
        u->of = home_table_get_text(r, &v, "of", HOME_TEXT_NAME);
        u->of = u->of ? u->of : u->name;
        u->factor = json_strict_number(&r->d, &factor, 1e-12, 1e12, 1);
        u->offset = json_strict_number(&r->d, &offset, -1e12, 1e12, 0);
        struct home_list vague = home_table_get_list(r, &v, "vague", HOME_TEXT_PHRASE);
        if (vague.n > 0 && t->vague_units.n > 0)
            json_strict_fail(&r->d, &v, "two units have vague words");
        t->vague_units = vague.n > 0 ? vague : t->vague_units;
        put_unit_words(r, &v, &words);
        put_unit_words(r, &v, &vague);
        t->n_units++;
    }
}

static const struct home_unit *get_unit(struct home_reader *r, const struct json_node *at)
{
    struct json_node v = json_strict_get(at, "unit");
    return v.v ? home_table_unit_named(r, &v) : NULL;
}

static void read_numbers(struct home_reader *r, const struct json_node *root)
{
    struct home_table *t = r->t;
    struct json_node numbers = json_strict_get(root, "numbers");
    struct json_node amounts = json_strict_get(root, "amounts");
    if (numbers.v && !json_strict_object(&r->d, &numbers, "words",
                                         "hundred thousand point minus and_a_half join decimal"))
        return;
    struct home_pairs words =
        home_table_get_pairs(r, &numbers, "words", HOME_TEXT_WORD, 0, 1000000);
    map_init(r, &t->numbers, words.n);
    for (uint32_t i = 0; i < words.n; i++)
        (void)map_put(r, &t->numbers, words.p[i].from, (uint32_t)words.p[i].number);
    t->hundred = home_table_get_list(r, &numbers, "hundred", HOME_TEXT_WORD);
    t->thousand = home_table_get_list(r, &numbers, "thousand", HOME_TEXT_WORD);
    t->minus = home_table_get_list(r, &numbers, "minus", HOME_TEXT_WORD);
    t->point = home_table_get_list(r, &numbers, "point", HOME_TEXT_WORD);
    t->and_a_half = home_table_get_list(r, &numbers, "and_a_half", HOME_TEXT_PHRASE);
    t->number_join = home_table_get_list(r, &numbers, "join", HOME_TEXT_WORD);
    const char *decimal = home_table_get_text(r, &numbers, "decimal", HOME_TEXT_WORD);
    t->decimal = decimal ? *decimal : '.';
    if (!amounts.v || !json_strict_object(&r->d, &amounts, "unit words", ""))
        return;
    t->amount_unit = get_unit(r, &amounts);
    t->amounts = home_table_get_pairs(r, &amounts, "words", HOME_TEXT_PHRASE, 0, 1000000);
}

static void read_durations(struct home_reader *r, const struct json_node *root)
{
    struct home_table *t = r->t;
    struct json_node at = json_strict_get(root, "durations"), v;
    if (at.v && !json_strict_object(&r->d, &at, "units", "plural replace phrases"))
        return;
    struct json_node list = json_strict_get(&at, "units");
    uint32_t n = json_strict_array(&r->d, &list, MAX_SLOTS), i = 0;
    t->duration_unit = arena_zalloc_n(&t->arena, (size_t)n + 1, sizeof(*t->duration_unit));
    map_init(r, &t->duration_units, (size_t)n * 4);
    if (!t->duration_unit)
        json_strict_no_memory(&r->d);
    for (v = json_strict_first(&list); i < n && r->d.rc == 0; v = json_strict_next(&v), i++) {
        struct home_duration_unit *u = &t->duration_unit[i];
        struct json_node seconds = json_strict_get(&v, "seconds");
        if (!json_strict_object(&r->d, &v, "seconds words one many", ""))
            return;
        u->seconds = json_strict_number(&r->d, &seconds, 1e-3, 1e9, 0);
        u->one = home_table_get_text(r, &v, "one", HOME_TEXT_TEXT);
        u->many = home_table_get_text(r, &v, "many", HOME_TEXT_TEXT);
        struct home_list words = home_table_get_list(r, &v, "words", HOME_TEXT_WORD);
        for (uint32_t k = 0; k < words.n && r->d.rc == 0; k++)
            if (!map_put(r, &t->duration_units, words.w[k], i))
                json_strict_fail(&r->d, &v, "\"%.64s\" is a word of two units", words.w[k]);
    }
    t->duration_plural = home_table_get_text(r, &at, "plural", HOME_TEXT_WORD);
    if (!t->duration_plural)
        t->duration_plural = "";
    t->duration_replace = home_table_get_pairs(r, &at, "replace", HOME_TEXT_PHRASE, 0, 0);
    t->duration_phrases = home_table_get_pairs(r, &at, "phrases", HOME_TEXT_PHRASE, 0, 0);
}

static void read_times(struct home_reader *r, const struct json_node *root)
{
    struct home_table *t = r->t;
    struct json_node at = json_strict_get(root, "times");
    struct json_node words = json_strict_get(&at, "words");
    if (!at.v || !json_strict_object(&r->d, &at, "",
                                     "replace words am pm parts before minutes past to hour_first"))
        return;
    t->time_replace = home_table_get_pairs(r, &at, "replace", HOME_TEXT_PHRASE, 0, 0);
    t->time_words = home_table_get_pairs(r, &at, "words", HOME_TEXT_PHRASE, 0, 0);
    for (uint32_t i = 0; i < t->time_words.n; i++)
        if (r->d.rc == 0 && !home_table_is_clock(t->time_words.p[i].to))
            json_strict_fail(&r->d, &words, "\"%.64s\" is not a time (HH:MM)",
                             t->time_words.p[i].to);
    t->time_am = home_table_get_list(r, &at, "am", HOME_TEXT_PHRASE);
    t->time_pm = home_table_get_list(r, &at, "pm", HOME_TEXT_PHRASE);
    t->time_parts = home_table_get_pairs(r, &at, "parts", HOME_TEXT_PHRASE, 1, 59);
    t->time_before = home_table_get_pairs(r, &at, "before", HOME_TEXT_PHRASE, 1, 59);
    struct json_node first = json_strict_get(&at, "hour_first");
    t->hour_first = json_strict_bool(&r->d, &first, false);
    t->time_minutes = home_table_get_list(r, &at, "minutes", HOME_TEXT_WORD);
    t->time_past = home_table_get_list(r, &at, "past", HOME_TEXT_PHRASE);
    t->time_to = home_table_get_list(r, &at, "to", HOME_TEXT_PHRASE);
}

static void read_dates(struct home_reader *r, const struct json_node *root)
{
    struct home_table *t = r->t;
    struct json_node at = json_strict_get(root, "dates");
    map_init(r, &t->date_names, 19);
    if (!at.v || !json_strict_object(&r->d, &at, "weekdays months", "ordinals drop articles"))
        return;
    t->weekdays = home_table_get_list(r, &at, "weekdays", HOME_TEXT_TEXT);
    t->months = home_table_get_list(r, &at, "months", HOME_TEXT_TEXT);
    if (t->weekdays.n != 7 || t->months.n != 12)
        json_strict_fail(&r->d, &at, "expected 7 weekdays, Monday first, and 12 months");
    for (uint32_t i = 0; i < 19 && r->d.rc == 0; i++)
        (void)map_put(r, &t->date_names,
                      home_words_lower(&t->arena, i < 7 ? t->weekdays.w[i] : t->months.w[i - 7]),
                      i);
    t->date_ordinals = home_table_get_list(r, &at, "ordinals", HOME_TEXT_WORD);
    t->date_drop = home_table_get_list(r, &at, "drop", HOME_TEXT_WORD);
    t->date_articles = home_table_get_list(r, &at, "articles", HOME_TEXT_WORD);
}

static void read_arithmetic(struct home_reader *r, const struct json_node *root)
{
    struct home_table *t = r->t;
    struct json_node at = json_strict_get(root, "arithmetic");
    struct json_node operators = json_strict_get(&at, "operators");
    if (!at.v || !json_strict_object(&r->d, &at, "operators", "root percent_of"))
        return;
    t->operators = home_table_get_pairs(r, &at, "operators", HOME_TEXT_PHRASE, 0, 0);
    for (uint32_t i = 0; i < t->operators.n && r->d.rc == 0; i++) {
        const char *op = t->operators.p[i].to;
        if (strlen(op) != 1 || !strchr("+-*/", *op))
            json_strict_fail(&r->d, &operators, "\"%.64s\" is not one of + - * /", op);
    }
    t->root = home_table_get_list(r, &at, "root", HOME_TEXT_PHRASE);
    t->percent_of = home_table_get_list(r, &at, "percent_of", HOME_TEXT_PHRASE);
}

/* ---- lines ---------------------------------------------------------------------------------- */

static void read_lines(struct home_reader *r, const struct json_node *root)
{
    const uint32_t act = HOME_TABLE_VAR(ACTION) | HOME_TABLE_VAR(SLOTS) | HOME_TABLE_VAR(RESULT);
    struct {
        const char *key;
        struct home_template *out;
        uint32_t allowed;
    } lines[] = {{"act", &r->t->line_act, act},
                 {"failed", &r->t->line_failed, act | HOME_TABLE_VAR(REASON)},
                 {"ask", &r->t->line_ask, act | HOME_TABLE_VAR(ASK)},
                 {"chat", &r->t->line_chat, HOME_TABLE_VAR(TEXT)},
                 {"out_of_scope", &r->t->line_out_of_scope, HOME_TABLE_VAR(TEXT)}};
    struct json_node at = json_strict_get(root, "lines");
    if (!json_strict_object(&r->d, &at, "act failed ask chat out_of_scope", "together and"))
        return;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct json_node v = json_strict_get(&at, lines[i].key);
        *lines[i].out = home_table_read_template(r, &v, lines[i].allowed, NULL);
    }
    struct json_node together = json_strict_get(&at, "together");
    r->t->together = json_strict_u32(&r->d, &together, 1, 16, 1);
    r->t->list_and = home_table_get_text(r, &at, "and", HOME_TEXT_TEXT);
    if (!r->t->list_and)
        r->t->list_and = ",";
}

/* ---- actions -------------------------------------------------------------------------------- */

static bool has_slot(const struct home_action *x, const struct home_slot *s)
{
    for (uint32_t i = 0; i < x->n_slots; i++)
        if (x->slots[i] == s)
            return true;
    return false;
}

static void check_own(struct home_reader *r, const struct json_node *at, const char *key,
                      const struct home_action *x, const struct home_slot *const *slots, uint32_t n)
{
    struct json_node v = json_strict_get(at, key);
    for (uint32_t i = 0; i < n && r->d.rc == 0; i++)
        if (!has_slot(x, slots[i]))
            json_strict_fail(&r->d, &v, "the action does not have the slot \"%s\"", slots[i]->name);
}

/* Checks rules that the code relies on: one number and one list per action, complete questions. */
static void check_action(struct home_reader *r, const struct json_node *at,
                         const struct home_action *x)
{
    uint32_t n_values = 0, n_lists = 0;
    for (uint32_t i = 0; i < x->n_slots && r->d.rc == 0; i++) {
        n_values += x->slots[i]->type == HOME_SLOT_VALUE;
        n_lists += x->slots[i]->until != NULL;
    }
    if (n_values > 1)
        json_strict_fail(&r->d, at, "an action may have only one slot of type value");
    else if (n_lists > 1)
        json_strict_fail(&r->d, at, "an action may have only one slot with several_until");
    else if ((x->unit || x->relative) && n_values == 0)
        json_strict_fail(&r->d, at, "unit and relative need a slot of type value");
    else if (x->compute && x->answer.n == 0)
        json_strict_fail(&r->d, at, "compute needs an answer");
    else if (x->compute && x->compute->type != HOME_SLOT_TEXT)
        json_strict_fail(&r->d, at, "compute needs a slot of type text");
    else if ((x->reason && x->answer.n > 0) != (x->n_reason_if > 0))
        json_strict_fail(&r->d, at,
                         "reason_if needs both answer and reason: it chooses between them");
}

static void read_action(struct home_reader *r, const struct json_node *at, struct home_action *x)
{
    const uint32_t clock = HOME_TABLE_VAR(WEEKDAY) | HOME_TABLE_VAR(DAY) | HOME_TABLE_VAR(MONTH) |
                           HOME_TABLE_VAR(YEAR) | HOME_TABLE_VAR(HOUR) | HOME_TABLE_VAR(MINUTE);
    const uint32_t named =
        r->t->weekdays.n == 7 ? 0 : HOME_TABLE_VAR(WEEKDAY) | HOME_TABLE_VAR(MONTH);
    if (!json_strict_object(
            &r->d, at, "slots",
            "needs can_wait plain unit amounts compute answer reason reason_if do relative "
            "do_change state live"))
        return;
    struct json_node v;
    x->n_slots = get_slots(r, at, "slots", x->slots, HOME_MAX_SLOTS);
    x->n_needs = get_slots(r, at, "needs", x->needs, HOME_MAX_SLOTS);
    x->n_reason_if = get_slots(r, at, "reason_if", x->reason_if, HOME_MAX_SLOTS);
    check_own(r, at, "needs", x, x->needs, x->n_needs);
    check_own(r, at, "reason_if", x, x->reason_if, x->n_reason_if);
    v = json_strict_get(at, "can_wait");
    x->can_wait = json_strict_bool(&r->d, &v, false);
    v = json_strict_get(at, "plain");
    x->plain = json_strict_bool(&r->d, &v, false);
    v = json_strict_get(at, "amounts");
    x->amounts = json_strict_bool(&r->d, &v, true);
    const char *live = home_table_get_text(r, at, "live", HOME_TEXT_NAME);
    x->live = !live                          ? HOME_LIVE_NONE
              : strcmp(live, "reading") == 0 ? HOME_LIVE_READING
                                             : HOME_LIVE_ALARM;
    if (live && x->live == HOME_LIVE_ALARM && strcmp(live, "alarm") != 0)
        json_strict_fail(&r->d, at, "live is \"reading\" or \"alarm\"");
    v = json_strict_get(at, "relative");
    x->relative = json_strict_bool(&r->d, &v, false);
    x->unit = get_unit(r, at);
    v = json_strict_get(at, "do");
    if (v.v)
        x->say = home_table_read_template(r, &v, 0, x);
    v = json_strict_get(at, "do_change");
    if (v.v)
        x->change = home_table_read_template(r, &v, 0, x);
    v = json_strict_get(at, "state");
    if (v.v)
        x->state =
            home_table_read_template(r, &v, HOME_TABLE_VAR(SLOTS) | HOME_TABLE_VAR(STATE), x);
    x->compute = home_table_get_slot(r, at, "compute");
    if (x->compute)
        check_own(r, at, "compute", x, &x->compute, 1);
    x->reason = home_table_get_text(r, at, "reason", HOME_TEXT_TEXT);
    v = json_strict_get(at, "answer");
    if (v.v)
        x->answer = home_table_read_template(r, &v,
                                             (clock & ~named) | HOME_TABLE_VAR(ACTION) |
                                                 HOME_TABLE_VAR(SLOTS) |
                                                 (x->compute ? HOME_TABLE_VAR(ANSWER) : 0),
                                             x);
    check_action(r, at, x);
}

static void read_actions(struct home_reader *r, const struct json_node *root)
{
    struct home_table *t = r->t;
    struct json_node map = json_strict_get(root, "actions");
    uint32_t n = json_strict_map(&r->d, &map, HOME_TABLE_MAX_ACTIONS);
    t->action = arena_zalloc_n(&t->arena, (size_t)n + 1, sizeof(*t->action));
    map_init(r, &t->actions, n);
    if (!t->action)
        json_strict_no_memory(&r->d);
    struct json_node v = json_strict_first(&map);
    for (; r->d.rc == 0 && v.v; v = json_strict_next(&v)) {
        struct home_action *x = &t->action[t->n_actions];
        x->name = home_table_check_text(r, &v, json_strict_key(&v), HOME_TEXT_NAME);
        if (!*x->name || strlen(x->name) > HOME_TABLE_MAX_WORD_BYTES)
            json_strict_fail(&r->d, &v, "this cannot be the name of an action");
        (void)map_put(r, &t->actions, x->name, t->n_actions++);
        read_action(r, &v, x);
    }
}

/* ---- defaults and opposites ----------------------------------------------------------------- */

static const struct home_slot **get_slots_ended(struct home_reader *r, const struct json_node *at,
                                                const char *key)
{
    const struct home_slot **out =
        arena_zalloc_n(&r->t->arena, HOME_MAX_SLOTS + 1, sizeof(struct home_slot *));
    if (out)
        (void)get_slots(r, at, key, out, HOME_MAX_SLOTS);
    else
        json_strict_no_memory(&r->d);
    return out;
}

static void read_default(struct home_reader *r, const struct json_node *at, struct home_default *x)
{
    if (!json_strict_object(&r->d, at, "actions slot value", "with without"))
        return;
    x->slot = home_table_get_slot(r, at, "slot");
    x->with = get_slots_ended(r, at, "with");
    x->without = get_slots_ended(r, at, "without");
    x->value = home_table_get_text(r, at, "value", HOME_TEXT_TEXT);
    struct json_node list = json_strict_get(at, "actions"), v;
    uint32_t n = json_strict_array(&r->d, &list, HOME_TABLE_MAX_ACTIONS);
    if (n == 0)
        json_strict_fail(&r->d, &list, "the list has no action");
    for (v = json_strict_first(&list); r->d.rc == 0 && v.v; v = json_strict_next(&v)) {
        const struct home_action *action = home_table_action_named(r, &v);
        if (!action)
            return;
        if (!has_slot(action, x->slot))
            json_strict_fail(&r->d, &v, "this action does not have the slot");
        const struct home_default **d = action->defaults;
        while (*d)
            d++;
        if (d > action->defaults && d[-1] == x) {
            json_strict_fail(&r->d, &v, "this action occurs twice");
            return;
        }
        *d = x;
    }
}

static void read_defaults(struct home_reader *r, const struct json_node *root)
{
    struct home_table *t = r->t;
    struct json_node list = json_strict_get(root, "defaults"), v;
    uint32_t n = json_strict_array(&r->d, &list, MAX_DEFAULTS), i = 0;
    struct home_default *d = arena_zalloc_n(&t->arena, (size_t)n + 1, sizeof(*d));
    for (uint32_t k = 0; k < t->n_actions; k++) {
        t->action[k].defaults =
            arena_zalloc_n(&t->arena, (size_t)n + 1, sizeof(*t->action[k].defaults));
        if (!t->action[k].defaults)
            json_strict_no_memory(&r->d);
    }
    if (!d)
        json_strict_no_memory(&r->d);
    for (v = json_strict_first(&list); i < n && r->d.rc == 0; v = json_strict_next(&v))
        read_default(r, &v, &d[i++]);
}

static void read_opposites(struct home_reader *r, const struct json_node *root)
{
    struct home_table *t = r->t;
    struct json_node list = json_strict_get(root, "opposites"), v;
    uint32_t n = json_strict_array(&r->d, &list, HOME_TABLE_MAX_LIST);
    t->opposites = arena_zalloc_n(&t->arena, (size_t)n + 1, sizeof(*t->opposites));
    if (!t->opposites)
        json_strict_no_memory(&r->d);
    for (v = json_strict_first(&list); t->n_opposites < n && r->d.rc == 0;
         v = json_strict_next(&v)) {
        struct home_opposite *x = &t->opposites[t->n_opposites++];
        if (json_strict_array(&r->d, &v, 2) != 2) {
            json_strict_fail(&r->d, &v, "expected two actions");
            return;
        }
        struct json_node a = json_strict_first(&v);
        x->action[0] = home_table_action_named(r, &a);
        a = json_strict_next(&a);
        x->action[1] = home_table_action_named(r, &a);
    }
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void read_head(struct home_reader *r, const struct json_node *root)
{
    struct home_table *t = r->t;
    struct json_node format = json_strict_get(root, "format"), v = json_strict_get(root, "version");
    struct json_node models = json_strict_get(root, "models");
    if (strcmp(json_strict_text(&r->d, &format, HOME_TABLE_MAX_TEXT_BYTES), "shoal-home") != 0)
        json_strict_fail(&r->d, &format, "the format must be \"shoal-home\"");
    (void)json_strict_u32(&r->d, &v, 2, 2, 0);
    if (!json_strict_object(&r->d, &models, "reader", "reply"))
        return;
    t->name = home_table_get_text(r, root, "name", HOME_TEXT_NAME);
    t->language = home_table_get_text(r, root, "language", HOME_TEXT_NAME);
    t->reader = home_table_get_text(r, &models, "reader", HOME_TEXT_NAME);
    t->reply = home_table_get_text(r, &models, "reply", HOME_TEXT_NAME);
}

static void read_table(struct home_reader *r)
{
    struct json_node root = json_strict_root(&r->d);
    if (json_strict_get(&root, "labels").v) {
        json_strict_fail(
            &r->d, &root,
            "this is a table for an encoder, which no longer understands texts; a table "
            "for a reader has \"models\": {\"reader\", \"reply\"} and \"plans\" "
            "(models/home.md)");
        return;
    }
    if (!json_strict_object(&r->d, &root,
                            "format version name language models slots actions plans lines",
                            "words id when defaults opposites numbers units amounts durations "
                            "times dates arithmetic you stop risk limits says answers effects "
                            "kinds quantities later lists help parts"))
        return;
    void (*const parts[])(struct home_reader *,
                          const struct json_node *) = {read_head,
                                                       read_words,
                                                       read_slots,
                                                       read_when,
                                                       read_units,
                                                       read_numbers,
                                                       read_durations,
                                                       read_times,
                                                       read_dates,
                                                       read_arithmetic,
                                                       read_lines,
                                                       read_actions,
                                                       read_defaults,
                                                       read_opposites,
                                                       home_table_read_things,
                                                       home_table_read_safety,
                                                       home_table_read_gate,
                                                       home_table_read_later,
                                                       home_table_read_plans,
                                                       home_table_read_vocabulary};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && r->d.rc == 0; i++)
        parts[i](r, &root);
    r->t->you = home_table_get_pairs(r, &root, "you", HOME_TEXT_WORD, 0, 0);
    if (r->t->arena.rc < 0)
        json_strict_no_memory(&r->d);
}

int home_table_parse(struct home_table **out, const char *json, size_t n, struct err *e)
{
    struct home_reader r = {.t = mem_zalloc(sizeof(*r.t))};
    *out = NULL;
    if (!r.t)
        return err_set(e, SHOAL_ENOMEM, "table");
    arena_init(&r.t->arena, ARENA_BYTES);
    if (json_strict_parse(&r.d, json, n, HOME_TABLE_MAX_BYTES, e) == 0)
        read_table(&r);
    int rc = json_strict_rc(&r.d);
    json_strict_fini(&r.d);
    if (rc < 0) {
        home_table_close(r.t);
        return rc;
    }
    *out = r.t;
    return 0;
}

/* The table over its base, a file beside it. */
static int parse_over(struct home_table **out, const char *path, const char *base,
                      const struct file_map *m, struct err *e)
{
    const char *slash = strrchr(path, '/');
    char file[MAX_PATH], *json = NULL;
    struct file_map b;
    const int n =
        snprintf(file, sizeof(file), "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, base);
    if (n < 0 || (size_t)n >= sizeof(file))
        return err_set(e, SHOAL_ELIMIT, "the path of the base is too long");
    int rc = file_map_open(&b, file, e);
    if (rc < 0)
        return rc;
    rc = home_table_base_merge(&json, (const char *)b.bytes, b.n_bytes, (const char *)m->bytes,
                               m->n_bytes, e);
    file_map_close(&b);
    if (rc == 0)
        rc = home_table_parse(out, json, strlen(json), e);
    cJSON_free(json);
    return rc;
}

int home_table_open(struct home_table **out, const char *path, struct err *e)
{
    struct file_map m;
    char base[HOME_TABLE_MAX_WORD_BYTES + 1];
    *out = NULL;
    int rc = file_map_open(&m, path, e);
    if (rc < 0)
        return rc;
    rc = home_table_base_name((const char *)m.bytes, m.n_bytes, base, sizeof(base), e);
    if (rc == 0 && *base)
        rc = parse_over(out, path, base, &m, e);
    else if (rc == 0)
        rc = home_table_parse(out, (const char *)m.bytes, m.n_bytes, e);
    file_map_close(&m);
    if (rc < 0 && e)
        err_wrap(e, "%s", path);
    return rc;
}

void home_table_add(struct home_table *t, struct home_table *other)
{
    other->next = t->next;
    t->next = other;
}

const struct home_table *home_table_in(const struct home_table *t, const char *language)
{
    if (!language || !language[0])
        return t;
    const size_t n = strcspn(language, "-_");
    for (const struct home_table *x = t; x; x = x->next)
        if (strlen(x->language) == n && strncasecmp(x->language, language, n) == 0)
            return x;
    return NULL;
}

static void close_one(struct home_table *t)
{
    for (uint32_t i = 0; i < t->n_slots; i++)
        strmap_fini(&t->slot[i].known);
    strmap_fini(&t->stop.known);
    strmap_fini(&t->vocabulary);
    strmap_fini(&t->slots);
    strmap_fini(&t->actions);
    strmap_fini(&t->units);
    strmap_fini(&t->numbers);
    strmap_fini(&t->duration_units);
    strmap_fini(&t->date_names);
    arena_fini(&t->arena);
    mem_free(t);
}

void home_table_close(struct home_table *t)
{
    for (struct home_table *next; t; t = next) {
        next = t->next;
        close_one(t);
    }
}
