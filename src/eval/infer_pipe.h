/* infer_pipe.h - many inferences through one engine: several in flight, results in order.
 *
 * Thread:    the caller's; the engine works in parallel.
 * Ownership: caller's storage; fini cancels what is left. */
#ifndef SHOAL_EVAL_INFER_PIPE_H
#define SHOAL_EVAL_INFER_PIPE_H

#include "base/err.h"
#include "shoal/shoal.h"

#define INFER_PIPE_MAX 256u

struct infer_pipe {
    struct shoal_engine *engine;
    uint32_t in_flight; /* maximum number in flight */
    /* Called for every result in order of submission, with the row given to put.  A negative
     * return ends the work and is passed on. */
    int (*take)(void *ctx, void *row, const struct shoal_result *r, struct err *e);
    void *ctx;
    struct shoal_task *tasks[INFER_PIPE_MAX];
    void *rows[INFER_PIPE_MAX];
    uint32_t first, n;
};

void infer_pipe_init(struct infer_pipe *p, struct shoal_engine *engine, uint32_t in_flight,
                     int (*take)(void *ctx, void *row, const struct shoal_result *r, struct err *e),
                     void *ctx);
/* Submits a row; first takes the oldest results while the pipe is full. */
SHOAL_MUST_CHECK int infer_pipe_put(struct infer_pipe *p, const struct shoal_infer_opts *o,
                                    void *row, struct err *e);
/* Takes all remaining results. */
SHOAL_MUST_CHECK int infer_pipe_drain(struct infer_pipe *p, struct err *e);
void infer_pipe_fini(struct infer_pipe *p);

#endif
