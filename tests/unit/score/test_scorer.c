/* test_scorer.c - the common interface of all scorers: what it picks, what it reports, and that
 * a series, a stream and the module underneath give the same scores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "score/scorer.h"

#define DATA SHOAL_TEST_DATA "/scorers/"
#define ANOMALY SHOAL_TEST_DATA "/../../models/anomaly"
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

enum { N_ROWS = 100 };

static struct scorer *open_one(const char *path, const struct scorer_opts *o)
{
    struct scorer *s;
    struct err e = {0};
    if (scorer_open(&s, path, o, &e) < 0)
        fail_msg("%s", e.msg);
    return s;
}

static void test_info(void **state)
{
    (void)state;
    struct scorer *s = open_one(DATA "trees/multiclass.txt", NULL);
    struct scorer_info i = scorer_info(s);
    assert_int_equal(i.kind, SCORER_TREES);
    assert_string_equal(i.description, "27 LightGBM trees, multiclass num_class:3");
    assert_int_equal(i.n_inputs, 8);
    assert_int_equal(i.n_outputs, 3);
    assert_string_equal(i.output_names[2], "class2");
    assert_string_equal(i.input_names[0], "Column_0");
    assert_int_equal(i.window, 1);
    assert_int_equal(scorer_n_scores(s, 5), 5);
    assert_int_equal(scorer_state_bytes(s, 8), 0);
    scorer_close(s);

    s = open_one(DATA "voice", NULL);
    i = scorer_info(s);
    assert_int_equal(i.kind, SCORER_LAYERS);
    assert_string_equal(i.description, "12 layers");
    assert_int_equal(i.n_inputs, 1);
    assert_int_equal(i.window, 36);
    assert_int_equal(i.hop, 32);
    assert_true(i.stateful && i.has_threshold);
    assert_string_equal(i.output_names[0], "speech");
    assert_int_equal(scorer_n_scores(s, 64), 2);
    scorer_close(s);

    s = open_one(ANOMALY, NULL);
    i = scorer_info(s);
    assert_int_equal(i.kind, SCORER_ANOMALY);
    assert_string_equal(i.description, "anomalies: 100 LightGBM trees and layers, int8");
    assert_int_equal(i.n_inputs, 0);
    assert_true(i.max_inputs >= 1000 && i.stateful);
    assert_string_equal(i.output_names[1], "alarm");
    assert_true(scorer_state_bytes(s, 2) > scorer_state_bytes(s, 1));
    scorer_close(s);

    s = open_one(DATA "both/config.json", &(struct scorer_opts){.int8 = true});
    assert_string_equal(scorer_info(s).description, "5 layers, int8");
    scorer_close(s);
}

/* A whole series and its steps: the same bits; raw scores differ. */
static void test_run_and_step(void **state)
{
    static const char *const paths[] = {DATA "trees/multiclass.txt",
                                        DATA "trees/missing.txt",
                                        DATA "stream",
                                        DATA "voice",
                                        DATA "conv",
                                        ANOMALY};
    static double rows[N_ROWS * 8], out[N_ROWS * 3], raw[N_ROWS * 3], one[3];
    (void)state;
    for (size_t p = 0; p < ARRAY_LEN(paths); p++) {
        struct scorer *s = open_one(paths[p], NULL);
        struct scorer_info i = scorer_info(s);
        const uint32_t columns = i.n_inputs ? i.n_inputs : 5;
        for (uint64_t k = 0; k < (uint64_t)N_ROWS * columns; k++)
            rows[k] = k % 11 == 3 ? NAN : (double)(hash_mix(k + 1) % 4096) / 1024 - 2;
        void *scratch = mem_aligned(scorer_scratch_bytes(s));
        void *memory = mem_aligned(scorer_state_bytes(s, columns) + 1);
        size_t n = scorer_n_scores(s, N_ROWS);
        assert_true(n > 0);
        uint64_t calls = mem_calls();
        scorer_run(s, rows, N_ROWS, columns, out, memory, scratch);
        assert_int_equal(mem_calls(), calls);
        for (size_t k = 0; k < n * i.n_outputs; k++)
            assert_true(isfinite(out[k]));
        scorer_reset(s, memory, columns);
        for (size_t k = 0; (i.stateful || i.kind == SCORER_TREES) && k < n; k++) {
            scorer_step(s, memory, rows + k * i.hop * columns, one, scratch);
            assert_memory_equal(one, out + k * i.n_outputs, i.n_outputs * sizeof(double));
        }
        mem_free(memory);
        if (i.kind == SCORER_TREES) {
            struct scorer *r = open_one(paths[p], &(struct scorer_opts){.raw = true});
            scorer_run(r, rows, N_ROWS, columns, raw, NULL, scratch);
            assert_true(fabs(raw[0] - out[0]) > 1e-3);
            scorer_close(r);
        }
        mem_free(scratch);
        scorer_close(s);
    }
}

static void test_errors(void **state)
{
    char path[] = "/tmp/shoal-scorer-XXXXXX";
    static const struct {
        const char *content;
        int code;
        const char *text;
    } cases[] = {
        {"GGUF....", SHOAL_EUNSUPPORTED, "is neither a LightGBM model text nor"},
        {"   ", SHOAL_EUNSUPPORTED, "is neither"},
        {"tree\nversion=v3\n", SHOAL_EFORMAT, "no num_class"},
        {"{\"model_type\": \"bert\"}", SHOAL_EFORMAT, "model_type is \"bert\", not shoal_scorer"},
        {"{\"model_type\": \"shoal_scorer\"}", SHOAL_EIO, "model.safetensors"},
        {"{}", SHOAL_EFORMAT, "model_type is missing"},
        {"{\"tree_info\": []}", SHOAL_EUNSUPPORTED, "a JSON dump of LightGBM trees"},
        {"", SHOAL_EFORMAT, "empty"},
    };
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scorer *s;
        struct err e = {0};
        FILE *f = fopen(path, "w");
        fputs(cases[i].content, f);
        fclose(f);
        int rc = scorer_open(&s, path, NULL, &e);
        if (rc != cases[i].code || !strstr(e.msg, cases[i].text))
            fail_msg("%s: %d %s", cases[i].content, rc, e.msg);
        assert_null(s);
    }
    close(fd);
    unlink(path);
    struct scorer *s;
    struct err e = {0};
    assert_int_equal(scorer_open(&s, "/nonexistent", NULL, &e), SHOAL_EIO);
}

static void test_allocation_failures(void **state)
{
    static const char *const paths[] = {DATA "trees/stump.txt", DATA "stream", ANOMALY};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        int failures = 0, rc = SHOAL_ENOMEM;
        for (uint64_t at = 1; rc < 0; at++) {
            struct scorer *s;
            struct err e = {0};
            mem_fail_at(at);
            rc = scorer_open(&s, paths[i], NULL, &e);
            mem_fail_at(0);
            if (rc < 0) {
                assert_int_equal(rc, SHOAL_ENOMEM);
                assert_null(s);
                failures++;
            }
            scorer_close(s);
        }
        assert_true(failures > 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_run_and_step),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
