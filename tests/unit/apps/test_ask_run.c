/* test_ask_run.c - asks through flow to the models of the pack: the order of events, cancelling at
 * every point, a full sink, deadlines, failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/thread/executor_queue.h"
#include "base/log.h"
#include "base/mem.h"
#include "apps/home/ask/ask_pack.h"
#include "apps/home/site/home_open.h"
#include "apps/home/ask/ask_run.h"
#include "flow/pool.h"
#include "flow/flow_run.h"
#include "host/registry.h"
#include "support/recorder.h"

#define MODELS SHOAL_TEST_DATA "/../../models"
#define MAX_TURNS 300 /* each waits up to a second */
#define BOTH "turn off the kitchen lights and set the heating to 19 degrees"
#define BOTH_JSON                                                                                  \
    "\"actions\":[{\"action\":\"turn_off\",\"device\":\"lights\",\"room\":\"kitchen\","            \
    "\"id\":\"kitchen_lights\",\"result\":\"simulated\"},{\"action\":\"set_temperature\","         \
    "\"device\":\"heating\",\"value\":19,\"unit\":\"celsius\","                                    \
    "\"ids\":[\"heating\",\"bedroom_heating\"],\"id\":\"heating\","                                \
    "\"result\":\"simulated\"}]"

static struct {
    struct executor_queue owner;
    struct ask_app home;
    struct flow flow;
    struct flow_owner requests;
} site;

static struct recorder *fresh(void)
{
    static struct recorder r;
    recorder_fini(&r);
    recorder_init(&r);
    return &r;
}

static struct request *ask(const char *text, bool reply)
{
    struct request *r = flow_take_request(&site.requests);
    assert_non_null(r);
    r->kind = REQUEST_ASK;
    r->ask.text = request_copy(r, text, strlen(text));
    r->ask.reply = reply;
    r->input_bytes = strlen(text);
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

static struct recorder *run(struct recorder *r, struct request *q)
{
    flow_run(&site.requests, q, &r->sink);
    run_until_closed(r);
    return r;
}

static uint32_t in_flight(const char *name)
{
    struct registry_model *m = NULL;
    assert_int_equal(registry_get(site.flow.registry, name, SHOAL_KIND_CLASSIFY, &m, NULL, NULL),
                     0);
    uint32_t n = atomic_load(&m->stats.in_flight);
    registry_put(m);
    return n;
}

static void test_plan_then_reply_then_done(void **state)
{
    (void)state;
    struct recorder *r = run(fresh(), ask(BOTH, true));
    assert_int_equal(r->n_starts, 1);
    assert_string_equal(r->model, "reply");
    assert_int_equal(r->n_plans, 1);
    if (!strstr(buf_str(&r->json), BOTH_JSON))
        fail_msg("%s", buf_str(&r->json));
    assert_non_null(strstr(buf_str(&r->json), "to_value w10 w11"));
    assert_true(r->n_tokens > 5);
    assert_non_null(strstr(r->text[0], "19 degrees"));
    assert_int_equal(r->n_done, 1);
    assert_int_equal(r->n_fails, 0);
    assert_true(r->done.last);
    assert_int_equal(r->done.finish, SHOAL_FINISH_STOP);
    assert_string_equal(r->steps, "read,decide,reply,");
    assert_true(r->done.usage.prompt_tokens > 0 && r->done.usage.generated_tokens > 0);
    assert_true(r->done.total_ns > 0);
    assert_int_equal(in_flight("reader"), 0);
}

static void test_actions_alone(void **state)
{
    (void)state;
    struct recorder *r = run(fresh(), ask(BOTH, false));
    assert_string_equal(r->model, "reader");
    assert_int_equal(r->n_plans, 1);
    assert_int_equal(r->n_tokens, 0);
    assert_int_equal(r->n_done, 1);
    assert_int_equal(r->done.usage.generated_tokens, 0);
    assert_string_equal(r->steps, "read,decide,");
}

static void test_nothing_comes_after_cancel(void **state)
{
    static const struct {
        enum recorder_point at;
        uint32_t after;
    } points[] = {
        {0, 0}, {RECORDER_START, 0}, {RECORDER_PLAN, 0}, {RECORDER_TOKEN, 0}, {RECORDER_TOKEN, 3}};
    (void)state;
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        struct recorder *r = fresh();
        r->cancel_at = points[i].at;
        r->after = points[i].after;
        flow_run(&site.requests, ask(BOTH, true), &r->sink);
        if (points[i].at == 0) { /* submitted, and no event yet */
            assert_non_null(r->sink.job);
            flow_cancel(&r->sink);
            flow_cancel(&r->sink); /* calling it twice is fine */
        }
        run_until_closed(r);
        assert_int_equal(r->n_starts, 1);
        assert_int_equal(r->n_plans, points[i].at >= RECORDER_PLAN);
        assert_int_equal(r->n_tokens, points[i].at == RECORDER_TOKEN ? points[i].after + 1 : 0);
        assert_int_equal(r->n_done + r->n_fails, 0);
    }
    assert_int_equal(in_flight("reader"), 0);
}

static void test_a_full_sink_is_left_alone(void **state)
{
    (void)state;
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        struct recorder *r = fresh();
        r->full = true;
        flow_run(&site.requests, ask("what is 7 times 8", true), &r->sink);
        for (int i = 0; i < 2; i++)
            executor_queue_turn(&site.owner, 1000);
        assert_int_equal(r->n_plans + r->n_tokens + r->n_done + r->n_closed, 0);
        if (cancelled) {
            flow_cancel(&r->sink);
        } else {
            r->full = false;
            flow_resume(&r->sink);
        }
        run_until_closed(r);
        assert_int_equal(r->n_plans, !cancelled);
        assert_int_equal(r->n_done, !cancelled);
        assert_true(cancelled || strstr(r->text[0], "56"));
    }
}

static void check_failure(struct recorder *r, enum failure_kind kind, const char *reason,
                          const char *text)
{
    assert_int_equal(r->n_fails, 1);
    assert_int_equal(r->n_plans + r->n_tokens + r->n_done, 0);
    assert_int_equal(r->failure.kind, kind);
    if (reason)
        assert_string_equal(r->failure.reason, reason);
    if (!strstr(r->failure.message, text))
        fail_msg("\"%s\" does not contain \"%s\"", r->failure.message, text);
}

static void test_failures_are_typed(void **state)
{
    char many[ASK_MAX_TEXT + 2];
    (void)state;
    check_failure(run(fresh(), ask(" \n", true)), FAILURE_INVALID, NULL, "empty");
    memset(many, 'x', sizeof(many) - 1);
    many[sizeof(many) - 1] = '\0';
    check_failure(run(fresh(), ask(many, true)), FAILURE_INVALID, "limit_exceeded", "bytes");
    struct home_table *table = site.home.table;
    site.home.table = NULL;
    check_failure(run(fresh(), ask(BOTH, true)), FAILURE_NOT_FOUND, "model_not_found", "table");
    site.home.table = table;
    site.flow.app = NULL;
    check_failure(run(fresh(), ask(BOTH, true)), FAILURE_NOT_FOUND, "model_not_found",
                  "application");
    site.flow.app = &site.home.app;
    struct recorder *r = run(fresh(), ask(BOTH, true)); /* and it works again */
    assert_int_equal(r->n_done, 1);
}

static void test_deadlines(void **state)
{
    (void)state;
    struct request *q = ask(BOTH, true);
    q->deadline_ns = 1; /* long ago */
    check_failure(run(fresh(), q), FAILURE_DEADLINE, NULL, "");
    struct recorder *r = NULL;
    for (uint64_t ms = 5; (!r || r->n_starts == 0) && ms < 60000; ms *= 2) {
        r = fresh(); /* retried with more time if this thread was kept waiting */
        q = ask(BOTH, true);
        q->deadline_ns = clock_ns() + ms * 1000000;
        r->start_before = q->deadline_ns; /* it passes before the work starts */
        check_failure(run(r, q), FAILURE_DEADLINE, NULL, "");
    }
    assert_int_equal(r->n_starts, 1);
    for (uint64_t us = 500; us < 100000; us += us) { /* at any point, or in time */
        r = fresh();
        q = ask(BOTH, true);
        q->deadline_ns = clock_ns() + us * 1000;
        run(r, q);
        assert_int_equal(r->n_fails + r->n_done, 1);
        if (r->n_fails)
            assert_int_equal(r->failure.kind, FAILURE_DEADLINE);
    }
}

static void test_failed_allocations(void **state)
{
    uint32_t n_failed = 0;
    (void)state;
    for (uint64_t i = 1; i <= 60; i++) {
        struct request *q = ask("mute the tv", i % 2);
        struct recorder *r = fresh();
        mem_fail_at(i);
        run(r, q);
        mem_fail_at(0);
        assert_int_equal(r->n_fails + r->n_done, 1);
        n_failed += r->n_fails;
        if (r->n_fails)
            assert_int_equal(r->failure.code, SHOAL_ENOMEM);
    }
    assert_true(n_failed > 10);
    struct recorder *r = run(fresh(), ask("mute the tv", true));
    assert_int_equal(r->n_done, 1);
    assert_int_equal(in_flight("reader"), 0);
}

/* Last: the reply model is unloaded, then removed. */
static void serve(const char *name, enum shoal_kind kind, uint64_t epoch, uint64_t until)
{
    const struct registry_service s = {REGISTRY_SERVE, epoch, until, 0};
    struct registry_model *m = NULL;
    struct err e = {0};
    assert_int_equal(registry_get_any(site.flow.registry, name, kind, &m, NULL, &e), 0);
    for (int i = 0; i < 60000 && !registry_sum(m); i++)
        usleep(1000);
    assert_non_null(registry_sum(m));
    assert_int_equal(registry_set_service(site.flow.registry, name, registry_sum(m), &s, &e), 0);
    registry_put(m);
}

/* A command of a past epoch is answered entirely by the models of that epoch. */
static void test_all_models_are_of_one_epoch(void **state)
{
    (void)state;
    serve("reply", SHOAL_KIND_GENERATE, 5, 7);
    serve("reader", SHOAL_KIND_CLASSIFY, 5, 7);
    registry_set_epoch(site.flow.registry, 7, 8);
    struct request *q = ask(BOTH, true);
    q->epoch = 6;
    struct recorder *r = run(fresh(), q);
    assert_int_equal(r->n_fails, 0);
    assert_int_equal(r->n_done, 1);
    assert_int_equal(run(fresh(), ask(BOTH, true))->n_fails, 1); /* of the current epoch */
    registry_set_epoch(site.flow.registry, 5, 8);
    assert_int_equal(run(fresh(), ask(BOTH, true))->n_done, 1);
    serve("reply", SHOAL_KIND_GENERATE, 0, 0);
    serve("reader", SHOAL_KIND_CLASSIFY, 0, 0);
    registry_set_epoch(site.flow.registry, 0, 0);
}

static void test_models_that_are_not_there(void **state)
{
    struct err e = {0};
    enum registry_state now = REGISTRY_READY;
    (void)state;
    assert_int_equal(registry_unload(site.flow.registry, "reply", &e), 0);
    for (int i = 0; i < 60000 && now != REGISTRY_UNLOADED; i++) {
        usleep(1000);
        assert_true(registry_state(site.flow.registry, "reply", &now));
    }
    struct recorder *r = run(fresh(), ask(BOTH, true)); /* load_wait_ms is 0 */
    check_failure(r, FAILURE_NOT_LOADED, "model_loading", "");
    assert_int_equal(r->n_starts, 0);
    for (int i = 0; i < 60000 && now != REGISTRY_READY; i++) {
        usleep(1000);
        assert_true(registry_state(site.flow.registry, "reply", &now));
    }
    assert_int_equal(run(fresh(), ask(BOTH, true))->n_done, 1);
    assert_int_equal(registry_remove(site.flow.registry, "reply", &e), 0);
    r = run(fresh(), ask(BOTH, true));
    check_failure(r, FAILURE_NOT_FOUND, "model_not_found", "'reply'");
    assert_int_equal(run(fresh(), ask(BOTH, false))->n_done, 1);
    assert_int_equal(in_flight("reader"), 0);
}

static int open_site(void **state)
{
    static const struct registry_spec specs[] = {
        {.name = "reply", .path = MODELS "/reply.gguf", .pinned = true},
        {.name = "reader", .path = MODELS "/reader.gguf", .pinned = true}};
    const struct registry_opts ro = {.cache_dir = ""};
    struct err e = {0};
    (void)state;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    ask_app_init(&site.home);
    site.flow.app = &site.home.app;
    int rc = executor_queue_init(&site.owner, &e);
    if (rc == 0)
        rc = registry_create(&site.flow.registry, &ro, &e);
    if (rc == 0)
        rc = pool_create(&site.flow.pool, 1, 16, &e);
    if (rc == 0)
        rc = ask_pack_table(&site.home.table, MODELS, NULL, NULL, &e);
    if (rc == 0)
        rc = home_open(&site.home.things, site.home.table,
                       &(struct home_open_opts){.models = MODELS}, &e);
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
    recorder_fini(fresh());
    pool_destroy(site.flow.pool);
    registry_destroy(site.flow.registry);
    home_things_destroy(site.home.things);
    home_table_close(site.home.table);
    flow_owner_fini(&site.requests);
    executor_queue_fini(&site.owner);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_then_reply_then_done),
        cmocka_unit_test(test_actions_alone),
        cmocka_unit_test(test_nothing_comes_after_cancel),
        cmocka_unit_test(test_a_full_sink_is_left_alone),
        cmocka_unit_test(test_failures_are_typed),
        cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_failed_allocations),
        cmocka_unit_test(test_all_models_are_of_one_epoch),
        cmocka_unit_test(test_models_that_are_not_there),
    };
    return cmocka_run_group_tests(tests, open_site, close_site);
}
