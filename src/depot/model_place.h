/* model_place.h - where a text says that a model is: the list in model_pull.h.
 *
 * Thread:    no state; looks whether a path exists.
 * Failure:   SHOAL_EINVAL: it says nothing; the message says what would. */
#ifndef SHOAL_DEPOT_MODEL_PLACE_H
#define SHOAL_DEPOT_MODEL_PLACE_H

#include <stdbool.h>

#include "base/err.h"
#include "depot/place_kind.h"

struct model_place {
    enum place_kind kind;
    char base[512];
    char name[2048];
    char stored[129]; /* what it is called in the store; "": the source says it */
};

/* plain_http: registries speak HTTP. Those of this machine do in any case. */
SHOAL_MUST_CHECK int model_place_read(struct model_place *out, const char *text, bool plain_http,
                                      struct err *e);

#endif
