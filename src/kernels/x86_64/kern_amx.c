/* kern_amx.c - AVX-512 with the AMX tile unit for products of many tokens.
 *
 * The packed layout is the AVX-512 one: 64 bytes are 4 columns of 16 rows, which is just how a tile
 * of the second operand wants its rows.  One tile instruction multiplies up to 16 tokens with 16
 * rows over a block of 32 columns; scaling and adding up stays in vector registers, in the order
 * that kern.h prescribes.  Few tokens and float weights go to the AVX-512 set. */
#include "kernels/x86_64/v16_avx512.h"

#include "kernels/ops_body.h"
#include "kernels/pack.h"
#include "kernels/x86_64/load_avx512.h"

extern const struct kern_ops kern_avx512;

static const struct kern_layout layout = {
    .tile_rows = 16, .group = 4, .q8_unsigned = true, .wide_signed = true};

#define LEAST_TOKENS 7u /* below, a tile is too empty */
#define MAX_BLOCKS 512u

struct tile_config { /* as ldtilecfg reads it */
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* Tiles 0, 1: results; 2, 3: activations; 4, 5: weights.  Two of each, so that one block is being
 * multiplied while the other one's results are stored. */
static void configure(uint32_t n_tokens, uint32_t columns)
{
    struct tile_config c = {.palette = 1};
    for (int i = 0; i < 2; i++) {
        c.rows[i] = (uint8_t)n_tokens;
        c.row_bytes[i] = 64;
        c.rows[2 + i] = (uint8_t)n_tokens;
        c.row_bytes[2 + i] = (uint16_t)columns;
        c.rows[4 + i] = (uint8_t)(columns / 4);
        c.row_bytes[4 + i] = 64;
    }
    _tile_loadconfig(&c);
}

#define GROUP_TOKENS 128u /* tokens that share one unpacking of a tile */

struct scratch {
    /* results of two parts, [token][row]: one being added while the next is stored */
    _Alignas(64) int32_t sums[2][16 * 16];
    _Alignas(64) int8_t rows[MAX_BLOCKS * 512]; /* one tile of weights as signed bytes */
    /* per 16 tokens and block: their scales, and scale * sum for formats with a min */
    _Alignas(64) float scale[GROUP_TOKENS / 16][MAX_BLOCKS][16];
    _Alignas(64) float min_factor[GROUP_TOKENS / 16][MAX_BLOCKS][16];
};

/* The weights of a tile with the offset taken off, 512 bytes a block: signed, so that sums need no
 * correction. */
static ALWAYS_INLINE void unpack_tile(enum kern_fmt fmt, const uint8_t *q, uint32_t blocks,
                                      struct scratch *s)
{
    const size_t quant_bytes = 16 * (size_t)kern_block_quant_bytes(fmt);
    const __m512i offset = _mm512_set1_epi8((char)kern_fmt_offset(fmt));
    for (uint32_t b = 0; b < blocks; b++, q += quant_bytes)
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++)
            _mm512_store_si512(s->rows + (size_t)b * 512 + 64 * j,
                               _mm512_sub_epi8(load_words(fmt, q, j), offset));
}

static void fill_factors(struct scratch *s, const struct kern_act *a, uint32_t t, uint32_t n,
                         bool mins)
{
    const uint32_t blocks = a->n_cols / 32;
    for (uint32_t i = 0; i < n; i++) {
        const float *scale = a->scale + (size_t)(t + i) * blocks;
        const int32_t *sums = a->sums + (size_t)(t + i) * blocks * 2;
        for (uint32_t b = 0; b < blocks; b++) {
            s->scale[i / 16][b][i % 16] = scale[b];
            if (mins)
                s->min_factor[i / 16][b][i % 16] =
                    scale[b] * (float)(sums[2 * b] + sums[2 * b + 1]);
        }
    }
}

/* Adds one block's (or half block's) products of N tokens to their sums. */
static ALWAYS_INLINE void add_block(__m512 acc[16], const int32_t *isum, const float *d,
                                    __m512 scale)
{
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        acc[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(isum + 16 * i)),
                                 _mm512_mul_ps(scale, _mm512_set1_ps(d[i])), acc[i]);
}

/* Starts the product of part number `part` of an unpacked tile into result tile part % 2, which is
 * a constant once the loop around is unrolled. */
static ALWAYS_INLINE void multiply(const int8_t *x, size_t stride, const int8_t *rows,
                                   const size_t columns, uint32_t part, const bool odd)
{
    x += part * columns;
    rows += part * 16 * columns;
    if (odd) {
        _tile_zero(1);
        _tile_loadd(3, x, stride);
        _tile_loadd(5, rows, 64);
        _tile_dpbssd(1, 3, 5);
    } else {
        _tile_zero(0);
        _tile_loadd(2, x, stride);
        _tile_loadd(4, rows, 64);
        _tile_dpbssd(0, 2, 4);
    }
}

static ALWAYS_INLINE void store(struct scratch *s, const bool odd)
{
    if (odd)
        _tile_stored(1, s->sums[1], 64);
    else
        _tile_stored(0, s->sums[0], 64);
}

/* What the next tile of rows will unpack: fetched into L2 in `steps` steps. */
struct ahead {
    const uint8_t *at, *end;
    uint32_t lines; /* a step */
};

static struct ahead ahead_of(const struct kern_mat *w, uint32_t tile, uint32_t tile1,
                             uint32_t steps)
{
    const uint8_t *at = w->data + (tile + 1) * w->tile_bytes;
    const size_t bytes = tile + 1 < tile1 ? w->tile_bytes : 0;
    return (struct ahead){at, at + bytes, steps ? (uint32_t)(bytes / 64) / steps + 1 : 0};
}

static ALWAYS_INLINE void fetch_ahead(struct ahead *next)
{
    for (uint32_t i = 0; i < next->lines && next->at < next->end; i++, next->at += 64)
        _mm_prefetch((const char *)next->at, _MM_HINT_T1);
}

/* Adds part number `part`, whose sums were stored, to acc. */
static ALWAYS_INLINE void add_part(__m512 acc[16], const uint8_t *base, uint32_t part, uint32_t g,
                                   enum kern_fmt fmt, const struct kern_tile_map *map,
                                   const struct scratch *s, const bool odd)
{
    const uint32_t b = fmt == KERN_Q6 ? part / 2 : part;
    const void *scale = base + (size_t)part * 32;
    add_block(acc, s->sums[odd], s->scale[g][b], v16_f16((const uint16_t *)scale));
    if (kern_fmt_has_min(fmt)) {
        const void *at = base + map->mins + (size_t)b * 32;
        __m512 min = v16_f16((const uint16_t *)at);
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
            acc[i] = _mm512_fmadd_ps(min, _mm512_set1_ps(s->min_factor[g][b][i]), acc[i]);
    }
}

/* One unpacked tile of rows against 16 tokens from t (group g); n of them exist.  What the missing
 * ones give is computed from leftovers and not stored.  Work goes part by part (a block, or half of
 * one for KERN_Q6) in three stages: while one part is being multiplied, the one before it is stored
 * and the one before that is added.  In this order neither unit waits for the other. */
static ALWAYS_INLINE void tile_tokens(const struct kern_mat *w, const struct kern_act *a,
                                      uint32_t tile, uint32_t t, uint32_t g, uint32_t n, float *out,
                                      size_t out_ld, enum kern_fmt fmt,
                                      const struct kern_tile_map *map, struct ahead *next,
                                      struct scratch *s)
{
    const uint8_t *base = w->data + tile * w->tile_bytes;
    const size_t columns = fmt == KERN_Q6 ? 16 : 32, ld = a->n_cols;
    const uint32_t parts = w->n_cols / (uint32_t)columns;
    const int8_t *x = a->q + (size_t)t * a->n_cols;
    __m512 acc[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        acc[i] = _mm512_setzero_ps();
    multiply(x, ld, s->rows, columns, 0, false);
    if (parts > 1)
        multiply(x, ld, s->rows, columns, 1, true);
    store(s, false);
    uint32_t p = 2;
    for (; p + 1 < parts; p += 2) {
        fetch_ahead(next);
        multiply(x, ld, s->rows, columns, p, false);
        add_part(acc, base, p - 2, g, fmt, map, s, false);
        store(s, true);
        multiply(x, ld, s->rows, columns, p + 1, true);
        add_part(acc, base, p - 1, g, fmt, map, s, true);
        store(s, false);
    }
    if (parts == 1) {
        add_part(acc, base, 0, g, fmt, map, s, false);
    } else {
        if (p < parts)
            multiply(x, ld, s->rows, columns, p, false);
        add_part(acc, base, p - 2, g, fmt, map, s, false);
        store(s, true);
        add_part(acc, base, p - 1, g, fmt, map, s, true);
        if (p < parts) {
            store(s, false);
            add_part(acc, base, p, g, fmt, map, s, false);
        }
    }
    __m512 mul = _mm512_set1_ps(w->mul);
#pragma GCC unroll 16
    for (uint32_t i = 0; i < 16; i++)
        if (i < n)
            ops_put(out + (t + i) * out_ld + tile * 16, _mm512_mul_ps(acc[i], mul),
                    w->n_rows - tile * 16);
}

static ALWAYS_INLINE void gemm_fmt(const struct kern_mat *w, const struct kern_act *a,
                                   uint32_t n_tokens, uint32_t tile0, uint32_t tile1, float *out,
                                   size_t out_ld, enum kern_fmt fmt)
{
    const struct kern_tile_map map = kern_tile_map(&layout, fmt, w->n_cols);
    const uint32_t blocks = w->n_cols / 32, columns = fmt == KERN_Q6 ? 16 : 32;
    struct scratch s;
    uint32_t t0 = 0;
    while (n_tokens - t0 >= LEAST_TOKENS) {
        uint32_t group = n_tokens - t0 < GROUP_TOKENS ? n_tokens - t0 : GROUP_TOKENS;
        uint32_t rest = group % 16;
        if (rest && rest < LEAST_TOKENS && group > 16) { /* a few left over: not with tiles */
            group -= rest;
            rest = 0;
        }
        fill_factors(&s, a, t0, group, kern_fmt_has_min(fmt));
        configure(rest == group ? rest : 16, columns);
        for (uint32_t tile = tile0; tile < tile1; tile++) {
            struct ahead next = ahead_of(w, tile, tile1, (group + 15) / 16 * (blocks / 2));
            unpack_tile(fmt, w->data + tile * w->tile_bytes + map.quants, blocks, &s);
            for (uint32_t t = 0; t + 16 <= group; t += 16)
                tile_tokens(w, a, tile, t0 + t, t / 16, 16, out, out_ld, fmt, &map, &next, &s);
            if (rest && rest == group)
                tile_tokens(w, a, tile, t0, 0, rest, out, out_ld, fmt, &map, &next, &s);
        }
        if (rest && rest != group) { /* the last, emptier tile of tokens */
            configure(rest, columns);
            uint32_t t = group - rest;
            for (uint32_t tile = tile0; tile < tile1; tile++) {
                struct ahead next = ahead_of(w, tile, tile1, blocks / 2);
                unpack_tile(fmt, w->data + tile * w->tile_bytes + map.quants, blocks, &s);
                tile_tokens(w, a, tile, t0 + t, t / 16, rest, out, out_ld, fmt, &map, &next, &s);
            }
        }
        t0 += group;
    }
    _tile_release();
    if (t0 < n_tokens) {
        struct kern_act left = *a;
        left.x += t0 * a->ld;
        left.q += (size_t)t0 * a->n_cols;
        left.scale += (size_t)t0 * blocks;
        left.sums += (size_t)t0 * blocks * 2;
        kern_avx512.gemm(w, &left, n_tokens - t0, tile0, tile1, out + t0 * out_ld, out_ld);
    }
}

/* ---- wide groups: a tile instruction has all 64 columns of one ------------------------------- */

#define WIDE_TOKENS 32u /* two tiles of them, against two of rows */
#define WIDE_GROUPS 8u  /* sums of so many groups wait to be scaled: they stay in L1 */

struct wide_scratch {
    _Alignas(64) int32_t sums[WIDE_GROUPS][4][16 * 16]; /* [group][row tile * 2 + token tile] */
};

/* Tiles 0-3: results; 4, 5: tokens; 6, 7: rows. */
static void configure_wide(uint32_t n_tokens)
{
    struct tile_config c = {.palette = 1};
    const uint32_t first = n_tokens < 16 ? n_tokens : 16;
    const uint32_t second = n_tokens > 16 ? n_tokens - 16 : 1;
    for (int i = 0; i < 8; i++) {
        c.rows[i] = (uint8_t)(i >= 6 ? 16 : i % 2 == 0 ? first : second);
        c.row_bytes[i] = 64;
    }
    _tile_loadconfig(&c);
}

/* Sums of NR (1 or 2) tiles of rows with NT (1 or 2) tiles of tokens for some groups. */
static ALWAYS_INLINE void wide_products(const uint8_t *q, size_t stride, const int8_t *x,
                                        size_t x_ld, uint32_t groups, const int NR, const int NT,
                                        bool fetch, struct wide_scratch *s)
{
    for (uint32_t g = 0; g < groups; g++, q += 1024, x += KERN_WIDE) {
        if (fetch) /* the next pair, into L2: tile loads alone do not ask far enough ahead */
#pragma GCC unroll 16
            for (int i = 0; i < 16; i++) {
                _mm_prefetch((const char *)(q + 2 * stride + 64 * i), _MM_HINT_T1);
                _mm_prefetch((const char *)(q + 3 * stride + 64 * i), _MM_HINT_T1);
            }
        _tile_zero(0);
        _tile_loadd(4, x, x_ld);
        _tile_loadd(6, q, 64);
        _tile_dpbssd(0, 4, 6);
        if (NT == 2) {
            _tile_zero(1);
            _tile_loadd(5, x + 16 * x_ld, x_ld);
            _tile_dpbssd(1, 5, 6);
        }
        if (NR == 2) {
            _tile_zero(2);
            _tile_loadd(7, q + stride, 64);
            _tile_dpbssd(2, 4, 7);
        }
        if (NR == 2 && NT == 2) {
            _tile_zero(3);
            _tile_dpbssd(3, 5, 7);
        }
        /* stores last: one that waits for its product would fill the scheduler */
        _tile_stored(0, s->sums[g][0], 64);
        if (NT == 2)
            _tile_stored(1, s->sums[g][1], 64);
        if (NR == 2)
            _tile_stored(2, s->sums[g][2], 64);
        if (NR == 2 && NT == 2)
            _tile_stored(3, s->sums[g][3], 64);
    }
}

/* Row tile `tile`, the pair's number r, n tokens from t: adds groups g0 .. to what is there. */
static ALWAYS_INLINE void wide_finish(const struct kern_mat *w, const struct kern_act *a,
                                      uint32_t tile, uint32_t r, uint32_t t, uint32_t n,
                                      uint32_t g0, const uint32_t groups, float *out, size_t out_ld,
                                      const struct wide_scratch *s)
{
    const size_t blocks = w->n_cols / 32;
    const uint32_t row = tile * 16, left = w->n_rows - row;
    const uint16_t *at = (const uint16_t *)(const void *)(w->data + tile * w->tile_bytes) + g0 * 16;
    const float *ascale = a->scale + t * blocks + g0;
    __m512 scale[WIDE_GROUPS];
    const __m512 start = ops_wide_start(w, row);
#pragma GCC unroll 8
    for (uint32_t g = 0; g < WIDE_GROUPS; g++)
        scale[g] = g < groups ? v16_f16(at + 16 * g) : _mm512_setzero_ps();
    for (uint32_t i = 0; i < n; i++, ascale += blocks) {
        const int32_t *isum = s->sums[0][r * 2 + i / 16] + (i % 16) * 16;
        float *to = out + (t + i) * out_ld + row;
        __m512 acc = g0 ? ops_load(to, left) : start;
#pragma GCC unroll 8
        for (uint32_t g = 0; g < groups; g++)
            acc = _mm512_fmadd_ps(
                _mm512_cvtepi32_ps(_mm512_load_si512(isum + (size_t)g * 4 * 16 * 16)),
                _mm512_mul_ps(scale[g], _mm512_set1_ps(ascale[g])), acc);
        ops_put(to, acc, left);
    }
}

/* Two tiles of rows (or the last one) against n tokens from t. */
static ALWAYS_INLINE void wide_pair(const struct kern_mat *w, const struct kern_act *a,
                                    uint32_t tile, bool two, uint32_t t, uint32_t n, bool fetch,
                                    size_t quants, float *out, size_t out_ld,
                                    struct wide_scratch *s)
{
    const size_t stride = w->tile_bytes, x_ld = a->n_cols;
    const uint32_t all = w->n_cols / KERN_WIDE;
    for (uint32_t g = 0; g < all; g += WIDE_GROUPS) {
        const uint32_t some = all - g < WIDE_GROUPS ? all - g : WIDE_GROUPS;
        const uint8_t *q = w->data + tile * stride + quants + (size_t)g * 1024;
        const int8_t *x = a->q + t * x_ld + (size_t)g * KERN_WIDE;
        if (two && n > 16)
            wide_products(q, stride, x, x_ld, some, 2, 2, fetch, s);
        else if (two)
            wide_products(q, stride, x, x_ld, some, 2, 1, fetch, s);
        else if (n > 16)
            wide_products(q, stride, x, x_ld, some, 1, 2, fetch, s);
        else
            wide_products(q, stride, x, x_ld, some, 1, 1, fetch, s);
        for (uint32_t r = 0; r < (two ? 2 : 1); r++)
            if (some == 8)
                wide_finish(w, a, tile + r, r, t, n, g, 8, out, out_ld, s);
            else if (some == 6) /* 384 columns */
                wide_finish(w, a, tile + r, r, t, n, g, 6, out, out_ld, s);
            else
                wide_finish(w, a, tile + r, r, t, n, g, some, out, out_ld, s);
    }
}

static void gemm_wide(const struct kern_mat *w, const struct kern_act *a, uint32_t n_tokens,
                      uint32_t tile0, uint32_t tile1, float *out, size_t out_ld)
{
    const size_t quants = kern_tile_map(&layout, KERN_Q8W, w->n_cols).quants;
    struct wide_scratch s;
    uint32_t t = 0;
    while (t < n_tokens) {
        /* all full groups of tokens under one configuration, then what is left */
        const uint32_t n = n_tokens - t < WIDE_TOKENS ? n_tokens - t : WIDE_TOKENS;
        const uint32_t end = t + (n_tokens - t) / n * n;
        configure_wide(n);
        for (uint32_t tile = tile0; tile < tile1; tile += 2)
            for (uint32_t from = t; from < end; from += n)
                wide_pair(w, a, tile, tile + 2 <= tile1, from, n, from == t, quants, out, out_ld,
                          &s);
        t = end;
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
        gemm_wide(w, a, n_tokens, tile0, tile1, out, out_ld);
    else if (n_tokens < LEAST_TOKENS || !of[w->fmt] || w->n_cols / 32 > MAX_BLOCKS)
        kern_avx512.gemm(w, a, n_tokens, tile0, tile1, out, out_ld);
    else
        of[w->fmt](w, a, n_tokens, tile0, tile1, out, out_ld);
}

const struct kern_ops kern_amx = {
    .name = "avx512-amx",
    .layout = {.tile_rows = 16, .group = 4, .q8_unsigned = true, .wide_signed = true},
    .gemm = gemm,
    OPS_TABLE,
};
