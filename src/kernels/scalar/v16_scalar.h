/* v16_scalar.h - sixteen floats as a plain array: the reference for every v16_*.h.
 *
 * Each instruction set has a header with the same functions; ops_body.h is written in terms of
 * them.  All functions are static, so that code compiled for one set is never linked into another.
 */
#ifndef SHOAL_KERNELS_V16_SCALAR_H
#define SHOAL_KERNELS_V16_SCALAR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/quants/quant.h"

typedef struct {
    float v[16];
} v16;

#define V16_ROLLED 1
#define V16_EACH for (int i = 0; i < 16; i++)

static inline v16 v16_set1(float x)
{
    v16 r;
    V16_EACH r.v[i] = x;
    return r;
}
static inline v16 v16_zero(void)
{
    return v16_set1(0.0f);
}
static inline v16 v16_load(const float *p)
{
    v16 r;
    memcpy(r.v, p, sizeof(r.v));
    return r;
}
static inline v16 v16_load_n(const float *p, uint32_t n) /* n < 16; the rest is 0 */
{
    v16 r = v16_zero();
    memcpy(r.v, p, n * sizeof(float));
    return r;
}
static inline void v16_store(float *p, v16 a)
{
    memcpy(p, a.v, sizeof(a.v));
}
static inline void v16_store_n(float *p, v16 a, uint32_t n)
{
    memcpy(p, a.v, n * sizeof(float));
}
static inline v16 v16_add(v16 a, v16 b)
{
    V16_EACH a.v[i] += b.v[i];
    return a;
}
static inline v16 v16_sub(v16 a, v16 b)
{
    V16_EACH a.v[i] -= b.v[i];
    return a;
}
static inline v16 v16_mul(v16 a, v16 b)
{
    V16_EACH a.v[i] *= b.v[i];
    return a;
}
static inline v16 v16_div(v16 a, v16 b)
{
    V16_EACH a.v[i] /= b.v[i];
    return a;
}
static inline v16 v16_fma(v16 a, v16 b, v16 c) /* a * b + c, rounded once */
{
    V16_EACH c.v[i] = fmaf(a.v[i], b.v[i], c.v[i]);
    return c;
}
static inline v16 v16_max(v16 a, v16 b) /* a > b ? a : b */
{
    V16_EACH a.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
    return a;
}
static inline v16 v16_min(v16 a, v16 b) /* a < b ? a : b */
{
    V16_EACH a.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i];
    return a;
}
static inline v16 v16_abs(v16 a)
{
    V16_EACH a.v[i] = fabsf(a.v[i]);
    return a;
}
static inline v16 v16_round(v16 a) /* nearest, ties to even */
{
    V16_EACH a.v[i] = nearbyintf(a.v[i]);
    return a;
}
static inline v16 v16_pow2(v16 n) /* 2^n for whole n in -126..127 */
{
    V16_EACH
    {
        uint32_t bits = (uint32_t)((int32_t)n.v[i] + 127) << 23;
        memcpy(&n.v[i], &bits, 4);
    }
    return n;
}
static inline v16 v16_f16(const uint16_t *p)
{
    v16 r;
    V16_EACH r.v[i] = quant_f16_to_f32(p[i]);
    return r;
}
static inline v16 v16_bf16(const uint16_t *p)
{
    v16 r;
    V16_EACH r.v[i] = quant_bf16_to_f32(p[i]);
    return r;
}
static inline v16 v16_i8(const int8_t *p)
{
    v16 r;
    V16_EACH r.v[i] = (float)p[i];
    return r;
}
static inline void v16_store_f16(uint16_t *p, v16 a)
{
    V16_EACH p[i] = quant_f32_to_f16(a.v[i]);
}
static inline int32_t v16_store_i8(int8_t *p,
                                   v16 a) /* rounds to nearest, ties to even; returns their sum */
{
    int32_t sum = 0;
    V16_EACH
    {
        p[i] = (int8_t)lrintf(a.v[i]);
        sum += p[i];
    }
    return sum;
}
static inline v16 v16_swap(v16 a) /* swaps neighbouring lanes */
{
    v16 r;
    V16_EACH r.v[i] = a.v[i ^ 1];
    return r;
}
static inline float v16_sum(v16 a) /* in the fixed order given in kern.h */
{
    for (int half = 8; half >= 1; half /= 2)
        for (int i = 0; i < half; i++)
            a.v[i] = a.v[i] + a.v[i + half];
    return a.v[0];
}
static inline float v16_hmax(v16 a)
{
    float m = a.v[0];
    for (int i = 1; i < 16; i++)
        m = a.v[i] > m ? a.v[i] : m;
    return m;
}
static inline int32_t v16_dot_i8(const int8_t *a, const int8_t *b, uint32_t n)
{
    int32_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}
#undef V16_EACH

#endif
