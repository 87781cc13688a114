/* agent.h - carries out the controller's assignments on one node: fetches, loads, serves, stages
 * and unloads models.
 *
 * A model of the node's own configuration is never unloaded. If the controller assigns the same
 * bytes under the same name, the configured one answers. If the shoal serves other bytes under its
 * name, the configured model gets no requests, so that users see one version.
 *
 * Thread:    fill: any.  Everything else: the owner's.
 * Ownership: create gives, destroy takes back (NULL is fine); models that were loaded stay in the
 *            registry, which ends after it.
 * Failure:   a model that cannot be loaded is reported in the node's state with the reason, and
 *            retried as long as it is assigned. */
#ifndef SHOAL_CLUSTER_AGENT_AGENT_H
#define SHOAL_CLUSTER_AGENT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cluster/control/event_log.h"
#include "host/sha256.h"

struct agent;
struct arena;
struct desired;
struct desired_model;
struct executor;
struct node_state;
struct registry;
struct registry_spec;

enum agent_found { AGENT_HERE, AGENT_COMING, AGENT_NOWHERE };

/* Where the bytes of models come from.  Called on the owner's thread; must not block. */
struct agent_source {
    void *ctx;
    /* AGENT_HERE: path is the model to load, verified. AGENT_COMING: call again; *progress in
     * thousandths. AGENT_NOWHERE: e has the reason. */
    enum agent_found (*find)(void *ctx, const struct desired_model *model,
                             const uint8_t sha256[SHA256_BYTES], char *path, size_t cap,
                             uint32_t *progress, struct err *e);
    /* It could not be loaded, or its bytes were found damaged: find checks them and brings others
     * if they are. False: that would change nothing. May be NULL. */
    bool (*doubt)(void *ctx, const uint8_t sha256[SHA256_BYTES]);
    /* The model is no longer needed here; may be NULL. */
    void (*release)(void *ctx, const uint8_t sha256[SHA256_BYTES]);
    /* Completes the load options of a model, by its path; may be NULL. */
    void (*describe)(void *ctx, struct registry_spec *spec);
};

struct agent_opts {
    const char *name; /* name of this node; copied */
    struct registry *registry;
    struct executor *executor;
    struct agent_source source;
    uint32_t grace_ms; /* a model that is being unloaded still answers for this long; 0: 1500 */
    uint32_t
        retry_ms; /* a failed load is retried with exponential backoff from this delay; 0: 15 s */
    /* For the log of events; may be NULL. */
    void (*event)(void *ctx, const struct event_log_entry *entry);
    void *event_ctx;
};

SHOAL_MUST_CHECK int agent_create(struct agent **out, const struct agent_opts *o, struct err *e);
void agent_destroy(struct agent *a);
/* The bytes of a model on disk are damaged: it gets no more requests, and is loaded anew from bytes
 * that are not. No effect if it is not assigned to this node. */
void agent_damaged(struct agent *a, const uint8_t sha256[SHA256_BYTES]);
/* The desired state in force. A state from an older controller is refused and reported. */
void agent_follow(struct agent *a, const struct desired *d);
/* While it waits, assigned models get no new requests: the node may have missed an update. When it
 * no longer does, those that have left meanwhile get none either, since nobody counts on them. */
void agent_wait(struct agent *a, bool waits);
/* Completes the state of this node: duties and errors of its models, and those that are not in the
 * registry yet.  s->models must be in the arena. */
void agent_fill(struct agent *a, struct node_state *s, struct arena *arena);

#endif
