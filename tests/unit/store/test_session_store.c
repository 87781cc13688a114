/* test_session_store.c - conversations in a file: versions, tenants, expiry, and invalid
 * locations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/session/session_keys.h"
#include "store/session/session_store.h"

static char dir[64];
static struct session_keys *keys;

static int make_dir(void **state)
{
    static const char text[] = "* 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    struct err e;
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/shoal-sessions-XXXXXX");
    return mkdtemp(dir) && session_keys_parse(&keys, text, strlen(text), "x", &e) == 0 ? 0 : -1;
}

static int remove_dir(void **state)
{
    char command[96];
    (void)state;
    session_keys_close(keys);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

static struct session_store *open_store(uint32_t ttl_s)
{
    char place[96];
    struct session_store *s;
    struct err e = {0};
    snprintf(place, sizeof(place), "sqlite:%s/s.db", dir);
    const struct session_store_opts o = {.place = place, .keys = keys, .ttl_s = ttl_s};
    if (session_store_open(&s, &o, &e) < 0)
        fail_msg("%s", e.msg);
    return s;
}

static uint64_t is(struct session_store *s, const char *tenant, const char *id, const char *text)
{
    struct buf b;
    struct err e = {0};
    uint64_t version;
    buf_init(&b, 1000);
    if (session_store_load(s, tenant, id, &b, &version, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(buf_str(&b), text);
    buf_fini(&b);
    return version;
}

static void test_of_two_at_once_one_is_told(void **state)
{
    struct session_store *one = open_store(100), *two = open_store(100);
    struct err e = {0};
    uint64_t v = is(one, "anna", "s", ""), w = v;
    (void)state;
    assert_int_equal(v, 0);
    assert_int_equal(session_store_save(one, "anna", "s", "a", 1, &v, &e), 0);
    assert_int_equal(v, 1);
    assert_int_equal(session_store_save(two, "anna", "s", "b", 1, &w, &e), SHOAL_EBUSY);
    w = is(two, "anna", "s", "a");
    assert_int_equal(session_store_save(two, "anna", "s", "ab", 2, &w, &e), 0);
    assert_int_equal(is(one, "anna", "s", "ab"), 2);
    is(one, "ben", "s", "");
    is(one, "anna", "t", "");
    assert_int_equal(session_store_delete(one, "ben", "s", &e), SHOAL_ENOTFOUND);
    assert_int_equal(session_store_delete(one, "anna", "s", &e), 0);
    assert_int_equal(is(two, "anna", "s", ""), 0);
    session_store_close(one);
    session_store_close(two);
}

static void test_an_end_of_life(void **state)
{
    struct session_store *s = open_store(0); /* expires at once */
    struct err e = {0};
    uint64_t v = 0;
    (void)state;
    assert_int_equal(session_store_save(s, "a", "old", "x", 1, &v, &e), 0);
    assert_int_equal(is(s, "a", "old", ""), 0);
    v = 0; /* it can start over */
    assert_int_equal(session_store_save(s, "a", "old", "y", 1, &v, &e), 0);
    session_store_close(s);
}

static void test_places(void **state)
{
    static const char *const bad[] = {"",
                                      "sqlite:",
                                      "mysql:x",
                                      "redis://",
                                      "redis://x",
                                      "redis://x:0",
                                      "redis://:6379",
                                      "redis://x:6379/y",
                                      "sqlite:/nonexistent/x.db"};
    struct session_store *s;
    struct buf b;
    struct err e = {0};
    uint64_t v;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct session_store_opts o = {.place = bad[i], .keys = keys, .ttl_s = 1};
        if (session_store_open(&s, &o, &e) == 0)
            fail_msg("'%s' was opened", bad[i]);
    }
    /* Redis is down: opening works, and every call reports it */
    const struct session_store_opts o = {.place = "redis://127.0.0.1:1", .keys = keys, .ttl_s = 1};
    int rc = session_store_open(&s, &o, &e);
    if (rc == SHOAL_EUNSUPPORTED)
        return; /* without hiredis: the message names its package */
    assert_int_equal(rc, 0);
    buf_init(&b, 1000);
    for (int i = 0; i < 2; i++)
        assert_int_equal(session_store_load(s, "a", "s", &b, &v, &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "Redis at 127.0.0.1:1 is unavailable"));
    buf_fini(&b);
    session_store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_two_at_once_one_is_told),
        cmocka_unit_test(test_an_end_of_life),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
