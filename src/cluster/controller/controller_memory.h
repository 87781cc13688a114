/* controller_memory.h - state of a controller between two decisions: failed loads, absent nodes,
 * samples of the autoscaler.
 *
 * A new controller starts without it. It then retries failed loads, waits for absent nodes, and
 * scales from the counts in the desired state.
 *
 * Thread:    the one that decides.
 * Ownership: init/fini over the caller's storage. */
#ifndef SHOAL_CLUSTER_CONTROLLER_MEMORY_H
#define SHOAL_CLUSTER_CONTROLLER_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "cluster/placement/autoscale.h"
#include "host/sha256.h"

#define CONTROLLER_MEMORY_NAME 128u

/* A model that could not be loaded on a node. */
struct controller_failure {
    char node[CONTROLLER_MEMORY_NAME], model[CONTROLLER_MEMORY_NAME];
    uint8_t sha256[SHA256_BYTES];
    uint32_t n; /* consecutive failures */
    uint64_t retry_ms;
};

struct controller_absence { /* a silent node with assignments */
    char node[CONTROLLER_MEMORY_NAME];
    uint64_t since_ms;
    bool seen; /* seen in this decision */
};

struct controller_scaling {
    char model[CONTROLLER_MEMORY_NAME];
    struct autoscale_state state;
    uint64_t requests, at_ms; /* at the last sample; at_ms 0: none */
};

struct controller_memory {
    struct controller_failure *failures;
    struct controller_absence *absences;
    struct controller_scaling *scalings;
    uint32_t n_failures, n_absences, n_scalings;
    uint32_t cap_failures, cap_absences, cap_scalings;
};

void controller_memory_fini(struct controller_memory *m); /* init: all zero */

/* The load failed: it is retried there with exponential backoff. True: this failure is new. */
bool controller_memory_fail(struct controller_memory *m, const char *node, const char *model,
                            const uint8_t sha256[SHA256_BYTES], uint64_t now_ms);
/* It was loaded in the end. */
void controller_memory_heal(struct controller_memory *m, const char *node, const char *model,
                            const uint8_t sha256[SHA256_BYTES]);
/* How long the node has been away; 0 at the first call. */
uint64_t controller_memory_away_ms(struct controller_memory *m, const char *node, uint64_t now_ms);
/* Forgets absences that were not queried since the last call. */
void controller_memory_sweep(struct controller_memory *m);
/* NULL: out of memory. */
struct controller_scaling *controller_memory_scaling(struct controller_memory *m, const char *model,
                                                     uint32_t wanted, uint64_t now_ms);

#endif
