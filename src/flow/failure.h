/* failure.h - why a request failed, typed: codecs turn it into a status, a body, trailers.
 *
 * Thread:    plain data.
 * Ownership: reason and param are constants, or of another node: valid for the event. */
#ifndef SHOAL_FLOW_FAILURE_H
#define SHOAL_FLOW_FAILURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum failure_kind {
    FAILURE_INVALID,     /* the request itself is wrong */
    FAILURE_NOT_FOUND,   /* there is no such model */
    FAILURE_BUSY,        /* too much work at the moment */
    FAILURE_DEADLINE,    /* the deadline cannot be met, or was not */
    FAILURE_NOT_LOADED,  /* the model is still being loaded */
    FAILURE_UNAVAILABLE, /* out of memory, or the model cannot be loaded */
    FAILURE_INTERNAL,
    FAILURE_CONFLICT, /* with an earlier request */
};

struct failure {
    enum failure_kind kind;
    int code;               /* SHOAL_E* */
    const char *reason;     /* for programs, such as "model_not_found"; NULL: none */
    const char *param;      /* the part of the request that is wrong; NULL: none */
    uint32_t retry_after_s; /* when to retry; 0: not stated */
    char message[512];
};

/* An error of the library, with the matching kind and reason. */
void failure_of(struct failure *f, int code, const char *msg);
/* The same of a model, whose limit is its context. */
void failure_of_model(struct failure *f, int code, const char *msg);
/* A missed deadline, or one that cannot be met (refused: no work was started).  others: other work
 * was in the way, so a retry may succeed. */
void failure_late(struct failure *f, bool refused, bool others, const char *msg);
void failure_set(struct failure *f, enum failure_kind kind, int code, const char *param,
                 const char *reason, const char *fmt, ...) SHOAL_PRINTF(6, 7);

struct model_stats;
/* Counts a failure that refuses a request to a model. */
void failure_count(struct model_stats *m, const struct failure *f);

#endif
