/* word_times.c - see word_times.h. */
#include "engine/native/word_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/t5.h"
#include "text/tokenizer/tokenizer.h"

#define MEDIAN 7u           /* frames */
#define LONGEST_USUAL 0.7   /* seconds: no usual word is longer */
#define SEGMENT_TRUSTED 0.5 /* seconds that a part's time may differ before it is believed */

/* ---- where tokens were said ---- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static float median_at(const float *x, uint32_t n, uint32_t at)
{
    float w[MEDIAN];
    for (uint32_t i = 0; i < MEDIAN; i++) { /* mirrored at both ends */
        int64_t j = (int64_t)at + i - MEDIAN / 2;
        j = j < 0 ? -j : j >= n ? 2 * ((int64_t)n - 1) - j : j;
        float v = x[j];
        uint32_t k = i;
        for (; k > 0 && w[k - 1] > v; k--)
            w[k] = w[k - 1];
        w[k] = v;
    }
    return w[MEDIAN / 2];
}

/* The weights of one head as shares, each frame's then as its distance from the mean of all rows.
 * x: [n_rows][n_heard]. */
static void standardize(float *x, const struct word_times_looks *l, uint32_t head)
{
    const uint32_t n = l->n_heard;
    for (uint32_t r = 0; r < l->n_rows; r++) {
        const float *w = l->weights + ((size_t)r * l->n_heads + head) * l->n_frames;
        double sum = 0;
        for (uint32_t i = 0; i < n; i++)
            sum += (double)w[i];
        for (uint32_t i = 0; i < n; i++)
            x[(size_t)r * n + i] = sum > 0 ? (float)((double)w[i] / sum) : 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        double mean = 0, var = 0;
        for (uint32_t r = 0; r < l->n_rows; r++)
            mean += (double)x[(size_t)r * n + i] / l->n_rows;
        for (uint32_t r = 0; r < l->n_rows; r++)
            var += pow((double)x[(size_t)r * n + i] - mean, 2) / l->n_rows;
        for (uint32_t r = 0; r < l->n_rows; r++) {
            float *v = &x[(size_t)r * n + i];
            *v = var > 0 ? (float)(((double)*v - mean) / sqrt(var)) : 0;
        }
    }
}

/* Adds the rows [first, first + n) of one head, filtered, to out: [n][n_heard]. */
static void add_head(float *out, const float *x, uint32_t width, uint32_t first, uint32_t n)
{
    for (uint32_t r = 0; r < n; r++)
        for (uint32_t i = 0; i < width; i++) {
            const float *row = x + (size_t)(first + r) * width;
            out[(size_t)r * width + i] += width > MEDIAN / 2 ? median_at(row, width, i) : row[i];
        }
}

enum came { TRACE_BOTH, TRACE_ROW, TRACE_FRAME };

/* The path from the first row and frame to the last ones that sees most; begin: its first frame in
 * each row.  cost: two columns of n + 1; trace: [(n + 1) * (width + 1)]. */
static void warp(uint32_t *begin, const float *x, uint32_t n, uint32_t width, double share,
                 float *cost, uint8_t *trace)
{
    float *last = cost, *next = cost + n + 1;
    for (uint32_t i = 0; i <= n; i++)
        last[i] = i ? INFINITY : 0;
    for (uint32_t f = 1; f <= width; f++) {
        next[0] = INFINITY;
        for (uint32_t i = 1; i <= n; i++) {
            const float both = last[i - 1], row = next[i - 1], frame = last[i];
            const enum came t = both < row && both < frame  ? TRACE_BOTH
                                : row < both && row < frame ? TRACE_ROW
                                                            : TRACE_FRAME;
            const float c = t == TRACE_BOTH ? both : t == TRACE_ROW ? row : frame;
            next[i] = (float)((double)c - (double)x[(size_t)(i - 1) * width + f - 1] * share);
            trace[(size_t)i * (width + 1) + f] = (uint8_t)t;
        }
        float *swap = last;
        last = next;
        next = swap;
    }
    for (uint32_t i = n, f = width; i > 0;) {
        const enum came t = f ? (enum came)trace[(size_t)i * (width + 1) + f] : TRACE_ROW;
        begin[i - 1] = f ? f - 1 : 0;
        i -= t != TRACE_FRAME;
        f -= t != TRACE_ROW;
    }
}

int word_times_align(uint32_t *begin, const struct word_times_looks *l, uint32_t first, uint32_t n)
{
    const uint32_t width = l->n_heard;
    float *x = mem_zalloc_n((size_t)l->n_rows * width, sizeof(*x));
    float *sum = mem_zalloc_n((size_t)n * width, sizeof(*sum));
    float *cost = mem_zalloc_n(2 * ((size_t)n + 1), sizeof(*cost));
    uint8_t *trace = mem_zalloc_n(((size_t)n + 1) * ((size_t)width + 1), 1);
    const int rc = x && sum && cost && trace ? 0 : SHOAL_ENOMEM;
    for (uint32_t h = 0; rc == 0 && h < l->n_heads; h++) {
        standardize(x, l, h);
        add_head(sum, x, width, first, n);
    }
    if (rc == 0)
        warp(begin, sum, n, width, 1.0 / l->n_heads, cost, trace);
    mem_free(x);
    mem_free(sum);
    mem_free(cost);
    mem_free(trace);
    return rc;
}

/* Reads the text; begin as of word_times_divide. */
static int read_text(double *begin, struct t5 *t, const struct word_times_text *x)
{
    const uint32_t n_rows = x->n_first + x->n + 1;
    const size_t row = (size_t)t5_n_aligned(t) * x->n_source;
    float *weights = mem_zalloc_n(n_rows * row, sizeof(*weights));
    uint32_t *frames = mem_zalloc_n(x->n + 1, sizeof(*frames));
    int rc = weights && frames ? 0 : SHOAL_ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < n_rows; i++) {
        const uint32_t at = i - x->n_first;
        const struct t5_row r = {.token = i < x->n_first ? x->first[i]
                                          : at < x->n    ? x->tokens[at]
                                                         : x->end,
                                 .pos = i,
                                 .pages = x->pages,
                                 .source_pages = x->source_pages,
                                 .n_source = x->n_source,
                                 .looks = weights + i * row};
        t5_decode(t, &r, 1);
    }
    const struct word_times_looks looks = {weights, n_rows, t5_n_aligned(t), x->n_source,
                                           x->n_heard};
    if (rc == 0) /* the row that writes a token is that of the token before it */
        rc = word_times_align(frames, &looks, x->n_first - 1, x->n + 1);
    for (uint32_t i = 0; rc == 0 && i <= x->n; i++)
        begin[i] = frames[i] * x->step;
    mem_free(weights);
    mem_free(frames);
    return rc;
}

/* ---- words ---- */

struct words {
    struct word_times_word *w;
    uint32_t n;
    const struct str *pieces;
};

/* How many bytes of a character that begins with c follow. */
static uint32_t following(uint8_t c)
{
    return c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
}

/* Whether the text of a word is one of the marks, or several as they stand there. */
static bool is_mark(const struct words *x, const struct word_times_word *w, const char *marks,
                    bool strip)
{
    char text[16];
    size_t n = 0;
    for (uint32_t i = w->from; i < w->to; i++) {
        if (n + x->pieces[i].n >= sizeof(text))
            return false;
        memcpy(text + n, x->pieces[i].p, x->pieces[i].n);
        n += x->pieces[i].n;
    }
    text[n] = '\0';
    return strstr(marks, text + (strip ? strspn(text, " ") : 0)) != NULL;
}

static bool begins_with_space(const struct words *x, const struct word_times_word *w)
{
    return w->from < w->to && x->pieces[w->from].n > 0 && x->pieces[w->from].p[0] == ' ';
}

static void split(struct words *x, const double *begin, uint32_t n, bool spaced)
{
    static const char punctuation[] = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
    uint32_t open = 0; /* bytes that the last character still needs */
    for (uint32_t i = 0; i < n; i++) {
        struct word_times_word w = {i, i + 1, begin[i], begin[i + 1]};
        const bool inside = open > 0;
        for (size_t b = 0; b < x->pieces[i].n; b++) {
            const uint8_t c = (uint8_t)x->pieces[i].p[b];
            open = c < 0x80 || c >= 0xc0 ? following(c) : open ? open - 1 : 0;
        }
        if (x->n == 0 || (!inside && (!spaced || begins_with_space(x, &w) ||
                                      is_mark(x, &w, punctuation, true)))) {
            x->w[x->n++] = w;
        } else {
            x->w[x->n - 1].to = i + 1;
            x->w[x->n - 1].stop = w.stop;
        }
    }
}

static double length(const struct word_times_word *w)
{
    return w->stop - w->start;
}

/* The median of the words that take any time, at most LONGEST_USUAL; < 0: out of memory. */
static double usual_length(const struct words *x)
{
    double *all = mem_zalloc_n(x->n + 1u, sizeof(*all)), median = 0;
    uint32_t n = 0;
    if (!all)
        return -1;
    for (uint32_t i = 0; i < x->n; i++)
        if (length(&x->w[i]) > 0)
            all[n++] = length(&x->w[i]);
    qsort(all, n, sizeof(*all), by_size);
    if (n)
        median = n % 2 ? all[n / 2] : (all[n / 2 - 1] + all[n / 2]) / 2;
    mem_free(all);
    return median < LONGEST_USUAL ? median : LONGEST_USUAL;
}

/* A pause between sentences is no part of a word. */
static void cut_pauses(struct words *x, double most)
{
    static const char ends[] = ".。!！?？";
    for (uint32_t i = 1; i < x->n; i++) {
        struct word_times_word *w = &x->w[i];
        if (length(w) <= most)
            continue;
        if (is_mark(x, w, ends, false))
            w->stop = w->start + most;
        else if (is_mark(x, w - 1, ends, false))
            w->start = w->stop - most;
    }
}

/* Marks join the word behind or before them and give their time away. */
static void join_marks(struct words *x)
{
    static const char before[] = "\"'“¿([{-", behind[] = "\"'.。,，!！?？:：”)]}、";
    for (uint32_t i = x->n - 1, next = x->n - 1; i-- > 0;) {
        struct word_times_word *w = &x->w[i];
        if (begins_with_space(x, w) && is_mark(x, w, before, true)) {
            x->w[next].from = w->from;
            w->to = w->from;
        } else {
            next = i;
        }
    }
    uint32_t kept = 0;
    for (uint32_t i = 1; i < x->n; i++) {
        if (x->w[i].from == x->w[i].to)
            continue;
        if (x->w[kept].from < x->w[kept].to && is_mark(x, &x->w[i], behind, false))
            x->w[kept].to = x->w[i].to;
        else if (x->w[kept].from == x->w[kept].to)
            x->w[kept] = x->w[i];
        else
            x->w[++kept] = x->w[i];
    }
    x->n = kept + 1;
}

/* The first words behind a pause are not longer than others are; a part's own times are believed
 * where its ends stand out.  *last: when the speech before it ended. */
static void settle(struct word_times_word *w, uint32_t n, const struct word_times_part *p,
                   double usual, double *last)
{
    const double most = 2 * usual;
    struct word_times_word *end = &w[n - 1];
    if (w->stop - *last > 4 * usual &&
        (length(w) > most || (n > 1 && w[1].stop - w->start > 2 * most))) {
        if (n > 1 && length(&w[1]) > most)
            w->stop = w[1].start = fmax(w[1].stop / 2, w[1].stop - most);
        w->start = fmax(0, w->stop - most);
    }
    if (p->start < w->stop && p->start - SEGMENT_TRUSTED > w->start)
        w->start = fmax(0, fmin(w->stop - usual, p->start));
    *last = end->stop;
    if (p->stop > end->start && p->stop + SEGMENT_TRUSTED < end->stop)
        end->stop = fmax(end->start + usual, *last = p->stop);
}

int word_times_divide(struct word_times_word *out, uint32_t *n_out, const struct str *pieces,
                      const double *begin, uint32_t n, bool spaced,
                      const struct word_times_part *parts, uint32_t n_parts)
{
    struct words x = {out, 0, pieces};
    double last = 0;
    *n_out = 0;
    if (n == 0)
        return 0;
    split(&x, begin, n, spaced);
    const double usual = usual_length(&x);
    if (usual < 0)
        return SHOAL_ENOMEM;
    cut_pauses(&x, 2 * usual);
    join_marks(&x);
    for (uint32_t p = 0, at = 0, seen = 0; p < n_parts && at < x.n; p++) {
        const uint32_t from = at;
        for (seen += parts[p].n_tokens; at < x.n && out[at].from < seen;)
            at++;
        if (at > from)
            settle(out + from, at - from, &parts[p], usual, &last);
    }
    *n_out = x.n;
    return 0;
}

/* From tokens to bytes, without the spaces around them; a text has no space at its beginning. */
static void to_bytes(struct word_times_word *w, uint32_t n, const struct str *pieces)
{
    uint32_t token = 0, at = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = 0;
        for (; token < w[i].to; token++) {
            if (token == w[i].from)
                from = at;
            at += (uint32_t)pieces[token].n;
        }
        w[i].from = from + (pieces[w[i].from].n > 0 && pieces[w[i].from].p[0] == ' ');
        w[i].to = at;
    }
}

int word_times_find(struct word_times_word **out, uint32_t *n_out, struct t5 *t,
                    const struct tokenizer *tokenizer, const struct word_times_text *x)
{
    struct word_times_word *words = mem_zalloc_n(x->n + 1u, sizeof(*words));
    struct str *pieces = mem_zalloc_n(x->n + 1u, sizeof(*pieces));
    double *begin = mem_zalloc_n(x->n + 1u, sizeof(*begin));
    int rc = words && pieces && begin ? 0 : SHOAL_ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < x->n; i++)
        pieces[i] = tokenizer_piece(tokenizer, x->tokens[i], 0);
    *n_out = 0;
    if (rc == 0 && x->n > 0)
        rc = read_text(begin, t, x);
    if (rc == 0)
        rc = word_times_divide(words, n_out, pieces, begin, x->n, x->spaced, x->parts, x->n_parts);
    if (rc == 0)
        to_bytes(words, *n_out, pieces);
    mem_free(pieces);
    mem_free(begin);
    if (rc < 0)
        mem_free(words);
    *out = rc < 0 ? NULL : words;
    return rc;
}
