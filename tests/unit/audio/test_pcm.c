/* Live samples of every form become 16-bit samples of one channel at 16 kHz, however they are cut.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "audio/pcm.h"

/* Feeds bytes in pieces of `step`; returns the samples. */
static uint32_t convert(const struct pcm_form *f, const void *bytes, size_t n, size_t step,
                        int16_t *to, uint32_t most)
{
    struct pcm *p;
    struct buf out;
    struct err e = {0};
    assert_int_equal(pcm_create(&p, f, &e), 0);
    buf_init(&out, (size_t)1 << 20);
    for (size_t at = 0; at < n; at += step)
        assert_int_equal(
            pcm_feed(p, (const char *)bytes + at, n - at < step ? n - at : step, &out, &e), 0);
    const uint32_t made = (uint32_t)(out.len / sizeof(int16_t));
    memcpy(to, buf_str(&out), (made < most ? made : most) * sizeof(int16_t));
    buf_fini(&out);
    pcm_destroy(p);
    return made;
}

static void test_forms(void **state)
{
    (void)state;
    static const struct {
        struct pcm_form form;
        uint8_t bytes[16];
        size_t n;
        int16_t want[2];
    } rows[] = {
        {{16000, 1, 2, false, 0}, {0x34, 0x12, 0x00, 0x80}, 4, {0x1234, -32768}},
        {{16000, 1, 1, false, 0}, {128, 0}, 2, {0, -32768}},
        {{16000, 1, 3, false, 0}, {0, 0x34, 0x12, 0, 0, 0x80}, 6, {0x1234, -32768}},
        {{16000, 1, 4, false, 0}, {0, 0, 0x34, 0x12, 0, 0, 0, 0x80}, 8, {0x1234, -32768}},
        {{16000, 1, 4, true, 0}, {0, 0, 0, 0x3f, 0, 0, 0, 0xc1}, 8, {16384, -32768}}, /* 0.5, -8 */
        {{16000, 2, 2, false, 0}, {0, 2, 0, 4, 0, 0, 0, 0xfe}, 8, {0x300, -0x100}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t step = 1; step <= rows[i].n; step++) {
            int16_t got[2];
            assert_int_equal(convert(&rows[i].form, rows[i].bytes, rows[i].n, step, got, 2), 2);
            assert_memory_equal(got, rows[i].want, sizeof(got));
        }
}

/* A tone at 48 kHz stays one of the same height and loudness. */
static void test_resampled(void **state)
{
    (void)state;
    static int16_t in[48000], out[20000];
    const struct pcm_form f = {48000, 1, 2, false, 0};
    for (uint32_t i = 0; i < 48000; i++)
        in[i] = (int16_t)(10000 * sin(2 * 3.14159265 * 440 * i / 48000));
    const uint32_t n = convert(&f, in, sizeof(in), 640, out, 20000);
    assert_in_range(n, 15900, 16000);
    uint32_t crossings = 0;
    int peak = 0;
    for (uint32_t i = 1000; i < 15000; i++) {
        crossings += out[i] >= 0 && out[i - 1] < 0;
        peak = out[i] > peak ? out[i] : peak;
    }
    assert_in_range(crossings, 384, 386); /* 440 * 14000 / 16000 */
    assert_in_range(peak, 9900, 10100);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct pcm_form bad[] = {{1999, 1, 2, false, 0},  {768001, 1, 2, false, 0},
                                          {16000, 0, 2, false, 0}, {16000, 65, 2, false, 0},
                                          {16000, 1, 0, false, 0}, {16000, 1, 5, false, 0},
                                          {16000, 1, 2, true, 0}};
    const float nan_[2] = {0.5f, NAN};
    struct pcm *p;
    struct buf out;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err e = {0};
        assert_int_equal(pcm_create(&p, &bad[i], &e), SHOAL_EINVAL);
        assert_null(p);
        assert_true(e.msg[0] != '\0');
    }
    struct err e = {0};
    assert_int_equal(pcm_create(&p, &(struct pcm_form){16000, 1, 4, true, 0}, &e), 0);
    buf_init(&out, 100);
    assert_int_equal(pcm_feed(p, nan_, sizeof(nan_), &out, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "finite"));
    buf_fini(&out);
    pcm_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_resampled),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
