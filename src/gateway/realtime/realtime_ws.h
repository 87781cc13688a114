/* realtime_ws.h - GET /v1/realtime: OpenAI's Realtime API over a WebSocket.  docs/VOICE.md
 *
 * Sound comes in as events and is heard turn by turn (voice/listener.h); a turn is answered by a
 * chat, or by the home, in words and in sound; whoever speaks ends the answer.
 *
 * Thread:    the loop's. */
#ifndef SHOAL_GATEWAY_REALTIME_REALTIME_WS_H
#define SHOAL_GATEWAY_REALTIME_REALTIME_WS_H

struct call;

void realtime_ws(struct call *c);

#endif
