/* test_ask_public.c - shoal_ask_* with the real models: the events and their order, the answer as
 * JSON, cancelling, freeing early, options of other versions, failed allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "base/mem.h"
#include "shoal/shoal.h"
#include "support/watchdog.h"

#define MODELS SHOAL_TEST_DATA "/../../models"
#define TEXT "turn off the kitchen lights"

static struct shoal_ask *ask;

static int setup(void **state)
{
    struct shoal_ask_opts o = {.size = sizeof(o), .models = MODELS};
    struct err e = {0};
    (void)state;
    if (shoal_ask_open(&ask, &o, &e) < 0) {
        print_error("%s\n", e.msg);
        return -1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    shoal_ask_close(ask);
    return 0;
}

struct got {
    char order[8]; /* "PTD": runs of TEXT count once */
    char plan[4096], reply[4096];
    size_t n_order, n_reply;
    int code;
    _Atomic bool done;
};

static void note(struct got *g, char kind)
{
    if (g->n_order > 0 && g->order[g->n_order - 1] == kind && kind == 'T')
        return;
    assert_true(g->n_order + 1 < sizeof(g->order));
    g->order[g->n_order++] = kind;
}

static void on_event(void *ctx, const struct shoal_ask_event *ev)
{
    struct got *g = ctx;
    assert_int_equal(ev->size, sizeof(*ev));
    switch (ev->kind) {
    case SHOAL_ASK_EVENT_PLAN:
        note(g, 'P');
        assert_true(ev->text_bytes < sizeof(g->plan));
        memcpy(g->plan, ev->text, ev->text_bytes);
        break;
    case SHOAL_ASK_EVENT_TEXT:
        note(g, 'T');
        assert_true(g->n_reply + ev->text_bytes < sizeof(g->reply));
        memcpy(g->reply + g->n_reply, ev->text, ev->text_bytes);
        g->n_reply += ev->text_bytes;
        break;
    case SHOAL_ASK_EVENT_DONE:
        note(g, 'D');
        g->code = ev->code;
        atomic_store(&g->done, true);
        break;
    }
}

static struct shoal_ask_request_opts opts_of(struct got *g)
{
    memset(g, 0, sizeof(*g));
    return (struct shoal_ask_request_opts){.size = sizeof(struct shoal_ask_request_opts),
                                           .text = TEXT,
                                           .text_bytes = strlen(TEXT),
                                           .event = on_event,
                                           .event_ctx = g};
}

static const char *action_of(const cJSON *answer, const char *key)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(answer, "actions");
    assert_int_equal(cJSON_GetArraySize(list), 1);
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(list, 0), key);
    assert_true(cJSON_IsString(v));
    return v->valuestring;
}

static void test_plan_then_text_then_done(void **state)
{
    (void)state;
    static struct got g;
    struct shoal_ask_request_opts o = opts_of(&g);
    struct shoal_ask_request *r;
    struct err e = {0};
    char *json;
    size_t n;
    if (shoal_ask_submit(ask, &o, &r, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(shoal_ask_wait(r), 0);
    assert_string_equal(g.order, "PTD");
    assert_int_equal(g.code, 0);
    assert_true(g.n_reply > 0);
    assert_string_equal(shoal_ask_reply(r, &n), g.reply);
    assert_int_equal(n, g.n_reply);
    assert_string_equal(shoal_ask_reply(r, NULL), g.reply);

    cJSON *plan = cJSON_Parse(g.plan);
    assert_string_equal(action_of(plan, "action"), "turn_off");
    assert_string_equal(action_of(plan, "room"), "kitchen");
    assert_int_equal(shoal_ask_json(r, 0, &json, &n, &e), 0);
    assert_int_equal(n, strlen(json));
    cJSON *answer = cJSON_Parse(json);
    assert_string_equal(action_of(answer, "device"), "lights");
    assert_string_equal(action_of(answer, "result"), "simulated"); /* the caller carries it out */
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(answer, "reply")->valuestring, g.reply);
    assert_null(cJSON_GetObjectItemCaseSensitive(answer, "steps"));
    cJSON_Delete(answer);
    shoal_free(json);
    assert_int_equal(shoal_ask_json(r, SHOAL_ASK_EXPLAIN, &json, &n, NULL), 0);
    answer = cJSON_Parse(json);
    assert_true(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(answer, "steps")) > 1);
    cJSON_Delete(answer);
    shoal_free(json);
    cJSON_Delete(plan);
    shoal_ask_free(r);
}

static void test_actions_only(void **state)
{
    (void)state;
    static struct got g;
    struct shoal_ask_request_opts o = opts_of(&g);
    struct shoal_ask_request *r;
    o.no_reply = true;
    assert_int_equal(shoal_ask_submit(ask, &o, &r, NULL), 0);
    assert_int_equal(shoal_ask_wait(r), 0);
    assert_string_equal(g.order, "PD");
    assert_string_equal(shoal_ask_reply(r, NULL), "");
    shoal_ask_free(r);
    o.event = NULL; /* nobody listens */
    assert_int_equal(shoal_ask_submit(ask, &o, &r, NULL), 0);
    assert_int_equal(shoal_ask_wait(r), 0);
    shoal_ask_free(r);
}

/* DONE comes whether the request is cancelled or freed at once; its memory stays valid until
 * then. */
static void test_cancel_and_free_early(void **state)
{
    (void)state;
    static struct got g[8];
    struct shoal_ask_request *r;
    for (int i = 0; i < 8; i++) {
        struct shoal_ask_request_opts o = opts_of(&g[i]);
        assert_int_equal(shoal_ask_submit(ask, &o, &r, NULL), 0);
        if (i % 2) {
            shoal_ask_cancel(r);
            int rc = shoal_ask_wait(r);
            assert_true(rc == 0 || rc == SHOAL_ECANCELLED);
            assert_int_equal(rc, g[i].code);
        }
        shoal_ask_free(r);
    }
    for (int i = 0; i < 8; i++)
        WAIT_UNTIL(atomic_load(&g[i].done));
    shoal_ask_free(NULL);
}

static void test_bad_requests_are_refused(void **state)
{
    (void)state;
    static struct got g;
    static char longer[5000];
    struct shoal_ask_request_opts o = opts_of(&g);
    struct shoal_ask_request *r;
    struct shoal_ask *none;
    struct err e = {0};
    memset(longer, 'a', sizeof(longer));
    o.size = 0;
    assert_int_equal(shoal_ask_submit(ask, &o, &r, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "shoal_ask_request_opts.size is 0"));
    assert_null(r);
    o = opts_of(&g);
    o.text = NULL;
    assert_int_equal(shoal_ask_submit(ask, &o, &r, NULL), SHOAL_EINVAL);
    o.text = "";
    o.text_bytes = 0;
    assert_int_equal(shoal_ask_submit(ask, &o, &r, NULL), SHOAL_EINVAL);
    o.text = longer;
    o.text_bytes = sizeof(longer);
    assert_int_equal(shoal_ask_submit(ask, &o, &r, NULL), SHOAL_ELIMIT);
    o.text = "turn on the light\0 and open the door"; /* never only the first half */
    o.text_bytes = 37;
    assert_int_equal(shoal_ask_submit(ask, &o, &r, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "contains NUL"));
    assert_null(r);
    assert_int_equal(g.n_order, 0);

    struct shoal_ask_opts ao = {.models = MODELS};
    assert_int_equal(shoal_ask_open(&none, &ao, &e), SHOAL_EINVAL);
    assert_null(none);
    SHOAL_INIT(&ao);
    ao.models = SHOAL_TEST_DATA "/none";
    assert_int_equal(shoal_ask_open(&none, &ao, NULL), SHOAL_ENOTFOUND);
    assert_null(none);
    shoal_ask_close(NULL);
}

/* A flow over the caller's engines, without a models folder; they outlive it. */
static void test_given_engines(void **state)
{
    (void)state;
    static struct got g;
    struct shoal_engine *reader = NULL, *reply = NULL;
    struct shoal_ask *own;
    struct shoal_ask_request *r;
    struct err e = {0};
    if (shoal_engine_open(&reader, MODELS "/reader.gguf", NULL, &e) < 0 ||
        shoal_engine_open(&reply, MODELS "/reply.gguf", NULL, &e) < 0)
        fail_msg("%s", e.msg);
    struct shoal_ask_opts o = {.size = sizeof(o),
                               .models = SHOAL_TEST_DATA "/none",
                               .table = MODELS "/home.json",
                               .home = MODELS "/demo-home.yaml",
                               .reader = reader,
                               .reply = reply};
    if (shoal_ask_open(&own, &o, &e) < 0)
        fail_msg("%s", e.msg);
    struct shoal_ask_request_opts ro = opts_of(&g);
    assert_int_equal(shoal_ask_submit(own, &ro, &r, NULL), 0);
    assert_int_equal(shoal_ask_wait(r), 0);
    assert_string_equal(g.order, "PTD");
    char first[sizeof(g.reply)];
    memcpy(first, g.reply, sizeof(first));
    shoal_ask_free(r);
    shoal_ask_close(own);

    ro = opts_of(&g); /* the flow with the folder's models gives the same */
    assert_int_equal(shoal_ask_submit(ask, &ro, &r, NULL), 0);
    assert_int_equal(shoal_ask_wait(r), 0);
    assert_string_equal(first, g.reply);
    shoal_ask_free(r);

    o.reader = reply; /* writes no plans */
    assert_int_equal(shoal_ask_open(&own, &o, NULL), SHOAL_EUNSUPPORTED);
    o.reader = NULL; /* then the folder is required */
    assert_int_equal(shoal_ask_open(&own, &o, NULL), SHOAL_ENOTFOUND);
    struct shoal_engine_info info = {.size = sizeof(info)};
    assert_int_equal(shoal_engine_info(reader, &info), 0); /* still open */
    shoal_engine_close(reader);
    shoal_engine_close(reply);
}

static void test_failed_allocations_leave_nothing(void **state)
{
    (void)state;
    static struct got g;
    uint32_t failures = 0;
    for (uint64_t i = 1; i < 40; i++) {
        struct shoal_ask_request_opts o = opts_of(&g);
        struct shoal_ask_request *r;
        char *json = NULL;
        size_t n;
        o.no_reply = true;
        mem_fail_at(i);
        int rc = shoal_ask_submit(ask, &o, &r, NULL);
        assert_true((r != NULL) == (rc == 0));
        if (rc == 0)
            rc = shoal_ask_wait(r);
        if (rc == 0)
            rc = shoal_ask_json(r, 0, &json, &n, NULL);
        mem_fail_at(0);
        assert_true(rc == 0 || rc == SHOAL_ENOMEM);
        assert_true((json != NULL) == (rc == 0));
        failures += rc < 0;
        shoal_free(json);
        shoal_ask_free(r);
    }
    assert_true(failures > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_then_text_then_done),
        cmocka_unit_test(test_actions_only),
        cmocka_unit_test(test_cancel_and_free_early),
        cmocka_unit_test(test_bad_requests_are_refused),
        cmocka_unit_test(test_given_engines),
        cmocka_unit_test(test_failed_allocations_leave_nothing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
