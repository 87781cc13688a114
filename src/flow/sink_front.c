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

void sink_front_plan(struct sink *s, const struct sink_plan *e)
{
    struct sink *to = front_of(s)->to;
    to->ops->plan(to, e);
}

void sink_front_prompt(struct sink *s, const struct sink_prompt *e)
{
    sink_tell_prompt(front_of(s)->to, e);
}

void sink_front_call(struct sink *s, const struct sink_call *e)
{
    struct sink *to = front_of(s)->to;
    to->ops->call(to, e);
}

void sink_front_fail(struct sink *s, const struct failure *e)
{
    struct sink *to = front_of(s)->to;
    to->routed = s->routed;
    to->ops->fail(to, e);
}

void sink_front_broke_off(struct sink *s, const struct sink_done *e, int code)
{
    sink_tell_broke_off(front_of(s)->to, e, code);
}

bool sink_front_may_replace(struct sink *s, bool marked)
{
    return sink_may_replace(front_of(s)->to, marked);
}

void sink_front_replace(struct sink *s, const struct sink_replace *e)
{
    struct sink *to = front_of(s)->to;
    to->routed = s->routed;
    to->ops->replace(to, e);
}

void sink_front_flush(struct sink *s)
{
    sink_flush(front_of(s)->to);
}

bool sink_front_full(struct sink *s)
{
    return sink_is_full(front_of(s)->to);
}
