/* mqtt_request.h - an MQTT message as a request of the HTTP interface.
 *
 * The topic names the model or route: PREFIX/request/NAME. User properties take the place of
 * headers. The payload is the body that the path expects; a payload that is not a JSON object is
 * the input itself: a text, or a JSON array of texts or numbers.
 *
 * Thread:    no state.
 * Ownership: everything but the body lives in the arena; the body is the caller's (cJSON_Delete).
 * Failure:   an error text for the sender; then there is no body. */
#ifndef SHOAL_GATEWAY_MQTT_MQTT_REQUEST_H
#define SHOAL_GATEWAY_MQTT_MQTT_REQUEST_H

#include <cjson/cJSON.h>

#include "base/arena.h"
#include "mqtt/mqtt_message.h"
#include "net/http.h"

#define MQTT_REQUEST_MAX_HEADERS 24u

struct mqtt_request {
    const char *name; /* of the model, route or flow; "process": the home flow */
    const char *path; /* of the HTTP interface */
    struct http_header headers[MQTT_REQUEST_MAX_HEADERS];
    size_t n_headers;
    cJSON *body;
    size_t n_values;
};

/* kinds: what the named model can do (enum shoal_kind); 0: unknown. NULL, or an error text. */
const char *mqtt_request_read(struct mqtt_request *out, struct arena *a,
                              const struct mqtt_message *m, const char *name, unsigned kinds,
                              size_t max_values);

#endif
