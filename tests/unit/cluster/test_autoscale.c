/* test_autoscale.c - cluster/placement/autoscale.h: traces of load, and how many replicas follow.
 *
 * The model of the replicas: each answers 10 requests/s and is busy in proportion; what exceeds
 * that waits; a new replica is ready 20 s after it is wanted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/placement/autoscale.h"

#define STEP_MS 5000u
#define CAPACITY 10.0
#define LOAD_MS 20000u

struct trace {
    struct autoscale_state state;
    struct autoscale_policy policy;
    uint64_t now_ms, ready_ms;
    uint32_t ready, pending;
    double queue;
    uint32_t n_up, n_down, most;
    struct autoscale_decision last;
};

static void begin(struct trace *t, uint32_t min, uint32_t max)
{
    *t = (struct trace){.policy = autoscale_policy_default(), .now_ms = 1000000, .ready = min};
    t->policy.min = min;
    t->policy.max = max;
    autoscale_start(&t->state, min, t->now_ms);
}

/* One sample at a rate of requests. */
static void sample(struct trace *t, double rate)
{
    t->now_ms += STEP_MS;
    if (t->pending && t->now_ms >= t->ready_ms) {
        t->ready = t->pending;
        t->pending = 0;
    }
    double can = t->ready * CAPACITY * STEP_MS / 1000, work = rate * STEP_MS / 1000 + t->queue;
    double done = work < can ? work : can;
    t->queue = work - done;
    struct autoscale_signal in = {.now_ms = t->now_ms,
                                  .ready = t->ready,
                                  .cpu = can > 0 ? done / can : -1,
                                  .queue = t->queue,
                                  .arrivals_per_s = rate,
                                  .capacity_per_s = CAPACITY};
    t->last = autoscale_decide(&t->state, &t->policy, &in);
    assert_int_equal(t->last.replicas, t->state.wanted);
    assert_in_range(t->last.replicas, t->policy.min, t->policy.max);
    assert_true(t->last.reason[0] != '\0');
    t->n_up += t->last.change == AUTOSCALE_UP;
    t->n_down += t->last.change == AUTOSCALE_DOWN;
    t->most = t->last.replicas > t->most ? t->last.replicas : t->most;
    if (t->last.replicas < t->ready) {
        t->ready = t->last.replicas;
    } else if (t->last.change == AUTOSCALE_UP) {
        t->pending = t->last.replicas;
        t->ready_ms = t->now_ms + LOAD_MS;
    }
}

static void run(struct trace *t, double from, double to, uint32_t seconds)
{
    uint32_t n = seconds * 1000 / STEP_MS;
    for (uint32_t i = 0; i < n; i++)
        sample(t, from + (to - from) * i / n);
}

static void test_a_step_is_followed_and_then_quiet(void **state)
{
    struct trace t;
    (void)state;
    begin(&t, 1, 20);
    run(&t, 5, 5, 600);
    assert_int_equal(t.n_up + t.n_down, 0); /* 50 % of 70 %: one, the minimum, is enough */
    run(&t, 60, 60, 300);
    assert_true(t.state.wanted >= 9); /* 60 / (10 * 0.7) */
    uint32_t ups = t.n_up;
    assert_in_range(ups, 2, 5);
    run(&t, 60, 60,
        900); /* the queue is empty: it settles at what the rate needs, and stays there */
    assert_in_range(t.state.wanted, 8, 9);
    assert_true(t.queue == 0);
    uint32_t changes = t.n_up + t.n_down;
    run(&t, 60, 60, 3600);
    assert_int_equal(t.n_up + t.n_down, changes);
}

static void test_a_ramp_is_followed(void **state)
{
    struct trace t;
    (void)state;
    begin(&t, 2, 50);
    run(&t, 10, 200, 3600);
    assert_in_range(t.state.wanted, 27, 32);
    assert_true(t.queue < 2 * t.ready); /* it keeps up */
    assert_int_equal(t.n_down, 0);
    run(&t, 200, 10, 3600);
    run(&t, 10, 10, 600);
    assert_int_equal(t.state.wanted, 2);
}

static void test_a_spike_does_not_make_it_flap(void **state)
{
    struct trace t;
    (void)state;
    begin(&t, 2, 20);
    run(&t, 10, 10, 600);
    uint32_t ups = 0;
    for (int i = 0; i < 8; i++) { /* every two minutes, within the delay before shrinking */
        run(&t, 80, 80, 20);
        run(&t, 10, 10, 100);
        if (i == 1)
            ups = t.n_up;
    }
    /* The first spikes leave a queue; then it keeps enough for one: 80 / (10 * 0.7). */
    assert_true(ups > 0 && t.n_up == ups);
    assert_int_equal(t.n_down, 1);
    assert_int_equal(t.state.wanted, 12);
    run(&t, 10, 10, 1200);
    assert_int_equal(t.state.wanted, 2);
    assert_int_equal(t.n_down, 2);
}

static void test_noise_changes_nothing(void **state)
{
    struct trace t;
    (void)state;
    begin(&t, 3, 20);
    for (int i = 0; i < 1000; i++)
        sample(&t, 20 + i % 3);
    assert_int_equal(t.n_up + t.n_down, 0);
}

static void test_idle_models_go_and_come_back(void **state)
{
    struct trace t;
    (void)state;
    begin(&t, 0, 4);
    t.policy.idle_ms = 120000;
    autoscale_start(&t.state, 1, t.now_ms);
    t.ready = 1;
    run(&t, 1, 1, 600);
    assert_int_equal(t.state.wanted, 1);
    run(&t, 0, 0, 110);
    assert_int_equal(t.state.wanted, 1);
    run(&t, 0, 0, 30);
    assert_int_equal(t.state.wanted, 0);
    run(&t, 0, 0, 600);
    assert_int_equal(t.state.wanted, 0);
    assert_string_equal(t.last.reason, "idle");
    sample(&t, 0.2);
    assert_int_equal(t.state.wanted, 1);
    assert_string_equal(t.last.reason, "a request came");
    /* Without an idle time a minimum of 0 keeps one replica. */
    begin(&t, 0, 4);
    autoscale_start(&t.state, 1, t.now_ms);
    t.ready = 1;
    run(&t, 0, 0, 7200);
    assert_int_equal(t.state.wanted, 1);
}

static void test_each_signal_counts(void **state)
{
    static const struct {
        struct autoscale_signal in;
        uint32_t want;
        const char *reason;
    } cases[] = {
        {{.ready = 2, .cpu = 0.95}, 3, "cpu at 95 %, target 70 %"},
        {{.ready = 2, .cpu = 0.1, .queue = 30}, 4, "30 requests wait, target 2 per replica"},
        {{.ready = 2, .cpu = 0.1, .p95_ms = 900, .budget_ms = 500},
         4,
         "p95 900 ms, target 400 of 500 ms"},
        {{.ready = 2, .cpu = 0.1, .arrivals_per_s = 21, .capacity_per_s = 10},
         3,
         "21 requests/s, a replica can answer 10"},
        {{.ready = 2, .cpu = -1, .p95_ms = 100, .budget_ms = 500}, 2, NULL}, /* no information */
        {{.ready = 2, .cpu = 0.0 / 0.0, .queue = -5, .p95_ms = 1e300}, 2, NULL},
        {{.ready = 2, .cpu = 0.72}, 2, NULL},                        /* within the tolerance */
        {{.ready = 0, .cpu = -1, .queue = 9}, 4, "9 requests wait"}, /* nothing is ready */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct autoscale_policy p = autoscale_policy_default();
        struct autoscale_state s;
        struct autoscale_signal in = cases[i].in;
        p.max = 10;
        in.now_ms = 5000;
        autoscale_start(&s, 2, 0);
        struct autoscale_decision d = autoscale_decide(&s, &p, &in);
        if (d.replicas != cases[i].want || (cases[i].reason && !strstr(d.reason, cases[i].reason)))
            fail_msg("case %zu: %u, %s", i, d.replicas, d.reason);
    }
}

static void test_limits_and_cool_down(void **state)
{
    struct autoscale_policy p = autoscale_policy_default();
    struct autoscale_state s;
    struct autoscale_signal in = {.now_ms = 1000, .ready = 4, .cpu = 1, .queue = 1000};
    (void)state;
    p.max = 100;
    autoscale_start(&s, 4, 0);
    assert_int_equal(autoscale_decide(&s, &p, &in).replicas, 8); /* doubles at most */
    in.now_ms += 5000;
    struct autoscale_decision d = autoscale_decide(&s, &p, &in);
    assert_int_equal(d.replicas, 8);
    assert_non_null(strstr(d.reason, "cool-down"));
    in.now_ms += 10000;
    assert_int_equal(autoscale_decide(&s, &p, &in).replicas, 16);
    p.max = 10;
    d = autoscale_decide(&s, &p, &in);
    assert_int_equal(d.replicas, 10);
    assert_string_equal(d.reason, "between 1 and 10 are allowed");
    p.min = 12;
    assert_int_equal(autoscale_decide(&s, &p, &in).replicas, 12); /* the minimum wins */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_is_followed_and_then_quiet),
        cmocka_unit_test(test_a_ramp_is_followed),
        cmocka_unit_test(test_a_spike_does_not_make_it_flap),
        cmocka_unit_test(test_noise_changes_nothing),
        cmocka_unit_test(test_idle_models_go_and_come_back),
        cmocka_unit_test(test_each_signal_counts),
        cmocka_unit_test(test_limits_and_cool_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
