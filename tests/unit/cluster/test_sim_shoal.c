/* test_sim_shoal.c - the real code of a shoal under simulated time, network and disks.
 *
 * SEED=N runs that schedule; SCHEDULES=N as many as that, from the first or SEED on; STREAMS=0 or 1
 * only those with or without a control plane. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/log.h"
#include "cluster/sim/shoal/sim_shoal.h"

#define N_WHOLE 40u
#define N_STREAMS 1000u

static struct sim_shoal_counts run(bool streams, uint64_t n)
{
    const char *seed = getenv("SEED"), *many = getenv("SCHEDULES");
    const uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
    struct sim_shoal_counts c = {0};
    if (seed || many)
        n = many ? strtoull(many, NULL, 10) : 1;
    for (uint64_t i = 0; i < n; i++) {
        struct err e = {0};
        if (sim_shoal_run(first + i, streams, &c, &e) < 0)
            fail_msg("%s", e.msg);
    }
    printf("%llu schedules, %.0f simulated hours, %llu events: %llu terms of a controller, %llu "
           "crashes, %llu pauses, NATS lost its data %llu times and answered from the past %llu "
           "times; %llu changes, %llu updates done; %llu streams, %llu moved, %llu doubled, %llu "
           "failed, %llu tokens\n",
           (unsigned long long)c.n_schedules, c.seconds / 3600, (unsigned long long)c.n_events,
           (unsigned long long)c.n_terms, (unsigned long long)c.n_crashes,
           (unsigned long long)c.n_pauses, (unsigned long long)c.n_lost,
           (unsigned long long)c.n_stale, (unsigned long long)c.n_changes,
           (unsigned long long)c.n_rollouts, (unsigned long long)c.n_streams,
           (unsigned long long)c.n_moved, (unsigned long long)c.n_doubled,
           (unsigned long long)c.n_failed, (unsigned long long)c.n_tokens);
    return c;
}

static bool wants(const char *which)
{
    const char *only = getenv("STREAMS");
    return !only || only[0] == which[0];
}

static void test_streams(void **state)
{
    (void)state;
    if (!wants("1"))
        return;
    const struct sim_shoal_counts c = run(true, N_STREAMS);
    assert_true(c.n_moved > c.n_schedules / 2 && c.n_tokens > 50 * c.n_schedules);
}

static void test_whole_shoals(void **state)
{
    (void)state;
    if (!wants("0"))
        return;
    const struct sim_shoal_counts c = run(false, N_WHOLE);
    assert_true(c.n_terms >= c.n_schedules && c.n_changes >= c.n_schedules);
}

static void run_each(const uint64_t *seeds, size_t n, bool streams)
{
    for (size_t i = 0; i < n && !getenv("SEED") && !getenv("SCHEDULES"); i++) {
        struct sim_shoal_counts c = {0};
        struct err e = {0};
        if (sim_shoal_run(seeds[i], streams, &c, &e) < 0)
            fail_msg("%s", e.msg);
    }
}

/* Schedules in which a search has found something. */
static void test_found_before(void **state)
{
    static const uint64_t whole[] = {
        71,      485,     923, /* requests lost while all nodes doubted their version */
        3011368, 3038820, 3047008, 3060002, /* two states, of which members refused one for ever */
        5003627, 6000386, 3059474, 3006338, 8001468,
        802003841 /* an administrator began a second one while all who knew the first were away */};
    /* a request that a busy node had swallowed, for which nobody else was asked within a minute */
    static const uint64_t streams[] = {30006308, 30011553, 30020514, 722014670};
    (void)state;
    run_each(whole, sizeof(whole) / sizeof(whole[0]), false);
    run_each(streams, sizeof(streams) / sizeof(streams[0]), true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_streams),
                                       cmocka_unit_test(test_whole_shoals),
                                       cmocka_unit_test(test_found_before)};
    log_setup(getenv("SEED") && !getenv("SCHEDULES") ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR,
              LOG_FORMAT_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
