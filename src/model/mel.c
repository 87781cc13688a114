/* mel.c - see mel.h.  Two frames are transformed at once, as real and imaginary part. */
#include "model/mel.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

#define RATE 16000.0
#define N 400u /* samples of a frame */
#define BINS (N / 2 + 1)
#define LEAST 1e-10f /* energy of silence */
#define RANGE 8.0f   /* powers of ten below the loudest */

struct point {
    float re, im;
};

struct mel {
    uint32_t n_bands;
    float window[N];
    struct point turn[N]; /* exp(-2 pi i k / N) */
    uint16_t from[MEL_MOST_BANDS], to[MEL_MOST_BANDS];
    float weights[MEL_MOST_BANDS][BINS];
};

/* Slaney's scale: linear up to 1 kHz, then logarithmic. */
static double hz_of(double mel)
{
    return mel < 15 ? mel * 200 / 3 : 1000 * exp((mel - 15) * log(6.4) / 27);
}

/* A triangle of area 1. */
static void make_band(struct mel *m, uint32_t band)
{
    const double top_mel = 15 + log(RATE / 2 / 1000) * 27 / log(6.4);
    const double step = top_mel / (m->n_bands + 1);
    const double left = hz_of(step * band), top = hz_of(step * (band + 1)),
                 right = hz_of(step * (band + 2));
    m->from[band] = BINS;
    for (uint32_t i = 0; i < BINS; i++) {
        const double f = i * RATE / N, up = (f - left) / (top - left),
                     down = (right - f) / (right - top), w = up < down ? up : down;
        if (w <= 0)
            continue;
        m->weights[band][i] = (float)(w * 2 / (right - left));
        m->from[band] = m->from[band] < i ? m->from[band] : (uint16_t)i;
        m->to[band] = (uint16_t)(i + 1);
    }
}

int mel_create(struct mel **out, uint32_t n_bands, struct err *e)
{
    const double turn = 2.0 * 3.14159265358979323846;
    struct mel *m = mem_zalloc(sizeof(*m));
    *out = m;
    if (!m)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a spectrum");
    m->n_bands = n_bands;
    for (uint32_t i = 0; i < N; i++) {
        m->window[i] = (float)(0.5 - 0.5 * cos(turn * i / N));
        m->turn[i] = (struct point){(float)cos(turn * i / N), (float)-sin(turn * i / N)};
    }
    for (uint32_t band = 0; band < n_bands; band++)
        make_band(m, band);
    return 0;
}

void mel_destroy(struct mel *m)
{
    mem_free(m);
}

static struct point times(struct point a, struct point b)
{
    return (struct point){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* n values of `in`, each `stride` behind the one before, to out. */
static void transform(const struct mel *m, const struct point *in, struct point *out, uint32_t n,
                      uint32_t stride)
{
    const uint32_t radix = n % 4 == 0 ? 4 : 5, part = n / radix;
    struct point t[5];
    if (n == 1) {
        *out = *in;
        return;
    }
    for (uint32_t q = 0; q < radix; q++)
        transform(m, in + (size_t)q * stride, out + (size_t)q * part, part, stride * radix);
    for (uint32_t k = 0; k < part; k++) {
        for (uint32_t q = 0; q < radix; q++)
            t[q] = times(out[q * part + k], m->turn[q * k * stride]);
        for (uint32_t r = 0; r < radix; r++) {
            struct point sum = t[0];
            for (uint32_t q = 1; q < radix; q++) {
                const struct point v = times(t[q], m->turn[q * r % radix * (N / radix)]);
                sum.re += v.re;
                sum.im += v.im;
            }
            out[r * part + k] = sum;
        }
    }
}

/* Sample i of the sound, which is mirrored at both of its ends. */
static float sample(const float *x, uint32_t n, int64_t i)
{
    i = i < 0 ? -i : i >= MEL_SAMPLES ? 2 * (int64_t)MEL_SAMPLES - 2 - i : i;
    return i < n ? x[i] : 0.0f;
}

static float bands(const struct mel *m, const float *energy, float *out)
{
    float most = -INFINITY;
    for (uint32_t b = 0; b < m->n_bands; b++) {
        float sum = 0;
        for (uint32_t i = m->from[b]; i < m->to[b]; i++)
            sum += m->weights[b][i] * energy[i];
        out[b] = log10f(sum > LEAST ? sum : LEAST);
        most = out[b] > most ? out[b] : most;
    }
    return most;
}

float mel_frames(const struct mel *m, const float *x, uint32_t n, uint32_t frame, float *out)
{
    const int64_t first = (int64_t)frame * MEL_HOP - N / 2;
    struct point in[N], z[N];
    float energy[2][BINS] = {{0}};
    if (first < n) {
        for (uint32_t i = 0; i < N; i++)
            in[i] = (struct point){sample(x, n, first + i) * m->window[i],
                                   sample(x, n, first + MEL_HOP + i) * m->window[i]};
        transform(m, in, z, N, 1);
        for (uint32_t k = 0; k < BINS;
             k++) { /* the even part is the first frame, the odd the next */
            const struct point a = z[k], b = z[(N - k) % N];
            const float re = a.re + b.re, im = a.im - b.im, re2 = a.im + b.im, im2 = b.re - a.re;
            energy[0][k] = 0.25f * (re * re + im * im);
            energy[1][k] = 0.25f * (re2 * re2 + im2 * im2);
        }
    }
    const float one = bands(m, energy[0], out), two = bands(m, energy[1], out + m->n_bands);
    return one > two ? one : two;
}

void mel_finish(float *x, uint32_t n, float most)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] = ((x[i] > most - RANGE ? x[i] : most - RANGE) + 4.0f) / 4.0f;
}
