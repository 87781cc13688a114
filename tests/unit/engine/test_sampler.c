/* test_sampler.c - tokens are sampled with their probability, and the same ones on every CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "engine/decode/sampler.h"

#define N_VOCAB 300u /* not a multiple of a block */
#define N_DRAWS 40000u

static float logits[N_VOCAB];

static const struct kern_ops *best(void)
{
    struct err e = {0};
    const struct kern_ops *k = kern_select(NULL, &e);
    assert_non_null(k);
    return k;
}

static struct sampler *open_sampler(const struct kern_ops *k)
{
    struct sampler *s;
    struct err e = {0};
    assert_int_equal(sampler_create(&s, k, N_VOCAB, &e), 0);
    return s;
}

static int32_t draw_at(struct sampler *s, const struct shoal_sampling *o, uint32_t position)
{
    static int32_t history[N_DRAWS];
    struct sampler_pick pick;
    assert_true(sampler_run(s, &pick, logits, o, NULL, history, position, 0));
    return pick.token;
}

/* Draws and compares shares with the softmax of the tokens from `least` on, relative to the
 * likeliest. */
static void compare_shares(const struct shoal_sampling *o, double least)
{
    static uint32_t count[N_VOCAB];
    struct sampler *s = open_sampler(best());
    double total = 0.0, max = -INFINITY;
    memset(count, 0, sizeof(count));
    for (uint32_t i = 0; i < N_DRAWS; i++)
        count[draw_at(s, o, i)]++;
    for (uint32_t i = 0; i < N_VOCAB; i++)
        max = logits[i] > max ? (double)logits[i] : max;
    for (uint32_t i = 0; i < N_VOCAB; i++) {
        double w = exp(((double)logits[i] - max) / (double)o->temperature);
        total += w >= least ? w : 0.0;
    }
    for (uint32_t i = 0; i < N_VOCAB; i++) {
        double w = exp(((double)logits[i] - max) / (double)o->temperature);
        double p = w >= least ? w / total : 0.0;
        if (p == 0.0)
            assert_int_equal(count[i], 0);
        /* five standard deviations, and one draw */
        assert_true(fabs(count[i] - p * N_DRAWS) <= 5.0 * sqrt(p * N_DRAWS) + 1.0);
    }
    sampler_destroy(s);
}

static int set_logits(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < N_VOCAB; i++)
        logits[i] = (float)(sampler_uniform(5, i) * 8.0);
    return 0;
}

static void test_shares_without_limits(void **state)
{
    const struct shoal_sampling o = {.temperature = 0.8f, .top_p = 1.0f, .seed = 7};
    (void)state;
    compare_shares(&o, 1e-8);
}

static void test_shares_with_min_p(void **state)
{
    const struct shoal_sampling o = {.temperature = 1.0f, .top_p = 1.0f, .min_p = 0.1f, .seed = 8};
    (void)state;
    compare_shares(&o, 0.1);
}

/* The same shares with top-k: every token is among the first N_VOCAB. */
static void test_shares_with_top_k(void **state)
{
    const struct shoal_sampling o = {
        .temperature = 0.8f, .top_p = 1.0f, .top_k = N_VOCAB, .seed = 9};
    (void)state;
    compare_shares(&o, 1e-8);
}

static void test_every_kernel_set_draws_the_same(void **state)
{
    const struct shoal_sampling o = {.temperature = 1.3f, .top_p = 1.0f, .seed = 10};
    const struct kern_ops *sets[16];
    size_t n = kern_usable(sets, 16);
    struct sampler *scalar = open_sampler(&kern_scalar);
    (void)state;
    assert_true(n > 0);
    for (size_t k = 0; k < n; k++) {
        struct sampler *s = open_sampler(sets[k]);
        for (uint32_t i = 0; i < 2000; i++)
            assert_int_equal(draw_at(s, &o, i), draw_at(scalar, &o, i));
        sampler_destroy(s);
    }
    sampler_destroy(scalar);
}

/* One token that is certain, at either end of the vocabulary. */
static void test_a_certain_token(void **state)
{
    const struct shoal_sampling o = {.temperature = 0.5f, .top_p = 1.0f, .seed = 11};
    struct sampler *s = open_sampler(best());
    (void)state;
    for (uint32_t t = 0; t < N_VOCAB; t += N_VOCAB - 1) {
        for (uint32_t i = 0; i < N_VOCAB; i++)
            logits[i] = i == t ? 100.0f : 0.0f;
        for (uint32_t i = 0; i < 1000; i++)
            assert_int_equal(draw_at(s, &o, i), t);
    }
    sampler_destroy(s);
}

/* The reported probabilities are those used for sampling. */
static void test_drawn_probabilities(void **state)
{
    const struct shoal_sampling o = {.temperature = 0.9f,
                                     .top_k = 7,
                                     .top_p = 1.0f,
                                     .seed = 5,
                                     .logprobs = true,
                                     .n_logprobs = 20};
    static uint32_t count[N_VOCAB];
    static int32_t history[N_DRAWS];
    struct sampler *s = open_sampler(best());
    struct sampler_pick pick;
    (void)state;
    memset(count, 0, sizeof(count));
    for (uint32_t i = 0; i < N_DRAWS; i++) {
        double sum = 0.0;
        bool found = false;
        assert_true(sampler_run(s, &pick, logits, &o, NULL, history, i, 0));
        sampler_score_drawn(s, &pick, logits, &o, NULL, history, i, 0);
        count[pick.token]++;
        assert_int_equal(pick.n_top, 7);
        for (uint32_t k = 0; k < pick.n_top; k++) {
            sum += exp((double)pick.top[k].logprob);
            found |= pick.top[k].token == pick.token && pick.top[k].logprob == pick.logprob;
        }
        assert_true(found);
        assert_true(fabs(sum - 1.0) < 1e-4);
    }
    for (uint32_t k = 0; k < pick.n_top; k++)
        assert_float_equal((float)count[pick.top[k].token] / (float)N_DRAWS,
                           expf(pick.top[k].logprob), 0.01f);
    sampler_destroy(s);
}

/* Without sampling there is only one token to choose from. */
static void test_drawn_probabilities_of_the_best(void **state)
{
    const struct shoal_sampling o = {.logprobs = true, .n_logprobs = 3};
    static int32_t history[4];
    struct sampler *s = open_sampler(best());
    struct sampler_pick pick;
    (void)state;
    assert_true(sampler_run(s, &pick, logits, &o, NULL, history, 4, 0));
    assert_int_equal(pick.n_top, 3);
    sampler_score_drawn(s, &pick, logits, &o, NULL, history, 4, 0);
    assert_int_equal(pick.n_top, 1);
    assert_int_equal(pick.top[0].token, pick.token);
    assert_true(pick.logprob == 0.0f);
    sampler_destroy(s);
}

/* A penalty makes a repeated token less likely, whatever the sign of its logit. */
static void test_repeated_tokens_become_less_likely(void **state)
{
    static const struct {
        float repeated, others, penalty;
        bool chosen; /* it stays the best */
    } cases[] = {
        {2.0f, 1.5f, 1.2f, true},    {2.0f, 1.5f, 1.5f, false},  {-1.0f, -1.5f, 1.2f, true},
        {-1.0f, -1.5f, 2.0f, false}, {-1.5f, -1.0f, 0.5f, true}, {1.0f, 1.5f, 0.5f, true},
        {0.0f, -0.1f, 9.0f, true},   {1.0f, -1.0f, 9.0f, true},
    };
    const int32_t history[] = {7, 7};
    struct sampler *s = open_sampler(best());
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const struct shoal_sampling o = {.repeat_penalty = cases[c].penalty};
        struct sampler_pick pick;
        for (uint32_t i = 0; i < N_VOCAB; i++)
            logits[i] = i == 7 ? cases[c].repeated : cases[c].others;
        assert_true(sampler_run(s, &pick, logits, &o, NULL, history, 2, 0));
        if ((pick.token == 7) != cases[c].chosen)
            fail_msg("row %zu: token %d", c, pick.token);
    }
    sampler_destroy(s);
}

/* Only what was generated counts, once for presence and each time for frequency. */
static void test_generated_tokens_become_less_likely(void **state)
{
    static const struct {
        float presence, frequency;
        float of_5, of_7, of_8, of_9; /* logits; 7 was generated twice, 8 once, 5 was asked */
        uint32_t n_generated;
        int32_t want;
    } cases[] = {
        {1, 0, 1, 3, 2.9f, 2.1f, 3, 9},    {1, 0, 1, 3, 2.9f, 1.95f, 3, 7},
        {0, 0.5f, 1, 3, 2.9f, 2.1f, 3, 8}, {0.5f, 0.25f, 1, 3, 2.9f, 2.1f, 3, 8},
        {2, 0, 3, 2.9f, 2.9f, 2, 3, 5},    {2, 0, 3, 2.9f, 2.9f, 2, 4, 9},
        {-1, 0, 0, 0, 1, 1.5f, 3, 8},      {0, -1, 0, 0.5f, 1, 1.5f, 3, 7},
        {5, 5, 3, 2.9f, 2.9f, 2, 0, 5},
    };
    const int32_t history[] = {5, 7, 8, 7};
    struct sampler *s = open_sampler(best());
    (void)state;
    for (size_t c = 0; c < 2 * sizeof(cases) / sizeof(cases[0]); c++) { /* twice: nothing is left */
        size_t row = c / 2;
        const struct shoal_sampling o = {.presence_penalty = cases[row].presence,
                                         .frequency_penalty = cases[row].frequency};
        struct sampler_pick pick;
        for (uint32_t i = 0; i < N_VOCAB; i++)
            logits[i] = -9;
        logits[5] = cases[row].of_5;
        logits[7] = cases[row].of_7;
        logits[8] = cases[row].of_8;
        logits[9] = cases[row].of_9;
        assert_true(sampler_run(s, &pick, logits, &o, NULL, history, 4, cases[row].n_generated));
        if (pick.token != cases[row].want)
            fail_msg("row %zu: token %d", row, pick.token);
    }
    sampler_destroy(s);
}

/* The repeat penalty looks back this far, 64 tokens by default. */
static void test_repeats_are_forgotten(void **state)
{
    static const struct {
        uint32_t last_n, since; /* since: tokens after the one that is repeated */
        bool chosen;
    } cases[] = {{3, 2, false}, {3, 3, true},  {0, 63, false},
                 {0, 64, true}, {1, 0, false}, {100, 80, false}};
    int32_t history[100];
    struct sampler *s = open_sampler(best());
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const struct shoal_sampling o = {.repeat_penalty = 2, .repeat_last_n = cases[c].last_n};
        struct sampler_pick pick;
        for (uint32_t i = 0; i < N_VOCAB; i++)
            logits[i] = i == 7 ? 2.0f : i == 9 ? 1.5f : 0.0f;
        history[0] = 7;
        for (uint32_t i = 1; i <= cases[c].since; i++)
            history[i] = 1;
        assert_true(sampler_run(s, &pick, logits, &o, NULL, history, cases[c].since + 1, 0));
        if ((pick.token == 7) != cases[c].chosen)
            fail_msg("row %zu: token %d", c, pick.token);
    }
    sampler_destroy(s);
}

/* Tokens 0, 77, 150 and the last have probabilities of 40, 30, 20 and 10 percent: which ones each
 * limit leaves. */
static void test_limits_leave_the_likeliest(void **state)
{
    static const uint32_t tokens[4] = {0, 77, 150, N_VOCAB - 1};
    static const double share[4] = {0.4, 0.3, 0.2, 0.1};
    static const struct {
        uint32_t top_k;
        float top_p, min_p;
        uint32_t n; /* left */
    } cases[] = {
        {0, 1, 0, 4},     {1, 1, 0, 1},       {2, 1, 0, 2},     {4, 1, 0, 4},     {9, 1, 0, 4},
        {0, 0.35f, 0, 1}, {0, 0.5f, 0, 2},    {0, 0.85f, 0, 3}, {0, 0.95f, 0, 4}, {3, 0.95f, 0, 3},
        {3, 0.5f, 0, 2},  {0, 1, 0.2f, 4},    {0, 1, 0.3f, 3},  {0, 1, 0.6f, 2},  {0, 1, 0.8f, 1},
        {2, 1, 0.3f, 2},  {0, 0.5f, 0.3f, 2}, {9, 1, 0.6f, 2},  {0, 0, 0, 4},
    };
    struct sampler *s = open_sampler(best());
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const struct shoal_sampling o = {.temperature = 1,
                                         .top_k = cases[c].top_k,
                                         .top_p = cases[c].top_p,
                                         .min_p = cases[c].min_p,
                                         .seed = 3};
        uint32_t count[4] = {0}, n_known = 0;
        for (uint32_t i = 0; i < N_VOCAB; i++)
            logits[i] = -60;
        for (uint32_t i = 0; i < 4; i++)
            logits[tokens[i]] = (float)log(share[i]);
        for (uint32_t i = 0; i < 2000; i++) {
            int32_t t = draw_at(s, &o, i);
            for (uint32_t k = 0; k < 4; k++)
                count[k] += t == (int32_t)tokens[k];
        }
        for (uint32_t k = 0; k < 4; k++) {
            n_known += count[k];
            if ((count[k] > 0) != (k < cases[c].n))
                fail_msg("row %zu: token %u was drawn %u times", c, tokens[k], count[k]);
        }
        assert_int_equal(n_known, 2000);
    }
    sampler_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_shares_without_limits, set_logits),
        cmocka_unit_test_setup(test_shares_with_min_p, set_logits),
        cmocka_unit_test_setup(test_shares_with_top_k, set_logits),
        cmocka_unit_test_setup(test_every_kernel_set_draws_the_same, set_logits),
        cmocka_unit_test_setup(test_a_certain_token, set_logits),
        cmocka_unit_test_setup(test_drawn_probabilities, set_logits),
        cmocka_unit_test_setup(test_drawn_probabilities_of_the_best, set_logits),
        cmocka_unit_test(test_repeated_tokens_become_less_likely),
        cmocka_unit_test(test_generated_tokens_become_less_likely),
        cmocka_unit_test(test_repeats_are_forgotten),
        cmocka_unit_test(test_limits_leave_the_likeliest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
