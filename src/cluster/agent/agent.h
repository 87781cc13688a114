/* agent.h - carries out on one node what the controller assigned to it: finds the bytes, loads,
 * serves, stages, and lets go.
 *
 * A model of the node's own configuration is never unloaded.  If the controller assigns the same
 * bytes under the same name, the configured one answers.  If the shoal serves other bytes under its
 * name, it answers nothing, so that users see one version.
 *
 * Thread:    fill, set_aside: any.  Everything else: the owner's.
 * Ownership: create gives, destroy takes back (NULL is fine); models that were loaded stay in the
 *            registry, which ends after it.
 * Failure:   what cannot be loaded is reported in the node's state, with the reason, and tried
 * again as long as it is assigned. */
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
    /* AGENT_HERE: path is what to load, and the bytes were verified.  AGENT_COMING: ask again;
     * *progress in thousandths.  AGENT_NOWHERE: e says why. */
    enum agent_found (*find)(void *ctx, const struct desired_model *model,
                             const uint8_t sha256[SHA256_BYTES], char *path, size_t cap,
                             uint32_t *progress, struct err *e);
    /* The model is not needed here any more; may be NULL. */
    void (*release)(void *ctx, const uint8_t sha256[SHA256_BYTES]);
    /* Completes how a model is loaded, by its path; may be NULL. */
    void (*describe)(void *ctx, struct registry_spec *spec);
};

struct agent_opts {
    const char *name; /* of this node; copied */
    struct registry *registry;
    struct executor *executor;
    struct agent_source source;
    uint32_t grace_ms; /* a model that has to leave answers for so long; 0: 1500 */
    uint32_t
        retry_ms; /* a load that failed is tried again, each time after twice as long; 0: 15 s */
    /* For the log of events; may be NULL. */
    void (*event)(void *ctx, const struct event_log_entry *entry);
    void *event_ctx;
};

SHOAL_MUST_CHECK int agent_create(struct agent **out, const struct agent_opts *o, struct err *e);
void agent_destroy(struct agent *a);
/* The desired state in force.  One of an older controller than before is refused, and reported. */
void agent_follow(struct agent *a, const struct desired *d);
/* Completes the state of this node: duties and errors of its models, and those that are not in the
 * registry yet.  s->models must be in the arena. */
void agent_fill(struct agent *a, struct node_state *s, struct arena *arena);
/* The node is drained and has nothing left to serve. */
bool agent_set_aside(struct agent *a);

#endif
