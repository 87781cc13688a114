/* heads_run.c - logits to results, token vectors to one embedding; see heads.h. */
#include <math.h>
#include <string.h>

#include "model/encoder.h"
#include "model/heads_int.h"

void heads_probabilities(const struct kern_ops *k, const struct heads_set *set, float *logits)
{
    k->scale(logits, 1.0f / set->temperature, set->count);
    if (set->multi) {
        k->sigmoid(logits, logits, set->count);
        return;
    }
    float sum = k->softmax_exp(logits, logits, set->count, k->max(logits, set->count));
    k->scale(logits, 1.0f / sum, set->count);
}

struct heads_answer heads_answer(const struct heads_set *set, const float *p)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < set->count; i++)
        best = p[i] > p[best] ? i : best;
    if (set->oos >= 0 && best != (uint32_t)set->oos && p[best] < set->threshold)
        return (struct heads_answer){(uint32_t)set->oos, 1.0f - p[best]};
    return (struct heads_answer){best, p[best]};
}

float heads_relevance(const struct heads *h, float logit, bool raw)
{
    float y;
    if (raw || !h->info.rerank_sigmoid)
        return logit;
    kern_scalar.sigmoid(&y, &logit, 1);
    return y;
}

void heads_normalize(const struct kern_ops *k, float *v, uint32_t n)
{
    k->rmsnorm(v, v, NULL, n, 1e-30f); /* mean of squares 1... */
    k->scale(v, 1.0f / sqrtf((float)n), n);
}

/* Eight sums side by side, then one after the other: the same bits on every machine. */
static float dot(const float *a, const float *b, uint32_t n)
{
    float sum[8] = {0}, rest = 0;
    uint32_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (uint32_t j = 0; j < 8; j++)
            sum[j] += a[i + j] * b[i + j];
    for (; i < n; i++)
        rest += a[i] * b[i];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7])) + rest;
}

static void activate(const struct kern_ops *k, enum heads_act act, float *y, uint32_t n)
{
    if (act == HEADS_ACT_TANH)
        k->tanh(y, y, n);
    else if (act == HEADS_ACT_RELU)
        k->relu(y, y, n);
    else if (act == HEADS_ACT_GELU)
        k->gelu_erf(y, y, n);
    else if (act == HEADS_ACT_SIGMOID)
        k->sigmoid(y, y, n);
}

static void dense(const struct kern_ops *k, const struct heads_step *s, const float *x, float *y)
{
    for (uint32_t r = 0; r < s->n_out; r++)
        y[r] = dot(s->weight + (size_t)r * s->n_in, x, s->n_in) + (s->bias ? s->bias[r] : 0.0f);
    activate(k, s->act, y, s->n_out);
}

void heads_finish_vector(const struct heads *h, const struct kern_ops *k, uint32_t n, float *out)
{
    float *x = out, *y = out + h->buffer;
    uint32_t width = h->info.n_poolings * h->info.dim;
    for (uint32_t i = 0; i < h->n_steps; i++) {
        const struct heads_step *s = &h->steps[i];
        if (s->kind == HEADS_STEP_NORMALIZE) {
            heads_normalize(k, x, width);
            continue;
        }
        dense(k, s, x, y);
        width = s->n_out;
        float *swap = x;
        x = y;
        y = swap;
    }
    n = n && n < h->info.vector_dim ? n : h->info.dimensions;
    if (x != out)
        memcpy(out, x, n * sizeof(*out));
    if (!h->info.keep_length)
        heads_normalize(k, out, n);
}

void heads_pool(const struct kern_ops *k, enum heads_pooling pooling, const float *tokens,
                uint32_t n, uint32_t dim, float *out)
{
    const float *from = pooling == HEADS_POOLING_LAST ? tokens + (size_t)(n - 1) * dim : tokens;
    memcpy(out, from, dim * sizeof(float));
    if (pooling == HEADS_POOLING_MEAN || pooling == HEADS_POOLING_MEAN_SQRT) {
        for (uint32_t t = 1; t < n; t++)
            k->add(out, tokens + (size_t)t * dim, dim);
        k->scale(out, 1.0f / (pooling == HEADS_POOLING_MEAN ? (float)n : sqrtf((float)n)), dim);
    } else if (pooling == HEADS_POOLING_MAX) {
        for (uint32_t t = 1; t < n; t++)
            for (uint32_t i = 0; i < dim; i++)
                out[i] =
                    tokens[(size_t)t * dim + i] > out[i] ? tokens[(size_t)t * dim + i] : out[i];
    } else if (pooling == HEADS_POOLING_WEIGHTED_MEAN) {
        for (uint32_t t = 1; t < n; t++)
            for (uint32_t i = 0; i < dim; i++)
                out[i] += (float)(t + 1) * tokens[(size_t)t * dim + i];
        k->scale(out, 2.0f / ((float)n * ((float)n + 1.0f)), dim);
    }
}

void heads_pool_all(const struct heads *h, const struct kern_ops *k, const float *tokens,
                    uint32_t n, float *out)
{
    for (uint32_t i = 0; i < h->info.n_poolings; i++)
        heads_pool(k, h->info.poolings[i], tokens, n, h->info.dim, out + (size_t)i * h->info.dim);
}

/* The first token, or the mean of all, through the layer before the classes if there is one; [dim].
 */
static const float *front(const struct heads *h, struct encoder *d, uint32_t seq)
{
    const struct kern_ops *k = encoder_kernels(d);
    const float *x = encoder_hidden(d, seq, 0);
    if (!h->has_pre && !h->mean_class)
        return x;
    float *y = encoder_spare(d);
    if (h->mean_class) {
        heads_pool(k, HEADS_POOLING_MEAN, x, encoder_seq_len(d, seq), h->info.dim, y);
        x = y;
    }
    if (!h->has_pre)
        return x;
    encoder_top(d, ENCODER_TOP_CLS, &x, 1, 0, h->info.dim, y, h->info.dim);
    activate(k, h->pre_act, y, h->info.dim);
    encoder_top_norm(d, y);
    return y;
}

void heads_class_logits(const struct heads *h, struct encoder *d, uint32_t seq,
                        const struct heads_set *set, float *out)
{
    const float *x = front(h, d, seq);
    const uint32_t first = set ? set->first : 0, count = set ? set->count : 1;
    encoder_top(d, ENCODER_TOP_CLS_OUTPUT, &x, 1, first, first + count, out, count);
}

void heads_vector(const struct heads *h, struct encoder *d, uint32_t seq, uint32_t n, float *out)
{
    const struct kern_ops *k = encoder_kernels(d);
    if (h->info.poolings[0] == HEADS_POOLING_POOLER)
        memcpy(out, front(h, d, seq), h->info.dim * sizeof(float));
    else
        heads_pool_all(h, k, encoder_hidden(d, seq, 0), encoder_seq_len(d, seq), out);
    heads_finish_vector(h, k, n, out);
}
