/* test_spool.c - the queue on disk after a crash, with a full disk and with damaged bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "mqtt/spool.h"

struct got {
    uint64_t number[4096];
    char text[4096][32];
    size_t n;
};

static char path[64];
static struct got got;

static int each(void *ctx, uint64_t number, const void *bytes, size_t n)
{
    struct got *g = ctx;
    assert_true(n < sizeof(g->text[0]) || n > 1000);
    g->number[g->n] = number;
    snprintf(g->text[g->n++], sizeof(g->text[0]), "%.*s", n < 31 ? (int)n : 31,
             (const char *)bytes);
    return 0;
}

static struct spool *open_max(size_t max_bytes)
{
    const struct spool_opts o = {path, max_bytes};
    struct spool *s;
    struct err e = {0};
    got.n = 0;
    if (spool_open(&s, &o, each, &got, &e) < 0)
        fail_msg("%s", e.msg);
    return s;
}

static uint64_t put(struct spool *s, const char *text)
{
    struct err e = {0};
    uint64_t number = 0;
    if (spool_put(s, text, strlen(text), &number, &e) < 0)
        fail_msg("%s", e.msg);
    return number;
}

static int begin(void **state)
{
    (void)state;
    snprintf(path, sizeof(path), "/tmp/shoal-spool-XXXXXX");
    int fd = mkstemp(path);
    close(fd);
    unlink(path);
    return 0;
}

static int end(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static void test_what_is_not_done_comes_again(void **state)
{
    (void)state;
    struct spool *s = open_max(0);
    uint64_t salt = spool_salt(s), a = put(s, "a"), b = put(s, "b"), c = put(s, "c");
    spool_done(s, b);
    spool_done(s, b); /* calling it twice is fine */
    spool_done(s, 999);
    spool_close(s);
    s = open_max(0);
    assert_int_equal(got.n, 2);
    assert_int_equal(got.number[0], a);
    assert_string_equal(got.text[0], "a");
    assert_int_equal(got.number[1], c);
    assert_string_equal(got.text[1], "c");
    assert_true(spool_salt(s) == salt);
    spool_done(s, a);
    spool_done(s, c);
    assert_true(put(s, "d") > c);
    spool_close(s);
    s = open_max(0);
    assert_int_equal(got.n, 1);
    assert_string_equal(got.text[0], "d");
    spool_close(s);
}

static void test_numbers_are_not_used_again_after_a_rewrite(void **state)
{
    (void)state;
    struct spool *s = open_max(0);
    struct spool_stats st;
    char text[1001];
    uint64_t last = 0, kept = put(s, "stays");
    memset(text, 'x', 1000);
    text[1000] = '\0';
    for (int i = 0; i < 1000; i++) {
        last = put(s, text);
        spool_done(s, last);
    }
    spool_get_stats(s, &st);
    assert_true(st.file_bytes < 400000); /* of a million that were written */
    spool_close(s);
    s = open_max(0);
    assert_int_equal(got.n, 1);
    assert_int_equal(got.number[0], kept);
    assert_true(put(s, "next") > last);
    spool_done(s, kept);
    spool_close(s);
    s = open_max(0);
    assert_int_equal(got.n, 1);
    assert_string_equal(got.text[0], "next");
    spool_close(s);
}

static void test_it_is_bounded(void **state)
{
    (void)state;
    struct spool *s = open_max(100);
    struct err e = {0};
    char text[61];
    uint64_t number;
    memset(text, 'x', 60);
    text[60] = '\0';
    uint64_t first = put(s, text);
    assert_int_equal(spool_put(s, text, 60, &number, &e), SHOAL_ELIMIT);
    assert_non_null(strstr(e.msg, "60 of 100 bytes"));
    spool_done(s, first);
    put(s, text);
    spool_close(s);
}

/* The file is truncated or changed at every byte: complete records before the damage are kept. */
static void test_a_damaged_end_is_dropped(void **state)
{
    (void)state;
    struct spool *s = open_max(0);
    struct stat st;
    char bytes[4096];
    put(s, "one");
    assert_int_equal(stat(path, &st), 0);
    size_t one = (size_t)st.st_size;
    put(s, "two");
    spool_close(s);
    int fd = open(path, O_RDONLY);
    size_t n = (size_t)read(fd, bytes, sizeof(bytes));
    close(fd);
    assert_true(n > one);
    for (size_t cut = one; cut <= n; cut++) {
        fd = open(path, O_WRONLY | O_TRUNC);
        assert_int_equal(write(fd, bytes, cut), cut);
        close(fd);
        struct spool_stats stats;
        s = open_max(0);
        assert_int_equal(got.n, cut == n ? 2 : 1);
        assert_string_equal(got.text[0], "one");
        spool_get_stats(s, &stats);
        assert_int_equal(stats.dropped_bytes, cut == n ? 0 : cut - one);
        uint64_t next = put(s, "three"); /* the damage does not return */
        spool_close(s);
        s = open_max(0);
        assert_int_equal(got.number[got.n - 1], next);
        assert_string_equal(got.text[got.n - 1], "three");
        spool_close(s);
    }
    for (size_t at = one; at < n; at++) {
        bytes[at] ^= 0x10;
        fd = open(path, O_WRONLY | O_TRUNC);
        assert_int_equal(write(fd, bytes, n), n);
        close(fd);
        bytes[at] ^= 0x10;
        s = open_max(0);
        assert_int_equal(got.n, 1);
        assert_string_equal(got.text[0], "one");
        spool_close(s);
    }
}

static void test_another_file_is_refused(void **state)
{
    (void)state;
    const struct spool_opts o = {path, 0};
    struct spool *s;
    struct err e = {0};
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "#!/bin/sh\necho this is a script of somebody\n", 43), 43);
    close(fd);
    assert_int_equal(spool_open(&s, &o, each, &got, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "not a Shoal queue"));
    unlink(path);
    s = open_max(0);
    struct spool *other;
    assert_int_equal(spool_open(&other, &o, each, &got, &e), SHOAL_ELIMIT);
    assert_non_null(strstr(e.msg, "another process"));
    spool_close(s);
}

static void test_a_full_disk_leaves_the_file_whole(void **state)
{
    (void)state;
    struct spool *s = open_max(0);
    struct spool_stats st;
    struct rlimit before, small;
    struct err e = {0};
    char text[501];
    uint64_t number;
    memset(text, 'x', 500);
    text[500] = '\0';
    put(s, "kept");
    spool_get_stats(s, &st);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = st.file_bytes + 100; /* in the middle of the next record */
    setrlimit(RLIMIT_FSIZE, &small);
    int rc = spool_put(s, text, 500, &number, &e);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(rc, SHOAL_EIO);
    put(s, "later");
    spool_close(s);
    s = open_max(0);
    assert_int_equal(got.n, 2);
    assert_string_equal(got.text[0], "kept");
    assert_string_equal(got.text[1], "later");
    spool_close(s);
}

/* A process killed while writing has kept everything that it acknowledged. */
static void test_kill_loses_nothing(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++) {
        int pipes[2];
        uint64_t number = 0, last = 0;
        size_t n = 0;
        assert_int_equal(pipe(pipes), 0);
        unlink(path);
        pid_t child = fork();
        if (child == 0) {
            struct spool *s = open_max(0);
            for (;;) {
                uint64_t x = put(s, "an alarm");
                if (write(pipes[1], &x, sizeof(x)) < 0)
                    _exit(0);
            }
        }
        close(pipes[1]);
        while (n < 20 + 7 * (size_t)round && read(pipes[0], &number, sizeof(number)) == 8)
            n++, last = number;
        kill(child, SIGKILL);
        while (read(pipes[0], &number, sizeof(number)) == 8) /* its output before it exited */
            n++, last = number;
        close(pipes[0]);
        waitpid(child, NULL, 0);
        struct spool *s = open_max(0);
        assert_true(got.n >= n); /* the last one may be stored but not acknowledged */
        assert_true(got.n <= n + 1);
        assert_int_equal(got.number[n - 1], last);
        spool_close(s);
    }
}

static void test_memory_failures_are_reported(void **state)
{
    (void)state;
    const struct spool_opts o = {path, 0};
    bool opened = false;
    for (uint64_t i = 1; i < 20 && !opened; i++) {
        struct spool *s = NULL;
        struct err e = {0};
        uint64_t number;
        mem_fail_at(i);
        int rc = spool_open(&s, &o, each, &got, &e);
        if (rc == 0)
            rc = spool_put(s, "x", 1, &number, &e);
        opened = rc == 0;
        mem_fail_at(0);
        if (rc < 0)
            assert_int_equal(rc, SHOAL_ENOMEM);
        spool_close(s);
    }
    assert_true(opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_not_done_comes_again, begin, end),
        cmocka_unit_test_setup_teardown(test_numbers_are_not_used_again_after_a_rewrite, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_it_is_bounded, begin, end),
        cmocka_unit_test_setup_teardown(test_a_damaged_end_is_dropped, begin, end),
        cmocka_unit_test_setup_teardown(test_another_file_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(test_a_full_disk_leaves_the_file_whole, begin, end),
        cmocka_unit_test_setup_teardown(test_kill_loses_nothing, begin, end),
        cmocka_unit_test_setup_teardown(test_memory_failures_are_reported, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
