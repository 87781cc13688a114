/* agent_plan.h - decides what a node does about its assignments: pure.
 *
 * Thread:    no state. */
#ifndef SHOAL_CLUSTER_AGENT_PLAN_H
#define SHOAL_CLUSTER_AGENT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/registry.h"
#include "host/sha256.h"

struct desired;
struct desired_assignment;

/* Progress of an assigned model. */
enum agent_phase {
    AGENT_FINDING, /* searching for its bytes, or fetching them */
    AGENT_LOADING,
    AGENT_READY,
    AGENT_FAILED,
    AGENT_LEAVING, /* accepts no new requests; running ones are finished */
};

struct agent_item {
    char name[128];
    uint8_t sha256[SHA256_BYTES];
    uint32_t duty; /* enum desired_duty */
    enum agent_phase phase;
};

enum agent_action {
    AGENT_STAY,   /* loaded, with its assigned duty */
    AGENT_LEAVE,  /* finish running requests, then unload */
    AGENT_GOES,   /* it is already leaving */
    AGENT_RETURN, /* it was leaving and is needed again */
};

/* The action for an item of the node; duty: its assigned duty, 0: none. */
enum agent_action agent_plan_item(const struct agent_item *item, uint32_t duty);
/* Which requests one version of a model answers while it is assigned: its duty, the epochs, and a
 * canary's share. */
struct registry_service agent_plan_service(const struct desired *d,
                                           const struct desired_assignment *a);
/* End of the epochs known to a node with this state, for registry_set_epoch. */
uint64_t agent_plan_epoch_end(const struct desired *d);
/* Where the bytes of this version can be fetched; "": from other nodes. */
const char *agent_plan_source(const struct desired *d, const struct desired_assignment *a);
/* Whether a state may be followed: not if it is from an older controller than one followed before,
 * nor if it is an older version of the same cluster's state. */
bool agent_plan_may_follow(const struct desired *d, uint64_t fence_seen);
/* The node is drained, and has nothing left to serve: gateways need not send it anything. */
bool agent_plan_set_aside(const struct desired *d, const char *node);

#endif
