/* node_watch.h - Node.Watch: this node's state, several times a second.
 *
 * Thread: the loop's. */
#ifndef SHOAL_GATEWAY_NODE_NODE_WATCH_H
#define SHOAL_GATEWAY_NODE_NODE_WATCH_H

struct call;

void node_watch(struct call *c);

#endif
