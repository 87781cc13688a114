/* mcp_read.h - parses messages of the Model Context Protocol (JSON-RPC 2.0).
 *
 * Thread:    no state.
 * Ownership: what is read points into the JSON; the body of a tool's call belongs to the caller:
 *            cJSON_Delete.
 * Failure:   mcp_message.error, an error code of JSON-RPC, with a text. */
#ifndef SHOAL_GATEWAY_API_MCP_MCP_READ_H
#define SHOAL_GATEWAY_API_MCP_MCP_READ_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define MCP_READ_MAX_TEXTS 255u

#define MCP_READ_PARSE_ERROR (-32700)
#define MCP_READ_INVALID_REQUEST (-32600)
#define MCP_READ_NO_METHOD (-32601)
#define MCP_READ_INVALID_PARAMS (-32602)
#define MCP_READ_INTERNAL_ERROR (-32603)
#define MCP_READ_VERSION (-32022) /* of a version of the protocol that we do not speak */

enum mcp_method {
    MCP_INITIALIZE, /* up to 2025-11-25 */
    MCP_DISCOVER,   /* server/discover, from 2026-07-28 on */
    MCP_PING,
    MCP_LIST,         /* tools/list */
    MCP_CALL,         /* tools/call */
    MCP_NOTIFICATION, /* any notification, and responses: no answer is sent */
};

struct mcp_message {
    const cJSON *id; /* a text or a number; NULL: none */
    enum mcp_method method;
    const char *version; /* INITIALIZE: a version of the protocol that both sides know */
    const char *asked;   /* error VERSION: the one that was asked for */
    bool stateless; /* it names its version itself, as from 2026-07-28 on: results say that they are
                       complete */
    const char *path;   /* CALL: path on this server and the body to send */
    cJSON *body;        /* the caller's */
    const cJSON *texts; /* CALL of search: texts to sort by the returned embeddings, the first of
                           which is the query's; otherwise NULL */
    uint32_t top;       /* number of results; 0: all */
    int error;          /* 0: none */
    char text[160];     /* what is wrong */
};

/* json: a complete message; NULL: invalid JSON. header: MCP-Protocol-Version of HTTP, or NULL. */
void mcp_read(struct mcp_message *m, const cJSON *json, const char *header);

/* The list of tools. */
void mcp_put_tools(struct buf *out);
/* The versions of the protocol that we speak, as a list. */
void mcp_put_versions(struct buf *out);

#endif
