/* test_quota.c - tokens per client and day: limits, midnight, the file, slices of a shared limit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/quota.h"

#define NOON (20000u * 86400u + 43200u)

static _Atomic uint64_t clock_s = NOON;
static char dir[64], file[96];

static uint64_t now(void *ctx)
{
    (void)ctx;
    return atomic_load(&clock_s);
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/shoal-quota-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(file, sizeof(file), "%s/quota", dir);
    atomic_store(&clock_s, NOON);
    return 0;
}

static int remove_folder(void **state)
{
    char lock[128], temp[128];
    (void)state;
    snprintf(lock, sizeof(lock), "%s.lock", file);
    snprintf(temp, sizeof(temp), "%s.new", file);
    unlink(file);
    unlink(lock);
    unlink(temp);
    return rmdir(dir);
}

static struct quota *create(const char *path, struct quota_source *source)
{
    const struct quota_opts o = {.file = path, .cache_dir = "", .source = source, .now_s = now};
    struct err e = {0};
    struct quota *q;
    if (quota_create(&q, &o, &e) < 0)
        fail_msg("%s", e.msg);
    return q;
}

static struct quota_account *account(struct quota *q, const char *name, uint64_t limit)
{
    struct quota_account *a;
    struct err e = {0};
    if (quota_open_account(q, name, limit, &a, &e) < 0)
        fail_msg("%s", e.msg);
    return a;
}

static void test_a_day_has_a_limit(void **state)
{
    (void)state;
    struct quota *q = create(NULL, NULL);
    struct quota_account *a = account(q, "a", 100), *b = account(q, "b", 0);
    uint32_t retry;
    assert_true(quota_has_left(q, a, &retry));
    quota_spend(q, a, 60, 39);
    assert_true(quota_has_left(q, a, &retry));
    quota_spend(q, a, 0, 1);
    assert_false(quota_has_left(q, a, &retry));
    assert_int_equal(retry, 43200);
    quota_spend(q, b, 1000, 1000);
    assert_true(quota_has_left(q, b, &retry)); /* no limit */
    assert_ptr_equal(account(q, "a", 100), a); /* another key of the same client */
    assert_false(quota_has_left(q, a, &retry));
    account(q, "a", 200); /* the configuration changed */
    assert_true(quota_has_left(q, a, &retry));
    account(q, "a", 100);
    atomic_fetch_add(&clock_s, 43200);
    assert_true(quota_has_left(q, a, &retry)); /* the next day */
    quota_spend(q, a, 100, 0);
    assert_false(quota_has_left(q, a, &retry));
    assert_int_equal(retry, 86400);
    atomic_fetch_sub(&clock_s, 86400); /* setting the clock back grants nothing twice */
    assert_false(quota_has_left(q, a, &retry));
    quota_destroy(q);
}

static void test_the_file_is_kept(void **state)
{
    (void)state;
    struct quota *q = create(file, NULL), *other = create(file, NULL);
    struct quota_account *a = account(q, "a key, with\nodd bytes %", 100), *b;
    uint32_t retry;
    struct err e = {0};
    quota_spend(q, a, 70, 30);
    assert_false(quota_has_left(q, a, &retry));
    assert_int_equal(quota_open_account(other, "a", 5, &b, &e), SHOAL_EBUSY);
    assert_non_null(strstr(e.msg, "quota.file"));
    quota_destroy(q);
    a = account(other, "a key, with\nodd bytes %", 100); /* a restart */
    assert_false(quota_has_left(other, a, &retry));
    assert_true(quota_has_left(other, account(other, "b", 100), &retry));
    quota_destroy(other);
    atomic_fetch_add(&clock_s, 43200);
    q = create(file, NULL); /* it has expired by tomorrow */
    assert_true(quota_has_left(q, account(q, "a key, with\nodd bytes %", 100), &retry));
    quota_destroy(q);
}

/* The thread's writes persist although the server exits without flushing. */
static void test_the_file_is_written_while_running(void **state)
{
    (void)state;
    struct quota *q = create(file, NULL);
    struct quota_account *a = account(q, "a", 100);
    char text[256] = "";
    quota_spend(q, a, 70, 31);
    for (int i = 0; i < 3000 && !strstr(text, " 101 "); i++) {
        FILE *f = fopen(file, "r");
        if (f) {
            size_t n = fread(text, 1, sizeof(text) - 1, f);
            text[n] = '\0';
            fclose(f);
        }
        usleep(10000);
    }
    assert_non_null(strstr(text, "20000 101 0 a\n"));
    quota_destroy(q);
}

/* A full disk costs nothing once there is room again, even if nobody spends any more. */
static void test_a_failed_write_is_repeated(void **state)
{
    (void)state;
    char temp[128], line[512] = "";
    int log[2], old = dup(STDERR_FILENO);
    size_t n = 0;
    snprintf(temp, sizeof(temp), "%s.new", file);
    assert_int_equal(mkdir(temp, 0700), 0); /* the file cannot be written */
    assert_int_equal(pipe(log), 0);
    fflush(stderr);
    assert_int_equal(dup2(log[1], STDERR_FILENO), STDERR_FILENO);
    struct quota *q = create(file, NULL);
    quota_spend(q, account(q, "a", 100), 70, 31);
    while (!strstr(line, "cannot save") && n < sizeof(line) - 1) { /* until it has failed */
        ssize_t k = read(log[0], line + n, sizeof(line) - 1 - n);
        assert_true(k > 0);
        n += (size_t)k;
    }
    dup2(old, STDERR_FILENO);
    close(old);
    assert_int_equal(rmdir(temp), 0);
    for (int i = 0; i < 3000 && access(file, F_OK) < 0; i++)
        usleep(10000);
    assert_int_equal(access(file, F_OK), 0);
    quota_destroy(q);
    close(log[0]);
    close(log[1]);
}

static void test_a_damaged_file_counts_for_nothing(void **state)
{
    (void)state;
    uint32_t retry;
    struct quota *q = create(file, NULL);
    quota_spend(q, account(q, "a", 100), 100, 0);
    quota_destroy(q);
    FILE *f = fopen(file, "r+");
    assert_non_null(f);
    fseek(f, 20, SEEK_SET);
    int was = fgetc(f);
    fseek(f, 20, SEEK_SET);
    fputc(was ^ 1, f);
    fclose(f);
    q = create(file, NULL);
    assert_true(quota_has_left(q, account(q, "a", 100), &retry));
    quota_destroy(q);
}

/* ---- slices ---- */

struct pot { /* of one client */
    struct quota_source source;
    _Atomic uint64_t granted;
    _Atomic bool away;
    _Atomic uint32_t n_asked;
};

static int lease(struct quota_source *s, const char *name, uint64_t day, uint64_t limit,
                 uint64_t want, uint64_t *got, struct err *e)
{
    struct pot *p = (struct pot *)(void *)s;
    (void)name;
    (void)day;
    atomic_fetch_add(&p->n_asked, 1);
    if (atomic_load(&p->away))
        return err_set(e, SHOAL_EBUSY, "away");
    uint64_t had = atomic_load(&p->granted);
    do
        *got = limit - had < want ? limit - had : want;
    while (!atomic_compare_exchange_weak(&p->granted, &had, had + *got));
    return 0;
}

/* Spends 100 tokens at a time, at most n times; returns how often it succeeded. */
static uint32_t spend(struct quota *q, struct quota_account *a, uint32_t n)
{
    uint32_t done = 0, tries = 0, retry;
    while (done < n && tries < 6000) {
        if (quota_has_left(q, a, &retry)) {
            quota_spend(q, a, 50, 50);
            done++;
        } else if (retry > 1) {
            return done; /* nothing left for today */
        } else {
            usleep(10000); /* the next slice is being requested */
            tries++;
        }
    }
    return done;
}

static void test_servers_share_a_limit_in_slices(void **state)
{
    (void)state;
    static const struct quota_source_ops ops = {lease};
    struct pot pot = {.source.ops = &ops};
    struct quota *one = create(NULL, &pot.source), *two = create(NULL, &pot.source);
    struct quota_account *a = account(one, "a", 4000), *b = account(two, "a", 4000);
    uint32_t n = spend(one, a, 15); /* more than a slice of 1000 */
    assert_int_equal(n, 15);
    n += spend(two, b, 1000);
    n += spend(one, a, 1000);
    assert_in_range(n, 40, 42); /* the limit plus the last request's excess */
    assert_int_equal(atomic_load(&pot.granted), 4000);
    quota_destroy(one);
    quota_destroy(two);
}

static void test_a_server_that_is_alone_keeps_its_slice(void **state)
{
    (void)state;
    static const struct quota_source_ops ops = {lease};
    struct pot pot = {.source.ops = &ops, .away = true};
    struct quota *q = create(file, &pot.source);
    struct quota_account *a = account(q, "a", 100000);
    uint32_t retry;
    uint32_t n = 0; /* a slice is 3125 tokens */
    while (n < 1000 && quota_has_left(q, a, &retry)) {
        quota_spend(q, a, 100, 0);
        n++;
    }
    assert_int_equal(n, 32);
    assert_int_equal(retry, 1); /* more may arrive at any time */
    quota_destroy(q);
    q = create(file, &pot.source); /* a restart grants nothing twice */
    a = account(q, "a", 100000);
    assert_false(quota_has_left(q, a, &retry));
    atomic_store(&pot.away, false);
    assert_int_equal(spend(q, a, 20), 20); /* it continues */
    quota_destroy(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_day_has_a_limit),
        cmocka_unit_test_setup_teardown(test_the_file_is_kept, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_the_file_is_written_while_running, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_a_failed_write_is_repeated, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_a_damaged_file_counts_for_nothing, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_servers_share_a_limit_in_slices, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_a_server_that_is_alone_keeps_its_slice, make_folder,
                                        remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
