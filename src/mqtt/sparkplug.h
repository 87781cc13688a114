/* sparkplug.h - payloads of Sparkplug B: metrics of edge nodes and their devices.
 *
 * A birth message (NBIRTH, DBIRTH) names the metrics of a node or device and gives them numbers
 * (aliases); data messages (NDATA, DDATA) may carry the numbers alone. So the names of a node are
 * kept until its next birth. An unknown alias means that the birth was missed: the caller is told,
 * and requests a new birth message.
 *
 * Thread:    belongs to its caller.
 * Ownership: create/destroy (NULL is fine).
 * Failure:   SHOAL_EFORMAT, SHOAL_ELIMIT, SHOAL_ENOMEM; SHOAL_ENOTFOUND: a birth is missing, other
 *            metrics of the message were delivered. */
#ifndef SHOAL_MQTT_SPARKPLUG_H
#define SHOAL_MQTT_SPARKPLUG_H

#include "mqtt/payload.h"

#define SPARKPLUG_MAX_NAMES 65536u /* of all nodes together */
#define SPARKPLUG_MAX_FIELDS 65536u

enum sparkplug_kind {
    SPARKPLUG_OTHER, /* commands, host states: ignored */
    SPARKPLUG_BIRTH,
    SPARKPLUG_DATA,
    SPARKPLUG_DEATH,
};

struct sparkplug_topic { /* spBv1.0/GROUP/NDATA/NODE or spBv1.0/GROUP/DDATA/NODE/DEVICE */
    enum sparkplug_kind kind;
    struct str group, node, device; /* device "": the node itself */
};

struct sparkplug;

/* False: it is not a topic of Sparkplug B. */
bool sparkplug_topic_read(struct sparkplug_topic *out, const char *topic);

SHOAL_MUST_CHECK int sparkplug_create(struct sparkplug **out, struct err *e);
void sparkplug_destroy(struct sparkplug *s);
/* Calls fn for every metric with a number; its name is that of the metric. */
SHOAL_MUST_CHECK int sparkplug_read(struct sparkplug *s, const struct sparkplug_topic *t,
                                    const void *bytes, size_t n, payload_fn fn, void *ctx,
                                    struct err *e);
/* The payload of a rebirth command. */
struct buf;
void sparkplug_put_rebirth(struct buf *out, uint64_t now_ms);

#endif
