/* worker_pb.h - messages between a server and a worker besides requests, typed: the start, and the
 * worker's state (proto/shoal/worker/v1).
 *
 * Thread:    plain data.
 * Ownership: what is read lives in the arena.
 * Failure:   SHOAL_EFORMAT, SHOAL_ENOMEM.  A worker is not trusted: its state is checked. */
#ifndef SHOAL_CLUSTER_WORKER_WORKER_PB_H
#define SHOAL_CLUSTER_WORKER_WORKER_PB_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "host/registry.h"

#define WORKER_PB_MAX_BYTES 16384u /* of a message */

struct worker_start {
    const char *name, *path;
    const char *cache_dir;     /* NULL: the default folder */
    struct registry_spec spec; /* figures alone */
    size_t memory_bytes;
    uint32_t n_links, parent;
    enum log_level log_level;
    enum log_format log_format;
};

struct worker_state {
    enum registry_state state;
    uint32_t progress;
    int code;
    const char *error, *missing; /* "": none */
    struct registry_apart_info info;
    double prefill_ns, token_ns;
};

SHOAL_MUST_CHECK int worker_pb_put_start(struct buf *out, const struct worker_start *s);
SHOAL_MUST_CHECK int worker_pb_read_start(struct worker_start *out, struct arena *a,
                                          const uint8_t *p, size_t n);
SHOAL_MUST_CHECK int worker_pb_put_state(struct buf *out, const struct worker_state *s);
SHOAL_MUST_CHECK int worker_pb_read_state(struct worker_state *out, struct arena *a,
                                          const uint8_t *p, size_t n);

#endif
