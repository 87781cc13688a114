/* grpc_recognize.h - Recognize of shoal.v1.Shoal: live sound in, the words of each turn out, on one
 * gRPC stream.
 *
 * One call is one request of its client for keys and rates, however long it lasts.  Sound that
 * comes faster than it is heard is not read.  A failure ends the stream with its status.
 *
 * Thread: the loop's; grpc_recognize_read has no state. */
#ifndef SHOAL_GATEWAY_GRPC_GRPC_RECOGNIZE_H
#define SHOAL_GATEWAY_GRPC_GRPC_RECOGNIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audio/pcm.h"
#include "base/arena.h"
#include "gateway/call/fields.h"

struct call;

struct grpc_recognize_ask {       /* texts are in the arena */
    const char *model, *language; /* "": any, as it is heard */
    const char *const *phrases;   /* [n_phrases] */
    size_t n_phrases;
    struct pcm_form form;
    bool home, end;
    const uint8_t *audio;
    size_t n_audio;
};

/* One message; first: it may have settings.  SHOAL_EFORMAT: malformed bytes; SHOAL_EINVAL: e says
 * what is wrong. */
SHOAL_MUST_CHECK int grpc_recognize_read(struct grpc_recognize_ask *ask, struct arena *a,
                                         const uint8_t *p, size_t n, bool first,
                                         struct fields_error *e);

void grpc_recognize(struct call *c); /* /shoal.v1.Shoal/Recognize */

#endif
