/* trace_votes.h - what people think of answers: thumbs up or down, tied to the trace of a request.
 *
 * Counted by model, for a bounded number of models; each trace counts once.  Votes are also lines
 * of a file, of which at most two parts are kept (FILE and FILE.1).  No text of anybody is in it.
 *
 * Thread:    any: a lock.  trace_votes_add writes to the disk: for a helper thread.
 * Ownership: create gives, destroy takes back.
 * Failure:   SHOAL_ENOMEM; SHOAL_EIO: the vote counts, but could not be written. */
#ifndef SHOAL_TRACE_TRACE_VOTES_H
#define SHOAL_TRACE_TRACE_VOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define TRACE_VOTES_MODELS 64u /* more are counted as "other" */
#define TRACE_VOTES_NAME 128u

struct trace_votes;

struct trace_vote {
    const char *trace_id, *request, *model;
    bool up;
    uint64_t unix_ms;
};

/* file: NULL: none.  max_bytes: of each part of it. */
SHOAL_MUST_CHECK int trace_votes_create(struct trace_votes **out, const char *file,
                                        size_t max_bytes, struct err *e);
void trace_votes_destroy(struct trace_votes *v); /* NULL is fine */
/* 1: it counts; 0: this trace had one already. */
SHOAL_MUST_CHECK int trace_votes_add(struct trace_votes *v, const struct trace_vote *x,
                                     struct err *e);
/* Calls fn for each model that got votes. */
void trace_votes_each(struct trace_votes *v,
                      void (*fn)(void *ctx, const char *model, uint64_t up, uint64_t down),
                      void *ctx);

#endif
