/* replica_local.c - see replica_local.h. */
#include "cluster/replica_local.h"

#include "flow/flow_run.h"

static void run(struct replica *p, struct flow_owner *o, const struct request *r, struct sink *s)
{
    struct request *mine = flow_take_request(o);
    (void)p;
    if (mine) {
        request_borrow(mine, r); /* which outlives it */
        flow_run_here(o, mine, s);
        return;
    }
    flow_refuse_nomem(o, NULL, s);
}

void replica_local_init(struct replica *p)
{
    static const struct replica_ops ops = {.run = run};
    *p = (struct replica){.ops = &ops, .name = "here"};
}
