/* test_plant.c - a reading counts for as long as somebody can bring one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gateway/config.h"
#include "gateway/things/plant.h"

static void count(void *ctx, const struct alarm_event *e)
{
    *(int *)ctx += e->change == ALARM_RAISED;
}

/* A broker is told that a reading arrived: one that comes while the server stops must not be
 * dropped. */
static void test_a_reading_after_the_stop_raises_its_alarm(void **state)
{
    struct things_sensor_opts sensor = things_sensor_defaults();
    struct gw_config config = {.things = {.sensors = &sensor, .n_sensors = 1}};
    struct plant *p;
    struct err e = {0};
    int n_raised = 0;
    (void)state;
    sensor.name = "vibration";
    sensor.limit_high = 7;
    assert_int_equal(plant_create(&p, &config, NULL, &e), 0);
    assert_int_equal(plant_listen(p, count, &n_raised, &e), 0);
    assert_int_equal(plant_start(p, &e), 0);
    plant_stop(p);
    const struct reading r = {.sensor = plant_find(p, "vibration"), .value = 11};
    plant_reading(p, &r);
    assert_int_equal(n_raised, 1);
    assert_int_equal(plant_open_alarms(p), 1);
    plant_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_reading_after_the_stop_raises_its_alarm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
