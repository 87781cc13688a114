/* gemm_ymm.h - products with integer weights in 256-bit registers, for AVX2 and AVX-VNNI.
 *
 * Included by exactly one .c file per set, after v16_avx2.h and ops_body.h, with YMM_VNNI defined
 * as 0 or 1.  A tile of 16 rows is two vectors of 8 rows, one int32 lane per row.
 *
 * Bytes are multiplied unsigned (weights, including their offset) by signed (activations), and the
 * offset is removed at the end of a block as offset * sum(activations).  Without VNNI the products
 * pass through 16 bits, which must not saturate; activations are at most 127, so
 *   4 bits: 2 * 15 * 127 =  3810 per step: all 8 steps of a block fit into 16 bits;
 *   5 bits: 2 * 31 * 127 =  7874: 4 steps fit, half a block;
 *   6 bits: 2 * 63 * 127 = 16002: 2 steps fit;
 *   8 bits: signed, as |w| * (a with the sign of w): 2 * 128 * 127 = 32512, one step. */
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")
#define YMM_STREAMS 4

static const struct kern_layout layout = {.tile_rows = 16, .group = 4, .q8_unsigned = YMM_VNNI};

static ALWAYS_INLINE __m256i load_ymm(const uint8_t *p)
{
    return _mm256_load_si256((const __m256i *)(const void *)p);
}

/* Expands 32 bits to 32 bytes of 0 or 16. */
static ALWAYS_INLINE __m256i fifth_bits(const uint8_t *p)
{
    const __m256i from =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((int64_t)0x8040201008040201u);
    int32_t word;
    memcpy(&word, p, 4);
    __m256i v = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(word), from), bit);
    return _mm256_and_si256(_mm256_cmpeq_epi8(v, bit), _mm256_set1_epi8(16));
}

/* Bits 4..5 of columns 8k + 4 (j % 2) .. + 3, shifted into place. */
static ALWAYS_INLINE __m256i two_bits(const uint8_t *p, int k)
{
    __m256i v = load_ymm(p);
    v = k == 0   ? _mm256_slli_epi16(v, 4)
        : k == 1 ? _mm256_slli_epi16(v, 2)
        : k == 3 ? _mm256_srli_epi16(v, 2)
                 : v;
    return _mm256_and_si256(v, _mm256_set1_epi8(0x30));
}

/* Columns 16 * pass + 4 * j .. + 3 of rows 8 * h .. + 7 of a block. */
static ALWAYS_INLINE __m256i weights(enum kern_fmt fmt, const uint8_t *q, int pass, int j, int h)
{
    if (fmt == KERN_Q8)
        return load_ymm(q + 64 * (4 * pass + j) + 32 * h);
    __m256i v = load_ymm(q + 64 * j + 32 * h);
    v = _mm256_and_si256(pass ? _mm256_srli_epi16(v, 4) : v, _mm256_set1_epi8(15));
    if (fmt == KERN_Q5 || fmt == KERN_Q5M)
        v = _mm256_or_si256(v, fifth_bits(q + 256 + 8 * (4 * pass + j) + 4 * h));
    else if (fmt == KERN_Q6)
        v = _mm256_or_si256(v, two_bits(q + 256 + 64 * (j % 2) + 32 * h, 2 * pass + j / 2));
    return v;
}

static ALWAYS_INLINE __m256i bytes4(const int8_t *p)
{
    int32_t v;
    memcpy(&v, p, 4);
    return _mm256_set1_epi32(v);
}

static ALWAYS_INLINE __m256 half8(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_load_si128((const __m128i *)(const void *)p));
}

static ALWAYS_INLINE __m256i bcast32(const int32_t *p)
{
    return _mm256_set1_epi32(*p);
}

/* One step: w times x, four columns of 8 rows.  part: 16-bit sums in AVX2, see flush(). */
static ALWAYS_INLINE void step(enum kern_fmt fmt, __m256i w, __m256i abs_w, __m256i x,
                               __m256i *part, __m256i *sum)
{
#if YMM_VNNI
    (void)fmt;
    (void)abs_w;
    (void)part;
    *sum = _mm256_dpbusd_avx_epi32(*sum, w, x);
#else
    if (fmt == KERN_Q8) {
        __m256i p = _mm256_maddubs_epi16(abs_w, _mm256_sign_epi8(x, w));
        *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(p, _mm256_set1_epi16(1)));
        __asm__("" : "+x"(*sum));
    } else {
        *part = _mm256_add_epi16(*part, _mm256_maddubs_epi16(w, x));
        __asm__("" : "+x"(*part)); /* keeps gcc from summing as a tree with all products live */
    }
#endif
}

static ALWAYS_INLINE void flush(__m256i *part, __m256i *sum)
{
    *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(*part, _mm256_set1_epi16(1)));
    *part = _mm256_setzero_si256();
}

/* Adds the products of one pass, 16 columns of a block, to sum[i][h]. */
static ALWAYS_INLINE void pass16(enum kern_fmt fmt, const uint8_t *q, const int8_t *x, size_t x_ld,
                                 int pass, const int NT, __m256i part[4][2], __m256i sum[4][2])
{
    UNROLL for (int j = 0; j < 4; j++)
    {
        __m256i w[2], abs_w[2];
        UNROLL for (int h = 0; h < 2; h++)
        {
            w[h] = weights(fmt, q, pass, j, h);
            abs_w[h] = !YMM_VNNI && fmt == KERN_Q8 ? _mm256_abs_epi8(w[h]) : w[h];
        }
        UNROLL for (int i = 0; i < NT; i++)
        {
            __m256i b = bytes4(x + (size_t)i * x_ld + 16 * pass + 4 * j);
            UNROLL for (int h = 0; h < 2; h++)
                step(fmt, w[h], abs_w[h], b, &part[i][h], &sum[i][h]);
        }
        bool full = fmt == KERN_Q6                      ? j % 2 == 1
                    : fmt == KERN_Q5 || fmt == KERN_Q5M ? j == 3
                    : fmt == KERN_Q4 || fmt == KERN_Q4M ? j == 3 && pass == 1
                                                        : false;
        if (!YMM_VNNI && full)
            UNROLL for (int i = 0; i < NT; i++) UNROLL for (int h = 0; h < 2; h++)
                flush(&part[i][h], &sum[i][h]);
    }
}

/* -offset * s; all offsets are powers of two. */
static ALWAYS_INLINE __m256i bias(enum kern_fmt fmt, __m256i s)
{
    const int offset = fmt == KERN_Q8 && !YMM_VNNI ? 0 : tiles_fmt_offset(fmt);
    if (offset == 0)
        return _mm256_setzero_si256();
    return _mm256_sub_epi32(_mm256_setzero_si256(),
                            _mm256_slli_epi32(s, __builtin_ctz((unsigned)offset | 256u)));
}

/* Pointers to one tile's current block. */
struct ymm_block {
    const uint8_t *q;
    const uint16_t *scales, *mins;
};

/* One block of one tile times NT tokens. */
static ALWAYS_INLINE void block_tokens(enum kern_fmt fmt, struct ymm_block w, const int8_t *x,
                                       const float *ascale, const int32_t *sums, uint32_t n_cols,
                                       const int NT, __m256 acc[4][2])
{
    const size_t blocks = n_cols / 32;
    const bool split = fmt == KERN_Q6; /* the halves of a block have separate scales */
    __m256i part[4][2], sum[4][2];
    UNROLL for (int i = 0; i < NT; i++)
    {
        const int32_t *s = sums + (size_t)i * blocks * 2;
        __m256i s0 = bcast32(s);
        if (!split)
            s0 = _mm256_add_epi32(s0, bcast32(s + 1));
        UNROLL for (int h = 0; h < 2; h++)
        {
            part[i][h] = _mm256_setzero_si256();
            sum[i][h] = bias(fmt, s0);
        }
    }
    UNROLL for (int pass = 0; pass < 2; pass++)
    {
        pass16(fmt, w.q, x, n_cols, pass, NT, part, sum);
        if (pass == 0 && !split)
            continue;
        __m256 scale[2];
        UNROLL for (int h = 0; h < 2; h++) scale[h] =
            half8(w.scales + (split ? 16 * pass : 0) + 8 * h);
        UNROLL for (int i = 0; i < NT; i++)
        {
            __m256 d = _mm256_set1_ps(ascale[(size_t)i * blocks]);
            UNROLL for (int h = 0; h < 2; h++)
            {
                acc[i][h] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[i][h]),
                                            _mm256_mul_ps(scale[h], d), acc[i][h]);
                if (pass == 0) /* split: the second half starts */
                    sum[i][h] = bias(fmt, bcast32(sums + (size_t)i * blocks * 2 + 1));
            }
        }
    }
    if (tiles_fmt_has_min(fmt))
        UNROLL for (int i = 0; i < NT; i++)
        {
            const int32_t *s = sums + (size_t)i * blocks * 2;
            __m256 k = _mm256_set1_ps(ascale[(size_t)i * blocks] * (float)(s[0] + s[1]));
            UNROLL for (int h = 0; h < 2; h++) acc[i][h] =
                _mm256_fmadd_ps(half8(w.mins + 8 * h), k, acc[i][h]);
        }
}

/* NS tiles times NT tokens from token t.  With one token several tiles are processed in parallel:
 * the hardware prefetcher does not keep enough cache lines in flight for a single stream. */
static ALWAYS_INLINE void tiles_tokens(const struct kern_mat *w, const struct kern_act *a,
                                       uint32_t tile, uint32_t t, float *out, size_t out_ld,
                                       enum kern_fmt fmt, const int NS, const int NT,
                                       const struct tiles_map *map)
{
    const uint8_t *base = w->data + tile * w->tile_bytes;
    const uint32_t blocks = w->n_cols / 32, quant_bytes = 16 * tiles_block_quant_bytes(fmt);
    const uint32_t scale_bytes = fmt == KERN_Q6 ? 64 : 32;
    const int8_t *x = a->q + (size_t)t * a->n_cols;
    const float *ascale = a->scale + (size_t)t * blocks;
    const int32_t *sums = a->sums + (size_t)t * blocks * 2;
    __m256 acc[4][4][2];
    UNROLL for (int s = 0; s < NS; s++) UNROLL for (int i = 0; i < NT; i++) acc[s][i][0] =
        acc[s][i][1] = _mm256_setzero_ps();

    for (uint32_t b = 0; b < blocks; b++)
        UNROLL for (int s = 0; s < NS; s++)
        {
            const uint8_t *from = base + (size_t)s * w->tile_bytes;
            struct ymm_block at = {
                from + map->quants + (size_t)b * quant_bytes,
                (const uint16_t *)(const void *)(from + (size_t)b * scale_bytes),
                (const uint16_t *)(const void *)(from + map->mins + (size_t)b * 32)};
            if (NT == 1)
                UNROLL for (uint32_t line = 0; line < quant_bytes; line += 64)
                    _mm_prefetch((const char *)(at.q + 8 * quant_bytes + line), _MM_HINT_T0);
            block_tokens(fmt, at, x + b * 32, ascale + b, sums + 2 * b, w->n_cols, NT, acc[s]);
        }
    __m256 mul = _mm256_set1_ps(w->mul);
    UNROLL for (int s = 0; s < NS; s++) UNROLL for (int i = 0; i < NT; i++)
    {
        uint32_t row = (tile + (uint32_t)s) * 16;
        v16 r = {_mm256_mul_ps(acc[s][i][0], mul), _mm256_mul_ps(acc[s][i][1], mul)};
        ops_put(out + (t + (uint32_t)i) * out_ld + row, r, w->n_rows - row);
    }
}

static ALWAYS_INLINE void gemm_fmt(const struct kern_mat *w, const struct kern_act *a,
                                   uint32_t n_tokens, uint32_t tile0, uint32_t tile1, float *out,
                                   size_t out_ld, enum kern_fmt fmt)
{
    const struct tiles_map map = tiles_map(&layout, fmt, w->n_cols);
    uint32_t tile = tile0;
    if (n_tokens == 1)
        for (; tile + YMM_STREAMS <= tile1; tile += YMM_STREAMS)
            tiles_tokens(w, a, tile, 0, out, out_ld, fmt, YMM_STREAMS, 1, &map);
    for (; tile < tile1; tile++) {
        uint32_t t = 0;
        for (; t + 4 <= n_tokens; t += 4)
            tiles_tokens(w, a, tile, t, out, out_ld, fmt, 1, 4, &map);
        for (; t + 2 <= n_tokens; t += 2)
            tiles_tokens(w, a, tile, t, out, out_ld, fmt, 1, 2, &map);
        for (; t < n_tokens; t++)
            tiles_tokens(w, a, tile, t, out, out_ld, fmt, 1, 1, &map);
    }
}

/* KERN_Q8W: one tile times NT tokens. */
static ALWAYS_INLINE void tile_wide(const struct kern_mat *w, const struct kern_act *a,
                                    uint32_t tile, uint32_t t, float *out, size_t out_ld,
                                    const int NT)
{
    const uint8_t *base = w->data + tile * w->tile_bytes;
    const uint8_t *q = base + tiles_map(&layout, KERN_Q8W, w->n_cols).quants;
    const size_t blocks = w->n_cols / 32;
    const int8_t *x = a->q + (size_t)t * a->n_cols;
    const float *ascale = a->scale + t * blocks;
    const v16 start = ops_wide_start(w, tile * 16);
    __m256 acc[4][2];
    UNROLL for (int i = 0; i < NT; i++)
    {
        acc[i][0] = start.lo;
        acc[i][1] = start.hi;
    }
    for (uint32_t g = 0; g < w->n_cols / KERN_WIDE; g++, q += 1024, x += KERN_WIDE) {
        __m256i part[4][2], sum[4][2];
        UNROLL for (int i = 0; i < NT; i++) UNROLL for (int h = 0; h < 2; h++)
        {
            part[i][h] = sum[i][h] = _mm256_setzero_si256();
            if (YMM_VNNI) /* signed weights have no offset */
                sum[i][h] = _mm256_sub_epi32(sum[i][h],
                                             bcast32(a->sums + (t + (uint32_t)i) * blocks * 2 + g));
        }
        for (int b = 0; b < 2; b++)
            UNROLL for (int pass = 0; pass < 2; pass++)
                pass16(KERN_Q8, q + 512 * b, x + 32 * b, a->n_cols, pass, NT, part, sum);
        const uint16_t *scales = (const uint16_t *)(const void *)base + 16 * g;
        const __m256 scale[2] = {half8(scales), half8(scales + 8)};
        UNROLL for (int i = 0; i < NT; i++)
        {
            __m256 d = _mm256_set1_ps(ascale[(size_t)i * blocks + g]);
            UNROLL for (int h = 0; h < 2; h++) acc[i][h] = _mm256_fmadd_ps(
                _mm256_cvtepi32_ps(sum[i][h]), _mm256_mul_ps(scale[h], d), acc[i][h]);
        }
    }
    UNROLL for (int i = 0; i < NT; i++)
    {
        v16 r = {acc[i][0], acc[i][1]};
        ops_put(out + (t + (uint32_t)i) * out_ld + tile * 16, r, w->n_rows - tile * 16);
    }
}

static void gemm_wide(const struct kern_mat *w, const struct kern_act *a, uint32_t n_tokens,
                      uint32_t tile0, uint32_t tile1, float *out, size_t out_ld)
{
    for (uint32_t tile = tile0; tile < tile1; tile++) {
        uint32_t t = 0;
        for (; t + 4 <= n_tokens; t += 4)
            tile_wide(w, a, tile, t, out, out_ld, 4);
        for (; t < n_tokens; t++)
            tile_wide(w, a, tile, t, out, out_ld, 1);
    }
}

#include "kernels/gemm_formats.h"

static void gemm(const struct kern_mat *w, const struct kern_act *a, uint32_t n_tokens,
                 uint32_t tile0, uint32_t tile1, float *out, size_t out_ld)
{
    static void (*const by_fmt[KERN_N_FMTS])(const struct kern_mat *, const struct kern_act *,
                                             uint32_t, uint32_t, uint32_t, float *, size_t) = {
        [KERN_F32] = ops_fgemm,   [KERN_F16] = ops_fgemm,     [KERN_BF16] = ops_fgemm,
        [KERN_Q8] = gemm_KERN_Q8, [KERN_Q4] = gemm_KERN_Q4,   [KERN_Q4M] = gemm_KERN_Q4M,
        [KERN_Q5] = gemm_KERN_Q5, [KERN_Q5M] = gemm_KERN_Q5M, [KERN_Q6] = gemm_KERN_Q6,
        [KERN_Q8W] = gemm_wide,
    };
    by_fmt[w->fmt](w, a, n_tokens, tile0, tile1, out, out_ld);
}
