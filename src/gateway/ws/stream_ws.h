/* stream_ws.h - /v1/stream: requests as messages of a WebSocket, several at a time
 * (docs/GATEWAY.md).
 *
 * A message names a path of the HTTP interface and has its body; it passes the same checks as a
 * separate request. Events are sent back as messages, each with the id of its request.
 *
 * Thread: the loop's; reading has no state. */
#ifndef SHOAL_GATEWAY_WS_STREAM_WS_H
#define SHOAL_GATEWAY_WS_STREAM_WS_H

#include <stdbool.h>
#include <stddef.h>

#include <cjson/cJSON.h>

struct call;

void stream_ws(struct call *c);

struct stream_ws_message {
    char id[64], path[128];
    bool cancel; /* the request with this id; there is no body */
    cJSON *body; /* owned */
    size_t n_values;
};

/* Parses a message of the client; text: it is a text message.  NULL, or an error text: then there
 * is no body, and id is "" if the id is wrong. */
const char *stream_ws_read(struct stream_ws_message *m, const char *p, size_t n, bool text,
                           size_t max_values);

#endif
