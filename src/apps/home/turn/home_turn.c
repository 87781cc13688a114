/* home_turn.c - see home_turn.h. */
#include "apps/home/turn/home_turn.h"

#include <string.h>

#include "apps/home/home_clauses.h"
#include "apps/home/home_values.h"
#include "apps/home/later/home_due.h"

#define MAX_FRONT 8u    /* words before the verb */
#define MAX_CLAUSES 16u /* clauses that inherit the words before them */

/* The thing of one of two types with this name; NULL: none, or no home. */
static const struct home_thing *named(const struct home_file *f, const char *name,
                                      enum home_thing_type one, enum home_thing_type other)
{
    for (uint32_t i = 0; f && i < f->n_things; i++)
        if ((f->things[i].type == one || f->things[i].type == other) &&
            home_table_lists(&f->things[i].names, name))
            return &f->things[i];
    return NULL;
}

static uint32_t skip_articles(const struct home_table *t, const struct home_words *plain,
                              uint32_t at, uint32_t to)
{
    while (at < to && (home_table_word(t, plain->w[at]) & HOME_WORD_ARTICLE))
        at++;
    return at;
}

/* ---- order ---------------------------------------------------------------------------------- */

/* "tomorrow evening", "monday", "march 3rd" */
static bool says_day(struct arena *a, const struct home_table *t, const struct home_words *plain,
                     uint32_t from, uint32_t to)
{
    bool named = false, all = true;
    uint32_t name;
    if (home_table_lists(&t->days, home_words_join(a, plain, from, to)))
        return true;
    for (uint32_t i = from; i < to; i++) {
        const char *w = plain->w[i];
        bool known = strmap_get(&t->date_names, w, strlen(w), &name);
        named |= known;
        all &= known || (w[0] >= '0' && w[0] <= '9') ||
               (home_table_word(t, w) & HOME_WORD_ARTICLE) || home_table_lists(&t->date_drop, w);
    }
    return named && all;
}

/* Are the words from..to-1 a time? */
static bool says_when(struct arena *a, const struct home_table *t, const struct home_words *plain,
                      uint32_t from, uint32_t to)
{
    if (from >= to)
        return false;
    const char *first = plain->w[from];
    bool front = home_table_lists(&t->front, first);
    if (from + front < to && home_due_every_at(a, t, plain, from + front).words)
        return true;
    for (uint32_t i = 0; i < t->n_when; i++)
        if (t->when[i].slot->type == HOME_SLOT_DURATION &&
            home_table_lists(&t->when[i].after, first)) {
            struct home_value v =
                home_values_duration(a, t, home_words_join(a, plain, from + 1, to));
            if (from + 1 < to && v.understood)
                return true;
        }
    const char *text = home_words_join(a, plain, from + front, to);
    return from + front < to &&
           (home_values_clock(a, t, text).understood || home_due_is_sun(a, t, text) ||
            says_day(a, t, plain, from + front, to));
}

/* Is it a place, "in the kitchen"? */
static bool says_where(struct arena *a, const struct home_table *t, const struct home_file *f,
                       const struct home_words *plain, uint32_t to)
{
    uint32_t at = skip_articles(t, plain, 1, to);
    return at < to && home_table_lists(&t->front, plain->w[0]) &&
           named(f, home_words_join(a, plain, at, to), HOME_THING_ROOM, HOME_THING_ROOM);
}

const char *home_turn_order(struct arena *a, const struct home_table *t, const struct home_file *f,
                            const struct home_words *words)
{
    struct home_words plain = home_words_plain_all(a, words);
    uint32_t verb = 0;
    while (verb < plain.n && !(home_table_word(t, plain.w[verb]) & HOME_WORD_VERB))
        verb++;
    uint32_t to = verb;
    while (to > 0 && (home_table_word(t, plain.w[to - 1]) & (HOME_WORD_POLITE | HOME_WORD_DROP)))
        to--;
    if (to == 0 || to > MAX_FRONT || verb + 1 >= plain.n)
        return NULL;
    bool moves = says_when(a, t, &plain, 0, to) || says_where(a, t, f, &plain, to);
    for (uint32_t k = 1; k < to && !moves; k++) /* "tomorrow at 7 pm" */
        moves = says_when(a, t, &plain, 0, k) && says_when(a, t, &plain, k, to);
    if (!moves)
        return NULL;
    const char *front =
        home_words_trim_end(a, home_words_join(a, words, 0, to), HOME_WORDS_CLOSING);
    const char **list, *out = "";
    uint32_t n = home_clauses_split(a, t, home_words_join(a, words, verb, words->n), &list);
    if (n > MAX_CLAUSES)
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        const char *clause = home_words_trim_end(a, list[i], HOME_WORDS_CLOSING);
        out = arena_printf(a, "%s%s%s %s", out, i > 0 ? ", then " : "", clause, front);
    }
    return n > 0 ? out : NULL;
}

/* ---- what comes again ------------------------------------------------------------------------ */

/* Is the text about timers and the like, which only their times distinguish? */
static bool recalls(const struct home_table *t, const struct home_words *plain, uint32_t verb)
{
    bool kind = false;
    for (uint32_t k = 0; k < HOME_LATER_COUNT; k++)
        for (uint32_t i = 0; i < plain->n; i++)
            kind |= home_table_phrase(&t->later.words[k], plain, i) > 0;
    return kind && home_table_phrase(&t->later.cancel_words, plain, verb) > 0;
}

const char *home_turn_again(struct arena *a, const struct home_table *t, struct home_words *words)
{
    struct home_words plain = home_words_plain_all(a, words);
    struct home_due_every e = home_due_every(a, t, &plain);
    uint32_t from = e.from, to = e.from + e.n, verb = 0;
    const char **list;
    if (!e.words || !t->later.list)
        return NULL;
    from -= from > 0 && home_table_lists(&t->front, plain.w[from - 1]); /* "on mondays" */
    for (uint32_t n = 1; verb < plain.n && n > 0; verb += n) {
        bool clock = verb + 1 < plain.n && home_table_lists(&t->front, plain.w[verb]);
        n = (verb >= from && verb < to) ||
            (home_table_word(t, plain.w[verb]) & (HOME_WORD_POLITE | HOME_WORD_DROP));
        if (n == 0 && clock && (n = home_due_clock_at(a, t, &plain, verb + 1)) > 0)
            n++; /* "every day at 8 turn on ..." */
    }
    uint32_t kind = verb < plain.n ? home_table_word(t, plain.w[verb]) : 0;
    bool early = from <= verb + 2; /* "remind me every day to ..." */
    if (!(kind & HOME_WORD_VERB) || ((kind & HOME_WORD_FREE_TEXT) && !early) ||
        home_table_phrase(&t->cues[HOME_SPEECH_ASK], &plain, verb) > 0 || recalls(t, &plain, verb))
        return NULL;
    struct home_words left = {arena_zalloc_n(a, words->n, sizeof(*left.w)), 0};
    for (uint32_t i = 0; left.w && i < words->n; i++)
        if (i < from || i >= to)
            left.w[left.n++] = words->w[i];
    const char *rest = home_words_join(a, &left, 0, left.n);
    if (from > verb && home_clauses_split(a, t, rest, &list) > 1)
        return NULL; /* which command does it belong to? */
    const char *again =
        home_words_trim_end(a, home_words_join(a, words, from, to), HOME_WORDS_CLOSING);
    if (a->rc == 0)
        *words = left;
    return a->rc == 0 ? again : NULL;
}

/* ---- a turn that only names a room or a thing ------------------------------------------------ */

/* The last command with some of its words replaced. */
static const char *with(struct arena *a, const struct home_words *w, uint32_t from, uint32_t to,
                        const char *text)
{
    return arena_printf(a, "%s%s%s%s%s", home_words_join(a, w, 0, from), from > 0 ? " " : "", text,
                        to < w->n ? " " : "", home_words_join(a, w, to, w->n));
}

/* Removes the room: "the kitchen lights", "the lights in the kitchen". */
static void drop_room(struct arena *a, const struct home_table *t, struct home_words *w,
                      struct home_focus *f)
{
    struct home_words plain = home_words_plain_all(a, w);
    uint32_t from = f->room_from, n;
    if (f->room_to == 0)
        return;
    if (f->room_from > f->thing_from) { /* with "in the" */
        while (from > f->thing_to && ((home_table_word(t, plain.w[from - 1]) & HOME_WORD_ARTICLE) ||
                                      home_table_lists(&t->front, plain.w[from - 1])))
            from--;
    }
    n = f->room_to - from;
    for (uint32_t i = f->room_to; i < w->n; i++)
        w->w[i - n] = w->w[i];
    w->n -= n;
    if (f->thing_from >= f->room_to) {
        f->thing_from -= n;
        f->thing_to -= n;
    }
    f->room_from = f->room_to = 0;
}

static const char *last_word(const char *name)
{
    const char *space = strrchr(name, ' ');
    return space ? space + 1 : name;
}

/* The one other thing like the last one: of the same kind and room, with a name that ends in the
 * same word. NULL: none, or several. */
static const char *other_one(const struct home_file *f, const struct home_focus *last)
{
    const char *name = last->device ? last->device : last->machine;
    const struct home_thing *it = NULL, *other = NULL;
    for (uint32_t i = 0; f && name && i < f->n_things; i++) {
        const struct home_thing *x = &f->things[i];
        if ((x->type != HOME_THING_DEVICE && x->type != HOME_THING_MACHINE) ||
            !home_table_lists(&x->names, name) ||
            (last->room && (!x->room || !home_table_lists(&x->room->names, last->room))))
            continue;
        if (it)
            return NULL;
        it = x;
    }
    for (uint32_t i = 0; it && i < f->n_things; i++) {
        const struct home_thing *x = &f->things[i];
        if (x == it || x->type != it->type || x->room != it->room ||
            strcmp(x->kind, it->kind) != 0 ||
            strcmp(last_word(x->names.w[0]), last_word(it->names.w[0])) != 0)
            continue;
        if (other)
            return NULL;
        other = x;
    }
    return other ? other->names.w[0] : NULL;
}

/* "radio", or "bedroom lights": a room and a thing. */
static bool named_in_room(struct arena *a, const struct home_file *f, const char *name)
{
    if (named(f, name, HOME_THING_DEVICE, HOME_THING_MACHINE))
        return true;
    for (uint32_t i = 0; f && i < f->n_things; i++) {
        const struct home_thing *x = &f->things[i];
        for (uint32_t k = 0; x->type == HOME_THING_ROOM && k < x->names.n; k++) {
            size_t n = strlen(x->names.w[k]);
            if (strncmp(name, x->names.w[k], n) == 0 && name[n] == ' ' &&
                named(f, arena_printf(a, "%s", name + n + 1), HOME_THING_DEVICE,
                      HOME_THING_MACHINE))
                return true;
        }
    }
    return false;
}

/* Puts a name or a value into the last command; NULL: it has no place for it. */
static const char *instead(struct arena *a, const struct home_table *t, const struct home_file *f,
                           const struct home_focus *last, const char *name)
{
    struct home_focus at = *last;
    struct home_words w = home_words_split(a, last->said);
    bool apart = at.room_to <= at.thing_from || at.thing_to <= at.room_from;
    struct home_words value = home_words_split(a, home_values_digits(a, t, name));
    bool number = value.n > 0 && strspn(value.w[0], "0123456789-") > 0;
    if (a->rc < 0 || at.room_to > w.n || at.thing_to > w.n || at.value_to > w.n || !apart)
        return NULL;
    if (number && at.value_to > at.value_from &&
        !named(f, name, HOME_THING_DEVICE, HOME_THING_MACHINE)) {
        /* "21" for "20 degrees": the unit stays */
        uint32_t to =
            value.n == 1 && at.value_from + 1 < at.value_to ? at.value_from + 1 : at.value_to;
        return with(a, &w, at.value_from, to, name);
    }
    bool room = named(f, name, HOME_THING_ROOM, HOME_THING_ROOM);
    if (at.thing_to == 0 && !(room && at.room_to > 0))
        return NULL;
    if (room)
        return at.room_to > 0 ? with(a, &w, at.room_from, at.room_to, name)
                              : with(a, &w, at.thing_from, at.thing_from, name);
    if (!named_in_room(a, f, name))
        return NULL;
    drop_room(a, t, &w, &at);
    return at.thing_to <= w.n ? with(a, &w, at.thing_from, at.thing_to, name) : NULL;
}

const char *home_turn_instead(struct arena *a, const struct home_table *t,
                              const struct home_file *f, const struct home_focus *last,
                              const char *fragment)
{
    struct home_words words = home_words_split(a, fragment);
    struct home_words plain = home_words_plain_all(a, &words);
    uint32_t from = 0;
    if (!last->said || plain.n == 0)
        return NULL;
    from += home_table_lists(&t->front, plain.w[0]);
    from = skip_articles(t, &plain, from, plain.n);
    return from < plain.n ? instead(a, t, f, last, home_words_join(a, &plain, from, plain.n))
                          : NULL;
}

const char *home_turn_whole(struct arena *a, const struct home_table *t, const struct home_file *f,
                            const struct home_focus *last, const struct home_words *words)
{
    struct home_words plain = home_words_plain_all(a, words);
    uint32_t from = home_table_phrase(&t->again, &plain, 0), to = plain.n;
    uint32_t corrects = 0;
    for (uint32_t n; (n = home_table_phrase(&t->reword.corrects, &plain, corrects)) > 0;)
        corrects += n; /* "sorry, I meant" */
    from = corrects > from ? corrects : from;
    bool marked = from > 0;
    for (uint32_t i = from; i < to; i++) /* "too" at the end */
        if (home_table_phrase(&t->too, &plain, i) == to - i) {
            to = i;
            marked = true;
        }
    bool has_value = corrects > 0 && last->value_to > 0;
    if (!marked || !last->said || (last->thing_to == 0 && last->room_to == 0 && !has_value))
        return NULL;
    if (from < to && home_table_lists(&t->front, plain.w[from]))
        from++;
    from = skip_articles(t, &plain, from, to);
    if (from >= to)
        return NULL;
    const char *name = home_words_join(a, &plain, from, to);
    if (home_table_lists(&t->others, name))
        name = other_one(f, last);
    return name ? instead(a, t, f, last, name) : NULL;
}
