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

void sink_front_init(struct sink_front *f, const struct sink_ops *ops, struct sink *to)
{
    static const struct flow_job_ops job_ops = {on_cancel, on_resume};
    *f = (struct sink_front){.sink = {.ops = ops, .routed = to->routed, .stages = to->stages},
                             .job.ops = &job_ops,
                             .to = to};
}

void sink_front_open(struct sink_front *f, const struct sink_ops *ops, struct sink *to)
{
    sink_front_init(f, ops, to);
    to->job = &f->job;
}

void sink_front_close(struct sink_front *f)
{
    f->to->job = NULL;
    f->to->ops->closed(f->to);
}

/* ---- a start that is held back ---- */

void sink_front_hold(struct sink_front *f, const struct sink_start *e,
                     const struct routing_choice *routed)
{
    f->start = *e;
    f->routed = routed;
    f->holds = true;
}

static void pass_start(struct sink_front *f, const struct sink_start *e,
                       const struct routing_choice *routed)
{
    f->started = true;
    f->holds = false;
    f->to->routed = routed;
    f->to->ops->start(f->to, e);
}

struct sink *sink_front_behind(struct sink *s)
{
    struct sink_front *f = front_of(s);
    if (f->holds)
        pass_start(f, &f->start, f->routed);
    return f->to;
}

/* ---- events ---- */

void sink_front_start(struct sink *s, const struct sink_start *e)
{
    pass_start(front_of(s), e, s->routed);
}

void sink_front_plan(struct sink *s, const struct sink_plan *e)
{
    struct sink *to = sink_front_behind(s);
    to->ops->plan(to, e);
}

void sink_front_prompt(struct sink *s, const struct sink_prompt *e)
{
    sink_tell_prompt(sink_front_behind(s), e);
}

void sink_front_token(struct sink *s, const struct sink_token *e)
{
    struct sink *to = sink_front_behind(s);
    to->ops->token(to, e);
}

void sink_front_call(struct sink *s, const struct sink_call *e)
{
    struct sink *to = sink_front_behind(s);
    to->ops->call(to, e);
}

void sink_front_result(struct sink *s, const struct sink_result *e)
{
    struct sink *to = sink_front_behind(s);
    to->ops->result(to, e);
}

void sink_front_done(struct sink *s, const struct sink_done *e)
{
    struct sink *to = sink_front_behind(s);
    to->routed = s->routed;
    to->ops->done(to, e);
}

void sink_front_fail(struct sink *s, const struct failure *e)
{
    struct sink *to = sink_front_behind(s);
    to->routed = s->routed;
    to->ops->fail(to, e);
}

void sink_front_broke_off(struct sink *s, const struct sink_done *e, int code)
{
    sink_tell_broke_off(sink_front_behind(s), e, code);
}

bool sink_front_may_replace(struct sink *s, bool marked)
{
    return sink_may_replace(front_of(s)->to, marked);
}

void sink_front_replace(struct sink *s, const struct sink_replace *e)
{
    struct sink *to = sink_front_behind(s);
    to->routed = s->routed;
    to->ops->replace(to, e);
}

void sink_front_flush(struct sink *s)
{
    if (!front_of(s)->holds)
        sink_flush(front_of(s)->to);
}

bool sink_front_full(struct sink *s)
{
    return sink_is_full(front_of(s)->to);
}
