/* once_bucket.h - idempotency keys shared by all gateways of a shoal: a JetStream bucket has a
 * record of every key in use (once_record.h), written by compare-and-set.
 *
 * The gateway that writes the first record runs the call. It writes the record again every two
 * seconds while the call runs, and at the end with the answer; a large one is written in parts
 * before. The others poll it several times a second. A lost gateway's call is taken over by the
 * next one that polls: a record says under which name its gateway listens, and NATS says at once
 * when nobody does, since it notices that a process ends; if that lasts for two seconds, in which a
 * gateway that only changes its NATS server is back, it is lost. One that is stopped still listens,
 * and may go on: its record has to be older than ten seconds, also if the server's configuration
 * is older than that permission and nobody can listen. While NATS is down,
 * new calls run where they arrive; callers that wait for another gateway's answer keep waiting.
 *
 * Thread:    any; one thread inside waits for NATS.
 * Ownership: create gives, destroy takes back (NULL is fine); all claims are done before destroy.
 *            The bus must stay until disconnect.
 * Failure:   SHOAL_ENOMEM. An unavailable NATS is logged once and is not an error. */
#ifndef SHOAL_CLUSTER_ONCE_BUCKET_H
#define SHOAL_CLUSTER_ONCE_BUCKET_H

#include "base/err.h"
#include "cluster/once/once_ledger.h"

struct bus;
struct once_bucket;

struct once_bucket_opts {
    const char *name; /* of this gateway; copied, cut after 64 bytes */
    uint32_t ttl_ms;  /* of answers */
    uint32_t gone_ms; /* a record not renewed for this long has no owner; 0: 10000 */
};

SHOAL_MUST_CHECK int once_bucket_create(struct once_bucket **out, const struct once_bucket_opts *o,
                                        struct err *e);
void once_bucket_destroy(struct once_bucket *b);
struct once_ledger *once_bucket_ledger(struct once_bucket *b);

SHOAL_MUST_CHECK int once_bucket_connect(struct once_bucket *b, struct bus *bus, struct err *e);
void once_bucket_disconnect(struct once_bucket *b); /* NULL is fine */

#endif
