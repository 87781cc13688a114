/* test_model_profiles.c - models made through an interface, and their blobs, on disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "gateway/api/model_profiles.h"

/* SHA-256 of "hello" */
#define HELLO "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    snprintf(dir, sizeof(dir), "/tmp/model_profiles.XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -r '%s'", dir);
    return system(command);
}

static struct model_profiles *store_open(void)
{
    struct model_profiles *s;
    struct err e = {0};
    assert_int_equal(model_profiles_open(&s, dir, NULL, &e), 0);
    return s;
}

static void test_names_are_no_paths(void **state)
{
    static const char *const good[] = {"a", "reply", "team/reply:2", "Qwen2.5-0.5B"};
    static const char *const bad[] = {"",   "../a", "a/../b", "/etc/passwd", "a b", "a\nb",
                                      ".a", "a/",   "a//b",   "a%2f",        "\"",  "a\\b"};
    char long_name[200];
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(model_profiles_is_name(good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(model_profiles_is_name(bad[i]));
    memset(long_name, 'a', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    assert_false(model_profiles_is_name(long_name));
}

static void count(void *ctx, const struct model_profile *p)
{
    (void)p;
    (*(int *)ctx)++;
}

static void test_profiles_are_there_again(void **state)
{
    struct model_profiles *s = store_open();
    struct model_profile p = {.name = "team/a:1",
                              .path = "/m/a.gguf",
                              .system = "line \"one\"\nline two",
                              .parameters = "{\"seed\":1}"};
    struct err e = {0};
    int n = 0;
    (void)state;
    assert_null(model_profiles_get(s, "team/a:1"));
    assert_int_equal(model_profiles_put(s, &p, &e), 0);
    const struct model_profile *old = model_profiles_get(s, "team/a:1");
    p.system = "other";
    assert_int_equal(model_profiles_put(s, &p, &e), 0); /* replaces it */
    assert_string_equal(old->system, "line \"one\"\nline two");
    model_profiles_unref(s, old);
    p.name = "../b";
    assert_int_equal(model_profiles_put(s, &p, &e), SHOAL_EINVAL);
    model_profiles_close(s);
    char junk[128];
    snprintf(junk, sizeof(junk), "%s/names/junk.json", dir);
    FILE *f = fopen(junk, "w");
    assert_non_null(f);
    fputs("{\"name\":", f);
    fclose(f);
    s = store_open();
    model_profiles_each(s, count, &n);
    assert_int_equal(n, 1); /* damaged entries are skipped */
    const struct model_profile *got = model_profiles_get(s, "team/a:1");
    assert_non_null(got);
    assert_string_equal(got->system, "other");
    assert_string_equal(got->parameters, "{\"seed\":1}");
    assert_null(got->template);
    model_profiles_unref(s, got);
    assert_int_equal(model_profiles_remove(s, "team/a:1", &e), 0);
    assert_int_equal(model_profiles_remove(s, "team/a:1", &e), SHOAL_ENOTFOUND);
    model_profiles_close(s);
    s = store_open();
    assert_null(model_profiles_get(s, "team/a:1"));
    model_profiles_close(s);
}

static void test_blobs_have_their_digest(void **state)
{
    static const char *const bad[] = {"", "sha256:", "sha256:../../../../etc/passwd", "md5:" HELLO,
                                      HELLO "0"};
    struct model_profiles *s = store_open();
    char path[PATH_MAX], copy[PATH_MAX];
    struct err e = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(model_profiles_put_blob(s, bad[i], "hello", 5, &e), SHOAL_EINVAL);
        assert_int_equal(model_profiles_find_blob(s, bad[i], path, &e), SHOAL_EINVAL);
    }
    assert_int_equal(model_profiles_find_blob(s, HELLO, path, &e), SHOAL_ENOTFOUND);
    assert_int_equal(model_profiles_put_blob(s, HELLO, "hellO", 5, &e), SHOAL_EFORMAT);
    assert_int_equal(model_profiles_find_blob(s, HELLO, path, &e), SHOAL_ENOTFOUND);
    assert_int_equal(model_profiles_put_blob(s, HELLO, "hello", 5, &e), 0);
    assert_int_equal(model_profiles_find_blob(s, HELLO, path, &e), 0);
    snprintf(copy, sizeof(copy), "%.60s/copy", dir);
    assert_int_equal(model_profiles_copy_out(path, copy, &e), 0);
    assert_int_equal(model_profiles_copy_out("/nowhere/a", copy, &e), SHOAL_EIO);
    /* a blob is deleted with the last model that uses it */
    struct model_profile p = {.name = "one", .path = path}, q = {.name = "two", .path = path};
    assert_int_equal(model_profiles_put(s, &p, &e), 0);
    assert_int_equal(model_profiles_put(s, &q, &e), 0);
    assert_int_equal(model_profiles_remove(s, "one", &e), 0);
    assert_int_equal(model_profiles_find_blob(s, HELLO, path, &e), 0);
    assert_int_equal(model_profiles_remove(s, "two", &e), 0);
    assert_int_equal(model_profiles_find_blob(s, HELLO, path, &e), SHOAL_ENOTFOUND);
    model_profiles_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_no_paths),
        cmocka_unit_test_setup_teardown(test_profiles_are_there_again, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_blobs_have_their_digest, make_dir, remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
