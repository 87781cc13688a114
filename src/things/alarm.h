/* alarm.h - an alarm event: kind, place, start, severity and normal range.
 *
 * Ownership: an event and its texts are borrowed from struct things until the callback returns. */
#ifndef SHOAL_THINGS_ALARM_H
#define SHOAL_THINGS_ALARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct json_out;

#define ALARM_MAX_CHANNELS 8u
#define ALARM_MAX_EVIDENCE 8u
#define ALARM_MAX_TEXT 400u

enum alarm_kind {
    ALARM_LIMIT,   /* outside a hard limit */
    ALARM_RATE,    /* changes faster than allowed */
    ALARM_RANGE,   /* outside the normal range that the configuration states */
    ALARM_SPIKE,   /* a value far from what is usual */
    ALARM_SHIFT,   /* the level has changed */
    ALARM_DRIFT,   /* the level changes slowly */
    ALARM_NOISE,   /* the values vary more than usual */
    ALARM_STUCK,   /* the value has not changed for unusually long */
    ALARM_LOST,    /* no good readings arrive */
    ALARM_PATTERN, /* the channels of a machine do not fit together */
    ALARM_CYCLE,   /* it should have switched to another of its levels long ago */
    ALARM_N_KINDS
};

enum alarm_severity { ALARM_INFO, ALARM_WARNING, ALARM_CRITICAL };

enum alarm_change {
    ALARM_RAISED,
    ALARM_WORSENED,     /* a higher severity, or another kind of the same severity or higher */
    ALARM_ACKNOWLEDGED, /* by a person */
    ALARM_CLEARED,      /* the cause is gone */
    ALARM_EXPLAINED,    /* a passage of the manuals was found for it */
    ALARM_EXTENDED,     /* another sensor of the machine shows it too */
    ALARM_N_CHANGES
};

/* One observation of those that led to the alarm: the same cause may show in several sensors. */
struct alarm_evidence {
    const char *sensor, *title, *unit;
    enum alarm_kind kind;
    enum alarm_severity severity;
    double value, before;      /* as in struct alarm_channel, when it was observed */
    int64_t since_ms, seen_ms; /* when it began, as far as known; when it was observed */
};

/* One channel of an alarm, the one that raised it first. */
struct alarm_channel {
    const char *sensor, *title, *unit; /* title: for people; unit may be "" */
    double value;                      /* now; NaN: none */
    double before;                     /* usual value before the alarm; NaN: unknown */
    double low, high;                  /* normal range; NaN: unknown */
};

struct alarm_event {
    enum alarm_change change;
    uint64_t id;     /* id of the alarm: the same in all its events; increasing */
    uint64_t serial; /* serial of the event: grows over all sensors and alarms */
    enum alarm_kind kind;
    enum alarm_severity severity;
    const char *machine, *machine_title; /* "" if the sensor belongs to none */
    struct alarm_channel channels[ALARM_MAX_CHANNELS];
    uint32_t n_channels;
    struct alarm_evidence evidence[ALARM_MAX_EVIDENCE]; /* in the order of observation */
    uint32_t n_evidence;
    double score; /* 0 to 1; at least 0.5 for an alarm */
    double limit; /* LIMIT, RATE: the limit that was exceeded; otherwise NaN */
    uint32_t
        learned; /* readings that the verdict rests on, while the sensor still learns; else 0 */
    int64_t since_ms;                          /* when the cause began, as far as known */
    int64_t raised_ms, changed_ms, cleared_ms; /* since 1970; cleared_ms 0: still open */
    bool acknowledged;
    const char *acknowledged_by;  /* or "" */
    const char *text;             /* one or two sentences from the facts above */
    const char *passage, *source; /* matching passage of the manuals; NULL: none */
};

const char *alarm_kind_name(enum alarm_kind k);         /* "limit", ... */
const char *alarm_severity_name(enum alarm_severity s); /* "info", "warning", "critical" */
const char *alarm_change_name(enum alarm_change c);     /* "raised", ... */

/* The event as members of an open JSON object: the same for all outputs (HTTP, MQTT, webhooks). */
void alarm_json(struct json_out *j, const struct alarm_event *e);
/* One or two sentences; every number comes from the event. */
void alarm_explain(struct buf *out, const struct alarm_event *e);

#endif
