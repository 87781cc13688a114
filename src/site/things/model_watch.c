/* model_watch.c - see model_watch.h. */
#include "site/things/model_watch.h"

#include <stdio.h>

#include "base/mem.h"
#include "host/confidence_watch.h"
#include "host/registry.h"
#include "site/things/plant.h"

#define MAX_MODELS 64u
#define BEYOND 1.01 /* times the limit, for an alarm of a smaller index */
#define WITHIN 0.9  /* and for none with a larger one: the limit has a hysteresis, too */

struct model_watch {
    struct registry *registry;
    struct {
        uint32_t sensor;
        uint64_t n_windows; /* that were told */
    } told[MAX_MODELS];
    uint32_t n;
    /* found by one look */
    struct plant *plant;
    struct reading readings[MAX_MODELS];
    uint32_t n_readings;
};

/* The value of the sensor for an index, with the drift's own decision: the sensor's limit is fixed,
 * the decision has a hysteresis and looks at more than one window. */
static double value_of(double index, bool alarm)
{
    const double beyond = BEYOND * CONFIDENCE_WATCH_LIMIT, within = WITHIN * CONFIDENCE_WATCH_LIMIT;
    return alarm ? (index > beyond ? index : beyond) : index < within ? index : within;
}

/* Whether n_windows of a sensor are news. */
static bool is_new(struct model_watch *w, uint32_t sensor, uint64_t n_windows)
{
    uint32_t i = 0;
    while (i < w->n && w->told[i].sensor != sensor)
        i++;
    if (i == MAX_MODELS || n_windows == 0)
        return false;
    if (i == w->n) {
        w->told[w->n].n_windows = 0;
        w->told[w->n++].sensor = sensor;
    }
    const bool news = w->told[i].n_windows != n_windows;
    w->told[i].n_windows = n_windows;
    return news;
}

/* Under the registry's lock: the readings are delivered without it. */
static void look(void *ctx, const struct registry_model *m)
{
    struct model_watch *w = ctx;
    const struct confidence_watch *c = &m->stats.confidence;
    char name[256];
    snprintf(name, sizeof(name), PLANT_CONFIDENCE "%s", m->name);
    const uint32_t sensor = plant_find(w->plant, name);
    const uint64_t n = atomic_load_explicit(&c->n_windows, memory_order_relaxed);
    const double index = (double)atomic_load_explicit(&c->index_ppm, memory_order_relaxed) / 1e6;
    if (sensor == THINGS_NONE || w->n_readings == MAX_MODELS || !is_new(w, sensor, n))
        return;
    const bool alarm = atomic_load_explicit(&c->alarm, memory_order_relaxed) != 0;
    w->readings[w->n_readings++] =
        (struct reading){.sensor = sensor, .value = value_of(index, alarm)};
}

static void poll(void *ctx, struct plant *p)
{
    struct model_watch *w = ctx;
    w->plant = p;
    w->n_readings = 0;
    registry_each(w->registry, look, w);
    if (w->n_readings > 0)
        plant_readings(p, w->readings, w->n_readings);
}

int model_watch_create(struct model_watch **out, struct registry *r, struct plant *p, struct err *e)
{
    struct model_watch *w = p ? mem_zalloc(sizeof(*w)) : NULL;
    *out = w;
    if (!w)
        return p ? err_set(e, SHOAL_ENOMEM, "sensors of models") : 0;
    w->registry = r;
    plant_poll(p, poll, w);
    return 0;
}

void model_watch_destroy(struct model_watch *w)
{
    mem_free(w);
}
