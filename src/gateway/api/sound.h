/* sound.h - sounds of requests to inputs of a recognizer.
 *
 * A sound is decoded on the pool, window by window, into a request with one input for each window;
 * its memory is charged to the client.  It is never written anywhere.
 *
 * Thread:    the loop's. */
#ifndef SHOAL_GATEWAY_API_SOUND_H
#define SHOAL_GATEWAY_API_SOUND_H

#include "base/str.h"
#include "flow/request.h"

struct call;

struct sound_ask {
    struct str sound;    /* in the body */
    const char *phrases; /* likely to be said; in the request's arena; NULL: none */
    /* The inputs are there: takes r.  Not called if the client has gone or the call has failed. */
    void (*then)(struct call *c, struct request *r, void *ctx);
    void *ctx; /* lives as long as the request */
};

/* Takes r and the body of n bytes. */
void sound_decode(struct call *c, struct request *r, char *body, size_t n,
                  const struct sound_ask *ask);

#endif
