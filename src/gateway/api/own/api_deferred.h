/* api_deferred.h - requests that may be answered later: the header x-shoal-defer, and
 * /v1/deferred/ID.
 *
 * A request with the header is answered with 202 and an id as soon as it is on disk.
 *
 * Thread:    the loop's; files are the pool's.
 * Failure:   calls that are refused are answered. */
#ifndef SHOAL_GATEWAY_API_OWN_API_DEFERRED_H
#define SHOAL_GATEWAY_API_OWN_API_DEFERRED_H

#include "gateway/call/call.h"

/* Whether the client allows a deferred answer. */
bool api_deferred_asked(const struct call *c);
/* Keeps the request, whose body is parsed, and answers. */
void api_deferred_take(struct call *c);
void api_deferred_show(struct call *c); /* GET /v1/deferred/ID */
void api_deferred_drop(struct call *c); /* DELETE */

#endif
