/* api_sessions.h - conversations by id: which one a request continues, and /v1/sessions/ID.
 *
 * A conversation belongs to the key that started it; without keys, to everyone.
 *
 * Thread: the loop's; files and servers are the pool's. */
#ifndef SHOAL_GATEWAY_API_OWN_API_SESSIONS_H
#define SHOAL_GATEWAY_API_OWN_API_SESSIONS_H

#include "gateway/call.h"

/* Reads the body's session_id, or the header x-shoal-session, into r->session. *found: there is
 * one. False: it is invalid, and the call is answered. */
bool api_sessions_read(struct call *c, struct request *r, bool *found);
/* Runs a chat that continues a conversation; events go to c->sink. */
void api_sessions_run(struct call *c, struct request *r);

void api_sessions_show(struct call *c);
void api_sessions_drop(struct call *c);

#endif
