/* test_otlp_place.c - where traces go: by the configuration and by OpenTelemetry's variables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "site/traces/otlp_place.h"

static const char *const *variables; /* name, value, name, value, ..., NULL */

static char *get(const char *name)
{
    for (const char *const *p = variables; p && *p; p += 2)
        if (strcmp(p[0], name) == 0)
            return (char *)(uintptr_t)p[1];
    return NULL;
}

#define ENV(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct otlp_place find(const struct config_tracing *c, const char *const *env)
{
    struct otlp_place p;
    struct err e = {0};
    variables = env;
    if (otlp_place_find(&p, c, "box-1", get, &e) < 0)
        fail_msg("%s", e.msg);
    return p;
}

static const char *pair(const struct otlp_place *p, const char *key)
{
    const char *found = NULL;
    for (uint32_t i = 0; i < p->n_pairs; i++)
        if (strcmp(p->pairs[i].key, key) == 0) {
            assert_null(found); /* once */
            found = p->pairs[i].text;
        }
    return found;
}

static void test_places(void **state)
{
    static const struct {
        const char *file, *traces, *base, *server, *path;
    } rows[] = {
        {NULL, NULL, NULL, NULL, NULL},
        {"http://c:4318", NULL, NULL, "http://c:4318", "/v1/traces"},
        {"http://c:4318/", NULL, NULL, "http://c:4318", "/v1/traces"},
        {"https://c:4318/otlp/x", NULL, NULL, "https://c:4318", "/otlp/x"},
        {NULL, NULL, "http://b:1", "http://b:1", "/v1/traces"},
        {NULL, NULL, "http://b:1/", "http://b:1", "/v1/traces"},
        {NULL, NULL, "http://b:1/otlp", "http://b:1", "/otlp/v1/traces"},
        {NULL, "http://t:2/own", "http://b:1/otlp", "http://t:2", "/own"},
        {"http://c:4318", "http://t:2/own", "http://b:1", "http://c:4318", "/v1/traces"},
        {NULL, "", "", NULL, NULL}, /* empty is unset */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct config_tracing c = {.endpoint = (char *)(uintptr_t)rows[i].file, .sample = 1};
        const char *const env[] = {
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", rows[i].traces ? rows[i].traces : "",
            "OTEL_EXPORTER_OTLP_ENDPOINT", rows[i].base ? rows[i].base : "", NULL};
        struct otlp_place p = find(&c, env);
        if (!rows[i].server)
            assert_null(p.server);
        else
            assert_string_equal(p.server, rows[i].server);
        if (rows[i].path)
            assert_string_equal(p.path, rows[i].path);
        otlp_place_fini(&p);
    }
}

static void test_who_we_are(void **state)
{
    struct config_tracing c = {.sample = 1};
    (void)state;
    struct otlp_place p = find(&c, NULL);
    assert_string_equal(pair(&p, "service.name"), "shoal");
    assert_string_equal(pair(&p, "service.instance.id"), "box-1");
    assert_int_equal(p.timeout_ms, 10000);
    otlp_place_fini(&p);
    p = find(&c, ENV("OTEL_RESOURCE_ATTRIBUTES",
                     " deployment.environment = x ,service.name=list,zone=a%2Cb%zz%4,=no,none",
                     "OTEL_EXPORTER_OTLP_TIMEOUT", "250"));
    assert_string_equal(pair(&p, "service.name"), "list");
    assert_string_equal(pair(&p, "zone"), "a,b%zz%4");
    assert_int_equal(p.n_pairs, 4);
    assert_int_equal(p.timeout_ms, 250);
    otlp_place_fini(&p);
    p = find(&c, ENV("OTEL_RESOURCE_ATTRIBUTES", "service.name=list", "OTEL_SERVICE_NAME", "env"));
    assert_string_equal(pair(&p, "service.name"), "env");
    otlp_place_fini(&p);
    c.service = (char *)(uintptr_t) "file";
    p = find(&c, ENV("OTEL_SERVICE_NAME", "env"));
    assert_string_equal(pair(&p, "service.name"), "file");
    otlp_place_fini(&p);
}

static void test_headers(void **state)
{
    struct config_tracing c = {.sample = 1};
    const char *own[] = {"x-key: a", "x-more: b"};
    (void)state;
    struct otlp_place p = find(&c, ENV("OTEL_EXPORTER_OTLP_HEADERS",
                                       "authorization=Bearer%20abc,x-a=%0d%0aevil: 1,x-b=2"));
    assert_string_equal(buf_str(&p.header), "authorization: Bearer abc\r\nx-b: 2");
    otlp_place_fini(&p);
    c.headers = (struct yaml_in_strs){(char **)(uintptr_t)own, 2};
    p = find(&c, ENV("OTEL_EXPORTER_OTLP_HEADERS", "authorization=x"));
    assert_string_equal(buf_str(&p.header), "x-key: a\r\nx-more: b");
    otlp_place_fini(&p);
}

static void test_sampling(void **state)
{
    static const struct {
        const char *sampler, *arg;
        double ratio;
    } rows[] = {{"", "", 0.5},
                {"always_on", "", 1},
                {"parentbased_always_off", "", 0},
                {"traceidratio", "0.25", 0.25},
                {"parentbased_traceidratio", "0.125", 0.125},
                {"traceidratio", "7", 1},
                {"traceidratio", "", 1}};
    struct config_tracing c = {.sample = 0.5};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct otlp_place p = find(&c, ENV("OTEL_TRACES_SAMPLER", rows[i].sampler,
                                           "OTEL_TRACES_SAMPLER_ARG", rows[i].arg));
        assert_true(p.ratio == rows[i].ratio);
        otlp_place_fini(&p);
    }
    c.endpoint = (char *)(uintptr_t) "http://c:1"; /* the file decides, then */
    struct otlp_place p = find(&c, ENV("OTEL_TRACES_SAMPLER", "always_off"));
    assert_true(p.ratio == 0.5);
    otlp_place_fini(&p);
}

static void test_refused(void **state)
{
    const struct config_tracing c = {.sample = 1};
    struct otlp_place p;
    struct err e = {0};
    (void)state;
    p = find(&c, ENV("OTEL_SDK_DISABLED", "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://b:1"));
    assert_null(p.server);
    otlp_place_fini(&p);
    variables = ENV("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317");
    assert_int_equal(otlp_place_find(&p, &c, NULL, get, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "OTEL_EXPORTER_OTLP_ENDPOINT is 'collector:4317/v1/traces'"));
    variables =
        ENV("OTEL_EXPORTER_OTLP_ENDPOINT", "http://b:1", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    assert_int_equal(otlp_place_find(&p, &c, NULL, get, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "only http/protobuf"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),  cmocka_unit_test(test_who_we_are),
        cmocka_unit_test(test_headers), cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
