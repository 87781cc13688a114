/* sim_queue.h - the events of a simulation in order of time; events at the same time keep their
 * insertion order.
 *
 * Thread:    belongs to its caller.
 * Ownership: sim_queue_fini frees.
 * Failure:   `failed` is set when memory runs out. */
#ifndef SHOAL_CLUSTER_SIM_QUEUE_H
#define SHOAL_CLUSTER_SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_item {
    uint64_t at_us, number;
    uint32_t kind, what, stamp; /* the caller's */
};

struct sim_queue {
    struct sim_item *items;
    size_t n, cap;
    uint64_t next_number;
    bool failed;
};

void sim_queue_fini(struct sim_queue *q);
void sim_queue_push(struct sim_queue *q, uint64_t at_us, uint32_t kind, uint32_t what,
                    uint32_t stamp);
bool sim_queue_pop(struct sim_queue *q, struct sim_item *out);

#endif
