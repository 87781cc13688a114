/* home_table_safety.c - the safety parts of a home table: stop words, answers to a question, and
 * the program's own lines. */
#include "apps/home/table/home_table_int.h"

#include <string.h>

/* A text without any of the stop words is not read further, so every phrase must have one. */
static struct home_list read_stopping(struct home_reader *r, const struct json_node *at,
                                      const char *key)
{
    struct home_list l = home_table_get_list(r, at, key, HOME_TEXT_PHRASE);
    struct json_node v = json_strict_get(at, key);
    for (uint32_t i = 0; r->d.rc == 0 && i < l.n; i++) {
        struct home_words w = home_words_split(&r->t->arena, l.w[i]);
        bool has = false;
        for (uint32_t k = 0; k < w.n; k++)
            has |= home_table_lists(&r->t->stop.words, w.w[k]);
        if (!has)
            json_strict_fail(&r->d, &v, "\"%.64s\" has none of stop.words", l.w[i]);
    }
    return l;
}

/* A pattern names the thing exactly once. */
static struct home_list read_patterns(struct home_reader *r, const struct json_node *at,
                                      const char *key)
{
    static const char thing[] = "{thing}";
    struct home_list l = read_stopping(r, at, key);
    struct json_node v = json_strict_get(at, key);
    for (uint32_t i = 0; r->d.rc == 0 && i < l.n; i++) {
        const char *p = strstr(l.w[i], thing);
        if (!p || strstr(p + 1, thing) || strcmp(l.w[i], thing) == 0)
            json_strict_fail(&r->d, &v, "\"%.64s\" must have words and {thing} once", l.w[i]);
    }
    return l;
}

/* An action that brings a thing to rest, and sets an ability. */
static const struct home_action *stopping(struct home_reader *r, const struct json_node *at,
                                          const char *key)
{
    struct json_node v = json_strict_get(at, key);
    const struct home_action *x = home_table_action_named(r, &v);
    if (r->d.rc == 0 && (x->n_needs == 0 || !x->effect || !x->effect->to))
        json_strict_fail(&r->d, &v,
                         "an action that stops something must need a slot and have an "
                         "effect with \"to\"");
    return x;
}

static void read_known(struct home_reader *r, const struct json_node *at)
{
    struct strmap *known = &r->t->stop.known;
    struct home_list words = home_table_get_list(r, at, "known", HOME_TEXT_WORD);
    if (strmap_init(known, words.n) < 0)
        json_strict_no_memory(&r->d);
    for (uint32_t i = 0; r->d.rc == 0 && i < words.n; i++)
        if (strmap_put(known, words.w[i], strlen(words.w[i]), 0) < 0)
            json_strict_no_memory(&r->d);
}

static void read_stop(struct home_reader *r, const struct json_node *root)
{
    struct home_stop *s = &r->t->stop;
    const struct {
        const char *key;
        struct home_list *to;
    } lists[] = {
        {"all", &s->all},
        {"it", &s->it},
        {"before_name", &s->before_name},
        {"number", &s->number},
        {"beside", &s->beside},
        {"reason", &s->reason},
        {"danger", &s->danger},
        {"asks", &s->asks},
        {"not_before", &s->not_before},
        {"not_after", &s->not_after},
        {"unless", &s->unless},
        {"unless_after", &s->unless_after},
        {"deny", &s->deny},
        {"back", &s->back},
        {"keep", &s->keep},
        {"not", &s->not },
        {"questions", &s->questions},
        {"verbs", &s->verbs},
        {"wrap", &s->wrap},
        {"kinds", &s->kinds},
        {"all_kinds", &s->all_kinds},
        {"named_kinds", &s->named_kinds},
    };
    struct json_node at = json_strict_get(root, "stop");
    if (!at.v ||
        !json_strict_object(&r->d, &at, "words alone everything device machine power",
                            "halt off cut all it before_name number beside reason danger asks "
                            "not_before not_after unless unless_after deny back keep not heard "
                            "questions verbs wrap known kinds all_kinds named_kinds"))
        return;
    s->words = home_table_get_list(r, &at, "words", HOME_TEXT_WORD);
    s->alone = read_stopping(r, &at, "alone");
    s->patterns[HOME_STOP_HALT] = read_patterns(r, &at, "halt");
    s->patterns[HOME_STOP_OFF] = read_patterns(r, &at, "off");
    s->patterns[HOME_STOP_POWER] = read_patterns(r, &at, "cut");
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        *lists[i].to = home_table_get_list(r, &at, lists[i].key, HOME_TEXT_PHRASE);
    s->heard = home_table_get_texts(r, &at, "heard");
    s->everything = home_table_get_text(r, &at, "everything", HOME_TEXT_TEXT);
    s->device = stopping(r, &at, "device");
    s->machine = stopping(r, &at, "machine");
    s->power = stopping(r, &at, "power");
    read_known(r, &at);
}

static void read_answers(struct home_reader *r, const struct json_node *root)
{
    struct home_table *t = r->t;
    struct json_node answers = json_strict_get(root, "answers");
    if (answers.v && json_strict_object(&r->d, &answers, "yes no", "")) {
        t->yes = home_table_get_list(r, &answers, "yes", HOME_TEXT_PHRASE);
        t->no = home_table_get_list(r, &answers, "no", HOME_TEXT_PHRASE);
    }
}

static void read_says(struct home_reader *r, const struct json_node *root)
{
    static const struct {
        const char *key;
        uint32_t allowed;
    } says[] = {
        [HOME_SAY_ASK] = {"ask", 0},
        [HOME_SAY_NEGATE] = {"negate", 0},
        [HOME_SAY_SUPPOSE] = {"suppose", 0},
        [HOME_SAY_REPORT] = {"report", 0},
        [HOME_SAY_RETRACT] = {"retract", 0},
        [HOME_SAY_UNSURE] = {"unsure", 0},
        [HOME_SAY_CONFIRM] = {"confirm", HOME_TABLE_VAR(DO) | HOME_TABLE_VAR(WHEN)},
        [HOME_SAY_DECLINED] = {"declined", 0},
        [HOME_SAY_EXPIRED] = {"expired", 0},
        [HOME_SAY_LIMIT] = {"limit", HOME_TABLE_VAR(DO) | HOME_TABLE_VAR(REASON)},
        [HOME_SAY_DONE] = {"done", HOME_TABLE_VAR(DO) | HOME_TABLE_VAR(WHEN)},
        [HOME_SAY_SCHEDULED] = {"scheduled", HOME_TABLE_VAR(DO) | HOME_TABLE_VAR(WHEN)},
        [HOME_SAY_FAILED] = {"failed", HOME_TABLE_VAR(DO) | HOME_TABLE_VAR(REASON)},
        [HOME_SAY_MISSING] = {"missing", HOME_TABLE_VAR(DO) | HOME_TABLE_VAR(ASK)},
        [HOME_SAY_UNKNOWN] = {"unknown", HOME_TABLE_VAR(DO)},
        [HOME_SAY_REST] = {"rest", HOME_TABLE_VAR(TEXT)},
        [HOME_SAY_PRONOUN] = {"pronoun", HOME_TABLE_VAR(TEXT)},
        [HOME_SAY_NOT_HERE] = {"not_here", HOME_TABLE_VAR(TEXT)},
        [HOME_SAY_WHICH] = {"which", HOME_TABLE_VAR(TEXT)},
        [HOME_SAY_STATE] = {"state", HOME_TABLE_VAR(TEXT) | HOME_TABLE_VAR(STATE)},
        [HOME_SAY_STATES] = {"states", HOME_TABLE_VAR(TEXT) | HOME_TABLE_VAR(STATE)},
        [HOME_SAY_NO_STATES] = {"no_states", HOME_TABLE_VAR(STATE)},
        [HOME_SAY_DUE] = {"due", HOME_TABLE_VAR(TEXT)},
        [HOME_SAY_LISTED] = {"listed", HOME_TABLE_VAR(TEXT)},
        [HOME_SAY_NOTHING] = {"nothing", HOME_TABLE_VAR(TEXT)},
        [HOME_SAY_CANCELLED] = {"cancelled", HOME_TABLE_VAR(TEXT)},
        [HOME_SAY_PAUSED] = {"paused", HOME_TABLE_VAR(TEXT)},
        [HOME_SAY_RESUMED] = {"resumed", HOME_TABLE_VAR(TEXT)},
        [HOME_SAY_MOVED] = {"moved", HOME_TABLE_VAR(TEXT)},
        [HOME_SAY_NO_END] = {"no_end", HOME_TABLE_VAR(REASON)},
        [HOME_SAY_QUANTITY] = {"quantity", 0},
        [HOME_SAY_LONG] = {"long", 0},
        [HOME_SAY_PRETEND] = {"pretend", HOME_TABLE_VAR(DO)},
        [HOME_SAY_SIMULATED] = {"simulated", 0},
        [HOME_SAY_LIST_ADDED] = {"list_added", HOME_TABLE_VAR(TEXT) | HOME_TABLE_VAR(STATE)},
        [HOME_SAY_LIST_REMOVED] = {"list_removed", HOME_TABLE_VAR(TEXT) | HOME_TABLE_VAR(STATE)},
        [HOME_SAY_LIST_MISSING] = {"list_missing", HOME_TABLE_VAR(TEXT) | HOME_TABLE_VAR(STATE)},
        [HOME_SAY_LIST_EMPTY] = {"list_empty", HOME_TABLE_VAR(STATE)},
        [HOME_SAY_LIST_ITEMS] = {"list_items", HOME_TABLE_VAR(TEXT) | HOME_TABLE_VAR(STATE)},
        [HOME_SAY_LIST_FULL] = {"list_full", HOME_TABLE_VAR(STATE)},
        [HOME_SAY_LIST_NAMES] = {"list_names", HOME_TABLE_VAR(TEXT)},
        [HOME_SAY_LIST_NONE] = {"list_none", 0},
        [HOME_SAY_READING] = {"reading", HOME_TABLE_VAR(TEXT) | HOME_TABLE_VAR(STATE)},
        [HOME_SAY_ALARM] = {"alarm", HOME_TABLE_VAR(TEXT) | HOME_TABLE_VAR(STATE)},
        [HOME_SAY_ALARM_OVER] = {"alarm_over", HOME_TABLE_VAR(TEXT) | HOME_TABLE_VAR(STATE)},
        [HOME_SAY_NO_ALARM] = {"no_alarm", HOME_TABLE_VAR(TEXT)},
        [HOME_SAY_LEFT] = {"left", HOME_TABLE_VAR(TEXT)},
        [HOME_SAY_NO_STOP] = {"no_stop", 0},
    };
    struct json_node at = json_strict_get(root, "says");
    if (!at.v || !json_strict_object(
                     &r->d, &at, "",
                     "ask negate suppose report retract unsure confirm declined "
                     "expired left limit done scheduled failed missing unknown rest "
                     "pronoun not_here which state states no_states due "
                     "listed nothing cancelled paused resumed moved no_end quantity long no_stop "
                     "pretend simulated list_added list_removed list_missing list_empty "
                     "list_items list_full list_names list_none reading alarm alarm_over "
                     "no_alarm"))
        return;
    for (size_t i = HOME_SAY_ASK; i < HOME_SAY_COUNT; i++) {
        struct json_node v = json_strict_get(&at, says[i].key);
        if (v.v)
            r->t->say[i] = home_table_read_template(r, &v, says[i].allowed, NULL);
    }
}

static void read_parts(struct home_reader *r, const struct json_node *root)
{
    static const char *const keys[] = {
        [HOME_PART_RISK] = "risk",
        [HOME_PART_NO_LIMITS] = "no_limits",
        [HOME_PART_PRESENT] = "present",
        [HOME_PART_ABOVE] = "above",
        [HOME_PART_BELOW] = "below",
        [HOME_PART_SPAN] = "span",
        [HOME_PART_UNIT] = "unit",
        [HOME_PART_STATE] = "state",
        [HOME_PART_UNABLE] = "unable",
        [HOME_PART_GONE] = "gone",
        [HOME_PART_ACTION] = "action",
        [HOME_PART_UNCLEAR] = "unclear",
        [HOME_PART_NOTHING_HAS] = "nothing_has",
        [HOME_PART_NO_SUCH] = "no_such",
        [HOME_PART_NO_SUN] = "no_sun",
        [HOME_PART_NO_SUN_THERE] = "no_sun_there",
        [HOME_PART_NO_PLACE] = "no_place",
        [HOME_PART_NOT_KNOWN] = "not_known",
        [HOME_PART_BEGIN] = "begin",
        [HOME_PART_REPEAT] = "repeat",
        [HOME_PART_OVER] = "over",
        [HOME_PART_OFTEN] = "often",
        [HOME_PART_FAR] = "far",
        [HOME_PART_TOO_LONG] = "too_long",
        [HOME_PART_CHANGED] = "changed",
        [HOME_PART_NO_SCHEDULE] = "no_schedule",
        [HOME_PART_PAUSED] = "paused",
        [HOME_PART_UNCONNECTED] = "unconnected",
        [HOME_PART_OFFLINE] = "offline",
        [HOME_PART_FAILED] = "failed",
        [HOME_PART_IT] = "it",
        [HOME_PART_HERE] = "here",
        [HOME_PART_OR] = "or",
        [HOME_PART_PLUS] = "plus",
        [HOME_PART_MINUS] = "minus",
        [HOME_PART_PLACE] = "place",
        [HOME_PART_EXCEPT] = "except",
        [HOME_PART_EXCEPT_IN] = "except_in",
    };
    struct json_node at = json_strict_get(root, "parts");
    if (!at.v ||
        !json_strict_object(
            &r->d, &at,
            "risk no_limits present above below span unit state unable "
            "gone action unclear nothing_has no_such no_sun no_sun_there "
            "no_place not_known begin repeat over often far too_long changed "
            "no_schedule paused unconnected offline failed it here or plus minus place except "
            "except_in",
            ""))
        return;
    for (size_t i = 0; i < HOME_PART_COUNT; i++) {
        struct json_node v = json_strict_get(&at, keys[i]);
        r->t->part[i] =
            home_table_read_template(r, &v, HOME_TABLE_VAR(TEXT) | HOME_TABLE_VAR(STATE), NULL);
    }
}

struct part {
    const char *text, *state;
};

static const char *get_part(void *ctx, uint32_t var)
{
    const struct part *p = ctx;
    return var == HOME_VAR_TEXT ? p->text : p->state;
}

const char *home_table_part(struct arena *a, const struct home_table *t, enum home_part which,
                            const char *text, const char *state)
{
    struct part p = {home_table_called(t, text), home_table_called(t, state)};
    return home_template_fill(a, &t->part[which], get_part, &p);
}

void home_table_read_safety(struct home_reader *r, const struct json_node *root)
{
    void (*const parts[])(struct home_reader *, const struct json_node *) = {
        read_stop, read_answers, read_says, read_parts};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && r->d.rc == 0; i++)
        parts[i](r, root);
}
