/* routing.c - see routing.h. */
#include "flow/routing.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "engine/estimate.h"
#include "flow/dispatch.h"
#include "flow/panel/panel_run.h"
#include "flow/privacy/privacy_run.h"
#include "flow/flow_run.h"
#include "host/registry.h"

#define MAX_CLASSIFY_BYTES 2048u /* of a text that the router model reads */
#define LOADING_NS 2000000000.0  /* a model that must be loaded first */
#define MAX_LABEL_BYTES 64u
#define LOOK_AGAIN_NS 20000000u         /* polling interval for nodes that were not heard yet */
#define MAX_UNSETTLED_NS 10000000000ull /* longest wait of a request for them */

/* A request while the router model reads it; in its arena. */
struct routing {
    struct flow_job job; /* first */
    struct sink inner;
    struct flow_owner *owner;
    struct request *request;
    struct sink *sink;
    bool cancelled;
    char label[MAX_LABEL_BYTES];
    double p;
};

/* A request that waits for nodes that were not heard yet; in its arena. */
struct unsettled {
    struct flow_job job; /* first */
    struct executor_timer timer;
    struct flow_owner *owner;
    struct request *request;
    struct sink *sink;
    const char *domain;
    double p;
    uint64_t until_ns;
};

/* ---- what is known ---- */

static unsigned kind_of(const struct request *r)
{
    return r->kind == REQUEST_INFER    ? (unsigned)r->infer.kind
           : r->kind == REQUEST_TOKENS ? (unsigned)request_tokens_kind(&r->tokens)
                                       : SHOAL_KIND_GENERATE;
}

/* The text that describes the request. */
static const char *text_of(const struct request *r, size_t *n)
{
    const struct request_generate *g = &r->generate;
    const char *text = NULL;
    *n = 0;
    if (r->kind == REQUEST_GENERATE && g->chat.n_messages > 0) {
        const struct chat_message *last = &g->chat.messages[g->chat.n_messages - 1];
        text = last->content;
        *n = last->content_bytes;
    } else if (r->kind == REQUEST_GENERATE && g->n_prompts > 0) {
        text = g->prompts[0].text;
        *n = g->prompts[0].text_bytes;
    } else if (r->kind == REQUEST_INFER && r->infer.n_inputs > 0) {
        text = r->infer.query ? r->infer.query : r->infer.inputs[0].text;
        *n = r->infer.query ? strlen(r->infer.query) : r->infer.inputs[0].text_bytes;
    }
    if (!text)
        *n = 0;
    return text ? text : "";
}

/* The turn of a route. With one counter for all, two routes that are called in turn would always
 * choose the same of two models. */
static uint64_t next_turn(struct flow_turns *t, const char *route)
{
    uint64_t h = hash_bytes(route, strlen(route), 0) | 1u;
    uint32_t at = (uint32_t)(h % FLOW_MAX_TURNS);
    for (uint32_t i = 0; i < FLOW_MAX_TURNS; i++) {
        uint32_t k = (at + i) % FLOW_MAX_TURNS;
        if (t->list[k].route == 0)
            t->list[k].route = h;
        if (t->list[k].route == h)
            return t->list[k].n++;
    }
    return t->list[at].n++;
}

static struct router_request features_of(struct flow_owner *o, const struct router_route *route,
                                         const struct request *r, uint64_t now)
{
    struct router_request q = {.key = request_stay_key(r),
                               .turn = next_turn(&o->turns, route->name)};
    q.facts.text = text_of(r, &q.facts.text_bytes);
    q.facts.path = r->path ? r->path : "";
    q.facts.client = r->client.name;
    q.facts.language = r->language ? r->language : "";
    q.facts.kind = shoal_kind_name((enum shoal_kind)kind_of(r));
    q.facts.tags = r->tags;
    q.facts.n_tags = r->n_tags;
    q.work.prompt_tokens = (uint32_t)(r->input_bytes / REQUEST_TOKEN_BYTES) + 1;
    q.work.specialist = r->kind == REQUEST_INFER;
    if (r->kind == REQUEST_GENERATE) {
        q.work.max_tokens = r->generate.max_tokens;
        q.work.n_answers = r->generate.n;
    }
    if (r->deadline_ns)
        q.budget_ns = r->deadline_ns > now ? (double)(r->deadline_ns - now) : 1;
    return q;
}

/* ---- candidates ---- */

struct gathering {
    const struct router_table *table;
    const struct router_route *route;
    struct arena *arena;
    unsigned kind;
    struct fair_who who;
    struct router_candidate list[ROUTER_MAX_CANDIDATES];
    uint32_t n;
};

/* The data of the route, or the configuration, about a model; NULL: not a candidate. */
static const struct router_model *model_for(struct gathering *g, const char *name)
{
    const struct router_route *r = g->route;
    if (r->n_models > 0)
        return router_model_named(r->models, r->n_models, name);
    const struct router_model *m = router_model_named(g->table->known, g->table->n_known, name);
    if (m)
        return m;
    struct router_model *own = arena_zalloc(g->arena, sizeof(*own));
    if (own)
        own->name = arena_copy(g->arena, name, strlen(name) + 1);
    return own && own->name ? own : NULL;
}

static void add(void *ctx, const char *model, const struct router_candidate *c)
{
    struct gathering *g = ctx;
    if (g->n == ROUTER_MAX_CANDIDATES)
        return;
    const struct router_model *m = model_for(g, model);
    if (!m)
        return;
    g->list[g->n] = *c;
    g->list[g->n++].model = m;
}

static enum router_state state_of(enum registry_state s)
{
    return s == REGISTRY_READY                               ? ROUTER_READY
           : s == REGISTRY_FAILED || s == REGISTRY_UNLOADING ? ROUTER_GONE
                                                             : ROUTER_LOADING;
}

static void add_here(void *ctx, const struct registry_model *m)
{
    struct gathering *g = ctx;
    struct router_candidate c = {.state = state_of(m->slot->state), .context = m->slot->n_ctx};
    if (m->slot->spec.n_parts > 0) /* a route of its own */
        return;
    if (m->slot->base && g->route->n_models == 0) /* used only where it is named */
        return;
    /* its kinds are known once it was loaded */
    if (m->slot->kinds ? !(m->slot->kinds & g->kind) : g->route->n_models == 0)
        return;
    const struct cost_telemetry t = registry_telemetry(m, &g->who);
    c.speed = (struct router_speed){.prefill_ns = t.prefill_ns,
                                    .token_ns = t.token_ns,
                                    .unit_ns = t.unit_ns,
                                    .queue_ns = t.queue_ns,
                                    .load_ns = c.state == ROUTER_LOADING ? LOADING_NS : 0,
                                    .answer_tokens = t.answer_tokens,
                                    .error = t.error,
                                    .in_flight = t.in_flight,
                                    .parallel = t.parallel};
    add(g, m->name, &c);
}

/* ---- the decision ---- */

static const char *keep_text(struct request *r, const char *text)
{
    return text ? request_copy(r, text, strlen(text)) : NULL;
}

static const char *policy_text(struct request *r, const struct router_policy *p)
{
    const char *text = "";
    for (uint32_t i = 0; i < p->n; i++)
        text = arena_printf(&r->arena, "%s%s%s", text, i ? " " : "", router_step_name(p->steps[i]));
    return text;
}

static void explain(struct routing_choice *to, struct request *r, const struct gathering *g,
                    const struct router_request *q, const struct router_decision *d)
{
    struct routing_candidate *list = arena_zalloc_n(&r->arena, d->n, sizeof(*list));
    to->rule = d->rule;
    to->work = q->work;
    to->budget_ns = q->budget_ns;
    to->policy = policy_text(r, &g->route->policy);
    for (uint32_t i = 0; list && i < d->n; i++)
        list[i] = (struct routing_candidate){.model = keep_text(r, g->list[i].model->name),
                                             .node = keep_text(r, g->list[i].node),
                                             .quality = g->list[i].model->quality,
                                             .cost = g->list[i].model->cost,
                                             .estimate = d->estimates[i],
                                             .verdict = d->verdicts[i]};
    to->candidates = list;
    to->n_candidates = list ? d->n : 0;
}

static bool is_settled(const struct flow_owner *o)
{
    return !o->replicas || o->replicas->settled(o->replicas);
}

static void refuse_choice(struct failure *f, const struct request *r,
                          const struct router_decision *d, bool settled)
{
    if (d->n == 0 && !settled) {
        failure_set(f, FAILURE_UNAVAILABLE, SHOAL_EBUSY, "model", "no_model",
                    "no model of the route '%s' can answer yet: still discovering nodes", r->model);
        f->retry_after_s = 2;
    } else if (d->n == 0)
        failure_set(f, FAILURE_NOT_FOUND, SHOAL_ENOTFOUND, "model", "model_not_found",
                    "no model of the route '%s' can %s", r->model,
                    shoal_kind_name((enum shoal_kind)kind_of(r)));
    else if (d->why == ROUTER_TOO_LONG)
        failure_set(f, FAILURE_INVALID, SHOAL_ELIMIT, "model", "context_length_exceeded",
                    "the request is too long for every model of the route '%s'", r->model);
    else {
        failure_set(f, FAILURE_UNAVAILABLE, SHOAL_EBUSY, "model", "no_model",
                    "no model of the route '%s' can answer now: %s", r->model,
                    router_verdict_text(d->why));
        f->retry_after_s = 2;
    }
}

/* The request was decided and is not to be run. */
static void end_dry(struct flow_owner *o, struct request *r, struct sink *s)
{
    const struct sink_done done = {.finish = SHOAL_FINISH_STOP, .last = true};
    s->job = NULL;
    s->ops->done(s, &done);
    s->ops->closed(s);
    flow_give_request(o, r);
}

/* A request with personal data that only this server may see stays here, or leaves without it. */
static void guard(struct request *r, const struct privacy_policy *p, bool outside)
{
    r->leaving = outside ? p : NULL;
    r->here |= p && !outside;
}

static void decide(struct flow_owner *o, const struct router_route *route, struct request *r,
                   struct sink *s, const char *domain, double p, uint64_t until_ns);

static void refuse_no_route(struct flow_owner *o, struct request *r, struct sink *s)
{
    struct failure f;
    failure_set(&f, FAILURE_NOT_FOUND, SHOAL_ENOTFOUND, "model", "model_not_found",
                "the route '%s' no longer exists", r->model);
    flow_refuse(o, r, s, &f);
}

static void on_look_again(struct executor_timer *t)
{
    struct unsettled *u = EXECUTOR_OF(t, struct unsettled, timer);
    struct flow_owner *o = u->owner;
    const struct router_route *route = router_table_find(o->routes, u->request->model);
    u->sink->job = NULL;
    o->n_jobs--;
    if (route)
        decide(o, route, u->request, u->sink, u->domain, u->p, u->until_ns);
    else
        refuse_no_route(o, u->request, u->sink);
}

static void on_unsettled_cancel(struct flow_job *j)
{
    struct unsettled *u = (struct unsettled *)(void *)j;
    struct flow_owner *o = u->owner;
    struct sink *s = u->sink;
    executor_timer_clear(o->executor, &u->timer);
    s->job = NULL;
    o->n_jobs--;
    s->ops->closed(s);
    flow_give_request(o, u->request);
}

static void on_resume(struct flow_job *j)
{
    (void)j;
}

/* Decides again in a moment. False: no time or memory is left. */
static bool wait_for_nodes(struct flow_owner *o, struct request *r, struct sink *s,
                           const char *domain, double p, uint64_t until_ns)
{
    static const struct flow_job_ops ops = {on_unsettled_cancel, on_resume};
    const uint64_t now = clock_ns();
    if (until_ns == 0)
        until_ns = now + MAX_UNSETTLED_NS;
    if (r->deadline_ns && r->deadline_ns < until_ns)
        until_ns = r->deadline_ns;
    struct unsettled *u = now < until_ns ? arena_zalloc(&r->arena, sizeof(*u)) : NULL;
    if (!u)
        return false;
    *u = (struct unsettled){.job = {&ops},
                            .timer = {.fn = on_look_again},
                            .owner = o,
                            .request = r,
                            .sink = s,
                            .domain = keep_text(r, domain),
                            .p = p,
                            .until_ns = until_ns};
    s->job = &u->job;
    o->n_jobs++;
    executor_timer_set(o->executor, &u->timer, now + LOOK_AGAIN_NS);
    return true;
}

/* domain NULL: no domain, or not classified. until_ns: how long it waits for nodes that were not
 * heard yet; 0: it has not waited. */
static void decide(struct flow_owner *o, const struct router_route *route, struct request *r,
                   struct sink *s, const char *domain, double p, uint64_t until_ns)
{
    uint64_t now = clock_ns();
    struct router_request q = features_of(o, route, r, now);
    struct gathering g = {.table = o->routes,
                          .route = route,
                          .arena = &r->arena,
                          .kind = kind_of(r),
                          .who = request_who(r)};
    const struct privacy_policy *privacy = privacy_policy_of(o, r); /* of the route */
    struct router_decision d;
    struct failure f;
    q.domain = domain;
    q.domain_p = p;
    registry_each(o->flow->registry, add_here, &g);
    if (o->replicas)
        o->replicas->each(o->replicas, r, g.kind, add, &g);
    router_decide(&d, route, &q, g.list, g.n);
    const bool settled = d.n > 0 || is_settled(o);
    if (!settled && wait_for_nodes(o, r, s, domain, p, until_ns))
        return;
    struct routing_choice *choice = arena_zalloc(&r->arena, sizeof(*choice));
    if (!choice || d.chosen < 0) {
        if (choice)
            refuse_choice(&f, r, &d, settled);
        else
            failure_of(&f, SHOAL_ENOMEM, "out of memory");
        flow_refuse(o, r, s, &f);
        return;
    }
    const struct router_candidate *chosen = &g.list[d.chosen];
    *choice = (struct routing_choice){.route = keep_text(r, route->name),
                                      .model = keep_text(r, chosen->model->name),
                                      .node = keep_text(r, chosen->node),
                                      .degraded = d.degraded,
                                      .domain = keep_text(r, domain),
                                      .domain_p = p,
                                      .rule = -1};
    if (r->explain || r->dry)
        explain(choice, r, &g, &q, &d);
    choice->decide_ns = clock_ns() - now;
    choice->stages = r->way.log;
    r->model = choice->model;
    r->node = choice->node ? choice->node : "";
    s->routed = choice;
    if (r->dry)
        end_dry(o, r, s);
    else {
        guard(r, privacy, choice->node != NULL);
        request_pass_on(o, r, s);
    }
}

/* ---- the router model ---- */

static void on_inner_start(struct sink *s, const struct sink_start *e)
{
    (void)s;
    (void)e;
}

static void on_inner_result(struct sink *s, const struct sink_result *e)
{
    struct routing *x = EXECUTOR_OF(s, struct routing, inner);
    const char *label = e->result->label ? e->result->label : "";
    size_t n = strlen(label);
    if (n >= sizeof(x->label))
        return;
    memcpy(x->label, label, n + 1);
    x->p = e->result->confidence;
}

/* Without its answer the text is of no domain. */
static void on_inner_fail(struct sink *s, const struct failure *f)
{
    (void)s;
    (void)f;
}

static void on_inner_closed(struct sink *s)
{
    struct routing *x = EXECUTOR_OF(s, struct routing, inner);
    struct flow_owner *o = x->owner;
    struct request *r = x->request;
    struct sink *outer = x->sink;
    outer->job = NULL;
    if (x->cancelled) {
        outer->ops->closed(outer);
        flow_give_request(o, r);
        return;
    }
    /* The routes may have been replaced meanwhile. */
    const struct router_route *route = router_table_find(o->routes, r->model);
    if (!route) {
        refuse_no_route(o, r, outer);
        return;
    }
    bool sure = x->label[0] && x->p >= route->threshold;
    decide(o, route, r, outer, sure ? x->label : NULL, x->p, 0);
}

static void on_cancel(struct flow_job *j)
{
    struct routing *x = (struct routing *)(void *)j;
    if (x->cancelled)
        return;
    x->cancelled = true;
    flow_cancel(&x->inner);
}

/* False: out of memory, and nothing happened. */
static bool classify(struct flow_owner *o, const struct router_route *route, struct request *r,
                     struct sink *s)
{
    static const struct flow_job_ops job_ops = {on_cancel, on_resume};
    static const struct sink_ops inner_ops = {.start = on_inner_start,
                                              .result = on_inner_result,
                                              .fail = on_inner_fail,
                                              .closed = on_inner_closed};
    struct routing *x = arena_zalloc(&r->arena, sizeof(*x));
    struct request *q = x ? flow_take_request(o) : NULL;
    struct request_input *in = q ? arena_zalloc(&q->arena, sizeof(*in)) : NULL;
    if (!in) {
        if (q)
            flow_give_request(o, q);
        return false;
    }
    const char *text = text_of(r, &in->text_bytes);
    if (in->text_bytes > MAX_CLASSIFY_BYTES)
        in->text_bytes = MAX_CLASSIFY_BYTES;
    in->text = request_copy_utf8(q, text, in->text_bytes, &in->text_bytes);
    q->kind = REQUEST_INFER;
    q->model = request_copy(q, route->classifier, strlen(route->classifier));
    q->client = r->client;
    q->priority = r->priority;
    flow_stamp(o, r);
    q->epoch = r->epoch;
    q->received_ns = r->received_ns;
    q->deadline_ns = r->deadline_ns;
    q->input_bytes = in->text_bytes;
    /* the classifier sees the original text: if it must not leave this server, it runs here */
    q->here = r->here || privacy_policy_of(o, r) != NULL;
    q->infer = (struct request_infer){.kind = SHOAL_KIND_CLASSIFY, .inputs = in, .n_inputs = 1};
    if (route->labels)
        q->infer.labels = request_copy(q, route->labels, strlen(route->labels));
    *x = (struct routing){
        .job = {&job_ops}, .inner = {.ops = &inner_ops}, .owner = o, .request = r, .sink = s};
    s->job = &x->job;
    flow_run(o, q, &x->inner);
    return true;
}

/* ---- an average ---- */

/* One engine computes it, under the route's name: there is no decision to make. */
static void run_average(struct flow_owner *o, const struct router_route *route, struct request *r,
                        struct sink *s)
{
    const struct ensemble *plan = &route->ensemble;
    struct routing_choice *choice = arena_zalloc(&r->arena, sizeof(*choice));
    struct routing_ensemble *x = arena_zalloc(&r->arena, sizeof(*x));
    if (!choice || !x) {
        flow_refuse_nomem(o, r, s);
        return;
    }
    x->kind = ensemble_name(plan->kind);
    for (uint32_t i = 0; i < plan->n_models; i++)
        x->steps[x->n_steps++] =
            (struct routing_step){.model = keep_text(r, plan->models[i]),
                                  .what = arena_printf(&r->arena, "weight %g", plan->weights[i]),
                                  .sureness = -1,
                                  .answered = plan->weights[i] > 0};
    *choice = (struct routing_choice){.route = keep_text(r, route->name),
                                      .model = keep_text(r, route->name),
                                      .ensemble = x,
                                      .rule = -1};
    r->model = choice->model;
    s->routed = choice;
    if (r->dry)
        end_dry(o, r, s);
    else
        request_pass_on(o, r, s);
}

/* ---- the request ---- */

static void apply(const struct router_route *route, struct request *r)
{
    if (!r->deadline_ns)
        request_set_budget(r, route->budget_ms);
    request_set_budget(r, route->max_budget_ms);
    r->priority += route->priority;
    r->no_cache |= route->no_cache;
    r->shares_cache |= route->shares_cache;
}

bool routing_take(struct flow_owner *o, struct request *r, struct sink *s)
{
    flow_resolve_name(o, r);
    const struct router_route *named =
        o->routes && r->model ? router_table_find(o->routes, r->model) : NULL;
    const struct router_route *route =
        named && router_may_call(named, r->client.name) ? named : NULL;
    const bool tokens = r->kind == REQUEST_TOKENS;
    struct failure f;
    size_t n;
    if (route && r->kind == REQUEST_ASK && !route->flow)
        route = NULL; /* asks choose their models themselves */
    if (route && tokens && (route->flow || route->ensemble.kind != ENSEMBLE_NONE))
        route = NULL; /* it has no tokenizer */
    if (named && !route && !r->dry && named->ensemble.kind == ENSEMBLE_AVERAGE) {
        /* there is a model of this name: the average itself.  It is refused like any unknown name.
         */
        failure_set(&f, FAILURE_NOT_FOUND, SHOAL_ENOTFOUND, "model", "model_not_found",
                    "the model '%.64s' does not exist", r->model);
        flow_refuse(o, r, s, &f);
        return true;
    }
    if (!route && !r->dry) {
        if (r->model && !tokens && o->flows && o->flows->ops->run(o->flows, o, r, s))
            return true;
        guard(r, privacy_policy_of(o, r), o->dispatch != NULL);
        return false;
    }
    if (!route) {
        failure_set(&f, FAILURE_NOT_FOUND, SHOAL_ENOTFOUND, "model", "model_not_found",
                    "there is no route '%s' for this client", r->model ? r->model : "");
        flow_refuse(o, r, s, &f);
        return true;
    }
    apply(route, r);
    if (route->flow) {
        r->here |= privacy_policy_of(o, r) != NULL; /* applies to its steps too */
        struct routing_choice *choice = arena_zalloc(&r->arena, sizeof(*choice));
        r->model = keep_text(r, route->flow);
        if (choice)
            *choice = (struct routing_choice){
                .route = keep_text(r, route->name), .model = r->model, .rule = -1};
        s->routed = choice;
        if (choice && r->dry) {
            choice->policy = "flow";
            end_dry(o, r, s);
            return true;
        }
        if (!o->flows || !o->flows->ops->run(o->flows, o, r, s)) {
            failure_set(&f, FAILURE_NOT_FOUND, SHOAL_ENOTFOUND, "model", "model_not_found",
                        "there is no flow '%s'", r->model);
            flow_refuse(o, r, s, &f);
        }
        return true;
    }
    if (route->ensemble.kind != ENSEMBLE_NONE) {
        r->here |= privacy_policy_of(o, r) != NULL;
        if (route->ensemble.kind == ENSEMBLE_AVERAGE)
            run_average(o, route, r, s);
        else
            panel_run(o, route, r, s);
        return true;
    }
    (void)text_of(r, &n);
    if (route->classifier && n > 0 && classify(o, route, r, s))
        return true;
    decide(o, route, r, s, NULL, 0, 0);
    return true;
}
