/* body.h - the body of a call: without its Content-Encoding; a JSON body checked and parsed, a
 * large one on the pool.
 *
 * What a compressed body unpacks to is bounded like a plain one (limits.body) and charged to the
 * client's address, too; it is unpacked on the pool.
 *
 * Texts with NUL and bodies of too many values are refused before they are parsed
 * (wire/json_scan.h). The memory of a large body is charged to the client's address (net/peers.h)
 * until the call ends, that of its values until call_drop_json.
 *
 * Thread:    the loop's; the pool parses.
 * Failure:   refused bodies are answered here. */
#ifndef SHOAL_GATEWAY_CALL_BODY_H
#define SHOAL_GATEWAY_CALL_BODY_H

#include "gateway/call/call.h"

/* Replaces a compressed body by what is in it; then next runs, now or later, unless the call was
 * answered or its client is gone.  c is held by the caller. */
void body_unpack(struct call *c, void (*next)(struct call *c));
/* Parses the body into c->json; then next runs, now or later, unless the call was answered or its
 * client is gone.  c is held by the caller. */
void body_read(struct call *c, void (*next)(struct call *c));
/* For a handler that reads a small body by itself, be it an object or a list: the body, checked and
 * parsed, for cJSON_Delete.  NULL: it is empty or no JSON, or the call was answered (*answered):
 * it has more than 64 KiB, a NUL or too many values. */
SHOAL_MUST_CHECK cJSON *body_parse_small(struct call *c, bool *answered);

#endif
