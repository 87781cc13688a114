/* deed_call.h - external calls of flows (pipeline/pipeline_call.h): HTTP, MQTT, commands, plug-ins.
 *
 * The allowlist (flows_allow) was checked when the configuration was read. A failed call is retried
 * within its time; HTTP calls then carry the same Idempotency-Key.
 *
 * Thread:    run: any owner's.  Each call has a thread of its own, at most DEED_CALL_MAX_RUNNING;
 *            its result comes on the owner's thread.
 * Ownership: create/destroy (NULL is fine); destroy waits for the calls that run. The owners'
 *            executors must still accept posts then.
 * Failure:   of a call: SHOAL_EBUSY: too many are running, or the broker is not connected. */
#ifndef SHOAL_SITE_DEEDS_DEED_CALL_H
#define SHOAL_SITE_DEEDS_DEED_CALL_H

#include "base/err.h"
#include "site/deeds/deed_plugin.h"

#define DEED_CALL_MAX_RUNNING 16u

struct deed_calls;
struct mqtt;
struct pipeline_outside;

/* client: NULL if no broker is configured.  ca: a PEM file of the authorities of https servers;
 * NULL: those of the system.  plugin_memory_bytes: of each plug-in's process; 0: no limit. */
SHOAL_MUST_CHECK int deed_calls_create(struct deed_calls **out, struct mqtt *client, const char *ca,
                                       size_t plugin_memory_bytes, struct err *e);
void deed_calls_destroy(struct deed_calls *d);
struct pipeline_outside *deed_calls_outside(struct deed_calls *d);
void deed_calls_count_plugins(struct deed_calls *d, struct deed_plugin_counts *out);

#endif
