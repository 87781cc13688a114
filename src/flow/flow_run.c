/* flow_run.c - see flow_run.h. */
#include "flow/flow_run.h"

#include <string.h>

#include "flow/app.h"
#include "flow/dispatch.h"
#include "flow/generate/generate.h"
#include "flow/infer.h"
#include "flow/tokens.h"
#include "host/registry.h"

static void stamp_here(struct flow_owner *o, struct request *r)
{
    uint64_t end;
    if (r->epoch == 0 && o->flow->registry)
        registry_get_epoch(o->flow->registry, &r->epoch, &end);
}

void flow_stamp(struct flow_owner *o, struct request *r)
{
    struct dispatch *d = r->here ? NULL : o->dispatch;
    uint64_t now, end = 0;
    if (r->epoch == 0 && d && d->ops->epoch)
        r->epoch = d->ops->epoch(d);
    stamp_here(o, r);
    if (r->epoch == 0 && o->flow->registry) {
        registry_get_epoch(o->flow->registry, &now, &end);
        r->epoch = end > REGISTRY_FIRST_EPOCH ? REGISTRY_FIRST_EPOCH : 0; /* not the next one */
    }
    flow_hold_epoch(o, r);
}

static void run_app(struct flow_owner *o, struct request *r, struct sink *s)
{
    struct app *a = o->flow->app;
    struct failure f;
    if (a) {
        a->run(a, o, r, s);
        return;
    }
    failure_set(&f, FAILURE_NOT_FOUND, SHOAL_ENOTFOUND, NULL, "model_not_found",
                "there is no application here that answers commands");
    flow_refuse(o, r, s, &f);
}

void flow_run_here(struct flow_owner *o, struct request *r, struct sink *s)
{
    stamp_here(o, r);
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
        run_app(o, r, s);
        break;
    case REQUEST_TOKENS:
        tokens_run(o, r, s);
        break;
    }
}

size_t flow_name_bytes(const struct flow *f, const char *name)
{
    static const char suffix[] = ":latest";
    enum registry_state state;
    size_t n = strlen(name), k = sizeof(suffix) - 1;
    if (n <= k || strcmp(name + n - k, suffix) != 0 || registry_state(f->registry, name, &state))
        return n;
    return n - k;
}

void flow_resolve_name(const struct flow_owner *o, struct request *r)
{
    enum registry_state state;
    char tagged[256];
    size_t n = r->model ? flow_name_bytes(o->flow, r->model) : 0;
    if (n > 0 && r->model[n])
        r->model = request_copy(r, r->model, n);
    else if (n > 0 && o->flow->registry && !strchr(r->model, ':') &&
             !registry_state(o->flow->registry, r->model, &state) &&
             registry_find_tagged(o->flow->registry, r->model, tagged, sizeof(tagged)))
        r->model = request_copy(r, tagged, strlen(tagged));
}

/* Names that clients send to servers of one model, whatever it is: that of Text Generation
 * Inference, and the one of whoever has no better. */
static bool is_any_name(const char *name)
{
    return strcmp(name, "tgi") == 0 || strcmp(name, "default") == 0;
}

/* Only for clients of this server: other nodes request models by exact name.
 */
static void take_any_model(const struct flow_owner *o, struct request *r)
{
    enum registry_state state;
    if (r->model && (o->any_model || is_any_name(r->model)) && !o->dispatch && !r->version &&
        r->kind != REQUEST_ASK && !registry_state(o->flow->registry, r->model, &state))
        r->model = NULL;
}

bool flow_place(struct flow_owner *o, struct request *r, struct sink *s)
{
    flow_resolve_name(o, r);
    take_any_model(o, r);
    if (r->has_once_key && o->once && o->once->ops->run(o->once, o, r, s))
        return true;
    return !r->here && o->dispatch && o->dispatch->ops->run(o->dispatch, o, r, s);
}

void flow_run(struct flow_owner *o, struct request *r, struct sink *s)
{
    if (!flow_place(o, r, s))
        flow_run_here(o, r, s);
}
