/* test_duty.c - channels that switch between levels: switching is usual; another level, a level
 * that moves and a switch that does not come are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "things/duty.h"
#include "things/things.h"

#define OFF 2.0
#define ON 90.0

/* A compressor with a meter, read every ten seconds. */
struct plant {
    struct things *t;
    int64_t now;
    uint64_t seed;
    uint32_t sensor, n_raised;
    enum alarm_kind kind; /* of the last one that was raised */
    bool open;
    char text[ALARM_MAX_TEXT];
};

static double uniform(uint64_t *seed)
{
    *seed = hash_mix(*seed + 0x9e3779b97f4a7c15u);
    return (double)(*seed >> 11) / 9007199254740992.0;
}

/* Roughly normal, mean 0, deviation 1. */
static double noise(uint64_t *seed)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += uniform(seed);
    return sum;
}

static void on_alarm(void *ctx, const struct alarm_event *e)
{
    struct plant *p = ctx;
    if (e->change == ALARM_RAISED) {
        p->n_raised++;
        p->kind = e->kind;
        snprintf(p->text, sizeof(p->text), "%s", e->text);
    }
    p->open = e->change != ALARM_CLEARED;
}

static void begin(struct plant *p, uint64_t seed)
{
    struct err e = {0};
    struct things_sensor_opts s;
    *p = (struct plant){.now = 1700000000000, .seed = seed};
    const struct things_opts o = {.alarm = on_alarm, .ctx = p};
    assert_int_equal(things_create(&p->t, &o, &e), 0);
    s = things_sensor_defaults();
    s.name = "power";
    s.title = "Power";
    s.unit = "W";
    assert_int_equal(things_add_sensor(p->t, &s, &e), 0);
    p->sensor = things_find(p->t, "power");
}

static void put(struct plant *p, double value)
{
    p->now += 10000;
    const struct reading r = {.sensor = p->sensor, .value = value, .time_ms = p->now};
    things_reading(p->t, &r, p->now);
    things_tick(p->t, p->now);
}

/* n readings at a level; the meter is worse at high power. */
static void stay(struct plant *p, double level, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        put(p, level + (level > 10 ? 1 : 0.2) * noise(&p->seed));
}

/* About half an hour: 10 minutes on, 20 off, each up to a quarter longer or shorter. */
static void cycles(struct plant *p, double on, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        stay(p, OFF, (uint32_t)(120 * (0.75 + 0.5 * uniform(&p->seed))));
        stay(p, on, (uint32_t)(60 * (0.75 + 0.5 * uniform(&p->seed))));
    }
}

/* ---- switching ---- */

static void test_switching_is_soon_usual(void **state)
{
    static struct plant p;
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        begin(&p, seed);
        cycles(&p, ON, 4);
        assert_in_range(p.n_raised, 1, 3); /* on was new, and is reported as that */
        const uint32_t first = p.n_raised;
        cycles(&p, ON, 400); /* eight days */
        assert_int_equal(p.n_raised, first);
        things_destroy(p.t);
    }
}

/* The page shows the range of the level where the channel is. */
static void test_the_normal_range_is_that_of_the_level(void **state)
{
    static struct plant p;
    struct things_view v;
    (void)state;
    begin(&p, 3);
    cycles(&p, ON, 12);
    things_view(p.t, p.sensor, &v);
    assert_true(v.low > ON - 10 && v.low < ON && v.high > ON && v.high < ON + 10);
    assert_false(v.learning);
    stay(&p, OFF, 20);
    things_view(p.t, p.sensor, &v);
    assert_true(v.low > OFF - 2 && v.low < OFF && v.high > OFF && v.high < OFF + 2);
    things_destroy(p.t);
}

static void test_a_start_that_overshoots(void **state)
{
    static struct plant p;
    (void)state;
    begin(&p, 5);
    for (int i = 0; i < 100; i++) {
        stay(&p, OFF, 100);
        put(&p, 1.6 * ON + noise(&p.seed));
        put(&p, 1.2 * ON + noise(&p.seed));
        stay(&p, ON, 50);
        if (i == 5)
            p.n_raised = 0;
    }
    assert_int_equal(p.n_raised, 0);
    stay(&p, ON, 10);
    assert_false(p.open);
    put(&p, 3 * ON); /* not as any start before */
    put(&p, 3 * ON);
    assert_int_equal(p.n_raised, 1);
    things_destroy(p.t);
}

static void test_a_relay_has_two_values(void **state)
{
    static struct plant p;
    (void)state;
    begin(&p, 6);
    for (int i = 0; i < 200; i++) {
        for (int k = 0; k < 100; k++)
            put(&p, 0);
        for (int k = 0; k < 40; k++)
            put(&p, 1);
        if (i == 10)
            p.n_raised = 0;
    }
    assert_int_equal(p.n_raised, 0);
    for (int i = 0; i < 500; i++)
        put(&p, 1);
    assert_int_equal(p.n_raised, 1);
    assert_int_equal(p.kind, ALARM_CYCLE);
    things_destroy(p.t);
}

/* ---- faults ---- */

static void known(struct plant *p, uint64_t seed)
{
    begin(p, seed);
    cycles(p, ON, 30);
    stay(p, OFF, 40);
    assert_false(p->open);
    p->n_raised = 0;
}

static void test_a_third_level(void **state)
{
    static const double levels[] = {45, 104, -20, 300};
    static struct plant p;
    (void)state;
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        known(&p, 10 + i);
        stay(&p, levels[i], 12);
        assert_int_equal(p.n_raised, 1);
        things_destroy(p.t);
    }
}

static void test_a_level_that_moves(void **state)
{
    static struct plant p;
    (void)state;
    known(&p, 20);
    for (int i = 0; i < 40 && p.n_raised == 0; i++)
        cycles(&p, ON + 0.5 * i, 1); /* 20 W within 40 cycles */
    assert_int_equal(p.n_raised, 1);
    things_destroy(p.t);
}

static void test_a_switch_that_does_not_come(void **state)
{
    static struct plant p;
    (void)state;
    for (int on = 0; on <= 1; on++) {
        known(&p, 30);
        stay(&p, on ? ON : OFF, on ? 200 : 400);
        assert_int_equal(p.n_raised, 0); /* twice as long as ever: it may still come */
        stay(&p, on ? ON : OFF, on ? 200 : 400);
        assert_int_equal(p.n_raised, 1);
        assert_int_equal(p.kind, ALARM_CYCLE);
        assert_non_null(strstr(p.text, "far longer than ever before it switched"));
        cycles(&p, ON, 4);
        assert_false(p.open);
        p.n_raised = 0;
        stay(&p, on ? ON : OFF, on ? 400 : 800); /* it came, so it may take as long again */
        assert_int_equal(p.n_raised, 0);
        things_destroy(p.t);
    }
}

/* ---- what is no duty cycle ---- */

static void test_other_channels_have_no_levels(void **state)
{
    enum { WALK, MEMORY, COARSE, SINE, N };
    (void)state;
    for (int kind = 0; kind < N; kind++) {
        uint64_t seed = 77;
        struct duty d = {.n = 0};
        double x = 0;
        for (int i = 0; i < 50000; i++) {
            x = kind == WALK     ? x + noise(&seed)
                : kind == MEMORY ? 0.95 * x + noise(&seed)
                : kind == COARSE ? 0.99 * x + 0.1 * noise(&seed)
                                 : 10 * sin(i / 50.0) + 0.1 * noise(&seed);
            (void)duty_step(&d, kind == COARSE ? round(x * 2) / 2 : x);
            assert_int_equal(d.n_known, 0);
        }
    }
}

/* Levels that are left for good are forgotten. */
static void test_levels_are_forgotten(void **state)
{
    uint64_t seed = 5;
    struct duty d = {.n = 0};
    bool at;
    (void)state;
    for (int i = 0; i < 2000; i++)
        (void)duty_step(&d, (i / 50 % 2 ? ON : OFF) + 0.1 * noise(&seed));
    assert_int_equal(d.n_known, 2);
    assert_true(fabs(duty_fold(&d, ON + 0.1, &at) - OFF) < 1 && at);
    assert_true(duty_fold(&d, 45, &at) == 45 && !at);
    for (int i = 0; i < 60000; i++)
        (void)duty_step(&d, 500 + 30 * noise(&seed));
    assert_int_equal(d.n_known, 0);
    assert_int_equal(duty_where(&d), DUTY_UNKNOWN);
    assert_true(duty_fold(&d, ON, &at) == ON && !at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_switching_is_soon_usual),
        cmocka_unit_test(test_the_normal_range_is_that_of_the_level),
        cmocka_unit_test(test_a_start_that_overshoots),
        cmocka_unit_test(test_a_relay_has_two_values),
        cmocka_unit_test(test_a_third_level),
        cmocka_unit_test(test_a_level_that_moves),
        cmocka_unit_test(test_a_switch_that_does_not_come),
        cmocka_unit_test(test_other_channels_have_no_levels),
        cmocka_unit_test(test_levels_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
