/* node_state.h - what a node says about itself several times a second: who it is, its machine, its
 * models and how busy it is.
 *
 * Thread:    plain data.
 * Ownership: what is read lives in the arena; what is collected borrows from nobody.
 * Failure:   SHOAL_EFORMAT, SHOAL_ELIMIT, SHOAL_ENOMEM. */
#ifndef SHOAL_CLUSTER_NODE_STATE_H
#define SHOAL_CLUSTER_NODE_STATE_H

#include "base/arena.h"
#include "base/buf.h"
#include "host/registry.h"
#include "host/sha256.h"

#define NODE_STATE_MAX_MODELS 4096u
#define NODE_STATE_MAX_BYTES ((size_t)4 << 20) /* of the encoding */

struct node_model {
    const char *name;
    const uint8_t *sum; /* SHA-256; NULL: not known yet */
    unsigned kinds;     /* bits of enum shoal_kind; 0: not known yet */
    enum registry_state state;
    uint32_t n_ctx, in_flight;
    double prefill_ns, token_ns; /* measured cost of a token; 0: not known yet */
    uint64_t bytes;
};

struct node_state {
    const char *id;   /* of this run of the process */
    const char *name; /* for people */
    const char *address;
    const char *program_version, *isa, *zone;
    uint64_t serial; /* counts up */
    bool draining;
    bool asks; /* it can answer commands: shoal ask */
    const struct node_model *models;
    uint32_t n_models;
    uint32_t n_cores;
    uint64_t memory_bytes, memory_free;
    double bandwidth, probe_tokens; /* 0: not measured */
    bool on_battery;
    uint32_t battery_percent;
};

/* Appends the encoded message. */
SHOAL_MUST_CHECK int node_state_put(struct buf *out, const struct node_state *s);
SHOAL_MUST_CHECK int node_state_read(struct node_state *out, struct arena *a, const uint8_t *p,
                                     size_t n, struct err *e);
/* The model with this name; NULL: the node has none.  name NULL: the first that can do kind. */
const struct node_model *node_state_model(const struct node_state *s, const char *name,
                                          unsigned kind);
/* Fills in the models of a registry, in the arena. */
void node_state_collect(struct node_state *s, struct arena *a, struct registry *r);

#endif
