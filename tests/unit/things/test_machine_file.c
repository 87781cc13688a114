/* test_machine_file.c - a machine learned from a recording: its file, and what it detects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "things/machine_file.h"
#include "things/things.h"

enum { N_ROWS = 2000 };

static uint64_t seed = 7;

static double noise(void)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        seed = hash_mix(seed + 0x9e3779b97f4a7c15u);
        sum += (double)(seed >> 11) / 9007199254740992.0;
    }
    return sum - 6;
}

/* Flow and current of a pump move together. */
static void make_row(double row[2])
{
    double load = noise();
    row[0] = 50 + 5 * load + 0.2 * noise();
    row[1] = 10 + 1 * load + 0.04 * noise();
}

static struct machine_file *learn(void)
{
    static const char *const names[] = {"flow", "current"};
    static double rows[N_ROWS][2];
    struct machine_file *m;
    struct err e = {0};
    for (int i = 0; i < N_ROWS; i++)
        make_row(rows[i]);
    const struct machine_file_rows r = {
        .names = names, .n = 2, .values = rows[0], .n_rows = N_ROWS, .interval_ms = 1000};
    if (machine_file_fit(&m, &r, &e) < 0)
        fail_msg("%s", e.msg);
    return m;
}

static void test_written_and_read(void **state)
{
    struct machine_file *m = learn(), *again;
    struct err e = {0};
    struct buf a, b;
    (void)state;
    buf_init(&a, 1 << 20);
    buf_init(&b, 1 << 20);
    machine_file_write(m, &a);
    assert_int_equal(machine_file_parse(&again, a.data, a.len, &e), 0);
    machine_file_write(again, &b);
    assert_string_equal(buf_str(&a), buf_str(&b));
    assert_int_equal(machine_file_channel(again, "current"), 1);
    assert_int_equal(machine_file_channel(again, "nosuch"), UINT32_MAX);
    machine_file_destroy(again);
    for (size_t n = 0; n + 2 < a.len; n += 31) /* the last bytes are "}\n" */
        assert_int_equal(machine_file_parse(&again, a.data, n, &e), SHOAL_EFORMAT);
    machine_file_destroy(m);
    buf_fini(&a);
    buf_fini(&b);
}

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *json, *says;
    } cases[] = {
        {"", "not a file of"},
        {"{\"type\":\"shoal_scorer\"}", "not a file of"},
        {"{\"type\":\"shoal_machine\",\"version\":1,\"channels\":[]}",
         "learn the machine again with `shoal anomaly fit`"},
        {"{\"type\":\"shoal_machine\",\"version\":2,\"channels\":{}}", "must be a list"},
        {"{\"type\":\"shoal_machine\",\"version\":2,\"channels\":[]}", "1 to 1024 channels"},
        {"{\"type\":\"shoal_machine\",\"version\":2,\"channels\":[{}]}", "has no name"},
        {"{\"type\":\"shoal_machine\",\"version\":2,\"channels\":[{\"name\":\"a\",\"mean\":1,"
         "\"spread\":0}]}",
         "channel a: spread must be a number"},
    };
    struct machine_file *m;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err e = {0};
        assert_true(machine_file_parse(&m, cases[i].json, strlen(cases[i].json), &e) < 0);
        assert_null(m);
        if (!strstr(e.msg, cases[i].says))
            fail_msg("%s: %s", cases[i].json, e.msg);
    }
}

struct seen {
    uint32_t n;
    enum alarm_kind kind;
};

static void on_alarm(void *ctx, const struct alarm_event *e)
{
    struct seen *s = ctx;
    s->n += e->change == ALARM_RAISED;
    s->kind = e->kind;
}

/* learned NULL: the things learn by themselves. */
static struct things *open_things(struct seen *seen, const struct machine_file *m)
{
    static const char *const names[] = {"flow", "current"};
    struct things *t;
    struct err e = {0};
    const struct things_opts o = {.alarm = on_alarm, .ctx = seen, .max_skew_ms = UINT32_MAX};
    const struct things_machine_opts mo = {.name = "pump", .joint = m ? m->joint : NULL};
    assert_int_equal(things_create(&t, &o, &e), 0);
    assert_int_equal(things_add_machine(t, &mo, &e), 0);
    for (int i = 0; i < 2; i++) {
        struct things_sensor_opts so = things_sensor_defaults();
        so.name = names[i];
        so.machine = "pump";
        so.profile = m ? &m->profiles[i] : NULL;
        assert_int_equal(things_add_sensor(t, &so, &e), 0);
    }
    return t;
}

static void put(struct things *t, int64_t *now, const double row[2])
{
    *now += 1000;
    for (uint32_t i = 0; i < 2; i++) {
        const struct reading r = {.sensor = i, .time_ms = *now, .value = row[i]};
        things_reading(t, &r, *now);
    }
}

/* Each channel stays in its range, but they no longer fit together. */
static void test_a_broken_pattern_is_found(void **state)
{
    struct machine_file *m = learn();
    (void)state;
    for (int learned = 0; learned < 2; learned++) {
        struct seen seen = {0};
        struct things *t = open_things(&seen, learned ? m : NULL);
        int64_t now = 1700000000000;
        double row[2];
        for (int i = 0; i < 3000; i++) {
            make_row(row);
            put(t, &now, row);
        }
        assert_int_equal(seen.n, 0);
        int i = 0;
        for (; i < 60 && seen.n == 0; i++) {
            make_row(row);
            row[1] = 20 - row[1]; /* the current falls while the flow rises */
            put(t, &now, row);
        }
        assert_int_equal(seen.n, 1);
        assert_int_equal(seen.kind, ALARM_PATTERN);
        things_destroy(t);
    }
    machine_file_destroy(m);
}

/* A daily cycle: a high value is unusual at night, though normal at noon. */
static void test_the_course_of_a_day(void **state)
{
    static const char *const names[] = {"load"};
    enum { PER_DAY = 288, DAYS = 7 };
    static double v[PER_DAY * DAYS];
    static int64_t times[PER_DAY * DAYS];
    static struct channel c;
    struct machine_file *m;
    struct err e = {0};
    (void)state;
    for (int i = 0; i < PER_DAY * DAYS; i++) {
        times[i] = 1700006400000 + (int64_t)i * 300000; /* from midnight on */
        v[i] = 100 - 50 * cos(2 * 3.14159265 * i / PER_DAY) + noise();
    }
    const struct machine_file_rows r = {.names = names,
                                        .n = 1,
                                        .values = v,
                                        .times = times,
                                        .n_rows = PER_DAY * DAYS,
                                        .interval_ms = 300000};
    assert_int_equal(machine_file_fit(&m, &r, &e), 0);
    assert_true(m->profiles[0].daily);
    channel_init(&c, &m->profiles[0], 0, 300000);
    int64_t noon = times[PER_DAY * DAYS - 1] + 300000 + 43200000;
    assert_true(channel_step(&c, 150, noon).expected > 1);
    channel_init(&c, &m->profiles[0], 0, 300000);
    assert_true(channel_step(&c, 150, noon + 43200000).expected < 0.1);
    machine_file_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_and_read),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_a_broken_pattern_is_found),
        cmocka_unit_test(test_the_course_of_a_day),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
