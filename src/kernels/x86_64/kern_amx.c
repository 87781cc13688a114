/* kern_amx.c - AVX-512 with the AMX tile unit for products of many tokens.
 *
 * The tile layout is that of AVX-512: 64 bytes are 4 columns of 16 rows, exactly a row of the AMX
 * tile for the second operand.  One tile instruction multiplies up to 16 tokens with 16 rows over
 * one part, which is all columns that share a scale.  Scaling and accumulation stay in vector
 * registers, in the order that kern.h prescribes.  Small numbers of tokens and float weights are
 * left to the AVX-512 set. */
#include "kernels/x86_64/v16_avx512.h"

#include "kernels/ops_body.h"
#include "kernels/tiles.h"
#include "kernels/x86_64/load_avx512.h"

extern const struct kern_ops kern_avx512;

static const struct kern_layout layout = {
    .tile_rows = 16, .group = 4, .q8_unsigned = true, .wide_signed = true};

#define LEAST_TOKENS 7u /* fewer leave tiles too empty; KERN_Q8W always uses tiles */
#define MAX_PARTS 512u
#define GROUP_TOKENS 128u /* tokens that share one unpacking of a tile */

struct tile_config { /* as ldtilecfg reads it */
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* Tiles 0, 1: results, 2: activations, 3: weights; 4, 5, 6: results and activations of the last
 * tokens, when they do not fill a tile.  There are two result tiles so that one part is multiplied
 * while the other is stored; the rest need no second register, the CPU renames them. */
static void configure(uint32_t n_tokens, uint32_t n_last, uint32_t columns)
{
    struct tile_config c = {.palette = 1};
    for (int i = 0; i < 7; i++) {
        const bool input = i == 2 || i == 6;
        c.rows[i] = (uint8_t)(i == 3 ? columns / 4 : i < 3 ? n_tokens : n_last);
        c.row_bytes[i] = (uint16_t)(input ? columns : 64);
    }
    _tile_loadconfig(&c);
}

static ALWAYS_INLINE uint32_t part_columns(enum kern_fmt fmt)
{
    return fmt == KERN_Q6 ? 16 : fmt == KERN_Q8W ? KERN_WIDE : 32;
}

struct scratch {
    /* results of two parts, [token][row]: one is added while the next is stored */
    _Alignas(64) int32_t sums[2][16 * 16];
    _Alignas(64) int8_t rows[MAX_PARTS * 512]; /* one tile of weights as signed bytes */
    /* per 16 tokens and block: their scales, and scale * sum for formats with a min */
    _Alignas(64) float scale[GROUP_TOKENS / 16][MAX_PARTS][16];
    _Alignas(64) float min_factor[GROUP_TOKENS / 16][MAX_PARTS][16];
};

/* Unpacks blocks of a tile, 512 bytes each, with the offset subtracted: signed weights need no
 * correction of the sums. */
static ALWAYS_INLINE void unpack(enum kern_fmt fmt, const uint8_t *q, uint32_t blocks,
                                 struct scratch *s)
{
    const size_t quant_bytes = 16 * (size_t)tiles_block_quant_bytes(fmt);
    const __m512i offset = _mm512_set1_epi8((char)tiles_fmt_offset(fmt));
    for (uint32_t b = 0; b < blocks; b++, q += quant_bytes)
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++)
            _mm512_store_si512(s->rows + (size_t)b * 512 + 64 * j,
                               _mm512_sub_epi8(load_words(fmt, q, j), offset));
}

/* Writes token i of a group to lane i. */
static void fill_factors(struct scratch *s, const struct kern_act *a, uint32_t t, uint32_t n,
                         uint32_t n_scales, bool mins)
{
    const uint32_t blocks = a->n_cols / 32;
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i at = _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)blocks));
    const __m512i at_sums = _mm512_slli_epi32(at, 1);
    for (uint32_t i = 0; i < n; i += 16) {
        const __mmask16 here = (__mmask16)(n - i < 16 ? (1u << (n - i)) - 1 : 0xffff);
        const float *scale = a->scale + (size_t)(t + i) * blocks;
        const int32_t *sums = a->sums + (size_t)(t + i) * blocks * 2;
        for (uint32_t b = 0; b < n_scales; b++, scale++, sums += 2) {
            const __m512 d = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), here, at, scale, 4);
            _mm512_store_ps(s->scale[i / 16][b], d);
            if (!mins)
                continue;
            const __m512i none = _mm512_setzero_si512();
            const __m512i lo = _mm512_mask_i32gather_epi32(none, here, at_sums, sums, 4);
            const __m512i hi = _mm512_mask_i32gather_epi32(none, here, at_sums, sums + 1, 4);
            const __m512 sum = _mm512_cvtepi32_ps(_mm512_add_epi32(lo, hi));
            _mm512_store_ps(s->min_factor[i / 16][b], _mm512_mul_ps(d, sum));
        }
    }
}

/* Prefetches the next weights into L2, a few lines per step.  The lines are not fetched in order:
 * the hardware prefetcher follows one stream per 4 KiB page, and a single stream keeps fewer lines
 * in flight than the memory can deliver.  So lines are taken from several pages in turn. */
#define PAGE_BYTES 4096u
#define PAGES 4u /* fetched from in turn */

struct ahead {      /* addresses as integers, since some lie past the end of the weights */
    uintptr_t at;   /* next line to fetch, along with the same line of the following pages */
    uintptr_t goal; /* where to stop before the next tile */
    uintptr_t end;  /* end of the weights */
    uint32_t step;  /* lines of every page per step */
};

static struct ahead ahead_from(const struct kern_mat *w, uint32_t tile)
{
    const uintptr_t data = (uintptr_t)w->data;
    return (struct ahead){
        .at = (data + tile * w->tile_bytes) / PAGE_BYTES * PAGE_BYTES,
        .end = data + tiles_count(&layout, w->n_rows) * w->tile_bytes,
    };
}

static ALWAYS_INLINE void fetch_ahead(struct ahead *f)
{
    for (uint32_t i = 0; i < f->step && f->at < f->goal; i++) {
#pragma GCC unroll 4
        for (uint32_t p = 0; p < PAGES; p++)
            _mm_prefetch((const char *)(f->at + p * PAGE_BYTES), _MM_HINT_T1);
        f->at += 64;
        if (f->at % PAGE_BYTES == 0)
            f->at += (PAGES - 1) * PAGE_BYTES;
    }
}

/* Called before a tile: spreads the prefetch of all that the next tile reads over `steps` steps. */
static void plan_ahead(struct ahead *f, const struct kern_mat *w, uint32_t tile, uint32_t steps)
{
    const uintptr_t need = (uintptr_t)w->data + (tile + 2) * w->tile_bytes;
    f->goal = need < f->end ? need : f->end;
    f->step = 0;
    if (f->goal > f->at && steps > 0)
        f->step = (uint32_t)((f->goal - f->at) / (64 * PAGES) / steps) + 1;
}

/* Starts the product of one part; odd and last are constants in every caller. */
static ALWAYS_INLINE void multiply(const int8_t *x, size_t stride, const int8_t *rows,
                                   const bool odd, const bool last)
{
    _tile_loadd(3, rows, 64);
    if (last) {
        _tile_loadd(6, x, stride);
        if (odd) {
            _tile_zero(5);
            _tile_dpbssd(5, 6, 3);
        } else {
            _tile_zero(4);
            _tile_dpbssd(4, 6, 3);
        }
    } else {
        _tile_loadd(2, x, stride);
        if (odd) {
            _tile_zero(1);
            _tile_dpbssd(1, 2, 3);
        } else {
            _tile_zero(0);
            _tile_dpbssd(0, 2, 3);
        }
    }
}

static ALWAYS_INLINE void store(struct scratch *s, const bool odd, const bool last)
{
    if (last && odd)
        _tile_stored(5, s->sums[1], 64);
    else if (last)
        _tile_stored(4, s->sums[0], 64);
    else if (odd)
        _tile_stored(1, s->sums[1], 64);
    else
        _tile_stored(0, s->sums[0], 64);
}

/* Everything that the steps of one product share. */
struct amx_product {
    const struct kern_mat *w;
    const struct kern_act *a;
    float *out;
    size_t out_ld;
    struct tiles_map map;
    uint32_t parts;
    struct scratch *s;
};

/* Adds the stored sums of part number `part` to the accumulators of NT tokens of group g. */
static ALWAYS_INLINE void add_part(__m512 acc[16], const struct amx_product *j, const uint8_t *base,
                                   uint32_t part, uint32_t g, enum kern_fmt fmt, const int NT,
                                   const bool odd)
{
    const uint32_t b = fmt == KERN_Q6 ? part / 2 : part;
    const void *at = base + (size_t)part * 32;
    const __m512 scale = v16_f16((const uint16_t *)at);
    const int32_t *isum = j->s->sums[odd];
    const float *d = j->s->scale[g][b];
#pragma GCC unroll 16
    for (int i = 0; i < NT; i++)
        acc[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(isum + 16 * i)),
                                 _mm512_mul_ps(scale, _mm512_set1_ps(d[i])), acc[i]);
    if (tiles_fmt_has_min(fmt)) {
        at = base + j->map.mins + (size_t)b * 32;
        const __m512 min = v16_f16((const uint16_t *)at);
        d = j->s->min_factor[g][b];
#pragma GCC unroll 16
        for (int i = 0; i < NT; i++)
            acc[i] = _mm512_fmadd_ps(min, _mm512_set1_ps(d[i]), acc[i]);
    }
}

/* One tile of rows times NT tokens from t (group g), of which n exist; results of the others are
 * computed from leftover data and not stored.  Parts go through three stages: while one is
 * multiplied, the one before it is stored and the one before that is added, so that neither unit
 * waits for the other.  The loop does two rounds at a time to keep tile numbers constant. */
static ALWAYS_INLINE void tile_tokens(const struct amx_product *j, uint32_t tile, uint32_t t,
                                      uint32_t g, uint32_t n, struct ahead *next, enum kern_fmt fmt,
                                      const int NT, const bool last)
{
    const struct kern_mat *w = j->w;
    const uint8_t *base = w->data + tile * w->tile_bytes;
    const int8_t *rows = fmt == KERN_Q8W ? (const int8_t *)base + j->map.quants : j->s->rows;
    const size_t columns = part_columns(fmt), ld = j->a->n_cols;
    const uint32_t parts = j->parts;
    const int8_t *x = j->a->q + t * ld;
    const __m512 start = fmt == KERN_Q8W ? ops_wide_start(w, tile * 16) : _mm512_setzero_ps();
    __m512 acc[16];
#pragma GCC unroll 16
    for (int i = 0; i < NT; i++)
        acc[i] = start;
    multiply(x, ld, rows, false, last);
    if (parts > 1)
        multiply(x + columns, ld, rows + 16 * columns, true, last);
    store(j->s, false, last);
    uint32_t p = 2; /* the next part to multiply: p - 1 is multiplied, p - 2 is stored */
    for (; p + 1 < parts; p += 2) {
        fetch_ahead(next);
        multiply(x + p * columns, ld, rows + p * 16 * columns, false, last);
        add_part(acc, j, base, p - 2, g, fmt, NT, false);
        store(j->s, true, last);
        multiply(x + (p + 1) * columns, ld, rows + (p + 1) * 16 * columns, true, last);
        add_part(acc, j, base, p - 1, g, fmt, NT, true);
        store(j->s, false, last);
    }
    if (p < parts)
        multiply(x + p * columns, ld, rows + p * 16 * columns, false, last);
    add_part(acc, j, base, p - 2, g, fmt, NT, false);
    if (parts > 1) {
        store(j->s, true, last);
        add_part(acc, j, base, p - 1, g, fmt, NT, true);
    }
    if (p < parts) {
        store(j->s, false, last);
        add_part(acc, j, base, p, g, fmt, NT, false);
    }
    const __m512 mul = _mm512_set1_ps(w->mul);
#pragma GCC unroll 16
    for (uint32_t i = 0; i < (uint32_t)NT; i++)
        if (i < n)
            ops_put(j->out + (t + i) * j->out_ld + tile * 16,
                    fmt == KERN_Q8W ? acc[i] : _mm512_mul_ps(acc[i], mul), w->n_rows - tile * 16);
}

/* The last tokens, fewer than 16. */
static ALWAYS_INLINE void tile_last(const struct amx_product *j, uint32_t tile, uint32_t t,
                                    uint32_t g, uint32_t n, struct ahead *next, enum kern_fmt fmt)
{
    if (n <= 4)
        tile_tokens(j, tile, t, g, n, next, fmt, 4, true);
    else if (n <= 8)
        tile_tokens(j, tile, t, g, n, next, fmt, 8, true);
    else if (n <= 12)
        tile_tokens(j, tile, t, g, n, next, fmt, 12, true);
    else
        tile_tokens(j, tile, t, g, n, next, fmt, 16, true);
}

static ALWAYS_INLINE void gemm_fmt(const struct kern_mat *w, const struct kern_act *a,
                                   uint32_t n_tokens, uint32_t tile0, uint32_t tile1, float *out,
                                   size_t out_ld, enum kern_fmt fmt)
{
    const uint32_t blocks = w->n_cols / 32;
    struct scratch s;
    const struct amx_product j = {.w = w,
                                  .a = a,
                                  .out = out,
                                  .out_ld = out_ld,
                                  .map = tiles_map(&layout, fmt, w->n_cols),
                                  .parts = w->n_cols / part_columns(fmt),
                                  .s = &s};
    uint32_t t0 = 0;
    while (t0 < n_tokens) {
        uint32_t group = n_tokens - t0 < GROUP_TOKENS ? n_tokens - t0 : GROUP_TOKENS;
        const uint32_t last = group % 16;
        fill_factors(&s, a, t0, group, fmt == KERN_Q8W ? j.parts : blocks, tiles_fmt_has_min(fmt));
        configure(16, last ? last : 1, part_columns(fmt));
        struct ahead next = ahead_from(w, tile0);
        for (uint32_t tile = tile0; tile < tile1; tile++) {
            plan_ahead(&next, w, tile, (group + 15) / 16 * (j.parts / 2));
            if (fmt != KERN_Q8W)
                unpack(fmt, w->data + tile * w->tile_bytes + j.map.quants, blocks, &s);
            uint32_t t = 0;
            for (; t + 16 <= group; t += 16)
                tile_tokens(&j, tile, t0 + t, t / 16, 16, &next, fmt, 16, false);
            if (last)
                tile_last(&j, tile, t0 + t, t / 16, last, &next, fmt);
        }
        t0 += group;
    }
    _tile_release();
}

#include "kernels/gemm_formats.h"

static void gemm(const struct kern_mat *w, const struct kern_act *a, uint32_t n_tokens,
                 uint32_t tile0, uint32_t tile1, float *out, size_t out_ld)
{
    static void (*const of[KERN_N_FMTS])(const struct kern_mat *, const struct kern_act *, uint32_t,
                                         uint32_t, uint32_t, float *, size_t) = {
        [KERN_Q8] = gemm_KERN_Q8, [KERN_Q4] = gemm_KERN_Q4,   [KERN_Q4M] = gemm_KERN_Q4M,
        [KERN_Q5] = gemm_KERN_Q5, [KERN_Q5M] = gemm_KERN_Q5M, [KERN_Q6] = gemm_KERN_Q6,
    };
    if (w->fmt == KERN_Q8W)
        gemm_fmt(w, a, n_tokens, tile0, tile1, out, out_ld, KERN_Q8W);
    else if (n_tokens < LEAST_TOKENS || !of[w->fmt] || w->n_cols / 32 > MAX_PARTS)
        kern_avx512.gemm(w, a, n_tokens, tile0, tile1, out, out_ld);
    else
        of[w->fmt](w, a, n_tokens, tile0, tile1, out, out_ld);
}

const struct kern_ops kern_amx = {
    .name = "avx512-amx",
    .layout = {.tile_rows = 16, .group = 4, .q8_unsigned = true, .wide_signed = true},
    .streams = AVX512_STREAMS, /* a single token is left to the AVX-512 set */
    .gemm = gemm,
    OPS_TABLE,
};
