/* embedding.h - vectors of any number of texts, as requests to a model that embeds.
 *
 * Thread:    the owner's.
 * Ownership: part of the caller's job, which must live until `done` was called.  The vectors belong
 *            to the caller from then on (mem_free), also after a failure (NULL).
 * Failure:   typed, to `done`. */
#ifndef SHOAL_KNOWLEDGE_EMBEDDING_H
#define SHOAL_KNOWLEDGE_EMBEDDING_H

#include "base/str.h"
#include "flow/flow.h"

/* The client and the deadline, copied from the request that the work belongs to. */
struct embedding_who {
    struct request_client client;
    char id[64];
    struct trace_at spans; /* borrowed */
    uint64_t deadline_ns;  /* CLOCK_MONOTONIC; 0: none */
    int32_t priority;
};

struct embedding {
    struct flow_owner *owner;
    struct embedding_who who;
    const char *model;
    const struct str *texts; /* must stay */
    uint32_t n;
    void (*done)(struct embedding *x, const struct failure *f); /* f NULL: success */
    void (*progress)(struct embedding *x, uint32_t n_done);     /* or NULL */
    /* results */
    float *vectors; /* [n][n_dims] */
    uint32_t n_dims;
    uint64_t n_tokens;
    char version[64]; /* version of the model; "": unknown */
    /* private */
    struct sink sink;
    uint32_t at, batch;
    bool cancelled, failed;
    struct failure why;
};

/* All members are set except private ones and results. */
void embedding_run(struct embedding *x);
/* done is still called, with a failure. */
void embedding_cancel(struct embedding *x);

/* A request of `who`, of kind `kind`, to a model; NULL: out of memory. */
struct request *embedding_request(struct flow_owner *o, const struct embedding_who *who,
                                  enum request_kind kind, const char *model);

#endif
