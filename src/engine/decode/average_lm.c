/* average_lm.c - see average_lm.h. */
#include "engine/decode/average_lm.h"

#include <math.h>

#include "base/mem.h"
#include "kernels/kern.h"
#include "model/weights.h"

struct average {
    struct average_member members[AVERAGE_MAX_MEMBERS]; /* members with a weight come first */
    uint32_t n_members, n_counting;
    const struct kern_ops *kernels;
    uint32_t n_vocab, max_rows;
    float *rows; /* [max_rows, n_vocab]: of the last pass */
    float *work;
};

/* ---- the mean ---- */

/* log(sum of exp(row)) */
static double log_sum(const float *row, uint32_t n, const struct kern_ops *k, float *work)
{
    const float max = k->max(row, n);
    uint32_t at = 0;
    double sum = 0;
    do { /* a vocabulary has at least one token */
        const uint32_t part = n - at < AVERAGE_BLOCK ? n - at : AVERAGE_BLOCK;
        sum += (double)k->softmax_exp(work, row + at, part, max);
        at += part;
    } while (at < n);
    return (double)max + log(sum);
}

void average_mix(float *out, const float *const *rows, const double *weights, uint32_t n_rows,
                 uint32_t n, const struct kern_ops *k, float *work)
{
    float shift[AVERAGE_MAX_MEMBERS], *sum = work, *part = work + AVERAGE_BLOCK;
    double first = 0;
    for (uint32_t r = 0; r < n_rows; r++) {
        const double s = log(weights[r]) - log_sum(rows[r], n, k, work);
        first = r == 0 ? s : first;
        shift[r] = (float)(s - first); /* the first row keeps its values, and so its order */
    }
    for (uint32_t at = 0; at < n; at += AVERAGE_BLOCK) {
        const uint32_t m = n - at < AVERAGE_BLOCK ? n - at : AVERAGE_BLOCK;
        float *to = out + at;
        for (uint32_t i = 0; i < m; i++) {
            to[i] = rows[0][at + i];
            sum[i] = 0;
        }
        for (uint32_t r = 1; r < n_rows; r++)
            for (uint32_t i = 0; i < m; i++) {
                const float x = rows[r][at + i] + shift[r];
                to[i] = x > to[i] ? x : to[i];
            }
        for (uint32_t r = 0; r < n_rows; r++) { /* relative to the likeliest: nothing underflows */
            for (uint32_t i = 0; i < m; i++)
                part[i] = rows[r][at + i] + shift[r] - to[i];
            (void)k->softmax_exp(part, part, m, 0.0f);
            k->add(sum, part, m);
        }
        for (uint32_t i = 0; i < m; i++)
            to[i] += logf(sum[i]);
    }
}

/* ---- passes ---- */

struct one_pass {
    const struct lm_pass *pass;
    bool given;
};

static bool next_once(void *ctx, struct lm_pass *pass)
{
    struct one_pass *o = ctx;
    if (o->given)
        return false;
    o->given = true;
    *pass = *o->pass;
    return true;
}

static void mix_rows(struct average *a, uint32_t n_rows)
{
    const float *rows[AVERAGE_MAX_MEMBERS];
    double weights[AVERAGE_MAX_MEMBERS];
    for (uint32_t i = 0; i < n_rows && a->n_counting > 1; i++) {
        for (uint32_t m = 0; m < a->n_counting; m++) {
            const struct lm *lm = &a->members[m].lm;
            rows[m] = lm->ops->logits(lm->impl, i);
            weights[m] = a->members[m].weight;
        }
        average_mix(a->rows + (size_t)i * a->n_vocab, rows, weights, a->n_counting, a->n_vocab,
                    a->kernels, a->work);
    }
}

static void average_passes(void *impl, lm_next_fn next, void *ctx)
{
    struct average *a = impl;
    struct lm_pass pass = {0};
    while (next(ctx, &pass)) {
        uint32_t n_rows = 0;
        for (uint32_t i = 0; i < pass.n_runs; i++)
            n_rows += pass.runs[i].n_logits_last;
        for (uint32_t m = 0; m < a->n_counting; m++) {
            struct one_pass o = {.pass = &pass};
            a->members[m].lm.ops->passes(a->members[m].lm.impl, next_once, &o);
        }
        mix_rows(a, n_rows);
    }
}

static const float *average_logits(const void *impl, uint32_t i)
{
    const struct average *a = impl;
    const struct lm *only = &a->members[0].lm;
    return a->n_counting == 1 ? only->ops->logits(only->impl, i) : a->rows + (size_t)i * a->n_vocab;
}

static void average_release(void *impl, uint32_t slot)
{
    const struct average *a = impl;
    for (uint32_t m = 0; m < a->n_counting; m++)
        if (a->members[m].lm.ops->release)
            a->members[m].lm.ops->release(a->members[m].lm.impl, slot);
}

static void average_urgency(void *impl, int32_t priority, uint64_t deadline_ns)
{
    const struct average *a = impl;
    for (uint32_t m = 0; m < a->n_counting; m++)
        if (a->members[m].lm.ops->urgency)
            a->members[m].lm.ops->urgency(a->members[m].lm.impl, priority, deadline_ns);
}

static bool average_changed(const void *impl)
{
    const struct average *a = impl;
    for (uint32_t i = 0; i < a->n_members; i++) {
        const struct average_member *m = &a->members[i];
        if ((m->file && model_file_changed(m->file)) ||
            (m->lm.weights && weights_changed(m->lm.weights)))
            return true;
    }
    return false;
}

/* ---- create ---- */

void average_member_fini(struct average_member *m)
{
    lm_close(&m->lm);
    model_file_close(m->file);
    mem_pages_free(m->kv, m->kv_bytes);
    *m = (struct average_member){.weight = 0};
}

static void average_close(void *impl)
{
    struct average *a = impl;
    for (uint32_t i = 0; i < a->n_members; i++)
        average_member_fini(&a->members[i]);
    mem_free(a->rows);
    mem_free(a->work);
    mem_free(a);
}

static const struct lm_ops average_ops = {.passes = average_passes,
                                          .logits = average_logits,
                                          .release = average_release,
                                          .urgency = average_urgency,
                                          .changed = average_changed,
                                          .close = average_close};

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The common abilities of all members, and their total sizes. */
static void join_info(struct lm_info *to, const struct lm_info *from)
{
    to->n_vocab = smaller(to->n_vocab, from->n_vocab);
    to->n_ctx = smaller(to->n_ctx, from->n_ctx);
    to->n_ctx_train = smaller(to->n_ctx_train, from->n_ctx_train);
    to->max_batch = smaller(to->max_batch, from->max_batch);
    to->n_layers += from->n_layers;
    to->weights_bytes += from->weights_bytes;
    to->scratch_bytes += from->scratch_bytes;
    to->kv_page_bytes += from->kv_page_bytes;
    to->file_bytes += from->file_bytes;
    to->from_cache = to->from_cache && from->from_cache;
    to->pages_hold_kv = to->pages_hold_kv && from->pages_hold_kv;
}

/* Those with a weight, or those without.  Returns how many. */
static uint32_t take_members(struct average *a, struct average_member *from, uint32_t n,
                             bool counting)
{
    const uint32_t before = a->n_members;
    for (uint32_t i = 0; i < n; i++)
        if (from[i].lm.ops && (from[i].weight > 0) == counting) {
            a->members[a->n_members++] = from[i];
            from[i] = (struct average_member){.weight = 0};
        }
    return a->n_members - before;
}

int average_lm_create(struct lm *out, struct average_member *members, uint32_t n,
                      const struct kern_ops *kernels, uint32_t max_rows, struct err *e)
{
    struct average *a = mem_zalloc(sizeof(*a));
    struct lm_info info = members[0].lm.info;
    for (uint32_t i = 1; i < n; i++)
        join_info(&info, &members[i].lm.info);
    if (a) {
        a->n_counting = take_members(a, members, n, true);
        (void)take_members(a, members, n, false);
        a->kernels = kernels;
        a->n_vocab = info.n_vocab;
        a->max_rows = max_rows;
        a->rows = mem_zalloc_n((size_t)max_rows * info.n_vocab, sizeof(*a->rows));
        a->work = mem_zalloc_n((size_t)2 * AVERAGE_BLOCK, sizeof(*a->work));
    }
    if (!a || !a->rows || !a->work) {
        if (a)
            average_close(a);
        for (uint32_t i = 0; i < n; i++)
            average_member_fini(&members[i]);
        return err_set(e, SHOAL_ENOMEM, "out of memory for an average of %u models", n);
    }
    info.scratch_bytes += (size_t)max_rows * info.n_vocab * sizeof(*a->rows);
    *out = (struct lm){.ops = &average_ops, .impl = a, .info = info};
    return 0;
}
