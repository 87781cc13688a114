/* test_model_refs.c - names for models of the store: what they stand for, that they keep a model
 * from being evicted, and what is removed when they are gone. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "depot/store/model_put.h"
#include "depot/store/model_refs.h"
#include "depot/store/model_store.h"

static char dir[64];
static const _Atomic bool go_on = false;

static int make_dir(void **state)
{
    (void)state;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    snprintf(dir, sizeof(dir), "/tmp/model_refs.XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -r '%s'", dir);
    return system(command);
}

static void put(const char *name, uint8_t byte)
{
    struct model_ref ref = {.name = name, .stored = true};
    struct err e = {0};
    memset(ref.sha256, byte, sizeof(ref.sha256));
    assert_int_equal(model_refs_put(dir, &ref, &e), 0);
}

static struct model_refs *refs_open(void)
{
    struct model_refs *r;
    struct err e = {0};
    assert_int_equal(model_refs_open(&r, dir, &e), 0);
    return r;
}

static void test_a_name_stands_for_its_tags(void **state)
{
    static const struct {
        const char *asked, *found; /* NULL: none */
    } cases[] = {
        {"one", "one:1b"},
        {"one:1b", "one:1b"},
        {"one:latest", NULL},
        {"one:2b", NULL},
        {"two", NULL} /* several */,
        {"two:b", "two:b"},
        {"three", "three:latest"},
        {"four:latest", "four"},
        {"four", "four"},
        {"host:5000/team/m", "host:5000/team/m:3"},
        {"host", NULL},
        {"on", NULL},
    };
    (void)state;
    const char *const names[] = {
        "one:1b", "two:a", "two:b", "three:a", "three:latest", "four", "host:5000/team/m:3"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        put(names[i], (uint8_t)i);
    struct model_refs *r = refs_open();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct model_ref *ref = model_refs_find(r, cases[i].asked, false);
        if ((ref ? strcmp(ref->name, cases[i].found ? cases[i].found : "")
                 : cases[i].found != NULL))
            fail_msg("%s is %s", cases[i].asked, ref ? ref->name : "nothing");
    }
    assert_null(model_refs_find(r, "one", true));
    const struct model_ref *ref;
    struct err e = {0};
    assert_int_equal(model_refs_get(r, "two", &ref, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "two:a, two:b"));
    assert_int_equal(model_refs_get(r, "one:1c", &ref, &e), SHOAL_ENOTFOUND);
    assert_non_null(strstr(e.msg, "did you mean one:1b?"));
    model_refs_close(r);
}

static void test_everything_of_a_name_is_read_again(void **state)
{
    struct model_ref ref = {.name = "team/a:1",
                            .path = "/m/a.gguf",
                            .source = "hf.co/x/y",
                            .system = "line \"one\"\nline two",
                            .parameters = "{\"seed\":1}",
                            .license = "MIT",
                            .task = "generate",
                            .labels = "snips",
                            .context = 128,
                            .parallel = 3,
                            .pinned = true};
    struct err e = {0};
    (void)state;
    assert_int_equal(model_refs_put(dir, &ref, &e), 0);
    struct model_refs *r = refs_open();
    const struct model_ref *got = model_refs_find(r, "team/a:1", true);
    assert_non_null(got);
    assert_false(got->stored);
    assert_string_equal(got->path, ref.path);
    assert_string_equal(got->source, ref.source);
    assert_string_equal(got->system, ref.system);
    assert_string_equal(got->parameters, ref.parameters);
    assert_string_equal(got->license, ref.license);
    assert_string_equal(got->task, ref.task);
    assert_string_equal(got->labels, ref.labels);
    assert_null(got->template);
    assert_int_equal(got->context, 128);
    assert_int_equal(got->parallel, 3);
    assert_true(got->pinned);
    assert_true(got->added_s > 0);
    model_refs_close(r);
    assert_int_equal(model_refs_remove(dir, "team/a:1", &e), 0);
    assert_int_equal(model_refs_remove(dir, "team/a:1", &e), SHOAL_ENOTFOUND);
}

static void test_a_damaged_file_hides_no_other(void **state)
{
    static const char *const junk[] = {"",
                                       "{",
                                       "[]",
                                       "{\"name\":\"x\"}",
                                       "{\"name\":\"../x\",\"path\":\"/a\"}",
                                       "{\"name\":\"x\",\"model\":\"sha256:12\"}"};
    char path[128];
    (void)state;
    put("good", 1);
    for (size_t i = 0; i < sizeof(junk) / sizeof(junk[0]); i++) {
        snprintf(path, sizeof(path), "%s/names/junk%zu.json", dir, i);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(junk[i], f);
        fclose(f);
    }
    struct model_refs *r = refs_open();
    assert_non_null(model_refs_find(r, "good", true));
    assert_null(model_refs_find(r, "x", true));
    model_refs_close(r);
}

static void test_names_are_no_paths(void **state)
{
    static const char *const bad[] = {"",   "../a", "a/../b", "/etc/passwd", "a b", "a\nb", "-a",
                                      ".a", "a/",   "a//b",   "a%2f",        "\"",  "a\\b", "a:"};
    struct model_ref ref = {.name = NULL, .path = "/a"};
    struct err e = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ref.name = bad[i];
        if (model_refs_put(dir, &ref, &e) != SHOAL_EINVAL)
            fail_msg("'%s' is a name", bad[i]);
        assert_int_equal(model_refs_remove(dir, bad[i], &e), SHOAL_EINVAL);
    }
}

/* ---- with the store ---- */

static struct model_store *store_open(uint64_t max_bytes)
{
    const struct model_store_opts o = {.dir = dir, .max_bytes = max_bytes};
    struct model_store *s;
    struct err e = {0};
    assert_int_equal(model_store_open(&s, &o, &e), 0);
    return s;
}

/* A model of 1000 equal bytes. */
static void add_model(struct model_store *s, char byte, uint8_t sum[SHA256_BYTES])
{
    char path[128], bytes[1000];
    struct err e = {0};
    memset(bytes, byte, sizeof(bytes));
    snprintf(path, sizeof(path), "%s/%c.gguf", dir, byte);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, sizeof(bytes), f), sizeof(bytes));
    fclose(f);
    assert_int_equal(model_put(s, path, NULL, sum, &go_on, &e), 0);
}

static bool has(struct model_store *s, const uint8_t sum[SHA256_BYTES])
{
    char path[PATH_MAX];
    return model_store_find(s, sum, path, NULL) == 0;
}

static void test_a_name_keeps_its_model(void **state)
{
    struct model_store *s = store_open(2500);
    uint8_t a[SHA256_BYTES], b[SHA256_BYTES], c[SHA256_BYTES];
    struct model_store_swept swept;
    struct err e = {0};
    (void)state;
    add_model(s, 'a', a);
    struct model_ref ref = {.name = "mine", .stored = true};
    memcpy(ref.sha256, a, sizeof(a));
    assert_int_equal(model_refs_put(dir, &ref, &e), 0);
    add_model(s, 'b', b);
    add_model(s, 'c', c); /* needs room: the one without a name goes */
    assert_true(has(s, a));
    assert_false(has(s, b));
    assert_true(has(s, c));
    assert_int_equal(model_store_sweep(s, NULL, 2000, &swept, &e), SHOAL_ELIMIT);
    assert_true(has(s, c));
    assert_int_equal(model_store_gc(s, 3600, &swept, &e), 0);
    assert_int_equal(swept.n_models, 0); /* just used */
    assert_int_equal(model_store_gc(s, 0, &swept, &e), 0);
    assert_int_equal(swept.n_models, 1);
    assert_int_equal(swept.bytes, 1000);
    assert_true(has(s, a));
    assert_false(has(s, c));
    assert_int_equal(model_refs_remove(dir, "mine", &e), 0);
    assert_int_equal(model_store_gc(s, 0, &swept, &e), 0);
    assert_false(has(s, a));
    model_store_close(s);
}

static void test_gc_spares_what_is_used(void **state)
{
    struct model_store *s = store_open(0);
    uint8_t a[SHA256_BYTES];
    struct model_store_pin *pin;
    struct model_store_swept swept;
    struct err e = {0};
    (void)state;
    add_model(s, 'a', a);
    assert_int_equal(model_store_pin(s, a, &pin, &e), 0);
    assert_int_equal(model_store_gc(s, 0, &swept, &e), 0);
    assert_true(has(s, a));
    model_store_unpin(pin);
    assert_int_equal(model_store_gc(s, 0, &swept, &e), 0);
    assert_false(has(s, a));
    model_store_close(s);
}

static void test_gc_takes_a_time_ahead_of_the_clock_for_now(void **state)
{
    struct model_store *s = store_open(0);
    uint8_t a[SHA256_BYTES];
    char path[PATH_MAX];
    struct model_store_pin *pin;
    struct model_store_swept swept;
    struct err e = {0};
    (void)state;
    add_model(s, 'a', a);
    assert_int_equal(model_store_pin(s, a, &pin, &e), 0);
    model_store_unpin(pin);
    assert_int_equal(model_store_find(s, a, path, &e), 0);
    *strrchr(path, '/') = '\0'; /* MODEL/files/a.gguf */
    memcpy(strrchr(path, '/'), "/used", sizeof("/used"));
    const struct timespec ahead[2] = {{.tv_sec = time(NULL) + 3600}, {.tv_sec = time(NULL) + 3600}};
    assert_int_equal(utimensat(AT_FDCWD, path, ahead, 0), 0);
    assert_int_equal(model_store_gc(s, 60, &swept, &e), 0);
    assert_int_equal(swept.n_models, 0);
    assert_int_equal(model_store_gc(s, 0, &swept, &e), 0);
    assert_int_equal(swept.n_models, 1);
    model_store_close(s);
}

static void test_paths_of_the_store_are_known(void **state)
{
    struct model_store *s = store_open(0);
    uint8_t a[SHA256_BYTES], sum[SHA256_BYTES];
    char path[PATH_MAX], other[PATH_MAX + 8];
    struct err e = {0};
    (void)state;
    add_model(s, 'a', a);
    assert_int_equal(model_store_find(s, a, path, &e), 0);
    assert_true(model_store_owns(s, path, sum));
    assert_memory_equal(sum, a, sizeof(a));
    assert_false(model_store_owns(s, "/elsewhere/a.gguf", sum));
    snprintf(other, sizeof(other), "%s/models/12", dir);
    assert_false(model_store_owns(s, other, sum));
    snprintf(other, sizeof(other), "%s", path);
    other[strlen(dir) + 10] = 'x'; /* no digit */
    assert_false(model_store_owns(s, other, sum));
    model_store_close(s);
}

/* Several processes that name the same model at once: whole files, whatever the order. */
static void test_two_writers(void **state)
{
    pid_t pids[4];
    (void)state;
    for (int i = 0; i < 4; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            char system[2000];
            struct err e = {0};
            memset(system, 'a' + i, sizeof(system) - 1);
            system[sizeof(system) - 1] = '\0';
            const struct model_ref ref = {.name = "shared", .path = "/a", .system = system};
            for (int k = 0; k < 20; k++)
                if (model_refs_put(dir, &ref, &e) < 0)
                    _exit(1);
            _exit(0);
        }
    }
    for (int i = 0; i < 4; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    struct model_refs *r = refs_open();
    const struct model_ref *ref = model_refs_find(r, "shared", true);
    assert_non_null(ref);
    assert_int_equal(strlen(ref->system), 1999);
    assert_int_equal(strspn(ref->system, (const char[]){ref->system[0], '\0'}), 1999);
    model_refs_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_name_stands_for_its_tags, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_everything_of_a_name_is_read_again, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(test_a_damaged_file_hides_no_other, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_names_are_no_paths, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_a_name_keeps_its_model, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_gc_spares_what_is_used, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_gc_takes_a_time_ahead_of_the_clock_for_now, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(test_paths_of_the_store_are_known, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_two_writers, make_dir, remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
