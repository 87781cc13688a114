/* voice_pace.c - the stochastic duration predictor, run backwards: from noise, by splines whose
 * knots depend on the text, to the logarithm of each phoneme's frames; see voice_int.h. */
#include <math.h>
#include <string.h>

#include "model/voice/voice_int.h"
#include "model/voice/voice_math.h"

#define EPS 1e-5f
#define LEAST_ROWS 16u
#define TAIL 5.0       /* splines bend between -5 and 5 */
#define LEAST_BIN 1e-3 /* width and height */
#define LEAST_SLOPE 1e-3
#define STREAM_DURATIONS 1u

/* ---- stacks of separable convolutions: phase arg = flow * 8 + step; flow 0 is the text ----------
 */

static const struct voice_spread *spread_of(const struct voice *v, uint32_t arg)
{
    return arg / 8 == 0 ? &v->dur[arg % 8] : &v->dur_flows[arg / 8 - 1].spread[arg % 8];
}

/* The three phonemes that a dilated convolution sees; outside there is silence. */
static void separable(const struct voice *v, const struct voice_spread *s, uint32_t dilation,
                      const float *x, uint32_t i, float *y)
{
    const uint32_t dim = v->c.dim;
    memcpy(y, s->sep_bias, dim * sizeof(*y));
    for (uint32_t tap = 0; tap < 3; tap++) {
        const int64_t j = (int64_t)i + ((int64_t)tap - 1) * dilation;
        if (j < 0 || j >= v->n)
            continue;
        const float *in = x + (size_t)j * dim, *w = s->sep + (size_t)tap * dim;
        for (uint32_t c = 0; c < dim; c++)
            y[c] += w[c] * in[c];
    }
}

static void spread_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    static const uint32_t dilations[VOICE_SPREADS] = {1, 3, 9};
    struct voice *v = ctx;
    struct voice_member *m = &v->members[member];
    const uint32_t dim = v->c.dim, step = p->arg % 8, end = voice_part(p, chunk + 1);
    const struct voice_spread *s = spread_of(v, p->arg);
    const float *x = v->dur_x[step % 2];
    float *out = v->dur_x[(step + 1) % 2];
    for (uint32_t from = voice_part(p, chunk); from < end; from += VOICE_ROWS) {
        const uint32_t n = end - from < VOICE_ROWS ? end - from : VOICE_ROWS;
        for (uint32_t i = 0; i < n; i++) {
            float *y = m->a + (size_t)i * dim;
            separable(v, s, dilations[step], x, from + i, y);
            v->k->layernorm(y, y, s->norm1.w, s->norm1.b, dim, EPS);
            v->k->gelu_erf(y, y, dim);
        }
        voice_conv_run(v, &s->point, m, m->a, dim, n, m->b, dim);
        for (uint32_t i = 0; i < n; i++) {
            float *y = m->b + (size_t)i * dim, *to = out + (size_t)(from + i) * dim;
            v->k->layernorm(y, y, s->norm2.w, s->norm2.b, dim, EPS);
            v->k->gelu_erf(y, y, dim);
            memcpy(to, x + (size_t)(from + i) * dim, dim * sizeof(*to));
            v->k->add(to, y, dim);
        }
    }
}

static void pre_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct voice *v = ctx;
    const uint32_t dim = v->c.dim, from = voice_part(p, chunk), n = voice_part(p, chunk + 1) - from;
    voice_conv_run(v, &v->dur_pre, &v->members[member], v->x + (size_t)from * dim, dim, n,
                   v->dur_x[0] + (size_t)from * dim, dim);
}

static void cond_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct voice *v = ctx;
    const uint32_t dim = v->c.dim, from = voice_part(p, chunk), n = voice_part(p, chunk + 1) - from;
    voice_conv_run(v, &v->dur_proj, &v->members[member],
                   v->dur_x[VOICE_SPREADS % 2] + (size_t)from * dim, dim, n,
                   v->cond + (size_t)from * dim, dim);
}

/* ---- the flow ------------------------------------------------------------------------------- */

/* Widths or heights: cumulative positions of the 11 knots. */
static void knots(const float *raw, double divisor, double out[VOICE_BINS + 1])
{
    double e[VOICE_BINS], most = (double)raw[0], sum = 0.0;
    for (uint32_t i = 1; i < VOICE_BINS; i++)
        most = (double)raw[i] > most ? (double)raw[i] : most;
    for (uint32_t i = 0; i < VOICE_BINS; i++)
        sum += e[i] = voice_exp(((double)raw[i] - most) / divisor);
    out[0] = -TAIL;
    for (uint32_t i = 0; i < VOICE_BINS; i++)
        out[i + 1] = out[i] + 2 * TAIL * (LEAST_BIN + (1 - LEAST_BIN * VOICE_BINS) * e[i] / sum);
    out[VOICE_BINS] = TAIL;
}

/* The inverse of a monotonic rational quadratic spline; raw: 10 widths, 10 heights, 9 slopes. */
static double unbend(const float *raw, double divisor, double y)
{
    double x[VOICE_BINS + 1], h[VOICE_BINS + 1];
    if (!(y >= -TAIL && y <= TAIL))
        return y;
    knots(raw, divisor, x);
    knots(raw + VOICE_BINS, divisor, h);
    const float *slopes = raw + (size_t)2 * VOICE_BINS;
    uint32_t b = 0;
    while (b + 1 < VOICE_BINS && y >= h[b + 1])
        b++;
    const double d0 = b == 0 ? 1.0 : LEAST_SLOPE + voice_softplus((double)slopes[b - 1]);
    const double d1 = b + 1 == VOICE_BINS ? 1.0 : LEAST_SLOPE + voice_softplus((double)slopes[b]);
    const double width = x[b + 1] - x[b], height = h[b + 1] - h[b], slope = height / width;
    const double up = y - h[b], bend = d0 + d1 - 2 * slope;
    const double qa = up * bend + height * (slope - d0), qb = height * d0 - up * bend;
    const double qc = -slope * up, disc = qb * qb - 4 * qa * qc;
    return 2 * qc / (-qb - sqrt(disc > 0 ? disc : 0)) * width + x[b];
}

/* The half that conditions becomes features, on top of the text's. */
static void lift_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct voice *v = ctx;
    const struct voice_dur_flow *f = &v->dur_flows[p->arg];
    const uint32_t dim = v->c.dim, given = (p->arg + 1) % 2;
    (void)member;
    for (uint32_t i = voice_part(p, chunk); i < voice_part(p, chunk + 1); i++) {
        float *to = v->dur_x[0] + (size_t)i * dim;
        const float x = v->pairs[2 * (size_t)i + given], *cond = v->cond + (size_t)i * dim;
        for (uint32_t c = 0; c < dim; c++)
            to[c] = f->pre[c] * x + f->pre_bias[c] + cond[c];
    }
}

/* The other half is bent back. */
static void bend_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct voice *v = ctx;
    const struct voice_dur_flow *f = &v->dur_flows[p->arg];
    struct voice_member *m = &v->members[member];
    const uint32_t dim = v->c.dim, bent = p->arg % 2, end = voice_part(p, chunk + 1);
    const double divisor = sqrt((double)dim);
    for (uint32_t from = voice_part(p, chunk); from < end; from += VOICE_ROWS) {
        const uint32_t n = end - from < VOICE_ROWS ? end - from : VOICE_ROWS, ld = 32;
        voice_conv_run(v, &f->proj, m, v->dur_x[VOICE_SPREADS % 2] + (size_t)from * dim, dim, n,
                       m->a, ld);
        for (uint32_t i = 0; i < n; i++) {
            float *x = &v->pairs[2 * (size_t)(from + i) + bent];
            *x = (float)unbend(m->a + (size_t)i * ld, divisor, (double)*x);
        }
    }
}

void voice_pace_run(struct voice *v, const struct voice_say *say)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < v->n; i++)
        for (uint32_t half = 0; half < 2; half++)
            v->pairs[2 * (size_t)i + half] =
                say->duration_noise * voice_normal(say->seed, STREAM_DURATIONS + half, i);
    voice_phase(v, &at, 0, v->n, LEAST_ROWS, pre_chunk);
    for (uint32_t s = 0; s < VOICE_SPREADS; s++)
        voice_phase(v, &at, s, v->n, LEAST_ROWS, spread_chunk);
    voice_phase(v, &at, 0, v->n, LEAST_ROWS, cond_chunk);
    for (uint32_t f = 0; f < VOICE_DUR_FLOWS; f++) {
        voice_phase(v, &at, f, v->n, LEAST_ROWS, lift_chunk);
        for (uint32_t s = 0; s < VOICE_SPREADS; s++)
            voice_phase(v, &at, (f + 1) * 8 + s, v->n, LEAST_ROWS, spread_chunk);
        voice_phase(v, &at, f, v->n, LEAST_ROWS, bend_chunk);
    }
    voice_phases_run(v, at);
    for (uint32_t i = 0; i < v->n; i++)
        v->log_durations[i] = (v->pairs[2 * (size_t)i] - v->affine_shift[0]) * v->affine_scale[0];
}
