/* test_hnsw.c - the graph finds nearly all of the true nearest rows, and the same ones each
 * time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/mem.h"
#include "store/hnsw.h"

#define DIMS 64u
#define ROWS 2500u
#define NEAREST 10u

static float rows[ROWS][DIMS];

static double uniform(uint64_t seed)
{
    return (double)(hash_mix(seed) >> 11) / 0x1p53 * 2 - 1;
}

/* Texts come in clusters: a centre and points around it, of length 1. */
static void fill(float *to, uint64_t seed)
{
    double sum = 0;
    for (uint32_t i = 0; i < DIMS; i++) {
        to[i] = (float)(uniform(seed % 80 * 1000 + i) + 0.7 * uniform(seed * 7919 + i + 1000000));
        sum += (double)to[i] * (double)to[i];
    }
    for (uint32_t i = 0; i < DIMS; i++)
        to[i] = (float)((double)to[i] / sqrt(sum));
}

static const float *get(const void *ctx, uint32_t row)
{
    (void)ctx;
    return rows[row];
}

static bool is_even(const void *ctx, uint32_t row)
{
    (void)ctx;
    return row % 2 == 0;
}

static float dot(const float *a, const float *b, uint32_t n)
{
    float sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static const struct hnsw_rows all_rows = {.get = get, .dot = dot, .n_cols = DIMS};

static int8_t codes[ROWS][DIMS];
static float scales[ROWS];

static const int8_t *code(const void *ctx, uint32_t row, float *scale)
{
    (void)ctx;
    *scale = scales[row];
    return codes[row];
}

static int32_t dot_i8(const int8_t *a, const int8_t *b, uint32_t n)
{
    int32_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static const struct hnsw_rows coded_rows = {
    .get = get, .dot = dot, .n_cols = DIMS, .code = code, .dot_i8 = dot_i8};

static struct hnsw *build_of(const struct hnsw_rows *of, uint32_t n)
{
    struct hnsw_plan *p = mem_zalloc(sizeof(*p));
    struct hnsw *h;
    struct err e = {0};
    assert_non_null(p);
    assert_int_equal(hnsw_create(&h, of, &e), 0);
    while (hnsw_count(h) < n) {
        assert_int_equal(hnsw_plan(h, hnsw_count(h), p, &e), 0);
        assert_int_equal(hnsw_apply(h, p, &e), 0);
    }
    mem_free(p);
    return h;
}

static struct hnsw *build(uint32_t n)
{
    return build_of(&all_rows, n);
}

/* How many of the wanted rows are nearer to q than this one. */
static uint32_t rank_of(const float *q, uint32_t row, bool (*wanted)(const void *, uint32_t))
{
    double score = 0;
    uint32_t rank = 0;
    for (uint32_t i = 0; i < DIMS; i++)
        score += (double)q[i] * (double)rows[row][i];
    for (uint32_t r = 0; r < ROWS; r++) {
        double s = 0;
        for (uint32_t i = 0; i < DIMS; i++)
            s += (double)q[i] * (double)rows[r][i];
        rank += r != row && s > score && (!wanted || wanted(NULL, r));
    }
    return rank;
}

static double recall(const struct hnsw *h, bool (*wanted)(const void *, uint32_t))
{
    enum { QUERIES = 60, BREADTH = 128 };
    struct hnsw_hit hits[BREADTH];
    uint32_t n, good = 0;
    struct err e = {0};
    for (uint32_t i = 0; i < QUERIES; i++) {
        float q[DIMS];
        fill(q, 50000 + 13 * i);
        assert_int_equal(hnsw_search(h, q, BREADTH, wanted, hits, &n, &e), 0);
        assert_int_equal(n, BREADTH);
        for (uint32_t k = 0; k < n; k++) {
            assert_true(!wanted || wanted(NULL, hits[k].row));
            assert_true(k == 0 || hits[k].score <= hits[k - 1].score);
        }
        for (uint32_t k = 0; k < NEAREST; k++)
            good += rank_of(q, hits[k].row, wanted) < NEAREST;
    }
    return (double)good / (QUERIES * NEAREST);
}

static void test_recall(void **state)
{
    (void)state;
    struct hnsw *h = build(ROWS);
    double all = recall(h, NULL), even = recall(h, is_even);
    if (all < 0.95 || even < 0.95)
        fail_msg("recall of 10: %f, of those that are wanted: %f", all, even);
    assert_true(hnsw_bytes(h) > ROWS * HNSW_GROUND_LINKS * sizeof(uint32_t));
    hnsw_destroy(h);
}

/* Similar rows are all found, and so is the only different one. */
/* A search over 8-bit copies finds as much, and returns the scores of the full rows. */
static void test_codes(void **state)
{
    (void)state;
    struct hnsw_hit hits[16];
    struct err e = {0};
    uint32_t n;
    struct hnsw *h = build_of(&coded_rows, ROWS);
    assert_true(recall(h, NULL) >= 0.97);
    assert_true(recall(h, is_even) >= 0.97);
    for (uint32_t r = 0; r < ROWS; r += 97) {
        assert_int_equal(hnsw_search(h, rows[r], 16, NULL, hits, &n, &e), 0);
        assert_int_equal(hits[0].row, r);
        for (uint32_t k = 0; k < n; k++)
            assert_true(hits[k].score == dot(rows[r], rows[hits[k].row], DIMS));
    }
    hnsw_destroy(h);
    float tiny[3] = {1e-44f, -1e-44f, 0}, none[3] = {0};
    int8_t out[3] = {1, 1, 1};
    assert_true(hnsw_encode(out, tiny, 3) == 0 && out[0] == 0 && out[1] == 0);
    assert_true(hnsw_encode(out, none, 3) == 0 && out[2] == 0);
}

static void test_every_row_can_be_reached(void **state)
{
    struct hnsw_hit hits[32];
    struct err e = {0};
    uint32_t n, lost = 0;
    (void)state;
    struct hnsw *h = build(ROWS);
    for (uint32_t r = 0; r < ROWS; r += 7) {
        assert_int_equal(hnsw_search(h, rows[r], 32, NULL, hits, &n, &e), 0);
        lost += hits[0].row != r;
    }
    if (lost > 2)
        fail_msg("%u of %u rows are not found by themselves", lost, ROWS / 7);
    hnsw_destroy(h);
}

static void test_the_same_rows_make_the_same_graph(void **state)
{
    struct hnsw_hit a[64], b[64];
    uint32_t n_a, n_b;
    struct err e = {0};
    (void)state;
    struct hnsw *x = build(1500), *y = build(1500);
    assert_int_equal(hnsw_bytes(x), hnsw_bytes(y));
    for (uint64_t i = 0; i < 40; i++) {
        float q[DIMS];
        fill(q, 90000 + i);
        assert_int_equal(hnsw_search(x, q, 64, NULL, a, &n_a, &e), 0);
        assert_int_equal(hnsw_search(y, q, 64, NULL, b, &n_b, &e), 0);
        assert_int_equal(n_a, n_b);
        for (uint32_t k = 0; k < n_a; k++)
            assert_int_equal(a[k].row, b[k].row);
    }
    hnsw_destroy(x);
    hnsw_destroy(y);
}

static void test_few_rows(void **state)
{
    struct hnsw_hit hits[8];
    uint32_t n = 9;
    struct err e = {0};
    (void)state;
    struct hnsw *h = build(0);
    assert_int_equal(hnsw_search(h, rows[0], 8, NULL, hits, &n, &e), 0);
    assert_int_equal(n, 0);
    hnsw_destroy(h);
    h = build(5);
    assert_int_equal(hnsw_search(h, rows[3], 8, NULL, hits, &n, &e), 0);
    assert_int_equal(n, 5);
    assert_int_equal(hits[0].row, 3);
    hnsw_clear(h);
    assert_int_equal(hnsw_count(h), 0);
    hnsw_destroy(h);
}

static void test_memory_failures(void **state)
{
    struct hnsw_plan *p = mem_zalloc(sizeof(*p));
    struct hnsw_hit hits[16];
    struct err e = {0};
    uint32_t n, failed = 0;
    (void)state;
    assert_non_null(p);
    struct hnsw *h = build(200);
    for (uint64_t at = 1; at < 6; at++) {
        mem_fail_at(at);
        int rc = hnsw_search(h, rows[1], 16, NULL, hits, &n, &e);
        mem_fail_at(0);
        assert_true(rc == 0 || rc == SHOAL_ENOMEM);
        failed += rc < 0;
    }
    while (hnsw_count(h) < 300) { /* a failure changes nothing: the row joins the next time */
        uint32_t before = hnsw_count(h);
        mem_fail_at(1 + before % 5);
        int rc = hnsw_plan(h, before, p, &e);
        if (rc == 0)
            rc = hnsw_apply(h, p, &e);
        mem_fail_at(0);
        assert_int_equal(hnsw_count(h), before + (rc == 0));
        if (rc < 0) {
            failed++;
            assert_int_equal(hnsw_plan(h, before, p, &e), 0);
            assert_int_equal(hnsw_apply(h, p, &e), 0);
        }
    }
    assert_true(failed > 20);
    assert_int_equal(hnsw_search(h, rows[250], 16, NULL, hits, &n, &e), 0);
    assert_int_equal(hits[0].row, 250);
    hnsw_destroy(h);
    mem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recall),
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_every_row_can_be_reached),
        cmocka_unit_test(test_the_same_rows_make_the_same_graph),
        cmocka_unit_test(test_few_rows),
        cmocka_unit_test(test_memory_failures),
    };
    for (uint32_t i = 0; i < ROWS; i++) {
        fill(rows[i], i);
        scales[i] = hnsw_encode(codes[i], rows[i], DIMS);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
