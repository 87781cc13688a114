/* Turns by sound and by what was heard: pre-roll, pauses, half sentences, noise, long silence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "voice/ear.h"
#include "voice/unfinished.h"

#define MS(ms) ((ms)*EAR_RATE / 1000u)

/* 10 ms of a square wave of this amplitude. */
static void feed(struct ear *x, uint32_t ms, int16_t amplitude)
{
    int16_t block[MS(10u)];
    for (uint32_t i = 0; i < MS(10u); i++)
        block[i] = i & 8 ? amplitude : (int16_t)-amplitude;
    for (; ms >= 10; ms -= 10)
        assert_int_equal(ear_feed(x, block, MS(10u)), MS(10u));
}

/* What a recognizer says that hears speech from..to of the sound. */
static void hear(struct ear *x, uint32_t from, uint32_t to, bool unfinished)
{
    const struct ear_heard h = {.n = ear_begin(x),
                                .speech_from = from,
                                .speech_to = to < x->n ? to : x->n,
                                .words = true,
                                .unfinished = unfinished};
    assert_int_equal(ear_next(x), EAR_WAIT);
    ear_heard(x, &h);
}

/* Feeds silence until the turn is over, with speech up to `to`; returns the milliseconds. */
static uint32_t until_over(struct ear *x, uint32_t to, bool unfinished)
{
    for (uint32_t ms = 0; ms < 5000; ms += 10) {
        enum ear_next next = ear_next(x);
        if (next == EAR_TURN)
            return ms;
        if (next == EAR_HEAR)
            hear(x, 0, to, unfinished);
        else
            feed(x, 10, 3);
    }
    return 5000;
}

static void test_turn(void **state)
{
    (void)state;
    struct ear x;
    ear_init(&x);
    feed(&x, 1000, 3);
    assert_int_equal(ear_next(&x), EAR_WAIT); /* nobody is heard in silence */
    assert_true(x.n <= MS(650u));             /* and only the pre-roll stays */
    const uint32_t before = x.n;
    feed(&x, 310, 3000);
    assert_int_equal(ear_next(&x), EAR_WAIT);
    feed(&x, 20, 3000);
    assert_int_equal(ear_next(&x), EAR_HEAR);
    hear(&x, before, x.n, true);
    assert_true(x.last.words);
    assert_int_equal(ear_next(&x), EAR_WAIT);
    feed(&x, 700, 3000);
    assert_int_equal(ear_next(&x), EAR_HEAR); /* again and again */
    hear(&x, before, x.n, false);
    const uint32_t end = x.n;
    const uint32_t ms = until_over(&x, end, false);
    assert_in_range(ms, 250, 400);
    assert_true(x.last.n >= end); /* all of the speech was heard */
    ear_next_turn(&x);
    assert_false(x.last.words);
    assert_int_equal(ear_next(&x), EAR_WAIT);
    ear_fini(&x);
}

static void test_half_a_sentence_waits(void **state)
{
    (void)state;
    struct ear x;
    ear_init(&x);
    feed(&x, 600, 3000);
    hear(&x, 0, x.n, true);
    assert_in_range(until_over(&x, x.n, true), 850, 1000);
    ear_fini(&x);
    ear_init(&x);
    feed(&x, 600, 3000);
    hear(&x, 0, x.n, true);
    feed(&x, 500, 3); /* a pause, then it goes on */
    assert_int_equal(ear_next(&x), EAR_HEAR);
    hear(&x, 0, MS(600u), true);
    assert_int_equal(ear_next(&x), EAR_WAIT);
    feed(&x, 400, 3000);
    assert_int_equal(ear_next(&x), EAR_HEAR);
    hear(&x, 0, x.n, false);
    assert_in_range(until_over(&x, x.n, false), 250, 400);
    ear_fini(&x);
}

/* A fan is louder than silence, but no speech: the recognizer decides, not the loudness. */
static void test_noise_is_no_turn(void **state)
{
    (void)state;
    struct ear x;
    ear_init(&x);
    feed(&x, 500, 3);
    uint32_t n_heard = 0;
    for (uint32_t ms = 0; ms < 20000; ms += 10) {
        feed(&x, 10, 900);
        const enum ear_next next = ear_next(&x);
        assert_int_not_equal(next, EAR_TURN);
        if (next == EAR_HEAR) {
            const struct ear_heard none = {.n = ear_begin(&x)};
            ear_heard(&x, &none);
            n_heard++;
        }
        assert_true(x.n < 2 * EAR_RATE);
    }
    assert_in_range(n_heard, 1, 40); /* it becomes the background */
    ear_fini(&x);
}

/* The turn ends although a fan is as loud as the speech: nobody speaks any more. */
static void test_ends_in_noise(void **state)
{
    (void)state;
    struct ear x;
    uint32_t ms = 0;
    ear_init(&x);
    feed(&x, 100, 3);
    feed(&x, 900, 3000);
    const uint32_t end = x.n;
    for (enum ear_next next; (next = ear_next(&x)) != EAR_TURN && ms < 5000; ms += 10)
        if (next == EAR_HEAR)
            hear(&x, 0, end, false);
        else
            feed(&x, 10, 3000);
    assert_in_range(ms, 250, 1000);
    ear_fini(&x);
}

static void test_finish(void **state)
{
    (void)state;
    struct ear x;
    ear_init(&x);
    ear_finish(&x);
    assert_int_equal(ear_next(&x), EAR_TURN); /* nothing was said */
    ear_next_turn(&x);
    feed(&x, 500, 3000);
    ear_finish(&x);
    assert_int_equal(ear_next(&x), EAR_HEAR);
    hear(&x, 0, x.n, true);
    assert_int_equal(ear_next(&x), EAR_TURN); /* without any pause */
    ear_next_turn(&x);
    assert_int_equal(x.n, 0);
    assert_int_equal(x.before, MS(500u));
    feed(&x, 500, 3000); /* what was heard in the pause needs no second hearing */
    hear(&x, 0, x.n, false);
    feed(&x, 200, 3);
    hear(&x, 0, MS(500u), false);
    feed(&x, 20, 3);
    ear_finish(&x);
    assert_int_equal(ear_next(&x), EAR_TURN);
    ear_fini(&x);
}

static void test_longest(void **state)
{
    (void)state;
    struct ear x;
    const int16_t some[MS(10u)] = {3000, -3000};
    ear_init(&x);
    feed(&x, 400, 3000);
    hear(&x, 0, x.n, true);
    feed(&x, 27600, 3000);
    assert_int_equal(x.n, EAR_MOST);
    assert_int_equal(ear_feed(&x, some, MS(10u)), 0);
    assert_int_equal(ear_next(&x), EAR_HEAR);
    hear(&x, 0, x.n, true);
    assert_int_equal(ear_next(&x), EAR_TURN);
    ear_next_turn(&x);
    assert_int_equal(x.n, 0);
    assert_int_equal(ear_feed(&x, some, MS(10u)), MS(10u));
    ear_fini(&x);
}

static void test_missed(void **state)
{
    (void)state;
    struct ear x;
    ear_init(&x);
    feed(&x, 400, 3000);
    assert_int_equal(ear_next(&x), EAR_HEAR);
    (void)ear_begin(&x);
    ear_missed(&x);
    assert_int_equal(ear_next(&x), EAR_WAIT); /* not at once */
    feed(&x, 330, 3000);
    assert_int_equal(ear_next(&x), EAR_HEAR);
    (void)ear_begin(&x);
    ear_drop(&x);
    assert_int_equal(ear_next(&x), EAR_WAIT); /* the sound is gone */
    assert_int_equal(x.n, 0);
    assert_int_equal(x.before, MS(730u));
    ear_fini(&x);
}

static void test_unfinished(void **state)
{
    (void)state;
    static const char *const open[] = {
        "",         "  ",           "Turn on the", "Set the heating to.",
        "turn off", "Remind me to", "and",         "Turn on the lights and"};
    static const char *const whole[] = {"Turn on the kitchen lights.",
                                        "lights off",
                                        "Turn off the radio!",
                                        "set the heating to twenty two",
                                        "stop",
                                        "yes",
                                        "the motherland"};
    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
        assert_true(unfinished(open[i], strlen(open[i])));
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
        assert_false(unfinished(whole[i], strlen(whole[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turn),
        cmocka_unit_test(test_half_a_sentence_waits),
        cmocka_unit_test(test_noise_is_no_turn),
        cmocka_unit_test(test_ends_in_noise),
        cmocka_unit_test(test_finish),
        cmocka_unit_test(test_longest),
        cmocka_unit_test(test_missed),
        cmocka_unit_test(test_unfinished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
