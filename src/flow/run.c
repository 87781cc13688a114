/* run.c - see run.h. */
#include "flow/run.h"

#include "flow/ask_run.h"
#include "flow/dispatch.h"
#include "flow/generate.h"
#include "flow/infer.h"
#include "flow/tokens.h"
#include "host/registry.h"

void flow_run_here(struct flow_owner *o, struct request *r, struct sink *s)
{
    if (r->epoch == 0) {
        uint64_t end;
        registry_get_epoch(o->flow->registry, &r->epoch, &end);
    }
    if (o->apart && o->apart->ops->run(o->apart, o, r, s))
        return;
    switch (r->kind) {
    case REQUEST_GENERATE:
        generate_run(o, r, s);
        break;
    case REQUEST_INFER:
        infer_run(o, r, s);
        break;
    case REQUEST_ASK:
        ask_run(o, r, s);
        break;
    case REQUEST_TOKENS:
        tokens_run(o, r, s);
        break;
    }
}

void flow_run(struct flow_owner *o, struct request *r, struct sink *s)
{
    if (r->has_once_key && o->once && o->once->ops->run(o->once, o, r, s))
        return;
    if (!o->dispatch || !o->dispatch->ops->run(o->dispatch, o, r, s))
        flow_run_here(o, r, s);
}
