/* test_registry_versions.c - several versions of one model side by side: which one answers, by
 * version, epoch and share; files with unexpected bytes are not loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/registry.h"

#define SOURCE SHOAL_TEST_DATA "/refs/qwen3.gguf"

static struct {
    char path[2][96];
    uint8_t sum[2][SHA256_BYTES];
    struct registry *all;
} site;

static char dir[] = "/tmp/shoal-versions-XXXXXX";

/* Two models that differ in their last byte. */
static void make_file(int i)
{
    static char bytes[1 << 22];
    struct sha256 h;
    snprintf(site.path[i], sizeof(site.path[i]), "%s/%d.gguf", dir, i);
    FILE *in = fopen(SOURCE, "rb"), *out = fopen(site.path[i], "wb");
    assert_true(in && out);
    size_t n = fread(bytes, 1, sizeof(bytes), in);
    assert_in_range(n, 1, sizeof(bytes) - 1);
    bytes[n - 1] = (char)(bytes[n - 1] + i);
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
    sha256_begin(&h);
    sha256_add(&h, bytes, n);
    assert_true(sha256_end(&h, site.sum[i]));
}

static void open_site(void)
{
    const struct registry_opts o = {.cache_dir = NULL};
    struct err e = {0};
    memcpy(dir + strlen(dir) - 6, "XXXXXX", 6);
    assert_non_null(mkdtemp(dir));
    make_file(0);
    make_file(1);
    assert_int_equal(registry_create(&site.all, &o, &e), 0);
}

static void close_site(void)
{
    registry_destroy(site.all);
    unlink(site.path[0]);
    unlink(site.path[1]);
    rmdir(dir);
}

static int add_from(int version, const char *path, bool staged, struct err *e)
{
    const struct registry_spec spec = {.name = "a",
                                       .path = path,
                                       .sum = site.sum[version],
                                       .staged = staged,
                                       .pinned = true,
                                       .n_ctx = 64,
                                       .max_tasks = 1};
    return registry_add(site.all, &spec, e);
}

static void add(int version, bool staged)
{
    struct err e = {0};
    if (add_from(version, site.path[version], staged, &e) < 0)
        fail_msg("%s", e.msg);
    for (int i = 0; i < 60000 && !registry_ready(site.all); i++)
        usleep(1000);
    assert_true(registry_ready(site.all));
}

/* The version that answers, or -1: none.  *rc: why. */
static int who(const char *name, const uint8_t *version, uint64_t epoch, const char *key, int *rc)
{
    const struct registry_want want = {
        .name = name, .kind = SHOAL_KIND_GENERATE, .version = version, .epoch = epoch, .key = key};
    struct registry_model *m;
    struct err e = {0};
    *rc = registry_get_wanted(site.all, &want, &m, NULL, &e);
    if (*rc < 0)
        return -1;
    int is = memcmp(registry_sum(m), site.sum[1], SHA256_BYTES) == 0;
    registry_put(m);
    return is;
}

static void serve(int version, enum registry_duty duty, uint64_t epoch, uint64_t until,
                  uint32_t share)
{
    const struct registry_service s = {duty, epoch, until, share};
    struct err e = {0};
    assert_int_equal(registry_set_service(site.all, "a", site.sum[version], &s, &e), 0);
}

static void test_duties(void **state)
{
    struct err e = {0};
    int rc;
    (void)state;
    open_site();
    add(0, false);
    add(1, true);
    assert_int_equal(add_from(1, site.path[1], true, &e), SHOAL_EINVAL); /* it is present */
    assert_int_equal(who("a", NULL, 0, NULL, &rc), 0);
    assert_int_equal(who(NULL, NULL, 0, NULL, &rc), 0);
    assert_int_equal(who("a", site.sum[1], 0, NULL, &rc), 1); /* staged, but requested */
    serve(1, REGISTRY_SERVE, 0, 0, 0);
    serve(0, REGISTRY_LEAVE, 0, 0, 0);
    assert_int_equal(who("a", NULL, 0, NULL, &rc), 1);
    assert_int_equal(who("a", site.sum[0], 0, NULL, &rc), 0); /* a continuing stream */
    serve(1, REGISTRY_LEAVE, 0, 0, 0);
    assert_int_equal(who("a", NULL, 0, NULL, &rc), -1);
    assert_int_equal(rc, SHOAL_ECHANGED);
    assert_int_equal(who("b", NULL, 0, NULL, &rc), -1);
    assert_int_equal(rc, SHOAL_ENOTFOUND);
    assert_int_equal(registry_remove_version(site.all, "a", site.sum[0], &e), 0);
    assert_int_equal(registry_remove_version(site.all, "a", site.sum[0], &e), SHOAL_ENOTFOUND);
    const struct registry_service s = {.duty = REGISTRY_SERVE};
    assert_int_equal(registry_set_service(site.all, "a", site.sum[0], &s, &e), SHOAL_ENOTFOUND);
    close_site();
}

static void test_epochs(void **state)
{
    int rc;
    (void)state;
    open_site();
    add(0, false);
    add(1, true);
    serve(0, REGISTRY_SERVE, 0, 7, 0);
    serve(1, REGISTRY_SERVE, 7, 0, 0);
    registry_set_epoch(site.all, 6, 8);
    assert_int_equal(who("a", NULL, 0, NULL, &rc), 0); /* the current epoch */
    assert_int_equal(who("a", NULL, 6, NULL, &rc), 0);
    assert_int_equal(who("a", NULL, 7, NULL, &rc), 1); /* a gateway that is ahead of us */
    assert_int_equal(who("a", NULL, 8, NULL, &rc), -1);
    assert_int_equal(rc, SHOAL_ECHANGED); /* unknown here: it could mean another version */
    registry_set_epoch(site.all, 7, 8);
    assert_int_equal(who("a", NULL, 0, NULL, &rc), 1);
    assert_int_equal(who("a", NULL, 6, NULL, &rc), 0);
    serve(0, REGISTRY_LEAVE, 0, 7, 0);
    assert_int_equal(who("a", NULL, 6, NULL, &rc), -1); /* rather no version than the wrong one */
    assert_int_equal(rc, SHOAL_ECHANGED);
    uint64_t epoch, end;
    registry_get_epoch(site.all, &epoch, &end);
    assert_int_equal(epoch, 7);
    assert_int_equal(end, 8);
    close_site();
}

static void count_one(void *ctx, const struct registry_model *m)
{
    (void)m;
    ++*(int *)ctx;
}

static void test_share(void **state)
{
    int rc, n = 0, names = 0, versions = 0;
    char key[32];
    (void)state;
    open_site();
    add(0, false);
    add(1, false);
    serve(1, REGISTRY_SERVE, 0, 0, 100);
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof(key), "req-%d", i);
        int is = who("a", NULL, 0, key, &rc);
        assert_int_equal(is, registry_in_share(key, 100));
        n += is;
    }
    assert_in_range(n, 350, 650); /* a tenth of 5,000, by fixed keys */
    assert_int_equal(who("a", NULL, 0, NULL, &rc), 0);
    assert_false(registry_in_share("x", 0));
    assert_true(registry_in_share("x", 1000));
    registry_each(site.all, count_one, &names);
    registry_each_version(site.all, count_one, &versions);
    assert_int_equal(names, 1);
    assert_int_equal(versions, 2);
    close_site();
}

static void find_error(void *ctx, const struct registry_model *m)
{
    if (m->slot->state == REGISTRY_FAILED)
        snprintf(ctx, 320, "%s", m->slot->error);
}

static void test_other_bytes_are_not_loaded(void **state)
{
    char error[320] = "";
    struct err e = {0};
    int rc;
    (void)state;
    open_site();
    add(0, false);
    char other[128];
    snprintf(other, sizeof(other), "%s/wrong.gguf", dir);
    assert_int_equal(rename(site.path[1], other), 0);
    FILE *f = fopen(other, "ab");
    assert_non_null(f);
    fputc('x', f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(add_from(1, other, false, &e), 0);
    for (int i = 0; i < 60000 && !error[0]; i++) {
        usleep(1000);
        registry_each_version(site.all, find_error, error);
    }
    assert_non_null(strstr(error, "has the SHA-256"));
    assert_int_equal(who("a", NULL, 0, NULL, &rc), 0); /* the valid one answers */
    unlink(other);
    close_site();
}

/* A model of the configuration has the file already; the shoal serves it under another name. */
static void test_file_of_another_model(void **state)
{
    const struct registry_spec plain = {
        .name = "plain", .path = site.path[0], .pinned = true, .n_ctx = 64, .max_tasks = 1};
    const struct registry_want want = {.name = "plain", .kind = SHOAL_KIND_GENERATE};
    struct registry_model *m;
    struct err e = {0};
    int rc;
    (void)state;
    open_site();
    assert_int_equal(registry_add(site.all, &plain, &e), 0);
    add(0, false);
    assert_int_equal(who("a", NULL, 0, NULL, &rc), 0);
    assert_int_equal(registry_remove_version(site.all, "a", site.sum[0], &e), 0);
    assert_int_equal(registry_get_wanted(site.all, &want, &m, NULL, &e), 0); /* it stays */
    registry_put(m);
    close_site();
}

/* ---- several replicas of one version ---- */

static void add_copy(uint32_t copy)
{
    const struct registry_spec spec = {.name = "a",
                                       .path = site.path[0],
                                       .sum = site.sum[0],
                                       .copy = copy,
                                       .pinned = true,
                                       .n_ctx = 64,
                                       .max_tasks = 1};
    struct err e = {0};
    if (registry_add(site.all, &spec, &e) < 0)
        fail_msg("%s", e.msg);
    for (int i = 0; i < 60000 && !registry_ready(site.all); i++)
        usleep(1000);
    assert_true(registry_ready(site.all));
}

static struct registry_model *take(const uint64_t *beginnings, uint32_t n)
{
    const struct registry_want want = {
        .name = "a", .kind = SHOAL_KIND_GENERATE, .beginnings = beginnings, .n_beginnings = n};
    struct registry_model *m = NULL;
    struct err e = {0};
    if (registry_get_wanted(site.all, &want, &m, NULL, &e) < 0)
        fail_msg("%s", e.msg);
    return m;
}

static void test_copies_share_the_work(void **state)
{
    const struct registry_spec none = {
        .name = "b", .path = site.path[0], .sum = site.sum[0], .copy = 1};
    const struct registry_service leaves = {.duty = REGISTRY_LEAVE};
    struct registry_model *m[4];
    struct err e = {0};
    int rc, names = 0, versions = 0;
    (void)state;
    open_site();
    assert_int_equal(registry_add(site.all, &none, &e), SHOAL_EINVAL); /* of nothing */
    add(0, false);
    add_copy(1);
    registry_each(site.all, count_one, &names);
    registry_each_version(site.all, count_one, &versions);
    assert_int_equal(names, 1);
    assert_int_equal(versions, 2);
    for (int i = 0; i < 4; i++)
        m[i] = take(NULL, 0);
    assert_int_equal(m[0]->copy + m[1]->copy, 1); /* in turn */
    assert_int_equal(m[2]->copy + m[3]->copy, 1);
    assert_true(registry_engine(m[0]) != registry_engine(m[1]));
    assert_int_equal(m[0]->slot->family, m[1]->slot->family);
    for (int i = 0; i < 4; i++)
        registry_put(m[i]);
    assert_int_equal(registry_set_service(site.all, "a", site.sum[0], &leaves, &e), 0);
    assert_int_equal(who("a", NULL, 0, NULL, &rc), -1); /* the duty is that of all */
    assert_int_equal(registry_remove_copy(site.all, "a", site.sum[0], 0, &e), SHOAL_ENOTFOUND);
    assert_int_equal(registry_remove_copy(site.all, "a", site.sum[0], 1, &e), 0);
    versions = 0;
    registry_each_version(site.all, count_one, &versions);
    assert_int_equal(versions, 1);
    add_copy(1);
    assert_int_equal(registry_remove_version(site.all, "a", site.sum[0], &e), 0);
    versions = 0;
    registry_each_version(site.all, count_one, &versions);
    assert_int_equal(versions, 0); /* with its copies */
    close_site();
}

/* The copy that has read most of a prompt gets it again, but not at any price. */
static void test_a_conversation_stays_with_its_copy(void **state)
{
    static const uint64_t first[] = {11, 12}, longer[] = {11, 12, 13}, other[] = {11, 99};
    struct registry_model *busy[5];
    uint32_t on[2] = {0, 0};
    (void)state;
    open_site();
    add(0, false);
    add_copy(1);
    busy[0] = take(other, 2);
    busy[1] = take(NULL, 0);
    registry_put(busy[0]); /* the other copy is the least busy one now */
    busy[0] = take(first, 2);
    assert_int_equal(busy[0]->copy, 0); /* it has read the beginning of it */
    registry_put(busy[0]);
    registry_put(busy[1]);
    busy[1] = take(NULL, 0); /* at the first, as both are idle */
    assert_int_equal(busy[1]->copy, 0);
    busy[0] = take(longer, 3); /* an idle one is there, and yet */
    assert_int_equal(busy[0]->copy, 0);
    registry_put(busy[0]);
    registry_put(busy[1]);
    for (int i = 0; i < 5; i++) {
        busy[i] = take(longer, 3);
        on[busy[i]->copy]++;
    }
    assert_true(on[0] >= 2 && on[1] >= 1);
    for (int i = 0; i < 5; i++)
        registry_put(busy[i]);
    close_site();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_duties),
        cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_other_bytes_are_not_loaded),
        cmocka_unit_test(test_file_of_another_model),
        cmocka_unit_test(test_copies_share_the_work),
        cmocka_unit_test(test_a_conversation_stays_with_its_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
