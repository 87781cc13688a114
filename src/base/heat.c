/* heat.c - see heat.h. */
#include "base/heat.h"

#include <string.h>

#include "base/sys_file.h"

#define MAX_ZONES 32u
#define MAX_TRIPS 12u

/* The lowest temperature at which a zone makes the machine slower; 0: none is known. */
static double zone_limit(const char *sys, unsigned zone)
{
    char kind[64];
    double lowest = 0.0, at;
    for (unsigned i = 0; i < MAX_TRIPS; i++) {
        if (!sys_file_line(kind, sizeof(kind), "%s/class/thermal/thermal_zone%u/trip_point_%u_type",
                           sys, zone, i))
            break;
        if (strncmp(kind, "passive", 7) != 0 && strncmp(kind, "hot", 3) != 0)
            continue;
        if (sys_file_number(&at, "%s/class/thermal/thermal_zone%u/trip_point_%u_temp", sys, zone,
                            i) &&
            at > 0.0 && (lowest <= 0.0 || at / 1e3 < lowest))
            lowest = at / 1e3;
    }
    return lowest;
}

void heat_read(struct heat *h, const char *sys)
{
    double now, n;
    *h = (struct heat){0};
    for (unsigned zone = 0; zone < MAX_ZONES; zone++) {
        if (!sys_file_number(&now, "%s/class/thermal/thermal_zone%u/temp", sys, zone) ||
            now / 1e3 <= h->celsius || now > 200e3) /* a broken sensor */
            continue;
        h->celsius = now / 1e3;
        h->limit = zone_limit(sys, zone);
    }
    if (sys_file_number(&n, "%s/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count",
                        sys) &&
        n > 0)
        h->n_throttled = (uint64_t)n;
}
