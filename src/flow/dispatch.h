/* dispatch.h - sends requests to where they are answered best: another node, a worker process.
 *
 * Flow does not know where that is: whoever knows (src/cluster) implements this interface.  An
 * owner without a dispatch answers everything here.
 *
 * Thread: the owner's. */
#ifndef SHOAL_FLOW_DISPATCH_H
#define SHOAL_FLOW_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>

struct dispatch;
struct flow_owner;
struct request;
struct sink;

struct dispatch_ops {
    /* True: the request was taken; its events come to the sink as of flow_run.  False: it is to be
     * answered here, and nothing happened. */
    bool (*run)(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s);
    /* The epoch of new requests; 0: none is known.  May be NULL. */
    uint64_t (*epoch)(struct dispatch *d);
};

struct dispatch {
    const struct dispatch_ops *ops;
};

#endif
