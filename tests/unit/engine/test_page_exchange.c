/* test_page_exchange.c - pages of a prompt that one engine has computed are used by another: the
 * same tokens, without computing them again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/decode/page_exchange.h"
#include "shoal/shoal.h"
#include "support/watchdog.h"

#define MODEL SHOAL_TEST_DATA "/refs/llama-gqa.gguf"
enum { N_PROMPT = 70, N_TOKENS = 20, N_WHOLE = N_PROMPT / PAGE_EXCHANGE_TOKENS };

struct got {
    int32_t tokens[N_TOKENS];
    uint32_t n, cached;
};

static int32_t prompt[N_PROMPT];

static void on_event(void *ctx, const struct shoal_event *ev)
{
    struct got *g = ctx;
    if (ev->kind == SHOAL_EVENT_DONE)
        g->cached = ev->cached_tokens;
    else if (ev->token >= 0 && g->n < N_TOKENS)
        g->tokens[g->n++] = ev->token;
}

static struct shoal_engine *open_engine(uint32_t kv_bytes)
{
    const struct shoal_engine_opts o = {
        .size = sizeof(o), .cache_dir = "", .n_ctx = 128, .kv_bytes = kv_bytes, .max_tasks = 1};
    struct shoal_engine *en = NULL;
    struct err e = {0};
    if (shoal_engine_open(&en, MODEL, &o, &e) < 0)
        fail_msg("%s", e.msg);
    return en;
}

static struct got generate(struct shoal_engine *en, uint64_t client)
{
    struct got g = {.n = 0};
    const struct shoal_task_opts o = {.size = sizeof(o),
                                      .tokens = prompt,
                                      .n_tokens = N_PROMPT,
                                      .max_tokens = N_TOKENS,
                                      .ignore_end = true,
                                      .client = client,
                                      .event = on_event,
                                      .event_ctx = &g};
    struct shoal_task *t = NULL;
    struct err e = {0};
    if (shoal_task_submit(en, &o, &t, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(shoal_task_wait(t), 0);
    shoal_task_free(t);
    return g;
}

struct waiting {
    struct page_job job; /* first */
    _Atomic bool done;
};

static void on_done(struct page_job *j)
{
    atomic_store(&((struct waiting *)(void *)j)->done, true);
}

/* n_pages of the job afterwards. */
static uint32_t exchange(struct shoal_engine *en, struct page_job job)
{
    struct waiting w = {.job = job};
    w.job.done = on_done;
    w.job.tokens = prompt;
    w.job.n_tokens = N_PROMPT;
    page_exchange_submit(en, &w.job);
    WAIT_UNTIL(atomic_load(&w.done));
    return w.job.n_pages;
}

static int setup(void **state)
{
    (void)state;
    for (int32_t i = 0; i < N_PROMPT; i++)
        prompt[i] = 1 + i * 37 % 300;
    return 0;
}

static void test_another_engine_goes_on(void **state)
{
    (void)state;
    struct shoal_engine *a = open_engine(0), *b = open_engine(0);
    const size_t bytes = page_exchange_bytes(a);
    uint8_t *data = calloc(N_WHOLE, bytes);
    assert_true(bytes > 0 && data);
    assert_int_equal(page_exchange_bytes(NULL), 0);
    const struct page_job out = {.data = data, .max_pages = N_WHOLE, .scope = 5};
    assert_int_equal(exchange(a, out), 0); /* nothing yet, and the engine sleeps */
    const struct got first = generate(a, 5);
    assert_int_equal(first.cached, 0);
    assert_int_equal(exchange(a, out), N_WHOLE);
    struct page_job other = out;
    other.scope = 6; /* another client's */
    uint8_t *none = calloc(N_WHOLE, bytes);
    other.data = none;
    assert_int_equal(exchange(a, other), 0);
    struct page_job in = {.import = true, .data = data, .n_pages = N_WHOLE, .scope = 5};
    assert_int_equal(exchange(b, in), N_WHOLE);
    assert_int_equal(exchange(b, in), 0); /* it has them */
    const struct got next = generate(b, 5);
    assert_int_equal(next.cached, N_WHOLE * PAGE_EXCHANGE_TOKENS);
    assert_memory_equal(next.tokens, first.tokens, sizeof(first.tokens));
    /* what was imported leaves again, from the second page on */
    other = out;
    other.data = none;
    other.skip = 1;
    assert_int_equal(exchange(b, other), N_WHOLE - 1);
    assert_memory_equal(none, data + bytes, (N_WHOLE - 1) * bytes);
    assert_int_equal(generate(b, 6).cached, 0); /* not for another client */
    shoal_engine_close(a);
    shoal_engine_close(b);
    free(data);
    free(none);
}

/* The import is used as it is: what another node sends decides what is computed. */
static void test_the_pages_are_what_is_used(void **state)
{
    (void)state;
    struct shoal_engine *a = open_engine(0), *b = open_engine(0);
    const size_t bytes = page_exchange_bytes(a);
    uint8_t *data = calloc(N_WHOLE, bytes);
    const struct got first = generate(a, 1);
    assert_int_equal(exchange(a, (struct page_job){.data = data, .max_pages = N_WHOLE, .scope = 1}),
                     N_WHOLE);
    memset(data, 0, bytes);
    assert_int_equal(
        exchange(b,
                 (struct page_job){.import = true, .data = data, .n_pages = N_WHOLE, .scope = 1}),
        N_WHOLE);
    const struct got next = generate(b, 1);
    assert_memory_not_equal(next.tokens, first.tokens, sizeof(first.tokens));
    shoal_engine_close(a);
    shoal_engine_close(b);
    free(data);
}

/* A closed engine gives its jobs back. */
static void test_an_engine_that_ends(void **state)
{
    (void)state;
    struct waiting w[50];
    struct shoal_engine *a = open_engine(0);
    memset(w, 0, sizeof(w));
    for (size_t i = 0; i < 50; i++) {
        w[i].job = (struct page_job){.done = on_done, .tokens = prompt, .n_tokens = N_PROMPT};
        page_exchange_submit(a, &w[i].job);
    }
    shoal_engine_close(a);
    for (size_t i = 0; i < 50; i++)
        assert_true(atomic_load(&w[i].done));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_engine_goes_on),
        cmocka_unit_test(test_the_pages_are_what_is_used),
        cmocka_unit_test(test_an_engine_that_ends),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
