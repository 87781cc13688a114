/* sink_front.h - a sink that wraps another one and changes some of its events.
 *
 * To make one, put a struct sink_front first in your own struct, give its operations,
 * and takes from here the events that it passes on as they are.  The sink behind sees the front's
 * job, so that cancelling and resuming reach the request.
 *
 * Thread:    the owner's (flow.h).
 * Ownership: in the arena of the request; until closed. */
#ifndef SHOAL_FLOW_SINK_FRONT_H
#define SHOAL_FLOW_SINK_FRONT_H

#include "flow/flow.h"
#include "flow/sink.h"

struct sink_front {
    struct sink sink; /* first */
    struct flow_job job;
    struct sink *to;
};

/* From now on events reach `to` through the front. */
void sink_front_open(struct sink_front *f, const struct sink_ops *ops, struct sink *to);
/* Passes closed on, which frees the front. */
void sink_front_close(struct sink_front *f);

/* Events that are passed on, with the route chosen so far. */
void sink_front_plan(struct sink *s, const struct sink_plan *e);
void sink_front_prompt(struct sink *s, const struct sink_prompt *e);
void sink_front_call(struct sink *s, const struct sink_call *e);
void sink_front_fail(struct sink *s, const struct failure *e);
void sink_front_broke_off(struct sink *s, const struct sink_done *e, int code);
bool sink_front_may_replace(struct sink *s, bool marked);
void sink_front_replace(struct sink *s, const struct sink_replace *e);
void sink_front_flush(struct sink *s);
bool sink_front_full(struct sink *s);

#endif
