/* dispatch.h - interface of what may take a request instead of this process's models: another node,
 * a worker process, a flow of the configuration, a cache, a conversation.
 *
 * Flow does not know what that is; the folders above implement it.
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
     * answered otherwise, and nothing happened. */
    bool (*run)(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s);
    /* The epoch of new requests; 0: unknown. May be NULL. */
    uint64_t (*epoch)(struct dispatch *d);
};

struct dispatch {
    const struct dispatch_ops *ops;
};

#endif
