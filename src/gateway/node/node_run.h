/* node_run.h - Node.Run: a request of another member, answered with the models of this process.
 *
 * Thread: the loop's. */
#ifndef SHOAL_GATEWAY_NODE_NODE_RUN_H
#define SHOAL_GATEWAY_NODE_NODE_RUN_H

struct call;

void node_run(struct call *c);

#endif
