/* replica_local.h - the models of this process as a replica.
 *
 * Thread: the owner's. */
#ifndef SHOAL_CLUSTER_REPLICA_LOCAL_H
#define SHOAL_CLUSTER_REPLICA_LOCAL_H

#include "cluster/replica.h"

void replica_local_init(struct replica *p);

#endif
