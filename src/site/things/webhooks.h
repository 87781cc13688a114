/* webhooks.h - sends alarms to other servers: each event as an HTTP POST.
 *
 * An event is on disk (mqtt/spool.h) before the alarm counts as delivered, and is retried until the
 * server accepts it (status 2xx) or refuses it (4xx except 408, 425 and 429): after half a second,
 * then with exponential backoff up to a minute, for at most `keep`. Events of one webhook keep
 * their order. An event can arrive twice, after a crash or a lost answer: its Idempotency-Key is
 * then the same. With a secret the head has X-Shoal-Signature: sha256=HEX, the HMAC of
 * X-Shoal-Time, a dot and the body.
 *
 * Thread:    one each, "webhook".  The listener blocks for a file.
 * Ownership: create/destroy (NULL is fine); the configuration is not kept.
 * Failure:   create: a secret, a queue or a CA file that cannot be read.  A disk that does not take
 *            an event is logged, and the event is sent from memory.  A full queue loses it, which
 *            is logged and counted. */
#ifndef SHOAL_SITE_THINGS_WEBHOOKS_H
#define SHOAL_SITE_THINGS_WEBHOOKS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct buf;
struct config_webhooks;
struct plant;
struct webhooks;

/* The file of the queue to a URL: `file` and a hash of the URL.  False: too long. */
bool webhooks_queue_file(char *out, size_t cap, const char *file, const char *url);
/* *out is NULL if there are none. file: prefix of the queue files. Before the plant starts. */
SHOAL_MUST_CHECK int webhooks_create(struct webhooks **out, const struct config_webhooks *config,
                                     const char *file, struct plant *plant, struct err *e);
/* Begins to send. */
SHOAL_MUST_CHECK int webhooks_start(struct webhooks *w, struct err *e); /* NULL is fine */
/* After the plant has stopped; waits for a running call. */
void webhooks_destroy(struct webhooks *w);
/* Metrics as Prometheus text; NULL is fine. */
void webhooks_metrics(struct webhooks *w, struct buf *b);

#endif
