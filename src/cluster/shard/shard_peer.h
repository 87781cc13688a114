/* shard_peer.h - a connection to another node that may compute a part of a model, and what the node
 * and the link to it can do, measured over this connection.
 *
 * Thread:    belongs to one thread.
 * Ownership: open gives, close takes back (a zeroed struct is fine).
 * Failure:   SHOAL_E*; the text names the node. */
#ifndef SHOAL_CLUSTER_SHARD_SHARD_PEER_H
#define SHOAL_CLUSTER_SHARD_SHARD_PEER_H

#include "cluster/shard/shard_link.h"

struct shard_peer {
    char address[256], name[64];
    struct shard_link *link; /* NULL: closed */
    uint64_t memory_bytes;   /* as in shard_welcome, like the next two */
    uint64_t rate;
    uint32_t n_cores;
    double rtt_s, link_rate; /* 0: not measured */
};

/* Connects and greets. */
SHOAL_MUST_CHECK int shard_peer_open(struct shard_peer *out, const char *address,
                                     struct tls_client *tls, struct err *e);
/* Round trip and rate of the link, with some hundred KiB. */
SHOAL_MUST_CHECK int shard_peer_measure(struct shard_peer *p, struct err *e);
void shard_peer_close(struct shard_peer *p);
/* The next message, which must be of this kind; a FAIL becomes the error that it reports. */
SHOAL_MUST_CHECK int shard_peer_await(struct shard_peer *p, enum shard_msg_kind kind,
                                      struct shard_frame *f, uint32_t timeout_ms, struct err *e);

#endif
