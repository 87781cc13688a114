/* test_models.c - the registry of models: what is asked for while it is being unloaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/models.h"

#define PATH SHOAL_TEST_DATA "/refs/qwen3.gguf"

struct waiter {
    struct model_wait wait;
    _Atomic int calls;
    int rc;
    struct model *model;
};

static void on_loaded(struct model_wait *w, struct model *m, int rc)
{
    struct waiter *x = (struct waiter *)(void *)w;
    x->rc = rc;
    x->model = m;
    x->calls++;
}

static void look(void *ctx, const struct model *m)
{
    *(enum model_state *)ctx = m->slot->state;
}

static enum model_state state_of(struct models *ms)
{
    enum model_state s = MODEL_FAILED;
    models_each(ms, look, &s);
    return s;
}

/* Gets it, waiting as long as it takes. */
static struct model *get(struct models *ms)
{
    struct waiter w = {.wait.fn = on_loaded};
    struct model *m = NULL;
    struct err e = {0};
    int rc = models_get(ms, "a", SHOAL_KIND_GENERATE, &m, &w.wait, &e);
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

static struct models *open_models(void)
{
    const struct models_opts o = {.cache_dir = NULL};
    const struct model_spec spec = {.name = "a", .path = PATH, .n_ctx = 64, .max_tasks = 1};
    struct models *ms;
    struct err e = {0};
    if (models_create(&ms, &o, &e) < 0 || models_add(ms, &spec, &e) < 0)
        fail_msg("%s", e.msg);
    return ms;
}

/* As soon as it is not ready any more, it is asked for. */
static void test_a_request_while_unloading_waits(void **state)
{
    struct models *ms = open_models();
    struct err e = {0};
    (void)state;
    for (int round = 0; round < 30; round++) {
        models_put(get(ms));
        assert_int_equal(models_unload(ms, "a", &e), 0);
        while (state_of(ms) == MODEL_READY)
            ;
    }
    models_put(get(ms));
    models_destroy(ms);
}

static void test_load_while_unloading_loads(void **state)
{
    struct models *ms = open_models();
    struct err e = {0};
    (void)state;
    for (int round = 0; round < 30; round++) {
        models_put(get(ms));
        assert_int_equal(models_unload(ms, "a", &e), 0);
        while (state_of(ms) == MODEL_READY)
            ;
        assert_int_equal(models_load(ms, "a", &e), 0);
        for (int i = 0; i < 30000 && state_of(ms) != MODEL_READY; i++)
            usleep(1000);
        assert_int_equal(state_of(ms), MODEL_READY);
    }
    models_destroy(ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_request_while_unloading_waits),
        cmocka_unit_test(test_load_while_unloading_loads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
