/* pipeline_call.h - how a flow reaches the outside: HTTP, MQTT, commands, plug-ins.
 *
 * The pipeline does not know how: whoever knows (src/gateway/deeds) implements this interface.
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
    char *const *argv; /* NULL behind the last; otherwise NULL */
    uint64_t deadline_ns;
    char key[80]; /* the same for all attempts: an idempotency key */
    /* Once.  code 0: `answer` and `status` are set; otherwise message says why. */
    void (*done)(struct pipeline_call *c, int code, const char *message);
    void *ctx; /* the caller's */
    /* results */
    struct buf answer; /* the implementation inits it, the caller frees it */
    int status;
};

struct pipeline_outside_ops {
    /* done comes later, or before this returns. */
    void (*run)(struct pipeline_outside *o, struct pipeline_call *c);
};

struct pipeline_outside {
    const struct pipeline_outside_ops *ops;
};

#endif
