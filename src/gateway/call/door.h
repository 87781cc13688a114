/* door.h - admits requests: route, key, limits, deadline, body.
 *
 * Thread:    the loop's.
 * Failure:   refused requests are answered here. */
#ifndef SHOAL_GATEWAY_CALL_DOOR_H
#define SHOAL_GATEWAY_CALL_DOOR_H

#include "gateway/call/call.h"

/* Entry point from net: a complete request, or one that door_admit has admitted. */
void door_handle(void *gw_loop, struct http_req *r);
/* Called with the headers, before the body has arrived. False: the request is already refused and
 * answered (an unknown path, a wrong key). */
bool door_admit(void *gw_loop, struct http_req *r);
/* The same for a call created internally, such as for a message of a WebSocket.  c is held by the
 * caller; json: its body, taken; NULL: the request's own body is parsed. */
void door_enter(struct call *c, cJSON *json);
/* For work on behalf of a client: needs no key, but its limits apply. c is held by the caller;
 * client: NULL without keys; json: as of door_enter. */
void door_enter_as(struct call *c, struct admission_client *client, cJSON *json);
/* Answers requests that net rejects: too large, too late, malformed. */
void door_refuse(struct http_req *r, const struct http_refusal *why);
bool door_early(void *gw_loop, const char *path); /* whether it is a ROUTE_EARLY */
/* A request with n prompts needs a place for each.  False: there are not enough, and it is
 * answered. */
bool door_enter_more(struct call *c, uint32_t n_prompts);
/* Sets the client's time budget, counted from the arrival of the request. */
void door_set_budget(struct call *c, double ms);

#endif
