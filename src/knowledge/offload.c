/* offload.c - see offload.h. */
#include "knowledge/offload.h"

static void come_back(struct executor_task *t)
{
    struct offload *o = EXECUTOR_OF(t, struct offload, back);
    o->owner->n_jobs--;
    o->then(o->ctx);
}

static void on_pool(struct pool_task *t)
{
    struct offload *o = EXECUTOR_OF(t, struct offload, task);
    o->work(o->ctx);
    executor_post(o->owner->executor, &o->back);
}

int offload_run(struct offload *o, struct flow_owner *owner)
{
    o->owner = owner;
    o->task = (struct pool_task){.fn = on_pool};
    o->back = (struct executor_task){.fn = come_back};
    owner->n_jobs++; /* an owner that ends waits for it */
    if (!owner->flow->pool) {
        on_pool(&o->task);
        return 0;
    }
    int rc = pool_submit(owner->flow->pool, &o->task);
    if (rc < 0)
        owner->n_jobs--;
    return rc;
}
