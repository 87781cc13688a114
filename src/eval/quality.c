/* quality.c - see quality.h. */
#include "eval/quality.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/quantile.h"
#include "base/room.h"

/* ---- counts --------------------------------------------------------------------------------- */

int quality_add(struct quality_counts *c, const char *label, uint32_t hit, uint32_t said,
                uint32_t true_, struct err *e)
{
    uint32_t i = 0;
    while (i < c->n && strcmp(c->by[i].label, label) != 0)
        i++;
    if (!room_make32(&c->by, &c->cap, i, sizeof(*c->by), 64))
        return err_set(e, SHOAL_ENOMEM, "out of memory for %u labels", i);
    if (i == c->n)
        c->by[c->n++] = (struct quality_count){.label = label};
    c->by[i].hit += hit;
    c->by[i].said += said;
    c->by[i].true_ += true_;
    return 0;
}

void quality_counts_fini(struct quality_counts *c)
{
    mem_free(c->by);
    *c = (struct quality_counts){0};
}

struct quality_f1 quality_f1(uint64_t hit, uint64_t said, uint64_t true_)
{
    struct quality_f1 m = {0};
    m.precision = said ? (double)hit / (double)said : 0.0;
    m.recall = true_ ? (double)hit / (double)true_ : 0.0;
    m.f1 = m.precision + m.recall > 0.0 ? 2.0 * m.precision * m.recall / (m.precision + m.recall)
                                        : 0.0;
    return m;
}

struct quality_f1 quality_micro(const struct quality_counts *c)
{
    uint64_t hit = 0, said = 0, true_ = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        hit += c->by[i].hit;
        said += c->by[i].said;
        true_ += c->by[i].true_;
    }
    return quality_f1(hit, said, true_);
}

double quality_macro_f1(const struct quality_counts *c)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < c->n; i++)
        sum += quality_f1(c->by[i].hit, c->by[i].said, c->by[i].true_).f1;
    return c->n ? sum / c->n : 0.0;
}

/* ---- calibration ---------------------------------------------------------------------------- */

void quality_ece_add(struct quality_ece *m, double confidence, bool right)
{
    double at = confidence * QUALITY_BINS;
    uint32_t bin = at <= 0.0 ? 0 : at >= QUALITY_BINS ? QUALITY_BINS - 1 : (uint32_t)at;
    m->n[bin]++;
    m->right[bin] += right;
    m->sum[bin] += confidence;
}

double quality_ece(const struct quality_ece *m)
{
    double off = 0.0;
    uint64_t n = 0;
    for (uint32_t i = 0; i < QUALITY_BINS; i++) {
        off += fabs(m->sum[i] - (double)m->right[i]);
        n += m->n[i];
    }
    return n ? off / (double)n : 0.0;
}

/* ---- spans ---------------------------------------------------------------------------------- */

uint32_t quality_spans(const char *const *tags, uint32_t n_tags, struct quality_span *out)
{
    uint32_t n = 0;
    bool open = false;
    for (uint32_t i = 0; i < n_tags; i++) {
        const char *t = tags[i];
        bool tagged = t[0] && t[1] == '-';
        char kind = tagged ? t[0] : 'O';
        size_t len = tagged ? strlen(t + 2) : 0;
        bool same = open && len == out[n - 1].type_bytes &&
                    memcmp(out[n - 1].type, t + 2, len) == 0 && tagged;
        if (!tagged) {
            open = false;
        } else if ((kind == 'I' || kind == 'E') && same) {
            out[n - 1].to = i + 1;
            open = kind == 'I';
        } else {
            out[n++] = (struct quality_span){t + 2, len, i, i + 1};
            open = kind == 'B' || kind == 'I';
        }
    }
    return n;
}

/* ---- ROUGE ---------------------------------------------------------------------------------- */

struct words {
    uint32_t *id; /* equal words have equal numbers */
    uint32_t n;
};

struct word {
    const char *p;
    size_t n;
};

static size_t word_at(const char *s, struct word *w)
{
    const char *p = s;
    while (*p && !(ascii_is_digit(*p) || ascii_is_letter(*p)))
        p++;
    w->p = p;
    while (ascii_is_digit(*p) || ascii_is_letter(*p))
        p++;
    w->n = (size_t)(p - w->p);
    return (size_t)(p - s);
}

static bool same_word(const struct word *a, const struct word *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if ((a->p[i] | 32) != (b->p[i] | 32)) /* letters and digits only */
            return false;
    return true;
}

static uint32_t count_words(const char *s)
{
    struct word w;
    uint32_t n = 0;
    for (size_t used; (used = word_at(s, &w)) > 0 && w.n > 0; s += used)
        n++;
    return n;
}

/* Numbers the words of a text; `all` collects the words seen so far. */
static void number_words(const char *s, struct words *out, struct word *all, uint32_t *n_all)
{
    struct word w;
    for (size_t used; (used = word_at(s, &w)) > 0 && w.n > 0; s += used) {
        uint32_t i = 0;
        while (i < *n_all && !same_word(&all[i], &w))
            i++;
        if (i == *n_all)
            all[(*n_all)++] = w;
        out->id[out->n++] = i;
    }
}

/* Number of common n-grams, each counted as often as in the text where it is rarer. */
static uint32_t common_ngrams(const struct words *a, const struct words *b, uint32_t size,
                              bool *used)
{
    uint32_t common = 0;
    memset(used, 0, b->n * sizeof(*used));
    for (uint32_t i = 0; i + size <= a->n; i++)
        for (uint32_t j = 0; j + size <= b->n; j++)
            if (!used[j] && memcmp(a->id + i, b->id + j, size * sizeof(*a->id)) == 0) {
                used[j] = true;
                common++;
                break;
            }
    return common;
}

static uint32_t longest_common(const struct words *a, const struct words *b, uint32_t *row)
{
    memset(row, 0, ((size_t)b->n + 1) * sizeof(*row));
    for (uint32_t i = 0; i < a->n; i++) {
        uint32_t diagonal = 0;
        for (uint32_t j = 0; j < b->n; j++) {
            uint32_t above = row[j + 1];
            if (a->id[i] == b->id[j])
                row[j + 1] = diagonal + 1;
            else if (row[j] > above)
                row[j + 1] = row[j];
            diagonal = above;
        }
    }
    return row[b->n];
}

int quality_rouge(struct quality_rouge *out, const char *said, const char *true_, struct err *e)
{
    uint32_t na = count_words(said), nb = count_words(true_), n_all = 0;
    struct word *all = mem_zalloc_n((size_t)na + nb, sizeof(*all));
    struct words a = {.id = mem_zalloc_n(na, sizeof(*a.id))};
    struct words b = {.id = mem_zalloc_n(nb, sizeof(*b.id))};
    uint32_t *row = mem_zalloc_n((size_t)nb + 1, sizeof(*row));
    int rc = all && a.id && b.id && row
                 ? 0
                 : err_set(e, SHOAL_ENOMEM, "out of memory for ROUGE of %u words", na);
    if (rc == 0) {
        number_words(said, &a, all, &n_all);
        number_words(true_, &b, all, &n_all);
        bool *used = (bool *)row;
        uint32_t bi_a = na ? na - 1 : 0, bi_b = nb ? nb - 1 : 0;
        out->r1 = quality_f1(common_ngrams(&a, &b, 1, used), na, nb).f1;
        out->r2 = quality_f1(common_ngrams(&a, &b, 2, used), bi_a, bi_b).f1;
        out->rl = quality_f1(longest_common(&a, &b, row), na, nb).f1;
    }
    mem_free(all);
    mem_free(a.id);
    mem_free(b.id);
    mem_free(row);
    return rc;
}

/* ---- ranking and spread --------------------------------------------------------------------- */

static int by_score(const void *x, const void *y, void *scores)
{
    double a = ((const double *)scores)[*(const uint32_t *)x];
    double b = ((const double *)scores)[*(const uint32_t *)y];
    return (a > b) - (a < b);
}

double quality_auc(const double *scores, const bool *labels, size_t n, uint32_t *order)
{
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, n, sizeof(*order), by_score, (void *)(uintptr_t)scores);
    double ranks = 0.0;
    size_t positive = 0;
    for (size_t i = 0, j; i < n; i = j) { /* equal scores get the mean of their ranks */
        for (j = i + 1; j < n && scores[order[j]] == scores[order[i]]; j++)
            ;
        for (size_t k = i; k < j; k++)
            if (labels[order[k]]) {
                ranks += (double)(i + j + 1) / 2.0;
                positive++;
            }
    }
    double p = (double)positive, q = (double)(n - positive);
    return p > 0.0 && q > 0.0 ? (ranks - p * (p + 1.0) / 2.0) / (p * q) : NAN;
}

double quality_quantile(double *values, size_t n, double q)
{
    if (n > 0)
        qsort(values, n, sizeof(*values), order_double);
    return quantile_sorted(values, n, q);
}
