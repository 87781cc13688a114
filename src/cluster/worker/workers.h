/* workers.h - the worker processes of a server: starts them for the registry, watches them, ends
 * them, and gives every event loop its connections to them (worker_links.h).
 *
 * A worker is the same program, started as `shoal worker`, with one model. It is not trusted: a
 * model file may have taken it over. It has a control socket, on which it sends its state several
 * times a second, and for every event loop a socket for requests and a ring for events. A worker
 * that ends, is silent, or sends invalid data is killed; the registry restarts it.
 *
 * Thread:    any; one thread of its own watches.
 * Ownership: the registry is destroyed before the workers, loops leave before that.
 * Failure:   a worker that cannot be started, or ends, fails only its model. */
#ifndef SHOAL_CLUSTER_WORKER_WORKERS_H
#define SHOAL_CLUSTER_WORKER_WORKERS_H

#include "base/thread/executor.h"
#include "host/registry.h"

#define WORKERS_MAX_LOOPS 64u

struct workers;

struct workers_opts {
    const char *program; /* NULL: this program */
    uint32_t silent_ms;  /* a worker silent for this long is killed; 0: 5000 */
    size_t ring_bytes;   /* for each worker and loop; 0: 256 KiB */
};

/* A loop's connection to a worker; the receiver owns the descriptors. */
struct workers_conn {
    uint64_t serial; /* serial of the registry's slot */
    uint64_t family; /* as in the slot: workers of one family run the same bytes */
    char name[128];  /* of the model */
    int sock, ring_fd, wake_fd;
};

void workers_conn_close(struct workers_conn *c);

SHOAL_MUST_CHECK int workers_create(struct workers **out, const struct workers_opts *o,
                                    struct err *e);
/* The server stops: its loops will close their connections, and a worker that ends then is not
 * lost. NULL is fine. */
void workers_release(struct workers *w);
void workers_destroy(struct workers *w); /* NULL is fine */
/* For registry_opts. */
const struct registry_apart *workers_apart(struct workers *w);
/* Before the first model is added. */
void workers_set_registry(struct workers *w, struct registry *r);

/* Adds an event loop: task is posted to it whenever there are connections to take. Before the first
 * model is added. */
SHOAL_MUST_CHECK int workers_join(struct workers *w, struct executor *x, struct executor_task *task,
                                  uint32_t *out_loop, struct err *e);
void workers_leave(struct workers *w, uint32_t loop);
/* The next connection of this loop; false: none. */
bool workers_take(struct workers *w, uint32_t loop, struct workers_conn *out);

#endif
