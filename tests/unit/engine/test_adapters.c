/* test_adapters.c - tasks with different LoRA adapters in one engine: each answers as if it were
 * alone, finds no prefix that another adapter has computed, and outlives the closing of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shoal/shoal.h"
#include "support/watchdog.h"

enum { PROMPT = 60, ANSWER = 40, TASKS = 8 };

#define DATA SHOAL_TEST_DATA

struct got {
    int32_t tokens[ANSWER];
    float logprobs[ANSWER]; /* differ with any bit */
    uint32_t n, cached;
    _Atomic uint32_t seen, hold_at;
};

static void on_event(void *ctx, const struct shoal_event *ev)
{
    struct got *g = ctx;
    if (ev->kind == SHOAL_EVENT_DONE) {
        g->cached = ev->cached_tokens;
        return;
    }
    if (ev->token >= 0 && g->n < ANSWER) {
        g->logprobs[g->n] = ev->logprob;
        g->tokens[g->n++] = ev->token;
    }
    const uint32_t seen = atomic_fetch_add(&g->seen, 1) + 1;
    WAIT_UNTIL(seen != atomic_load(&g->hold_at));
}

static struct shoal_engine *open_engine(uint32_t n_threads)
{
    const struct shoal_engine_opts o = {.size = sizeof(o),
                                        .cache_dir = "",
                                        .n_ctx = 256,
                                        .max_tasks = TASKS,
                                        .n_threads = n_threads};
    struct shoal_engine *en = NULL;
    struct err e = {0};
    if (shoal_engine_open(&en, DATA "/folders/llama", &o, &e) < 0)
        fail_msg("%s", e.msg);
    return en;
}

static struct shoal_adapter *open_adapter(struct shoal_engine *en, const char *name)
{
    char path[256];
    struct shoal_adapter *a;
    struct err e = {0};
    snprintf(path, sizeof(path), DATA "/lora/%s", name);
    if (shoal_adapter_open(&a, en, path, 1.0, &e) < 0)
        fail_msg("%s", e.msg);
    assert_true(shoal_adapter_bytes(a) > 0);
    return a;
}

static struct shoal_task *submit(struct shoal_engine *en, struct got *g,
                                 const struct shoal_adapter *a, double scale, bool fresh)
{
    int32_t tokens[PROMPT];
    struct shoal_task *t = NULL;
    struct err e = {0};
    for (int i = 0; i < PROMPT; i++)
        tokens[i] = 3 + i * 7 % 250;
    const struct shoal_task_opts o = {.size = sizeof(o),
                                      .tokens = tokens,
                                      .n_tokens = PROMPT,
                                      .max_tokens = ANSWER,
                                      .ignore_end = true,
                                      .sampling = {.logprobs = true},
                                      .fresh_prefix = fresh,
                                      .adapter = a,
                                      .adapter_scale = scale,
                                      .event = on_event,
                                      .event_ctx = g};
    if (shoal_task_submit(en, &o, &t, &e) < 0)
        fail_msg("%s", e.msg);
    return t;
}

static void finish(struct shoal_task *t)
{
    assert_int_equal(shoal_task_wait(t), 0);
    shoal_task_free(t);
}

/* Returns how many tokens of the prompt were cached. */
static uint32_t ask(struct shoal_engine *en, struct got *g, const struct shoal_adapter *a,
                    double scale, bool fresh)
{
    memset(g, 0, sizeof(*g));
    finish(submit(en, g, a, scale, fresh));
    assert_int_equal(g->n, ANSWER);
    return g->cached;
}

static bool same(const struct got *a, const struct got *b)
{
    return memcmp(a->tokens, b->tokens, sizeof(a->tokens)) == 0 &&
           memcmp(a->logprobs, b->logprobs, sizeof(a->logprobs)) == 0;
}

static void test_a_batch_of_adapters_answers_as_each_alone(void **state)
{
    static struct got alone[4], together[TASKS];
    (void)state;
    for (uint32_t threads = 1; threads <= 2; threads++) {
        struct shoal_engine *en = open_engine(threads);
        struct shoal_adapter *a = open_adapter(en, "llama"), *b = open_adapter(en, "llama-qv");
        const struct {
            const struct shoal_adapter *adapter;
            double scale;
        } kinds[4] = {{NULL, 0}, {a, 0}, {b, 0}, {a, 0.5}};
        struct shoal_task *tasks[TASKS];
        for (int i = 0; i < 4; i++)
            ask(en, &alone[i], kinds[i].adapter, kinds[i].scale, true);
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < i; j++)
                assert_false(same(&alone[i], &alone[j]));
        memset(together, 0, sizeof(together));
        for (int i = 0; i < TASKS; i++)
            tasks[i] =
                submit(en, &together[i], kinds[i % 4].adapter, kinds[i % 4].scale, i < TASKS / 2);
        for (int i = 0; i < TASKS; i++)
            finish(tasks[i]);
        for (int i = 0; i < TASKS; i++)
            assert_true(same(&together[i], &alone[i % 4]));
        shoal_adapter_close(a);
        shoal_adapter_close(b);
        shoal_engine_close(en);
    }
}

static void test_prefixes_are_found_by_the_same_adapter_only(void **state)
{
    static struct got first, other;
    (void)state;
    struct shoal_engine *en = open_engine(1);
    struct shoal_adapter *a = open_adapter(en, "llama"), *b = open_adapter(en, "llama-qv");
    assert_int_equal(ask(en, &first, a, 0, false), 0);
    assert_int_equal(ask(en, &other, b, 0, false), 0);
    assert_int_equal(ask(en, &other, a, 0.5, false), 0);
    assert_int_equal(ask(en, &other, NULL, 0, false), 0);
    assert_int_equal(ask(en, &other, a, 0, false), 48);
    assert_true(same(&first, &other));
    assert_int_equal(ask(en, &other, a, 1.0, false), 48); /* its own scale, by number */
    /* opened again, it is another one: the file may have changed */
    shoal_adapter_close(a);
    a = open_adapter(en, "llama.gguf");
    assert_int_equal(ask(en, &other, a, 0, false), 0);
    assert_true(same(&first, &other));
    shoal_adapter_close(a);
    shoal_adapter_close(b);
    shoal_engine_close(en);
}

/* Adapters are closed and opened while tasks decode with them. */
static void test_a_closed_adapter_lasts_as_long_as_its_tasks(void **state)
{
    static struct got alone, running, more;
    (void)state;
    struct shoal_engine *en = open_engine(2);
    struct shoal_adapter *a = open_adapter(en, "llama");
    ask(en, &alone, a, 0, true);
    memset(&running, 0, sizeof(running));
    atomic_store(&running.hold_at, 3);
    struct shoal_task *t = submit(en, &running, a, 0, true);
    WAIT_UNTIL(atomic_load(&running.seen) >= 3);
    shoal_adapter_close(a);
    atomic_store(&running.hold_at, 0);
    for (int i = 0; i < 6; i++) { /* and again, while it decodes or after it */
        struct shoal_adapter *b = open_adapter(en, i % 2 ? "llama" : "llama-qv");
        memset(&more, 0, sizeof(more));
        struct shoal_task *u = submit(en, &more, b, 0, i < 3);
        shoal_adapter_close(b);
        finish(u);
        assert_int_equal(more.n, ANSWER);
        if (i % 2)
            assert_true(same(&more, &alone));
    }
    finish(t);
    assert_true(same(&running, &alone));
    shoal_engine_close(en);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    struct shoal_engine *en = open_engine(1), *other = open_engine(1);
    struct shoal_adapter *a = open_adapter(other, "llama"), *none = a;
    struct shoal_task *t;
    struct err e = {0};
    const int32_t one = 5;
    struct shoal_task_opts o = {
        .size = sizeof(o), .tokens = &one, .n_tokens = 1, .max_tokens = 1, .adapter = a};
    assert_int_equal(shoal_task_submit(en, &o, &t, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "another engine"));
    o.adapter = NULL;
    o.adapter_scale = 0.5;
    assert_int_equal(shoal_task_submit(other, &o, &t, &e), SHOAL_EINVAL);
    o.adapter = a;
    o.adapter_scale = 1e9;
    assert_int_equal(shoal_task_submit(other, &o, &t, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "adapter_scale"));
    assert_int_equal(shoal_adapter_open(&none, en, DATA "/lora/llama", 1e9, &e), SHOAL_EINVAL);
    assert_null(none);
    assert_true(shoal_adapter_open(&none, en, DATA "/lora/gptneox", 1, &e) < 0);
    assert_true(shoal_adapter_open(&none, en, DATA "/lora/none", 1, &e) < 0);
    assert_null(none);
    shoal_adapter_close(a);
    shoal_engine_close(other);
    shoal_engine_close(en);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_batch_of_adapters_answers_as_each_alone),
        cmocka_unit_test(test_prefixes_are_found_by_the_same_adapter_only),
        cmocka_unit_test(test_a_closed_adapter_lasts_as_long_as_its_tasks),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
