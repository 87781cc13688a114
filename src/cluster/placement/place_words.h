/* place_words.h - texts for the reasons of steps and of replicas that do not fit.
 *
 * Thread:    belongs to one call of placement_plan.
 * Ownership: texts are in the given arena. */
#ifndef SHOAL_CLUSTER_PLACE_WORDS_H
#define SHOAL_CLUSTER_PLACE_WORDS_H

#include "cluster/placement/place_core.h"

/* from: the node that a moved replica comes from, or PLACEMENT_NONE. */
const char *place_words_load(struct arena *a, const struct place_core *c,
                             const struct place_replica *r, uint32_t from, uint32_t to);
/* to: the node that a moved replica goes to, or PLACEMENT_NONE. */
const char *place_words_unload(struct arena *a, const struct place_core *c,
                               const struct place_replica *r, uint32_t from, uint32_t to);
/* The missing memory, with the arithmetic. NULL: nothing is missing; *n_missing replicas. */
const char *place_words_gap(struct arena *a, struct place_core *c, uint32_t model,
                            uint32_t *n_missing);

#endif
