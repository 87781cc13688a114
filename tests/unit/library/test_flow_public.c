/* test_flow_public.c - shoal_flow_* with the real models: an example of the tree, its steps and
 * JSON, inputs, invalid files, cancelling, freeing early, options of other versions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "shoal/shoal.h"

#define SOURCES SHOAL_TEST_DATA "/../.."
#define HELPER SOURCES "/examples/flows/helper.yaml"
#define MODELS SOURCES "/models"

static struct shoal_flow *flow;

static struct shoal_flow_opts usual_opts(void)
{
    return (struct shoal_flow_opts){.size = sizeof(struct shoal_flow_opts), .models = MODELS};
}

static int setup(void **state)
{
    const struct shoal_flow_opts o = usual_opts();
    struct err e = {0};
    (void)state;
    if (shoal_flow_open(&flow, HELPER, &o, &e) < 0) {
        print_error("%s\n", e.msg);
        return -1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    shoal_flow_close(flow);
    return 0;
}

static struct shoal_flow_request_opts text_opts(const char *text)
{
    return (struct shoal_flow_request_opts){
        .size = sizeof(struct shoal_flow_request_opts), .text = text, .text_bytes = strlen(text)};
}

/* Opens a flow from this text; the file is removed afterwards. */
static int open_text(struct shoal_flow **out, const char *yaml, const struct shoal_flow_opts *o,
                     struct err *e)
{
    char path[] = "/tmp/shoal-flow-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, yaml, strlen(yaml)), strlen(yaml));
    close(fd);
    int rc = shoal_flow_open(out, path, o, e);
    unlink(path);
    return rc;
}

static const struct shoal_flow_step *step_of(const struct shoal_flow_result *r, const char *name)
{
    for (size_t i = 0; i < r->n_steps; i++)
        if (strcmp(r->steps[i].name, name) == 0)
            return &r->steps[i];
    fail_msg("there is no step %s", name);
    return NULL;
}

static void test_an_example_of_the_tree(void **state)
{
    (void)state;
    const struct shoal_flow_request_opts o = text_opts("what is the weather like in Bern tomorrow");
    struct shoal_flow_request *q;
    struct err e = {0};
    char *json;
    size_t n;
    if (shoal_flow_submit(flow, &o, &q, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(shoal_flow_wait(q), 0);
    const struct shoal_flow_result *r = shoal_flow_result(q);
    assert_int_equal(r->size, sizeof(*r));
    assert_int_equal(r->code, 0);
    assert_non_null(strstr(r->text, "You ask about the weather in Bern"));
    assert_int_equal(r->text_bytes, strlen(r->text));
    assert_false(r->degraded);
    assert_true(r->total_ns > 0);
    assert_int_equal(r->n_steps, 5);
    assert_string_equal(r->steps[0].name, "intent");
    assert_string_equal(step_of(r, "intent")->kind, "classify");
    assert_int_equal(step_of(r, "intent")->state, SHOAL_FLOW_DONE);
    assert_non_null(strstr(step_of(r, "slots")->value_json, "\"Bern\""));
    assert_int_equal(step_of(r, "chat")->state, SHOAL_FLOW_UNUSED); /* its model did not run */
    assert_string_equal(step_of(r, "chat")->value_json, "");

    assert_int_equal(shoal_flow_json(q, 0, &json, &n, &e), 0);
    assert_int_equal(n, strlen(json));
    cJSON *answer = cJSON_Parse(json);
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(answer, "text")->valuestring, r->text);
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(answer, "flow")->valuestring, "helper");
    assert_null(cJSON_GetObjectItemCaseSensitive(answer, "steps"));
    cJSON_Delete(answer);
    shoal_free(json);
    assert_int_equal(shoal_flow_json(q, SHOAL_FLOW_EXPLAIN, &json, NULL, NULL), 0);
    answer = cJSON_Parse(json);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(answer, "steps")), 5);
    cJSON_Delete(answer);
    shoal_free(json);
    shoal_flow_free(q);
}

struct got {
    char text[256];
    int code;
    _Atomic int n;
};

static void on_done(void *ctx, const struct shoal_flow_result *r)
{
    struct got *g = ctx;
    snprintf(g->text, sizeof(g->text), "%s", r->text);
    g->code = r->code;
    atomic_fetch_add(&g->n, 1);
}

#define INPUTS                                                                                     \
    "flows:\n"                                                                                     \
    "  - name: room\n"                                                                             \
    "    inputs: [{name: room, type: text}]\n"                                                     \
    "    output: ${said.text}\n"                                                                   \
    "    steps: [{name: said, do: template, text: \"${input.room}: ${input.text}\"}]\n"            \
    "  - {name: other, output: \"${a.text}\", steps: [{name: a, do: template, text: b}]}\n"

/* Many at once, each with its callback; and inputs besides the text. */
static void test_inputs_and_callbacks(void **state)
{
    (void)state;
    enum { N = 8 };
    struct shoal_flow *f;
    struct shoal_flow_request *q[N];
    static struct got got[N];
    struct shoal_flow_opts fo = usual_opts();
    struct err e = {0};
    fo.flow = "room";
    if (open_text(&f, INPUTS, &fo, &e) < 0)
        fail_msg("%s", e.msg);
    memset(got, 0, sizeof(got));
    for (int i = 0; i < N; i++) {
        struct shoal_flow_request_opts o = text_opts("hello");
        char input[32];
        snprintf(input, sizeof(input), "{\"room\":\"hall %d\"}", i);
        o.input_json = input;
        o.input_bytes = strlen(input);
        o.done = on_done;
        o.done_ctx = &got[i];
        assert_int_equal(shoal_flow_submit(f, &o, &q[i], &e), 0);
    }
    for (int i = 0; i < N; i++) {
        char want[32];
        snprintf(want, sizeof(want), "hall %d: hello", i);
        assert_int_equal(shoal_flow_wait(q[i]), 0);
        assert_string_equal(shoal_flow_result(q[i])->text, want);
        assert_string_equal(got[i].text, want);
        assert_int_equal(atomic_load(&got[i].n), 1);
        shoal_flow_free(q[i]);
    }
    struct shoal_flow_request_opts o = text_opts("hello");
    o.input_json = "[1]";
    o.input_bytes = 3;
    assert_int_equal(shoal_flow_submit(f, &o, &q[0], &e), SHOAL_EFORMAT);
    assert_null(q[0]);
    o.input_json = NULL; /* the flow needs it: the request fails, and says so */
    o.input_bytes = 0;
    assert_int_equal(shoal_flow_submit(f, &o, &q[0], &e), 0);
    assert_int_equal(shoal_flow_wait(q[0]), SHOAL_EINVAL);
    assert_non_null(strstr(shoal_flow_result(q[0])->message, "room"));
    char *json;
    assert_int_equal(shoal_flow_json(q[0], 0, &json, NULL, &e), SHOAL_EINVAL);
    assert_null(json);
    shoal_flow_free(q[0]);
    shoal_flow_close(f);
}

static void test_what_cannot_be_opened(void **state)
{
    (void)state;
    static const struct {
        const char *why, *yaml, *flow, *says;
        int want;
    } cases[] = {
        {"no YAML", "flows: [", NULL, ":1:", SHOAL_EFORMAT},
        {"no flows", "models: []\n", NULL, "has no flows", SHOAL_ENOTFOUND},
        {"several", INPUTS, NULL, "has 2 flows", SHOAL_EINVAL},
        {"another", INPUTS, "none", "no flow 'none'", SHOAL_ENOTFOUND},
        {"a model that does not exist",
         "flows: [{name: a, output: \"${b.label}\", steps: [{name: b, do: classify, model: nomodel,"
         " text: x}]}]\n",
         NULL, "nomodel", SHOAL_ENOTFOUND},
        {"a call",
         "flows: [{name: a, output: \"${b.text}\", steps: [{name: b, do: call, via: http, url: "
         "\"http://127.0.0.1:1/\"}]}]\nflows_allow: {hosts: [\"127.0.0.1:1\"]}\n",
         NULL, "the step 'b' is a call", SHOAL_EUNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct shoal_flow *f;
        struct shoal_flow_opts o = usual_opts();
        struct err e = {0};
        o.flow = cases[i].flow;
        int rc = open_text(&f, cases[i].yaml, &o, &e);
        if (rc != cases[i].want || !strstr(e.msg, cases[i].says))
            fail_msg("%s: %d %s", cases[i].why, rc, e.msg);
        assert_null(f);
        assert_int_equal(open_text(&f, cases[i].yaml, &o, NULL), rc);
    }
    struct shoal_flow *f;
    struct shoal_flow_opts bad = usual_opts();
    struct err e = {0};
    assert_int_equal(shoal_flow_open(&f, "/nowhere/flow.yaml", NULL, &e), SHOAL_ENOTFOUND);
    bad.size = 0;
    assert_int_equal(shoal_flow_open(&f, HELPER, &bad, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "shoal_flow_opts.size is 0"));
}

static void test_cancelled_and_late(void **state)
{
    (void)state;
    static struct got g;
    struct shoal_flow_request *q;
    struct shoal_flow_request_opts o = text_opts("tell me a joke");
    memset(&g, 0, sizeof(g));
    o.done = on_done;
    o.done_ctx = &g;
    assert_int_equal(shoal_flow_submit(flow, &o, &q, NULL), 0);
    shoal_flow_cancel(q);
    shoal_flow_cancel(q);
    int code = shoal_flow_wait(q); /* it may have finished first */
    assert_true(code == SHOAL_ECANCELLED || code == 0);
    assert_int_equal(atomic_load(&g.n), 1);
    assert_int_equal(g.code, code);
    shoal_flow_free(q);

    o.deadline_ns = clock_ns() - 1;
    assert_int_equal(shoal_flow_submit(flow, &o, &q, NULL), 0);
    code = shoal_flow_wait(q); /* an error, or the flow's own fallback */
    assert_true(code == SHOAL_EDEADLINE || (code == 0 && shoal_flow_result(q)->degraded));
    shoal_flow_free(q);
}

/* The caller frees them at once; close waits for the rest. */
static void test_freed_before_it_is_done(void **state)
{
    (void)state;
    struct shoal_flow *f;
    struct shoal_flow_request *q;
    struct shoal_flow_opts fo = usual_opts();
    struct shoal_flow_request_opts o = text_opts("hello");
    static struct got g;
    fo.flow = "other";
    memset(&g, 0, sizeof(g));
    assert_int_equal(open_text(&f, INPUTS, &fo, NULL), 0);
    o.done = on_done;
    o.done_ctx = &g;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(shoal_flow_submit(f, &o, &q, NULL), 0);
        shoal_flow_free(q);
    }
    shoal_flow_close(f);
    assert_int_equal(atomic_load(&g.n), 20);
}

static void test_options_end_without_padding(void **state)
{
    (void)state;
#define END(type, last) (offsetof(struct type, last) + sizeof(((struct type *)NULL)->last))
    assert_int_equal(sizeof(struct shoal_flow_opts), END(shoal_flow_opts, reserved));
    assert_int_equal(sizeof(struct shoal_flow_request_opts),
                     END(shoal_flow_request_opts, done_ctx));
#undef END
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_example_of_the_tree),
        cmocka_unit_test(test_inputs_and_callbacks),
        cmocka_unit_test(test_what_cannot_be_opened),
        cmocka_unit_test(test_cancelled_and_late),
        cmocka_unit_test(test_freed_before_it_is_done),
        cmocka_unit_test(test_options_end_without_padding),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
