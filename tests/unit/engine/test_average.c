/* test_average.c - several decoders generate one text by the mean of their probabilities:
 * against the members' own log-probabilities, and every feature that works with one model. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/decode/average_lm.h"
#include "kernels/kern.h"
#include "shoal/shoal.h"

#define ONE SHOAL_TEST_DATA "/refs/llama-gqa.gguf"
#define TWO SHOAL_TEST_DATA "/refs/mistral-swa.gguf" /* another model with the same tokens */
#define OTHER SHOAL_TEST_DATA "/refs/qwen2.gguf"     /* other tokens */
#define MAX_TOKENS 64u

struct got {
    int32_t tokens[MAX_TOKENS];
    float logprobs[MAX_TOKENS];
    uint32_t n;
    float scores[MAX_TOKENS]; /* of the prompt's tokens, from the second on */
    uint32_t n_scores;
    uint32_t cached;
    char text[1024];
    size_t text_bytes;
};

static void on_event(void *ctx, const struct shoal_event *ev)
{
    struct got *g = ctx;
    if (ev->kind == SHOAL_EVENT_DONE)
        g->cached = ev->cached_tokens;
    if (ev->kind == SHOAL_EVENT_PROMPT && g->n_scores < MAX_TOKENS)
        g->scores[g->n_scores++] = ev->logprob;
    if (ev->kind != SHOAL_EVENT_TOKEN)
        return;
    if (g->text_bytes + ev->text_bytes < sizeof(g->text)) {
        memcpy(g->text + g->text_bytes, ev->text, ev->text_bytes);
        g->text_bytes += ev->text_bytes;
    }
    if (ev->token >= 0 && g->n < MAX_TOKENS) {
        g->logprobs[g->n] = ev->logprob;
        g->tokens[g->n++] = ev->token;
    }
}

/* others NULL: only path. */
static int try_open(struct shoal_engine **en, const char *path, const char *const *others,
                    uint32_t n, const double *weights, struct err *e)
{
    const struct shoal_engine_opts o = {.size = sizeof(o),
                                        .cache_dir = "",
                                        .max_tasks = 4,
                                        .kv_bytes = (size_t)8 << 20,
                                        .average_paths = others,
                                        .average_weights = weights,
                                        .n_average = n};
    return shoal_engine_open(en, path, &o, e);
}

static struct shoal_engine *open_one(const char *path)
{
    struct shoal_engine *en = NULL;
    struct err e = {0};
    if (try_open(&en, path, NULL, 0, NULL, &e) < 0)
        fail_msg("%s", e.msg);
    return en;
}

static struct shoal_engine *open_two(const char *path, const char *other, double a, double b)
{
    const double weights[] = {a, b};
    struct shoal_engine *en = NULL;
    struct err e = {0};
    if (try_open(&en, path, &other, 1, weights, &e) < 0)
        fail_msg("%s", e.msg);
    return en;
}

static const int32_t prompt[] = {1,  7,   33, 120, 260, 9,  14,  77, 300, 45,  8, 19,
                                 22, 200, 31, 90,  55,  66, 101, 12, 13,  250, 7, 41};
#define N_PROMPT ((uint32_t)(sizeof(prompt) / sizeof(prompt[0])))

static struct shoal_task_opts greedy(struct got *g)
{
    memset(g, 0, sizeof(*g));
    return (struct shoal_task_opts){.size = sizeof(struct shoal_task_opts),
                                    .tokens = prompt,
                                    .n_tokens = N_PROMPT,
                                    .max_tokens = 24,
                                    .ignore_end = true,
                                    .sampling = {.logprobs = true},
                                    .event = on_event,
                                    .event_ctx = g};
}

static void run(struct shoal_engine *en, struct shoal_task_opts o)
{
    struct shoal_task *t = NULL;
    struct err e = {0};
    if (shoal_task_submit(en, &o, &t, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(shoal_task_wait(t), 0);
    shoal_task_free(t);
}

/* Log-probabilities that a single model gives the tokens of an answer. */
static void score(const char *path, const struct got *answer, float out[MAX_TOKENS])
{
    int32_t all[N_PROMPT + MAX_TOKENS];
    struct got g;
    struct shoal_engine *en = open_one(path);
    struct shoal_task_opts o = greedy(&g);
    memcpy(all, prompt, sizeof(prompt));
    memcpy(all + N_PROMPT, answer->tokens, answer->n * sizeof(*all));
    o.tokens = all;
    o.n_tokens = N_PROMPT + answer->n;
    o.prompt_logprobs = o.prompt_only = true;
    run(en, o);
    assert_int_equal(g.n_scores, N_PROMPT + answer->n - 1);
    memcpy(out, g.scores + N_PROMPT - 1, answer->n * sizeof(*out));
    shoal_engine_close(en);
}

static void check_against_members(struct shoal_task_opts o, struct got *g, double a, double b)
{
    float one[MAX_TOKENS], two[MAX_TOKENS];
    struct shoal_engine *en = open_two(ONE, TWO, a, b);
    uint32_t apart = 0;
    run(en, o);
    shoal_engine_close(en);
    assert_int_equal(g->n, o.max_tokens);
    score(ONE, g, one);
    score(TWO, g, two);
    for (uint32_t i = 0; i < g->n; i++) {
        const double want = log((a * exp((double)one[i]) + b * exp((double)two[i])) / (a + b));
        if (fabs(want - (double)g->logprobs[i]) > 1e-4)
            fail_msg("token %u: %f instead of %f", i, (double)g->logprobs[i], want);
        apart += fabs(want - (double)one[i]) > 1e-2 && fabs(want - (double)two[i]) > 1e-2;
    }
    assert_true(apart >
                g->n / 2); /* the members differ, so this does not compare with a single model */
}

static void is_the_mean_of_its_members(void **state)
{
    (void)state;
    struct got g;
    struct shoal_task_opts o = greedy(&g);
    check_against_members(o, &g, 1, 1);
    o = greedy(&g);
    check_against_members(o, &g, 0.25, 3);
    o = greedy(&g);
    o.sampling.temperature = 1;
    o.sampling.seed = 77;
    check_against_members(o, &g, 2, 1);
}

static void equal_members_write_what_one_writes(void **state)
{
    (void)state;
    struct got alone, both, again;
    struct shoal_engine *en = open_one(ONE);
    run(en, greedy(&alone));
    shoal_engine_close(en);
    en = open_two(ONE, ONE, 1, 2.5);
    run(en, greedy(&both));
    run(en, greedy(&again));
    shoal_engine_close(en);
    assert_int_equal(alone.n, both.n);
    assert_memory_equal(alone.tokens, both.tokens, alone.n * sizeof(*alone.tokens));
    for (uint32_t i = 0; i < alone.n; i++)
        assert_true(fabsf(alone.logprobs[i] - both.logprobs[i]) < 1e-5f);
    assert_memory_equal(both.tokens, again.tokens, both.n * sizeof(*both.tokens));
    assert_int_equal(both.cached, 0);
    assert_int_equal(again.cached, 16); /* pages are shared as with one model */
}

static void a_weight_of_zero_does_not_count(void **state)
{
    (void)state;
    struct got want, has;
    const char *const alone[] = {ONE, TWO};
    for (uint32_t i = 0; i < 2; i++) {
        struct shoal_engine *en = open_one(alone[i]);
        run(en, greedy(&want));
        shoal_engine_close(en);
        en = open_two(ONE, TWO, i == 0, i == 1);
        run(en, greedy(&has));
        shoal_engine_close(en);
        assert_memory_equal(want.tokens, has.tokens, want.n * sizeof(*want.tokens));
        assert_memory_equal(want.logprobs, has.logprobs, want.n * sizeof(*want.logprobs));
    }
}

static void three_tasks_at_once_are_as_one_by_one(void **state)
{
    (void)state;
    struct got one[3], all[3];
    struct shoal_task *tasks[3];
    struct shoal_engine *en = open_two(ONE, TWO, 1, 1);
    for (uint32_t i = 0; i < 3; i++) {
        struct shoal_task_opts o = greedy(&one[i]);
        o.n_tokens = N_PROMPT - i;
        run(en, o);
    }
    for (uint32_t i = 0; i < 3; i++) {
        struct shoal_task_opts o = greedy(&all[i]);
        struct err e = {0};
        o.n_tokens = N_PROMPT - i;
        o.held = true;
        assert_int_equal(shoal_task_submit(en, &o, &tasks[i], &e), 0);
    }
    shoal_engine_wake(en);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(shoal_task_wait(tasks[i]), 0);
        shoal_task_free(tasks[i]);
        assert_memory_equal(one[i].tokens, all[i].tokens, one[i].n * sizeof(*one[i].tokens));
    }
    shoal_engine_close(en);
}

static void keeps_to_a_constraint(void **state)
{
    (void)state;
    static const char choice[] = "[\"zebra\", \"quartz\"]";
    struct got g;
    struct shoal_engine *en = open_two(ONE, TWO, 1, 1);
    struct shoal_task_opts o = greedy(&g);
    o.constraint = SHOAL_CONSTRAINT_CHOICE;
    o.constraint_text = choice;
    o.constraint_bytes = sizeof(choice) - 1;
    o.ignore_end = false;
    run(en, o);
    shoal_engine_close(en);
    assert_true((g.text_bytes == 5 && memcmp(g.text, "zebra", 5) == 0) ||
                (g.text_bytes == 6 && memcmp(g.text, "quartz", 6) == 0));
}

static void refuse(const char *path, const char *other, const double *weights, uint32_t n, int code,
                   const char *why)
{
    const char *const others[] = {other, other, other, other, other, other, other, other};
    struct shoal_engine *en = NULL;
    struct err e = {0};
    assert_int_equal(try_open(&en, path, others, n, weights, &e), code);
    assert_null(en);
    if (!strstr(e.msg, why))
        fail_msg("'%s' does not say '%s'", e.msg, why);
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    static const double none[] = {0, 0}, bad[] = {1, -1}, nan_weight[] = {1, NAN};
    refuse(ONE, OTHER, NULL, 1, SHOAL_EINVAL, "different vocabularies");
    refuse(ONE, SHOAL_TEST_DATA "/none.gguf", NULL, 1, SHOAL_EIO, "none.gguf");
    refuse(ONE, TWO, none, 1, SHOAL_EINVAL, "all weights");
    refuse(ONE, TWO, bad, 1, SHOAL_EINVAL, "the weight -1");
    refuse(ONE, TWO, nan_weight, 1, SHOAL_EINVAL, "the weight");
    refuse(ONE, TWO, NULL, SHOAL_MAX_AVERAGE, SHOAL_EINVAL, "at most 8");
    refuse(SHOAL_TEST_DATA "/../../models/encoder", ONE, NULL, 1, SHOAL_EINVAL,
           "cannot be averaged");
    refuse(ONE, SHOAL_TEST_DATA "/../../models/encoder", NULL, 1, SHOAL_EINVAL,
           "cannot be averaged");
}

static void says_what_it_needs(void **state)
{
    (void)state;
    struct shoal_engine_info one = {.size = sizeof(one)}, two = {.size = sizeof(two)},
                             all = {.size = sizeof(all)};
    struct shoal_engine *a = open_one(ONE), *b = open_one(TWO), *both = open_two(ONE, TWO, 1, 1);
    assert_int_equal(shoal_engine_info(a, &one), 0);
    assert_int_equal(shoal_engine_info(b, &two), 0);
    assert_int_equal(shoal_engine_info(both, &all), 0);
    assert_int_equal(all.weights_bytes, one.weights_bytes + two.weights_bytes);
    assert_int_equal(all.file_bytes, one.file_bytes + two.file_bytes);
    assert_int_equal(all.n_ctx, one.n_ctx < two.n_ctx ? one.n_ctx : two.n_ctx);
    assert_true(all.kv_pages < one.kv_pages); /* the same memory holds fewer of both */
    shoal_engine_close(a);
    shoal_engine_close(b);
    shoal_engine_close(both);
}

/* Against doubles, with rows far apart and nearly impossible tokens. */
static void mixes_as_doubles_do(void **state)
{
    (void)state;
    enum { N = 2500, ROWS = 3 };
    static float rows[ROWS][N], out[N], work[2 * AVERAGE_BLOCK];
    static double p[ROWS][N];
    const double weights[ROWS] = {1, 0.01, 7};
    const float *at[ROWS] = {rows[0], rows[1], rows[2]};
    uint32_t seed = 5;
    for (uint32_t r = 0; r < ROWS; r++) {
        double sum = 0, most = -INFINITY;
        for (uint32_t i = 0; i < N; i++) {
            seed = seed * 1664525u + 1013904223u;
            rows[r][i] = (float)(seed >> 8) / (float)(1 << 24) * (r == 1 ? 900.0f : 20.0f) - 300.0f;
            most = fmax(most, (double)rows[r][i]);
        }
        for (uint32_t i = 0; i < N; i++)
            sum += exp((double)rows[r][i] - most);
        for (uint32_t i = 0; i < N; i++)
            p[r][i] = (double)rows[r][i] - most - log(sum) + log(weights[r]);
    }
    for (const struct kern_ops *k = &kern_scalar; k;
         k = k == &kern_scalar ? kern_select(NULL, NULL) : NULL) {
        average_mix(out, at, weights, ROWS, N, k, work);
        double shift = 0;
        for (uint32_t i = 0; i < N; i++) {
            double top = fmax(p[0][i], fmax(p[1][i], p[2][i])), sum = 0;
            for (uint32_t r = 0; r < ROWS; r++)
                sum += exp(p[r][i] - top);
            const double want = top + log(sum);
            if (i == 0)
                shift = want - (double)out[0];
            assert_true(isfinite(out[i]));
            assert_true(fabs(want - (double)out[i] - shift) < 5e-4);
        }
        if (k == kern_select(NULL, NULL))
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_mean_of_its_members),
        cmocka_unit_test(equal_members_write_what_one_writes),
        cmocka_unit_test(a_weight_of_zero_does_not_count),
        cmocka_unit_test(three_tasks_at_once_are_as_one_by_one),
        cmocka_unit_test(keeps_to_a_constraint),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(says_what_it_needs),
        cmocka_unit_test(mixes_as_doubles_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
