/* shard_site.h - this process as one of several that compute a model together: its door for the
 * engines of others, the nodes that it knows, and the chains of its own engines.
 *
 * Thread:    open and close: the owner's.  Everything else: any.
 * Ownership: open gives, close takes back (NULL is fine), after all engines with a chain are
 * closed.
 * Failure:   SHOAL_E*. */
#ifndef SHOAL_CLUSTER_SHARD_SHARD_SITE_H
#define SHOAL_CLUSTER_SHARD_SHARD_SITE_H

#include <stdbool.h>

#include "cluster/shard/shard_chain.h"
#include "cluster/shard/shard_door.h"

struct buf;
struct registry;
struct shard_site;

struct shard_site_opts {
    const char *name;      /* of this node */
    const char *certs;     /* folder with its certificate: nodes compute only for nodes */
    const char *cache_dir; /* as in shoal_engine_opts */
    const char *memo_dir;  /* where hashes of models are remembered; NULL: nowhere */
    uint32_t silent_ms, wait_ms;
    /* Another node's model by its SHA-256; called on threads of the door. */
    int (*find)(void *ctx, const uint8_t sha256[SHA256_BYTES], char *path, size_t cap,
                struct err *e);
    uint64_t (*memory)(void *ctx);
    void (*take_memory)(void *ctx, int64_t n);
    uint64_t (*rate)(void *ctx);
    void *ctx;
};

SHOAL_MUST_CHECK int shard_site_open(struct shard_site **out, const struct shard_site_opts *o,
                                     struct err *e);
void shard_site_close(struct shard_site *s);
/* Ends the parts of other nodes' engines, before what find and memory need is gone. */
void shard_site_stop(struct shard_site *s);
/* http_shard_fn: a connection of another node. */
void shard_site_take(void *site, int fd, struct tls_conn *tls);
/* A node that may compute parts, "HOST:PORT"; and one that is gone. */
void shard_site_add(struct shard_site *s, const char *address);
void shard_site_remove(struct shard_site *s, const char *address);
/* The chain of a model that is about to be opened.  Reads the whole model if its hash is not known.
 */
SHOAL_MUST_CHECK int shard_site_chain(struct shard_site *s, struct chain *out, const char *path,
                                      struct shard_want want, struct err *e);
/* Chains of this process.  Returns how many there are, and fills at most max. */
uint32_t shard_site_chains(struct shard_site *s, struct shard_chain_facts *out, uint32_t max);

#endif
