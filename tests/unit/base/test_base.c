/* test_base.c - errors, memory, characters, strings, buffers, readers, maps, hashes, the nearest
 * word and state files. */
#include <ctype.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/ascii.h"
#include "base/buf.h"
#include "base/file/file_lock.h"
#include "base/file/file_read.h"
#include "base/file/file_replace.h"
#include "base/file/state_file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "base/order.h"
#include "base/rd.h"
#include "base/str.h"
#include "base/strmap.h"
#include "base/work_time.h"

static void test_err_wraps_context_in_front(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(err_set(&e, SHOAL_EIO, "cannot read %s", "x"), SHOAL_EIO);
    assert_int_equal(err_wrap(&e, "model %d", 3), SHOAL_EIO);
    assert_string_equal(e.msg, "model 3: cannot read x");
    assert_string_equal(err_name(SHOAL_EIO), "IO");
    assert_string_equal(err_text(SHOAL_ELIMIT), "limit exceeded");
}

/* ctype.h in the C locale is the reference, for all bytes. */
static void test_ascii_is_ctype_of_the_c_locale(void **state)
{
    (void)state;
    for (int i = 0; i < 256; i++) {
        char c = (char)i;
        assert_int_equal(ascii_is_digit(c), isdigit(i) != 0);
        assert_int_equal(ascii_is_upper(c), isupper(i) != 0);
        assert_int_equal(ascii_is_lower(c), islower(i) != 0);
        assert_int_equal(ascii_is_letter(c), isalpha(i) != 0);
        assert_int_equal(ascii_is_space(c), isspace(i) != 0);
        assert_int_equal((unsigned char)ascii_lower(c), tolower(i));
        assert_int_equal((unsigned char)ascii_upper(c), toupper(i));
        char text[2] = {c, '\0'};
        assert_int_equal(ascii_hex(c), isxdigit(i) ? strtol(text, NULL, 16) : -1);
    }
}

static void test_str_starts_and_ends(void **state)
{
    (void)state;
    assert_true(str_starts(STR("Tree=1"), "Tree="));
    assert_true(str_starts(STR("Tree="), "Tree="));
    assert_true(str_starts(STR(""), ""));
    assert_false(str_starts(STR("Tree"), "Tree="));
    assert_false(str_starts((struct str){0}, ""));
    assert_true(str_ends_with("model.onnx", ".onnx"));
    assert_true(str_ends_with(".onnx", ".onnx"));
    assert_true(str_ends_with("x", ""));
    assert_false(str_ends_with("onnx", ".onnx"));
    assert_false(str_ends_with("model.onnx.part", ".onnx"));
}

static void test_order_ascends(void **state)
{
    (void)state;
    double d[] = {2, -1, 1e300, 0};
    uint32_t u[] = {3, UINT32_MAX, 0, 7}; /* a difference would overflow */
    const char *t[] = {"b", "", "ab", "a"};
    qsort(d, 4, sizeof(d[0]), order_double);
    qsort(u, 4, sizeof(u[0]), order_u32);
    qsort(t, 4, sizeof(t[0]), order_text);
    for (int i = 1; i < 4; i++) {
        assert_true(d[i - 1] < d[i]);
        assert_true(u[i - 1] < u[i]);
        assert_true(strcmp(t[i - 1], t[i]) < 0);
    }
}

static void test_buf_stops_at_its_limit(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 10);
    buf_puts(&b, "12345");
    buf_printf(&b, "%d", 67890);
    assert_int_equal(b.rc, 0);
    assert_string_equal(buf_str(&b), "1234567890");
    buf_putc(&b, 'x');
    assert_int_equal(b.rc, SHOAL_ELIMIT);
    assert_int_equal(b.len, 10);
    assert_null(buf_take(&b, NULL));
    buf_fini(&b);
}

static void test_buf_reports_failed_allocation(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 1000);
    mem_fail_at(1);
    buf_puts(&b, "x");
    assert_int_equal(b.rc, SHOAL_ENOMEM);
    buf_clear(&b);
    buf_puts(&b, "x");
    assert_string_equal(buf_str(&b), "x");
    buf_fini(&b);
}

static void test_rd_is_sticky_at_the_end(void **state)
{
    (void)state;
    const uint8_t bytes[] = {1, 0, 0, 0, 7};
    struct rd r = rd_make(bytes, sizeof(bytes));
    assert_int_equal(rd_u32(&r), 1);
    assert_int_equal(rd_u16(&r), 0);
    assert_true(r.bad);
    assert_int_equal(rd_u8(&r), 0);
    struct rd huge = rd_make(bytes, sizeof(bytes));
    assert_null(rd_take(&huge, UINT64_MAX));
}

static void test_strmap_grows_and_keeps_the_first(void **state)
{
    (void)state;
    static char keys[1000][8];
    struct strmap m;
    assert_int_equal(strmap_init(&m, 1), 0);
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(keys[i], sizeof(keys[i]), "k%u", i);
        assert_int_equal(strmap_put(&m, keys[i], strlen(keys[i]), i), 0);
    }
    assert_int_equal(strmap_put(&m, "k7", 2, 99), 1);
    uint32_t v = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(strmap_get(&m, keys[i], strlen(keys[i]), &v));
        assert_int_equal(v, i);
    }
    assert_false(strmap_get(&m, "k1000", 5, &v));
    strmap_fini(&m);
}

/* Files in the cache folder are named and checked by hashes: a value must never change. */
static void test_hash_of_any_length_stays(void **state)
{
    uint8_t bytes[40];
    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(0xf1 * (i + 3));
    for (size_t n = 0; n <= sizeof(bytes); n++) {
        uint64_t want = hash_mix(7 ^ (0x9e3779b97f4a7c15u * (n + 1)));
        for (size_t at = 0; at <= n; at += 8) {
            uint64_t word = 0;
            for (size_t k = 0; k < 8 && at + k < n; k++)
                word |= (uint64_t)bytes[at + k] << (8 * k);
            want =
                at + 8 <= n ? hash_mix(want ^ word) + 0x9e3779b97f4a7c15u : hash_mix(want ^ word);
        }
        /* a copy that ends with the bytes, so that a sanitizer detects every overread */
        uint8_t *copy = malloc(n + !n);
        assert_non_null(copy);
        memcpy(copy, bytes, n);
        assert_true(hash_bytes(copy, n, 7) == want);
        free(copy);
    }
    assert_true(hash_bytes("abc", 3, 0) == 0x9093faa279ea4c14u);
}

static void test_nearest_word(void **state)
{
    (void)state;
    static const char *const words[] = {"temp", "top-k", "threads", "max-tokens", NULL};
    static const struct {
        const char *typed, *want;
    } cases[] = {{"tmp", "temp"},   {"temperature", NULL}, {"thread", "threads"},
                 {"topk", "top-k"}, {"max", "max-tokens"}, {"xyzzy", NULL},
                 {"tepm", "temp"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *got = nearest_word(cases[i].typed, words);
        if (cases[i].want)
            assert_string_equal(got, cases[i].want);
        else
            assert_null(got);
    }
}

/* A file belongs to one owner at a time, and is free again when the owner exits. */
static void test_file_lock(void **state)
{
    char path[] = "/tmp/shoal-lock-XXXXXX", lock[sizeof(path) + 5];
    int file = mkstemp(path), first, second;
    struct err e = {0};
    (void)state;
    assert_true(file >= 0);
    assert_int_equal(file_lock(&first, path, &e), 0);
    assert_int_equal(file_lock(&second, path, &e), SHOAL_EBUSY);
    assert_int_equal(second, -1);
    assert_non_null(strstr(e.msg, path));
    close(first);
    assert_int_equal(file_lock(&second, path, &e), 0);
    close(second);
    assert_int_equal(file_lock(&first, "/nowhere/at/all", &e), SHOAL_EIO);
    snprintf(lock, sizeof(lock), "%s.lock", path);
    unlink(lock);
    unlink(path);
    close(file);
}

static void write_text(const char *path, const char *text)
{
    struct err e = {0};
    assert_int_equal(file_replace(path, text, strlen(text), &e), 0);
}

static void assert_text(const char *path, const char *want)
{
    struct err e = {0};
    struct buf b;
    buf_init(&b, 64);
    assert_int_equal(file_read(path, &b, &e), 0);
    assert_string_equal(buf_str(&b), want);
    buf_fini(&b);
}

/* Files that earlier versions kept in the cache folder move to the state folder, once. */
static void test_state_moves_out_of_the_cache(void **state)
{
    char dir[] = "/tmp/shoal-state-XXXXXX", cache[64], old[96], path[128], want[128], lock[128];
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(cache, sizeof(cache), "%s/cache", dir);
    snprintf(old, sizeof(old), "%s/queue", cache);
    snprintf(lock, sizeof(lock), "%s.lock", old);
    snprintf(want, sizeof(want), "%s/state/shoal/queue", dir);
    snprintf(path, sizeof(path), "%s/state", dir);
    unsetenv("STATE_DIRECTORY");
    setenv("XDG_STATE_HOME", path, 1);
    assert_int_equal(mkdir(cache, 0700), 0);

    write_text(old, "first");
    int used = open(old, O_RDONLY | O_CLOEXEC); /* an earlier version is running */
    assert_int_equal(flock(used, LOCK_EX), 0);
    assert_true(state_file_find(path, sizeof(path), "queue", cache));
    assert_string_equal(path, want);
    assert_text(old, "first");
    assert_int_equal(access(want, F_OK), -1);
    close(used);
    assert_true(state_file_find(path, sizeof(path), "queue", cache));
    assert_int_equal(access(old, F_OK), -1);
    assert_text(want, "first");
    write_text(old, "second"); /* there is one already: it stays */
    assert_true(state_file_find(path, sizeof(path), "queue", cache));
    assert_text(want, "first");
    assert_text(old, "second");

    unsetenv("XDG_STATE_HOME");
    char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    unsetenv("HOME");
    assert_true(state_file_find(path, sizeof(path), "queue", cache));
    assert_string_equal(path, old);
    assert_false(state_file_find(path, sizeof(path), "queue", NULL));
    if (home)
        setenv("HOME", home, 1);
    free(home);
    unlink(old);
    unlink(lock);
    unlink(want);
    rmdir(cache);
    for (int i = 0; i < 3; i++) { /* state/shoal, state, and the folder itself */
        *strrchr(want, '/') = '\0';
        assert_int_equal(rmdir(want), 0);
    }
}

static void test_work_time(void **state)
{
    const struct work_time_policy *refuse = &work_time_refuse, *choose = &work_time_choose;
    static const struct work_time_rates known = {
        .queue_ns = 5, .prefill_ns = 2, .token_ns = 10, .first_ns = 30};
    static const struct work_time_rates unknown = {.queue_ns = 5};
    (void)state;
    /* a measured model gets the same result from both */
    struct work_time a = work_time_of(refuse, &known, 20, 3);
    struct work_time b = work_time_of(choose, &known, 20, 3);
    assert_true(a.prefill_ns == 40 && a.decode_ns == 30 && a.total_ns == 75);
    assert_memory_equal(&a, &b, sizeof(a));
    assert_true(work_time_of(refuse, &known, 10, 0).total_ns == 35); /* no less than first_ns */
    assert_true(work_time_of_units(refuse, &known, 20).total_ns == 45);
    /* an unmeasured one is admitted, but not preferred */
    assert_true(work_time_of(refuse, &unknown, 20, 3).total_ns == 5);
    assert_true(work_time_of(choose, &unknown, 20, 3).total_ns == 5 + 20 * 2e5 + 3 * 2e6);
    assert_true(work_time_of_units(refuse, &unknown, 20).total_ns == 5);
    assert_true(work_time_of_units(choose, &unknown, 20).total_ns == 5 + 20 * 5e4);
    assert_true(work_time_tokens(refuse, 40, 100) == 40 && work_time_tokens(choose, 40, 100) == 40);
    assert_true(work_time_tokens(refuse, 40, 10) == 10 && work_time_tokens(choose, 40, 10) == 10);
    assert_true(work_time_tokens(refuse, 0, 10) == 10 && work_time_tokens(choose, 40, 0) == 40);
    assert_true(work_time_tokens(refuse, 0, 0) == 1 && work_time_tokens(choose, 0, 0) == 64);
    assert_true(work_time_sure(refuse, 100, 0.125) == 125 && work_time_sure(refuse, 100, 9) == 150);
    assert_true(work_time_sure(refuse, 100, 0) == 100 && work_time_sure(choose, 100, 0) == 105);
    assert_true(work_time_sure(choose, 100, 0.5) == 150 && work_time_sure(choose, 100, 2) == 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_work_time),
        cmocka_unit_test(test_file_lock),
        cmocka_unit_test(test_err_wraps_context_in_front),
        cmocka_unit_test(test_ascii_is_ctype_of_the_c_locale),
        cmocka_unit_test(test_str_starts_and_ends),
        cmocka_unit_test(test_order_ascends),
        cmocka_unit_test(test_buf_stops_at_its_limit),
        cmocka_unit_test(test_buf_reports_failed_allocation),
        cmocka_unit_test(test_rd_is_sticky_at_the_end),
        cmocka_unit_test(test_strmap_grows_and_keeps_the_first),
        cmocka_unit_test(test_hash_of_any_length_stays),
        cmocka_unit_test(test_nearest_word),
        cmocka_unit_test(test_state_moves_out_of_the_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
