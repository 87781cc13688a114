/* test_vectors.c - the nearest vectors are exactly those of a linear search, while rows are
 * added and removed. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/mem.h"
#include "store/vectors.h"

/* The reference that results are compared with: instrumented, it would take most of the time. */
#define PLAIN __attribute__((no_sanitize("thread")))

PLAIN static void fill(float *v, uint32_t n, uint64_t seed)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        v[i] = (float)((double)(hash_mix(seed * 7919 + i) >> 40) / (1 << 23) - 1.0);
        sum += (double)v[i] * (double)v[i];
    }
    for (uint32_t i = 0; i < n; i++)
        v[i] = (float)((double)v[i] / sqrt(sum));
}

PLAIN static double score_of(const float *a, const float *b, uint32_t n)
{
    double s = 0;
    for (uint32_t i = 0; i < n; i++)
        s += (double)a[i] * (double)b[i];
    return s;
}

struct plain {
    int64_t id;
    double score;
};

PLAIN static int best_first(const void *a, const void *b)
{
    const struct plain *x = a, *y = b;
    return x->score < y->score ? 1 : x->score > y->score ? -1 : 0;
}

/* Compares with all rows [n][dims] whose id (from 1) is not divisible by `without`. */
static void check(struct vectors *v, const float *rows, size_t n, uint32_t dims, uint64_t seed,
                  uint32_t k, int64_t without)
{
    struct vectors_hit hits[VECTORS_MAX_NEAREST];
    struct plain *all = mem_zalloc_n(n + 1, sizeof(*all));
    float *q = mem_zalloc_n(dims, sizeof(float));
    struct err e = {0};
    uint32_t n_hits;
    size_t m = 0;
    fill(q, dims, seed);
    for (size_t i = 0; i < n; i++)
        if (without == 0 || (int64_t)(i + 1) % without != 0)
            all[m++] = (struct plain){(int64_t)i + 1, score_of(q, rows + i * dims, dims)};
    qsort(all, m, sizeof(*all), best_first);
    assert_int_equal(vectors_search(v, q, k, hits, &n_hits, &e), 0);
    assert_int_equal(n_hits, m < k ? m : k);
    for (uint32_t i = 0; i < n_hits; i++)
        if (hits[i].id != all[i].id && fabs((double)hits[i].score - all[i].score) > 1e-5)
            fail_msg("rank %u of %zu rows of %u: got %lld (%f), want %lld (%f)", i, n, dims,
                     (long long)hits[i].id, (double)hits[i].score, (long long)all[i].id,
                     all[i].score);
    mem_free(all);
    mem_free(q);
}

static void test_equals_a_plain_search(void **state)
{
    static const struct {
        size_t n;
        uint32_t dims, k;
    } cases[] = {{0, 64, 5},    {1, 64, 5},      {15, 384, 3},    {16, 384, 10},
                 {100, 5, 100}, {1000, 384, 10}, {5000, 100, 50}, {4097, 64, 1000}};
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        size_t n = cases[c].n;
        struct vectors *v;
        struct err e = {0};
        float *rows = mem_zalloc_n(n * cases[c].dims + 1, sizeof(float));
        int64_t *ids = mem_zalloc_n(n + 1, sizeof(*ids));
        for (size_t i = 0; i < n; i++) {
            fill(rows + i * cases[c].dims, cases[c].dims, i + 1);
            ids[i] = (int64_t)i + 1;
        }
        assert_int_equal(vectors_create(&v, cases[c].dims, 0, &e), 0);
        assert_int_equal(vectors_add(v, ids, rows, n, &e), 0);
        assert_int_equal(vectors_count(v), n);
        for (uint64_t q = 0; q < 5; q++)
            check(v, rows, n, cases[c].dims, 1000000 + q, cases[c].k, 0);
        vectors_destroy(v);
        mem_free(rows);
        mem_free(ids);
    }
}

static void test_removed_rows_are_not_found(void **state)
{
    enum { N = 9000, DIMS = 64 };
    float *rows = mem_zalloc_n((size_t)N * DIMS, sizeof(float));
    int64_t *ids = mem_zalloc_n(N, sizeof(*ids)), *some = mem_zalloc_n(N, sizeof(*some));
    struct vectors *v;
    struct err e = {0};
    size_t n = 0;
    (void)state;
    for (size_t i = 0; i < N; i++) {
        fill(rows + i * DIMS, DIMS, i + 1);
        ids[i] = (int64_t)i + 1;
    }
    assert_int_equal(vectors_create(&v, DIMS, 0, &e), 0);
    assert_int_equal(vectors_add(v, ids, rows, N, &e), 0);
    for (int64_t id = 3; id <= N; id += 3)
        some[n++] = id;
    vectors_remove(v, some, n);
    assert_int_equal(vectors_count(v), N - n);
    check(v, rows, N, DIMS, 77, 20, 3);
    n = 0; /* more than half: the rest is compacted */
    for (int64_t id = 1; id <= N; id++)
        if (id % 3 != 0 && id <= 3000)
            some[n++] = id;
    size_t before = vectors_bytes(v);
    vectors_keep(v, some, n);
    assert_int_equal(vectors_count(v), n);
    assert_true(vectors_bytes(v) < before);
    check(v, rows, 3000, DIMS, 78, 20, 3);
    vectors_destroy(v);
    mem_free(rows);
    mem_free(ids);
    mem_free(some);
}

static void test_bad_input(void **state)
{
    struct vectors *v;
    struct vectors_hit hit;
    struct err e = {0};
    float bad[2] = {1, NAN};
    int64_t id = 1;
    uint32_t n;
    (void)state;
    assert_int_equal(vectors_create(&v, 0, 0, &e), SHOAL_EINVAL);
    assert_int_equal(vectors_create(&v, 2, 0, &e), 0);
    assert_int_equal(vectors_add(v, &id, bad, 1, &e), SHOAL_EINVAL);
    assert_int_equal(vectors_search(v, bad, 1, &hit, &n, &e), SHOAL_EINVAL);
    assert_int_equal(vectors_search(v, bad, VECTORS_MAX_NEAREST + 1, &hit, &n, &e), SHOAL_EINVAL);
    vectors_destroy(v);
}

/* ---- many vectors ---- */

static void wait_for_links(struct vectors *v, size_t n)
{
    for (int i = 0; i < 60000 && vectors_linked(v) < n; i++)
        usleep(1000);
    assert_int_equal(vectors_linked(v), n);
}

/* How many of the ten nearest are found; rows with an id up to `gone` were removed. */
static double recall(struct vectors *v, const float *rows, size_t n, uint32_t dims, int64_t gone)
{
    struct vectors_hit hits[10];
    struct plain *all = mem_zalloc_n(n, sizeof(*all));
    struct err e = {0};
    float q[64];
    uint32_t n_hits, good = 0;
    for (uint64_t seed = 500; seed < 540; seed++) {
        size_t m = 0;
        fill(q, dims, seed * 31);
        for (size_t i = (size_t)gone; i < n; i++)
            all[m++] = (struct plain){(int64_t)i + 1, score_of(q, rows + i * dims, dims)};
        qsort(all, m, sizeof(*all), best_first);
        assert_int_equal(vectors_search(v, q, 10, hits, &n_hits, &e), 0);
        assert_int_equal(n_hits, 10);
        for (uint32_t i = 0; i < 10; i++) {
            assert_true(hits[i].id > gone);
            good += (double)hits[i].score >= all[9].score - 1e-6;
        }
    }
    mem_free(all);
    return good / 400.0;
}

/* Above the limit a graph takes over, row by row; removing and adding continue to work. */
static void test_many_vectors_get_a_graph(void **state)
{
    enum { N = 3000, DIMS = 32, LIMIT = 1000 };
    float *rows = mem_zalloc_n((size_t)(N + 1) * DIMS, sizeof(float));
    int64_t *ids = mem_zalloc_n(N + 1, sizeof(*ids));
    struct vectors *v;
    struct vectors_hit hits[10];
    struct err e = {0};
    uint32_t n;
    (void)state;
    for (size_t i = 0; i < N + 1; i++) {
        fill(rows + i * DIMS, DIMS, i + 1);
        ids[i] = (int64_t)i + 1;
    }
    assert_int_equal(vectors_create(&v, DIMS, LIMIT, &e), 0);
    assert_int_equal(vectors_add(v, ids, rows, LIMIT, &e), 0);
    check(v, rows, LIMIT, DIMS, 7, 10, 0);
    assert_int_equal(vectors_linked(v), 0);
    for (size_t at = LIMIT; at < N; at += 500)
        assert_int_equal(vectors_add(v, ids + at, rows + at * DIMS, 500, &e), 0);
    assert_true(recall(v, rows, N, DIMS, 0) >= 0.95); /* while it is being built */
    wait_for_links(v, N);
    assert_true(recall(v, rows, N, DIMS, 0) >= 0.95);
    assert_int_equal(vectors_add(v, ids + N, rows + (size_t)N * DIMS, 1, &e), 0);
    assert_int_equal(vectors_search(v, rows + (size_t)N * DIMS, 10, hits, &n, &e), 0);
    assert_int_equal(hits[0].id, N + 1); /* found, linked or not */
    vectors_remove(v, ids, 1400);
    assert_true(recall(v, rows, N, DIMS, 1400) >= 0.95);
    vectors_remove(v, ids, 2200); /* below the limit again, and exact */
    assert_true(recall(v, rows, N + 1, DIMS, 2200) == 1);
    vectors_destroy(v);
    mem_free(rows);
    mem_free(ids);
}

/* Reads the file and changes one byte of it. */
static void damage(const char *path)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, 100, SEEK_SET), 0);
    int c = fgetc(f);
    assert_int_equal(fseek(f, 100, SEEK_SET), 0);
    fputc(c ^ 1, f);
    assert_int_equal(fclose(f), 0);
}

/* Vectors whose graph is in the file; those from `first` on were removed. */
static struct vectors *reopen(const char *path, const int64_t *ids, const float *rows, size_t first,
                              size_t n, uint32_t dims, struct err *why)
{
    struct vectors *v;
    struct err e = {0};
    assert_int_equal(vectors_create(&v, dims, 1000, &e), 0);
    assert_int_equal(vectors_keep_graph(v, path, &e), 0);
    assert_int_equal(vectors_add(v, ids + first, rows + first * dims, n - first, &e), 0);
    assert_int_equal(vectors_linked(v), 0); /* nothing starts before the file has been tried */
    vectors_restore(v, why);
    return v;
}

/* After a restart the graph is available at once, unless its file is damaged or belongs to other
 * vectors. */
static void test_a_graph_comes_back(void **state)
{
    enum { N = 1400, FIRST = 1300, REMOVED = 200, DIMS = 32 };
    float *rows = mem_zalloc_n((size_t)N * DIMS, sizeof(float));
    int64_t *ids = mem_zalloc_n(N, sizeof(*ids));
    char dir[] = "/tmp/shoal-vectors-XXXXXX", path[64];
    struct err why;
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/graph", dir);
    for (size_t i = 0; i < N; i++) {
        fill(rows + i * DIMS, DIMS, i + 1);
        ids[i] = (int64_t)i + 1;
    }
    struct vectors *v = reopen(path, ids, rows, 0, FIRST, DIMS, &why);
    assert_string_equal(why.msg, ""); /* there is no file yet */
    wait_for_links(v, FIRST);
    vectors_destroy(v);
    v = reopen(path, ids, rows, 0, N, DIMS, &why);
    assert_string_equal(why.msg, "");
    assert_true(vectors_linked(v) >= FIRST); /* available at once; the others follow */
    wait_for_links(v, N);
    assert_true(recall(v, rows, N, DIMS, 0) >= 0.95);
    vectors_destroy(v);
    v = reopen(path, ids, rows, REMOVED, N, DIMS, &why); /* removed meanwhile */
    assert_string_equal(why.msg, "");
    assert_int_equal(vectors_linked(v), N - REMOVED);
    assert_true(recall(v, rows, N, DIMS, REMOVED) >= 0.95);
    vectors_destroy(v);
    damage(path);
    v = reopen(path, ids, rows, 0, N, DIMS, &why);
    assert_non_null(strstr(why.msg, "damaged"));
    wait_for_links(v, N);
    vectors_destroy(v); /* and it is written again */
    v = reopen(path, ids, rows, 0, N, DIMS, &why);
    assert_string_equal(why.msg, "");
    assert_int_equal(vectors_linked(v), N);
    vectors_destroy(v);
    rows[5] += 0.01f;
    v = reopen(path, ids, rows, 0, N, DIMS, &why);
    assert_non_null(strstr(why.msg, "other vectors"));
    vectors_destroy(v);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
    mem_free(rows);
    mem_free(ids);
}

static void test_vectors_of_different_length_stay_exact(void **state)
{
    enum { N = 300, DIMS = 32 };
    float *rows = mem_zalloc_n((size_t)N * DIMS, sizeof(float));
    int64_t *ids = mem_zalloc_n(N, sizeof(*ids));
    struct vectors *v;
    struct err e = {0};
    (void)state;
    for (size_t i = 0; i < N; i++) {
        fill(rows + i * DIMS, DIMS, i + 1);
        for (size_t k = 0; k < DIMS; k++)
            rows[i * DIMS + k] *= i % 2 ? 1.0f : 0.5f;
        ids[i] = (int64_t)i + 1;
    }
    assert_int_equal(vectors_create(&v, DIMS, 100, &e), 0);
    assert_int_equal(vectors_add(v, ids, rows, N, &e), 0);
    check(v, rows, N, DIMS, 5, 20, 0);
    assert_int_equal(vectors_linked(v), 0);
    vectors_destroy(v);
    mem_free(rows);
    mem_free(ids);
}

/* ---- concurrent changes ---- */

struct shared {
    struct vectors *v;
    _Atomic int64_t n_added; /* ids 1.. of permanent rows */
    _Atomic bool over;
};

static void *search_on(void *arg)
{
    struct shared *s = arg;
    struct vectors_hit hits[10];
    struct err e = {0};
    float q[64];
    uint32_t n;
    for (uint64_t i = 0; !atomic_load(&s->over); i++) {
        int64_t there = atomic_load(&s->n_added);
        if (there == 0)
            continue;
        int64_t id = 1 + (int64_t)(hash_mix(i) % (uint64_t)there);
        fill(q, 64, (uint64_t)id);
        if (vectors_search(s->v, q, 10, hits, &n, &e) < 0 || n == 0 || hits[0].id != id)
            return (void *)1;
    }
    return NULL;
}

static void test_searches_beside_changes(void **state)
{
    struct shared s = {.n_added = 0};
    pthread_t threads[2];
    struct err e = {0};
    float row[64];
    (void)state;
    assert_int_equal(vectors_create(&s.v, 64, 0, &e), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, search_on, &s), 0);
    for (int64_t id = 1; id <= 1000; id++) {
        int64_t passing = 1000000 + id;
        fill(row, 64, (uint64_t)id);
        assert_int_equal(vectors_add(s.v, &id, row, 1, &e), 0);
        atomic_store(&s.n_added, id);
        fill(row, 64, (uint64_t)passing);
        assert_int_equal(vectors_add(s.v, &passing, row, 1, &e), 0);
        if (id % 16 == 0)
            vectors_remove(s.v, &passing, 1);
    }
    atomic_store(&s.over, true);
    for (int i = 0; i < 2; i++) {
        void *rc;
        pthread_join(threads[i], &rc);
        assert_null(rc);
    }
    vectors_destroy(s.v);
}

static void *search_any(void *arg)
{
    struct shared *s = arg;
    struct vectors_hit hits[10];
    struct err e = {0};
    float q[64];
    uint32_t n;
    for (uint64_t i = 0; !atomic_load(&s->over); i++) {
        fill(q, 64, i);
        if (vectors_search(s->v, q, 10, hits, &n, &e) < 0)
            return (void *)1;
        for (uint32_t k = 1; k < n; k++)
            if (hits[k].score > hits[k - 1].score)
                return (void *)2;
    }
    return NULL;
}

/* Rows come and go, even all of them, while they are linked and searched. */
static void test_a_graph_beside_changes(void **state)
{
    struct shared s = {.n_added = 0};
    pthread_t thread;
    struct err e = {0};
    enum { N = 9000, DIMS = 64 };
    float *rows = mem_zalloc_n((size_t)N * DIMS, sizeof(float));
    int64_t *ids = mem_zalloc_n(N, sizeof(*ids));
    void *rc;
    (void)state;
    for (size_t i = 0; i < N; i++) {
        fill(rows + i * DIMS, DIMS, i + 1);
        ids[i] = (int64_t)i + 1;
    }
    assert_int_equal(vectors_create(&s.v, DIMS, 200, &e), 0);
    assert_int_equal(pthread_create(&thread, NULL, search_any, &s), 0);
    for (size_t at = 0; at < N; at += 300) {
        assert_int_equal(vectors_add(s.v, ids + at, rows + at * DIMS, 300, &e), 0);
        vectors_remove(s.v, ids + at, at % 900 == 0 ? 200 : 50);
    }
    vectors_remove(s.v, ids, N - 400); /* the rest is compacted and linked again */
    wait_for_links(s.v, 400 - 50);
    atomic_store(&s.over, true);
    pthread_join(thread, &rc);
    assert_null(rc);
    vectors_destroy(s.v);
    mem_free(rows);
    mem_free(ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_a_plain_search),
        cmocka_unit_test(test_removed_rows_are_not_found),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_many_vectors_get_a_graph),
        cmocka_unit_test(test_a_graph_comes_back),
        cmocka_unit_test(test_vectors_of_different_length_stay_exact),
        cmocka_unit_test(test_a_graph_beside_changes),
        cmocka_unit_test(test_searches_beside_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
