/* gate_plan.c - see gate_plan.h. */
#include "apps/home/gate/gate_plan.h"

#include <string.h>

#include "apps/home/table/home_words.h"

static const struct ask_plan_field *number_field(const struct ask_plan_action *o, const char *key)
{
    const struct ask_plan_field *f = ask_plan_field_of(o, key);
    return f && !f->text && f->n_items == 0 ? f : NULL;
}

/* The ability and value that the action sets; false: none. */
static bool value_of(const struct home_action *x, const struct ask_plan_action *o,
                     struct home_deed *out)
{
    const struct home_effect *e = x->effect;
    if (!e)
        return false;
    *out = (struct home_deed){.ability = e->ability, .text = e->to, .action = o->name};
    const char *named = e->named_by ? ask_plan_text_of(o, e->named_by->name) : NULL;
    if (named && *named)
        out->ability = named;
    const struct ask_plan_field *v = e->slot ? ask_plan_field_of(o, e->slot->name) : NULL,
                                *by = number_field(o, "change");
    if (e->to && !(e->partly && number_field(o, e->slot->name)))
        return true;
    if (e->to) { /* "open the blinds to 30 percent" */
        out->ability = e->partly;
        out->text = NULL;
    }
    if (by) {
        out->change = true;
        out->number = by->number;
    } else if (v && v->n_items == 0) {
        out->text = v->text;
        out->number = v->number;
    } else {
        return false;
    }
    out->unit = out->text ? NULL : ask_plan_text_of(o, "unit");
    return true;
}

static const struct home_thing *scene_of(const struct gate *g, const struct ask_plan_action *o)
{
    const char *id = ask_plan_text_of(o, "id");
    const struct home_thing *x = g->file && id ? home_file_thing(g->file, id) : NULL;
    return x && x->type == HOME_THING_SCENE ? x : NULL;
}

uint32_t gate_plan_deeds(struct arena *a, const struct gate *g, const struct ask_plan_action *o,
                         struct home_deed **out)
{
    const struct home_action *x = home_table_action(g->table, o->name);
    const struct ask_plan_field *id = ask_plan_field_of(o, "id"),
                                *ids = ask_plan_field_of(o, "ids");
    const struct home_thing *scene = scene_of(g, o);
    struct home_deed deed;
    *out = NULL;
    if (!x || (!id && !ids) || (!scene && !value_of(x, o, &deed)))
        return 0;
    uint32_t n = scene ? scene->n_sets : ids ? ids->n_items : 1;
    struct home_deed *v = arena_zalloc_n(a, (size_t)n + 1, sizeof(*v));
    for (uint32_t i = 0; v && i < n; i++) {
        const struct home_thing_set *s = scene ? &scene->sets[i] : NULL;
        if (s)
            deed = (struct home_deed){
                .ability = s->ability, .text = s->text, .number = s->number, .action = o->name};
        v[i] = deed;
        v[i].id = s ? s->thing->id : ids ? ids->items[i] : id->text;
    }
    *out = v;
    return v ? n : 0;
}

/* The thing of an action that has none in the home, by its words. */
static struct home_thing named_thing(struct arena *a, const struct gate *g,
                                     const struct home_action *x, const struct ask_plan_action *o)
{
    struct home_thing out = {.type = HOME_THING_DEVICE, .kind = ""};
    for (uint32_t i = 0; i < x->n_slots; i++)
        for (enum home_thing_type k = HOME_THING_DEVICE; k <= HOME_THING_MACHINE; k++) {
            const char *text = strcmp(x->slots[i]->name, home_file_type_name(k)) == 0
                                   ? ask_plan_text_of(o, x->slots[i]->name)
                                   : NULL;
            if (text) {
                out.type = k;
                out.is = home_table_kind_named(g->table, home_words_lower(a, text));
            }
        }
    return out;
}

/* A scene or a person that the home has no more; each deed looks for its own thing. */
static bool is_gone(const struct gate *g, const struct ask_plan_action *o)
{
    const char *id = ask_plan_text_of(o, "id");
    return g->file && !g->file->open && id && !home_file_thing(g->file, id);
}

struct gate_verdict gate_plan_check(struct arena *a, const struct gate *g,
                                    const struct ask_plan_action *o, bool confirmed)
{
    const struct home_action *x = home_table_action(g->table, o->name);
    struct gate_verdict out = {.answer = GATE_REFUSE, .why = GATE_WHY_ACTION};
    struct home_deed *deeds, none;
    if (!x)
        return out;
    out.why = GATE_WHY_GONE;
    if (is_gone(g, o))
        return out;
    uint32_t n = gate_plan_deeds(a, g, o, &deeds);
    const struct home_thing *scene = scene_of(g, o);
    struct home_thing named = scene ? *scene : named_thing(a, g, x, o);
    if (scene || !value_of(x, o, &none))
        none = (struct home_deed){.action = o->name};
    if (n == 0 || scene)
        out = gate_check_thing(g, &named, &none, confirmed);
    else
        out = gate_check(g, &deeds[0], confirmed);
    enum home_risk risk = out.risk;
    for (uint32_t i = scene ? 0 : 1; i < n; i++) {
        struct gate_verdict v = gate_check(g, &deeds[i], confirmed);
        risk = v.risk > risk ? v.risk : risk;
        out = v.answer > out.answer ? v : out;
    }
    if (out.thing == &named)
        out.thing = NULL;
    out.risk = risk;
    return out;
}
