/* sun.h - when the sun rises and sets at a place on a day, by the formulas of NOAA's solar
 * calculator (within about a minute, between the polar circles).
 *
 * Thread:    any.
 * Failure:   false: it does not rise or set there on that day. */
#ifndef SHOAL_APPS_HOME_SUN_H
#define SHOAL_APPS_HOME_SUN_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum sun_event { SUN_NONE, SUN_RISES, SUN_SETS };

/* day: its year, month and day of the month count.  In degrees, north and east positive. */
bool sun_time(const struct tm *day, double latitude, double longitude, enum sun_event event,
              int64_t *at_s);

#endif
