/* read_switch.c - see read_switch.h. */
#include "apps/home/read/read_switch.h"

#include <string.h>

#include "apps/home/read/read_make.h"

bool read_switch_can(const struct home_thing *x, const struct home_action *action)
{
    return action && action->effect &&
           (x->type == HOME_THING_SCENE || home_file_able(x, action->effect->ability));
}

/* The action of a verb for a thing: machines have verbs of their own, and what has no power switch
 * may be opened or started. NULL: the table has none. */
static const struct home_action *action_for(const struct read_work *r, const char *verb,
                                            const struct home_thing *x)
{
    static const struct {
        const char *verb, *instead;
    } others[] = {{"on", "open"},  {"on", "start"}, {"off", "close"},
                  {"off", "stop"}, {"start", "on"}, {"stop", "off"}};
    const struct home_action *own = home_table_verb(r->t, verb);
    const struct home_action *machine =
        home_table_verb(r->t, arena_printf(r->a, "%s_machine", verb));
    if (!x || x->type == HOME_THING_SCENE)
        return x ? home_table_verb(r->t, "scene") : own;
    if (x->type == HOME_THING_MACHINE && machine)
        own = machine;
    if (read_switch_can(x, own))
        return own;
    for (uint32_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strcmp(others[i].verb, verb) != 0)
            continue;
        const struct home_action *other = home_table_verb(r->t, others[i].instead);
        if (x->type == HOME_THING_MACHINE &&
            (machine = home_table_verb(r->t, arena_printf(r->a, "%s_machine", others[i].instead))))
            other = machine;
        if (read_switch_can(x, other))
            return other;
    }
    return own;
}

/* The things of a target that one action is for, as a target of their own. */
static struct read_target part_of(const struct read_work *r, const struct read_target *all,
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
void read_switch(struct read_work *r, const struct read_plan_act *p, const char *verb,
                 const struct read_target *all)
{
    bool *done = arena_zalloc_n(r->a, (size_t)all->n + 1, sizeof(*done));
    uint32_t n_able = 0;
    if (!done)
        return;
    for (uint32_t i = 0; i < all->n; i++)
        n_able += read_switch_can(all->things[i], action_for(r, verb, all->things[i]));
    const bool everything = all->class && strcmp(all->class->name, "everything") == 0;
    for (uint32_t i = 0; i < all->n; i++) { /* a class means those that can */
        const struct home_action *x =
            everything ? home_table_verb(r->t, verb) : action_for(r, verb, all->things[i]);
        done[i] = all->class && n_able > 0 && !read_switch_can(all->things[i], x);
    }
    if (all->n == 0 || all->result == READ_TARGET_ONE_OF) {
        struct read_doing d = {.p = p, .target = all};
        const struct home_action *action = action_for(r, verb, all->n > 0 ? all->things[0] : NULL);
        if (action)
            read_make_aim(r, action, &d);
        return;
    }
    for (uint32_t i = 0; i < all->n; i++) {
        const struct home_action *action = done[i] ? NULL : action_for(r, verb, all->things[i]);
        if (!action)
            continue;
        struct read_target part = part_of(r, all, verb, action, done);
        struct read_doing d = {.p = p, .target = &part};
        read_make_aim(r, action, &d);
    }
}
