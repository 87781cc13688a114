/* test_hnsw_file.c - a graph restored from its bytes: the same one, without deleted rows, and
 * none from bytes that are damaged or belong to other rows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "store/hnsw_file.h"

#define DIMS 32u
#define ROWS 1500u
#define FEW 60u

static float numbers[ROWS][DIMS];
static uint32_t which[ROWS]; /* the numbers of each row */
static struct hnsw_file_key keys[ROWS];

static const float *get(const void *ctx, uint32_t row)
{
    (void)ctx;
    return numbers[which[row]];
}

static float dot(const float *a, const float *b, uint32_t n)
{
    float sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static const struct hnsw_rows all_rows = {.get = get, .dot = dot, .n_cols = DIMS};

/* Rows 0 to n - 1 exist, or those whose number keep() accepts. */
static uint32_t use_rows(uint32_t n, bool (*keep)(uint32_t i))
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!keep || keep(i)) {
            which[at] = i;
            keys[at++] = (struct hnsw_file_key){.id = 3 * (int64_t)i + 5, .sum = i ^ 0x5a5a};
        }
    return at;
}

static struct hnsw *empty(void)
{
    struct hnsw *h = NULL;
    struct err e;
    assert_int_equal(hnsw_create(&h, &all_rows, &e), 0);
    return h;
}

static void grow(struct hnsw *h, uint32_t n)
{
    struct hnsw_plan *p = mem_zalloc(sizeof(*p));
    struct err e;
    assert_non_null(p);
    while (hnsw_count(h) < n) {
        assert_int_equal(hnsw_plan(h, (uint64_t)keys[hnsw_count(h)].id, p, &e), 0);
        assert_int_equal(hnsw_apply(h, p, &e), 0);
    }
    mem_free(p);
}

static struct hnsw *build(uint32_t n)
{
    struct hnsw *h = empty();
    (void)use_rows(n, NULL);
    grow(h, n);
    return h;
}

static void save(struct buf *out, const struct hnsw *h)
{
    buf_init(out, (size_t)64 << 20);
    hnsw_file_write(out, h, keys);
    assert_int_equal(out->rc, 0);
}

static void same_links(const struct hnsw *a, const struct hnsw *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t l = 0; l <= hnsw_level((uint64_t)keys[i].id); l++) {
            const uint32_t *x = hnsw_links(a, i, l), *y = hnsw_links(b, i, l);
            assert_memory_equal(x, y, (1 + x[0]) * sizeof(*x));
        }
}

/* How many rows find themselves. */
static uint32_t found(const struct hnsw *h, uint32_t n)
{
    struct hnsw_hit hits[32];
    struct err e;
    uint32_t k, good = 0;
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(hnsw_search(h, get(NULL, i), 32, NULL, hits, &k, &e), 0);
        good += k > 0 && hits[0].row == i;
    }
    return good;
}

static void test_the_same_graph_comes_back(void **state)
{
    (void)state;
    struct err e = {0};
    struct buf file;
    struct hnsw *h = build(1000), *again = empty();
    save(&file, h);
    assert_int_equal(use_rows(ROWS, NULL), ROWS); /* 500 were added meanwhile */
    assert_int_equal(hnsw_file_read(again, file.data, file.len, keys, ROWS, &e), 0);
    assert_int_equal(hnsw_count(again), 1000);
    same_links(h, again, 1000);
    grow(h, ROWS); /* they join as usual */
    grow(again, ROWS);
    same_links(h, again, ROWS);
    assert_int_equal(found(again, ROWS), found(h, ROWS));
    hnsw_destroy(h);
    hnsw_destroy(again);
    buf_fini(&file);
}

static bool not_third(uint32_t i)
{
    return i % 3 != 0;
}

static bool is_rare(uint32_t i)
{
    return i % 5 == 0;
}

static void test_rows_that_are_gone_are_left_out(void **state)
{
    (void)state;
    struct err e = {0};
    struct buf file;
    struct hnsw *h = build(ROWS), *again = empty();
    save(&file, h);
    uint32_t n = use_rows(ROWS, not_third);
    assert_int_equal(hnsw_file_read(again, file.data, file.len, keys, n, &e), 0);
    assert_int_equal(hnsw_count(again), n);
    const uint32_t good = found(again, n);
    if (good < n - n / 100)
        fail_msg("%u of %u rows find themselves", good, n);
    hnsw_clear(again);
    n = use_rows(ROWS, is_rare); /* so few that a new graph is better */
    assert_int_equal(hnsw_file_read(again, file.data, file.len, keys, n, &e), SHOAL_ECHANGED);
    assert_int_equal(hnsw_count(again), 0);
    hnsw_destroy(h);
    hnsw_destroy(again);
    buf_fini(&file);
}

static void test_other_rows_are_refused(void **state)
{
    (void)state;
    struct err e = {0};
    struct buf file;
    struct hnsw *h = build(FEW), *again = empty();
    save(&file, h);
    keys[FEW / 2].sum++;
    assert_int_equal(hnsw_file_read(again, file.data, file.len, keys, FEW, &e), SHOAL_ECHANGED);
    (void)use_rows(FEW, NULL);
    keys[FEW / 2].id--; /* a new row before existing ones */
    assert_int_equal(hnsw_file_read(again, file.data, file.len, keys, FEW, &e), SHOAL_ECHANGED);
    assert_int_equal(hnsw_file_read(again, file.data, file.len, keys, 0, &e), SHOAL_ECHANGED);
    assert_int_equal(hnsw_count(again), 0);
    hnsw_destroy(h);
    hnsw_destroy(again);
    buf_fini(&file);
}

static void test_damage_is_found(void **state)
{
    (void)state;
    struct err e = {0};
    struct buf file;
    struct hnsw *h = build(FEW), *again = empty();
    save(&file, h);
    for (size_t i = 0; i < file.len; i++) {
        file.data[i] = (char)(file.data[i] ^ 0x10);
        assert_int_equal(hnsw_file_read(again, file.data, file.len, keys, FEW, &e), SHOAL_EFORMAT);
        file.data[i] = (char)(file.data[i] ^ 0x10);
    }
    for (size_t n = 0; n < file.len; n += 1 + n / 50)
        assert_int_equal(hnsw_file_read(again, file.data, n, keys, FEW, &e), SHOAL_EFORMAT);
    /* with a valid checksum: a link to a row that does not exist */
    const uint32_t bad = FEW;
    memcpy(file.data + file.len - 12, &bad, sizeof(bad));
    const uint64_t sum = hash_large(file.data, file.len - 8, 1);
    memcpy(file.data + file.len - 8, &sum, sizeof(sum));
    assert_int_equal(hnsw_file_read(again, file.data, file.len, keys, FEW, &e), SHOAL_EFORMAT);
    assert_int_equal(hnsw_count(again), 0);
    hnsw_destroy(h);
    hnsw_destroy(again);
    buf_fini(&file);
}

static void test_memory_failures(void **state)
{
    (void)state;
    struct err e = {0};
    struct buf file;
    uint32_t failed = 0;
    struct hnsw *h = build(FEW), *again = empty();
    save(&file, h);
    for (uint64_t at = 1; at < 12; at++) {
        mem_fail_at(at);
        int rc = hnsw_file_read(again, file.data, file.len, keys, FEW, &e);
        mem_fail_at(0);
        assert_true(rc == 0 || rc == SHOAL_ENOMEM);
        assert_int_equal(hnsw_count(again), rc == 0 ? FEW : 0);
        failed += rc < 0;
        hnsw_clear(again);
    }
    assert_true(failed >= 5);
    hnsw_destroy(h);
    hnsw_destroy(again);
    buf_fini(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_graph_comes_back),
        cmocka_unit_test(test_rows_that_are_gone_are_left_out),
        cmocka_unit_test(test_other_rows_are_refused),
        cmocka_unit_test(test_damage_is_found),
        cmocka_unit_test(test_memory_failures),
    };
    for (uint32_t i = 0; i < ROWS; i++) {
        double sum = 0;
        for (uint32_t k = 0; k < DIMS; k++) {
            const double own = (double)(hash_mix(i * 977ull + k) >> 11) / 0x1p53 - 0.5;
            const double group = (double)(hash_mix(i % 30 * 31337ull + k) >> 11) / 0x1p53 - 0.5;
            numbers[i][k] = (float)(group + 0.7 * own);
            sum += (double)numbers[i][k] * (double)numbers[i][k];
        }
        for (uint32_t k = 0; k < DIMS; k++)
            numbers[i][k] = (float)((double)numbers[i][k] / sqrt(sum));
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
