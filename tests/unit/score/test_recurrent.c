/* test_recurrent.c - layer programs against PyTorch's output (made by
 * tools/make_scorer_refs.py), as series and as streams, in floats and in 8 bits; and hostile
 * files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "kernels/kern.h"
#include "score/recurrent.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

enum { N_SAMPLES = 400, MAX_CHANNELS = 8, MAX_SCORES = 400 };

static float series[N_SAMPLES * MAX_CHANNELS], scores[MAX_SCORES * 4], expected[MAX_SCORES * 4];

/* series() of tools/make_scorer_refs.py */
static void make_series(uint32_t channels)
{
    for (uint64_t t = 0; t < N_SAMPLES; t++)
        for (uint64_t c = 0; c < channels; c++)
            series[t * channels + c] =
                (float)((double)(hash_mix(t * 64 + c + 1) >> 40) / 8388608.0 - 1 +
                        (double)(t * (c + 1) % 50) / 32);
}

static char *read_whole(const char *name, const char *file, size_t *n)
{
    char path[512];
    snprintf(path, sizeof(path), SHOAL_TEST_DATA "/scorers/%s/%s", name, file);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot open %s", path);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *p = malloc(*n + 1);
    assert_non_null(p);
    assert_int_equal(fread(p, 1, *n, f), *n);
    p[*n] = '\0';
    fclose(f);
    return p;
}

static struct recurrent *open_one(const char *name, const struct recurrent_opts *o)
{
    char path[512];
    struct recurrent *r;
    struct err e = {0};
    snprintf(path, sizeof(path), SHOAL_TEST_DATA "/scorers/%s", name);
    if (recurrent_open(&r, path, o, &e) < 0)
        fail_msg("%s", e.msg);
    return r;
}

static const struct {
    const char *name;
    uint32_t channels, window, hop, n_outputs, n_scores;
    bool stateful, int8;
    double loss; /* in 8 bits, measured and rounded up */
} models[] = {
    {"stream", 7, 1, 1, 1, 400, true, false, 0.005},
    {"both", 3, 32, 16, 3, 24, false, false, 0.004},
    {"gru", 5, 20, 20, 2, 20, false, false, 0.1},
    {"conv", 2, 50, 25, 2, 15, false, false, 0.2},
    {"voice", 1, 36, 32, 1, 12, true, false, 0.007},
    {"int8", 4, 25, 25, 2, 16, false, true, 0.008},
};

/* Largest difference from PyTorch. */
static double worst_error(const struct recurrent *r, const char *name, uint32_t n_scores)
{
    struct recurrent_info info = recurrent_info(r);
    size_t n;
    char *want = read_whole(name, "expected.f32", &n);
    assert_int_equal(n, n_scores * info.n_outputs * sizeof(float));
    memcpy(expected, want, n);
    free(want);
    double worst = 0;
    for (size_t i = 0; i < n / sizeof(float); i++) {
        double err = fabs((double)scores[i] - expected[i]);
        worst = err > worst || isnan(err) ? err : worst;
    }
    return worst;
}

static void test_equals_pytorch(void **state)
{
    const struct kern_ops *sets[8];
    size_t n_sets = kern_usable(sets, ARRAY_LEN(sets));
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(models); i++)
        for (int int8 = 0; int8 < 2; int8++) {
            float first[ARRAY_LEN(scores)];
            for (size_t s = 0; s < n_sets; s++) {
                struct recurrent_opts o = {.int8 = int8, .kernels = sets[s]->name};
                struct recurrent *r = open_one(models[i].name, &o);
                struct recurrent_info info = recurrent_info(r);
                assert_int_equal(info.channels, models[i].channels);
                assert_int_equal(info.window, models[i].window);
                assert_int_equal(info.hop, models[i].hop);
                assert_int_equal(info.n_outputs, models[i].n_outputs);
                assert_int_equal(info.stateful, models[i].stateful);
                if (!int8)
                    assert_int_equal(info.int8, models[i].int8);
                make_series(info.channels);
                assert_int_equal(recurrent_n_scores(r, N_SAMPLES), models[i].n_scores);
                void *scratch = mem_aligned(recurrent_scratch_bytes(r));
                recurrent_series(r, series, N_SAMPLES, scores, scratch);
                double err = worst_error(r, models[i].name, models[i].n_scores);
                double limit = int8 || models[i].int8 ? models[i].loss : 1e-5;
                if (s == 0)
                    print_message("%-6s %s: worst error %.2g\n", models[i].name,
                                  info.int8 ? "int8" : "f32 ", err);
                if (!(err <= limit))
                    fail_msg("%s with %s: %g is more than %g", models[i].name, sets[s]->name, err,
                             limit);
                if (s > 0) /* all kernel sets give the same bits */
                    assert_memory_equal(scores, first,
                                        models[i].n_scores * info.n_outputs * sizeof(float));
                memcpy(first, scores, sizeof(first));
                mem_free(scratch);
                recurrent_close(r);
            }
        }
}

/* Step by step, two interleaved streams through one scorer: the same bits as whole series. */
static void test_streams(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        if (!models[i].stateful)
            continue;
        struct recurrent *r = open_one(models[i].name, NULL);
        struct recurrent_info info = recurrent_info(r);
        size_t hop = (size_t)info.hop * info.channels, bytes = recurrent_state_floats(r) * 4;
        make_series(info.channels);
        void *scratch = mem_aligned(recurrent_scratch_bytes(r));
        float *a = malloc(bytes), *b = malloc(bytes), out;
        recurrent_series(r, series, N_SAMPLES, scores, scratch);
        memset(a, 0x55, bytes);
        recurrent_reset(r, a);
        recurrent_reset(r, b);
        for (size_t t = 0; t < models[i].n_scores; t++) {
            recurrent_step(r, a, series + t * hop, &out, scratch);
            assert_memory_equal(&out, &scores[t], sizeof(out));
            recurrent_step(r, b, series, &out, scratch); /* always the same samples */
        }
        assert_true(out != scores[models[i].n_scores - 1]);
        free(a);
        free(b);
        mem_free(scratch);
        recurrent_close(r);
    }
}

/* A stream survives missing samples. */
static void test_missing_samples(void **state)
{
    struct recurrent *r = open_one("stream", NULL);
    void *scratch = mem_aligned(recurrent_scratch_bytes(r));
    float memory[64], x[7], nan_score, mean_score;
    (void)state;
    assert_true(recurrent_state_floats(r) <= ARRAY_LEN(memory));
    for (int i = 0; i < 7; i++)
        x[i] = i % 2 ? NAN : INFINITY;
    recurrent_reset(r, memory);
    recurrent_step(r, memory, x, &nan_score, scratch);
    for (int i = 0; i < 7; i++)
        x[i] = 0.5f; /* the mean from its config */
    recurrent_reset(r, memory);
    recurrent_step(r, memory, x, &mean_score, scratch);
    assert_true(isfinite(nan_score) && nan_score == mean_score);
    mem_free(scratch);
    recurrent_close(r);
}

static void test_info(void **state)
{
    struct recurrent *r = open_one("both", NULL);
    struct recurrent_info info = recurrent_info(r);
    (void)state;
    assert_string_equal(info.output_names[2], "run");
    assert_string_equal(info.input_names[0], "x");
    assert_false(info.has_threshold);
    assert_int_equal(info.n_layers, 5);
    assert_int_equal(recurrent_n_scores(r, 31), 0);
    assert_int_equal(recurrent_n_scores(r, 48), 2);
    recurrent_close(r);
    r = open_one("stream", NULL);
    info = recurrent_info(r);
    assert_true(info.has_threshold && info.threshold == 0.5);
    assert_null(info.input_names);
    recurrent_close(r);
    r = open_one("gru/config.json", NULL); /* the file works like the folder */
    assert_string_equal(recurrent_info(r).output_names[1], "score1");
    recurrent_close(r);
}

/* ---- hostile files ---- */

static void test_hostile(void **state)
{
    static const struct {
        const char *model, *from, *to; /* the part to replace in its config */
        int code;
        const char *text;
    } cases[] = {
        {"voice", "{", "[", SHOAL_EFORMAT, "config is not a JSON object"},
        {"voice", "shoal_scorer", "bert", SHOAL_EFORMAT, "model_type is \"bert\", not shoal"},
        {"voice", "\"model_type\"", "\"quantize\": \"int4\", \"model_type\"", SHOAL_EUNSUPPORTED,
         "quantize must be"},
        {"voice", "\"input\"", "\"inputs\"", SHOAL_EFORMAT, "input is missing"},
        {"voice", "\"channels\": 1", "\"channels\": 0", SHOAL_EFORMAT, "channels is not a whole"},
        {"voice", "\"channels\": 1", "\"channels\": 2", SHOAL_EFORMAT, "does not fit 2 inputs"},
        {"voice", "\"window\": 36", "\"window\": 1e9", SHOAL_EFORMAT,
         "window is not a whole number"},
        {"voice", "\"window\": 36", "\"window\": 12.5", SHOAL_EFORMAT,
         "window is not a whole number"},
        {"voice", "\"window\": 36", "\"window\": 33", SHOAL_OK, ""},
        {"voice", "\"window\": 36", "\"window\": 1048576", SHOAL_ELIMIT, "result of"},
        {"voice", "\"hop\": 32", "\"hop\": 37", SHOAL_EFORMAT,
         "hop is not a whole number from 1 to 36"},
        {"voice", "\"hop\": 32", "\"hop\": 32, \"mean\": 1", SHOAL_EFORMAT, "given together"},
        {"voice", "\"hop\": 32", "\"hop\": 32, \"mean\": 1, \"std\": 0", SHOAL_EFORMAT,
         "not positive"},
        {"voice", "\"hop\": 32", "\"hop\": 32, \"mean\": [1, 2], \"std\": 1", SHOAL_EFORMAT,
         "mean is not a list of 1 numbers"},
        {"voice", "\"hop\": 32", "\"hop\": 32, \"mean\": [\"a\"], \"std\": 1", SHOAL_EFORMAT,
         "mean: value 0 is not a number"},
        {"voice", "\"hop\": 32", "\"hop\": 32, \"names\": [1]", SHOAL_EFORMAT,
         "value 0 is not a string"},
        {"voice", "\"stateful\": true", "\"stateful\": 1", SHOAL_EFORMAT, "neither true nor false"},
        {"voice", "\"right\": 8", "\"right\": 36", SHOAL_EFORMAT,
         "36 samples are too few to reflect"},
        {"voice", "\"right\": 8", "\"right\": -1", SHOAL_EFORMAT, "right is not a whole number"},
        {"voice", "reflect", "wrap", SHOAL_EUNSUPPORTED, "layer 0: mode of pad"},
        {"voice", "\"pad\"", "\"attention\"", SHOAL_EUNSUPPORTED, "layer 0: type \"attention\""},
        {"voice", "\"type\": \"pad\"", "\"kind\": \"pad\"", SHOAL_EFORMAT,
         "layer 0: type is missing"},
        {"voice", "\"name\": \"stft\"", "\"name\": \"fft\"", SHOAL_EFORMAT,
         "tensor fft.weight is missing"},
        {"voice", "\"name\": \"stft\"", "\"name\": 1", SHOAL_EFORMAT, "conv1d has no name"},
        {"voice", "\"name\": \"stft\"", "\"name\": \"conv2\"", SHOAL_EFORMAT,
         "does not fit 1 inputs"},
        {"voice", "\"name\": \"stft\"", "\"groups\": 2, \"name\": \"stft\"", SHOAL_EUNSUPPORTED,
         "in 2 groups"},
        {"voice", "\"stride\": 8", "\"stride\": 0", SHOAL_EFORMAT, "stride is not a whole number"},
        {"voice", "\"stride\": 8", "\"dilation\": 9", SHOAL_EFORMAT, "a kernel over 136 samples"},
        {"voice", "\"hidden\": 32", "\"hidden\": 31", SHOAL_EFORMAT, "cell.weight_ih"},
        {"voice", "\"hidden\": 32", "\"hidden\": 32, \"layers\": 2", SHOAL_EFORMAT, "weight_ih_l1"},
        {"voice", "\"hidden\": 32", "\"hidden\": 32, \"bidirectional\": true", SHOAL_EFORMAT,
         "cannot be bidirectional"},
        {"voice", "\"lstm\"", "\"gru\"", SHOAL_EFORMAT, "cell.weight_ih"},
        {"voice", "\"final\"", "\"cell\"", SHOAL_EFORMAT, "tensor cell.weight is missing"},
        {"gru", "\"layer_norm\"", "\"relu\"", SHOAL_EFORMAT, "no layer uses tensor norm."},
        {"voice", "\"speech\"", "\"speech\", \"noise\"", SHOAL_EFORMAT,
         "names is not a list of 1 strings"},
        {"voice", "\"threshold\": 0.5", "\"threshold\": \"high\"", SHOAL_EFORMAT, "threshold"},
        {"voice", "\"output\": {", "\"output\": 1, \"x\": {", SHOAL_EFORMAT,
         "output is not an object"},
        {"gru", "0.001", "0", SHOAL_EFORMAT, "eps is not a number"},
        {"conv", "\"relu\"", "\"magnitude\"", SHOAL_EFORMAT, "c2.weight"},
        {"both", "\"layers\": [", "\"layers\": 3, \"x\": [", SHOAL_EFORMAT, "not a list of layers"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t n_config, n_weights;
        char *config = read_whole(cases[i].model, "config.json", &n_config);
        char *weights = read_whole(cases[i].model, "model.safetensors", &n_weights);
        char text[4096], *at = strstr(config, cases[i].from);
        struct recurrent *r;
        struct err e = {0};
        if (!at)
            fail_msg("%s has no %s", cases[i].model, cases[i].from);
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - config), config, cases[i].to,
                 at + strlen(cases[i].from));
        int rc = recurrent_parse(&r, text, strlen(text), weights, n_weights, NULL, &e);
        if (rc != cases[i].code || !strstr(e.msg, cases[i].text))
            fail_msg("%s -> %s: %d %s", cases[i].from, cases[i].to, rc, e.msg);
        if (rc < 0)
            assert_null(r);
        recurrent_close(r);
        free(config);
        free(weights);
    }
}

/* Non-finite values are refused, not computed with. */
static void test_hostile_weights(void **state)
{
    size_t n_config, n_weights;
    char *config = read_whole("stream", "config.json", &n_config);
    char *weights = read_whole("stream", "model.safetensors", &n_weights);
    struct recurrent *r;
    struct err e = {0};
    const float nan = NAN;
    (void)state;
    memcpy(weights + n_weights - sizeof(nan), &nan, sizeof(nan));
    assert_int_equal(recurrent_parse(&r, config, n_config, weights, n_weights, NULL, &e),
                     SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "a value is not finite"));
    assert_int_equal(recurrent_parse(&r, config, n_config, weights, n_weights - 4, NULL, &e),
                     SHOAL_EFORMAT);
    char *i8 = strstr(weights + 8, "F32");
    assert_non_null(i8);
    memcpy(i8, "I32", 3);
    assert_int_equal(recurrent_parse(&r, config, n_config, weights, n_weights, NULL, &e),
                     SHOAL_EUNSUPPORTED);
    struct recurrent_opts o = {.kernels = "abacus"};
    assert_true(recurrent_parse(&r, config, n_config, weights, n_weights, &o, &e) < 0);
    assert_null(r);
    free(config);
    free(weights);
}

static void test_open_errors(void **state)
{
    struct recurrent *r;
    struct err e = {0};
    (void)state;
    assert_int_equal(recurrent_open(&r, "/nonexistent", NULL, &e), SHOAL_EIO);
    assert_int_equal(recurrent_open(&r, SHOAL_TEST_DATA "/scorers", NULL, &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "config.json"));
    assert_null(r);
}

static void test_allocation_failures(void **state)
{
    static const char *const names[] = {"voice", "int8"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t n_config, n_weights;
        char *config = read_whole(names[i], "config.json", &n_config);
        char *weights = read_whole(names[i], "model.safetensors", &n_weights);
        int failures = 0, rc = SHOAL_ENOMEM;
        for (uint64_t at = 1; rc < 0; at++) {
            struct recurrent *r;
            struct err e = {0};
            mem_fail_at(at);
            rc = recurrent_parse(&r, config, n_config, weights, n_weights, NULL, &e);
            mem_fail_at(0);
            if (rc < 0) {
                assert_int_equal(rc, SHOAL_ENOMEM);
                assert_int_equal(e.code, SHOAL_ENOMEM);
                assert_null(r);
                failures++;
            }
            recurrent_close(r);
        }
        assert_true(failures > 15);
        free(config);
        free(weights);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_pytorch),  cmocka_unit_test(test_streams),
        cmocka_unit_test(test_missing_samples), cmocka_unit_test(test_info),
        cmocka_unit_test(test_hostile),         cmocka_unit_test(test_hostile_weights),
        cmocka_unit_test(test_open_errors),     cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
