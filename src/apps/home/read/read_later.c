/* read_later.c - see read_later.h. */
#include "apps/home/read/read_later.h"

#include <stdlib.h>
#include <string.h>

#include "apps/home/home_recall.h"
#include "apps/home/home_turn.h"
#include "apps/home/home_values.h"
#include "apps/home/read/read_kept.h"
#include "apps/home/read/read_make.h"

static enum home_later_kind kind_of(const struct read_plan_act *p)
{
    return read_is(p->verb, "timer")   ? HOME_LATER_TIMER
           : read_is(p->verb, "alarm") ? HOME_LATER_ALARM
                                       : HOME_LATER_REMINDER;
}

/* Finds entries by kind and by the words that say which one. */
static struct home_recall recall(struct read_work *r, const struct read_plan_act *p, bool asks)
{
    const bool named = p->name.to || p->what.to || p->duration.to;
    const char *which = read_work_said(r, p->name.to   ? p->name
                                          : p->what.to ? p->what
                                                       : p->duration);
    const char *at = asks ? NULL : read_work_at(r, p);
    const char *text = arena_printf(r->a, "%s %s", which ? which : "", at ? at : "");
    const struct home_recall_query q = {
        .kind = kind_of(p), .words = asks && !named ? NULL : read_work_words(r, text), .due = asks};
    return home_recall_find(r->a, r->t, r->here->later, &q);
}

static const char *listed(const struct read_work *r, const char *const *list, uint32_t n)
{
    const char *text = n > 0 ? list[0] : "";
    for (uint32_t i = 1; i < n; i++)
        text = arena_printf(r->a, "%s; %s", text, list[i]);
    return text;
}

/* Lists or cancels. */
static void recall_entries(struct read_work *r, const struct read_plan_act *p, bool cancel)
{
    const struct home_action *action = cancel ? r->t->later.cancel[kind_of(p)] : r->t->later.list;
    if (!action || (cancel && !r->here->later)) {
        struct read_doing d = {.p = p};
        if (action)
            read_make_action(r, action, &d);
        return;
    }
    /* "the heating timer" may switch the heating: then the words of the text say which */
    const struct home_recall_query all = {.kind = kind_of(p), .words = read_work_words(r, r->text)};
    const bool open = cancel && !p->all && !p->name.to && !p->what.to && !p->duration.to;
    struct home_recall found = {0};
    if (open)
        found = home_recall_find(r->a, r->t, r->here->later, &all);
    if (found.n == 0)
        found = recall(r, p, !cancel);
    const bool unclear = cancel && found.n > 1 && !p->all;
    struct home_act x = read_work_begin(r, action);
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
    read_work_add(r, &x,
                  home_act_plain_line(&x, unclear        ? HOME_SAY_WHICH
                                          : found.n == 0 ? HOME_SAY_NOTHING
                                          : cancel       ? HOME_SAY_CANCELLED
                                                         : HOME_SAY_LISTED));
    read_kept_remember(r, &(struct read_doing){.p = p}, NULL);
}

/* There is no such entry. */
static void say_nothing(struct read_work *r, const struct home_action *action,
                        enum home_later_kind kind, const char *what)
{
    struct home_act x = read_work_begin(r, action);
    if (!x.o)
        return;
    const struct home_list *names = &r->t->later.words[kind];
    x.text = what ? what : names->n ? names->w[0] : "";
    home_act_put_result(&x, "failed");
    read_work_add(r, &x, home_act_plain_line(&x, HOME_SAY_NOTHING));
}

/* Those that a plan turns: of several, all of them, or the newest if it was spoken of last. */
static struct home_recall to_turn(struct read_work *r, const struct read_plan_act *p,
                                  enum home_later_turn turn)
{
    struct read_plan_act which = *p;
    if (turn == HOME_LATER_CHANGE) /* what it is changed to does not say which one */
        which.at = which.also_at = which.in = (struct read_plan_span){0, 0};
    if (turn == HOME_LATER_CHANGE && !p->value.to)
        which.duration = (struct read_plan_span){0, 0};
    struct home_recall found = recall(r, &which, true);
    const size_t n = strlen(p->verb);
    const bool spoken = r->state->last && strncmp(r->state->last, p->verb, n) == 0;
    if (found.n < 2 || p->all || !spoken)
        return found;
    uint32_t newest = 0;
    for (uint32_t i = 1; i < found.n; i++)
        if (strtoull(found.ids[i], NULL, 10) > strtoull(found.ids[newest], NULL, 10))
            newest = i;
    found.ids += newest;
    found.names += newest;
    found.n = 1;
    return found;
}

static int64_t left_s(const struct read_work *r, const struct home_later_entry *x)
{
    const int64_t ms = x->paused ? x->left_ms : x->due_ms - home_later_now_ms(r->here->later);
    return (ms + 999) / 1000;
}

/* Seconds of a timer that are over; 0: it is none. */
static double passed(const struct read_work *r, const struct home_later_entry *x)
{
    const struct ask_plan_field *whole = ask_plan_field_of(x->action, "duration_s");
    return whole ? whole->number - (double)left_s(r, x) : 0.0;
}

/* "Five minutes more", "to half past seven": makes the action that would set such an entry, whose
 * moment the entry then has. False: it has been said why not. */
static bool read_moment(struct read_work *r, const struct read_plan_act *p,
                        const struct home_later_entry *old, const struct ask_plan_action **out)
{
    const struct home_action *set = home_table_verb(r->t, p->verb);
    const char *said = p->value.to      ? read_work_said(r, p->value)
                       : p->duration.to ? read_work_said(r, p->duration)
                                        : read_work_at(r, p);
    const struct home_value v = home_values_duration(r->a, r->t, said ? said : "");
    const bool moves = read_is(p->word, "more") || read_is(p->word, "less");
    const int64_t now_ms = home_later_now_ms(r->here->later);
    const int64_t left_s = (old->paused ? old->left_ms : old->due_ms - now_ms + 999) / 1000;
    const int64_t to_s = moves ? left_s + (read_is(p->word, "less") ? -1 : 1) * (int64_t)v.number
                               : (int64_t)v.number;
    struct read_plan_act again = *p;
    struct read_doing d = {.p = &again};
    struct home_draft trial = {0}, *draft = r->draft;
    const char *task = ask_plan_text_of(old->action, "task");
    again.word = "set_one";
    if (!set || (v.understood && to_s <= 0) || (!v.understood && (moves || !p->at.to))) {
        read_work_say(r, HOME_SAY_UNSURE, NULL);
        return false;
    }
    if (v.understood && (moves || kind_of(p) == HOME_LATER_TIMER)) {
        again.value = again.duration = again.at = again.also_at = (struct read_plan_span){0, 0};
        const char *key = kind_of(p) == HOME_LATER_TIMER ? "duration" : "in";
        (void)read_work_fill(r, set, &d.s, key, home_due_left(r->a, r->t, to_s));
    }
    (void)read_work_fill(r, set, &d.s, "task", task);
    r->draft = &trial;
    read_make_action(r, set, &d);
    r->draft = draft;
    *out = trial.n_actions == 1 ? trial.actions[0] : NULL;
    if (*out && (*out)->due_s > 0)
        return true;
    read_work_say(r, HOME_SAY_UNSURE, NULL);
    return false;
}

static void put_items(struct home_act *x, const char *key, const char *const *items, uint32_t n)
{
    x->o->fields[x->o->n_fields++] =
        (struct ask_plan_field){.key = key, .items = items, .n_items = n};
}

/* The fields and the moment of a change; before_s of a timer have passed already. */
static void put_moment(struct home_act *x, const struct ask_plan_action *set, double before_s)
{
    static const char *const keys[] = {"duration_s", "in_s", "time", "date"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const struct ask_plan_field *f = ask_plan_field_of(set, keys[i]);
        if (f && x->o->n_fields < ASK_PLAN_MAX_FIELDS)
            x->o->fields[x->o->n_fields++] = *f;
        if (f && read_is(keys[i], "duration_s"))
            x->o->fields[x->o->n_fields - 1].number += before_s;
    }
    x->o->due_s = set->due_s;
    x->o->due_counted = set->due_counted;
}

/* What the entries are then, for the reply. */
static const char *turned(struct read_work *r, const struct home_act *x,
                          const struct home_recall *found)
{
    const int64_t now_ms = home_later_now_ms(r->here->later);
    const char *text = "";
    for (uint32_t i = 0; i < found->n; i++) {
        struct home_later_entry e;
        if (!home_turn_find(r->a, r->here->later, strtoull(found->ids[i], NULL, 10), &e))
            continue;
        (void)home_turn_apply(r->a, r->t, x->o, now_ms, &e);
        text = arena_printf(r->a, "%s%s%s (%s)", text, *text ? "; " : "", e.what,
                            home_turn_when(r->a, r->t, &e, now_ms));
    }
    return text;
}

/* Pauses, resumes or changes what is scheduled. */
static void turn_entries(struct read_work *r, const struct read_plan_act *p,
                         enum home_later_turn turn)
{
    const struct home_action *action = r->t->later.turn[turn];
    struct home_later_entry old;
    const struct ask_plan_action *set = NULL;
    if (!action) {
        read_work_say(r, HOME_SAY_UNSURE, NULL);
        return;
    }
    if (!r->here->later) {
        struct read_doing d = {.p = &(struct read_plan_act){.verb = p->verb}};
        read_make_action(r, action, &d);
        return;
    }
    const struct home_recall found = to_turn(r, p, turn);
    const bool unclear = found.n > 1 && !p->all;
    if (found.n == 0 ||
        !home_turn_find(r->a, r->here->later, strtoull(found.ids[0], NULL, 10), &old)) {
        say_nothing(r, action, kind_of(p), found.what);
        return;
    }
    if (!unclear && turn == HOME_LATER_CHANGE && !read_moment(r, p, &old, &set))
        return;
    struct home_act x = read_work_begin(r, action);
    if (!x.o)
        return;
    put_items(&x, unclear ? "choices" : "scheduled_ids", unclear ? found.names : found.ids,
              found.n);
    if (set)
        put_moment(&x, set, read_is(p->word, "change") ? 0.0 : passed(r, &old));
    x.text = unclear ? listed(r, found.names, found.n) : turned(r, &x, &found);
    home_act_put_result(&x, unclear ? "ask" : "done");
    read_work_add(r, &x,
                  home_act_plain_line(&x, unclear ? HOME_SAY_WHICH
                                                  : (enum home_say)(HOME_SAY_PAUSED + turn)));
    read_kept_remember(r, &(struct read_doing){.p = p}, NULL);
}

struct rang { /* the last entry that rang */
    int64_t now_ms, ago_s;
};

/* When the last entry rang; newest ones come first. */
static void take_rang(void *ctx, const struct home_later_entry *x)
{
    struct rang *l = ctx;
    if (read_is(x->result, "rang") && l->ago_s < 0 && x->ended_ms <= l->now_ms)
        l->ago_s = (l->now_ms - x->ended_ms) / 1000;
}

#define SNOOZE_S 600
#define SNOOZED_S 1800 /* after this, it has been heard and left */

/* "Snooze", "five more minutes": what rang rings again. */
static void snooze(struct read_work *r, const struct read_plan_act *p)
{
    const struct home_action *set = home_table_verb(r->t, "timer");
    const char *text = read_work_said(r, p->duration.to ? p->duration : p->value);
    const struct home_value v = home_values_duration(r->a, r->t, text ? text : "");
    struct rang l = {.ago_s = -1};
    struct read_plan_act again = {.verb = "timer", .word = "set_one"};
    struct read_doing d = {.p = &again};
    if (!set) {
        read_work_say(r, HOME_SAY_UNSURE, NULL);
        return;
    }
    l.now_ms = r->here->later ? home_later_now_ms(r->here->later) : 0;
    if (r->here->later)
        home_later_each(r->here->later, take_rang, &l);
    if (l.ago_s < 0 || l.ago_s > SNOOZED_S) {
        say_nothing(r, r->t->later.cancel[kind_of(p)], kind_of(p), NULL);
        return;
    }
    (void)read_work_fill(r, set, &d.s, "duration",
                         home_due_left(r->a, r->t, v.understood ? (int64_t)v.number : SNOOZE_S));
    read_make_action(r, set, &d);
}

void read_later(struct read_work *r, const struct read_plan_act *p, struct read_target *x)
{
    (void)x;
    const struct home_action *action = home_table_verb(r->t, p->verb);
    struct read_doing d = {.p = p};
    if (read_is(p->word, "cancel_one") || read_is(p->word, "ask_one")) {
        if (read_is(p->verb, "event") && read_is(p->word, "ask_one"))
            action = home_table_verb(r->t, "calendar");
        else if (!read_is(p->verb, "event")) {
            recall_entries(r, p, read_is(p->word, "cancel_one"));
            return;
        }
    } else if (read_is(p->word, "more") || read_is(p->word, "less") || read_is(p->word, "change")) {
        turn_entries(r, p, HOME_LATER_CHANGE);
        return;
    } else if (read_is(p->word, "pause_one") || read_is(p->word, "resume_one")) {
        turn_entries(r, p, read_is(p->word, "pause_one") ? HOME_LATER_PAUSE : HOME_LATER_RESUME);
        return;
    } else if (read_is(p->word, "snooze")) {
        snooze(r, p);
        return;
    } else if (p->word && !read_is(p->word, "set_one")) {
        read_work_say(r, HOME_SAY_UNSURE, NULL);
        return;
    }
    if (!action)
        return;
    (void)read_work_fill(r, action, &d.s, "duration", read_work_said(r, p->duration));
    (void)read_work_fill(r, action, &d.s, "task event name",
                         read_work_said(r, p->what.to ? p->what : p->name));
    read_make_action(r, action, &d);
}
