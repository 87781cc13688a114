/* stem.c - see stem.h. */
#include "model/stem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Frames that convolution i makes of n. */
static uint64_t frames_of(const struct stem_config *c, uint32_t i, uint64_t n)
{
    n += 2 * (uint64_t)c->pad[i];
    return n < c->kernel[i] ? 0 : (n - c->kernel[i]) / c->stride[i] + 1;
}

uint32_t stem_frames(const struct stem_config *c, uint64_t n)
{
    n = c->n_bands ? MEL_FRAMES : n;
    for (uint32_t i = 0; i < c->n; i++)
        n = frames_of(c, i, n);
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

uint64_t stem_least(const struct stem_config *c, uint32_t n)
{
    uint64_t in = n;
    if (c->n_bands)
        return 1;
    for (uint32_t i = c->n; i-- > 0;)
        in = (in - 1) * c->stride[i] + c->kernel[i];
    return in;
}

/* ---- loading ------------------------------------------------------------------------------- */

int stem_plan(struct stem *s, struct plan *p, const struct stem_config *c, uint32_t n_out)
{
    uint32_t in = c->n_bands ? c->n_bands : 1;
    int rc = c->n_bands ? mel_create(&s->mel, c->n_bands, p->e) : 0;
    s->n = c->n;
    for (uint32_t i = 0; rc == 0 && i < c->n; i++) {
        struct stem_conv *v = &s->conv[i];
        char part[32], norm[32];
        snprintf(part, sizeof(part), "stem.%u", i);
        snprintf(norm, sizeof(norm), "stem.%u.norm", i);
        rc = plan_linear(p, &v->l, -1, part, i + 1 == c->n ? n_out : 0, c->kernel[i] * in, true);
        if (rc < 0)
            return rc;
        v->in = in;
        v->out = p->weights->mats[v->l.mat].n_rows;
        v->kernel = c->kernel[i];
        v->stride = c->stride[i];
        v->pad = c->pad[i];
        v->act = c->act[i];
        rc = plan_vector(p, &v->norm_w, -1, norm, "weight", v->out, false);
        if (rc == 0)
            rc = plan_vector(p, &v->norm_b, -1, norm, "bias", v->out, v->norm_w != NULL);
        in = v->out;
    }
    return rc;
}

void stem_fini(struct stem *s)
{
    mel_destroy(s->mel);
}

/* Room for n frames of `width` values between the zeros of the convolution that reads them. */
static float *carve_padded(struct carve *at, uint64_t n, uint32_t width, uint32_t pad)
{
    float *x = plan_carve_take(at, (n + 2 * (uint64_t)pad) * width * sizeof(float));
    return at->base ? x + (size_t)pad * width : NULL;
}

void stem_lay_out(struct stem *s, struct carve *at, const struct stem_config *c, uint32_t max_in,
                  float *out)
{
    uint64_t n = c->n_bands ? MEL_FRAMES : max_in, most = 0;
    uint32_t widest = 0;
    float *x = c->n_bands ? carve_padded(at, n, c->n_bands, c->pad[0]) : NULL;
    s->max_in = max_in;
    s->most = c->n_bands ? plan_carve_take(at, MEL_FRAMES / 2 * sizeof(float)) : NULL;
    for (uint32_t i = 0; i < s->n; i++) {
        struct stem_conv *v = &s->conv[i];
        n = frames_of(c, i, n);
        v->x = x;
        plan_carve_act(at, &v->windows, x ? x - (size_t)v->pad * v->in : NULL, (uint32_t)n,
                       v->kernel * v->in);
        v->windows.ld = (size_t)v->stride * v->in;
        v->y = x = i + 1 == s->n ? out : carve_padded(at, n, v->out, c->pad[i + 1]);
        most = v->norm_w && n > most ? n : most;
        widest = v->out > widest ? v->out : widest;
    }
    s->sums = plan_carve_take(at, most * 2 * sizeof(float));
    s->ones = plan_carve_take(at, widest * sizeof(float));
    s->norm_mul = plan_carve_take(at, widest * sizeof(float));
    s->norm_add = plan_carve_take(at, widest * sizeof(float));
    for (uint32_t i = 0; at->base && i < widest; i++)
        s->ones[i] = 1.0f;
}

void stem_set_up(struct stem *s, const struct kern_ops *k, const struct weights *w)
{
    s->k = k;
    s->weights = w;
    for (uint32_t i = 0; i < s->n; i++)
        s->conv[i].form = plan_linear_wants(w, &s->conv[i].l, LINEAR_INPUT_FLOATS);
}

/* ---- phases: their arg is the convolution ---------------------------------------------------- */

static uint32_t part(const struct crew_phase *p, uint32_t chunk)
{
    return (uint32_t)((uint64_t)p->n_items * chunk / p->n_chunks);
}

/* Two frames of the spectrum. */
static void mel_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct stem *s = ctx;
    const struct stem_conv *v = &s->conv[0];
    (void)member;
    for (uint32_t t = part(p, chunk); t < part(p, chunk + 1); t++)
        s->most[t] = mel_frames(s->mel, s->sound, s->n_sound, 2 * t, v->x + (size_t)2 * t * v->in);
}

static void level_finish(void *ctx, const struct crew_phase *p, uint32_t member)
{
    struct stem *s = ctx;
    (void)member;
    for (uint32_t t = 1; t < p->n_items; t++)
        s->most[0] = s->most[t] > s->most[0] ? s->most[t] : s->most[0];
}

static void level_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct stem *s = ctx;
    const struct stem_conv *v = &s->conv[0];
    const uint32_t from = part(p, chunk), to = part(p, chunk + 1);
    (void)member;
    mel_finish(v->x + (size_t)2 * from * v->in, 2 * (to - from) * v->in, s->most[0]);
}

static void round_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct stem *s = ctx;
    struct stem_conv *v = &s->conv[p->arg];
    (void)member;
    for (uint32_t t = part(p, chunk); t < part(p, chunk + 1); t++)
        plan_linear_round_all(s->k, &v->windows, v->form, t);
}

static void product_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct stem *s = ctx;
    struct stem_conv *v = &s->conv[p->arg];
    const struct products_with w = {.k = s->k, .weights = s->weights};
    const struct products b = {&v->l, 1, &v->windows, v->y, v->out};
    products_run(&w, &b, p, chunk, member);
}

static void act_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct stem *s = ctx;
    struct stem_conv *v = &s->conv[p->arg];
    (void)member;
    for (uint32_t t = part(p, chunk); t < part(p, chunk + 1); t++) {
        float *y = v->y + (size_t)t * v->out;
        if (v->act == STEM_ACT_TANH)
            s->k->tanh(y, y, v->out);
        else
            s->k->gelu_erf(y, y, v->out);
        if (v->norm_w) {
            s->sums[2 * t] = s->k->dot(y, s->ones, v->out);
            s->sums[2 * t + 1] = s->k->dot(y, y, v->out);
        }
    }
}

/* The norm becomes a factor and a summand for each channel. */
static void norm_finish(void *ctx, const struct crew_phase *p, uint32_t member)
{
    struct stem *s = ctx;
    const struct stem_conv *v = &s->conv[p->arg];
    const double n = (double)p->n_items * v->out;
    double sum = 0, squares = 0;
    (void)member;
    for (uint32_t t = 0; t < p->n_items; t++) {
        sum += (double)s->sums[2 * t];
        squares += (double)s->sums[2 * t + 1];
    }
    const double mean = sum / n, var = squares / n - mean * mean;
    const double scale = 1.0 / sqrt((var > 0 ? var : 0) + 1e-5);
    for (uint32_t i = 0; i < v->out; i++) {
        s->norm_mul[i] = (float)(scale * (double)v->norm_w[i]);
        s->norm_add[i] = (float)((double)v->norm_b[i] - mean * scale * (double)v->norm_w[i]);
    }
}

static void norm_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct stem *s = ctx;
    const struct stem_conv *v = &s->conv[p->arg];
    (void)member;
    for (uint32_t t = part(p, chunk); t < part(p, chunk + 1); t++) {
        float *y = v->y + (size_t)t * v->out;
        for (uint32_t i = 0; i < v->out; i++)
            y[i] = y[i] * s->norm_mul[i] + s->norm_add[i];
    }
}

/* The zeros around n frames of input. */
static void zero_ends(const struct stem_conv *v, uint32_t n)
{
    const size_t pad = (size_t)v->pad * v->in;
    memset(v->x - pad, 0, pad * sizeof(float));
    memset(v->x + (size_t)n * v->in, 0, pad * sizeof(float));
}

/* The spectrum of n samples at x. */
static uint32_t mel_phases(struct stem *s, struct crew_phase *to, const float *x, uint32_t n,
                           uint32_t n_members)
{
    const uint32_t chunks = n_members == 1 ? 1 : n_members * 8;
    s->sound = x;
    s->n_sound = n;
    to[0] = (struct crew_phase){
        .chunk = mel_chunk, .finish = level_finish, .n_items = MEL_FRAMES / 2, .n_chunks = chunks};
    to[1] =
        (struct crew_phase){.chunk = level_chunk, .n_items = MEL_FRAMES / 2, .n_chunks = chunks};
    return 2;
}

uint32_t stem_phases(struct stem *s, struct crew_phase *to, const float *x, uint32_t n,
                     uint32_t n_members)
{
    const struct products_with w = {.k = s->k, .weights = s->weights};
    const uint32_t most = n_members == 1 ? 1 : n_members * 8;
    struct crew_phase *at = to;
    if (s->mel) {
        at += mel_phases(s, at, x, n, n_members);
        n = MEL_FRAMES;
    } else {
        s->conv[0].windows.x = x;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        const struct stem_conv *v = &s->conv[i];
        if (v->pad)
            zero_ends(v, n);
        n = (n + 2 * v->pad - v->kernel) / v->stride + 1;
        s->frames[i] = n;
        const struct crew_phase rows = {.arg = i, .n_items = n, .n_chunks = n < most ? n : most};
        if (v->form != LINEAR_INPUT_FLOATS) {
            *at = rows;
            at++->chunk = round_chunk;
        }
        *at = (struct crew_phase){.chunk = product_chunk, .arg = i, .n_items = n};
        products_divide(at++, n_members, n > PRODUCTS_FEW ? n : PRODUCTS_FEW + 1,
                        products_bytes(&w, &v->l), products_tiles(&w, &v->l));
        *at = rows;
        at->chunk = act_chunk;
        at++->finish = v->norm_w ? norm_finish : NULL;
        if (v->norm_w) {
            *at = rows;
            at++->chunk = norm_chunk;
        }
    }
    return (uint32_t)(at - to);
}
