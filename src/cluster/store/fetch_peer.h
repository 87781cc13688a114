/* fetch_peer.h - a model from another node: Node.Fetch over HTTP/2 and mTLS.
 *
 * Thread, Failure: as in fetch_transfer.h. It has its own event loop. */
#ifndef SHOAL_CLUSTER_STORE_FETCH_PEER_H
#define SHOAL_CLUSTER_STORE_FETCH_PEER_H

#include "cluster/store/fetch_transfer.h"

struct tls_client;

/* address: HOST:PORT.  name: that its certificate must have; NULL: any node's.  tls: borrowed;
 * NULL: plain. */
SHOAL_MUST_CHECK int fetch_peer_open(struct fetch_transfer **out, const char *address,
                                     const char *name, struct tls_client *tls,
                                     const struct fetch_transfer_opts *o, struct err *e);

#endif
