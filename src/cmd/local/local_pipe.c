/* local_pipe.c - see local_pipe.h. */
#include "cmd/local/local_pipe.h"

#include "flow/stages.h"

static struct local_pipe_row *row_of(struct sink *s)
{
    return (struct local_pipe_row *)(void *)s; /* its first member */
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    (void)s;
    (void)e;
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    struct local_pipe *p = row_of(s)->pipe;
    if (p->rc == 0)
        p->rc = p->take(p->ctx, row_of(s)->row, e->result, &p->error);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct local_pipe *p = row_of(s)->pipe;
    if (p->rc == 0)
        p->rc = err_set(&p->error, f->code, "%s", f->message);
}

static void on_closed(struct sink *s)
{
    row_of(s)->closed = true;
}

/* Only the oldest request may deliver its result. */
static bool on_full(struct sink *s)
{
    const struct local_pipe *p = row_of(s)->pipe;
    return s != &p->rows[p->first].sink;
}

void local_pipe_init(struct local_pipe *p, struct local *l, int interrupt_fd,
                     int (*take)(void *ctx, void *row, const struct shoal_result *r, struct err *e),
                     void *ctx)
{
    *p = (struct local_pipe){.local = l, .interrupt_fd = interrupt_fd, .take = take, .ctx = ctx};
}

static void drop_closed(struct local_pipe *p)
{
    while (p->n > 0 && p->rows[p->first].closed) {
        p->first = (p->first + 1) % LOCAL_PIPE_MAX;
        p->n--;
        if (p->n > 0)
            flow_resume(&p->rows[p->first].sink);
    }
}

/* Until at most n requests are in flight. */
static int wait_for(struct local_pipe *p, uint32_t n, struct err *e)
{
    (void)executor_queue_run(&p->local->queue);
    drop_closed(p);
    while (p->rc == 0 && p->n > n) {
        if (local_turn(p->local, p->interrupt_fd))
            p->rc = err_set(&p->error, SHOAL_ECANCELLED, "interrupted");
        drop_closed(p);
    }
    return p->rc < 0 ? err_set(e, p->rc, "%s", p->error.msg) : 0;
}

int local_pipe_put(struct local_pipe *p, struct request *r, void *row, struct err *e)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .result = on_result,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .full = on_full};
    int rc = wait_for(p, LOCAL_PIPE_MAX - 1, e);
    if (rc < 0) {
        flow_give_request(&p->local->owner, r);
        return rc;
    }
    struct local_pipe_row *to = &p->rows[(p->first + p->n) % LOCAL_PIPE_MAX];
    *to = (struct local_pipe_row){.sink = {.ops = &ops}, .pipe = p, .row = row};
    p->n++;
    stages_run(&p->local->owner, r, &to->sink);
    return 0;
}

int local_pipe_drain(struct local_pipe *p, struct err *e)
{
    return wait_for(p, 0, e);
}

void local_pipe_fini(struct local_pipe *p)
{
    if (p->n > 0 && p->rc == 0)
        p->rc = SHOAL_ECANCELLED;
    for (uint32_t i = 0; i < p->n; i++)
        flow_cancel(&p->rows[(p->first + i) % LOCAL_PIPE_MAX].sink);
    for (drop_closed(p); p->n > 0; drop_closed(p))
        (void)local_turn(p->local, -1);
}
