/* dispatch.h - interface for sending requests elsewhere: another node, a worker process.
 *
 * Flow does not know where that is; src/cluster implements this interface. An owner without a
 * dispatch answers everything in this process.
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
    /* True: the request was taken; its events go to the sink as with flow_run. False: it must be
     * answered here, and nothing happened. */
    bool (*run)(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s);
    /* The epoch of new requests; 0: unknown. May be NULL. */
    uint64_t (*epoch)(struct dispatch *d);
};

struct dispatch {
    const struct dispatch_ops *ops;
};

#endif
