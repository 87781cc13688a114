/* api_sessions.h - conversations by id: /v1/sessions/ID.
 *
 * A conversation belongs to the key that started it; without keys, to everyone.
 *
 * Thread: the loop's; files and servers are the pool's. */
#ifndef SHOAL_GATEWAY_API_OWN_API_SESSIONS_H
#define SHOAL_GATEWAY_API_OWN_API_SESSIONS_H

#include "gateway/call/call.h"

void api_sessions_show(struct call *c);
void api_sessions_drop(struct call *c);

#endif
