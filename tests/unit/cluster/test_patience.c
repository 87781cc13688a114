/* test_patience.c - when to give up on a request, in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/patience.h"

#define S 1000000000ull /* a second */

static struct patience p;
static uint64_t now;

static void begin(uint64_t deadline_ns)
{
    now = 100 * S;
    patience_init(&p, 10000, 300000, deadline_ns, now);
}

/* A replica works on it this long, and fails. */
static void run_and_fail(uint64_t ns, enum patience_failure how, uint32_t n_ended)
{
    patience_asked(&p, now);
    now += ns;
    patience_failed(&p, how, n_ended);
}

static enum patience_verdict judge(enum replica_found found)
{
    return patience_judge(&p, found, now);
}

static void test_being_moved_counts_for_nothing(void **state)
{
    (void)state;
    begin(0);
    patience_piece(&p, now);
    for (int i = 0; i < 200; i++) { /* 200 replicas fall silent, for a second each */
        run_and_fail(S, PATIENCE_MOVED, 0);
        assert_int_equal(judge(REPLICA_FOUND), PATIENCE_GO_ON);
        assert_int_equal(judge(REPLICA_LATER), PATIENCE_GO_ON);
        patience_waits(&p, now);
        now += S / 50;
        assert_int_equal(judge(REPLICA_LATER), PATIENCE_GO_ON);
    }
}

static void test_it_waits_for_a_replica_only_so_long(void **state)
{
    (void)state;
    for (int begun = 0; begun < 2; begun++) {
        begin(0);
        if (begun)
            patience_piece(&p, now);
        run_and_fail(S, PATIENCE_MOVED, 0);
        patience_waits(&p, now);
        now += 6 * S;
        assert_int_equal(judge(REPLICA_LATER), PATIENCE_GO_ON);
        run_and_fail(60 * S, PATIENCE_MOVED, 0); /* this time does not count */
        patience_waits(&p, now);
        now += 4 * S - 1;
        assert_int_equal(judge(REPLICA_LATER), PATIENCE_GO_ON);
        now += 1;
        assert_int_equal(judge(REPLICA_LATER), PATIENCE_ALONE);
        assert_int_equal(judge(REPLICA_FOUND), PATIENCE_GO_ON); /* one has just arrived */
        patience_piece(&p, now);
        assert_int_equal(judge(REPLICA_LATER), PATIENCE_GO_ON);
    }
}

/* Not while replicas work on it: only what it waits for one counts. */
static void test_any_version_after_a_quarter(void **state)
{
    (void)state;
    begin(0);
    assert_false(patience_any_version(&p, now));
    run_and_fail(60 * S, PATIENCE_MOVED, 0);
    assert_false(patience_any_version(&p, now));
    patience_waits(&p, now);
    now += 2 * S;
    run_and_fail(60 * S, PATIENCE_MOVED, 0);
    patience_waits(&p, now);
    now += S / 2 - 1;
    assert_false(patience_any_version(&p, now));
    now += 1;
    assert_true(patience_any_version(&p, now));
    patience_piece(&p, now);
    assert_false(patience_any_version(&p, now));
}

static void test_without_time_to_wait_it_looks_once_more(void **state)
{
    (void)state;
    now = S;
    patience_init(&p, 0, 0, 0, now);
    run_and_fail(S, PATIENCE_MOVED, 0);
    assert_int_equal(judge(REPLICA_LATER), PATIENCE_GO_ON);
    patience_waits(&p, now);
    now += S / 50;
    assert_int_equal(judge(REPLICA_LATER), PATIENCE_ALONE);
}

static void test_nothing_for_the_total_time(void **state)
{
    (void)state;
    begin(0);
    for (int i = 0; i < 29; i++) {
        run_and_fail(10 * S, PATIENCE_MOVED, 0);
        assert_int_equal(judge(REPLICA_FOUND), PATIENCE_GO_ON);
    }
    patience_piece(&p, now); /* starts again from here */
    for (int i = 0; i < 29; i++) {
        run_and_fail(10 * S, PATIENCE_MOVED, 0);
        assert_int_equal(judge(REPLICA_FOUND), PATIENCE_GO_ON);
    }
    run_and_fail(10 * S, PATIENCE_MOVED, 0);
    assert_int_equal(judge(REPLICA_FOUND), PATIENCE_FRUITLESS);
}

static void test_a_deadline_is_the_requests_own(void **state)
{
    (void)state;
    begin(105 * S);
    patience_piece(&p, now);
    now = 105 * S - 1;
    assert_false(patience_late(&p, now));
    assert_int_equal(judge(REPLICA_FOUND), PATIENCE_GO_ON);
    now++;
    assert_true(patience_late(&p, now));
    assert_int_equal(judge(REPLICA_FOUND), PATIENCE_LATE);
}

static void test_what_refuses_is_believed_until_a_piece_came(void **state)
{
    (void)state;
    begin(0);
    assert_int_equal(judge(REPLICA_NONE), PATIENCE_REFUSED);
    assert_int_equal(judge(REPLICA_UNHEARD), PATIENCE_REFUSED);
    assert_int_equal(judge(REPLICA_LATER), PATIENCE_GO_ON); /* one may arrive */
    run_and_fail(S, PATIENCE_REFUSED_IT, 0);
    assert_int_equal(judge(REPLICA_FOUND), PATIENCE_GO_ON); /* another one may take it */
    assert_int_equal(judge(REPLICA_LATER), PATIENCE_REFUSED);
    patience_piece(&p, now);
    run_and_fail(S, PATIENCE_REFUSED_IT, 0);
    assert_int_equal(judge(REPLICA_LATER), PATIENCE_GO_ON);
    assert_int_equal(judge(REPLICA_NONE), PATIENCE_GO_ON); /* their names were forgotten */
}

static void test_replicas_that_fail_by_themselves(void **state)
{
    (void)state;
    begin(0);
    for (int i = 0; i < 3; i++) {
        patience_piece(&p, now);
        run_and_fail(S, PATIENCE_FAILED_ITSELF, 0);
        assert_int_equal(judge(REPLICA_FOUND), PATIENCE_GO_ON);
    }
    run_and_fail(S, PATIENCE_FAILED_ITSELF, 0);
    assert_int_equal(judge(REPLICA_FOUND), PATIENCE_WRONG);
}

static void test_a_request_that_ends_its_replicas(void **state)
{
    static const struct {
        uint32_t n_ended; /* requests that end together; 0: not known */
        int allowed;      /* deaths */
    } cases[] = {{1, 7}, {2, 15}, {10, 79}, {0, 31}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin(0);
        for (int n = 0; n < cases[i].allowed; n++) {
            run_and_fail(S / 10, PATIENCE_DIED, cases[i].n_ended);
            assert_int_equal(judge(REPLICA_FOUND), PATIENCE_GO_ON);
        }
        struct patience alive = p;
        run_and_fail(S / 10, PATIENCE_DIED, cases[i].n_ended);
        assert_int_equal(judge(REPLICA_FOUND), PATIENCE_DEADLY);
        p = alive; /* a request that makes progress is not the cause */
        patience_piece(&p, now);
        run_and_fail(S / 10, PATIENCE_DIED, cases[i].n_ended);
        assert_int_equal(judge(REPLICA_FOUND), PATIENCE_GO_ON);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_being_moved_counts_for_nothing),
        cmocka_unit_test(test_it_waits_for_a_replica_only_so_long),
        cmocka_unit_test(test_any_version_after_a_quarter),
        cmocka_unit_test(test_without_time_to_wait_it_looks_once_more),
        cmocka_unit_test(test_nothing_for_the_total_time),
        cmocka_unit_test(test_a_deadline_is_the_requests_own),
        cmocka_unit_test(test_what_refuses_is_believed_until_a_piece_came),
        cmocka_unit_test(test_replicas_that_fail_by_themselves),
        cmocka_unit_test(test_a_request_that_ends_its_replicas)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
