/* event_feed.h - turns encoded events of another process into calls of a sink.
 *
 * Thread:    the owner's of the sink.
 * Ownership: what events point to lives in the feed's arenas: results and plans until fini.
 * Failure:   SHOAL_EFORMAT, SHOAL_ENOMEM: the bytes are not valid events. */
#ifndef SHOAL_CLUSTER_MESSAGES_EVENT_FEED_H
#define SHOAL_CLUSTER_MESSAGES_EVENT_FEED_H

#include "base/arena.h"
#include "flow/sink.h"

struct event_feed {
    struct sink *sink;
    struct arena scratch, keep;
    bool quiet;        /* the sink wants only `closed` from now on */
    uint32_t n_pieces; /* pieces of the answer received */
    bool broke;        /* it reported a failure that is not due to the request or the load */
};

void event_feed_init(struct event_feed *f, struct sink *s);
void event_feed_fini(struct event_feed *f);
/* All events of one message, until the sink wants no more. */
SHOAL_MUST_CHECK int event_feed_put(struct event_feed *f, const uint8_t *p, size_t n);
void event_feed_fail(struct event_feed *f, const struct failure *why);
/* Whether the sink is full (backpressure). */
bool event_feed_full(const struct event_feed *f);
/* All events received together have been put. */
void event_feed_flush(struct event_feed *f);

#endif
