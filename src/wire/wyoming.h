/* wyoming.h - events of the Wyoming protocol (Home Assistant's voice services): a JSON object on a
 * line, more data, and a payload, one behind the other on a stream.
 *
 * Thread:    no state.
 * Ownership: an event owns its data until wyoming_free; the payload points into the bytes.
 * Failure:   SHOAL_EFORMAT, SHOAL_ELIMIT: what follows on the stream cannot be read any more. */
#ifndef SHOAL_WIRE_WYOMING_H
#define SHOAL_WIRE_WYOMING_H

#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "base/buf.h"

#define WYOMING_MAX_HEADER ((size_t)16 << 10)
#define WYOMING_MAX_DATA ((size_t)256 << 10)
#define WYOMING_MAX_PAYLOAD ((size_t)1 << 20)

struct json_out;

struct wyoming_event {
    char type[64];
    cJSON *data; /* an object, or NULL */
    const char *payload;
    size_t payload_bytes;
};

/* The first event of n bytes; returns how many belong to it, or 0: more are needed, at least *want
 * in all; then there is no event. */
SHOAL_MUST_CHECK int64_t wyoming_next(struct wyoming_event *out, const char *p, size_t n,
                                      size_t *want, struct err *e);
void wyoming_free(struct wyoming_event *ev);
/* A text of the data; NULL: none. */
const char *wyoming_text(const struct wyoming_event *ev, const char *key);
/* A number of the data; `otherwise`: none, or it is not one of 0 to 4e9. */
uint32_t wyoming_number(const struct wyoming_event *ev, const char *key, uint32_t otherwise);
/* Members of `info` that every service has. */
void wyoming_put_artifact(struct json_out *j, const char *name, const char *description);
/* The member "wake" of `info`; word: NULL: there is none. */
void wyoming_put_wake(struct json_out *j, const char *word);
/* Writes an event with n bytes of data, a JSON object, and a payload; 0 bytes: none. */
void wyoming_put(struct buf *out, const char *type, const char *data, size_t n, const void *payload,
                 size_t n_payload);

#endif
