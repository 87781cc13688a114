/* home_table_safety.c - the safety parts of a home table: cues of speech acts, stop words, and the
 * program's own lines. */
#include "apps/home/table/home_table_int.h"

#include <string.h>

static const char *const speeches[] = {
    [HOME_SPEECH_COMMAND] = "command", [HOME_SPEECH_ASK] = "ask",
    [HOME_SPEECH_NEGATE] = "negate",   [HOME_SPEECH_SUPPOSE] = "suppose",
    [HOME_SPEECH_REPORT] = "report",   [HOME_SPEECH_RETRACT] = "retract",
    [HOME_SPEECH_NONE] = "none"};

const char *home_table_speech_name(enum home_speech s)
{
    return speeches[s];
}

enum home_speech home_table_speech(const char *name)
{
    enum home_speech s = HOME_SPEECH_COMMAND;
    while (s < HOME_SPEECH_NONE && strcmp(speeches[s], name) != 0)
        s++;
    return s;
}

static void read_speech(struct home_reader *r, const struct json_node *root)
{
    struct home_table *t = r->t;
    struct json_node at = json_strict_get(root, "speech");
    if (!at.v || !json_strict_object(&r->d, &at, "min_confidence",
                                     "ask negate suppose report retract keep but"))
        return;
    struct json_node v = json_strict_get(&at, "min_confidence");
    t->speech_confidence = (float)json_strict_number(&r->d, &v, 0, 1, 0);
    for (enum home_speech s = HOME_SPEECH_ASK; s < HOME_SPEECH_NONE; s++)
        t->cues[s] = home_table_get_list(r, &at, speeches[s], HOME_TEXT_PHRASE);
    t->but = home_table_get_list(r, &at, "but", HOME_TEXT_WORD);
    t->keep = home_table_get_list(r, &at, "keep", HOME_TEXT_PHRASE);
}

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
        {"kinds", &s->kinds},
        {"all_kinds", &s->all_kinds},
        {"named_kinds", &s->named_kinds},
    };
    struct json_node at = json_strict_get(root, "stop");
    if (!at.v ||
        !json_strict_object(&r->d, &at, "words alone everything device machine power",
                            "halt off cut all it before_name number beside reason danger asks "
                            "not_before not_after unless unless_after deny back keep not heard "
                            "kinds all_kinds named_kinds"))
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
}

static void read_unless(struct home_reader *r, const struct json_node *root)
{
    struct home_table *t = r->t;
    struct json_node list = json_strict_get(root, "unless"), v;
    uint32_t n = json_strict_array(&r->d, &list, HOME_TABLE_MAX_LIST);
    t->unless = arena_zalloc_n(&t->arena, (size_t)n + 1, sizeof(*t->unless));
    if (!t->unless)
        json_strict_no_memory(&r->d);
    for (v = json_strict_first(&list); r->d.rc == 0 && v.v; v = json_strict_next(&v)) {
        if (!json_strict_object(&r->d, &v, "action words", "instead slot"))
            return;
        struct home_unless *u = &t->unless[t->n_unless++];
        struct json_node action = json_strict_get(&v, "action"),
                         instead = json_strict_get(&v, "instead");
        u->action = home_table_action_named(r, &action);
        u->instead = instead.v ? home_table_action_named(r, &instead) : NULL;
        u->words = home_table_get_list(r, &v, "words", HOME_TEXT_PHRASE);
        u->slot = home_table_get_slot(r, &v, "slot");
        if (r->d.rc == 0 && u->slot && !u->instead)
            json_strict_fail(&r->d, &v, "a slot needs the action \"instead\"");
    }
}

static void read_references(struct home_reader *r, const struct json_node *root)
{
    struct home_table *t = r->t;
    struct json_node at = json_strict_get(root, "change"),
                     answers = json_strict_get(root, "answers");
    if (answers.v && json_strict_object(&r->d, &answers, "yes no", "")) {
        t->yes = home_table_get_list(r, &answers, "yes", HOME_TEXT_PHRASE);
        t->no = home_table_get_list(r, &answers, "no", HOME_TEXT_PHRASE);
    }
    t->pronouns = home_table_get_list(r, root, "pronouns", HOME_TEXT_WORD);
    t->state_questions = home_table_get_list(r, root, "state_questions", HOME_TEXT_PHRASE);
    t->state_words = home_table_get_list(r, root, "state_words", HOME_TEXT_WORD);
    if (!at.v || !json_strict_object(&r->d, &at, "by", "after down"))
        return;
    t->change_by = home_table_get_list(r, &at, "by", HOME_TEXT_WORD);
    t->change_after = home_table_get_list(r, &at, "after", HOME_TEXT_WORD);
    t->change_down = home_table_get_list(r, &at, "down", HOME_TEXT_WORD);
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
        [HOME_SAY_KEPT] = {"kept", HOME_TABLE_VAR(TEXT)},
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
        [HOME_SAY_READING] = {"reading", HOME_TABLE_VAR(TEXT) | HOME_TABLE_VAR(STATE)},
        [HOME_SAY_ALARM] = {"alarm", HOME_TABLE_VAR(TEXT) | HOME_TABLE_VAR(STATE)},
        [HOME_SAY_ALARM_OVER] = {"alarm_over", HOME_TABLE_VAR(TEXT) | HOME_TABLE_VAR(STATE)},
        [HOME_SAY_NO_ALARM] = {"no_alarm", HOME_TABLE_VAR(TEXT)},
        [HOME_SAY_NO_STOP] = {"no_stop", 0},
    };
    struct json_node at = json_strict_get(root, "says");
    if (!at.v ||
        !json_strict_object(&r->d, &at, "",
                            "ask negate suppose report retract unsure confirm declined "
                            "expired limit done scheduled failed missing unknown rest "
                            "pronoun not_here which state states no_states due "
                            "listed nothing cancelled kept no_end quantity long no_stop "
                            "pretend simulated list_added list_removed list_missing list_empty "
                            "list_items list_full reading alarm alarm_over no_alarm"))
        return;
    for (size_t i = HOME_SAY_ASK; i < HOME_SAY_COUNT; i++) {
        struct json_node v = json_strict_get(&at, says[i].key);
        if (v.v)
            r->t->say[i] = home_table_read_template(r, &v, says[i].allowed, NULL);
    }
}

void home_table_read_safety(struct home_reader *r, const struct json_node *root)
{
    void (*const parts[])(struct home_reader *, const struct json_node *) = {
        read_speech, read_stop, read_unless, read_references, read_says};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && r->d.rc == 0; i++)
        parts[i](r, root);
}
