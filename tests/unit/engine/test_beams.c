/* test_beams.c - searches over random logits: every row of every step, and the result, are those of
 * tests/data/traces/beams.txt; and what holds of every search. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/native/beams.h"
#include "support/golden_trace.h"

#define N_VOCAB 24u
#define MAX_STEPS 40u

static uint64_t drawn;

static uint32_t draw(uint32_t below)
{
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(drawn >> 33) % below;
}

static void check_result(const struct beams_opts *o, const int32_t *tokens, uint32_t n)
{
    assert_true(n >= 1 && n <= o->max_tokens);
    for (uint32_t i = 0; i < n; i++) {
        bool ends = false;
        assert_true(tokens[i] >= 0 && (uint32_t)tokens[i] < N_VOCAB);
        for (uint32_t k = 0; k < o->n_ends; k++)
            ends |= tokens[i] == o->ends[k];
        assert_true(!ends || i + 1 == n);         /* nothing behind the end */
        assert_true(!ends || i >= o->min_tokens); /* nor an end too early */
    }
    const uint32_t g = o->no_repeat_ngram;
    for (uint32_t i = 0; g > 0 && i + g <= n; i++)
        for (uint32_t k = i + 1; k + g <= n; k++)
            assert_int_not_equal(memcmp(tokens + i, tokens + k, g * sizeof(*tokens)), 0);
}

static void search(uint32_t number, const struct beams_opts *o)
{
    static float logits[BEAMS_MAX * N_VOCAB], row[2 * N_VOCAB];
    struct sampler *sampler = NULL;
    struct err e;
    float score = 0;
    uint32_t n;
    assert_int_equal(sampler_create(&sampler, &kern_scalar, N_VOCAB, &e), 0);
    const struct beams_with w = {&kern_scalar, N_VOCAB, row, sampler};
    struct beams *b = beams_create(o);
    assert_non_null(b);
    trace("== %u: beams %u, %u to %u tokens, ngram %u, penalties %g %g, early %d, temperature %g\n",
          number, o->n_beams, o->min_tokens, o->max_tokens, o->no_repeat_ngram,
          (double)o->repeat_penalty, (double)o->length_penalty, (int)o->early,
          (double)o->sampling.temperature);
    assert_int_equal(beams_opts(b)->max_tokens, o->max_tokens);
    for (uint32_t step = 0;; step++) {
        assert_true(step < MAX_STEPS);
        const uint32_t n_rows = beams_n_rows(b);
        assert_true(n_rows >= 1 && n_rows <= o->n_beams);
        assert_int_equal(beams_n_tokens(b), step);
        for (uint32_t i = 0; i < n_rows; i++)
            trace(" %d<%u", beams_token(b, i), beams_parent(b, i));
        trace("\n");
        for (uint32_t i = 0; i < n_rows * N_VOCAB; i++)
            logits[i] = (float)draw(1000) / 100.0f;
        if (!beams_step(b, &w, logits))
            break;
    }
    const int32_t *tokens = beams_result(b, &n, &score);
    check_result(o, tokens, n);
    trace("result %.4g:", (double)score);
    for (uint32_t i = 0; i < n; i++)
        trace(" %d", tokens[i]);
    trace("\n");
    beams_destroy(b);
    sampler_destroy(sampler);
}

static void test_random_searches(void **state)
{
    (void)state;
    drawn = 11;
    golden_begin();
    for (uint32_t i = 0; i < 150; i++) {
        struct beams_opts o = {.n_beams = 1 + draw(5),
                               .max_tokens = 1 + draw(14),
                               .min_tokens = draw(3) ? 0 : draw(4),
                               .no_repeat_ngram = draw(2) ? 0 : 1 + draw(3),
                               .repeat_penalty = draw(2) ? 0.0f : 1.0f + (float)draw(10) / 10.0f,
                               .length_penalty = (float)draw(5) / 2.0f - 0.5f,
                               .early = (enum beams_early)draw(3),
                               .start = (int32_t)draw(N_VOCAB),
                               .ends = {1, 2},
                               .n_ends = draw(3)};
        if (o.n_beams == 1 && draw(2))
            o.sampling = (struct shoal_sampling){.temperature = 0.8f, .top_k = 5, .seed = draw(99)};
        search(i, &o);
    }
    golden_end("beams");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_searches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
