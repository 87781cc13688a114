/* test_things.c - readings in, alarms out, on a simulated clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "things/demo_plant.h"
#include "things/things.h"
#include "wire/json_out.h"

enum { MAX_EVENTS = 64 };
static const int64_t START = 1700000000000;

struct seen {
    enum alarm_change change;
    enum alarm_kind kind;
    enum alarm_severity severity;
    uint64_t id;
    int64_t at, since;
    uint32_t n_channels, n_evidence;
    char text[ALARM_MAX_TEXT];
};

struct kit {
    struct things *t;
    int64_t now;
    uint64_t noise;
    struct seen events[MAX_EVENTS];
    uint32_t n;
};

static void on_alarm(void *ctx, const struct alarm_event *e)
{
    struct kit *k = ctx;
    assert_true(k->n < MAX_EVENTS);
    struct seen *s = &k->events[k->n++];
    *s = (struct seen){.change = e->change,
                       .kind = e->kind,
                       .severity = e->severity,
                       .id = e->id,
                       .at = e->changed_ms,
                       .since = e->since_ms,
                       .n_channels = e->n_channels,
                       .n_evidence = e->n_evidence};
    snprintf(s->text, sizeof(s->text), "%s", e->text);
}

static void open_kit(struct kit *k)
{
    struct err e = {0};
    *k = (struct kit){.now = START, .noise = 42};
    const struct things_opts o = {.alarm = on_alarm, .ctx = k};
    assert_int_equal(things_create(&k->t, &o, &e), 0);
    const struct things_machine_opts m = {.name = "motor3", .title = "motor 3"};
    assert_int_equal(things_add_machine(k->t, &m, &e), 0);
}

static uint32_t add(struct kit *k, struct things_sensor_opts o)
{
    struct err e = {0};
    if (things_add_sensor(k->t, &o, &e) < 0)
        fail_msg("%s", e.msg);
    return things_find(k->t, o.name);
}

static struct things_sensor_opts vibration(void)
{
    struct things_sensor_opts o = things_sensor_defaults();
    o.name = "vib";
    o.title = "Vibration";
    o.unit = "mm/s";
    o.machine = "motor3";
    return o;
}

/* Roughly normal, mean 0, deviation 1. */
static double noise(struct kit *k)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        k->noise = hash_mix(k->noise + 0x9e3779b97f4a7c15u);
        sum += (double)(k->noise >> 11) / 9007199254740992.0;
    }
    return sum - 6;
}

static void put(struct kit *k, uint32_t sensor, double v)
{
    const struct reading r = {.sensor = sensor, .time_ms = k->now, .value = v};
    things_reading(k->t, &r, k->now);
}

static void second(struct kit *k, uint32_t sensor, double v)
{
    k->now += 1000;
    put(k, sensor, v);
    things_tick(k->t, k->now);
}

static void calm(struct kit *k, uint32_t sensor, int seconds)
{
    for (int i = 0; i < seconds; i++)
        second(k, sensor, 2.5 + 0.1 * noise(k));
}

/* ---- immediate alarms ---- */

static void test_one_reading_over_a_limit(void **state)
{
    struct kit k;
    struct things_sensor_opts o = vibration();
    (void)state;
    open_kit(&k);
    o.limit_high = 7;
    uint32_t s = add(&k, o);
    second(&k, s, 2.5);
    assert_int_equal(k.n, 0);
    second(&k, s, 7.5);
    assert_int_equal(k.n, 1);
    assert_int_equal(k.events[0].kind, ALARM_LIMIT);
    assert_int_equal(k.events[0].severity, ALARM_CRITICAL);
    assert_string_equal(k.events[0].text,
                        "Vibration on motor 3 rose from 2.5 to 7.5 mm/s, above the "
                        "limit of 7 mm/s.");
    /* hysteresis: just below the limit the alarm continues */
    for (int i = 0; i < 30; i++)
        second(&k, s, 6.95);
    assert_int_equal(k.n, 1);
    for (int i = 0; i < 30; i++)
        second(&k, s, 2.5);
    assert_int_equal(k.n, 2);
    assert_int_equal(k.events[1].change, ALARM_CLEARED);
    assert_int_equal(k.events[1].id, k.events[0].id);
    things_destroy(k.t);
}

static void test_rate(void **state)
{
    struct kit k;
    struct things_sensor_opts o = vibration();
    (void)state;
    open_kit(&k);
    o.max_rate = 1;
    uint32_t s = add(&k, o);
    second(&k, s, 2.5);
    second(&k, s, 3.4);
    assert_int_equal(k.n, 0);
    second(&k, s, 4.9);
    assert_int_equal(k.n, 1);
    assert_int_equal(k.events[0].kind, ALARM_RATE);
    assert_non_null(strstr(k.events[0].text, "rose from 3.4 to 4.9 mm/s within 1 s"));
    things_destroy(k.t);
}

/* ---- learned ---- */

static void test_a_shift_is_found_in_seconds_and_ends(void **state)
{
    struct kit k;
    (void)state;
    open_kit(&k);
    uint32_t s = add(&k, vibration());
    calm(&k, s, 3600);
    assert_int_equal(k.n, 0);
    int64_t began = k.now;
    for (int i = 0; i < 20; i++)
        second(&k, s, 7.5 + 0.1 * noise(&k));
    assert_int_equal(k.n, 1);
    assert_true(k.events[0].at - began <= 2000);
    calm(&k, s, 240);
    assert_int_equal(k.n, 2);
    assert_int_equal(k.events[1].change, ALARM_CLEARED);
    things_destroy(k.t);
}

/* An alarm lasts as long as its cause, and ends soon after. */
static void test_a_long_fault_is_one_alarm(void **state)
{
    struct kit k;
    (void)state;
    open_kit(&k);
    uint32_t s = add(&k, vibration());
    calm(&k, s, 1000);
    for (int i = 0; i < 600; i++)
        second(&k, s, 7.5 + 0.1 * noise(&k));
    assert_int_equal(k.n, 1);
    int64_t over = k.now;
    calm(&k, s, 300);
    assert_int_equal(k.n, 2);
    assert_int_equal(k.events[1].change, ALARM_CLEARED);
    assert_true(k.events[1].at - over < 120000);
    things_destroy(k.t);
}

static void test_a_single_wild_value(void **state)
{
    struct kit k;
    (void)state;
    open_kit(&k);
    uint32_t s = add(&k, vibration());
    calm(&k, s, 1000);
    second(&k, s, 10);
    assert_int_equal(k.n, 1);
    assert_int_equal(k.events[0].kind, ALARM_SPIKE);
    things_destroy(k.t);
}

static void test_a_slow_drift(void **state)
{
    struct kit k;
    (void)state;
    open_kit(&k);
    uint32_t s = add(&k, vibration());
    calm(&k, s, 2000);
    assert_int_equal(k.n, 0);
    int i = 0;
    for (; i < 1200 && k.n == 0; i++)
        second(&k, s, 2.5 + 0.001 * i + 0.1 * noise(&k));
    assert_int_equal(k.n, 1);
    assert_true(k.events[0].kind == ALARM_DRIFT || k.events[0].kind == ALARM_SHIFT);
    things_destroy(k.t);
}

/* Two correlated channels are watched together as soon as both are learned. */
static void test_a_pattern_soon_after_the_start(void **state)
{
    struct kit k;
    struct things_sensor_opts other = vibration();
    (void)state;
    open_kit(&k);
    other.name = "current";
    other.title = "Current";
    uint32_t a = add(&k, vibration()), b = add(&k, other);
    for (int i = 0; i < 300; i++) {
        double load = noise(&k);
        second(&k, a, 2.5 + 0.1 * load + 0.002 * noise(&k));
        put(&k, b, 8 + 0.3 * load + 0.006 * noise(&k));
    }
    assert_int_equal(k.n, 0);
    for (int i = 0; i < 60 && k.n == 0; i++) { /* each looks normal, the pair does not */
        double load = noise(&k);
        second(&k, a, 2.5 + 0.1 * load);
        put(&k, b, 8 - 0.3 * load);
    }
    assert_int_equal(k.n, 1);
    assert_int_equal(k.events[0].kind, ALARM_PATTERN);
    things_destroy(k.t);
}

static void test_stuck_and_lost(void **state)
{
    struct kit k;
    (void)state;
    open_kit(&k);
    uint32_t s = add(&k, vibration());
    calm(&k, s, 600);
    for (int i = 0; i < 60; i++)
        second(&k, s, 2.5);
    assert_int_equal(k.n, 1);
    assert_int_equal(k.events[0].kind, ALARM_STUCK);
    calm(&k, s, 300);
    uint32_t n = k.n;
    for (int i = 0; i < 20; i++) {
        k.now += 1000;
        things_tick(k.t, k.now);
    }
    assert_int_equal(k.n, n + 1);
    assert_int_equal(k.events[n].kind, ALARM_LOST);
    assert_non_null(strstr(k.events[n].text, "has sent no good reading for"));
    things_destroy(k.t);
}

/* A signal that moved again was not dead: only a run twice as long is reported again. */
static void test_runs_that_end_are_no_fault_again(void **state)
{
    struct kit k;
    uint32_t raised = 0;
    (void)state;
    open_kit(&k);
    uint32_t s = add(&k, vibration());
    calm(&k, s, 600);
    for (int n = 0; n < 8; n++) {
        for (int i = 0; i < 25; i++)
            second(&k, s, 2.5);
        calm(&k, s, 200);
    }
    for (uint32_t i = 0; i < k.n; i++)
        raised += k.events[i].change == ALARM_RAISED && k.events[i].kind == ALARM_STUCK;
    assert_int_equal(raised, 1);
    for (int i = 0; i < 60; i++)
        second(&k, s, 2.5);
    assert_int_equal(k.events[k.n - 1].change, ALARM_RAISED);
    assert_int_equal(k.events[k.n - 1].kind, ALARM_STUCK);
    things_destroy(k.t);
}

/* Half a day of normal values: no more than the configured false alarms. */
static void test_quiet_times_stay_quiet(void **state)
{
    struct kit k;
    (void)state;
    open_kit(&k);
    uint32_t s = add(&k, vibration());
    calm(&k, s, 43200);
    uint32_t raised = 0;
    for (uint32_t i = 0; i < k.n; i++)
        raised += k.events[i].change == ALARM_RAISED;
    assert_true(raised <= 1);
    things_destroy(k.t);
}

static void test_other_channels_are_mentioned(void **state)
{
    struct kit k;
    struct things_sensor_opts o = vibration();
    (void)state;
    open_kit(&k);
    uint32_t s = add(&k, o);
    o.name = "temp";
    o.title = "bearing temperature";
    o.unit = "degrees";
    uint32_t b = add(&k, o);
    for (int i = 0; i < 600; i++) {
        k.now += 1000;
        put(&k, b, 60 + 0.2 * noise(&k));
        put(&k, s, 2.5 + 0.1 * noise(&k));
    }
    assert_int_equal(k.n, 0);
    k.now += 1000;
    put(&k, s, 7.5);
    assert_int_equal(k.n, 1);
    assert_int_equal(k.events[0].n_channels, 1);
    k.now += 1000;
    put(&k, s, 2.5);
    for (int i = 0; i < 200; i++)
        second(&k, s, 2.5 + 0.1 * noise(&k)), put(&k, b, 60 + 0.2 * noise(&k));
    uint32_t n = k.n;
    k.now += 1000;
    put(&k, b, 66);
    put(&k, s, 9);
    assert_int_equal(k.events[k.n - 1].n_channels, 2);
    assert_true(k.n >= n + 1);
    things_destroy(k.t);
}

/* ---- readings that are bad or badly timed ---- */

static void test_bad_late_double_and_skewed_readings(void **state)
{
    struct kit k;
    struct things_view v;
    (void)state;
    open_kit(&k);
    uint32_t s = add(&k, vibration());
    calm(&k, s, 10);
    put(&k, s, 2.5); /* same time again */
    struct reading r = {.sensor = s, .time_ms = k.now - 2500, .value = 2.5};
    things_reading(k.t, &r, k.now); /* late */
    r = (struct reading){.sensor = s, .time_ms = k.now + 3600000, .value = 2.5};
    things_reading(k.t, &r, k.now + 1000); /* an hour ahead */
    r = (struct reading){.sensor = s, .time_ms = 0, .value = (double)NAN};
    things_reading(k.t, &r, k.now + 1500);
    r = (struct reading){.sensor = s, .value = 1, .quality = READING_BAD};
    things_reading(k.t, &r, k.now + 1500);
    r = (struct reading){.sensor = s, .value = 2.5, .quality = READING_UNCERTAIN};
    things_reading(k.t, &r, k.now + 1100); /* within the interval */
    r = (struct reading){.sensor = s, .value = 2.5};
    things_reading(k.t, &r, k.now + 9000); /* after a gap */
    things_view(k.t, s, &v);
    assert_int_equal(v.counts.n, 17);
    assert_int_equal(v.counts.duplicates, 1);
    assert_int_equal(v.counts.late, 1);
    assert_int_equal(v.counts.skewed, 1);
    assert_int_equal(v.counts.bad, 2);
    assert_int_equal(v.counts.uncertain, 1);
    assert_int_equal(v.counts.merged, 1);
    assert_int_equal(v.counts.gaps, 1);
    assert_int_equal(k.n, 0);
    things_destroy(k.t);
}

/* ---- alarms ---- */

static void test_acknowledge_and_hold_off(void **state)
{
    struct kit k;
    struct things_sensor_opts o = vibration();
    struct alarm_event list[4];
    struct err e = {0};
    (void)state;
    open_kit(&k);
    o.limit_high = 7;
    o.policy.clear_ms = 3000;
    o.policy.hold_off_ms = 60000;
    uint32_t s = add(&k, o);
    second(&k, s, 8);
    assert_int_equal(things_alarms(k.t, list, 4, 0, true), 1);
    assert_int_equal(things_acknowledge(k.t, list[0].id, "ada", k.now, &e), 0);
    assert_int_equal(k.events[1].change, ALARM_ACKNOWLEDGED);
    assert_int_equal(things_acknowledge(k.t, list[0].id, "bob", k.now, &e), 0);
    assert_int_equal(k.n, 2); /* the first one counts */
    assert_int_equal(things_acknowledge(k.t, 99, "ada", k.now, &e), SHOAL_ENOTFOUND);
    for (int i = 0; i < 5; i++)
        second(&k, s, 2);
    assert_int_equal(k.n, 3);
    assert_int_equal(things_alarms(k.t, list, 4, 0, true), 0);
    second(&k, s, 8); /* within the hold-off: the same alarm */
    assert_int_equal(k.n, 3);
    assert_int_equal(things_alarms(k.t, list, 4, 0, true), 1);
    assert_true(list[0].acknowledged);
    assert_string_equal(list[0].acknowledged_by, "ada");
    for (int i = 0; i < 80; i++)
        second(&k, s, 2);
    assert_int_equal(k.n, 4);
    second(&k, s, 8); /* after it: a new one */
    assert_int_equal(k.n, 5);
    assert_int_equal(things_alarms(k.t, list, 1, 0, false), 2);
    assert_int_equal(list[0].id, k.events[4].id);
    assert_true(things_alarm(k.t, k.events[0].id, &list[1]));
    things_destroy(k.t);
}

/* An alarm of an earlier process continues: it keeps its number, is not raised again, and ends. */
static void test_an_alarm_is_restored(void **state)
{
    struct kit k;
    struct alarm_event e = {.change = ALARM_ACKNOWLEDGED,
                            .id = 777,
                            .kind = ALARM_LIMIT,
                            .severity = ALARM_CRITICAL,
                            .n_channels = 1,
                            .since_ms = START - 9000,
                            .raised_ms = START - 8000,
                            .changed_ms = START - 7000,
                            .acknowledged = true,
                            .acknowledged_by = "ada",
                            .text = "It is high."};
    struct alarm_event got;
    struct things_sensor_opts o = vibration();
    struct err err = {0};
    (void)state;
    open_kit(&k);
    o.limit_high = 7;
    uint32_t s = add(&k, o);
    e.channels[0] = (struct alarm_channel){.sensor = "none", .value = 7.5, .before = 2.5};
    assert_int_equal(things_restore(k.t, &e, &err), SHOAL_ENOTFOUND);
    e.channels[0].sensor = "vib";
    assert_int_equal(things_restore(k.t, &e, &err), 0);
    assert_int_equal(things_restore(k.t, &e, &err), SHOAL_EINVAL);
    assert_true(things_alarm(k.t, 777, &got));
    assert_true(got.acknowledged);
    assert_string_equal(got.acknowledged_by, "ada");
    assert_string_equal(got.text, "It is high.");
    assert_string_equal(got.machine, "motor3");
    assert_int_equal(got.raised_ms, START - 8000);
    k.now += 3600000; /* silence says nothing about it */
    things_tick(k.t, k.now);
    for (int i = 0; i < 30; i++)
        second(&k, s, 7.5);
    assert_int_equal(k.n, 0);
    assert_int_equal(things_alarms(k.t, &got, 1, 0, true), 1);
    assert_int_equal(got.id, 777);
    for (int i = 0; i < 30; i++)
        second(&k, s, 2.5);
    assert_int_equal(k.n, 1);
    assert_int_equal(k.events[0].change, ALARM_CLEARED);
    assert_int_equal(k.events[0].id, 777);
    k.now += 3600000;
    second(&k, s, 7.5);
    assert_int_equal(k.n, 2);
    assert_true(k.events[1].id > 777);
    things_destroy(k.t);
}

static void test_json(void **state)
{
    struct kit k;
    struct things_sensor_opts o = vibration();
    struct alarm_event one;
    struct buf b;
    (void)state;
    open_kit(&k);
    o.limit_high = 7;
    uint32_t s = add(&k, o);
    second(&k, s, 8);
    assert_true(things_alarm(k.t, 1, &one));
    buf_init(&b, 4096);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    alarm_json(&j, &one);
    json_out_object_end(&j);
    assert_int_equal(b.rc, 0);
    assert_non_null(strstr(buf_str(&b), "\"kind\":\"limit\",\"severity\":\"critical\","
                                        "\"machine\":\"motor3\",\"machine_title\":\"motor 3\""));
    assert_non_null(strstr(buf_str(&b), "\"sensor\":\"vib\""));
    buf_fini(&b);
    things_destroy(k.t);
}

static void test_more_alarms_than_places(void **state)
{
    struct kit k = {.now = START};
    struct things_opts o = {.max_alarms = 2};
    struct alarm_event list[4];
    struct err e = {0};
    char name[8];
    (void)state;
    assert_int_equal(things_create(&k.t, &o, &e), 0);
    for (int i = 0; i < 4; i++) {
        struct things_sensor_opts so = things_sensor_defaults();
        snprintf(name, sizeof(name), "s%d", i);
        so.name = name;
        so.limit_high = 1;
        assert_int_equal(things_add_sensor(k.t, &so, &e), 0);
        put(&k, (uint32_t)i, 2);
    }
    assert_int_equal(things_alarms(k.t, list, 4, 0, false), 2);
    assert_int_equal(list[0].id, 4);
    assert_int_equal(list[1].id, 3);
    things_destroy(k.t);
}

static void test_what_is_refused(void **state)
{
    struct kit k;
    struct err e = {0};
    (void)state;
    open_kit(&k);
    struct things_sensor_opts o = vibration();
    add(&k, o);
    assert_int_equal(things_add_sensor(k.t, &o, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "two sensors are named vib"));
    o.name = "x";
    o.machine = "nosuch";
    assert_int_equal(things_add_sensor(k.t, &o, &e), SHOAL_EINVAL);
    o.machine = NULL;
    o.limit_low = 3;
    o.limit_high = 2;
    assert_int_equal(things_add_sensor(k.t, &o, &e), SHOAL_EINVAL);
    o.name = "";
    assert_int_equal(things_add_sensor(k.t, &o, &e), SHOAL_EINVAL);
    assert_int_equal(things_find(k.t, "x"), THINGS_NONE);
    things_destroy(k.t);
}

static void test_memory_of_a_sensor(void **state)
{
    struct kit k = {.now = START};
    const struct things_opts o = {.max_alarms = 1};
    struct err e = {0};
    char name[16];
    (void)state;
    assert_int_equal(things_create(&k.t, &o, &e), 0);
    for (int i = 0; i < 1000; i++) {
        struct things_sensor_opts so = things_sensor_defaults();
        snprintf(name, sizeof(name), "s%d", i);
        so.name = name;
        assert_int_equal(things_add_sensor(k.t, &so, &e), 0);
    }
    assert_true(things_bytes(k.t) / 1000 < 16384);
    uint64_t calls = mem_calls();
    for (int i = 0; i < 20000; i++) {
        k.now += i % 1000 ? 0 : 1000;
        put(&k, (uint32_t)(i % 1000), 1 + i % 7);
    }
    assert_int_equal(mem_calls(), calls); /* a reading allocates nothing */
    things_destroy(k.t);
}

/* What an event stream needs: changes since a serial, and the values before. */
static void test_changes_and_history(void **state)
{
    struct kit k;
    struct alarm_event e;
    struct things_view v;
    double interval_ms;
    int64_t end_ms;
    float past[8];
    (void)state;
    open_kit(&k);
    struct things_sensor_opts o = vibration(), other = vibration();
    o.limit_high = 7;
    o.policy = (struct things_policy){.clear_ms = 2000, .hold_off_ms = 60000};
    other.name = "temp";
    uint32_t s = add(&k, o), t = add(&k, other);
    assert_int_equal(things_history(k.t, s, past, 8, &interval_ms, &end_ms), 0);
    for (int i = 1; i <= 300; i++) /* more than learning keeps */
        second(&k, s, 2.5 + 0.001 * i);
    assert_int_equal(things_history(k.t, s, past, 8, &interval_ms, &end_ms), 8);
    assert_true(interval_ms == 1000);
    assert_int_equal(end_ms, k.now);
    for (int i = 0; i < 8; i++)
        assert_true(fabs((double)past[i] - (2.5 + 0.001 * (293 + i))) < 1e-6);
    things_view(k.t, t, &v);
    assert_int_equal(v.serial, 0); /* no reading yet */
    assert_true(isnan(v.limit_high));
    assert_string_equal(v.machine_title, "motor 3");
    uint64_t before = things_serial(k.t);
    second(&k, s, 9);
    things_view(k.t, s, &v);
    assert_true(v.serial > before && v.serial == things_serial(k.t) && v.limit_high == 7);
    assert_true(things_alarm_changed(k.t, before, &e));
    assert_int_equal(e.change, ALARM_RAISED);
    struct err error = {0};
    uint32_t events = k.n;
    assert_int_equal(
        things_explain(k.t, e.id, "Grease the bearing.", "manual, p. 4", k.now, &error), 0);
    assert_int_equal(k.n, events + 1); /* a second event */
    assert_int_equal(k.events[events].change, ALARM_EXPLAINED);
    assert_true(things_alarm(k.t, e.id, &e));
    assert_string_equal(e.passage, "Grease the bearing.");
    assert_int_equal(things_explain(k.t, e.id, "Or change it.", "p. 5", k.now, &error), 0);
    assert_int_equal(things_explain(k.t, e.id + 1, "x", "y", k.now, &error), SHOAL_ENOTFOUND);
    before = things_serial(k.t);
    assert_false(things_alarm_changed(k.t, before, &e));
    things_view(k.t, s, &v);
    while (v.alarm) { /* it ends, */
        second(&k, s, 2.8);
        things_view(k.t, s, &v);
    }
    assert_true(things_alarm_changed(k.t, before, &e) && e.cleared_ms > 0);
    before = things_serial(k.t);
    uint32_t told = k.n;
    second(&k, s, 9); /* ... and continues: no new event, but a reader sees it */
    assert_true(things_alarm_changed(k.t, before, &e) && e.cleared_ms == 0);
    assert_int_equal(k.n, told);
    things_destroy(k.t);
}

/* A lost signal is not the limit alarm that ended a moment ago. */
static void test_lost_after_a_limit(void **state)
{
    struct kit k;
    struct things_sensor_opts o = vibration();
    (void)state;
    open_kit(&k);
    o.limit_high = 7;
    o.interval_ms = 1000;
    o.policy = (struct things_policy){.clear_ms = 3000, .hold_off_ms = 60000};
    uint32_t s = add(&k, o);
    calm(&k, s, 5);
    second(&k, s, 8);
    calm(&k, s, 5);
    assert_int_equal(k.n, 2);
    assert_int_equal(k.events[1].change, ALARM_CLEARED);
    for (int i = 0; i < 10; i++) {
        k.now += 1000;
        things_tick(k.t, k.now);
    }
    assert_int_equal(k.n, 3);
    assert_int_equal(k.events[2].change, ALARM_RAISED);
    assert_int_equal(k.events[2].kind, ALARM_LOST);
    assert_int_equal(k.events[2].severity, ALARM_WARNING);
    assert_true(k.events[2].id != k.events[0].id);
    things_destroy(k.t);
}

/* Two sensors of a machine beyond their limits: one alarm with both as evidence, which ends when
 * both are calm. A lost signal of a third one is another matter. */
static void test_one_cause_is_one_alarm(void **state)
{
    struct kit k;
    struct things_sensor_opts o = vibration();
    struct alarm_event e;
    struct things_view v;
    (void)state;
    open_kit(&k);
    o.limit_high = 7;
    o.policy =
        (struct things_policy){.clear_ms = 2000, .hold_off_ms = 60000, .no_statistics = true};
    uint32_t s = add(&k, o);
    o.name = "temp";
    o.title = "bearing temperature";
    o.limit_high = (double)NAN;
    o.normal_high = 80;
    uint32_t b = add(&k, o);
    o.name = "flow";
    o.interval_ms = 1000;
    uint32_t f = add(&k, o);
    second(&k, s, 2.5), put(&k, b, 60), put(&k, f, 1);
    second(&k, s, 2.5), put(&k, b, 60), put(&k, f, 1);
    second(&k, s, 2.5), put(&k, b, 90), put(&k, f, 1); /* first a warning, */
    second(&k, s, 9), put(&k, b, 91);                  /* ... then it is critical */
    assert_int_equal(k.n, 2);
    assert_int_equal(k.events[0].kind, ALARM_RANGE);
    assert_int_equal(k.events[1].change, ALARM_WORSENED);
    assert_int_equal(k.events[1].id, k.events[0].id);
    assert_int_equal(k.events[1].n_evidence, 2);
    assert_non_null(strstr(k.events[1].text,
                           "Vibration on motor 3 rose from 2.5 to 9 mm/s within 1 s, "
                           "above the limit of 7 mm/s; bearing temperature is up"));
    assert_true(things_alarm(k.t, k.events[0].id, &e));
    assert_string_equal(e.evidence[0].sensor, "temp");
    assert_int_equal(e.evidence[0].kind, ALARM_RANGE);
    assert_string_equal(e.evidence[1].sensor, "vib");
    assert_true(e.evidence[0].seen_ms < e.evidence[1].seen_ms);
    for (int i = 0; i < 8; i++)
        second(&k, s, 2.5), put(&k, b, 91);
    assert_int_equal(k.n, 3); /* the third one is silent */
    assert_int_equal(k.events[2].kind, ALARM_LOST);
    assert_true(k.events[2].id != k.events[0].id);
    things_view(k.t, s, &v);
    assert_int_equal(v.alarm, 0); /* it is calm, but the alarm is not over */
    things_view(k.t, b, &v);
    assert_int_equal(v.alarm, k.events[0].id);
    for (int i = 0; i < 4; i++)
        second(&k, s, 2.5), put(&k, b, 60);
    assert_int_equal(k.events[3].change, ALARM_CLEARED);
    assert_int_equal(k.events[3].id, k.events[0].id);
    second(&k, s, 9); /* within the hold-off: the same alarm */
    things_view(k.t, s, &v);
    assert_int_equal(v.alarm, k.events[0].id);
    assert_int_equal(k.n, 4);
    put(&k, b, 92);
    things_view(k.t, b, &v);
    assert_int_equal(v.alarm, k.events[0].id);
    things_destroy(k.t);
}

/* Sensors that have nothing to do with each other keep their own alarms. */
static void test_sensors_apart(void **state)
{
    struct kit k;
    struct things_sensor_opts o = vibration();
    const struct things_machine_opts m = {.name = "hall", .no_joint = true};
    struct err e = {0};
    (void)state;
    open_kit(&k);
    assert_int_equal(things_add_machine(k.t, &m, &e), 0);
    o.machine = "hall";
    o.limit_high = 7;
    uint32_t s = add(&k, o);
    o.name = "temp";
    uint32_t b = add(&k, o);
    second(&k, s, 9), put(&k, b, 9);
    assert_int_equal(k.n, 2);
    assert_true(k.events[0].id != k.events[1].id);
    things_destroy(k.t);
}

/* The plant of the demo: quiet, then an alarm within a second, then quiet again. */
static void test_the_demo_plant(void **state)
{
    struct demo_plant sim = {.seed = 1};
    double v[DEMO_PLANT_SENSORS];
    struct kit k;
    struct things_view view;
    (void)state;
    open_kit(&k);
    for (uint32_t i = 0; i < DEMO_PLANT_SENSORS; i++) {
        struct things_sensor_opts o = things_sensor_defaults();
        o.name = demo_plant_sensors[i];
        o.machine = i < 3 ? "motor3" : NULL;
        o.interval_ms = DEMO_PLANT_STEP_MS;
        o.learn = i ? 512 : 128;
        o.limit_high = i ? (double)NAN : 7;
        o.policy = (struct things_policy){.clear_ms = 3000, .hold_off_ms = 1};
        add(&k, o);
    }
    int broken_at = 900, n_before = 0;
    for (int i = 0; i < 2000; i++) {
        if (i == broken_at)
            n_before = (int)k.n;
        sim.broken = i >= broken_at && i < broken_at + 100;
        k.now += DEMO_PLANT_STEP_MS;
        demo_plant_step(&sim, k.now, v);
        for (uint32_t s = 0; s < DEMO_PLANT_SENSORS; s++)
            put(&k, s, v[s]);
        things_tick(k.t, k.now);
        if (i == broken_at + 10) { /* a second later */
            things_view(k.t, 0, &view);
            assert_true(view.alarm != 0);
        }
    }
    assert_int_equal(n_before, 0);
    for (uint32_t i = 0; i < k.n; i++) /* a broken bearing is one alarm, whatever shows it */
        assert_int_equal(k.events[i].id, k.events[0].id);
    assert_true(k.events[k.n - 1].n_evidence >= 3);
    things_view(k.t, 0, &view);
    assert_true(view.alarm == 0 && fabs(view.value - 2.5) < 0.5);
    things_destroy(k.t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_reading_over_a_limit),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_a_shift_is_found_in_seconds_and_ends),
        cmocka_unit_test(test_a_long_fault_is_one_alarm),
        cmocka_unit_test(test_a_single_wild_value),
        cmocka_unit_test(test_a_slow_drift),
        cmocka_unit_test(test_a_pattern_soon_after_the_start),
        cmocka_unit_test(test_stuck_and_lost),
        cmocka_unit_test(test_runs_that_end_are_no_fault_again),
        cmocka_unit_test(test_quiet_times_stay_quiet),
        cmocka_unit_test(test_other_channels_are_mentioned),
        cmocka_unit_test(test_bad_late_double_and_skewed_readings),
        cmocka_unit_test(test_acknowledge_and_hold_off),
        cmocka_unit_test(test_an_alarm_is_restored),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_more_alarms_than_places),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_memory_of_a_sensor),
        cmocka_unit_test(test_changes_and_history),
        cmocka_unit_test(test_lost_after_a_limit),
        cmocka_unit_test(test_one_cause_is_one_alarm),
        cmocka_unit_test(test_sensors_apart),
        cmocka_unit_test(test_the_demo_plant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
