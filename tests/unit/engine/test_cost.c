/* test_cost.c - the cost model alone: what it learns, predicts, forgets and does not believe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/cost.h"
#include "support/golden_trace.h"

#define MS UINT64_C(1000000)
#define NOW UINT64_C(1000000000000)

static bool near(double a, double b)
{
    double off = a > b ? a - b : b - a;
    return off <= 1e-6 * (b > 1.0 ? b : 1.0);
}

static const struct cost_load idle = {.max_active = 4};

/* The process ran all the time. */
static void saw_step(struct cost *c, uint64_t now, uint64_t ns, uint32_t decoded,
                     uint32_t prefilled)
{
    cost_saw_step(c, now, (struct cost_time){ns, COST_RAN, 0.0}, decoded, prefilled);
}

static void saw_units(struct cost *c, uint64_t now, uint64_t ns, uint64_t units)
{
    cost_saw_units(c, now, (struct cost_time){ns, COST_RAN, 0.0}, units);
}

/* Steps of one task take 2 ms, a token of a prompt 0.1 ms, answers have 11 tokens. */
static void teach(struct cost *c, uint64_t now)
{
    saw_step(c, now, 2 * MS, 1, 0);
    saw_step(c, now, 10 * MS, 0, 100);
    cost_saw_answer(c, now, 11, true);
}

static void test_nothing_is_known_at_first(void **state)
{
    struct cost c = {0};
    const struct cost_request r = {.prompt_tokens = 1000, .max_tokens = 1000};
    (void)state;
    struct cost_estimate x = cost_predict(&c, &idle, &r, NOW);
    assert_false(x.known);
    assert_int_equal(cost_check(&x, NOW + 1, NOW, NULL), 0); /* so it is admitted */
    assert_int_equal(cost_check(&x, NOW, NOW, NULL), SHOAL_EDEADLINE);
    assert_int_equal(cost_check(&x, 0, NOW, NULL), 0);
    assert_int_equal(cost_expected_tokens(&c, 0, false), 1);
    assert_int_equal(cost_expected_tokens(&c, 7, false), 7);
}

static void test_a_request_alone(void **state)
{
    struct cost c = {0};
    struct cost_request r = {.prompt_tokens = 200};
    struct err e = {0};
    (void)state;
    teach(&c, NOW);
    struct cost_estimate x = cost_predict(&c, &idle, &r, NOW);
    assert_true(x.known);
    assert_true(near(x.first_ns, 20e6));
    assert_true(near(x.total_ns, 20e6 + 10 * 2e6)); /* the learned length */
    assert_true(near(x.alone_ns, x.total_ns));
    r.max_tokens = 5;
    assert_true(near(cost_predict(&c, &idle, &r, NOW).total_ns, 20e6 + 4 * 2e6));
    r.max_tokens = 1000; /* more than answers usually have */
    assert_true(near(cost_predict(&c, &idle, &r, NOW).total_ns, 40e6));
    r.ignore_end = true;
    assert_true(near(cost_predict(&c, &idle, &r, NOW).total_ns, 20e6 + 999 * 2e6));
    r = (struct cost_request){.prompt_tokens = 200, .cached_tokens = 150};
    assert_true(near(cost_predict(&c, &idle, &r, NOW).first_ns, 5e6));
    cost_saw_prompt(&c, NOW, 100, 50); /* half of a prompt is usually cached */
    r.cached_tokens = 0;
    x = cost_predict(&c, &idle, &r, NOW);
    assert_true(near(x.first_ns, 10e6));
    assert_int_equal(cost_check(&x, NOW + 30 * MS, NOW, &e), 0);
    assert_int_equal(cost_check(&x, NOW + 29 * MS, NOW, &e), SHOAL_EDEADLINE);
    assert_string_equal(e.msg, "needs about 30 ms, 29 ms remain");
    assert_int_equal(cost_check(&x, NOW + MS / 2, NOW, &e), SHOAL_EDEADLINE);
    assert_string_equal(e.msg, "needs about 30 ms, 0.5 ms remain");
}

static void test_what_is_ahead_counts(void **state)
{
    struct cost c = {0};
    const struct cost_request r = {.prompt_tokens = 100, .max_tokens = 10, .ignore_end = true};
    (void)state;
    teach(&c, NOW);
    struct cost_load l = {.max_active = 4, .n_active = 1, .decode_tokens = 50};
    /* an untried batch size is assumed to cost no more: one request has to try it */
    assert_true(near(cost_predict(&c, &l, &r, NOW).total_ns, 10e6 + 9 * 2e6));
    saw_step(&c, NOW, 3 * MS, 2, 0);
    saw_step(&c, NOW, 4 * MS, 4, 0);
    assert_true(near(cost_predict(&c, &l, &r, NOW).total_ns, 10e6 + 9 * 3e6));
    l.prompt_tokens = 30; /* of others */
    struct cost_estimate x = cost_predict(&c, &l, &r, NOW);
    assert_true(near(x.first_ns, 13e6));
    assert_true(near(x.alone_ns, 10e6 + 9 * 2e6));
    assert_int_equal(x.n_ahead, 1);
    l.prompt_tokens = 0;
    l.shared_chunk = 10; /* every 10 tokens of a prompt wait for a step of the others */
    assert_true(near(cost_predict(&c, &l, &r, NOW).first_ns, 10e6 + 10 * 3e6));
    /* 4 run and 3 wait: 4 must end before this one runs, each of 10 tokens, 4 at a time */
    l = (struct cost_load){.max_active = 4, .n_active = 4, .n_waiting = 3, .decode_tokens = 70};
    l.waiting_decode = 30;
    x = cost_predict(&c, &l, &r, NOW);
    assert_true(near(x.first_ns, 4 * 10 * 4e6 / 4 + 10e6));
    assert_true(near(x.total_ns, x.first_ns + 9 * 4e6));
    /* its own choices count like those of others */
    const struct cost_request eight = {
        .prompt_tokens = 100, .max_tokens = 10, .ignore_end = true, .n_choices = 8};
    assert_true(near(cost_predict(&c, &idle, &eight, NOW).total_ns, x.total_ns));
}

static void test_prompts_beside_answers(void **state)
{
    struct cost c = {0};
    double prefill, token;
    (void)state;
    saw_step(&c, NOW, 14 * MS, 2, 70); /* the parts cannot be separated: half each */
    cost_speed(&c, NOW, &prefill, &token);
    assert_true(near(prefill, 1e5) && near(token, 7e6));
    c = (struct cost){0};
    saw_step(&c, NOW, 2 * MS, 2, 0); /* one part is known: the other one gets the rest */
    saw_step(&c, NOW, 9 * MS, 2, 70);
    cost_speed(&c, NOW, &prefill, &token);
    assert_true(near(prefill, 1e5) && near(token, 2e6));
    saw_step(&c, NOW, 18 * MS, 2, 70); /* both twice as slow */
    cost_speed(&c, NOW, &prefill, &token);
    assert_true(near(prefill, 1.5e5) && near(token, 2e6 + 2e6 / 3));
    saw_step(&c, NOW, 2 * MS, 0, 3); /* a short prompt tells little */
    cost_speed(&c, NOW, &prefill, &token);
    assert_true(near(prefill, 1.5e5));
    c = (struct cost){0};
    saw_step(&c, NOW, 10 * MS, 0, 100);
    saw_step(&c, NOW, 9 * MS, 2, 70);
    cost_speed(&c, NOW, &prefill, &token);
    assert_true(near(prefill, 1e5) && near(token, 2e6));
    saw_step(&c, NOW, MS / 2, 2, 1000); /* faster than ever: neither part becomes free */
    cost_speed(&c, NOW, &prefill, &token);
    assert_true(prefill > 0.0 && token > 0.0);
}

/* One odd figure at the beginning does not stay; later ones count for an eighth. */
static void test_means(void **state)
{
    struct cost c = {0};
    double prefill, token;
    (void)state;
    saw_step(&c, NOW, 9 * MS, 1, 0);
    for (int i = 0; i < 7; i++)
        saw_step(&c, NOW, 2 * MS, 1, 0);
    cost_speed(&c, NOW, &prefill, &token);
    assert_true(near(token, 23e6 / 8));
    saw_step(&c, NOW, 3 * MS, 1, 0);
    cost_speed(&c, NOW, &prefill, &token);
    assert_true(near(token, 23e6 / 8 + 1e6 / 64));
    saw_step(&c, NOW, MS / 4, 1, 0); /* far less: what was known is wrong */
    cost_speed(&c, NOW, &prefill, &token);
    assert_true(near(token, 0.25e6));
}

/* An answer that was cut off had at least this many tokens. */
static void test_lengths(void **state)
{
    struct cost c = {0};
    (void)state;
    cost_saw_answer(&c, NOW, 40, false);
    assert_int_equal(cost_expected_tokens(&c, 0, false), 40);
    cost_saw_answer(&c, NOW, 8, false);
    assert_int_equal(cost_expected_tokens(&c, 0, false), 40);
    cost_saw_answer(&c, NOW, 8, true);
    assert_int_equal(cost_expected_tokens(&c, 0, false), 24);
    cost_saw_answer(&c, NOW, 0, true); /* as one token */
    assert_int_equal(cost_expected_tokens(&c, 0, false), 16);
    assert_int_equal(cost_expected_tokens(&c, 9, false), 9);
    assert_int_equal(cost_expected_tokens(&c, 90, true), 90);
}

/* After an overload, measured while everything was slow, an idle model is tried again. */
static void test_old_figures_are_forgotten_when_idle(void **state)
{
    struct cost c = {0};
    const struct cost_request r = {.prompt_tokens = 100, .max_tokens = 16};
    const struct cost_load busy = {.max_active = 4, .n_active = 3, .decode_tokens = 30};
    (void)state;
    saw_step(&c, NOW, 500 * MS, 1, 0);
    saw_step(&c, NOW, 600 * MS, 4, 0);
    saw_step(&c, NOW, 900 * MS, 0, 100);
    uint64_t soon = NOW + COST_FRESH_NS - MS, later = NOW + COST_FRESH_NS + MS;
    assert_true(cost_predict(&c, &idle, &r, soon).total_ns > 5e9);
    assert_false(cost_predict(&c, &idle, &r, later).known);
    /* a busy model is measured all the time: known figures count */
    assert_true(cost_predict(&c, &busy, &r, later).total_ns > 5e9);
    /* the one admitted request measures it, and old figures do not distort the new ones */
    saw_step(&c, later, 2 * MS, 1, 0);
    saw_step(&c, later, 10 * MS, 0, 100);
    assert_true(near(cost_predict(&c, &idle, &r, later).total_ns, 10e6 + 15 * 2e6));
}

/* In an overload only large batches are measured; they say nothing about a single request. */
static void test_large_batches_do_not_price_small_ones(void **state)
{
    struct cost c = {0};
    const struct cost_request r = {.prompt_tokens = 0, .max_tokens = 16};
    (void)state;
    saw_step(&c, NOW, 600 * MS, 4, 0);
    assert_false(cost_predict(&c, &idle, &r, NOW).known);
}

/* A batch size that was slow for a moment is tried again, although smaller ones keep the model
 * busy. */
static void test_a_slow_moment_does_not_keep_batches_small(void **state)
{
    struct cost c = {0};
    const struct cost_request r = {.prompt_tokens = 10, .max_tokens = 10, .ignore_end = true};
    const struct cost_load three = {.max_active = 4, .n_active = 3, .decode_tokens = 15};
    uint64_t now = NOW;
    (void)state;
    teach(&c, now);
    saw_step(&c, now, 3 * MS, 2, 0);
    saw_step(&c, now, 400 * MS, 4, 0);
    assert_true(cost_predict(&c, &three, &r, now).total_ns > 3e9);
    for (; now < NOW + COST_FRESH_NS + 10 * MS; now += 3 * MS)
        saw_step(&c, now, 3 * MS, 2, 0);
    /* at most twice the time of two tasks, however slow four once were */
    assert_true(near(cost_predict(&c, &three, &r, now).total_ns, 10 * 6e6));
}

/* What a larger batch costs more is remembered when its time is not: after a pause a model beside
 * busy programs would otherwise admit as many as it has places at the price of one. */
static void test_the_price_of_batches_is_relative(void **state)
{
    struct cost c = {0};
    const struct cost_request r = {.prompt_tokens = 0, .max_tokens = 10, .ignore_end = true};
    const struct cost_load three = {.max_active = 4, .n_active = 3, .decode_tokens = 15};
    const struct cost_load begun = {.max_active = 4, .n_waiting = 1};
    uint64_t now = NOW;
    (void)state;
    teach(&c, now);
    for (int i = 0; i < 8; i++)
        saw_step(&c, now, 5 * MS, 4, 0);
    now += 10 * COST_FRESH_NS;
    /* the first one waits for its first step: others pay what was known last */
    assert_true(near(cost_predict(&c, &begun, &r, now).total_ns, 10 * 2e6));
    saw_step(&c, now, 8 * MS, 1, 0); /* everything is four times as slow now */
    const double four = cost_predict(&c, &three, &r, now).total_ns;
    assert_true(four > 10 * 8e6 * 2.3 && four < 10 * 8e6 * 2.51); /* 2.5 times as long as one */
}

/* With others ahead the usual error is allowed for; alone it is not, so that no request starves.
 */
static void test_the_usual_error_is_allowed_for(void **state)
{
    const struct cost_estimate alone = {
        .known = true, .idle = true, .total_ns = 1e8, .alone_ns = 1e8, .error = 0.1};
    struct cost_estimate behind = alone;
    behind.idle = false;
    struct err e = {0};
    (void)state;
    behind.n_ahead = 2;
    assert_int_equal(cost_check(&alone, NOW + 100 * MS, NOW, &e), 0);
    assert_int_equal(cost_check(&behind, NOW + 119 * MS, NOW, &e), SHOAL_EDEADLINE);
    assert_string_equal(e.msg, "needs about 120 ms, 119 ms remain");
    assert_int_equal(cost_check(&behind, NOW + 121 * MS, NOW, &e), 0);
    behind.error = 9.0; /* but no more than a half */
    assert_int_equal(cost_check(&behind, NOW + 151 * MS, NOW, &e), 0);
}

/* Lengths differ: in a full model a long answer must fit, since others can use the slot. */
static void test_long_answers(void **state)
{
    struct cost c = {0};
    struct cost_request r = {.prompt_tokens = 10, .max_tokens = 100};
    const struct cost_load full = {.max_active = 4, .n_active = 4, .decode_tokens = 40};
    const struct cost_load room = {.max_active = 4, .n_active = 3, .decode_tokens = 30};
    struct err e = {0};
    (void)state;
    saw_step(&c, NOW, 2 * MS, 4, 0);
    for (uint32_t i = 0; i < 200; i++)
        cost_saw_answer(&c, NOW, i % 2 ? 10 : 30, true);
    const uint32_t usual = cost_expected_tokens(&c, 100, false);
    const uint32_t most = cost_longest_tokens(&c, 100, false);
    assert_in_range(usual, 19, 21);
    assert_in_range(most, 38, 42);
    assert_int_equal(cost_longest_tokens(&c, 25, false), 25);
    assert_int_equal(cost_longest_tokens(&c, 25, true), 25);
    struct cost_estimate x = cost_predict(&c, &full, &r, NOW);
    assert_true(x.long_ns - x.total_ns > 18 * 2e6 && x.long_ns - x.total_ns < 22 * 2e6);
    assert_int_equal(cost_check(&x, NOW + (uint64_t)x.long_ns - MS, NOW, &e), SHOAL_EDEADLINE);
    assert_int_equal(cost_check(&x, NOW + (uint64_t)x.long_ns + MS, NOW, &e), 0);
    x = cost_predict(&c, &room, &r, NOW);
    assert_true(near(x.long_ns, x.total_ns));
    /* The rest of an answer: as expected, then by the spread of lengths. */
    assert_int_equal(cost_remaining_tokens(&c, 4, usual, most), usual - 4);
    assert_in_range(cost_remaining_tokens(&c, 35, usual, most), 9, 11);
    assert_int_equal(cost_remaining_tokens(&c, 35, 36, 36), 1); /* known */
}

/* In a full model the time between tokens includes the prompts of others. */
static void test_the_pace_of_a_full_model(void **state)
{
    struct cost c = {0};
    const struct cost_request r = {.prompt_tokens = 100, .max_tokens = 11, .ignore_end = true};
    struct cost_load l = {.max_active = 4, .n_active = 4, .decode_tokens = 20};
    (void)state;
    teach(&c, NOW);
    saw_step(&c, NOW, 4 * MS, 4, 0);
    saw_step(&c, NOW, 14 * MS, 4, 100); /* 9 ms per token on average */
    struct cost_estimate x = cost_predict(&c, &l, &r, NOW);
    assert_true(near(x.total_ns - x.first_ns, 10 * 9e6));
    /* The running ones are half done: the first of them ends after a quarter of a whole answer. */
    l.decode_tokens = 22;
    x = cost_predict(&c, &l, &r, NOW);
    assert_true(near(x.first_ns, 11 * 9e6 / 4 + 10e6));
}

static void test_units_of_specialists(void **state)
{
    struct cost c = {0};
    const struct cost_request r = {.units = 10};
    struct cost_load l = {.batch_units = 100, .units = 100};
    (void)state;
    assert_false(cost_predict(&c, &l, &r, NOW).known);
    saw_units(&c, NOW, 5 * MS, 50);
    assert_true(near(cost_predict(&c, &l, &r, NOW).total_ns, 1e6)); /* joins the next batch */
    l.units = 101;
    struct cost_estimate x = cost_predict(&c, &l, &r, NOW);
    assert_true(near(x.total_ns, 11.1e6));
    assert_true(near(x.alone_ns, 1e6));
    l.units = 0;
    assert_false(cost_predict(&c, &l, &r, NOW + COST_FRESH_NS + MS).known);
}

static void test_the_error_is_tracked(void **state)
{
    struct cost c = {0};
    const struct cost_request r = {.prompt_tokens = 1};
    (void)state;
    cost_saw_total(&c, NOW, 0.0, 5); /* was not predicted */
    assert_true(cost_predict(&c, &idle, &r, NOW).error == 0.0);
    cost_saw_total(&c, NOW, 100.0, 150);
    assert_true(near(cost_predict(&c, &idle, &r, NOW).error, 0.5));
    cost_saw_total(&c, NOW, 100.0, 90);
    assert_true(near(cost_predict(&c, &idle, &r, NOW).error, 0.3));
}

/* No input yields NaN. */
static void test_what_a_model_tells(void **state)
{
    struct cost c = {0};
    const struct cost_load busy = {.n_active = 2, .max_active = 4, .prompt_tokens = 100};
    (void)state;
    struct cost_telemetry t = cost_tell(&c, &idle, NOW);
    assert_true(t.token_ns == 0 && t.prefill_ns == 0 && t.queue_ns == 0 && t.parallel == 4);
    teach(&c, NOW);
    t = cost_tell(&c, &idle, NOW);
    assert_true(near(t.prefill_ns, 0.1e6) && near(t.token_ns, 2e6) && near(t.answer_tokens, 11));
    assert_true(t.queue_ns == 0 && t.in_flight == 0);
    t = cost_tell(&c, &busy, NOW);
    assert_int_equal(t.in_flight, 2);
    assert_true(near(t.queue_ns, 10e6)); /* the prompts of the others */
}

/* A pause during a step is no work of the step. */
static void test_a_pause_teaches_nothing(void **state)
{
    static const struct {
        const char *what;
        uint64_t usual_ns; /* of the step; 0: the first step is the paused one */
        struct cost_time took;
        bool teaches;
    } cases[] = {
        {"a pause of 5 s", 2 * MS, {5000 * MS, 2 * MS, 0.0}, false},
        {"a pause of 100 ms", 2 * MS, {100 * MS, 2 * MS, 0.0}, false},
        {"a pause in the first step", 0, {5000 * MS, 30 * MS, 0.0}, false},
        {"a slow step: the process ran", 2 * MS, {5000 * MS, 5000 * MS, 0.0}, true},
        {"one of two threads got the CPU", 2 * MS, {100 * MS, 50 * MS, 0.0}, true},
        {"a seventh of the time on a busy machine", 2 * MS, {700 * MS, 100 * MS, 0.0}, true},
        {"it slept for the GPU, as always", 400 * MS, {410 * MS, 4 * MS, 0.0}, true},
        {"short", 2 * MS, {19 * MS, 0, 0.0}, true},
        {"CPU time is not known", 2 * MS, {5000 * MS, COST_RAN, 0.0}, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cost c = {0};
        double prefill, before, after;
        for (int k = 0; k < 8 && cases[i].usual_ns > 0; k++)
            saw_step(&c, NOW, cases[i].usual_ns, 1, 0);
        cost_speed(&c, NOW, &prefill, &before);
        const double pace = cost_pace(&c, 1, NOW);
        cost_saw_step(&c, NOW, cases[i].took, 1, 0);
        cost_speed(&c, NOW, &prefill, &after);
        if ((after != before) != cases[i].teaches ||
            (cost_pace(&c, 1, NOW) != pace) != cases[i].teaches)
            fail_msg("%s: %g ns became %g ns", cases[i].what, before, after);
    }
}

/* The same of prompts, mixed steps, batches of other sizes and specialists. */
static void test_a_pause_in_other_work(void **state)
{
    const struct cost_time paused = {5000 * MS, MS, 0.0};
    struct cost c = {0};
    (void)state;
    teach(&c, NOW);
    saw_units(&c, NOW, 5 * MS, 50);
    const struct cost_telemetry before = cost_tell(&c, &idle, NOW);
    cost_saw_step(&c, NOW, paused, 0, 100);
    cost_saw_step(&c, NOW, paused, 1, 100);
    saw_step(&c, NOW, 2 * MS, 1, 0);
    cost_saw_step(&c, NOW, paused, 3, 0); /* never measured: at most 4 times one task */
    cost_saw_units(&c, NOW, paused, 50);
    const struct cost_telemetry after = cost_tell(&c, &idle, NOW);
    assert_true(near(after.token_ns, before.token_ns) && near(after.prefill_ns, before.prefill_ns));
    assert_true(near(after.unit_ns, before.unit_ns));
    cost_saw_total(&c, NOW, 1e6, 5000 * MS); /* a prediction that was off by a factor of 5000 */
    assert_true(cost_tell(&c, &idle, NOW).error <= 4.0);
}

/* If every step takes that long, the model is that slow, whatever it waits for. */
static void test_odd_steps_in_a_row_are_how_it_is(void **state)
{
    struct cost c = {0};
    double prefill, token;
    (void)state;
    saw_step(&c, NOW, 2 * MS, 1, 0);
    for (int i = 0; i < 40; i++)
        cost_saw_step(&c, NOW, (struct cost_time){900 * MS, MS, 0.0}, 1, 0);
    cost_speed(&c, NOW, &prefill, &token);
    assert_true(token > 850e6);
}

/* Steps of 2 ms beside programs that leave a third of the cores: 6 ms by the clock. */
static uint64_t beside_neighbours(struct cost *c, uint64_t now)
{
    for (int i = 0; i < 200; i++)
        cost_saw_step(c, now += 6 * MS, (struct cost_time){6 * MS, COST_RAN, 2.0 / 3.0}, 1, 0);
    return now;
}

/* What others take of the machine is no cost of the model: it is predicted while it lasts. */
static void test_stolen_time_is_apart(void **state)
{
    struct cost c = {0};
    const struct cost_request r = {.prompt_tokens = 0, .max_tokens = 100, .ignore_end = true};
    const struct cost_load one = {.max_active = 4, .n_active = 1, .decode_tokens = 50};
    double prefill, token;
    (void)state;
    teach(&c, NOW);
    uint64_t now = beside_neighbours(&c, NOW);
    cost_speed(&c, now, &prefill, &token);
    assert_true(near(token, 6e6));
    assert_true(near(cost_pace(&c, 1, now), 6e6));
    assert_true(near(cost_predict(&c, &one, &r, now).total_ns, 100 * 6e6));
    const struct cost_telemetry told = cost_tell(&c, &one, now);
    assert_true(near(told.token_ns, 6e6));
    assert_true(near(told.prefill_ns, 3e5)); /* was measured before they came */
    assert_true(near(told.queue_ns, 0.0));
    /* a few odd shares are not the usual ones */
    for (int i = 0; i < 8; i++)
        cost_saw_step(&c, now += 60 * MS, (struct cost_time){40 * MS, COST_RAN, 0.95}, 1, 0);
    assert_true(near(cost_predict(&c, &one, &r, now).total_ns, 100 * 6e6));
    /* they have gone: with the next steps, no figure has to be learned again */
    for (int i = 0; i < 40; i++)
        saw_step(&c, now += 50 * MS, 2 * MS, 1, 0);
    assert_true(near(cost_predict(&c, &one, &r, now).total_ns, 100 * 2e6));
}

/* However slow the neighbours make it: an idle model takes a request that it could answer. */
static void test_an_idle_model_lets_one_in(void **state)
{
    struct cost c = {0};
    const struct cost_request r = {.prompt_tokens = 0, .max_tokens = 100, .ignore_end = true};
    const struct cost_load one = {.max_active = 4, .n_active = 1, .decode_tokens = 50};
    struct err e = {0};
    (void)state;
    teach(&c, NOW);
    uint64_t now = beside_neighbours(&c, NOW);
    struct cost_estimate x = cost_predict(&c, &idle, &r, now);
    assert_true(x.idle && near(x.alone_ns, 200e6) && near(x.total_ns, 600e6));
    assert_int_equal(cost_check(&x, now + 300 * MS, now, &e), 0);
    assert_int_equal(cost_check(&x, now + 199 * MS, now, &e), SHOAL_EDEADLINE); /* never */
    x = cost_predict(&c, &one, &r, now); /* others want the time */
    assert_false(x.idle);
    assert_int_equal(cost_check(&x, now + 300 * MS, now, &e), SHOAL_EDEADLINE);
    /* slow for a reason that nobody measures: the best recent figures count */
    c = (struct cost){0};
    teach(&c, NOW);
    now = NOW;
    for (int i = 0; i < 40; i++)
        saw_step(&c, now += 10 * MS, 10 * MS, 1, 0);
    x = cost_predict(&c, &idle, &r, now);
    assert_true(x.total_ns > 900e6);
    assert_int_equal(cost_check(&x, now + 400 * MS, now, &e), 0);
    /* a specialist that has work waiting is not idle */
    saw_units(&c, now, 5 * MS, 50);
    const struct cost_load queue = {.batch_units = 100, .units = 1000};
    const struct cost_request job = {.units = 10};
    x = cost_predict(&c, &queue, &job, now);
    assert_false(x.idle);
    assert_int_equal(cost_check(&x, now + 50 * MS, now, &e), SHOAL_EDEADLINE);
}

static uint64_t next_rand(uint64_t *x)
{
    *x = *x * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return *x >> 33;
}

/* Whatever happened before, steps of 3 ms make an estimate of 3 ms. */
static void test_any_past_is_forgotten(void **state)
{
    uint64_t x = 7;
    (void)state;
    for (int round = 0; round < 500; round++) {
        struct cost c = {0};
        double prefill, token;
        uint64_t now = NOW;
        for (uint64_t n = next_rand(&x) % 200; n > 0; n--) {
            const uint64_t ns = 1 + next_rand(&x) % (next_rand(&x) % 3 ? 10 * MS : 60000 * MS);
            const uint64_t ran = next_rand(&x) % 2 ? ns : next_rand(&x) % ns;
            cost_saw_step(&c, now += ns, (struct cost_time){ns, ran, 0.0}, next_rand(&x) % 2,
                          (uint32_t)(next_rand(&x) % 600));
        }
        for (int i = 0; i < 40; i++) {
            saw_step(&c, now += 3 * MS, 3 * MS, 1, 0);
            saw_step(&c, now += 10 * MS, 10 * MS, 0, 100);
        }
        cost_speed(&c, now, &prefill, &token);
        if (token < 2.9e6 || token > 3.1e6 || prefill < 0.97e5 || prefill > 1.03e5)
            fail_msg("round %d: %g ns a token, %g ns a prompt token", round, token, prefill);
        const struct cost_telemetry t = cost_tell(&c, &idle, now);
        assert_true(t.token_ns > 2.9e6 && t.token_ns < 3.1e6);
    }
}

/* A replica that looks slow gets no work, so its figure must return by itself. */
static void test_what_is_told_returns_to_the_best(void **state)
{
    struct cost c = {0};
    double prefill, token, last;
    uint64_t now = NOW;
    (void)state;
    teach(&c, now);
    for (int i = 0; i < 40; i++) /* a bad time */
        saw_step(&c, now += 100 * MS, 100 * MS, 1, 0);
    cost_speed(&c, now, &prefill, &token);
    assert_true(token > 95e6);
    cost_speed(&c, now + COST_FRESH_NS, &prefill, &token);
    assert_true(token > 95e6); /* still fresh */
    for (uint64_t age = COST_FRESH_NS; age < COST_FRESH_NS + 1000 * MS; age += 100 * MS) {
        last = token;
        cost_speed(&c, now + age, &prefill, &token);
        assert_true(token <= last);
    }
    assert_true(token < 0.11 * 95e6); /* halved every quarter of a second */
    cost_speed(&c, now + 3600000 * MS, &prefill, &token);
    assert_true(token >= 2e6 && token < 9e6); /* the best of late, which has risen a little */
    assert_true(near(cost_tell(&c, &idle, now + 3600000 * MS).token_ns, token));
    /* a figure that is the best one stays */
    c = (struct cost){0};
    teach(&c, NOW);
    cost_speed(&c, NOW + 3600000 * MS, &prefill, &token);
    assert_true(near(token, 2e6) && near(prefill, 1e5));
}

static void test_extremes(void **state)
{
    struct cost c = {0};
    const struct cost_request r = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, true, 0};
    const struct cost_load l = {UINT32_MAX, UINT32_MAX, 0, 0, UINT64_MAX, UINT64_MAX, 0, 0, 0};
    struct err e = {0};
    (void)state;
    saw_step(&c, NOW, UINT64_MAX, UINT32_MAX, UINT32_MAX);
    saw_step(&c, NOW, UINT64_MAX, UINT32_MAX, 0);
    saw_step(&c, NOW, 0, 1, 0);
    saw_step(&c, NOW, 0, 0, 0);
    cost_saw_prompt(&c, NOW, 0, 0);
    cost_saw_answer(&c, NOW, UINT32_MAX, true);
    saw_units(&c, NOW, UINT64_MAX, 0);
    struct cost_estimate x = cost_predict(&c, &l, &r, NOW);
    assert_true(x.total_ns >= 0.0 && x.total_ns == x.total_ns);
    x.total_ns = 1e300;
    assert_int_equal(cost_check(&x, UINT64_MAX, 0, &e), SHOAL_EDEADLINE);
    assert_true(cost_expected_tokens(&c, 0, false) >= 1);
}

/* ---- a long history ---- */

static uint64_t drawn;

static uint32_t draw(uint32_t below)
{
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(drawn >> 33) % below;
}

static void see_something(struct cost *c, uint64_t now)
{
    const struct cost_time took = {.ns = (1 + draw(40)) * MS / 4,
                                   .ran_ns = draw(8) ? COST_RAN : draw(100) * MS,
                                   .stolen = draw(5) ? 0.0 : draw(100) / 100.0};
    switch (draw(6)) {
    case 0:
        cost_saw_answer(c, now, draw(200), draw(4) > 0);
        break;
    case 1:
        cost_saw_prompt(c, now, 1 + draw(500), draw(100));
        break;
    case 2:
        cost_saw_units(c, now, took, draw(1000));
        break;
    case 3:
        cost_saw_total(c, now, draw(5) ? 1e6 * draw(100) : 0.0, draw(100) * MS);
        break;
    default:
        cost_saw_step(c, now, took, draw(20), draw(3) ? 0 : draw(600));
    }
}

/* Whatever came before: what is predicted, told and expected, for random loads and requests. */
static void test_a_long_history(void **state)
{
    struct cost c = {.n_odd = 0};
    uint64_t now = NOW;
    double prefill, token;
    (void)state;
    drawn = 7;
    golden_begin();
    for (uint32_t i = 0; i < 600; i++) {
        now += draw(30) ? draw(100) * MS : draw(5000) * MS;
        see_something(&c, now);
        const struct cost_load l = {.n_active = draw(6),
                                    .n_waiting = draw(3) ? 0 : draw(10),
                                    .max_active = 1 + draw(8),
                                    .shared_chunk = draw(2) * draw(64),
                                    .prompt_tokens = draw(2) * draw(2000),
                                    .decode_tokens = draw(500),
                                    .waiting_decode = draw(2) * draw(300),
                                    .units = draw(2) * draw(5000),
                                    .batch_units = 1 + draw(2000)};
        const struct cost_request r = {.prompt_tokens = draw(1000),
                                       .cached_tokens = draw(2) * draw(1000),
                                       .max_tokens = draw(2) * draw(300),
                                       .n_choices = draw(4),
                                       .ignore_end = draw(4) == 0,
                                       .units = draw(3) ? 0 : draw(1000)};
        const struct cost_estimate x = cost_predict(&c, &l, &r, now);
        const struct cost_telemetry t = cost_tell(&c, &l, now);
        struct err e = {0};
        const int rc = cost_check(&x, now + draw(2000) * MS, now, &e);
        cost_speed(&c, now, &prefill, &token);
        trace("%u: %d%d %u %.4g %.4g %.4g %.4g %.4g | %.4g %.4g %.4g %.4g %.4g %.4g %u %u", i,
              x.known, x.idle, x.n_ahead, x.first_ns, x.total_ns, x.long_ns, x.alone_ns, x.error,
              t.prefill_ns, t.token_ns, t.unit_ns, t.queue_ns, t.answer_tokens, t.error,
              t.in_flight, t.parallel);
        const uint32_t usual = cost_expected_tokens(&c, r.max_tokens, r.ignore_end),
                       most = cost_longest_tokens(&c, r.max_tokens, r.ignore_end);
        trace(" | %.4g %.4g %.4g %u %u %u %d %s\n", prefill, token, cost_pace(&c, l.n_active, now),
              usual, most, cost_remaining_tokens(&c, draw(100), usual, most), rc, e.msg);
    }
    golden_end("cost");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_long_history),
        cmocka_unit_test(test_nothing_is_known_at_first),
        cmocka_unit_test(test_a_request_alone),
        cmocka_unit_test(test_what_is_ahead_counts),
        cmocka_unit_test(test_prompts_beside_answers),
        cmocka_unit_test(test_means),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_old_figures_are_forgotten_when_idle),
        cmocka_unit_test(test_large_batches_do_not_price_small_ones),
        cmocka_unit_test(test_a_slow_moment_does_not_keep_batches_small),
        cmocka_unit_test(test_the_usual_error_is_allowed_for),
        cmocka_unit_test(test_long_answers),
        cmocka_unit_test(test_the_pace_of_a_full_model),
        cmocka_unit_test(test_units_of_specialists),
        cmocka_unit_test(test_what_a_model_tells),
        cmocka_unit_test(test_the_error_is_tracked),
        cmocka_unit_test(test_a_pause_teaches_nothing),
        cmocka_unit_test(test_a_pause_in_other_work),
        cmocka_unit_test(test_stolen_time_is_apart),
        cmocka_unit_test(test_an_idle_model_lets_one_in),
        cmocka_unit_test(test_the_price_of_batches_is_relative),
        cmocka_unit_test(test_odd_steps_in_a_row_are_how_it_is),
        cmocka_unit_test(test_any_past_is_forgotten),
        cmocka_unit_test(test_what_is_told_returns_to_the_best),
        cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
