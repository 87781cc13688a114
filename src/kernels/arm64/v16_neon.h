/* v16_neon.h - sixteen floats in four NEON registers; see scalar/v16_scalar.h. */
#ifndef SHOAL_KERNELS_V16_NEON_H
#define SHOAL_KERNELS_V16_NEON_H

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    float32x4_t a, b, c, d;
} v16;

#define V16_REGS 8 /* how many v16 fit into the registers; ops_body.h chooses tile sizes by it */

#define V16_EACH1(f, x) ((v16){f((x).a), f((x).b), f((x).c), f((x).d)})
#define V16_EACH2(f, x, y)                                                                         \
    ((v16){f((x).a, (y).a), f((x).b, (y).b), f((x).c, (y).c), f((x).d, (y).d)})

static inline v16 v16_set1(float x)
{
    float32x4_t v = vdupq_n_f32(x);
    return (v16){v, v, v, v};
}
static inline v16 v16_zero(void)
{
    return v16_set1(0.0f);
}
static inline v16 v16_load(const float *p)
{
    return (v16){vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}
static inline v16 v16_load_n(const float *p, uint32_t n)
{
    float t[16] = {0};
    memcpy(t, p, n * sizeof(float));
    return v16_load(t);
}
static inline void v16_store(float *p, v16 x)
{
    vst1q_f32(p, x.a);
    vst1q_f32(p + 4, x.b);
    vst1q_f32(p + 8, x.c);
    vst1q_f32(p + 12, x.d);
}
static inline void v16_store_n(float *p, v16 x, uint32_t n)
{
    float t[16];
    v16_store(t, x);
    memcpy(p, t, n * sizeof(float));
}
static inline v16 v16_add(v16 x, v16 y)
{
    return V16_EACH2(vaddq_f32, x, y);
}
static inline v16 v16_sub(v16 x, v16 y)
{
    return V16_EACH2(vsubq_f32, x, y);
}
static inline v16 v16_mul(v16 x, v16 y)
{
    return V16_EACH2(vmulq_f32, x, y);
}
static inline v16 v16_div(v16 x, v16 y)
{
    return V16_EACH2(vdivq_f32, x, y);
}
static inline v16 v16_fma(v16 x, v16 y, v16 z)
{
    return (v16){vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c),
                 vfmaq_f32(z.d, x.d, y.d)};
}
/* Compare and select, not fmax: with a NaN the second operand is returned, as in every set. */
static inline float32x4_t v16_max4(float32x4_t x, float32x4_t y)
{
    return vbslq_f32(vcgtq_f32(x, y), x, y);
}
static inline float32x4_t v16_min4(float32x4_t x, float32x4_t y)
{
    return vbslq_f32(vcltq_f32(x, y), x, y);
}
static inline v16 v16_max(v16 x, v16 y)
{
    return V16_EACH2(v16_max4, x, y);
}
static inline v16 v16_min(v16 x, v16 y)
{
    return V16_EACH2(v16_min4, x, y);
}
static inline v16 v16_abs(v16 x)
{
    return V16_EACH1(vabsq_f32, x);
}
static inline v16 v16_round(v16 x)
{
    return V16_EACH1(vrndnq_f32, x);
}
static inline float32x4_t v16_pow2_4(float32x4_t n)
{
    int32x4_t i = vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127));
    return vreinterpretq_f32_s32(vshlq_n_s32(i, 23));
}
static inline v16 v16_pow2(v16 n)
{
    return V16_EACH1(v16_pow2_4, n);
}
static inline v16 v16_f16(const uint16_t *p)
{
    float16x8_t lo = vreinterpretq_f16_u16(vld1q_u16(p));
    float16x8_t hi = vreinterpretq_f16_u16(vld1q_u16(p + 8));
    return (v16){vcvt_f32_f16(vget_low_f16(lo)), vcvt_high_f32_f16(lo),
                 vcvt_f32_f16(vget_low_f16(hi)), vcvt_high_f32_f16(hi)};
}
static inline v16 v16_bf16(const uint16_t *p)
{
    uint16x8_t lo = vld1q_u16(p), hi = vld1q_u16(p + 8);
    return (v16){vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(lo), 16)),
                 vreinterpretq_f32_u32(vshll_high_n_u16(lo, 16)),
                 vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(hi), 16)),
                 vreinterpretq_f32_u32(vshll_high_n_u16(hi, 16))};
}
static inline v16 v16_i8(const int8_t *p)
{
    int8x16_t v = vld1q_s8(p);
    int16x8_t lo = vmovl_s8(vget_low_s8(v)), hi = vmovl_high_s8(v);
    return (v16){vcvtq_f32_s32(vmovl_s16(vget_low_s16(lo))), vcvtq_f32_s32(vmovl_high_s16(lo)),
                 vcvtq_f32_s32(vmovl_s16(vget_low_s16(hi))), vcvtq_f32_s32(vmovl_high_s16(hi))};
}
static inline void v16_store_f16(uint16_t *p, v16 x)
{
    vst1q_u16(p, vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(x.a), x.b)));
    vst1q_u16(p + 8, vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(x.c), x.d)));
}
static inline int32_t v16_store_i8(int8_t *p, v16 x)
{
    int32x4_t a = vcvtnq_s32_f32(x.a), b = vcvtnq_s32_f32(x.b);
    int32x4_t c = vcvtnq_s32_f32(x.c), d = vcvtnq_s32_f32(x.d);
    int16x8_t lo = vmovn_high_s32(vmovn_s32(a), b), hi = vmovn_high_s32(vmovn_s32(c), d);
    vst1q_s8(p, vmovn_high_s16(vmovn_s16(lo), hi));
    return vaddvq_s32(vaddq_s32(vaddq_s32(a, b), vaddq_s32(c, d)));
}
static inline v16 v16_swap(v16 x)
{
    return V16_EACH1(vrev64q_f32, x);
}
static inline float v16_sum(v16 x)
{
    float32x4_t q = vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
    float32x2_t h = vadd_f32(vget_low_f32(q), vget_high_f32(q));
    return vget_lane_f32(h, 0) + vget_lane_f32(h, 1);
}
static inline float v16_hmax(v16 x)
{
    return vmaxvq_f32(v16_max4(v16_max4(x.a, x.b), v16_max4(x.c, x.d)));
}
static inline int32_t v16_dot_i8(const int8_t *a, const int8_t *b, uint32_t n)
{
    int32x4_t sum = vdupq_n_s32(0);
    for (uint32_t i = 0; i < n; i += 16) {
        int8x16_t x = vld1q_s8(a + i), y = vld1q_s8(b + i);
        sum = vpadalq_s16(sum, vmull_s8(vget_low_s8(x), vget_low_s8(y)));
        sum = vpadalq_s16(sum, vmull_high_s8(x, y));
    }
    return vaddvq_s32(sum);
}

#endif
