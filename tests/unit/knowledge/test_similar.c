/* test_similar.c - the semantic cache: which requests it looks at, which answers it keeps and
 * returns.  The test is both models: a vector counts letters, and the answer is given. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread/executor_queue.h"
#include "flow/dispatch.h"
#include "flow/failure.h"
#include "knowledge/similar.h"
#include "router/router.h"
#include "support/recorder.h"

#define DIMS 26u
#define N(list) (sizeof(list) / sizeof((list)[0]))

static struct {
    struct executor_queue executor;
    struct flow flow;
    struct flow_owner owner;
    struct router_table routes;
    struct similar *similar;
} site;

static char route_name[] = "chat", caller[] = "ann";
static char *callers[] = {caller};
static struct router_route route = {.name = route_name, .similar = 0.9};

static struct {
    const char *answer, *version; /* version: of the embedder */
    enum shoal_finish finish;
    bool broken; /* the embedder fails */
    uint32_t n_answered, n_embedded;
} model;

/* ---- models ---- */

static bool embed(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s)
{
    trace_request("passed on:", r);
    const struct sink_start start = {.model = "embedder", .version = model.version};
    const struct request_input *in = &r->infer.inputs[0];
    float v[DIMS] = {0};
    double sum = 0;
    (void)d;
    assert_int_equal(r->kind, REQUEST_INFER);
    assert_string_equal(r->model, "embedder");
    assert_string_equal(r->client.name, "ann");
    assert_string_equal(r->id, "id-1");
    for (size_t i = 0; i < in->text_bytes; i++)
        if (in->text[i] >= 'a' && in->text[i] <= 'z')
            v[in->text[i] - 'a'] += 1;
    for (uint32_t i = 0; i < DIMS; i++)
        sum += (double)v[i] * (double)v[i];
    for (uint32_t i = 0; i < DIMS; i++)
        v[i] = (float)((double)v[i] / sqrt(sum > 0 ? sum : 1));
    const struct shoal_result one = {.kind = SHOAL_KIND_EMBED, .vector = v, .n_dims = DIMS};
    const struct sink_result e = {.result = &one, .last = true};
    model.n_embedded++;
    if (model.broken) {
        struct failure f;
        failure_of(&f, SHOAL_EBUSY, "broken");
        (s->ops->fail)(s, &f);
    } else {
        s->ops->start(s, &start);
        s->ops->result(s, &e);
    }
    s->ops->closed(s);
    flow_give_request(o, r);
    return true;
}

static void answer(struct flow_owner *o, struct request *r, struct sink *s)
{
    trace_request("passed on:", r);
    const struct sink_start start = {.model = "m", .version = "v"};
    const struct sink_token t = {
        .text = model.answer, .text_bytes = strlen(model.answer), .token = 1};
    const struct sink_done done = {
        .finish = model.finish, .prompt_tokens = 5, .generated_tokens = 2, .last = true};
    model.n_answered++;
    s->ops->start(s, &start);
    s->ops->token(s, &t);
    s->ops->done(s, &done);
    s->ops->closed(s);
    flow_give_request(o, r);
}

/* ---- a question ---- */

static struct request *question(const char *text)
{
    struct request *r = flow_take_request(&site.owner);
    struct chat_message *m = arena_zalloc_n(&r->arena, 2, sizeof(*m));
    m[0] = (struct chat_message){.role = "system", .content = "be", .content_bytes = 2};
    m[1] = (struct chat_message){.role = "user", .content = text, .content_bytes = strlen(text)};
    r->kind = REQUEST_GENERATE;
    r->model = "chat";
    r->way.pass_on = answer;
    snprintf(r->id, sizeof(r->id), "id-1");
    snprintf(r->client.name, sizeof(r->client.name), "ann");
    r->generate = (struct request_generate){
        .chat = {.messages = m, .n_messages = 2}, .n = 1, .n_prompts = 1, .max_tokens = 9};
    return r;
}

/* Whether the answer comes from the cache. */
static bool asks(struct request *r)
{
    struct dispatch *stage = similar_stage(site.similar);
    struct recorder got;
    uint32_t before = model.n_answered;
    recorder_init(&got);
    if (!stage->ops->run(stage, &site.owner, r, &got.sink)) {
        flow_give_request(&site.owner, r);
        fail_msg("the request was not looked at");
    }
    assert_int_equal(got.n_closed, 1);
    assert_int_equal(got.n_last, 1);
    assert_null(got.sink.job);
    const bool kept = model.n_answered == before;
    assert_int_equal(got.start.cache == SINK_CACHE_SIMILAR, kept);
    assert_string_equal(got.model, "m");
    assert_int_equal(got.done.prompt_tokens, 5);
    assert_int_equal(got.done.generated_tokens, 2);
    if (kept) {
        assert_int_equal(got.done.cached_tokens, 5);
        assert_string_equal(got.text[0], "first");
    }
    return kept;
}

static bool asks_text(const char *text)
{
    return asks(question(text));
}

static void open_cache(size_t max_bytes, uint64_t ttl_ns)
{
    const struct similar_opts o = {.model = "embedder", .max_bytes = max_bytes, .ttl_ns = ttl_ns};
    similar_destroy(site.similar);
    assert_int_equal(similar_create(&site.similar, &o, NULL), 0);
}

static int open_site(void **state)
{
    static const struct dispatch_ops ops = {.run = embed};
    static struct dispatch dispatch = {&ops};
    (void)state;
    memset(&model, 0, sizeof(model));
    model.answer = "first";
    model.version = "v1";
    model.finish = SHOAL_FINISH_STOP;
    route = (struct router_route){.name = route_name, .similar = 0.9};
    if (executor_queue_init(&site.executor, NULL) < 0)
        return -1;
    site.flow = (struct flow){.pool = NULL};
    site.routes = (struct router_table){.routes = &route, .n_routes = 1};
    flow_owner_init(&site.owner, &site.flow, &site.executor.executor);
    site.owner.dispatch = &dispatch;
    site.owner.routes = &site.routes;
    open_cache(1 << 20, 3600000000000u);
    return 0;
}

static int close_site(void **state)
{
    (void)state;
    similar_destroy(site.similar);
    site.similar = NULL;
    flow_owner_fini(&site.owner);
    executor_queue_fini(&site.executor);
    return 0;
}

/* ---- tests ---- */

static void test_same_questions_share_an_answer(void **state)
{
    struct similar_counts n;
    (void)state;
    trace("== %s\n", __func__);
    assert_false(asks_text("turn on the kitchen light"));
    model.answer = "second";
    assert_true(asks_text("turn on the kitchen light"));
    assert_true(asks_text("please turn on the kitchen light"));
    assert_false(asks_text("what is the capital of france"));
    similar_counts(site.similar, &n);
    assert_int_equal(n.hits, 2);
    assert_int_equal(n.misses, 2);
    assert_int_equal(n.refused, 0);
    assert_int_equal(n.n_entries, 2);
    /* the letters are alike, the question is not */
    assert_false(asks_text("turn off the kitchen light"));
    similar_counts(site.similar, &n);
    assert_int_equal(n.refused, 1);
    assert_int_equal(n.n_entries, 3);
}

/* Anything else that decides the answer is part of the question. */
static void test_scopes(void **state)
{
    static const char *const stop[] = {"x"};
    static const char text[] = "turn on the kitchen light";
    (void)state;
    trace("== %s\n", __func__);
    assert_false(asks_text(text));
    for (int i = 0; i < 12; i++) {
        struct request *r = question(text);
        struct request_generate *g = &r->generate;
        struct chat_message *m = (struct chat_message *)(uintptr_t)g->chat.messages;
        switch (i) {
        case 0:
            g->sampling.temperature = 1;
            break;
        case 1:
            g->sampling.top_p = 0.5f;
            break;
        case 2:
            g->sampling.min_p = 0.5f;
            break;
        case 3:
            g->sampling.repeat_penalty = 2;
            break;
        case 4:
            g->sampling.top_k = 3;
            break;
        case 5:
            g->max_tokens = 10;
            break;
        case 6:
            g->has_seed = true;
            break;
        case 7:
            g->stop = stop, g->n_stop = 1;
            break;
        case 8:
            m[0].content = "by";
            break;
        case 9:
            m[0].role = "user";
            break;
        case 10:
            g->chat.messages++, g->chat.n_messages--;
            break;
        default:
            g->sampling.presence_penalty = 1;
            break;
        }
        if (asks(r))
            fail_msg("case %d got the answer of another request", i);
    }
    model.answer = "x";
    assert_true(asks_text(text));
}

static void test_which_requests(void **state)
{
    static uint8_t sum[32];
    static const struct value_member var = {.key = "a"};
    static const struct chat_tool tool = {.name = "t"};
    static const struct shoal_bias bias = {1, 1};
    static const struct request_resume resume = {.done = true};
    static char long_text[1 << 16];
    struct dispatch *stage = similar_stage(site.similar);
    struct recorder got;
    (void)state;
    trace("== %s\n", __func__);
    memset(long_text, 'a', sizeof(long_text) - 1);
    for (int i = 0; i < 28; i++) {
        struct request *r = question("turn on the light");
        struct request_generate *g = &r->generate;
        struct chat_message *m = (struct chat_message *)(uintptr_t)g->chat.messages;
        route = (struct router_route){.name = route_name, .similar = 0.9};
        switch (i) {
        case 0:
            r->no_cache = true;
            break;
        case 1:
            r->explain = true;
            break;
        case 2:
            r->dry = true;
            break;
        case 3:
            r->version = sum;
            break;
        case 4:
            r->has_once_key = true;
            break;
        case 5:
            g->n = 2;
            break;
        case 6:
            g->chat.vars = &var, g->chat.n_vars = 1;
            break;
        case 7:
            g->chat.tools = &tool, g->chat.n_tools = 1;
            break;
        case 8:
            g->chat.template = "x";
            break;
        case 9:
            g->constraint.kind = SHOAL_CONSTRAINT_JSON;
            break;
        case 10:
            g->echo = true;
            break;
        case 11:
            g->special = true;
            break;
        case 12:
            g->ignore_end = true;
            break;
        case 13:
            g->prompt_only = true;
            break;
        case 14:
            g->sampling.logprobs = true;
            break;
        case 15:
            g->sampling.bias = &bias, g->sampling.n_bias = 1;
            break;
        case 16:
            m[1].role = "assistant";
            break;
        case 17:
            m[1].content_bytes = 0;
            break;
        case 18:
            m[1].content = long_text, m[1].content_bytes = sizeof(long_text) - 1;
            break;
        case 19:
            g->chat.n_messages = 0;
            break;
        case 20:
            r->model = NULL;
            break;
        case 21:
            r->model = "other";
            break;
        case 22:
            route.similar = 0;
            break;
        case 23:
            route.no_cache = true;
            break;
        case 24:
            site.owner.routes = NULL;
            break;
        case 25:
            site.owner.routes = &site.routes;
            route.callers.v = callers;
            route.callers.n = 1;
            snprintf(r->client.name, sizeof(r->client.name), "bob");
            break;
        case 26:
            r->kind = REQUEST_ASK;
            memset(g, 0, sizeof(*g));
            break;
        default:
            g->resume = &resume;
            break;
        }
        recorder_init(&got);
        const bool taken = stage->ops->run(stage, &site.owner, r, &got.sink);
        if (taken)
            fail_msg("case %d was looked at", i);
        flow_give_request(&site.owner, r);
    }
    assert_int_equal(model.n_embedded, 0);
    route = (struct router_route){.name = route_name, .similar = 0.9, .callers = {callers, 1}};
    assert_false(asks_text("turn on the light"));
    assert_int_equal(model.n_embedded, 1);
}

static void test_which_answers(void **state)
{
    struct similar_counts n;
    (void)state;
    trace("== %s\n", __func__);
    model.finish = SHOAL_FINISH_LENGTH; /* not the whole answer */
    assert_false(asks_text("turn on the light"));
    model.finish = SHOAL_FINISH_STOP;
    model.answer = "";
    assert_false(asks_text("turn on the light"));
    model.answer = "first";
    model.broken = true; /* no vector: as without a cache */
    assert_false(asks_text("turn on the light"));
    model.broken = false;
    assert_false(asks_text("turn on the light"));
    assert_true(asks_text("turn on the light"));
    model.version = "v2"; /* vectors of different models cannot be compared */
    assert_false(asks_text("turn on the light"));
    model.version = "";
    assert_true(asks_text("turn on the light"));
    similar_counts(site.similar, &n);
    assert_int_equal(n.n_entries, 2);
}

static void test_answers_expire(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    open_cache(1 << 20, 0);
    assert_false(asks_text("turn on the light"));
    assert_false(asks_text("turn on the light"));
}

/* Prompt, answer and vector of an entry are counted; the oldest make room. */
static void test_the_size_is_limited(void **state)
{
    static const char *const texts[] = {"turn on the light", "what time is it in rome",
                                        "how many legs has a spider"};
    const size_t entry = strlen(texts[0]) + 5 + DIMS * sizeof(float);
    struct similar_counts n;
    (void)state;
    trace("== %s\n", __func__);
    open_cache(entry, 3600000000000u);
    assert_false(asks_text(texts[0]));
    assert_true(asks_text(texts[0]));
    open_cache(entry - 1, 3600000000000u); /* an answer that is too large is not kept */
    assert_false(asks_text(texts[0]));
    assert_false(asks_text(texts[0]));
    similar_counts(site.similar, &n);
    assert_int_equal(n.n_entries, 0);
    open_cache(2 * entry + 20, 3600000000000u);
    for (size_t i = 0; i < N(texts); i++)
        assert_false(asks_text(texts[i]));
    similar_counts(site.similar, &n);
    assert_int_equal(n.n_entries, 2);
    assert_true(asks_text(texts[2]));
    assert_true(asks_text(texts[1]));
    assert_false(asks_text(texts[0]));
}

static void the_whole_trace(void **state)
{
    (void)state;
    golden_end("similar");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_site, close_site)
    const struct CMUnitTest whole[] = {cmocka_unit_test(the_whole_trace)};
    const struct CMUnitTest tests[] = {
        TEST(test_same_questions_share_an_answer),
        TEST(test_scopes),
        TEST(test_which_requests),
        TEST(test_which_answers),
        TEST(test_answers_expire),
        TEST(test_the_size_is_limited),
    };
    golden_begin();
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    return n_failed ? n_failed : cmocka_run_group_tests(whole, NULL, NULL);
}
