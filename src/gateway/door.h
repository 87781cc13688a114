/* door.h - where a request comes in: its route, its key, its place, its deadline, its body.
 *
 * Thread:    the loop's.
 * Failure:   what is refused is answered. */
#ifndef SHOAL_GATEWAY_DOOR_H
#define SHOAL_GATEWAY_DOOR_H

#include "gateway/call.h"

/* Entry from net: a whole request, or one that door_admit has let in. */
void door_handle(void *gw_loop, struct http_req *r);
/* The headers of a request are there and its body is not.  False: they are enough to refuse it, and
 * it is answered: an unknown path, a wrong key. */
bool door_admit(void *gw_loop, struct http_req *r);
/* The same for a call that was made by hand, as for a message of a WebSocket.  c is held by the
 * caller; json: its body, taken; NULL: the request's own body is parsed. */
void door_enter(struct call *c, cJSON *json);
/* Answers what net refuses before it is a request: too large, too late, malformed. */
void door_refuse(struct http_req *r, const struct http_refusal *why);
bool door_early(const char *path); /* whether it is a ROUTE_EARLY */
/* The request is as much work as so many of one prompt: it needs a place for each.  False: there
 * are not enough, and it is answered. */
bool door_enter_more(struct call *c, uint32_t n_prompts);
/* A time budget of the client's, from when the request came. */
void door_set_budget(struct call *c, double ms);

#endif
