/* event_log.h - the event log of a shoal, for people: a JetStream stream of typed events, bounded
 * by age and size.
 *
 * Writing never blocks: events wait in a bounded queue until NATS has stored them, also across the
 * loss of the connection or of JetStream's leader. An event is stored exactly once, however often
 * it is sent. If the queue is full, the oldest is dropped and counted.
 *
 * The stream SHOAL_EVENTS has the subjects shoal.*.event.>; an event's subject is
 * shoal.CLUSTER.event.KIND.
 *
 * Thread:    add: any.  open, close: the owner's.  read: any that may block.  Inside, a thread
 *            "events" writes.
 * Ownership: open gives, close takes back (NULL is fine) and waits at most flush_ms for what is
 *            in the queue.  The bus must outlive it.  add copies.  Strings of a read event are
 *            borrowed during the call.
 * Failure:   SHOAL_ENOMEM; read: as bucket.h. */
#ifndef SHOAL_CLUSTER_CONTROL_EVENT_LOG_H
#define SHOAL_CLUSTER_CONTROL_EVENT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/sha256.h"

struct bus;
struct event_log;

#define EVENT_LOG_MAX_NAME 127u
#define EVENT_LOG_MAX_TEXT 500u /* longer texts are cut */

/* Numbers are stored: new kinds go to the end. */
#define EVENT_LOG_KINDS(X)                                                                         \
    X(1, NODE_JOINED, "node-joined")                                                               \
    X(2, NODE_LEFT, "node-left")                                                                   \
    X(3, NODE_DRAINED, "node-drained")                                                             \
    X(4, NODE_RESUMED, "node-resumed")                                                             \
    X(5, MODEL_LOADED, "model-loaded")                                                             \
    X(6, MODEL_UNLOADED, "model-unloaded")                                                         \
    X(7, MODEL_FAILED, "model-failed")                                                             \
    X(8, ROLLOUT_STEP, "rollout-step")                                                             \
    X(9, FAILOVER, "failover")                                                                     \
    X(10, CONTROLLER, "controller")                                                                \
    X(11, PLACEMENT, "placement")                                                                  \
    X(12, REFUSED, "refused")

#define X(n, id, text) EVENT_LOG_##id = n,
enum event_log_kind { EVENT_LOG_KINDS(X) };
#undef X

struct event_log_entry {
    enum event_log_kind kind;
    uint64_t at_ms;                  /* Unix time at the sender; add: 0 means now */
    const char *sender;              /* add: NULL means the log's own name */
    const char *node, *model, *text; /* NULL or "": none */
    bool has_sha256;
    uint8_t sha256[SHA256_BYTES]; /* of the model */
    uint64_t fence;               /* a controller's; 0: none */
    uint64_t sequence;            /* in the stream; set by read */
};

struct event_log_status {
    uint64_t n_stored, n_dropped, n_waiting;
    char error[320]; /* why the last attempt failed; "": it succeeded */
};

struct event_log_opts {
    struct bus *bus;
    const char *name;     /* of this member */
    uint32_t max_waiting; /* events in the queue; 0: 1024 */
    uint32_t flush_ms;    /* 0: 1000 */
    unsigned replicas;    /* servers that hold the stream; 0: by the bus's addresses */
    uint32_t keep_hours;  /* 0: 168 */
    uint64_t keep_bytes;  /* 0: 64 MiB */
};

SHOAL_MUST_CHECK int event_log_open(struct event_log **out, const struct event_log_opts *o,
                                    struct err *e);
void event_log_close(struct event_log *l);
void event_log_add(struct event_log *l, const struct event_log_entry *entry);
void event_log_get_status(struct event_log *l, struct event_log_status *out);

/* Returns false to stop reading. */
typedef bool (*event_log_fn)(void *ctx, const struct event_log_entry *entry);
/* The last n events of the bus's cluster, oldest first; from: the first sequence wanted, or 0. Sets
 * *next to the sequence to continue with. Events that cannot be decoded are counted in *n_bad and
 * skipped. A missing stream is not an error: there were no events yet. */
SHOAL_MUST_CHECK int event_log_read(struct bus *b, uint64_t from, uint32_t n, event_log_fn fn,
                                    void *ctx, uint64_t *next, uint32_t *n_bad, struct err *e);
/* One encoded event.  SHOAL_EFORMAT.  The strings are in *memory, for event_log_free. */
SHOAL_MUST_CHECK int event_log_parse(struct event_log_entry *out, void **memory, const void *bytes,
                                     size_t n, struct err *e);
void event_log_free(void *memory); /* NULL is fine */

/* "node-joined"; "?" for an unknown kind. */
const char *event_log_kind_text(enum event_log_kind kind);

#endif
