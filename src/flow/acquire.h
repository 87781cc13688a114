/* acquire.h - acquires the model of a request: at once, after loading, or with a typed failure.
 *
 * Thread:    the owner's.
 * Ownership: part of the job, which must live until `ready` was called. */
#ifndef SHOAL_FLOW_ACQUIRE_H
#define SHOAL_FLOW_ACQUIRE_H

#include "flow/flow.h"
#include "host/registry.h"

/* Failure reasons that do not count against the request: this process has another version of the
 * model, or none that serves the request's epoch. */
#define ACQUIRE_NO_VERSION "version_not_found"
#define ACQUIRE_NOT_SERVED "version_not_served"

struct acquire {
    struct flow_owner *owner;
    /* Called once, at the end.  m is held; NULL: no model, and `failed` was called or the
     * request was cancelled. */
    void (*ready)(struct acquire *a, struct registry_model *m);
    bool any;                   /* a model in its own process is acceptable */
    const uint8_t *version;     /* SHA-256 of the model that must be there; NULL: any */
    const char *key;            /* as in registry_want */
    uint64_t epoch;             /* of the request */
    bool may_be_old;            /* as in registry_want */
    const uint64_t *beginnings; /* as in registry_want */
    uint32_t n_beginnings;
    /* Called at most once, before ready; the model may still be loading then. */
    void (*failed)(struct acquire *a, const struct failure *f);
    /* private */
    enum shoal_kind kind;
    bool over; /* failed or cancelled: a model that still arrives is put back */
    struct registry_wait wait;
    struct registry_model *model;
    int rc;
    struct executor_task loaded;
    struct executor_timer timer;
    char text[320], wait_text[320];
};

/* owner, ready, failed, version, key, epoch and may_be_old are set by the caller; the rest is zero.
 * name: NULL is the default model of the kind.  ready may be called before this returns. */
void acquire_model(struct acquire *a, const char *name, enum shoal_kind kind);
/* The model is no longer needed; ready is still called. */
void acquire_cancel(struct acquire *a);

#endif
