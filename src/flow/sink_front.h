/* sink_front.h - a sink that wraps another one and changes some of its events.
 *
 * To make one, put a struct sink_front into your own struct, give its operations, and take from
 * here those for events that are passed on as they are.  The sink behind sees the front's job, so
 * that cancelling and resuming reach the request.
 *
 * A front that may have to try again holds the start back: it is passed on with the next event.
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
    bool started; /* it was passed on */
    /* private: a start that is held back */
    bool holds;
    struct sink_start start;
    const struct routing_choice *routed;
};

/* The route chosen so far, and the stages, are those of `to`. */
void sink_front_init(struct sink_front *f, const struct sink_ops *ops, struct sink *to);
/* The same, and from now on `to` has the front's job. */
void sink_front_open(struct sink_front *f, const struct sink_ops *ops, struct sink *to);
/* Passes closed on, which frees the front. */
void sink_front_close(struct sink_front *f);

/* Holds a start back; what it points to must stay.  A later one replaces it. */
void sink_front_hold(struct sink_front *f, const struct sink_start *e,
                     const struct routing_choice *routed);
/* The sink behind, which has got the start that was held back. */
struct sink *sink_front_behind(struct sink *s);

/* Events that are passed on, with the route chosen so far. */
void sink_front_start(struct sink *s, const struct sink_start *e);
void sink_front_plan(struct sink *s, const struct sink_plan *e);
void sink_front_prompt(struct sink *s, const struct sink_prompt *e);
void sink_front_token(struct sink *s, const struct sink_token *e);
void sink_front_call(struct sink *s, const struct sink_call *e);
void sink_front_result(struct sink *s, const struct sink_result *e);
void sink_front_done(struct sink *s, const struct sink_done *e);
void sink_front_fail(struct sink *s, const struct failure *e);
void sink_front_broke_off(struct sink *s, const struct sink_done *e, int code);
bool sink_front_may_replace(struct sink *s, bool marked);
void sink_front_replace(struct sink *s, const struct sink_replace *e);
void sink_front_flush(struct sink *s); /* nothing, while a start is held back */
bool sink_front_full(struct sink *s);

#endif
