/* test_panel.c - ensembles: which of several models answers a request, with models whose every
 * event is in the test's hands. */
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
#include "flow/panel/panel_run.h"
#include "flow/routing_choice.h"
#include "host/registry.h"
#include "support/recorder.h"

/* ---- models ---- */

/* A request that a model received; the test decides what comes of it. */
struct call {
    struct flow_job job; /* first */
    struct sink *sink;
    struct request *request;
    char model[16], text[64];
    bool cancelled, resumed, over;
};

static struct {
    struct executor_queue executor;
    struct flow flow;
    struct flow_owner owner;
    struct dispatch models;
    struct call calls[16];
    uint32_t n_calls;
} site;

static void on_cancel(struct flow_job *j)
{
    ((struct call *)(void *)j)->cancelled = true;
    trace("cancelled: %s\n", ((struct call *)(void *)j)->model);
}

static void on_resume(struct flow_job *j)
{
    ((struct call *)(void *)j)->resumed = true;
}

static bool take(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s)
{
    static const struct flow_job_ops ops = {on_cancel, on_resume};
    (void)d;
    (void)o;
    assert_true(site.n_calls < 16);
    struct call *c = &site.calls[site.n_calls++];
    trace_request("to a model:", r);
    *c = (struct call){.job = {&ops}, .sink = s, .request = r};
    snprintf(c->model, sizeof(c->model), "%s", r->model);
    if (r->kind == REQUEST_GENERATE && r->generate.prompts)
        snprintf(c->text, sizeof(c->text), "%s", r->generate.prompts[0].text);
    s->job = &c->job;
    return true;
}

static void begin(uint32_t i)
{
    char version[24];
    snprintf(version, sizeof(version), "v-%s", site.calls[i].model);
    const struct sink_start e = {.model = site.calls[i].model, .version = version, .node = "n1"};
    site.calls[i].sink->ops->start(site.calls[i].sink, &e);
}

static void say_in(uint32_t i, uint32_t choice, const char *text, double p, bool echo)
{
    const struct sink_logprob lp = {
        .token = 7, .logprob = (float)log(p), .text = text, .text_bytes = strlen(text)};
    const struct sink_token e = {.choice = choice,
                                 .token = 7,
                                 .echo = echo,
                                 .text = text,
                                 .text_bytes = strlen(text),
                                 .logprobs = &lp,
                                 .n_logprobs = 1};
    site.calls[i].sink->ops->token(site.calls[i].sink, &e);
}

static void say(uint32_t i, const char *text, double p)
{
    say_in(i, 0, text, p, false);
}

static void close_call(uint32_t i)
{
    struct call *c = &site.calls[i];
    assert_false(c->over);
    c->over = true;
    c->sink->job = NULL;
    struct request *r = c->request;
    c->sink->ops->closed(c->sink);
    flow_give_request(&site.owner, r);
}

static void finish_in(uint32_t i, uint32_t choice, uint32_t n_tokens, bool last)
{
    const struct sink_done e = {.choice = choice,
                                .finish = SHOAL_FINISH_STOP,
                                .prompt_tokens = 10,
                                .cached_tokens = 2,
                                .generated_tokens = n_tokens,
                                .last = last,
                                .usage = {10, 2, n_tokens}};
    site.calls[i].sink->ops->done(site.calls[i].sink, &e);
}

static void finish(uint32_t i, uint32_t n_tokens)
{
    finish_in(i, 0, n_tokens, true);
    close_call(i);
}

static void break_down(uint32_t i, enum failure_kind kind)
{
    struct failure f;
    failure_set(&f, kind, SHOAL_EIO, NULL, "why", "%s broke", site.calls[i].model);
    (site.calls[i].sink->ops->fail)(site.calls[i].sink, &f);
    close_call(i);
}

/* Ends calls that were cancelled, as a model does: with their cost. */
static void end_cancelled(void)
{
    for (uint32_t i = 0; i < site.n_calls; i++)
        if (site.calls[i].cancelled && !site.calls[i].over) {
            const struct sink_done e = {.generated_tokens = 3};
            sink_tell_broke_off(site.calls[i].sink, &e, SHOAL_ECANCELLED);
            close_call(i);
        }
}

/* ---- clients ---- */

static struct recorder rec;
static uint32_t n_replaced;
static char why[64], model_now[16];
static bool may_take_back;

static bool on_may_replace(struct sink *s, bool marked)
{
    (void)s;
    return marked && may_take_back;
}

static void on_replace(struct sink *s, const struct sink_replace *e)
{
    struct recorder *r = (struct recorder *)(void *)s;
    n_replaced++;
    trace("replaced: %s\n", e->why);
    trace_start(s, e->start);
    snprintf(why, sizeof(why), "%s", e->why);
    snprintf(model_now, sizeof(model_now), "%s", e->start->model);
    memset(r->text, 0, sizeof(r->text));
}

static struct router_route make_route(enum ensemble_kind kind, uint32_t n_models)
{
    static char *models[] = {(char *)(uintptr_t) "small", (char *)(uintptr_t) "large",
                             (char *)(uintptr_t) "huge"};
    static double weights[] = {1, 1, 3};
    return (struct router_route){.name = (char *)(uintptr_t) "r",
                                 .ensemble = {.kind = kind,
                                              .models = models,
                                              .weights = weights,
                                              .n_models = n_models,
                                              .threshold = 0.5,
                                              .samples = 3,
                                              .temperature = 0.7}};
}

static struct request *prompt(void)
{
    struct request *r = flow_take_request(&site.owner);
    struct request_prompt *p = arena_zalloc(&r->arena, sizeof(*p));
    *p = (struct request_prompt){.text = "hello", .text_bytes = 5};
    r->kind = REQUEST_GENERATE;
    r->model = "r";
    r->has_once_key = true;
    r->generate.prompts = p;
    r->generate.n_prompts = r->generate.n = 1;
    return r;
}

static struct request *texts(uint32_t n)
{
    static const char *const words[] = {"a", "bb", "ccc"};
    struct request *r = flow_take_request(&site.owner);
    struct request_input *in = arena_zalloc_n(&r->arena, n, sizeof(*in));
    for (uint32_t i = 0; i < n; i++)
        in[i] = (struct request_input){.text = words[i], .text_bytes = strlen(words[i])};
    r->kind = REQUEST_INFER;
    r->model = "r";
    r->infer.kind = SHOAL_KIND_CLASSIFY;
    r->infer.inputs = in;
    r->infer.n_inputs = n;
    return r;
}

/* done: in place of the recorder's; NULL: that one. */
static void ask_with(const struct router_route *route, struct request *r,
                     void (*done)(struct sink *s, const struct sink_done *e))
{
    static struct sink_ops ops;
    recorder_init(&rec);
    ops = *rec.sink.ops;
    ops.may_replace = on_may_replace;
    ops.replace = on_replace;
    ops.done = done ? done : ops.done;
    rec.sink.ops = &ops;
    memset(site.calls, 0, sizeof(site.calls));
    site.n_calls = n_replaced = 0;
    why[0] = model_now[0] = '\0';
    panel_run(&site.owner, route, r, &rec.sink);
}

static void ask(const struct router_route *route, struct request *r)
{
    ask_with(route, r, NULL);
}

/* The client has its answer, and nothing is left. */
static void check_over(void)
{
    end_cancelled();
    for (uint32_t i = 0; i < site.n_calls; i++)
        assert_true(site.calls[i].over);
    assert_int_equal(rec.n_closed, 1);
    assert_int_equal(rec.n_last + rec.n_fails, 1);
    assert_null(rec.sink.job);
    assert_int_equal(site.owner.n_jobs, 0);
}

/* Checked while the answer is given: the steps live as long as the request. */
static const struct routing_choice *choice(void)
{
    assert_non_null(rec.sink.routed);
    return rec.sink.routed;
}

static void check_step(uint32_t i, const char *model, const char *what, bool answered)
{
    assert_true(i < choice()->ensemble->n_steps);
    const struct routing_step *s = &choice()->ensemble->steps[i];
    assert_string_equal(s->model, model);
    assert_string_equal(s->what, what);
    assert_int_equal(s->answered, answered);
}

/* ---- cascade of generations ---- */

static void test_the_first_is_sure(void **state)
{
    struct router_route route = make_route(ENSEMBLE_CASCADE, 2);
    (void)state;
    trace("== %s\n", __func__);
    route.ensemble.hold = 2;
    ask(&route, prompt());
    assert_int_equal(site.n_calls, 1);
    assert_string_equal(site.calls[0].model, "small");
    assert_true(site.calls[0].request->generate.sampling.logprobs); /* to see how sure it is */
    assert_true(site.calls[0].request->has_once_key);
    assert_int_equal(site.calls[0].request->once_key[0], 1); /* its own */
    begin(0);
    say(0, "a", 0.9);
    say(0, "b", 0.9);
    assert_int_equal(rec.n_starts, 0); /* held back */
    say(0, "c", 0.9);
    assert_string_equal(rec.text[0], "abc");
    assert_int_equal(rec.n_logprobs, 0); /* not asked for */
    assert_string_equal(rec.model, "small");
    assert_string_equal(rec.version, "v-small");
    rec.full = true; /* a slow reader holds the model back now */
    assert_true(site.calls[0].sink->ops->full(site.calls[0].sink));
    rec.full = false;
    site.calls[0].sink->ops->flush(site.calls[0].sink);
    assert_int_equal(rec.n_flushes, 1);
    flow_resume(&rec.sink);
    assert_true(site.calls[0].resumed);
    say(0, "d", 0.9);
    assert_string_equal(rec.text[0], "abcd");
    finish_in(0, 0, 4, true);
    check_step(0, "small", "answered", true);
    assert_true(choice()->ensemble->steps[0].sureness > 0.89);
    assert_string_equal(choice()->ensemble->kind, "cascade");
    assert_string_equal(choice()->route, "r");
    assert_false(choice()->degraded);
    assert_int_equal(rec.usage.generated_tokens, 4);
    assert_int_equal(rec.n_closed, 0); /* not before its models */
    close_call(0);
    check_over();
}

static void test_an_unsure_one_is_left(void **state)
{
    struct router_route route = make_route(ENSEMBLE_CASCADE, 3);
    (void)state;
    trace("== %s\n", __func__);
    route.ensemble.hold = 9;
    ask(&route, prompt());
    begin(0);
    for (int i = 0; i < 3; i++)
        say(0, "x", 0.1);
    assert_int_equal(site.n_calls, 1); /* too few tokens say too little */
    say(0, "x", 0.1);
    assert_int_equal(site.n_calls, 2);
    assert_true(site.calls[0].cancelled);
    say(0, "late", 0.1); /* it did not know yet */
    end_cancelled();
    assert_int_equal(rec.n_broke_off, 1);
    assert_int_equal(rec.broke_off.generated_tokens, 3);
    assert_true(site.calls[1].request->generate.sampling.logprobs);
    begin(1);
    say(1, "y", 0.4); /* its whole answer is unsure */
    finish(1, 1);
    assert_int_equal(rec.n_broke_off, 2); /* what it cost is told */
    assert_int_equal(site.n_calls, 3);
    assert_false(site.calls[2].request->generate.sampling.logprobs); /* the last needs none */
    begin(2);
    say(2, "z", 0.01);
    assert_string_equal(rec.text[0], "z"); /* at once */
    finish_in(2, 0, 1, true);
    assert_int_equal(n_replaced, 0);
    assert_string_equal(rec.model, "huge");
    check_step(0, "small", "abandoned after 4 tokens: not confident enough", false);
    check_step(1, "large", "abandoned after 1 tokens: not confident enough", false);
    check_step(2, "huge", "answered", true);
    close_call(2);
    check_over();
}

/* Tokens that were sent can be taken back only with a mark, and only from some clients. */
static void test_after_tokens_were_sent(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    for (int can = 0; can < 2; can++) {
        struct router_route route = make_route(ENSEMBLE_CASCADE, 2);
        route.ensemble.replace = true;
        may_take_back = can;
        ask(&route, prompt());
        begin(0);
        say(0, "a", 0.9);
        assert_string_equal(rec.text[0], "a");
        for (int i = 0; i < 6; i++)
            say(0, "b", 0.01);
        assert_int_equal(site.n_calls, 1 + can);
        if (!can) {
            finish(0, 7);
            assert_string_equal(rec.text[0], "abbbbbb");
            check_over();
            continue;
        }
        end_cancelled();
        begin(1);
        say(1, "c", 0.1);
        assert_int_equal(n_replaced, 1);
        assert_string_equal(why, "the previous model was not confident enough");
        assert_string_equal(model_now, "large");
        assert_string_equal(rec.text[0], "c");
        say(1, "d", 0.1);
        assert_string_equal(rec.text[0], "cd");
        assert_string_equal(choice()->model, "large");
        finish(1, 2);
        check_over();
    }
    may_take_back = false;
    struct router_route route = make_route(ENSEMBLE_CASCADE, 2);
    ask(&route, prompt()); /* the route does not allow it */
    begin(0);
    for (int i = 0; i < 9; i++)
        say(0, "b", 0.01);
    assert_int_equal(site.n_calls, 1);
    finish(0, 9);
    check_over();
}

static void test_a_cascade_with_failures(void **state)
{
    struct router_route route = make_route(ENSEMBLE_CASCADE, 2);
    (void)state;
    trace("== %s\n", __func__);
    route.ensemble.hold = 9;
    ask(&route, prompt()); /* the first fails: the next answers */
    break_down(0, FAILURE_UNAVAILABLE);
    assert_int_equal(site.n_calls, 2);
    begin(1);
    say(1, "y", 0.1);
    finish_in(1, 0, 1, true);
    assert_true(choice()->degraded);
    check_step(0, "small", "failed: small broke", false);
    close_call(1);
    check_over();
    assert_string_equal(rec.text[0], "y");

    ask(&route, prompt()); /* the request is wrong: no other model will take it */
    break_down(0, FAILURE_INVALID);
    assert_int_equal(site.n_calls, 1);
    assert_string_equal(rec.failure.message, "small broke");
    assert_string_equal(rec.reason, "why");
    check_over();

    ask(&route, prompt()); /* an unsure answer is better than none */
    begin(0);
    say(0, "x", 0.1);
    finish(0, 1);
    break_down(1, FAILURE_UNAVAILABLE);
    assert_string_equal(rec.text[0], "x");
    assert_string_equal(rec.model, "small");
    assert_int_equal(rec.n_fails, 0);
    check_over();

    ask(&route, prompt()); /* none is left */
    break_down(0, FAILURE_BUSY);
    break_down(1, FAILURE_UNAVAILABLE);
    assert_string_equal(rec.failure.message, "large broke");
    check_over();

    route.ensemble.hold = 0;
    ask(&route, prompt()); /* after tokens */
    begin(0);
    say(0, "a", 0.9);
    break_down(0, FAILURE_UNAVAILABLE);
    assert_int_equal(site.n_calls, 1);
    assert_int_equal(rec.n_fails, 1);
    check_over();
}

static void test_cancelled(void **state)
{
    struct router_route route = make_route(ENSEMBLE_CASCADE, 2);
    (void)state;
    trace("== %s\n", __func__);
    ask(&route, prompt());
    flow_cancel(&rec.sink);
    assert_true(site.calls[0].cancelled);
    assert_int_equal(rec.n_closed, 0);
    say(0, "late", 0.9);
    finish_in(0, 0, 1, true); /* its cost counts */
    assert_int_equal(rec.n_broke_off, 1);
    close_call(0);
    assert_int_equal(rec.n_closed, 1);
    assert_int_equal(rec.n_starts + rec.n_tokens + rec.n_last + rec.n_fails, 0);
    assert_int_equal(site.owner.n_jobs, 0);
}

/* ---- refine ---- */

static void test_refine(void **state)
{
    struct router_route route = make_route(ENSEMBLE_REFINE, 2);
    (void)state;
    trace("== %s\n", __func__);
    may_take_back = true;
    ask(&route, prompt());
    assert_int_equal(site.n_calls, 2);
    assert_string_equal(site.calls[0].model, "large"); /* the better one first */
    assert_string_equal(site.calls[1].model, "small");
    begin(1);
    say(1, "fast", 0.9);
    assert_string_equal(rec.text[0], "fast");
    begin(0);
    say(0, "good", 0.9);
    assert_string_equal(rec.text[0], "fast");
    finish(1, 1);
    assert_int_equal(rec.n_done, 0); /* the answer is not final */
    assert_true(rec.n_flushes > 0);
    say(0, " one", 0.9);
    finish_in(0, 0, 2, true);
    assert_string_equal(rec.text[0], "good one");
    assert_string_equal(why, "a better model has answered");
    assert_int_equal(rec.n_broke_off, 1); /* the fast answer */
    check_step(0, "small", "answered at once", false);
    check_step(1, "large", "answered", true);
    close_call(0);
    check_over();

    ask(&route, prompt()); /* the better one is faster */
    begin(0);
    say(0, "good", 0.9);
    finish_in(0, 0, 1, true);
    check_step(0, "small", "was slower: cancelled", false);
    assert_int_equal(n_replaced, 0);
    assert_string_equal(rec.text[0], "good");
    assert_true(site.calls[1].cancelled);
    close_call(0);
    check_over();

    ask(&route, prompt()); /* the better one fails, before and after the fast one has answered */
    break_down(0, FAILURE_BUSY);
    assert_int_equal(rec.n_fails, 0);
    begin(1);
    say(1, "fast", 0.9);
    finish_in(1, 0, 1, true);
    assert_true(choice()->degraded);
    close_call(1);
    check_over();
    ask(&route, prompt());
    begin(1);
    say(1, "fast", 0.9);
    finish(1, 1);
    break_down(0, FAILURE_BUSY);
    assert_string_equal(rec.text[0], "fast");
    assert_int_equal(rec.n_last, 1);
    check_over();

    ask(&route, prompt()); /* both fail, in both orders */
    break_down(0, FAILURE_BUSY);
    break_down(1, FAILURE_BUSY);
    assert_string_equal(rec.failure.message, "small broke");
    check_over();
    ask(&route, prompt());
    break_down(1, FAILURE_BUSY);
    assert_int_equal(rec.n_fails, 0);
    break_down(0, FAILURE_BUSY);
    assert_string_equal(rec.failure.message, "large broke");
    check_over();

    may_take_back = false;
    ask(&route, prompt()); /* a client that cannot be shown another answer gets the fast one */
    assert_int_equal(site.n_calls, 1);
    assert_string_equal(site.calls[0].model, "small");
    begin(0);
    finish_in(0, 0, 0, true);
    check_step(0, "small", "answered", true);
    close_call(0);
    check_over();
}

/* ---- classifications ---- */

static void classify(uint32_t i, uint32_t index, const char *label, float p, const char *other,
                     bool last)
{
    const struct shoal_label labels[] = {{label, p}, {other, 1 - p}};
    const struct shoal_result r = {.kind = SHOAL_KIND_CLASSIFY,
                                   .label = label,
                                   .confidence = p,
                                   .labels = labels,
                                   .n_labels = 2};
    const struct sink_result e = {index, &r, last};
    if (index == 0)
        begin(i);
    site.calls[i].sink->ops->result(site.calls[i].sink, &e);
}

static void test_a_cascade_of_classifiers(void **state)
{
    struct router_route route = make_route(ENSEMBLE_CASCADE, 2);
    (void)state;
    trace("== %s\n", __func__);
    ask(&route, texts(1));
    classify(0, 0, "cat", 0.5f, "dog", true); /* at the threshold: sure enough */
    check_step(0, "small", "answered", true);
    close_call(0);
    assert_int_equal(site.n_calls, 1);
    assert_string_equal(rec.labels[0], "cat");
    check_over();

    ask(&route, texts(1));
    classify(0, 0, "cat", 0.49f, "dog", true);
    close_call(0);
    assert_int_equal(site.n_calls, 2);
    classify(1, 0, "cow", 0.3f, "dog", true);
    check_step(0, "small", "not confident enough: escalated to the next model", false);
    check_step(1, "large", "answered", true);
    assert_true(choice()->ensemble->steps[1].sureness < 0.31);
    close_call(1);
    assert_string_equal(rec.labels[0], "cow");
    assert_string_equal(rec.model, "large");
    check_over();

    ask(&route, texts(3)); /* of several texts only the unsure ones */
    classify(0, 0, "cat", 0.9f, "dog", false);
    classify(0, 1, "dog", 0.2f, "cat", false);
    classify(0, 2, "cow", 0.3f, "cat", true);
    close_call(0);
    assert_int_equal(site.n_calls, 2);
    assert_int_equal(site.calls[1].request->infer.n_inputs, 2);
    assert_string_equal(site.calls[1].request->infer.inputs[0].text, "bb");
    assert_string_equal(site.calls[1].request->infer.inputs[1].text, "ccc");
    assert_int_equal(site.calls[1].request->input_bytes, 5);
    classify(1, 0, "pig", 0.9f, "cat", false);
    classify(1, 1, "hen", 0.9f, "cat", true);
    check_step(0, "small", "answered 1 of 3 texts", true);
    check_step(1, "large", "answered 2 of 2 texts", true);
    close_call(1);
    assert_string_equal(rec.labels[0], "cat");
    assert_string_equal(rec.labels[1], "pig");
    assert_string_equal(rec.labels[2], "hen");
    assert_string_equal(rec.model, "small");
    check_over();

    route.ensemble.measure = ENSEMBLE_MARGIN; /* 0.6 and 0.4 are too near to each other */
    ask(&route, texts(1));
    classify(0, 0, "cat", 0.6f, "dog", true);
    close_call(0);
    assert_int_equal(site.n_calls, 2);
    break_down(1, FAILURE_BUSY); /* what the first said is better than nothing */
    assert_string_equal(rec.labels[0], "cat");
    assert_int_equal(rec.n_fails, 0);
    check_over();

    ask(&route, texts(1)); /* the first fails */
    break_down(0, FAILURE_BUSY);
    assert_int_equal(site.n_calls, 2);
    classify(1, 0, "cat", 0.9f, "dog", true);
    assert_true(choice()->degraded);
    close_call(1);
    check_over();
    ask(&route, texts(1));
    break_down(0, FAILURE_INVALID);
    assert_int_equal(site.n_calls, 1);
    assert_int_equal(rec.n_fails, 1);
    check_over();
    ask(&route, texts(1)); /* both */
    break_down(0, FAILURE_BUSY);
    break_down(1, FAILURE_BUSY);
    assert_string_equal(rec.failure.message, "large broke");
    check_over();
}

static float share_seen;
static uint32_t n_labels_seen;

static void on_vote_result(struct sink *s, const struct sink_result *e)
{
    share_seen = e->result->confidence;
    n_labels_seen = e->result->n_labels;
    recorder_on_result(s, e);
}

static void test_vote(void **state)
{
    static const struct {
        enum ensemble_count by;
        const char *labels[3];
        float p[3];
        const char *fails; /* a letter for each model */
        const char *want;
        float share;
    } rows[] = {
        /* weights are 1, 1 and 3 */
        {ENSEMBLE_BY_LABEL, {"cat", "cat", "dog"}, {0.9f, 0.9f, 0.6f}, "...", "dog", 0.6f},
        {ENSEMBLE_BY_LABEL, {"cat", "cat", "dog"}, {0.9f, 0.9f, 0.6f}, "..x", "cat", 1.0f},
        {ENSEMBLE_BY_LABEL, {"cat", "dog", "dog"}, {0.9f, 0.9f, 0.6f}, "x..", "dog", 1.0f},
        {ENSEMBLE_BY_PROBABILITY, {"cat", "cat", "dog"}, {1, 1, 0.5f}, "...", "cat", 0.4f},
        {ENSEMBLE_BY_PROBABILITY, {"cat", "cat", "dog"}, {1, 1, 0.9f}, "...", "dog", 0.54f},
    };
    (void)state;
    trace("== %s\n", __func__);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct router_route route = make_route(ENSEMBLE_VOTE, 3);
        route.ensemble.by = rows[i].by;
        ask(&route, texts(1));
        struct sink_ops ops = *rec.sink.ops;
        ops.result = on_vote_result;
        rec.sink.ops = &ops;
        assert_int_equal(site.n_calls, 3);
        for (uint32_t k = 3; k-- > 0;) {
            assert_int_equal(rec.n_results, 0);
            if (rows[i].fails[k] == 'x') {
                break_down(k, FAILURE_BUSY);
                continue;
            }
            classify(k, 0, rows[i].labels[k], rows[i].p[k], "none", true);
            if (k > 0)
                close_call(k);
        }
        assert_string_equal(rec.labels[0], rows[i].want);
        if (fabsf(share_seen - rows[i].share) > 0.001f)
            fail_msg("row %zu: share %f", i, (double)share_seen);
        assert_true(n_labels_seen >= 1);
        if (!site.calls[0].over)
            close_call(0);
        check_over();
    }
    struct router_route route = make_route(ENSEMBLE_VOTE, 2);
    ask(&route, texts(2));
    classify(0, 0, "cat", 0.9f, "dog", false);
    classify(0, 1, "dog", 0.9f, "cat", true);
    close_call(0);
    break_down(1, FAILURE_BUSY);
    assert_string_equal(rec.labels[0], "cat");
    assert_string_equal(rec.labels[1], "dog");
    check_over();
    ask(&route, texts(1));
    break_down(0, FAILURE_BUSY);
    break_down(1, FAILURE_DEADLINE);
    assert_string_equal(rec.failure.message, "small broke");
    check_over();
}

/* ---- several answers of one model ---- */

static void test_consensus(void **state)
{
    struct router_route route = make_route(ENSEMBLE_CONSENSUS, 1);
    (void)state;
    trace("== %s\n", __func__);
    ask(&route, prompt());
    assert_int_equal(site.n_calls, 1);
    assert_int_equal(site.calls[0].request->generate.n, 3);
    assert_true(fabsf(site.calls[0].request->generate.sampling.temperature - 0.7f) < 1e-6f);
    assert_true(site.calls[0].request->generate.sampling.logprobs);
    begin(0);
    say_in(0, 0, "red", 0.9, false);
    say_in(0, 1, "blu", 0.5, false);
    say_in(0, 1, "e", 0.5, false);
    say_in(0, 2, "blue", 0.8, false);
    finish_in(0, 0, 1, false);
    finish_in(0, 1, 2, false);
    assert_int_equal(rec.n_starts, 0);
    finish_in(0, 2, 1, true);
    assert_string_equal(rec.text[0], "blue");
    assert_int_equal(rec.n_of[0], 1); /* of the two equal ones the likelier */
    assert_int_equal(rec.n_broke_off, 2);
    assert_int_equal(rec.broke_off.prompt_tokens, 0); /* the prompt was read once */
    assert_int_equal(rec.done.prompt_tokens, 10);
    check_step(0, "small", "2 of 3 answers agree", true);
    assert_true(fabs(choice()->ensemble->steps[0].sureness - 2.0 / 3) < 1e-9);
    close_call(0);
    check_over();

    struct request *r = prompt();
    r->generate.sampling.temperature = 1.5f; /* the client's own */
    ask(&route, r);
    assert_true(fabsf(site.calls[0].request->generate.sampling.temperature - 1.5f) < 1e-6f);
    break_down(0, FAILURE_BUSY);
    assert_int_equal(rec.n_fails, 1);
    check_over();
}

static void write_three(const char *a, const char *b, const char *c)
{
    const char *const texts_of[] = {a, b, c};
    begin(0);
    for (uint32_t i = 0; i < 3; i++)
        say_in(0, i, texts_of[i], 0.5 + 0.1 * i, false);
    for (uint32_t i = 0; i < 3; i++)
        finish_in(0, i, 1, i == 2);
    close_call(0);
}

/* The judge reads the prompt and an answer; only the answer's tokens count. */
static void judge(uint32_t call, const char *answer, double p)
{
    begin(call);
    say_in(call, 0, "hello", 0.001, true);
    say_in(call, 0, answer, p, true);
    finish_in(call, 0, 0, true);
    if (!site.calls[call].over)
        close_call(call);
}

static void test_rerank(void **state)
{
    struct router_route route = make_route(ENSEMBLE_RERANK, 2);
    (void)state;
    trace("== %s\n", __func__);
    ask(&route, prompt());
    write_three("red", "blue", "red");
    assert_int_equal(site.n_calls, 3); /* equal answers are read once */
    assert_string_equal(site.calls[1].model, "large");
    assert_string_equal(site.calls[1].text, "hellored");
    assert_string_equal(site.calls[2].text, "helloblue");
    const struct request_generate *g = &site.calls[1].request->generate;
    assert_true(g->echo && g->prompt_logprobs && g->prompt_only && g->sampling.logprobs);
    assert_int_equal(g->n, 1);
    judge(1, "red", 0.2);
    assert_int_equal(rec.n_starts, 0);
    judge(2, "blue", 0.6);
    assert_string_equal(rec.text[0], "blue");
    assert_string_equal(rec.model, "small"); /* who wrote it */
    assert_int_equal(rec.n_broke_off, 4);    /* two answers, two readings */
    check_over();

    ask(&route, prompt());
    write_three("red", "blue", "green");
    assert_int_equal(site.n_calls, 4);
    break_down(1, FAILURE_BUSY); /* one cannot be read */
    judge(2, "blue", 0.3);
    judge(3, "green", 0.2);
    assert_string_equal(rec.text[0], "blue");
    check_over();

    ask(&route, prompt()); /* none can: the writer's own view */
    write_three("red", "blue", "green");
    break_down(1, FAILURE_BUSY);
    break_down(2, FAILURE_BUSY);
    break_down(3, FAILURE_BUSY);
    assert_string_equal(rec.text[0], "green");
    check_over();

    ask(&route, prompt());
    break_down(0, FAILURE_BUSY);
    assert_int_equal(rec.n_fails, 1);
    check_over();
}

/* A conversation: the judge reads the answer as its last message. */
static void test_rerank_of_a_conversation(void **state)
{
    struct router_route route = make_route(ENSEMBLE_RERANK, 2);
    static const struct chat_message said = {.role = "user", .content = "hi", .content_bytes = 2};
    static const struct value_member thinks = {.key = "thinks"};
    static const char *const stops[] = {"x"};
    (void)state;
    trace("== %s\n", __func__);
    struct request *r = prompt();
    r->input_bytes = 2;
    r->generate.chat =
        (struct chat){.messages = &said, .n_messages = 1, .vars = &thinks, .n_vars = 1};
    r->generate.prompts = NULL;
    r->generate.max_tokens = 50;
    r->generate.stop = stops;
    r->generate.n_stop = 1;
    ask(&route, r);
    write_three("red", "red", "red");
    assert_int_equal(site.n_calls, 2);
    const struct request *q = site.calls[1].request;
    const struct chat *c = &q->generate.chat;
    assert_int_equal(c->n_messages, 2);
    assert_string_equal(c->messages[0].content, "hi");
    assert_string_equal(c->messages[1].role, "assistant");
    assert_string_equal(c->messages[1].content, "red");
    assert_int_equal(c->messages[1].content_bytes, 3);
    assert_int_equal(c->n_vars, 2);
    assert_string_equal(c->vars[0].key, "thinks");
    assert_string_equal(c->vars[1].key, CHAT_CONTINUE_VAR);
    assert_int_equal(q->generate.max_tokens, 1);
    assert_int_equal(q->generate.n_stop, 0);
    assert_null(q->generate.stop);
    assert_int_equal(q->input_bytes, 5);
    assert_int_equal(q->generate.constraint.kind, SHOAL_CONSTRAINT_NONE);
    judge(1, "red", 0.5);
    assert_string_equal(rec.text[0], "red");
    check_over();
}

/* Another node may send what does not fit the request: it is ignored. */
static void test_events_of_another_kind(void **state)
{
    struct router_route route = make_route(ENSEMBLE_CASCADE, 2);
    (void)state;
    trace("== %s\n", __func__);
    ask(&route, prompt());
    classify(0, 0, "cat", 0.9f, "dog", true);
    say_in(0, 1, "no such choice", 0.9, false);
    finish_in(0, 1, 1, true);
    assert_int_equal(rec.n_starts + rec.n_last, 0);
    say(0, "a", 0.9);
    finish(0, 1);
    assert_string_equal(rec.text[0], "a");
    check_over();
    ask(&route, texts(1));
    begin(0);
    say(0, "a", 0.9);
    finish_in(0, 0, 1, true);
    classify(0, 1, "no such input", 0.9f, "dog", true);
    assert_int_equal(rec.n_starts + rec.n_last, 0);
    classify(0, 0, "cat", 0.9f, "dog", true);
    close_call(0);
    assert_string_equal(rec.labels[0], "cat");
    check_over();
}

/* ---- what suits an ensemble ---- */

static char dry_steps[64];

static void on_dry_done(struct sink *s, const struct sink_done *e)
{
    assert_true(e->last);
    for (uint32_t i = 0; i < s->routed->ensemble->n_steps; i++) {
        assert_string_equal(s->routed->ensemble->steps[i].what, "not asked yet");
        strcat(strcat(dry_steps, s->routed->ensemble->steps[i].model), " ");
    }
}

static void test_refused(void **state)
{
    static const struct {
        enum ensemble_kind kind;
        int request; /* 0: text, 1: classification, 2: two choices, 3: echo, 4: ids, 5: embedding */
        const char *param, *part;
    } rows[] = {
        {ENSEMBLE_VOTE, 0, "model", "it is for classifications"},
        {ENSEMBLE_REFINE, 1, "model", "it is for generations"},
        {ENSEMBLE_CASCADE, 5, "model", "it is for classifications and generations"},
        {ENSEMBLE_CASCADE, 2, "n", "ask for one answer to one prompt"},
        {ENSEMBLE_CASCADE, 3, "echo", "it cannot echo the prompt"},
        {ENSEMBLE_RERANK, 4, "prompt", "send text, not tokens"},
    };
    (void)state;
    trace("== %s\n", __func__);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct router_route route = make_route(rows[i].kind, 2);
        struct request *r = rows[i].request % 4 == 1 ? texts(1) : prompt();
        struct request_prompt ids = {.ids = (const int32_t[]){1}, .n_ids = 1};
        r->generate.n += rows[i].request == 2;
        r->generate.echo |= rows[i].request == 3;
        if (rows[i].request == 4)
            r->generate.prompts = &ids;
        if (rows[i].request == 5)
            r->infer.kind = SHOAL_KIND_EMBED;
        ask(&route, r);
        assert_int_equal(site.n_calls, 0);
        assert_int_equal(rec.failure.kind, FAILURE_INVALID);
        assert_string_equal(rec.failure.param, rows[i].param);
        if (!strstr(rec.failure.message, rows[i].part))
            fail_msg("row %zu: %s", i, rec.failure.message);
        assert_non_null(strstr(rec.failure.message, "the route 'r' is an ensemble"));
        check_over();
    }
    struct router_route route = make_route(ENSEMBLE_CASCADE, 2);
    struct request *r = prompt();
    r->dry = true; /* what would happen: nobody is asked, so there is no start */
    dry_steps[0] = '\0';
    ask_with(&route, r, on_dry_done);
    assert_int_equal(site.n_calls, 0);
    assert_string_equal(dry_steps, "small large ");
    assert_int_equal(rec.n_starts + rec.n_fails, 0);
    assert_int_equal(rec.n_closed, 1);
    assert_int_equal(site.owner.n_jobs, 0);
}

static int open_site(void **state)
{
    static const struct dispatch_ops ops = {.run = take};
    (void)state;
    memset(&site, 0, sizeof(site));
    const struct registry_opts ro = {.lent_only = true};
    assert_int_equal(registry_create(&site.flow.registry, &ro, NULL), 0);
    assert_int_equal(executor_queue_init(&site.executor, NULL), 0);
    flow_owner_init(&site.owner, &site.flow, &site.executor.executor);
    site.models.ops = &ops;
    site.owner.dispatch = &site.models;
    return 0;
}

static int close_site(void **state)
{
    (void)state;
    flow_owner_fini(&site.owner);
    executor_queue_fini(&site.executor);
    registry_destroy(site.flow.registry);
    return 0;
}

static void the_whole_trace(void **state)
{
    (void)state;
    golden_end("panel");
}

int main(void)
{
    const struct CMUnitTest whole[] = {cmocka_unit_test(the_whole_trace)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_is_sure),
        cmocka_unit_test(test_an_unsure_one_is_left),
        cmocka_unit_test(test_after_tokens_were_sent),
        cmocka_unit_test(test_a_cascade_with_failures),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_refine),
        cmocka_unit_test(test_a_cascade_of_classifiers),
        cmocka_unit_test(test_vote),
        cmocka_unit_test(test_consensus),
        cmocka_unit_test(test_rerank),
        cmocka_unit_test(test_rerank_of_a_conversation),
        cmocka_unit_test(test_events_of_another_kind),
        cmocka_unit_test(test_refused),
    };
    golden_begin();
    int n_failed = cmocka_run_group_tests(tests, open_site, close_site);
    return n_failed ? n_failed : cmocka_run_group_tests(whole, NULL, NULL);
}
