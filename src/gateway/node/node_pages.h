/* node_pages.h - Pages of shoal/node/v1: sends the computed pages of a prompt's beginning to
 * another node, as far as this one has them in the scope of the same client.
 *
 * Thread: the loop's. */
#ifndef SHOAL_GATEWAY_NODE_PAGES_H
#define SHOAL_GATEWAY_NODE_PAGES_H

struct call;

void node_pages(struct call *c);

#endif
