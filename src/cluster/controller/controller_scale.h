/* controller_scale.h - how many replicas a model should have now: autoscale.h over what the nodes
 * report.
 *
 * Thread:    the one that decides.
 * Failure:   none: without memory for its samples a model keeps its count. */
#ifndef SHOAL_CLUSTER_CONTROLLER_SCALE_H
#define SHOAL_CLUSTER_CONTROLLER_SCALE_H

#include <stdbool.h>
#include <stddef.h>

struct controller_memory;
struct controller_snapshot;
struct desired_model;

/* Sets replicas_want. True: it changed, and text has both counts and the reason. */
bool controller_scale(struct desired_model *model, const struct controller_snapshot *s,
                      struct controller_memory *m, char *text, size_t cap);

#endif
