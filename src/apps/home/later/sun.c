/* sun.c - see sun.h. */
#include "apps/home/later/sun.h"

#include <math.h>

#define RADIANS (3.14159265358979323846 / 180)
#define ZENITH 90.833   /* of the centre of the sun at sunrise: half its diameter, and refraction */
#define EPOCH 946728000 /* 2000-01-01 12:00 UTC */
#define CENTURY_S (36525.0 * 86400)

static double sin_of(double degrees)
{
    return sin(degrees * RADIANS);
}

static double cos_of(double degrees)
{
    return cos(degrees * RADIANS);
}

struct sun {
    double declination; /* degrees */
    double ahead;       /* minutes that a sundial is ahead of the clock */
};

static struct sun sun_at(int64_t at_s)
{
    double t = (double)(at_s - EPOCH) / CENTURY_S;
    double mean = fmod(280.46646 + t * (36000.76983 + t * 0.0003032), 360);
    double anomaly = 357.52911 + t * (35999.05029 - 0.0001537 * t);
    double eccent = 0.016708634 - t * (0.000042037 + 0.0000001267 * t);
    double centre = sin_of(anomaly) * (1.914602 - t * (0.004817 + 0.000014 * t)) +
                    sin_of(2 * anomaly) * (0.019993 - 0.000101 * t) +
                    sin_of(3 * anomaly) * 0.000289;
    double moon = 125.04 - 1934.136 * t;
    double longitude = mean + centre - 0.00569 - 0.00478 * sin_of(moon);
    double tilt = 23 + (26 + (21.448 - t * (46.815 + t * (0.00059 - t * 0.001813))) / 60) / 60 +
                  0.00256 * cos_of(moon);
    double half = tan(tilt / 2 * RADIANS), y = half * half;
    double equation = y * sin_of(2 * mean) - 2 * eccent * sin_of(anomaly) +
                      4 * eccent * y * sin_of(anomaly) * cos_of(2 * mean) -
                      0.5 * y * y * sin_of(4 * mean) - 1.25 * eccent * eccent * sin_of(2 * anomaly);
    return (struct sun){.declination = asin(sin_of(tilt) * sin_of(longitude)) / RADIANS,
                        .ahead = 4 * equation / RADIANS};
}

bool sun_time(const struct tm *day, double latitude, double longitude, enum sun_event event,
              int64_t *at_s)
{
    struct tm midnight = {.tm_year = day->tm_year, .tm_mon = day->tm_mon, .tm_mday = day->tm_mday};
    int64_t from = (int64_t)timegm(&midnight);
    *at_s = from + 43200 - (int64_t)(240 * longitude);
    for (int i = 0; i < 3; i++) { /* the sun's position depends on the unknown moment */
        struct sun s = sun_at(*at_s);
        double c = cos_of(ZENITH) / (cos_of(latitude) * cos_of(s.declination)) -
                   tan(latitude * RADIANS) * tan(s.declination * RADIANS);
        if (!(fabs(c) <= 1))
            return false;
        double hour = acos(c) / RADIANS * (event == SUN_RISES ? 1 : -1);
        *at_s = from + (int64_t)(60 * (720 - 4 * (longitude + hour) - s.ahead));
    }
    return true;
}
