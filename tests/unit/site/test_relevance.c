/* test_relevance.c - passages of manuals that are about an alarm, and some that are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "site/things/relevance.h"
#include "things/alarm.h"

static struct alarm_event alarm_of(const char *title, const char *machine, double before,
                                   double value)
{
    struct alarm_event e = {
        .kind = ALARM_SHIFT, .machine_title = machine, .limit = (double)NAN, .n_channels = 1};
    e.channels[0] =
        (struct alarm_channel){.title = title, .unit = "", .value = value, .before = before};
    return e;
}

static bool is_relevant(const struct alarm_event *e, const char *heading, const char *passage)
{
    return relevance_of(e, heading, passage) >= RELEVANCE_FLOOR;
}

static void test_related(void **state)
{
    struct alarm_event e = alarm_of("vibration", "motor 3", 2.5, 7.5);
    (void)state;
    assert_true(is_relevant(&e, "Bearing",
                            "High vibration means that the bearing is worn. Stop the motor and "
                            "replace the bearing."));
    assert_true(is_relevant(&e, NULL, "Vibrations exceed the norm: check the coupling."));
    assert_true(is_relevant(&e, "Excessive vibration", "Check whether the feet are tight."));
    e = alarm_of("bearing temperature", "motor 3", 60, 90);
    assert_true(is_relevant(&e, "Bearings", "If the temperature rises above 85, grease them."));
    e = alarm_of("battery charge", "UPS", 90, 10);
    assert_true(is_relevant(&e, NULL,
                            "When the battery charge of your UPS gets low, the system must be "
                            "brought down cleanly."));
    e = alarm_of("sensor 4", "", 1, 200);
    assert_true(is_relevant(&e, "Sensors",
                            "A high value of a sensor means that its machine is worn. Stop it."));
}

static void test_unrelated(void **state)
{
    struct alarm_event e = alarm_of("vibration", "motor 3", 2.5, 7.5);
    (void)state;
    assert_false(is_relevant(&e, "Classes",
                             "The Lassie object is an instance of the Dog class. Objects of a high "
                             "class inherit its methods; check the motor of the language."));
    assert_false(is_relevant(&e, "Warranty", "It ends after two years. Stop the motor first."));
    assert_false(
        is_relevant(&e, NULL, "Vibration is measured in mm/s with the sensor of the motor."));
    assert_false(is_relevant(&e, NULL, "Too low vibration: check whether the motor is running."));
    e = alarm_of("current", "motor 3", 14, 30);
    assert_false(is_relevant(&e, NULL,
                             "Commit the current alarm buffer to the device and then, when all "
                             "devices have been read, increase the count. Check the result."));
    e = alarm_of("bearing temperature", "motor 3", 60, 90);
    assert_false(is_relevant(&e, NULL,
                             "The average high temperature during summer is around 33; wear "
                             "light clothes and check the forecast."));
}

/* How it is wrong decides, too. */
static void test_the_other_direction(void **state)
{
    const char *low = "Low oil level: refill the gearbox.";
    struct alarm_event e = alarm_of("oil level", "gearbox", 50, 20);
    (void)state;
    assert_true(is_relevant(&e, NULL, low));
    e.channels[0].value = 90;
    assert_false(is_relevant(&e, NULL, low));
    e.kind = ALARM_LOST;
    assert_false(is_relevant(&e, NULL, low));
    assert_true(is_relevant(&e, NULL, "Oil level lost: check the cable of the gearbox."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_related),
        cmocka_unit_test(test_unrelated),
        cmocka_unit_test(test_the_other_direction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
