/* resample.c - see resample.h. */
#include "image/resample.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

#define BITS 22 /* of a weight's fraction: sums of products with 8 bits fit in 32 */

struct taps { /* what each output value is the sum of */
    uint32_t most;
    uint32_t *first, *n; /* [outputs] */
    int32_t *weights;    /* [outputs][most] */
    double *exact;       /* [most], work memory */
};

static double bilinear(double x)
{
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static double bicubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    return x < 2.0 ? (((x - 5) * x + 8) * x - 4) * a : 0.0;
}

static double sinc(double x)
{
    return x == 0.0 ? 1.0 : sin(x * M_PI) / (x * M_PI);
}

static double lanczos(double x)
{
    return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

static const struct {
    double (*at)(double x);
    double support;
} filters[] = {[RESAMPLE_LANCZOS] = {lanczos, 3.0},
               [RESAMPLE_BILINEAR] = {bilinear, 1.0},
               [RESAMPLE_BICUBIC] = {bicubic, 2.0}};

static void taps_fini(struct taps *t)
{
    mem_free(t->first);
    mem_free(t->n);
    mem_free(t->weights);
    mem_free(t->exact);
}

static int taps_reserve(struct taps *t, uint32_t most, uint32_t to, struct err *e)
{
    t->most = most;
    t->first = mem_zalloc_n(to, sizeof(*t->first));
    t->n = mem_zalloc_n(to, sizeof(*t->n));
    t->weights = mem_zalloc_n((size_t)to * most, sizeof(*t->weights));
    t->exact = mem_zalloc_n(most, sizeof(*t->exact));
    return t->first && t->n && t->weights && t->exact
               ? 0
               : err_set(e, SHOAL_ENOMEM, "out of memory to resize an image");
}

/* From `from` values to `to`; the caller frees them, also after a failure. */
static int taps_make(struct taps *t, uint32_t from, uint32_t to, enum resample_filter filter,
                     struct err *e)
{
    const double scale = (double)from / to, wide = scale < 1.0 ? 1.0 : scale;
    const double support = filters[filter].support * wide;
    int rc = taps_reserve(t, (uint32_t)ceil(support) * 2 + 1, to, e);
    for (uint32_t i = 0; rc == 0 && i < to; i++) {
        const double center = (i + 0.5) * scale;
        const double low = center - support + 0.5, high = center + support + 0.5;
        const uint32_t first = low < 0 ? 0 : (uint32_t)low;
        const uint32_t end = high > from ? from : (uint32_t)high;
        double sum = 0;
        t->first[i] = first;
        t->n[i] = end - first;
        for (uint32_t k = 0; k < t->n[i]; k++)
            sum += t->exact[k] =
                filters[filter].at((k + (double)first - center + 0.5) * (1.0 / wide));
        for (uint32_t k = 0; k < t->n[i]; k++) {
            const double w = (sum != 0.0 ? t->exact[k] / sum : t->exact[k]) * (1 << BITS);
            t->weights[(size_t)i * t->most + k] = (int32_t)(w < 0 ? w - 0.5 : w + 0.5);
        }
    }
    return rc;
}

static uint8_t to_byte(int32_t sum)
{
    const int32_t v = sum >> BITS;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* Value i of a line whose pixels are `step` bytes apart. */
static void pixel(uint8_t out[3], const uint8_t *line, size_t step, const struct taps *t,
                  uint32_t i)
{
    const int32_t *w = t->weights + (size_t)i * t->most;
    int32_t r = 1 << (BITS - 1), g = r, b = r;
    const uint8_t *in = line + t->first[i] * step;
    for (uint32_t k = 0; k < t->n[i]; k++, in += step) {
        r += in[0] * w[k];
        g += in[1] * w[k];
        b += in[2] * w[k];
    }
    out[0] = to_byte(r);
    out[1] = to_byte(g);
    out[2] = to_byte(b);
}

int resample(uint8_t *out, uint32_t to_width, uint32_t to_height, const uint8_t *in, uint32_t width,
             uint32_t height, enum resample_filter filter, struct err *e)
{
    struct taps across = {0}, down = {0};
    uint8_t *rows = NULL; /* [height][to_width][3]; in itself if its width stays */
    int rc = 0;
    if (to_width != width) {
        rc = taps_make(&across, width, to_width, filter, e);
        rows = rc == 0 ? mem_alloc((size_t)height * to_width * 3) : NULL;
        if (rc == 0 && !rows)
            rc = err_set(e, SHOAL_ENOMEM, "out of memory to resize an image");
        for (uint32_t y = 0; rc == 0 && y < height; y++)
            for (uint32_t x = 0; x < to_width; x++)
                pixel(rows + ((size_t)y * to_width + x) * 3, in + (size_t)y * width * 3, 3, &across,
                      x);
    }
    const uint8_t *from = rows ? rows : in;
    if (rc == 0 && to_height != height) {
        rc = taps_make(&down, height, to_height, filter, e);
        for (uint32_t y = 0; rc == 0 && y < to_height; y++)
            for (uint32_t x = 0; x < to_width; x++)
                pixel(out + ((size_t)y * to_width + x) * 3, from + (size_t)x * 3,
                      (size_t)to_width * 3, &down, y);
    } else if (rc == 0) {
        memcpy(out, from, (size_t)to_width * to_height * 3);
    }
    taps_fini(&across);
    taps_fini(&down);
    mem_free(rows);
    return rc;
}
