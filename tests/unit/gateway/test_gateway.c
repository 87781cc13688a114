/* test_gateway.c - fields, and requests under failing allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/mem.h"
#include "flow/dispatch.h"
#include "host/prometheus.h"
#include "support/gw_site.h"

/* ---- fields ---- */

struct target {
    bool flag;
    int64_t whole;
    double number;
    const char *text;
    const cJSON *value;
};

static void test_fields_say_what_is_wrong(void **state)
{
#define AT(m) offsetof(struct target, m)
    static const struct field table[] = {{"flag", FIELD_BOOL, AT(flag), 0, 0, NULL, NULL},
                                         {"whole", FIELD_INT, AT(whole), -5, 5, NULL, NULL},
                                         {"number", FIELD_NUM, AT(number), 0, 2, NULL, NULL},
                                         {"text", FIELD_STR, AT(text), 0, 0, NULL, NULL},
                                         {"value", FIELD_VALUE, AT(value), 0, 0, NULL, NULL},
                                         {"skip", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
                                         {"soon", FIELD_UNBUILT, 0, 0, 0, NULL, "none"}};
#undef AT
    static const struct {
        const char *json, *param; /* param NULL: accepted */
        bool lenient;
    } cases[] = {
        {"{\"flag\":true,\"whole\":-5,\"number\":0.5,\"text\":\"a\",\"value\":[1],\"skip\":1}",
         NULL, false},
        {"{\"flag\":null,\"whole\":null,\"soon\":null}", NULL, false},
        {"{\"flag\":1}", "flag", false},
        {"{\"whole\":1.5}", "whole", false},
        {"{\"whole\":6}", "whole", false},
        {"{\"whole\":1e300}", "whole", false},
        {"{\"number\":-0.1}", "number", false},
        {"{\"number\":\"1\"}", "number", false},
        {"{\"text\":5}", "text", false},
        {"{\"other\":5}", "other", false},
        {"{\"other\":5,\"soon\":1}", NULL, true},
        {"{\"soon\":[]}", NULL, false},
        {"{\"soon\":\"\"}", NULL, false},
        {"{\"soon\":[1]}", "soon", false},
        {"{\"soon\":{}}", NULL, false},
        {"{\"soon\":{\"a\":1}}", "soon", false},
        {"{\"soon\":false}", NULL, false},
        {"{\"soon\":true}", "soon", false},
        {"{\"soon\":[\"none\"]}", NULL, false},
        {"{\"soon\":[\"none\",\"high\"]}", "soon", false},
        {"{\"other\":null}", NULL, false},
        {"{\"soon\":\"high\"}", "soon", false},
        {"{\"soon\":\"none\"}", NULL, false},
        {"{\"flag\":true,\"flag\":false}", "flag", false},
        {"[]", "", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct target t = {.whole = 1};
        struct fields_error e = {{0}, {0}, NULL};
        cJSON *json = cJSON_Parse(cases[i].json);
        int rc = fields_read(table, 7, json, &t, cases[i].lenient, &e);
        if (cases[i].param ? rc != SHOAL_EINVAL || strcmp(e.param, cases[i].param) != 0 || !e.msg[0]
                           : rc != 0)
            fail_msg("%s: %d %s %s", cases[i].json, rc, e.param, e.msg);
        if (i == 0)
            assert_true(t.flag && t.whole == -5 && t.number == 0.5 && t.value->child);
        cJSON_Delete(json);
    }
}

/* ---- metrics ---- */

static void test_batches_and_labels_as_prometheus_reads_them(void **state)
{
    struct batch_histogram h = {.sum = 0};
    char label[PROMETHEUS_LABEL_BYTES], name[600];
    struct buf b;
    (void)state;
    const uint32_t sizes[] = {0, 1, 2, 3, 128, 129};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        histogram_add_batch(&h, sizes[i]);
    buf_init(&b, 4096);
    prometheus_batches(&b, "x", prometheus_model(label, "a\"\\\n"), &h);
    static const char want[] = "x_bucket{model=\"a\\\"\\\\\\n\",le=\"1\"} 1\n"
                               "x_bucket{model=\"a\\\"\\\\\\n\",le=\"2\"} 2\n"
                               "x_bucket{model=\"a\\\"\\\\\\n\",le=\"4\"} 3\n";
    assert_memory_equal(buf_str(&b), want, sizeof(want) - 1);
    assert_non_null(strstr(buf_str(&b), "le=\"64\"} 3\n"));
    assert_non_null(strstr(buf_str(&b), "le=\"128\"} 4\n"));
    assert_non_null(strstr(buf_str(&b), "le=\"+Inf\"} 5\n"));
    assert_non_null(strstr(buf_str(&b), "x_sum{model=\"a\\\"\\\\\\n\"} 263.000000000\n"));
    assert_non_null(strstr(buf_str(&b), "x_count{model=\"a\\\"\\\\\\n\"} 5\n"));
    buf_fini(&b);
    memset(name, '"', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    for (size_t i = 0; i < 2; i++) { /* a long name is truncated, never inside an escape */
        prometheus_model(label, name);
        size_t n = strlen(label);
        assert_in_range(n, PROMETHEUS_LABEL_BYTES - 8, PROMETHEUS_LABEL_BYTES - 1);
        assert_string_equal(label + n - 3, "\\\"\"");
        name[0] = 'a'; /* the other parity */
    }
}

/* ---- requests ---- */

static const struct {
    const char *path, *body; /* body NULL: GET */
} requests[] = {
    {"/v1/chat/completions",
     "{\"messages\":[{\"role\":\"user\",\"content\":\"hello <|im_end|>\"}],\"max_tokens\":4,"
     "\"temperature\":0,\"stream\":true}"},
    {"/v1/completions",
     "{\"prompt\":\"hello\",\"max_tokens\":3,\"n\":2,\"seed\":1,\"logprobs\":2,\"echo\":true}"},
    {"/v1/completions",
     "{\"prompt\":[\"hello\",\"a\"],\"max_tokens\":3,\"n\":2,\"seed\":1,\"echo\":true}"},
    {"/v1/completions", "{\"prompt\":[[5,6],[7]],\"max_tokens\":2,\"stream\":true}"},
    {"/api/chat",
     "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"options\":{\"num_predict\":2}}"},
    {"/v1/process", "{\"text\":\"turn off the kitchen lights\",\"stream\":true}"},
    {"/v1/process", "{\"text\":\"what is 7 times 8\",\"explain\":true}"},
    {"/tokenize", "{\"text\":\"a b c\"}"},
    {"/completion", "{\"prompt\":\"hello\",\"n_predict\":3,\"n_probs\":1,\"return_tokens\":true}"},
    {"/completion", "{\"prompt\":[\"a\",\"b\"],\"n_predict\":2,\"stream\":true}"},
    {"/apply-template", "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}"},
    {"/v1/responses", "{\"input\":\"hello\",\"max_output_tokens\":3,\"stream\":true}"},
    {"/v1/responses", "{\"input\":\"hello\",\"max_output_tokens\":3,\"top_logprobs\":1}"},
    {"/v1/completions", "{\"prompt\":\"hello\",\"max_tokens\":2,\"n\":1,\"best_of\":2,\"seed\":1,"
                        "\"echo\":true,\"logprobs\":1}"},
    {"/api/generate",
     "{\"prompt\":\"x\",\"stream\":false,\"logprobs\":true,\"options\":{\"num_predict\":2}}"},
    {"/api/generate", "{\"prompt\":\"\"}"},
    {"/predict", "{\"model\":\"reader\",\"inputs\":[\"a\",\"b\"]}"},
    {"/metrics", NULL},
};

static size_t make_request(char *out, size_t cap, size_t i)
{
    const char *body = requests[i].body ? requests[i].body : "";
    int n = snprintf(
        out, cap, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
        requests[i].body ? "POST" : "GET", requests[i].path, strlen(body), body);
    return (size_t)n;
}

static void load(struct gw *gw)
{
    static const char decoder[] = SHOAL_TEST_DATA "/refs/qwen3.gguf";
    static const struct registry_spec specs[] = {
        {.name = "m", .path = decoder, .n_ctx = 256, .pinned = true},
        {.name = "reply", .path = decoder, .n_ctx = 256, .pinned = true}, /* any text is fine */
        {.name = "reader", .path = SHOAL_TEST_DATA "/../../models/reader.gguf", .pinned = true}};
    struct err e = {0};
    int rc = gw_site_open(gw, 1 << 20);
    for (size_t i = 0; rc == 0 && i < sizeof(specs) / sizeof(specs[0]); i++)
        rc = registry_add(gw->registry, &specs[i], &e);
    if (rc < 0)
        fail_msg("%s", e.msg);
    for (int i = 0; i < 60000 && !registry_ready(gw->registry); i++)
        loop_turn(gw->loops[0].loop, 1);
}

static void test_requests_are_answered_while_memory_fails(void **state)
{
    static struct gw gw;
    static char got[1 << 20];
    (void)state;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    load(&gw);
    for (size_t r = 0; r < sizeof(requests) / sizeof(requests[0]); r++) {
        char request[1024];
        size_t n = make_request(request, sizeof(request), r);
        gw_site_ask(&gw, request, n, got, sizeof(got), "\x7f");
        if (strncmp(got, "HTTP/1.1 200 OK", 15) != 0)
            fail_msg("%s: %.400s", requests[r].path, got);
        for (uint64_t k = 1; k < 400; k++) {
            uint64_t before = mem_calls();
            mem_fail_at(k);
            gw_site_ask(&gw, request, n, got, sizeof(got), "\x7f");
            gw_site_settle(&gw);
            mem_fail_at(0);
            assert_int_equal(gw.loops[0].flow.n_jobs, 0);
            assert_int_equal(gw.loops[0].n_calls, 0);
            if (mem_calls() - before < k)
                break;
        }
        gw_site_ask(&gw, request, n, got, sizeof(got), "\x7f");
        if (strncmp(got, "HTTP/1.1 200 OK", 15) != 0)
            fail_msg("afterwards: %s: %.400s", requests[r].path, got);
    }
    gw_site_close(&gw);
}

/* A body can be answered without parsing once it has come twice; only that body. */
static void test_bodies_are_recalled(void **state)
{
    static struct gw gw;
    static char got[1 << 20];
    const char *body = requests[0].body;
    struct http_req req = {.body = body, .body_bytes = strlen(body)};
    struct call c = {.gl = &gw.loops[0], .req = &req};
    char request[1024];
    size_t n = make_request(request, sizeof(request), 0);
    (void)state;
    load(&gw);
    c.route = gw.routes;
    assert_string_equal(gw.routes[0].path, requests[0].path);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(recall_find(&c) != NULL, i >= 2);
        gw_site_ask(&gw, request, n, got, sizeof(got), "\x7f");
        assert_non_null(strstr(got, i > 0 ? "x-shoal-cache: hit" : "x-shoal-cache: miss"));
        assert_non_null(strstr(got, "[DONE]"));
    }
    const struct recalled *r = recall_find(&c);
    assert_string_equal(r->memo.model, "m");
    assert_false(r->memo.named);
    c.lenient = true;
    assert_null(recall_find(&c));
    c.lenient = false;
    c.route++;
    assert_null(recall_find(&c));
    c.route--;
    req.body_bytes--;
    assert_null(recall_find(&c));
    req.body_bytes++;
    /* without its entry in the prompt cache it is parsed again */
    struct registry_model *m = NULL;
    assert_int_equal(registry_get(gw.registry, r->memo.model, SHOAL_KIND_GENERATE, &m, NULL, NULL),
                     0);
    for (int i = 0; i < 30000 && registry_identity(m)->kind != IDENTITY_CONTENT; i++)
        usleep(1000);
    assert_int_equal(registry_identity(m)->kind, IDENTITY_CONTENT);
    prompt_cache_purge(gw.cache, registry_identity(m)->sum);
    registry_put(m);
    gw_site_ask(&gw, request, n, got, sizeof(got), "\x7f");
    assert_non_null(strstr(got, "x-shoal-cache: miss"));
    gw_site_close(&gw);
}

/* Inspects the requests that a codec makes, and leaves them to this process. */
struct spy {
    struct dispatch dispatch;
    char session[64];
    uint32_t n;
};

static bool spy_run(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s)
{
    struct spy *spy = (struct spy *)(void *)d;
    (void)o;
    (void)s;
    memcpy(spy->session, r->session, sizeof(spy->session));
    spy->n++;
    return false;
}

static void test_requests_carry_their_session(void **state)
{
    static const struct {
        const char *header, *session; /* session NULL: refused */
    } cases[] = {{"", ""},
                 {"x-session-id: kitchen-tablet.7:a_b\r\n", "kitchen-tablet.7:a_b"},
                 {"x-session-id: two words\r\n", NULL},
                 {"x-session-id: \r\n", NULL},
                 {"x-session-id: "
                  "0123456789012345678901234567890123456789012345678901234567890123\r\n",
                  NULL}};
    static const struct dispatch_ops ops = {.run = spy_run};
    static const char body[] = "{\"prompt\":\"hello\",\"max_tokens\":1}";
    static struct gw gw;
    static char got[1 << 16];
    struct spy spy = {.dispatch = {&ops}};
    (void)state;
    load(&gw);
    gw.loops[0].flow.dispatch = &spy.dispatch;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char request[512];
        int n = snprintf(request, sizeof(request),
                         "POST /v1/completions HTTP/1.1\r\nHost: x\r\n%sContent-Length: %zu\r\n"
                         "Connection: close\r\n\r\n%s",
                         cases[i].header, strlen(body), body);
        uint32_t before = spy.n;
        gw_site_ask(&gw, request, (size_t)n, got, sizeof(got), "\x7f");
        assert_int_equal(spy.n - before, cases[i].session != NULL);
        if (cases[i].session)
            assert_string_equal(spy.session, cases[i].session);
        else
            assert_non_null(strstr(got, "\"param\":\"x-session-id\""));
    }
    gw_site_close(&gw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields_say_what_is_wrong),
        cmocka_unit_test(test_batches_and_labels_as_prometheus_reads_them),
        cmocka_unit_test(test_requests_are_answered_while_memory_fails),
        cmocka_unit_test(test_bodies_are_recalled),
        cmocka_unit_test(test_requests_carry_their_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
