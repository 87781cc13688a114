/* stop_words.c - see stop_words.h. */
#include "apps/home/stop/stop_words.h"

#include <stdlib.h>
#include <string.h>

#define SENTENCE ".!?;\n"
#define BREAKS " \t\v\f\r,:\"()[]" SENTENCE
#define DASHES "-\xe2"

/* "stooop" is "stop": at least three of a letter in a row. */
static bool is_drawn_out(const char *w)
{
    for (; w[0] && w[1] && w[2]; w++)
        if (w[0] == w[1] && w[1] == w[2] && !(w[0] >= '0' && w[0] <= '9'))
            return true;
    return false;
}

/* Is a equal to the n bytes at b, if each run of a letter counts as one? */
static bool same_squeezed(const char *a, const char *b, size_t n)
{
    const char *end = b + n;
    while (*a && b < end) {
        if (*a != *b)
            return false;
        for (char c = *a; *a == c;)
            a++;
        for (char c = *b; b < end && *b == c;)
            b++;
    }
    return !*a && b == end;
}

/* Is a word of a text the n bytes at p? */
static bool is_word(const struct home_table *t, const char *w, const char *p, size_t n)
{
    if (n == 1 && *p == '#')
        return stop_words_is_number(t, w);
    return (strlen(w) == n && memcmp(w, p, n) == 0) || (is_drawn_out(w) && same_squeezed(w, p, n));
}

bool stop_words_same(const char *said, const char *word)
{
    size_t n = strlen(said), m = strlen(word);
    if (n > m + 1 && strcmp(said + m, "'s") == 0) /* "the saw's" power */
        n = m;
    if (n == m && memcmp(said, word, n) == 0)
        return true;
    const char *more = n > m ? said : word, *less = n > m ? word : said;
    size_t k = n > m ? m : n, ending = n > m ? n - m : m - n;
    if (k > 2 && strncmp(more, less, k) == 0 &&
        ((ending == 1 && more[k] == 's') || (ending == 2 && strcmp(more + k, "es") == 0)))
        return true;
    return is_drawn_out(said) && same_squeezed(said, word, m);
}

static bool number_of(const struct home_table *t, const char *w, long *out)
{
    uint32_t i;
    char *end;
    if (!*w)
        return false;
    if (strmap_get(&t->numbers, w, strlen(w), &i)) {
        *out = (long)i;
        return true;
    }
    *out = strtol(w, &end, 10);
    return !*end || *end == ':' || *end == '.'; /* "17:30" */
}

bool stop_words_is_number(const struct home_table *t, const char *word)
{
    long n;
    return number_of(t, word, &n);
}

bool stop_words_same_number(const struct home_table *t, const char *a, const char *b)
{
    long x, y;
    return number_of(t, a, &x) && number_of(t, b, &y) && x == y;
}

bool stop_words_is(const struct home_table *t, const struct stop_words *x, uint32_t i,
                   const char *p, size_t n)
{
    return i < x->w.n && *x->w.w[i] && is_word(t, x->w.w[i], p, n);
}

uint32_t stop_words_phrase(const struct home_table *t, const struct stop_words *x,
                           const struct home_list *l, uint32_t i, uint32_t to)
{
    uint32_t most = 0;
    for (uint32_t k = 0; k < l->n; k++) {
        uint32_t n = 0;
        const char *p = l->w[k];
        bool same = true;
        for (; *p && same; n++) {
            size_t len = strcspn(p, " ");
            bool breaks = n > 0 && x->end[i + n - 1] != STOP_END_NONE;
            same = i + n < to && !breaks && stop_words_is(t, x, i + n, p, len);
            p += len + (p[len] == ' ');
        }
        if (same && n > most)
            most = n;
    }
    return most;
}

uint32_t stop_words_before(const struct home_table *t, const struct stop_words *x,
                           const struct home_list *l, uint32_t i)
{
    for (uint32_t n = i < 6 ? i : 6; n > 0; n--)
        if (stop_words_phrase(t, x, l, i - n, i) == n)
            return n;
    return 0;
}

/* ---- splitting ------------------------------------------------------------------------------ */

struct splitter {
    struct arena *a;
    const struct home_table *t;
    struct stop_words out;
};

static void add(struct splitter *s, const char *word)
{
    if (*word && s->out.w.n < STOP_MAX_WORDS)
        s->out.w.w[s->out.w.n++] = word;
}

/* One word as it is written: "shutdown" is "shut down". */
static void add_heard(struct splitter *s, const char *word)
{
    const struct home_pairs *h = &s->t->stop.heard;
    for (uint32_t i = 0; i < h->n; i++)
        if (strcmp(h->p[i].from, word) == 0) {
            struct home_words w = home_words_split(s->a, h->p[i].to);
            for (uint32_t k = 0; k < w.n; k++)
                add(s, w.w[k]);
            return;
        }
    add(s, word);
}

static void set_end(struct splitter *s, enum stop_end end)
{
    uint32_t n = s->out.w.n;
    if (n > 0 && s->out.end[n - 1] < end)
        s->out.end[n - 1] = (uint8_t)end;
}

/* Is the dash at p one between words, not inside of one? */
static bool is_dash(const char *text, const char *p)
{
    if (strncmp(p, "\xe2\x80\x93", 3) == 0 || strncmp(p, "\xe2\x80\x94", 3) == 0 ||
        strncmp(p, "\xe2\x80\xa6", 3) == 0) /* en dash, em dash, ellipsis */
        return true;
    return *p == '-' && (p == text || strchr(" -", p[-1]) || strchr(" -", p[1]));
}

/* Does the word end at p? A dot or colon between digits does not end it: "2.5", "17:30". */
static bool is_break(const char *text, const char *p)
{
    bool digits = p > text && strchr("0123456789", p[-1]) && p[1] && strchr("0123456789", p[1]);
    if (strchr(".:,", *p) && digits)
        return false;
    return strchr(BREAKS, *p) || (strchr(DASHES, *p) && is_dash(text, p));
}

struct stop_words stop_words_of(struct arena *a, const struct home_table *t, const char *text)
{
    struct splitter s = {.a = a, .t = t};
    s.out.w.w = arena_zalloc_n(a, STOP_MAX_WORDS + 1, sizeof(*s.out.w.w));
    s.out.end = arena_zalloc_n(a, STOP_MAX_WORDS + 1, sizeof(*s.out.end));
    if (!s.out.w.w || !s.out.end)
        return (struct stop_words){0};
    for (const char *p = text; *p;) {
        size_t n = 0;
        while (p[n] && !is_break(text, p + n))
            n++;
        if (n > 0)
            add_heard(&s,
                      home_table_bare(t, home_words_plain(a, arena_printf(a, "%.*s", (int)n, p))));
        p += n;
        if (*p && strchr(SENTENCE, *p))
            set_end(&s, STOP_END_SENTENCE);
        else if (*p == ',' || *p == ':' || (*p && strchr(DASHES, *p)))
            set_end(&s, STOP_END_COMMA);
        if (*p)
            p++;
        while (p > text && ((unsigned char)*p & 0xc0) == 0x80) /* the rest of a dash */
            p++;
    }
    struct stop_words *x = &s.out;
    for (uint32_t i = 0; i < x->w.n; i++) {
        uint32_t n = stop_words_phrase(t, x, &t->stop.not, i, x->w.n);
        for (uint32_t k = 0; k < n; k++)
            x->w.w[i + k] = "";
    }
    return a->rc < 0 ? (struct stop_words){0} : s.out;
}
