/* deployed.h - the models in the desired state of a shoal, and those that requests wait for while
 * no node has them ready: the controller learns about them and adds a replica. Initially no node
 * has been heard, so any model may exist.
 *
 * Thread:    any.
 * Ownership: create/destroy; the owner outlives all users. */
#ifndef SHOAL_CLUSTER_DEPLOYED_H
#define SHOAL_CLUSTER_DEPLOYED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct arena;
struct deployed;
struct desired;

SHOAL_MUST_CHECK int deployed_create(struct deployed **out, struct err *e);
void deployed_destroy(struct deployed *p); /* NULL is fine */
/* The state in force.  Without memory for it, the last one stays. */
void deployed_set(struct deployed *p, const struct desired *d);
/* All running nodes have had time to be heard: from now on a model that none of them has does not
 * exist. */
void deployed_settle(struct deployed *p);
bool deployed_settled(struct deployed *p);
/* A request finds no replica. True: the model is deployed, and the request may wait for one. model
 * NULL: any model of this kind (bits of enum shoal_kind). */
bool deployed_want(struct deployed *p, const char *model, unsigned kind);
void deployed_each(struct deployed *p, void (*fn)(void *ctx, const char *name, unsigned kinds),
                   void *ctx);
/* Models requested within the last second: names in the arena. */
uint32_t deployed_wanted(struct deployed *p, struct arena *a, const char *const **out);

#endif
