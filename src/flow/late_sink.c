/* late_sink.c - see late_sink.h. */
#include "flow/late_sink.h"

#include "base/thread/executor.h"
#include "flow/sink_front.h"

#define GRACE_NS 100000000u /* for parts that report a missed deadline themselves */

struct late_sink {
    struct sink_front front; /* first */
    struct executor *executor;
    struct executor_timer timer;
};

static struct late_sink *late_of(struct sink *s)
{
    return (struct late_sink *)(void *)s; /* its first member */
}

static void on_late(struct executor_timer *t)
{
    struct late_sink *x = EXECUTOR_OF(t, struct late_sink, timer);
    struct failure f;
    failure_late(&f, false, false, "the deadline passed before the answer was complete");
    sink_front_fail(&x->front.sink, &f);
    flow_cancel(&x->front.sink); /* x may be gone */
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    struct late_sink *x = late_of(s);
    if (e->last)
        executor_timer_clear(x->executor, &x->timer);
    sink_front_result(s, e);
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    struct late_sink *x = late_of(s);
    if (e->last)
        executor_timer_clear(x->executor, &x->timer);
    sink_front_done(s, e);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct late_sink *x = late_of(s);
    executor_timer_clear(x->executor, &x->timer);
    sink_front_fail(s, f);
}

static void on_closed(struct sink *s)
{
    struct late_sink *x = late_of(s);
    executor_timer_clear(x->executor, &x->timer);
    sink_front_close(&x->front);
}

bool late_sink_take(struct flow_owner *o, struct request *r, struct sink *s)
{
    static const struct sink_ops ops = {.start = sink_front_start,
                                        .plan = sink_front_plan,
                                        .prompt = sink_front_prompt,
                                        .token = sink_front_token,
                                        .call = sink_front_call,
                                        .result = on_result,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .broke_off = sink_front_broke_off,
                                        .may_replace = sink_front_may_replace,
                                        .replace = sink_front_replace,
                                        .flush = sink_front_flush,
                                        .full = sink_front_full};
    if (r->deadline_ns == 0)
        return false;
    struct late_sink *x = arena_zalloc(&r->arena, sizeof(*x));
    if (!x) {
        flow_refuse_nomem(o, r, s);
        return true;
    }
    x->executor = o->executor;
    x->timer.fn = on_late;
    sink_front_open(&x->front, &ops, s);
    executor_timer_set(o->executor, &x->timer, r->deadline_ns + GRACE_NS);
    request_pass_on(o, r, &x->front.sink);
    return true;
}
