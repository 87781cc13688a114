/* test_hybrid.c - models with recurrent states in an engine: answers do not depend on batches,
 * chunks, checkpoints, preemption or where an answer was continued, and a later turn computes its
 * new tokens only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shoal/shoal.h"
#include "support/watchdog.h"

static const char *const models[] = {"lfm2", "mamba2", "granitehybrid", "qwen35"};
#define N_MODELS (sizeof(models) / sizeof(models[0]))
enum { MOST = 400, ANSWER = 40, PROMPT = 100 };

struct got {
    int32_t tokens[MOST];
    float logprobs[MOST]; /* differ with any bit of a state */
    uint32_t n;
    struct shoal_event done;
    _Atomic uint32_t seen, hold_at;
};

static void on_event(void *ctx, const struct shoal_event *ev)
{
    struct got *g = ctx;
    if (ev->kind == SHOAL_EVENT_DONE) {
        g->done = *ev;
        return;
    }
    if (ev->token >= 0 && g->n < MOST) {
        g->logprobs[g->n] = ev->logprob;
        g->tokens[g->n++] = ev->token;
    }
    const uint32_t seen = atomic_fetch_add(&g->seen, 1) + 1;
    WAIT_UNTIL(seen != atomic_load(&g->hold_at));
}

static struct shoal_engine *open_engine(const char *name, struct shoal_engine_opts o)
{
    struct shoal_engine *en = NULL;
    struct err e = {0};
    char path[512];
    snprintf(path, sizeof(path), "%s/refs/%s.gguf", SHOAL_TEST_DATA, name);
    o.size = sizeof(o);
    o.cache_dir = "";
    o.n_ctx = o.n_ctx ? o.n_ctx : 512;
    if (shoal_engine_open(&en, path, &o, &e) < 0)
        fail_msg("%s: %s", name, e.msg);
    return en;
}

/* n tokens: `common` of them the same for all seeds. */
static void make_prompt(int32_t *out, uint32_t n, uint32_t common, uint32_t seed)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = (int32_t)((i * 7919 + 3 + (i < common ? 0 : seed * 104729)) % 290);
}

static struct shoal_task *submit(struct shoal_engine *en, struct got *g, const int32_t *tokens,
                                 uint32_t n, struct shoal_task_opts o)
{
    struct shoal_task *t = NULL;
    struct err e = {0};
    o.size = sizeof(o);
    o.tokens = tokens;
    o.n_tokens = n;
    o.max_tokens = o.max_tokens ? o.max_tokens : ANSWER;
    o.ignore_end = true;
    o.sampling.logprobs = true;
    o.event = on_event;
    o.event_ctx = g;
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
static uint32_t ask(struct shoal_engine *en, struct got *g, const int32_t *tokens, uint32_t n,
                    struct shoal_task_opts o)
{
    memset(g, 0, sizeof(*g));
    finish(submit(en, g, tokens, n, o));
    return g->done.cached_tokens;
}

static void expect_same(const char *what, const struct got *a, const struct got *b)
{
    assert_int_equal(a->n, b->n);
    if (memcmp(a->tokens, b->tokens, a->n * sizeof(a->tokens[0])) != 0 ||
        memcmp(a->logprobs, b->logprobs, a->n * sizeof(a->logprobs[0])) != 0)
        fail_msg("%s: another answer", what);
}

static const struct shoal_task_opts plain, fresh = {.fresh_prefix = true};

static void test_a_later_turn_computes_its_new_tokens_only(void **state)
{
    static struct got first, again, second, whole;
    (void)state;
    for (size_t m = 0; m < N_MODELS; m++) {
        struct shoal_engine *en = open_engine(models[m], (struct shoal_engine_opts){0});
        int32_t turn[PROMPT + ANSWER + 20];
        make_prompt(turn, PROMPT, PROMPT, 0);
        assert_int_equal(ask(en, &first, turn, PROMPT, plain), 0);
        assert_int_equal(ask(en, &again, turn, PROMPT, plain), (PROMPT - 1) / 16 * 16);
        expect_same("the same prompt", &first, &again);
        memcpy(turn + PROMPT, first.tokens, ANSWER * sizeof(turn[0]));
        make_prompt(turn + PROMPT + ANSWER, 20, 0, 5);
        /* the last token of an answer is not computed; pages are whole */
        const uint32_t n = PROMPT + ANSWER + 20;
        assert_int_equal(ask(en, &second, turn, n, plain), (PROMPT + ANSWER - 1) / 16 * 16);
        assert_int_equal(ask(en, &whole, turn, n, fresh), 0);
        expect_same("the second turn", &second, &whole);
        shoal_engine_close(en);
    }
}

/* Two prompts part; the third one that begins alike finds a checkpoint where they did, also when
 * that is in the middle of a chunk. */
static void test_prompts_that_begin_alike_share_a_checkpoint(void **state)
{
    static struct got a, whole;
    (void)state;
    for (size_t m = 0; m < N_MODELS; m++) {
        struct shoal_engine *en = open_engine(models[m], (struct shoal_engine_opts){.chunk = 64});
        int32_t prompt[PROMPT];
        static const uint32_t cached[] = {0, 0, 48, 48};
        for (uint32_t seed = 0; seed < 4; seed++) {
            make_prompt(prompt, PROMPT, 50, seed);
            const uint32_t n = ask(en, &a, prompt, PROMPT, plain);
            if (n != cached[seed])
                fail_msg("%s, prompt %u: %u tokens are cached", models[m], seed, n);
            assert_int_equal(ask(en, &whole, prompt, PROMPT, fresh), 0);
            expect_same("a prompt that parts from others", &a, &whole);
        }
        /* nobody else finds what a client has sent */
        assert_int_equal(ask(en, &a, prompt, PROMPT, (struct shoal_task_opts){.client = 9}), 0);
        expect_same("another client", &a, &whole);
        shoal_engine_close(en);
    }
}

static void test_answers_do_not_depend_on_batches_and_chunks(void **state)
{
    enum { N = 5 };
    static struct got alone[N], together[N];
    (void)state;
    for (size_t m = 0; m < N_MODELS; m++) {
        int32_t prompt[N][PROMPT];
        struct shoal_engine *en =
            open_engine(models[m], (struct shoal_engine_opts){.n_threads = 1, .kernels = "scalar"});
        for (uint32_t i = 0; i < N; i++) {
            make_prompt(prompt[i], PROMPT, 20, i % 4);
            ask(en, &alone[i], prompt[i], PROMPT - i, fresh);
        }
        shoal_engine_close(en);
        for (uint32_t chunk = 7; chunk <= 100; chunk *= 3) {
            en = open_engine(models[m], (struct shoal_engine_opts){
                                            .chunk = chunk, .n_threads = 2, .max_tasks = 3});
            struct shoal_task *t[N];
            for (uint32_t i = 0; i < N; i++) {
                memset(&together[i], 0, sizeof(together[i]));
                t[i] = submit(en, &together[i], prompt[i], PROMPT - i,
                              (struct shoal_task_opts){.held = true});
            }
            shoal_engine_wake(en);
            for (uint32_t i = 0; i < N; i++) {
                finish(t[i]);
                expect_same(models[m], &together[i], &alone[i]);
            }
            shoal_engine_close(en);
        }
    }
}

static void test_a_preempted_answer_goes_on(void **state)
{
    static struct got alone, low, high;
    (void)state;
    for (size_t m = 0; m < N_MODELS; m++) {
        int32_t prompt[PROMPT], other[PROMPT];
        const struct shoal_task_opts longer = {.max_tokens = 200};
        struct shoal_engine *en =
            open_engine(models[m], (struct shoal_engine_opts){.max_tasks = 1, .n_threads = 1});
        make_prompt(prompt, PROMPT, 0, 1);
        make_prompt(other, PROMPT, 0, 2);
        ask(en, &alone, prompt, PROMPT, longer);
        memset(&low, 0, sizeof(low));
        memset(&high, 0, sizeof(high));
        atomic_store(&low.hold_at, 50);
        struct shoal_task *tl = submit(en, &low, prompt, PROMPT, longer);
        WAIT_UNTIL(atomic_load(&low.seen) >= 50);
        struct shoal_task *th = submit(en, &high, other, PROMPT,
                                       (struct shoal_task_opts){.priority = 5, .max_tokens = 5});
        atomic_store(&low.hold_at, 0);
        finish(th);
        finish(tl);
        expect_same("after a pause", &low, &alone);
        shoal_engine_close(en);
    }
}

/* Another node has only the tokens: it prefills them and goes on. */
static void test_an_answer_continues_elsewhere(void **state)
{
    static struct got whole, rest;
    (void)state;
    for (size_t m = 0; m < N_MODELS; m++) {
        int32_t ticket[PROMPT + 17];
        make_prompt(ticket, PROMPT, 0, 3);
        struct shoal_engine *en = open_engine(models[m], (struct shoal_engine_opts){0});
        ask(en, &whole, ticket, PROMPT, plain);
        shoal_engine_close(en);
        memcpy(ticket + PROMPT, whole.tokens, 17 * sizeof(ticket[0]));
        en = open_engine(models[m], (struct shoal_engine_opts){.chunk = 33});
        ask(en, &rest, ticket, PROMPT + 17,
            (struct shoal_task_opts){.n_continued = 17, .max_tokens = ANSWER - 17});
        assert_int_equal(rest.n, ANSWER - 17);
        assert_memory_equal(rest.tokens, whole.tokens + 17, rest.n * sizeof(rest.tokens[0]));
        shoal_engine_close(en);
    }
}

/* A state cannot go back to what a shift keeps: all of it is computed again. */
static void test_answers_longer_than_the_context(void **state)
{
    static struct got shifted, next;
    int32_t seen[64];
    (void)state;
    for (size_t m = 0; m < N_MODELS; m++) {
        make_prompt(seen, 20, 0, 1);
        struct shoal_engine *en =
            open_engine(models[m], (struct shoal_engine_opts){.n_ctx = 64, .context_shift = 1});
        ask(en, &shifted, seen, 20, (struct shoal_task_opts){.max_tokens = 100});
        assert_int_equal(shifted.n, 100);
        shoal_engine_close(en);
        /* 20 + 44 tokens fill the context: the first page stays, and all but 16 of the rest */
        memcpy(seen + 16, shifted.tokens + 12, 32 * sizeof(seen[0]));
        en = open_engine(models[m], (struct shoal_engine_opts){.n_ctx = 64});
        ask(en, &next, seen, 48, (struct shoal_task_opts){.max_tokens = 16});
        assert_memory_equal(next.tokens, shifted.tokens + 44, 16 * sizeof(next.tokens[0]));
        shoal_engine_close(en);
    }
}

/* Long prompts do not push the checkpoints of others out, and there may be too few of them. */
static void test_long_prompts_leave_the_checkpoints_of_others(void **state)
{
    static struct got a;
    int32_t prompt[PROMPT], longer[480];
    (void)state;
    for (size_t m = 0; m < N_MODELS; m++) {
        struct shoal_engine *en =
            open_engine(models[m], (struct shoal_engine_opts){.chunk = 16, .kv_bytes = 64u << 20});
        make_prompt(prompt, PROMPT, 0, 1);
        ask(en, &a, prompt, PROMPT, plain);
        for (uint32_t i = 2; i < 40; i++) {
            make_prompt(longer, 480, 0, i);
            ask(en, &a, longer, 480, (struct shoal_task_opts){.max_tokens = 2});
        }
        assert_int_equal(ask(en, &a, prompt, PROMPT, plain), (PROMPT - 1) / 16 * 16);
        shoal_engine_close(en);
    }
}

/* So few pages that each prompt takes those of the one before: the old checkpoints go with them. */
static void test_a_page_with_other_tokens_has_no_checkpoint(void **state)
{
    static struct got a, again, whole;
    int32_t prompt[PROMPT];
    (void)state;
    for (size_t m = 0; m < N_MODELS; m++) {
        struct shoal_engine_info info = {.size = sizeof(info)};
        struct shoal_engine *en = open_engine(models[m], (struct shoal_engine_opts){0});
        shoal_engine_info(en, &info);
        shoal_engine_close(en);
        const size_t few = 2 * ((PROMPT + ANSWER) / 16 + 1);
        en = open_engine(
            models[m], (struct shoal_engine_opts){.kv_bytes = info.kv_bytes / info.kv_pages * few});
        for (uint32_t i = 0; i < 8; i++) {
            make_prompt(prompt, PROMPT, 0, i);
            ask(en, &a, prompt, PROMPT - i, plain);
            assert_int_equal(ask(en, &again, prompt, PROMPT - i, plain),
                             (PROMPT - i - 1) / 16 * 16);
            ask(en, &whole, prompt, PROMPT - i, fresh);
            expect_same("pages used before", &a, &whole);
            expect_same("a checkpoint on pages used before", &again, &whole);
        }
        shoal_engine_close(en);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_later_turn_computes_its_new_tokens_only),
        cmocka_unit_test(test_prompts_that_begin_alike_share_a_checkpoint),
        cmocka_unit_test(test_answers_do_not_depend_on_batches_and_chunks),
        cmocka_unit_test(test_a_preempted_answer_goes_on),
        cmocka_unit_test(test_an_answer_continues_elsewhere),
        cmocka_unit_test(test_answers_longer_than_the_context),
        cmocka_unit_test(test_long_prompts_leave_the_checkpoints_of_others),
        cmocka_unit_test(test_a_page_with_other_tokens_has_no_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
