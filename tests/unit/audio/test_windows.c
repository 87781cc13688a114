/* test_windows.c - long sounds are cut at their pauses, and never too long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "audio/windows.h"

#define N (2 * WINDOWS_MOST)
static int16_t x[N];

static void fill(uint32_t from, uint32_t to, int16_t value)
{
    for (uint32_t i = from; i < to; i++)
        x[i] = i % 2 ? value : (int16_t)-value;
}

static void test_short(void **state)
{
    (void)state;
    fill(0, N, 1000);
    assert_int_equal(windows_cut(x, 0, true), 0);
    assert_int_equal(windows_cut(x, 5, true), 5);
    assert_int_equal(windows_cut(x, WINDOWS_MOST, true), WINDOWS_MOST);
    assert_int_equal(windows_cut(x, WINDOWS_MOST, false), 0); /* a pause may follow */
}

static void test_pause(void **state)
{
    const uint32_t at = WINDOWS_MOST / 2 + 5 * AUDIO_RATE;
    (void)state;
    fill(0, N, 1000);
    fill(AUDIO_RATE, 2 * AUDIO_RATE, 0); /* too early to be a good end */
    fill(at, at + AUDIO_RATE / 5, 10);
    assert_int_equal(windows_cut(x, N, false), at + AUDIO_RATE / 10);
    /* a deeper one is better, and of equal ones the later */
    fill(at + AUDIO_RATE, at + AUDIO_RATE + AUDIO_RATE / 5, 5);
    fill(at + 2 * AUDIO_RATE, at + 2 * AUDIO_RATE + AUDIO_RATE / 5, 5);
    assert_int_equal(windows_cut(x, N, true), at + 2 * AUDIO_RATE + AUDIO_RATE / 10);
}

static void test_loudest(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < N; i++)
        x[i] = INT16_MIN; /* the sums must not overflow */
    assert_in_range(windows_cut(x, N, false), WINDOWS_MOST - AUDIO_RATE / 5, WINDOWS_MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_loudest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
