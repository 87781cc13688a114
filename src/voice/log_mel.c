/* log_mel.c - see log_mel.h; training/voice/wake.py computes the same for training. */
#include "voice/log_mel.h"

#include <math.h>

#include "base/mem.h"

#define RATE 16000.0
#define FFT 512u
#define BINS (FFT / 2 + 1)
#define LOW 60.0
#define HIGH 7600.0
#define LEAST 1e-6f /* energy of silence */

struct log_mel {
    float window[LOG_MEL_FRAME];
    float turn_re[FFT / 2], turn_im[FFT / 2]; /* exp(-2 pi i k / FFT) */
    uint16_t mirrored[FFT];                   /* bits of an index, in reverse */
    uint16_t from[LOG_MEL_BANDS], to[LOG_MEL_BANDS];
    float weights[LOG_MEL_BANDS][BINS];
};

static double mel(double hz)
{
    return 2595.0 * log10(1.0 + hz / 700.0);
}

static double hz_of(double m)
{
    return 700.0 * (pow(10.0, m / 2595.0) - 1.0);
}

/* Triangles whose corners are equally far apart in mel. */
static void make_band(struct log_mel *m, uint32_t band)
{
    const double step = (mel(HIGH) - mel(LOW)) / (LOG_MEL_BANDS + 1);
    const double left = hz_of(mel(LOW) + step * band), top = hz_of(mel(LOW) + step * (band + 1)),
                 right = hz_of(mel(LOW) + step * (band + 2));
    m->from[band] = BINS;
    for (uint32_t i = 0; i < BINS; i++) {
        const double f = i * RATE / FFT, up = (f - left) / (top - left),
                     down = (right - f) / (right - top), w = up < down ? up : down;
        if (w <= 0)
            continue;
        m->weights[band][i] = (float)w;
        m->from[band] = m->from[band] < i ? m->from[band] : (uint16_t)i;
        m->to[band] = (uint16_t)(i + 1);
    }
}

int log_mel_create(struct log_mel **out, struct err *e)
{
    const double turn = 2.0 * 3.14159265358979323846;
    struct log_mel *m = mem_zalloc(sizeof(*m));
    *out = m;
    if (!m)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a spectrum");
    for (uint32_t i = 0; i < LOG_MEL_FRAME; i++)
        m->window[i] = (float)((0.5 - 0.5 * cos(turn * i / LOG_MEL_FRAME)) / 32768.0);
    for (uint32_t i = 0; i < FFT / 2; i++) {
        m->turn_re[i] = (float)cos(turn * i / FFT);
        m->turn_im[i] = (float)-sin(turn * i / FFT);
    }
    for (uint32_t i = 0; i < FFT; i++)
        for (uint32_t bit = 0, n = FFT / 2; n > 0; bit++, n /= 2)
            m->mirrored[i] = (uint16_t)(m->mirrored[i] | ((i >> bit & 1u) ? n : 0));
    for (uint32_t band = 0; band < LOG_MEL_BANDS; band++)
        make_band(m, band);
    return 0;
}

void log_mel_destroy(struct log_mel *m)
{
    mem_free(m);
}

/* In place, of values that are in mirrored order. */
static void transform(const struct log_mel *m, float *re, float *im)
{
    for (uint32_t half = 1; half < FFT; half *= 2)
        for (uint32_t at = 0; at < FFT; at += 2 * half)
            for (uint32_t k = 0; k < half; k++) {
                const uint32_t a = at + k, b = a + half, t = k * (FFT / 2 / half);
                const float c = m->turn_re[t], s = m->turn_im[t];
                const float x = re[b] * c - im[b] * s, y = re[b] * s + im[b] * c;
                re[b] = re[a] - x;
                im[b] = im[a] - y;
                re[a] += x;
                im[a] += y;
            }
}

void log_mel_frame(const struct log_mel *m, const int16_t *x, float *out)
{
    float re[FFT] = {0}, im[FFT] = {0};
    for (uint32_t i = 0; i < LOG_MEL_FRAME; i++)
        re[m->mirrored[i]] = (float)x[i] * m->window[i];
    transform(m, re, im);
    for (uint32_t i = 0; i < BINS; i++)
        re[i] = re[i] * re[i] + im[i] * im[i];
    for (uint32_t band = 0; band < LOG_MEL_BANDS; band++) {
        float sum = 0;
        for (uint32_t i = m->from[band]; i < m->to[band]; i++)
            sum += m->weights[band][i] * re[i];
        out[band] = logf(sum + LEAST);
    }
}
