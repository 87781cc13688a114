/* test_readings_store.c - the history of readings: what is added is found, and it stays small. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/readings_store.h"

struct found {
    int n;
    int64_t first_ms, last_ms;
    double last;
    char sensor[16], unit[16];
};

static int on_row(void *ctx, const struct readings_store_row *r)
{
    struct found *f = ctx;
    if (f->n++ == 0)
        f->first_ms = r->time_ms;
    assert_true(r->time_ms >= f->last_ms);
    f->last_ms = r->time_ms;
    f->last = r->value;
    snprintf(f->sensor, sizeof(f->sensor), "%s", r->sensor);
    snprintf(f->unit, sizeof(f->unit), "%s", r->unit);
    return 0;
}

static struct found find(struct readings_store *s, const char *sensor, int64_t from, int64_t until)
{
    const struct readings_store_query q = {sensor, from, until};
    struct found f = {0};
    struct err e = {0};
    assert_int_equal(readings_store_each(s, &q, on_row, &f, &e), 0);
    return f;
}

static void remove_file(const char *path)
{
    char name[128];
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        unlink(name);
    }
}

static void test_add_and_find(void **state)
{
    char path[64];
    const struct readings_store_opts o = {.keep_ms = 1000}, must = {.must_exist = true};
    const struct readings_store_row rows[] = {
        {"oil", "bar", 5000, 1.5}, {"flow", "", 5000, 7}, {"oil", "bar", 5100, 2.5}};
    struct readings_store *s;
    struct err e = {0};
    (void)state;
    snprintf(path, sizeof(path), "/tmp/shoal-readings-%d.db", (int)getpid());
    assert_true(readings_store_open(&s, path, &must, &e) < 0);
    assert_int_equal(readings_store_open(&s, path, &o, &e), 0);
    assert_int_equal(readings_store_add(s, rows, 3, 5100, &e), 0);
    struct found f = find(s, NULL, 0, 0);
    assert_int_equal(f.n, 3);
    f = find(s, "oil", 0, 0);
    assert_int_equal(f.n, 2);
    assert_true(f.last == 2.5);
    assert_string_equal(f.unit, "bar");
    assert_int_equal(find(s, "oil", 5001, 0).n, 1);
    assert_int_equal(find(s, "oil", 0, 5100).n, 1);
    assert_int_equal(find(s, "nosuch", 0, 0).n, 0);
    const struct readings_store_row again = {"oil", "bar", 5100, 3};
    assert_int_equal(readings_store_add(s, &again, 1, 5100, &e), 0);
    f = find(s, "oil", 0, 0);
    assert_true(f.n == 2 && f.last == 3);
    const struct readings_store_row later = {"oil", "MPa", 6050, 4};
    assert_int_equal(readings_store_add(s, &later, 1, 6050, &e), 0);
    f = find(s, NULL, 0, 0); /* those of 5000 are too old */
    assert_true(f.n == 2 && f.first_ms == 5100);
    assert_string_equal(f.unit, "MPa");
    readings_store_close(s);
    assert_int_equal(readings_store_open(&s, path, &must, &e), 0);
    assert_int_equal(find(s, NULL, 0, 0).n, 2);
    readings_store_close(s);
    remove_file(path);
}

/* Millions of readings would be the same: the oldest go, the newest stay. */
static void test_it_is_bounded(void **state)
{
    enum { BATCH = 2000, BATCHES = 30 };
    const uint64_t most = 256 << 10;
    const struct readings_store_opts o = {.max_bytes = most};
    struct readings_store_row *rows = calloc(BATCH, sizeof(*rows));
    char path[64];
    struct readings_store *s;
    struct stat st;
    struct err e = {0};
    (void)state;
    snprintf(path, sizeof(path), "/tmp/shoal-bounded-%d.db", (int)getpid());
    assert_int_equal(readings_store_open(&s, path, &o, &e), 0);
    for (int b = 0; b < BATCHES; b++) {
        for (int i = 0; i < BATCH; i++)
            rows[i] = (struct readings_store_row){"oil", "", 1 + b * BATCH + i, 0.1 * i};
        assert_int_equal(readings_store_add(s, rows, BATCH, 0, &e), 0);
    }
    struct found f = find(s, NULL, 0, 0);
    assert_int_equal(f.last_ms, BATCHES * BATCH);
    assert_true(f.n > 2 * BATCH && f.n < 20 * BATCH);
    assert_int_equal(f.last_ms - f.first_ms + 1, f.n); /* without holes */
    readings_store_close(s);
    assert_int_equal(stat(path, &st), 0);
    assert_true((uint64_t)st.st_size < most + (128 << 10)); /* and one batch */
    remove_file(path);
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add_and_find),
        cmocka_unit_test(test_it_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
