/* api_key.h - the key that a request carries.
 *
 * In Authorization (Bearer), in x-api-key, or, since browsers cannot set headers of a WebSocket, in
 * Sec-WebSocket-Protocol: "openai-insecure-api-key.KEY" as OpenAI's clients send it, or
 * "shoal-key.HEX" for keys with other characters than those of a token.
 *
 * Thread:    no state. */
#ifndef SHOAL_GATEWAY_CALL_API_KEY_H
#define SHOAL_GATEWAY_CALL_API_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct http_req;

#define API_KEY_MAX 512u /* bytes with the NUL */

/* The key, NUL-terminated, in out or in a header; NULL: there is none. */
const char *api_key_of(const struct http_req *r, char out[API_KEY_MAX]);
/* Whether it carries several keys in headers of one name: a proxy in front may have looked at
 * another one than api_key_of. */
bool api_key_twice(const struct http_req *r);
/* As api_key_of, from the value of Sec-WebSocket-Protocol. */
const char *api_key_offered(const char *protocols, char out[API_KEY_MAX]);
/* "Bearer KEY" (mem_free) for requests on behalf of r, or NULL: no key.  SHOAL_ENOMEM. */
SHOAL_MUST_CHECK int api_key_header(char **out, const struct http_req *r);

#endif
