/* stop_acts.c - see stop_acts.h. */
#include "apps/home/stop/stop_acts.h"

struct stopping {
    struct arena *a;
    const struct home_table *t;
    struct home_draft *draft;
    const struct home_here *here;
    const struct tm *now;
};

static struct home_act begin(struct stopping *d, const struct home_action *action)
{
    struct home_act x = {
        .a = d->a, .t = d->t, .x = action, .now = d->now, .here = d->here, .pairs = ""};
    x.o = arena_zalloc(d->a, sizeof(*x.o));
    if (x.o)
        x.o->name = action->name;
    return x;
}

/* "saw, lathe and press 2" */
static const char *names_of(const struct stopping *d, const struct home_thing *const *things,
                            uint32_t n)
{
    const char *out = "";
    for (uint32_t i = 0; i < n; i++)
        out = arena_printf(d->a, "%s%s%s", out,
                           i == 0 ? ""
                           : i + 1 < n || !d->t->list_and
                               ? ", "
                               : arena_printf(d->a, " %s ", d->t->list_and),
                           things[i]->names.w[0]);
    return out;
}

/* The action that brings a thing to rest, as the words ask for it and as it can. */
static const struct home_action *way_of(const struct home_table *t, const struct home_thing *x,
                                        enum home_stop_way way)
{
    const struct home_action *halt =
        x->type == HOME_THING_MACHINE ? t->stop.machine : t->stop.device;
    bool power = way == HOME_STOP_POWER || (way == HOME_STOP_OFF && halt != t->stop.machine);
    if (power && home_file_able(x, t->stop.power->effect->ability))
        return t->stop.power;
    return home_file_able(x, halt->effect->ability) ? halt : t->stop.power;
}

/* One action on some things, which happens now. */
static void add_stop(struct stopping *d, const struct home_action *action, const char *thing,
                     const char *room, const struct home_thing **things, uint32_t n)
{
    const struct home_slot *in = home_table_slot(d->t, "room");
    struct home_act x = begin(d, action);
    struct home_fill s = {0};
    home_fill_set(&s, home_fill_own(action->needs[0]), thing);
    if (room && in && home_fill_has_slot(action, in))
        home_fill_set(&s, home_fill_own(in), room);
    if (!x.o || !home_draft_reserve(d->a, d->draft))
        return;
    x.things = things;
    x.n_things = n;
    home_act_put_slots(&x, &s);
    home_act_put_id(&x);
    home_act_put_result(&x, "done");
    struct home_draft_line line = home_act_plain_line(&x, HOME_SAY_DONE);
    d->draft->actions[d->draft->n_actions++] = x.o;
    line.action = d->draft->n_actions;
    d->draft->lines[d->draft->n_lines++] = line;
}

/* Those of the things that one action stops; everything: devices and machines together. */
static void stop_things(struct stopping *d, const struct stop *what, const struct home_action *by)
{
    bool everything = what->what == STOP_EVERYTHING;
    const struct home_thing **list =
        arena_zalloc_n(d->a, (size_t)what->n_things + 1, sizeof(*list));
    uint32_t n = 0;
    for (uint32_t i = 0; list && i < what->n_things; i++) {
        const struct home_action *way = way_of(d->t, what->things[i], what->way);
        if (everything && way == d->t->stop.machine)
            way = d->t->stop.device;
        if (way == by)
            list[n++] = what->things[i];
    }
    if (n == 0)
        return;
    if (what->several) {
        for (uint32_t i = 0; list && i < n; i++)
            add_stop(d, by, list[i]->names.w[0], NULL, &list[i], 1);
        return;
    }
    bool named = what->name && n == what->n_things && !everything;
    const char *thing = named ? what->name : names_of(d, list, n);
    const char *room = what->room;
    if (everything && by == d->t->stop.device) {
        thing = d->t->stop.everything;
        room = NULL;
    }
    add_stop(d, by, thing, room, list, n);
}

static void stop_all(struct stopping *d, const struct stop *what)
{
    const struct home_table *t = d->t;
    bool closed = d->here->file && !d->here->file->open;
    if (what->what == STOP_EVERYTHING && what->n_things == 0 && !closed) {
        add_stop(d, t->stop.device, t->stop.everything, NULL, NULL, 0);
        return;
    }
    if (what->what == STOP_EVERYTHING && what->n_things == 0) {
        const char *text = home_template_fill(d->a, &t->say[HOME_SAY_NO_STOP], home_act_text, NULL);
        if (home_draft_reserve(d->a, d->draft))
            d->draft->lines[d->draft->n_lines++] = (struct home_draft_line){.say = text};
        return;
    }
    stop_things(d, what, t->stop.device);
    if (what->what != STOP_EVERYTHING)
        stop_things(d, what, t->stop.machine);
    stop_things(d, what, t->stop.power);
}

void stop_acts(struct arena *a, const struct home_table *t, struct home_draft *draft,
               const struct stop *what, const struct home_here *here, const struct tm *now)
{
    struct stopping d = {.a = a, .t = t, .draft = draft, .here = here, .now = now};
    stop_all(&d, what);
}
