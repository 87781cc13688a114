/* test_anomaly.c - the anomaly model of the pack against the output of its training program
 * (tests/data/anomaly/check.json), its alarm rules, and hostile values and files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "score/anomaly.h"
#include "score/anomaly_features.h"

#define FOLDER SHOAL_TEST_DATA "/../../models/anomaly"
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

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

static struct anomaly *open_pack(void)
{
    struct anomaly *a;
    struct err e = {0};
    if (anomaly_open(&a, FOLDER, &e) < 0)
        fail_msg("%s", e.msg);
    return a;
}

/* ---- the reference ---- */

static cJSON *read_check(void)
{
    size_t n;
    char *text = read_whole(SHOAL_TEST_DATA "/anomaly/check.json", &n);
    cJSON *j = cJSON_ParseWithLength(text, n);
    free(text);
    assert_non_null(j);
    return j;
}

static double number_at(const cJSON *list, int i)
{
    const cJSON *v = cJSON_GetArrayItem(list, i);
    assert_true(cJSON_IsNumber(v));
    return v->valuedouble;
}

static const cJSON *row_at(const cJSON *check, int at)
{
    const cJSON *r;
    cJSON_ArrayForEach(r, cJSON_GetObjectItem(check, "rows"))
    {
        if (cJSON_GetObjectItem(r, "at")->valueint == at)
            return r;
    }
    return NULL;
}

static void test_features(void **state)
{
    static const uint8_t layer_inputs[] = {ANOMALY_Z_LONG,         ANOMALY_Z_64, ANOMALY_Z_16,
                                           ANOMALY_SPREAD_16,      ANOMALY_STEP, ANOMALY_FIRST_16,
                                           ANOMALY_FIRST_SPREAD_16};
    cJSON *check = read_check();
    const cJSON *values = cJSON_GetObjectItem(check, "values");
    double worst = 0;
    int n_rows = 0;
    (void)state;
    for (int ch = 0; ch < 2; ch++) {
        struct anomaly_channel c = {0};
        const cJSON *v;
        int at = 0;
        cJSON_ArrayForEach(v, values)
        {
            float f[ANOMALY_N_FEATURES];
            int direction = anomaly_channel_push(&c, number_at(v, ch), 256, f);
            const cJSON *r = row_at(check, at++);
            if (!r)
                continue;
            n_rows++;
            const cJSON *want = cJSON_GetArrayItem(cJSON_GetObjectItem(r, "features"), ch);
            for (int i = 0; i < ANOMALY_N_FEATURES; i++) {
                bool size =
                    i <= ANOMALY_SHIFT_16_256 || i == ANOMALY_FIRST_16 || i == ANOMALY_FIRST_64;
                double got = (double)(size ? fabsf(f[i]) : f[i]);
                worst = fmax(worst, fabs(got - number_at(want, i)));
            }
            want = cJSON_GetArrayItem(cJSON_GetObjectItem(r, "lstm_in"), ch);
            for (int i = 0; i < (int)ARRAY_LEN(layer_inputs); i++) {
                double got = (double)f[layer_inputs[i]];
                got = layer_inputs[i] == ANOMALY_STEP ? got * direction : got;
                worst = fmax(worst, fabs(got - number_at(want, i)));
            }
        }
    }
    print_message("features: worst error %.2g\n", worst);
    assert_int_equal(n_rows, 26);
    assert_true(worst < 2e-5);
    cJSON_Delete(check);
}

static void test_scores(void **state)
{
    struct anomaly *a = open_pack();
    struct anomaly_info info = anomaly_info(a);
    cJSON *check = read_check();
    double worst = 0, worst_score = 0;
    (void)state;
    assert_int_equal(info.n_trees, 100);
    assert_true(info.int8);
    void *scratch = mem_aligned(anomaly_scratch_bytes(a));
    for (uint32_t channels = 1; channels <= 2; channels++) {
        void *memory = mem_aligned(anomaly_state_bytes(a, channels));
        double level = channels == 1 ? info.level_one : info.level_several;
        const cJSON *v;
        int at = 0, n_rows = 0;
        anomaly_reset(a, memory, channels);
        uint64_t calls = mem_calls();
        cJSON_ArrayForEach(v, cJSON_GetObjectItem(check, "values"))
        {
            double row[2] = {number_at(v, 0), number_at(v, 1)};
            struct anomaly_point p;
            anomaly_step(a, memory, row, &p, scratch);
            assert_true((p.score >= 0.5) == (p.value >= level));
            assert_true(fabs(p.score - 1 / (1 + exp(level - p.value))) < 1e-12);
            const cJSON *r = row_at(check, at++);
            if (!r)
                continue;
            n_rows++;
            const cJSON *want = cJSON_GetObjectItem(r, channels == 1 ? "one_channel" : "compared");
            worst = fmax(worst, fabs(p.value - want->valuedouble));
            double score = 1 / (1 + exp(level - want->valuedouble));
            worst_score = fmax(worst_score, fabs(p.score - score));
        }
        assert_int_equal(n_rows, 13);
        assert_int_equal(mem_calls(), calls);
        mem_free(memory);
    }
    print_message("values: worst error %.2g, scores %.2g\n", worst, worst_score);
    /* The reference rounds the LSTM's matrix to 8 bits; we also round the vector. */
    assert_true(worst < 5e-3 && worst_score < 1e-3);
    mem_free(scratch);
    anomaly_close(a);
    cJSON_Delete(check);
}

/* ---- alarms ---- */

/* A calm machine that jumps twice: the alarm lasts while it is above the level, plus `pause`
 * points. */
static void test_alarm_pauses(void **state)
{
    enum { N = 1500 };
    struct anomaly *a = open_pack();
    struct anomaly_info info = anomaly_info(a);
    void *scratch = mem_aligned(anomaly_scratch_bytes(a));
    void *memory = mem_aligned(anomaly_state_bytes(a, 1));
    uint64_t last_on = 0, n_alarms = 0, n_held = 0;
    (void)state;
    anomaly_reset(a, memory, 1);
    for (uint64_t t = 1; t <= N; t++) {
        bool fault = (t > 700 && t < 760) || (t > 1300 && t < 1340);
        double x = 20 + (double)(hash_mix(t) % 1000) / 1000 + (fault ? 15 : 0);
        struct anomaly_point p;
        anomaly_step(a, memory, &x, &p, scratch);
        if (p.value >= info.level_one && t > info.warm_up)
            last_on = t;
        assert_true(p.alarm == (last_on > 0 && t - last_on <= info.pause));
        n_alarms += p.alarm;
        n_held += p.alarm && p.value < info.level_one;
    }
    assert_true(n_alarms > 2 * n_held && n_alarms < N / 4);
    assert_int_equal(n_held % info.pause, 0);
    assert_true(n_held > 0);
    mem_free(memory);
    mem_free(scratch);
    anomaly_close(a);
}

/* ---- values of all kinds ---- */

/* Missing values leave a channel unchanged; rows of them repeat the last answer. */
static void test_missing(void **state)
{
    struct anomaly *a = open_pack();
    void *scratch = mem_aligned(anomaly_scratch_bytes(a));
    size_t bytes = anomaly_state_bytes(a, 3);
    char *memory = mem_aligned(bytes), *same = mem_aligned(bytes);
    struct anomaly_point p, q;
    (void)state;
    anomaly_reset(a, memory, 3);
    anomaly_step(a, memory, (const double[]){NAN, INFINITY, -INFINITY}, &p, scratch);
    assert_true(p.value == 0 && p.score > 0 && p.score < 0.5 && !p.alarm);
    anomaly_reset(a, same, 3);
    assert_memory_equal(memory, same, bytes); /* no data arrived */
    for (int t = 0; t < 200; t++) {
        double row[] = {t % 7, t % 3 ? (double)NAN : t % 5, NAN};
        anomaly_step(a, memory, row, &p, scratch);
        memcpy(same, memory, bytes);
        anomaly_step(a, memory, (const double[]){NAN, NAN, NAN}, &q, scratch);
        assert_memory_equal(memory, same, bytes);
        assert_memory_equal(&p, &q, sizeof(p));
    }
    mem_free(memory);
    mem_free(same);
    mem_free(scratch);
    anomaly_close(a);
}

static void test_wild_values(void **state)
{
    static const double wild[] = {0, -0.0, 1e308, -1e308, 5e-324, 1, -1, 1e-300, 1e100, -1e100};
    struct anomaly *a = open_pack();
    void *scratch = mem_aligned(anomaly_scratch_bytes(a));
    (void)state;
    for (uint32_t kind = 0; kind < 6; kind++)
        for (uint32_t channels = 1; channels <= 5; channels += 2) {
            void *memory = mem_aligned(anomaly_state_bytes(a, channels));
            anomaly_reset(a, memory, channels);
            for (uint64_t t = 0; t < 3000; t++) {
                double row[5];
                struct anomaly_point p;
                for (uint32_t c = 0; c < channels; c++) {
                    uint64_t h = hash_mix(t * 8 + c + kind * 1000000);
                    row[c] = kind == 0   ? 42.0 /* constant */
                             : kind == 1 ? wild[h % ARRAY_LEN(wild)]
                             : kind == 2 ? (t < 1500 ? 1e308 : 0)
                             : kind == 3 ? (double)t * 1e300
                             : kind == 4 ? (t == 5 ? 1e300 : 1)
                                         : (h % 3 ? 1e-310 * (double)h : NAN);
                }
                anomaly_step(a, memory, row, &p, scratch);
                assert_true(isfinite(p.value) && p.score >= 0 && p.score <= 1);
                if (kind == 0)
                    assert_false(p.alarm);
            }
            mem_free(memory);
        }
    mem_free(scratch);
    anomaly_close(a);
}

/* ---- files ---- */

/* Four files, with one text replaced in the config. */
struct files {
    char *config, *trees, *layers, *weights, text[4096];
    struct anomaly_bytes bytes;
};

static void read_files(struct files *f)
{
    struct anomaly_bytes *b = &f->bytes;
    b->config = f->config = read_whole(FOLDER "/config.json", &b->n_config);
    b->trees = f->trees = read_whole(FOLDER "/trees.txt", &b->n_trees);
    b->layers = f->layers = read_whole(FOLDER "/lstm/config.json", &b->n_layers);
    b->weights = f->weights = read_whole(FOLDER "/lstm/model.safetensors", &b->n_weights);
}

static void replace(struct files *f, const char *from, const char *to)
{
    const char *at = strstr(f->config, from);
    if (!at)
        fail_msg("no %s", from);
    snprintf(f->text, sizeof(f->text), "%.*s%s%s", (int)(at - f->config), f->config, to,
             at + strlen(from));
    f->bytes.config = f->text;
    f->bytes.n_config = strlen(f->text);
}

static void free_files(struct files *f)
{
    free(f->config);
    free(f->trees);
    free(f->layers);
    free(f->weights);
}

/* At a level that is always reached, the alarm starts at the end of the warm-up. */
static void test_warm_up(void **state)
{
    struct files f;
    struct anomaly *a;
    struct err e = {0};
    (void)state;
    read_files(&f);
    replace(&f, "\"level\": 2.859", "\"level\": -999");
    assert_int_equal(anomaly_parse(&a, &f.bytes, &e), 0);
    void *scratch = mem_aligned(anomaly_scratch_bytes(a));
    void *memory = mem_aligned(anomaly_state_bytes(a, 1));
    anomaly_reset(a, memory, 1);
    for (int t = 1; t <= 100; t++) {
        double x = t % 9;
        struct anomaly_point p;
        anomaly_step(a, memory, &x, &p, scratch);
        assert_true(p.alarm == (t > 64) && p.score > 0.99);
    }
    mem_free(memory);
    mem_free(scratch);
    anomaly_close(a);
    free_files(&f);
}

static void test_hostile(void **state)
{
    static const struct {
        const char *from, *to; /* the part to replace in the config */
        int code;
        const char *text;
    } cases[] = {
        {"{", "{", SHOAL_OK, ""},
        {"{", "[", SHOAL_EFORMAT, "config is not a JSON object"},
        {"shoal_anomaly", "shoal_scorer", SHOAL_EFORMAT, "not shoal_anomaly"},
        {"\"features\": [", "\"features\": 1, \"x\": [", SHOAL_EFORMAT, "features is not a list"},
        {"\"z_long\"", "\"z_short\"", SHOAL_EUNSUPPORTED, "features: value 0 (z_short) is not a"},
        {"\"z_long\"", "7", SHOAL_EUNSUPPORTED, "value 0 (not a string) is not a feature"},
        {"\"z_long\",", "", SHOAL_EFORMAT,
         "the trees have 25 features and 1 outputs, expected 24 and 1"},
        {"\"z_long\",", "\"z_long\",\"z_64\",", SHOAL_EFORMAT,
         "features is not a list of at most 25 features"},
        {"\"absolute\": [", "\"absolute\": [\"level\",", SHOAL_EUNSUPPORTED, "absolute: value 0"},
        {"\"scales\": [", "\"scales\": [2,", SHOAL_EUNSUPPORTED, "scales must be"},
        {"\"scales\": [", "\"scales\": \"4\", \"x\": [", SHOAL_EUNSUPPORTED, "scales must be"},
        {"\"long\": 2048", "\"long\": 1024", SHOAL_EFORMAT, "long is not a whole number"},
        {"\"first\": 256", "\"first\": 0", SHOAL_EFORMAT, "first is not a whole number"},
        {"\"warm_up\": 64", "\"warm_up\": -1", SHOAL_EFORMAT, "warm_up is not a whole number"},
        {"\"pause\": 24", "\"pause\": 1e99", SHOAL_EFORMAT, "pause is not a whole number"},
        {"\"smooth\": 16", "\"smooth\": null", SHOAL_EFORMAT, "smooth is not a whole number"},
        {"\"top\": 3", "\"top\": 17", SHOAL_EFORMAT, "top is not a whole number from 1 to 16"},
        {"\"one_channel\": {", "\"one_channel\": 1, \"x\": {", SHOAL_EFORMAT,
         "settings are missing or not an object"},
        {"\"level\": 2.859", "\"level\": \"high\"", SHOAL_EFORMAT, "one_channel: level"},
        {"\"level\": 1.374", "\"level\": 1e999", SHOAL_EFORMAT, "several: level is not a number"},
        {"\"lstm_share\": 0.2", "\"lstm_share\": 1.2", SHOAL_EFORMAT, "lstm_share is not a number"},
        {"\"minus\": 0.5", "\"minus\": -1", SHOAL_EFORMAT, "several: minus is not a number"},
        {"\"several\"", "\"many\"", SHOAL_EFORMAT, "several: settings are missing"},
    };
    struct files f;
    (void)state;
    read_files(&f);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct anomaly *a;
        struct err e = {0};
        replace(&f, cases[i].from, cases[i].to);
        int rc = anomaly_parse(&a, &f.bytes, &e);
        if (rc != cases[i].code || !strstr(e.msg, cases[i].text))
            fail_msg("%s -> %s: %d %s", cases[i].from, cases[i].to, rc, e.msg);
        assert_true((rc == 0) == (a != NULL));
        anomaly_close(a);
    }
    static const struct {
        const char *from, *to; /* in the layers' config, of the same length */
        const char *text;
    } parts[] = {
        {"z_long", "a_long", "input a_long of the layers is not a feature"},
        {"\"stateful\": true", "\"stateful\":false", "the layers must be stateful"},
        {"\"names\"", "\"named\"", "the layers have 7 inputs without names"},
    };
    replace(&f, "{", "{");
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        struct anomaly *a;
        struct err e = {0};
        char *at = strstr(f.layers, parts[i].from);
        assert_non_null(at);
        memcpy(at, parts[i].to, strlen(parts[i].to));
        assert_true(anomaly_parse(&a, &f.bytes, &e) < 0);
        if (a || !strstr(e.msg, parts[i].text))
            fail_msg("%s: %s", parts[i].to, e.msg);
        memcpy(at, parts[i].from, strlen(parts[i].from));
    }
    char *binary = strstr(f.trees, "objective=binary");
    struct anomaly *a;
    struct err e = {0};
    assert_non_null(binary);
    memcpy(binary, "objective=gamma ", 16);
    assert_int_equal(anomaly_parse(&a, &f.bytes, &e), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(e.msg, "not binary"));
    free_files(&f);
}

/* The parts of the folder, and names that would point outside it. */
static void test_open(void **state)
{
    static const struct {
        const char *trees, *text;
    } cases[] = {
        {"../trees.txt", "trees is not the name of a file next to the config"},
        {"/etc/passwd", "trees is not the name of a file next to the config"},
        {"..", "trees is not the name of a file next to the config"},
        {"", "trees is not the name of a file next to the config"},
        {"nothing.txt", "cannot open"},
    };
    char dir[] = "/tmp/shoal-anomaly-XXXXXX", path[64];
    struct anomaly *a;
    struct err e = {0};
    size_t n;
    (void)state;
    char *config = read_whole(FOLDER "/config.json", &n), *at = strstr(config, "trees.txt");
    assert_true(anomaly_detect(config, n));
    assert_false(anomaly_detect("{}", 2));
    assert_int_equal(anomaly_open(&a, FOLDER "/config.json", &e), 0);
    anomaly_close(a);
    assert_int_equal(anomaly_open(&a, "/nonexistent", &e), SHOAL_EIO);
    assert_null(a);
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/config.json", dir);
    assert_non_null(at);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fprintf(f, "%.*s%s%s", (int)(at - config), config, cases[i].trees,
                at + strlen("trees.txt"));
        fclose(f);
        assert_true(anomaly_open(&a, dir, &e) < 0);
        assert_null(a);
        if (!strstr(e.msg, cases[i].text))
            fail_msg("%s: %s", cases[i].trees, e.msg);
    }
    remove(path);
    remove(dir);
    free(config);
}

static void test_allocation_failures(void **state)
{
    int failures = 0, rc = SHOAL_ENOMEM;
    (void)state;
    for (uint64_t at = 1; rc < 0; at++) {
        struct anomaly *a;
        struct err e = {0};
        mem_fail_at(at);
        rc = anomaly_open(&a, FOLDER, &e);
        mem_fail_at(0);
        if (rc < 0) {
            assert_int_equal(rc, SHOAL_ENOMEM);
            assert_null(a);
            failures++;
        }
        anomaly_close(a);
    }
    assert_true(failures > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_alarm_pauses),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_wild_values),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_warm_up),
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
