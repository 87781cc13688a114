/* test_wake.c - log_mel.h and wake.h: energies of known tones, and the included wake word. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "voice/log_mel.h"
#include "voice/wake.h"

static void tone(int16_t *x, uint32_t n, double hz, double amplitude)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] = (int16_t)lrint(amplitude * sin(2 * 3.14159265358979323846 * hz * i / 16000.0));
}

static uint32_t loudest(const float *bands)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < LOG_MEL_BANDS; i++)
        best = bands[i] > bands[best] ? i : best;
    return best;
}

static void test_tones(void **state)
{
    struct log_mel *m;
    struct err e = {0};
    int16_t x[LOG_MEL_FRAME];
    float low[LOG_MEL_BANDS], high[LOG_MEL_BANDS], quiet[LOG_MEL_BANDS], none[LOG_MEL_BANDS];
    (void)state;
    assert_int_equal(log_mel_create(&m, &e), 0);
    tone(x, LOG_MEL_FRAME, 500, 10000);
    log_mel_frame(m, x, low);
    tone(x, LOG_MEL_FRAME, 4000, 10000);
    log_mel_frame(m, x, high);
    tone(x, LOG_MEL_FRAME, 500, 1000);
    log_mel_frame(m, x, quiet);
    memset(x, 0, sizeof(x));
    log_mel_frame(m, x, none);
    /* mel(500) = 607, mel(4000) = 2146; 41 steps of 67 from mel(60) = 92 to mel(7600) */
    assert_int_equal(loudest(low), 7);
    assert_int_equal(loudest(high), 30);
    assert_true(fabsf(low[7] - quiet[7] - 4.605f) < 0.01f); /* a tenth: log(100) less energy */
    for (uint32_t i = 0; i < LOG_MEL_BANDS; i++)
        assert_true(fabsf(none[i] - logf(1e-6f)) < 1e-4f);
    /* a Hann window of 400 samples: its sum is 200, half of it in each of two mirrored lines */
    const double peak = 10000.0 / 32768 * 100;
    assert_true(fabs((double)low[7] - log(peak * peak)) < 1.2);
    log_mel_destroy(m);
}

static void test_refused(void **state)
{
    struct wake *w;
    struct err e = {0};
    (void)state;
    assert_int_equal(wake_open(&w, SHOAL_TEST_DATA "/../../models/anomaly", &e), SHOAL_EFORMAT);
    assert_null(w);
    assert_true(wake_open_named(&w, "open sesame", &e) < 0);
    assert_non_null(strstr(e.msg, "hey shoal"));
    assert_true(wake_open_named(&w, "/nowhere/", &e) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tones),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
