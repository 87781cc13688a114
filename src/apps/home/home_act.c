/* home_act.c - see home_act.h. */
#include "apps/home/home_act.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/home/gate/gate_plan.h"
#include "apps/home/gate/gate_units.h"
#include "apps/home/home_denied.h"
#include "apps/home/home_values.h"
#include "apps/home/site/home_live.h"

static struct ask_plan_field *field(struct home_act *x, const char *key)
{
    struct ask_plan_action *o = x->o;
    for (uint32_t i = 0; i < o->n_fields; i++)
        if (strcmp(o->fields[i].key, key) == 0)
            return &o->fields[i];
    assert(o->n_fields < ASK_PLAN_MAX_FIELDS); /* the table bounds slots and rows of "when" */
    o->fields[o->n_fields].key = key;
    return &o->fields[o->n_fields++];
}

void home_act_put_text(struct home_act *x, const char *key, const char *text)
{
    *field(x, key) = (struct ask_plan_field){.key = key, .text = text};
}

static void put_number(struct home_act *x, const char *key, double number)
{
    *field(x, key) = (struct ask_plan_field){.key = key, .number = number};
}

static void pair(struct home_act *x, const char *key, const char *show)
{
    x->pairs = arena_printf(x->a, "%s; %s: %s", x->pairs, key, show);
}

/* ";" separates pairs, so it may not be in one; white space becomes one space. */
static const char *tidy(struct arena *a, const char *text)
{
    char *s = arena_copy(a, text, strlen(text) + 1);
    for (char *p = s; p && *p; p++)
        if (*p == ';')
            *p = ',';
    struct home_words w = home_words_split(a, s ? s : "");
    return home_words_join(a, &w, 0, w.n);
}

static const char *without_articles(const struct home_act *x, const char *text)
{
    struct home_words w = home_words_split(x->a, text);
    uint32_t from = 0;
    while (from + 1 < w.n && home_table_lists(&x->t->articles, home_words_lower(x->a, w.w[from])))
        from++;
    return home_words_join(x->a, &w, from, w.n);
}

static const char *to_you(const struct home_act *x, const char *text)
{
    struct home_words w = home_words_split(x->a, text);
    for (uint32_t i = 0; i < w.n; i++) {
        const char *low = home_words_lower(x->a, w.w[i]);
        for (uint32_t k = 0; k < x->t->you.n; k++)
            if (strcmp(low, x->t->you.p[k].from) == 0) {
                w.w[i] = x->t->you.p[k].to;
                break;
            }
    }
    return home_words_join(x->a, &w, 0, w.n);
}

static const char *normal_text(const struct home_act *x, const struct home_slot *slot,
                               const char *text)
{
    if (slot->lower)
        text = home_words_lower(x->a, text);
    if (slot->strip_articles)
        text = without_articles(x, text);
    return text;
}

/* The name that programs know: "rot" is "red"; NULL: no word of this slot. */
static const char *meant(const struct home_slot *slot, const char *text)
{
    for (uint32_t i = 0; i < slot->means.n; i++)
        if (strcmp(slot->means.p[i].from, text) == 0)
            return slot->means.p[i].to;
    return slot->only ? NULL : text;
}

/* "minus 100 rpm", from a change and the value that was said: "100 rpm" or "-100 rpm". */
static const char *show_change(struct arena *a, const struct home_table *t, double change,
                               const char *value)
{
    return home_table_part(a, t, change < 0.0 ? HOME_PART_MINUS : HOME_PART_PLUS,
                           value + (*value == '-'), NULL);
}

/* The unit of a bare number: that of the thing's own limits, or the usual one of the action. */
static const struct home_unit *bare_unit(const struct home_act *x)
{
    const struct home_unit *usual = x->x->unit, *own = NULL;
    if (usual && x->n_things > 0 && x->x->effect) {
        const char *unit = gate_unit_of(x->t, x->things[0], x->x->effect->ability);
        own = unit ? home_table_unit(x->t, unit) : NULL;
    }
    return own && gate_units_fit(x->t, own->name, usual->name) ? own : usual;
}

/* Puts a slot into the object under a key; returns how the line shows it. */
static const char *put_slot(struct home_act *x, const struct home_slot *slot, const char *key,
                            const char *raw)
{
    struct arena *a = x->a;
    const char *text = tidy(a, raw);
    struct home_value v;
    switch (slot->type) {
    case HOME_SLOT_VALUE:
        v = home_values_amount(a, x->t, text, x->x->amounts, bare_unit(x));
        x->wrong = v.wrong ? v.show : x->wrong;
        if (v.text)
            home_act_put_text(x, key, v.text);
        if (v.text) /* "half" of a temperature, "the usual one" */
            x->ask = slot->name;
        if (v.text)
            return v.show;
        if (x->sign != 0.0)
            put_number(x, "change", x->sign * v.number);
        else
            put_number(x, key, v.number);
        if (v.unit)
            home_act_put_text(x, "unit", v.unit);
        return x->sign != 0.0 ? show_change(a, x->t, x->sign * v.number, v.show) : v.show;
    case HOME_SLOT_DURATION:
        v = home_values_duration(a, x->t, text);
        if (v.understood)
            put_number(x, arena_printf(a, "%s_s", key), v.number);
        if (v.understood && x->x->rings == HOME_LATER_TIMER)
            x->due.in_s = v.number;
        if (!v.understood)
            home_act_put_text(x, key, v.show);
        if (!v.understood && !v.wrong && x->x->n_needs > 0 && x->x->needs[0] == slot)
            x->ask = slot->name; /* a timer of "ate minutes" */
        x->wrong = v.wrong ? v.show : x->wrong;
        return v.show;
    case HOME_SLOT_TIME:
        v = home_values_clock(a, x->t, text);
        home_act_put_text(x, key, v.text);
        x->due.time = v.text;
        x->due.either = v.either;
        x->clock = v.show;
        x->wrong = v.wrong ? v.show : x->wrong;
        return v.show;
    case HOME_SLOT_DATE:
        v = home_values_date(a, x->t, text);
        home_act_put_text(x, key, v.text);
        x->due.date = v.text;
        if (x->due.every) { /* "weekday" of "every weekday" is not a date */
            home_act_put_text(x, key, x->due.every);
            return x->due.every;
        }
        x->wrong = v.wrong ? v.show : x->wrong;
        return v.show;
    case HOME_SLOT_TEXT:
        break;
    }
    text = normal_text(x, slot, text);
    if (meant(slot, text))
        home_act_put_text(x, key, meant(slot, text));
    else
        x->ask = slot->name;
    return slot->to_you ? to_you(x, text) : text;
}

/* "milk, eggs and bread" */
static const char *listed(struct arena *a, const struct home_table *t, const char *const *items,
                          uint32_t n)
{
    const char *show = n > 0 ? items[0] : "";
    for (uint32_t i = 1; i < n; i++)
        show = i + 1 == n ? arena_printf(a, "%s %s %s", show, t->list_and, items[i])
                          : arena_printf(a, "%s, %s", show, items[i]);
    return show;
}

static const char *put_items(struct home_act *x, const struct home_slot *slot,
                             const struct home_fill *s)
{
    const char **list = arena_zalloc_n(x->a, s->n_items, sizeof(*list));
    const char *key = slot->name;
    if (!list)
        return "";
    for (uint32_t i = 0; i < s->n_items; i++)
        list[i] = normal_text(x, slot, tidy(x->a, s->items[i]));
    if (s->n_items == 1)
        home_act_put_text(x, key, list[0]);
    else
        *field(x, key) = (struct ask_plan_field){.key = key, .items = list, .n_items = s->n_items};
    return listed(x->a, x->t, list, s->n_items);
}

void home_act_put_slots(struct home_act *x, const struct home_fill *s)
{
    for (uint32_t i = 0; i < x->x->n_slots; i++) {
        const struct home_slot *slot = x->x->slots[i];
        const char *text = home_fill_get(s, home_fill_own(slot));
        if (!text)
            continue;
        x->shows[i] = slot->until ? put_items(x, slot, s) : put_slot(x, slot, slot->name, text);
        if (x->said && strcmp(slot->name, "device") == 0)
            x->shows[i] = x->said;
        pair(x, slot->name, x->shows[i]);
    }
    if (x->except)
        home_act_put_text(x, "except", x->except);
}

/* When to do it, or for how long; true: later. */
static bool put_when(struct home_act *x, const struct home_fill *s)
{
    bool later = false;
    for (uint32_t i = 0; i < x->t->n_when; i++) {
        const struct home_when *w = &x->t->when[i];
        const char *text = home_fill_get(s, (struct home_place){w->slot, w});
        if (!text)
            continue;
        const char *show = put_slot(x, w->slot, w->key, text);
        if (w->later && w->slot->type == HOME_SLOT_DURATION) {
            struct home_value v = home_values_duration(x->a, x->t, tidy(x->a, text));
            x->due.in_s = v.understood ? v.number : -1.0;
        }
        pair(x, w->show, show);
        x->when = arena_printf(x->a, "%s %s%s%s", x->when ? x->when : "", w->say,
                               *w->say ? " " : "", show);
        later |= w->later;
    }
    return later;
}

static void put_ids(struct home_act *x)
{
    const char **list = arena_zalloc_n(x->a, x->n_things, sizeof(*list));
    for (uint32_t i = 0; list && i < x->n_things; i++)
        list[i] = x->things[i]->id;
    if (list)
        *field(x, "ids") =
            (struct ask_plan_field){.key = "ids", .items = list, .n_items = x->n_things};
}

/* "kitchen_lights": lower-case letters and digits; everything else becomes one "_". */
void home_act_put_id(struct home_act *x)
{
    const struct home_table *t = x->t;
    const char *name = "";
    bool open = !x->here->file || x->here->file->open;
    if (x->n_things == 1) {
        home_act_put_text(x, "id", x->things[0]->id);
        return;
    }
    if (x->n_things > 1)
        put_ids(x);
    if (x->n_things > 1 && !open)
        return;
    if (t->n_id == 0 || !ask_plan_text_of(x->o, t->id[t->n_id - 1]->name))
        return;
    for (uint32_t i = 0; i < t->n_id; i++) {
        const char *part = ask_plan_text_of(x->o, t->id[i]->name);
        if (part)
            name = arena_printf(x->a, "%s%s%s", name, *name ? " " : "", part);
    }
    char *id = arena_bytes(x->a, strlen(name) + 1), *p = id;
    if (!id)
        return;
    for (; *name; name++) {
        bool good = (*name >= 'a' && *name <= 'z') || (*name >= '0' && *name <= '9');
        if (good)
            *p++ = *name;
        else if (p > id && p[-1] != '_')
            *p++ = '_';
    }
    if (p > id && p[-1] == '_')
        p--;
    *p = '\0';
    home_act_put_text(x, "id", id);
}

/* "2", "b", "k-12": the number of a thing, not its kind. */
static bool is_code(const char *w)
{
    const char *p = w;
    bool letter = *p >= 'a' && *p <= 'z';
    p += letter;
    if (letter && !*p)
        return true;
    p += *p == '-';
    size_t n = strspn(p, "0123456789");
    return n > 0 && p[n] == '\0';
}

/* Does the slot know the last word of a text, codes aside? */
static bool is_known(const struct home_act *x, const struct home_slot *slot, const char *text)
{
    struct home_words w = home_words_split(x->a, home_words_lower(x->a, text));
    uint32_t found;
    while (w.n > 0 && is_code(w.w[w.n - 1]))
        w.n--;
    if (w.n == 0)
        return false;
    const char *s = w.w[w.n - 1];
    size_t n = strlen(s);
    if (strmap_get(&slot->known, s, n, &found))
        return true;
    for (uint32_t i = 0; i < slot->known_endings.n; i++) {
        const char *end = slot->known_endings.w[i];
        size_t len = strlen(end);
        if (n > len && strcmp(s + n - len, end) == 0 &&
            strmap_get(&slot->known, s, n - len, &found))
            return true;
    }
    return false;
}

static bool all_known(const struct home_act *x)
{
    for (uint32_t i = 0; i < x->x->n_slots; i++) {
        const struct home_slot *slot = x->x->slots[i];
        const char *text = slot->known.n_used ? ask_plan_text_of(x->o, slot->name) : NULL;
        if (text && !is_known(x, slot, text))
            return false;
    }
    return true;
}

/* ---- lines ---------------------------------------------------------------------------------- */

static const char *get_var(void *ctx, uint32_t var);

/* What the action does: "unlock the front door". */
static const char *in_words(struct home_act *x)
{
    const struct home_template *t =
        x->sign != 0.0 && x->x->change.n > 0 ? &x->x->change : &x->x->say;
    if (t->n == 0)
        return x->x->name;
    const char *text = home_template_fill(x->a, t, get_var, x);
    struct home_words w = home_words_split(x->a, text); /* missing slots leave spaces */
    for (uint32_t i = 0; x->t->stop.everything && i + 1 < w.n; i++)
        if (home_table_lists(&x->t->articles, w.w[i]) &&
            strcmp(w.w[i + 1], x->t->stop.everything) == 0) /* "turn off the everything" */
            w.w[i] = "";
    text = home_words_join(x->a, &w, 0, w.n);
    w = home_words_split(x->a, text);
    return home_words_join(x->a, &w, 0, w.n);
}

/* A line of "says"; "": the table has none. */
static const char *say(struct home_act *x, enum home_say which)
{
    const struct home_slot *asked =
        which == HOME_SAY_MISSING && x->ask ? home_table_slot(x->t, x->ask) : NULL;
    if (asked && asked->question)
        return asked->question;
    return home_template_fill(x->a, &x->t->say[which], get_var, x);
}

static const char *shown(const struct home_act *x, const char *name)
{
    for (uint32_t i = 0; i < x->x->n_slots; i++)
        if (strcmp(x->x->slots[i]->name, name) == 0)
            return x->shows[i];
    return NULL;
}

static bool is_everything_in(const struct home_act *x)
{
    const char *device = shown(x, "device");
    return device && shown(x, "room") && x->t->stop.everything &&
           strcmp(device, x->t->stop.everything) == 0;
}

/* A slot as a sentence words it: "everything in the kitchen", not "the kitchen everything". */
static const char *show_slot(const struct home_act *x, uint32_t i)
{
    const char *name = x->x->slots[i]->name;
    bool device = strcmp(name, "device") == 0, room = strcmp(name, "room") == 0;
    if ((!device && !room) || !is_everything_in(x))
        return x->shows[i];
    return room ? NULL
                : home_table_part(x->a, x->t, HOME_PART_PLACE, x->shows[i], shown(x, "room"));
}

static const char *get_var(void *ctx, uint32_t var)
{
    struct home_act *x = ctx;
    const struct tm *now = x->now;
    switch (var) {
    case HOME_VAR_ACTION:
        return x->x->name;
    case HOME_VAR_SLOTS:
        return x->pairs;
    case HOME_VAR_RESULT:
        return x->result;
    case HOME_VAR_REASON:
        return x->reason;
    case HOME_VAR_ASK:
        return x->ask;
    case HOME_VAR_ANSWER:
        return x->answer;
    case HOME_VAR_DO:
        return in_words(x);
    case HOME_VAR_WHEN:
        return x->when;
    case HOME_VAR_TEXT:
        return x->text;
    case HOME_VAR_STATE:
        return home_table_called(x->t, x->state);
    case HOME_VAR_WEEKDAY: /* the table begins with Monday */
        return x->t->weekdays.w[(uint32_t)(now->tm_wday + 6) % 7];
    case HOME_VAR_MONTH:
        return x->t->months.w[(uint32_t)now->tm_mon % 12];
    case HOME_VAR_DAY:
        return arena_printf(x->a, "%d", now->tm_mday);
    case HOME_VAR_YEAR:
        return arena_printf(x->a, "%d", now->tm_year + 1900);
    case HOME_VAR_HOUR:
        return arena_printf(x->a, "%02d", now->tm_hour);
    case HOME_VAR_MINUTE:
        return arena_printf(x->a, "%02d", now->tm_min);
    default:
        return show_slot(x, var - HOME_VAR_SLOT);
    }
}

/* joins: it may share a context with others.  which: the same in plain words. */
static struct home_draft_line act_line(struct home_act *x, const struct home_template *t,
                                       bool joins, enum home_say which)
{
    return (struct home_draft_line){.text = home_template_fill(x->a, t, get_var, x),
                                    .say = say(x, which),
                                    .joins = joins,
                                    .todo = in_words(x)};
}

/* Said by the program itself; without such a line in the table, by the model. */
struct home_draft_line home_act_plain_line(struct home_act *x, enum home_say which)
{
    if (x->t->say[which].n > 0)
        return (struct home_draft_line){.say = say(x, which), .todo = in_words(x)};
    return act_line(x, &x->t->line_failed, true, which);
}

void home_act_put_result(struct home_act *x, const char *result)
{
    x->result = result;
    home_act_put_text(x, "result", result);
}

const char *home_act_text(void *ctx, uint32_t var)
{
    (void)var; /* {text} is the only name */
    return ctx;
}

/* The user's own words, for a clause that is chat or out of scope. */
struct home_draft_line home_act_said(struct arena *a, const struct home_template *t,
                                     const char *text)
{
    const char *s = tidy(a, text);
    return (struct home_draft_line){
        .text = home_template_fill(a, t, home_act_text, (void *)(uintptr_t)s)};
}

/* A question that needs no source; text NULL: out of scope. */
static struct home_draft_line answer(struct home_act *x, const struct home_fill *s)
{
    if (x->x->compute) {
        double result = 0.0;
        const char *expr = home_fill_get(s, home_fill_own(x->x->compute));
        bool ok = expr && home_values_calculate(x->a, x->t, expr, &x->answer, &result);
        home_act_put_result(x, ok ? "done" : "unknown");
        if (!ok)
            return (struct home_draft_line){0};
        put_number(x, "answer", result);
    } else {
        home_act_put_result(x, "done");
    }
    return (struct home_draft_line){.text = home_template_fill(x->a, &x->x->answer, get_var, x)};
}

static bool has_reason(const struct home_action *x, const struct home_fill *s)
{
    for (uint32_t i = 0; i < x->n_reason_if; i++)
        if (home_fill_get(s, home_fill_own(x->reason_if[i])))
            return true;
    return x->answer.n == 0;
}

static void drop_field(struct home_act *x, const char *key)
{
    struct ask_plan_action *o = x->o;
    for (uint32_t i = 0; i < o->n_fields; i++)
        if (strcmp(o->fields[i].key, key) == 0) {
            memmove(&o->fields[i], &o->fields[i + 1], (--o->n_fields - i) * sizeof(o->fields[0]));
            return;
        }
}

/* The text with `now` for `was`, where that is a whole value: white space or ";" ends it. */
static const char *reworded(struct arena *a, const char *text, const char *was, const char *now)
{
    size_t n = strlen(was);
    const char *p = text;
    while (p && (p = strstr(p, was)) &&
           ((p > text && p[-1] != ' ') || (p[n] && !strchr(" ;", p[n]))))
        p++;
    return p ? arena_printf(a, "%.*s%s%s", (int)(p - text), text, now, p + n) : text;
}

/* "At 6" was found to mean the evening: every line says 18:00. False: it means what it says. */
static bool show_hour(struct home_act *x, const struct tm *at)
{
    if (!x->due.either || !x->clock || strtol(x->clock, NULL, 10) == at->tm_hour)
        return false;
    const char *now = arena_printf(x->a, "%d:%02d", at->tm_hour, at->tm_min);
    x->pairs = reworded(x->a, x->pairs, x->clock, now);
    x->when = reworded(x->a, x->when, x->clock, now);
    for (uint32_t i = 0; i < x->x->n_slots; i++)
        if (x->shows[i] == x->clock)
            x->shows[i] = now;
    return true;
}

/* When the action happens; false: there is no such time, *out is the line. */
static bool put_due(struct home_act *x, struct home_draft_line *out)
{
    struct tm tm = *x->now;
    time_t now = mktime(&tm);
    x->due.morning = x->x->rings == HOME_LATER_ALARM;
    struct home_due due = home_due_of(x->a, x->t, &x->due, now);
    x->o->due_s = due.at_s;
    x->o->due_counted = due.counted;
    x->o->again = due.again;
    struct tm day = tm;
    time_t at = (time_t)due.at_s;
    localtime_r(&at, &day);
    bool shown = due.at_s > 0 && show_hour(x, &day);
    x->o->due_told = !due.counted && ((x->due.either && !shown) || due.again.words ||
                                      (!x->due.date && day.tm_yday != x->now->tm_yday));
    if (due.missing_time) {
        const struct home_slot *time = NULL;
        for (uint32_t i = 0; i < x->t->n_slots && !time; i++)
            time = x->t->slot[i].type == HOME_SLOT_TIME ? &x->t->slot[i] : NULL;
        x->ask = time ? time->name : "time";
        home_act_put_result(x, "ask");
        home_act_put_text(x, "ask", x->ask);
        *out = home_act_plain_line(x, HOME_SAY_MISSING);
        return false;
    }
    if (due.why) {
        x->reason = due.why;
        home_act_put_result(x, "refused");
        home_act_put_text(x, "reason", x->reason);
        *out = home_act_plain_line(x, HOME_SAY_LIMIT);
        return false;
    }
    return true;
}

/* Dangerous actions wait for a yes: the draft keeps their confirmed form. */
static struct home_draft_line hold(struct home_act *x, struct home_draft *draft,
                                   enum home_risk risk, struct home_draft_line then)
{
    struct ask_plan_action *sure = arena_zalloc(x->a, sizeof(*sure));
    if (!sure)
        return then;
    *sure = *x->o;
    draft->held[draft->n_held++] = (struct home_draft_held){sure, then.text, then.say, in_words(x)};
    drop_field(x, "result");
    home_act_put_text(x, "risk", home_table_risk_name(risk));
    home_act_put_result(x, "confirm");
    return home_act_plain_line(x, HOME_SAY_CONFIRM);
}

/* ---- the things of the home ----------------------------------------------------------------- */

/* Types of things that a slot may name; 0: none. */
static uint32_t types_of(const struct home_slot *s)
{
    for (enum home_thing_type t = HOME_THING_DEVICE; t < HOME_THING_COUNT; t++)
        if (strcmp(home_file_type_name(t), s->name) == 0)
            return t == HOME_THING_DEVICE || t == HOME_THING_MACHINE
                       ? 1u << HOME_THING_DEVICE | 1u << HOME_THING_MACHINE
                       : 1u << t;
    return 0;
}

/* "desk lamp, floor lamp or night light" */
static const char *either(struct arena *a, const struct home_table *t, const char *const *list,
                          uint32_t n)
{
    const char *text = n > 0 ? list[0] : "";
    for (uint32_t i = 1; i < n; i++)
        text = i + 1 < n ? arena_printf(a, "%s, %s", text, list[i])
                         : arena_printf(a, "%s %s %s", text,
                                        home_table_part(a, t, HOME_PART_OR, NULL, NULL), list[i]);
    return text;
}

static const char *choices_of(struct home_act *x, const struct home_thing *const *things,
                              uint32_t n_things)
{
    uint32_t n = n_things < ASK_PLAN_MAX_ITEMS ? n_things : ASK_PLAN_MAX_ITEMS;
    const char **list = arena_zalloc_n(x->a, n, sizeof(*list));
    for (uint32_t i = 0; list && i < n; i++) {
        const struct home_thing *t = things[i];
        bool alone = !t->room || strstr(t->names.w[0], t->room->names.w[0]);
        list[i] =
            alone ? t->names.w[0] : arena_printf(x->a, "%s %s", t->room->names.w[0], t->names.w[0]);
    }
    if (list)
        *field(x, "choices") =
            (struct ask_plan_field){.key = "choices", .items = list, .n_items = n};
    return list ? either(x->a, x->t, list, n) : "";
}

struct home_draft_line home_act_which(struct home_act *x, const char *slot,
                                      const struct home_thing *const *things, uint32_t n)
{
    x->text = choices_of(x, things, n);
    home_act_put_result(x, "ask");
    home_act_put_text(x, "ask", slot);
    return home_act_plain_line(x, HOME_SAY_WHICH);
}

static const char *asked_for(struct home_act *x, const struct home_fill *s,
                             const struct home_slot *slot)
{
    const char *text = slot ? home_fill_get(s, home_fill_own(slot)) : NULL;
    return text ? without_articles(x, home_words_lower(x->a, tidy(x->a, text))) : NULL;
}

/* Keeps the things that can do it; false: none can, and all are kept. */
static bool keep_able(struct home_act *x)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->n_things; i++)
        if (!x->x->effect || gate_able(x->t, x->things[i], x->x->effect->ability))
            x->things[n++] = x->things[i];
    if (n == 0)
        return x->n_things == 0;
    x->n_things = n;
    return true;
}

static bool not_able(struct home_act *x, struct home_fill *s, struct home_draft_line *why)
{
    x->reason = home_table_part(x->a, x->t, HOME_PART_UNABLE, x->things[0]->names.w[0],
                                x->x->effect->ability);
    home_act_put_slots(x, s);
    home_act_put_result(x, "refused");
    home_act_put_text(x, "reason", x->reason);
    *why = home_act_plain_line(x, HOME_SAY_LIMIT);
    return false;
}

/* All things that can do it, wherever they are. */
static const struct home_thing **able_things(struct home_act *x, uint32_t *n)
{
    const struct home_file *f = x->here->file;
    const struct home_thing **v = arena_zalloc_n(x->a, (size_t)f->n_things + 1, sizeof(*v));
    *n = 0;
    for (uint32_t i = 0; v && i < f->n_things; i++)
        if (home_file_able(&f->things[i], x->x->effect->ability))
            v[(*n)++] = &f->things[i];
    return v;
}

/* "Arm the alarm": the action names its thing by what it does. */
static bool needs_no_name(const struct home_act *x)
{
    for (uint32_t i = 0; i < x->x->n_slots; i++)
        if (types_of(x->x->slots[i]))
            return false;
    return x->x->effect != NULL;
}

static bool link_all(struct home_act *x, struct home_fill *s, struct home_draft_line *why)
{
    x->things = able_things(x, &x->n_things);
    if (x->n_things > 0 || x->here->file->open)
        return true;
    home_act_put_slots(x, s);
    x->text = x->x->effect->ability;
    home_act_put_result(x, "unknown");
    home_act_put_text(x, "unknown", x->text);
    *why = home_act_plain_line(x, HOME_SAY_NOT_HERE);
    return false;
}

/* "Volume to 60": no thing is named, but only one can do it. A reply must not claim what nothing in
 * the home did. */
static bool link_unnamed(struct home_act *x, struct home_fill *s, struct home_draft_line *why)
{
    const struct home_slot *device = home_table_slot(x->t, home_file_type_name(HOME_THING_DEVICE));
    uint32_t n = 0;
    const struct home_thing **things = able_things(x, &n);
    if (n == 1) {
        x->things = things;
        x->n_things = 1;
        return true;
    }
    home_act_put_slots(x, s);
    if (n > 1 && device) {
        *why = home_act_which(x, device->name, things, n);
        return false;
    }
    x->reason = home_table_part(x->a, x->t, HOME_PART_NOTHING_HAS, x->x->effect->ability, NULL);
    home_act_put_result(x, "refused");
    home_act_put_text(x, "reason", x->reason);
    *why = home_act_plain_line(x, HOME_SAY_LIMIT);
    return false;
}

/* The things are given: can they do it? */
static bool check_linked(struct home_act *x, struct home_fill *s, struct home_draft_line *why)
{
    const struct home_file *f = x->here->file;
    if (!f || f->open)
        return keep_able(x) || true;
    if (x->n_things == 0 && x->x->effect)
        return needs_no_name(x) ? link_all(x, s, why) : link_unnamed(x, s, why);
    return keep_able(x) || not_able(x, s, why);
}

/* "kitchen lights": the room comes first. */
static const char *thing_said(struct home_act *x)
{
    const char *out = "";
    for (uint32_t i = 0; i < x->x->n_slots; i++) {
        const char *show = x->shows[i];
        bool room = strcmp(x->x->slots[i]->name, "room") == 0;
        if (show)
            out =
                arena_printf(x->a, "%s%s%s", room ? show : out, *out ? " " : "", room ? out : show);
    }
    return out;
}

/* Lists which of several things are in the requested state; false: no state is known. */
static bool answer_which(struct home_act *x, const struct home_effect *asked,
                         struct home_draft_line *out)
{
    const char *text = "";
    bool known = false;
    for (uint32_t i = 0; i < x->n_things; i++) {
        const struct home_thing *t = x->things[i];
        const char *state = home_answer_state(x->a, x->t, x->here, t->id, asked);
        known |= state != NULL;
        if (!state || strcmp(state, asked->to) != 0)
            continue;
        const char *room = t->room ? t->room->names.w[0] : "";
        text = arena_printf(x->a, "%s%s%s%s%s", text, *text ? ", " : "", room, *room ? " " : "",
                            t->names.w[0]);
    }
    if (!known)
        return false;
    x->text = text;
    x->state = asked->to;
    home_act_put_text(x, "state", x->state);
    home_act_put_text(x, "things", text);
    home_act_put_result(x, "done");
    *out = home_act_plain_line(x, *text ? HOME_SAY_STATES : HOME_SAY_NO_STATES);
    return true;
}

/* Answers from states; false: they are not known. */
static bool answer_state(struct home_act *x, const struct home_words *plain,
                         struct home_draft_line *out)
{
    const struct home_effect *asked = home_answer_asked(x->t, plain);
    const char *id = ask_plan_text_of(x->o, "id");
    if (!x->here->states)
        return false;
    if (x->n_things > 1 || (x->n_things == 1 && x->lists))
        return asked && answer_which(x, asked, out);
    x->state = id ? home_answer_state(x->a, x->t, x->here, id, asked) : NULL;
    if (!x->state)
        return false;
    x->text = thing_said(x);
    home_act_put_text(x, "state", x->state);
    home_act_put_result(x, "done");
    *out = act_line(x, &x->x->state, false, HOME_SAY_STATE);
    return true;
}

static const struct home_slot *slot_of_type(const struct home_table *t, enum home_slot_type type)
{
    for (uint32_t i = 0; i < t->n_slots; i++)
        if (t->slot[i].type == type)
            return &t->slot[i];
    return NULL;
}

/* The models have seen few texts with repetition and miss their times: this reads the words after
 * the phrase, "at 6 pm" or "at sunset", and any clock that begins before word `until`: "7 on
 * weekdays". */
static void read_clock(struct home_act *x, struct home_fill *s, const struct home_words *w,
                       uint32_t until)
{
    const struct home_slot *time = slot_of_type(x->t, HOME_SLOT_TIME);
    for (uint32_t i = 0; time && i < w->n; i++) {
        const bool fronted = i > 0 && home_table_lists(&x->t->front, w->w[i - 1]);
        uint32_t n = fronted || i < until ? home_due_clock_at(x->a, x->t, w, i) : 0;
        if (n == 0)
            continue;
        const char *text = home_words_join(x->a, w, i, i + n);
        struct home_value v = home_values_clock(x->a, x->t, text);
        if (home_fill_has_slot(x->x, time)) {
            home_fill_set(s, home_fill_own(time), text);
            return;
        }
        x->due.time = v.text;
        x->due.either = v.either;
        x->clock = v.show;
        x->again_time = v.show;
        return;
    }
}

static bool has_time(const struct home_fill *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->s[i].place.slot->type == HOME_SLOT_TIME)
            return true;
    return false;
}

/* How the action repeats, before its slots. */
static void read_again(struct home_act *x, struct home_fill *s, const struct home_words *plain)
{
    struct home_due_every every = home_due_every(x->a, x->t, plain);
    if (!x->t->later.list || !every.words)
        return;
    x->due.every = every.words;
    x->due.days = every.days;
    x->due.period_s = every.period_s;
    if (!has_time(s))
        read_clock(x, s, plain, every.from);
}

/* ... and after them. */
static void put_again(struct home_act *x)
{
    const struct home_slot *time = slot_of_type(x->t, HOME_SLOT_TIME),
                           *date = slot_of_type(x->t, HOME_SLOT_DATE);
    if (!x->due.every || !time || !date || x->o->n_fields + 8 > ASK_PLAN_MAX_FIELDS)
        return;
    if (!x->due.date) {
        x->due.date = x->due.every; /* "every evening": a part of the day */
        home_act_put_text(x, date->name, x->due.every);
        pair(x, date->name, x->due.every);
    }
    x->when = arena_printf(x->a, "%s %s", x->when ? x->when : "", x->due.every);
    if (x->again_time) {
        home_act_put_text(x, time->name, x->due.time);
        pair(x, time->name, x->again_time);
    }
}

/* ---- the gate ------------------------------------------------------------------------------- */

static struct gate_verdict judge(struct home_act *x, bool later)
{
    const struct gate g = {x->t, x->here->file, later ? NULL : x->here->states};
    return gate_plan_check(x->a, &g, x->o, false);
}

/* A number was said, but not what it is of: "set the press to 7". */
static struct home_draft_line ask_what(struct home_act *x, const struct gate_verdict *v)
{
    const struct home_slot *slot =
        v->answer == GATE_ASK_QUANTITY ? x->x->effect->named_by : x->x->effect->slot;
    const struct home_thing *thing = v->thing;
    uint32_t n = thing && v->answer == GATE_ASK_QUANTITY ? thing->n_limits : 0;
    const char **list = arena_zalloc_n(x->a, (size_t)n + 1, sizeof(*list));
    for (uint32_t i = 0; list && i < n; i++)
        list[i] = thing->limits[i].ability;
    x->ask = slot ? slot->name : "value";
    home_act_put_result(x, "ask");
    home_act_put_text(x, "ask", x->ask);
    if (list && n > 0) {
        *field(x, "choices") =
            (struct ask_plan_field){.key = "choices", .items = list, .n_items = n};
        x->text = either(x->a, x->t, list, n);
    }
    return home_act_plain_line(x, n > 0                            ? HOME_SAY_WHICH
                                  : v->answer == GATE_ASK_QUANTITY ? HOME_SAY_QUANTITY
                                                                   : HOME_SAY_MISSING);
}

/* Is a setting set whose name nobody said? */
static bool lacks_name(const struct home_act *x)
{
    const struct home_effect *e = x->x->effect;
    return e && e->named_by && !ask_plan_text_of(x->o, e->named_by->name);
}

/* A text slot in lower case; "": missing. */
static const char *slot_text(struct home_act *x, const struct home_fill *s, const char *name)
{
    const struct home_slot *slot = home_table_slot(x->t, name);
    const char *text = slot && home_fill_has_slot(x->x, slot) ? asked_for(x, s, slot) : NULL;
    return text ? text : "";
}

/* Answers from sensors and alarms; false: they know nothing about it. */
static bool answer_live(struct home_act *x, const struct home_fill *s, struct home_draft_line *out)
{
    struct home_live *live = x->here->live;
    struct home_live_reading r;
    struct home_live_alarm alarm;
    enum home_say which = HOME_SAY_READING;
    if (!live || x->x->live == HOME_LIVE_NONE)
        return false;
    if (x->x->live == HOME_LIVE_READING) {
        const char *what = slot_text(x, s, "sensor"), *where = slot_text(x, s, "room");
        if (!*what || !live->ops->reading(live, x->a, what, where, &r))
            return false;
        x->text = r.title;
        x->state = home_answer_number(x->a, x->t, r.value, *r.unit ? r.unit : NULL);
    } else {
        if (!live->ops->alarm(live, x->a, slot_text(x, s, "machine"), &alarm))
            return false;
        x->text = alarm.title;
        x->state = alarm.text;
        which = !alarm.text ? HOME_SAY_NO_ALARM : alarm.over ? HOME_SAY_ALARM_OVER : HOME_SAY_ALARM;
    }
    home_act_put_slots(x, s);
    if (x->state)
        home_act_put_text(x, "state", x->state);
    home_act_put_result(x, "done");
    if (which == HOME_SAY_READING)
        x->state = home_answer_spoken(x->a, x->t, r.value, *r.unit ? r.unit : NULL);
    *out = home_act_plain_line(x, which);
    return true;
}

/* Keeps the things that can be partly open, if a value is said; false: none can. */
static bool keep_partly(struct home_act *x, const struct home_fill *s)
{
    const struct home_effect *e = x->x->effect;
    if (!e || !e->partly || x->n_things == 0 || !home_fill_get(s, home_fill_own(e->slot)))
        return true;
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->n_things; i++)
        if (home_file_able(x->things[i], e->partly))
            x->things[n++] = x->things[i];
    if (n == 0)
        x->reason =
            home_table_part(x->a, x->t, HOME_PART_UNABLE, x->things[0]->names.w[0], e->partly);
    else
        x->n_things = n;
    return n > 0;
}

/* Turns one set of slots into an action and its line; text and say NULL: the clause is out of
 * scope. */
struct home_draft_line home_act_make(struct home_act *x, struct home_fill *s,
                                     const struct home_words *plain, struct home_draft *draft)
{
    const struct home_action *action = x->x;
    struct home_draft_line why;
    x->due.in_s = -1.0;
    x->due.place = x->here->file && x->here->file->has_place ? x->here->file->place : NULL;
    read_again(x, s, plain);
    home_fill_defaults(action, s);
    if (answer_live(x, s, &why))
        return why;
    if (!check_linked(x, s, &why))
        return why;
    action = x->x;
    bool partly = keep_partly(x, s);
    home_act_put_slots(x, s);
    if (!partly) {
        home_act_put_result(x, "refused");
        home_act_put_text(x, "reason", x->reason);
        return home_act_plain_line(x, HOME_SAY_LIMIT);
    }
    bool later = put_when(x, s) || (x->due.every && action->can_wait);
    put_again(x);
    home_act_put_id(x);
    const struct gate_verdict verdict = judge(x, later);
    enum home_risk risk = verdict.risk;
    for (uint32_t i = 0; !x->ask && i < action->n_needs; i++)
        if (!home_fill_get(s, home_fill_own(action->needs[i])))
            x->ask = action->needs[i]->name;
    if (x->ask && action->compute)
        return answer(x, s); /* nothing to compute */
    if (x->ask) {
        home_act_put_result(x, "ask");
        home_act_put_text(x, "ask", x->ask);
        const struct home_slot *asked = home_table_slot(x->t, x->ask);
        return asked && asked->question /* it has one right wording */
                   ? home_act_plain_line(x, HOME_SAY_MISSING)
                   : act_line(x, &x->t->line_ask, false, HOME_SAY_MISSING);
    }
    if (x->n_things == 0 && !all_known(x)) {
        home_act_put_result(x, "unknown");
        return act_line(x, &x->t->line_act, true, HOME_SAY_UNKNOWN);
    }
    const bool past = x->due.date && !x->due.every && x->t->later.list &&
                      (action->can_wait || action->rings != HOME_LATER_ACTION) &&
                      home_due_date(x->a, x->t, x->due.date, x->now) == HOME_DUE_PAST;
    if (past)
        x->reason = home_table_part(x->a, x->t, HOME_PART_OVER, NULL, NULL);
    else if (x->wrong)
        x->reason = home_table_part(x->a, x->t, HOME_PART_NO_SUCH, x->wrong, NULL);
    else if (verdict.answer > GATE_CONFIRM && verdict.answer < GATE_REFUSE && action->effect)
        return ask_what(x, &verdict);
    else if (verdict.answer > GATE_CONFIRM) /* also a scene that is not clear: nobody can answer */
        x->reason = home_denied(x->a, x->t, &verdict);
    if (x->reason) {
        home_act_put_result(x, "refused");
        home_act_put_text(x, "reason", x->reason);
        return home_act_plain_line(x, HOME_SAY_LIMIT);
    }
    bool rings = action->rings != HOME_LATER_ACTION && x->here->later;
    if ((later || rings) && x->here->later && !put_due(x, &why))
        return why;
    if (action->answer.n == 0 && !action->reason) {
        home_act_put_result(x, later ? "scheduled" : "done");
        enum home_say which = later ? HOME_SAY_SCHEDULED : HOME_SAY_DONE;
        /* the reply model has no words for a change, nor for everything in a room, and it makes up
           a quantity that nobody named */
        struct home_draft_line done =
            x->sign != 0.0 || is_everything_in(x) || lacks_name(x) || action->plain
                ? home_act_plain_line(x, which)
                : act_line(x, &x->t->line_act, true, which);
        if (rings) /* reported as done: it is set */
            home_act_put_result(x, "scheduled");
        return verdict.answer == GATE_CONFIRM || x->doubtful ? hold(x, draft, risk, done) : done;
    }
    if (action->state.n > 0 && answer_state(x, plain, &why))
        return why;
    if (!has_reason(action, s))
        return answer(x, s);
    home_act_put_result(x, "failed");
    home_act_put_text(x, "reason", action->reason);
    x->reason = action->reason;
    return home_act_plain_line(x, HOME_SAY_FAILED); /* the model would word the reason anew */
}

/* ---- decided actions ------------------------------------------------------------------------ */

const char *home_act_words(struct arena *a, const struct home_table *t,
                           const struct ask_plan_action *o)
{
    struct home_act x = {.a = a, .t = t, .pairs = ""};
    const char *rung = "";
    x.x = home_table_action(t, o->name);
    if (!x.x)
        return o->name;
    for (uint32_t i = 0; i < x.x->n_slots; i++) {
        const struct home_slot *s = x.x->slots[i];
        bool duration = s->type == HOME_SLOT_DURATION;
        const struct ask_plan_field *f =
            ask_plan_field_of(o, duration ? arena_printf(a, "%s_s", s->name) : s->name);
        if (!f)
            f = ask_plan_field_of(o, s->name);
        const struct ask_plan_field *unit = ask_plan_field_of(o, "unit"),
                                    *change = ask_plan_field_of(o, "change");
        if (!f && change && s->type == HOME_SLOT_VALUE) {
            x.sign = 1.0;
            x.shows[i] = show_change(
                a, t, change->number,
                home_answer_number(a, t, fabs(change->number), unit ? unit->text : NULL));
        }
        if (f && f->text)
            x.shows[i] = s->to_you ? to_you(&x, f->text) : f->text;
        else if (f && f->n_items == 0 && duration)
            x.shows[i] = home_due_left(a, t, (int64_t)f->number);
        else if (f && f->n_items == 0)
            x.shows[i] = home_answer_number(a, t, f->number, unit ? unit->text : NULL);
        else if (f)
            x.shows[i] = listed(a, t, f->items, f->n_items);
        if (x.shows[i])
            rung = arena_printf(a, "%s%s%s", rung, *rung ? ", " : "", x.shows[i]);
    }
    if (x.x->rings != HOME_LATER_ACTION) {
        const struct home_list *names = &t->later.words[x.x->rings];
        return arena_printf(a, "%s: %s", names->n ? names->w[0] : x.x->name, rung);
    }
    return in_words(&x);
}
