/* test_kernels.c - every kernel set that can run here equals the scalar set, bit for bit.
 *
 * The first line printed says which sets ran. SHOAL_EXPECT_KERNELS (set by the test runner from
 * the CPU's features) must be the best of them: a path that is disabled by mistake fails here.
 * SHOAL_SHORT_KERNELS=1 is for an emulator, where vectors are a hundred times slower: only the
 * best set runs beside the scalar one (each of the others is the best of a lesser CPU), and
 * sizes that only combine others are left out. Each format, path and edge still runs; the sizes
 * are printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "kernels/kern.h"
#include "kernels/tiles.h"

static bool short_run(void)
{
    const char *s = getenv("SHOAL_SHORT_KERNELS");
    return s && strcmp(s, "1") == 0;
}

/* Best first; the scalar set is last. */
static size_t sets_to_test(const struct kern_ops *sets[8])
{
    size_t n = kern_usable(sets, 8);
    if (!short_run() || n < 3)
        return n;
    sets[1] = sets[n - 1];
    return 2;
}

static uint64_t rng_state = 1;

static uint64_t rng(void)
{
    return hash_mix(rng_state++);
}

static float rng_float(void) /* about normal, sd 1 */
{
    double s = 0;
    for (int i = 0; i < 4; i++)
        s += (double)(rng() >> 40) / (double)(1 << 24) - 0.5;
    return (float)(s * 1.73);
}

static const enum quant_type all_types[] = {
    QUANT_F32,    QUANT_F16,    QUANT_BF16,   QUANT_Q8_0,    QUANT_Q4_0,  QUANT_Q4_1,
    QUANT_Q5_0,   QUANT_Q5_1,   QUANT_Q2_K,   QUANT_Q3_K,    QUANT_Q4_K,  QUANT_Q5_K,
    QUANT_Q6_K,   QUANT_IQ4_NL, QUANT_IQ4_XS, QUANT_IQ3_XXS, QUANT_IQ3_S, QUANT_IQ2_XXS,
    QUANT_IQ2_XS, QUANT_IQ2_S,  QUANT_IQ1_S,  QUANT_IQ1_M,   QUANT_TQ1_0, QUANT_TQ2_0,
    QUANT_MXFP4,  QUANT_NVFP4,
};
#define N_ALL (sizeof(all_types) / sizeof(all_types[0]))

/* Any bytes are valid quants of every type; only the F16 scales must be sane numbers.  fill: that
 * byte everywhere, or RANDOM_BYTES. */
#define RANDOM_BYTES 256
static void fill_row(enum quant_type type, uint8_t *p, uint32_t n, unsigned fill)
{
    static const uint8_t scale_at[][3] = {
        /* offsets of F16 scales in a block, 255: none */
        [QUANT_Q8_0] = {0, 255, 255},    [QUANT_Q4_0] = {0, 255, 255},
        [QUANT_Q4_1] = {0, 2, 255},      [QUANT_Q5_0] = {0, 255, 255},
        [QUANT_Q5_1] = {0, 2, 255},      [QUANT_Q2_K] = {80, 82, 255},
        [QUANT_Q3_K] = {108, 255, 255},  [QUANT_Q4_K] = {0, 2, 255},
        [QUANT_Q5_K] = {0, 2, 255},      [QUANT_Q6_K] = {208, 255, 255},
        [QUANT_IQ2_XXS] = {0, 255, 255}, [QUANT_IQ4_NL] = {0, 255, 255},
        [QUANT_IQ2_XS] = {0, 255, 255},  [QUANT_IQ2_S] = {0, 255, 255},
        [QUANT_IQ3_XXS] = {0, 255, 255}, [QUANT_IQ3_S] = {0, 255, 255},
        [QUANT_IQ4_XS] = {0, 255, 255},  [QUANT_IQ1_S] = {0, 255, 255},
        [QUANT_IQ1_M] = {255, 255, 255}, [QUANT_TQ1_0] = {52, 255, 255},
        [QUANT_TQ2_0] = {64, 255, 255},  [QUANT_MXFP4] = {255, 255, 255},
        [QUANT_NVFP4] = {255, 255, 255}};
    const struct quant_info *qi = quant_info(type);
    for (uint32_t b = 0; b < n / qi->block; b++, p += qi->block_bytes) {
        if (type == QUANT_F32) {
            float f = rng_float();
            memcpy(p, &f, 4);
            continue;
        }
        if (type == QUANT_F16 || type == QUANT_BF16) {
            float f = rng_float();
            uint32_t u;
            memcpy(&u, &f, 4);
            uint16_t h = type == QUANT_F16 ? quant_f32_to_f16(f) : (uint16_t)(u >> 16);
            memcpy(p, &h, 2);
            continue;
        }
        for (uint32_t i = 0; i < qi->block_bytes; i++)
            p[i] = fill == RANDOM_BYTES ? (uint8_t)rng() : (uint8_t)fill;
        for (int i = 0; i < 3 && scale_at[type][i] != 255; i++) {
            uint16_t h = quant_f32_to_f16(rng_float() * 0.01f);
            memcpy(p + scale_at[type][i], &h, 2);
        }
        if (type == QUANT_MXFP4) /* a power of two about 0.01 */
            p[0] = (uint8_t)(118 + rng() % 6);
        if (type == QUANT_IQ1_M) { /* the scale's digits are on top of four words */
            uint16_t h = quant_f32_to_f16(rng_float() * 0.01f);
            for (int i = 0; i < 4; i++)
                p[49 + 2 * i] = (uint8_t)((p[49 + 2 * i] & 15) | (h >> (4 * i) & 15) << 4);
        }
    }
}

static void random_row(enum quant_type type, uint8_t *p, uint32_t n)
{
    fill_row(type, p, n, RANDOM_BYTES);
}

static void *aligned(size_t n)
{
    void *p = NULL;
    if (posix_memalign(&p, 64, (n + 4096) / 64 * 64) != 0)
        abort();
    memset(p, 0, n);
    return p;
}

static struct kern_mat tiled(const struct kern_layout *l, enum quant_type type, const void *src,
                             uint32_t rows, uint32_t cols)
{
    struct kern_mat m = {.fmt = tiles_fmt_of(type), .n_rows = rows, .n_cols = cols};
    m.mul = tiles_mul(type, src, rows, cols);
    m.tile_bytes = tiles_bytes(l, m.fmt, cols);
    uint32_t tiles = tiles_count(l, rows);
    uint8_t *data = aligned(tiles * m.tile_bytes), *work = aligned(tiles_work_bytes(cols));
    for (uint32_t t = 0; t < tiles; t++)
        tiles_fill(l, type, src, rows, cols, m.mul, t, data + t * m.tile_bytes, work);
    free(work);
    m.data = data;
    return m;
}

static struct kern_act act_make(const struct kern_ops *k, const float *x, uint32_t n, uint32_t cols)
{
    struct kern_act a = {.x = x, .ld = cols, .n_cols = cols};
    a.q = aligned((size_t)n * cols);
    a.scale = aligned((size_t)n * cols / 32 * 4 + 4);
    a.sums = aligned((size_t)n * cols / 16 * 4 + 4);
    if (cols % 32 == 0)
        for (uint32_t t = 0; t < n; t++)
            k->quantize(&a, t, 0, cols / 32);
    return a;
}

static void act_free(struct kern_act *a)
{
    free(a->q);
    free(a->scale);
    free(a->sums);
}

static void test_expected_set_is_live(void **state)
{
    (void)state;
    const char *expect = getenv("SHOAL_EXPECT_KERNELS");
    const struct kern_ops *best = kern_select(NULL, NULL);
    assert_non_null(best);
    if (expect)
        assert_string_equal(best->name, expect);
    struct err e = {0};
    assert_null(kern_select("no-such-set", &e));
    assert_int_equal(e.code, SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(e.msg, "scalar"));
}

/* Types with more than 8 bits worth of products in a block. */
static bool is_rounded(enum quant_type type)
{
    return type == QUANT_Q2_K || type == QUANT_IQ2_XS || type == QUANT_IQ2_S;
}

/* Types whose scales fit F16 as they are, or but for a power of two. */
static bool is_copied(enum quant_type type)
{
    static const enum quant_type copied[] = {QUANT_Q8_0,  QUANT_Q4_0,  QUANT_Q5_0,  QUANT_IQ4_NL,
                                             QUANT_TQ1_0, QUANT_TQ2_0, QUANT_MXFP4, QUANT_NVFP4};
    for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++)
        if (copied[i] == type)
            return true;
    return false;
}

/* Data tiled for the scalar set, read back, equals the tensor: exactly where numbers are copied. */
static void test_tiling_keeps_the_values(void **state)
{
    (void)state;
    enum { ROWS = 3, COLS = 512 };
    for (size_t i = 0; i < N_ALL; i++) {
        const struct quant_info *qi = quant_info(all_types[i]);
        size_t row_bytes = COLS / qi->block * qi->block_bytes;
        uint8_t *src = aligned(ROWS * row_bytes);
        for (int r = 0; r < ROWS; r++)
            random_row(all_types[i], src + (size_t)r * row_bytes, COLS);
        struct kern_mat m = tiled(&kern_scalar.layout, all_types[i], src, ROWS, COLS);
        if (kern_fmt_is_float(m.fmt)) {
            assert_memory_equal(m.data, src, ROWS * row_bytes);
        } else {
            struct tiles_block blocks[COLS / 32];
            float want[COLS], work[256];
            for (int r = 0; r < ROWS; r++) {
                const uint8_t *row = src + (size_t)r * row_bytes;
                float peak = 0;
                quant_to_f32(all_types[i], row, want, COLS);
                for (int c = 0; c < COLS; c++)
                    peak = fabsf(want[c]) > peak ? fabsf(want[c]) : peak;
                tiles_row_blocks(all_types[i], row, COLS, m.mul, blocks, work);
                for (int c = 0; c < COLS; c++) {
                    const struct tiles_block *b = &blocks[c / 32];
                    int half = m.fmt == KERN_Q6 ? c % 32 / 16 : 0;
                    float s = quant_f16_to_f32(b->scale[half]) * m.mul;
                    float v = s * (float)(b->q[c % 32] - tiles_fmt_offset(m.fmt)) +
                              quant_f16_to_f32(b->min) * m.mul;
                    float bound = peak * (is_rounded(all_types[i]) ? 5e-3f : 5e-4f);
                    bool exact = is_copied(all_types[i]);
                    if (exact ? v != want[c] : fabsf(v - want[c]) > bound)
                        fail_msg("%s: row %d column %d: %g, want %g", qi->name, r, c, (double)v,
                                 (double)want[c]);
                }
            }
        }
        free((void *)(uintptr_t)m.data);
        free(src);
    }
}

/* Every exponent that MXFP4 can have comes out as a number; F16 alone would lose most of them. */
static void test_mxfp4_scales_of_any_size_are_kept(void **state)
{
    (void)state;
    for (uint32_t exponent = 0; exponent < 252; exponent++) {
        uint8_t src[17] = {(uint8_t)exponent, 0x72}; /* values 0 and 16: 2 and 12 */
        float want[32], work[256];
        struct tiles_block block;
        quant_to_f32(QUANT_MXFP4, src, want, 32);
        const float mul = tiles_mul(QUANT_MXFP4, src, 1, 32);
        tiles_row_blocks(QUANT_MXFP4, src, 32, mul, &block, work);
        const float scale = quant_f16_to_f32(block.scale[0]) * mul;
        assert_true(isfinite(scale) && isfinite(1.0f / mul));
        if (exponent > 16) { /* below 2^-112 it may become 0 */
            assert_true(scale * (float)(block.q[0] - 16) == want[0]);
            assert_true(scale * (float)(block.q[16] - 16) == want[16]);
        }
    }
}

/* Where both halves of 32 columns have one scale, types with two are not rounded to 8 bits. */
static void test_equal_scales_are_not_rounded(void **state)
{
    static const struct {
        enum quant_type type;
        int scales_at;
    } types[] = {{QUANT_IQ2_XS, 66}, {QUANT_IQ2_S, 74}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        uint8_t src[82];
        float want[256], work[256];
        struct tiles_block blocks[8];
        random_row(types[i].type, src, 256);
        for (int b = 0; b < 8; b++)
            src[types[i].scales_at + b] = (uint8_t)(b % 4 * 0x11);
        quant_to_f32(types[i].type, src, want, 256);
        const float mul = tiles_mul(types[i].type, src, 1, 256);
        tiles_row_blocks(types[i].type, src, 256, mul, blocks, work);
        for (int c = 0; c < 256; c++) {
            const struct tiles_block *b = &blocks[c / 32];
            const float v = quant_f16_to_f32(b->scale[0]) * mul * (float)(b->q[c % 32] - 128);
            assert_true(fabsf(v - want[c]) <= fabsf(want[c]) * 0x1p-11f);
        }
    }
}

static void test_gemm_equals_scalar(void **state)
{
    (void)state;
    static const struct {
        const char *why;
        uint32_t rows, cols, tokens;
        struct {
            uint32_t rows, cols, tokens;
        } brief; /* for an emulator: the essential sizes only */
    } cases[] = {
        {"one tile and one block of a superblock", 16, 256, 1, {16, 256, 1}},
        {"rows that do not fill a tile", 37, 512, 3, {37, 512, 3}},
        {"a batch that uses every token width", 64, 256, 15, {16, 256, 15}},
        {"a prompt", 48, 768, 35, {16, 256, 35}},
        {"columns beyond one panel of activations", 20, 2304, 11, {16, 2304, 2}},
        {"rows beyond one run of tiles", 290, 256, 5, {290, 256, 2}},
    };
    const struct kern_ops *sets[8];
    size_t n_sets = sets_to_test(sets);
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const bool brief = short_run();
        uint32_t rows = brief ? cases[c].brief.rows : cases[c].rows;
        uint32_t cols = brief ? cases[c].brief.cols : cases[c].cols;
        uint32_t n = brief ? cases[c].brief.tokens : cases[c].tokens;
        if (brief)
            printf("  %s: %u rows, %u columns, %u tokens\n", cases[c].why, rows, cols, n);
        float *x = aligned((size_t)n * cols * 4);
        for (uint32_t i = 0; i < n * cols; i++)
            x[i] = rng_float() * (i % 97 == 0 ? 20.0f : 1.0f);
        for (size_t i = 0; i < N_ALL; i++) {
            const struct quant_info *qi = quant_info(all_types[i]);
            size_t row_bytes = cols / qi->block * qi->block_bytes;
            uint8_t *src = aligned(rows * row_bytes);
            for (uint32_t r = 0; r < rows; r++)
                random_row(all_types[i], src + r * row_bytes, cols);
            float *want = aligned((size_t)n * rows * 4), *got = aligned((size_t)n * rows * 4);
            struct kern_mat ref = tiled(&kern_scalar.layout, all_types[i], src, rows, cols);
            struct kern_act ra = act_make(&kern_scalar, x, n, cols);
            kern_scalar.gemm(&ref, &ra, n, 0, rows, want, rows);
            for (size_t s = 0; s < n_sets; s++) {
                struct kern_mat m = tiled(&sets[s]->layout, all_types[i], src, rows, cols);
                struct kern_act a = act_make(sets[s], x, n, cols);
                assert_memory_equal(a.q, ra.q, (size_t)n * cols);
                assert_memory_equal(a.scale, ra.scale, (size_t)n * cols / 32 * 4);
                assert_memory_equal(a.sums, ra.sums, (size_t)n * cols / 16 * 4);
                uint32_t tiles = tiles_count(&sets[s]->layout, rows);
                memset(got, 0xff, (size_t)n * rows * 4);
                sets[s]->gemm(&m, &a, n, 0, tiles / 2, got, rows);
                sets[s]->gemm(&m, &a, n, tiles / 2, tiles, got, rows);
                for (uint32_t k = 0; k < n * rows; k++)
                    if (memcmp(&got[k], &want[k], 4) != 0)
                        fail_msg("%s %s, %s: token %u row %u: %.9g, want %.9g", sets[s]->name,
                                 qi->name, cases[c].why, k / rows, k % rows, (double)got[k],
                                 (double)want[k]);
                free((void *)(uintptr_t)m.data);
                act_free(&a);
            }
            act_free(&ra);
            free((void *)(uintptr_t)ref.data);
            free(src);
            free(want);
            free(got);
        }
        free(x);
    }
}

/* Largest numbers of every format against the largest activations: sums that pass through narrow
 * registers must not wrap or saturate. */
static void test_gemm_at_the_edges(void **state)
{
    (void)state;
    enum { ROWS = 32, COLS = 256, TOKENS = 9 };
    static const uint8_t fills[] = {0x00, 0xff, 0x80, 0x7f, 0x0f, 0xf0};
    const struct kern_ops *sets[8];
    size_t n_sets = sets_to_test(sets);
    float x[TOKENS * COLS], want[TOKENS * ROWS], got[TOKENS * ROWS];
    for (int t = 0; t < TOKENS; t++) /* all 127, all -127, and signs that change every t columns */
        for (int c = 0; c < COLS; c++)
            x[t * COLS + c] = t == 0 || (t > 1 && c / (t - 1) % 2) ? 1.0f : -1.0f;
    for (size_t i = 0; i < N_ALL; i++) {
        const struct quant_info *qi = quant_info(all_types[i]);
        size_t row_bytes = COLS / qi->block * qi->block_bytes;
        uint8_t *src = aligned(ROWS * row_bytes);
        if (kern_fmt_is_float(tiles_fmt_of(all_types[i]))) {
            free(src);
            continue;
        }
        for (uint32_t r = 0; r < ROWS; r++)
            fill_row(all_types[i], src + r * row_bytes, COLS, fills[r % sizeof(fills)]);
        struct kern_mat ref = tiled(&kern_scalar.layout, all_types[i], src, ROWS, COLS);
        struct kern_act ra = act_make(&kern_scalar, x, TOKENS, COLS);
        kern_scalar.gemm(&ref, &ra, TOKENS, 0, ROWS, want, ROWS);
        for (size_t s = 0; s < n_sets; s++) {
            struct kern_mat m = tiled(&sets[s]->layout, all_types[i], src, ROWS, COLS);
            uint32_t tiles = tiles_count(&sets[s]->layout, ROWS);
            for (uint32_t n = 1; n <= TOKENS; n += 8) { /* one token has its own path */
                sets[s]->gemm(&m, &ra, n, 0, tiles, got, ROWS);
                for (uint32_t k = 0; k < n * ROWS; k++)
                    if (memcmp(&got[k], &want[k], 4) != 0)
                        fail_msg("%s %s, bytes %02x: token %u of %u row %u: %.9g, want %.9g",
                                 sets[s]->name, qi->name, fills[k % ROWS % sizeof(fills)], k / ROWS,
                                 n, k % ROWS, (double)got[k], (double)want[k]);
            }
            free((void *)(uintptr_t)m.data);
        }
        act_free(&ra);
        free((void *)(uintptr_t)ref.data);
        free(src);
    }
}

/* Against plain double arithmetic, so that the scalar set is checked too. */
static void test_scalar_gemm_equals_double(void **state)
{
    (void)state;
    enum { ROWS = 8, COLS = 512 };
    float x[COLS], w[COLS], out[ROWS];
    for (int i = 0; i < COLS; i++)
        x[i] = rng_float();
    for (size_t i = 0; i < N_ALL; i++) {
        const struct quant_info *qi = quant_info(all_types[i]);
        size_t row_bytes = COLS / qi->block * qi->block_bytes;
        uint8_t *src = aligned(ROWS * row_bytes);
        for (int r = 0; r < ROWS; r++)
            random_row(all_types[i], src + (size_t)r * row_bytes, COLS);
        struct kern_mat m = tiled(&kern_scalar.layout, all_types[i], src, ROWS, COLS);
        struct kern_act a = act_make(&kern_scalar, x, 1, COLS);
        kern_scalar.gemm(&m, &a, 1, 0, ROWS, out, ROWS);
        for (int r = 0; r < ROWS; r++) {
            double want = 0, norm = 0;
            quant_to_f32(all_types[i], src + (size_t)r * row_bytes, w, COLS);
            for (int c = 0; c < COLS; c++) {
                want += (double)w[c] * (double)x[c];
                norm += fabs((double)w[c] * (double)x[c]);
            }
            double bound = (kern_fmt_is_float(m.fmt) ? 1e-6 : 5e-3) * norm;
            if (fabs(want - (double)out[r]) > bound)
                fail_msg("%s row %d: %g, want %g", qi->name, r, (double)out[r], want);
        }
        act_free(&a);
        free((void *)(uintptr_t)m.data);
        free(src);
    }
}

static void expect_same(const char *set, const char *what, const float *got, const float *want,
                        size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&got[i], &want[i], 4) != 0)
            fail_msg("%s %s [%zu]: %.9g, want %.9g", set, what, i, (double)got[i], (double)want[i]);
}

static struct kern_mat tiled_wide(const struct kern_layout *l, const float *src, uint32_t rows,
                                  uint32_t cols)
{
    struct kern_mat m = {.fmt = KERN_Q8W, .n_rows = rows, .n_cols = cols, .mul = 1.0f};
    m.tile_bytes = tiles_bytes(l, m.fmt, cols);
    uint32_t tiles = tiles_count(l, rows), height = l->tile_rows;
    uint8_t *data = aligned(tiles * m.tile_bytes);
    for (uint32_t t = 0; t < tiles; t++)
        tiles_fill_wide(l, src + (size_t)t * height * cols,
                        rows - t * height < height ? rows - t * height : height, cols,
                        data + t * m.tile_bytes);
    m.data = data;
    return m;
}

static void wide_act(const struct kern_ops *k, struct kern_act *a, uint32_t n)
{
    for (uint32_t t = 0; t < n; t++)
        k->quantize_wide(a, t, 0, a->n_cols / KERN_WIDE);
}

/* One scale per row, wide groups of activations: sets agree, and the scalar one is right. */
static void test_wide_gemm_equals_scalar_and_double(void **state)
{
    (void)state;
    static const uint32_t cols[] = {64, 128, 192, 384, 1536}, rows[] = {1, 16, 40, 67};
    static const uint32_t tokens[] = {1, 2, 3, 4, 7, 16, 17, 20, 32, 33, 70};
    const struct kern_ops *sets[8];
    size_t n_sets = sets_to_test(sets);
    assert_int_equal(tiles_bytes(&kern_scalar.layout, KERN_Q8W, 96), 0);
    for (size_t c = 0; c < 5; c++)
        for (size_t r = 0; r < 4; r++) {
            if (short_run() && r != (c < 4 ? c : 1)) /* each width and each height once */
                continue;
            const uint32_t nc = cols[c], nr = rows[r], most = 70;
            if (short_run())
                printf("  %u rows, %u columns, 1 to %u tokens\n", nr, nc, most);
            float *src = aligned((size_t)nr * nc * 4), *x = aligned((size_t)most * nc * 4);
            float *want = aligned((size_t)most * nr * 4), *got = aligned((size_t)most * nr * 4);
            for (size_t i = 0; i < (size_t)nr * nc; i++)
                src[i] = rng_float();
            for (size_t i = 0; i < (size_t)most * nc; i++)
                x[i] = i / nc == 3 ? 0.0f : rng_float() * (i % 97 ? 1.0f : 9.0f);
            struct kern_mat m = tiled_wide(&kern_scalar.layout, src, nr, nc);
            struct kern_act a = act_make(&kern_scalar, x, most, nc);
            wide_act(&kern_scalar, &a, most);
            kern_scalar.gemm(&m, &a, most, 0, nr, want, nr);
            float bias[80];
            for (int i = 0; i < 80; i++)
                bias[i] = rng_float();
            for (uint32_t i = 0; i < most * nr; i++) {
                const float *w = src + (size_t)(i % nr) * nc, *v = x + (size_t)(i / nr) * nc;
                double exact = 0, ww = 0, vv = 0, w_max = 0, v_max = 0;
                for (uint32_t j = 0; j < nc; j++) {
                    exact += (double)w[j] * (double)v[j];
                    ww += (double)w[j] * (double)w[j];
                    vv += (double)v[j] * (double)v[j];
                    w_max = fmax(w_max, fabs((double)w[j]));
                    v_max = fmax(v_max, fabs((double)v[j]));
                }
                /* each side is rounded by up to half of max/127, uniformly: six deviations */
                double bound = 6 / sqrt(12) / 127 * (v_max * sqrt(ww) + w_max * sqrt(vv)) + 1e-6;
                if (fabs(exact - (double)want[i]) > bound)
                    fail_msg("%u columns [%u]: %g, want %g", nc, i, (double)want[i], exact);
            }
            for (size_t s = 0; s < n_sets; s++) {
                const struct kern_ops *k = sets[s];
                struct kern_mat mine = tiled_wide(&k->layout, src, nr, nc);
                struct kern_act b = act_make(k, x, most, nc);
                uint32_t tiles = tiles_count(&k->layout, nr);
                wide_act(k, &b, most);
                assert_memory_equal(a.q, b.q, (size_t)most * nc);
                assert_memory_equal(a.scale, b.scale, (size_t)most * (nc / 32) * 4);
                for (size_t n = 0; n < sizeof(tokens) / sizeof(tokens[0]); n++) {
                    memset(got, 0, (size_t)most * nr * 4);
                    k->gemm(&mine, &b, tokens[n], 0, tiles / 2, got, nr);
                    k->gemm(&mine, &b, tokens[n], tiles / 2, tiles, got, nr);
                    expect_same(k->name, "wide gemm", got, want, (size_t)tokens[n] * nr);
                }
                float *biased = aligned((size_t)most * nr * 4);
                m.bias = mine.bias = bias;
                kern_scalar.gemm(&m, &a, most, 0, nr, biased, nr);
                k->gemm(&mine, &b, most, 0, tiles, got, nr);
                expect_same(k->name, "wide gemm with bias", got, biased, (size_t)most * nr);
                assert_true(fabs((double)(biased[nr - 1] - want[nr - 1] - bias[nr - 1])) < 1e-4);
                m.bias = NULL;
                free(biased);
                act_free(&b);
                free((void *)(uintptr_t)mine.data);
            }
            act_free(&a);
            free((void *)(uintptr_t)m.data);
            free(src);
            free(x);
            free(want);
            free(got);
        }
}

/* Pair by pair, as in the papers. */
static void test_rope_turns_pairs(void **state)
{
    (void)state;
    float cs[2 * 40], x[2 * 48], want[2 * 48];
    for (int neox = 0; neox < 2; neox++) {
        for (uint32_t i = 0; i < 2 * 48; i++)
            want[i] = x[i] = rng_float();
        for (uint32_t i = 0; i < 20; i++) {
            const uint32_t a = neox ? i : 2 * i, b = neox ? i + 20 : 2 * i + 1;
            const float c = rng_float(), s = rng_float();
            cs[a] = cs[b] = c;
            cs[40 + a] = -s;
            cs[40 + b] = s;
            for (uint32_t h = 0; h < 2; h++) {
                const float p = x[h * 48 + a], q = x[h * 48 + b];
                want[h * 48 + a] = p * c - q * s;
                want[h * 48 + b] = p * s + q * c;
            }
        }
        kern_scalar.rope(x, 2, 48, 40, cs, neox);
        assert_memory_equal(x, want, sizeof(x));
    }
}

static void test_integer_products(void **state)
{
    (void)state;
    const struct kern_ops *sets[8];
    const size_t n_sets = sets_to_test(sets);
    for (uint32_t n = 0; n <= 384; n += 32) {
        int8_t p[384], q[384];
        int32_t sum = 0;
        for (uint32_t i = 0; i < n; i++) { /* the largest sum comes last */
            p[i] = n == 384 ? -127 : (int8_t)(i * 37 + n);
            q[i] = n == 384 ? -127 : (int8_t)(i * 101 + 7);
            sum += p[i] * q[i];
        }
        for (size_t s = 0; s < n_sets; s++)
            assert_int_equal(sets[s]->dot_i8(p, q, n), sum);
    }
}

static void test_vector_ops_equal_scalar(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 8, 15, 16, 33, 48, 288, 576};
    const struct kern_ops *sets[8];
    size_t n_sets = sets_to_test(sets);
    for (size_t z = 0; z < sizeof(sizes) / sizeof(sizes[0]); z++) {
        uint32_t n = sizes[z];
        float x[576], w[576], b[576], cs[576], want[576], got[576];
        uint16_t halves[576];
        for (uint32_t i = 0; i < n; i++) {
            halves[i] = quant_f32_to_f16(rng_float());
            x[i] = rng_float() * (i % 7 ? 1.0f : 30.0f);
            w[i] = rng_float();
            b[i] = rng_float();
        }
        for (uint32_t i = 0; i < 576; i++)
            cs[i] = rng_float();
        for (size_t s = 0; s < n_sets; s++) {
            const struct kern_ops *k = sets[s], *r = &kern_scalar;
#define SAME(what, call)                                                                           \
    do {                                                                                           \
        memcpy(want, x, sizeof(want));                                                             \
        memcpy(got, x, sizeof(got));                                                               \
        {                                                                                          \
            float *y = want;                                                                       \
            r->call;                                                                               \
        }                                                                                          \
        {                                                                                          \
            float *y = got;                                                                        \
            k->call;                                                                               \
        }                                                                                          \
        expect_same(k->name, what, got, want, n);                                                  \
    } while (0)
            SAME("rmsnorm", rmsnorm(y, x, w, n, 1e-5f));
            SAME("rmsnorm without weight", rmsnorm(y, x, NULL, n, 1e-5f));
            SAME("layernorm", layernorm(y, x, w, b, n, 1e-5f));
            SAME("add", add(y, w, n));
            SAME("widen", widen(y, KERN_F32, x, n));
            SAME("widen F16", widen(y, KERN_F16, halves, n));
            SAME("widen BF16", widen(y, KERN_BF16, halves, n));
            SAME("scale", scale(y, 0.37f, n));
            SAME("mul", mul(y, x, w, n));
            SAME("mul_add", mul_add(y, w, b, n));
            SAME("silu", silu(y, x, n));
            SAME("silu_mul", silu_mul(y, x, w, n));
            SAME("gelu_mul", gelu_mul(y, x, w, n));
            SAME("gelu", gelu(y, x, n));
            SAME("gelu_erf", gelu_erf(y, x, n));
            SAME("relu", relu(y, x, n));
            SAME("leaky_relu", leaky_relu(y, x, 0.1f, n));
            SAME("tanh", tanh(y, x, n));
            SAME("sigmoid", sigmoid(y, x, n));
            if (n >= 16 && n % 16 == 0) {
                SAME("rope", rope(y, n / 16, 16, 16, cs, false));
                SAME("rope neox, part of a head", rope(y, n / 16, 16, 8, cs, true));
            }
            if (n % 48 == 0) {
                SAME("rope of 48", rope(y, n / 48, 48, 48, cs, false));
                SAME("rope of 42 of 48", rope(y, n / 48, 48, 42, cs, false));
                SAME("rope neox of 48", rope(y, n / 48, 48, 48, cs, true));
            }
            float sum_want = r->softmax_exp(want, x, n, r->max(x, n));
            float sum_got = k->softmax_exp(got, x, n, k->max(x, n));
            expect_same(k->name, "softmax_exp", got, want, n);
            assert_memory_equal(&sum_got, &sum_want, 4);
            assert_int_equal(k->argmax(x, n), r->argmax(x, n));
            float dot_want = r->dot(x, want, n), dot_got = k->dot(x, want, n);
            expect_same(k->name, "dot", &dot_got, &dot_want, 1);
        }
    }
    /* and the functions match their names */
    float wide[19], half[19];
    uint16_t halves[19];
    for (int i = 0; i < 19; i++) {
        halves[i] = quant_f32_to_f16(rng_float());
        half[i] = quant_f16_to_f32(halves[i]);
    }
    kern_scalar.widen(wide, KERN_F16, halves, 19);
    assert_memory_equal(wide, half, sizeof(half));
    float x[3] = {-3.0f, 0.5f, 20.0f}, one[3] = {1, 1, 1}, y[3];
    kern_scalar.silu_mul(y, x, one, 3);
    for (int i = 0; i < 3; i++)
        assert_true(fabs((double)y[i] - (double)x[i] / (1 + exp(-(double)x[i]))) < 1e-5);
    kern_scalar.silu(y, x, 3);
    for (int i = 0; i < 3; i++)
        assert_true(fabs((double)y[i] - (double)x[i] / (1 + exp(-(double)x[i]))) < 1e-5);
    kern_scalar.gelu(y, x, 3);
    for (int i = 0; i < 3; i++) {
        double v = (double)x[i];
        double want = 0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
        assert_true(fabs((double)y[i] - want) < 1e-5);
    }
    for (double v = -9; v < 9; v += 0.001) {
        float in = (float)v, got;
        kern_scalar.gelu_erf(&got, &in, 1);
        assert_true(fabs((double)got - 0.5 * (double)in * erfc(-(double)in / sqrt(2))) < 4e-6);
        kern_scalar.tanh(&got, &in, 1);
        assert_true(fabs((double)got - tanh((double)in)) < 5e-7);
        kern_scalar.sigmoid(&got, &in, 1);
        assert_true(fabs((double)got - 1 / (1 + exp(-(double)in))) < 5e-7);
        kern_scalar.relu(&got, &in, 1);
        assert_true(got == (in > 0 ? in : 0));
    }
}

/* Three tokens of both recurrences in double; delta: the gated delta rule. */
static void recur_in_double(bool delta, double *h, double *y, const float *x, const float *b,
                            const float *c, uint32_t n_state, uint32_t n, double rate, double decay)
{
    for (uint32_t i = 0; i < n; i++) {
        double known = 0;
        y[i] = 0;
        for (uint32_t j = 0; j < n_state; j++) {
            h[j * n + i] *= decay;
            known += h[j * n + i] * (double)b[j];
        }
        const double news = delta ? ((double)x[i] - known) * rate : (double)x[i] * rate;
        for (uint32_t j = 0; j < n_state; j++) {
            h[j * n + i] += (double)b[j] * news;
            y[i] += h[j * n + i] * (double)c[j];
        }
    }
}

static void test_recurrences_equal_scalar_and_double(void **state)
{
    (void)state;
    enum { STATES = 20, MOST = 64, TOKENS_OF_IT = 3 };
    static const uint32_t sizes[] = {1, 16, 24, 64};
    const struct kern_ops *sets[8];
    const size_t n_sets = sets_to_test(sets);
    for (size_t z = 0; z < 2 * sizeof(sizes) / sizeof(sizes[0]); z++) {
        const uint32_t n = sizes[z / 2];
        const bool delta = z % 2;
        float x[TOKENS_OF_IT][MOST], b[TOKENS_OF_IT][STATES], c[TOKENS_OF_IT][STATES];
        float want[STATES * MOST] = {0}, out[TOKENS_OF_IT][MOST] = {{0}};
        double exact[STATES * MOST] = {0}, sum[MOST];
        for (uint32_t t = 0; t < TOKENS_OF_IT; t++) {
            for (uint32_t i = 0; i < n; i++)
                x[t][i] = rng_float();
            for (uint32_t j = 0; j < STATES; j++) {
                b[t][j] = rng_float() * 0.3f;
                c[t][j] = rng_float();
            }
            if (delta)
                kern_scalar.delta_step(want, out[t], x[t], b[t], c[t], STATES, n, 0.7f, 0.9f);
            else
                kern_scalar.ssm_step(want, out[t], x[t], b[t], c[t], STATES, n, 0.7f, 0.9f);
            recur_in_double(delta, exact, sum, x[t], b[t], c[t], STATES, n, (double)0.7f,
                            (double)0.9f);
            for (uint32_t i = 0; i < n; i++)
                assert_true(fabs((double)out[t][i] - sum[i]) < 1e-5);
        }
        for (size_t s = 0; s < n_sets; s++) {
            float h[STATES * MOST] = {0}, got[MOST] = {0};
            for (uint32_t t = 0; t < TOKENS_OF_IT; t++) {
                if (delta)
                    sets[s]->delta_step(h, got, x[t], b[t], c[t], STATES, n, 0.7f, 0.9f);
                else
                    sets[s]->ssm_step(h, got, x[t], b[t], c[t], STATES, n, 0.7f, 0.9f);
                expect_same(sets[s]->name, "recurrence", got, out[t], n);
            }
            expect_same(sets[s]->name, "state", h, want, (size_t)STATES * n);
        }
    }
}

/* Plain attention in double over the same rounded keys and values. */
static void attend_double(const struct kern_attn *job, double *out)
{
    const uint32_t hd = job->head_dim;
    for (uint32_t r = 0; r < job->n_tokens * job->n_heads; r++) {
        uint32_t token = r / job->n_heads, hi = job->pos0 + token + 1;
        uint32_t lo = job->window && hi > job->window ? hi - job->window : 0;
        const float *q = job->q + token * job->q_ld + (size_t)(r % job->n_heads) * hd;
        double max = -1e300, sum = 0, *s = malloc(hi * sizeof(*s));
        double *o = out + (size_t)r * hd;
        memset(o, 0, hd * sizeof(*o));
        for (int pass = 0; pass < 2; pass++)
            for (uint32_t t = lo; t < hi; t++) {
                const uint8_t *page = job->kv + job->pages[t / 16] * job->page_stride;
                const float *scales = (const float *)(const void *)(page + (size_t)32 * hd);
                bool q8 = job->kind == KERN_KV_Q8;
                if (pass == 0) {
                    double dot = 0;
                    for (uint32_t d = 0; d < hd; d++) {
                        size_t at = (size_t)d * 16 + t % 16;
                        double k = q8 ? (double)((const int8_t *)page)[at] * (double)scales[t % 16]
                                      : (double)quant_f16_to_f32(
                                            ((const uint16_t *)(const void *)page)[at]);
                        dot += k * (double)q[d];
                    }
                    s[t] = dot * (double)job->scale;
                    if (job->bias)
                        s[t] +=
                            (double)
                                job->bias[(r % job->n_heads) * job->bias_ld + t - (size_t)token];
                    max = s[t] > max ? s[t] : max;
                } else {
                    double p = exp(s[t] - max);
                    sum += p;
                    for (uint32_t d = 0; d < hd; d++) {
                        size_t at = (size_t)16 * hd + (t % 16) * hd + d;
                        double v =
                            q8 ? (double)((const int8_t *)page)[at] * (double)scales[16 + t % 16]
                               : (double)quant_f16_to_f32(
                                     ((const uint16_t *)(const void *)page)[at]);
                        o[d] += p * v;
                    }
                }
            }
        for (uint32_t d = 0; d < hd; d++)
            o[d] /= sum;
        free(s);
    }
}

static void test_attention_equals_scalar_and_double(void **state)
{
    (void)state;
    static const struct {
        const char *why;
        uint32_t hd, heads, tokens, pos0, window;
        enum kern_kv kind;
        bool bias;
    } cases[] = {
        {"first token", 64, 3, 1, 0, 0, KERN_KV_F16, false},
        {"decode in the middle of a page", 48, 1, 1, 70, 0, KERN_KV_F16, false},
        {"a tiny head", 8, 2, 3, 5, 0, KERN_KV_F16, false},
        {"a prompt chunk", 64, 3, 37, 20, 0, KERN_KV_F16, false},
        {"a sliding window", 32, 4, 20, 61, 24, KERN_KV_F16, false},
        {"a window of one page edge", 16, 2, 9, 100, 16, KERN_KV_F16, false},
        {"8-bit keys and values", 64, 2, 19, 40, 0, KERN_KV_Q8, false},
        {"8-bit, odd head", 40, 5, 2, 130, 50, KERN_KV_Q8, false},
        {"a bias, decode", 64, 1, 1, 37, 0, KERN_KV_F16, true},
        {"a bias, some heads and tokens", 32, 3, 11, 20, 0, KERN_KV_F16, true},
        {"a bias in a window", 16, 2, 9, 100, 24, KERN_KV_Q8, true},
    };
    const struct kern_ops *sets[8];
    size_t n_sets = sets_to_test(sets);
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        uint32_t hd = cases[c].hd, n_keys = cases[c].pos0 + cases[c].tokens;
        uint32_t n_pages = (n_keys + 15) / 16, rows = cases[c].tokens * cases[c].heads;
        size_t stride = (kern_kv_head_bytes(cases[c].kind, hd) + 63) / 64 * 64;
        uint32_t pages[16];
        for (uint32_t p = 0; p < n_pages; p++)
            pages[p] = (p * 5 + 3) % 16; /* out of order, some pages foreign */
        float *q = aligned((size_t)rows * hd * 4), *k = aligned((size_t)n_keys * hd * 4);
        float *v = aligned((size_t)n_keys * hd * 4), *want = aligned((size_t)rows * hd * 4);
        float *got = aligned((size_t)rows * hd * 4), *scratch = aligned(kern_attn_scratch(512) * 4);
        double *exact = aligned((size_t)rows * hd * 8);
        /* token i's starts i places before token 0's */
        const size_t bias_ld = (size_t)n_keys + cases[c].tokens;
        float *bias = aligned(bias_ld * cases[c].heads * 4);
        for (uint32_t i = 0; i < bias_ld * cases[c].heads; i++)
            bias[i] = 4.0f * rng_float();
        for (uint32_t i = 0; i < rows * hd; i++)
            q[i] = rng_float();
        for (uint32_t i = 0; i < n_keys * hd; i++) {
            k[i] = rng_float();
            v[i] = rng_float();
        }
        uint8_t *ref_kv = NULL;
        for (size_t s = n_sets; s-- > 0;) { /* scalar is last in the table, but goes first */
            uint8_t *kv = aligned(stride * 16);
            for (uint32_t t = 0; t < n_keys; t++)
                sets[s]->kv_store(kv + pages[t / 16] * stride, cases[c].kind, hd, t % 16,
                                  k + (size_t)t * hd, v + (size_t)t * hd);
            struct kern_attn job = {.q = q,
                                    .q_ld = (size_t)cases[c].heads * hd,
                                    .out = got,
                                    .out_ld = (size_t)cases[c].heads * hd,
                                    .n_tokens = cases[c].tokens,
                                    .n_heads = cases[c].heads,
                                    .head_dim = hd,
                                    .scale = 0.125f,
                                    .pos0 = cases[c].pos0,
                                    .window = cases[c].window,
                                    .bias = cases[c].bias ? bias + cases[c].tokens : NULL,
                                    .bias_ld = bias_ld,
                                    .kind = cases[c].kind,
                                    .kv = kv,
                                    .page_stride = stride,
                                    .pages = pages,
                                    .scratch = scratch};
            if (!ref_kv) {
                ref_kv = kv;
                job.out = want;
                kern_scalar.attend(&job, 0, rows);
                attend_double(&job, exact);
                for (uint32_t i = 0; i < rows * hd; i++)
                    if (fabs((double)want[i] - exact[i]) > 2e-5)
                        fail_msg("%s: scalar [%u] %g, exact %g", cases[c].why, i, (double)want[i],
                                 exact[i]);
                continue;
            }
            assert_memory_equal(kv, ref_kv, stride * 16);
            sets[s]->attend(&job, 0, rows / 3);
            sets[s]->attend(&job, rows / 3, rows);
            expect_same(sets[s]->name, cases[c].why, got, want, (size_t)rows * hd);
            free(kv);
        }
        free(ref_kv);
        free(bias);
        free(q);
        free(k);
        free(v);
        free(want);
        free(got);
        free(scratch);
        free(exact);
    }
}

static void attend_full_double(const struct kern_attn_full *job, uint32_t n_rows, double *out)
{
    const uint32_t hd = job->head_dim;
    double *s = malloc(job->n_keys * sizeof(*s));
    for (uint32_t r = 0; r < n_rows; r++) {
        double max = -1e300, sum = 0, *o = out + (size_t)r * hd;
        memset(o, 0, hd * sizeof(*o));
        for (uint32_t t = 0; t < job->n_keys; t++) {
            s[t] = 0;
            for (uint32_t d = 0; d < hd; d++)
                s[t] += (double)job->q[r * job->q_ld + d] * (double)job->k[t * job->kv_ld + d];
            s[t] *= (double)job->scale;
            s[t] += job->bias ? (double)job->bias[(ptrdiff_t)r * job->bias_ld + (ptrdiff_t)t] : 0;
            max = s[t] > max ? s[t] : max;
        }
        for (uint32_t t = 0; t < job->n_keys; t++) {
            double p = exp(s[t] - max);
            sum += p;
            for (uint32_t d = 0; d < hd; d++)
                o[d] += p * (double)job->v[t * job->kv_ld + d];
        }
        for (uint32_t d = 0; d < hd; d++)
            o[d] /= sum;
    }
    free(s);
}

static void test_full_attention_equals_scalar_and_double(void **state)
{
    (void)state;
    static const struct {
        const char *why;
        uint32_t hd, queries, keys;
        bool bias, by_distance;
    } cases[] = {
        {"one token", 32, 1, 1, false, false},
        {"a sentence", 32, 20, 20, false, false},
        {"rows left over", 64, 37, 37, false, false},
        {"a tiny, odd head", 8, 5, 17, false, false},
        {"an odd head", 40, 6, 33, false, false},
        {"cross attention with a bias", 16, 3, 50, true, false},
        {"long", 32, 9, 300, false, false},
        {"a bias over all", 64, 48, 48, true, false},
        {"a bias by distance", 64, 48, 48, true, true},
    };
    const struct kern_ops *sets[8];
    size_t n_sets = sets_to_test(sets);
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        uint32_t hd = cases[c].hd, nq = cases[c].queries, nk = cases[c].keys, ld = 3 * hd;
        size_t most = nq > nk ? nq : nk;
        float *x = aligned(most * ld * 4), *bias = aligned((size_t)nq * nk * 4);
        float *want = aligned((size_t)nq * hd * 4), *got = aligned((size_t)nq * hd * 4);
        float *scratch = aligned(kern_attn_full_scratch(nk, hd) * 4);
        double *exact = aligned((size_t)nq * hd * 8);
        for (size_t i = 0; i < most * ld; i++)
            x[i] = rng_float();
        for (size_t i = 0; i < (size_t)nq * nk; i++)
            bias[i] = rng_float();
        struct kern_attn_full job = {.q = x,
                                     .q_ld = ld,
                                     .k = x + hd,
                                     .v = x + (size_t)2 * hd,
                                     .kv_ld = ld,
                                     .out = want,
                                     .out_ld = hd,
                                     .n_keys = nk,
                                     .head_dim = hd,
                                     .scale = 0.25f,
                                     .bias = cases[c].by_distance ? bias + nq
                                             : cases[c].bias      ? bias
                                                                  : NULL,
                                     .bias_ld = cases[c].by_distance ? -1 : (ptrdiff_t)nk,
                                     .scratch = scratch};
        kern_scalar.attend_full(&job, 0, nq);
        attend_full_double(&job, nq, exact);
        for (uint32_t i = 0; i < nq * hd; i++)
            if (fabs((double)want[i] - exact[i]) > 2e-5)
                fail_msg("%s: scalar [%u] %g, exact %g", cases[c].why, i, (double)want[i],
                         exact[i]);
        job.out = got;
        for (size_t s = 0; s < n_sets; s++) {
            memset(got, 0, (size_t)nq * hd * 4);
            sets[s]->attend_full(&job, 0, nq / 3);
            sets[s]->attend_full(&job, nq / 3, nq);
            expect_same(sets[s]->name, cases[c].why, got, want, (size_t)nq * hd);
        }
        free(x);
        free(bias);
        free(want);
        free(got);
        free(scratch);
        free(exact);
    }
}

int main(void)
{
    const struct kern_ops *sets[8];
    size_t n = sets_to_test(sets);
    printf("kernel sets on this machine%s:", short_run() ? ", shapes for an emulator" : "");
    for (size_t i = 0; i < n; i++)
        printf(" %s", sets[i]->name);
    printf("\n");
    fflush(stdout);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expected_set_is_live),
        cmocka_unit_test(test_tiling_keeps_the_values),
        cmocka_unit_test(test_mxfp4_scales_of_any_size_are_kept),
        cmocka_unit_test(test_equal_scales_are_not_rounded),
        cmocka_unit_test(test_gemm_equals_scalar),
        cmocka_unit_test(test_gemm_at_the_edges),
        cmocka_unit_test(test_scalar_gemm_equals_double),
        cmocka_unit_test(test_wide_gemm_equals_scalar_and_double),
        cmocka_unit_test(test_rope_turns_pairs),
        cmocka_unit_test(test_integer_products),
        cmocka_unit_test(test_vector_ops_equal_scalar),
        cmocka_unit_test(test_recurrences_equal_scalar_and_double),
        cmocka_unit_test(test_attention_equals_scalar_and_double),
        cmocka_unit_test(test_full_attention_equals_scalar_and_double),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
