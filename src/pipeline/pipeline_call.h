/* pipeline_call.h - interface for external calls of a flow: HTTP, MQTT, commands, plug-ins.
 *
 * src/site/deeds implements it.
 *
 * Thread:    run and done: the owner's.
 * Ownership: the call and its texts stay until done was called. */
#ifndef SHOAL_PIPELINE_PIPELINE_CALL_H
#define SHOAL_PIPELINE_PIPELINE_CALL_H

#include "base/buf.h"
#include "flow/flow.h"
#include "pipeline/graph/graph.h"

struct pipeline_outside;

struct pipeline_call {
    struct flow_owner *owner;
    const struct graph_call *how;
    const char *url, *topic, *payload; /* what `how` needs; otherwise NULL */
    size_t payload_bytes;
    char *const *argv; /* NULL after the last; otherwise NULL */
    uint64_t deadline_ns;
    char key[80]; /* the same for all attempts: an idempotency key */
    /* Called once. code 0: `answer` and `status` are set; otherwise message has the reason. */
    void (*done)(struct pipeline_call *c, int code, const char *message);
    void *ctx; /* the caller's */
    /* results */
    struct buf answer; /* the implementation inits it, the caller frees it */
    int status;
};

struct pipeline_outside_ops {
    /* done is called later, or before this returns. */
    void (*run)(struct pipeline_outside *o, struct pipeline_call *c);
};

struct pipeline_outside {
    const struct pipeline_outside_ops *ops;
};

#endif
