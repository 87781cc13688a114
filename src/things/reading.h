/* reading.h - one value of a sensor at one time, as it arrives from outside. */
#ifndef SHOAL_THINGS_READING_H
#define SHOAL_THINGS_READING_H

#include <stdbool.h>
#include <stdint.h>

enum reading_quality {
    READING_GOOD,
    READING_UNCERTAIN, /* used, but counted */
    READING_BAD,       /* not used: the sensor itself marks the value as bad */
};

struct reading {
    uint32_t sensor; /* index in struct things */
    int64_t time_ms; /* since 1970, by the sensor's clock; 0: unknown, the time of arrival counts */
    double value;    /* NaN or infinite: a bad value */
    enum reading_quality quality;
};

/* Counters of a sensor's readings. */
struct reading_counts {
    uint64_t n;          /* all that arrived */
    uint64_t bad;        /* NaN, infinite, or of bad quality */
    uint64_t uncertain;  /* used, though of uncertain quality */
    uint64_t duplicates; /* same time as the one before: dropped */
    uint64_t late;       /* older than the last one: only compared with the limits */
    uint64_t skewed;     /* the sensor's clock is off: the time of arrival was used */
    uint64_t gaps;       /* pauses of several intervals */
    uint64_t merged;     /* several within one interval: averaged for the statistics */
    uint64_t steps;      /* seen by the detectors */
    uint64_t checked;    /* in doubt for the fast detector: the precise one decided */
};

#endif
