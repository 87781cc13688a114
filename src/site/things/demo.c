/* demo.c - see demo.h. */
#include "site/things/demo.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread/cond.h"
#include "base/thread/thread.h"
#include "mqtt/mqtt.h"
#include "site/things/plant.h"
#include "things/demo_plant.h"

struct demo {
    struct plant *plant;
    struct mqtt *client; /* NULL: the plant is simulated here */
    uint32_t sensors[DEMO_PLANT_SENSORS];
    _Atomic bool broken;
    pthread_t thread;
    bool has_thread, stop;
    pthread_mutex_t lock; /* guards stop */
    pthread_cond_t wake;
};

static void read_all(struct demo *d, struct demo_plant *sim)
{
    double values[DEMO_PLANT_SENSORS];
    sim->broken = atomic_load(&d->broken);
    demo_plant_step(sim, (int64_t)clock_unix_ms(), values);
    for (uint32_t i = 0; i < DEMO_PLANT_SENSORS; i++) {
        const struct reading r = {.sensor = d->sensors[i], .value = values[i]};
        if (r.sensor != THINGS_NONE)
            plant_reading(d->plant, &r);
    }
}

static void *run(void *arg)
{
    struct demo *d = arg;
    struct demo_plant sim = {.seed = 1};
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    pthread_mutex_lock(&d->lock);
    while (!d->stop) {
        pthread_mutex_unlock(&d->lock);
        read_all(d, &sim);
        next.tv_nsec += DEMO_PLANT_STEP_MS * 1000000L;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        pthread_mutex_lock(&d->lock);
        while (!d->stop && pthread_cond_timedwait(&d->wake, &d->lock, &next) == 0)
            ;
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

int demo_create(struct demo **out, enum demo_mode mode, struct plant *plant, struct mqtt *client,
                struct err *e)
{
    *out = NULL;
    if (mode == DEMO_OFF)
        return 0;
    if (!plant || (mode == DEMO_MQTT && !client))
        return err_set(e, SHOAL_EINVAL, "demo needs %s (examples/plant.yaml)",
                       plant ? "mqtt.broker" : "sensors");
    struct demo *d = mem_zalloc(sizeof(*d));
    if (!d)
        return err_set(e, SHOAL_ENOMEM, "demo");
    d->plant = plant;
    d->client = mode == DEMO_MQTT ? client : NULL;
    pthread_mutex_init(&d->lock, NULL);
    cond_init(&d->wake);
    for (uint32_t i = 0; i < DEMO_PLANT_SENSORS; i++)
        d->sensors[i] = plant_find(plant, demo_plant_sensors[i]);
    int rc = mode == DEMO_HERE ? thread_create(&d->thread, "demo", run, d, e) : 0;
    d->has_thread = mode == DEMO_HERE && rc == 0;
    if (rc < 0) {
        demo_destroy(d);
        return rc;
    }
    *out = d;
    return 0;
}

void demo_destroy(struct demo *d)
{
    if (!d)
        return;
    if (d->has_thread) {
        pthread_mutex_lock(&d->lock);
        d->stop = true;
        pthread_cond_signal(&d->wake);
        pthread_mutex_unlock(&d->lock);
        pthread_join(d->thread, NULL);
    }
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->wake);
    mem_free(d);
}

int demo_set(struct demo *d, bool broken, struct err *e)
{
    const char *text = broken ? "on" : "off";
    const struct mqtt_message m = {
        .topic = DEMO_FAULT_TOPIC, .payload = text, .n = strlen(text), .qos = 1, .retain = true};
    int rc = 0;
    if (d->client && !mqtt_is_up(d->client))
        rc = err_set(e, SHOAL_EBUSY, "the MQTT broker is not connected");
    else if (d->client)
        rc = mqtt_publish(d->client, &m, e);
    if (rc == 0)
        atomic_store(&d->broken, broken);
    return rc;
}

bool demo_broken(const struct demo *d)
{
    return atomic_load(&d->broken);
}
