/* voice_sound.c - the decoder: frames to samples by upsampling and dilated convolutions (HiFi-GAN);
 * see voice_int.h.
 *
 * A chunk of frames is decoded alone: it computes what its samples depend on and no more, from the
 * samples backwards: `plan` asks each stage for the positions that the next one reads.  Positions
 * outside of the sound are zero at every stage, as if the convolutions were padded there.  So the
 * samples do not depend on how the sound is divided. */
#include <string.h>

#include "model/voice/voice_int.h"

#define LEAK 0.1f
#define LAST_LEAK 0.01f

struct span {
    int64_t from, to;
};

struct decoding {
    const struct voice *v;
    struct voice_member *m;
    struct span out[VOICE_MAX_STAGES]; /* positions that a stage gives */
    struct span up[VOICE_MAX_STAGES];  /* and what its branches read */
    struct span pre, frames;
    uint64_t length[VOICE_MAX_STAGES]; /* positions of the whole sound */
};

static int64_t floor_div(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((b - 1 - a) / b);
}

/* Frame pairs (m - 1, m) whose upsampling covers the positions of s. */
static struct span pairs_of(struct span s, uint32_t stride)
{
    const int64_t cut = stride / 2;
    return (struct span){floor_div(s.from + cut, stride), floor_div(s.to - 1 + cut, stride) + 1};
}

static void plan(struct decoding *d, uint32_t from, uint32_t to)
{
    const struct voice *v = d->v;
    const int64_t margin = v->post_kernel / 2, halo = v->branch_halo;
    struct span need = {(int64_t)from * v->c.hop - margin, (int64_t)to * v->c.hop + margin};
    uint64_t length = v->n_frames;
    for (uint32_t i = 0; i < v->n_stages; i++)
        d->length[i] = length *= v->stages[i].stride;
    for (uint32_t i = v->n_stages; i-- > 0;) {
        d->out[i] = need;
        d->up[i] = (struct span){need.from - halo, need.to + halo};
        need = pairs_of(d->up[i], v->stages[i].stride);
        need.from--;
    }
    d->pre = need;
    const int64_t reach = v->pre.kernel / 2;
    d->frames = (struct span){need.from - reach, need.to + reach};
}

static uint32_t count(struct span s)
{
    return (uint32_t)(s.to - s.from);
}

/* Clears positions of `s` that are not in the sound. */
static void clear_outside(float *x, struct span s, uint64_t length, uint32_t width)
{
    const int64_t end = (int64_t)length;
    const int64_t before = s.from < 0 ? (s.to < 0 ? s.to : 0) - s.from : 0;
    const int64_t first = s.from > end ? s.from : end; /* the first one after the sound */
    memset(x, 0, (size_t)before * width * sizeof(*x));
    if (s.to > first)
        memset(x + (size_t)(first - s.from) * width, 0,
               (size_t)(s.to - first) * width * sizeof(*x));
}

/* y gets x, phase by phase of the dilation: its windows are then neighbours. */
static void leak_apart(const struct voice *v, float *y, const float *x, uint32_t n, uint32_t width,
                       uint32_t dilation)
{
    for (uint32_t p = 0; p < dilation; p++)
        for (uint32_t i = p; i < n; i += dilation, y += width)
            v->k->leaky_relu(y, x + (size_t)i * width, LEAK, width);
}

/* y = conv(leaky(x)) + x: x has the positions of `is`, y those that the convolution can give. */
static struct span residual(struct decoding *d, const struct voice_conv *c, uint32_t dilation,
                            const float *x, struct span is, float *y, uint64_t length)
{
    const struct voice *v = d->v;
    const uint32_t width = c->in, reach = dilation * (c->kernel / 2), n = count(is);
    const struct span gets = {is.from + reach, is.to - reach};
    const float *at = d->m->b;
    leak_apart(v, d->m->b, x, n, width, dilation);
    for (uint32_t p = 0; p < dilation && p < n; p++) {
        const uint32_t rows = (n - p + dilation - 1) / dilation;
        if (rows >= c->kernel)
            voice_conv_run(v, c, d->m, at, width, rows - c->kernel + 1, y + (size_t)p * width,
                           (size_t)dilation * width);
        at += (size_t)rows * width;
    }
    const size_t n_out = count(gets);
    v->k->add(y, x + (size_t)reach * width, (uint32_t)(n_out * width));
    clear_outside(y, gets, length, width);
    return gets;
}

/* The mean of the branches over u, into m->a. */
static void branches(struct decoding *d, uint32_t s)
{
    const struct voice *v = d->v;
    const struct voice_stage *stage = &v->stages[s];
    const struct voice_member *m = d->m;
    const uint32_t width = stage->width, n = count(d->out[s]);
    for (uint32_t r = 0; r < VOICE_BRANCHES; r++) {
        const uint32_t *dilation = v->dilation[r];
        const uint32_t half = v->branch_kernel[r] / 2, reach = half * (dilation[0] + dilation[1]);
        struct span is = {d->out[s].from - reach, d->out[s].to + reach};
        const float *x = m->u + (size_t)(is.from - d->up[s].from) * width;
        float *to = r == 0 ? m->a : m->d;
        is = residual(d, &stage->res[r][0], dilation[0], x, is, m->c, d->length[s]);
        residual(d, &stage->res[r][1], dilation[1], m->c, is, to, d->length[s]);
        if (r > 0)
            v->k->add(m->a, m->d, n * width);
    }
    v->k->scale(m->a, 1.0f / VOICE_BRANCHES, n * width);
}

/* m->a, the positions that the stage before gave, to m->u. */
static void upsample(struct decoding *d, uint32_t s, struct span is, uint32_t in)
{
    const struct voice *v = d->v;
    const struct voice_stage *stage = &v->stages[s];
    const struct span pairs = pairs_of(d->up[s], stage->stride);
    const int64_t first = pairs.from * stage->stride - stage->stride / 2; /* position of a row */
    v->k->leaky_relu(d->m->a, d->m->a, LEAK, count(is) * in);
    voice_conv_run(v, &stage->up, d->m, d->m->a, in, count(pairs), d->m->c,
                   (size_t)stage->stride * stage->width);
    memcpy(d->m->u, d->m->c + (size_t)(d->up[s].from - first) * stage->width,
           (size_t)count(d->up[s]) * stage->width * sizeof(float));
    clear_outside(d->m->u, d->up[s], d->length[s], stage->width);
}

static void begin(struct decoding *d)
{
    const struct voice *v = d->v;
    const uint32_t dim = v->c.dim;
    float *x = d->m->b;
    for (int64_t f = d->frames.from; f < d->frames.to; f++, x += dim)
        if (f >= 0 && f < v->n_frames)
            memcpy(x, v->frames + (size_t)f * dim, dim * sizeof(*x));
        else
            memset(x, 0, dim * sizeof(*x));
    voice_conv_run(v, &v->pre, d->m, d->m->b, dim, count(d->pre), d->m->a, v->pre.out);
    clear_outside(d->m->a, d->pre, v->n_frames, v->pre.out);
}

static void finish(struct decoding *d, float *out, uint32_t n)
{
    const struct voice *v = d->v;
    const uint32_t width = v->stages[v->n_stages - 1].width;
    v->k->leaky_relu(d->m->a, d->m->a, LAST_LEAK, (n + v->post_kernel - 1) * width);
    for (uint32_t i = 0; i < n; i++)
        out[i] = v->k->dot(d->m->a + (size_t)i * width, v->post, v->post_kernel * width);
    v->k->tanh(out, out, n);
}

static void decode(const struct voice *v, struct voice_member *m, uint32_t from, uint32_t to,
                   float *out)
{
    struct decoding d = {.v = v, .m = m};
    plan(&d, from, to);
    begin(&d);
    struct span is = d.pre;
    uint32_t in = v->pre.out;
    for (uint32_t s = 0; s < v->n_stages; s++) {
        upsample(&d, s, is, in);
        branches(&d, s);
        is = d.out[s];
        in = v->stages[s].width;
    }
    finish(&d, out, (to - from) * v->c.hop);
}

static void decode_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct voice *v = ctx;
    const uint32_t from = v->from + voice_part(p, chunk), to = v->from + voice_part(p, chunk + 1);
    decode(v, &v->members[member], from, to, v->out + (size_t)(from - v->from) * v->c.hop);
}

void voice_sound_run(struct voice *v, uint32_t from, uint32_t to, float *out)
{
    const uint32_t n = to - from;
    v->from = from;
    v->out = out;
    v->phases[0] = (struct crew_phase){.chunk = decode_chunk,
                                       .n_items = n,
                                       .n_chunks = (n + VOICE_SOUND_CHUNK - 1) / VOICE_SOUND_CHUNK};
    voice_phases_run(v, 1);
}

size_t voice_sound_room(const struct voice *v, uint32_t n_frames)
{
    struct decoding d = {.v = v};
    size_t most = 0;
    plan(&d, 0, n_frames);
    most = (size_t)count(d.frames) * v->c.dim;
    most = most > (size_t)count(d.pre) * v->pre.out ? most : (size_t)count(d.pre) * v->pre.out;
    for (uint32_t i = 0; i < v->n_stages; i++) {
        const size_t n = ((size_t)count(d.up[i]) + 2 * v->stages[i].stride) * v->stages[i].width;
        most = n > most ? n : most;
    }
    return most;
}
