/* test_nats_conf.c - configurations of NATS servers, compared with tests/data/nats: who may publish
 * and read what stands there.  SHOAL_GOLDEN=1 writes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/control/nats_conf.h"
#include "support/script.h"

static const char *const hosts[] = {"hub1", "10.0.0.2", "fd00::3", "d", "e"};

static struct nats_conf conf_of(size_t n, size_t index)
{
    return (struct nats_conf){.cluster = "farm",
                              .hosts = hosts,
                              .n_servers = n,
                              .index = index,
                              .port = {4222, 4223, 4224},
                              .route = {6222, 6223, 6224},
                              .secret = "s3cret"};
}

static void compare(const char *name, size_t n, size_t index)
{
    const struct nats_conf c = conf_of(n, index);
    char path[512];
    struct buf out, want;
    struct err e = {0};
    buf_init(&out, 1 << 20);
    buf_init(&want, 1 << 20);
    assert_int_equal(nats_conf_put(&out, &c, &e), 0);
    snprintf(path, sizeof(path), "%s/nats/%s", SHOAL_TEST_DATA, name);
    if (getenv("SHOAL_GOLDEN"))
        script_write(path, buf_str(&out), out.len);
    assert_int_equal(file_read(path, &want, &e), 0);
    assert_string_equal(buf_str(&out), buf_str(&want));
    buf_fini(&out);
    buf_fini(&want);
}

static void test_files(void **state)
{
    (void)state;
    compare("one.conf", 1, 0);
    compare("second_of_three.conf", 3, 1);
}

static void test_refused(void **state)
{
    static const char *const bad[] = {"hub1", "a b", "c"};
    struct err e = {0};
    struct buf out;
    (void)state;
    buf_init(&out, 1 << 20);
    for (size_t n = 0; n <= 6; n++) {
        const struct nats_conf c = conf_of(n, 0);
        if (n != 1 && n != 3 && n != 5)
            assert_int_equal(nats_conf_put(&out, &c, &e), SHOAL_EINVAL);
    }
    struct nats_conf c = conf_of(3, 0);
    c.hosts = bad;
    assert_int_equal(nats_conf_put(&out, &c, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "'a b'"));
    c = conf_of(1, 0);
    c.cluster = "Farm.1";
    assert_int_equal(nats_conf_put(&out, &c, &e), SHOAL_EINVAL);
    assert_int_equal(out.len, 0);
    buf_fini(&out);
}

static void test_hosts(void **state)
{
    char text[300];
    (void)state;
    assert_true(nats_conf_host_ok("a-1.example"));
    assert_true(nats_conf_host_ok("fd00::3"));
    assert_false(nats_conf_host_ok(""));
    assert_false(nats_conf_host_ok("a\"b"));
    assert_false(nats_conf_host_ok("a_b"));
    memset(text, 'a', sizeof(text));
    text[253] = '\0';
    assert_true(nats_conf_host_ok(text));
    text[253] = 'a';
    text[254] = '\0';
    assert_false(nats_conf_host_ok(text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
