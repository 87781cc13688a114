/* home_answer.c - see home_answer.h. */
#include "apps/home/home_answer.h"

#include <string.h>

#include "apps/home/site/home_link.h"

const struct home_effect *home_answer_asked(const struct home_table *t,
                                            const struct home_words *plain)
{
    for (uint32_t i = plain->n; i > 0; i--) /* the last word counts: "is the open sign on" */
        for (uint32_t k = 0; k < t->n_actions; k++) {
            const struct home_effect *e = t->action[k].effect;
            if (e && e->to && strcmp(e->to, plain->w[i - 1]) == 0)
                return e;
        }
    return NULL;
}

static const char *get_number(void *ctx, uint32_t var)
{
    (void)var; /* {n} is the only name */
    return ctx;
}

const char *home_answer_number(struct arena *a, const struct home_table *t, double number,
                               const char *unit)
{
    uint32_t i;
    const char *n = arena_printf(a, "%.6g", number);
    if (unit && strmap_get(&t->units, unit, strlen(unit), &i)) {
        const struct home_unit *u = &t->unit[i];
        return home_template_fill(a, number == 1.0 && u->show_one.n > 0 ? &u->show_one : &u->show,
                                  get_number, (void *)(uintptr_t)n);
    }
    return unit ? arena_printf(a, "%s %s", n, unit) : n;
}

static const char *in_words(struct arena *a, const struct home_table *t, const struct home_state *s)
{
    return s->text ? s->text : home_answer_number(a, t, s->number, s->unit);
}

const char *home_answer_state(struct arena *a, const struct home_table *t,
                              const struct home_here *here, const char *id,
                              const struct home_effect *asked)
{
    struct home_state s;
    if (!here->states || !home_states_get(here->states, a, id, asked ? asked->ability : NULL, &s))
        return NULL;
    return in_words(a, t, &s);
}

/* ---- lists ---------------------------------------------------------------------------------- */

struct listing {
    struct arena *a;
    const struct home_here *here;
    const struct home_thing *room; /* NULL: anywhere, or not listed */
    const char *prefix;            /* of the ids of unlisted things; NULL: any */
    const struct home_effect *state;
    const char **out;
    uint32_t n, cap;
};

/* "kitchen_fan" as "kitchen fan", and back. */
static char *replaced(struct arena *a, const char *s, char from, char to)
{
    char *c = arena_copy(a, s, strlen(s) + 1);
    for (char *p = c; p && *p; p++)
        if (*p == from)
            *p = to;
    return c;
}

static const char *name_of(struct listing *l, const char *id)
{
    const struct home_file *f = l->here->file;
    const struct home_thing *x = f ? home_file_thing(f, id) : NULL;
    if (!x)
        return !f || !f->open || (l->prefix && strncmp(id, l->prefix, strlen(l->prefix)) != 0)
                   ? NULL
                   : replaced(l->a, id, '_', ' ');
    if ((l->prefix || l->room) && x->room != l->room)
        return NULL;
    bool alone = !x->room || l->room || strstr(x->names.w[0], x->room->names.w[0]);
    return alone ? x->names.w[0] : arena_printf(l->a, "%s %s", x->room->names.w[0], x->names.w[0]);
}

static void add_state(void *ctx, const char *id, const struct home_state *v)
{
    struct listing *l = ctx;
    if (strcmp(v->ability, l->state->ability) != 0 || !v->text ||
        strcmp(v->text, l->state->to) != 0 || l->n == l->cap)
        return;
    const char *name = name_of(l, id);
    if (name)
        l->out[l->n++] = name;
}

const char *home_answer_list(struct arena *a, const struct home_table *t,
                             const struct home_here *here, const char *room,
                             const struct home_effect *state)
{
    struct listing l = {.a = a, .here = here, .state = state, .cap = 64};
    const char *text = "";
    l.out = arena_zalloc_n(a, l.cap, sizeof(*l.out));
    if (!here->states || !here->file || !l.out)
        return "";
    if (room) {
        const struct home_link_query q = {.types = 1u << HOME_THING_ROOM, .text = room};
        struct home_link link = home_link_find(a, here->file, t, &q);
        l.room = link.result == HOME_LINK_THINGS && link.n == 1 ? link.things[0] : NULL;
        l.prefix = arena_printf(a, "%s_", replaced(a, room, ' ', '_'));
    }
    home_states_each(here->states, add_state, &l);
    for (uint32_t i = 0; i < l.n; i++)
        text = i == 0         ? l.out[0]
               : i + 1 == l.n ? arena_printf(a, "%s %s %s", text, t->list_and, l.out[i])
                              : arena_printf(a, "%s, %s", text, l.out[i]);
    return text;
}
