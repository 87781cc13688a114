/* infer_pipe.h - many inferences through one engine: some in flight, results in order.
 *
 * Thread:    the caller's; the engine works beside it.
 * Ownership: caller's storage; fini cancels what is left. */
#ifndef SHOAL_EVAL_INFER_PIPE_H
#define SHOAL_EVAL_INFER_PIPE_H

#include "base/err.h"
#include "shoal/shoal.h"

#define INFER_PIPE_MAX 256u

struct infer_pipe {
    struct shoal_engine *engine;
    uint32_t in_flight; /* at most so many at once */
    /* Every result in the order of submission; row is what put was given.  A negative return ends
     * the work and is given back. */
    int (*take)(void *ctx, void *row, const struct shoal_result *r, struct err *e);
    void *ctx;
    struct shoal_task *tasks[INFER_PIPE_MAX];
    void *rows[INFER_PIPE_MAX];
    uint32_t first, n;
};

void infer_pipe_init(struct infer_pipe *p, struct shoal_engine *engine, uint32_t in_flight,
                     int (*take)(void *ctx, void *row, const struct shoal_result *r, struct err *e),
                     void *ctx);
/* Submits; takes the oldest results first while the pipe is full. */
SHOAL_MUST_CHECK int infer_pipe_put(struct infer_pipe *p, const struct shoal_infer_opts *o,
                                    void *row, struct err *e);
/* Takes all that are left. */
SHOAL_MUST_CHECK int infer_pipe_drain(struct infer_pipe *p, struct err *e);
void infer_pipe_fini(struct infer_pipe *p);

#endif
