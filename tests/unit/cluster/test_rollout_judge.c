/* test_rollout_judge.c - whether a new version of a model is as good as the old one, at the limits
 * of each criterion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/control/desired.h"
#include "cluster/messages/node_state.h"
#include "cluster/rollout/rollout_judge.h"
#include "cluster/rollout/rollout_view.h"

static void test_verdicts(void **state)
{
    static const struct {
        struct desired_judge judge;
        struct rollout_figures from, to;
        enum rollout_verdict want;
        const char *text;
    } rows[] = {
        /* requests */
        {{.requests = 50}, {0}, {49, 0, 0}, ROLLOUT_WAIT, "49 of 50 requests so far"},
        {{.requests = 50},
         {100, 0, 2000},
         {50, 0, 1500},
         ROLLOUT_GOOD,
         "50 requests, 0.0 % failed, p95 1.5 ms (the old version: 0.0 %, 2.0 ms)"},
        {{0}, {0}, {0, 0, 0}, ROLLOUT_WAIT, "0 of 1 requests so far"},
        {{0},
         {0},
         {1, 0, 0},
         ROLLOUT_GOOD,
         "1 requests, 0.0 % failed, p95 0.0 ms (the old version: 0.0 %, 0.0 ms)"},
        /* errors: at most 10 of 1000 more than the old version, here 20 */
        {{.requests = 100, .errors = 10},
         {1000, 20, 0},
         {100, 3, 0},
         ROLLOUT_GOOD,
         "100 requests, 3.0 % failed, p95 0.0 ms (the old version: 2.0 %, 0.0 ms)"},
        {{.requests = 100, .errors = 10},
         {1000, 20, 0},
         {100, 4, 0},
         ROLLOUT_BAD,
         "4 of 100 requests failed (4.0 %; the old version: 2.0 %)"},
        /* so many that the rest cannot make up for it */
        {{.requests = 100, .errors = 10},
         {1000, 20, 0},
         {4, 4, 0},
         ROLLOUT_BAD,
         "4 of 4 requests failed (100.0 %; the old version: 2.0 %)"},
        {{.requests = 100, .errors = 10}, {1000, 20, 0}, {4, 3, 0}, ROLLOUT_WAIT, NULL},
        {{.requests = 100, .errors = 10}, {1000, 20, 0}, {400, 12, 0}, ROLLOUT_GOOD, NULL},
        {{.requests = 100, .errors = 10}, {1000, 20, 0}, {400, 13, 0}, ROLLOUT_BAD, NULL},
        /* only the old version's requests since the canary began count */
        {{.requests = 10, .base_requests = 900, .base_errors = 20},
         {1000, 20, 0},
         {10, 1, 0},
         ROLLOUT_BAD,
         "1 of 10 requests failed (10.0 %; the old version: 0.0 %)"},
        {{.requests = 10, .base_requests = 900, .base_errors = 10},
         {1000, 20, 0},
         {10, 1, 0},
         ROLLOUT_GOOD,
         NULL},
        /* a node was restarted: it counts from zero */
        {{.requests = 10, .base_requests = 900, .base_errors = 50},
         {100, 10, 0},
         {10, 1, 0},
         ROLLOUT_GOOD,
         NULL},
        {{.requests = 10, .base_requests = 100, .base_errors = 5},
         {100, 5, 0},
         {10, 0, 0},
         ROLLOUT_GOOD,
         "10 requests, 0.0 % failed, p95 0.0 ms (the old version: 0.0 %, 0.0 ms)"},
        {{.requests = 10, .base_requests = 100, .base_errors = 50},
         {200, 20, 0},
         {10, 2, 0},
         ROLLOUT_GOOD,
         NULL},
        /* latency */
        {{.requests = 1, .p95 = 150}, {9, 0, 1000}, {9, 0, 1500}, ROLLOUT_GOOD, NULL},
        {{.requests = 1, .p95 = 150},
         {9, 0, 1000},
         {9, 0, 1501},
         ROLLOUT_BAD,
         "the p95 is 1.5 ms; the old version: 1.0 ms"},
        {{.requests = 1, .p95 = 150}, {9, 0, 0}, {9, 0, 1501}, ROLLOUT_GOOD, NULL},
        {{.requests = 1}, {9, 0, 1000}, {9, 0, 9999}, ROLLOUT_GOOD, NULL},
        {{.requests = 10, .p95 = 150}, {9, 0, 1000}, {9, 0, 9999}, ROLLOUT_WAIT, NULL},
        /* scores, in thousandths plus one; at most 20 lower */
        {{.requests = 1, .score = 20, .labelled = true, .score_from = 901, .score_to = 881},
         {9, 0, 0},
         {9, 0, 0},
         ROLLOUT_GOOD,
         NULL},
        {{.requests = 1, .score = 20, .labelled = true, .score_from = 901, .score_to = 880},
         {9, 0, 0},
         {0, 0, 0},
         ROLLOUT_BAD,
         "87.9 % of the labelled inputs are right; the old version: 90.0 %"},
        {{.requests = 1, .labelled = true, .score_from = 901},
         {9, 0, 0},
         {9, 0, 0},
         ROLLOUT_WAIT,
         "the labelled inputs have not been scored yet"},
        {{.requests = 1, .labelled = true, .score_to = 901},
         {9, 0, 0},
         {9, 0, 0},
         ROLLOUT_WAIT,
         NULL},
        {{.requests = 1, .labelled = true, .score_from = 1, .score_to = 1},
         {9, 0, 0},
         {9, 0, 0},
         ROLLOUT_GOOD,
         NULL},
        {{.requests = 1, .score_from = 901}, {9, 0, 0}, {9, 0, 0}, ROLLOUT_GOOD, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[200] = "";
        enum rollout_verdict v =
            rollout_judge(&rows[i].judge, &rows[i].from, &rows[i].to, text, sizeof(text));
        if (v != rows[i].want || (rows[i].text && strcmp(text, rows[i].text) != 0))
            fail_msg("row %zu: %d, %s", i, (int)v, text);
    }
}

/* Figures of a version on all nodes; its latency is weighted by requests. */
static void test_figures(void **state)
{
    const struct node_model a = {.requests = 100, .errors = 3, .p95_us = 1000},
                            b = {.requests = 300, .errors = 1, .p95_us = 3000}, none = {0};
    struct rollout_place places[] = {
        {.from = {.held = &a}, .to = {.held = NULL}},
        {.from = {.held = &b}, .to = {.held = &none}},
        {.from = {.held = NULL}, .to = {.held = &none}},
    };
    const struct rollout_view v = {.places = places, .n = 3};
    struct rollout_figures from = {7, 7, 7}, to = {7, 7, 7};
    (void)state;
    rollout_judge_count(&from, &to, &v);
    assert_int_equal(from.requests, 400);
    assert_int_equal(from.errors, 4);
    assert_int_equal(from.p95_us, 2500);
    assert_int_equal(to.requests + to.errors + to.p95_us, 0);
    const struct node_model once = {.requests = 1, .p95_us = 5};
    places[2].to.held = &once; /* exactly */
    rollout_judge_count(&from, &to, &v);
    assert_int_equal(to.p95_us, 5);
    places[1].from.held = places[2].from.held = NULL;
    places[0].from.held = &once;
    rollout_judge_count(&from, &to, &v);
    assert_int_equal(from.p95_us, 5);
    places[2].to.held = &a;
    rollout_judge_count(&from, &to, &v);
    assert_int_equal(to.requests, 100);
    assert_int_equal(to.errors, 3);
    assert_int_equal(to.p95_us, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
