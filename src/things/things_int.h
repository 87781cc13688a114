/* things_int.h - the inside of struct things.  Private to src/things. */
#ifndef SHOAL_THINGS_THINGS_INT_H
#define SHOAL_THINGS_THINGS_INT_H

#include <math.h>

#include "things/channel.h"
#include "things/joint.h"
#include "things/things.h"

#define THINGS_MAX_BY 64u
#define THINGS_JOINT_ROWS 256u /* rows that a machine learns from */

/* A remembered alarm. Its slot is reused when it is the oldest cleared one. */
struct things_alarm {
    uint64_t id;                  /* 0: free */
    struct things_sensor *sensor; /* the one that raised it: it keeps the alarm until it ends */
    struct things_sensor *lead;   /* the one with the worst cause: the text is about it */
    struct alarm_event event;
    char by[THINGS_MAX_BY], text[ALARM_MAX_TEXT];
    char *passage, *source; /* NULL: none */
};

struct things_machine {
    char *name, *title;
    struct things_policy policy;
    struct things_sensor **members;
    uint32_t n_members;
    bool apart; /* its sensors have nothing to do with each other */
    bool no_joint;
    struct joint *joint;          /* of n_members channels; NULL: none */
    uint32_t n_fresh;             /* members with a step since the last row */
    bool learns;                  /* the joint was not learned before */
    uint32_t n_learned;           /* rows that it was learned from */
    uint32_t n_waiting;           /* rows since then, if they are steps made together */
    uint32_t n_rows;              /* otherwise: rows collected so far, to learn from */
    double n_seen;                /* rows, with those that it was learned from */
    double expected, score;       /* of the last row */
    struct things_sensor *holder; /* the sensor whose alarm represents the pattern; NULL: none */
};

/* The current cause of an alarm. */
struct things_cause {
    bool holds;
    enum alarm_kind kind;
    enum alarm_severity severity;
    double score, limit;
    int64_t since_ms; /* 0: now */
};

struct things_sensor {
    char *name, *title, *unit;
    struct things_machine *machine; /* or NULL */
    double normal_low, normal_high, limit_low, limit_high, max_rate;
    double interval_ms; /* 0: not known yet */
    bool learns_interval;
    uint32_t lost_ms;
    struct things_policy policy;
    struct reading_counts counts;
    double value;     /* the last good one */
    int64_t time_ms;  /* time of that reading */
    int64_t heard_ms; /* arrival of the last good one, by our clock; 0: never */
    /* the grid of the statistics */
    double sum;
    uint32_t n_sum;
    int64_t step_ms;          /* time of the last step */
    double last_step, before; /* before: value before the cause began */
    double score, expected;
    struct channel channel;
    double z;          /* of the last step */
    bool fresh, ready; /* fresh: since the machine's last row */
    uint64_t serial;   /* of its last change */
    double pattern;    /* score of the machine's pattern, if this sensor represents it; 0: none */
    float zs[THINGS_JOINT_ROWS];
    /* the alarm */
    struct things_alarm *alarm, *old; /* old: cleared, may continue within the hold-off */
    bool held;                        /* it has a cause of its alarm, or had one a moment ago */
    enum alarm_kind kind;             /* ... of this kind */
    int64_t calm_ms;                  /* that cause has been gone since then; 0: it persists */
    int64_t pending_ms; /* a cause persists since then, and waits for the delay; 0: none */
};

struct things {
    struct things_opts opts;
    struct things_sensor **sensors;
    struct things_machine **machines;
    uint32_t *slots; /* sensors by name */
    uint32_t n_sensors, n_machines, n_slots;
    struct things_alarm *alarms;
    uint64_t next_id, serial;
    uint64_t alarm_serial; /* of the last change of an alarm */
};

/* Normal range of a sensor: configured or learned; NaN: unknown. */
static inline double things_low(const struct things_sensor *s)
{
    const struct profile *p = &s->channel.usual;
    return !isnan(s->normal_low) ? s->normal_low
           : p->n                ? channel_unfolded(&s->channel, p->low)
                                 : (double)NAN;
}

static inline double things_high(const struct things_sensor *s)
{
    const struct profile *p = &s->channel.usual;
    return !isnan(s->normal_high) ? s->normal_high
           : p->n                 ? channel_unfolded(&s->channel, p->high)
                                  : (double)NAN;
}

/* Kinds of one cause: a value that is unlike those before it. */
static inline bool things_is_statistical(enum alarm_kind kind)
{
    return kind == ALARM_SPIKE || kind == ALARM_SHIFT || kind == ALARM_DRIFT || kind == ALARM_NOISE;
}

/* True until the sensor has seen as many readings as it should learn from. */
static inline bool things_is_learning(const struct things_sensor *s)
{
    return !s->channel.fixed && s->channel.usual.n < s->channel.learn;
}

/* A member has made a step: the machine's row may be complete. */
void things_row(struct things *t, struct things_sensor *s, int64_t time_ms);
/* Evaluates the sensor's cause: raises, changes or clears its alarm. */
void things_judge(struct things *t, struct things_sensor *s, const struct things_cause *c,
                  int64_t time_ms);

#endif
