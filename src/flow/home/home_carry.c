/* home_carry.c - see home_carry.h. */
#include "flow/home/home_carry.h"

#include <string.h>

static const struct ask_plan_field *field_of(const struct ask_plan_action *o, const char *key)
{
    for (uint32_t i = 0; i < o->n_fields; i++)
        if (strcmp(o->fields[i].key, key) == 0)
            return &o->fields[i];
    return NULL;
}

static const char *text_of(const struct ask_plan_action *o, const char *key)
{
    const struct ask_plan_field *f = field_of(o, key);
    return f && f->text ? f->text : "";
}

static bool is_question(const struct home_table *t, const struct ask_plan_action *o)
{
    const struct home_action *x = home_table_action(t, o->name);
    return !x || x->answer.n > 0 || x->reason;
}

static bool happens_now(const struct home_table *t, const struct ask_plan_action *o)
{
    return !is_question(t, o) && strcmp(text_of(o, "result"), "done") == 0;
}

/* ---- deeds ---------------------------------------------------------------------------------- */

struct list {
    struct arena *a;
    const struct home_file *f;
    struct home_carry *v;
    uint32_t n, cap;
};

static void add(struct list *l, const struct home_carry *x)
{
    if (l->n == l->cap) {
        uint32_t cap = l->cap ? l->cap * 2 : 8;
        struct home_carry *v = arena_zalloc_n(l->a, cap, sizeof(*v));
        if (!v)
            return;
        if (l->n > 0)
            memcpy(v, l->v, l->n * sizeof(*v));
        l->v = v;
        l->cap = cap;
    }
    l->v[l->n++] = *x;
}

/* What the action sets; false: nothing. */
static bool value_of(const struct home_action *x, const struct ask_plan_action *o,
                     struct home_deed *out)
{
    const struct home_effect *e = x->effect;
    *out = (struct home_deed){.ability = e->ability, .text = e->to, .action = o->name};
    if (e->named_by && *text_of(o, e->named_by->name))
        out->ability = text_of(o, e->named_by->name);
    if (e->to)
        return true;
    const struct ask_plan_field *v = field_of(o, e->slot->name), *by = field_of(o, "change"),
                                *unit = field_of(o, "unit");
    if (by && !by->text) {
        out->change = true;
        out->number = by->number;
    } else if (v && v->n_items == 0) {
        out->text = v->text;
        out->number = v->number;
    } else {
        return false;
    }
    out->unit = unit && !out->text ? unit->text : NULL;
    return true;
}

static void add_scene(struct list *l, const struct home_thing *scene, const char *action,
                      uint32_t index)
{
    for (uint32_t i = 0; i < scene->n_sets; i++) {
        const struct home_thing_set *s = &scene->sets[i];
        add(l, &(struct home_carry){.deed = {.id = s->thing->id,
                                             .ability = s->ability,
                                             .text = s->text,
                                             .number = s->number,
                                             .action = action},
                                    .action = index,
                                    .listed = true});
    }
}

static void add_deed(struct list *l, const struct home_deed *deed, const char *id, uint32_t index)
{
    const struct home_thing *thing = l->f ? home_file_thing(l->f, id) : NULL;
    struct home_carry c = {.deed = *deed, .action = index, .listed = thing != NULL};
    c.deed.id = id;
    add(l, &c);
}

uint32_t home_carry_deeds(struct arena *a, const struct home_table *t, const struct home_file *f,
                          const struct home_draft *d, struct home_carry **out)
{
    struct list l = {.a = a, .f = f};
    for (uint32_t i = 0; i < d->n_actions; i++) {
        const struct ask_plan_action *o = d->actions[i];
        const struct home_action *x = home_table_action(t, o->name);
        const struct ask_plan_field *id = field_of(o, "id"), *ids = field_of(o, "ids");
        struct home_deed deed;
        if (!happens_now(t, o) || (!id && !ids))
            continue;
        const struct home_thing *thing = f && id ? home_file_thing(f, id->text) : NULL;
        if (thing && thing->type == HOME_THING_SCENE) {
            add_scene(&l, thing, o->name, i);
            continue;
        }
        if (!x->effect || !value_of(x, o, &deed))
            continue;
        if (ids)
            for (uint32_t k = 0; k < ids->n_items; k++)
                add_deed(&l, &deed, ids->items[k], i);
        else
            add_deed(&l, &deed, id->text, i);
    }
    *out = l.v;
    return l.n;
}

/* ---- results -------------------------------------------------------------------------------- */

struct words { /* of a line that says why not */
    const char *todo, *reason;
};

static const char *get_word(void *ctx, uint32_t var)
{
    const struct words *w = ctx;
    return var == HOME_VAR_DO ? w->todo : w->reason;
}

/* A copy of the action with another result, and with a reason or the mark "simulated". */
static void set_result(struct arena *a, struct home_draft *d, uint32_t index, const char *result,
                       const char *key, const char *text)
{
    struct ask_plan_action *o = arena_zalloc(a, sizeof(*o));
    if (!o)
        return;
    *o = *d->actions[index];
    for (uint32_t i = 0; i < o->n_fields; i++)
        if (strcmp(o->fields[i].key, "result") == 0)
            o->fields[i].text = result;
    if (key && o->n_fields < ASK_PLAN_MAX_FIELDS)
        o->fields[o->n_fields++] = (struct ask_plan_field){.key = key, .text = text};
    d->actions[index] = o;
}

/* The line of an action that did not happen says why. */
static void say_failed(struct arena *a, const struct home_table *t, struct home_draft *d,
                       uint32_t index, const char *reason)
{
    for (uint32_t i = 0; i < d->n_lines; i++) {
        struct home_draft_line *l = &d->lines[i];
        if (l->action != index + 1)
            continue;
        struct words w = {l->todo ? l->todo : d->actions[index]->name, reason};
        const struct home_template *say = &t->say[HOME_SAY_FAILED];
        const char *text = say->n > 0 ? home_template_fill(a, say, get_word, &w)
                                      : arena_printf(a, "%s: %s", w.todo, reason);
        *l = (struct home_draft_line){.say = text, .action = index + 1};
    }
}

static void set_state(struct home_states *states, const struct home_deed *deed)
{
    const struct home_state v = {
        .ability = deed->ability, .text = deed->text, .number = deed->number, .unit = deed->unit};
    if (deed->change)
        (void)home_states_add(states, deed->id, &v);
    else
        home_states_set(states, deed->id, &v);
}

void home_carry_settle(struct arena *a, const struct home_table *t, struct home_draft *d,
                       const struct home_carry *deeds, uint32_t n, struct home_states *states,
                       bool simulated)
{
    for (uint32_t i = 0; i < d->n_actions; i++) {
        const struct ask_plan_action *o = d->actions[i];
        bool later = !is_question(t, o) && strcmp(text_of(o, "result"), "scheduled") == 0;
        if (later) { /* the reply must not promise it */
            set_result(a, d, i, "scheduled", "simulated", "yes");
            say_failed(a, t, d, i, "nothing here does things later yet");
        }
        if (!happens_now(t, o))
            continue;
        bool carried = false, sent = false;
        const char *reason = NULL;
        for (uint32_t k = 0; k < n; k++) {
            const struct home_carry *c = &deeds[k];
            if (c->action != i)
                continue;
            bool failed = !simulated && c->listed && c->result >= HOME_SINK_FAILED;
            if (!failed)
                set_state(states, &c->deed);
            carried |= c->listed && !simulated;
            sent |= c->result == HOME_SINK_SENT;
            if (failed && !reason)
                reason = c->reason                              ? c->reason
                         : c->result == HOME_SINK_NOT_CONNECTED ? "it is not connected"
                                                                : "it did not work";
        }
        if (reason) {
            set_result(a, d, i, "failed", "reason", reason);
            say_failed(a, t, d, i, reason);
        } else {
            set_result(a, d, i, !carried ? "simulated" : sent ? "sent" : "done", NULL, NULL);
        }
    }
}
