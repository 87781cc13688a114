/* test_trees.c - LightGBM models of every kind against LightGBM's own output (made by
 * tools/make_tree_refs.py), and hostile files. */
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
#include "score/trees.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

enum { N_ROWS = 1000, N_FEATURES = 8, MAX_OUTPUTS = 4 };

/* ---- against LightGBM ---- */

/* value() of tools/make_tree_refs.py, with missing values */
static double value_at(uint64_t row, uint64_t f)
{
    uint64_t h = hash_mix(row * 64 + f + 1);
    if (h % 7 == 0)
        return NAN;
    if (f < 5)
        return h % 5 == 0 ? 0 : (double)(h >> 11) / 2251799813685248.0 - 2;
    if (f == 5)
        return (double)(h % 12);
    if (f == 6)
        return (double)(h % 70) - 1;
    return (double)(h % 4);
}

static void make_rows(double *rows)
{
    for (uint64_t r = 0; r < N_ROWS; r++)
        for (uint64_t f = 0; f < N_FEATURES; f++)
            rows[r * N_FEATURES + f] = value_at(r, f);
}

static char *read_whole(const char *path, size_t *n)
{
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

static void test_equals_lightgbm(void **state)
{
    static const struct {
        const char *name;
        uint32_t n_outputs, n_trees;
        const char *objective;
    } kinds[] = {
        {"regression", 1, 13, "regression"},
        {"sqrt", 1, 5, "regression sqrt"},
        {"categorical", 1, 12, "binary sigmoid:1"},
        {"categorical_onehot", 1, 9, "regression_l1"},
        {"missing", 1, 20, "binary sigmoid:0.7"},
        {"missing_zero", 1, 17, "regression"},
        {"missing_categorical", 1, 12, "regression"},
        {"dart", 1, 20, "binary sigmoid:1"},
        {"multiclass", 3, 27, "multiclass num_class:3"},
        {"multiclassova", 4, 20, "multiclassova num_class:4 sigmoid:1"},
        {"forest", 1, 11, "binary sigmoid:1"},
        {"forest_multiclass", 3, 12, "multiclass num_class:3"},
        {"poisson", 1, 8, "poisson"},
        {"gamma", 1, 8, "gamma"},
        {"tweedie", 1, 8, "tweedie"},
        {"cross_entropy", 1, 8, "cross_entropy"},
        {"cross_entropy_lambda", 1, 8, "cross_entropy_lambda"},
        {"lambdarank", 1, 8, "lambdarank"},
        {"linear", 1, 6, "regression"},
        {"custom", 1, 3, ""},
        {"stump", 1, 3, "regression"},
    };
    static double rows[N_ROWS * N_FEATURES], out[N_ROWS * MAX_OUTPUTS];
    (void)state;
    make_rows(rows);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        char path[512];
        struct trees *t;
        struct err e = {0};
        size_t n;
        snprintf(path, sizeof(path), SHOAL_TEST_DATA "/scorers/trees/%s.txt", kinds[i].name);
        if (trees_open(&t, path, &e) < 0)
            fail_msg("%s", e.msg);
        struct trees_info info = trees_info(t);
        assert_int_equal(info.n_features, N_FEATURES);
        assert_string_equal(info.feature_names[7], "Column_7");
        assert_int_equal(info.n_outputs, kinds[i].n_outputs);
        assert_int_equal(info.n_trees, kinds[i].n_trees);
        assert_string_equal(info.objective, kinds[i].objective);
        assert_int_equal(info.average, strncmp(kinds[i].name, "forest", 6) == 0);

        snprintf(path, sizeof(path), SHOAL_TEST_DATA "/scorers/trees/%s.f64", kinds[i].name);
        double *want = (double *)(void *)read_whole(path, &n);
        size_t n_values = (size_t)N_ROWS * info.n_outputs;
        assert_int_equal(n, 2 * n_values * sizeof(double));
        double *scratch = malloc(trees_scratch(t) * sizeof(double));
        for (int raw = 0; raw < 2; raw++) {
            trees_predict(t, rows, N_ROWS, raw, out, scratch);
            for (size_t k = 0; k < n_values; k++) {
                double err = fabs(out[k] - want[(size_t)raw * n_values + k]);
                if (!(err <= 1e-12))
                    fail_msg("%s%s: value %zu is %.17g, not %.17g", kinds[i].name,
                             raw ? " raw" : "", k, out[k], want[(size_t)raw * n_values + k]);
            }
        }
        /* one row at a time: the same bits */
        double one[MAX_OUTPUTS];
        trees_predict(t, rows, N_ROWS, false, out, scratch);
        for (size_t r = 0; r < N_ROWS; r++) {
            trees_predict(t, rows + r * N_FEATURES, 1, false, one, scratch);
            assert_memory_equal(one, out + r * info.n_outputs, info.n_outputs * sizeof(double));
        }
        free(scratch);
        free(want);
        trees_close(t);
    }
}

/* ---- by hand ---- */

#define HEADER                                                                                     \
    "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=1\n"  \
    "objective=regression\nfeature_names=a b\nfeature_infos=none none\n\n"
/* x <= 0.5 ? leaf 1 : b in {1, 33} ? leaf 0 : leaf 2 */
#define TREE                                                                                       \
    "Tree=0\nnum_leaves=3\nnum_cat=1\nsplit_feature=0 1\nthreshold=0.5 0\ndecision_type=0 1\n"     \
    "left_child=-2 -1\nright_child=1 -3\nleaf_value=10 20 30\ncat_boundaries=0 2\n"                \
    "cat_threshold=2 2\nshrinkage=1\n\n\nend of trees\n"

static struct trees *parse(const char *text)
{
    struct trees *t;
    struct err e = {0};
    if (trees_parse(&t, text, strlen(text), &e) < 0)
        fail_msg("%s", e.msg);
    return t;
}

static double predict(const struct trees *t, double a, double b)
{
    double row[2] = {a, b}, out, scratch[16];
    assert_true(trees_scratch(t) <= ARRAY_LEN(scratch));
    trees_predict(t, row, 1, false, &out, scratch);
    return out;
}

static void test_categories(void **state)
{
    static const struct {
        const char *why;
        double b, want;
    } cases[] = {
        {"in the set", 1, 10},
        {"in its second word", 33, 10},
        {"not in it", 2, 30},
        {"past its words", 64, 30},
        {"far past them", 2147483647, 30},
        {"no int", 2147483648.0, 30},
        {"not even close", 1e300, 30},
        {"minus that", -1e300, 30},
        {"infinity", INFINITY, 30},
        {"negative", -1, 30},
        {"cut to an integer", 33.9, 10},
        {"cut to zero", -0.9, 30},
        {"missing", NAN, 30},
    };
    struct trees *t = parse(HEADER TREE);
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (predict(t, 1, cases[i].b) != cases[i].want)
            fail_msg("%s", cases[i].why);
    assert_true(predict(t, 0.5, 1) == 20);
    assert_true(predict(t, NAN, 1) == 20);
    assert_true(predict(t, nextafter(0.5, 1), 1) == 10);
    assert_true(predict(t, INFINITY, 1) == 10);

    double row[2] = {1, 7}, scratch[16];
    uint32_t leaf;
    trees_leaves(t, row, &leaf, scratch);
    assert_int_equal(leaf, 2);
    trees_close(t);
}

/* LightGBM drops values up to 1e-35f when it reads a row. */
static void test_tiny_values_are_zero(void **state)
{
    static const struct {
        const char *threshold;
        double x;
        bool left;
    } cases[] = {
        {"0", 0, true},
        {"0", 1e-36, true},
        {"0", 1e-34, false},
        {"-1e-36", 0, false},
        {"-1e-36", -1e-35, false},
        {"-1e-36", -1e-34, true},
        {"1.0000000180025095e-35", 1e-35, true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[1024];
        snprintf(text, sizeof(text),
                 HEADER "Tree=0\nnum_leaves=2\nnum_cat=0\nsplit_feature=1\nthreshold=%s\n"
                        "decision_type=2\nleft_child=-1\nright_child=-2\nleaf_value=1 2\n",
                 cases[i].threshold);
        struct trees *t = parse(text);
        if (predict(t, 0, cases[i].x) != (cases[i].left ? 1 : 2))
            fail_msg("%s and %g", cases[i].threshold, cases[i].x);
        trees_close(t);
    }
}

/* A missing value that goes right differs from an infinite one, and a threshold may be infinite. */
static void test_infinite_thresholds(void **state)
{
    static const struct {
        const char *why;
        int decision;
        double x;
        bool left;
    } cases[] = {
        {"missing goes right", 8, NAN, false},
        {"and left", 10, NAN, true},
        {"as zero does", 4, 0, false},
        {"or left", 6, 0, true},
        {"infinity is below infinity", 8, INFINITY, true},
        {"where zero is missing too", 4, INFINITY, true},
        {"and where nothing is", 0, INFINITY, true},
        {"all else is", 8, 1e300, true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[1024];
        snprintf(text, sizeof(text),
                 HEADER "Tree=0\nnum_leaves=2\nnum_cat=0\nsplit_feature=1\nthreshold=inf\n"
                        "decision_type=%d\nleft_child=-1\nright_child=-2\nleaf_value=1 2\n",
                 cases[i].decision);
        struct trees *t = parse(text);
        if (predict(t, 0, cases[i].x) != (cases[i].left ? 1 : 2))
            fail_msg("%s", cases[i].why);
        trees_close(t);
    }
}

/* Up to LightGBM 2.2.2 the leaves of a forest were transformed values. */
static void test_old_forest(void **state)
{
    static const struct {
        const char *version, *leaf;
        double want;
    } cases[] = {
        {"v2", "0.25 0.75", 0.25},
        {"v2", "-0.25 0.75", 0.4378234991142019}, /* 1 / (1 + exp(0.25)) */
        {"v4", "0.25 0.75", 0.5621765008857981},  /* 1 / (1 + exp(-0.25)) */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[1024];
        snprintf(
            text, sizeof(text),
            "tree\r\nversion=%s\r\nnum_class=1\nmax_feature_idx=1\nobjective=binary sigmoid:1\n"
            "average_output\nfeature_names=a b\n\nTree=0\nnum_leaves=2\nnum_cat=0\n"
            "split_feature=1\nthreshold=3\nleft_child=-1\nright_child=-2\nleaf_value=%s\n",
            cases[i].version, cases[i].leaf);
        struct trees *t = parse(text);
        assert_true(trees_info(t).average);
        assert_float_equal(predict(t, 0, 0), cases[i].want, 1e-15);
        trees_close(t);
    }
}

/* ---- hostile files ---- */

static void test_hostile(void **state)
{
    static const struct {
        const char *from, *to; /* the part to replace in HEADER TREE */
        int code;
        const char *text;
    } cases[] = {
        {"tree\nversion", "trees\nversion", SHOAL_EFORMAT, "not a LightGBM model"},
        {"num_class=1\n", "", SHOAL_EFORMAT, "no num_class"},
        {"num_class=1\n", "num_class=2\n", SHOAL_EUNSUPPORTED, "2 classes with 1 trees"},
        {"num_class=1\n", "num_class=0\n", SHOAL_EFORMAT, "num_class is not a number from 1"},
        {"max_feature_idx=1", "max_feature_idx=-1", SHOAL_EFORMAT, "max_feature_idx is not"},
        {"max_feature_idx=1", "max_feature_idx=9999999", SHOAL_EFORMAT, "too short"},
        {"max_feature_idx=1", "max_feature_idx=2", SHOAL_EFORMAT, "2 names for 3 features"},
        {"=regression", "=guesswork x", SHOAL_EUNSUPPORTED, "objective guesswork"},
        {"=regression", "=binary sigmoid:-1", SHOAL_EFORMAT, "sigmoid"},
        {"num_leaves=3", "num_leaves=4", SHOAL_EFORMAT, "leaf_value has 3 values, expected 4"},
        {"num_leaves=3", "num_leaves=0", SHOAL_EFORMAT, "tree 0, line 11: num_leaves is missing"},
        {"num_leaves=3", "num_leaves=99999999", SHOAL_EFORMAT, "num_leaves is not a number"},
        {"num_leaves=3\n", "", SHOAL_EFORMAT, "num_leaves is missing"},
        {"split_feature=0 1", "split_feature=0 2", SHOAL_EFORMAT,
         "node 1: feature 2 is not one of 2"},
        {"split_feature=0 1", "split_feature=0 -1", SHOAL_EFORMAT,
         "node 1: feature -1 is not one of 2"},
        {"split_feature=0 1", "split_feature=0", SHOAL_EFORMAT,
         "split_feature has 1 values, expected 2"},
        {"split_feature=0 1", "split_feature=0 x", SHOAL_EFORMAT, "value 1 is not a number: x"},
        {"split_feature=0 1", "split_feature=0 9999999999999999999", SHOAL_EFORMAT, "value 1"},
        {"threshold=0.5 0\n", "threshold=nan 0\n", SHOAL_EFORMAT, "value 0 is not a number: nan"},
        {"threshold=0.5 0\n", "threshold=0.5 1\n", SHOAL_EFORMAT, "no set 1 among 1"},
        {"threshold=0.5 0\n", "threshold=0.5 0.5\n", SHOAL_EFORMAT, "no set 0.5 among 1"},
        {"decision_type=0 1", "decision_type=0 12", SHOAL_EFORMAT, "decision type 12"},
        {"left_child=-2 -1", "left_child=-2 -4", SHOAL_EFORMAT, "no leaf 3 among 3"},
        {"left_child=-2 -1", "left_child=-2 2", SHOAL_EFORMAT, "no node 2 among 2"},
        {"left_child=-2 -1", "left_child=-2 0", SHOAL_EFORMAT, "node 0 has two parents"},
        {"left_child=-2 -1", "left_child=-2 1", SHOAL_EFORMAT, "node 1 has two parents"},
        {"left_child=-2 -1", "left_child=-2 -2", SHOAL_EFORMAT, "leaf 1 has two parents"},
        {"right_child=1 -3", "right_child=-1 -3", SHOAL_OK, ""}, /* node 1 is never reached */
        {"leaf_value=10", "leaf_value=1e400", SHOAL_EFORMAT, "leaf 0: value is not finite"},
        {"cat_boundaries=0 2", "cat_boundaries=0 3", SHOAL_EFORMAT,
         "words 0 to 3 is outside the 2 words"},
        {"cat_boundaries=0 2", "cat_boundaries=2 0", SHOAL_EFORMAT,
         "words 2 to 0 is outside the 2 words"},
        {"cat_boundaries=0 2", "cat_boundaries=-1 2", SHOAL_EFORMAT,
         "words -1 to 2 is outside the 2 words"},
        {"cat_threshold=2 2", "cat_threshold=2 4294967296", SHOAL_EFORMAT, "set word 4294967296"},
        {"shrinkage=1", "is_linear=1", SHOAL_EFORMAT, "no leaf_const"},
        {"shrinkage=1",
         "is_linear=1\nleaf_const=1 2 3\nnum_features=1 1 -1\nleaf_features=0 0\n"
         "leaf_coeff=1 1",
         SHOAL_EFORMAT, "leaf 2: bad constant or number of coefficients (-1)"},
        {"shrinkage=1",
         "is_linear=1\nleaf_const=1 2 3\nnum_features=1 1 1\nleaf_features=0 0\n"
         "leaf_coeff=1 1",
         SHOAL_EFORMAT, "leaf 2: bad constant or number of coefficients (1)"},
        {"shrinkage=1",
         "is_linear=1\nleaf_const=1 2 3\nnum_features=1 1 0\nleaf_features=0 2\n"
         "leaf_coeff=1 1",
         SHOAL_EFORMAT, "leaf 1: bad coefficient of feature 2"},
        {"Tree=0", "Treat=0", SHOAL_EFORMAT, "0 trees"},
        {"Tree=0", "end of trees", SHOAL_EFORMAT, "0 trees"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[2048];
        const char *all = HEADER TREE, *at = strstr(all, cases[i].from);
        struct trees *t;
        struct err e = {0};
        assert_non_null(at);
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - all), all, cases[i].to,
                 at + strlen(cases[i].from));
        int rc = trees_parse(&t, text, strlen(text), &e);
        if (rc != cases[i].code || !strstr(e.msg, cases[i].text))
            fail_msg("%s -> %s: %d %s", cases[i].from, cases[i].to, rc, e.msg);
        if (rc < 0)
            assert_null(t);
        trees_close(t);
    }
}

/* Every prefix of a file is rejected or runs. */
static void test_truncated(void **state)
{
    const char *all = HEADER TREE;
    (void)state;
    for (size_t n = 0; n <= strlen(all); n++) {
        char *copy = malloc(n ? n : 1); /* separate memory, so that overreads are detected */
        struct trees *t;
        struct err e = {0};
        memcpy(copy, all, n);
        if (trees_parse(&t, copy, n, &e) == 0)
            assert_true(isfinite(predict(t, 1, 1)));
        trees_close(t);
        free(copy);
    }
}

static void test_open_errors(void **state)
{
    struct trees *t;
    struct err e = {0};
    (void)state;
    assert_int_equal(trees_open(&t, "/nonexistent/model.txt", &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "cannot open /nonexistent/model.txt"));
    assert_int_equal(trees_open(&t, "/tmp", &e), SHOAL_EIO);
    assert_null(t);
    assert_true(trees_detect("tree\nversion=v4\n", 16));
    assert_false(trees_detect("tree\nversion", 12));
}

static void test_allocation_failures(void **state)
{
    size_t n;
    char *text = read_whole(SHOAL_TEST_DATA "/scorers/trees/linear.txt", &n);
    int failures = 0, rc = SHOAL_ENOMEM;
    (void)state;
    for (uint64_t at = 1; rc < 0; at++) {
        struct trees *t;
        struct err e = {0};
        mem_fail_at(at);
        rc = trees_parse(&t, text, n, &e);
        mem_fail_at(0);
        if (rc < 0) {
            assert_int_equal(rc, SHOAL_ENOMEM);
            assert_int_equal(e.code, SHOAL_ENOMEM);
            assert_null(t);
            failures++;
        }
        trees_close(t);
    }
    assert_true(failures > 20);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_lightgbm),
        cmocka_unit_test(test_categories),
        cmocka_unit_test(test_tiny_values_are_zero),
        cmocka_unit_test(test_infinite_thresholds),
        cmocka_unit_test(test_old_forest),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_open_errors),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
