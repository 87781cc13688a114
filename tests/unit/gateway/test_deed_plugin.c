/* test_deed_plugin.c - plug-ins are opened once, called side by side, and given up if they hang. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "gateway/deeds/deed_plugin.h"

#define LONG_MS 60000u

static struct deed_plugins *all;
static struct err why;

static int run(const char *path, const char *payload, uint32_t ms, char *out, size_t cap)
{
    struct buf b;
    why = (struct err){0};
    buf_init(&b, cap - 1);
    int rc = deed_plugins_run(all, path, payload, strlen(payload), "key-1", ms, &b, &why);
    memset(out, 0, cap);
    memcpy(out, buf_str(&b), b.len);
    buf_fini(&b);
    return rc;
}

static int setup(void **state)
{
    (void)state;
    /* as a careful installation leaves them, whatever the umask of the build was */
    assert_int_equal(chmod(WORDS_PLUGIN, 0755), 0);
    assert_int_equal(chmod(ODD_PLUGIN, 0755), 0);
    assert_int_equal(chmod(OLD_PLUGIN, 0755), 0);
    return deed_plugins_create(&all, &why);
}

static int teardown(void **state)
{
    (void)state;
    deed_plugins_destroy(all);
    return 0;
}

static void test_the_example(void **state)
{
    char out[200];
    (void)state;
    assert_int_equal(run(WORDS_PLUGIN, "turn on the light", LONG_MS, out, sizeof(out)), 0);
    assert_string_equal(out, "{\"words\": 4, \"call\": 1}");
    assert_int_equal(run(WORDS_PLUGIN, "  two\twords ", LONG_MS, out, sizeof(out)), 0);
    assert_string_equal(out, "{\"words\": 2, \"call\": 2}"); /* the same state */
    assert_int_equal(run(WORDS_PLUGIN, "  ", LONG_MS, out, sizeof(out)), SHOAL_EIO);
    assert_non_null(strstr(why.msg, "there is no word in it"));
}

static void test_what_is_no_plugin(void **state)
{
    char out[200];
    (void)state;
    assert_int_equal(run("/no/such/plugin.so", "x", LONG_MS, out, sizeof(out)), SHOAL_ENOTFOUND);
    assert_int_equal(run(OLD_PLUGIN, "x", LONG_MS, out, sizeof(out)), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(why.msg, "was built for version 2, this server has 1"));
    assert_int_equal(chmod(ODD_PLUGIN, 0757), 0);
    assert_int_equal(run(ODD_PLUGIN, "x", LONG_MS, out, sizeof(out)), SHOAL_EINVAL);
    assert_non_null(strstr(why.msg, "chmod go-w"));
    assert_int_equal(chmod(ODD_PLUGIN, 0755), 0);
    char text[] = "/tmp/shoal-plugin-XXXXXX";
    int fd = mkstemp(text);
    assert_true(fd >= 0 && write(fd, "text", 4) == 4 && close(fd) == 0);
    assert_int_equal(run(text, "x", LONG_MS, out, sizeof(out)), SHOAL_ENOTFOUND);
    unlink(text);
}

static void test_answers(void **state)
{
    char out[200], small[16];
    (void)state;
    assert_int_equal(run(ODD_PLUGIN, "x", LONG_MS, out, sizeof(out)), 0);
    assert_string_equal(out, "key-1");
    assert_int_equal(run(ODD_PLUGIN, "fail without a word", LONG_MS, out, sizeof(out)), SHOAL_EIO);
    assert_int_equal(run(ODD_PLUGIN, "long", LONG_MS, small, sizeof(small)), SHOAL_ELIMIT);
    /* it looks at its time and returns by itself; whether before or after it was given up is open
     */
    int rc = run(ODD_PLUGIN, "until its time is over", 20, out, sizeof(out));
    assert_true(rc == SHOAL_EDEADLINE || rc == 0);
}

static void *call_odd(void *arg)
{
    struct buf b;
    struct err e = {0};
    buf_init(&b, 100);
    for (int i = 0; i < 50; i++) {
        buf_clear(&b);
        if (deed_plugins_run(all, ODD_PLUGIN, "x", 1, arg, LONG_MS, &b, &e) < 0 ||
            strcmp(buf_str(&b), arg) != 0)
            return (void *)1;
    }
    buf_fini(&b);
    return NULL;
}

static void test_calls_side_by_side(void **state)
{
    static char keys[4][8] = {"a", "b", "c", "d"};
    pthread_t threads[4];
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_odd, keys[i]), 0);
    for (int i = 0; i < 4; i++) {
        void *rc;
        pthread_join(threads[i], &rc);
        assert_null(rc);
    }
}

static void wait_for_opens(atomic_uint *opens, unsigned n)
{
    for (int i = 0; i < 60000 && atomic_load(opens) != n; i++)
        usleep(1000);
    assert_int_equal(atomic_load(opens), n);
}

/* Calls that hang are given up; after some of them the plug-in is left alone until they return. */
static void test_a_plugin_that_hangs(void **state)
{
    char out[200];
    (void)state;
    void *object = dlopen(ODD_PLUGIN, RTLD_NOW);
    assert_non_null(object);
    atomic_bool *held = dlsym(object, "odd_plugin_held");
    atomic_uint *opens = dlsym(object, "odd_plugin_opens");
    assert_true(held && opens);
    wait_for_opens(opens, 0); /* a call of an earlier test may just be returning */
    atomic_store(held, true);
    for (uint32_t i = 0; i < DEED_PLUGIN_MAX_LOST; i++)
        assert_int_equal(run(ODD_PLUGIN, "hang", 5, out, sizeof(out)), SHOAL_EDEADLINE);
    assert_non_null(strstr(why.msg, "given up"));
    assert_int_equal(run(ODD_PLUGIN, "x", LONG_MS, out, sizeof(out)), SHOAL_EBUSY);
    assert_int_equal(run(WORDS_PLUGIN, "others go on", LONG_MS, out, sizeof(out)), 0);
    atomic_store(held, false);
    int rc = SHOAL_EBUSY;
    for (int i = 0; i < 60000 && rc == SHOAL_EBUSY; i++) {
        rc = run(ODD_PLUGIN, "x", LONG_MS, out, sizeof(out));
        usleep(1000);
    }
    assert_int_equal(rc, 0);
    /* the owner goes while a call hangs: the plug-in is closed when that returns */
    atomic_store(held, true);
    assert_int_equal(run(ODD_PLUGIN, "hang", 5, out, sizeof(out)), SHOAL_EDEADLINE);
    assert_int_equal(atomic_load(opens), 1);
    deed_plugins_destroy(all);
    all = NULL;
    assert_int_equal(atomic_load(opens), 1);
    atomic_store(held, false);
    wait_for_opens(opens, 0);
    dlclose(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_example, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_no_plugin, setup, teardown),
        cmocka_unit_test_setup_teardown(test_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_calls_side_by_side, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_plugin_that_hangs, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
