/* eval_run.c - running the rows of an evaluation; see eval.h. */
#include <stdio.h>

#include "eval/eval.h"
#include "eval/infer_pipe.h"

struct running {
    struct eval *ev;
    int (*take)(void *ctx, size_t i, const struct shoal_result *r, struct err *e);
    void *ctx;
};

static int take_one(void *ctx, void *row, const struct shoal_result *r, struct err *e)
{
    struct running *x = ctx;
    if (x->ev->latency_ms)
        x->ev->latency_ms[x->ev->n_latencies++] = (double)r->total_ns / 1e6;
    return x->take(x->ctx, (size_t)(uintptr_t)row, r, e);
}

int eval_progress(const struct eval *ev, double part, struct err *e)
{
    return ev->progress && ev->progress(ev->progress_ctx, part)
               ? err_set(e, SHOAL_ECANCELLED, "interrupted")
               : 0;
}

int eval_run(struct eval *ev,
             int (*make)(void *ctx, size_t i, struct shoal_infer_opts *o, struct err *e),
             int (*take)(void *ctx, size_t i, const struct shoal_result *r, struct err *e),
             void *ctx, size_t n, struct err *e)
{
    struct running x = {ev, take, ctx};
    struct infer_pipe pipe;
    int rc = 0;
    infer_pipe_init(&pipe, ev->engine, ev->in_flight, take_one, &x);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct shoal_infer_opts o = {.size = sizeof(o), .labels = ev->labels};
        rc = make(ctx, i, &o, e);
        if (rc == 0)
            rc = infer_pipe_put(&pipe, &o, (void *)(uintptr_t)i, e);
        if (rc == 0)
            rc = eval_progress(ev, (double)i / (double)n, e);
    }
    if (rc == 0)
        rc = infer_pipe_drain(&pipe, e);
    infer_pipe_fini(&pipe);
    return rc;
}

void eval_figure(struct json_out *j, struct buf *text, const char *key, double value,
                 const char *fmt)
{
    char shown[64];
    json_out_member_num(j, key, value);
    snprintf(shown, sizeof(shown), fmt, value);
    buf_printf(text, "  %-20s %s\n", key, shown);
}
