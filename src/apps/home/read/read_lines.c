/* read_lines.c - see read_lines.h. */
#include "apps/home/read/read_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/buf.h"
#include "base/str.h"
#include "engine/native/reader.h"

#define MAX_SAID (2 * READ_PLAN_MAX_WORDS) /* words, and neighbours joined */
#define MAX_TRIGRAMS 62u                   /* of a word; the rest of a longer one is not compared */
#define FILL 8u                            /* lines that are written even if nothing matches */
#define MAX_NAMES 3u                       /* of a line */
#define MAX_INPUT_BYTES 8192u

struct trigrams {
    uint32_t t[MAX_TRIGRAMS];
    uint32_t n;
    uint64_t mask; /* a bit for each: a quick test for common ones */
};

struct said { /* the plain words of a text */
    const char *w[MAX_SAID];
    struct trigrams trigrams[MAX_SAID];
    uint32_t n;
};

enum mark { MARK_NONE, MARK_NEAR, MARK_EXACT };

struct rated {
    const struct home_thing *x;
    float rank;
    uint32_t at; /* in the file */
    enum mark mark;
};

struct choosing {
    struct arena *a;
    const struct home_table *t;
    const struct home_file *file;
    const struct read_lines_state *state;
    struct said said;
    struct read_lines *out;
    struct rated *things, *areas;
    uint32_t n_things, n_areas;
    struct buf input;
};

/* ---- words ---------------------------------------------------------------------------------- */

static bool is_edge(char c)
{
    return !ascii_is_letter(c) && !ascii_is_digit(c) && c != '_' && c != '%' &&
           (unsigned char)c < 0x80;
}

/* Lower case, without punctuation, possessive and plural s; small numbers as digits. */
static const char *plain(const struct choosing *c, const char *word)
{
    const char *low = home_table_bare(c->t, home_words_plain(c->a, word));
    size_t n = strlen(low);
    uint32_t number;
    while (n > 0 && is_edge(low[n - 1]))
        n--;
    while (n > 0 && is_edge(*low)) {
        low++;
        n--;
    }
    n -= n > 2 && strncmp(low + n - 2, "'s", 2) == 0 ? 2 : 0;
    n -= n > 3 && low[n - 1] == 's' && low[n - 2] != 's' ? 1 : 0;
    if (strmap_get(&c->t->numbers, low, n, &number) && number <= 20)
        return arena_printf(c->a, "%u", number);
    return arena_printf(c->a, "%.*s", (int)n, low);
}

static struct trigrams trigrams_of(const char *word)
{
    struct trigrams out = {.n = 0};
    size_t n = strlen(word);
    for (size_t i = 0; i < n && out.n < MAX_TRIGRAMS; i++) { /* of "^word$" */
        uint32_t t = (i == 0 ? 1u : (unsigned char)word[i - 1]) << 16 |
                     (uint32_t)(unsigned char)word[i] << 8 |
                     (i + 1 == n ? 2u : (unsigned char)word[i + 1]);
        uint32_t k = 0;
        while (k < out.n && out.t[k] != t)
            k++;
        if (k < out.n)
            continue;
        out.t[out.n++] = t;
        out.mask |= 1ull << (t * 2654435761u >> 26);
    }
    return out;
}

static void hear(struct choosing *c, const struct home_words *words)
{
    struct said *s = &c->said;
    for (uint32_t i = 0; i < words->n; i++) {
        const char *p = plain(c, words->w[i]);
        if (*p)
            s->w[s->n++] = p;
    }
    for (uint32_t i = 0, n = s->n; i + 1 < n && s->n < MAX_SAID; i++) /* "dish washer" */
        s->w[s->n++] = arena_printf(c->a, "%s%s", s->w[i], s->w[i + 1]);
    for (uint32_t i = 0; i < s->n; i++)
        s->trigrams[i] = trigrams_of(s->w[i]);
}

static float alike(const struct trigrams *a, const struct trigrams *b)
{
    uint32_t common = 0;
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t k = 0; k < b->n; k++)
            common += a->t[i] == b->t[k];
    return 2.0f * (float)common / (float)(a->n + b->n);
}

/* 1: the word was said; else how much it is like one that was, 0: not at all. */
static float near(const struct choosing *c, const char *word)
{
    const struct said *s = &c->said;
    float best = 0.0f;
    for (uint32_t i = 0; i < s->n; i++)
        if (strcmp(s->w[i], word) == 0)
            return 1.0f;
    if (strlen(word) <= 3)
        return 0.0f;
    const struct trigrams mine = trigrams_of(word);
    for (uint32_t i = 0; i < s->n; i++) {
        if (strlen(s->w[i]) <= 3 || !(mine.mask & s->trigrams[i].mask))
            continue;
        const float like = alike(&mine, &s->trigrams[i]);
        best = like > best ? like : best;
    }
    return best < 0.45f ? 0.0f : best;
}

static bool is_said(const struct choosing *c, const char *phrase)
{
    struct home_words w = home_words_split(c->a, phrase);
    for (uint32_t i = 0; i < w.n; i++) {
        const char *p = plain(c, w.w[i]);
        bool found = false;
        for (uint32_t k = 0; k < c->said.n && !found; k++)
            found = strcmp(c->said.w[k], p) == 0;
        if (!found)
            return false;
    }
    return w.n > 0;
}

/* Is one of the words of the phrases said, or the end of a joined word? */
static bool says_word_of(const struct choosing *c, const struct home_list *phrases)
{
    for (uint32_t i = 0; i < phrases->n; i++) {
        struct home_words w = home_words_split(c->a, phrases->w[i]);
        for (uint32_t k = 0; k < w.n; k++)
            if (is_said(c, w.w[k]))
                return true;
        for (uint32_t k = 0; k < c->out->words.n; k++)
            if (home_table_ends_in(c->t, home_words_plain(c->a, c->out->words.w[k]), phrases->w[i]))
                return true;
    }
    return false;
}

/* How well the best of the names is said. */
static float rate(const struct choosing *c, const struct home_list *names, enum mark *mark)
{
    float best = 0.0f;
    bool exact = false;
    for (uint32_t i = 0; i < names->n; i++) {
        struct home_words w = home_words_split(c->a, names->w[i]);
        float total = 0.0f;
        bool all = w.n > 0;
        for (uint32_t k = 0; k < w.n; k++) {
            const float s = near(c, plain(c, w.w[k]));
            total += s / (float)w.n;
            all = all && s == 1.0f;
        }
        if (total > best || (all && !exact)) {
            best = total;
            exact = all;
        }
    }
    *mark = exact ? MARK_EXACT : best >= 0.55f ? MARK_NEAR : MARK_NONE;
    return best;
}

/* ---- what a thing is written as ------------------------------------------------------------- */

bool read_lines_called(struct arena *a, const struct home_table *t, const struct home_thing *x,
                       const struct home_list *words)
{
    for (uint32_t i = 0; i < x->names.n; i++) {
        struct home_words w = home_words_split(a, x->names.w[i]);
        for (uint32_t k = 0; k < w.n; k++) {
            if (home_table_phrase(words, &w, k) > 0)
                return true;
            for (uint32_t n = 0; t->compounds && n < words->n; n++)
                if (home_table_ends_in(t, w.w[k], words->w[n]))
                    return true;
        }
    }
    return false;
}

const struct home_class *read_lines_class(struct arena *a, const struct home_table *t,
                                          const struct home_thing *x)
{
    const struct home_class *first = NULL;
    if (x->type == HOME_THING_PERSON || x->type == HOME_THING_SCENE)
        return home_table_class(t, home_file_type_name(x->type));
    for (uint32_t i = 0; i < t->plans.n_classes; i++) {
        const struct home_class *c = &t->plans.classes[i];
        if (!home_file_is(x, &c->kinds))
            continue;
        if (first &&
            read_lines_called(a, t, x, &c->words)) /* kinds are coarser: a pump is a machine */
            return c;
        first = first ? first : c;
    }
    if (!first && x->type == HOME_THING_SENSOR)
        return home_table_class(t, "sensor");
    if (!first)
        return home_table_class(t, x->type == HOME_THING_MACHINE ? "machine" : "switch");
    return first;
}

const struct home_plan_quantity *read_lines_measures(struct arena *a, const struct home_table *t,
                                                     const struct home_thing *x)
{
    for (uint32_t i = 0; i < t->plans.n_quantities; i++)
        if (strcmp(t->plans.quantities[i].name, x->kind) == 0 ||
            read_lines_called(a, t, x, &t->plans.quantities[i].words))
            return &t->plans.quantities[i];
    for (uint32_t i = 0; x->unit && i < t->plans.n_quantities; i++)
        if (home_table_lists(&t->plans.quantities[i].units, x->unit))
            return &t->plans.quantities[i];
    return NULL;
}

/* ---- choosing ------------------------------------------------------------------------------- */

/* Is the thing one that the state names? */
static bool in_state(const struct choosing *c, const char *id)
{
    const char *const texts[] = {c->state->last, c->state->pending};
    const size_t n = strlen(id);
    for (uint32_t i = 0; i < 2; i++)
        for (const char *p = texts[i]; p && (p = strchr(p, '@')); p++)
            if (strncmp(p + 1, id, n) == 0 && (p[1 + n] == ' ' || !p[1 + n]))
                return true;
    return false;
}

static float rating_of_area(const struct choosing *c, const struct home_thing *room)
{
    for (uint32_t i = 0; i < c->n_areas; i++)
        if (c->areas[i].x == room)
            return c->areas[i].rank;
    return 0.0f;
}

static float rank(const struct choosing *c, const struct home_thing *x, enum mark *mark)
{
    float r = rate(c, &x->names, mark);
    const struct home_class *class = read_lines_class(c->a, c->t, x);
    r += *mark == MARK_EXACT ? 0.5f : 0.0f;
    r += x->room && rating_of_area(c, x->room) >= 0.99f ? 0.3f : 0.0f;
    r += x->room && x->room == c->state->here ? 0.1f : 0.0f;
    r += class && says_word_of(c, &class->words) ? 0.25f : 0.0f;
    r += in_state(c, x->id) ? 9.0f : 0.0f;
    return r;
}

static int by_rank(const void *a, const void *b)
{
    const struct rated *x = a, *y = b;
    return x->rank != y->rank ? (x->rank < y->rank ? 1 : -1) : (x->at > y->at) - (x->at < y->at);
}

static void add_area(struct choosing *c, const struct home_thing *room)
{
    struct read_lines *o = c->out;
    for (uint32_t i = 0; i < o->n_areas; i++)
        if (o->areas[i] == room)
            return;
    if (room && o->n_areas < READ_PLAN_MAX_AREAS)
        o->areas[o->n_areas++] = room;
}

static void add_floor(struct choosing *c, const char *floor)
{
    struct read_lines *o = c->out;
    for (uint32_t i = 0; i < o->n_floors; i++)
        if (strcmp(o->floors[i], floor) == 0)
            return;
    if (o->n_floors < READ_PLAN_MAX_FLOORS)
        o->floors[o->n_floors++] = floor;
}

static void rate_all(struct choosing *c)
{
    const struct home_file *f = c->file;
    for (uint32_t i = 0; i < f->n_things; i++)
        if (f->things[i].type == HOME_THING_ROOM) {
            struct rated *r = &c->areas[c->n_areas++];
            *r = (struct rated){.x = &f->things[i], .at = i};
            r->rank = rate(c, &r->x->names, &r->mark);
        }
    for (uint32_t i = 0; i < f->n_things; i++)
        if (f->things[i].type != HOME_THING_ROOM) {
            struct rated *r = &c->things[c->n_things++];
            *r = (struct rated){.x = &f->things[i], .at = i};
            r->rank = rank(c, r->x, &r->mark);
        }
    qsort(c->things, c->n_things, sizeof(*c->things), by_rank);
    qsort(c->areas, c->n_areas, sizeof(*c->areas), by_rank);
}

/* Are the words the same but for one letter, or two that are swapped? */
static bool one_slip(const char *x, const char *y)
{
    size_t n = strlen(x), m = strlen(y), from = 0, to = 0;
    while (from < n && from < m && x[from] == y[from])
        from++;
    while (to < n - from && to < m - from && x[n - 1 - to] == y[m - 1 - to])
        to++;
    n -= from + to;
    m -= from + to;
    return (n <= 1 && m <= 1) ||
           (n == 2 && m == 2 && x[from] == y[from + 1] && x[from + 1] == y[from]);
}

/* Is the word said, or one that is spelt almost so? */
static bool says_about(const struct choosing *c, const char *word)
{
    for (uint32_t i = 0; strlen(word) > 3 && i < c->said.n; i++)
        if (strlen(c->said.w[i]) > 3 && one_slip(c->said.w[i], word))
            return true;
    return near(c, word) >= 0.6f;
}

/* Is it the room of a thing of the turn before? */
static bool room_in_state(const struct choosing *c, const struct home_thing *room)
{
    for (uint32_t i = 0; i < c->out->n_things; i++)
        if (c->out->things[i].thing->room == room && in_state(c, c->out->things[i].thing->id))
            return true;
    return in_state(c, room->id);
}

/* Is the room named, spelt about so, or the beginning of a joined word ("Badlicht")? A mudroom is
 * no bedroom. */
static bool names_room(const struct choosing *c, const struct home_thing *room)
{
    for (uint32_t i = 0; i < room->names.n; i++) {
        struct home_words w = home_words_split(c->a, room->names.w[i]);
        bool all = w.n > 0;
        for (uint32_t k = 0; k < w.n; k++)
            all = all && says_about(c, plain(c, w.w[k]));
        for (uint32_t k = 0; !all && c->t->compounds && k < c->said.n; k++)
            all = strncmp(c->said.w[k], room->names.w[i], strlen(room->names.w[i])) == 0;
        if (all)
            return true;
    }
    return false;
}

static void choose(struct choosing *c)
{
    struct read_lines *o = c->out;
    for (uint32_t i = 0; i < c->n_things && o->n_things < READ_PLAN_MAX_THINGS; i++)
        if (c->things[i].rank >= 0.4f || i < FILL) {
            struct read_lines_thing *l = &o->things[o->n_things++];
            *l = (struct read_lines_thing){.thing = c->things[i].x};
            l->class = read_lines_class(c->a, c->t, l->thing);
            l->exact = c->things[i].mark == MARK_EXACT || in_state(c, l->thing->id);
            l->said = l->exact || c->things[i].mark != MARK_NONE ||
                      (l->class && says_word_of(c, &l->class->words));
        }
    for (uint32_t i = 0; i < c->n_areas; i++)
        if (in_state(c, c->areas[i].x->id))
            add_area(c, c->areas[i].x);
    add_area(c, c->state->here);
    for (uint32_t i = 0; i < c->n_areas && c->areas[i].rank >= 0.45f; i++)
        add_area(c, c->areas[i].x);
    for (uint32_t i = 0; i < o->n_things; i++)
        add_area(c, o->things[i].thing->room);
    for (uint32_t i = 0; i < c->n_areas; i++)
        add_area(c, c->areas[i].x);
    for (uint32_t i = 0; i < o->n_areas; i++)
        o->area_said[i] = o->areas[i] == c->state->here || room_in_state(c, o->areas[i]) ||
                          names_room(c, o->areas[i]);
    for (uint32_t i = 0; i < c->file->n_things; i++)
        if (c->file->things[i].floor)
            add_floor(c, c->file->things[i].floor);
}

/* ---- writing -------------------------------------------------------------------------------- */

/* A word of people: what could be taken for a mark or a gap is left out. */
static void put_word(struct choosing *c, const char *word)
{
    bool any = false;
    for (const char *p = word; *p; p++)
        if ((unsigned char)*p > ' ' && *p != 0x7f) {
            if (!any)
                buf_putc(&c->input, ' ');
            buf_putc(&c->input, *p);
            any = true;
        }
    if (!any)
        buf_puts(&c->input, " _");
}

static void put_words(struct choosing *c, const char *text)
{
    struct home_words w = home_words_split(c->a, text);
    for (uint32_t i = 0; i < w.n; i++)
        put_word(c, w.w[i]);
}

static void put_token(struct choosing *c, const char *name)
{
    if (c->input.len > 0)
        buf_putc(&c->input, ' ');
    buf_putc(&c->input, READER_MARK);
    buf_puts(&c->input, name);
}

static void put_pointer(struct choosing *c, char letter, uint32_t at)
{
    char name[16];
    snprintf(name, sizeof(name), "%c%u", letter, letter == 'w' ? at : at + 1);
    put_token(c, name);
}

static bool put_id(struct choosing *c, const char *id, size_t n)
{
    const struct read_lines *o = c->out;
    for (uint32_t i = 0; i < o->n_things; i++)
        if (strlen(o->things[i].thing->id) == n && strncmp(o->things[i].thing->id, id, n) == 0) {
            put_pointer(c, 't', i);
            return true;
        }
    for (uint32_t i = 0; i < o->n_areas; i++)
        if (strlen(o->areas[i]->id) == n && strncmp(o->areas[i]->id, id, n) == 0) {
            put_pointer(c, 'a', i);
            return true;
        }
    return false;
}

/* A part of the state, with its ids as lines. */
static void put_state(struct choosing *c, const char *head, const char *text)
{
    if (!text || !*text)
        return;
    put_token(c, head);
    struct home_words w = home_words_split(c->a, text);
    for (uint32_t i = 0; i < w.n; i++)
        if (w.w[i][0] != '@')
            put_token(c, w.w[i]);
        else
            (void)put_id(c, w.w[i] + 1, strlen(w.w[i] + 1)); /* a thing may be gone */
}

static void put_names(struct choosing *c, const struct home_list *names, enum mark mark)
{
    if (mark != MARK_NONE)
        put_token(c, mark == MARK_EXACT ? "exact" : "near");
    for (uint32_t i = 0; i < names->n && i < MAX_NAMES; i++) {
        if (i > 0)
            put_token(c, "or");
        put_words(c, names->w[i]);
    }
}

static void put_room(struct choosing *c, const struct home_thing *room)
{
    for (uint32_t i = 0; room && i < c->out->n_areas; i++)
        if (c->out->areas[i] == room)
            put_pointer(c, 'a', i);
}

/* An ability with its name, unless every thing of that class has it. */
static void put_ability(struct choosing *c, struct read_lines_thing *l, const char *ability)
{
    const struct home_plan_quantity *q = home_table_plan_quantity(c->t, ability);
    if (q && !(l->class && home_table_lists(&q->implied, l->class->name)))
        put_token(c, q->name);
    if (q || l->n_own == READ_PLAN_MAX_OWN)
        return;
    put_pointer(c, 'q', l->n_own);
    l->own[l->n_own++] = ability;
    if (is_said(c, ability))
        put_token(c, "exact");
    put_words(c, ability);
}

static bool is_usual(const struct choosing *c, const struct home_thing *x, const char *ability)
{
    return (x->is && home_table_lists(&x->is->abilities, ability)) ||
           home_table_ability(c->t, ability);
}

static void put_thing(struct choosing *c, uint32_t at, enum mark mark)
{
    struct read_lines_thing *l = &c->out->things[at];
    const struct home_thing *x = l->thing;
    put_pointer(c, 't', at);
    put_token(c, l->class ? l->class->name : "switch");
    put_names(c, &x->names, mark);
    put_room(c, x->room);
    if (x->type == HOME_THING_SENSOR) {
        const struct home_plan_quantity *q = read_lines_measures(c->a, c->t, x);
        if (q)
            put_token(c, q->name);
        return;
    }
    for (uint32_t i = 0; i < x->n_limits; i++)
        put_ability(c, l, x->limits[i].ability);
    for (uint32_t i = 0; i < x->abilities.n; i++) {
        bool limited = false;
        for (uint32_t k = 0; k < x->n_limits; k++)
            limited = limited || strcmp(x->limits[k].ability, x->abilities.w[i]) == 0;
        if (!limited && !is_usual(c, x, x->abilities.w[i]))
            put_ability(c, l, x->abilities.w[i]);
    }
}

static enum mark mark_of(const struct rated *list, uint32_t n, const struct home_thing *x)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i].x == x)
            return list[i].mark;
    return MARK_NONE;
}

static uint32_t floor_at(const struct read_lines *o, const char *floor)
{
    uint32_t i = 0;
    while (i < o->n_floors && strcmp(o->floors[i], floor) != 0)
        i++;
    return i;
}

static void put_places(struct choosing *c)
{
    const struct read_lines *o = c->out;
    for (uint32_t i = 0; i < o->n_floors; i++) {
        const struct home_list names = {&o->floors[i], 1};
        enum mark mark;
        (void)rate(c, &names, &mark);
        put_pointer(c, 'f', i);
        put_names(c, &names, mark);
    }
    for (uint32_t i = 0; i < o->n_areas; i++) {
        put_pointer(c, 'a', i);
        put_names(c, &o->areas[i]->names, mark_of(c->areas, c->n_areas, o->areas[i]));
        if (o->areas[i]->floor && floor_at(o, o->areas[i]->floor) < o->n_floors)
            put_pointer(c, 'f', floor_at(o, o->areas[i]->floor));
    }
}

int read_lines_choose(struct read_lines *out, struct arena *a, const struct home_table *t,
                      const struct home_file *file, const struct read_lines_state *state,
                      const char *text)
{
    struct choosing *c = arena_zalloc(a, sizeof(*c));
    *out = (struct read_lines){.input = ""};
    if (!c)
        return a->rc;
    static const struct home_file nowhere = {.open = true};
    file = file ? file : &nowhere;
    *c = (struct choosing){.a = a, .t = t, .file = file, .state = state, .out = out};
    out->words = home_words_split(a, text);
    out->words.n = out->words.n < READ_PLAN_MAX_WORDS ? out->words.n : READ_PLAN_MAX_WORDS;
    buf_init(&c->input, MAX_INPUT_BYTES);
    hear(c, &out->words);
    c->things = arena_zalloc_n(a, (size_t)file->n_things + 1, sizeof(*c->things));
    c->areas = arena_zalloc_n(a, (size_t)file->n_things + 1, sizeof(*c->areas));
    if (!c->things || !c->areas)
        return a->rc;
    rate_all(c);
    choose(c);
    if (state->here) {
        put_token(c, "here_is");
        put_room(c, state->here);
    }
    put_state(c, "last", state->last);
    put_state(c, "pending", state->pending);
    put_places(c);
    for (uint32_t i = 0; i < out->n_things; i++)
        put_thing(c, i, mark_of(c->things, c->n_things, out->things[i].thing));
    put_token(c, "text");
    for (uint32_t i = 0; i < out->words.n; i++) {
        put_pointer(c, 'w', i);
        put_word(c, out->words.w[i]);
    }
    const int rc = c->input.rc;
    out->input = arena_printf(a, "%.*s", (int)c->input.len, buf_str(&c->input));
    buf_fini(&c->input);
    return rc < 0 ? rc : a->rc;
}
