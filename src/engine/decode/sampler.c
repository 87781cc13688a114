/* sampler.c - see sampler.h. */
#include "engine/decode/sampler.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

struct candidate {
    float p; /* weight; 1 for the likeliest token */
    int32_t token;
};

struct sampler {
    const struct kern_ops *k;
    uint32_t n_vocab;
    float *work;            /* [n_vocab] */
    float *weight;          /* [n_vocab] */
    uint32_t *count;        /* [n_vocab], all zero between runs */
    struct candidate *heap; /* [n_vocab] */
};

int sampler_create(struct sampler **out, const struct kern_ops *k, uint32_t n_vocab, struct err *e)
{
    struct sampler *s = mem_zalloc(sizeof(*s));
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a sampler");
    s->k = k;
    s->n_vocab = n_vocab;
    s->work = mem_aligned((size_t)n_vocab * sizeof(float));
    s->weight = mem_aligned((size_t)n_vocab * sizeof(float));
    s->count = mem_zalloc_n(n_vocab, sizeof(*s->count));
    s->heap = mem_zalloc_n(n_vocab, sizeof(*s->heap));
    if (!s->work || !s->weight || !s->count || !s->heap) {
        sampler_destroy(s);
        return err_set(e, SHOAL_ENOMEM, "out of memory for a sampler of %u tokens", n_vocab);
    }
    *out = s;
    return 0;
}

void sampler_destroy(struct sampler *s)
{
    if (!s)
        return;
    mem_free(s->work);
    mem_free(s->weight);
    mem_free(s->count);
    mem_free(s->heap);
    mem_free(s);
}

int sampler_check(const struct shoal_sampling *o, uint32_t n_vocab, struct err *e)
{
    const struct {
        const char *name;
        float v, min, max;
    } ranges[] = {
        {"temperature", o->temperature, 0.0f, 100.0f},
        {"top_p", o->top_p, 0.0f, 1.0f},
        {"min_p", o->min_p, 0.0f, 1.0f},
        {"repeat_penalty", o->repeat_penalty, 0.0f, 10.0f},
        {"presence_penalty", o->presence_penalty, -10.0f, 10.0f},
        {"frequency_penalty", o->frequency_penalty, -10.0f, 10.0f},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (!(ranges[i].v >= ranges[i].min && ranges[i].v <= ranges[i].max))
            return err_set(e, SHOAL_EINVAL, "%s is %g, expected %g to %g", ranges[i].name,
                           (double)ranges[i].v, (double)ranges[i].min, (double)ranges[i].max);
    if (o->n_logprobs > SHOAL_MAX_LOGPROBS)
        return err_set(e, SHOAL_EINVAL, "cannot report %u log-probabilities per token, at most %u",
                       o->n_logprobs, SHOAL_MAX_LOGPROBS);
    for (uint32_t i = 0; i < o->n_bias; i++)
        if (o->bias[i].token < 0 || (uint32_t)o->bias[i].token >= n_vocab || isnan(o->bias[i].bias))
            return err_set(e, SHOAL_EINVAL,
                           "the bias names token %d, but the vocabulary has %u tokens",
                           o->bias[i].token, n_vocab);
    return 0;
}

double sampler_uniform(uint64_t seed, uint64_t position)
{
    /* Two rounds over both words, so that nearby seeds and positions give unrelated numbers. */
    uint64_t x = hash_mix(seed + 0x9e3779b97f4a7c15u);
    x = hash_mix(x ^ hash_mix(position + 0xd1b54a32d192ed03u));
    return (double)(x >> 11) * 0x1.0p-53;
}

static void penalize(struct sampler *s, const struct shoal_sampling *o, const int32_t *history,
                     uint32_t n, uint32_t n_generated)
{
    float *w = s->work;
    for (uint32_t i = 0; i < o->n_bias; i++)
        w[o->bias[i].token] += o->bias[i].bias;
    if (o->repeat_penalty > 0.0f && o->repeat_penalty != 1.0f) {
        uint32_t last = o->repeat_last_n ? o->repeat_last_n : 64;
        last = last < n ? last : n;
        for (uint32_t i = n - last; i < n; i++) {
            int32_t t = history[i];
            if (s->count[t]++ == 0)
                w[t] = w[t] > 0.0f ? w[t] / o->repeat_penalty : w[t] * o->repeat_penalty;
        }
        for (uint32_t i = n - last; i < n; i++)
            s->count[history[i]] = 0;
    }
    if (o->presence_penalty != 0.0f || o->frequency_penalty != 0.0f) {
        for (uint32_t i = n - n_generated; i < n; i++)
            s->count[history[i]]++;
        for (uint32_t i = n - n_generated; i < n; i++) {
            int32_t t = history[i];
            if (s->count[t])
                w[t] -= o->presence_penalty + o->frequency_penalty * (float)s->count[t];
            s->count[t] = 0;
        }
    }
}

/* Heap order: likelier first, lower id first among equals. */
static bool before(struct candidate a, struct candidate b)
{
    return a.p > b.p || (a.p == b.p && a.token < b.token);
}

static void sift_down(struct candidate *h, uint32_t n, uint32_t i)
{
    struct candidate c = h[i];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= n)
            break;
        if (child + 1 < n && before(h[child + 1], h[child]))
            child++;
        if (!before(h[child], c))
            break;
        h[i] = h[child];
        i = child;
    }
    h[i] = c;
}

/* Builds a heap of all tokens with a weight of at least `least`; returns their number. */
static uint32_t make_heap(struct sampler *s, const float *weight, float least)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_vocab; i++)
        if (weight[i] >= least)
            s->heap[n++] = (struct candidate){weight[i], (int32_t)i};
    for (uint32_t i = n / 2; i-- > 0;)
        sift_down(s->heap, n, i);
    return n;
}

/* Moves the best to the end of the heap: the picked ones are heap[n-1], heap[n-2], ... */
static struct candidate pop(struct sampler *s, uint32_t *n)
{
    struct candidate top = s->heap[0];
    s->heap[0] = s->heap[--*n];
    sift_down(s->heap, *n, 0);
    s->heap[*n] = top;
    return top;
}

#define DRAW_BLOCK 64u

/* The weight of a block's tokens that may be sampled. Four sums, so that no addition waits for the
 * previous one; their order is fixed, so that every CPU samples the same token. */
static double block_weight(const float *w, uint32_t n, float least)
{
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    for (uint32_t i = 0; i < n; i++)
        sum[i % 4] += w[i] >= least ? (double)w[i] : 0.0;
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static uint32_t block_size(const struct sampler *s, uint32_t from)
{
    return s->n_vocab - from < DRAW_BLOCK ? s->n_vocab - from : DRAW_BLOCK;
}

/* Draws among all tokens with a weight of at least `least`: they need no order. */
static int32_t draw_any(const struct sampler *s, float least, double uniform)
{
    const float *w = s->weight;
    double kept = 0.0, sum = 0.0;
    for (uint32_t from = 0; from < s->n_vocab; from += DRAW_BLOCK)
        kept += block_weight(w + from, block_size(s, from), least);
    const double at = uniform * kept;
    for (uint32_t from = 0; from < s->n_vocab; from += DRAW_BLOCK) {
        const uint32_t n = block_size(s, from);
        const double block = block_weight(w + from, n, least);
        if (at >= sum + block) {
            sum += block;
            continue;
        }
        for (uint32_t i = from; i < from + n; i++)
            if (w[i] >= least && at < (sum += (double)w[i]))
                return (int32_t)i;
    }
    uint32_t last = s->n_vocab - 1; /* only by rounding */
    while (last > 0 && w[last] < least)
        last--;
    return (int32_t)last;
}

/* The least weight of a token that may be sampled. Tokens below the second threshold are never
 * sampled in practice; skipping them keeps the heap small. */
static float least_weight(const struct shoal_sampling *o)
{
    return o->min_p > 1e-8f ? o->min_p : 1e-8f;
}

/* The weight that top-p keeps. */
static float whole_weight(const struct shoal_sampling *o, float total)
{
    return o->top_p > 0.0f && o->top_p < 1.0f ? o->top_p * total : INFINITY;
}

/* Weights of all tokens from the logits in work, which are finite; their sum. */
static float weigh(struct sampler *s, const struct shoal_sampling *o, float max)
{
    const float inv = 1.0f / o->temperature;
    s->k->scale(s->work, inv, s->n_vocab);
    return s->k->softmax_exp(s->weight, s->work, s->n_vocab, max * inv);
}

struct kept { /* the tokens to draw from: heap[all - 1], the likeliest, down to heap[left] */
    uint32_t all, left;
    float weight;
};

static struct kept keep(struct sampler *s, const struct shoal_sampling *o, float total)
{
    const float whole = whole_weight(o, total);
    struct kept k = {.all = make_heap(s, s->weight, least_weight(o))};
    const uint32_t most = o->top_k ? o->top_k : k.all;
    k.left = k.all;
    while (k.left > 0 && k.all - k.left < most && k.weight < whole)
        k.weight += pop(s, &k.left).p;
    return k;
}

static int32_t draw(struct sampler *s, const struct shoal_sampling *o, uint64_t position)
{
    const float max = s->k->max(s->work, s->n_vocab);
    if (!isfinite(max)) /* every token is forbidden */
        return (int32_t)s->k->argmax(s->work, s->n_vocab);
    const float total = weigh(s, o, max);
    const double uniform = sampler_uniform(o->seed, position);
    if (o->top_k == 0 && isinf(whole_weight(o, total)))
        return draw_any(s, least_weight(o), uniform);
    const struct kept k = keep(s, o, total);
    double at = uniform * (double)k.weight;
    double sum = 0.0;
    for (uint32_t i = k.all; i-- > k.left;) {
        sum += (double)s->heap[i].p;
        if (at < sum)
            return s->heap[i].token;
    }
    return s->heap[k.left].token; /* only due to rounding: take the last one */
}

static void report(struct sampler *s, struct sampler_pick *out, const float *logits,
                   const struct shoal_sampling *o)
{
    const float max = s->k->max(logits, s->n_vocab);
    float total = s->k->softmax_exp(s->weight, logits, s->n_vocab, max);
    float log_total = logf(total);
    out->logprob = logits[out->token] - max - log_total;
    if (o->n_logprobs == 0)
        return;
    /* weights below the smallest result of exp are all equal: order them by their logits */
    float least = 1e-30f;
    uint32_t n = make_heap(s, s->weight, least);
    while (out->n_top < o->n_logprobs && n > 0) {
        int32_t t = pop(s, &n).token;
        out->top[out->n_top++] = (struct shoal_logprob){t, logits[t] - max - log_total};
    }
}

static bool is_allowed(const uint64_t *allowed, uint32_t token)
{
    return allowed[token / 64] >> (token % 64) & 1;
}

/* Tokens that are not allowed cannot be drawn. */
static void forbid(struct sampler *s, const uint64_t *allowed)
{
    for (uint32_t from = 0; from < s->n_vocab; from += 64) {
        const uint64_t bits = allowed[from / 64];
        const uint32_t n = s->n_vocab - from < 64 ? s->n_vocab - from : 64;
        for (uint32_t i = 0; bits != UINT64_MAX && i < n; i++)
            if (!(bits >> i & 1))
                s->work[from + i] = -INFINITY;
    }
}

/* The likeliest of few tokens, without a look at the others. */
static int32_t best_allowed(const struct sampler *s, const float *logits, const uint64_t *allowed)
{
    int32_t best = -1;
    for (uint32_t from = 0; from < s->n_vocab; from += 64)
        for (uint64_t bits = allowed[from / 64]; bits; bits &= bits - 1) {
            const int32_t t = (int32_t)(from + (uint32_t)__builtin_ctzll(bits));
            if (best < 0 || logits[t] > logits[best])
                best = t;
        }
    return best < 0 ? 0 : best;
}

/* The pick among allowed tokens. */
static int32_t pick_allowed(struct sampler *s, const float *logits, const struct shoal_sampling *o,
                            const uint64_t *allowed, const int32_t *history, uint32_t n_history,
                            uint32_t n_generated, bool changed)
{
    int32_t token;
    if (o->temperature == 0.0f && !changed) {
        token = (int32_t)s->k->argmax(logits, s->n_vocab);
        return is_allowed(allowed, (uint32_t)token) ? token : best_allowed(s, logits, allowed);
    }
    memcpy(s->work, logits, (size_t)s->n_vocab * sizeof(float));
    penalize(s, o, history, n_history, n_generated);
    forbid(s, allowed);
    token =
        o->temperature == 0.0f ? (int32_t)s->k->argmax(s->work, s->n_vocab) : draw(s, o, n_history);
    /* a bias may forbid every allowed token: then the constraint takes precedence */
    return is_allowed(allowed, (uint32_t)token) ? token : best_allowed(s, logits, allowed);
}

bool sampler_run(struct sampler *s, struct sampler_pick *out, const float *logits,
                 const struct shoal_sampling *o, const uint64_t *allowed, const int32_t *history,
                 uint32_t n_history, uint32_t n_generated)
{
    bool changed = o->n_bias > 0 || (o->repeat_penalty > 0.0f && o->repeat_penalty != 1.0f) ||
                   o->presence_penalty != 0.0f || o->frequency_penalty != 0.0f;
    out->n_top = 0;
    out->logprob = 0.0f;
    if (allowed) {
        out->token = pick_allowed(s, logits, o, allowed, history, n_history, n_generated, changed);
    } else if (o->temperature == 0.0f && !changed) {
        out->token = (int32_t)s->k->argmax(logits, s->n_vocab);
    } else {
        memcpy(s->work, logits, (size_t)s->n_vocab * sizeof(float));
        penalize(s, o, history, n_history, n_generated);
        out->token = o->temperature == 0.0f ? (int32_t)s->k->argmax(s->work, s->n_vocab)
                                            : draw(s, o, n_history);
    }
    if (!isfinite(logits[out->token])) /* argmax was used, so no other token is better */
        return false;
    if (o->logprobs || o->n_logprobs > 0)
        report(s, out, logits, o);
    return true;
}

void sampler_score(struct sampler *s, struct sampler_pick *out, const float *logits,
                   const struct shoal_sampling *o, int32_t token)
{
    out->token = token;
    out->n_top = 0;
    report(s, out, logits, o);
}

void sampler_score_drawn(struct sampler *s, struct sampler_pick *out, const float *logits,
                         const struct shoal_sampling *o, const uint64_t *allowed,
                         const int32_t *history, uint32_t n_history, uint32_t n_generated)
{
    out->n_top = 0;
    out->logprob = 0.0f;
    memcpy(s->work, logits, (size_t)s->n_vocab * sizeof(float));
    penalize(s, o, history, n_history, n_generated);
    if (allowed)
        forbid(s, allowed);
    const float max = s->k->max(s->work, s->n_vocab);
    if (o->temperature == 0.0f || !isfinite(max)) { /* nothing was drawn: no other was possible */
        if (o->n_logprobs > 0)
            out->top[out->n_top++] = (struct shoal_logprob){out->token, 0.0f};
        return;
    }
    const struct kept k = keep(s, o, weigh(s, o, max));
    out->logprob = logf(s->weight[out->token] / k.weight);
    for (uint32_t i = k.all; i-- > k.left && out->n_top < o->n_logprobs;)
        out->top[out->n_top++] =
            (struct shoal_logprob){s->heap[i].token, logf(s->heap[i].p / k.weight)};
}
