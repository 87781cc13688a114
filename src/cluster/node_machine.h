/* node_machine.h - the machine's part of a node's state.
 *
 * Thread:    any; the figures that do not change are read once.
 * Failure:   values that the system does not report stay 0. */
#ifndef SHOAL_CLUSTER_NODE_MACHINE_H
#define SHOAL_CLUSTER_NODE_MACHINE_H

#include "cluster/messages/node_state.h"

/* isa, n_cores, memory_bytes, memory_free, on_battery, battery_percent. */
void node_machine_fill(struct node_state *s);

#endif
