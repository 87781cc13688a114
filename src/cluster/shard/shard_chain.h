/* shard_chain.h - the first layers of a model on other nodes, or rows of all, for the engine of
 * this one (engine/decode/chain.h).
 *
 * Thread:    the engine's.
 * Ownership: create gives; the chain's close takes back.
 * Failure:   a part that is lost, silent or sends nonsense is logged by its name; another node
 * takes
 *            its layers, and keys and values are computed again from the tokens. */
#ifndef SHOAL_CLUSTER_SHARD_SHARD_CHAIN_H
#define SHOAL_CLUSTER_SHARD_SHARD_CHAIN_H

#include "cluster/shard/shard_peer.h"
#include "cluster/shard/shard_plan.h"
#include "engine/decode/chain.h"

#define SHARD_CHAIN_MAX_NODES 64u /* that are asked when a model is planned */

/* Facts of a chain, for people. */
struct shard_chain_facts {
    char model[13]; /* the beginning of its SHA-256 */
    struct shard_plan plan;
    char nodes[SHARD_PLAN_MAX_PARTS][64]; /* of its parts; the last: this one */
    uint32_t n_layers;
    uint64_t n_steps, n_tokens, n_bytes; /* bytes: received and sent */
    uint64_t step_ns, remote_ns;         /* remote: computing, by the others */
    uint64_t wait_ns;                    /* that this node waited for results of the others */
    uint32_t n_rebuilt;
    bool q8;        /* activations travel in 8 bits: answers may differ */
    char lost[160]; /* why it was rebuilt last */
};

struct shard_chain_opts {
    struct tls_client *tls; /* speaks TLS_SHARD; borrowed */
    uint8_t sha256[SHA256_BYTES];
    struct shard_want want;
    uint32_t silent_ms; /* a node without a sign for this long is lost */
    uint32_t wait_ms;   /* for a chain that works again */
    /* The rest is called with ctx, on the thread that loads the model, or the engine's. */
    const char *name;              /* of this node */
    uint64_t (*memory)(void *ctx); /* left for models; 0: not limited */
    uint64_t (*rate)(void *ctx);   /* as in shard_welcome */
    uint32_t (*nodes)(void *ctx, char (*out)[256], uint32_t max); /* addresses of others */
    void (*changed)(void *ctx, const void *chain,
                    const struct shard_chain_facts *f); /* NULL: gone */
    void *ctx;
};

SHOAL_MUST_CHECK int shard_chain_create(struct chain *out, const struct shard_chain_opts *o,
                                        struct err *e);

#endif
