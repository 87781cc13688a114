/* peers.h - accounting of clients by address: memory they hold, and stream resets.
 *
 * A peer is one client address: an IPv4 address, the /64 of an IPv6 address, or all unix sockets
 * together. Its connections take bytes before they keep them; when the peer or all peers together
 * have too many, the newest taker is refused. Unix sockets have no limit of their own, since their
 * clients are unknown.
 *
 * Thread:    any: counters are atomic, and a lock guards the table.  The loops of a server share
 *            one table.
 * Ownership: peers_join gives a reference, peers_leave takes it back.  The table must outlive
 *            them.
 * Failure:   SHOAL_ENOMEM; peers_take tells which limit refuses. */
#ifndef SHOAL_NET_PEERS_H
#define SHOAL_NET_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct peer;
struct peers;
struct sockaddr_storage;

struct peers_limits {
    size_t max_bytes;      /* of all peers together; 0: no limit */
    size_t max_peer_bytes; /* of each; 0: no limit */
    uint32_t max_resets;   /* of each, in 10 seconds; 0: no limit */
};

struct peers_stats {
    size_t bytes;                       /* held now */
    uint64_t refused_all, refused_peer; /* takes, by the limit that refused them */
    uint64_t resets, resets_over;       /* stream resets; those above the limit */
    uint64_t displaced;                 /* connections closed to make room for others */
    uint32_t remembered;                /* disconnected peers whose resets still count */
};

enum peers_verdict { PEERS_OK, PEERS_ALL_FULL, PEERS_PEER_FULL };

SHOAL_MUST_CHECK int peers_create(struct peers **out, const struct peers_limits *limits,
                                  struct err *e);
void peers_destroy(struct peers *t); /* NULL is fine */
void peers_set_limits(struct peers *t, const struct peers_limits *limits);
void peers_stats(struct peers *t, struct peers_stats *out);

/* The peer of an address; NULL: out of memory. */
struct peer *peers_join(struct peers *t, const struct sockaddr_storage *address);
struct peer *peers_ref(struct peer *p);
void peers_leave(struct peer *p); /* NULL is fine */

/* References that are held now: its connections, and work for them. */
uint32_t peers_uses(struct peer *p);

/* n more bytes; unless the answer is PEERS_OK, nothing is taken. */
enum peers_verdict peers_take(struct peer *p, size_t n);
void peers_give(struct peer *p, size_t n);
/* Whether n more bytes could be taken now. */
bool peers_has_room(const struct peer *p, size_t n);
/* One more stream was reset, by either side; false: too many within 10 seconds. */
bool peers_reset(struct peer *p, uint64_t now_ns);

/* A connection was closed to make room for another. */
void peers_displaced(struct peers *t);

#endif
