/* test_generate.c - typed requests through flow to real engines, without any protocol. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread/executor_queue.h"
#include "base/log.h"
#include "flow/generate/generate.h"
#include "flow/infer.h"
#include "flow/pool.h"
#include "host/prompt_cache.h"
#include "host/registry.h"
#include "support/recorder.h"

#define MAX_TURNS 300 /* each waits up to a second */

static struct {
    struct executor_queue owner;
    struct flow flow;
    struct flow_owner requests;
} site;

static struct recorder *fresh(void)
{
    static struct recorder r;
    recorder_init(&r);
    return &r;
}

/* A greedy continuation of a text. */
static struct request *prompt(const char *text, uint32_t max_tokens)
{
    struct request *r = flow_take_request(&site.requests);
    assert_non_null(r);
    struct request_prompt *p = arena_zalloc(&r->arena, sizeof(*p));
    assert_non_null(p);
    p->text = request_copy(r, text, strlen(text));
    p->text_bytes = strlen(text);
    r->kind = REQUEST_GENERATE;
    r->model = "reply";
    r->generate.prompts = p;
    r->generate.n_prompts = r->generate.n = 1;
    r->generate.max_tokens = max_tokens;
    r->generate.ignore_end = true;
    return r;
}

static void run_until_closed(struct recorder *r)
{
    for (int i = 0; i < MAX_TURNS && r->n_closed == 0; i++)
        executor_queue_turn(&site.owner, 1000);
    assert_int_equal(r->n_closed, 1);
    assert_null(r->sink.job);
    assert_int_equal(site.requests.n_jobs, 0);
}

static struct recorder *generate(struct request *q)
{
    struct recorder *r = fresh();
    generate_run(&site.requests, q, &r->sink);
    run_until_closed(r);
    return r;
}

static void test_tokens_then_done(void **state)
{
    (void)state;
    struct recorder *r = generate(prompt("ask: what time is it", 8));
    assert_int_equal(r->n_starts, 1);
    assert_string_equal(r->start.model, "reply");
    assert_int_equal(r->start.cache, SINK_CACHE_MISS);
    assert_true(r->n_tokens >= 8);
    assert_int_equal(r->n_done, 1);
    assert_int_equal(r->n_last, 1);
    assert_int_equal(r->n_fails, 0);
    assert_int_equal(r->usage.generated_tokens, 8);
    assert_true(r->usage.prompt_tokens > 0);
    assert_int_equal(r->n_broke_off, 0);
}

/* The owner is woken once for both, so that another node gets one message instead of two. */
static void test_the_last_token_comes_with_the_end(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        struct recorder *r = fresh();
        struct request *q = prompt("ask: what time is it", 1);
        q->no_cache = true;
        generate_run(&site.requests, q, &r->sink);
        for (int turn = 0; turn < MAX_TURNS && r->n_tokens == 0; turn++)
            executor_queue_turn(&site.owner, 1000);
        assert_int_equal(r->n_tokens, 1);
        assert_int_equal(r->n_done, 1);
        assert_int_equal(r->start.cache, SINK_CACHE_OFF);
        assert_null(r->start.question); /* there is nothing to find again */
        run_until_closed(r);
    }
}

static void test_the_same_question_is_answered_from_the_cache(void **state)
{
    char text[4096];
    (void)state;
    struct recorder *r = generate(prompt("ask: is the door locked", 6));
    assert_int_equal(r->start.cache, SINK_CACHE_MISS);
    memcpy(text, r->text[0], sizeof(text));
    uint32_t n_tokens = r->n_tokens;
    r = generate(prompt("ask: is the door locked", 6));
    assert_int_equal(r->start.cache, SINK_CACHE_HIT);
    assert_string_equal(r->text[0], text);
    assert_int_equal(r->n_tokens, n_tokens);
    assert_int_equal(r->usage.cached_tokens, r->usage.prompt_tokens);
    struct generate_memo memo = {
        .named = true, .n_prompts = 1, .n = 1, .model = "reply", .slot = r->start.slot};
    memcpy(memo.question, r->question, sizeof(memo.question));
    r = fresh();
    assert_true(generate_replay(&site.requests, &memo, &r->sink));
    assert_string_equal(r->text[0], text);
    assert_int_equal(r->n_last, 1);
    assert_int_equal(r->n_closed, 1);
    memo.question[0] ^= 1;
    r = fresh();
    assert_false(generate_replay(&site.requests, &memo, &r->sink));
    assert_int_equal(r->n_starts + r->n_closed, 0); /* no event arrived */
}

/* A request that only counts its prompt has no answer: it must not become the answer of a request
 * that wants one, nor be answered by it. */
static void test_a_prompt_alone_is_not_cached(void **state)
{
    (void)state;
    for (int twice = 0; twice < 2; twice++) {
        struct request *q = prompt("ask: is the window open", 6);
        q->generate.prompt_only = true;
        struct recorder *r = generate(q);
        assert_int_equal(r->start.cache, SINK_CACHE_OFF);
        assert_int_equal(r->n_fails, 0);
        assert_int_equal(r->usage.generated_tokens, 0);
        r = generate(prompt("ask: is the window open", 6));
        assert_int_equal(r->start.cache, twice ? SINK_CACHE_HIT : SINK_CACHE_MISS);
        assert_int_equal(r->usage.generated_tokens, 6);
    }
}

/* A mark in a prompt is a text like any other, unless the request says otherwise. */
static void test_marks_in_a_prompt_are_text(void **state)
{
    uint32_t n[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct request *q = prompt("<|im_start|>", 1);
        q->generate.parse_special = i == 1;
        n[i] = generate(q)->usage.prompt_tokens;
    }
    assert_true(n[0] > n[1] + 5);
}

static void test_several_prompts_and_choices(void **state)
{
    struct request *q = prompt("a", 4);
    struct request_prompt *two = arena_zalloc_n(&q->arena, 2, sizeof(*two));
    static const int32_t ids[] = {5, 6, 7};
    (void)state;
    assert_non_null(two);
    two[0] = q->generate.prompts[0];
    two[1] = (struct request_prompt){.ids = ids, .n_ids = 3};
    q->generate.prompts = two;
    q->generate.n_prompts = q->generate.n = 2;
    struct recorder *r = generate(q);
    assert_int_equal(r->n_done, 4);
    assert_int_equal(r->n_last, 1);
    assert_string_equal(r->text[0], r->text[1]); /* greedy: the choices of a prompt are alike */
    assert_string_equal(r->text[2], r->text[3]);
    assert_int_equal(r->usage.generated_tokens, 16);
}

/* Two sampled choices of a prompt, as the sender of a request seeds them. */
static struct request *two_choices(void)
{
    struct request *q = prompt("ask: tell me about the weather", 12);
    q->generate.n = 2;
    q->generate.sampling = (struct shoal_sampling){.temperature = 1, .seed = 77};
    q->generate.seeded = true;
    return q;
}

static void test_a_broken_generation_goes_on(void **state)
{
    static struct recorder whole;
    (void)state;
    whole = *generate(two_choices());
    assert_int_equal(whole.n_of[0], 12);
    assert_int_equal(whole.n_of[1], 12);
    assert_string_not_equal(whole.text[0], whole.text[1]);
    for (uint32_t k = 0; k <= 12; k++) { /* choice 0 broke off after k tokens, 1 after 5 */
        const struct request_resume begun[2] = {{false, whole.tokens[0], k},
                                                {false, whole.tokens[1], 5}};
        struct request *q = two_choices();
        q->generate.resume = begun;
        q->generate.echo = true; /* it was sent already */
        struct recorder *r = generate(q);
        assert_int_equal(r->start.cache, SINK_CACHE_OFF);
        assert_int_equal(r->n_fails, 0);
        assert_int_equal(r->n_done, 2);
        assert_int_equal(r->n_last, 1);
        assert_int_equal(r->n_of[0], 12 - k);
        assert_int_equal(r->n_of[1], 7);
        assert_string_equal(r->text[0], whole.text[0] + (k > 0 ? whole.shown[0][k - 1] : 0));
        assert_string_equal(r->text[1], whole.text[1] + whole.shown[1][4]);
    }
    const struct request_resume one[2] = {{true, NULL, 0}, {false, whole.tokens[1], 3}};
    struct request *q = two_choices();
    q->generate.resume = one;
    struct recorder *r = generate(q);
    assert_int_equal(r->n_of[0], 0);
    assert_int_equal(r->n_done, 1);
    assert_string_equal(r->text[1], whole.text[1] + whole.shown[1][2]);
}

static void test_a_version_is_kept(void **state)
{
    uint8_t sum[SHA256_BYTES];
    (void)state;
    struct recorder *r = generate(prompt("ask: which version", 1));
    for (int i = 0; i < MAX_TURNS && !r->start.sum; i++) { /* hashed in the background */
        usleep(100000);
        r = generate(prompt("ask: which version", 1));
    }
    assert_non_null(r->start.sum);
    memcpy(sum, r->start.sum, sizeof(sum));
    struct request *q = prompt("ask: which version", 1);
    q->version = sum;
    assert_int_equal(generate(q)->n_done, 1);
    sum[7] ^= 1;
    q = prompt("ask: which version", 1);
    q->version = sum;
    r = generate(q);
    assert_int_equal(r->n_done, 0);
    assert_int_equal(r->failure.kind, FAILURE_NOT_FOUND);
    assert_string_equal(r->failure.reason, "version_not_found");
}

static void test_a_conversation_with_logprobs(void **state)
{
    static const struct chat_message messages[] = {
        {.role = "user", .content = "hello", .content_bytes = 5}};
    struct request *q = prompt("", 3);
    (void)state;
    q->generate.chat.messages = messages;
    q->generate.chat.n_messages = 1;
    q->generate.sampling.logprobs = true;
    q->generate.sampling.n_logprobs = 2;
    struct recorder *r = generate(q);
    assert_int_equal(r->n_done, 1);
    assert_int_equal(r->n_logprobs, 9); /* of each token and two alternatives */
}

static void test_echo_comes_first(void **state)
{
    struct request *q = prompt("lights off", 2);
    (void)state;
    q->generate.echo = true;
    struct recorder *r = generate(q);
    assert_int_equal(r->start.cache, SINK_CACHE_OFF);
    assert_int_equal(strncmp(r->text[0], "lights off", 10), 0);
}

static void test_failures_are_typed(void **state)
{
    struct request *q = prompt("a", 1);
    (void)state;
    q->model = "nope";
    struct recorder *r = generate(q);
    assert_int_equal(r->n_fails, 1);
    assert_int_equal(r->n_starts, 0);
    assert_int_equal(r->failure.kind, FAILURE_NOT_FOUND);
    assert_string_equal(r->failure.param, "model");
    assert_string_equal(r->failure.reason, "model_not_found");
    q = prompt("a", 1);
    q->model = "encoder";
    r = generate(q);
    assert_int_equal(r->failure.kind, FAILURE_INVALID);
    q = prompt("b", 1);
    q->deadline_ns = 1; /* long ago */
    r = generate(q);
    assert_int_equal(r->failure.kind, FAILURE_DEADLINE);
    assert_string_equal(r->failure.reason, "deadline_unreachable");
}

static void test_nothing_comes_after_cancel(void **state)
{
    struct request *q = prompt("tell me a story", 200);
    struct recorder *r = fresh();
    (void)state;
    r->cancel_at = RECORDER_TOKEN;
    generate_run(&site.requests, q, &r->sink);
    run_until_closed(r);
    assert_int_equal(r->n_tokens, 1);
    assert_int_equal(r->n_done + r->n_fails, 0);
    assert_int_equal(r->n_broke_off, 1); /* but its cost is known */
    if (r->broke_off.finish == SHOAL_FINISH_ERROR)
        assert_int_equal(r->broke_off_code, SHOAL_ECANCELLED);
    else /* the engine finished first */
        assert_int_equal(r->broke_off.generated_tokens, 200);
    assert_true(r->broke_off.prompt_tokens > 0 && r->broke_off.generated_tokens > 0);
    r = fresh(); /* before any event */
    generate_run(&site.requests, prompt("tell me another story", 200), &r->sink);
    assert_non_null(r->sink.job);
    flow_cancel(&r->sink);
    run_until_closed(r);
    assert_int_equal(r->n_tokens + r->n_done + r->n_fails, 0);
}

static void test_a_full_sink_is_left_alone(void **state)
{
    struct recorder *r = fresh();
    (void)state;
    r->full = true;
    generate_run(&site.requests, prompt("count to ten", 5), &r->sink);
    for (int i = 0; i < 2; i++)
        executor_queue_turn(&site.owner, 1000);
    assert_int_equal(r->n_tokens + r->n_done + r->n_closed, 0);
    r->full = false;
    flow_resume(&r->sink);
    run_until_closed(r);
    assert_true(r->n_tokens >= 5);
    assert_int_equal(r->n_last, 1);
}

static struct request *classify(uint32_t n)
{
    struct request *q = flow_take_request(&site.requests);
    assert_non_null(q);
    struct request_input *list = arena_zalloc_n(&q->arena, n, sizeof(*list));
    assert_non_null(list);
    for (uint32_t i = 0; i < n; i++)
        list[i] = (struct request_input){.text = "turn off the kitchen lights", .text_bytes = 27};
    q->kind = REQUEST_INFER;
    q->model = "encoder";
    q->infer = (struct request_infer){.kind = SHOAL_KIND_CLASSIFY, .inputs = list, .n_inputs = n};
    return q;
}

static void test_results_come_in_order(void **state)
{
    struct recorder *r = fresh();
    (void)state;
    infer_run(&site.requests, classify(3), &r->sink);
    run_until_closed(r);
    assert_int_equal(r->n_starts, 1);
    assert_int_equal(r->n_results, 3);
    assert_int_equal(r->n_last, 1);
    assert_true(r->labels[0][0] != '\0');
    struct request *q = classify(1);
    q->infer.labels = "nope";
    r = fresh();
    infer_run(&site.requests, q, &r->sink);
    run_until_closed(r);
    assert_int_equal(r->n_results, 0);
    assert_int_equal(r->failure.kind, FAILURE_INVALID);
    r = fresh(); /* long inputs are submitted by the pool */
    q = classify(200);
    q->input_bytes = 200 * 27;
    infer_run(&site.requests, q, &r->sink);
    run_until_closed(r);
    assert_int_equal(r->n_results, 200);
}

static void test_a_full_sink_gets_no_results(void **state)
{
    (void)state;
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        struct recorder *r = fresh();
        r->full = true;
        infer_run(&site.requests, classify(2), &r->sink);
        for (int i = 0; i < 2; i++)
            executor_queue_turn(&site.owner, 1000);
        assert_int_equal(r->n_results + r->n_fails + r->n_closed, 0);
        if (cancelled) {
            flow_cancel(&r->sink);
        } else {
            r->full = false;
            flow_resume(&r->sink);
        }
        run_until_closed(r);
        assert_int_equal(r->n_results, cancelled ? 0 : 2);
        assert_int_equal(r->n_fails, 0);
    }
}

static int open_site(void **state)
{
    static const struct registry_spec specs[] = {
        {.name = "reply", .path = SHOAL_TEST_DATA "/../../models/reply.gguf", .pinned = true},
        {.name = "encoder", .path = SHOAL_TEST_DATA "/../../models/encoder", .pinned = true}};
    const struct registry_opts ro = {.cache_dir = ""};
    struct err e = {0};
    (void)state;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    int rc = executor_queue_init(&site.owner, &e);
    if (rc == 0)
        rc = registry_create(&site.flow.registry, &ro, &e);
    if (rc == 0)
        rc = pool_create(&site.flow.pool, 1, 16, &e);
    if (rc == 0)
        rc = prompt_cache_create(&site.flow.cache, 1 << 20, 0, &e);
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = registry_add(site.flow.registry, &specs[i], &e);
    if (rc < 0)
        return rc;
    for (int i = 0; i < 60000 && !registry_ready(site.flow.registry); i++)
        usleep(1000);
    flow_owner_init(&site.requests, &site.flow, &site.owner.executor);
    return registry_ready(site.flow.registry) ? 0 : -1;
}

static int close_site(void **state)
{
    (void)state;
    flow_wake(&site.requests);
    pool_destroy(site.flow.pool);
    registry_destroy(site.flow.registry);
    prompt_cache_destroy(site.flow.cache);
    flow_owner_fini(&site.requests);
    executor_queue_fini(&site.owner);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens_then_done),
        cmocka_unit_test(test_the_last_token_comes_with_the_end),
        cmocka_unit_test(test_the_same_question_is_answered_from_the_cache),
        cmocka_unit_test(test_a_prompt_alone_is_not_cached),
        cmocka_unit_test(test_marks_in_a_prompt_are_text),
        cmocka_unit_test(test_several_prompts_and_choices),
        cmocka_unit_test(test_a_broken_generation_goes_on),
        cmocka_unit_test(test_a_version_is_kept),
        cmocka_unit_test(test_a_conversation_with_logprobs),
        cmocka_unit_test(test_echo_comes_first),
        cmocka_unit_test(test_failures_are_typed),
        cmocka_unit_test(test_nothing_comes_after_cancel),
        cmocka_unit_test(test_a_full_sink_is_left_alone),
        cmocka_unit_test(test_a_full_sink_gets_no_results),
        cmocka_unit_test(test_results_come_in_order)};
    return cmocka_run_group_tests(tests, open_site, close_site);
}
