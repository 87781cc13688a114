/* test_channel.c - the detector of one channel, on streams with known answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "things/channel.h"
#include "things/joint.h"

static const double WANTED = 0.1; /* false alarms per day of the channels together */

struct stream {
    struct channel c;
    uint64_t seed;
    struct channel_result last;
};

/* Roughly normal, mean 0, deviation 1. */
static double noise(struct stream *s)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        s->seed = hash_mix(s->seed + 0x9e3779b97f4a7c15u);
        sum += (double)(s->seed >> 11) / 9007199254740992.0;
    }
    return sum - 6;
}

static bool step(struct stream *s, double value)
{
    s->last = channel_step(&s->c, value, -1);
    return s->last.ready && s->last.expected <= s->last.target;
}

/* Steps until the first unusual one, at most n; n: none. */
static int steps(struct stream *s, int n, double level, double slope)
{
    for (int i = 0; i < n; i++)
        if (step(s, level + slope * i + noise(s)))
            return i;
    return n;
}

static void begin(struct stream *s, uint64_t seed)
{
    *s = (struct stream){.seed = seed};
    channel_init(&s->c, NULL, 0, 1000);
}

static void test_quiet(void **state)
{
    static struct stream s;
    uint32_t n = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) { /* 8 times 3 hours: a day */
        begin(&s, seed);
        n += steps(&s, 10800, 60, 0) < 10800;
    }
    assert_true(n <= 1);
}

static void test_a_spike_at_once(void **state)
{
    static struct stream s;
    (void)state;
    begin(&s, 1);
    assert_int_equal(steps(&s, 1000, 60, 0), 1000);
    assert_true(step(&s, 60 + 75));
    assert_int_equal(s.last.stat, CHANNEL_OUT);
    (void)steps(&s, 100, 60, 0);
    assert_true(step(&s, 60 - 75));
}

/* A channel with many spikes does not report each of them. */
static void test_spikes_that_are_usual(void **state)
{
    static struct stream s;
    int told = 0;
    (void)state;
    begin(&s, 2);
    for (int i = 0; i < 20000; i++)
        told += step(&s, 60 + noise(&s) + (i > 1000 && i % 200 == 0 ? 40 : 0));
    assert_true(told >= 1 && told <= 8);
}

static void test_a_shift_and_back(void **state)
{
    static struct stream s;
    int on = 0, after = 0;
    (void)state;
    begin(&s, 3);
    assert_int_equal(steps(&s, 2000, 60, 0), 2000);
    for (int i = 0; i < 60; i++)
        on += step(&s, 66 + noise(&s)) || s.last.away;
    for (int i = 0; i < 300; i++)
        after += step(&s, 60 + noise(&s));
    assert_true(on > 30);
    assert_true(after < 60); /* and quiet soon after */
}

static void test_a_drift(void **state)
{
    static struct stream s;
    (void)state;
    begin(&s, 4);
    assert_int_equal(steps(&s, 3000, 60, 0), 3000);
    int at = steps(&s, 1500, 60, 0.01);
    assert_true(at < 1500);
    assert_true(s.last.z > 2);
}

/* A new set point is reported, and learned after a while. */
static void test_a_new_set_point(void **state)
{
    static struct stream s;
    int late = 0;
    (void)state;
    begin(&s, 5);
    assert_int_equal(steps(&s, 1000, 60, 0), 1000);
    assert_true(steps(&s, 10, 80, 0) < 10);
    for (int i = 0; i < 6000; i++)
        late += step(&s, 80 + noise(&s)) && i >= 4000;
    assert_int_equal(late, 0);
}

static void test_more_noise(void **state)
{
    static struct stream s;
    int on = 0;
    (void)state;
    begin(&s, 6);
    assert_int_equal(steps(&s, 2000, 60, 0), 2000);
    for (int i = 0; i < 200; i++)
        on += step(&s, 60 + 12 * noise(&s));
    assert_true(on > 0);
}

/* A learned profile: the first value is not unusual merely for being the first. */
static void test_a_learned_profile(void **state)
{
    static struct stream s;
    enum { N = 2000 };
    double *v = calloc(N, sizeof(*v)), *scratch = calloc(3 * N, sizeof(*scratch));
    struct profile p;
    (void)state;
    s.seed = 7;
    for (int i = 0; i < N; i++)
        v[i] = 60 + noise(&s);
    channel_learn(&p, v, NULL, N, 1000, scratch);
    assert_true(fabs(p.mean - 60) < 0.1 && fabs(p.spread - 1) < 0.1);
    assert_true(fabs(p.plain_mean) < 0.1 && fabs(p.plain_spread - 1) < 0.1);
    assert_true(p.most_out > 2.5 && p.most_out < 5);
    assert_true(p.most_long > 0 && p.most_long < 0.5);
    channel_init(&s.c, &p, 0, 1000);
    assert_false(step(&s, 60 + p.most_out));
    assert_int_equal(steps(&s, 3000, 60, 0), 3000);
    assert_true(steps(&s, 60, 63, 0) < 60);
    free(v);
    free(scratch);
}

/* From the 33rd step on a large change is found, however often the channel is read, and it is not
 * learned. */
static void test_a_step_while_it_learns(void **state)
{
    static const int befores[] = {33, 48, 100, 200, 300, 450, 700};
    static const double intervals[] = {1000, 100, 50};
    static struct stream s;
    (void)state;
    for (size_t b = 0; b < sizeof(befores) / sizeof(befores[0]); b++)
        for (size_t k = 0; k < sizeof(intervals) / sizeof(intervals[0]); k++) {
            begin(&s, 20 + b);
            s.c.usual.interval_ms = intervals[k];
            assert_int_equal(steps(&s, befores[b], 60, 0), befores[b]);
            assert_true(steps(&s, 16, 60 + 33, 0) < 16);
            for (int i = 0; i < 300; i++)
                (void)step(&s, 60 + 33 + noise(&s));
            assert_true(fabs(s.c.usual.mean - 60) < 1);
            assert_true(s.c.usual.high < 70 && s.c.n_doubtful >= 290);
        }
}

/* A new channel may spend what the first days allow on its first minutes, and no more. */
static void test_quiet_while_it_learns(void **state)
{
    static struct stream s;
    int told = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        begin(&s, seed);
        told += steps(&s, 600, 60, 0) < 600;
    }
    assert_true(told <= 60); /* 0.1 ln(600 / 32) for each */
}

/* A small fault that begins early and lasts must not become what is usual without a word. */
static void test_an_early_fault_is_not_learned(void **state)
{
    static struct stream s;
    int silent = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        begin(&s, seed);
        channel_init(&s.c, NULL, 60, 1000);
        if (steps(&s, 60, 60, 0) < 60)
            continue;
        bool told = steps(&s, 400, 66, 0) < 400;
        silent += !told && s.c.usual.mean > 63;
        (void)steps(&s, 1000 - 400, 66, 0);
        assert_true(told || s.c.usual.mean < 63);
    }
    assert_int_equal(silent, 0);
}

/* A state in doubt that nothing has reported is reported when it becomes the usual one. */
static void test_no_state_is_learned_in_silence(void **state)
{
    static struct stream s;
    int told = 0;
    (void)state;
    begin(&s, 3);
    (void)steps(&s, 1000, 60, 0);
    s.c.wanted = 1e-300; /* nothing is beyond the target */
    for (int i = 0; i < 4000; i++)
        told += step(&s, 66 + noise(&s));
    assert_int_equal(told, 1);
    assert_true(fabs(s.c.usual.mean - 66) < 1);
}

/* Impossible values do no lasting harm. */
static void test_wild_values(void **state)
{
    static struct stream s;
    (void)state;
    begin(&s, 8);
    (void)steps(&s, 500, 0, 0);
    assert_true(step(&s, 1e300));
    (void)step(&s, -1e300);
    for (int i = 0; i < 3000; i++)
        (void)step(&s, noise(&s));
    assert_true(s.last.expected > s.last.target && isfinite(s.last.z));
}

/* ---- the channels together ---- */

enum { CHANNELS = 8, ROWS = 600 };

static void row_of(struct stream *s, double row[CHANNELS], double shift)
{
    for (int i = 0; i < CHANNELS; i++)
        row[i] = noise(s) + (i % 2 ? shift : -shift);
}

/* Every channel is off by one deviation, which is not unusual for a single one. */
static void test_a_small_shift_of_many(void **state)
{
    static struct stream s;
    static double rows[ROWS][CHANNELS];
    struct joint *j, *copy;
    struct err e = {0};
    uint32_t worst;
    int at = 0;
    (void)state;
    s.seed = 9;
    for (int i = 0; i < ROWS; i++)
        row_of(&s, rows[i], 0);
    assert_int_equal(joint_create(&j, CHANNELS, &e), 0);
    assert_int_equal(joint_learn(j, rows[0], ROWS, &e), 0);
    assert_true(joint_facts(j)->window == 240 && joint_facts(j)->rows == ROWS);
    assert_int_equal(joint_copy(&copy, j, &e), 0);
    joint_destroy(j);
    for (int i = 0; i < 3000; i++) {
        row_of(&s, rows[0], 0);
        assert_true(joint_step(copy, rows[0], 86400, &worst) > WANTED);
    }
    for (; at < 600; at++) {
        row_of(&s, rows[0], 1);
        if (joint_step(copy, rows[0], 86400, &worst) <= WANTED)
            break;
    }
    assert_true(at < 600);
    joint_destroy(copy);
}

/* 0.005 deviations per step: the running means follow it, only its steadiness gives it away. */
static void test_a_slow_drift(void **state)
{
    static struct stream s;
    int found = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        begin(&s, seed);
        if (steps(&s, 3000, 0, 0) < 3000)
            continue; /* a false alarm: test_quiet counts those */
        found += steps(&s, 1600, 0, 0.005) < 1600 &&
                 (s.last.stat == CHANNEL_LONG || s.last.stat == CHANNEL_SLOW);
    }
    assert_true(found >= 7);
}

/* The fast detector hides nothing that the precise one would have reported. */
static void test_the_cascade_says_the_same(void **state)
{
    static struct stream fast, all;
    uint32_t checked = 0, n = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        begin(&fast, seed);
        begin(&all, seed);
        all.c.always = true;
        for (int i = 0; i < 6000; i++) {
            double level = i < 2000 ? 0 : i < 3000 ? 3 : i < 4000 ? 0.003 * (i - 3000) : 0;
            double size = i > 5000 && i < 5500 ? 3 : 1, v = level + size * noise(&fast);
            assert_int_equal(step(&fast, v), step(&all, v));
            assert_true(fast.last.expected == all.last.expected || !fast.last.ready);
            assert_true(all.last.checked || !all.last.ready);
            checked += i < 2000 && fast.last.checked;
            n += i < 2000;
        }
    }
    assert_true(checked > 0 && checked < n / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quiet),
        cmocka_unit_test(test_a_spike_at_once),
        cmocka_unit_test(test_spikes_that_are_usual),
        cmocka_unit_test(test_a_shift_and_back),
        cmocka_unit_test(test_a_drift),
        cmocka_unit_test(test_a_slow_drift),
        cmocka_unit_test(test_the_cascade_says_the_same),
        cmocka_unit_test(test_a_new_set_point),
        cmocka_unit_test(test_more_noise),
        cmocka_unit_test(test_a_learned_profile),
        cmocka_unit_test(test_a_step_while_it_learns),
        cmocka_unit_test(test_quiet_while_it_learns),
        cmocka_unit_test(test_an_early_fault_is_not_learned),
        cmocka_unit_test(test_no_state_is_learned_in_silence),
        cmocka_unit_test(test_wild_values),
        cmocka_unit_test(test_a_small_shift_of_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
