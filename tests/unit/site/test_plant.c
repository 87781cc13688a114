/* test_plant.c - readings count until the last sender is gone; an alarm stays one alarm over
 * restarts; only the sender of a reading waits for the disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/config.h"
#include "site/things/plant.h"

struct kit {
    struct things_sensor_opts sensor;
    struct config config;
    struct plant *plant;
    char dir[64], file[96];
};

struct seen {
    int n_raised, n_cleared, n_restored;
    uint64_t id;
};

static void on_alarm(void *ctx, const struct alarm_event *e)
{
    struct seen *s = ctx;
    s->n_raised += e->change == ALARM_RAISED;
    s->n_cleared += e->change == ALARM_CLEARED;
    s->id = e->id;
}

static void on_restored(void *ctx, const struct alarm_event *e)
{
    struct seen *s = ctx;
    s->n_restored++;
    s->id = e->id;
}

static void kit_init(struct kit *k)
{
    *k = (struct kit){.sensor = things_sensor_defaults(), .dir = "/tmp/shoal-plant-XXXXXX"};
    k->sensor.name = "vibration";
    k->sensor.limit_high = 7;
    k->config.things.sensors = &k->sensor;
    k->config.things.n_sensors = 1;
    assert_non_null(mkdtemp(k->dir));
    snprintf(k->file, sizeof(k->file), "%s/open.json", k->dir);
}

static void kit_start(struct kit *k, plant_alarm_fn fn, plant_alarm_fn restored, void *ctx)
{
    struct err e = {0};
    assert_int_equal(plant_create(&k->plant, &k->config, k->file, &e), 0);
    assert_int_equal(plant_listen(k->plant, fn, restored, ctx, &e), 0);
    assert_int_equal(plant_start(k->plant, &e), 0);
}

static void kit_fini(struct kit *k)
{
    unlink(k->file);
    rmdir(k->dir);
}

static void put(struct kit *k, double value)
{
    const struct reading r = {.sensor = plant_find(k->plant, "vibration"), .value = value};
    plant_reading(k->plant, &r);
}

/* A broker gets an acknowledgement for a reading: one that arrives during shutdown must not be
 * dropped. */
static void test_a_reading_after_the_stop_raises_its_alarm(void **state)
{
    struct seen seen = {0};
    struct kit k;
    (void)state;
    kit_init(&k);
    kit_start(&k, on_alarm, NULL, &seen);
    plant_stop(k.plant);
    put(&k, 11);
    assert_int_equal(seen.n_raised, 1);
    assert_int_equal(plant_open_alarms(k.plant), 1);
    plant_destroy(k.plant);
    kit_fini(&k);
}

struct listed {
    struct alarm_event event;
    char by[64];
    uint32_t n;
};

static void list(void *ctx, struct things *t)
{
    struct listed *l = ctx;
    l->n = things_alarms(t, &l->event, 1, 0, true);
    if (l->n)
        snprintf(l->by, sizeof(l->by), "%s", l->event.acknowledged_by);
}

static void acknowledge(void *ctx, struct things *t)
{
    struct err e;
    assert_int_equal(things_acknowledge(t, *(uint64_t *)ctx, "ada", 1700000000000, &e), 0);
}

static void test_an_alarm_is_one_over_restarts(void **state)
{
    struct seen first = {0}, second = {0};
    struct listed l = {.n = 0};
    struct kit k;
    (void)state;
    kit_init(&k);
    kit_start(&k, on_alarm, on_restored, &first);
    put(&k, 11);
    assert_int_equal(first.n_raised, 1);
    assert_int_equal(first.n_restored, 0);
    plant_change(k.plant, acknowledge, &first.id);
    plant_destroy(k.plant);

    kit_start(&k, on_alarm, on_restored, &second);
    assert_int_equal(second.n_restored, 1);
    assert_int_equal(second.id, first.id);
    plant_look(k.plant, list, &l); /* before any reading */
    assert_int_equal(l.n, 1);
    assert_int_equal(l.event.id, first.id);
    assert_true(l.event.acknowledged);
    assert_string_equal(l.by, "ada");
    put(&k, 12);
    assert_int_equal(second.n_raised, 0);
    plant_look(k.plant, list, &l);
    assert_int_equal(l.n, 1);
    assert_int_equal(l.event.id, first.id);
    plant_destroy(k.plant);
    kit_fini(&k);
}

/* Events that wait in a listener's queue may be newer or older than the file. */
static void test_events_that_wait_and_the_file(void **state)
{
    static const char old[] = "{\"id\":5,\"change\":\"raised\",\"kind\":\"limit\",\"severity\":"
                              "\"critical\",\"channels\":[{\"sensor\":\"vibration\"}],"
                              "\"changed_ms\":1000}";
    static const char over[] = "{\"id\":5,\"change\":\"cleared\",\"kind\":\"limit\",\"severity\":"
                               "\"critical\",\"channels\":[{\"sensor\":\"vibration\"}],"
                               "\"changed_ms\":2000}";
    struct seen seen = {0};
    struct kit k;
    struct err e = {0};
    (void)state;
    kit_init(&k);
    kit_start(&k, on_alarm, NULL, &seen);
    put(&k, 11);
    plant_destroy(k.plant);
    assert_int_equal(plant_create(&k.plant, &k.config, k.file, &e), 0);
    plant_recall(k.plant, old, sizeof(old) - 1); /* of an alarm before the one in the file */
    plant_recall(k.plant, over, sizeof(over) - 1);
    assert_int_equal(plant_open_alarms(k.plant), 1);
    plant_destroy(k.plant);
    unlink(k.file);
    assert_int_equal(plant_create(&k.plant, &k.config, k.file, &e), 0);
    plant_recall(k.plant, old, sizeof(old) - 1);
    assert_int_equal(plant_open_alarms(k.plant), 1);
    plant_recall(k.plant, over, sizeof(over) - 1);
    assert_int_equal(plant_open_alarms(k.plant), 0);
    plant_destroy(k.plant);
    kit_fini(&k);
}

/* ---- a slow disk ---- */

struct slow {
    struct kit kit;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool inside, go_on;
    _Atomic bool returned, job_done;
};

static void on_slow(void *ctx, const struct alarm_event *e)
{
    struct slow *s = ctx;
    (void)e;
    pthread_mutex_lock(&s->lock);
    s->inside = true;
    pthread_cond_broadcast(&s->changed);
    while (!s->go_on)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static void *bring(void *ctx)
{
    struct slow *s = ctx;
    put(&s->kit, 11);
    atomic_store(&s->returned, true);
    return NULL;
}

struct bring_job {
    struct plant_job job;
    struct slow *slow;
};

static void run_job(struct plant_job *j, struct plant *p)
{
    struct bring_job *b = (struct bring_job *)(void *)j;
    const struct reading r = {.sensor = plant_find(p, "vibration"), .value = 12};
    plant_readings(p, &r, 1);
    atomic_store(&b->slow->job_done, true);
}

/* While the disk writes an alarm, only the sender of the reading waits. */
static void test_the_disk_holds_up_nobody_else(void **state)
{
    struct slow s = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct bring_job job = {.job.fn = run_job, .slow = &s};
    struct listed l = {.n = 0};
    pthread_t thread;
    (void)state;
    kit_init(&s.kit);
    kit_start(&s.kit, on_slow, NULL, &s);
    assert_int_equal(pthread_create(&thread, NULL, bring, &s), 0);
    pthread_mutex_lock(&s.lock);
    while (!s.inside)
        pthread_cond_wait(&s.changed, &s.lock);
    pthread_mutex_unlock(&s.lock);
    plant_look(s.kit.plant, list, &l); /* these would wait forever */
    assert_int_equal(l.n, 1);
    assert_int_equal(plant_find(s.kit.plant, "vibration"), 0);
    plant_submit(s.kit.plant, &job.job);
    assert_false(atomic_load(&s.returned));
    assert_int_not_equal(access(s.kit.file, F_OK), 0); /* not reported: not recorded */
    pthread_mutex_lock(&s.lock);
    s.go_on = true;
    pthread_cond_broadcast(&s.changed);
    pthread_mutex_unlock(&s.lock);
    pthread_join(thread, NULL);
    assert_int_equal(access(s.kit.file, F_OK), 0);
    plant_destroy(s.kit.plant); /* jobs finish first */
    assert_true(atomic_load(&s.job_done));
    kit_fini(&s.kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_reading_after_the_stop_raises_its_alarm),
        cmocka_unit_test(test_an_alarm_is_one_over_restarts),
        cmocka_unit_test(test_events_that_wait_and_the_file),
        cmocka_unit_test(test_the_disk_holds_up_nobody_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
