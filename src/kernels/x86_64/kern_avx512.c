/* kern_avx512.c - AVX-512 with VNNI: tiles of 16 rows, one int32 lane per row.
 *
 * vpdpbusd multiplies unsigned bytes (weights, including their offset) with signed ones
 * (activations); every sum starts at -offset * sum(activations), which removes the offset. */
#include "kernels/x86_64/v16_avx512.h"

#define OPS_WIDE_SUMS 1
#include "kernels/ops_body.h"
#include "kernels/tiles.h"
#include "kernels/x86_64/load_avx512.h"

static const struct kern_layout layout = {.tile_rows = 16, .group = 4, .q8_unsigned = true};

/* Four activations broadcast to every lane from memory: as an operand this needs no shuffle. */
typedef int32_t __attribute__((may_alias, aligned(1))) word;
static ALWAYS_INLINE __m512i bytes4(const void *p)
{
    return _mm512_set1_epi32(*(const word *)p);
}

/* log2 of the format's offset, which is a power of two; 0: none. */
static ALWAYS_INLINE unsigned offset_shift(enum kern_fmt fmt)
{
    return fmt == KERN_Q8 ? 7 : fmt == KERN_Q4 ? 3 : fmt == KERN_Q5 ? 4 : fmt == KERN_Q6 ? 5 : 0;
}

/* ---- one token: streams of weights ----------------------------------------------------------- */

#define AHEAD 1024u /* prefetch distance in bytes, per stream */

/* NR tiles at once, `apart` tiles from each other.  Several streams keep more cache lines in flight
 * than one, and share the broadcast activations.  The next call continues each stream with the tile
 * after its own. */
static ALWAYS_INLINE void tiles_one(const struct kern_mat *w, const struct kern_act *a,
                                    uint32_t tile, uint32_t apart, uint32_t t, float *out,
                                    enum kern_fmt fmt, const int NR, const struct tiles_map *map)
{
    const uint8_t *base = w->data + tile * w->tile_bytes;
    const size_t stride = apart * w->tile_bytes;
    const uint32_t blocks = w->n_cols / 32, quant_bytes = 16 * tiles_block_quant_bytes(fmt);
    const int offset = tiles_fmt_offset(fmt), halves = fmt == KERN_Q6 ? 2 : 1;
    const int8_t *aq = a->q + (size_t)t * a->n_cols;
    const float *ascale = a->scale + (size_t)t * blocks;
    const int32_t *sums = a->sums + (size_t)t * blocks * 2;
    const size_t head = map->quants / blocks; /* scales and mins of a block */
    __m512 acc[AVX512_STREAMS];
#pragma GCC unroll 8
    for (int r = 0; r < NR; r++)
        acc[r] = _mm512_setzero_ps();

    for (uint32_t b = 0; b < blocks; b++, aq += 32, sums += 2) {
        const __m512 d = _mm512_set1_ps(ascale[b]);
        const int32_t sum = sums[0] + sums[1];
#pragma GCC unroll 8
        for (int r = 0; r < NR; r++) {
            const uint8_t *own = base + (size_t)r * stride;
            const uint8_t *q = own + map->quants + (size_t)b * quant_bytes;
            /* near the end of the tile: the first quants of the next tile, after its scales */
            const uint8_t *next = q + AHEAD + (b + AHEAD / quant_bytes >= blocks ? map->quants : 0);
            const uint16_t *scales =
                (const uint16_t *)(const void *)own + b * 16 * (uint32_t)halves;
            __m512i k[8];
            load_block(fmt, q, k);
#pragma GCC unroll 8
            for (uint32_t line = 0; line < quant_bytes; line += 64)
                _mm_prefetch((const char *)(next + line), _MM_HINT_T0);
            _mm_prefetch((const char *)(own + w->tile_bytes + b * head), _MM_HINT_T0);
            const __m512 s0 = v16_f16(scales);
            if (fmt == KERN_Q6) {
                const __m512 s1 = v16_f16(scales + 16);
                __m512i lo = _mm512_set1_epi32(-offset * sums[0]);
                __m512i hi = _mm512_set1_epi32(-offset * sums[1]);
#pragma GCC unroll 4
                for (int j = 0; j < 4; j++) {
                    lo = _mm512_dpbusd_epi32(lo, k[j], bytes4(aq + 4 * j));
                    hi = _mm512_dpbusd_epi32(hi, k[j + 4], bytes4(aq + 16 + 4 * j));
                }
                acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(lo), _mm512_mul_ps(s0, d), acc[r]);
                acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(hi), _mm512_mul_ps(s1, d), acc[r]);
                continue;
            }
            /* two chains halve the latency; integer sums are exact in any order */
            __m512i i0 = _mm512_set1_epi32(-offset * sum), i1 = _mm512_setzero_si512();
#pragma GCC unroll 4
            for (int j = 0; j < 8; j += 2) {
                i0 = _mm512_dpbusd_epi32(i0, k[j], bytes4(aq + 4 * j));
                i1 = _mm512_dpbusd_epi32(i1, k[j + 1], bytes4(aq + 4 * j + 4));
            }
            acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_add_epi32(i0, i1)),
                                     _mm512_mul_ps(s0, d), acc[r]);
            if (tiles_fmt_has_min(fmt)) {
                const void *min = own + map->mins + (size_t)b * 32;
                acc[r] = _mm512_fmadd_ps(v16_f16((const uint16_t *)min),
                                         _mm512_set1_ps(ascale[b] * (float)sum), acc[r]);
            }
        }
    }
#pragma GCC unroll 8
    for (uint32_t r = 0; r < (uint32_t)NR; r++) {
        const uint32_t row = (tile + r * apart) * 16;
        ops_put(out + row, _mm512_mul_ps(acc[r], _mm512_set1_ps(w->mul)), w->n_rows - row);
    }
}

/* Tiles tile0 to tile1 - 1: as many streams as possible, each as long as possible. */
static ALWAYS_INLINE void gemm_one(const struct kern_mat *w, const struct kern_act *a, uint32_t t,
                                   uint32_t tile0, uint32_t tile1, float *out, enum kern_fmt fmt,
                                   const struct tiles_map *map)
{
    uint32_t tile = tile0, each = (tile1 - tile0) / AVX512_STREAMS;
    for (uint32_t i = 0; i < each; i++)
        tiles_one(w, a, tile + i, each, t, out, fmt, AVX512_STREAMS, map);
    tile += each * AVX512_STREAMS;
    for (; tile + 4 <= tile1; tile += 4)
        tiles_one(w, a, tile, 1, t, out, fmt, 4, map);
    for (; tile + 2 <= tile1; tile += 2)
        tiles_one(w, a, tile, 1, t, out, fmt, 2, map);
    if (tile < tile1)
        tiles_one(w, a, tile, 1, t, out, fmt, 1, map);
}

/* ---- several tokens: panels ------------------------------------------------------------------ */

/* Activations of NT tokens, block by block, so that one pointer reaches everything: words [8][NT],
 * then scales [NT], then minus the sum of q over the block [NT] (KERN_Q6: over each half [2][NT]),
 * then, as the twelfth row, scale * sum [NT]. */
#define PANEL_TOKENS 6
#define PANEL_BLOCK_WORDS (PANEL_TOKENS * 12)
#define PANEL_MAX_BLOCKS 512u
struct avx512_panel {
    _Alignas(64) uint32_t words[PANEL_MAX_BLOCKS * PANEL_BLOCK_WORDS];
};

/* Transposes eight words of up to eight tokens: r[j] becomes word j of every token. */
static ALWAYS_INLINE void transpose8(__m256i r[8])
{
    __m256i a[8], b[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
        a[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
        b[i] = _mm256_unpacklo_epi64(a[i], a[i + 2]);
        b[i + 1] = _mm256_unpackhi_epi64(a[i], a[i + 2]);
        b[i + 2] = _mm256_unpacklo_epi64(a[i + 1], a[i + 3]);
        b[i + 3] = _mm256_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x20);
        r[i + 4] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x31);
    }
}

static void fill_panel(struct avx512_panel *p, const struct kern_act *a, uint32_t t, uint32_t nt,
                       bool halves)
{
    const uint32_t blocks = a->n_cols / 32;
    uint32_t *to = p->words;
    for (uint32_t b = 0; b < blocks; b++, to += nt * 12) {
        __m256i r[8];
#pragma GCC unroll 8
        for (uint32_t i = 0; i < 8; i++) {
            uint32_t token = t + (i < nt ? i : 0);
            const int8_t *q = a->q + (size_t)token * a->n_cols + b * 32;
            r[i] = _mm256_loadu_si256((const __m256i *)(const void *)q);
        }
        transpose8(r);
        /* each store writes eight words, of which nt are valid: the next one overwrites the rest */
#pragma GCC unroll 8
        for (uint32_t j = 0; j < 8; j++)
            _mm256_storeu_si256((__m256i *)(void *)(to + j * nt), r[j]);
        for (uint32_t i = 0; i < nt; i++) {
            const float *scale = a->scale + (size_t)(t + i) * blocks + b;
            const int32_t *sums = a->sums + ((size_t)(t + i) * blocks + b) * 2;
            float min_factor = *scale * (float)(sums[0] + sums[1]);
            memcpy(&to[8 * nt + i], scale, 4);
            to[9 * nt + i] = (uint32_t) - (halves ? sums[0] : sums[0] + sums[1]);
            to[10 * nt + i] = (uint32_t)-sums[1];
            memcpy(&to[11 * nt + i], &min_factor, 4);
        }
    }
}

static ALWAYS_INLINE __m512 float1(const uint32_t *p)
{
    return _mm512_castsi512_ps(bytes4(p));
}

/* NR tiles of rows times the NT tokens of a panel: each broadcast activation is used NR times. */
static ALWAYS_INLINE void tiles_panel(const struct kern_mat *w, const struct avx512_panel *panel,
                                      uint32_t tile, float *out, size_t out_ld, enum kern_fmt fmt,
                                      const int NR, const int NT, const struct tiles_map *map)
{
    const uint8_t *base = w->data + tile * w->tile_bytes;
    const size_t stride = w->tile_bytes;
    const uint32_t blocks = w->n_cols / 32;
    const size_t quant_bytes = (size_t)(fmt == KERN_Q8                      ? 512
                                        : fmt == KERN_Q4 || fmt == KERN_Q4M ? 256
                                        : fmt == KERN_Q5 || fmt == KERN_Q5M ? 320
                                                                            : 384);
    const int halves = fmt == KERN_Q6 ? 2 : 1;
    const uint32_t *x = panel->words;
    __m512 acc[2][PANEL_TOKENS];
#pragma GCC unroll 2
    for (int r = 0; r < 2; r++)
#pragma GCC unroll 8
        for (int i = 0; i < NT; i++)
            acc[r][i] = _mm512_setzero_ps();

    for (uint32_t b = 0; b < blocks; b++, x += (uint32_t)NT * 12) {
        const uint8_t *scales = base + (size_t)b * 32 * (size_t)halves;
        const uint8_t *q = base + map->quants + b * quant_bytes;
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
            if (half >= halves)
                continue;
            __m512i isum[2][PANEL_TOKENS];
#pragma GCC unroll 8
            for (int i = 0; i < NT; i++) {
                __m512i start = _mm512_setzero_si512();
                if (offset_shift(fmt))
                    start = _mm512_slli_epi32(bytes4(x + (9 + half) * NT + i), offset_shift(fmt));
                isum[0][i] = start;
                if (NR == 2)
                    isum[1][i] = start;
            }
#pragma GCC unroll 8
            for (int j = 0; j < 8; j++) {
                if (halves == 2 && j / 4 != half)
                    continue;
                __m512i k0 = load_words(fmt, q, j), k1 = k0;
                if (NR == 2)
                    k1 = load_words(fmt, q + stride, j);
#pragma GCC unroll 8
                for (int i = 0; i < NT; i++) {
                    __m512i v = bytes4(x + j * NT + i);
                    isum[0][i] = _mm512_dpbusd_epi32(isum[0][i], k0, v);
                    if (NR == 2)
                        isum[1][i] = _mm512_dpbusd_epi32(isum[1][i], k1, v);
                }
            }
#pragma GCC unroll 2
            for (int r = 0; r < 2; r++) {
                if (r >= NR)
                    continue;
                const void *at = scales + (size_t)r * stride + 32 * half;
                __m512 s = v16_f16((const uint16_t *)at);
#pragma GCC unroll 8
                for (int i = 0; i < NT; i++)
                    acc[r][i] =
                        _mm512_fmadd_ps(_mm512_cvtepi32_ps(isum[r][i]),
                                        _mm512_mul_ps(s, float1(x + 8 * NT + i)), acc[r][i]);
            }
        }
#pragma GCC unroll 2
        for (int r = 0; r < 2; r++) {
            if (r >= NR || !tiles_fmt_has_min(fmt))
                continue;
            const void *at = base + (size_t)r * stride + map->mins + (size_t)b * 32;
            __m512 min = v16_f16((const uint16_t *)at);
#pragma GCC unroll 8
            for (int i = 0; i < NT; i++)
                acc[r][i] = _mm512_fmadd_ps(min, float1(x + 11 * NT + i), acc[r][i]);
        }
    }
    __m512 mul = _mm512_set1_ps(w->mul);
#pragma GCC unroll 2
    for (int r = 0; r < 2; r++) {
        if (r >= NR)
            continue;
        uint32_t row = (tile + (uint32_t)r) * 16;
#pragma GCC unroll 8
        for (int i = 0; i < NT; i++)
            ops_put(out + (size_t)i * out_ld + row, _mm512_mul_ps(acc[r][i], mul), w->n_rows - row);
    }
}

static ALWAYS_INLINE void gemm_panel(const struct kern_mat *w, const struct avx512_panel *panel,
                                     uint32_t tile0, uint32_t tile1, float *out, size_t out_ld,
                                     enum kern_fmt fmt, const int NT, const struct tiles_map *map)
{
    uint32_t tile = tile0;
    for (; tile + 2 <= tile1; tile += 2)
        tiles_panel(w, panel, tile, out, out_ld, fmt, 2, NT, map);
    if (tile < tile1)
        tiles_panel(w, panel, tile, out, out_ld, fmt, 1, NT, map);
}

static ALWAYS_INLINE void gemm_fmt(const struct kern_mat *w, const struct kern_act *a,
                                   uint32_t n_tokens, uint32_t tile0, uint32_t tile1, float *out,
                                   size_t out_ld, enum kern_fmt fmt)
{
    const struct tiles_map map = tiles_map(&layout, fmt, w->n_cols);
    uint32_t t = 0;
    if (n_tokens > 1 && w->n_cols / 32 <= PANEL_MAX_BLOCKS) {
        struct avx512_panel panel;
        while (n_tokens - t > 1) {
            uint32_t left = n_tokens - t;
            /* six at a time, the rest in fours and twos */
            uint32_t nt = left >= 6 && left != 8 ? 6 : left >= 4 ? 4 : 2;
            float *to = out + t * out_ld;
            fill_panel(&panel, a, t, nt, fmt == KERN_Q6);
            if (nt == 6)
                gemm_panel(w, &panel, tile0, tile1, to, out_ld, fmt, 6, &map);
            else if (nt == 4)
                gemm_panel(w, &panel, tile0, tile1, to, out_ld, fmt, 4, &map);
            else
                gemm_panel(w, &panel, tile0, tile1, to, out_ld, fmt, 2, &map);
            t += nt;
        }
    }
    for (; t < n_tokens; t++)
        gemm_one(w, a, t, tile0, tile1, out + t * out_ld, fmt, &map);
}

/* ---- wide groups ----------------------------------------------------------------------------- */

/* NR tiles of rows times NT tokens. */
static ALWAYS_INLINE void tiles_wide(const struct kern_mat *w, const struct kern_act *a,
                                     uint32_t tile, uint32_t t, float *out, size_t out_ld,
                                     const int NR, const int NT)
{
    const uint8_t *base = w->data + tile * w->tile_bytes;
    const uint8_t *q = base + tiles_map(&layout, KERN_Q8W, w->n_cols).quants;
    const size_t stride = w->tile_bytes, x_ld = a->n_cols, blocks = a->n_cols / 32;
    const int8_t *x = a->q + t * x_ld;
    const float *ascale = a->scale + t * blocks;
    const int32_t *sums = a->sums + t * blocks * 2;
    __m512 acc[2][PANEL_TOKENS];
#pragma GCC unroll 2
    for (int r = 0; r < NR; r++)
#pragma GCC unroll 8
        for (int i = 0; i < NT; i++)
            acc[r][i] = ops_wide_start(w, (tile + (uint32_t)r) * 16);
    for (uint32_t g = 0; g < w->n_cols / KERN_WIDE; g++, q += 1024, x += KERN_WIDE) {
        __m512i isum[2][PANEL_TOKENS];
#pragma GCC unroll 8
        for (int i = 0; i < NT; i++) {
            isum[0][i] =
                _mm512_sub_epi32(_mm512_setzero_si512(), bytes4(sums + (size_t)i * blocks * 2 + g));
            isum[1][i] = isum[0][i];
        }
        for (int j = 0; j < 16; j++) {
            __m512i k0 = _mm512_load_si512(q + 64 * j), k1 = k0;
            if (NR == 2)
                k1 = _mm512_load_si512(q + stride + 64 * j);
#pragma GCC unroll 8
            for (int i = 0; i < NT; i++) {
                __m512i v = bytes4(x + (size_t)i * x_ld + 4 * j);
                isum[0][i] = _mm512_dpbusd_epi32(isum[0][i], k0, v);
                if (NR == 2)
                    isum[1][i] = _mm512_dpbusd_epi32(isum[1][i], k1, v);
            }
        }
#pragma GCC unroll 2
        for (int r = 0; r < NR; r++) {
            const void *at = base + (size_t)r * stride + (size_t)g * 32;
            const __m512 scale = v16_f16((const uint16_t *)at);
#pragma GCC unroll 8
            for (int i = 0; i < NT; i++)
                acc[r][i] = _mm512_fmadd_ps(
                    _mm512_cvtepi32_ps(isum[r][i]),
                    _mm512_mul_ps(scale, _mm512_set1_ps(ascale[(size_t)i * blocks + g])),
                    acc[r][i]);
        }
    }
#pragma GCC unroll 2
    for (int r = 0; r < NR; r++) {
        const uint32_t row = (tile + (uint32_t)r) * 16;
#pragma GCC unroll 8
        for (int i = 0; i < NT; i++)
            ops_put(out + (t + (uint32_t)i) * out_ld + row, acc[r][i], w->n_rows - row);
    }
}

static ALWAYS_INLINE void gemm_wide_tokens(const struct kern_mat *w, const struct kern_act *a,
                                           uint32_t t, uint32_t tile0, uint32_t tile1, float *out,
                                           size_t out_ld, const int NT)
{
    uint32_t tile = tile0;
    for (; tile + 2 <= tile1; tile += 2)
        tiles_wide(w, a, tile, t, out, out_ld, 2, NT);
    if (tile < tile1)
        tiles_wide(w, a, tile, t, out, out_ld, 1, NT);
}

static void gemm_wide(const struct kern_mat *w, const struct kern_act *a, uint32_t n_tokens,
                      uint32_t tile0, uint32_t tile1, float *out, size_t out_ld)
{
    uint32_t t = 0;
    for (; t + 6 <= n_tokens; t += 6)
        gemm_wide_tokens(w, a, t, tile0, tile1, out, out_ld, 6);
    for (; t + 3 <= n_tokens; t += 3)
        gemm_wide_tokens(w, a, t, tile0, tile1, out, out_ld, 3);
    for (; t < n_tokens; t++)
        gemm_wide_tokens(w, a, t, tile0, tile1, out, out_ld, 1);
}

#include "kernels/gemm_formats.h"

static void gemm(const struct kern_mat *w, const struct kern_act *a, uint32_t n_tokens,
                 uint32_t tile0, uint32_t tile1, float *out, size_t out_ld)
{
    switch (w->fmt) {
    case KERN_Q8:
        gemm_KERN_Q8(w, a, n_tokens, tile0, tile1, out, out_ld);
        break;
    case KERN_Q4:
        gemm_KERN_Q4(w, a, n_tokens, tile0, tile1, out, out_ld);
        break;
    case KERN_Q4M:
        gemm_KERN_Q4M(w, a, n_tokens, tile0, tile1, out, out_ld);
        break;
    case KERN_Q5:
        gemm_KERN_Q5(w, a, n_tokens, tile0, tile1, out, out_ld);
        break;
    case KERN_Q5M:
        gemm_KERN_Q5M(w, a, n_tokens, tile0, tile1, out, out_ld);
        break;
    case KERN_Q6:
        gemm_KERN_Q6(w, a, n_tokens, tile0, tile1, out, out_ld);
        break;
    case KERN_Q8W:
        gemm_wide(w, a, n_tokens, tile0, tile1, out, out_ld);
        break;
    default:
        ops_fgemm(w, a, n_tokens, tile0, tile1, out, out_ld);
        break;
    }
}

const struct kern_ops kern_avx512 = {
    .name = "avx512-vnni",
    .layout = {.tile_rows = 16, .group = 4, .q8_unsigned = true},
    .streams = AVX512_STREAMS,
    .gemm = gemm,
    OPS_TABLE,
};
