/* gate.c - see gate.h. */
#include "apps/home/gate/gate.h"

#include <math.h>
#include <string.h>

#include "apps/home/gate/gate_units.h"

#define STATE_BYTES ((size_t)4096)
#define ROUNDING 1e-9 /* of a conversion, relative to the limits */

struct question { /* one deed on one thing */
    const struct gate *g;
    const struct home_table *t;
    const struct home_thing *thing;
    struct gate_verdict out;
};

static bool decide(struct question *x, enum gate_answer answer, enum gate_why why)
{
    x->out.answer = answer;
    x->out.why = why;
    return false;
}

/* ---- abilities ------------------------------------------------------------------------------ */

struct form {    /* what an ability can be set to */
    bool states; /* fixed states: "on" */
    bool texts;  /* any text: a color */
    bool number;
    bool any; /* it stands for all settings of a thing, whose names follow from the home file */
};

static struct form form_of(const struct home_table *t, const char *ability)
{
    struct form f = {.number = home_table_quantity(t, ability) != NULL};
    bool known = false;
    for (uint32_t i = 0; i < t->n_actions; i++) {
        const struct home_effect *e = t->action[i].effect;
        if (e && e->partly && strcmp(e->partly, ability) == 0)
            known = f.number = true;
        if (!e || strcmp(e->ability, ability) != 0)
            continue;
        known = true;
        f.states |= e->to != NULL;
        f.texts |= e->slot && e->slot->type == HOME_SLOT_TEXT;
        f.number |= e->slot && !e->partly && e->slot->type == HOME_SLOT_VALUE;
        f.any |= e->named_by != NULL;
    }
    f.number |= !known; /* the name of a setting */
    return f;
}

/* The ability that stands for all settings; NULL: the table has none. */
static const char *any_setting(const struct home_table *t)
{
    for (uint32_t i = 0; i < t->n_actions; i++)
        if (t->action[i].effect && t->action[i].effect->named_by)
            return t->action[i].effect->ability;
    return NULL;
}

static bool is_machine(const struct home_thing *x)
{
    const char *machine = home_file_type_name(HOME_THING_MACHINE);
    return x->type == HOME_THING_MACHINE || home_table_kind_is(x->is, machine);
}

static bool has_settings(const struct home_table *t, const struct home_thing *x)
{
    const char *any = any_setting(t);
    return any && home_file_able(x, any);
}

/* Names are alike in any case of letters, with "_" or " " between their words. */
static char letter(char c)
{
    return c == '_' ? ' ' : c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Is b the end of a, from a word on?  "spindle speed" ends in "speed" and in itself. */
static bool ends_in(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    if (m == 0 || m > n || (m < n && letter(a[n - m - 1]) != ' '))
        return false;
    for (size_t i = 0; i < m; i++)
        if (letter(a[n - m + i]) != letter(b[i]))
            return false;
    return true;
}

/* The thing's own limits of an ability, by name, by the last words of the name, by the last words
 * of theirs; *n: how many of that class there are. */
static const struct home_thing_limit *own_limit(const struct home_thing *x, const char *ability,
                                                uint32_t *n)
{
    const struct home_thing_limit *found = NULL;
    *n = 0;
    for (int class = 0; class < 3 && *n == 0; class ++)
        for (uint32_t i = 0; i < x->n_limits; i++) {
            const char *own = x->limits[i].ability;
            bool said = ends_in(ability, own), more = ends_in(own, ability);
            if (class == 0 ? said && more : class == 1 ? said : more) {
                found = &x->limits[i];
                (*n)++;
            }
        }
    return found;
}

static const struct home_quantity *quantity_of(const struct home_table *t, const char *ability)
{
    for (uint32_t i = 0; i < t->n_quantities; i++)
        if (ends_in(ability, t->quantities[i].ability))
            return &t->quantities[i];
    return NULL;
}

bool gate_able(const struct home_table *t, const struct home_thing *x, const char *ability)
{
    uint32_t n;
    if (x->type == HOME_THING_SCENE || home_file_able(x, ability) || own_limit(x, ability, &n))
        return true;
    struct form f = form_of(t, ability);
    if (!f.any)
        return !home_table_ability(t, ability) && has_settings(t, x);
    for (uint32_t i = 0; i < x->abilities.n; i++)
        if (home_table_quantity(t, x->abilities.w[i]))
            return true;
    return x->n_limits > 0;
}

const char *gate_unit_of(const struct home_table *t, const struct home_thing *x,
                         const char *ability)
{
    uint32_t n;
    const struct home_thing_limit *own = own_limit(x, ability, &n);
    const struct home_quantity *q = quantity_of(t, ability);
    return own && n == 1 && own->unit ? own->unit : q ? q->units[0]->name : NULL;
}

/* ---- which quantity ------------------------------------------------------------------------- */

/* The only one of the thing's own limits that a unit fits; unit NULL: any. *n: how many there
 * are. */
static const struct home_thing_limit *limit_in(const struct question *x, const char *unit,
                                               uint32_t *n)
{
    const struct home_thing_limit *found = NULL;
    *n = 0;
    for (uint32_t i = 0; i < x->thing->n_limits; i++) {
        const struct home_thing_limit *l = &x->thing->limits[i];
        if (unit && !gate_units_fit(x->t, unit, gate_unit_of(x->t, x->thing, l->ability)))
            continue;
        found = l;
        (*n)++;
    }
    return found;
}

static const struct home_unit *unit_in(const struct home_table *t, const struct home_quantity *q,
                                       const char *unit)
{
    for (uint32_t i = 0; i < q->n_units; i++)
        if (gate_units_fit(t, unit, q->units[i]->name))
            return q->units[i];
    return NULL;
}

/* The same of the numbers that things of its kind have. */
static const char *ability_in(const struct question *x, const char *unit, uint32_t *n)
{
    const char *found = NULL;
    *n = 0;
    for (uint32_t i = 0; i < x->thing->abilities.n; i++) {
        const struct home_quantity *q = home_table_quantity(x->t, x->thing->abilities.w[i]);
        if (!q || form_of(x->t, q->ability).states || (unit && !unit_in(x->t, q, unit)))
            continue;
        found = q->ability;
        (*n)++;
    }
    return found;
}

/* "Set it to 40 psi": the unit, or the only number that the thing has, says what. */
static bool choose_ability(struct question *x)
{
    struct home_deed *d = &x->out.deed;
    uint32_t n;
    const struct home_thing_limit *own = limit_in(x, d->unit, &n);
    if (n > 1)
        return decide(x, GATE_ASK_QUANTITY, GATE_WHY_UNCLEAR);
    if (n == 1) {
        d->ability = own->ability;
        return true;
    }
    bool open = x->thing->abilities.n == 0 || has_settings(x->t, x->thing);
    if (!d->unit && open) /* it may have settings that nobody listed */
        return decide(x, GATE_ASK_QUANTITY, GATE_WHY_UNCLEAR);
    const char *ability = ability_in(x, d->unit, &n);
    const struct home_unit *u = d->unit ? home_table_unit(x->t, d->unit) : NULL;
    if (n == 0 && u && open && x->thing->n_limits == 0 && home_table_quantity(x->t, u->of)) {
        ability = u->of;
        n = 1;
    }
    if (n == 1) {
        d->ability = ability;
        return true;
    }
    if (n > 1 || (u && open && x->thing->n_limits == 0))
        return decide(x, GATE_ASK_QUANTITY, GATE_WHY_UNCLEAR);
    return decide(x, GATE_REFUSE, d->unit ? GATE_WHY_UNIT : GATE_WHY_UNABLE);
}

/* ---- numbers -------------------------------------------------------------------------------- */

struct range {
    double min, max;
    const char *unit; /* NULL: none */
    bool known, own;  /* own: of the home file */
};

/* for_risk: everything that the thing may be counts, and every number but 0 is some of each state.
 */
static bool rule_fits(const struct question *x, const struct home_rule *r, bool for_risk)
{
    const struct home_deed *d = &x->out.deed;
    const char *any = any_setting(x->t);
    bool kind = r->kinds.n == 0, ability = r->abilities.n == 0, to = r->to.n == 0;
    for (uint32_t i = 0; i < r->kinds.n && !kind; i++)
        kind = home_table_kind_is(x->thing->is, r->kinds.w[i]) ||
               (for_risk && home_table_kind_is(x->thing->also, r->kinds.w[i])) ||
               (x->thing->type == HOME_THING_MACHINE &&
                strcmp(r->kinds.w[i], home_file_type_name(HOME_THING_MACHINE)) == 0);
    for (uint32_t i = 0; d->ability && i < r->abilities.n && !ability; i++)
        ability =
            strcmp(r->abilities.w[i], d->ability) == 0 ||
            (any && strcmp(r->abilities.w[i], any) == 0 && !home_table_ability(x->t, d->ability));
    for (uint32_t i = 0; d->ability && i < r->to.n && !to; i++)
        to = d->text ? strcmp(r->to.w[i], d->text) == 0
                     : for_risk && (d->number != 0.0 || d->change);
    bool action = r->actions.n == 0 || (d->action && home_table_lists(&r->actions, d->action));
    return kind && ability && to && action;
}

/* The limits of the number that the deed sets, in `unit`. */
static struct range range_of(const struct question *x, const char *unit)
{
    uint32_t n;
    const struct home_thing_limit *own = own_limit(x->thing, x->out.deed.ability, &n);
    if (own && n == 1)
        return (struct range){own->min, own->max, unit, true, true};
    for (uint32_t i = 0; i < x->t->n_limits; i++) {
        const struct home_limit *l = &x->t->limits[i];
        struct range r = {l->min, l->max, unit, true, false};
        if (rule_fits(x, &l->when, false) &&
            gate_units_convert(x->t, l->unit->name, unit, false, &r.min) &&
            gate_units_convert(x->t, l->unit->name, unit, false, &r.max))
            return r;
    }
    return (struct range){.unit = unit};
}

/* The unit that the thing takes the number in; NULL: none. */
static const char *unit_of(const struct question *x)
{
    const struct home_deed *d = &x->out.deed;
    uint32_t n;
    const struct home_quantity *q = quantity_of(x->t, d->ability);
    if (!d->unit || own_limit(x->thing, d->ability, &n))
        return gate_unit_of(x->t, x->thing, d->ability);
    const struct home_unit *u = q ? unit_in(x->t, q, d->unit) : home_table_unit(x->t, d->unit);
    return u ? u->name : NULL;
}

/* The present value in a unit; false: it is not known. */
static bool present(const struct question *x, const char *unit, double *out)
{
    struct home_state s;
    struct arena a;
    const struct home_deed *d = &x->out.deed;
    if (!x->g->states || !d->id)
        return false;
    arena_init(&a, STATE_BYTES);
    bool known = home_states_get(x->g->states, &a, d->id, d->ability, &s) && a.rc == 0 && !s.text;
    *out = s.number;
    known = known && (!s.unit || gate_units_convert(x->t, s.unit, unit, false, out));
    arena_fini(&a);
    return known && isfinite(*out);
}

static bool beyond(struct question *x, const struct range *r, enum gate_why why, double limit)
{
    x->out.limit = limit;
    x->out.unit = r->unit;
    return decide(x, GATE_REFUSE, why);
}

/* A value, or a change whose result is known. */
static bool check_value(struct question *x, const struct range *r)
{
    struct home_deed *d = &x->out.deed;
    double slack = ROUNDING * (1.0 + fabs(r->min) + fabs(r->max));
    if (d->number > r->max + slack)
        return beyond(x, r, GATE_WHY_ABOVE, r->max);
    if (d->number < r->min - slack)
        return beyond(x, r, GATE_WHY_BELOW, r->min);
    d->number = d->number > r->max ? r->max : d->number < r->min ? r->min : d->number;
    return true;
}

/* Finds what is set, converts the number and compares it with the limits; false: decided. *weak:
 * why it can only happen after a yes. */
static bool check_number(struct question *x, enum gate_why *weak)
{
    struct home_deed *d = &x->out.deed;
    double now = 0.0;
    uint32_t n;
    if (!isfinite(d->number))
        return decide(x, GATE_ASK_VALUE, GATE_WHY_UNCLEAR);
    const struct home_thing_limit *own = own_limit(x->thing, d->ability, &n);
    bool any = form_of(x->t, d->ability).any && !own;
    if (any && !choose_ability(x))
        return false;
    if (n > 1 || (!any && !own && x->thing->n_limits > 0 && !home_table_ability(x->t, d->ability)))
        return decide(x, GATE_ASK_QUANTITY, GATE_WHY_UNCLEAR); /* none of the listed settings */
    if (own)
        d->ability = own->ability;
    const char *unit = unit_of(x);
    if (d->unit && !gate_units_convert(x->t, d->unit, unit, d->change, &d->number))
        return decide(x, GATE_REFUSE, GATE_WHY_UNIT);
    d->unit = unit;
    struct range r = range_of(x, unit);
    if (d->change && present(x, unit, &now)) {
        d->number += now;
        d->change = false;
    }
    if (!r.known) {
        *weak = GATE_WHY_NO_LIMITS;
        return true;
    }
    if (!d->change)
        return check_value(x, &r);
    if (fabs(d->number) > (r.max - r.min) * (1.0 + ROUNDING))
        return beyond(x, &r, GATE_WHY_SPAN, r.max - r.min);
    if (r.own || is_machine(x->thing))
        *weak = GATE_WHY_PRESENT;
    return true;
}

/* ---- the decision --------------------------------------------------------------------------- */

static bool is_state(const struct home_table *t, const char *ability, const char *text)
{
    for (uint32_t i = 0; i < t->n_actions; i++) {
        const struct home_effect *e = t->action[i].effect;
        if (e && e->to && strcmp(e->ability, ability) == 0 && strcmp(e->to, text) == 0)
            return true;
    }
    return false;
}

/* Is the value one that the ability can have?  false: decided. */
static bool check_form(struct question *x, enum gate_why *weak)
{
    const struct home_deed *d = &x->out.deed;
    struct form f = form_of(x->t, d->ability);
    if (!d->text)
        return f.number ? check_number(x, weak) : f.texts || decide(x, GATE_REFUSE, GATE_WHY_STATE);
    if (f.texts)
        return true;
    if (!f.states)
        return decide(x, GATE_ASK_VALUE, GATE_WHY_UNCLEAR);
    return is_state(x->t, d->ability, d->text) || decide(x, GATE_REFUSE, GATE_WHY_STATE);
}

static bool any_fits(const struct question *x, const struct home_rules *rules, bool for_risk)
{
    for (uint32_t i = 0; i < rules->n; i++)
        if (rule_fits(x, &rules->v[i], for_risk))
            return true;
    return false;
}

static enum home_risk risk_of(const struct question *x)
{
    enum home_risk risk = HOME_RISK_COUNT - 1;
    while (risk > HOME_RISK_HARMLESS && !any_fits(x, &x->t->risk[risk].rules, true))
        risk--;
    if (x->out.deed.ability && any_fits(x, &x->t->rest, false))
        return risk < HOME_RISK_DISTURBING ? risk : HOME_RISK_DISTURBING;
    return x->thing->has_risk && x->thing->risk > risk ? x->thing->risk : risk;
}

struct gate_verdict gate_check_thing(const struct gate *g, const struct home_thing *thing,
                                     const struct home_deed *deed, bool confirmed)
{
    struct question x = {.g = g, .t = g->table, .thing = thing, .out.deed = *deed};
    enum gate_why weak = GATE_WHY_NOTHING;
    x.out.thing = thing;
    x.out.risk = risk_of(&x);
    bool closed =
        g->file && !g->file->open && thing->id; /* without an id it is known by its words */
    if (deed->ability && closed && !gate_able(g->table, thing, deed->ability)) {
        (void)decide(&x, GATE_REFUSE, GATE_WHY_UNABLE);
        return x.out;
    }
    if (deed->ability && !check_form(&x, &weak))
        return x.out;
    x.out.risk = risk_of(&x); /* the ability may have become clear */
    if (g->table->risk[x.out.risk].confirm)
        weak = GATE_WHY_RISK;
    if (weak != GATE_WHY_NOTHING)
        x.out.risk = HOME_RISK_DANGEROUS;
    if (weak != GATE_WHY_NOTHING && !confirmed)
        (void)decide(&x, GATE_CONFIRM, weak);
    return x.out;
}

struct gate_verdict gate_check(const struct gate *g, const struct home_deed *deed, bool confirmed)
{
    const struct home_thing *listed = g->file ? home_file_thing(g->file, deed->id) : NULL;
    if (listed && (listed->type == HOME_THING_DEVICE || listed->type == HOME_THING_MACHINE))
        return gate_check_thing(g, listed, deed, confirmed);
    if (g->file && !g->file->open)
        return (struct gate_verdict){.answer = GATE_REFUSE, .why = GATE_WHY_GONE, .deed = *deed};
    const struct home_thing named = {.type = HOME_THING_DEVICE,
                                     .id = deed->id,
                                     .kind = "",
                                     .is = home_table_kind_named(g->table, deed->id)};
    struct gate_verdict v = gate_check_thing(g, &named, deed, confirmed);
    v.thing = NULL;
    return v;
}

struct gate_verdict gate_carry(const struct gate *g, struct home_sink *sink,
                               const struct home_deed *deed, bool confirmed, home_sink_done_fn done,
                               void *ctx)
{
    struct gate_verdict v = gate_check(g, deed, confirmed);
    if (v.answer == GATE_PASS && sink)
        sink->ops->carry(sink, &v.deed, done, ctx);
    return v;
}
