/* things.h - sensors and machines: readings in, alarms out.
 *
 * Pure and driven by the caller's clock: no threads, no I/O, and time is an argument, so a day can
 * be replayed in a second. Memory is reserved when a sensor is added (under 16 KiB each); a reading
 * allocates nothing, except once when a machine has learned how its channels relate.
 *
 * A reading is first compared with the sensor's hard limits and rate of change, which need no
 * learning: such an alarm is raised within the call. Then the sensor's detector (channel.h) sees
 * it, which knows what is usual from the sensor's own past or from a learned profile (profile.h),
 * and, if the sensor belongs to a machine, the detector over all channels of the machine (joint.h).
 *
 * Thread:    belongs to its caller: one thread at a time.
 * Ownership: create/destroy; names and texts are copied.  Callbacks get borrowed events.
 * Failure:   create and add return SHOAL_E*; readings cannot fail. */
#ifndef SHOAL_THINGS_THINGS_H
#define SHOAL_THINGS_THINGS_H

#include "base/err.h"
#include "things/alarm.h"
#include "things/reading.h"

struct joint;
struct profile;
struct things;

#define THINGS_NONE UINT32_MAX
#define THINGS_MAX_SENSORS 65536u
#define THINGS_MAX_MACHINES 16384u

/* When an alarm is raised and cleared. Zero: the default, or the machine's setting. */
struct things_policy {
    double false_alarms;  /* target of the statistics, per day and sensor; 0: 0.02 */
    uint32_t delay_ms;    /* a cause must persist this long to raise an alarm; 0: no delay */
    uint32_t clear_ms;    /* ... and be gone this long before the alarm clears; 0: 10 intervals, at
                             least 10 s */
    uint32_t hold_off_ms; /* the same cause within this time continues the old alarm; 0: 60 s */
    double hysteresis;    /* a value must be inside its limit by this share of the range; 0: 0.02 */
    bool no_cascade;      /* the precise detector sees every reading, not only doubtful ones */
    bool no_statistics;   /* only limits, rates, normal range and lost signals */
};

struct things_machine_opts {
    const char *name;  /* unique */
    const char *title; /* for people; NULL: the name */
    struct things_policy policy;
    bool no_joint;             /* channels are only monitored individually */
    const struct joint *joint; /* learned by `shoal anomaly fit`, for the sensors in the order they
                                  are added; copied; NULL: learned from the readings */
};

struct things_sensor_opts {         /* begin with things_sensor_defaults() */
    const char *name;               /* unique */
    const char *title;              /* for people; NULL: the name */
    const char *unit;               /* NULL: none */
    const char *machine;            /* added before; NULL: none */
    double normal_low, normal_high; /* NaN: learned */
    double limit_low, limit_high;   /* hard limits; NaN: none */
    double max_rate;                /* change per second; 0 or NaN: none */
    uint32_t interval_ms;           /* expected between readings; 0: learned */
    uint32_t lost_ms; /* without a reading for this long the signal is lost; 0: 5 intervals, at
                         least 5 s; UINT32_MAX: never */
    uint32_t learn;   /* readings to learn from, at most 1024; 0: 512 */
    struct things_policy policy;   /* overrides the machine's */
    const struct profile *profile; /* learned by `shoal anomaly fit`; copied; NULL: none */
};

/* No limits, no normal range, no machine; everything is learned. */
struct things_sensor_opts things_sensor_defaults(void);

struct things_opts {
    /* Called within things_reading, things_tick and things_acknowledge.  It must not call back into
     * the same things. */
    void (*alarm)(void *ctx, const struct alarm_event *e);
    void *ctx;
    uint32_t max_alarms;  /* alarms that are remembered; 0: 1000 */
    uint64_t first_id;    /* id of the first alarm; 0: 1 */
    uint32_t max_skew_ms; /* maximum clock difference of a reading; 0: 60 s; UINT32_MAX: any (a
                             recording is replayed) */
};

/* The current state of a sensor. */
struct things_view {
    const char *name, *title, *unit, *machine, *machine_title; /* "" for none */
    double value; /* of the last good reading; NaN: none yet */
    int64_t time_ms;
    double low, high;             /* normal range; NaN: not known yet */
    double limit_low, limit_high; /* hard limits; NaN: none */
    double score;                 /* of the detector, 0 to 1; from 0.5 on it is an alarm */
    double expected;              /* false alarms per day that its current state corresponds to */
    uint64_t alarm;               /* id of its open alarm; 0: none */
    uint64_t serial;              /* serial of its last change: grows over all sensors and alarms */
    bool learning;                /* the normal range and the levels are those of few readings */
    uint32_t learned;             /* readings that they come from; 0: none yet, so no verdict */
    uint32_t learn;               /* ... and how many are wanted */
    uint32_t doubtful;            /* readings that nothing was learned from */
    struct reading_counts counts;
};

SHOAL_MUST_CHECK int things_create(struct things **out, const struct things_opts *o, struct err *e);
void things_destroy(struct things *t);
/* SHOAL_EINVAL names what is wrong; SHOAL_ELIMIT, SHOAL_ENOMEM. */
SHOAL_MUST_CHECK int things_add_machine(struct things *t, const struct things_machine_opts *o,
                                        struct err *e);
SHOAL_MUST_CHECK int things_add_sensor(struct things *t, const struct things_sensor_opts *o,
                                       struct err *e);

uint32_t things_count(const struct things *t);                  /* sensors: 0 to count - 1 */
uint32_t things_find(const struct things *t, const char *name); /* THINGS_NONE: none */
void things_view(const struct things *t, uint32_t sensor, struct things_view *out);
/* The last steps of a sensor, the oldest first: at most max of those kept for learning. Returns how
 * many; *interval_ms is the distance of two steps, *end_ms the time of the last. */
uint32_t things_history(const struct things *t, uint32_t sensor, float *out, uint32_t max,
                        double *interval_ms, int64_t *end_ms);
uint64_t things_serial(const struct things *t); /* of the last change of any sensor or alarm */
/* False alarms per day that the current state of a machine corresponds to: of its channels
 * together, and of the most unusual one. Infinite: not known yet. */
double things_machine_expected(const struct things *t, const char *machine);
/* The largest score of a machine: of its channels together, and of each. */
double things_machine_score(const struct things *t, const char *machine);
size_t things_bytes(const struct things *t); /* memory of all */

/* now_ms: our own clock, since 1970; must not go back. */
void things_reading(struct things *t, const struct reading *r, int64_t now_ms);
/* Checks for lost signals and clears alarms; call it at least once a second. */
void things_tick(struct things *t, int64_t now_ms);

/* ---- alarms ---- */

/* The remembered alarms, the newest first; fills at most max and returns how many there are in all.
 * Texts are borrowed until the next call that changes something.  after: only those with a greater
 * id; 0: all. */
uint32_t things_alarms(const struct things *t, struct alarm_event *out, uint32_t max,
                       uint64_t after, bool only_open);
/* Restores an alarm that was open at the end of an earlier process: it continues under its id,
 * without an event. Its first channel names the sensor. Before the first reading. SHOAL_ENOTFOUND:
 * there is no such sensor; SHOAL_EINVAL: it has an alarm. */
SHOAL_MUST_CHECK int things_restore(struct things *t, const struct alarm_event *e, struct err *err);
/* The alarm that changed first after the event with this serial, in its current state; false:
 * none. */
bool things_alarm_changed(const struct things *t, uint64_t after, struct alarm_event *out);
/* Fills one; false: unknown, or no longer remembered. */
bool things_alarm(const struct things *t, uint64_t id, struct alarm_event *out);
/* Sets a matching passage of the manuals and its source; copied. SHOAL_ENOTFOUND: no such alarm is
 * open; SHOAL_ENOMEM. */
SHOAL_MUST_CHECK int things_explain(struct things *t, uint64_t id, const char *passage,
                                    const char *source, int64_t now_ms, struct err *e);
/* by: who acknowledges; may be "". SHOAL_ENOTFOUND: no such alarm. */
SHOAL_MUST_CHECK int things_acknowledge(struct things *t, uint64_t id, const char *by,
                                        int64_t now_ms, struct err *e);
#endif
