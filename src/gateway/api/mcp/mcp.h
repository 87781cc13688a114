/* mcp.h - the Model Context Protocol over HTTP: classify, tag, search and ask as tools.
 *
 * Streamable HTTP without sessions: each POST is one message, and its answer is JSON.  A call of a
 * tool becomes a call of this server's own interface, with the same key, limits and deadlines.  A
 * client cancels it by closing its request.
 *
 * Thread: the loop's. */
#ifndef SHOAL_GATEWAY_API_MCP_MCP_H
#define SHOAL_GATEWAY_API_MCP_MCP_H

struct call;

void mcp_post(struct call *c);
void mcp_get(struct call *c); /* no server streams: 405 */

#endif
