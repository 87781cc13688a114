/* test_sim.c - cluster/sim: how the simulated cluster reacts when nodes fail, and that figures
 * add up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cluster/sim/sim_queue.h"
#include "cluster/sim/sim_rand.h"
#include "cluster/sim/sim_run.h"

static int run_seed(struct sim_result *r, const char *text, uint32_t seed, struct err *e)
{
    struct sim_scenario s;
    struct sim_opts o = {.seed = seed};
    int rc = sim_scenario_parse(&s, text, strlen(text), "f", e);
    if (rc == 0)
        rc = sim_run(r, &s, &o, e);
    sim_scenario_fini(&s);
    return rc;
}

static struct sim_result run(const char *text)
{
    struct sim_result r;
    struct err e = {0};
    if (run_seed(&r, text, 1, &e) < 0)
        fail_msg("%s", e.msg);
    return r;
}

#define NODES "nodes: {class: n, count: 4, memory: 1GiB, bandwidth: 10GB/s, zones: [a, b]}\n"
#define MODEL                                                                                      \
    "models: {name: m, memory: 400MiB, bytes: 100MiB, min: 2, spread: yes, budget: 3s, "           \
    "tokens: 20, arrivals: {rate: 2/s, steady: yes}}\n"

static void test_a_quiet_cluster(void **state)
{
    (void)state;
    struct sim_result r = run("duration: 10m\nwarmup: 1m\n" NODES MODEL);
    assert_in_range(r.all.n_requests, 1070, 1080);
    assert_int_equal(r.all.n_available, r.all.n_requests - r.all.n_open);
    assert_int_equal(r.all.n_on_time, r.all.n_requests - r.all.n_open);
    assert_int_equal(r.n_loads + r.n_unloads + r.n_events, 0); /* after the warm-up */
    assert_int_equal(r.all.n_ready, 2);
    assert_true(r.all.below_min_s == 0);
    /* 20 tokens at 10 GB/s / 100 MiB: about 210 ms. */
    assert_true(r.all.p50_ms > 180 && r.all.p50_ms < 260);
    assert_true(r.memory_mean > 0.19 && r.memory_mean < 0.2);
    sim_result_fini(&r);
}

static void test_a_crash_moves_requests_and_is_repaired(void **state)
{
    (void)state;
    struct sim_result r =
        run("duration: 30m\nnodes: {class: n, count: 3, memory: 1GiB, bandwidth: 2GB/s}\n" MODEL
            "events: [{at: 5m, do: crash, for: 2m}, {at: 10m, do: crash, for: 2m},\n"
            "         {at: 15m, do: crash, for: 2m}, {at: 20m, do: crash, for: 2m}]\n");
    assert_int_equal(r.n_churn[SIM_CRASH], 4);
    assert_int_equal(r.n_churn[SIM_JOIN], 4);
    assert_int_equal(r.n_nodes_end, 3);
    assert_int_equal(r.all.n_ready, 2);
    assert_int_equal(r.all.n_available, r.all.n_requests - r.all.n_open); /* one is always left */
    assert_true(r.all.n_moved > 0);
    assert_in_range(r.n_replaced, 1, 4);
    /* Detected after 3 s, loaded in 1 s and 400 MiB at 200 MB/s. */
    assert_true(r.all.below_min_s > 5 && r.all.below_min_s < 4 * 10);
    sim_result_fini(&r);
}

static void test_a_zone_that_is_cut_off(void **state)
{
    (void)state;
    struct sim_result r =
        run("duration: 20m\n" NODES MODEL "events: [{at: 5m, do: partition, zone: a, for: 5m}]\n");
    assert_int_equal(r.n_churn[SIM_PARTITION], 1);
    assert_int_equal(r.all.n_available, r.all.n_requests - r.all.n_open); /* b answers */
    assert_int_equal(r.n_loads, 1);                                       /* replaced in b */
    assert_int_equal(r.n_unloads, 1); /* and one too many once a is back */
    assert_int_equal(r.all.n_ready, 2);
    sim_result_fini(&r);
}

static void test_a_drained_node_loses_nothing(void **state)
{
    (void)state;
    struct sim_result r =
        run("duration: 20m\nnodes: {class: n, count: 2, memory: 1GiB, bandwidth: 10GB/s}\n"
            "models: {name: m, memory: 400MiB, budget: 2s, arrivals: {rate: 1/s, steady: yes}}\n"
            "events: [{at: 5m, do: drain}, {at: 6m, do: drain}]\n");
    assert_int_equal(r.n_churn[SIM_DRAIN], 2);
    assert_int_equal(r.all.n_moved, 0);
    assert_true(r.all.below_min_s == 0);
    assert_int_equal(r.all.n_available, r.all.n_requests - r.all.n_open);
    assert_non_null(strstr(r.last_gap, "m: stays on n-")); /* both are drained: no target */
    sim_result_fini(&r);
}

static void test_the_autoscaler_follows_the_load(void **state)
{
    (void)state;
    struct sim_result r =
        run("duration: 90m\nnodes: {class: n, count: 12, memory: 1GiB, bandwidth: 10GB/s}\n"
            "models:\n"
            " - {name: m, memory: 400MiB, bytes: 100MiB, min: 1, max: 10, budget: 1s, tokens: 20,\n"
            "    arrivals: {rate: 2/s}, autoscale: {}}\n"
            " - {name: idle, memory: 100MiB, min: 0, max: 1, budget: 20s, arrivals: {rate: 2/h},\n"
            "    autoscale: {idle: 2m}}\n"
            "events: [{at: 20m, do: spike, model: m, factor: 10, for: 20m}]\n");
    assert_true(r.models[0].n_up >= 2 && r.models[0].n_down >= 1);
    assert_in_range(r.models[0].n_ready, 1, 2); /* scaled down again */
    assert_true(r.n_from_zero >= 1 && r.n_to_zero >= 1);
    assert_int_equal(r.models[1].n_available, r.models[1].n_requests - r.models[1].n_open);
    sim_result_fini(&r);
}

/* A request for a model that does not fit is never answered, and the reason is reported. */
static void test_a_model_without_a_place(void **state)
{
    (void)state;
    struct sim_result r =
        run("duration: 5m\n" NODES "models: {name: m, memory: 2GiB, arrivals: {rate: 1/s}}\n");
    assert_int_equal(r.all.n_available + r.all.n_on_time, 0);
    assert_true(r.all.n_requests > 100 && r.all.n_open < 5);
    assert_string_equal(r.last_gap, "m: 0 of 1 replicas: needs 2.0 GiB, largest node has 1.0 GiB; "
                                    "nodes: 4 too small");
    sim_result_fini(&r);
}

static const char churny[] =
    "duration: 1h\nnodes: {class: n, count: 20, memory: 2GiB, bandwidth: 10GB/s, variation: 30%, "
    "zones: [a, b, c],\n  crash: {every: 1h, for: 2m}, leave: {every: 2h, for: 5m}, slow: {every: "
    "1h, for: 5m}}\nmodels:\n - {name: m, copies: 6, memory: 500MiB, bytes: 100MiB, min: 2, max: "
    "4, spread: yes, budget: 5s, arrivals: {rate: 1/s, swing: 50%, period: 30m}, autoscale: {}}\n";

static void same_row(const struct sim_row *a, const struct sim_row *b)
{
    assert_int_equal(a->n_requests, b->n_requests);
    assert_int_equal(a->n_available, b->n_available);
    assert_int_equal(a->n_on_time, b->n_on_time);
    assert_int_equal(a->n_moved, b->n_moved);
    assert_int_equal(a->n_up + a->n_down, b->n_up + b->n_down);
    assert_true(a->p50_ms == b->p50_ms && a->p99_ms == b->p99_ms);
    assert_true(a->below_min_s == b->below_min_s);
}

static void test_the_seed_decides_everything(void **state)
{
    struct sim_result a, b, c;
    struct err e = {0};
    (void)state;
    assert_int_equal(run_seed(&a, churny, 5, &e), 0);
    assert_int_equal(run_seed(&b, churny, 5, &e), 0);
    assert_int_equal(run_seed(&c, churny, 6, &e), 0);
    assert_int_equal(a.n_models, b.n_models);
    for (uint32_t i = 0; i < a.n_models; i++)
        same_row(&a.models[i], &b.models[i]);
    same_row(&a.all, &b.all);
    assert_memory_equal(a.n_churn, b.n_churn, sizeof(a.n_churn));
    assert_int_equal(a.n_loads, b.n_loads);
    assert_int_equal(a.n_moves, b.n_moves);
    assert_int_equal(a.n_plans, b.n_plans);
    assert_true(a.memory_mean == b.memory_mean);
    assert_true(a.all.n_requests != c.all.n_requests);
    assert_true(a.n_events > 20 && a.n_replaced > 0);
    sim_result_fini(&a);
    sim_result_fini(&b);
    sim_result_fini(&c);
}

static bool stop(void *ctx, double part, uint32_t n_nodes, uint64_t n_plans)
{
    (void)n_nodes, (void)n_plans;
    *(double *)ctx = part;
    return part > 0.5;
}

static void test_a_run_can_be_stopped(void **state)
{
    struct sim_scenario s;
    struct sim_result r;
    struct err e = {0};
    double part = 0;
    struct sim_opts o = {.seed = 1, .progress = stop, .progress_ctx = &part};
    (void)state;
    assert_int_equal(sim_scenario_parse(&s, churny, strlen(churny), "f", &e), 0);
    assert_int_equal(sim_run(&r, &s, &o, &e), SHOAL_ECANCELLED);
    assert_true(part > 0.5 && part < 0.9);
    sim_scenario_fini(&s);
}

static void test_failed_allocations_are_errors(void **state)
{
    static const char text[] = "duration: 3m\n" NODES MODEL;
    (void)state;
    for (uint64_t n = 1; n < 3000; n += n < 200 ? 1 : 37) {
        struct sim_result r;
        struct err e = {0};
        uint64_t before = mem_calls();
        mem_fail_at(n);
        int rc = run_seed(&r, text, 1, &e);
        mem_fail_at(0);
        bool failed = mem_calls() - before >= n;
        if (rc == 0)
            sim_result_fini(&r);
        if (failed)
            assert_int_equal(rc, SHOAL_ENOMEM);
        if (!failed) {
            assert_int_equal(rc, 0);
            return;
        }
    }
    fail_msg("more allocations than expected");
}

static void test_events_come_in_order(void **state)
{
    struct sim_queue q = {0};
    struct sim_item it, last = {0};
    struct sim_rand r = sim_rand_make(1, 2, 3);
    (void)state;
    for (uint32_t i = 0; i < 5000; i++)
        sim_queue_push(&q, sim_rand_below(&r, 100), 0, i, 0);
    for (uint32_t i = 0; i < 5000; i++) {
        assert_true(sim_queue_pop(&q, &it));
        assert_true(i == 0 || it.at_us > last.at_us ||
                    (it.at_us == last.at_us && it.what > last.what));
        last = it;
    }
    assert_false(sim_queue_pop(&q, &it));
    sim_queue_fini(&q);
}

static void test_random_numbers(void **state)
{
    struct sim_rand r = sim_rand_make(1, 1, 1);
    double sum = 0, squares = 0;
    uint32_t n = 200000, below[7] = {0};
    (void)state;
    for (uint32_t i = 0; i < n; i++) {
        double x = sim_rand_exp(&r);
        sum += x;
        squares += x * x;
        below[sim_rand_below(&r, 7)]++;
    }
    assert_true(sum / n > 0.99 && sum / n < 1.01);         /* mean 1 */
    assert_true(squares / n > 1.95 && squares / n < 2.05); /* variance 1 */
    for (int i = 0; i < 7; i++)
        assert_in_range(below[i], n / 7 - 1000, n / 7 + 1000);
    assert_true(sim_rand_next(&r) != sim_rand_next(&r));
    r = sim_rand_make(42, 0, 0); /* the same numbers on every machine */
    struct sim_rand again = sim_rand_make(42, 0, 0);
    assert_int_equal(sim_rand_next(&r), sim_rand_next(&again));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_quiet_cluster),
        cmocka_unit_test(test_a_crash_moves_requests_and_is_repaired),
        cmocka_unit_test(test_a_zone_that_is_cut_off),
        cmocka_unit_test(test_a_drained_node_loses_nothing),
        cmocka_unit_test(test_the_autoscaler_follows_the_load),
        cmocka_unit_test(test_a_model_without_a_place),
        cmocka_unit_test(test_the_seed_decides_everything),
        cmocka_unit_test(test_a_run_can_be_stopped),
        cmocka_unit_test(test_failed_allocations_are_errors),
        cmocka_unit_test(test_events_come_in_order),
        cmocka_unit_test(test_random_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
