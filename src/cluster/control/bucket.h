/* bucket.h - one JetStream key/value bucket: values with revisions, written by compare-and-set.
 *
 * Reads and writes go to the stream's leader. A write is done when a majority of the servers has
 * it. After a leader dies, JetStream accepts no writes for some seconds, so callers retry.
 *
 * Thread:    any that may block: every call waits for a server, at most wait_ms.  Calls on several
 *            threads do not wait for each other.
 * Ownership: open gives, close takes back (NULL is fine).  The bus must outlive it.
 * Failure:   SHOAL_EBUSY: no server, no JetStream, or no answer in time; a write may have happened
 *            nevertheless. SHOAL_ENOTFOUND: no such key or bucket. SHOAL_ELIMIT: the value is too
 *            large for the server. SHOAL_EIO: anything else the server refused. */
#ifndef SHOAL_CLUSTER_CONTROL_BUCKET_H
#define SHOAL_CLUSTER_CONTROL_BUCKET_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct bucket;
struct bus;

/* The bucket shoal-CLUSTER-NAME. This neither reads nor creates it. */
SHOAL_MUST_CHECK int bucket_open(struct bucket **out, struct bus *b, const char *name,
                                 uint32_t wait_ms, struct err *e);
void bucket_close(struct bucket *k);

/* For create: values are removed ttl_ms after they were written, at least two minutes; 0: never.  A
 * bucket that holds max_bytes takes no more; 0: no limit. */
void bucket_limit(struct bucket *k, uint32_t ttl_ms, int64_t max_bytes);
/* Creates it unless it exists. replicas: 1, 3 or 5 servers hold it; 0: by the number of addresses
 * that the bus was given. history: revisions kept of a key, 1 to 64. */
SHOAL_MUST_CHECK int bucket_create(struct bucket *k, unsigned replicas, unsigned history,
                                   struct err *e);
/* Appends the value to out and sets its revision.  SHOAL_ENOTFOUND: no value; the revision is then
 * the one to expect when writing: 0, or that of a deletion. */
SHOAL_MUST_CHECK int bucket_get(struct bucket *k, const char *key, struct buf *out,
                                uint64_t *revision, struct err *e);
/* Writes if the key's revision is still `expected`; 0: if the key was never written.  Returns 0 and
 * the new revision, or 1 if another writer was first.
 *
 * id: unique text for this write, or NULL.  After SHOAL_EBUSY the same write with the same id may
 * be repeated, within two minutes: it happens at most once, 0 means that it happened, and 1 that it
 * never will. */
SHOAL_MUST_CHECK int bucket_put(struct bucket *k, const char *key, const void *bytes, size_t n,
                                uint64_t expected, const char *id, uint64_t *revision,
                                struct err *e);
/* Proves a read: 0 if at some moment during this call the revision was the newest of the key.  1:
 * another one is, or is about to be: read again.
 *
 * A read alone proves nothing.  A server that stood still and wakes believes for a moment that it
 * still leads, and answers with what it had.  What it cannot do is write: that takes a majority. So
 * this writes a small value beside the key, on the condition that nothing else was written since.
 * Its user needs the right to write the key "read", and uses one other key of the bucket only. */
SHOAL_MUST_CHECK int bucket_confirm(struct bucket *k, uint64_t revision, struct err *e);
/* The revision of the newest write to any key: a cheap way to detect changes. */
SHOAL_MUST_CHECK int bucket_last(struct bucket *k, uint64_t *revision, struct err *e);

#endif
