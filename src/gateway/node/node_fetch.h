/* node_fetch.h - Node.Fetch: the files of a model for another node.
 *
 * Thread: the loop's; files are read by a thread of their own (node_store.h). */
#ifndef SHOAL_GATEWAY_NODE_NODE_FETCH_H
#define SHOAL_GATEWAY_NODE_NODE_FETCH_H

struct call;

void node_fetch(struct call *c);

#endif
