/* test_payload.c - extracting readings from payloads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "mqtt/payload.h"
#include "mqtt/sparkplug.h"
#include <sparkplug/sparkplug_b.pb-c.h>

static char got[4096];

static void collect(void *ctx, const struct payload_reading *r)
{
    size_t n = strlen(got);
    (void)ctx;
    snprintf(got + n, sizeof(got) - n, "%s%.*s=%g@%lld%s", n ? " " : "", (int)r->name.n, r->name.p,
             isnan(r->value) ? -999 : r->value, (long long)r->time_ms, r->is_past ? "!" : "");
}

static void test_payloads_become_readings(void **state)
{
    static const char *const abc[] = {"a", "-", "t"};
    static const struct {
        const char *why;
        struct payload_map map;
        const char *payload, *want; /* want NULL: an error */
    } cases[] = {
        {"a number", {.kind = PAYLOAD_NUMBER}, " 21.5\n", "=21.5@0"},
        {"a truth value", {.kind = PAYLOAD_NUMBER}, "true", "=1@0"},
        {"an exponent", {.kind = PAYLOAD_NUMBER}, "-1.5e-2", "=-0.015@0"},
        {"no number", {.kind = PAYLOAD_NUMBER}, "warm", "=-999@0"},
        {"not a number", {.kind = PAYLOAD_NUMBER}, "nan", "=-999@0"},
        {"infinite", {.kind = PAYLOAD_NUMBER}, "inf", "=-999@0"},
        {"hex", {.kind = PAYLOAD_NUMBER}, "0x10", "=-999@0"},
        {"empty", {.kind = PAYLOAD_NUMBER}, "", "=-999@0"},
        {"a member", {.kind = PAYLOAD_JSON, .value = "temp"}, "{\"temp\": 4}", "=4@0"},
        {"a path with a root",
         {.kind = PAYLOAD_JSON, .value = "$.a.b[1].c"},
         "{\"a\":{\"b\":[0,{\"c\":7}]}}",
         "=7@0"},
        {"a name with a dash",
         {.kind = PAYLOAD_JSON, .value = "air-temp.°C"},
         "{\"air-temp\":{\"°C\":3}}",
         "=3@0"},
        {"text that is a number",
         {.kind = PAYLOAD_JSON, .value = "v"},
         "{\"v\":\"2.5\"}",
         "=2.5@0"},
        {"null", {.kind = PAYLOAD_JSON, .value = "v"}, "{\"v\":null}", "=-999@0"},
        {"the document itself", {.kind = PAYLOAD_JSON}, "12", "=12@0"},
        {"seconds",
         {.kind = PAYLOAD_JSON, .value = "v", .time = "t"},
         "{\"v\":1,\"t\":1700000000}",
         "=1@1700000000000"},
        {"nanoseconds",
         {.kind = PAYLOAD_JSON, .value = "v", .time = "t"},
         "{\"v\":1,\"t\":1700000000123456789}",
         "=1@1700000000123"},
        {"a date",
         {.kind = PAYLOAD_JSON, .value = "v", .time = "t"},
         "{\"v\":1,\"t\":\"2023-11-14T22:13:20.250Z\"}",
         "=1@1700000000250"},
        {"a date with a zone",
         {.kind = PAYLOAD_JSON, .value = "v", .time = "t"},
         "{\"v\":1,\"t\":\"2023-11-15T00:13:20+02:00\"}",
         "=1@1700000000000"},
        {"no date",
         {.kind = PAYLOAD_JSON, .value = "v", .time = "t"},
         "{\"v\":1,\"t\":\"noon\"}",
         "=1@0"},
        {"every member",
         {.kind = PAYLOAD_JSON, .value = "m.*", .time = "t"},
         "{\"t\":2e9,\"m\":{\"a\":1,\"b\":true,\"c\":{}}}",
         "a=1@2000000000000 b=1@2000000000000"},
        {"every element", {.kind = PAYLOAD_JSON, .value = "*"}, "[5,6]", "0=5@0 1=6@0"},
        {"every member but the time",
         {.kind = PAYLOAD_JSON, .value = "$.*", .time = "t"},
         "{\"t\":2e9,\"a\":1}",
         "a=1@2000000000000"},
        {"no such member", {.kind = PAYLOAD_JSON, .value = "x"}, "{\"v\":1}", NULL},
        {"not JSON", {.kind = PAYLOAD_JSON, .value = "v"}, "{v:1}", NULL},
        {"index of an object", {.kind = PAYLOAD_JSON, .value = "v[0]"}, "{\"v\":{\"a\":1}}", NULL},
        {"a row", {.kind = PAYLOAD_CSV}, "1,2.5;-3\n", "1=1@0 2=2.5@0 3=-3@0"},
        {"two rows", {.kind = PAYLOAD_CSV}, "1\r\n\n2", "1=1@0 1=2@0"},
        {"columns",
         {.kind = PAYLOAD_CSV, .time = "t", .columns = abc, .n_columns = 3},
         "4,x,1700000000",
         "a=4@1700000000000"},
        {"an empty cell", {.kind = PAYLOAD_CSV}, "1,,3", "1=1@0 2=-999@0 3=3@0"},
        {"an empty last cell", {.kind = PAYLOAD_CSV}, "1,", "1=1@0 2=-999@0"},
        {"too few columns",
         {.kind = PAYLOAD_CSV, .time = "t", .columns = abc, .n_columns = 3},
         "4,x",
         NULL},
        {"no rows", {.kind = PAYLOAD_CSV}, "", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err e = {0};
        got[0] = '\0';
        int rc = payload_read(&cases[i].map, cases[i].payload, strlen(cases[i].payload), collect,
                              NULL, &e);
        if ((rc < 0) != !cases[i].want || (cases[i].want && strcmp(got, cases[i].want) != 0))
            fail_msg("%s: %d %s %s", cases[i].why, rc, got, e.msg);
        if (rc < 0 && !e.msg[0])
            fail_msg("%s: no message", cases[i].why);
    }
}

static void test_paths(void **state)
{
    static const char *const good[] = {"a",          "$", "$.a", "a.b", "a[0]",
                                       "a[0].b[12]", "*", "a.*", "[3]"};
    static const char *const bad[] = {"",     "a.",  ".a",  "a..b",  "a[",
                                      "a[x]", "a[1", "*.a", "a[-1]", "a[0]b"};
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (!payload_path_ok(good[i]))
            fail_msg("%s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (payload_path_ok(bad[i]))
            fail_msg("%s", bad[i]);
}

/* ---- Sparkplug ---- */

static size_t pack(uint8_t *out, Sparkplug__Payload__Metric *m, size_t n)
{
    Sparkplug__Payload p = SPARKPLUG__PAYLOAD__INIT;
    Sparkplug__Payload__Metric *list[8];
    for (size_t i = 0; i < n; i++)
        list[i] = &m[i];
    p.metrics = list;
    p.n_metrics = n;
    p.has_timestamp = 1;
    p.timestamp = 1700000000000;
    return sparkplug__payload__pack(&p, out);
}

static Sparkplug__Payload__Metric metric(const char *name, int alias, double v)
{
    Sparkplug__Payload__Metric m = SPARKPLUG__PAYLOAD__METRIC__INIT;
    m.name = (char *)(uintptr_t)name;
    m.has_alias = alias > 0;
    m.alias = (uint64_t)alias;
    m.value_case = SPARKPLUG__PAYLOAD__METRIC__VALUE_DOUBLE_VALUE;
    m.double_value = v;
    return m;
}

static int read_one(struct sparkplug *s, const char *topic, const uint8_t *bytes, size_t n)
{
    struct sparkplug_topic t;
    struct err e = {0};
    got[0] = '\0';
    assert_true(sparkplug_topic_read(&t, topic));
    return sparkplug_read(s, &t, bytes, n, collect, NULL, &e);
}

static void test_sparkplug_learns_names_from_births(void **state)
{
    struct sparkplug *s;
    struct err e = {0};
    uint8_t bytes[1024];
    (void)state;
    assert_int_equal(sparkplug_create(&s, &e), 0);
    Sparkplug__Payload__Metric data[] = {metric(NULL, 7, 2.5), metric("plain", 0, 4)};
    size_t n = pack(bytes, data, 2);
    assert_int_equal(read_one(s, "spBv1.0/plant/DDATA/edge1/pump", bytes, n), SHOAL_ENOTFOUND);
    assert_string_equal(got, "plain=4@1700000000000");
    Sparkplug__Payload__Metric birth[] = {metric("Motor/vibration", 7, 1), metric("bdSeq", 0, 0)};
    n = pack(bytes, birth, 2);
    assert_int_equal(read_one(s, "spBv1.0/plant/DBIRTH/edge1/pump", bytes, n), 0);
    assert_string_equal(got, "Motor/vibration=1@1700000000000");
    n = pack(bytes, data, 2);
    assert_int_equal(read_one(s, "spBv1.0/plant/DDATA/edge1/pump", bytes, n), 0);
    assert_string_equal(got, "Motor/vibration=2.5@1700000000000 plain=4@1700000000000");
    /* the ids of another node, or of another device, do not match these */
    assert_int_equal(read_one(s, "spBv1.0/plant/DDATA/edge2/pump", bytes, n), SHOAL_ENOTFOUND);
    assert_int_equal(read_one(s, "spBv1.0/plant/DDATA/edge1/fan", bytes, n), SHOAL_ENOTFOUND);
    /* signed integers, nulls, late values */
    Sparkplug__Payload__Metric odd[] = {metric("i8", 0, 0), metric("i64", 0, 0),
                                        metric("gone", 0, 0), metric("late", 0, 9),
                                        metric("text", 0, 0)};
    odd[0].value_case = SPARKPLUG__PAYLOAD__METRIC__VALUE_INT_VALUE;
    odd[0].int_value = 0xfffffffe;
    odd[0].has_datatype = 1;
    odd[0].datatype = 1;
    odd[1].value_case = SPARKPLUG__PAYLOAD__METRIC__VALUE_LONG_VALUE;
    odd[1].long_value = (uint64_t)-5;
    odd[1].has_datatype = 1;
    odd[1].datatype = 4;
    odd[2].has_is_null = odd[2].is_null = 1;
    odd[3].has_is_historical = odd[3].is_historical = 1;
    odd[3].has_timestamp = 1;
    odd[3].timestamp = 1600000000000;
    odd[4].value_case = SPARKPLUG__PAYLOAD__METRIC__VALUE_STRING_VALUE;
    odd[4].string_value = (char *)(uintptr_t) "x";
    n = pack(bytes, odd, 5);
    assert_int_equal(read_one(s, "spBv1.0/plant/NDATA/edge1", bytes, n), 0);
    assert_string_equal(got, "i8=-2@1700000000000 i64=-5@1700000000000 gone=-999@1700000000000 "
                             "late=9@1600000000000!");
    assert_int_equal(read_one(s, "spBv1.0/plant/NDATA/edge1", (const uint8_t *)"\xff\xff", 2),
                     SHOAL_EFORMAT);
    sparkplug_destroy(s);
}

static void test_sparkplug_topics(void **state)
{
    struct sparkplug_topic t;
    (void)state;
    assert_true(sparkplug_topic_read(&t, "spBv1.0/g/NBIRTH/n"));
    assert_int_equal(t.kind, SPARKPLUG_BIRTH);
    assert_true(sparkplug_topic_read(&t, "spBv1.0/g/DDEATH/n/d"));
    assert_int_equal(t.kind, SPARKPLUG_DEATH);
    assert_true(str_is(t.device, "d"));
    assert_true(sparkplug_topic_read(&t, "spBv1.0/g/NCMD/n"));
    assert_int_equal(t.kind, SPARKPLUG_OTHER);
    assert_false(sparkplug_topic_read(&t, "spBv1.0/g/NDATA/n/d"));
    assert_false(sparkplug_topic_read(&t, "spBv1.0/g/DDATA/n"));
    assert_false(sparkplug_topic_read(&t, "spBv1.0/g/DDATA/n/d/e"));
    assert_false(sparkplug_topic_read(&t, "plant/g/DDATA/n/d"));
}

static void test_rebirth_command_can_be_read(void **state)
{
    struct buf b;
    (void)state;
    buf_init(&b, 1024);
    sparkplug_put_rebirth(&b, 1700000000000);
    assert_int_equal(b.rc, 0);
    Sparkplug__Payload *p =
        sparkplug__payload__unpack(NULL, b.len, (const uint8_t *)(void *)b.data);
    assert_non_null(p);
    assert_string_equal(p->metrics[0]->name, "Node Control/Rebirth");
    assert_true(p->metrics[0]->boolean_value);
    sparkplug__payload__free_unpacked(p, NULL);
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_payloads_become_readings),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_sparkplug_learns_names_from_births),
        cmocka_unit_test(test_sparkplug_topics),
        cmocka_unit_test(test_rebirth_command_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
