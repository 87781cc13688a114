/* event_pb.h - events of a request (flow/sink.h) to the bytes of shoal.node.v1.RunEvents and back.
 *
 * A message is a list of events; the encodings of its events, one after the other, are the message.
 *
 * Thread:    no state.
 * Ownership: what is read lives in the two arenas: results and plans in `keep`, everything else in
 *            `scratch`.
 * Failure:   put: sticky in the buffer. read: SHOAL_EFORMAT, SHOAL_ENOMEM. Only the encoding is
 *            checked here; the reader checks that events fit the request. */
#ifndef SHOAL_CLUSTER_MESSAGES_EVENT_PB_H
#define SHOAL_CLUSTER_MESSAGES_EVENT_PB_H

#include "base/arena.h"
#include "base/buf.h"
#include "flow/sink.h"

void event_pb_put_start(struct buf *out, const struct sink_start *e);
void event_pb_put_plan(struct buf *out, const struct sink_plan *e);
void event_pb_put_prompt(struct buf *out, const struct sink_prompt *e);
void event_pb_put_token(struct buf *out, const struct sink_token *e);
void event_pb_put_result(struct buf *out, const struct sink_result *e);
void event_pb_put_done(struct buf *out, const struct sink_done *e);
void event_pb_put_failure(struct buf *out, const struct failure *f);

enum event_pb_kind {
    EVENT_PB_START,
    EVENT_PB_PLAN,
    EVENT_PB_PROMPT,
    EVENT_PB_TOKEN,
    EVENT_PB_RESULT,
    EVENT_PB_DONE,
    EVENT_PB_FAILURE
};

struct event_pb {
    enum event_pb_kind kind;
    union {
        struct sink_start start;
        struct sink_plan plan;
        struct sink_prompt prompt;
        struct sink_token token;
        struct sink_result result;
        struct sink_done done; /* without usage */
        struct failure failure;
    };
};

struct event_pb_list {
    const void *message;
    size_t n;
    struct arena *scratch, *keep;
};

SHOAL_MUST_CHECK int event_pb_open(struct event_pb_list *l, const uint8_t *p, size_t n,
                                   struct arena *scratch, struct arena *keep);
/* Event i, i < l->n. */
SHOAL_MUST_CHECK int event_pb_get(struct event_pb *out, const struct event_pb_list *l, size_t i);

#endif
