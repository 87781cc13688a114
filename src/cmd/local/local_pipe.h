/* local_pipe.h - many requests to a specialist: several in flight, results in order.
 *
 * Thread:    the main thread; the engine works in parallel.
 * Ownership: init/fini over the caller's storage; fini cancels what is left.
 * Failure:   the first failure ends the work; put and drain return it. */
#ifndef SHOAL_CMD_LOCAL_LOCAL_PIPE_H
#define SHOAL_CMD_LOCAL_LOCAL_PIPE_H

#include "cmd/local/local.h"

#define LOCAL_PIPE_MAX 64u /* requests in flight */

struct local_pipe;

struct local_pipe_row {
    struct sink sink;
    struct local_pipe *pipe;
    void *row;
    bool closed;
};

struct local_pipe {
    struct local *local;
    int interrupt_fd;
    /* Called for every result in order of put, with its row. The request's arena is still valid. A
     * negative return ends the work. */
    int (*take)(void *ctx, void *row, const struct shoal_result *r, struct err *e);
    void *ctx;
    /* private */
    struct local_pipe_row rows[LOCAL_PIPE_MAX];
    uint32_t first, n;
    int rc;
    struct err error;
};

/* interrupt_fd: as of term_catch_interrupt; Ctrl-C then ends the work with SHOAL_ECANCELLED. */
void local_pipe_init(struct local_pipe *p, struct local *l, int interrupt_fd,
                     int (*take)(void *ctx, void *row, const struct shoal_result *r, struct err *e),
                     void *ctx);
/* Takes the request, of kind REQUEST_INFER with one input; first waits while the pipe is full. */
SHOAL_MUST_CHECK int local_pipe_put(struct local_pipe *p, struct request *r, void *row,
                                    struct err *e);
/* Waits for all results. */
SHOAL_MUST_CHECK int local_pipe_drain(struct local_pipe *p, struct err *e);
void local_pipe_fini(struct local_pipe *p);

#endif
