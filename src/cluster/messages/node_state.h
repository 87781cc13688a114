/* node_state.h - a node's state, sent several times a second: identity, machine, models and load.
 *
 * Thread:    plain data.
 * Ownership: a decoded state lives in the arena; a collected one borrows nothing.
 * Failure:   SHOAL_EFORMAT, SHOAL_ELIMIT, SHOAL_ENOMEM. */
#ifndef SHOAL_CLUSTER_MESSAGES_NODE_STATE_H
#define SHOAL_CLUSTER_MESSAGES_NODE_STATE_H

#include "base/arena.h"
#include "base/buf.h"
#include "cluster/affinity/prefix_table.h"
#include "cluster/machine/node_health.h"
#include "host/registry.h"
#include "host/sha256.h"

#define NODE_STATE_MAX_MODELS 4096u
#define NODE_STATE_MAX_REPLICAS 64u /* of a model on one node */
#define NODE_STATE_MAX_WORDS 256u   /* labels, wanted models */
#define NODE_STATE_MAX_CHAINS 64u
#define NODE_STATE_MAX_BYTES ((size_t)4 << 20) /* limit of the encoded state */

struct node_model {
    const char *name;
    const uint8_t *sum; /* SHA-256; NULL: not known yet */
    unsigned kinds;     /* bits of enum shoal_kind; 0: not known yet */
    bool images;        /* it reads images, not texts */
    enum registry_state state;
    uint32_t n_ctx, in_flight;
    double prefill_ns, token_ns; /* measured cost of a token; 0: not known yet */
    uint64_t bytes;
    uint32_t duty;             /* enum desired_duty; 0: the node's own configuration has it */
    uint32_t progress;         /* progress of fetching and loading, in thousandths */
    const char *error;         /* why it cannot be loaded; "" or NULL: no error */
    uint64_t requests, p95_us; /* total so far; p95 of their latency, 0: unknown */
    uint64_t recent_p95_us;    /* p95 of the last 10 to 20 s */
    uint64_t errors;           /* of the requests */
    /* it serves requests from this epoch on, before until (0: no upper bound) */
    uint64_t epoch, until;
    uint32_t share; /* share of a canary, in thousandths; 0: not a canary */
    bool standby;   /* loaded, but used only when no other node can answer */
    bool waits;     /* staged until the node has heard the present desired state */
    /* from its cost model, as in cost_telemetry; 0: not known yet */
    double unit_ns, queue_ns, answer_tokens, prediction_error;
    uint32_t parallel;
    bool shares_cache;   /* clients share cached prefixes */
    uint64_t page_bytes; /* of a page of a computed prompt; 0: none can be fetched */
    uint32_t replicas;   /* that are ready on this node, each of `bytes`; 0: 1, or none yet */
};

struct node_chain_part {
    const char *node;
    uint32_t first, end; /* its layers: first to end - 1 */
    double share;        /* by rows: of every layer; otherwise 0 */
};

/* A model with layers or rows on other nodes (cluster/shard). */
struct node_chain {
    const char *model; /* the beginning of its SHA-256 */
    const struct node_chain_part *parts;
    uint32_t n_parts;
    uint32_t n_rebuilt;
    const char *lost; /* why a part was lost the last time; "": none was */
    double predicted_ms, step_ms, remote_ms, step_bytes, wait_ms; /* as in node.proto */
    bool q8; /* activations travel in 8 bits: answers may differ */
};

struct node_state {
    const char *id;   /* id of this run of the process */
    const char *name; /* for people */
    const char *address;
    const char *program_version, *isa, *zone;
    uint64_t serial; /* counts up */
    bool draining;
    bool asks; /* it can answer commands: shoal ask, /v1/process */
    const struct node_model *models;
    uint32_t n_models;
    uint32_t n_cores;
    uint64_t memory_bytes, memory_free;
    double bandwidth, probe_tokens; /* 0: not measured */
    double link;     /* bytes a second at which it fetches pages of prompts; 0: not measured */
    const char *gpu; /* name of the first; "" or NULL: none */
    uint32_t n_gpus;
    uint64_t gpu_bytes; /* memory of all of them; 0: not known */
    bool on_battery;
    uint32_t battery_percent;
    uint64_t epoch, epoch_end; /* as of registry_set_epoch */
    uint64_t oldest_epoch;     /* as of registry_oldest_epoch */
    double cpu;                /* share of all cores that is busy; negative: unknown */
    uint64_t models_limit;     /* memory for all models together; 0: no limit */
    uint64_t fence;            /* fence of the controller, if this member is it; 0: it is not */
    uint64_t desired;          /* version of the desired state in force; 0: none */
    uint64_t desired_fence;    /* fence of the controller that wrote it */
    uint64_t known_fence;      /* the highest fence that this member knows */
    uint64_t roll_call;        /* the last one that it has heard: control/roll_call.h */
    const char *const *wanted; /* models without a replica that requests wait for */
    uint32_t n_wanted;
    const char *const *labels; /* "gpu", "site=hall-3" */
    uint32_t n_labels;
    /* beginnings of prompts it has read: what changed since the state before; see prefix_table.h */
    const struct prefix_slot *prefixes;
    uint32_t n_prefixes;
    const struct node_chain *chains;
    uint32_t n_chains;
    struct node_health health;
};

/* Appends the encoded message. */
SHOAL_MUST_CHECK int node_state_put(struct buf *out, const struct node_state *s);
SHOAL_MUST_CHECK int node_state_read(struct node_state *out, struct arena *a, const uint8_t *p,
                                     size_t n, struct err *e);
/* The model with this name; NULL: the node has none. name NULL: the first model of this kind. A
 * node may have several versions of it; see node_state_next. */
const struct node_model *node_state_model(const struct node_state *s, const char *name,
                                          unsigned kind);
/* The same, after `after`; NULL: from the first. */
const struct node_model *node_state_next(const struct node_state *s, const struct node_model *after,
                                         const char *name, unsigned kind);
/* How many replicas of it the node has, at least 1. */
static inline uint32_t node_model_replicas(const struct node_model *m)
{
    return m->replicas > 1 ? m->replicas : 1;
}
/* Whether requests of the epoch may be sent to it: not while it is staged, leaving or failed.
 * may_be_old: those that accept a version that waits. */
bool node_model_usable(const struct node_model *m, uint64_t epoch, bool may_be_old);
/* Whether the node knows the epoch. */
static inline bool node_state_knows(const struct node_state *s, uint64_t epoch)
{
    return s->epoch_end == 0 || epoch < s->epoch_end;
}
/* Fills in the models of a registry and its epochs, in the arena. */
void node_state_collect(struct node_state *s, struct arena *a, struct registry *r);

#endif
