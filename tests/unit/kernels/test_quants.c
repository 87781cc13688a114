/* test_quants.c - tensor encodings: the table of types, half floats, decoding, encoding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "kernels/quants/quant.h"
#include "support/ref_file.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static void test_types_are_known_by_number_and_name(void **state)
{
    static const struct {
        uint32_t type, block, bytes;
        const char *name;
        bool supported;
    } rows[] = {
        {0, 1, 4, "F32", true},          {1, 1, 2, "F16", true},
        {2, 32, 18, "Q4_0", true},       {4, 16, 10, "Q4_2", false},
        {8, 32, 34, "Q8_0", true},       {12, 256, 144, "Q4_K", true},
        {14, 256, 210, "Q6_K", true},    {16, 256, 66, "IQ2_XXS", true},
        {17, 256, 74, "IQ2_XS", true},   {20, 32, 18, "IQ4_NL", true},
        {23, 256, 136, "IQ4_XS", true},  {30, 1, 2, "BF16", true},
        {31, 32, 18, "Q4_0_4_4", false}, {39, 32, 17, "MXFP4", true},
        {40, 64, 36, "NVFP4", true},     {41, 128, 18, "Q1_0", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct quant_info *qi = quant_info(rows[i].type);
        assert_non_null(qi);
        assert_string_equal(qi->name, rows[i].name);
        assert_int_equal(qi->block, rows[i].block);
        assert_int_equal(qi->block_bytes, rows[i].bytes);
        assert_int_equal(qi->supported, rows[i].supported);
    }
    for (uint32_t t = 0; t < QUANT_N_TYPES; t++) { /* no gaps, no zero divisors */
        assert_non_null(quant_info(t));
        assert_non_null(quant_info(t)->name);
        assert_true(quant_info(t)->block > 0 && quant_info(t)->block_bytes > 0);
    }
    assert_null(quant_info(QUANT_N_TYPES));
    assert_null(quant_info(1000));
    assert_null(quant_info(UINT32_MAX));
}

static void test_names_resolve_in_either_case(void **state)
{
    enum quant_type t;
    (void)state;
    assert_true(quant_from_name("q4_k", &t));
    assert_int_equal(t, QUANT_Q4_K);
    assert_true(quant_from_name("IQ2_XXS", &t));
    assert_int_equal(t, QUANT_IQ2_XXS);
    assert_false(quant_from_name("q4", &t));
    assert_false(quant_from_name("", &t));
    assert_true(quant_from_name("mxfp4", &t));
    assert_int_equal(t, QUANT_MXFP4);
    assert_false(quant_from_name("Q1_0", &t)); /* known, not supported */
}

/* Every half, against its definition; and back. */
static void test_half_floats_are_exact_both_ways(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        int exp = (int)(h >> 10 & 31), mant = (int)(h & 1023);
        float f = quant_f16_to_f32((uint16_t)h);
        assert_int_equal(signbit(f) != 0, h >> 15);
        if (exp == 31) {
            assert_true(mant ? isnan(f) : isinf(f));
            assert_true((quant_f32_to_f16(f) & 0x7c00) == 0x7c00);
            continue;
        }
        double want = exp ? ldexp(1024 + mant, exp - 25) : ldexp(mant, -24);
        assert_true(fabs((double)f) == want);
        assert_int_equal(quant_f32_to_f16(f), h);
    }
}

static void test_halves_round_to_nearest_even(void **state)
{
    static const struct {
        float f;
        uint16_t h;
    } rows[] = {
        {65504, 0x7bff},          {65519.996f, 0x7bff},   {65520, 0x7c00},
        {-1e30f, 0xfc00},         {1 + 0x1p-11f, 0x3c00}, {1 + 0x3p-11f, 0x3c02},
        {1 + 0x1.1p-11f, 0x3c01}, {0x1p-25f, 0x0000},     {0x1.000002p-25f, 0x0001},
        {0x3p-25f, 0x0002},       {0x1.ffap-15f, 0x03ff}, {0x1.ffcp-15f, 0x0400},
        {0x1.ffffp-15f, 0x0400},  {-0x1.8p-24f, 0x8002},  {1e-40f, 0x0000},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(quant_f32_to_f16(rows[i].f), rows[i].h);
    assert_true((quant_f32_to_f16(NAN) & 0x7fff) > 0x7c00);
}

/* A block whose values can be computed by hand: ascending codes, scale 0.5, minimum 0.25. */
static void test_blocks_of_32_decode_by_hand(void **state)
{
    uint8_t nib[16];
    float y[32];
    (void)state;
    for (int j = 0; j < 16; j++)
        nib[j] = (uint8_t)(j | (15 - j) << 4); /* low j, high 15 - j */

    uint8_t b[34] = {0x00, 0x38}; /* 0.5 */
    memcpy(b + 2, nib, 16);
    quant_to_f32(QUANT_Q4_0, b, y, 32);
    for (int j = 0; j < 16; j++) {
        assert_true(y[j] == 0.5f * (float)(j - 8));
        assert_true(y[j + 16] == 0.5f * (float)(7 - j));
    }
    quant_to_f32(QUANT_IQ4_NL, b, y, 32);
    assert_true(y[0] == -63.5f && y[15] == 56.5f && y[8] == 0.5f && y[16] == 56.5f);

    b[2] = 0x00, b[3] = 0x34; /* 0.25 */
    memcpy(b + 4, nib, 16);
    quant_to_f32(QUANT_Q4_1, b, y, 32);
    for (int j = 0; j < 16; j++)
        assert_true(y[j] == 0.5f * (float)j + 0.25f && y[j + 16] == 0.5f * (float)(15 - j) + 0.25f);

    static const uint8_t high[4] = {0x01, 0x80, 0x02, 0x40}; /* values 0, 15, 17, 30 */
    memcpy(b + 2, high, 4);
    memcpy(b + 6, nib, 16);
    quant_to_f32(QUANT_Q5_0, b, y, 32);
    assert_true(y[0] == 0.0f && y[1] == -7.5f && y[15] == 7.5f && y[14] == -1.0f);
    assert_true(y[16] == -0.5f && y[17] == 7.0f && y[30] == 0.5f && y[31] == -8.0f);

    b[2] = 0x00, b[3] = 0x34;
    memcpy(b + 4, high, 4);
    memcpy(b + 8, nib, 16);
    quant_to_f32(QUANT_Q5_1, b, y, 32);
    assert_true(y[0] == 8.25f && y[1] == 0.75f && y[15] == 15.75f && y[31] == 0.25f);

    for (int j = 0; j < 32; j++)
        b[2 + j] = (uint8_t)(j * 8 - 128);
    quant_to_f32(QUANT_Q8_0, b, y, 32);
    for (int j = 0; j < 32; j++)
        assert_true(y[j] == 0.5f * (float)(j * 8 - 128));
}

static void test_super_blocks_decode_by_hand(void **state)
{
    uint8_t b[256];
    float y[256];
    (void)state;

    /* Q4_K: pair 5 has scale 0b100011 and minimum 0b010101, all else is zero. */
    memset(b, 0, sizeof(b));
    b[1] = 0x3c, b[3] = 0x38; /* d 1, dmin 0.5 */
    b[4 + 1] = 2 << 6;        /* high bits of scale 5 */
    b[4 + 5] = 1 << 6;        /* high bits of minimum 5 */
    b[4 + 9] = 3 | 5 << 4;
    b[16 + 64 + 7] = 0xb0; /* value 7 of pair 5 */
    quant_to_f32(QUANT_Q4_K, b, y, 256);
    for (int i = 0; i < 256; i++)
        assert_true(y[i] == (i == 167 ? 35.0f * 11 - 10.5f : i / 32 == 5 ? -10.5f : 0.0f));

    /* Q5_K: the same, the fifth bit of value 7 in bit 5 of byte 7. */
    memset(b + 16, 0, sizeof(b) - 16);
    b[16 + 7] = 1 << 5;
    b[48 + 64 + 7] = 0xb0;
    quant_to_f32(QUANT_Q5_K, b, y, 256);
    for (int i = 0; i < 256; i++)
        assert_true(y[i] == (i == 167 ? 35.0f * 27 - 10.5f : i / 32 == 5 ? -10.5f : 0.0f));

    /* Q6_K: value 200 is in the second half, run 2, first 16 of it: scale 8 + 2*2. */
    memset(b, 0, sizeof(b));
    b[209] = 0x3c;
    b[192 + 12] = (uint8_t)-3;
    b[64 + 8] = 0x90;         /* low nibble 9, high half of byte 8 */
    b[128 + 32 + 8] = 3 << 4; /* high bits */
    quant_to_f32(QUANT_Q6_K, b, y, 256);
    assert_true(y[200] == -3.0f * (57 - 32) && y[201] == -3.0f * -32 && y[0] == 0.0f);

    /* Q2_K: value 77 is run 2 of the first half: scale 4, shift 4, byte 13. */
    memset(b, 0, sizeof(b));
    b[81] = 0x3c, b[83] = 0x38;
    b[4] = 7 | 3 << 4;
    b[16 + 13] = 2 << 4;
    quant_to_f32(QUANT_Q2_K, b, y, 256);
    assert_true(y[77] == 14 - 1.5f && y[76] == -1.5f && y[80] == 0.0f && y[63] == 0.0f);

    /* Q3_K: value 77 as above; scale 4 is low nibble of byte 4 and bits 2..3 of byte 8. */
    memset(b, 0, sizeof(b));
    b[109] = 0x3c;
    b[96 + 4] = 9;
    b[96 + 8] = 2 << 2;
    b[32 + 13] = 2 << 4;
    b[13] = 1 << 2; /* high bit set: no minus four */
    quant_to_f32(QUANT_Q3_K, b, y, 256);
    assert_true(y[77] == 9 * 2 && y[76] == 9 * -4 && y[80] == -32.0f * -4);

    /* IQ2_XXS: group 5 (second word pair, second byte), scale 2.5/4, signs 0b0000011 + parity. */
    memset(b, 0, sizeof(b));
    b[1] = 0x3c;
    uint32_t packed = 2u << 28 | 3u << 7;
    memcpy(b + 2 + 8 + 4, &packed, sizeof(packed));
    b[2 + 8 + 1] = 1; /* the list's second point: 43 then eights */
    quant_to_f32(QUANT_IQ2_XXS, b, y, 256);
    assert_true(y[40] == -0.625f * 43 && y[41] == -0.625f * 8 && y[42] == 0.625f * 8);
    assert_true(y[47] == 0.625f * 8 && y[0] == 0.125f * 8);
    packed = 2u << 28 | 1u << 7; /* an odd number of signs: the eighth makes it even */
    memcpy(b + 2 + 8 + 4, &packed, sizeof(packed));
    quant_to_f32(QUANT_IQ2_XXS, b, y, 256);
    assert_true(y[40] == -0.625f * 43 && y[41] == 0.625f * 8 && y[47] == -0.625f * 8);
}

static void test_decoding_stops_at_n(void **state)
{
    uint8_t b[3 * 34] = {0};
    float y[96];
    (void)state;
    for (size_t i = 0; i < 96; i++)
        y[i] = 7;
    quant_to_f32(QUANT_Q8_0, b, y, 64);
    assert_true(y[63] == 0 && y[64] == 7);
    quant_to_f32(QUANT_Q8_0, b, y, 0);
}

/* Random blocks of every type and the exact values, made by the gguf package of PyPI. */
static void test_every_type_decodes_to_the_reference_bits(void **state)
{
    struct ref_file f;
    char name[24];
    int n_types = 0;
    (void)state;
    assert_int_equal(ref_open(&f, SHOAL_TEST_DATA "/refs/dequant.ref"), 0);
    for (uint32_t t = 0; quant_info(t); t++) {
        const struct quant_info *qi = quant_info(t);
        if (!qi->supported)
            continue;
        snprintf(name, sizeof(name), "%s.f32", qi->name);
        const struct ref_array *blocks = ref_find(&f, qi->name), *values = ref_find(&f, name);
        if (!blocks || !values)
            fail_msg("no reference for %s", qi->name);
        assert_int_equal(blocks->cols, qi->block_bytes);
        size_t n = (size_t)blocks->rows * qi->block;
        assert_int_equal(values->rows * values->cols, n);
        float *got = malloc(n * sizeof(float));
        assert_non_null(got);
        quant_to_f32((enum quant_type)t, blocks->data, got, n);
        if (memcmp(got, values->data, n * sizeof(float)) != 0)
            fail_msg("%s does not decode as it should", qi->name);
        free(got);
        n_types++;
    }
    assert_int_equal(n_types, 26);
    ref_close(&f);
}

/* Normal deviates, the same in every run: Box-Muller over a counter. */
static void fill_normal(float *x, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        double a = ((double)(hash_mix(seed + 2 * i) >> 11) + 0.5) * 0x1p-53;
        double b = (double)(hash_mix(seed + 2 * i + 1) >> 11) * 0x1p-53;
        x[i] = (float)(sqrt(-2 * log(a)) * cos(6.283185307179586 * b));
    }
}

/* Weighted error of coding x as type and back, relative to the size of x. */
static double coding_error(enum quant_type type, const float *x, size_t n, const float *given,
                           const float *judged)
{
    static uint8_t coded[4 * 8192];
    static float back[8192];
    double e = 0, size = 0;
    assert_true(n <= ARRAY_LEN(back));
    assert_true(quant_from_f32(type, x, coded, n, given));
    quant_to_f32(type, coded, back, n);
    for (size_t i = 0; i < n; i++) {
        double w = judged ? (double)judged[i] : 1, d = (double)x[i] - (double)back[i];
        e += w * d * d;
        size += w * (double)x[i] * (double)x[i];
    }
    return sqrt(e / size);
}

static const struct {
    enum quant_type type;
    double bound; /* relative error on normal deviates; a plain min-max coder is above most */
} encoders[] = {
    {QUANT_F32, 0},         {QUANT_F16, 3e-4},    {QUANT_BF16, 2.5e-3}, {QUANT_Q8_0, 0.0056},
    {QUANT_Q4_0, 0.0825},   {QUANT_Q4_1, 0.0705}, {QUANT_Q5_0, 0.0411}, {QUANT_Q5_1, 0.0343},
    {QUANT_IQ4_NL, 0.0749}, {QUANT_Q4_K, 0.0707}, {QUANT_Q5_K, 0.0352}, {QUANT_Q6_K, 0.0170},
};

static void test_encoders_stay_within_their_error(void **state)
{
    static float x[8192], shifted[8192];
    (void)state;
    fill_normal(x, ARRAY_LEN(x), 1);
    for (size_t i = 0; i < ARRAY_LEN(x); i++)
        shifted[i] = x[i] * 1e-3f;
    for (size_t t = 0; t < ARRAY_LEN(encoders); t++) {
        double e = coding_error(encoders[t].type, x, ARRAY_LEN(x), NULL, NULL);
        if (!(e <= encoders[t].bound))
            fail_msg("%s: error %g", quant_info(encoders[t].type)->name, e);
        /* Small weights, as models have them: the scale's own rounding must not show. */
        e = coding_error(encoders[t].type, shifted, ARRAY_LEN(x), NULL, NULL);
        if (!(e <= encoders[t].bound * 1.02 + 1e-4))
            fail_msg("%s: error %g on small values", quant_info(encoders[t].type)->name, e);
    }
    assert_false(quant_from_f32(QUANT_IQ2_XXS, x, shifted, 256, NULL));
    assert_false(quant_from_f32(QUANT_Q2_K, x, shifted, 256, NULL));
    assert_false(quant_from_f32(QUANT_MXFP4, x, shifted, 256, NULL));
}

static void test_importance_moves_the_error_to_where_it_matters_less(void **state)
{
    static float x[8192], w[8192];
    (void)state;
    fill_normal(x, ARRAY_LEN(x), 2);
    fill_normal(w, ARRAY_LEN(w), 3);
    for (size_t i = 0; i < ARRAY_LEN(w); i++)
        w[i] = expf(1.5f * w[i]) * 1e-12f; /* also: only ratios count */
    for (size_t t = 4; t < ARRAY_LEN(encoders); t++) {
        double blind = coding_error(encoders[t].type, x, ARRAY_LEN(x), NULL, w);
        double with = coding_error(encoders[t].type, x, ARRAY_LEN(x), w, w);
        if (!(with < blind * 0.92))
            fail_msg("%s: %g with importance, %g without", quant_info(encoders[t].type)->name, with,
                     blind);
    }
}

static void test_zero_blocks_and_constant_blocks(void **state)
{
    static float x[512], back[512];
    uint8_t coded[4 * 512];
    (void)state;
    for (size_t t = 0; t < ARRAY_LEN(encoders); t++) {
        enum quant_type type = encoders[t].type;
        memset(x, 0, sizeof(x));
        assert_true(quant_from_f32(type, x, coded, 512, NULL));
        quant_to_f32(type, coded, back, 512);
        for (int i = 0; i < 512; i++)
            assert_true(back[i] == 0);
        for (int sign = -1; sign <= 1; sign += 2) {
            for (int i = 0; i < 512; i++)
                x[i] = (float)sign * 0.75f;
            assert_true(quant_from_f32(type, x, coded, 512, NULL));
            quant_to_f32(type, coded, back, 512);
            for (int i = 0; i < 512; i++)
                if (!(fabsf(back[i] - x[i]) < 2e-3f))
                    fail_msg("%s: %g became %g", quant_info(type)->name, (double)x[i],
                             (double)back[i]);
        }
    }
}

/* Accidental values in importance and data must not cause undefined behaviour or spoil other
 * blocks; sanitizer builds watch this test. */
static void test_odd_values_and_weights_are_survived(void **state)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-42f, 1e30f};
    static float x[768], w[768], clean[768], back[768];
    static uint8_t coded[4 * 768];
    (void)state;
    fill_normal(clean, ARRAY_LEN(clean), 4);
    for (size_t t = 3; t < ARRAY_LEN(encoders); t++)
        for (size_t o = 0; o < ARRAY_LEN(odd); o++) {
            enum quant_type type = encoders[t].type;
            memcpy(x, clean, sizeof(x));
            for (size_t i = 0; i < ARRAY_LEN(w); i++)
                w[i] = 1;
            x[300] = odd[o];
            assert_true(quant_from_f32(type, x, coded, ARRAY_LEN(x), NULL));
            quant_to_f32(type, coded, back, ARRAY_LEN(x));
            for (int i = 0; i < 256; i++)
                assert_true(fabsf(back[i] - x[i]) < 0.5f &&
                            fabsf(back[i + 512] - x[i + 512]) < 0.5f);
            x[300] = 0;
            w[300] = odd[o];
            assert_true(quant_from_f32(type, x, coded, ARRAY_LEN(x), w));
            quant_to_f32(type, coded, back, ARRAY_LEN(x));
            for (size_t i = 0; i < ARRAY_LEN(x); i++)
                assert_true(fabsf(back[i]) < 4.5f); /* at worst crushed, never blown up */
            /* Columns without any importance still get sane values. */
            memset(w, 0, sizeof(w));
            for (size_t i = 0; i < 256; i++)
                w[3 * i] = (float)i;
            assert_true(coding_error(type, clean, ARRAY_LEN(clean), w, NULL) < 0.5);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_are_known_by_number_and_name),
        cmocka_unit_test(test_names_resolve_in_either_case),
        cmocka_unit_test(test_half_floats_are_exact_both_ways),
        cmocka_unit_test(test_halves_round_to_nearest_even),
        cmocka_unit_test(test_blocks_of_32_decode_by_hand),
        cmocka_unit_test(test_super_blocks_decode_by_hand),
        cmocka_unit_test(test_decoding_stops_at_n),
        cmocka_unit_test(test_every_type_decodes_to_the_reference_bits),
        cmocka_unit_test(test_encoders_stay_within_their_error),
        cmocka_unit_test(test_importance_moves_the_error_to_where_it_matters_less),
        cmocka_unit_test(test_zero_blocks_and_constant_blocks),
        cmocka_unit_test(test_odd_values_and_weights_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
