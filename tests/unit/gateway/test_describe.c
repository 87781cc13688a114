/* test_describe.c - what the server says of itself: /openapi.json, /metrics, /v1/models and the
 * like, by what must hold for each route and each metric. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "support/gw_client.h"

static struct gw gw;

static int open_site(void **state)
{
    (void)state;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    return gw_site_open(&gw, 1 << 20);
}

static int close_site(void **state)
{
    (void)state;
    gw_site_close(&gw);
    return 0;
}

static void get(struct gw_client *x, const char *path)
{
    gw_client_init(x, &gw, "GET", path, "host: localhost\n", "", 0);
    gw_client_send(x, &gw);
    assert_true(x->over);
}

static cJSON *get_json(const char *path, int status)
{
    struct gw_client x;
    get(&x, path);
    assert_int_equal(x.status, status);
    cJSON *json = cJSON_Parse(buf_str(&x.body));
    if (!json)
        fail_msg("%s: %s", path, buf_str(&x.body));
    gw_client_fini(&x);
    return json;
}

static const cJSON *in(const cJSON *object, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!v)
        fail_msg("there is no '%s' in %s", key, object->string ? object->string : "?");
    return v;
}

static bool has(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key) != NULL;
}

static const char *text_in(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(in(object, key));
}

/* ---- /openapi.json ---- */

static void check_field(const cJSON *properties, const struct field *f)
{
    static const char *const types[] = {"boolean", "integer", "number", "string"};
    if (f->type == FIELD_UNBUILT) {
        assert_false(has(properties, f->name));
        return;
    }
    const cJSON *p = in(properties, f->name);
    const bool number = f->type == FIELD_INT || f->type == FIELD_NUM;
    if (f->type <= FIELD_STR)
        assert_string_equal(text_in(p, "type"), types[f->type]);
    assert_int_equal(has(p, "description"), f->help != NULL);
    if (number) {
        assert_true(in(p, "minimum")->valuedouble == f->min);
        assert_true(in(p, "maximum")->valuedouble == f->max);
    } else {
        assert_false(f->schema == NULL && has(p, "minimum"));
    }
    if (f->schema) { /* its members are those of the property */
        cJSON *schema = cJSON_Parse(f->schema);
        const cJSON *one;
        assert_non_null(schema);
        cJSON_ArrayForEach(one, schema) assert_true(cJSON_Compare(in(p, one->string), one, true));
        cJSON_Delete(schema);
    }
}

static void check_operation(const cJSON *op, const struct route *r)
{
    const cJSON *responses = in(op, "responses");
    const bool json = r->flags & ROUTE_JSON, open = r->flags & ROUTE_OPEN;
    assert_string_equal(text_in(op, "summary"), r->summary);
    assert_string_equal(in(op, "tags")->child->valuestring, r->tag);
    assert_null(in(op, "tags")->child->next);
    assert_int_equal(has(op, "parameters"), strchr(r->path, '*') != NULL);
    if (has(op, "parameters")) {
        const cJSON *p = in(op, "parameters")->child;
        assert_string_equal(text_in(p, "name"), "name");
        assert_string_equal(text_in(p, "in"), "path");
        assert_true(cJSON_IsTrue(in(p, "required")));
        assert_string_equal(text_in(in(p, "schema"), "type"), "string");
    }
    assert_true(text_in(in(responses, "200"), "description")[0]);
    assert_int_equal(has(responses, "400"), json);
    assert_int_equal(has(responses, "401"), !open);
    assert_int_equal(has(responses, "429"), (r->flags & ROUTE_WORK) != 0);
    assert_int_equal(has(responses, "503"), (r->flags & ROUTE_WORK) != 0);
    assert_int_equal(has(responses, "504"), (r->flags & ROUTE_WORK) != 0);
    assert_int_equal(has(op, "security"), open); /* none */
    assert_int_equal(has(op, "requestBody"), json);
    if (!json)
        return;
    const cJSON *body = in(op, "requestBody");
    const cJSON *schema = in(in(in(body, "content"), "application/json"), "schema");
    assert_true(cJSON_IsTrue(in(body, "required")));
    assert_string_equal(text_in(schema, "type"), "object");
    assert_int_equal(has(schema, "properties"), r->fields != NULL);
    if (r->fields)
        assert_true(cJSON_IsFalse(in(schema, "additionalProperties")));
    for (size_t i = 0; r->fields && i < *r->n_fields; i++)
        check_field(in(schema, "properties"), &r->fields[i]);
}

static void test_every_route_is_described(void **state)
{
    static const char *const methods[][2] = {
        {"GET", "get"}, {"POST", "post"}, {"PUT", "put"}, {"DELETE", "delete"}};
    cJSON *api = get_json("/openapi.json", 200);
    int n = 0, n_described = 0;
    const cJSON *paths = in(api, "paths"), *path;
    (void)state;
    assert_string_equal(text_in(api, "openapi"), "3.1.0");
    assert_string_equal(text_in(in(api, "info"), "title"), "Shoal");
    assert_string_equal(text_in(in(api, "info"), "version"), shoal_version());
    assert_true(text_in(in(api, "info"), "description")[0]);
    assert_string_equal(text_in(in(in(in(api, "components"), "securitySchemes"), "key"), "scheme"),
                        "bearer");
    assert_true(has(in(api, "security")->child, "key"));
    for (size_t i = 0; i < gw.n_routes; i++) {
        const struct route *r = &gw.routes[i];
        char name[256];
        const char *star = strchr(r->path, '*');
        if (strcmp(r->path, "/*") == 0)
            continue;
        snprintf(name, sizeof(name), "%.*s%s%s", star ? (int)(star - r->path) : INT_MAX, r->path,
                 star ? "{name}" : "", star ? star + 1 : "");
        for (size_t m = 0; m < 4; m++)
            if (strcmp(methods[m][0], r->method) == 0) {
                check_operation(in(in(paths, name), methods[m][1]), r);
                n++;
            }
    }
    cJSON_ArrayForEach(path, paths) n_described += cJSON_GetArraySize(path);
    assert_int_equal(n, n_described);
    cJSON_Delete(api);
}

/* ---- /metrics ---- */

/* Every sample has a help and a type before it, once; histograms grow and end with their count. */
static void check_metrics(const char *text)
{
    char name[128] = "", type[32] = "", seen[65536] = "\n";
    double bucket = 0;
    for (const char *p = text, *end; *p; p = end + 1) {
        char line[1024], mark[140];
        end = strchr(p, '\n');
        assert_non_null(end);
        snprintf(line, sizeof(line), "%.*s", (int)(end - p), p);
        if (strncmp(line, "# HELP ", 7) == 0) {
            assert_int_equal(sscanf(line, "# HELP %127s", name), 1);
            assert_true(strlen(line) > 8 + strlen(name));
            snprintf(mark, sizeof(mark), "\n%s\n", name);
            if (strstr(seen, mark))
                fail_msg("%s comes twice", name);
            strncat(seen, mark + 1, sizeof(seen) - strlen(seen) - 1);
            type[0] = '\0';
        } else if (strncmp(line, "# TYPE ", 7) == 0) {
            char of[128];
            assert_int_equal(sscanf(line, "# TYPE %127s %31s", of, type), 2);
            assert_string_equal(of, name);
            assert_true(strcmp(type, "counter") == 0 || strcmp(type, "gauge") == 0 ||
                        strcmp(type, "histogram") == 0);
            assert_int_equal(strcmp(type, "counter") == 0,
                             strlen(name) > 6 && strcmp(name + strlen(name) - 6, "_total") == 0);
        } else {
            const size_t n = strlen(name);
            char *value = strrchr(line, ' ');
            assert_true(type[0] && value && strncmp(line, name, n) == 0);
            char *tail;
            const double v = strtod(value + 1, &tail);
            assert_true(*tail == '\0' && tail != value + 1);
            if (strcmp(type, "histogram") != 0) {
                if (line[n] != '{' && line[n] != ' ')
                    fail_msg("%s is below the help of %s", line, name);
            } else if (strncmp(line + n, "_bucket", 7) == 0) {
                bucket = strstr(line, "le=\"+Inf\"") || v >= bucket ? v : -1;
                if (bucket < 0)
                    fail_msg("%s is less than the bucket before", line);
            } else if (strncmp(line + n, "_count", 6) == 0) {
                assert_true(v == bucket);
                bucket = 0;
            } else {
                assert_int_equal(strncmp(line + n, "_sum", 4), 0);
            }
        }
    }
}

static void test_metrics_are_well_formed(void **state)
{
    static const char *const expected[] = {
        "\nshoal_responses_total{status=\"2xx\"} 3\n",
        "\nshoal_responses_total{status=\"4xx\"} 1\n",
        "\nshoal_calls_in_flight 0\n",
        "\nshoal_buffer_bytes ",
        "\nshoal_uptime_seconds ",
        "\nshoal_http_seconds_count{route=\"GET /healthz\"} 2\n"};
    struct gw_client x;
    (void)state;
    gw.started_ns = clock_ns();
    get(&x, "/healthz");
    gw_client_fini(&x);
    get(&x, "/healthz");
    gw_client_fini(&x);
    get(&x, "/nothing");
    gw_client_fini(&x);
    get(&x, "/metrics");
    gw_client_fini(&x);
    get(&x, "/metrics");
    assert_int_equal(x.status, 200);
    assert_non_null(strstr(buf_str(&x.head), "content-type: text/plain; version=0.0.4"));
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        if (!strstr(buf_str(&x.body), expected[i]))
            fail_msg("no %s in %s", expected[i] + 1, buf_str(&x.body));
    check_metrics(buf_str(&x.body));
    gw_client_fini(&x);
}

/* ---- models ---- */

static void wait_until_loaded(void)
{
    for (int i = 0; i < 60000 && !registry_ready(gw.registry); i++)
        loop_turn(gw.loops[0].loop, 1);
}

static void test_models(void **state)
{
    static const struct registry_spec specs[] = {
        {.name = "big", .path = SHOAL_TEST_DATA "/refs/qwen3.gguf", .n_ctx = 256, .pinned = true},
        {.name = "cls", .path = SHOAL_TEST_DATA "/encoders/bert-cls", .pinned = true}};
    struct gw_client x;
    struct err e = {0};
    (void)state;
    cJSON *none = get_json("/v1/models", 200); /* flows are listed too */
    const int n_flows = cJSON_GetArraySize(in(none, "data"));
    cJSON_Delete(none);
    for (size_t i = 0; i < 2; i++)
        if (registry_add(gw.registry, &specs[i], &e) < 0)
            fail_msg("%s", e.msg);
    wait_until_loaded();
    cJSON *list = get_json("/v1/models", 200), *one = get_json("/v1/models/big", 200);
    assert_string_equal(text_in(list, "object"), "list");
    assert_int_equal(cJSON_GetArraySize(in(list, "data")), n_flows + 2);
    const cJSON *m;
    int n_found = 0;
    cJSON_ArrayForEach(m, in(list, "data"))
    {
        assert_string_equal(text_in(m, "object"), "model");
        n_found += strcmp(text_in(m, "id"), "cls") == 0;
        if (strcmp(text_in(m, "id"), "big") == 0) {
            assert_true(cJSON_Compare(m, one, true));
            n_found++;
        }
    }
    assert_int_equal(n_found, 2);
    cJSON_Delete(list);
    cJSON_Delete(one);
    cJSON_Delete(get_json("/v1/models/none", 404));
    cJSON *tags = get_json("/api/tags", 200), *ps = get_json("/api/ps", 200);
    assert_int_equal(cJSON_GetArraySize(in(tags, "models")), 2);
    assert_int_equal(cJSON_GetArraySize(in(ps, "models")), 2);
    cJSON_Delete(tags);
    cJSON_Delete(ps);
    get(&x, "/metrics");
    check_metrics(buf_str(&x.body));
    assert_non_null(strstr(buf_str(&x.body), "model=\"big\""));
    assert_non_null(strstr(buf_str(&x.body), "model=\"cls\""));
    gw_client_fini(&x);
    cJSON *admin = get_json("/admin/models", 200);
    cJSON_Delete(admin);
}

/* Paths whose part of the server is not there say so, each with a status of its own. */
static void test_parts_that_are_off(void **state)
{
    static const struct {
        const char *path;
        int status;
    } rows[] = {
        {"/v1/alarms", 404},
        {"/v1/sensors", 404},
        {"/v1/demo", 404},
        {"/v1/home", 404},
        {"/v1/scheduled", 404},
        {"/v1/collections", 503},
        {"/v1/collections/x", 503},
        {"/v1/sessions/x", 404},
        {"/v1/deferred/x", 404},
        {"/mcp", 405},
        {"/v1/cluster", 200},
        {"/v1/stream", 426},
        {"/props", 503},
        {"/slots", 503},
        {"/lora-adapters", 200},
        {"/info", 404},
        {"/api/version", 200},
        {"/readyz", 200},
        {"/v1/health", 200},
        {"/v1/responses/x", 404},
    };
    size_t n_wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gw_client x;
        get(&x, rows[i].path);
        if (x.status != rows[i].status)
            print_error("{\"%s\", %d}, /* %.80s */\n", rows[i].path, x.status, buf_str(&x.body));
        n_wrong += x.status != rows[i].status;
        gw_client_fini(&x);
    }
    assert_int_equal(n_wrong, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_site, close_site)
    const struct CMUnitTest tests[] = {
        TEST(test_every_route_is_described),
        TEST(test_metrics_are_well_formed),
        TEST(test_models),
        TEST(test_parts_that_are_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
