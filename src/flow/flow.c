/* flow.c - see flow.h. */
#include "flow/flow.h"

#include <string.h>

#include "base/mem.h"
#include "host/registry.h"

#define MAX_HELD_TASKS 16u /* more do not wait for the turn to end */

/* ---- objects that are used again ---- */

void *flow_take(struct flow_spares *s, size_t bytes)
{
    return s->n > 0 ? memset(s->list[--s->n], 0, bytes) : mem_zalloc(bytes);
}

void flow_give(struct flow_spares *s, void *p)
{
    if (s->n != FLOW_MAX_SPARES)
        s->list[s->n++] = p;
    else
        mem_free(p);
}

static void free_spares(struct flow_spares *s)
{
    while (s->n > 0)
        mem_free(s->list[--s->n]);
}

struct request *flow_take_request(struct flow_owner *o)
{
    return o->requests.n > 0 ? o->requests.list[--o->requests.n] : request_create();
}

static void release_epoch(struct flow_owner *o, struct request *r)
{
    if (r->held_epoch)
        registry_release_epoch(o->flow->registry, r->held_epoch);
    r->held_epoch = 0;
}

void flow_hold_epoch(struct flow_owner *o, struct request *r)
{
    if (r->held_epoch == r->epoch || !o->flow->registry)
        return;
    release_epoch(o, r);
    if (r->epoch && registry_hold_epoch(o->flow->registry, r->epoch))
        r->held_epoch = r->epoch;
}

void flow_give_request(struct flow_owner *o, struct request *r)
{
    release_epoch(o, r);
    if (o->requests.n == FLOW_MAX_SPARES) {
        request_destroy(r);
        return;
    }
    request_reset(r);
    o->requests.list[o->requests.n++] = r;
}

void flow_refuse(struct flow_owner *o, struct request *r, struct sink *s, const struct failure *f)
{
    s->job = NULL;
    s->ops->fail(s, f);
    s->ops->closed(s);
    flow_give_request(o, r);
}

void flow_refuse_nomem(struct flow_owner *o, struct request *r, struct sink *s)
{
    struct failure f;
    failure_of(&f, SHOAL_ENOMEM, "out of memory");
    s->ops->fail(s, &f);
    s->ops->closed(s);
    if (r)
        flow_give_request(o, r);
}

/* ---- waking engines ---- */

void flow_wake(struct flow_owner *o)
{
    for (uint32_t i = 0; i < o->n_to_wake; i++) {
        shoal_engine_wake(registry_engine(o->to_wake[i]));
        registry_put(o->to_wake[i]);
    }
    o->n_to_wake = o->n_held_tasks = 0;
}

static void on_turn_end(struct executor_task *t)
{
    flow_wake(EXECUTOR_OF(t, struct flow_owner, wake_engines));
}

void flow_wake_later(struct flow_owner *o, struct registry_model *m)
{
    uint32_t i = 0;
    while (i < o->n_to_wake && o->to_wake[i] != m)
        i++;
    if (i == FLOW_MAX_WAKES) {
        shoal_engine_wake(registry_engine(m));
        return;
    }
    if (i == o->n_to_wake) {
        registry_hold(m); /* its task may end before the wake */
        o->to_wake[o->n_to_wake++] = m;
    }
    if (++o->n_held_tasks >= MAX_HELD_TASKS)
        flow_wake(o);
    else
        executor_later(o->executor, &o->wake_engines);
}

/* ---- owners and jobs ---- */

void flow_owner_init(struct flow_owner *o, const struct flow *flow, struct executor *executor)
{
    *o = (struct flow_owner){.flow = flow, .executor = executor};
    o->wake_engines.fn = on_turn_end;
}

void flow_owner_fini(struct flow_owner *o)
{
    free_spares(&o->generations);
    free_spares(&o->inferences);
    free_spares(&o->asks);
    while (o->requests.n > 0)
        request_destroy(o->requests.list[--o->requests.n]);
}

void flow_cancel(struct sink *s)
{
    if (s->job)
        s->job->ops->cancel(s->job);
}

void flow_resume(struct sink *s)
{
    if (s->job)
        s->job->ops->resume(s->job);
}
