/* shard_door.h - this node computes parts of models for engines of other nodes.
 *
 * A part lives as long as the connection that opened it.  Each connection has a thread that reads
 * and answers at once, also while a part computes, so that a silent node is known to be lost.  Each
 * part has a thread that loads and computes it.
 *
 * Thread:    take: any, also an event loop's: it does not block.  Everything else: the owner's.
 * Ownership: open gives, close takes back (NULL is fine): it ends all threads.
 * Failure:   a peer that sends nonsense is told so, logged by its name and disconnected. */
#ifndef SHOAL_CLUSTER_SHARD_SHARD_DOOR_H
#define SHOAL_CLUSTER_SHARD_SHARD_DOOR_H

#include "cluster/shard/shard_msg.h"

struct shard_door;
struct tls_client;
struct tls_conn;

struct shard_door_opts {
    const char *name; /* of this node; copied */
    const char *cache_dir;
    struct tls_client *tls; /* speaks TLS_SHARD; borrowed */
    /* The rest is called on threads of the door, with ctx. */
    int (*find)(void *ctx, const uint8_t sha256[SHA256_BYTES], char *path, size_t cap,
                struct err *e);
    uint64_t (*memory)(void *ctx); /* left for models; 0: not limited */
    /* Takes memory for a part, or gives it back (n < 0). */
    void (*take_memory)(void *ctx, int64_t n);
    uint64_t (*rate)(void *ctx); /* as in shard_welcome */
    void *ctx;
};

SHOAL_MUST_CHECK int shard_door_open(struct shard_door **out, const struct shard_door_opts *o,
                                     struct err *e);
void shard_door_close(struct shard_door *d);
/* A connection that speaks TLS_SHARD; takes both. */
void shard_door_take(void *door, int fd, struct tls_conn *tls);

#endif
