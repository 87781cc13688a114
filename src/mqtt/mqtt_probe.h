/* mqtt_probe.h - checks whether an address accepts connections, with a timeout.
 *
 * libmosquitto's connect waits for as long as TCP does, which is minutes if packets are dropped on
 * the way; probing first keeps the thread able to stop.
 *
 * Thread:  any that may block.
 * Failure: SHOAL_EIO with the reason, SHOAL_ECANCELLED if *stop became true. */
#ifndef SHOAL_MQTT_MQTT_PROBE_H
#define SHOAL_MQTT_MQTT_PROBE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* wake_fd: becomes readable when *stop may have changed. */
SHOAL_MUST_CHECK int mqtt_probe(const char *host, uint16_t port, uint32_t wait_ms, int wake_fd,
                                const _Atomic bool *stop, struct err *e);

#endif
