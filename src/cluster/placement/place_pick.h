/* place_pick.h - the nodes that could have one more replica of a model, cheapest first.
 *
 * A heap per zone, and a heap of the zones by their cheapest node and by how many replicas the zone
 * has. Built in one pass over the nodes; each pick takes logarithmic time.
 *
 * Thread:    belongs to one call of placement_plan.
 * Ownership: memory of the core's arena, reused for every model.  The costs hold until a node other
 *            than the picked ones changes. */
#ifndef SHOAL_CLUSTER_PLACE_PICK_H
#define SHOAL_CLUSTER_PLACE_PICK_H

#include "cluster/placement/place_core.h"

struct place_spot {
    double cost; /* without the zone */
    uint32_t node;
};

struct place_pick {
    struct place_core *c;
    uint32_t model;
    struct place_spot *spots;  /* [n_nodes], grouped by zone, each group a heap */
    uint32_t *start, *len;     /* [n_zones + 1] */
    double *key;               /* [n_zones]: cost of the best spot with the zone's */
    uint32_t *heap, *position; /* zones by key; position PLACEMENT_NONE: not in the heap */
    uint32_t n_heap, n_groups;
    struct place_spot *scratch; /* [n_nodes] */
};

SHOAL_MUST_CHECK int place_pick_init(struct place_pick *p, struct place_core *c, struct err *e);
/* Collects the nodes that may have the model and have memory free for it. */
void place_pick_build(struct place_pick *p, uint32_t model);
/* The cheapest spot of all zones that are not full; false: none.  cost includes the zone. */
bool place_pick_best(const struct place_pick *p, struct place_spot *out);
/* The same without one zone, and the best spot of that zone only, with a cost that excludes the
 * zone.
 */
bool place_pick_best_outside(const struct place_pick *p, uint32_t zone, struct place_spot *out);
bool place_pick_best_inside(const struct place_pick *p, uint32_t zone, struct place_spot *out);
/* Removes the best spot of a node's zone, which must be the node. */
void place_pick_take(struct place_pick *p, uint32_t node);
/* The number of replicas in the zone changed. */
void place_pick_update(struct place_pick *p, uint32_t zone);

#endif
