/* event_feed.h - encoded events of another process become calls of a sink.
 *
 * Thread:    the owner's of the sink.
 * Ownership: what events point to lives in the feed's arenas: results and plans until fini.
 * Failure:   SHOAL_EFORMAT, SHOAL_ENOMEM: the bytes are no events. */
#ifndef SHOAL_CLUSTER_MESSAGES_EVENT_FEED_H
#define SHOAL_CLUSTER_MESSAGES_EVENT_FEED_H

#include "base/arena.h"
#include "flow/sink.h"

struct event_feed {
    struct sink *sink;
    struct arena scratch, keep;
    bool quiet;        /* the sink wants nothing but `closed` any more */
    uint32_t n_pieces; /* of the answer that came */
    bool broke;        /* it said that it failed, and not because of the request or its load */
};

void event_feed_init(struct event_feed *f, struct sink *s);
void event_feed_fini(struct event_feed *f);
/* All events of one message, until the sink wants no more. */
SHOAL_MUST_CHECK int event_feed_put(struct event_feed *f, const uint8_t *p, size_t n);
void event_feed_fail(struct event_feed *f, const struct failure *why);
/* Whether the sink wants to wait. */
bool event_feed_full(const struct event_feed *f);
/* What came together was put. */
void event_feed_flush(struct event_feed *f);

#endif
