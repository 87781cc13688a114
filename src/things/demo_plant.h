/* demo_plant.h - a simulated plant: values of a few sensors over time, with a bearing that can be
 * broken.
 *
 * A broken bearing vibrates three times as much after three seconds, draws more current and becomes
 * warm; repaired, everything returns to normal. The same seed and the same times give the same
 * values.
 *
 * Thread:    belongs to its caller.
 * Ownership: plain data in the caller's storage.
 * Failure:   cannot fail. */
#ifndef SHOAL_THINGS_DEMO_PLANT_H
#define SHOAL_THINGS_DEMO_PLANT_H

#include <stdbool.h>
#include <stdint.h>

#define DEMO_PLANT_SENSORS 6u
#define DEMO_PLANT_STEP_MS 100 /* between two readings of a sensor */

struct demo_plant { /* all zero except the seed: a healthy plant */
    uint64_t seed;
    int64_t last_ms; /* 0: not begun */
    double wear;     /* of the bearing: 0 healthy, 1 broken */
    double heat;     /* degrees above the usual */
    bool broken;     /* for the caller to set */
};

/* Names of the sensors, as examples/plant.yaml has them. */
extern const char *const demo_plant_sensors[DEMO_PLANT_SENSORS];

void demo_plant_step(struct demo_plant *p, int64_t now_ms, double out[DEMO_PLANT_SENSORS]);

#endif
