/* home_allow.c - see home_allow.h. */
#include "apps/home/home_allow.h"

#include <string.h>

#include "apps/home/home_answer.h"
#include "apps/home/home_risk.h"
#include "apps/home/table/home_words.h"

bool home_allow_able(struct home_allow *w)
{
    const char *ability = w->action->effect ? w->action->effect->ability : NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n_things; i++)
        if (!ability || w->things[i]->type == HOME_THING_SCENE ||
            home_file_able(w->things[i], ability))
            w->things[n++] = w->things[i];
    bool able = n > 0 || w->n_things == 0;
    if (able)
        w->n_things = n;
    return able;
}

const char *home_allow_thing(const struct home_allow *w)
{
    const char *out = "";
    for (uint32_t i = 0; i < w->action->n_slots; i++) {
        const struct home_slot *s = w->action->slots[i];
        bool named = s->type == HOME_SLOT_TEXT && !s->gather;
        const char *text = named ? ask_plan_text_of(w->o, s->name) : NULL;
        if (text)
            out = arena_printf(w->a, "%s %s", out, home_words_lower(w->a, text));
    }
    for (uint32_t i = 0; i < w->n_things && i < 16; i++)
        out = arena_printf(w->a, "%s %s %s", out, w->things[i]->names.w[0], w->things[i]->kind);
    return out;
}

/* A thing's own limit for the action's number; NULL: the table's limits apply. */
static const struct home_thing_limit *limit_of(const struct home_allow *w,
                                               const struct home_thing *thing)
{
    const struct home_effect *e = w->action->effect;
    const char *name = e && e->named_by ? ask_plan_text_of(w->o, e->named_by->name) : NULL;
    const char *unit = ask_plan_text_of(w->o, "unit");
    for (uint32_t i = 0; e && i < thing->n_limits; i++) {
        const struct home_thing_limit *l = &thing->limits[i];
        bool same_unit = l->unit && unit && strcmp(l->unit, unit) == 0;
        if (strcmp(l->ability, name ? name : e->ability) == 0 && (!l->unit || same_unit))
            return l;
        if (!name && e->named_by && same_unit) /* "set router 5 to 20,000 rpm": its speed */
            return l;
    }
    return NULL;
}

/* Does the action bring a thing to rest?  That must never wait for a yes because the thing is
 * dangerous: it is the more so while it runs. */
static bool stops(const struct home_allow *w)
{
    const struct home_effect *e = w->action->effect;
    bool off = e && e->to && strcmp(e->ability, "power") == 0 && strcmp(e->to, "off") == 0;
    if (w->action == w->t->stop.device || w->action == w->t->stop.machine)
        return true;
    for (uint32_t i = 0; i < w->n_things; i++)
        off &= w->things[i]->type == HOME_THING_MACHINE;
    return off && w->n_things > 0;
}

enum home_risk home_allow_risk(const struct home_allow *w, const char *thing)
{
    enum home_risk risk = HOME_RISK_HARMLESS;
    bool all = w->n_things > 0;
    if (stops(w))
        return home_risk_of(w->a, w->t, w->action, thing);
    for (uint32_t i = 0; i < w->n_things; i++) {
        all &= w->things[i]->has_risk;
        if (w->things[i]->has_risk && w->things[i]->risk > risk)
            risk = w->things[i]->risk;
    }
    enum home_risk usual = all ? risk : home_risk_of(w->a, w->t, w->action, thing);
    return usual > risk ? usual : risk;
}

/* "the maximum is 30 degrees" */
static const char *beyond(const struct home_allow *w, double number, double min, double max)
{
    return arena_printf(
        w->a, "the %s is %s", number > max ? "maximum" : "minimum",
        home_answer_number(w->a, w->t, number > max ? max : min, ask_plan_text_of(w->o, "unit")));
}

const char *home_allow_limits(const struct home_allow *w, const char *thing)
{
    const struct ask_plan_field *f = ask_plan_field_of(w->o, "value");
    if (!f || f->text || f->n_items)
        return NULL;
    bool own = false;
    for (uint32_t i = 0; i < w->n_things; i++) {
        const struct home_thing_limit *l = limit_of(w, w->things[i]);
        own |= l != NULL;
        if (l && (f->number > l->max || f->number < l->min))
            return beyond(w, f->number, l->min, l->max);
    }
    if (own)
        return NULL;
    const struct home_limit *l =
        home_risk_limit(w->a, w->t, w->action, thing, ask_plan_text_of(w->o, "unit"), f->number);
    return l ? beyond(w, f->number, l->min, l->max) : NULL;
}

/* Finds the things of an action in the file; false: one no longer exists. */
static bool find_things(struct home_allow *w, const struct home_file *f)
{
    const struct ask_plan_field *id = ask_plan_field_of(w->o, "id"),
                                *ids = ask_plan_field_of(w->o, "ids");
    uint32_t n = ids ? ids->n_items : id && id->text ? 1 : 0;
    w->things = arena_zalloc_n(w->a, (size_t)n + 1, sizeof(*w->things));
    for (uint32_t i = 0; w->things && i < n; i++) {
        const struct home_thing *thing = home_file_thing(f, ids ? ids->items[i] : id->text);
        if (thing)
            w->things[w->n_things++] = thing;
        else if (!f->open)
            return false;
    }
    return true;
}

const char *home_allow_denied(struct arena *a, const struct home_table *t,
                              const struct home_file *f, const struct ask_plan_action *o,
                              bool confirmed)
{
    struct home_allow w = {.a = a, .t = t, .action = home_table_action(t, o->name), .o = o};
    if (!w.action)
        return "this action is not known any more";
    if (f && !find_things(&w, f))
        return "it is not in the home any more";
    if (w.n_things > 0 && !home_allow_able(&w))
        return arena_printf(a, "%s has no %s", w.things[0]->names.w[0], w.action->effect->ability);
    const char *thing = home_allow_thing(&w);
    if (!confirmed && t->risk[home_allow_risk(&w, thing)].confirm)
        return "it is dangerous, and nobody confirmed it";
    return home_allow_limits(&w, thing);
}
