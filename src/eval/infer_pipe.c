/* infer_pipe.c - see infer_pipe.h. */
#include "eval/infer_pipe.h"

void infer_pipe_init(struct infer_pipe *p, struct shoal_engine *engine, uint32_t in_flight,
                     int (*take)(void *ctx, void *row, const struct shoal_result *r, struct err *e),
                     void *ctx)
{
    *p = (struct infer_pipe){.engine = engine, .take = take, .ctx = ctx};
    p->in_flight = in_flight == 0 ? 1 : in_flight > INFER_PIPE_MAX ? INFER_PIPE_MAX : in_flight;
}

static int take_oldest(struct infer_pipe *p, struct err *e)
{
    struct shoal_task *t = p->tasks[p->first];
    void *row = p->rows[p->first];
    p->first = (p->first + 1) % INFER_PIPE_MAX;
    p->n--;
    (void)shoal_task_wait(t); /* the result contains the code */
    const struct shoal_result *r = shoal_task_result(t);
    int rc = r->code < 0 ? err_set(e, r->code, "%s", r->message) : p->take(p->ctx, row, r, e);
    shoal_task_free(t);
    return rc;
}

int infer_pipe_put(struct infer_pipe *p, const struct shoal_infer_opts *o, void *row, struct err *e)
{
    int rc = 0;
    while (rc == 0 && p->n >= p->in_flight)
        rc = take_oldest(p, e);
    if (rc < 0)
        return rc;
    uint32_t at = (p->first + p->n) % INFER_PIPE_MAX;
    rc = shoal_infer_submit(p->engine, o, &p->tasks[at], e);
    if (rc < 0)
        return rc;
    p->rows[at] = row;
    p->n++;
    return 0;
}

int infer_pipe_drain(struct infer_pipe *p, struct err *e)
{
    int rc = 0;
    while (rc == 0 && p->n > 0)
        rc = take_oldest(p, e);
    return rc;
}

void infer_pipe_fini(struct infer_pipe *p)
{
    for (; p->n > 0; p->n--, p->first = (p->first + 1) % INFER_PIPE_MAX)
        shoal_task_free(p->tasks[p->first]);
}
