/* test_alarm.c - the sentences of an alarm say what happened, with the numbers of its event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "things/alarm.h"
#include "wire/json_out.h"

static struct alarm_event event(enum alarm_kind kind, double before, double value)
{
    return (struct alarm_event){
        .kind = kind,
        .machine = "m3",
        .machine_title = "motor 3",
        .channels = {{"vib", "Vibration", "mm/s", value, before, 2, 3},
                     {"temp", "bearing temperature", "degrees", 66, 60, NAN, NAN},
                     {"load", "load", "kW", 8, 10.5, NAN, NAN},
                     {"speed", "speed", "rpm", 1500, 1400, NAN, NAN}},
        .n_channels = 1,
        .limit = 7,
        .since_ms = 1000,
        .changed_ms = 6000,
        .acknowledged_by = "",
        .text = "",
    };
}

static const char *explain(struct buf *b, const struct alarm_event *e)
{
    buf_clear(b);
    alarm_explain(b, e);
    return buf_str(b);
}

static void test_sentences(void **state)
{
    static const struct {
        enum alarm_kind kind;
        double before, value;
        const char *want;
    } rows[] = {
        {ALARM_LIMIT, 2.5, 7.5,
         "Vibration on motor 3 rose from 2.5 to 7.5 mm/s within 5 s, above the limit of 7 mm/s."},
        {ALARM_LIMIT, 9, 6.25,
         "Vibration on motor 3 fell from 9 to 6.25 mm/s within 5 s, below the limit of 7 mm/s."},
        {ALARM_RATE, 2.5, 7.5,
         "Vibration on motor 3 rose from 2.5 to 7.5 mm/s within 5 s, faster than the 7 mm/s per "
         "second that are allowed. Normal is 2 to 3 mm/s."},
        {ALARM_SPIKE, NAN, 12.34, "Vibration on motor 3 is 12.3 mm/s. Normal is 2 to 3 mm/s."},
        {ALARM_SPIKE, 2, NAN, "Vibration on motor 3 is unknown. Normal is 2 to 3 mm/s."},
        {ALARM_NOISE, 2, 2.5,
         "Vibration on motor 3 varies more than usual; it is now at 2.5 mm/s. Normal is 2 to 3 "
         "mm/s."},
        {ALARM_STUCK, 2, 2.5, "Vibration on motor 3 has stayed at exactly 2.5 mm/s for 5 s."},
        {ALARM_CYCLE, 2, 2.5,
         "Vibration on motor 3 has been at 2.5 mm/s for 5 s, far longer than ever before it "
         "switched."},
        {ALARM_LOST, 2, 2.5, "Vibration on motor 3 has sent no good reading for 5 s."},
        {ALARM_PATTERN, 2, 2.5,
         "The readings of motor 3 do not fit together as usual: Vibration is at 2.5 mm/s. Normal "
         "is 2 to 3 mm/s."},
    };
    struct buf b;
    (void)state;
    buf_init(&b, 4096);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct alarm_event e = event(rows[i].kind, rows[i].before, rows[i].value);
        assert_string_equal(explain(&b, &e), rows[i].want);
    }
    struct alarm_event none = event(ALARM_LIMIT, 2, 9);
    none.n_channels = 0;
    assert_string_equal(explain(&b, &none), "");
    buf_fini(&b);
}

/* The sentence names the first three channels; one that did not change is left out. */
static void test_two_other_channels_are_named(void **state)
{
    static const struct {
        uint32_t n;
        const char *others;
    } rows[] = {
        {1, ""},
        {2, "; bearing temperature is up 6 degrees"},
        {3, "; bearing temperature is up 6 degrees; load is down 2.5 kW"},
        {4, "; bearing temperature is up 6 degrees; load is down 2.5 kW"},
    };
    struct buf b, want;
    (void)state;
    buf_init(&b, 4096);
    buf_init(&want, 4096);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct alarm_event e = event(ALARM_LOST, 2, 2);
        e.n_channels = rows[i].n;
        buf_clear(&want);
        buf_printf(&want, "Vibration on motor 3 has sent no good reading for 5 s%s.",
                   rows[i].others);
        assert_string_equal(explain(&b, &e), buf_str(&want));
    }
    struct alarm_event e = event(ALARM_LOST, 2, 2);
    e.n_channels = 3;
    e.channels[1].value = e.channels[1].before;
    assert_non_null(strstr(explain(&b, &e), "5 s; load is down 2.5 kW."));
    e.channels[2].before = NAN;
    assert_non_null(strstr(explain(&b, &e), "5 s."));
    buf_fini(&b);
    buf_fini(&want);
}

static void test_spans(void **state)
{
    static const struct {
        int64_t ms;
        const char *want;
    } rows[] = {
        {-5, "for 0 ms."},      {0, "for 0 ms."},       {999, "for 999 ms."},
        {1000, "for 1 s."},     {1500, "for 2 s."},     {119999, "for 120 s."},
        {120000, "for 2 min."}, {150000, "for 3 min."}, {7199999, "for 120 min."},
        {7200000, "for 2 h."},  {9000000, "for 3 h."},
    };
    struct buf b;
    (void)state;
    buf_init(&b, 4096);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct alarm_event e = event(ALARM_LOST, 2, 2);
        e.changed_ms = e.since_ms + rows[i].ms;
        assert_non_null(strstr(explain(&b, &e), rows[i].want));
    }
    buf_fini(&b);
}

static void test_values_have_three_or_four_digits(void **state)
{
    static const struct {
        double v;
        const char *want;
    } rows[] = {
        {0, "exactly 0 mm/s"},         {0.12345, "exactly 0.123 mm/s"},
        {1, "exactly 1 mm/s"},         {1.239, "exactly 1.24 mm/s"},
        {10, "exactly 10 mm/s"},       {10.26, "exactly 10.3 mm/s"},
        {99.96, "exactly 100 mm/s"},   {100.4, "exactly 100 mm/s"},
        {-2.5, "exactly -2.5 mm/s"},   {9999999, "exactly 9999999 "},
        {1e7, "exactly 1e+07 mm/s"},   {0.001, "exactly 0.001 "},
        {0.00099, "exactly 0.00099 "},
    };
    struct buf b;
    (void)state;
    buf_init(&b, 4096);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct alarm_event e = event(ALARM_STUCK, 2, rows[i].v);
        if (!strstr(explain(&b, &e), rows[i].want))
            fail_msg("%g: %s", rows[i].v, buf_str(&b));
    }
    buf_fini(&b);
}

static void test_the_json_has_every_channel(void **state)
{
    struct alarm_event e = event(ALARM_SHIFT, 2.5, 7.5);
    struct buf b;
    (void)state;
    e.n_channels = 4;
    buf_init(&b, 8192);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    alarm_json(&j, &e);
    json_out_object_end(&j);
    assert_non_null(strstr(buf_str(&b), "\"sensor\":\"vib\""));
    assert_non_null(strstr(buf_str(&b), "\"sensor\":\"temp\""));
    assert_non_null(strstr(buf_str(&b), "\"sensor\":\"load\""));
    assert_non_null(strstr(buf_str(&b), "\"sensor\":\"speed\""));
    assert_non_null(strstr(buf_str(&b), "\"cleared_ms\":null"));
    e.cleared_ms = 7000;
    buf_clear(&b);
    j = json_out_make(&b);
    json_out_object(&j);
    alarm_json(&j, &e);
    json_out_object_end(&j);
    assert_non_null(strstr(buf_str(&b), "\"cleared_ms\":7000"));
    buf_fini(&b);
}

/* A shift needs a history, a limit does not. */
static void test_detectors(void **state)
{
    (void)state;
    for (int k = 0; k < ALARM_N_KINDS; k++) {
        const struct alarm_event e = event((enum alarm_kind)k, 1, 2);
        bool precise = k == ALARM_SPIKE || k == ALARM_SHIFT || k == ALARM_DRIFT ||
                       k == ALARM_NOISE || k == ALARM_PATTERN;
        struct buf b;
        buf_init(&b, 1 << 16);
        struct json_out j = json_out_make(&b);
        json_out_object(&j);
        alarm_json(&j, &e);
        json_out_object_end(&j);
        if (!strstr(buf_str(&b), precise ? "\"detector\":\"precise\"" : "\"detector\":\"fast\""))
            fail_msg("kind %d: %s", k, buf_str(&b));
        buf_fini(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentences),
        cmocka_unit_test(test_two_other_channels_are_named),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_values_have_three_or_four_digits),
        cmocka_unit_test(test_the_json_has_every_channel),
        cmocka_unit_test(test_detectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
