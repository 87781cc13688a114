/* read_ask.c - see read_ask.h. */
#include "apps/home/read/read_ask.h"

#include "apps/home/home_answer.h"
#include "apps/home/read/read_kept.h"
#include "apps/home/read/read_make.h"
#include "apps/home/read/read_value.h"
#include "apps/home/site/home_live.h"

#define MAX_LIVE_WORDS 4u /* of the name of a machine or sensor of the server */

/* Sensors that measure the quantity where the act says, else things that have it. */
static void find_measured(struct read_work *r, const struct home_plan_quantity *q,
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
static const char *value_of(const struct read_work *r, const struct home_thing *x,
                            const char *ability)
{
    struct home_state s;
    if (!r->here->states || !home_states_get(r->here->states, r->a, x->id,
                                             x->type == HOME_THING_SENSOR ? NULL : ability, &s))
        return NULL;
    return s.text ? s.text : home_answer_number(r->a, r->t, s.number, s.unit ? s.unit : x->unit);
}

static void answer_value(struct read_work *r, const struct read_plan_act *p, struct read_target *x)
{
    const struct home_plan_quantity *q =
        p->quantity ? home_table_plan_quantity(r->t, p->quantity) : NULL;
    const char *ability = read_value_name(r, p, q);
    const struct home_action *action = home_table_verb(r->t, "sensor");
    struct read_doing d = {.p = p, .target = x};
    if (!action)
        return;
    (void)read_work_fill(r, action, &d.s, "sensor", ability ? ability : x->device);
    (void)read_work_fill(r, action, &d.s, "room", x->room);
    if (x->result == READ_TARGET_UNKNOWN && read_make_is_live(r, action)) {
        read_make_action(r, action, &d);
        return;
    }
    if (x->result == READ_TARGET_UNKNOWN) {
        read_make_not_here(r, action, &d);
        return;
    }
    struct home_act a = read_work_begin(r, action);
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
        read_work_add(r, &a, home_act_plain_line(&a, HOME_SAY_STATE));
    } else {
        a.reason = action->reason;
        home_act_put_result(&a, "failed");
        home_act_put_text(&a, "reason", action->reason ? action->reason : "");
        read_work_add(r, &a, home_act_plain_line(&a, HOME_SAY_FAILED));
    }
    read_kept_remember(r, &d, NULL);
}

/* Does the sensor know the state that is asked for? */
static bool senses(const struct read_work *r, const struct home_thing *x, const char *state)
{
    const struct home_list *kinds = home_table_senses(r->t, state);
    return !kinds || !*x->kind || home_table_lists(kinds, x->kind);
}

/* One name may stand for several sensors, of the battery and of the plug of a phone: the state that
 * is asked for says which. */
static void choose_sensor(struct read_work *r, const char *state, struct read_target *x)
{
    const struct home_thing *was = x->n == 1 ? x->things[0] : NULL;
    const struct home_file *f = r->here->file;
    if (!was || was->type != HOME_THING_SENSOR || senses(r, was, state))
        return;
    for (uint32_t i = 0; i < f->n_things; i++)
        if (f->things[i].type == HOME_THING_SENSOR && *f->things[i].kind &&
            read_is(f->things[i].names.w[0], was->names.w[0]) && senses(r, &f->things[i], state)) {
            x->things[0] = &f->things[i];
            return;
        }
}

/* "Are the doors locked?" is about what can be locked there. */
static void keep_askable(struct read_work *r, const struct read_plan_act *p, struct read_target *x)
{
    const char *word = home_table_state(r->t, p->state);
    const struct home_effect *asked =
        word ? home_answer_asked(r->t, read_work_words(r, word)) : NULL;
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
static const char *live_words(const struct read_work *r, const char *what)
{
    struct home_live *l = r->here->live;
    struct home_live_reading reading;
    struct home_live_alarm alarm;
    for (uint32_t n = MAX_LIVE_WORDS; l && n > 0; n--)
        for (uint32_t i = 0; i + n <= r->lines->words.n; i++) {
            const char *text = read_work_said(r, (struct read_plan_span){i, i + n});
            if (what ? l->ops->reading(l, r->a, what, text, &reading)
                     : l->ops->alarm(l, r->a, text, &alarm))
                return text;
        }
    return NULL;
}

/* What the server is asked that the home does not list. */
struct live_question {
    const struct home_action *action; /* NULL: the server does not know it */
    const char *what, *where;
};

static struct live_question live_question(const struct read_work *r, const struct read_plan_act *p)
{
    const struct home_plan_quantity *q =
        p->quantity ? home_table_plan_quantity(r->t, p->quantity) : NULL;
    /* of what only the sensors know, the state is what happened to it */
    const bool history = read_is(p->quantity, "history") ||
                         (p->unknown.to > 0 && (!p->quantity || read_is(p->quantity, "state")));
    const struct home_action *action = home_table_verb(r->t, history ? "history" : "sensor");
    const char *what = history ? NULL : read_value_name(r, p, q);
    if (!r->here->live || !action || (p->things.n > 0 && read_make_is_named(r, p)) ||
        (!history && !what))
        return (struct live_question){.action = NULL};
    const char *where = live_words(r, what);
    return (struct live_question){where ? action : NULL, what, where};
}

bool read_ask_is_live(const struct read_work *r, const struct read_plan_act *p)
{
    return read_is(p->verb, "ask") && live_question(r, p).action;
}

/* Answers about what the home does not list but the server knows; false: it does not. */
static bool ask_live(struct read_work *r, const struct read_plan_act *p)
{
    const struct live_question l = live_question(r, p);
    struct read_plan_act unnamed = *p; /* the reader's thing is another one */
    struct read_doing d = {.p = &unnamed};
    if (!l.action)
        return false;
    unnamed.things.n = 0;
    (void)read_work_fill(r, l.action, &d.s, "sensor", l.what);
    (void)read_work_fill(r, l.action, &d.s, "machine room", l.where);
    read_make_action(r, l.action, &d);
    return true;
}

void read_ask(struct read_work *r, const struct read_plan_act *p, struct read_target *x)
{
    const struct home_plan_quantity *q =
        p->quantity ? home_table_plan_quantity(r->t, p->quantity) : NULL;
    struct read_doing d = {.p = p, .target = x};
    const struct home_action *action;
    if (ask_live(r, p))
        return;
    if (read_is(p->word, "event") || read_is(p->quantity, "history") ||
        read_is(p->class, "problem")) {
        action = home_table_verb(r->t, read_is(p->word, "event") ? "calendar" : "history");
        d.target = read_is(p->word, "event") ? NULL : x;
        if (action && d.target)
            read_make_aim(r, action, &d);
        else if (action)
            read_make_action(r, action, &d);
        return;
    }
    const bool state =
        !p->own && (!q || read_is(p->quantity, "state") || read_is(p->quantity, "place"));
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
        read_make_aim(r, action, &d);
}
