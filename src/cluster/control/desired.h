/* desired.h - the desired state of a shoal: which models it serves, where, and what is being
 * changed.  desired_code.h turns it into bytes, desired_store.h keeps it in NATS, desired_file.h on
 * disk.
 *
 * Thread:    belongs to its caller; read-only ones may be read by any thread.
 * Ownership: create gives, destroy takes back (NULL is fine). All strings and arrays are in the
 *            state's arena: inputs are copied, replaced ones stay until destroy. Pointers to items
 *            are borrowed until the next call that adds or removes one.
 * Failure:   SHOAL_ENOMEM; desired_check: SHOAL_EINVAL, and the text names the item. */
#ifndef SHOAL_CLUSTER_CONTROL_DESIRED_H
#define SHOAL_CLUSTER_CONTROL_DESIRED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "cluster/placement/placement.h"
#include "host/sha256.h"

#define DESIRED_ID_BYTES 16u
#define DESIRED_MAX_NAME 127u  /* bytes of a name of a node, model, zone or rollout */
#define DESIRED_MAX_TEXT 2000u /* bytes of a source or of a step's text */
#define DESIRED_MAX_MODELS 4096u
#define DESIRED_MAX_ASSIGNMENTS 65536u
#define DESIRED_MAX_ROLLOUTS 256u
#define DESIRED_MAX_STEPS 64u /* history of one rollout: the newest are kept */
#define DESIRED_MAX_DRAINED 16384u
#define DESIRED_MAX_PER_NODE 64u /* replicas of one model on a node */
#define DESIRED_MAX_LIST 256u    /* pins, zones, labels of one model */

struct desired_names {
    const char **items;
    uint32_t n;
};

struct desired_model {
    const char *name;
    uint8_t sha256[SHA256_BYTES];
    const char *source;    /* URL; "": only from other nodes */
    uint32_t kinds;        /* bits of enum shoal_kind; 0: not known yet */
    uint64_t memory_bytes; /* while loaded on a node */
    uint64_t weight_bytes; /* bytes of weights read per token; 0: memory_bytes */
    uint32_t replicas_min, replicas_max;
    uint32_t replicas_want;      /* set by the autoscaler, between the two */
    uint32_t standby;            /* additional loaded replicas, for immediate failover */
    uint32_t per_node;           /* replicas that a node may have, when no other has room; 0: 1 */
    struct desired_names pins;   /* nodes that always hold it */
    struct desired_names zones;  /* only nodes of these zones; none: any */
    struct desired_names labels; /* labels that a node must have: "gpu", "site=hall-3" */
    struct desired_names not_labels;
    const char *apart;        /* models with the same word never share a node; "": none */
    uint32_t max_per_zone;    /* 0: no limit */
    bool spread;              /* prefers zones with few replicas of it */
    int32_t priority;         /* higher ones are placed first */
    double want_tokens_per_s; /* rate of all replicas but standby ones; 0: the counts decide */
    uint32_t budget_ms;       /* latency target of a request, for the autoscaler; 0: unknown */
    uint32_t idle_ms; /* with replicas_min 0: removes the last replica after this long without
                         requests; 0: keeps one */
};

enum desired_duty {
    DESIRED_SERVE = 1, /* load and answer */
    DESIRED_STAGE = 2, /* fetch, verify and load; answer nothing yet */
    DESIRED_LEAVE = 3, /* finish running requests, accept no new ones */
};

struct desired_assignment { /* unique by node, model and version */
    const char *node, *model;
    uint8_t sha256[SHA256_BYTES];
    enum desired_duty duty;
    uint64_t epoch;    /* serves requests of this epoch and later; 0: all */
    uint64_t until;    /* and of epochs before this one; 0: no upper bound */
    uint64_t since_ms; /* Unix time of the controller that assigned it, for the cool-down */
    uint32_t copies;   /* replicas of it on the node; 0: 1 */
};

enum desired_rollout_kind {
    DESIRED_ROLLING = 1,
    DESIRED_CANARY = 2,
    DESIRED_STRONG = 3,
    DESIRED_EVENTUAL = 4,
};

enum desired_rollout_state {
    DESIRED_PENDING = 1,
    DESIRED_STAGING = 2,
    DESIRED_RUNNING = 3,
    DESIRED_PAUSED = 4,
    DESIRED_DONE = 5,
    DESIRED_UNDOING = 6,
    DESIRED_UNDONE = 7,
    DESIRED_FAILED = 8,
};

struct desired_step {
    uint64_t at_ms; /* Unix time, for people */
    enum desired_rollout_state state;
    uint32_t share;
    const char *text;
};

/* When a canary is good enough to promote. */
struct desired_judge {
    uint32_t requests; /* requests the new version must answer before it is judged */
    uint32_t errors;   /* its errors per 1000 requests may exceed those of the old one by this */
    uint32_t p95;      /* its p95 may be this many percent of the old one's; 0: not judged */
    uint32_t score;    /* its score may be lower by this many thousandths */
    bool labelled;     /* wait for the scores before judging */
    uint32_t score_from, score_to;       /* right answers of 1000, plus 1; 0: unknown yet */
    uint64_t base_requests, base_errors; /* counters of the old version when the canary began */
};

struct desired_rollout {
    const char *id, *model;
    enum desired_rollout_kind kind;
    uint8_t from[SHA256_BYTES], to[SHA256_BYTES];
    const char *source;    /* source of the new version */
    uint64_t memory_bytes; /* memory of the new version */
    uint32_t share;        /* share of the traffic, in thousandths */
    enum desired_rollout_state state;
    uint64_t epoch;     /* strong: the epoch that switches; 0: not yet */
    uint64_t old_epoch; /* strong, undoing: the epoch that switches back; 0: not yet */
    bool failed;        /* undoing because of a failure, not by request */
    struct desired_judge judge;
    struct desired_step *steps;
    uint32_t n_steps;
};

struct desired_policy {
    uint32_t heartbeat_ms;
    uint32_t silent_beats; /* a node that missed this many heartbeats counts as lost */
    struct placement_policy placement;
};

struct desired {
    uint8_t id[DESIRED_ID_BYTES]; /* chosen at random when the state is created */
    uint64_t version;             /* counts up with every change */
    uint64_t fence;               /* fencing token of the newest controller that wrote */
    uint64_t epoch;               /* new requests are stamped with it */
    struct desired_model *models;
    struct desired_assignment *assignments;
    struct desired_rollout *rollouts;
    struct desired_names drained; /* nodes */
    struct desired_policy policy;
    uint32_t n_models, n_assignments, n_rollouts;
    uint32_t cap_models, cap_assignments, cap_rollouts, cap_drained;
    uint64_t revision; /* revision in the bucket; not encoded; 0: never stored */
    struct arena arena;
};

/* Empty: a new random id, version 0, default policy. */
SHOAL_MUST_CHECK int desired_create(struct desired **out, struct err *e);
void desired_destroy(struct desired *d);

struct desired_model *desired_find_model(const struct desired *d, const char *name);
struct desired_rollout *desired_find_rollout(const struct desired *d, const char *id);
struct desired_assignment *desired_find_assignment(const struct desired *d, const char *node,
                                                   const char *model,
                                                   const uint8_t sha256[SHA256_BYTES]);
bool desired_is_drained(const struct desired *d, const char *node);

/* Replicas that an assignment stands for. */
static inline uint32_t desired_copies(const struct desired_assignment *a)
{
    return a->copies > 1 ? a->copies : 1;
}

/* Copies the item in: adds it, or replaces the one with the same key. */
SHOAL_MUST_CHECK int desired_put_model(struct desired *d, const struct desired_model *m);
/* An assignment that is replaced keeps its copies, which placement decides. */
SHOAL_MUST_CHECK int desired_put_assignment(struct desired *d, const struct desired_assignment *a);
/* Replaces all of them at once, for plans with thousands of nodes. */
SHOAL_MUST_CHECK int desired_set_assignments(struct desired *d, const struct desired_assignment *a,
                                             uint32_t n);
SHOAL_MUST_CHECK int desired_put_rollout(struct desired *d, const struct desired_rollout *r);
/* Appends to the history and sets the rollout's state and share; drops the oldest step when the
 * history is full. */
SHOAL_MUST_CHECK int desired_put_step(struct desired *d, struct desired_rollout *r,
                                      const struct desired_step *s);
SHOAL_MUST_CHECK int desired_set_drained(struct desired *d, const char *node, bool drained);
SHOAL_MUST_CHECK int desired_set_all_drained(struct desired *d, const struct desired_names *nodes);
/* No effect if it does not exist. A model is removed with its assignments and rollouts. */
void desired_remove_model(struct desired *d, const char *name);
void desired_remove_assignment(struct desired *d, struct desired_assignment *a);

/* What administrators asked for in another state, which no controller has carried out: its models,
 * with their rollouts, and drained nodes.  A model that d has with other bytes stays as it is. */
SHOAL_MUST_CHECK int desired_add_all(struct desired *d, const struct desired *from);

/* Checks names, counts, ranges, and that assignments name existing models. A state that fails is
 * neither written nor accepted. */
SHOAL_MUST_CHECK int desired_check(const struct desired *d, struct err *e);

/* 1 to DESIRED_MAX_NAME printable characters, no blanks, no control characters, no wildcards or
 * ends of NATS subjects ("*", ">"). */
bool desired_name_ok(const char *name);

/* "serve", "canary", "running": for people and JSON.  "?" for an unknown value. */
const char *desired_duty_text(enum desired_duty duty);
const char *desired_rollout_kind_text(enum desired_rollout_kind kind);
const char *desired_rollout_state_text(enum desired_rollout_state state);

#endif
