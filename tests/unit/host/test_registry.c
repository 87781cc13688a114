/* test_registry.c - the registry of models: what is asked for while it is being unloaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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
static struct registry_model *get(struct registry *ms)
{
    struct waiter w = {.wait.fn = on_loaded};
    struct registry_model *m = NULL;
    struct err e = {0};
    int rc = registry_get(ms, "a", SHOAL_KIND_GENERATE, &m, &w.wait, &e);
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

/* As soon as it is not ready any more, it is asked for. */
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
    registry_destroy(ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_request_while_unloading_waits),
        cmocka_unit_test(test_load_while_unloading_loads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
