/* test_confidence.c - temperatures, bins, and the file of a calibration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ensemble/confidence.h"
#include "ensemble/confidence_file.h"
#include "wire/json_out.h"

static void softmax(const double *logits, double temperature, float *p, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += exp(logits[i] / temperature);
    for (uint32_t i = 0; i < n; i++)
        p[i] = (float)(exp(logits[i] / temperature) / sum);
}

/* Scaling probabilities is the same as dividing the logits. */
static void test_scale(void **state)
{
    (void)state;
    const double logits[] = {4, 1.5, 0, -3};
    float p[4], want[4];
    for (double t = 0.25; t < 8; t *= 2) {
        softmax(logits, 1, p, 4);
        softmax(logits, t, want, 4);
        confidence_scale(p, 4, t);
        for (int i = 0; i < 4; i++)
            assert_true(fabsf(p[i] - want[i]) < 1e-5f);
    }
    float edge[] = {1, 0, 0};
    confidence_scale(edge, 3, 20);
    assert_true(edge[0] > 0.9f && edge[1] > 0 && edge[1] == edge[2]);
    float none[] = {0, 0};
    confidence_scale(none, 2, 2);
    assert_true(none[0] == 0.5f);
}

static void test_answer(void **state)
{
    (void)state;
    assert_true(confidence_of_answer(0.75f, true) == 0.75f);
    assert_true(confidence_of_answer(0.25f, false) == 0.75f); /* out of scope */
}

/* Labels are drawn from known probabilities; a model that is overconfident by a factor is
 * detected. */
static void test_fit(void **state)
{
    (void)state;
    enum { ROWS = 6000, LABELS = 5 };
    static float p[ROWS][LABELS];
    static struct confidence_row rows[ROWS];
    const double too_sure = 2.5;
    uint64_t seed = 7;
    for (size_t i = 0; i < ROWS; i++) {
        double logits[LABELS];
        float true_p[LABELS];
        for (int k = 0; k < LABELS; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            logits[k] = (double)(seed >> 40) / (double)(1 << 24) * 4;
        }
        softmax(logits, 1, true_p, LABELS);
        softmax(logits, 1 / too_sure, p[i], LABELS);
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        float at = (float)(seed >> 40) / (float)(1 << 24);
        uint32_t right = 0;
        while (right + 1 < LABELS && at >= true_p[right])
            at -= true_p[right++];
        rows[i] = (struct confidence_row){p[i], LABELS, right};
    }
    double t = confidence_fit(rows, ROWS);
    assert_true(fabs(t - too_sure) < 0.15);
    assert_true(confidence_loss(rows, ROWS, t) < confidence_loss(rows, ROWS, 1));
    assert_true(confidence_loss(rows, ROWS, t) <= confidence_loss(rows, ROWS, t * 1.01));
    assert_true(confidence_loss(rows, ROWS, t) <= confidence_loss(rows, ROWS, t / 1.01));
    assert_true(confidence_fit(rows, 0) == 1);
}

/* A model that is always right, or always wrong, ends at the limits. */
static void test_fit_limits(void **state)
{
    (void)state;
    const float p[] = {0.9f, 0.1f};
    struct confidence_row row = {p, 2, 0};
    assert_true(confidence_fit(&row, 1) < CONFIDENCE_MIN_TEMPERATURE * 1.001);
    row.right = 1;
    assert_true(confidence_fit(&row, 1) > CONFIDENCE_MAX_TEMPERATURE * 0.999);
}

static void test_bins(void **state)
{
    (void)state;
    assert_int_equal(confidence_bin(0), 0);
    assert_int_equal(confidence_bin(0.1), 0);
    assert_int_equal(confidence_bin(0.11), 1);
    assert_int_equal(confidence_bin(0.96), 10);
    assert_int_equal(confidence_bin(1), CONFIDENCE_BINS - 1);
    assert_int_equal(confidence_bin(7), CONFIDENCE_BINS - 1);
    assert_int_equal(confidence_bin((double)NAN), 0);
    for (uint32_t i = 0; i < CONFIDENCE_BINS; i++)
        assert_int_equal(confidence_bin(confidence_bound(i)), i);
}

static void test_file(void **state)
{
    (void)state;
    struct confidence_calibration c = {.temperature = 1.25, .rows = 400}, back;
    struct buf b;
    struct err e = {0};
    c.shares[3] = 0.25;
    c.shares[11] = 0.75;
    buf_init(&b, 4096);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    confidence_file_put(&j, &c);
    json_out_member_str(&j, "model", "intent");
    json_out_object_end(&j);
    assert_int_equal(confidence_file_parse(&back, "c.json", buf_str(&b), b.len, &e), 0);
    assert_memory_equal(&back, &c, sizeof(c));
    buf_fini(&b);
}

static void test_bad_files(void **state)
{
    (void)state;
#define HEAD "{\"shoal\":\"calibration\",\"version\":1,"
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"[]", "c.json"},
        {"{}", "not a calibration"},
        {"{\"shoal\":\"calibration\",\"version\":2}", "version"},
        {HEAD "\"temperature\":0}", "temperature"},
        {HEAD "\"temperature\":\"1\"}", "temperature"},
        {HEAD "\"temperature\":1e9}", "temperature"},
        {HEAD "\"temperature\":1}", "rows"},
        {HEAD "\"temperature\":1,\"rows\":5,\"confidence\":[1]}", "12 shares"},
        {HEAD "\"temperature\":1,\"rows\":5,\"confidence\":[2,0,0,0,0,0,0,0,0,0,0,0]}", "0 to 1"},
        {HEAD "\"temperature\":1,\"rows\":5,\"confidence\":[0.5,0,0,0,0,0,0,0,0,0,0,0]}", "sum"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct confidence_calibration c = {.temperature = 3};
        struct err e = {0};
        int rc = confidence_file_parse(&c, "c.json", bad[i].text, strlen(bad[i].text), &e);
        assert_int_equal(rc, SHOAL_EFORMAT);
        if (!strstr(e.msg, bad[i].why))
            fail_msg("%s: %s", bad[i].text, e.msg);
        assert_true(c.temperature == 3); /* nothing was consumed */
    }
    struct confidence_calibration c;
    struct err e = {0};
    assert_int_equal(confidence_file_read(&c, "/nowhere/c.json", &e), SHOAL_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scale),     cmocka_unit_test(test_answer),
        cmocka_unit_test(test_fit),       cmocka_unit_test(test_fit_limits),
        cmocka_unit_test(test_bins),      cmocka_unit_test(test_file),
        cmocka_unit_test(test_bad_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
