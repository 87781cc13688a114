/* node_door.h - entry point for other members of the shoal: shoal.node.v1.Node on its own
 * listeners.
 *
 * TLS authenticates: the listener requires a certificate of the shoal's own CA. API keys, hosts and
 * origins belong to the public entry point.
 *
 * Thread: the loop's. */
#ifndef SHOAL_GATEWAY_NODE_NODE_DOOR_H
#define SHOAL_GATEWAY_NODE_NODE_DOOR_H

struct gw_loop;
struct http_req;

/* Handler of an http_server; ctx is a struct gw_loop. */
void node_door_handle(void *gw_loop, struct http_req *r);

#endif
