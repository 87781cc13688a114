/* stop_things.c - see stop_things.h. */
#include "apps/home/stop/stop_things.h"

#include <string.h>

#include "apps/home/gate/gate.h"
#include "apps/home/site/home_near.h"

#define MAX_NAME 6u       /* words of a name */
#define MAX_NEAR 3u       /* words that may be one misheard name */
#define MIN_PART_BYTES 3u /* of a word that stands for a whole name */

/* Is what an action makes of the thing dangerous? */
static bool is_dangerous(const struct home_table *t, const struct home_thing *x,
                         const struct home_action *action)
{
    const struct gate g = {.table = t};
    const struct home_effect *e = action->effect;
    const struct home_deed deed = {
        .id = x->id, .action = action->name, .ability = e->ability, .text = e->to};
    return home_file_able(x, e->ability) &&
           gate_check_thing(&g, x, &deed, true).risk == HOME_RISK_DANGEROUS;
}

/* Is anything dangerous that stopping it ends? */
static bool may_harm(const struct home_table *t, const struct home_thing *x)
{
    const struct home_effect *rest[] = {t->stop.device->effect, t->stop.power->effect};
    for (uint32_t i = 0; i < t->n_actions; i++)
        for (uint32_t k = 0; t->action[i].effect && k < 2; k++) {
            const struct home_effect *e = t->action[i].effect;
            if (e->to && strcmp(e->ability, rest[k]->ability) == 0 &&
                strcmp(e->to, rest[k]->to) != 0 && is_dangerous(t, x, &t->action[i]))
                return true;
        }
    return false;
}

/* Does it come to rest safely, with everything or else by its name? What is dangerous to start
 * does, whatever its kind: a plug that is called "kiln". What is dangerous to switch off does not.
 */
static bool rests(const struct home_table *t, const struct home_thing *x, bool everything)
{
    const struct home_stop *s = &t->stop;
    if (x->type != HOME_THING_DEVICE && x->type != HOME_THING_MACHINE)
        return false;
    const bool runs = home_file_able(x, s->device->effect->ability);
    if (!runs && !home_file_able(x, s->power->effect->ability))
        return false;
    if (!x->is || x->type == HOME_THING_MACHINE)
        return true;
    const struct home_action *halt = runs ? s->device : s->power;
    if (is_dangerous(t, x, halt))
        return false; /* a freezer; the plug of the server rack */
    return home_file_is(x, &s->kinds) || may_harm(t, x) ||
           home_file_is(x, everything ? &s->all_kinds : &s->named_kinds);
}

uint32_t stop_things_all(const struct stop_search *s, const struct home_thing *room,
                         const struct home_thing ***out)
{
    uint32_t n = 0, most = s->f ? s->f->n_things : 0;
    *out = arena_zalloc_n(s->a, (size_t)most + 1, sizeof(**out));
    for (uint32_t i = 0; *out && i < most; i++)
        if (rests(s->t, &s->f->things[i], true) && (!room || s->f->things[i].room == room))
            (*out)[n++] = &s->f->things[i];
    return n;
}

/* ---- names ---------------------------------------------------------------------------------- */

static bool same(const struct stop_search *s, const char *said, const char *word)
{
    return stop_words_same(said, word) || stop_words_same_number(s->t, said, word);
}

/* Copies the next word of a name; false: no more. */
static bool next_word(const char **name, char out[HOME_FILE_MAX_NAME_BYTES + 1])
{
    size_t n = strcspn(*name, " "),
           most = n < HOME_FILE_MAX_NAME_BYTES ? n : HOME_FILE_MAX_NAME_BYTES;
    memcpy(out, *name, most);
    out[most] = '\0';
    *name += n + ((*name)[n] == ' ');
    return n > 0;
}

/* Are the words i..to-1 the name, and behind it nothing? *at: the words of it that were found. */
static bool is_name(const struct stop_search *s, uint32_t i, uint32_t to, const char *name,
                    uint32_t *at)
{
    char w[HOME_FILE_MAX_NAME_BYTES + 1];
    while (next_word(&name, w)) {
        /* "pump number 3" */
        while (i < to && home_table_lists(&s->t->stop.number, s->x->w.w[i]))
            i++;
        if (i == to || !same(s, s->x->w.w[i], w))
            return false;
        i++;
    }
    *at = i;
    return true;
}

/* "cellar pump": the room, then the name. */
static bool is_in_room(const struct stop_search *s, uint32_t i, uint32_t to,
                       const struct home_thing *x, const char *name)
{
    uint32_t at, end;
    for (uint32_t k = 0; x->room && k < x->room->names.n; k++)
        if (is_name(s, i, to, x->room->names.w[k], &at) && is_name(s, at, to, name, &end) &&
            end == to)
            return true;
    return false;
}

/* All words i..to-1 are words of the name, and not only numbers. */
static bool is_part(const struct stop_search *s, uint32_t i, uint32_t to, const char *name)
{
    bool says = false;
    for (; i < to; i++) {
        const char *p = name;
        char w[HOME_FILE_MAX_NAME_BYTES + 1];
        bool found = home_table_lists(&s->t->stop.number, s->x->w.w[i]);
        while (!found && next_word(&p, w))
            found = same(s, s->x->w.w[i], w);
        if (!found)
            return false;
        says |= !stop_words_is_number(s->t, s->x->w.w[i]) &&
                strlen(s->x->w.w[i]) >= MIN_PART_BYTES &&
                !home_table_lists(&s->t->stop.before_name, s->x->w.w[i]);
    }
    return says;
}

/* Some kinds are too vague to be stopped by: who says "switch" means anything. */
static bool is_kind(const struct stop_search *s, uint32_t i, uint32_t to,
                    const struct home_thing *x)
{
    bool vague = home_file_is(x, &s->t->stop.named_kinds);
    const struct home_kind *k = vague || s->f->open ? NULL : x->is;
    uint32_t at;
    /* the first word is that for all of the kind; an oven is no boiler */
    for (; k; k = k->is)
        if (k->words.n > 0 && is_name(s, i, to, k->words.w[0], &at) && at == to)
            return true;
    return false;
}

/* Is the last word that is said also the name's, codes aside? "Engine" is a "port engine" rather
 * than an "engine room blower". */
static bool is_head(const struct stop_search *s, uint32_t i, uint32_t to, const char *name)
{
    char w[HOME_FILE_MAX_NAME_BYTES + 1], head[HOME_FILE_MAX_NAME_BYTES + 1] = "";
    while (next_word(&name, w))
        if (!stop_words_is_number(s->t, w))
            memcpy(head, w, sizeof(head));
    while (to > i + 1 && stop_words_is_number(s->t, s->x->w.w[to - 1]))
        to--;
    return same(s, s->x->w.w[to - 1], head);
}

enum fit { FIT_NOT, FIT_KIND, FIT_PART, FIT_HEAD, FIT_NAME }; /* higher is better */

static enum fit fit_of(const struct stop_search *s, uint32_t i, uint32_t to,
                       const struct home_thing *x)
{
    enum fit best = is_kind(s, i, to, x) ? FIT_KIND : FIT_NOT;
    uint32_t at;
    for (uint32_t k = 0; k < x->names.n; k++) {
        const char *name = x->names.w[k];
        if ((is_name(s, i, to, name, &at) && at == to) || is_in_room(s, i, to, x, name))
            return FIT_NAME;
        if (best < FIT_HEAD && is_part(s, i, to, name))
            best = is_head(s, i, to, name) ? FIT_HEAD : FIT_PART;
    }
    return best;
}

/* Does any word of a name or kind begin here? Most words of a text do not. */
static bool may_begin(const struct stop_search *s, uint32_t i)
{
    const char *w = s->x->w.w[i];
    if (!*w)
        return false;
    for (uint32_t k = 0; k < s->f->words.n; k++)
        if (same(s, w, s->f->words.w[k]))
            return true;
    for (uint32_t k = 0; k < s->t->n_kinds; k++)
        if (s->t->kinds[k].words.n > 0) {
            const char *p = s->t->kinds[k].words.w[0];
            char first[HOME_FILE_MAX_NAME_BYTES + 1];
            if (next_word(&p, first) && same(s, w, first))
                return true;
        }
    return false;
}

/* The room at the i-th word; *to: the word behind it. */
static const struct home_thing *room_at(const struct stop_search *s, uint32_t i, uint32_t *to)
{
    const struct home_thing *best = NULL;
    *to = i;
    for (uint32_t k = 0; k < s->f->n_things; k++) {
        const struct home_thing *x = &s->f->things[k];
        uint32_t at;
        for (uint32_t n = 0; x->type == HOME_THING_ROOM && n < x->names.n; n++)
            if (is_name(s, i, s->x->w.n, x->names.w[n], &at) && at > *to) {
                *to = at;
                best = x;
            }
    }
    return best;
}

static uint32_t skip(const struct stop_search *s, const struct home_list *l, uint32_t i)
{
    for (uint32_t n; (n = stop_words_phrase(s->t, s->x, l, i, s->x->w.n)) > 0;)
        i += n;
    return i;
}

/* "in the cellar" behind a name keeps only the things there. */
static void keep_room(const struct stop_search *s, struct stop_object *o)
{
    uint32_t to, i = o->to;
    if (i >= s->x->w.n || s->x->end[i - 1] == STOP_END_SENTENCE ||
        !home_table_lists(&s->t->front, s->x->w.w[i]))
        return;
    uint32_t from = skip(s, &s->t->stop.before_name, i + 1);
    const struct home_thing *room = room_at(s, from, &to);
    if (!room)
        return;
    uint32_t n = 0;
    if (o->kind == STOP_OBJECT_ALL) {
        o->n_things = stop_things_all(s, room, &o->things);
        o->kind = o->n_things ? STOP_OBJECT_THINGS : STOP_OBJECT_OTHER;
        n = o->n_things;
    } else {
        for (uint32_t k = 0; k < o->n_things; k++)
            if (o->things[k]->room == room)
                o->things[n++] = o->things[k];
    }
    o->n_things = n > 0 ? n : o->n_things; /* a wrong room must not keep it running */
    o->room = home_words_join(s->a, &s->x->w, from, to);
    o->to = to;
}

static void add_thing(struct stop_object *o, const struct home_thing *x)
{
    for (uint32_t i = 0; i < o->n_things; i++)
        if (o->things[i] == x)
            return;
    o->things[o->n_things++] = x;
}

static bool is_room(const struct stop_search *s, uint32_t i, uint32_t to)
{
    uint32_t end;
    return room_at(s, i, &end) && end == to;
}

/* The things that words i..to-1 fit best. */
static bool fit_things(const struct stop_search *s, uint32_t i, uint32_t to, struct stop_object *o)
{
    enum fit best = FIT_NOT;
    bool others = false;
    o->n_things = 0;
    for (uint32_t k = 0; k < s->f->n_things; k++) {
        const struct home_thing *x = &s->f->things[k];
        if (x->type != HOME_THING_DEVICE && x->type != HOME_THING_MACHINE)
            continue;
        enum fit fit = fit_of(s, i, to, x);
        if (fit == FIT_NOT || fit < best)
            continue;
        if (fit > best) {
            o->n_things = 0;
            others = false;
        }
        best = fit;
        if (rests(s->t, x, false))
            o->things[o->n_things++] = x;
        else
            others = true;
    }
    if (best == FIT_NOT || (best < FIT_NAME && is_room(s, i, to)))
        return false; /* a room is more than a part of the names of what is there */
    o->kind = o->n_things > 0 ? STOP_OBJECT_THINGS : STOP_OBJECT_OTHER;
    o->more = others && o->n_things > 0;
    o->name_from = i;
    o->name_to = o->to = to;
    return true;
}

/* The thing whose name is uniquely nearest to words i..to-1, as they are and run together. */
static bool find_near(const struct stop_search *s, uint32_t i, uint32_t to, struct stop_object *o)
{
    const struct home_thing *found = NULL;
    uint32_t best = HOME_NEAR_FAR, second = HOME_NEAR_FAR, known;
    for (uint32_t k = i; k < to; k++) /* a word that only looks like it: "power", "mower" */
        if (strmap_get(&s->t->stop.known, s->x->w.w[k], strlen(s->x->w.w[k]), &known) &&
            !home_file_has_word(s->f, s->x->w.w[k]))
            return false;
        else if (home_table_lists(&s->t->stop.words, s->x->w.w[k]) ||
                 home_table_lists(&s->t->stop.before_name, s->x->w.w[k]))
            return false;
    const char *apart = home_words_join(s->a, &s->x->w, i, to), *joined = "";
    for (uint32_t k = i; k < to; k++)
        joined = arena_printf(s->a, "%s%s", joined, s->x->w.w[k]);
    for (uint32_t k = 0; k < s->f->n_things; k++) {
        const struct home_thing *x = &s->f->things[k];
        uint32_t d = HOME_NEAR_FAR;
        if (x->type != HOME_THING_DEVICE && x->type != HOME_THING_MACHINE)
            continue;
        for (uint32_t n = 0; n < x->names.n; n++) {
            uint32_t one = home_near(apart, x->names.w[n]), two = home_near(joined, x->names.w[n]);
            d = one < d ? one : d;
            d = two < d ? two : d;
        }
        if (d < best) {
            second = best;
            best = d;
            found = x;
        } else if (d < second) {
            second = d;
        }
    }
    if (!found || second == best)
        return false;
    bool safe = rests(s->t, found, false);
    o->kind = safe ? STOP_OBJECT_THINGS : STOP_OBJECT_OTHER;
    o->n_things = 0;
    if (safe)
        o->things[o->n_things++] = found;
    o->name_from = i;
    o->name_to = o->to = to;
    return true;
}

/* No sentence ends between the words i..to-1. */
static bool is_together(const struct stop_search *s, uint32_t i, uint32_t to)
{
    for (; i + 1 < to; i++)
        if (s->x->end[i] != STOP_END_NONE)
            return false;
    return true;
}

bool stop_things_begin(struct stop_search *s, struct arena *a, const struct home_table *t,
                       const struct home_file *f, const struct stop_words *x)
{
    *s = (struct stop_search){.a = a, .t = t, .f = f, .x = x};
    s->scratch = arena_zalloc_n(a, (size_t)(f ? f->n_things : 0) + 1, sizeof(*s->scratch));
    s->found = arena_zalloc_n(a, (size_t)x->w.n + 1, sizeof(*s->found));
    return s->scratch && s->found;
}

static struct stop_object find_named(const struct stop_search *s, uint32_t i, bool near)
{
    struct stop_object o = {.things = s->scratch};
    bool begins = may_begin(s, i);
    uint32_t most = s->x->w.n - i < MAX_NAME ? s->x->w.n - i : MAX_NAME;
    bool found = false;
    if (begins)
        for (uint32_t n = most; n > 0 && !found; n--)
            found = is_together(s, i, i + n) && fit_things(s, i, i + n, &o);
    for (uint32_t n = most < MAX_NEAR ? most : MAX_NEAR; near && n > 0 && !found; n--)
        found = is_together(s, i, i + n) && *s->x->w.w[i] && find_near(s, i, i + n, &o);
    if (found)
        keep_room(s, &o);
    const struct home_thing **own = arena_zalloc_n(s->a, (size_t)o.n_things + 1, sizeof(*own));
    for (uint32_t k = 0; own && k < o.n_things; k++)
        own[k] = o.things[k];
    o.things = own;
    return own ? o : (struct stop_object){0};
}

struct stop_object stop_things_named(const struct stop_search *s, uint32_t i, bool near)
{
    if (!s->f || i >= s->x->w.n)
        return (struct stop_object){0};
    if (!s->found[i].known[near]) {
        s->found[i].object[near] = find_named(s, i, near);
        s->found[i].known[near] = true;
    }
    return s->found[i].object[near];
}

/* ---- objects -------------------------------------------------------------------------------- */

/* "the saw and the lathe", "the saw, the lathe" */
static void add_others(const struct stop_search *s, struct stop_object *o)
{
    while (o->to < s->x->w.n) {
        uint32_t i = o->to;
        bool comma = s->x->end[i - 1] == STOP_END_COMMA;
        if (s->x->end[i - 1] == STOP_END_SENTENCE)
            return;
        bool joined = home_table_lists(&s->t->join, s->x->w.w[i]);
        if (!comma && !joined)
            return;
        i = skip(s, &s->t->stop.before_name, i + joined);
        struct stop_object next = stop_things_named(s, i, false);
        if (next.kind == STOP_OBJECT_NONE)
            return;
        o->more |= next.kind == STOP_OBJECT_OTHER || next.more;
        const struct home_thing **both =
            arena_zalloc_n(s->a, (size_t)o->n_things + next.n_things + 1, sizeof(*both));
        if (!both)
            return;
        memcpy(both, o->things, o->n_things * sizeof(*both));
        o->things = both;
        for (uint32_t k = 0; k < next.n_things; k++)
            add_thing(o, next.things[k]);
        if (next.kind != STOP_OBJECT_THINGS)
            return;
        o->kind = STOP_OBJECT_THINGS;
        o->several = true;
        o->to = next.to;
        o->name_to = next.name_to;
    }
}

struct stop_object stop_things_at(const struct stop_search *s, uint32_t i, bool near)
{
    const struct home_stop *t = &s->t->stop;
    uint32_t from = skip(s, &t->before_name, i), room_to;
    uint32_t all = stop_words_phrase(s->t, s->x, &t->all, i, s->x->w.n);
    struct stop_object o = stop_things_named(s, from, near);
    if (o.kind == STOP_OBJECT_NONE && from > i && all == 0 && from + 1 < s->x->w.n &&
        s->x->end[from] == STOP_END_NONE && !home_table_lists(&t->reason, s->x->w.w[from]) &&
        !home_table_lists(&s->t->front, s->x->w.w[from])) /* "that darn saw" */
        o = stop_things_named(s, from + 1, false);
    if (o.kind != STOP_OBJECT_NONE && o.to > i + all) {
        add_others(s, &o);
        return o;
    }
    if (all > 0) {
        o = (struct stop_object){
            .kind = STOP_OBJECT_ALL, .to = i + all, .name_from = i, .name_to = i + all};
        if (s->f)
            keep_room(s, &o);
        return o;
    }
    const struct home_thing *room = s->f ? room_at(s, from, &room_to) : NULL;
    if (room) { /* "shut down the brewhouse" */
        o = (struct stop_object){.to = room_to, .name_from = from, .name_to = room_to};
        o.n_things = stop_things_all(s, room, &o.things);
        o.kind = o.n_things ? STOP_OBJECT_THINGS : STOP_OBJECT_OTHER;
        return o;
    }
    uint32_t it = stop_words_phrase(s->t, s->x, &t->it, i, s->x->w.n);
    if (it > 0)
        return (struct stop_object){.kind = STOP_OBJECT_IT, .to = i + it};
    return (struct stop_object){.to = from, .name_from = from};
}

const char *stop_things_said(const struct stop_search *s, uint32_t from, uint32_t to)
{
    const char *out = "";
    for (uint32_t i = from; i < to; i++) {
        uint32_t n;
        const char *w = s->x->w.w[i];
        if (strmap_get(&s->t->numbers, w, strlen(w), &n))
            w = arena_printf(s->a, "%u", n);
        out = arena_printf(s->a, "%s%s%s", out, *out ? " " : "", w);
    }
    return out;
}
