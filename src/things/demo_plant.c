/* demo_plant.c - see demo_plant.h. */
#include "things/demo_plant.h"

#include <math.h>

#include "base/hash.h"

#define WEAR_S 3.0  /* until the bearing is at its worst, or healthy again */
#define HEAT_S 25.0 /* time constant of its warmth */
#define MAX_HEAT 14.0

enum { VIBRATION, BEARING, CURRENT, PRESSURE, FLOW, HALL };

const char *const demo_plant_sensors[DEMO_PLANT_SENSORS] = {"vibration", "bearing", "current",
                                                            "pressure",  "flow",    "hall"};

/* About normal, mean 0, deviation 1. */
static double noise(struct demo_plant *p)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        p->seed = hash_mix(p->seed + 0x9e3779b97f4a7c15u);
        sum += (double)(p->seed >> 11) / 9007199254740992.0;
    }
    return sum - 6;
}

void demo_plant_step(struct demo_plant *p, int64_t now_ms, double out[DEMO_PLANT_SENSORS])
{
    double passed = p->last_ms && now_ms > p->last_ms ? (double)(now_ms - p->last_ms) / 1000 : 0;
    double t = (double)(now_ms % 3600000) / 1000;
    p->last_ms = now_ms;
    p->wear += p->broken ? passed / WEAR_S : -passed / WEAR_S;
    p->wear = fmin(fmax(p->wear, 0), 1);
    p->heat += (p->wear * MAX_HEAT - p->heat) * fmin(passed / HEAT_S, 1);
    double load = 0.5 * sin(t * 2 * M_PI / 6); /* the load comes and goes */
    out[VIBRATION] = 2.5 + 0.08 * load + 5.4 * p->wear + (0.06 + 0.3 * p->wear) * noise(p);
    out[BEARING] = 61 + 0.3 * load + p->heat + 0.08 * noise(p);
    out[CURRENT] = 14 + 0.5 * load + 1.6 * p->wear + 0.07 * noise(p);
    out[PRESSURE] = 4.2 + 0.1 * load + 0.02 * noise(p);
    out[FLOW] = 118 + 3 * load + 0.6 * noise(p);
    out[HALL] = 21.5 + 0.1 * load + 0.03 * noise(p);
}
