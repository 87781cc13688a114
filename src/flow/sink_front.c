/* sink_front.c - see sink_front.h. */
#include "flow/sink_front.h"

#include "base/thread/executor.h"

static struct sink_front *front_of(struct sink *s)
{
    return EXECUTOR_OF(s, struct sink_front, sink);
}

static void on_cancel(struct flow_job *j)
{
    flow_cancel(&EXECUTOR_OF(j, struct sink_front, job)->sink);
}

static void on_resume(struct flow_job *j)
{
    flow_resume(&EXECUTOR_OF(j, struct sink_front, job)->sink);
}

void sink_front_open(struct sink_front *f, const struct sink_ops *ops, struct sink *to)
{
    static const struct flow_job_ops job_ops = {on_cancel, on_resume};
    *f = (struct sink_front){.sink.ops = ops, .job.ops = &job_ops, .to = to};
    to->job = &f->job;
}

void sink_front_close(struct sink_front *f)
{
    f->to->job = NULL;
    f->to->ops->closed(f->to);
}

void sink_front_prompt(struct sink *s, const struct sink_prompt *e)
{
    struct sink *to = front_of(s)->to;
    if (to->ops->prompt)
        to->ops->prompt(to, e);
}

void sink_front_fail(struct sink *s, const struct failure *e)
{
    struct sink *to = front_of(s)->to;
    to->routed = s->routed;
    to->ops->fail(to, e);
}

void sink_front_broke_off(struct sink *s, const struct sink_done *e, int code)
{
    struct sink *to = front_of(s)->to;
    if (to->ops->broke_off)
        to->ops->broke_off(to, e, code);
}

void sink_front_flush(struct sink *s)
{
    struct sink *to = front_of(s)->to;
    if (to->ops->flush)
        to->ops->flush(to);
}

bool sink_front_full(struct sink *s)
{
    struct sink *to = front_of(s)->to;
    return to->ops->full && to->ops->full(to);
}
