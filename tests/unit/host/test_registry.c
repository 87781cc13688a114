/* test_registry.c - the registry of models: requests during unloading, and the identity of a
 * model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "host/registry.h"

#define PATH SHOAL_TEST_DATA "/refs/qwen3.gguf"

struct waiter {
    struct registry_wait wait;
    _Atomic int calls;
    int rc;
    struct registry_model *model;
};

static void on_loaded(struct registry_wait *w, struct registry_model *m, int rc)
{
    struct waiter *x = (struct waiter *)(void *)w;
    x->rc = rc;
    x->model = m;
    x->calls++;
}

static void look(void *ctx, const struct registry_model *m)
{
    *(enum registry_state *)ctx = m->slot->state;
}

static enum registry_state state_of(struct registry *ms)
{
    enum registry_state s = REGISTRY_FAILED;
    registry_each(ms, look, &s);
    return s;
}

/* Gets it, waiting as long as it takes. */
static struct registry_model *get_named(struct registry *ms, const char *name)
{
    struct waiter w = {.wait.fn = on_loaded};
    struct registry_model *m = NULL;
    struct err e = {0};
    int rc = registry_get(ms, name, SHOAL_KIND_GENERATE, &m, &w.wait, &e);
    if (rc == SHOAL_EBUSY) {
        for (int i = 0; i < 30000 && !w.calls; i++)
            usleep(1000);
        if (!w.calls)
            fail_msg("nobody called");
        rc = w.rc;
        m = w.model;
    }
    if (rc < 0)
        fail_msg("%d %s", rc, e.msg);
    return m;
}

static struct registry_model *get(struct registry *ms)
{
    return get_named(ms, "a");
}

static struct registry *open_models(void)
{
    const struct registry_opts o = {.cache_dir = NULL};
    const struct registry_spec spec = {.name = "a", .path = PATH, .n_ctx = 64, .max_tasks = 1};
    struct registry *ms;
    struct err e = {0};
    if (registry_create(&ms, &o, &e) < 0 || registry_add(ms, &spec, &e) < 0)
        fail_msg("%s", e.msg);
    return ms;
}

/* Polls without sleeping, so that the caller acts while the model is being unloaded. */
static void leaves_ready(struct registry *ms)
{
    const uint64_t until = clock_ns() + UINT64_C(30000000000);
    while (state_of(ms) == REGISTRY_READY)
        if (clock_ns() > until)
            fail_msg("the model was not unloaded within 30 s");
}

/* Requests it as soon as it is no longer ready. */
static void test_a_request_while_unloading_waits(void **state)
{
    struct registry *ms = open_models();
    struct err e = {0};
    (void)state;
    for (int round = 0; round < 30; round++) {
        registry_put(get(ms));
        assert_int_equal(registry_unload(ms, "a", &e), 0);
        leaves_ready(ms);
    }
    registry_put(get(ms));
    registry_destroy(ms);
}

static void test_load_while_unloading_loads(void **state)
{
    struct registry *ms = open_models();
    struct err e = {0};
    (void)state;
    for (int round = 0; round < 30; round++) {
        registry_put(get(ms));
        assert_int_equal(registry_unload(ms, "a", &e), 0);
        leaves_ready(ms);
        assert_int_equal(registry_load(ms, "a", &e), 0);
        for (int i = 0; i < 30000 && state_of(ms) != REGISTRY_READY; i++)
            usleep(1000);
        assert_int_equal(state_of(ms), REGISTRY_READY);
    }
    struct registry_model *m = get(ms);
    assert_int_equal(atomic_load(&m->slot->progress), 1000);
    registry_put(m);
    registry_destroy(ms);
}

/* ---- identity ---- */

struct told {
    uint32_t renamed, dropped;
    uint8_t from[SHA256_BYTES], to[SHA256_BYTES];
};

static void on_identity(void *ctx, const uint8_t *from, const uint8_t *to)
{
    struct told *t = ctx;
    memcpy(t->from, from, sizeof(t->from));
    if (to)
        memcpy(t->to, to, sizeof(t->to));
    t->renamed += to != NULL;
    t->dropped += to == NULL;
}

/* changed: this much is added to the last byte. */
static void copy_model(const char *to, uint8_t changed)
{
    static char bytes[1 << 22];
    FILE *in = fopen(PATH, "rb"), *out = fopen(to, "wb");
    assert_true(in && out);
    size_t n = fread(bytes, 1, sizeof(bytes), in);
    assert_in_range(n, 1, sizeof(bytes) - 1);
    bytes[n - 1] = (char)(bytes[n - 1] + changed);
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

/* Once its content is known. */
static struct identity identity_of(struct registry *r, const char *name)
{
    struct registry_model *m = get_named(r, name);
    for (int i = 0; i < 30000 && registry_identity(m)->kind != IDENTITY_CONTENT; i++)
        usleep(1000);
    const struct identity id = *registry_identity(m);
    registry_put(m);
    if (id.kind != IDENTITY_CONTENT)
        fail_msg("%s: the content is not known after 30 s", name);
    return id;
}

static void reload(struct registry *r, const char *name)
{
    struct err e = {0};
    enum registry_state state = REGISTRY_READY;
    assert_int_equal(registry_unload(r, name, &e), 0);
    for (int i = 0; i < 30000 && state != REGISTRY_UNLOADED; i++) {
        usleep(1000);
        assert_true(registry_state(r, name, &state));
    }
    assert_int_equal(state, REGISTRY_UNLOADED);
}

static void test_a_model_is_its_bytes(void **state)
{
    char dir[] = "/tmp/test_registry.XXXXXX", one[64], two[64];
    struct told told = {.renamed = 0};
    const struct registry_opts o = {.cache_dir = "", .identity = on_identity, .ctx = &told};
    struct registry *r;
    struct err e = {0};
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(one, sizeof(one), "%s/one.gguf", dir);
    snprintf(two, sizeof(two), "%s/two.gguf", dir);
    copy_model(one, 0);
    usleep(20000); /* so that the times differ */
    copy_model(two, 0);
    assert_int_equal(registry_create(&r, &o, &e), 0);
    const struct registry_spec specs[] = {
        {.name = "one", .path = one, .n_ctx = 64, .max_tasks = 1},
        {.name = "two", .path = two, .n_ctx = 64, .max_tasks = 1}};
    for (int i = 0; i < 2; i++)
        assert_int_equal(registry_add(r, &specs[i], &e), 0);
    struct identity a = identity_of(r, "one"), b = identity_of(r, "two");
    assert_memory_equal(a.sum, b.sum, sizeof(a.sum));
    assert_string_equal(a.version, b.version);
    assert_int_equal(told.renamed,
                     2); /* from an identity valid only here to the content's identity */
    assert_memory_equal(told.to, a.sum, sizeof(a.sum));
    assert_int_equal(told.dropped, 0);

    reload(r, "one"); /* the same file: known at once */
    struct registry_model *m = get_named(r, "one");
    assert_memory_equal(registry_identity(m)->sum, a.sum, sizeof(a.sum));
    registry_put(m);

    reload(r, "one");
    copy_model(one, 1); /* one byte */
    struct identity c = identity_of(r, "one");
    assert_memory_not_equal(c.sum, a.sum, sizeof(a.sum));
    assert_string_not_equal(c.version, a.version);
    assert_int_equal(told.dropped, 1); /* cached data of the old one */
    assert_int_equal(told.renamed, 3);

    reload(r, "one");
    copy_model(one, 0); /* and back: a different file again, but the same model as at first */
    c = identity_of(r, "one");
    assert_memory_equal(c.sum, a.sum, sizeof(a.sum));
    registry_destroy(r);
    unlink(one);
    unlink(two);
    rmdir(dir);
}

static void test_lent_engines(void **state)
{
    const struct registry_opts o = {.lent_only = true};
    const struct shoal_engine_opts eo = {
        .size = sizeof(eo), .n_ctx = 64, .max_tasks = 1, .cache_dir = ""};
    struct shoal_engine *engine;
    struct registry_model *m;
    struct registry *r;
    struct err e = {0};
    (void)state;
    assert_int_equal(shoal_engine_open(&engine, PATH, &eo, &e), 0);
    assert_int_equal(registry_create(&r, &o, &e), 0);
    assert_int_equal(registry_lend(r, "a", "set", engine, &e), 0);
    assert_int_equal(registry_lend(r, "a", NULL, engine, &e), SHOAL_EINVAL);
    assert_true(registry_ready(r));
    assert_int_equal(registry_get(r, NULL, SHOAL_KIND_GENERATE, &m, NULL, &e), 0);
    assert_ptr_equal(registry_engine(m), engine);
    assert_string_equal(m->labels, "set");
    assert_string_equal(registry_identity(m)->version, ""); /* it is unknown whose file it is */
    assert_null(registry_sum(m));
    registry_put(m);
    assert_int_equal(registry_get(r, "a", SHOAL_KIND_EMBED, &m, NULL, &e), SHOAL_EINVAL);
    assert_int_equal(registry_unload(r, "a", &e), 0); /* does nothing */
    assert_int_equal(registry_get(r, "a", SHOAL_KIND_GENERATE, &m, NULL, &e), 0);
    registry_put(m);
    registry_destroy(r);
    shoal_engine_close(engine); /* still open */

    const struct registry_opts threads = {.cache_dir = ""}; /* beside loaded models */
    assert_int_equal(shoal_engine_open(&engine, PATH, &eo, &e), 0);
    assert_int_equal(registry_create(&r, &threads, &e), 0);
    assert_int_equal(registry_lend(r, "a", NULL, engine, &e), 0);
    assert_int_equal(registry_remove(r, "a", &e), 0);
    enum registry_state s;
    assert_false(registry_state(r, "a", &s));
    registry_destroy(r);
    shoal_engine_close(engine);
}

static void test_epochs_are_held(void **state)
{
    const struct registry_opts o = {.lent_only = true};
    struct registry *r;
    struct err e = {0};
    (void)state;
    assert_int_equal(registry_create(&r, &o, &e), 0);
    assert_int_equal(registry_oldest_epoch(r), 0);
    assert_true(registry_hold_epoch(r, 7));
    assert_true(registry_hold_epoch(r, 3));
    assert_true(registry_hold_epoch(r, 3));
    assert_int_equal(registry_oldest_epoch(r), 3);
    registry_release_epoch(r, 3);
    assert_int_equal(registry_oldest_epoch(r), 3);
    registry_release_epoch(r, 3);
    assert_int_equal(registry_oldest_epoch(r), 7);
    uint32_t n = 0; /* more epochs than anybody uses at a time */
    while (n < 1000 && registry_hold_epoch(r, 100 + n))
        n++;
    assert_in_range(n, 1, 100);
    assert_true(registry_hold_epoch(r, 7)); /* a known epoch finds its slot */
    registry_release_epoch(r, 7);
    registry_release_epoch(r, 7);
    for (uint32_t i = 0; i < n; i++)
        registry_release_epoch(r, 100 + i);
    assert_int_equal(registry_oldest_epoch(r), 0);
    registry_destroy(r);
}

/* ---- adapters ---- */

#define BASE SHOAL_TEST_DATA "/folders/llama"
#define LORA SHOAL_TEST_DATA "/lora/llama"

static void add_named(struct registry *ms, const char *name, const char *path, const char *base,
                      double scale)
{
    const struct registry_spec spec = {.name = name,
                                       .path = path,
                                       .base = base,
                                       .adapter_scale = scale,
                                       .n_ctx = 64,
                                       .max_tasks = 1};
    struct err e = {0};
    if (registry_add(ms, &spec, &e) < 0)
        fail_msg("%s: %s", name, e.msg);
}

static void wait_state(struct registry *ms, const char *name, enum registry_state want)
{
    enum registry_state s = REGISTRY_FAILED;
    for (int i = 0; i < 30000 && registry_state(ms, name, &s) && s != want; i++)
        usleep(1000);
    assert_int_equal(s, want);
}

static const uint8_t *sum_of(const struct registry_model *m)
{
    for (int i = 0; i < 30000 && !registry_sum(m); i++)
        usleep(1000);
    assert_non_null(registry_sum(m));
    return registry_sum(m);
}

static void test_adapters_share_the_engine_of_their_base(void **state)
{
    const struct registry_opts o = {.cache_dir = NULL};
    struct registry *ms;
    struct err e = {0};
    char name[64];
    (void)state;
    assert_int_equal(registry_create(&ms, &o, &e), 0);
    add_named(ms, "b", BASE, NULL, 0);
    add_named(ms, "b:one", LORA, "b", 0);
    add_named(ms, "b:half", LORA, "b", 0.5);
    add_named(ms, "b:qv", SHOAL_TEST_DATA "/lora/llama-qv", "b", 0);
    add_named(ms, "b:same", LORA ".gguf", "b", 1);

    /* the first request loads the base, too */
    struct registry_model *one = get_named(ms, "b:one"), *half = get_named(ms, "b:half");
    struct registry_model *b = get_named(ms, "b"), *qv = get_named(ms, "b:qv");
    assert_ptr_equal(registry_engine(one), registry_engine(b));
    assert_ptr_equal(registry_engine(half), registry_engine(b));
    assert_null(registry_adapter(b));
    assert_non_null(registry_adapter(one));
    assert_ptr_not_equal(registry_adapter(one), registry_adapter(half));

    /* an identity is that of both files and the scale */
    struct registry_model *const all[] = {b, one, half, qv};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++)
            assert_memory_not_equal(sum_of(all[i]), sum_of(all[k]), SHA256_BYTES);

    assert_true(registry_adapter_name(ms, "b", 1, name, sizeof(name)));
    assert_string_equal(name, "b:half");
    assert_false(registry_adapter_name(ms, "b", 4, name, sizeof(name)));
    assert_false(registry_find_tagged(ms, "b:one", name, sizeof(name)));
    assert_true(registry_find_tagged(ms, "qv", name, sizeof(name)));
    assert_string_equal(name, "b:qv");

    /* a base in use by an adapter stays, and goes with all of them */
    registry_put(b);
    registry_put(half);
    registry_put(qv);
    assert_int_equal(registry_unload(ms, "b", &e), 0);
    assert_int_equal(registry_unload(ms, "b:qv", &e), 0);
    wait_state(ms, "b:qv", REGISTRY_UNLOADED);
    wait_state(ms, "b", REGISTRY_READY);
    registry_put(one);
    wait_state(ms, "b", REGISTRY_UNLOADED);
    wait_state(ms, "b:one", REGISTRY_UNLOADED);
    registry_put(get_named(ms, "b:one"));
    wait_state(ms, "b", REGISTRY_READY);

    /* a request without a name means no adapter */
    struct registry_model *any = NULL;
    assert_int_equal(registry_get(ms, NULL, SHOAL_KIND_GENERATE, &any, NULL, &e), 0);
    assert_string_equal(any->name, "b");
    registry_put(any);

    /* removed while it is in use, and with its base */
    one = get_named(ms, "b:one");
    assert_int_equal(registry_remove(ms, "b", &e), 0);
    assert_int_equal(registry_get(ms, "b:one", SHOAL_KIND_GENERATE, &any, NULL, &e),
                     SHOAL_ENOTFOUND);
    assert_non_null(registry_engine(one));
    registry_put(one);
    registry_destroy(ms);
}

static void test_adapters_that_cannot_be_loaded(void **state)
{
    const struct registry_opts o = {.cache_dir = NULL};
    const struct registry_spec lost = {.name = "x:y", .path = LORA, .base = "x"};
    const struct registry_spec twice = {.name = "b:one:two", .path = LORA, .base = "b:one"};
    struct registry *ms;
    struct registry_model *m;
    struct err e = {0};
    (void)state;
    assert_int_equal(registry_create(&ms, &o, &e), 0);
    add_named(ms, "b", BASE, NULL, 0);
    add_named(ms, "q", PATH, NULL, 0);
    add_named(ms, "none", BASE "/nothing", NULL, 0);
    add_named(ms, "b:one", LORA, "b", 0);
    add_named(ms, "q:one", LORA, "q", 0);
    add_named(ms, "none:one", LORA, "none", 0);
    assert_int_equal(registry_add(ms, &lost, &e), SHOAL_ENOTFOUND);
    assert_int_equal(registry_add(ms, &twice, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "an adapter itself"));
    assert_int_equal(registry_load(ms, "q:one", &e), 0);
    assert_int_equal(registry_load(ms, "none:one", &e), 0);
    wait_state(ms, "q:one", REGISTRY_FAILED);
    wait_state(ms, "none:one", REGISTRY_FAILED);
    assert_true(registry_get(ms, "q:one", SHOAL_KIND_GENERATE, &m, NULL, &e) < 0);
    assert_non_null(strstr(e.msg, "belongs to another base"));
    assert_true(registry_get(ms, "none:one", SHOAL_KIND_GENERATE, &m, NULL, &e) < 0);
    assert_non_null(strstr(e.msg, "its base could not be loaded"));
    registry_put(get_named(ms, "q")); /* the base serves without it */
    registry_destroy(ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_request_while_unloading_waits),
        cmocka_unit_test(test_load_while_unloading_loads),
        cmocka_unit_test(test_a_model_is_its_bytes),
        cmocka_unit_test(test_lent_engines),
        cmocka_unit_test(test_epochs_are_held),
        cmocka_unit_test(test_adapters_share_the_engine_of_their_base),
        cmocka_unit_test(test_adapters_that_cannot_be_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
