/* shard_link.h - one connection of the shard protocol: whole frames over TLS, for threads that may
 * block.
 *
 * Thread:    one thread receives; any thread sends.  shard_link_break: any.
 * Ownership: open and adopt give, close takes back (NULL is fine) when nobody uses it any more.
 * Failure:   SHOAL_EIO: broken, and e says why; SHOAL_EDEADLINE: the peer reads nothing;
 *            SHOAL_EFORMAT: nonsense. After a failure the link is of no more use. */
#ifndef SHOAL_CLUSTER_SHARD_SHARD_LINK_H
#define SHOAL_CLUSTER_SHARD_SHARD_LINK_H

#include "cluster/shard/shard_msg.h"

struct shard_link;
struct tls_client;
struct tls_conn;
struct tls_peer;

/* "HOST:PORT".  The peer must show a certificate of the shoal with the role node. */
SHOAL_MUST_CHECK int shard_link_open(struct shard_link **out, const char *address,
                                     struct tls_client *tls, uint32_t timeout_ms, struct err *e);
/* A connection that was accepted.  Takes both, also if it fails. */
SHOAL_MUST_CHECK int shard_link_adopt(struct shard_link **out, int fd, struct tls_conn *tls,
                                      struct err *e);
void shard_link_close(struct shard_link *l);
/* Wakes whoever sends or receives: they fail. */
void shard_link_break(struct shard_link *l);
/* The name in the peer's certificate, and whether it is a node's: an administrator may only
 * measure.
 */
const char *shard_link_peer(const struct shard_link *l);
bool shard_link_is_node(const struct shard_link *l);
/* Sends the frames of the buffer, which stays the caller's. */
SHOAL_MUST_CHECK int shard_link_send(struct shard_link *l, const struct buf *frames, struct err *e);
/* 1: a frame, valid until the next call; 0: none within timeout_ms. */
SHOAL_MUST_CHECK int shard_link_receive(struct shard_link *l, struct shard_frame *f,
                                        uint32_t timeout_ms, struct err *e);

#endif
