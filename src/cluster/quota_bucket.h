/* quota_bucket.h - token quotas that gateways share: a JetStream bucket holds how much of each
 * client's daily quota was handed out, and gateways take slices of the rest by compare-and-set
 * (quota.h).
 *
 * Thread:    create, connect, disconnect, destroy: the owner's.  The source's calls: any that may
 *            block; they wait for NATS, at most two seconds, one at a time.
 * Ownership: create gives, destroy takes back (NULL is fine).  The bus must stay until disconnect.
 * Failure:   SHOAL_ENOMEM. The source: SHOAL_EBUSY while NATS is down, which is logged once;
 *            SHOAL_EFORMAT if the bucket holds other data. */
#ifndef SHOAL_CLUSTER_QUOTA_BUCKET_H
#define SHOAL_CLUSTER_QUOTA_BUCKET_H

#include "base/err.h"

struct bus;
struct quota_bucket;
struct quota_source;

SHOAL_MUST_CHECK int quota_bucket_create(struct quota_bucket **out, struct err *e);
void quota_bucket_destroy(struct quota_bucket *q);
struct quota_source *quota_bucket_source(struct quota_bucket *q);

SHOAL_MUST_CHECK int quota_bucket_connect(struct quota_bucket *q, struct bus *b, struct err *e);
void quota_bucket_disconnect(struct quota_bucket *q); /* NULL is fine */

#endif
