/* read_later.c - see read_later.h. */
#include "apps/home/read/read_later.h"

#include "apps/home/home_recall.h"
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
    const char *which = read_work_said(r, p->name.to   ? p->name
                                          : p->what.to ? p->what
                                                       : p->duration);
    const char *at = read_work_said(r, p->at);
    const char *text = arena_printf(r->a, "%s %s", which ? which : "", at ? at : "");
    const struct home_recall_query q = {
        .kind = kind_of(p), .words = asks ? NULL : read_work_words(r, text), .due = asks};
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
    if (!action || !r->here->later) {
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

/* There is no such entry. */
static void say_nothing(struct read_work *r, enum home_later_kind kind)
{
    struct home_act x = read_work_begin(r, r->t->later.cancel[kind]);
    if (!x.o)
        return;
    const struct home_list *names = &r->t->later.words[kind];
    x.text = names->n ? names->w[0] : "";
    home_act_put_result(&x, "failed");
    read_work_add(r, &x, home_act_plain_line(&x, HOME_SAY_NOTHING));
}

/* "Five minutes more": the timer is cancelled, and set again. */
static void change_timer(struct read_work *r, const struct read_plan_act *p)
{
    const struct home_action *set = home_table_verb(r->t, p->verb);
    const char *text = read_work_said(r, p->value.to      ? p->value
                                         : p->duration.to ? p->duration
                                                          : p->at);
    struct home_value v = home_values_duration(r->a, r->t, text ? text : "");
    struct left l = {.a = r->a, .kind = kind_of(p), .left_s = -1};
    struct read_plan_act again = *p;
    struct read_doing d = {.p = &again};
    if (!set || !r->here->later) {
        read_work_say(r, HOME_SAY_UNSURE, NULL);
        return;
    }
    l.now_ms = home_later_now_ms(r->here->later);
    home_later_each(r->here->later, take_left, &l);
    const double sign = read_is(p->word, "less") ? -1.0 : 1.0;
    const bool alarm = read_is(p->verb, "alarm") || !read_is(p->verb, "timer");
    const int64_t to =
        read_is(p->word, "change") ? (int64_t)v.number : l.left_s + (int64_t)(sign * v.number);
    if (l.left_s < 0 || (!alarm && (!v.understood || to <= 0)) || (alarm && !p->at.to)) {
        say_nothing(r, l.kind);
        return;
    }
    again.value = again.duration = (struct read_plan_span){0, 0};
    recall_entries(r, &again, true);
    if (alarm)
        ;
    else
        (void)read_work_fill(r, set, &d.s, "duration", home_due_left(r->a, r->t, to));
    again.word = "set_one";
    read_make_action(r, set, &d);
}

/* When the last entry rang; newest ones come first. */
static void take_rang(void *ctx, const struct home_later_entry *x)
{
    struct left *l = ctx;
    if (read_is(x->result, "rang") && l->left_s < 0 && x->ended_ms <= l->now_ms)
        l->left_s = (l->now_ms - x->ended_ms) / 1000;
}

#define SNOOZE_S 600
#define SNOOZED_S 1800 /* after this, it has been heard and left */

/* "Snooze", "five more minutes": what rang rings again. */
static void snooze(struct read_work *r, const struct read_plan_act *p)
{
    const struct home_action *set = home_table_verb(r->t, "timer");
    const char *text = read_work_said(r, p->duration.to ? p->duration : p->value);
    const struct home_value v = home_values_duration(r->a, r->t, text ? text : "");
    struct left l = {.a = r->a, .left_s = -1};
    struct read_plan_act again = {.verb = "timer", .word = "set_one"};
    struct read_doing d = {.p = &again};
    if (!set || !r->here->later) {
        read_work_say(r, HOME_SAY_UNSURE, NULL);
        return;
    }
    l.now_ms = home_later_now_ms(r->here->later);
    home_later_each(r->here->later, take_rang, &l);
    if (l.left_s < 0 || l.left_s > SNOOZED_S) {
        say_nothing(r, kind_of(p));
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
        change_timer(r, p);
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
