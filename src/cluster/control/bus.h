/* bus.h - the connection of a member to NATS: one, three or five servers, of which one is used and
 * the others take over.
 *
 * It opens at once, also while no server can be reached, and reconnects without end: after
 * reconnect_ms and up to as much again at random, so that members do not come back all at once. A
 * server that refuses its credentials is retried too, with backoff; certificates are reread for
 * every connection, so that copying new files is enough. Nothing is buffered: a message that cannot
 * be sent now is refused (SHOAL_EBUSY) and counted. A heartbeat of ten seconds ago would be wrong,
 * and event_log.h keeps its own.
 *
 * libnats calls back on its own threads. Messages are copied there into a bounded queue, and
 * everything reaches the owner on its executor's thread.
 *
 * Subjects: shoal.CLUSTER.TAIL, where TAIL is "hb.NODE", "desired", "event.KIND", ...
 *
 * Thread:    open, subscribe, unsubscribe, close: the owner's.  publish, status, wait: any.
 * Ownership: open gives, close takes back (NULL is fine).  close returns when libnats is done with
 *            it; no callback comes afterwards.  A task may still be posted: the executor must run
 *            what was posted (net/loop: loop_flush) before it is destroyed.
 * Failure:   SHOAL_EINVAL (a name or URL), SHOAL_EIO (a certificate file), SHOAL_EBUSY (away),
 *            SHOAL_ELIMIT (message too large), SHOAL_ENOMEM. */
#ifndef SHOAL_CLUSTER_CONTROL_BUS_H
#define SHOAL_CLUSTER_CONTROL_BUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct bus;
struct bus_sub;
struct executor;
struct __natsConnection;

#define BUS_MAX_SERVERS 16u
#define BUS_MAX_CLUSTER 32u /* bytes of a cluster's name */
#define BUS_MAX_SUBJECT 256u

struct bus_opts {
    const char *cluster;     /* a-z, 0-9 and "-": part of every subject and bucket */
    const char *name;        /* name of this member, shown by the servers; NULL: "shoal" */
    const char *const *urls; /* "nats://HOST:PORT" or "tls://HOST:PORT" */
    size_t n_urls;
    const char *ca_file, *cert_file, *key_file; /* PEM; all three or none */
    uint32_t reconnect_ms;                      /* 0: 250 */
    uint32_t ping_ms;       /* 0: 2000; a server that leaves two pings unanswered counts as down */
    size_t max_queue_bytes; /* received and not yet handled; 0: 8 MiB.  The oldest are dropped. */
};

enum bus_link { BUS_CONNECTING, BUS_UP, BUS_AWAY }; /* not connected yet; connected; disconnected */

struct bus_status {
    enum bus_link link;
    uint64_t since_ns;     /* CLOCK_MONOTONIC: in this state since */
    uint64_t last_away_ns; /* duration of the last outage */
    char
        server[128]; /* the server it is connected to, without credentials; "" while disconnected */
    char error[160]; /* reason of the last disconnect */
    uint64_t n_connects, n_losses;
    uint64_t n_sent, n_refused; /* refused: because there was no connection */
    uint64_t n_received;
    uint64_t n_denied; /* operations that this member's certificate may not do */
};

typedef void (*bus_link_fn)(void *ctx, const struct bus_status *s);
typedef void (*bus_message_fn)(void *ctx, const char *subject, const void *bytes, size_t n);

/* x: the owner's; NULL for a command, which then has no callbacks. on_link (or NULL) is called when
 * the connection is established or lost. */
SHOAL_MUST_CHECK int bus_open(struct bus **out, const struct bus_opts *o, struct executor *x,
                              bus_link_fn on_link, void *ctx, struct err *e);
void bus_close(struct bus *b);

/* tail may end in ".*" or ".>".  Lasts until unsubscribe or close, also over reconnects.  out: for
 * unsubscribe, or NULL. */
SHOAL_MUST_CHECK int bus_subscribe(struct bus *b, const char *tail, bus_message_fn fn, void *ctx,
                                   struct bus_sub **out, struct err *e);
/* fn is no longer called. NULL is fine. */
void bus_unsubscribe(struct bus_sub *s);
/* Returns when the message is in the connection's buffer. */
SHOAL_MUST_CHECK int bus_publish(struct bus *b, const char *tail, const void *bytes, size_t n,
                                 struct err *e);

/* True if NATS says that no member listens to the subject.  False: one does, or it is not known,
 * for example because this member may not ask.  Waits for the server, at most ms; not on an event
 * loop. */
bool bus_nobody_listens(struct bus *b, const char *tail, uint32_t ms);

void bus_get_status(struct bus *b, struct bus_status *out);
/* Waits until it is connected, at most ms. SHOAL_EIO: it is not; the text gives the reason. */
SHOAL_MUST_CHECK int bus_wait(struct bus *b, uint32_t ms, struct err *e);

const char *bus_cluster(const struct bus *b);
size_t bus_n_urls(const struct bus *b);
/* For bucket.h and event_log.h: the connection, and why the last call of this thread into libnats
 * failed. A connection is valid until close, but may be replaced by another one; then the
 * generation changes. */
struct __natsConnection *bus_connection(struct bus *b);
uint32_t bus_generation(const struct bus *b);
void bus_reason(struct bus *b, char out[160], int nats_status);
/* "shoal.CLUSTER.TAIL" */
SHOAL_MUST_CHECK int bus_subject(const struct bus *b, char out[BUS_MAX_SUBJECT], const char *tail,
                                 struct err *e);
bool bus_cluster_ok(const char *name);

#endif
