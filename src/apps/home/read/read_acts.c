/* read_acts.c - see read_acts.h. */
#include "apps/home/read/read_acts.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "apps/home/home_act.h"
#include "apps/home/home_help.h"
#include "apps/home/home_recall.h"
#include "apps/home/home_values.h"
#include "apps/home/read/read_target.h"
#include "apps/home/site/home_live.h"

#define MAX_LIVE_WORDS 4u /* of the name of a machine or sensor of the server */

static bool is(const char *a, const char *b)
{
    return a && strcmp(a, b) == 0;
}

static const char *said(const struct read_acts *r, struct read_plan_span span)
{
    return read_target_words(r->a, r->lines, span);
}

static const struct home_words *words_of(const struct read_acts *r, const char *text)
{
    struct home_words *w = arena_zalloc(r->a, sizeof(*w));
    static const struct home_words none;
    if (!w)
        return &none;
    struct home_words split = home_words_split(r->a, text ? text : "");
    *w = home_words_plain_all(r->a, &split);
    return w;
}

/* ---- the draft ------------------------------------------------------------------------------ */

static void say(struct read_acts *r, enum home_say which, const char *text)
{
    if (!home_draft_reserve(r->a, r->draft))
        return;
    r->draft->lines[r->draft->n_lines++] = (struct home_draft_line){
        .say = home_template_fill(r->a, &r->t->say[which], home_act_text, (void *)(uintptr_t)text)};
}

static struct home_act begin(const struct read_acts *r, const struct home_action *action)
{
    static const struct home_clause sure = {.text = "", .intent_p = 1.0f, .speech_p = 1.0f};
    struct home_act x = {.a = r->a,
                         .t = r->t,
                         .x = action,
                         .now = r->now,
                         .here = r->here,
                         .pairs = "",
                         .clause = &sure,
                         .linked = true,
                         .names_more = true,
                         .doubtful = r->p < r->t->plans.act_p};
    x.o = arena_zalloc(r->a, sizeof(*x.o));
    if (x.o)
        x.o->name = action->name;
    return x;
}

static void add(struct read_acts *r, struct home_act *x, struct home_draft_line line)
{
    if (!x->o || !home_draft_reserve(r->a, r->draft))
        return;
    r->draft->actions[r->draft->n_actions++] = x->o;
    if (!line.text && !line.say)
        line = home_act_said(r->a, &r->t->line_out_of_scope, r->text);
    line.action = r->draft->n_actions;
    r->draft->lines[r->draft->n_lines++] = line;
}

/* Asks about words that the action has no use for. */
static void ask_about(struct read_acts *r, const struct home_action *action, const char *text)
{
    struct home_act x = begin(r, action);
    if (!x.o)
        return;
    home_act_put_result(&x, "ask");
    home_act_put_text(&x, "rest", text);
    add(r, &x,
        (struct home_draft_line){.say =
                                     home_template_fill(r->a, &r->t->say[HOME_SAY_REST],
                                                        home_act_text, (void *)(uintptr_t)text)});
}

/* ---- slots ---------------------------------------------------------------------------------- */

/* Fills the first of the named slots that the action has; false: it has none of them. */
static bool fill(const struct read_acts *r, const struct home_action *action, struct home_fill *s,
                 const char *names, const char *text)
{
    struct home_words w = home_words_split(r->a, names);
    for (uint32_t i = 0; text && i < w.n; i++) {
        const struct home_slot *slot = home_table_slot(r->t, w.w[i]);
        if (!slot || !home_fill_has_slot(action, slot) || home_fill_get(s, home_fill_own(slot)))
            continue;
        home_fill_set(s, home_fill_own(slot), text);
        return true;
    }
    return false;
}

/* A slot of the action, or a row of "when", by its type. */
static bool fill_when(const struct read_acts *r, const struct home_action *action,
                      struct home_fill *s, enum home_slot_type type, bool later, const char *text)
{
    for (uint32_t i = 0; i < action->n_slots; i++)
        if (action->slots[i]->type == type && (!later || type != HOME_SLOT_DURATION)) {
            home_fill_set(s, home_fill_own(action->slots[i]), text);
            return true;
        }
    for (uint32_t i = 0; action->can_wait && i < r->t->n_when; i++) {
        const struct home_when *w = &r->t->when[i];
        if (w->slot->type == type && w->later == later) {
            home_fill_set(s, (struct home_place){w->slot, w}, text);
            return true;
        }
    }
    return false;
}

/* "tomorrow at 7" is a time and a date; words in front of either say nothing. */
static bool fill_at(const struct read_acts *r, const struct home_action *action,
                    struct home_fill *s, const char *text)
{
    struct home_words w = home_words_split(r->a, text);
    struct home_words low = home_words_plain_all(r->a, &w);
    uint32_t at = 0, n = 0;
    for (uint32_t i = 0; i < low.n && n == 0; i++)
        if ((n = home_due_clock_at(r->a, r->t, &low, i)) > 0)
            at = i;
    if (n > 0) { /* "half past seven in the evening" */
        const uint32_t am = home_table_phrase(&r->t->time_am, &low, at + n),
                       pm = home_table_phrase(&r->t->time_pm, &low, at + n);
        n += am > pm ? am : pm;
    }
    const char *date = "";
    for (uint32_t i = 0; i < low.n; i++) {
        const bool clock = i >= at && i < at + n;
        const bool front = *date == '\0' && (home_table_lists(&r->t->front, low.w[i]) ||
                                             home_table_lists(&r->t->date_articles, low.w[i]));
        const bool behind = i + 1 == low.n && home_table_lists(&r->t->front, low.w[i]);
        if (!clock && !front && !behind &&
            !(i + 1 == at && home_table_lists(&r->t->front, low.w[i])))
            date = arena_printf(r->a, "%s%s%s", date, *date ? " " : "", w.w[i]);
    }
    bool ok = true;
    if (n == 0 && low.n == 1 && *low.w[0] >= '0' && *low.w[0] <= '9') { /* "25:00" */
        n = 1;
        date = "";
    }
    if (n > 0)
        ok = fill_when(r, action, s, HOME_SLOT_TIME, true, home_words_join(r->a, &w, at, at + n));
    if (*date)
        ok = fill_when(r, action, s, HOME_SLOT_DATE, true,
                       home_words_trim_end(r->a, date, HOME_WORDS_CLOSING)) &&
             ok;
    return ok && (n > 0 || *date);
}

/* "until 7": how long that is. */
static const char *time_until(const struct read_acts *r, const char *text)
{
    struct home_words w = home_words_split(r->a, text);
    struct home_words low = home_words_plain_all(r->a, &w);
    struct home_due_said due = {.in_s = -1.0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < low.n && n == 0; i++)
        if ((n = home_due_clock_at(r->a, r->t, &low, i)) > 0) {
            struct home_value v =
                home_values_clock(r->a, r->t, home_words_join(r->a, &low, i, i + n));
            due.time = v.text;
            due.either = v.either;
        }
    struct tm tm = *r->now;
    const time_t now = mktime(&tm);
    const struct home_due at = home_due_of(r->a, r->t, &due, now);
    return n > 0 && at.at_s > now ? home_due_left(r->a, r->t, at.at_s - now) : NULL;
}

/* The times of an act; NULL: all of them have a place, else the words that have none. */
static const char *fill_times(const struct read_acts *r, const struct home_action *action,
                              struct home_fill *s, const struct read_plan_act *p)
{
    const char *text, *left;
    if ((text = said(r, p->at)) && !fill_at(r, action, s, text))
        return text;
    if ((text = said(r, p->in)) && !fill_when(r, action, s, HOME_SLOT_DURATION, true, text))
        return text;
    if ((text = said(r, p->lasts)) && !fill_when(r, action, s, HOME_SLOT_DURATION, false, text))
        return text;
    if ((text = said(r, p->until)) && (!(left = time_until(r, text)) ||
                                       !fill_when(r, action, s, HOME_SLOT_DURATION, false, left)))
        return text;
    if ((text = said(r, p->every)) && (!home_due_every(r->a, r->t, words_of(r, text)).words ||
                                       (!action->can_wait && action->rings == HOME_LATER_ACTION)))
        return text;
    return NULL;
}

/* ---- making an action ----------------------------------------------------------------------- */

struct doing { /* one action that is being made */
    const struct read_plan_act *p;
    const struct read_target *target;
    struct home_fill s;
    double sign;
};

/* "@light.desk @light.bed" of the things, for the state of the conversation. */
static const char *ids_of(const struct read_acts *r, const struct read_target *x)
{
    const char *text = "";
    if (x->class)
        return NULL;
    for (uint32_t i = 0; i < x->n && i < READ_PLAN_MAX_THINGS; i++)
        text = arena_printf(r->a, "%s @%s", text, x->things[i]->id);
    return text;
}

/* The act without its words: "set @fv1 pressure". */
static const char *head_of(const struct read_acts *r, const struct read_plan_act *p,
                           const struct read_target *x)
{
    const char *text = p->verb, *ids = x ? ids_of(r, x) : NULL;
    if (p->word)
        text = arena_printf(r->a, "%s %s", text, p->word);
    if (ids)
        text = arena_printf(r->a, "%s%s", text, ids);
    else if (p->class)
        text = arena_printf(r->a, "%s%s %s", text, p->all ? " all" : "", p->class);
    for (uint32_t i = 0; !ids && i < p->areas.n; i++)
        if (p->areas.at[i] < r->lines->n_areas)
            text = arena_printf(r->a, "%s @%s", text, r->lines->areas[p->areas.at[i]]->id);
    if (!ids && (p->here || p->everywhere))
        text = arena_printf(r->a, "%s %s", text, p->here ? "here" : "everywhere");
    if (p->quantity)
        text = arena_printf(r->a, "%s %s", text, p->quantity);
    if (p->own)
        text = arena_printf(r->a, "%s q%u", text, p->own);
    return p->state ? arena_printf(r->a, "%s %s", text, p->state) : text;
}

/* The words of the act, for a question back: "to_value 19 degrees". */
static const char *words_kept(const struct read_acts *r, const struct read_plan_act *p)
{
    const struct {
        const char *role;
        struct read_plan_span span;
    } spans[] = {{p->amount == READ_PLAN_BY ? "by_value" : "to_value", p->value},
                 {"at", p->at},
                 {"in", p->in},
                 {"for", p->lasts},
                 {"until", p->until},
                 {"every", p->every},
                 {"what", p->what},
                 {"dur", p->duration},
                 {"name", p->name}};
    const char *text = "";
    for (uint32_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
        const char *words = said(r, spans[i].span);
        if (words)
            text = arena_printf(r->a, "%s%s %s\n", text, spans[i].role, words);
    }
    return text;
}

/* What the conversation is about now. */
static void remember(struct read_acts *r, const struct doing *d, const struct ask_plan_action *o)
{
    const char *ask = o ? ask_plan_text_of(o, "ask") : NULL;
    const struct home_slot *slot = ask ? home_table_slot(r->t, ask) : NULL;
    r->last_out = head_of(r, d->p, d->target);
    r->kept_out = words_kept(r, d->p);
    r->pending_out = "";
    if (!ask)
        return;
    if (d->target && d->target->result == READ_TARGET_ONE_OF) {
        r->last_out = head_of(r, d->p, &(struct read_target){0});
        r->pending_out = arena_printf(r->a, "ask_which%s", ids_of(r, d->target));
    } else {
        /* which thing is meant is said by a new sentence */
        const bool thing = is(ask, "device") || is(ask, "room") || is(ask, "machine") ||
                           is(ask, "person") || is(ask, "scene") || is(ask, "sensor");
        r->pending_out = thing                                   ? ""
                         : !slot || slot->type == HOME_SLOT_TEXT ? "ask_text"
                         : slot->type == HOME_SLOT_VALUE         ? "ask_value"
                                                                 : "ask_time";
    }
}

/* Is each of the things called by its name, or by that of its class? "The time machine" is no
 * coffee machine, however sure the reader is. */
static bool is_named(const struct read_acts *r, const struct read_plan_act *p)
{
    for (uint32_t i = 0; i < p->things.n; i++)
        if (p->things.at[i] < r->lines->n_things && !r->lines->things[p->things.at[i]].said)
            return false;
    return true;
}

static void make(struct read_acts *r, const struct home_action *action, struct doing *d)
{
    const char *rest = fill_times(r, action, &d->s, d->p);
    if (rest) {
        ask_about(r, action, rest);
        return;
    }
    struct home_act x = begin(r, action);
    if (!x.o || !home_draft_reserve(r->a, r->draft))
        return;
    x.sign = d->sign;
    x.doubtful = x.doubtful || !is_named(r, d->p);
    if (d->target) {
        x.things = d->target->things;
        x.n_things = d->target->n;
    }
    const char *every = said(r, d->p->every), *asked = d->p->state ? d->p->state : NULL;
    asked = asked ? home_table_state(r->t, asked) : NULL;
    add(r, &x, home_act_make(&x, &d->s, words_of(r, every ? every : asked), r->draft));
    remember(r, d, x.o);
}

/* Which of them? */
static void ask_which(struct read_acts *r, const struct home_action *action, struct doing *d)
{
    struct home_act x = begin(r, action);
    const char **list = arena_zalloc_n(r->a, (size_t)d->target->n + 1, sizeof(*list));
    if (!x.o || !list)
        return;
    for (uint32_t i = 0; i < d->target->n; i++) {
        const struct home_thing *t = d->target->things[i];
        const bool alone = !t->room || strstr(t->names.w[0], t->room->names.w[0]);
        list[i] =
            alone ? t->names.w[0] : arena_printf(r->a, "%s %s", t->room->names.w[0], t->names.w[0]);
        x.text = i == 0 ? list[0]
                        : arena_printf(r->a, "%s%s %s", x.text, i + 1 < d->target->n ? "," : " or",
                                       list[i]);
    }
    home_act_put_slots(&x, &d->s);
    x.o->fields[x.o->n_fields++] =
        (struct ask_plan_field){.key = "choices", .items = list, .n_items = d->target->n};
    home_act_put_result(&x, "ask");
    home_act_put_text(&x, "ask", action->n_needs ? action->needs[0]->name : "device");
    add(r, &x, home_act_plain_line(&x, HOME_SAY_WHICH));
    remember(r, d, x.o);
}

static void not_here(struct read_acts *r, const struct home_action *action, struct doing *d)
{
    struct home_act x = begin(r, action);
    if (!x.o)
        return;
    x.text = d->target->what;
    home_act_put_slots(&x, &d->s);
    if (d->p->here) { /* nobody said where the speaker is */
        home_act_put_result(&x, "ask");
        home_act_put_text(&x, "ask", "room");
        add(r, &x, home_act_plain_line(&x, HOME_SAY_PRONOUN));
        return;
    }
    home_act_put_result(&x, "unknown");
    home_act_put_text(&x, "unknown", x.text ? x.text : "");
    add(r, &x, home_act_plain_line(&x, HOME_SAY_NOT_HERE));
}

/* May the server's own sensors and alarms know what the home does not list? */
static bool is_live(const struct read_acts *r, const struct home_action *action)
{
    return r->here->live && action->live != HOME_LIVE_NONE;
}

/* Carries an action out on the target, whatever that is. */
static void aim(struct read_acts *r, const struct home_action *action, struct doing *d)
{
    const struct read_target *x = d->target;
    (void)fill(r, action, &d->s, "device machine person scene item", x->device);
    (void)fill(r, action, &d->s, "room place", x->room);
    if (x->result == READ_TARGET_UNKNOWN && !is_live(r, action))
        not_here(r, action, d);
    else if (x->result == READ_TARGET_ONE_OF)
        ask_which(r, action, d);
    else
        make(r, action, d);
}

/* ---- which action --------------------------------------------------------------------------- */

static bool can(const struct home_thing *x, const struct home_action *action)
{
    return action && action->effect &&
           (x->type == HOME_THING_SCENE || home_file_able(x, action->effect->ability));
}

/* The action of a verb for a thing: machines have verbs of their own, and what has no power switch
 * may be started. NULL: the table has none. */
static const struct home_action *action_for(const struct read_acts *r, const char *verb,
                                            const struct home_thing *x)
{
    static const struct {
        const char *verb, *instead;
    } others[] = {{"on", "start"}, {"off", "stop"}, {"start", "on"}, {"stop", "off"}};
    const struct home_action *own = home_table_verb(r->t, verb), *other = NULL;
    const struct home_action *machine =
        home_table_verb(r->t, arena_printf(r->a, "%s_machine", verb));
    if (!x || x->type == HOME_THING_SCENE)
        return x ? home_table_verb(r->t, "scene") : own;
    if (x->type == HOME_THING_MACHINE && machine)
        own = machine;
    if (can(x, own))
        return own;
    for (uint32_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strcmp(others[i].verb, verb) == 0)
            other = action_for(
                r, strchr(verb, '_') ? verb : arena_printf(r->a, "%s", others[i].instead), NULL);
    if (other && x->type == HOME_THING_MACHINE) {
        const struct home_action *m = home_table_verb(r->t, arena_printf(r->a, "%s_machine",
                                                                         is(verb, "on")    ? "start"
                                                                         : is(verb, "off") ? "stop"
                                                                                           : ""));
        other = m ? m : other;
    }
    return can(x, other) ? other : own;
}

/* The things of a target that one action is for, as a target of their own. */
static struct read_target part_of(const struct read_acts *r, const struct read_target *all,
                                  const char *verb, const struct home_action *action, bool *done)
{
    struct read_target out = *all;
    out.things = arena_zalloc_n(r->a, (size_t)all->n + 1, sizeof(*out.things));
    out.n = 0;
    for (uint32_t i = 0; out.things && i < all->n; i++)
        if (!done[i] && action_for(r, verb, all->things[i]) == action) {
            out.things[out.n++] = all->things[i];
            done[i] = true;
        }
    return out;
}

/* Verbs on things: things that need different actions get one each. */
static void act_on(struct read_acts *r, const struct read_plan_act *p, const char *verb,
                   const struct read_target *all)
{
    bool *done = arena_zalloc_n(r->a, (size_t)all->n + 1, sizeof(*done));
    uint32_t n_able = 0;
    if (!done)
        return;
    for (uint32_t i = 0; i < all->n; i++)
        n_able += can(all->things[i], action_for(r, verb, all->things[i]));
    const bool everything = all->class && strcmp(all->class->name, "everything") == 0;
    for (uint32_t i = 0; i < all->n; i++) { /* a class means those that can */
        const struct home_action *x =
            everything ? home_table_verb(r->t, verb) : action_for(r, verb, all->things[i]);
        done[i] = all->class && n_able > 0 && !can(all->things[i], x);
    }
    if (all->n == 0 || all->result == READ_TARGET_ONE_OF) {
        struct doing d = {.p = p, .target = all};
        const struct home_action *action = action_for(r, verb, all->n > 0 ? all->things[0] : NULL);
        if (action)
            aim(r, action, &d);
        return;
    }
    for (uint32_t i = 0; i < all->n; i++) {
        const struct home_action *action = done[i] ? NULL : action_for(r, verb, all->things[i]);
        if (!action)
            continue;
        struct read_target part = part_of(r, all, verb, action, done);
        struct doing d = {.p = p, .target = &part};
        aim(r, action, &d);
    }
}

/* ---- values --------------------------------------------------------------------------------- */

static bool is_number(const struct read_acts *r, const char *text)
{
    const char *d = text ? home_values_digits(r->a, r->t, text) : "";
    return d[strspn(d, "+- ")] >= '0' && d[strspn(d, "+- ")] <= '9';
}

/* What is set if the text does not say it; NULL: open. */
static const struct home_plan_quantity *
usual_quantity(const struct read_acts *r, const struct read_target *x, const char *value)
{
    const struct home_class *c = x->class   ? x->class
                                 : x->n > 0 ? read_lines_class(r->a, r->t, x->things[0])
                                            : NULL;
    const bool number = !value || is_number(r, value);
    for (uint32_t i = 0; c && i < r->t->plans.n_quantities; i++) {
        const struct home_plan_quantity *q = &r->t->plans.quantities[i];
        const bool text = q->set && q->set->effect && q->set->effect->slot &&
                          q->set->effect->slot->type == HOME_SLOT_TEXT;
        if (home_table_lists(&q->implied, c->name) && q->set && text != number)
            return q;
    }
    return NULL;
}

static const char *name_of_quantity(const struct read_acts *r, const struct read_plan_act *p,
                                    const struct home_plan_quantity *q)
{
    const struct read_lines_thing *l = p->things.n > 0 && p->things.at[0] < r->lines->n_things
                                           ? &r->lines->things[p->things.at[0]]
                                           : NULL;
    if (p->own && l && p->own <= l->n_own)
        return l->own[p->own - 1];
    return q && q->words.n > 0 ? q->words.w[0] : NULL;
}

/* Does the text say the quantity, by a word or by the unit of the value? */
static bool says_quantity(const struct read_acts *r, const struct home_plan_quantity *q,
                          const char *value)
{
    struct home_words plain = home_words_plain_all(r->a, &r->lines->words);
    struct home_value v = {0};
    for (uint32_t i = 0; i < plain.n; i++)
        if (home_table_phrase(&q->words, &plain, i) > 0)
            return true;
    if (value)
        v = home_values_amount(r->a, r->t, value, true, NULL);
    return v.unit != NULL;
}

/* A machine has settings of its own; which one a bare number means must be said. */
static bool is_guessed(const struct read_acts *r, const struct read_plan_act *p,
                       const struct read_target *x, const struct home_plan_quantity *q,
                       const char *value)
{
    return q && !p->own && x->n == 1 && x->things[0]->type == HOME_THING_MACHINE && value &&
           x->things[0]->n_limits != 1 && !says_quantity(r, q, value);
}

static void set_value(struct read_acts *r, const struct read_plan_act *p,
                      const struct read_target *x)
{
    const bool up = is(p->verb, "up"), step = up || is(p->verb, "down");
    const char *value = said(r, p->value);
    const struct home_plan_quantity *q =
        p->quantity ? home_table_plan_quantity(r->t, p->quantity) : NULL;
    const bool machine = x->n > 0 && x->things[0]->type == HOME_THING_MACHINE;
    if (is_guessed(r, p, x, q, value))
        q = NULL;
    if (!q && !p->own && !machine)
        q = usual_quantity(r, x, value);
    const bool named = machine || p->own || (q && !q->set);
    const struct home_action *action = named ? home_table_verb(r->t, "set_machine")
                                       : q   ? q->set
                                             : home_table_verb(r->t, "set_machine");
    struct doing d = {.p = p, .target = x};
    if (q && strcmp(q->name, "position") == 0 && step && !value) {
        act_on(r, p, up ? "open" : "close", x);
        return;
    }
    if (!action)
        return;
    if (step && !value && q && q->step)
        value = p->amount == READ_PLAN_LOT && q->leap ? q->leap : q->step;
    if (step && (p->amount != READ_PLAN_TO))
        d.sign = action->relative ? (up ? 1.0 : -1.0) : 0.0;
    else if (p->amount == READ_PLAN_BY)
        d.sign = 1.0;
    if (named)
        (void)fill(r, action, &d.s, "sensor", name_of_quantity(r, p, q));
    if (!(is_number(r, value) && fill(r, action, &d.s, "value", value)) && value &&
        !fill(r, action, &d.s, "color mode value", value)) {
        ask_about(r, action, value);
        return;
    }
    aim(r, action, &d);
}

/* ---- timers, alarms, reminders, events ------------------------------------------------------ */

static enum home_later_kind kind_of(const struct read_plan_act *p)
{
    return is(p->verb, "timer")   ? HOME_LATER_TIMER
           : is(p->verb, "alarm") ? HOME_LATER_ALARM
                                  : HOME_LATER_REMINDER;
}

/* Finds entries by kind and by the words that say which one. */
static struct home_recall recall(struct read_acts *r, const struct read_plan_act *p, bool asks)
{
    const enum home_later_kind kind = kind_of(p);
    const struct home_list *names = &r->t->later.words[kind];
    const char *which = said(r, p->name.to ? p->name : p->what.to ? p->what : p->duration);
    const char *at = said(r, p->at);
    const char *text =
        arena_printf(r->a, "%s %s %s %s %s", asks ? "what" : "cancel", p->all ? "all" : "",
                     names->n ? names->w[0] : "", which ? which : "", at && !asks ? at : "");
    const struct home_recall_query q = {.plain = words_of(r, text),
                                        .asks = asks,
                                        .action =
                                            asks ? r->t->later.list : r->t->later.cancel[kind]};
    return home_recall_find(r->a, r->t, r->here->later, &q);
}

static const char *listed(const struct read_acts *r, const char *const *list, uint32_t n)
{
    const char *text = n > 0 ? list[0] : "";
    for (uint32_t i = 1; i < n; i++)
        text = arena_printf(r->a, "%s; %s", text, list[i]);
    return text;
}

/* Lists or cancels. */
static void recall_entries(struct read_acts *r, const struct read_plan_act *p, bool cancel)
{
    const struct home_action *action = cancel ? r->t->later.cancel[kind_of(p)] : r->t->later.list;
    if (!action || !r->here->later) {
        struct doing d = {.p = p};
        if (action)
            make(r, action, &d);
        return;
    }
    /* "the heating timer" may switch the heating: then the words of the text say which */
    const struct home_recall_query all = {.plain = words_of(r, r->text), .action = action};
    const bool open = cancel && !p->all && !p->name.to && !p->what.to && !p->duration.to;
    struct home_recall found = {0};
    if (open)
        found = home_recall_find(r->a, r->t, r->here->later, &all);
    if (found.n == 0)
        found = recall(r, p, !cancel);
    const bool unclear = cancel && found.n > 1 && !p->all;
    struct home_act x = begin(r, action);
    if (!x.o)
        return;
    x.text = found.n ? listed(r, found.names, found.n) : found.what;
    if (found.n > 0)
        x.o->fields[x.o->n_fields++] =
            (struct ask_plan_field){.key = unclear  ? "choices"
                                           : cancel ? "scheduled_ids"
                                                    : "scheduled",
                                    .items = cancel && !unclear ? found.ids : found.names,
                                    .n_items = found.n};
    home_act_put_result(&x, unclear ? "ask" : cancel && found.n == 0 ? "failed" : "done");
    add(r, &x,
        home_act_plain_line(&x, unclear        ? HOME_SAY_WHICH
                                : found.n == 0 ? HOME_SAY_NOTHING
                                : cancel       ? HOME_SAY_CANCELLED
                                               : HOME_SAY_LISTED));
    remember(r, &(struct doing){.p = p}, NULL);
}

struct left { /* of the first waiting timer */
    struct arena *a;
    enum home_later_kind kind;
    int64_t now_ms, left_s;
};

static void take_left(void *ctx, const struct home_later_entry *x)
{
    struct left *l = ctx;
    if (!x->result && x->kind == l->kind && l->left_s < 0)
        l->left_s = (x->due_ms - l->now_ms + 999) / 1000;
}

/* "Five minutes more": the timer is cancelled, and set again. */
static void change_timer(struct read_acts *r, const struct read_plan_act *p)
{
    const struct home_action *set = home_table_verb(r->t, p->verb);
    const char *text = said(r, p->value.to ? p->value : p->duration.to ? p->duration : p->at);
    struct home_value v = home_values_duration(r->a, r->t, text ? text : "");
    struct left l = {.a = r->a, .kind = kind_of(p), .left_s = -1};
    struct read_plan_act again = *p;
    struct doing d = {.p = &again};
    if (!set || !r->here->later) {
        say(r, HOME_SAY_UNSURE, NULL);
        return;
    }
    l.now_ms = home_later_now_ms(r->here->later);
    home_later_each(r->here->later, take_left, &l);
    const double sign = is(p->word, "less") ? -1.0 : 1.0;
    const bool alarm = is(p->verb, "alarm") || !is(p->verb, "timer");
    const int64_t to =
        is(p->word, "change") ? (int64_t)v.number : l.left_s + (int64_t)(sign * v.number);
    if (l.left_s < 0 || (!alarm && (!v.understood || to <= 0)) || (alarm && !p->at.to)) {
        struct home_act x = begin(r, r->t->later.cancel[l.kind]);
        if (!x.o)
            return;
        const struct home_list *names = &r->t->later.words[l.kind];
        x.text = names->n ? names->w[0] : "";
        home_act_put_result(&x, "failed");
        add(r, &x, home_act_plain_line(&x, HOME_SAY_NOTHING));
        return;
    }
    again.value = again.duration = (struct read_plan_span){0, 0};
    recall_entries(r, &again, true);
    if (alarm)
        ;
    else
        (void)fill(r, set, &d.s, "duration", home_due_left(r->a, r->t, to));
    again.word = "set_one";
    make(r, set, &d);
}

static void schedule(struct read_acts *r, const struct read_plan_act *p)
{
    const struct home_action *action = home_table_verb(r->t, p->verb);
    struct doing d = {.p = p};
    if (is(p->word, "cancel_one") || is(p->word, "ask_one")) {
        if (is(p->verb, "event") && is(p->word, "ask_one"))
            action = home_table_verb(r->t, "calendar");
        else if (!is(p->verb, "event")) {
            recall_entries(r, p, is(p->word, "cancel_one"));
            return;
        }
    } else if (is(p->word, "more") || is(p->word, "less") || is(p->word, "change")) {
        change_timer(r, p);
        return;
    } else if (p->word && !is(p->word, "set_one")) {
        say(r, HOME_SAY_UNSURE, NULL);
        return;
    }
    if (!action)
        return;
    (void)fill(r, action, &d.s, "duration", said(r, p->duration));
    (void)fill(r, action, &d.s, "task event name", said(r, p->what.to ? p->what : p->name));
    make(r, action, &d);
}

/* ---- people, lists, players ----------------------------------------------------------------- */

static void change_list(struct read_acts *r, const struct read_plan_act *p)
{
    const struct home_action *action = home_table_verb(r->t, p->verb);
    const struct home_slot *item = home_table_slot(r->t, "item");
    struct doing d = {.p = p};
    if (!action)
        return;
    for (uint32_t i = 0; i < p->n_items && item; i++) {
        const char *text = said(r, p->items[i]);
        if (!text || d.s.n_items == ASK_PLAN_MAX_ITEMS)
            continue;
        if (d.s.n_items == 0)
            home_fill_set(&d.s, home_fill_own(item), text);
        else
            d.s.items[d.s.n_items++] = text;
    }
    (void)fill(r, action, &d.s, "list", said(r, p->list.to ? p->list : p->name));
    make(r, action, &d);
}

static void tell(struct read_acts *r, const struct read_plan_act *p, const struct read_target *x)
{
    const struct home_action *action = home_table_verb(r->t, p->verb);
    struct doing d = {.p = p, .target = x};
    if (!action)
        return;
    (void)fill(r, action, &d.s, "message", said(r, p->what));
    if (is(p->verb, "announce")) {
        (void)fill(r, action, &d.s, "room", x->room);
        d.target = NULL;
        make(r, action, &d);
        return;
    }
    aim(r, action, &d);
}

/* The one thing that the text names and that can be switched on; NULL: none, or several. */
static const struct home_thing *named_switch(const struct read_acts *r)
{
    struct home_words plain = home_words_plain_all(r->a, &r->lines->words);
    const struct home_action *on = home_table_verb(r->t, "on");
    const struct home_thing *found = NULL;
    for (uint32_t i = 0; i < r->lines->n_things; i++) {
        const struct home_thing *x = r->lines->things[i].thing;
        bool named = false;
        for (uint32_t k = 0; k < plain.n && !named; k++)
            named = home_table_phrase(&x->names, &plain, k) > 0;
        if (named && can(x, on) && found)
            return NULL;
        found = named && can(x, on) ? x : found;
    }
    return found;
}

static void play(struct read_acts *r, const struct read_plan_act *p, const struct read_target *x)
{
    const struct home_action *action = home_table_verb(r->t, p->verb);
    const struct home_thing *one = is(p->verb, "play") && p->what.to == 0 ? named_switch(r) : NULL;
    struct doing d = {.p = p};
    if (!action)
        return;
    if (one) { /* "turn on the radio" plays nothing that has a name: the radio itself is meant */
        struct read_target radio = {
            .result = READ_TARGET_THINGS, .things = &one, .n = 1, .device = one->names.w[0]};
        radio.room = one->room ? one->room->names.w[0] : NULL;
        act_on(r, p, "on", &radio);
        return;
    }
    (void)fill(r, action, &d.s, "media", said(r, p->what));
    (void)fill(r, action, &d.s, "room", x->room);
    if (x->result == READ_TARGET_UNKNOWN) {
        d.target = x;
        not_here(r, action, &d);
        return;
    }
    make(r, action, &d);
}

/* ---- questions ------------------------------------------------------------------------------ */

/* Sensors that measure the quantity where the act says, else things that have it. */
static void find_measured(struct read_acts *r, const struct home_plan_quantity *q,
                          struct read_target *x)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        const struct home_thing *t = x->things[i];
        if (t->type == HOME_THING_SENSOR ? read_lines_measures(r->a, r->t, t) == q
                                         : home_file_able(t, q->name))
            x->things[n++] = t;
    }
    x->n = n;
}

/* The present value of a quantity of one thing; NULL: not known. */
static const char *value_of(const struct read_acts *r, const struct home_thing *x,
                            const char *ability)
{
    struct home_state s;
    if (!r->here->states || !home_states_get(r->here->states, r->a, x->id,
                                             x->type == HOME_THING_SENSOR ? NULL : ability, &s))
        return NULL;
    return s.text ? s.text : home_answer_number(r->a, r->t, s.number, s.unit ? s.unit : x->unit);
}

static void answer_value(struct read_acts *r, const struct read_plan_act *p, struct read_target *x)
{
    const struct home_plan_quantity *q =
        p->quantity ? home_table_plan_quantity(r->t, p->quantity) : NULL;
    const char *ability = name_of_quantity(r, p, q);
    const struct home_action *action = home_table_verb(r->t, "sensor");
    struct doing d = {.p = p, .target = x};
    if (!action)
        return;
    (void)fill(r, action, &d.s, "sensor", ability ? ability : x->device);
    (void)fill(r, action, &d.s, "room", x->room);
    if (x->result == READ_TARGET_UNKNOWN && is_live(r, action)) {
        make(r, action, &d);
        return;
    }
    if (x->result == READ_TARGET_UNKNOWN) {
        not_here(r, action, &d);
        return;
    }
    struct home_act a = begin(r, action);
    if (!a.o)
        return;
    const char *text = "";
    for (uint32_t i = 0; i < x->n; i++) {
        const char *value = value_of(r, x->things[i], q ? q->name : ability);
        if (!value)
            continue;
        const char *room = x->things[i]->room ? x->things[i]->room->names.w[0] : NULL;
        const char *name = x->n == 1 ? ""
                                     : arena_printf(r->a, "%s%s%s: ", room ? room : "",
                                                    room ? " " : "", x->things[i]->names.w[0]);
        text = arena_printf(r->a, "%s%s%s%s", text, *text ? ", " : "", name, value);
    }
    a.things = x->things;
    a.n_things = x->n;
    home_act_put_slots(&a, &d.s);
    home_act_put_id(&a);
    if (*text) {
        a.state = text;
        a.text = arena_printf(r->a, "%s%s%s", x->room ? x->room : "", x->room ? " " : "",
                              x->n == 1 && x->things[0]->type != HOME_THING_SENSOR && ability
                                  ? arena_printf(r->a, "%s %s", x->things[0]->names.w[0], ability)
                              : ability   ? ability
                              : x->device ? x->device
                                          : "");
        home_act_put_text(&a, "state", text);
        home_act_put_result(&a, "done");
        add(r, &a, home_act_plain_line(&a, HOME_SAY_STATE));
    } else {
        a.reason = action->reason;
        home_act_put_result(&a, "failed");
        home_act_put_text(&a, "reason", action->reason ? action->reason : "");
        add(r, &a, home_act_plain_line(&a, HOME_SAY_FAILED));
    }
    remember(r, &d, NULL);
}

/* Does the sensor know the state that is asked for? */
static bool senses(const struct read_acts *r, const struct home_thing *x, const char *state)
{
    const struct home_list *kinds = home_table_senses(r->t, state);
    return !kinds || !*x->kind || home_table_lists(kinds, x->kind);
}

/* One name may stand for several sensors, of the battery and of the plug of a phone: the state that
 * is asked for says which. */
static void choose_sensor(struct read_acts *r, const char *state, struct read_target *x)
{
    const struct home_thing *was = x->n == 1 ? x->things[0] : NULL;
    const struct home_file *f = r->here->file;
    if (!was || was->type != HOME_THING_SENSOR || senses(r, was, state))
        return;
    for (uint32_t i = 0; i < f->n_things; i++)
        if (f->things[i].type == HOME_THING_SENSOR && *f->things[i].kind &&
            is(f->things[i].names.w[0], was->names.w[0]) && senses(r, &f->things[i], state)) {
            x->things[0] = &f->things[i];
            return;
        }
}

/* "Are the doors locked?" is about what can be locked there. */
static void keep_askable(struct read_acts *r, const struct read_plan_act *p, struct read_target *x)
{
    const char *word = home_table_state(r->t, p->state);
    const struct home_effect *asked = word ? home_answer_asked(r->t, words_of(r, word)) : NULL;
    struct read_plan_act all = *p;
    uint32_t n = 0;
    for (int widened = 0; asked && n == 0 && widened < 2; widened++) {
        for (uint32_t i = 0; i < x->n; i++)
            if (x->things[i]->type == HOME_THING_SENSOR
                    ? senses(r, x->things[i], p->state)
                    : home_file_able(x->things[i], asked->ability))
                x->things[n++] = x->things[i];
        if (n > 0)
            x->n = n;
        else if (widened == 0) {
            all.class = "everything";
            const char *device = x->device;
            *x = read_target_of(r->a, r->t, r->here->file, r->lines, r->state, &all);
            x->device = device;
        }
    }
}

/* The words of the text that name one of the server's own machines or sensors; NULL: none do. what:
 * a quantity to be read; NULL: alarms are asked for. */
static const char *live_words(const struct read_acts *r, const char *what)
{
    struct home_live *l = r->here->live;
    struct home_live_reading reading;
    struct home_live_alarm alarm;
    for (uint32_t n = MAX_LIVE_WORDS; l && n > 0; n--)
        for (uint32_t i = 0; i + n <= r->lines->words.n; i++) {
            const char *text = said(r, (struct read_plan_span){i, i + n});
            if (what ? l->ops->reading(l, r->a, what, text, &reading)
                     : l->ops->alarm(l, r->a, text, &alarm))
                return text;
        }
    return NULL;
}

/* Answers about what the home does not list but the server knows; false: it does not. */
static bool ask_live(struct read_acts *r, const struct read_plan_act *p,
                     const struct home_plan_quantity *q)
{
    const bool history = is(p->quantity, "history");
    const struct home_action *action = home_table_verb(r->t, history ? "history" : "sensor");
    const char *what = history ? NULL : name_of_quantity(r, p, q);
    if (!r->here->live || !action || (p->things.n > 0 && is_named(r, p)) || (!history && !what))
        return false;
    const char *where = live_words(r, what);
    if (!where)
        return false;
    struct doing d = {.p = p};
    (void)fill(r, action, &d.s, "sensor", what);
    (void)fill(r, action, &d.s, "machine room", where);
    make(r, action, &d);
    return true;
}

static void ask(struct read_acts *r, const struct read_plan_act *p, struct read_target *x)
{
    const struct home_plan_quantity *q =
        p->quantity ? home_table_plan_quantity(r->t, p->quantity) : NULL;
    struct doing d = {.p = p, .target = x};
    const struct home_action *action;
    if (ask_live(r, p, q))
        return;
    if (is(p->word, "list")) {
        struct read_plan_act list = *p;
        list.verb = "list";
        change_list(r, &list);
        return;
    }
    if (is(p->word, "event") || is(p->quantity, "history") || is(p->class, "problem")) {
        action = home_table_verb(r->t, is(p->word, "event") ? "calendar" : "history");
        d.target = is(p->word, "event") ? NULL : x;
        if (action && d.target)
            aim(r, action, &d);
        else if (action)
            make(r, action, &d);
        return;
    }
    const bool state = !p->own && (!q || is(p->quantity, "state") || is(p->quantity, "place"));
    if (!state) {
        if (!p->own && (x->class || x->result == READ_TARGET_NOTHING))
            find_measured(r, q, x);
        answer_value(r, p, x);
        return;
    }
    const bool machine = x->n > 0 && x->things[0]->type == HOME_THING_MACHINE;
    if (x->n == 1 && x->things[0]->type == HOME_THING_SENSOR && !p->state) {
        answer_value(r, p, x);
        return;
    }
    if (p->state && x->class)
        keep_askable(r, p, x);
    else if (p->state)
        choose_sensor(r, p->state, x);
    action = home_table_verb(r->t, machine ? "machine" : "state");
    if (action)
        aim(r, action, &d);
}

/* ---- what is no command --------------------------------------------------------------------- */

static void talk_back(struct read_acts *r, const struct read_plan_act *p)
{
    static const struct {
        const char *word;
        enum home_say say;
    } rows[] = {{"negated", HOME_SAY_NEGATE},    {"reported", HOME_SAY_REPORT},
                {"question", HOME_SAY_ASK},      {"condition", HOME_SAY_SUPPOSE},
                {"retracted", HOME_SAY_RETRACT}, {"unclear", HOME_SAY_UNSURE}};
    for (uint32_t i = 0; is(p->verb, "none") && i < sizeof(rows) / sizeof(rows[0]); i++)
        if (is(p->word, rows[i].word)) {
            say(r, rows[i].say, NULL);
            return;
        }
    const bool chat = is(p->verb, "chat");
    const struct home_draft_line line =
        home_act_said(r->a, chat ? &r->t->line_chat : &r->t->line_out_of_scope, r->text);
    if (home_draft_reserve(r->a, r->draft))
        r->draft->lines[r->draft->n_lines++] = line;
}

/* The longest end of the text that is a sum: "what is 7 times 8". */
static const char *sum_in(const struct read_acts *r)
{
    const char *show;
    double result;
    for (uint32_t i = 0; i < r->lines->words.n; i++) {
        const char *text =
            read_target_words(r->a, r->lines, (struct read_plan_span){i, r->lines->words.n});
        if (text && home_values_calculate(r->a, r->t, text, &show, &result))
            return text;
    }
    return NULL;
}

static void other(struct read_acts *r, const struct read_plan_act *p)
{
    const struct home_action *action = p->word ? home_table_verb(r->t, p->word) : NULL;
    struct doing d = {.p = p};
    const char *help = is(p->word, "help") ? home_help_text(r->a, r->t, r->here, r->simulated) : "";
    if (*help) {
        if (home_draft_reserve(r->a, r->draft))
            r->draft->lines[r->draft->n_lines++] = (struct home_draft_line){.say = help};
        return;
    }
    const char *sum = action && action->compute ? sum_in(r) : NULL;
    if (!action || (action->compute && !sum)) {
        talk_back(r, p);
        return;
    }
    (void)fill(r, action, &d.s, "expr", sum);
    make(r, action, &d);
}

/* ---- plans ---------------------------------------------------------------------------------- */

static bool on_things(const char *verb)
{
    static const char *const list[] = {"on",     "off",   "open",   "close", "lock",
                                       "unlock", "start", "stop",   "mute",  "unmute",
                                       "dock",   "arm",   "disarm", "find",  "scene"};
    for (uint32_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
        if (is(verb, list[i]))
            return true;
    return false;
}

/* The other of two states; NULL: not known. */
static const char *toggled(const struct read_acts *r, const struct read_target *x)
{
    struct home_state s;
    if (x->n == 0 || !r->here->states ||
        !home_states_get(r->here->states, r->a, x->things[0]->id, "power", &s) || !s.text)
        return "on";
    return strcmp(s.text, "on") == 0 ? "off" : "on";
}

static void one_act(struct read_acts *r, const struct read_plan_act *p)
{
    static const char *const scheduled[] = {"timer", "alarm", "remind", "event"};
    if (is(p->verb, "none") || is(p->verb, "chat")) {
        talk_back(r, p);
        return;
    }
    if (is(p->verb, "other")) {
        other(r, p);
        return;
    }
    for (uint32_t i = 0; i < 4; i++)
        if (is(p->verb, scheduled[i])) {
            schedule(r, p);
            return;
        }
    if (is(p->verb, "add") || is(p->verb, "remove") || is(p->verb, "clear")) {
        change_list(r, p);
        return;
    }
    struct read_plan_act act = *p;
    if (is(p->verb, "stop") && p->things.n == 0 && !p->class && !p->it && !p->unknown.to)
        act.class = "everything";
    struct read_target x = read_target_of(r->a, r->t, r->here->file, r->lines, r->state, &act);
    if (is(p->verb, "toggle"))
        act_on(r, &act, toggled(r, &x), &x);
    else if (on_things(p->verb))
        act_on(r, &act, p->verb, &x);
    else if (is(p->verb, "set") || is(p->verb, "up") || is(p->verb, "down"))
        set_value(r, &act, &x);
    else if (is(p->verb, "call") || is(p->verb, "message") || is(p->verb, "announce"))
        tell(r, &act, &x);
    else if (is(p->verb, "ask"))
        ask(r, &act, &x);
    else if (home_table_verb(r->t, p->verb))
        play(r, &act, &x);
    else
        say(r, HOME_SAY_UNSURE, NULL);
}

/* The last plan again with what the text adds: the answer to a question back. */
static bool answered(struct read_acts *r, const struct read_plan_act *p, struct read_plan *out)
{
    const char *text = "";
    struct home_words head = home_words_split(r->a, r->state->last ? r->state->last : "");
    for (uint32_t i = 0; i < head.n; i++) {
        if (head.w[i][0] != '@') {
            text = arena_printf(r->a, "%s %s", text, head.w[i]);
            continue;
        }
        for (uint32_t k = 0; k < r->lines->n_things; k++)
            if (is(r->lines->things[k].thing->id, head.w[i] + 1))
                text = arena_printf(r->a, "%s t%u", text, k + 1);
        for (uint32_t k = 0; k < r->lines->n_areas; k++)
            if (is(r->lines->areas[k]->id, head.w[i] + 1))
                text = arena_printf(r->a, "%s a%u", text, k + 1);
    }
    if (!read_plan_of(out, *text ? text + 1 : "") || out->n != 1)
        return false;
    struct read_plan_act *x = &out->acts[0];
    if (p->things.n > 0)
        x->things = p->things;
    if (p->value.to > 0) {
        x->value = p->value;
        x->amount = is(x->verb, "up") || is(x->verb, "down") ? READ_PLAN_BY : READ_PLAN_TO;
    }
    if (p->at.to > 0)
        x->at = p->at;
    if (p->what.to > 0)
        x->what = p->what;
    if (p->duration.to > 0)
        x->duration = p->duration;
    return true;
}

/* Puts the words that the last plan had behind those of the text. */
static void recall_words(struct read_acts *r, struct read_plan_act *x)
{
    const struct {
        const char *role;
        struct read_plan_span *span;
    } spans[] = {{"to_value", &x->value}, {"by_value", &x->value}, {"at", &x->at},
                 {"in", &x->in},          {"for", &x->lasts},      {"until", &x->until},
                 {"every", &x->every},    {"what", &x->what},      {"dur", &x->duration},
                 {"name", &x->name}};
    for (const char *p = r->kept; p && *p; p = strchr(p, '\n') + 1) {
        const char *end = strchr(p, '\n'), *space = strchr(p, ' ');
        if (!end || !space || space > end)
            return;
        for (uint32_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
            if (strlen(spans[i].role) != (size_t)(space - p) ||
                strncmp(spans[i].role, p, (size_t)(space - p)) != 0 || spans[i].span->to > 0)
                continue;
            struct home_words old = home_words_split(
                r->a, arena_printf(r->a, "%.*s", (int)(end - space - 1), space + 1));
            struct home_words all = {
                arena_zalloc_n(r->a, (size_t)r->lines->words.n + old.n + 1, sizeof(*all.w)), 0};
            for (uint32_t k = 0; all.w && k < r->lines->words.n; k++)
                all.w[all.n++] = r->lines->words.w[k];
            *spans[i].span = (struct read_plan_span){all.n, all.n + old.n};
            for (uint32_t k = 0; all.w && k < old.n; k++)
                all.w[all.n++] = old.w[k];
            r->lines->words = all;
            if (spans[i].span == &x->value)
                x->amount = strncmp(p, "by", 2) == 0 ? READ_PLAN_BY : READ_PLAN_TO;
        }
    }
}

void read_acts(struct read_acts *r, const struct read_plan *plan)
{
    for (uint32_t i = 0; i < plan->n && r->a->rc == 0; i++) {
        const struct read_plan_act *p = &plan->acts[i];
        struct read_plan then;
        if (is(p->verb, "answer") && !p->word && r->state->pending && answered(r, p, &then)) {
            recall_words(r, &then.acts[0]);
            one_act(r, &then.acts[0]);
        } else if (is(p->verb, "answer") || is(p->verb, "cancel") || is(p->verb, "undo") ||
                   is(p->verb, "repeat")) {
            say(r, is(p->verb, "cancel") ? HOME_SAY_RETRACT : HOME_SAY_UNSURE, NULL);
            r->pending_out = "";
        } else {
            one_act(r, p);
        }
    }
}
