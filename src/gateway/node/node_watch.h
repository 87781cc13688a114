/* node_watch.h - Node.Watch: this node's state, several times a second.
 *
 * Thread: the loop's. */
#ifndef SHOAL_GATEWAY_NODE_NODE_WATCH_H
#define SHOAL_GATEWAY_NODE_NODE_WATCH_H

struct call;
struct gw_loop;

void node_watch(struct call *c);
/* The state changed in a way that others should know at once: this node drains. */
void node_watch_tell(struct gw_loop *gl);
/* Everything else has ended: the watchers' calls end too. */
void node_watch_end(struct gw_loop *gl);

#endif
