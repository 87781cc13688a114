/* stream_ws.h - GET /v1/stream: any route of the server over one WebSocket, several at a time.
 *
 * The client sends {"id": "1", "path": "/v1/chat/completions", "body": {...}} (the path may be left
 * out) or {"id": "1", "cancel": true}.  For each event of a stream comes {"id": "1", "event":
 * {...}}, for a whole answer {"id": "1", "status": 200, "body": {...}}, and at the end of either
 * {"id": "1", "status": 200, "done": true}. */
#ifndef SHOAL_GATEWAY_STREAM_WS_H
#define SHOAL_GATEWAY_STREAM_WS_H

struct call;

void stream_ws(struct call *c);

#endif
