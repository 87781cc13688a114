/* test_model_share.c - a model of this machine for another node, from the store and from a path;
 * and damage in the store that is found by reading it again. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/thread/executor_queue.h"
#include "cluster/store/model_scrub.h"
#include "cluster/store/model_share.h"
#include "depot/store/model_manifest.h"
#include "depot/store/model_put.h"
#include "depot/store/model_store.h"
#include "support/script.h"

static char dir[] = "/tmp/test_model_share.XXXXXX";
static const _Atomic bool go_on = false;

static const char *at(const char *name)
{
    static char paths[4][PATH_MAX];
    static unsigned turn;
    char *out = paths[turn++ & 3];
    snprintf(out, PATH_MAX, "%s/%s", dir, name);
    return out;
}

static struct model_store *open_store(const char *name)
{
    const struct model_store_opts o = {.dir = at(name)};
    struct model_store *s;
    struct err e = {0};
    assert_int_equal(model_store_open(&s, &o, &e), 0);
    return s;
}

static void put(struct model_store *s, const char *name, const char *text, uint8_t *sum)
{
    struct err e = {0};
    script_write(at(name), text, strlen(text));
    if (model_put(s, at(name), NULL, sum, &go_on, &e) < 0)
        fail_msg("%s", e.msg);
}

/* What file i has, or why it cannot be had. */
static const char *read_file(const struct model_share_from *from, const uint8_t *sum, uint32_t i)
{
    static char text[256];
    struct err e = {0};
    uint64_t bytes = 0;
    int fd;
    const int rc = model_share_open(&fd, &bytes, from, sum, i, &e);
    if (rc < 0) {
        assert_int_equal(fd, -1);
        snprintf(text, sizeof(text), "%d", rc);
        return text;
    }
    const ssize_t n = read(fd, text, sizeof(text) - 1);
    assert_int_equal(n, bytes);
    text[n] = '\0';
    close(fd);
    return text;
}

static const char *number(int rc)
{
    static char text[16];
    snprintf(text, sizeof(text), "%d", rc);
    return text;
}

static void test_from_the_store(void **state)
{
    struct model_store *s = open_store("s1");
    const struct model_share_from from = {.store = s, .stop = &go_on};
    uint8_t sum[SHA256_BYTES], other[SHA256_BYTES] = {9};
    char path[PATH_MAX];
    struct model_manifest m;
    struct err e = {0};
    (void)state;
    put(s, "m.gguf", "one model", sum);
    model_manifest_init(&m);
    assert_int_equal(model_share_manifest(&m, &from, sum, &e), 0);
    assert_int_equal(m.n_files, 1);
    assert_int_equal(m.files[0].bytes, 9);
    assert_string_equal(read_file(&from, sum, 0), "one model");
    assert_string_equal(read_file(&from, other, 0), number(SHOAL_ENOTFOUND));
    assert_int_equal(model_share_manifest(&m, &from, other, &e), SHOAL_ENOTFOUND);
    assert_int_equal(m.n_files, 0);
    model_manifest_fini(&m);
    /* a file that is shorter than its manifest says */
    assert_int_equal(model_store_find(s, sum, path, &e), 0);
    chmod(path, 0644);
    assert_int_equal(truncate(path, 5), 0);
    assert_string_equal(read_file(&from, sum, 0), number(SHOAL_ECHANGED));
    model_store_close(s);
}

static void test_from_a_path(void **state)
{
    struct model_share_from from = {.stop = &go_on};
    uint8_t sum[SHA256_BYTES] = {7};
    struct model_manifest m;
    struct err e = {0};
    (void)state;
    model_manifest_init(&m);
    assert_int_equal(model_share_manifest(&m, &from, sum, &e), SHOAL_ENOTFOUND);
    assert_string_equal(read_file(&from, sum, 0), number(SHOAL_ENOTFOUND));
    script_write(at("alone.gguf"), "alone", 5);
    from.path = at("alone.gguf");
    assert_int_equal(model_share_manifest(&m, &from, sum, &e), 0);
    assert_int_equal(m.n_files, 1);
    assert_string_equal(m.files[0].name, "alone.gguf");
    assert_int_equal(m.files[0].bytes, 5);
    assert_memory_equal(m.files[0].sum, sum, SHA256_BYTES);
    assert_string_equal(read_file(&from, sum, 0), "alone");
    assert_string_equal(read_file(&from, sum, 1), number(SHOAL_ENOTFOUND));
    from.path = at("nosuch.gguf");
    assert_int_equal(model_share_manifest(&m, &from, sum, &e), SHOAL_EIO);
    model_manifest_fini(&m);
}

/* ---- scrub ---- */

static uint8_t reported[SHA256_BYTES];
static uint32_t n_reported;

static void on_damage(void *ctx, const uint8_t sha256[SHA256_BYTES])
{
    (void)ctx;
    memcpy(reported, sha256, SHA256_BYTES);
    n_reported++;
}

static void damage(struct model_store *s, const uint8_t *sum)
{
    char path[PATH_MAX];
    struct err e = {0};
    assert_int_equal(model_store_find(s, sum, path, &e), 0);
    chmod(path, 0644);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "X", 1, 0), 1);
    close(fd);
}

static void test_scrub(void **state)
{
    struct model_store *s = open_store("s2");
    struct executor_queue q;
    struct model_store_pin *pin;
    struct model_scrub *scrub;
    uint8_t good[SHA256_BYTES], bad[SHA256_BYTES], used[SHA256_BYTES];
    char path[PATH_MAX];
    struct err e = {0};
    (void)state;
    put(s, "good", "a good one", good);
    put(s, "bad", "a bad one", bad);
    put(s, "used", "one in use", used);
    assert_int_equal(model_store_pin(s, used, &pin, &e), 0);
    damage(s, bad);
    damage(s, used);
    assert_int_equal(executor_queue_init(&q, &e), 0);
    const struct model_scrub_opts o = {
        .store = s, .executor = &q.executor, .every_ms = 1, .found = on_damage};
    assert_int_equal(model_scrub_open(&scrub, &o, &e), 0);
    for (int turns = 0; n_reported == 0 && turns < 60; turns++)
        (void)executor_queue_turn(&q, 1000);
    assert_true(n_reported > 0); /* what is in use is left to who has it */
    assert_memory_equal(reported, used, SHA256_BYTES);
    for (int i = 0; i < 60000 && model_store_find(s, bad, path, &e) == 0; i++)
        usleep(1000);
    assert_int_equal(model_store_find(s, bad, path, &e), SHOAL_ENOTFOUND);
    assert_int_equal(model_store_find(s, good, path, &e), 0);
    model_scrub_close(scrub);
    (void)executor_queue_run(&q);
    const uint32_t n = n_reported;
    (void)executor_queue_turn(&q, 0);
    assert_int_equal(n_reported, n); /* nothing comes after the end */
    executor_queue_fini(&q);
    model_store_unpin(pin);
    model_store_close(s);
}

static int setup(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    model_store_delete_tree(dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_the_store),
        cmocka_unit_test(test_from_a_path),
        cmocka_unit_test(test_scrub),
    };
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    return cmocka_run_group_tests(tests, setup, teardown);
}
