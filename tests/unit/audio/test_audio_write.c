/* test_audio_write.c - samples to files and back: every form is read again, whole or taken in
 * pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "audio/audio_read.h"
#include "audio/audio_write.h"

enum { RATE = 22050, N = RATE };

static int16_t tone[N];

static int setup(void **state)
{
    (void)state;
    for (int i = 0; i < N; i++)
        tone[i] = (int16_t)lrint(8000 * sin(2 * 3.14159265358979 * 440 * i / RATE));
    return 0;
}

/* The tone as a file, taken after every `step` samples; 0: at the end. */
static struct buf written(enum audio_form form, size_t step, uint64_t n_samples)
{
    struct audio_out *a;
    struct err e = {0};
    struct buf out;
    buf_init(&out, (size_t)1 << 24);
    if (audio_out_create(&a, form, RATE, n_samples, &e) < 0)
        fail_msg("%s", e.msg);
    for (size_t at = 0; at < N; at += step ? step : N) {
        const size_t n = step && step < N - at ? step : N - at;
        assert_int_equal(audio_out_put(a, tone + at, n, &e), 0);
        if (step)
            audio_out_take(a, &out);
    }
    assert_int_equal(audio_out_end(a, &e), 0);
    audio_out_take(a, &out);
    audio_out_destroy(a);
    assert_int_equal(out.rc, 0);
    return out;
}

/* Seconds that a reader finds, and the loudness. */
static void check_file(const struct buf *file)
{
    struct audio *a;
    struct err e = {0};
    int16_t x[4096];
    uint64_t n = 0;
    double power = 0;
    int64_t got;
    if (audio_open_memory(&a, file->data, file->len, &e) < 0)
        fail_msg("%s", e.msg);
    while ((got = audio_read(a, x, 4096, &e)) > 0)
        for (int64_t i = 0; i < got; i++, n++)
            power += (double)x[i] * x[i];
    assert_int_equal(got, 0);
    audio_close(a);
    if (n < AUDIO_RATE * 9 / 10 || n > AUDIO_RATE * 12 / 10) /* codecs pad */
        fail_msg("%llu samples of a file of %zu bytes that begins with %.4s", (unsigned long long)n,
                 file->len, file->data);
    const double loud = sqrt(power / AUDIO_RATE);
    assert_true(loud > 5000 && loud < 6300); /* 8000 / sqrt(2) */
}

static void test_forms(void **state)
{
    static const enum audio_form forms[] = {AUDIO_FORM_WAV, AUDIO_FORM_FLAC, AUDIO_FORM_OPUS,
                                            AUDIO_FORM_MP3};
    struct err e = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (audio_form_check(forms[i], RATE, &e) < 0)
            continue; /* MP3: not every libsndfile */
        for (size_t step = 0; step <= 5000; step += 2500) {
            struct buf file = written(forms[i], step, 0);
            check_file(&file);
            buf_fini(&file);
        }
    }
}

static void test_wav(void **state)
{
    struct buf known = written(AUDIO_FORM_WAV, 0, N), open = written(AUDIO_FORM_WAV, 999, 0);
    struct buf bare = written(AUDIO_FORM_PCM, 0, 0);
    uint32_t length;
    (void)state;
    assert_int_equal(known.len, 44 + 2 * N);
    memcpy(&length, known.data + 40, 4);
    assert_int_equal(length, 2 * N);
    memcpy(&length, known.data + 4, 4);
    assert_int_equal(length, 2 * N + 36);
    memcpy(&length, open.data + 4, 4);
    assert_int_equal(length, UINT32_MAX);
    assert_memory_equal(known.data + 44, tone, sizeof(tone));
    assert_memory_equal(open.data + 44, tone, sizeof(tone));
    assert_int_equal(bare.len, sizeof(tone));
    assert_memory_equal(bare.data, tone, sizeof(tone));
    buf_fini(&known);
    buf_fini(&open);
    buf_fini(&bare);
}

static void test_names(void **state)
{
    enum audio_form f;
    (void)state;
    assert_true(audio_form_named("opus", &f) && f == AUDIO_FORM_OPUS);
    assert_false(audio_form_named("aac", &f));
    assert_false(audio_form_named("", &f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_wav),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
