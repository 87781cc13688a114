/* stop.c - see stop.h. */
#include "apps/home/stop/stop.h"

#include <string.h>

#include "apps/home/stop/stop_things.h"
#include "apps/home/stop/stop_words.h"

#define THING "{thing}"
#define MAX_BACK 10u     /* words of a thing in front of its stop word */
#define MAX_DENIED 5u    /* words between "don't" and "stop" */
#define MAX_AROUND 24u   /* words in front of a command and behind it that may change its meaning */
#define MAX_NEAR_BACK 3u /* words of a misheard name */

struct reader {
    const struct stop_query *q;
    struct stop_search s;
    struct stop_words x;
    uint32_t n; /* words */
    bool *used; /* explained by a match */
    bool danger, repeated;
    struct stop *out;
};

struct match {
    uint32_t from, to;
    struct stop_object object;
    bool first; /* the thing stands in front of the stop word */
    enum home_stop_way way;
};

static const struct home_stop *words_of(const struct reader *r)
{
    return &r->q->t->stop;
}

static uint32_t phrase(const struct reader *r, const struct home_list *l, uint32_t i)
{
    return stop_words_phrase(r->q->t, &r->x, l, i, r->n);
}

/* Skips words that add nothing: "please", "right now". */
static uint32_t skip_beside(const struct reader *r, uint32_t i)
{
    for (uint32_t n; i < r->n && (n = phrase(r, &words_of(r)->beside, i)) > 0;)
        i += n;
    return i;
}

/* Where the sentence begins. Heard speech has no full stops, so that it is bounded. */
static uint32_t sentence_from(const struct reader *r, uint32_t i)
{
    uint32_t least = i > MAX_AROUND ? i - MAX_AROUND : 0;
    while (i > least && r->x.end[i - 1] != STOP_END_SENTENCE)
        i--;
    return i;
}

static uint32_t sentence_to(const struct reader *r, uint32_t i)
{
    uint32_t most = r->n - i > MAX_AROUND ? i + MAX_AROUND : r->n;
    while (i < most && (i == 0 || r->x.end[i - 1] != STOP_END_SENTENCE))
        i++;
    return i;
}

/* ---- is it said as a command? --------------------------------------------------------------- */

/* Is a phrase of the list among the words from..to-1, outside of those that take its meaning away?
 * "if you can" is no condition. */
static bool says(const struct reader *r, const struct home_list *l, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to;) {
        uint32_t kept = stop_words_phrase(r->q->t, &r->x, &words_of(r)->keep, i, to);
        uint32_t n = stop_words_phrase(r->q->t, &r->x, l, i, to);
        if (n > kept)
            return true;
        i += kept > 0 ? kept : 1;
    }
    return false;
}

/* The words in front of a command: a question, a report, a condition, a denial? */
static bool is_denied_before(const struct reader *r, const struct match *m)
{
    const struct home_table *t = r->q->t;
    const struct home_stop *s = words_of(r);
    uint32_t from = sentence_from(r, m->from), at = m->from, opening = from;
    if (says(r, &s->unless, from, m->from))
        return true;
    uint32_t asks = 0;
    while (at > from && asks == 0) { /* "can you" "please" stop */
        uint32_t n = stop_words_before(t, &r->x, &s->beside, at);
        asks = stop_words_before(t, &r->x, &s->asks, at);
        if (n == 0 || asks > 0)
            break;
        at -= n;
    }
    uint32_t near = at > from + MAX_DENIED ? at - MAX_DENIED : from;
    for (uint32_t i = near; i < at; i++) /* a comma ends a denial: "don't just stand there, stop" */
        near = r->x.end[i] != STOP_END_NONE ? i + 1 : near;
    if (says(r, &s->deny, near, m->from))
        return true;
    bool cut = at > from && r->x.end[at - 1] != STOP_END_NONE;
    opening = skip_beside(r, opening);
    if (asks == 0 && !cut && opening < m->from && phrase(r, &t->stop.questions, opening) > 0)
        return true;
    /* "we stop the pump": somebody else's deed */
    return asks == 0 && !cut && at > from && stop_words_before(t, &r->x, &s->not_before, at) > 0;
}

/* What may follow "stop the saw": nothing, something that adds nothing, or a reason. */
static bool follows_well(const struct reader *r, const struct match *m, bool strict)
{
    const struct home_stop *s = words_of(r);
    uint32_t i = m->to;
    if (i == r->n || r->x.end[i - 1] != STOP_END_NONE || phrase(r, &s->beside, i) > 0)
        return true;
    if (phrase(r, &s->alone, i) > 0 || phrase(r, &s->danger, i) > 0)
        return true;
    if (m->object.kind == STOP_OBJECT_IT && /* "shut it down, the saw" */
        stop_things_at(&r->s, i, false).kind == STOP_OBJECT_THINGS)
        return true;
    if (!strict && phrase(r, &s->reason, i) > 0)
        return true;
    return !strict && home_table_lists(&r->q->t->join, r->x.w.w[i]);
}

static bool is_denied_after(const struct reader *r, const struct match *m)
{
    const struct home_stop *s = words_of(r);
    uint32_t to = sentence_to(r, m->to), next = m->to;
    for (uint32_t n; phrase(r, &s->reason, next) == 0 && (n = phrase(r, &s->beside, next)) > 0;)
        next += n; /* "now", but not "there is oil on the floor", which is a reason */
    enum stop_end end = r->x.end[m->to - 1];
    const bool danger = r->danger && phrase(r, &s->reason, next) > 0; /* "her sleeve is caught" */
    if (end == STOP_END_NONE && !danger && phrase(r, &s->not_after, next) > 0)
        return true;
    if (end != STOP_END_SENTENCE && says(r, &s->unless_after, m->to, to))
        return true;
    if (says(r, &s->back, m->to, r->n - m->to > MAX_AROUND ? m->to + MAX_AROUND : r->n))
        return true;
    /* "shutter stop there is a kid", but not "it was the bus stop there" */
    const bool opens =
        m->way == HOME_STOP_HALT && skip_beside(r, sentence_from(r, m->from)) >= m->from;
    bool strict = (m->first && !opens) || m->object.kind == STOP_OBJECT_ALL ||
                  m->object.kind == STOP_OBJECT_IT;
    return !follows_well(r, m, strict) && !r->danger && !r->repeated;
}

/* ---- patterns ------------------------------------------------------------------------------- */

/* One word of a pattern; its bytes. */
static size_t token(const char *p)
{
    return strcspn(p, " ");
}

static bool is_thing_token(const char *p, size_t n)
{
    return n == sizeof(THING) - 1 && memcmp(p, THING, n) == 0;
}

/* Does word i begin with this token, after words that add nothing? *to: the word behind it. */
static bool token_at(const struct reader *r, const char *p, size_t n, uint32_t i, uint32_t *to)
{
    for (;;) {
        if (stop_words_is(r->q->t, &r->x, i, p, n)) {
            *to = i + 1;
            return true;
        }
        uint32_t more = i < r->n ? phrase(r, &words_of(r)->beside, i) : 0;
        if (more == 0)
            return false;
        i += more;
    }
}

/* The rest of a pattern from word i on. */
static bool rest_matches(const struct reader *r, const char *p, uint32_t i, struct match *m)
{
    for (size_t n; (n = token(p)) > 0; p += n + (p[n] == ' ')) {
        if (i > 0 && i <= r->n && r->x.end[i - 1] == STOP_END_SENTENCE)
            return false;
        if (!is_thing_token(p, n)) {
            if (!token_at(r, p, n, i, &i))
                return false;
            continue;
        }
        i = skip_beside(r, i);
        m->object = stop_things_at(&r->s, i, true);
        if (m->object.kind == STOP_OBJECT_NONE)
            return false;
        i = m->object.to;
    }
    m->to = i;
    return true;
}

/* A thing from word `from` on that ends right in front of word i, after words that add nothing. */
static bool ends_before(const struct reader *r, uint32_t from, uint32_t i, bool near,
                        struct match *m)
{
    for (uint32_t k = from; k < i; k++) {
        struct stop_object o = stop_things_at(&r->s, k, near);
        bool found = o.kind == STOP_OBJECT_THINGS || o.kind == STOP_OBJECT_OTHER ||
                     o.kind == STOP_OBJECT_ALL || o.kind == STOP_OBJECT_IT;
        if (found && o.to <= i && skip_beside(r, o.to) >= i) {
            m->object = o;
            m->from = k;
            return true;
        }
    }
    return false;
}

/* By its name, or else by one that is misheard. */
static bool thing_before(const struct reader *r, uint32_t i, struct match *m)
{
    uint32_t from = i > MAX_BACK ? i - MAX_BACK : 0;
    for (uint32_t k = i; k > from; k--) /* not from another sentence */
        if (r->x.end[k - 1] == STOP_END_SENTENCE && k < i)
            from = k;
    uint32_t near = i > from + MAX_NEAR_BACK ? i - MAX_NEAR_BACK : from;
    return ends_before(r, from, i, false, m) || ends_before(r, near, i, true, m);
}

/* Is the pattern said at word i? For one that begins with the thing, i is the word behind that. */
static bool pattern_at(const struct reader *r, const char *p, uint32_t i, struct match *m)
{
    size_t n = token(p);
    m->first = is_thing_token(p, n);
    m->from = i;
    if (m->first) {
        p += n + 1;
        n = token(p);
    }
    if (!stop_words_is(r->q->t, &r->x, i, p, n))
        return false;
    if (!m->first)
        return rest_matches(r, p + n + (p[n] == ' '), i + 1, m);
    struct match rest = {0};
    if (!rest_matches(r, p + n + (p[n] == ' '), i + 1, &rest) || !thing_before(r, i, m))
        return false;
    m->to = rest.to;
    return true;
}

/* ---- what is stopped ------------------------------------------------------------------------ */

static void use(struct reader *r, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        r->used[i] = true;
}

/* Is every word that no match explains one that adds nothing, or tells of danger? */
static bool is_explained(const struct reader *r)
{
    for (uint32_t i = 0; i < r->n;) {
        uint32_t n = phrase(r, &words_of(r)->beside, i), k = phrase(r, &words_of(r)->alone, i);
        uint32_t d = phrase(r, &words_of(r)->danger, i);
        n = k > n ? k : n;
        uint32_t it = phrase(r, &words_of(r)->it, i); /* "stop it, stop it" */
        n = d > n ? d : n;
        n = it > n ? it : n;
        if (n == 0 && !r->used[i])
            return false;
        i += n > 0 ? n : 1;
    }
    return true;
}

/* The thing of the text that "it" means: the last one named before word i, or the next one. */
static struct stop_object named_near(const struct reader *r, uint32_t i)
{
    struct stop_object best = {0};
    for (uint32_t k = 0; k < r->n && (k < i || best.kind == STOP_OBJECT_NONE);) {
        struct stop_object o = {0};
        if (!r->used[k])
            o = stop_things_named(&r->s, k, false);
        bool found = o.kind == STOP_OBJECT_THINGS || o.kind == STOP_OBJECT_OTHER;
        if (found)
            best = o;
        k = found ? o.to : k + 1;
    }
    return best;
}

/* What the last turn was about. */
static struct stop_object of_focus(const struct reader *r)
{
    const struct home_focus *f = r->q->focus;
    const char *text = f ? f->device ? f->device : f->machine : NULL;
    if (!text)
        return (struct stop_object){0};
    struct stop_words *x = arena_zalloc(r->s.a, sizeof(*x));
    if (!x)
        return (struct stop_object){0};
    *x = stop_words_of(r->s.a, r->q->t,
                       f->device && f->room ? arena_printf(r->s.a, "%s in %s", text, f->room)
                                            : text);
    struct stop_search s;
    if (!stop_things_begin(&s, r->s.a, r->q->t, r->q->file, x))
        return (struct stop_object){0};
    return stop_things_at(&s, 0, true);
}

static void add_things(struct reader *r, const struct stop_object *o)
{
    struct stop *out = r->out;
    uint32_t most = r->q->file ? r->q->file->n_things : 0;
    if (!out->things)
        out->things = arena_zalloc_n(r->s.a, (size_t)most + 1, sizeof(*out->things));
    if (out->things && out->n_things == o->n_things && /* said again */
        memcmp(out->things, o->things, o->n_things * sizeof(*o->things)) == 0)
        return;
    for (uint32_t i = 0; out->things && i < o->n_things; i++) {
        bool has = false;
        for (uint32_t k = 0; k < out->n_things; k++)
            has |= out->things[k] == o->things[i];
        if (!has)
            out->things[out->n_things++] = o->things[i];
    }
}

/* Takes a match over; false: it stops nothing. */
static bool take(struct reader *r, const struct match *m)
{
    struct stop_object o = m->object;
    struct stop *out = r->out;
    bool it = o.kind == STOP_OBJECT_IT;
    use(r, m->from, m->to);
    if (it && out->what == STOP_THINGS)
        return true; /* "stop the saw, stop it" */
    if (it) {
        o = named_near(r, m->from);
        if (o.kind == STOP_OBJECT_NONE)
            o = of_focus(r);
    }
    if (it && o.kind != STOP_OBJECT_THINGS) {
        if (o.kind == STOP_OBJECT_OTHER || m->way != HOME_STOP_HALT || m->first)
            return false;
        if (!is_explained(r) && !r->danger)
            return false; /* "stop it, you are making me laugh" */
        o.kind = STOP_OBJECT_ALL;
    }
    /* "turn off the fan and the lights": both, so this is not the path for it */
    bool more = o.more && m->way != HOME_STOP_HALT;
    if (o.kind == STOP_OBJECT_OTHER || (more && !r->danger && !r->repeated))
        return false;
    /* "turn everything off" is about lights, too */
    if (o.kind == STOP_OBJECT_ALL && m->way == HOME_STOP_OFF && !r->danger && !r->repeated)
        return false;
    if (out->what == STOP_NOTHING) {
        const struct stop_words *x = it ? NULL : &r->x;
        out->way = m->way == HOME_STOP_OFF && !m->first ? HOME_STOP_POWER : m->way;
        out->several = o.several;
        out->room = o.room;
        out->name =
            x && o.name_to > o.name_from ? stop_things_said(&r->s, o.name_from, o.name_to) : NULL;
    }
    if (o.kind == STOP_OBJECT_ALL) {
        out->what = STOP_EVERYTHING;
    } else if (out->what != STOP_EVERYTHING) {
        out->what = STOP_THINGS;
        add_things(r, &o);
    }
    return true;
}

static void read_patterns(struct reader *r)
{
    const struct home_stop *s = words_of(r);
    for (uint32_t i = 0; i < r->n; i++)
        for (enum home_stop_way way = HOME_STOP_HALT; way < HOME_STOP_WAYS; way++)
            for (uint32_t k = 0; k < s->patterns[way].n; k++) {
                struct match m = {.way = way};
                if (pattern_at(r, s->patterns[way].w[k], i, &m) && !is_denied_before(r, &m) &&
                    !is_denied_after(r, &m) && take(r, &m))
                    k = s->patterns[way].n; /* one meaning of these words is enough */
            }
}

/* ---- stop, and nothing else ----------------------------------------------------------------- */

/* The words of alone, and of beside, from word i on; *stops: how many of the former. */
static uint32_t run_of_stops(const struct reader *r, uint32_t i, uint32_t *stops)
{
    *stops = 0;
    for (uint32_t n; i < r->n; i += n) {
        uint32_t k = phrase(r, &words_of(r)->alone, i);
        n = phrase(r, &words_of(r)->beside, i);
        if (k >= n && k > 0) {
            ++*stops;
            n = k;
        }
        if (n == 0)
            break;
    }
    return i;
}

/* How often the text says stop. */
static uint32_t count_stops(const struct reader *r)
{
    uint32_t total = 0, stops;
    for (uint32_t i = 0; i < r->n;) {
        uint32_t to = run_of_stops(r, i, &stops);
        total += stops;
        i = to > i ? to : i + 1;
    }
    return total;
}

/* "Stop!", alone, or with a reason that tells of danger, in front or behind. */
static void read_alone(struct reader *r)
{
    const struct home_stop *s = words_of(r);
    uint32_t stops;
    for (uint32_t i = 0; i < r->n;) {
        uint32_t to = run_of_stops(r, i, &stops);
        if (stops == 0) {
            i = to > i ? to : i + 1;
            continue;
        }
        struct match m = {.from = i, .to = to, .way = HOME_STOP_HALT, .first = true};
        bool begins = i == 0 || r->x.end[i - 1] != STOP_END_NONE;
        bool ends = to == r->n || r->x.end[to - 1] != STOP_END_NONE;
        bool whole = i == 0 && to == r->n;
        uint32_t next = skip_beside(r, to);
        /* behind it a reason, or in front of it */
        bool here = says(r, &s->danger, sentence_from(r, i), sentence_to(r, to));
        bool behind =
            begins && here &&
            (stops > 1 || phrase(r, &s->reason, next) > 0 || phrase(r, &s->danger, next) > 0);
        bool apart = begins && ends && r->danger;
        bool said = !is_denied_before(r, &m) && !is_denied_after(r, &m);
        if (said && (whole || apart || behind || (ends && here)))
            r->out->what = STOP_EVERYTHING;
        struct stop_object o = {0};
        use(r, i, to);
        if (said && begins && ends)
            o = named_near(r, i);
        if (o.kind == STOP_OBJECT_THINGS) { /* "the belt is on the floor, stop" */
            r->out->what = STOP_THINGS;
            add_things(r, &o);
        }
        i = to;
    }
}

/* Do the words at i begin to stop something? "Turn off, turn off the saw". */
static bool begins_stop(const struct reader *r, uint32_t i)
{
    const struct home_stop *s = words_of(r);
    for (enum home_stop_way way = HOME_STOP_HALT; way < HOME_STOP_WAYS; way++)
        for (uint32_t k = 0; k < s->patterns[way].n; k++) {
            const char *p = s->patterns[way].w[k], *thing = strstr(p, " " THING);
            if (!thing || thing[sizeof(THING)])
                continue;
            const char *words = arena_printf(r->s.a, "%.*s", (int)(thing - p), p);
            const struct home_list l = {&words, 1};
            if (phrase(r, &l, i) > 0)
                return true;
        }
    return false;
}

/* Does the text ask for something else, too? */
static bool asks_more(const struct reader *r)
{
    const struct home_table *t = r->q->t;
    for (uint32_t i = 0; i < r->n; i++) {
        bool begins = i == 0 || r->x.end[i - 1] != STOP_END_NONE;
        uint32_t k = i;
        while (k < r->n && home_table_lists(&t->join, r->x.w.w[k])) {
            begins = true;
            k++;
        }
        k = begins ? skip_beside(r, k) : k;
        k += begins ? phrase(r, &t->stop.wrap, k) : 0;
        if (!begins || k >= r->n || r->used[k])
            continue;
        if (home_table_lists(&t->stop.verbs, r->x.w.w[k]) &&
            phrase(r, &t->stop.questions, k) == 0 && phrase(r, &words_of(r)->alone, k) == 0 &&
            !begins_stop(r, k))
            return true;
    }
    return false;
}

/* Most texts have no word that stops anything. */
static bool has_word(const struct reader *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (phrase(r, &words_of(r)->words, i) > 0)
            return true;
    return false;
}

bool stop_read(struct arena *a, const struct stop_query *q, struct stop *out)
{
    struct reader r = {.q = q, .out = out};
    *out = (struct stop){0};
    if (!q->t->stop.device)
        return false;
    r.x = stop_words_of(a, q->t, q->text);
    r.n = r.x.w.n;
    r.used = arena_zalloc_n(a, (size_t)r.n + 1, sizeof(*r.used));
    if (!r.used || !has_word(&r) || !stop_things_begin(&r.s, a, q->t, q->file, &r.x))
        return false;
    r.danger = says(&r, &words_of(&r)->danger, 0, r.n);
    r.repeated = count_stops(&r) > 1;
    read_patterns(&r);
    if (out->what == STOP_NOTHING)
        read_alone(&r);
    if (out->what == STOP_NOTHING || a->rc < 0)
        return false;
    out->urgent = r.danger || r.repeated;
    if (out->what == STOP_EVERYTHING)
        out->n_things = stop_things_all(&r.s, NULL, &out->things);
    return out->urgent || !asks_more(&r);
}
