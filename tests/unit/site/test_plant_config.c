/* test_plant_config.c - sensors, machines and subscriptions of the configuration, and what a plant
 * remembers of its alarms over a restart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "config/config.h"
#include "config/config_things.h"
#include "mqtt/payload.h"
#include "site/things/plant.h"
#include "wire/json_out.h"

static struct config *parse(const char *text)
{
    struct config *c;
    struct err e = {0};
    assert_int_equal(config_create(&c, &e), 0);
    if (config_parse(c, text, strlen(text), "f", &e) < 0)
        fail_msg("%s", e.msg);
    return c;
}

static void test_things_are_read(void **state)
{
    struct config *c = parse(
        "machines: [{name: m, title: Motor, delay: 2s, joint: false}]\n"
        "sensors:\n"
        "  - {name: a, machine: m, unit: mm/s, limits: '..7.5', normal: '-1..2', interval: 100ms}\n"
        "  - {name: b, max_rate: 3, statistics: false, limits: '1..'}\n"
        "mqtt:\n"
        "  broker: mqtt://x\n"
        "  subscribe:\n"
        "    - {topic: 'p/+', sensor: '{1}'}\n"
        "    - {topic: j, sensor: x, payload: json, value: a.b, time: t, qos: 0}\n"
        "    - {topic: c, sensor: '{name}', payload: csv, columns: [a, '-']}\n");
    (void)state;
    assert_int_equal(c->things.n_machines, 1);
    assert_string_equal(c->things.machines[0].title, "Motor");
    assert_int_equal(c->things.machines[0].policy.delay_ms, 2000);
    assert_true(c->things.machines[0].no_joint);
    assert_int_equal(c->things.n_sensors, 2);
    assert_true(isnan(c->things.sensors[0].limit_low));
    assert_true(c->things.sensors[0].limit_high == 7.5);
    assert_true(c->things.sensors[0].normal_low == -1 && c->things.sensors[0].normal_high == 2);
    assert_int_equal(c->things.sensors[0].interval_ms, 100);
    assert_false(c->things.sensors[0].policy.no_statistics);
    assert_true(c->things.sensors[1].max_rate == 3);
    assert_true(c->things.sensors[1].limit_low == 1 && isnan(c->things.sensors[1].limit_high));
    assert_true(c->things.sensors[1].policy.no_statistics);
    assert_int_equal(c->things.n_subscriptions, 3);
    assert_int_equal(c->things.subscriptions[0].qos, 1);
    assert_int_equal(c->things.subscriptions[1].payload, PAYLOAD_JSON);
    assert_string_equal(c->things.subscriptions[1].time, "t");
    assert_int_equal(c->things.subscriptions[2].columns.n, 2);
    config_unref(c);
}

static void test_wrong_things_are_refused(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"sensors: [{unit: x}]\n", "needs name"},
        {"sensors: [{name: a, limits: 5}]\n", "limits must be a range"},
        {"sensors: [{name: a, limits: '5..1'}]\n", "limits must be a range"},
        {"sensors: [{name: a, normal: '..'}]\n", "normal must be a range"},
        {"sensors: [{name: a, normal: '1..x'}]\n", "normal must be a range"},
        {"machines: [{name: a}, {name: a}]\n", "two machines are named 'a'"},
        {"mqtt: {subscribe: [{topic: 'a#', sensor: x}]}\n", "is not an MQTT topic filter"},
        {"mqtt: {subscribe: [{topic: a}]}\n", "needs sensor"},
        {"mqtt: {subscribe: [{topic: a, sensor: x, value: b}]}\n", "payload: json"},
        {"mqtt: {subscribe: [{topic: a, sensor: x, payload: json, value: 'b['}]}\n", "path"},
        {"mqtt: {subscribe: [{topic: a, sensor: x, columns: [b]}]}\n", "payload: csv"},
        {"mqtt: {subscribe: [{topic: a, sensor: x, payload: xml}]}\n", "must be one of"},
        {"modbus: [{name: p, address: 'h:502', tags: [{name: x, sensor: b}]}]\n",
         "which sensors does not have"},
        {"modbus: [{name: p, address: h, tags: [{name: x}]}]\n", "HOST:PORT"},
        {"modbus: [{name: p, address: 'h:502'}]\n", "has no tags"},
        {"modbus: [{name: p, address: 'h:502', tags: [{name: x}, {name: x}]}]\n", "two tags"},
        {"modbus: [{name: p, address: 'h:502', tags: [{name: x, register: 65535, type: int32}]}]\n",
         "end after 65535"},
        {"modbus: [{name: p, address: 'h:502', tags: [{name: x, table: input}]}]\n"
         "deeds: [{things: a, via: modbus, tag: p.x}]\n",
         "can only be read"},
        {"deeds: [{things: a, via: modbus, tag: p.x}]\n", "there is no tag p.x"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config *c;
        struct err e = {0};
        assert_int_equal(config_create(&c, &e), 0);
        int rc = config_parse(c, cases[i].text, strlen(cases[i].text), "f", &e);
        if (rc != SHOAL_EFORMAT || !strstr(e.msg, cases[i].error))
            fail_msg("%s: %d %s", cases[i].text, rc, e.msg);
        config_unref(c);
    }
}

static void test_ranges(void **state)
{
    double low, high;
    (void)state;
    assert_true(config_things_range("1..2", &low, &high) && low == 1 && high == 2);
    assert_true(config_things_range("1.5..2.5", &low, &high) && low == 1.5 && high == 2.5);
    assert_true(config_things_range("-3..-1", &low, &high) && low == -3 && high == -1);
    assert_true(config_things_range("..7", &low, &high) && isnan(low) && high == 7);
    assert_true(config_things_range("7..", &low, &high) && low == 7 && isnan(high));
    assert_false(config_things_range("7", &low, &high));
    assert_false(config_things_range("2..1", &low, &high));
    assert_false(config_things_range("1...2x", &low, &high));
}

/* ---- the plant ---- */

static char told[2048];
static uint64_t last_id;
static struct buf last_json;

static void listen(void *ctx, const struct alarm_event *e)
{
    size_t n = strlen(told);
    (void)ctx;
    snprintf(told + n, sizeof(told) - n, "%s%s:%s", n ? " " : "", e->channels[0].sensor,
             alarm_change_name(e->change));
    last_id = e->id;
    buf_clear(&last_json);
    struct json_out j = json_out_make(&last_json);
    json_out_object(&j);
    alarm_json(&j, e);
    json_out_object_end(&j);
}

static struct plant *open_plant(const struct config *c, const char *file)
{
    struct plant *p;
    struct err e = {0};
    told[0] = '\0';
    assert_int_equal(plant_create(&p, c, file, &e), 0);
    assert_int_equal(plant_listen(p, listen, NULL, NULL, &e), 0);
    return p;
}

static void start_plant(struct plant *p)
{
    struct err e = {0};
    assert_int_equal(plant_start(p, &e), 0);
}

static void read_value(struct plant *p, const char *sensor, double v)
{
    const struct reading r = {.sensor = plant_find(p, sensor), .value = v};
    assert_true(r.sensor != THINGS_NONE);
    plant_reading(p, &r);
}

static void test_open_alarms_survive_a_restart(void **state)
{
    struct config *c = parse("sensors: [{name: a, limits: '..7', statistics: false}, "
                             "{name: b, limits: '..7', statistics: false}]\n");
    char file[] = "/tmp/shoal-plant-XXXXXX";
    (void)state;
    close(mkstemp(file));
    unlink(file);
    buf_init(&last_json, 65536);
    struct plant *p = open_plant(c, file);
    start_plant(p);
    read_value(p, "a", 9);
    assert_string_equal(told, "a:raised");
    assert_int_equal(plant_open_alarms(p), 1);
    uint64_t id = last_id;
    plant_destroy(p);

    p = open_plant(c, file);
    assert_int_equal(plant_open_alarms(p), 1);
    start_plant(p);
    read_value(p, "a", 9);
    assert_string_equal(told, ""); /* it continues */
    read_value(p, "b", 9);
    assert_string_equal(told, "b:raised");
    assert_true(last_id != id);
    plant_destroy(p);

    /* the file is out of date: the event itself has the state */
    unlink(file);
    p = open_plant(c, file);
    plant_recall(p, buf_str(&last_json), last_json.len);
    plant_recall(p, "{\"id\":", 6); /* an invalid event changes nothing */
    plant_recall(p, "{\"id\":5,\"channels\":[{\"sensor\":\"zz\"}]}", 38);
    assert_int_equal(plant_open_alarms(p), 1);
    start_plant(p);
    plant_destroy(
        p); /* and from now on the file has it: the event is delivered, and told no more */
    p = open_plant(c, file);
    assert_int_equal(plant_open_alarms(p), 1);
    start_plant(p);
    read_value(p, "b", 9);
    assert_string_equal(told, "");
    read_value(p, "a", 9);
    assert_string_equal(told, "a:raised");
    plant_destroy(p);

    /* a damaged file counts as missing */
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs("{\"open\": [{\"sensor\": \"a\", \"id\"", f);
    fclose(f);
    p = open_plant(c, file);
    assert_int_equal(plant_open_alarms(p), 0);
    start_plant(p);
    read_value(p, "a", 9);
    assert_string_equal(told, "a:raised");
    plant_destroy(p);
    unlink(file);
    buf_fini(&last_json);
    config_unref(c);
}

static void test_a_server_without_sensors_has_no_plant(void **state)
{
    struct config *c = parse("threads: 1\n");
    struct plant *p;
    struct err e = {0};
    (void)state;
    assert_int_equal(plant_create(&p, c, NULL, &e), 0);
    assert_null(p);
    config_unref(c);
    c = parse("sensors: [{name: a, machine: nobody}]\n");
    assert_true(plant_create(&p, c, NULL, &e) < 0);
    assert_non_null(strstr(e.msg, "nobody"));
    config_unref(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_things_are_read),
        cmocka_unit_test(test_wrong_things_are_refused),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_open_alarms_survive_a_restart),
        cmocka_unit_test(test_a_server_without_sensors_has_no_plant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
