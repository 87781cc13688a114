/* load_request.h - writes a request: HTTP head and JSON body.
 *
 * Thread:    pure functions.
 * Failure:   sticky in the buffer. */
#ifndef SHOAL_LOAD_LOAD_REQUEST_H
#define SHOAL_LOAD_LOAD_REQUEST_H

#include "base/buf.h"
#include "load/load_mix.h"

struct load_target {
    enum load_api api;
    char address[320]; /* "HOST:PORT" or "unix:PATH", for net/dial.h */
    char host[320];    /* of the header */
    char base[256];    /* of paths: "" or "/prefix" */
    bool secure;
    const char *key;   /* or NULL */
    const char *model; /* of parts that name none; "": send none */
    const char *extra; /* members of a JSON object for chat and completion, without braces; "" */
};

/* Fills address, host, base and secure from http[s]://HOST[:PORT][/PREFIX][/v1] or unix:PATH.
 * SHOAL_EINVAL with what to write. */
SHOAL_MUST_CHECK int load_target_parse(struct load_target *t, const char *url, struct err *e);

/* turns: earlier messages of the conversation, JSON objects each followed by a comma; or "". */
void load_request_put(struct buf *out, const struct load_target *t, const struct load_part *p,
                      const char *turns, const char *prompt, uint32_t max_tokens);
/* Appends a message and a comma to the turns of a conversation. */
void load_request_turn(struct buf *turns, const char *role, const char *text);

#endif
