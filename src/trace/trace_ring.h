/* trace_ring.h - the last traces of this process, for `shoal trace` and the page: no collector is
 * needed.
 *
 * It passes on those that a collector should get: sampled ones, and all that failed or took long.
 *
 * Thread:    any.
 * Ownership: trace_ring_destroy lets go of all; a found trace is held for the caller.
 * Failure:   SHOAL_ENOMEM at creation; later none: the oldest traces leave. */
#ifndef SHOAL_TRACE_TRACE_RING_H
#define SHOAL_TRACE_TRACE_RING_H

#include "base/err.h"
#include "trace/trace.h"

struct trace_ring;
struct trace_votes;

struct trace_ring_opts {
    uint32_t max_traces; /* 0: keeps none */
    size_t max_bytes;
    double ratio;               /* share of new traces that are sampled */
    uint64_t slow_ns;           /* traces of this length and more are passed on; 0: by no length */
    struct trace_keeper *after; /* gets what is passed on; NULL: nobody */
    const char *votes_file;     /* of trace_votes.h; NULL: none */
    size_t votes_bytes;
};

SHOAL_MUST_CHECK int trace_ring_create(struct trace_ring **out, const struct trace_ring_opts *o,
                                       struct err *e);
void trace_ring_destroy(struct trace_ring *r); /* NULL is fine */
struct trace_keeper *trace_ring_keeper(struct trace_ring *r);
/* What people think of its traces; borrowed. */
struct trace_votes *trace_ring_votes(const struct trace_ring *r);

/* By the id of the request or of the trace, the newest first. client: NULL: of any client. */
struct trace *trace_ring_find(struct trace_ring *r, const char *id, const char *client);
/* The newest traces, the newest first; held. Returns how many. */
uint32_t trace_ring_last(struct trace_ring *r, const char *client, struct trace **out,
                         uint32_t max);

#endif
