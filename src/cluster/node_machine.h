/* node_machine.h - what a node says about its machine.
 *
 * Thread:    any; the figures that do not change are read once.
 * Failure:   what the system does not tell stays 0. */
#ifndef SHOAL_CLUSTER_NODE_MACHINE_H
#define SHOAL_CLUSTER_NODE_MACHINE_H

#include "cluster/messages/node_state.h"

/* isa, n_cores, memory_bytes, memory_free, on_battery, battery_percent. */
void node_machine_fill(struct node_state *s);

#endif
