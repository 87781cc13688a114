/* voice_text.c - the text encoder: attention with relative positions, feed-forward by convolutions
 * over three phonemes; see voice_int.h. */
#include <math.h>
#include <string.h>

#include "model/voice/voice_int.h"

#define EPS 1e-5f
#define LEAST_ROWS 8u

static void embed_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    const struct voice *v = ctx;
    const uint32_t dim = v->c.dim;
    (void)member;
    for (uint32_t i = voice_part(p, chunk); i < voice_part(p, chunk + 1); i++)
        memcpy(v->x + (size_t)i * dim, v->embd + (size_t)v->ids[i] * dim, dim * sizeof(float));
}

static void qkv_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct voice *v = ctx;
    const struct voice_layer *l = &v->layers[p->arg];
    const struct voice_conv *const convs[] = {&l->q, &l->k, &l->v};
    const uint32_t dim = v->c.dim, from = voice_part(p, chunk), n = voice_part(p, chunk + 1) - from;
    for (uint32_t i = 0; i < 3; i++)
        voice_conv_run(v, convs[i], &v->members[member], v->x + (size_t)from * dim, dim, n,
                       v->qkv + (size_t)from * 3 * dim + i * dim, (size_t)3 * dim);
}

/* Adds factor * x to y. */
static void add_scaled(float *restrict y, const float *restrict x, float factor, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        y[i] += factor * x[i];
}

/* One head of one phoneme: out gets head_dim values. */
static void attend(const struct voice *v, const struct voice_layer *l, uint32_t i, uint32_t head,
                   float *s, float *out)
{
    const uint32_t dim = v->c.dim, hd = v->c.head_dim, w = v->c.window, n = v->n;
    const float *qkv = v->qkv + head * hd, *q = qkv + (size_t)i * 3 * dim;
    const float scale = 1.0f / sqrtf((float)hd);
    const uint32_t first = i > w ? i - w : 0, last = i + w < n ? i + w : n - 1;
    for (uint32_t j = 0; j < n; j++)
        s[j] = v->k->dot(q, qkv + dim + (size_t)j * 3 * dim, hd) * scale;
    for (uint32_t j = first; j <= last; j++)
        s[j] += v->k->dot(q, l->rel_k + (size_t)(j + w - i) * hd, hd) * scale;
    const float sum = v->k->softmax_exp(s, s, n, v->k->max(s, n));
    memset(out, 0, hd * sizeof(*out));
    for (uint32_t j = 0; j < n; j++)
        add_scaled(out, qkv + 2 * dim + (size_t)j * 3 * dim, s[j] / sum, hd);
    for (uint32_t j = first; j <= last; j++)
        add_scaled(out, l->rel_v + (size_t)(j + w - i) * hd, s[j] / sum, hd);
}

static void add_and_norm(const struct voice *v, const struct voice_norm *norm, float *x,
                         const float *y, uint32_t n)
{
    const uint32_t dim = v->c.dim;
    for (uint32_t i = 0; i < n; i++, x += dim, y += dim) {
        v->k->add(x, y, dim);
        v->k->layernorm(x, x, norm->w, norm->b, dim, EPS);
    }
}

static void attend_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct voice *v = ctx;
    const struct voice_layer *l = &v->layers[p->arg];
    struct voice_member *m = &v->members[member];
    const uint32_t dim = v->c.dim, end = voice_part(p, chunk + 1);
    for (uint32_t from = voice_part(p, chunk); from < end; from += VOICE_ROWS) {
        const uint32_t n = end - from < VOICE_ROWS ? end - from : VOICE_ROWS;
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t h = 0; h < v->c.n_heads; h++)
                attend(v, l, from + i, h, m->scores, m->a + (size_t)i * dim + h * v->c.head_dim);
        voice_conv_run(v, &l->o, m, m->a, dim, n, m->b, dim);
        add_and_norm(v, &l->attn_norm, v->x + (size_t)from * dim, m->b, n);
    }
}

static void up_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct voice *v = ctx;
    const struct voice_layer *l = &v->layers[p->arg];
    const uint32_t from = voice_part(p, chunk), n = voice_part(p, chunk + 1) - from;
    float *h = v->hidden + (size_t)from * v->c.ffn_dim;
    const float *x = v->x + ((ptrdiff_t)from - (ptrdiff_t)(l->up.kernel / 2)) * v->c.dim;
    voice_conv_run(v, &l->up, &v->members[member], x, v->c.dim, n, h, v->c.ffn_dim);
    v->k->relu(h, h, n * v->c.ffn_dim);
}

static void down_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct voice *v = ctx;
    const struct voice_layer *l = &v->layers[p->arg];
    struct voice_member *m = &v->members[member];
    const uint32_t dim = v->c.dim, end = voice_part(p, chunk + 1);
    for (uint32_t from = voice_part(p, chunk); from < end; from += VOICE_ROWS) {
        const uint32_t n = end - from < VOICE_ROWS ? end - from : VOICE_ROWS;
        const ptrdiff_t first = (ptrdiff_t)from - (ptrdiff_t)(l->down.kernel / 2);
        voice_conv_run(v, &l->down, m, v->hidden + first * v->c.ffn_dim, v->c.ffn_dim, n, m->b,
                       dim);
        add_and_norm(v, &l->ffn_norm, v->x + (size_t)from * dim, m->b, n);
    }
}

static void proj_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct voice *v = ctx;
    const uint32_t dim = v->c.dim, from = voice_part(p, chunk), n = voice_part(p, chunk + 1) - from;
    voice_conv_run(v, &v->proj, &v->members[member], v->x + (size_t)from * dim, dim, n,
                   v->stats + (size_t)from * 2 * dim, (size_t)2 * dim);
}

void voice_text_run(struct voice *v)
{
    uint32_t at = 0;
    /* what the convolutions see after the last phoneme; before the first it is always zero */
    memset(v->x + (size_t)v->n * v->c.dim, 0, VOICE_MAX_KERNEL / 2 * v->c.dim * sizeof(float));
    memset(v->hidden + (size_t)v->n * v->c.ffn_dim, 0,
           VOICE_MAX_KERNEL / 2 * v->c.ffn_dim * sizeof(float));
    voice_phase(v, &at, 0, v->n, LEAST_ROWS, embed_chunk);
    for (uint32_t i = 0; i < v->c.n_layers; i++) {
        voice_phase(v, &at, i, v->n, LEAST_ROWS, qkv_chunk);
        voice_phase(v, &at, i, v->n, LEAST_ROWS, attend_chunk);
        voice_phase(v, &at, i, v->n, LEAST_ROWS, up_chunk);
        voice_phase(v, &at, i, v->n, LEAST_ROWS, down_chunk);
    }
    voice_phase(v, &at, 0, v->n, LEAST_ROWS, proj_chunk);
    voice_phases_run(v, at);
}
