/* test_audio_read.c - sounds of several formats, rates and channels become the same samples; what
 * is no sound is refused with a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "audio/audio_read.h"
#include "base/buf.h"

#define MOST (1u << 20)
static int16_t sound[MOST];

static void put_u16(struct buf *b, uint32_t v)
{
    buf_putc(b, (char)v);
    buf_putc(b, (char)(v >> 8));
}

static void put_u32(struct buf *b, uint32_t v)
{
    put_u16(b, v & 0xffff);
    put_u16(b, v >> 16);
}

/* The header of a WAV file; format 1: integers, 3: floats. */
static void put_header(struct buf *b, uint32_t format, uint32_t channels, uint32_t rate,
                       uint32_t bits, uint32_t n_bytes)
{
    buf_puts(b, "RIFF");
    put_u32(b, 36 + n_bytes);
    buf_puts(b, "WAVEfmt ");
    put_u32(b, 16);
    put_u16(b, format);
    put_u16(b, channels);
    put_u32(b, rate);
    put_u32(b, rate * channels * bits / 8);
    put_u16(b, channels * bits / 8);
    put_u16(b, bits);
    buf_puts(b, "data");
    put_u32(b, n_bytes);
}

/* All samples of the bytes, or the error. */
static int64_t hear(const struct buf *b, struct err *e)
{
    struct audio *a;
    int64_t n = audio_open_memory(&a, b->data, b->len, e);
    if (n == 0)
        n = audio_read(a, sound, MOST, e);
    audio_close(a);
    return n;
}

static int64_t hear_file(const char *name)
{
    struct err e = {0};
    struct audio *a;
    char path[512];
    snprintf(path, sizeof(path), SHOAL_TEST_DATA "/audio/%s", name);
    if (audio_open_file(&a, path, &e) < 0)
        fail_msg("%s", e.msg);
    const int64_t n = audio_read(a, sound, MOST, &e);
    if (n < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(audio_read(a, sound, 1, &e), 0);
    audio_close(a);
    return n;
}

static double loudness(int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)sound[i] * sound[i];
    return sqrt(sum / (double)n);
}

static void test_formats(void **state)
{
    (void)state;
    const int64_t n = hear_file("amiable.wav");
    const double loud = loudness(n);
    assert_int_equal(n, 52640);
    assert_int_equal(hear_file("jfk.flac"), 176000);
    /* a codec may add a few milliseconds; the loudness stays, and the two channels are averaged */
    int64_t other = hear_file("amiable.opus");
    assert_in_range(other, n - 1600, n + 1600);
    assert_true(fabs(loudness(other) / loud - 1) < 0.05);
    other = hear_file("amiable.mp3");
    assert_in_range(other, n - 1600, n + 1600);
    assert_true(fabs(loudness(other) / loud - 0.95) < 0.05);
}

static void test_exact(void **state)
{
    static const int16_t want[] = {0, 1, -1, 32767, -32768, 1234};
    struct err e = {0};
    struct buf b;
    (void)state;
    buf_init(&b, 1 << 20);
    put_header(&b, 1, 1, AUDIO_RATE, 16, sizeof(want));
    buf_put(&b, want, sizeof(want));
    assert_int_equal(hear(&b, &e), 6);
    assert_memory_equal(sound, want, sizeof(want));
    buf_fini(&b);
}

static void test_eight_bits(void **state)
{
    static const uint8_t bytes[] = {128, 129, 127, 255, 0};
    static const int16_t want[] = {0, 256, -256, 32512, -32768};
    struct err e = {0};
    struct buf b;
    (void)state;
    buf_init(&b, 1 << 20);
    put_header(&b, 1, 1, AUDIO_RATE, 8, sizeof(bytes));
    buf_put(&b, bytes, sizeof(bytes));
    assert_int_equal(hear(&b, &e), 5);
    assert_memory_equal(sound, want, sizeof(want));
    buf_fini(&b);
}

/* Seven channels at 96 kHz: one has a tone, the others are silent. */
static void test_rates_and_channels(void **state)
{
    struct err e = {0};
    struct buf b;
    (void)state;
    buf_init(&b, 16 << 20);
    put_header(&b, 1, 7, 96000, 16, 96000 * 7 * 2);
    for (int i = 0; i < 96000; i++)
        for (int c = 0; c < 7; c++)
            put_u16(&b, c == 3 ? (uint32_t)(int32_t)lrint(28000 * sin(i * 0.05)) & 0xffff : 0);
    const int64_t n = hear(&b, &e);
    assert_in_range(n, 15990, 16010);
    assert_true(fabs(loudness(n) / (28000 / 7.0 / sqrt(2)) - 1) < 0.02);
    buf_fini(&b);
}

static void test_floats(void **state)
{
    float values[] = {0.5f, 2.0f, -3.0f, NAN, 0};
    struct err e = {0};
    struct buf b;
    (void)state;
    buf_init(&b, 1 << 20);
    put_header(&b, 3, 1, AUDIO_RATE, 32, 12);
    buf_put(&b, values, 12);
    assert_int_equal(hear(&b, &e), 3);
    assert_int_equal(sound[0], 16384);
    assert_int_equal(sound[1], 32767); /* clipped */
    assert_int_equal(sound[2], -32768);
    buf_clear(&b);
    put_header(&b, 3, 1, AUDIO_RATE, 32, sizeof(values));
    buf_put(&b, values, sizeof(values));
    assert_int_equal(hear(&b, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "not a finite number at 0.000 seconds"));
    buf_fini(&b);
}

static void test_damaged(void **state)
{
    struct err e = {0};
    struct buf b;
    (void)state;
    buf_init(&b, 1 << 20);
    assert_int_equal(hear(&b, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "empty"));
    buf_puts(&b, "this is no sound at all, but a text that is long enough to be a header");
    assert_int_equal(hear(&b, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "not a sound"));
    buf_clear(&b); /* the header promises two gigabytes; there are ten samples */
    put_header(&b, 1, 1, AUDIO_RATE, 16, 2000000000);
    for (int i = 0; i < 10; i++)
        put_u16(&b, 7);
    assert_int_equal(hear(&b, &e), 10);
    buf_clear(&b); /* cut within the header */
    put_header(&b, 1, 1, AUDIO_RATE, 16, 100);
    b.len = 30;
    assert_int_equal(hear(&b, &e), SHOAL_EFORMAT);
    buf_clear(&b);
    put_header(&b, 1, 65, AUDIO_RATE, 16, 650);
    for (int i = 0; i < 650; i++)
        put_u16(&b, 0);
    assert_int_equal(hear(&b, &e), SHOAL_ELIMIT);
    assert_non_null(strstr(e.msg, "65 channels"));
    buf_clear(&b);
    put_header(&b, 1, 1, 1000, 16, 20);
    for (int i = 0; i < 10; i++)
        put_u16(&b, 0);
    assert_int_equal(hear(&b, &e), SHOAL_ELIMIT);
    assert_non_null(strstr(e.msg, "1000 samples a second"));
    buf_fini(&b);
}

static void test_files(void **state)
{
    struct err e = {0};
    struct audio *a;
    (void)state;
    assert_int_equal(audio_open_file(&a, "/nonexistent/x.wav", &e), SHOAL_EIO);
    assert_int_equal(audio_open_file(&a, "/dev/null", &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "not a regular file"));
    assert_null(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),    cmocka_unit_test(test_exact),
        cmocka_unit_test(test_eight_bits), cmocka_unit_test(test_rates_and_channels),
        cmocka_unit_test(test_floats),     cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
