/* read_make.c - see read_make.h. */
#include "apps/home/read/read_make.h"

#include <string.h>

#include "apps/home/read/read_kept.h"
#include "apps/home/read/read_when.h"

/* Is each of the things called by its name, or by that of its class? "The time machine" is no
 * coffee machine, however sure the reader is. */
bool read_make_is_named(const struct read_work *r, const struct read_plan_act *p)
{
    for (uint32_t i = 0; i < p->things.n; i++)
        if (p->things.at[i] < r->lines->n_things && !r->lines->things[p->things.at[i]].said)
            return false;
    return true;
}

void read_make_action(struct read_work *r, const struct home_action *action, struct read_doing *d)
{
    const char *rest = read_when_fill(r, action, &d->s, d->p);
    if (rest) {
        read_work_ask_about(r, action, rest);
        return;
    }
    struct home_act x = read_work_begin(r, action);
    if (!x.o || !home_draft_reserve(r->a, r->draft))
        return;
    x.sign = d->sign;
    x.doubtful = x.doubtful || !read_make_is_named(r, d->p);
    x.lists = read_is(d->p->which, "which") && d->p->class;
    if (d->target) {
        x.things = d->target->things;
        x.n_things = d->target->n;
        x.except = d->target->except;
        x.said = d->target->said;
    }
    const char *every = read_work_said(r, d->p->every), *asked = d->p->state ? d->p->state : NULL;
    asked = asked ? home_table_state(r->t, asked) : NULL;
    read_work_add(r, &x,
                  home_act_make(&x, &d->s, read_work_words(r, every ? every : asked), r->draft));
    read_kept_remember(r, d, x.o);
}

/* Which of them? */
static void ask_which(struct read_work *r, const struct home_action *action, struct read_doing *d)
{
    struct home_act x = read_work_begin(r, action);
    if (!x.o)
        return;
    home_act_put_slots(&x, &d->s);
    read_work_add(r, &x,
                  home_act_which(&x, action->n_needs ? action->needs[0]->name : "device",
                                 d->target->things, d->target->n));
    read_kept_remember(r, d, x.o);
}

void read_make_not_here(struct read_work *r, const struct home_action *action, struct read_doing *d)
{
    struct home_act x = read_work_begin(r, action);
    if (!x.o)
        return;
    x.text = d->target->what;
    home_act_put_slots(&x, &d->s);
    if (d->p->here) { /* nobody said where the speaker is */
        home_act_put_result(&x, "ask");
        home_act_put_text(&x, "ask", "room");
        read_work_add(r, &x, home_act_plain_line(&x, HOME_SAY_PRONOUN));
        return;
    }
    home_act_put_result(&x, "unknown");
    home_act_put_text(&x, "unknown", x.text ? x.text : "");
    read_work_add(r, &x, home_act_plain_line(&x, HOME_SAY_NOT_HERE));
}

/* May the server's own sensors and alarms know what the home does not list? */
bool read_make_is_live(const struct read_work *r, const struct home_action *action)
{
    return r->here->live && action->live != HOME_LIVE_NONE;
}

/* Carries an action out on the target, whatever that is. */
void read_make_aim(struct read_work *r, const struct home_action *action, struct read_doing *d)
{
    const struct read_target *x = d->target;
    (void)read_work_fill(r, action, &d->s, "device machine person scene item", x->device);
    (void)read_work_fill(r, action, &d->s, "room place", x->room);
    if (x->result == READ_TARGET_UNKNOWN && !read_make_is_live(r, action))
        read_make_not_here(r, action, d);
    else if (x->result == READ_TARGET_ONE_OF)
        ask_which(r, action, d);
    else
        read_make_action(r, action, d);
}
