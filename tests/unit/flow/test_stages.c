/* test_stages.c - the way of a request through the stages: who takes it, in which order, what is
 * refused, and what the explanation says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/thread/executor_queue.h"
#include "flow/app.h"
#include "flow/dispatch.h"
#include "flow/stages.h"
#include "host/registry.h"
#include "router/router.h"
#include "support/recorder.h"

/* Stages of other folders, and what answers at last: each notes its name; `takes` decides what the
 * dispatch does. */
struct noted {
    struct dispatch dispatch; /* first */
    const char *name;
    enum { LEAVES, PASSES_ON, ANSWERS } takes;
};

static char seen[256];
static bool answer(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s);
static void answer_ask(struct app *a, struct flow_owner *o, struct request *r, struct sink *s);

static const struct dispatch_ops ops = {.run = answer};
static struct app app = {answer_ask};
static struct noted session = {{&ops}, "session", PASSES_ON},
                    similar = {{&ops}, "similar", PASSES_ON}, flows = {{&ops}, "flows", LEAVES},
                    once = {{&ops}, "once", LEAVES}, nodes = {{&ops}, "nodes", ANSWERS};
static struct {
    struct executor_queue executor;
    struct flow flow;
    struct flow_owner owner;
    struct router_table routes;
} site;

static void note(const char *name)
{
    size_t n = strlen(seen);
    snprintf(seen + n, sizeof(seen) - n, "%s%s", n ? " " : "", name);
}

static void end(struct flow_owner *o, struct request *r, struct sink *s)
{
    const struct sink_start start = {.model = "m", .version = ""};
    const struct sink_done done = {.finish = SHOAL_FINISH_STOP, .last = true};
    s->ops->start(s, &start);
    s->ops->done(s, &done);
    s->ops->closed(s);
    flow_give_request(o, r);
}

static bool answer(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s)
{
    const struct noted *x = (const struct noted *)(void *)d;
    note(x->name);
    if (x->takes == PASSES_ON)
        request_pass_on(o, r, s);
    else if (x->takes == ANSWERS)
        end(o, r, s);
    return x->takes != LEAVES;
}

static void answer_ask(struct app *a, struct flow_owner *o, struct request *r, struct sink *s)
{
    (void)a;
    note("app");
    end(o, r, s);
}

static struct request *chat(void)
{
    struct request *r = flow_take_request(&site.owner);
    struct chat_message *m = arena_zalloc(&r->arena, sizeof(*m));
    *m = (struct chat_message){.role = "user", .content = "hello", .content_bytes = 5};
    r->kind = REQUEST_GENERATE;
    r->model = "m";
    r->generate.chat.messages = m;
    r->generate.chat.n_messages = 1;
    r->generate.n_prompts = r->generate.n = 1;
    return r;
}

static struct recorder *run(struct request *r)
{
    static struct recorder to;
    recorder_fini(&to);
    recorder_init(&to);
    seen[0] = '\0';
    stages_run(&site.owner, r, &to.sink);
    assert_int_equal(to.n_closed, 1);
    return &to;
}

static void test_who_takes_it(void **state)
{
    struct request *r = chat();
    (void)state;
    trace("== %s\n", __func__);
    run(r);
    assert_string_equal(seen, "similar flows nodes");
    r = chat();
    r->remembered = true; /* what a conversation means depends on its turns: no semantic cache */
    run(r);
    assert_string_equal(seen, "session flows nodes");
    r = chat();
    r->marked = true; /* marks of one request are not those of another */
    run(r);
    assert_string_equal(seen, "flows nodes");
    r = chat();
    r->remembered = r->generate.prompt_only = true; /* tokens are counted as sent */
    run(r);
    assert_string_equal(seen, "flows nodes");
    r = chat();
    r->has_once_key = true;
    run(r);
    assert_string_equal(seen, "similar flows once nodes");
    similar.takes = ANSWERS;
    run(chat());
    assert_string_equal(seen, "similar");
    similar.takes = PASSES_ON;
    r = chat();
    r->kind = REQUEST_ASK;
    memset(&r->generate, 0, sizeof(r->generate));
    r->ask.text = "hello";
    r->remembered = r->here = true; /* an application keeps its own conversations */
    run(r);
    assert_string_equal(seen, "flows app");
}

static void test_a_route_is_behind_the_caches(void **state)
{
    char name[] = "m";
    struct router_route route = {.name = name, .flow = name};
    (void)state;
    trace("== %s\n", __func__);
    site.routes = (struct router_table){.routes = &route, .n_routes = 1};
    flows.takes = ANSWERS;
    struct recorder *to = run(chat());
    assert_string_equal(seen, "similar flows");
    assert_int_equal(to->n_done, 1);
    flows.takes = LEAVES;
    to = run(chat());
    assert_int_equal(to->n_fails, 1); /* the route has only this flow */
    site.routes = (struct router_table){.n_routes = 0};
}

static void test_conversations_that_cannot_continue(void **state)
{
    static const struct chat_tool tool = {.name = "f"};
    (void)state;
    trace("== %s\n", __func__);
    const struct {
        const char *param, *reason;
        bool off, prompts, tools, many;
    } cases[] = {{"session_id", "sessions_off", .off = true},
                 {"session_id", "invalid_value", .prompts = true},
                 {"tools", "invalid_value", .tools = true},
                 {"n", "invalid_value", .many = true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct request *r = chat();
        r->remembered = true;
        if (cases[i].prompts)
            r->generate.chat.n_messages = 0;
        if (cases[i].tools) {
            r->generate.chat.tools = &tool;
            r->generate.chat.n_tools = 1;
        }
        r->generate.n = cases[i].many ? 2 : 1;
        site.flow.session = cases[i].off ? NULL : &session.dispatch;
        struct recorder *to = run(r);
        assert_int_equal(to->n_fails, 1);
        assert_string_equal(seen, "");
        assert_int_equal(to->failure.kind, FAILURE_INVALID);
        assert_string_equal(to->failure.param, cases[i].param);
        assert_string_equal(to->reason, cases[i].reason);
    }
    site.flow.session = &session.dispatch;
}

/* Takes a request and is silent: a stopped process. */
static struct {
    struct flow_job job;
    struct request *request;
    struct sink *sink;
    uint32_t n_cancels;
} silent;

static void on_silent_cancel(struct flow_job *j)
{
    (void)j;
    silent.n_cancels++;
}

static bool take_silently(struct dispatch *d, struct flow_owner *o, struct request *r,
                          struct sink *s)
{
    static const struct flow_job_ops job_ops = {on_silent_cancel, on_silent_cancel};
    (void)d;
    (void)o;
    silent.job.ops = &job_ops;
    silent.request = r;
    silent.sink = s;
    s->job = &silent.job;
    return true;
}

static void end_silent(void)
{
    silent.sink->job = NULL;
    silent.sink->ops->closed(silent.sink);
    flow_give_request(&site.owner, silent.request);
}

static void test_a_deadline_holds_whatever_is_silent(void **state)
{
    static const struct dispatch_ops silent_ops = {.run = take_silently};
    struct dispatch to_silent = {&silent_ops};
    const struct sink_start start = {.model = "m", .version = ""};
    const struct sink_done done = {.finish = SHOAL_FINISH_STOP, .last = true};
    struct recorder to;
    (void)state;
    trace("== %s\n", __func__);
    site.owner.dispatch = &to_silent;
    for (int started = 0; started < 2; started++) {
        struct request *r = chat();
        memset(&silent, 0, sizeof(silent));
        recorder_init(&to);
        r->deadline_ns = clock_ns() + 1000000;
        stages_run(&site.owner, r, &to.sink);
        if (started)
            silent.sink->ops->start(silent.sink, &start);
        assert_int_equal(to.n_fails, 0);
        for (int i = 0; i < 600 && to.n_fails == 0; i++)
            executor_queue_turn(&site.executor, 100);
        assert_int_equal(to.n_fails, 1);
        assert_int_equal(to.failure.kind, FAILURE_DEADLINE);
        assert_int_equal(silent.n_cancels, 1);
        assert_int_equal(to.n_closed, 0); /* what is silent still has the request */
        end_silent();
        assert_int_equal(to.n_closed, 1);
        recorder_fini(&to);
    }
    /* an answer in time stops the clock */
    struct request *r = chat();
    recorder_init(&to);
    r->deadline_ns = clock_ns() + 1000000;
    stages_run(&site.owner, r, &to.sink);
    assert_int_not_equal(executor_queue_wait_ms(&site.executor), -1);
    silent.sink->ops->start(silent.sink, &start);
    silent.sink->ops->done(silent.sink, &done);
    assert_int_equal(executor_queue_wait_ms(&site.executor), -1);
    end_silent();
    assert_int_equal(to.n_fails, 0);
    assert_int_equal(to.n_done, 1);
    recorder_fini(&to);
    site.owner.dispatch = &nodes.dispatch;
}

static const struct stage_log *told;

static void on_start(struct sink *s, const struct sink_start *e)
{
    static struct stage_log copy;
    told = NULL;
    if (s->stages) {
        copy = *s->stages;
        told = &copy;
    }
    recorder_on_start(s, e);
}

static void test_the_explanation(void **state)
{
    struct recorder to;
    struct sink_ops mine;
    struct request *r = chat();
    (void)state;
    trace("== %s\n", __func__);
    recorder_init(&to);
    mine = *to.sink.ops;
    mine.start = on_start;
    to.sink.ops = &mine;
    r->explain = r->remembered = true;
    stages_run(&site.owner, r, &to.sink);
    assert_non_null(told);
    for (uint32_t i = 0; i < STAGE_N; i++)
        assert_int_equal(told->entered_ns[i] != 0, i == STAGE_SESSION || i == STAGE_PLACE);
    recorder_fini(&to);
    recorder_init(&to);
    to.sink.ops = &mine;
    stages_run(&site.owner, chat(), &to.sink);
    assert_null(told); /* nobody asked */
    recorder_fini(&to);

    const struct stage_log log = {
        .entered_ns = {[STAGE_PRIVACY] = 100, [STAGE_ROUTE] = 130, [STAGE_RUN] = 150}};
    assert_int_equal(stages_time(&log, STAGE_PRIVACY, 500), 30);
    assert_int_equal(stages_time(&log, STAGE_SESSION, 500), 0);
    assert_int_equal(stages_time(&log, STAGE_ROUTE, 500), 20);
    assert_int_equal(stages_time(&log, STAGE_RUN, 500), 350);
    for (uint32_t i = 0; i < STAGE_N; i++)
        assert_true(stages_name(i)[0] != '\0');
    assert_string_equal(stages_name(STAGE_LEAVE), "leave");
}

static int open_site(void **state)
{
    const struct registry_opts ro = {.lent_only = true};
    struct err e;
    (void)state;
    assert_int_equal(executor_queue_init(&site.executor, &e), 0);
    assert_int_equal(registry_create(&site.flow.registry, &ro, &e), 0);
    site.flow.app = &app;
    site.flow.session = &session.dispatch;
    site.flow.similar = &similar.dispatch;
    flow_owner_init(&site.owner, &site.flow, &site.executor.executor);
    site.owner.routes = &site.routes;
    site.owner.flows = &flows.dispatch;
    site.owner.once = &once.dispatch;
    site.owner.dispatch = &nodes.dispatch;
    return 0;
}

static int close_site(void **state)
{
    (void)state;
    registry_destroy(site.flow.registry);
    flow_owner_fini(&site.owner);
    executor_queue_fini(&site.executor);
    return 0;
}

static void the_whole_trace(void **state)
{
    (void)state;
    golden_end("stages");
}

int main(void)
{
    const struct CMUnitTest whole[] = {cmocka_unit_test(the_whole_trace)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_takes_it),
        cmocka_unit_test(test_a_route_is_behind_the_caches),
        cmocka_unit_test(test_conversations_that_cannot_continue),
        cmocka_unit_test(test_a_deadline_holds_whatever_is_silent),
        cmocka_unit_test(test_the_explanation),
    };
    golden_begin();
    int n_failed = cmocka_run_group_tests(tests, open_site, close_site);
    return n_failed ? n_failed : cmocka_run_group_tests(whole, NULL, NULL);
}
