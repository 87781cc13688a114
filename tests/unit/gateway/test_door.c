/* test_door.c - who may ask what: paths and methods, hosts and origins, keys, and the names that a
 * call gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "gateway/call/tags.h"
#include "router/router.h"
#include "support/gw_client.h"

#define N(list) (sizeof(list) / sizeof((list)[0]))
#define HOST "host: localhost:8080\n"

struct ask {
    const char *method, *path, *headers; /* headers NULL: only the host */
    const char *peer;                    /* NULL: 127.0.0.1 */
    enum http_via via;
    bool secure;
    int status;
    const char *code; /* in the answer's head or body; NULL: none */
};

static void check(struct gw *gw, const struct ask *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct ask *a = &rows[i];
        struct gw_client x;
        gw_client_init(&x, gw, a->method, a->path, a->headers ? a->headers : HOST, "", 0);
        x.req.peer = a->peer ? a->peer : x.req.peer;
        x.req.via = a->via;
        x.req.secure = a->secure;
        gw_client_send(&x, gw);
        if (x.status != a->status ||
            (a->code && !strstr(buf_str(&x.body), a->code) && !strstr(buf_str(&x.head), a->code)))
            fail_msg("%s %s %s: %d instead of %d %s: %s%s", a->method, a->path,
                     a->headers ? a->headers : "", x.status, a->status, a->code ? a->code : "",
                     buf_str(&x.head), buf_str(&x.body));
        assert_true(x.over);
        gw_client_fini(&x);
    }
}

static void open_site(struct gw *gw)
{
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    assert_int_equal(gw_site_open(gw, 0), 0);
}

static void test_paths_and_methods(void **state)
{
    static const struct ask rows[] = {
        {"GET", "/healthz", NULL, NULL, 0, false, 200, NULL},
        {"GET", "/healthz/", NULL, NULL, 0, false, 404, "not_found"},
        {"GET", "/health", NULL, NULL, 0, false, 200, "ok"},
        {"POST", "/healthz", NULL, NULL, 0, false, 405, "allow: GET, HEAD\n"},
        {"GET", "/v1/chat/completions", NULL, NULL, 0, false, 405, "allow: POST\n"},
        {"PUT", "/v1/responses/x", NULL, NULL, 0, false, 405, "allow: GET, HEAD, DELETE\n"},
        {"GET", "/v1/responses/x", NULL, NULL, 0, false, 404, "response_not_found"},
        {"GET", "/nothing", NULL, NULL, 0, false, 404, "nothing at /nothing"},
        {"POST", "/nothing", NULL, NULL, 0, false, 404, "nothing at /nothing"},
        {"DELETE", "/v1/nothing", NULL, NULL, 0, false, 404, "not_found"},
        {"POST", "/some.Service/Call", HOST "content-type: application/grpc\n", NULL, 0, false, 200,
         "grpc-status"},
        {"POST", "/some.Service/Call", HOST "content-type: application/json\n", NULL, 0, false, 404,
         "not_found"},
        {"GET", "/metrics", NULL, "10.0.0.1", 0, false, 200, NULL},
    };
    static struct gw gw;
    (void)state;
    open_site(&gw);
    check(&gw, rows, N(rows));
    check(&gw, rows, N(rows)); /* from the routes that were found before */
    gw_site_close(&gw);
}

/* A page that some other name leads to this address must not use it. */
static void test_hosts(void **state)
{
#define ASK(host, via, status)                                                                     \
    {                                                                                              \
        "GET", "/healthz", "host: " host "\n", NULL, via, false, status,                           \
            (status) == 421 ? "unknown_host" : NULL                                                \
    }
    static const struct ask plain[] = {
        ASK("localhost", HTTP_VIA_LOOPBACK, 200),
        ASK("LOCALHOST:80", HTTP_VIA_LOOPBACK, 200),
        ASK("localhost:", HTTP_VIA_LOOPBACK, 200),
        ASK("localhost:8a", HTTP_VIA_LOOPBACK, 421),
        ASK("127.0.0.1", HTTP_VIA_LOOPBACK, 200),
        ASK("127.9.9.9:1", HTTP_VIA_LOOPBACK, 200),
        ASK("128.0.0.1", HTTP_VIA_LOOPBACK, 421),
        ASK("126.0.0.1", HTTP_VIA_LOOPBACK, 421),
        ASK("[::1]", HTTP_VIA_LOOPBACK, 200),
        ASK("[::1]:80", HTTP_VIA_LOOPBACK, 200),
        ASK("[::2]", HTTP_VIA_LOOPBACK, 421),
        ASK("[::1", HTTP_VIA_LOOPBACK, 421),
        ASK("[::1]x", HTTP_VIA_LOOPBACK, 421),
        ASK("evil.example", HTTP_VIA_LOOPBACK, 421),
        ASK("evil.example", HTTP_VIA_NETWORK, 200),
        ASK("evil.example", HTTP_VIA_UNIX, 200),
        {"GET", "/healthz", "accept: x\n", NULL, HTTP_VIA_LOOPBACK, false, 200, NULL},
    };
    static const struct ask named[] = {
        ASK("box.example", HTTP_VIA_NETWORK, 200),  ASK("BOX.example:8080", HTTP_VIA_NETWORK, 200),
        ASK("box.example", HTTP_VIA_LOOPBACK, 200), ASK("fox.example", HTTP_VIA_NETWORK, 421),
        ASK("fox.example", HTTP_VIA_UNIX, 200),     ASK("10.1.2.3:8080", HTTP_VIA_NETWORK, 200),
        ASK("10.1.2.4", HTTP_VIA_NETWORK, 421),     ASK("[fd00::1]:8080", HTTP_VIA_NETWORK, 200),
        ASK("[fd00::2]", HTTP_VIA_NETWORK, 421),    ASK("[fd00::10]", HTTP_VIA_NETWORK, 421),
        ASK("localhost", HTTP_VIA_NETWORK, 200),
    };
    static const struct ask all[] = {ASK("fox.example", HTTP_VIA_NETWORK, 200)};
#undef ASK
    static const char named_text[] = "hosts: [box.example]\n"
                                     "listen: ['10.1.2.3:8080', '[fd00::1]:8080', 'unix:/tmp/x']\n";
    static const char all_text[] = "hosts: ['*']\n";
    static struct gw gw;
    struct err e = {0};
    (void)state;
    open_site(&gw);
    check(&gw, plain, N(plain));
    config_clear_listen(gw.config);
    if (config_parse(gw.config, named_text, strlen(named_text), "test", &e) < 0)
        fail_msg("%s", e.msg);
    check(&gw, named, N(named));
    gw_site_close(&gw);
    open_site(&gw);
    if (config_parse(gw.config, all_text, strlen(all_text), "test", &e) < 0)
        fail_msg("%s", e.msg);
    check(&gw, all, N(all));
    gw_site_close(&gw);
}

/* Pages of others may not act; programs, which send no origin, may. */
static void test_origins(void **state)
{
#define ASK(method, path, origin, secure, status)                                                  \
    {                                                                                              \
        method, path, HOST "origin: " origin "\n", NULL, 0, secure, status,                        \
            (status) == 403 ? "origin_refused" : NULL                                              \
    }
    static const struct ask plain[] = {
        {"POST", "/v1/score", NULL, NULL, 0, false, 400, NULL},
        ASK("POST", "/v1/score", "http://localhost:8080", false, 400),
        ASK("POST", "/v1/score", "https://LOCALHOST:8080", false, 400),
        ASK("POST", "/v1/score", "https://localhost:8080", true, 400),
        ASK("POST", "/v1/score", "http://localhost:8080", true, 403),
        ASK("POST", "/v1/score", "http://localhost:8081", false, 403),
        ASK("POST", "/v1/score", "ftp://localhost:8080", false, 403),
        ASK("POST", "/v1/score", "http://evil.example", false, 403),
        ASK("POST", "/v1/score", "null", false, 403),
        ASK("GET", "/v1/models", "http://evil.example", false, 200),
        {"OPTIONS", "/v1/score", HOST "origin: http://evil.example\n", NULL, 0, false, 200, NULL},
    };
    static const struct ask listed[] = {
        ASK("POST", "/v1/score", "http://app.example", false, 400),
        ASK("POST", "/v1/score", "http://APP.example", false, 400),
        ASK("POST", "/v1/score", "http://app.example:1", false, 403),
        ASK("POST", "/v1/score", "http://localhost:3000", false, 400),
        ASK("POST", "/v1/score", "http://127.0.0.1", false, 400),
        ASK("POST", "/v1/score", "http://localhost.evil", false, 403),
        {"OPTIONS", "/v1/score", HOST "origin: http://app.example\n", NULL, 0, false, 200,
         "access-control-allow-headers: authorization, content-type\n"},
        {"OPTIONS", "/v1/score",
         HOST "origin: http://app.example\naccess-control-request-headers: x-a\n", NULL, 0, false,
         200, "access-control-allow-headers: x-a\n"},
        {"GET", "/v1/models", HOST "origin: http://app.example\n", NULL, 0, false, 200,
         "access-control-allow-origin: http://app.example\n"},
    };
#undef ASK
    static const char text[] = "cors: ['http://app.example', localhost]\n";
    static struct gw gw;
    struct gw_client x;
    struct err e = {0};
    (void)state;
    open_site(&gw);
    check(&gw, plain, N(plain));
    gw_client_init(&x, &gw, "OPTIONS", "/v1/score", HOST "origin: http://evil.example\n", "", 0);
    gw_client_send(&x, &gw);
    assert_null(strstr(buf_str(&x.head), "access-control"));
    gw_client_fini(&x);
    if (config_parse(gw.config, text, strlen(text), "test", &e) < 0)
        fail_msg("%s", e.msg);
    check(&gw, listed, N(listed));
    gw_site_close(&gw);
}

static void test_administration_without_keys(void **state)
{
    static const char change[] = "/admin/models", blob[] = "/api/blobs/sha256:x";
    static const struct ask rows[] = {
        {"GET", "/admin/models", NULL, NULL, 0, false, 200, NULL},
        {"GET", "/admin/models", NULL, "127.8.8.8", 0, false, 200, NULL},
        {"GET", "/admin/models", NULL, "::1", 0, false, 200, NULL},
        {"GET", "/admin/models", NULL, "::ffff:127.0.0.1", 0, false, 200, NULL},
        {"GET", "/admin/models", NULL, "unix", 0, false, 200, NULL},
        {"GET", "/admin/models", NULL, "10.0.0.1", 0, false, 403, "only this machine"},
        {"GET", "/admin/models", NULL, "::ffff:10.0.0.1", 0, false, 403, "only this machine"},
        {"GET", "/admin/models", NULL, "::2", 0, false, 403, "only this machine"},
        {"GET", "/admin/models", HOST "origin: http://localhost:3000\n", NULL, 0, false, 200, NULL},
        {"GET", "/admin/models", HOST "origin: http://evil.example\n", NULL, 0, false, 403,
         "origin_refused"},
        {"POST", change, NULL, NULL, 0, false, 403, "admin_key_needed"},
        {"POST", change, NULL, "unix", 0, false, 400, NULL},
        {"POST", change, HOST "origin: http://localhost:3000\n", "unix", 0, false, 403,
         "origin_refused"},
        {"POST", blob, NULL, NULL, 0, false, 403, "nothing can be changed"},
    };
    static struct gw gw;
    (void)state;
    open_site(&gw);
    check(&gw, rows, N(rows));
    gw_site_close(&gw);
}

static void test_keys(void **state)
{
    static const struct ask rows[] = {
        {"POST", "/v1/score", NULL, NULL, 0, false, 401, "no API key"},
        {"POST", "/v1/score", NULL, "unix", 0, false, 401, "no API key"},
        {"POST", "/v1/score", HOST "authorization: Bearer plain\n", NULL, 0, false, 400, NULL},
        {"POST", "/v1/score", HOST "authorization: bearer plain\n", NULL, 0, false, 400, NULL},
        {"POST", "/v1/score", HOST "authorization: Basic plain\n", NULL, 0, false, 401,
         "no API key"},
        {"POST", "/v1/score", HOST "x-api-key: plain\n", NULL, 0, false, 400, NULL},
        {"POST", "/v1/score", HOST "x-api-key: other\n", NULL, 0, false, 401, "unknown API key"},
        {"POST", "/v1/score", HOST "x-api-key: plain\nauthorization: Bearer other\n", NULL, 0,
         false, 401, "unknown API key"},
        /* a key is proof enough: pages of others do not know it */
        {"POST", "/v1/score", HOST "x-api-key: plain\norigin: http://evil.example\n", NULL, 0,
         false, 400, NULL},
        {"GET", "/v1/models", NULL, NULL, 0, false, 401, NULL},
        {"GET", "/healthz", NULL, NULL, 0, false, 200, NULL},
        {"GET", "/admin/models", HOST "x-api-key: plain\n", NULL, 0, false, 403, "key 'one'"},
        {"GET", "/admin/models", HOST "x-api-key: chief\n", "10.0.0.1", 0, false, 200, NULL},
        {"POST", "/admin/models", HOST "x-api-key: chief\n", "10.0.0.1", 0, false, 400, NULL},
        {"POST", "/admin/models", HOST "x-api-key: plain\n", "unix", 0, false, 403, "key 'one'"},
    };
    static char one[] = "one", two[] = "two";
    struct admission_key keys[] = {{.name = one}, {.name = two, .admin = true}};
    const struct admission_opts o = {.keys = keys, .n_keys = 2};
    static struct gw gw;
    (void)state;
    assert_true(admission_hash("plain", 5, keys[0].sha256));
    assert_true(admission_hash("chief", 5, keys[1].sha256));
    open_site(&gw);
    assert_int_equal(admission_reload(gw.admission, &o, NULL), 0);
    check(&gw, rows, N(rows));
    gw_site_close(&gw);
}

/* A rate of one request, or one place: the second is refused and told when to come back. */
static void test_refusals_say_when(void **state)
{
    static char one[] = "one", two[] = "two";
    struct admission_key keys[] = {{.name = one, .rate = 0.01, .burst = 1}, {.name = two}};
    const struct admission_opts o = {.keys = keys, .n_keys = 2};
    static const struct ask rows[] = {
        {"POST", "/v1/score", HOST "x-api-key: a\n", NULL, 0, false, 400, NULL},
        {"POST", "/v1/score", HOST "x-api-key: a\n", NULL, 0, false, 429, "retry-after: "},
        {"POST", "/v1/score", HOST "x-api-key: a\n", NULL, 0, false, 429, "too many requests with"},
        {"POST", "/v1/score", HOST "x-api-key: b\n", NULL, 0, false, 400, NULL},
        {"GET", "/v1/models", HOST "x-api-key: a\n", NULL, 0, false, 200, NULL}, /* no work */
    };
    static struct gw gw;
    (void)state;
    assert_true(admission_hash("a", 1, keys[0].sha256));
    assert_true(admission_hash("b", 1, keys[1].sha256));
    open_site(&gw);
    assert_int_equal(admission_reload(gw.admission, &o, NULL), 0);
    check(&gw, rows, N(rows));
    assert_int_equal(call_retry_after(429, 0), 1); /* a client never has to guess */
    assert_int_equal(call_retry_after(503, 0), 1);
    assert_int_equal(call_retry_after(504, 0), 1);
    assert_int_equal(call_retry_after(504, 7), 7);
    assert_int_equal(call_retry_after(400, 0), 0);
    assert_int_equal(counter_read(&gw.refused[GW_REFUSED_RATE]), 2);
    assert_int_equal(counter_read(&gw.refused[GW_REFUSED_AUTH]), 0);
    assert_int_equal(admission_in_flight(gw.admission), 0);
    gw_site_close(&gw);
}

/* ---- names ---- */

/* The value of a header of the answer; "" if it has none. */
static const char *header_of(struct gw *gw, const char *headers, const char *name, char *out)
{
    struct gw_client x;
    gw_client_init(&x, gw, "GET", "/healthz", headers, "", 0);
    gw_client_send(&x, gw);
    const char *p = strstr(buf_str(&x.head), name);
    out[0] = '\0';
    if (p)
        snprintf(out, 128, "%.*s", (int)strcspn(p + strlen(name) + 2, "\n"), p + strlen(name) + 2);
    gw_client_fini(&x);
    return out;
}

static void test_ids_and_traces(void **state)
{
#define TRACE "00-0123456789abcdef0123456789abcdef-"
#define S63 "sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss"
    static const char *const bad_traces[] = {
        TRACE "0123456789abcdef.01", TRACE "0123456789abcde-01", TRACE "0123456789abcdeF-01",
        TRACE "0123456789abcdef-012", "00.0123456789abcdef0123456789abcdef-0123456789abcdef-01"};
    static struct gw gw;
    char a[128], b[128], head[256];
    (void)state;
    open_site(&gw);
    assert_string_equal(header_of(&gw, HOST "x-request-id: A-z.0_9:\n", "x-request-id", a),
                        "A-z.0_9:");
    assert_string_equal(header_of(&gw, HOST "x-request-id: " S63 "\n", "x-request-id", a), S63);
    /* others get one of ours, each another */
    header_of(&gw, HOST, "x-request-id", b);
    assert_true(strncmp(b, "req_", 4) == 0 && strlen(b) == 20);
    assert_string_not_equal(header_of(&gw, HOST, "x-request-id", a), b);
    assert_int_equal(
        strncmp(header_of(&gw, HOST "x-request-id: s" S63 "\n", "x-request-id", a), "req_", 4), 0);
    assert_int_equal(
        strncmp(header_of(&gw, HOST "x-request-id: a b\n", "x-request-id", a), "req_", 4), 0);
    /* the same trace and flags, another span */
    header_of(&gw, HOST "traceparent: " TRACE "0123456789abcdef-01\n", "traceparent", a);
    assert_int_equal(strlen(a), 55);
    assert_memory_equal(a, TRACE, 36);
    assert_string_equal(a + 52, "-01");
    assert_int_equal(strspn(a, "0123456789abcdef-"), 55);
    assert_int_not_equal(strncmp(a + 36, "0123456789abcdef", 16), 0);
    for (size_t i = 0; i < N(bad_traces); i++) {
        snprintf(head, sizeof(head), HOST "traceparent: %s\n", bad_traces[i]);
        assert_string_equal(header_of(&gw, head, "traceparent", a), "");
    }
    gw_site_close(&gw);
}

/* ---- what rules of routes can test ---- */

static void test_tags(void **state)
{
    static struct router_rule rules[70];
    static char names[70][8], long_name[200], long_value[4200], body[4400];
    static char header[] = "x-long", member[] = "v";
    struct router_route route = {.rules = rules};
    const struct router_table table = {.routes = &route, .n_routes = 1};
    const struct http_header headers[] = {{"x-tier", "gold"}, {header, long_value}};
    const struct http_req from = {.headers = headers, .n_headers = 2};
    static struct {
        enum router_field field;
        char name[16];
        const char *want; /* NULL: no tag */
    } rows[] = {
        {ROUTER_FIELD_HEADER, "x-tier", "gold"},   {ROUTER_FIELD_HEADER, "x-none", NULL},
        {ROUTER_FIELD_JSON, "user", "u"},          {ROUTER_FIELD_JSON, "meta.tier", "silver"},
        {ROUTER_FIELD_JSON, "meta.deep.n", "2.5"}, {ROUTER_FIELD_JSON, "meta.on", "true"},
        {ROUTER_FIELD_JSON, "meta.off", "false"},  {ROUTER_FIELD_JSON, "meta", NULL},
        {ROUTER_FIELD_JSON, "meta.none", NULL},    {ROUTER_FIELD_JSON, "meta..tier", NULL},
        {ROUTER_FIELD_JSON, "user.tier", NULL}};
    (void)state;
    snprintf(body, sizeof(body),
             "{\"user\":\"u\",\"meta\":{\"tier\":\"silver\",\"deep\":{\"n\":2.5},\"on\":true,"
             "\"off\":false}}");
    cJSON *json = cJSON_Parse(body);
    for (size_t i = 0; i < N(rows); i++) {
        struct request *r = request_create();
        assert_non_null(r);
        rules[0] = rules[1] = (struct router_rule){.field = rows[i].field, .name = rows[i].name};
        route.n_rules = 2; /* the second rule about the same adds nothing */
        tags_read(r, &table, &from, json);
        assert_int_equal(r->n_tags, rows[i].want != NULL);
        if (rows[i].want) {
            assert_string_equal(r->tags[0].value, rows[i].want);
            assert_string_equal(r->tags[0].name, rows[i].name);
            assert_int_equal(r->tags[0].field, rows[i].field);
        }
        request_destroy(r);
    }
    cJSON_Delete(json);
    /* values of up to 4096 bytes, parts of a path of up to 127, and 64 tags */
    for (size_t n = 4096; n <= 4097; n++) {
        struct request *r = request_create();
        memset(long_value, 'v', n);
        long_value[n] = '\0';
        snprintf(body, sizeof(body), "{\"v\":\"%s\"}", long_value);
        json = cJSON_Parse(body);
        rules[0] = (struct router_rule){.field = ROUTER_FIELD_HEADER, .name = header};
        rules[1] = (struct router_rule){.field = ROUTER_FIELD_JSON, .name = member};
        tags_read(r, &table, &from, json);
        assert_int_equal(r->n_tags, n == 4096 ? 2 : 0);
        request_destroy(r);
        cJSON_Delete(json);
    }
    route.n_rules = 1;
    for (size_t n = 127; n <= 128; n++) {
        struct request *r = request_create();
        memset(long_name, 'n', n);
        long_name[n] = '\0';
        json = cJSON_CreateObject();
        cJSON_AddStringToObject(json, long_name, "x");
        rules[0] = (struct router_rule){.field = ROUTER_FIELD_JSON, .name = long_name};
        tags_read(r, &table, NULL, json);
        assert_int_equal(r->n_tags, n == 127);
        request_destroy(r);
        cJSON_Delete(json);
    }
    json = cJSON_CreateObject();
    for (size_t i = 0; i < N(names); i++) {
        snprintf(names[i], sizeof(names[i]), "k%zu", i);
        cJSON_AddStringToObject(json, names[i], "x");
        rules[i] = (struct router_rule){.field = ROUTER_FIELD_JSON, .name = names[i]};
    }
    route.n_rules = N(names);
    struct request *r = request_create();
    tags_read(r, &table, NULL, json);
    assert_int_equal(r->n_tags, 64);
    assert_string_equal(r->tags[63].name, "k63");
    request_destroy(r);
    cJSON_Delete(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths_and_methods),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_administration_without_keys),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_refusals_say_when),
        cmocka_unit_test(test_ids_and_traces),
        cmocka_unit_test(test_tags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
