/* test_engine.c - the public library on a small real file: generation, determinism, batching,
 * shared prefixes, cancel, deadlines, limits, and no allocations per token. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "engine/engine_state.h"
#include "shoal/shoal.h"
#include "support/watchdog.h"

#define MODEL SHOAL_TEST_DATA "/refs/llama-gqa.gguf"

/* Every call into the C library's heap, from any thread, while counting is on. */
static _Atomic bool counting;
static _Atomic uint64_t heap_calls;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
#define COUNTS_HEAP 1
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t m);
void *__libc_realloc(void *p, size_t n);
static void note(void)
{
    if (atomic_load_explicit(&counting, memory_order_relaxed))
        atomic_fetch_add_explicit(&heap_calls, 1, memory_order_relaxed);
}
void *malloc(size_t n)
{
    note();
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t m)
{
    note();
    return __libc_calloc(n, m);
}
void *realloc(void *p, size_t n)
{
    note();
    return __libc_realloc(p, n);
}
#endif

struct got {
    int32_t tokens[512];
    float logprobs[512];
    char text[4096];
    size_t n, text_bytes;
    size_t shown[512]; /* bytes of text with and before each token */
    struct shoal_event done;
    uint32_t n_top;
    uint32_t n_last, n_after_last; /* tokens marked as the last; those after one */
    uint64_t hold_until_ns;        /* an event before this time waits for it */
    bool count_heap;               /* count heap calls from the first to the last token */
    _Atomic uint32_t seen;
    _Atomic uint32_t hold_at; /* the engine blocks at this event until it is 0 */
    struct got *other;
    uint32_t other_seen; /* the events seen when this task ended */
};

static void on_event(void *ctx, const struct shoal_event *ev)
{
    struct got *g = ctx;
    while (clock_ns() < g->hold_until_ns) /* the task cannot end before that */
        usleep(1000);
    if (ev->kind == SHOAL_EVENT_DONE) {
        atomic_store(&counting, false);
        g->done = *ev;
        g->other_seen = g->other ? atomic_load(&g->other->seen) : 0;
        return;
    }
    if (ev->token >= 0 && g->n < 512) {
        g->logprobs[g->n] = ev->logprob;
        g->tokens[g->n++] = ev->token;
    }
    g->n_top = ev->n_top;
    g->n_after_last += g->n_last > 0;
    g->n_last += ev->last;
    if (g->text_bytes + ev->text_bytes < sizeof(g->text)) {
        memcpy(g->text + g->text_bytes, ev->text, ev->text_bytes);
        g->text_bytes += ev->text_bytes;
    }
    if (ev->token >= 0)
        g->shown[g->n - 1] = g->text_bytes;
    uint32_t seen = atomic_fetch_add(&g->seen, 1) + 1;
    WAIT_UNTIL(seen != atomic_load(&g->hold_at));
    if (g->count_heap)
        atomic_store(&counting, true);
}

/* Waits until the engine blocks at the requested event. */
static void wait_for_hold(struct got *g)
{
    WAIT_UNTIL(atomic_load(&g->seen) >= atomic_load(&g->hold_at));
}

static struct shoal_engine *open_engine(struct shoal_engine_opts o)
{
    struct shoal_engine *en = NULL;
    struct err e = {0};
    o.size = sizeof(o);
    o.cache_dir = "";
    if (shoal_engine_open(&en, MODEL, &o, &e) < 0)
        fail_msg("%s", e.msg);
    return en;
}

static const int32_t prompt[] = {1,  7,   33, 120, 260, 9,  14,  77, 300, 45,  8, 19,
                                 22, 200, 31, 90,  55,  66, 101, 12, 13,  250, 7, 41,
                                 42, 43,  44, 111, 99,  98, 97,  96, 95,  3,   5, 270};
#define N_PROMPT ((uint32_t)(sizeof(prompt) / sizeof(prompt[0])))

static struct shoal_task_opts task_opts(struct got *g)
{
    memset(g, 0, sizeof(*g));
    return (struct shoal_task_opts){.size = sizeof(struct shoal_task_opts),
                                    .tokens = prompt,
                                    .n_tokens = N_PROMPT,
                                    .max_tokens = 40,
                                    .ignore_end = true,
                                    .event = on_event,
                                    .event_ctx = g};
}

static int run(struct shoal_engine *en, struct shoal_task_opts o)
{
    struct shoal_task *t = NULL;
    struct err e = {0};
    if (shoal_task_submit(en, &o, &t, &e) < 0)
        fail_msg("%s", e.msg);
    int rc = shoal_task_wait(t);
    shoal_task_free(t);
    return rc;
}

static void test_generates_and_reports(void **state)
{
    (void)state;
    static struct got a, b;
    struct shoal_engine *en = open_engine((struct shoal_engine_opts){0});
    struct shoal_engine_info info = {.size = sizeof(info)};
    shoal_engine_info(en, &info);
    assert_string_equal(info.arch, "llama");
    assert_true(info.weights_bytes > 0 && info.kv_pages == info.kv_pages_free);
    struct shoal_task_opts o = task_opts(&a);
    o.sampling.n_logprobs = 3;
    o.sampling.logprobs = true;
    assert_int_equal(run(en, o), 0);
    assert_int_equal(a.n, 40);
    assert_int_equal(a.done.finish, SHOAL_FINISH_LENGTH);
    assert_int_equal(a.n_last, 1);
    assert_int_equal(a.n_after_last, 0);
    assert_int_equal(a.done.prompt_tokens, N_PROMPT);
    assert_int_equal(a.done.generated_tokens, 40);
    assert_int_equal(a.n_top, 3);
    for (size_t i = 0; i < a.n; i++)
        assert_true(a.logprobs[i] < 0.0f);
    char *text = NULL;
    size_t n = 0;
    assert_int_equal(shoal_detokenize(en, a.tokens, a.n, 0, &text, &n, NULL), 0);
    /* streamed pieces and the text of all tokens agree, except for the space at the start */
    size_t skip = n < a.text_bytes ? a.text_bytes - n : 0;
    assert_true(skip <= 1);
    assert_memory_equal(text, a.text + skip, n);
    shoal_free(text);
    /* the second time most of the prompt is cached */
    assert_int_equal(run(en, task_opts(&b)), 0);
    assert_int_equal(b.done.cached_tokens, N_PROMPT / 16 * 16);
    assert_memory_equal(a.tokens, b.tokens, a.n * sizeof(a.tokens[0]));
    /* but none of it for a task that wants it computed */
    struct shoal_task_opts fresh = task_opts(&b);
    memset(&b, 0, sizeof(b));
    fresh.fresh_prefix = true;
    assert_int_equal(run(en, fresh), 0);
    assert_int_equal(b.done.cached_tokens, 0);
    assert_memory_equal(a.tokens, b.tokens, a.n * sizeof(a.tokens[0]));
    shoal_engine_info(en, &info);
    assert_int_equal(info.kv_pages, info.kv_pages_free);
    shoal_engine_close(en);
}

/* What a client has sent is found neither by others nor by tasks of no client, unless both ask for
 * that; also while it is being computed. */
static void test_a_prefix_is_found_by_its_client_only(void **state)
{
    static const struct {
        uint64_t client;
        bool shared;
        uint32_t cached; /* pages */
    } rows[] = {{1, false, 0}, {2, false, 0}, {0, false, 0}, {1, false, 1}, {2, false, 1},
                {3, true, 1},  {4, true, 1},  {4, false, 0}, {0, false, 1}};
    static struct got a, alone, together[2];
    (void)state;
    struct shoal_engine *en = open_engine((struct shoal_engine_opts){0});
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct shoal_task_opts o = task_opts(&a);
        memset(&a, 0, sizeof(a));
        o.client = rows[i].client;
        o.shared_prefix = rows[i].shared;
        assert_int_equal(run(en, o), 0);
        if (a.done.cached_tokens != rows[i].cached * (N_PROMPT / 16 * 16))
            fail_msg("row %zu: %u tokens of the prompt are cached", i, a.done.cached_tokens);
        if (i == 0)
            alone = a;
        assert_memory_equal(a.tokens, alone.tokens, alone.n * sizeof(alone.tokens[0]));
    }
    struct shoal_task *t[2];
    for (int i = 0; i < 2; i++) {
        struct shoal_task_opts o = task_opts(&together[i]);
        o.client = 10 + (uint64_t)i;
        o.held = true;
        assert_int_equal(shoal_task_submit(en, &o, &t[i], NULL), 0);
    }
    shoal_engine_wake(en);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(shoal_task_wait(t[i]), 0);
        shoal_task_free(t[i]);
        assert_int_equal(together[i].done.cached_tokens, 0);
    }
    shoal_engine_close(en);
}

static void test_seed_decides_and_a_continuation_is_the_same(void **state)
{
    (void)state;
    static struct got a, b, c, d;
    struct shoal_engine *en = open_engine((struct shoal_engine_opts){.n_threads = 2});
    struct shoal_sampling s = {.temperature = 1.3f,
                               .top_k = 100,
                               .top_p = 0.95f,
                               .min_p = 0.001f,
                               .repeat_penalty = 1.1f,
                               .presence_penalty = 0.3f,
                               .frequency_penalty = 0.2f,
                               .seed = 42};
    struct shoal_task_opts o = task_opts(&a);
    o.sampling = s;
    assert_int_equal(run(en, o), 0);
    o = task_opts(&b);
    o.sampling = s;
    assert_int_equal(run(en, o), 0);
    assert_memory_equal(a.tokens, b.tokens, 40 * sizeof(a.tokens[0]));
    o = task_opts(&c);
    o.sampling = s;
    o.sampling.seed = 43;
    assert_int_equal(run(en, o), 0);
    assert_memory_not_equal(a.tokens, c.tokens, 40 * sizeof(a.tokens[0]));

    /* another engine takes over after 17 tokens: with other kernels, threads and KV layout */
    shoal_engine_close(en);
    en = open_engine((struct shoal_engine_opts){.n_threads = 1, .kernels = "scalar", .chunk = 5});
    int32_t so_far[N_PROMPT + 17];
    memcpy(so_far, prompt, sizeof(prompt));
    memcpy(so_far + N_PROMPT, a.tokens, 17 * sizeof(so_far[0]));
    o = task_opts(&d);
    o.tokens = so_far;
    o.n_tokens = N_PROMPT + 17;
    o.n_continued = 17;
    o.max_tokens = 23;
    o.sampling = s;
    assert_int_equal(run(en, o), 0);
    assert_int_equal(d.n, 23);
    assert_memory_equal(a.tokens + 17, d.tokens, 23 * sizeof(a.tokens[0]));
    shoal_engine_close(en);
}

static void check_batched_tasks(const char *kernels)
{
    enum { N = 12 };
    static struct got alone[N], together[N];
    static int32_t prompts[N][60];
    struct shoal_task *tasks[N];
    struct shoal_engine *en = open_engine((struct shoal_engine_opts){
        .max_tasks = 5, .n_threads = 2, .chunk = 16, .n_ctx = 256, .kernels = kernels});
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t j = 0; j < 60; j++) /* the first 20 tokens are shared */
            prompts[i][j] = (int32_t)(j < 20 ? j * 3 + 4 : (i * 31 + j * 17) % 300 + 3);
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < N; i++) {
            struct shoal_task_opts o = task_opts(pass ? &together[i] : &alone[i]);
            o.tokens = prompts[i];
            o.n_tokens = 21 + i * 3;
            o.max_tokens = 10 + i;
            o.priority = (int32_t)(i % 3);
            o.deadline_ns = clock_ns() + (uint64_t)(60 + i % 4) * 1000000000u;
            if (pass == 0)
                assert_int_equal(run(en, o), 0);
            else
                assert_int_equal(shoal_task_submit(en, &o, &tasks[i], NULL), 0);
        }
    for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(shoal_task_wait(tasks[i]), 0);
        shoal_task_free(tasks[i]);
        assert_int_equal(together[i].n, alone[i].n);
        assert_memory_equal(together[i].tokens, alone[i].tokens, alone[i].n * sizeof(int32_t));
    }
    struct shoal_engine_info info = {.size = sizeof(info)};
    shoal_engine_info(en, &info);
    assert_int_equal(info.kv_pages, info.kv_pages_free);
    shoal_engine_close(en);
}

static void test_batched_tasks_equal_tasks_alone(void **state)
{
    (void)state;
    check_batched_tasks(NULL);
    check_batched_tasks("scalar"); /* the kernels that ThreadSanitizer instruments */
}

/* Two live prompts with a common prefix hold its pages once. */
static void test_live_tasks_share_a_prefix(void **state)
{
    (void)state;
    static struct got a, b;
    struct shoal_engine *en = open_engine((struct shoal_engine_opts){.n_ctx = 1024, .chunk = 32});
    static int32_t tokens[640];
    for (int i = 0; i < 640; i++)
        tokens[i] = i % 290 + 5;
    struct shoal_task *ta, *tb;
    struct shoal_task_opts o = task_opts(&a);
    o.tokens = tokens;
    o.n_tokens = 640;
    o.max_tokens = 60;
    assert_int_equal(shoal_task_submit(en, &o, &ta, NULL), 0);
    o = task_opts(&b);
    o.tokens = tokens;
    o.n_tokens = 640;
    o.max_tokens = 60;
    assert_int_equal(shoal_task_submit(en, &o, &tb, NULL), 0);
    assert_int_equal(shoal_task_wait(ta), 0);
    assert_int_equal(shoal_task_wait(tb), 0);
    shoal_task_free(ta);
    shoal_task_free(tb);
    assert_int_equal(a.done.cached_tokens + b.done.cached_tokens, 624);
    assert_memory_equal(a.tokens, b.tokens, 60 * sizeof(int32_t));
    shoal_engine_close(en);
}

static void test_stop_strings_span_tokens(void **state)
{
    (void)state;
    static struct got a, b;
    struct shoal_engine *en = open_engine((struct shoal_engine_opts){0});
    assert_int_equal(run(en, task_opts(&a)), 0);
    /* a stop string from the middle of the answer, across token boundaries */
    assert_true(a.text_bytes > 24);
    char stop[9] = {0};
    size_t at = 0;
    for (size_t i = 8; i + 8 < a.text_bytes && !at; i++) { /* one that occurs there only once */
        memcpy(stop, a.text + i, 8);
        if (strstr(a.text, stop) == a.text + i && !memchr(stop, 0, 8))
            at = i;
    }
    assert_true(at > 0);
    const char *stops[] = {"never there", stop};
    struct shoal_task_opts o = task_opts(&b);
    o.stop = stops;
    o.n_stop = 2;
    assert_int_equal(run(en, o), 0);
    assert_int_equal(b.done.finish, SHOAL_FINISH_STOP);
    assert_int_equal(b.text_bytes, at);
    assert_memory_equal(b.text, a.text, at);
    /* continued after any number of its tokens, also after all of them, the text is unchanged: a
     * partial stop string is completed */
    for (size_t k = 0; k <= b.n; k++) {
        static struct got c;
        int32_t so_far[N_PROMPT + 512];
        memcpy(so_far, prompt, sizeof(prompt));
        memcpy(so_far + N_PROMPT, b.tokens, k * sizeof(so_far[0]));
        o = task_opts(&c);
        o.stop = stops;
        o.n_stop = 2;
        o.tokens = so_far;
        o.n_tokens = N_PROMPT + (uint32_t)k;
        o.n_continued = (uint32_t)k;
        size_t before = k > 0 ? b.shown[k - 1] : 0;
        assert_int_equal(run(en, o), 0);
        assert_int_equal(c.done.finish, SHOAL_FINISH_STOP);
        assert_int_equal(c.n, b.n - k);
        assert_int_equal(c.text_bytes, at - before);
        assert_memory_equal(c.text, b.text + before, at - before);
    }
    shoal_engine_close(en);
}

static void test_bias_forbids_and_forces(void **state)
{
    (void)state;
    static struct got a, b, c;
    struct shoal_engine *en = open_engine((struct shoal_engine_opts){0});
    assert_int_equal(run(en, task_opts(&a)), 0);
    struct shoal_bias forbid = {a.tokens[0], -1e30f}, force = {77, 1000.0f};
    struct shoal_task_opts o = task_opts(&b);
    o.sampling.bias = &forbid;
    o.sampling.n_bias = 1;
    assert_int_equal(run(en, o), 0);
    for (size_t i = 0; i < b.n; i++)
        assert_int_not_equal(b.tokens[i], a.tokens[0]);
    o = task_opts(&c);
    o.sampling.temperature = 1.0f;
    o.sampling.bias = &force;
    o.sampling.n_bias = 1;
    assert_int_equal(run(en, o), 0);
    for (size_t i = 0; i < c.n; i++)
        assert_int_equal(c.tokens[i], 77);
    shoal_engine_close(en);
}

static void test_cancel_and_deadline_end_a_task(void **state)
{
    (void)state;
    static struct got a, b;
    struct shoal_engine *en = open_engine((struct shoal_engine_opts){.n_ctx = 2048});
    struct shoal_task *t;
    struct err e = {0};
    struct shoal_task_opts o = task_opts(&a);
    o.max_tokens = 0;
    a.hold_at = 3; /* it cannot end before it is cancelled */
    assert_int_equal(shoal_task_submit(en, &o, &t, &e), 0);
    wait_for_hold(&a);
    shoal_task_cancel(t);
    atomic_store(&a.hold_at, 0);
    assert_int_equal(shoal_task_wait(t), SHOAL_ECANCELLED);
    assert_int_equal(a.done.finish, SHOAL_FINISH_ERROR);
    assert_true(a.n >= 3 && a.done.generated_tokens < 2000);
    shoal_task_free(t);
    shoal_engine_close(en);

    /* An engine without measurements refuses only a deadline that has passed: then this thread
     * was kept waiting, and retries with more time. */
    en = open_engine((struct shoal_engine_opts){.n_ctx = 2048});
    int rc = SHOAL_EDEADLINE;
    for (uint64_t ms = 20; rc == SHOAL_EDEADLINE && ms < 60000; ms *= 2) {
        o = task_opts(&b);
        o.max_tokens = 0;
        o.deadline_ns = b.hold_until_ns = clock_ns() + ms * 1000000;
        rc = shoal_task_submit(en, &o, &t, &e);
    }
    assert_int_equal(rc, 0);
    assert_int_equal(shoal_task_wait(t), SHOAL_EDEADLINE);
    shoal_task_free(t);
    o.deadline_ns = clock_ns() - 1;
    assert_int_equal(shoal_task_submit(en, &o, &t, &e), SHOAL_EDEADLINE);
    shoal_engine_close(en);
}

/* Once prompts are measured, a request that cannot get its first token in time is rejected at
 * once. */
static void test_what_comes_too_late_is_refused(void **state)
{
    (void)state;
    static struct got a;
    static int32_t tokens[512];
    struct shoal_engine *en = open_engine((struct shoal_engine_opts){.n_ctx = 1024});
    struct shoal_task *t;
    struct err e = {0};
    struct shoal_task_opts o = task_opts(&a);
    for (uint32_t i = 0; i < 512; i++)
        tokens[i] = (int32_t)(i % 200) + 3;
    o.tokens = tokens;
    o.n_tokens = 512;
    o.max_tokens = 1;
    assert_int_equal(shoal_task_submit(en, &o, &t, &e), 0);
    assert_int_equal(shoal_task_wait(t), 0);
    shoal_task_free(t);
    bool told = false;
    for (int i = 0; !told && i < 1000; i++) { /* on a busy machine even that time may pass */
        o.deadline_ns = clock_ns() + 100000;  /* 512 tokens take milliseconds */
        assert_int_equal(shoal_task_submit(en, &o, &t, &e), SHOAL_EDEADLINE);
        assert_null(t);
        told = strstr(e.msg, "needs about") != NULL;
    }
    assert_true(told);
    o.deadline_ns = clock_ns() + 600000000000u;
    assert_int_equal(shoal_task_submit(en, &o, &t, &e), 0);
    assert_int_equal(shoal_task_wait(t), 0);
    shoal_task_free(t);
    shoal_engine_close(en);
}

static void test_higher_priority_preempts(void **state)
{
    (void)state;
    static struct got low, high, alone;
    struct shoal_engine *en =
        open_engine((struct shoal_engine_opts){.max_tasks = 1, .n_ctx = 512, .n_threads = 1});
    struct shoal_task *tl, *th;
    struct shoal_task_opts o = task_opts(&alone);
    o.max_tokens = 400;
    assert_int_equal(run(en, o), 0);
    o = task_opts(&low);
    o.max_tokens = 400;
    low.hold_at = 5;
    assert_int_equal(shoal_task_submit(en, &o, &tl, NULL), 0);
    wait_for_hold(&low);
    o = task_opts(&high);
    o.priority = 5;
    o.max_tokens = 5;
    high.other = &low;
    assert_int_equal(shoal_task_submit(en, &o, &th, NULL), 0);
    atomic_store(&low.hold_at, 0);
    assert_int_equal(shoal_task_wait(th), 0);
    assert_int_equal(shoal_task_wait(tl), 0);
    assert_in_range(high.other_seen, 5, 399);
    assert_int_equal(low.n, 400);
    assert_memory_equal(low.tokens, alone.tokens, 400 * sizeof(int32_t));
    shoal_task_free(tl);
    shoal_task_free(th);
    shoal_engine_close(en);
}

static void test_a_continuation_goes_before_new_tasks(void **state)
{
    (void)state;
    static struct got first, fresh, continued;
    struct shoal_engine *en =
        open_engine((struct shoal_engine_opts){.max_tasks = 1, .n_ctx = 512, .n_threads = 1});
    struct shoal_task *t1, *t2, *t3;
    struct shoal_task_opts o = task_opts(&first);
    o.max_tokens = 400;
    first.hold_at = 1;
    assert_int_equal(shoal_task_submit(en, &o, &t1, NULL), 0);
    wait_for_hold(&first);
    o = task_opts(&fresh);
    assert_int_equal(shoal_task_submit(en, &o, &t2, NULL), 0);
    o = task_opts(&continued);
    o.n_continued = 5;
    assert_int_equal(shoal_task_submit(en, &o, &t3, NULL), 0);
    atomic_store(&first.hold_at, 0);
    assert_int_equal(shoal_task_wait(t3), 0);
    assert_int_equal(shoal_task_wait(t2), 0);
    assert_int_equal(shoal_task_wait(t1), 0);
    assert_int_equal(first.n, 400); /* running work is not interrupted */
    assert_true(fresh.done.queue_ns > continued.done.queue_ns);
    shoal_task_free(t1);
    shoal_task_free(t2);
    shoal_task_free(t3);
    shoal_engine_close(en);
}

static void test_limits_are_refused_with_reasons(void **state)
{
    (void)state;
    static struct got a;
    static int32_t many[300];
    struct shoal_engine *en = NULL;
    struct err e = {0};
    struct shoal_engine_opts small = {
        .size = sizeof(small), .memory_bytes = 100000, .cache_dir = ""};
    assert_int_equal(shoal_engine_open(&en, MODEL, &small, &e), SHOAL_ELIMIT);
    assert_non_null(strstr(e.msg, "weights"));
    assert_non_null(strstr(e.msg, "limit is"));
    assert_null(en);
    assert_int_equal(shoal_engine_open(&en, SHOAL_TEST_DATA "/none.gguf", NULL, &e), SHOAL_EIO);
    struct shoal_engine_opts unknown = {.size = sizeof(unknown), .kernels = "mmx", .cache_dir = ""};
    assert_int_equal(shoal_engine_open(&en, MODEL, &unknown, &e), SHOAL_EUNSUPPORTED);

    en = open_engine((struct shoal_engine_opts){
        .n_ctx = 256, .kv_bytes = 1 << 18, .max_tasks = 1, .max_queue = 2});
    struct shoal_task *t[3];
    for (int i = 0; i < 300; i++)
        many[i] = 5;
    struct shoal_task_opts o = task_opts(&a);
    o.tokens = many;
    o.n_tokens = 300;
    assert_int_equal(shoal_task_submit(en, &o, &t[0], &e), SHOAL_ELIMIT);
    o.n_tokens = 0;
    assert_int_equal(shoal_task_submit(en, &o, &t[0], &e), SHOAL_EINVAL);
    o.n_tokens = 3;
    many[1] = 1 << 20;
    assert_int_equal(shoal_task_submit(en, &o, &t[0], &e), SHOAL_EINVAL);
    many[1] = 5;
    o.sampling.top_p = 7.0f;
    assert_int_equal(shoal_task_submit(en, &o, &t[0], &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "top_p"));
    shoal_engine_close(en);
}

static void test_a_token_allocates_nothing(void **state)
{
    (void)state;
    static struct got a;
    struct shoal_engine *en = open_engine((struct shoal_engine_opts){.n_threads = 2});
    for (int sampled = 0; sampled < 2; sampled++) {
        struct shoal_task_opts o = task_opts(&a);
        const char *stops[] = {"zzzzzz"};
        o.stop = stops;
        o.n_stop = 1;
        o.sampling.temperature = sampled ? 0.8f : 0.0f;
        o.sampling.top_p = sampled ? 0.9f : 0.0f;
        o.sampling.n_logprobs = 5;
        a.count_heap = true;
        o.max_tokens = 200;
        atomic_store(&heap_calls, 0);
        uint64_t before = 0;
        struct shoal_task *t;
        assert_int_equal(shoal_task_submit(en, &o, &t, NULL), 0);
        before = mem_calls();
        assert_int_equal(shoal_task_wait(t), 0);
        assert_int_equal(mem_calls(), before);
        assert_int_equal(atomic_load(&heap_calls), 0);
        assert_int_equal(a.n, 200);
        shoal_task_free(t);
    }
#ifdef COUNTS_HEAP
    /* the counter itself works */
    atomic_store(&counting, true);
    free(malloc(10));
    atomic_store(&counting, false);
    assert_true(atomic_load(&heap_calls) > 0);
#endif
    shoal_engine_close(en);
}

/* An answer that repeats itself and its prompt: biases leave the model few tokens. */
static struct shoal_task_opts repeating_opts(struct got *g, struct shoal_bias *bias, uint32_t i)
{
    struct shoal_task_opts o = task_opts(g);
    for (uint32_t k = 0; k < 4; k++)
        bias[k] = (struct shoal_bias){.token = prompt[5 + k], .bias = 6.0f};
    o.sampling.bias = bias;
    o.sampling.n_bias = 4;
    o.sampling.temperature = i % 2 ? 0.7f : 0.0f;
    o.sampling.seed = 11 + i;
    o.sampling.logprobs = i % 3 == 0;
    o.sampling.repeat_penalty = i == 3 ? 1.1f : 0.0f;
    o.max_tokens = 100 + i;
    return o;
}

/* Guesses change no token, no log-probability and no text, alone and in a batch. */
static void test_guesses_change_nothing(void **state)
{
    (void)state;
    enum { N = 5 };
    static struct got want[N], got[N];
    struct shoal_bias bias[4];
    struct shoal_engine *plain =
        open_engine((struct shoal_engine_opts){.n_threads = 2, .drafts = SHOAL_DRAFTS_NEVER});
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(run(plain, repeating_opts(&want[i], bias, i)), 0);
    assert_int_equal(plain->n_guessed, 0);
    shoal_engine_close(plain);
    for (uint64_t drafts = SHOAL_DRAFTS_AS_THEY_PAY; drafts <= SHOAL_DRAFTS_ALWAYS; drafts += 2)
        for (uint32_t together = 1; together <= N; together += N - 1) {
            struct shoal_engine *en =
                open_engine((struct shoal_engine_opts){.n_threads = 2, .drafts = drafts});
            struct shoal_task *tasks[N];
            for (uint32_t i = 0; i < N; i++) {
                struct shoal_task_opts o = repeating_opts(&got[i], bias, i);
                assert_int_equal(shoal_task_submit(en, &o, &tasks[i], NULL), 0);
                if (together == 1)
                    assert_int_equal(shoal_task_wait(tasks[i]), 0);
            }
            for (uint32_t i = 0; i < N; i++) {
                assert_int_equal(shoal_task_wait(tasks[i]), 0);
                shoal_task_free(tasks[i]);
                assert_int_equal(got[i].n, want[i].n);
                assert_memory_equal(got[i].tokens, want[i].tokens, want[i].n * sizeof(int32_t));
                assert_memory_equal(got[i].logprobs, want[i].logprobs, want[i].n * sizeof(float));
                assert_int_equal(got[i].text_bytes, want[i].text_bytes);
                assert_memory_equal(got[i].text, want[i].text, want[i].text_bytes);
                assert_int_equal(got[i].done.generated_tokens, want[i].done.generated_tokens);
                assert_int_equal(got[i].done.finish, want[i].done.finish);
            }
            if (drafts == SHOAL_DRAFTS_ALWAYS) { /* the test would show nothing otherwise */
                assert_true(en->n_guessed_right > 50);
                assert_true(en->n_guessed > en->n_guessed_right);
            }
            shoal_engine_close(en);
        }
}

static void test_sessions_keep_the_conversation(void **state)
{
    (void)state;
    static struct got a, b;
    struct shoal_engine *en = open_engine((struct shoal_engine_opts){0});
    struct shoal_session *s = NULL;
    struct shoal_task *t = NULL;
    const int32_t *tokens;
    assert_int_equal(shoal_session_create(&s, en, NULL), 0);
    assert_int_equal(shoal_session_append(s, prompt, N_PROMPT, NULL), 0);
    struct shoal_task_opts o = task_opts(&a);
    assert_int_equal(shoal_session_generate(s, &o, &t, NULL), 0);
    assert_int_equal(shoal_task_wait(t), 0);
    shoal_task_free(t);
    assert_int_equal(shoal_session_tokens(s, &tokens), N_PROMPT + 40);
    assert_memory_equal(tokens + N_PROMPT, a.tokens, 40 * sizeof(int32_t));
    assert_int_equal(shoal_session_append(s, prompt, 3, NULL), 0);
    o = task_opts(&b);
    assert_int_equal(shoal_session_generate(s, &o, &t, NULL), 0);
    assert_int_equal(shoal_task_wait(t), 0);
    shoal_task_free(t);
    /* everything but the last page and the new tokens was cached */
    assert_true(b.done.cached_tokens >= 64);
    shoal_session_destroy(s);
    shoal_engine_close(en);
}

static void test_failed_allocations_leave_nothing(void **state)
{
    (void)state;
    struct shoal_engine_opts o = {.size = sizeof(o), .cache_dir = "", .n_threads = 2};
    int failures = 0;
    for (uint64_t i = 1; i < 10000; i++) {
        struct shoal_engine *en = NULL;
        struct err e = {0};
        mem_fail_at(i);
        int rc = shoal_engine_open(&en, MODEL, &o, &e);
        bool reached = rc < 0;
        mem_fail_at(0);
        if (!reached) {
            shoal_engine_close(en);
            break;
        }
        assert_null(en);
        assert_int_not_equal(e.msg[0], 0);
        failures++;
        if (failures > 40)
            i += 13; /* the tokenizer alone makes hundreds */
    }
    assert_true(failures > 20);
}

/* ---- a context that is shifted ---- */

#define SHIFT_CTX 64u

struct long_answer {
    int32_t tokens[512];
    _Atomic uint32_t n;
    struct shoal_event done;
};

static void on_long(void *ctx, const struct shoal_event *ev)
{
    struct long_answer *a = ctx;
    if (ev->kind == SHOAL_EVENT_TOKEN && ev->token >= 0 && a->n < 512)
        a->tokens[a->n++] = ev->token;
    if (ev->kind == SHOAL_EVENT_DONE)
        a->done = *ev;
}

static void answer_with(struct shoal_engine *en, struct shoal_task_opts o, struct long_answer *out)
{
    o.size = sizeof(o);
    o.ignore_end = true;
    o.event = on_long;
    o.event_ctx = out;
    struct shoal_task *t;
    struct err e = {0};
    memset(out, 0, sizeof(*out));
    if (shoal_task_submit(en, &o, &t, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(shoal_task_wait(t), 0);
    shoal_task_free(t);
}

static void answer(struct shoal_engine *en, const int32_t *first, uint32_t n, uint32_t max,
                   enum shoal_constraint constraint, struct long_answer *out)
{
    answer_with(en,
                (struct shoal_task_opts){
                    .tokens = first, .n_tokens = n, .max_tokens = max, .constraint = constraint},
                out);
}

/* An answer of three contexts: after each shift it goes on as a new prompt of what stayed would. */
static void test_answers_longer_than_the_context(void **state)
{
    /* the first page stays, of the other 48 tokens the later half, in whole pages; or what was
     * asked for, in whole pages */
    static const struct {
        uint32_t asked, keep, drop;
    } rows[] = {{0, 16, 16}, {1, 16, 16}, {17, 32, 16}, {1u << 24, 32, 16}};
    static struct long_answer got, fresh;
    int32_t first[20], seen[SHIFT_CTX];
    struct shoal_engine_opts o = {
        .size = sizeof(o), .n_ctx = SHIFT_CTX, .n_threads = 1, .cache_dir = "", .context_shift = 1};
    struct shoal_engine *en, *plain;
    struct err e = {0};
    (void)state;
    for (int32_t i = 0; i < 20; i++)
        first[i] = 1 + 7 * i % 250;
    if (shoal_engine_open(&en, MODEL, &o, &e) < 0)
        fail_msg("%s", e.msg);
    o.context_shift = 0;
    if (shoal_engine_open(&plain, MODEL, &o, &e) < 0)
        fail_msg("%s", e.msg);
    struct shoal_task_opts a = {.tokens = first, .n_tokens = 20, .max_tokens = 200};
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        const uint32_t keep = rows[row].keep, drop = rows[row].drop;
        uint32_t n = 20, at = 0;
        memcpy(seen, first, sizeof(first));
        a.keep_tokens = rows[row].asked;
        answer_with(en, a, &got);
        assert_int_equal(got.n, 200);
        assert_int_equal(got.done.finish, SHOAL_FINISH_LENGTH);
        assert_int_equal(got.done.generated_tokens, 200);
        assert_int_equal(got.done.prompt_tokens, 20);
        while (at < 200) { /* one context after the other */
            answer(plain, seen, n, 512, SHOAL_CONSTRAINT_NONE, &fresh);
            assert_int_equal(n + fresh.n, SHIFT_CTX);
            for (uint32_t i = 0; i < fresh.n && at < 200; i++) {
                assert_int_equal(got.tokens[at++], fresh.tokens[i]);
                seen[n + i] = fresh.tokens[i];
            }
            n = SHIFT_CTX - drop;
            memmove(seen + keep, seen + keep + drop, (n - keep) * sizeof(*seen));
        }
    }
    a.no_shift = true;
    answer_with(en, a, &got);
    assert_int_equal(got.n, SHIFT_CTX - 20);
    /* without a limit, or with a constraint, it ends at the context */
    answer(en, first, 20, 0, SHOAL_CONSTRAINT_NONE, &fresh);
    assert_int_equal(fresh.n, SHIFT_CTX - 20);
    answer(en, first, 20, 200, SHOAL_CONSTRAINT_JSON, &fresh);
    assert_true(fresh.n <= SHIFT_CTX - 20);
    answer(plain, first, 20, 200, SHOAL_CONSTRAINT_NONE, &fresh);
    assert_int_equal(fresh.n, SHIFT_CTX - 20);
    shoal_engine_close(en);
    shoal_engine_close(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_generates_and_reports),
        cmocka_unit_test(test_a_prefix_is_found_by_its_client_only),
        cmocka_unit_test(test_seed_decides_and_a_continuation_is_the_same),
        cmocka_unit_test(test_batched_tasks_equal_tasks_alone),
        cmocka_unit_test(test_live_tasks_share_a_prefix),
        cmocka_unit_test(test_stop_strings_span_tokens),
        cmocka_unit_test(test_bias_forbids_and_forces),
        cmocka_unit_test(test_answers_longer_than_the_context),
        cmocka_unit_test(test_cancel_and_deadline_end_a_task),
        cmocka_unit_test(test_what_comes_too_late_is_refused),
        cmocka_unit_test(test_higher_priority_preempts),
        cmocka_unit_test(test_a_continuation_goes_before_new_tasks),
        cmocka_unit_test(test_limits_are_refused_with_reasons),
        cmocka_unit_test(test_a_token_allocates_nothing),
        cmocka_unit_test(test_guesses_change_nothing),
        cmocka_unit_test(test_sessions_keep_the_conversation),
        cmocka_unit_test(test_failed_allocations_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
