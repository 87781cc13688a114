/* mcp_read.h - messages of the Model Context Protocol (JSON-RPC 2.0): what they ask for.
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

enum mcp_method {
    MCP_INITIALIZE,
    MCP_PING,
    MCP_LIST,         /* tools/list */
    MCP_CALL,         /* tools/call */
    MCP_NOTIFICATION, /* of any kind, and answers: nothing is to be said */
};

struct mcp_message {
    const cJSON *id; /* a text or a number; NULL: none */
    enum mcp_method method;
    const char *version; /* INITIALIZE: a version of the protocol that both sides know */
    const char *path;    /* CALL: of this server, and what is to be sent to it */
    cJSON *body;         /* the caller's */
    const cJSON *texts;  /* CALL of search: those to sort by the embeddings that come back, of which
                            the first is the query's; else NULL */
    uint32_t top;        /* so many are returned; 0: all */
    int error;           /* 0: none */
    char text[160];      /* what is wrong */
};

/* json: a whole message; NULL: it is no JSON. */
void mcp_read(struct mcp_message *m, const cJSON *json);

/* The result of tools/list. */
void mcp_put_tools(struct buf *out);

#endif
