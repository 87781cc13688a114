/* read_value.c - see read_value.h. */
#include "apps/home/read/read_value.h"

#include <string.h>

#include "apps/home/home_values.h"
#include "apps/home/read/read_make.h"
#include "apps/home/read/read_switch.h"

static bool is_number(const struct read_work *r, const char *text)
{
    const char *d = text ? home_values_digits(r->a, r->t, text) : "";
    return d[strspn(d, "+- ")] >= '0' && d[strspn(d, "+- ")] <= '9';
}

/* What is set if the text does not say it; NULL: open. */
static const struct home_plan_quantity *
usual_quantity(const struct read_work *r, const struct read_target *x, const char *value)
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

const char *read_value_name(const struct read_work *r, const struct read_plan_act *p,
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
static bool says_quantity(const struct read_work *r, const struct home_plan_quantity *q,
                          const char *value)
{
    struct home_words plain = home_words_plain_all(r->a, &r->lines->words);
    const struct home_quantity *more = home_table_quantity(r->t, q->name); /* "dimmer" */
    struct home_value v = {0};
    for (uint32_t i = 0; i < plain.n; i++)
        if (home_table_phrase(&q->words, &plain, i) > 0 ||
            (more && home_table_phrase(&more->words, &plain, i) > 0))
            return true;
    if (value)
        v = home_values_amount(r->a, r->t, value, true, NULL);
    return v.unit != NULL;
}

/* A machine has settings of its own; which one a bare number means must be said. */
static bool is_guessed(const struct read_work *r, const struct read_plan_act *p,
                       const struct read_target *x, const struct home_plan_quantity *q,
                       const char *value)
{
    return q && !p->own && x->n == 1 && x->things[0]->type == HOME_THING_MACHINE && value &&
           x->things[0]->n_limits != 1 && !says_quantity(r, q, value);
}

/* Does the text say the class, or one of the things by its name? */
static bool says_target(const struct read_work *r, const struct read_target *x)
{
    struct home_words plain = home_words_plain_all(r->a, &r->lines->words);
    for (uint32_t i = 0; i < plain.n; i++) {
        if (home_table_phrase(&x->class->words, &plain, i) > 0)
            return true;
        for (uint32_t k = 0; k < x->class->words.n; k++)
            if (home_table_ends_in(r->t, plain.w[i], x->class->words.w[k]))
                return true;
        for (uint32_t k = 0; k < x->n; k++)
            if (home_table_phrase(&x->things[k]->names, &plain, i) > 0)
                return true;
    }
    return false;
}

/* "Set the living room to 50": light or sound? Neither a thing nor a quantity was said. Only what
 * has a unit of its own goes without: "the office to 21" is warm. */
static bool is_bare(const struct read_work *r, const struct read_plan_act *p,
                    const struct read_target *x, const struct home_plan_quantity *q,
                    const char *value)
{
    return q && q->units.n == 0 && x->class && !p->it && !p->own && p->areas.n > 0 &&
           is_number(r, value) && r->state->pending == NULL && !says_quantity(r, q, value) &&
           !says_target(r, x);
}

static void ask_what(struct read_work *r, const struct home_action *action, struct read_doing *d)
{
    struct home_act a = read_work_begin(r, action);
    if (!a.o)
        return;
    (void)read_work_fill(r, action, &d->s, "room", d->target->room);
    home_act_put_slots(&a, &d->s);
    home_act_put_result(&a, "ask");
    home_act_put_text(&a, "ask", "device");
    read_work_add(r, &a, home_act_plain_line(&a, HOME_SAY_QUANTITY));
}

void read_value(struct read_work *r, const struct read_plan_act *p, struct read_target *x)
{
    const bool up = read_is(p->verb, "up"), step = up || read_is(p->verb, "down");
    const char *value = read_work_said(r, p->value);
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
    struct read_doing d = {.p = p, .target = x};
    if (q && strcmp(q->name, "position") == 0 && step && !value &&
        !(p->amount == READ_PLAN_BIT && q->step)) { /* "raise the blinds" opens them */
        read_switch(r, p, up ? "open" : "close", x);
        return;
    }
    if (!action)
        return;
    if (!step && is_bare(r, p, x, q, value)) {
        ask_what(r, action, &d);
        return;
    }
    if (step && !value && q && q->step)
        value = p->amount == READ_PLAN_LOT && q->leap ? q->leap : q->step;
    if (step && (p->amount != READ_PLAN_TO))
        d.sign = action->relative ? (up ? 1.0 : -1.0) : 0.0;
    else if (p->amount == READ_PLAN_BY)
        d.sign = 1.0;
    if (named)
        (void)read_work_fill(r, action, &d.s, "sensor", read_value_name(r, p, q));
    if (!(is_number(r, value) && read_work_fill(r, action, &d.s, "value", value)) && value &&
        !read_work_fill(r, action, &d.s, "color mode value", value)) {
        read_work_ask_about(r, action, value);
        return;
    }
    read_make_aim(r, action, &d);
}
