/* home_link.c - see home_link.h. */
#include "apps/home/site/home_link.h"

#include <string.h>

#include "apps/home/site/home_near.h"
#include "apps/home/table/home_words.h"

#define MAX_TEXT (2 * HOME_FILE_MAX_NAME_BYTES + 16) /* bytes of a misspelt room and thing */

enum fit { FIT_NOT, FIT_KIND, FIT_PART, FIT_NAME }; /* higher is better */

struct search {
    struct arena *a;
    const struct home_file *f;
    const struct home_table *t;
    const struct home_link_query *q;
    const char *text;
    struct home_words words;
    const struct home_thing *room; /* NULL: any */
    bool plural;                   /* the text ends in a plural */
};

/* "lights" is "light", "switches" is "switch"; *plural: whether it was one. */
static const char *singular(struct arena *a, const char *word, bool *plural)
{
    size_t n = strlen(word);
    bool es = n > 4 && (strcmp(word + n - 4, "shes") == 0 || strcmp(word + n - 4, "ches") == 0);
    bool vowel =
        n > 2 && strchr("aeiou", word[n - 2]) != NULL; /* "tvs" is a plural, "gas" is not */
    *plural = (n > 3 || (n == 3 && !vowel)) && word[n - 1] == 's' && word[n - 2] != 's';
    return *plural ? arena_printf(a, "%.*s", (int)(n - (es ? 2 : 1)), word) : word;
}

/* Are both the same apart from a plural ending? */
static bool same(struct arena *a, const char *x, const char *y)
{
    bool p;
    return strcmp(x, y) == 0 || strcmp(singular(a, x, &p), singular(a, y, &p)) == 0;
}

static bool in_room(const struct search *s, const struct home_thing *x)
{
    return !s->room || x->room == s->room;
}

/* All words of the text are words of the name. */
static bool has_words(const struct search *s, const char *name)
{
    struct home_words w = home_words_split(s->a, name);
    for (uint32_t i = 0; i < s->words.n; i++) {
        bool found = false;
        for (uint32_t k = 0; k < w.n && !found; k++)
            found = same(s->a, s->words.w[i], w.w[k]);
        if (!found)
            return false;
    }
    return s->words.n > 0 && w.n > 0;
}

static bool fits_kind(const struct search *s, const struct home_thing *x)
{
    const struct home_kind *k = home_table_kind(s->t, x->kind);
    bool p;
    if (!k || !in_room(s, x) || (s->q->ability && !home_file_able(x, s->q->ability)))
        return false;
    const char *text = singular(s->a, s->text, &p);
    return home_table_lists(&k->words, text) || home_table_lists(&k->words, s->text);
}

static enum fit fit_of(const struct search *s, const struct home_thing *x)
{
    enum fit best = FIT_NOT;
    for (uint32_t i = 0; i < x->names.n; i++) {
        const char *name = x->names.w[i];
        if (same(s->a, name, s->text) && in_room(s, x))
            return FIT_NAME;
        for (uint32_t k = 0; x->room && k < x->room->names.n; k++) {
            const char *full = arena_printf(s->a, "%s %s", x->room->names.w[k], name);
            if (same(s->a, full, s->text) && in_room(s, x))
                return FIT_NAME;
        }
        for (uint32_t k = 0; s->room && k < s->room->names.n; k++) {
            const char *full = arena_printf(s->a, "%s %s", s->room->names.w[k], s->text);
            if (same(s->a, full, name))
                return FIT_NAME;
        }
        if (in_room(s, x) && has_words(s, name))
            best = FIT_PART;
    }
    return best == FIT_NOT && fits_kind(s, x) ? FIT_KIND : best;
}

static bool is_type(const struct search *s, const struct home_thing *x)
{
    return (s->q->types >> x->type & 1) != 0;
}

static struct home_link result_of(const struct search *s, enum fit best, const uint8_t *fits)
{
    struct home_link l = {.result = HOME_LINK_NONE, .what = s->text};
    l.things = arena_zalloc_n(s->a, s->f->n_things, sizeof(*l.things));
    uint32_t n_best = 0;
    for (uint32_t i = 0; i < s->f->n_things; i++)
        n_best += fits[i] == best;
    /* "lights": a lamp is one too; but in a room whose "lights" have that name, they are meant */
    bool plural, all_of_kind = s->plural && best == FIT_PART;
    if (s->plural && best == FIT_NAME && !s->room && n_best > 1)
        all_of_kind = home_table_kind(s->t, singular(s->a, s->text, &plural)) != NULL;
    for (uint32_t i = 0; l.things && i < s->f->n_things; i++)
        if (fits[i] == best || (all_of_kind && fits[i] == FIT_KIND))
            l.things[l.n++] = &s->f->things[i];
    l.by_name = best == FIT_NAME;
    if (l.n > 0)
        l.result = l.n == 1 || s->plural ? HOME_LINK_THINGS : HOME_LINK_UNCLEAR;
    return l;
}

/* Things that match the words exactly. */
static struct home_link find_exact(const struct search *s)
{
    uint8_t *fits = arena_zalloc_n(s->a, (size_t)s->f->n_things + 1, sizeof(*fits));
    enum fit best = FIT_NOT;
    bool everything =
        !*s->text || (s->t->stop.everything && strcmp(s->text, s->t->stop.everything) == 0);
    for (uint32_t i = 0; fits && i < s->f->n_things; i++) {
        const struct home_thing *x = &s->f->things[i];
        if (!is_type(s, x))
            continue;
        if (everything)
            fits[i] = in_room(s, x) && (!s->q->ability || home_file_able(x, s->q->ability))
                          ? FIT_NAME
                          : FIT_NOT;
        else
            fits[i] = (uint8_t)fit_of(s, x);
        best = fits[i] > best ? fits[i] : best;
    }
    struct search all = *s;
    all.plural |= everything;
    if (best == FIT_NOT)
        return (struct home_link){.what = s->text};
    return result_of(&all, best, fits);
}

/* The thing whose name is uniquely nearest to the text. */
static struct home_link find_near(const struct search *s)
{
    const struct home_thing *found = NULL;
    uint32_t best = HOME_NEAR_FAR, second = HOME_NEAR_FAR;
    for (uint32_t i = 0; i < s->f->n_things; i++) {
        const struct home_thing *x = &s->f->things[i];
        uint32_t d = HOME_NEAR_FAR;
        if (!is_type(s, x) || !in_room(s, x))
            continue;
        for (uint32_t k = 0; k < x->names.n; k++) {
            uint32_t here = home_near(s->text, x->names.w[k]);
            d = here < d ? here : d;
            for (uint32_t m = 0; x->room && m < x->room->names.n; m++) {
                here = home_near(s->text,
                                 arena_printf(s->a, "%s %s", x->room->names.w[m], x->names.w[k]));
                d = here < d ? here : d;
            }
        }
        if (d < best) {
            second = best;
            best = d;
            found = x;
        } else if (d < second) {
            second = d;
        }
    }
    struct home_link l = {.what = s->text};
    if (!found || second == best)
        return l;
    l.things = arena_zalloc_n(s->a, 1, sizeof(*l.things));
    if (!l.things)
        return l;
    l.things[l.n++] = found;
    l.result = HOME_LINK_THINGS;
    l.corrected = true;
    return l;
}

static struct home_link find(struct search *s, const char *text)
{
    s->text = text;
    s->words = home_words_split(s->a, text);
    s->plural = false;
    if (s->words.n > 0)
        (void)singular(s->a, s->words.w[s->words.n - 1], &s->plural);
    return find_exact(s);
}

/* The room at the beginning of a text, and the rest of it. */
static const struct home_thing *room_in(const struct search *s, const char *text, const char **rest)
{
    for (uint32_t i = 0; i < s->f->n_things; i++) {
        const struct home_thing *x = &s->f->things[i];
        for (uint32_t k = 0; x->type == HOME_THING_ROOM && k < x->names.n; k++) {
            size_t n = strlen(x->names.w[k]);
            if (strncmp(text, x->names.w[k], n) == 0 && text[n] == ' ') {
                *rest = text + n + 1;
                return x;
            }
        }
    }
    return NULL;
}

struct home_link home_link_find(struct arena *a, const struct home_file *f,
                                const struct home_table *t, const struct home_link_query *q)
{
    struct search s = {.a = a, .f = f, .t = t, .q = q};
    const char *text = q->text ? q->text : "", *rest;
    if (strlen(text) > MAX_TEXT || (q->room && strlen(q->room) > MAX_TEXT))
        return (struct home_link){.what = text};
    if (q->room) { /* "garage" "door" may be a thing of its own */
        struct home_link whole = find(&s, arena_printf(a, "%s %s", q->room, text));
        if (whole.result == HOME_LINK_THINGS && whole.n == 1)
            return whole;
        const struct home_link_query room = {.types = 1u << HOME_THING_ROOM, .text = q->room};
        struct home_link r = home_link_find(a, f, t, &room);
        if (r.result != HOME_LINK_THINGS || r.n != 1)
            return (struct home_link){.result = HOME_LINK_NONE, .what = q->room};
        s.room = r.things[0];
        s.q = q;
    }
    struct home_link l = find(&s, text);
    if (!*text)
        return l;
    if (l.result == HOME_LINK_NONE && !s.room && (s.room = room_in(&s, text, &rest)) != NULL) {
        l = find(&s, rest);
        if (l.result == HOME_LINK_NONE)
            s.room = NULL;
    }
    if (l.result == HOME_LINK_NONE) {
        s.text = text;
        l = find_near(&s);
    }
    return l;
}
