/* voice_math.h - exp, log and normal deviates from additions, products and square roots alone: the
 * same bits with every C library.  Doubles, compiled without contraction. */
#ifndef SHOAL_MODEL_VOICE_VOICE_MATH_H
#define SHOAL_MODEL_VOICE_VOICE_MATH_H

#include <math.h>
#include <stdint.h>

#include "base/hash.h"

#define VOICE_LN2 0.693147180559945309417
#define VOICE_HALF_PI 1.57079632679489661923

static inline double voice_exp(double x)
{
    if (!(x > -700.0))
        return x == x ? 0.0 : x;
    x = x < 700.0 ? x : 700.0;
    const double k = floor(x / VOICE_LN2 + 0.5), r = x - k * VOICE_LN2;
    double sum = 1.0;
    for (int i = 16; i > 0; i--)
        sum = 1.0 + r / i * sum;
    return ldexp(sum, (int)k);
}

static inline double voice_log(double x) /* x > 0 */
{
    int e;
    double m = frexp(x, &e);
    if (m < 0.70710678118654752440) {
        m *= 2.0;
        e--;
    }
    const double f = (m - 1.0) / (m + 1.0), f2 = f * f;
    double sum = 0.0;
    for (int i = 23; i > 0; i -= 2)
        sum = 1.0 / i + f2 * sum;
    return 2.0 * f * sum + e * VOICE_LN2;
}

static inline double voice_softplus(double x)
{
    return x > 30.0 ? x : x < -30.0 ? voice_exp(x) : voice_log(1.0 + voice_exp(x));
}

/* cos(2 pi u), 0 <= u < 1 */
static inline double voice_cos_turn(double u)
{
    const int quarter = (int)(u * 4.0);
    double f = u * 4.0 - quarter;
    f = quarter % 2 ? (1.0 - f) * VOICE_HALF_PI : f * VOICE_HALF_PI;
    double sum = 1.0;
    for (int i = 22; i > 0; i -= 2)
        sum = 1.0 - f * f / (i * (i - 1)) * sum;
    return quarter == 1 || quarter == 2 ? -sum : sum;
}

/* The i-th normal deviate of a stream. */
static inline float voice_normal(uint64_t seed, uint32_t stream, uint64_t i)
{
    const uint64_t key = hash_mix(seed ^ hash_mix((uint64_t)stream << 40 | i));
    const uint64_t other = hash_mix(key + 0x9e3779b97f4a7c15u);
    const double u = ((double)(key >> 11) + 1.0) / 9007199254740993.0; /* above 0 */
    return (float)(sqrt(-2.0 * voice_log(u)) *
                   voice_cos_turn((double)(other >> 11) / 9007199254740992.0));
}

#endif
