/* read_target.c - see read_target.h. */
#include "apps/home/read/read_target.h"

#include <string.h>

struct finding {
    struct arena *a;
    const struct home_table *t;
    const struct home_file *file;
    const struct read_lines *lines;
    const struct read_lines_state *state;
    const struct read_plan_act *act;
    struct read_target *out;
};

const char *read_target_words(struct arena *a, const struct read_lines *lines,
                              struct read_plan_span span)
{
    const uint32_t to = span.to < lines->words.n ? span.to : lines->words.n;
    if (span.to == 0 || span.from >= to)
        return NULL;
    return home_words_trim_end(a, home_words_join(a, &lines->words, span.from, to),
                               HOME_WORDS_CLOSING);
}

/* "a, b and c" */
static const char *joined(const struct finding *f, const char *text, const char *next, bool last)
{
    if (!text)
        return next;
    return last ? arena_printf(f->a, "%s %s %s", text, f->t->list_and, next)
                : arena_printf(f->a, "%s, %s", text, next);
}

/* ---- places --------------------------------------------------------------------------------- */

static bool has_place(const struct read_plan_act *x)
{
    return x->areas.n > 0 || x->floors.n > 0 || x->here || x->elsewhere.to > 0;
}

static bool is_there(const struct finding *f, const struct home_thing *x)
{
    const struct read_plan_act *act = f->act;
    if (!has_place(act))
        return true;
    for (uint32_t i = 0; i < act->areas.n; i++)
        if (act->areas.at[i] < f->lines->n_areas && x->room == f->lines->areas[act->areas.at[i]])
            return true;
    for (uint32_t i = 0; i < act->floors.n; i++)
        if (act->floors.at[i] < f->lines->n_floors && x->room && x->room->floor &&
            strcmp(x->room->floor, f->lines->floors[act->floors.at[i]]) == 0)
            return true;
    return act->here && f->state->here && x->room == f->state->here;
}

static const char *place_name(const struct finding *f)
{
    const struct read_plan_act *act = f->act;
    const char *text = NULL;
    for (uint32_t i = 0; i < act->areas.n; i++)
        if (act->areas.at[i] < f->lines->n_areas)
            text = joined(f, text, f->lines->areas[act->areas.at[i]]->names.w[0],
                          i + 1 == act->areas.n);
    for (uint32_t i = 0; i < act->floors.n; i++)
        if (act->floors.at[i] < f->lines->n_floors)
            text = joined(f, text, f->lines->floors[act->floors.at[i]], i + 1 == act->floors.n);
    return !text && act->here && f->state->here ? f->state->here->names.w[0] : text;
}

/* ---- classes -------------------------------------------------------------------------------- */

/* Several classes share a kind: the first of them means all of that kind, another one only the
 * things that are called so. */
static bool is_of(const struct finding *f, const struct home_class *c, const struct home_thing *x,
                  bool of_its_kind)
{
    const struct home_plans *p = &f->t->plans;
    const bool acts = x->type == HOME_THING_DEVICE || x->type == HOME_THING_MACHINE,
               tells = strcmp(f->act->verb, "ask") == 0 && x->type == HOME_THING_SENSOR;
    if (c->kinds.n == 0)
        return strcmp(c->name, "everything") == 0 ? acts || tells
                                                  : read_lines_class(f->a, f->t, x) == c;
    if (c->means.n > 0) /* "the heating" is what is called so, not all that gets hot */
        return acts && read_lines_called(f->a, f->t, x, &c->words) &&
               (!of_its_kind || home_file_is(x, &c->means));
    if (!acts && !tells)
        return false;
    if (!home_file_is(x, &c->kinds))
        return false;
    const struct home_class *first = p->classes;
    while (first < p->classes + p->n_classes && !home_file_is(x, &first->kinds))
        first++;
    return first == c || c < p->classes || c >= p->classes + p->n_classes ||
           read_lines_class(f->a, f->t, x) == c;
}

static bool is_excepted(const struct finding *f, const struct home_thing *x)
{
    for (uint32_t i = 0; i < f->act->except.n; i++)
        if (f->act->except.at[i] < f->lines->n_things &&
            f->lines->things[f->act->except.at[i]].thing == x)
            return true;
    for (uint32_t i = 0; i < f->act->except_areas.n; i++)
        if (f->act->except_areas.at[i] < f->lines->n_areas &&
            f->lines->areas[f->act->except_areas.at[i]] == x->room)
            return true;
    return false;
}

static void call_things(const struct finding *f);

/* Says what is left as it is. */
static void name_exception(const struct finding *f)
{
    const struct read_plan_act *act = f->act;
    struct read_target *o = f->out;
    const char *text = NULL;
    for (uint32_t i = 0; i < act->except_areas.n; i++)
        if (act->except_areas.at[i] < f->lines->n_areas)
            text = joined(f, text, f->lines->areas[act->except_areas.at[i]]->names.w[0],
                          i + 1 == act->except_areas.n);
    const bool rooms = text != NULL;
    for (uint32_t i = 0; !rooms && i < act->except.n; i++)
        if (act->except.at[i] < f->lines->n_things)
            text = joined(f, text, f->lines->things[act->except.at[i]].thing->names.w[0],
                          i + 1 == act->except.n);
    o->except = text;
    if (text && o->device)
        o->said = home_table_part(f->a, f->t, rooms ? HOME_PART_EXCEPT_IN : HOME_PART_EXCEPT,
                                  o->device, text);
}

/* room NULL: wherever the act says. A plug that is called "heater" is heating only where nothing
 * else is. */
static void collect(const struct finding *f, const struct home_class *c,
                    const struct home_thing *room)
{
    struct read_target *o = f->out;
    o->n = 0;
    for (int loosely = c->means.n == 0; o->n == 0 && loosely < 2; loosely++)
        for (uint32_t i = 0; i < f->file->n_things; i++) {
            const struct home_thing *x = &f->file->things[i];
            if (is_of(f, c, x, !loosely) && is_there(f, x) && !is_excepted(f, x) &&
                (!room || x->room == room))
                o->things[o->n++] = x;
        }
}

static bool is_in(const struct finding *f, const struct home_thing *room)
{
    for (uint32_t i = 0; i < f->out->n; i++)
        if (f->out->things[i]->room == room)
            return true;
    return false;
}

static void find_class(const struct finding *f)
{
    struct read_target *o = f->out;
    const struct read_plan_act *act = f->act;
    const struct home_class *c =
        act->class ? home_table_class(f->t, act->class) : home_table_class(f->t, "everything");
    const bool free = !has_place(act) && !act->everywhere && !act->all && act->except_areas.n == 0;
    if (!c)
        return;
    o->class = c;
    o->room = place_name(f);
    o->device = act->class ? c->many : NULL;
    o->result = READ_TARGET_THINGS;
    for (const struct home_class *x = c; x && o->n == 0; x = x == c ? c->but : NULL) {
        if (free && f->state->here)
            collect(f, x, f->state->here);
        if (o->n == 0)
            collect(f, x, NULL);
    }
    /* a setting where the speaker's room has nothing for it, and others have: which is not guessed
     */
    if (o->n > 1 && free && f->state->here && act->value.to > 0 && !is_in(f, f->state->here)) {
        o->n = 0;
        o->room = f->state->here->names.w[0];
    } else if (o->n == 0 && c->means.n > 0) {
        const struct home_class kinds = {.name = c->name, .kinds = c->means};
        collect(f, &kinds, NULL);
    }
    if (o->n == 1 && act->class && o->things[0]->type != HOME_THING_SENSOR)
        call_things(f);
    else
        name_exception(f);
    if (o->n == 0) {
        o->result = f->file->open ? READ_TARGET_NAMED : READ_TARGET_UNKNOWN;
        o->what =
            o->room ? home_table_part(f->a, f->t, HOME_PART_PLACE, c->many, o->room) : c->many;
    }
}

/* ---- things --------------------------------------------------------------------------------- */

static void call_things(const struct finding *f)
{
    struct read_target *o = f->out;
    const struct home_thing *room = o->n > 0 ? o->things[0]->room : NULL;
    o->device = o->room = NULL;
    for (uint32_t i = 0; i < o->n; i++) {
        o->device = joined(f, o->device, o->things[i]->names.w[0], i + 1 == o->n);
        room = o->things[i]->room == room ? room : NULL;
    }
    if (room && !strstr(o->device, room->names.w[0]))
        o->room = room->names.w[0];
}

static void find_things(const struct finding *f)
{
    struct read_target *o = f->out;
    for (uint32_t i = 0; i < f->act->things.n; i++)
        if (f->act->things.at[i] < f->lines->n_things)
            o->things[o->n++] = f->lines->things[f->act->things.at[i]].thing;
    o->result = f->act->one && o->n > 1 ? READ_TARGET_ONE_OF : READ_TARGET_THINGS;
    call_things(f);
}

/* What was spoken of last. */
static void find_last(const struct finding *f)
{
    struct read_target *o = f->out;
    struct home_words w = home_words_split(f->a, f->state->last ? f->state->last : "");
    for (uint32_t i = 0; i < w.n && o->n < READ_PLAN_MAX_THINGS; i++) {
        const struct home_thing *x = w.w[i][0] == '@' ? home_file_thing(f->file, w.w[i] + 1) : NULL;
        if (x && x->type != HOME_THING_ROOM)
            o->things[o->n++] = x;
    }
    o->result = o->n > 0 ? READ_TARGET_THINGS : READ_TARGET_NOTHING;
    call_things(f);
}

struct read_target read_target_of(struct arena *a, const struct home_table *t,
                                  const struct home_file *file, const struct read_lines *lines,
                                  const struct read_lines_state *state,
                                  const struct read_plan_act *act)
{
    static const struct home_file nowhere = {.open = true};
    struct read_target out = {.result = READ_TARGET_NOTHING};
    const struct finding f = {a, t, file ? file : &nowhere, lines, state, act, &out};
    out.things =
        arena_zalloc_n(a, (size_t)f.file->n_things + READ_PLAN_MAX_THINGS, sizeof(*out.things));
    if (!out.things)
        return out;
    if (act->here && !state->here) {
        out.result = READ_TARGET_UNKNOWN; /* nobody said where the speaker is */
        out.what = home_table_part(a, t, HOME_PART_HERE, NULL, NULL);
    } else if (act->unknown.to > 0 || act->elsewhere.to > 0) {
        const bool thing = act->unknown.to > 0;
        out.what = read_target_words(a, lines, thing ? act->unknown : act->elsewhere);
        out.result = f.file->open ? READ_TARGET_NAMED : READ_TARGET_UNKNOWN;
        const struct home_class *c = act->class ? home_table_class(t, act->class) : NULL;
        out.device = thing ? out.what : c ? c->many : NULL;
        out.room = thing ? place_name(&f) : out.what;
    } else if (act->things.n > 0) {
        find_things(&f);
    } else if (act->class || has_place(act) || act->everywhere) {
        find_class(&f);
    } else if (act->it) {
        find_last(&f);
    }
    return out;
}
