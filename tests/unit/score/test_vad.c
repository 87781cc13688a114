/* test_vad.c - where speech begins and ends, from its probabilities; the network of the pack on
 * real speech is in test_transcriber. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "score/vad.h"

#define HOP 512u
#define MARGIN 1600u
static float p[1000];
static struct vad_span spans[1000];

static void set(uint32_t from, uint32_t to, float value)
{
    for (uint32_t i = from; i < to; i++)
        p[i] = value;
}

static uint32_t find(uint32_t n)
{
    return vad_find(p, n, HOP, n * HOP - 100, spans, n);
}

static void test_one(void **state)
{
    (void)state;
    set(0, 100, 0.1f);
    assert_int_equal(find(0), 0);
    assert_int_equal(find(100), 0);
    set(20, 40, 0.9f);
    assert_int_equal(find(100), 1);
    assert_int_equal(spans[0].start, 20 * HOP - MARGIN);
    assert_int_equal(spans[0].end, 40 * HOP + MARGIN);
    set(0, 100, 0.9f); /* from the beginning to the end */
    assert_int_equal(find(100), 1);
    assert_int_equal(spans[0].start, 0);
    assert_int_equal(spans[0].end, 100 * HOP - 100);
}

/* It begins at 0.5 and goes on down to 0.35. */
static void test_thresholds(void **state)
{
    (void)state;
    set(0, 100, 0.1f);
    set(20, 60, 0.49f);
    assert_int_equal(find(100), 0);
    p[30] = 0.5f;
    assert_int_equal(find(100), 1);
    assert_int_equal(spans[0].start, 30 * HOP - MARGIN);
    assert_int_equal(spans[0].end, 60 * HOP + MARGIN);
    set(40, 60, 0.34f);
    assert_int_equal(find(100), 1);
    assert_int_equal(spans[0].end, 40 * HOP + MARGIN);
}

static void test_pauses(void **state)
{
    (void)state;
    set(0, 200, 0.1f);
    set(20, 40, 0.9f);
    set(48, 60, 0.9f); /* 256 ms later: the same */
    assert_int_equal(find(200), 1);
    assert_int_equal(spans[0].end, 60 * HOP + MARGIN);
    set(80, 90, 0.9f); /* 640 ms later: another */
    assert_int_equal(find(200), 2);
    assert_int_equal(spans[0].end, 60 * HOP + MARGIN);
    assert_int_equal(spans[1].start, 80 * HOP - MARGIN);
    assert_int_equal(vad_find(p, 200, HOP, 200 * HOP, spans, 1), 1); /* no room for two */
}

static void test_clicks(void **state)
{
    (void)state;
    set(0, 100, 0.1f);
    set(20, 22, 1.0f); /* 64 ms */
    assert_int_equal(find(100), 0);
    set(20, 23, 1.0f); /* 96 ms: a short word */
    assert_int_equal(find(100), 1);
    set(0, 100, 0.1f);
    set(98, 100, 1.0f); /* cut off by the end */
    assert_int_equal(find(100), 0);
}

static void test_refused(void **state)
{
    static const char config[] = "{\"model_type\":\"shoal_scorer\"}";
    struct err e = {0};
    struct vad *v;
    (void)state;
    assert_true(vad_create(&v, config, strlen(config), "", 0, NULL, &e) < 0);
    assert_null(v);
    assert_true(e.msg[0] != '\0');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),     cmocka_unit_test(test_thresholds),
        cmocka_unit_test(test_pauses),  cmocka_unit_test(test_clicks),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
