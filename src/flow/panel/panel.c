/* panel.c - see panel.h. */
#include "flow/panel/panel.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "flow/flow_run.h"

static struct panel_member *member_of(struct sink *s)
{
    return (struct panel_member *)(void *)s; /* its first member */
}

static const char *keep(struct panel *p, const char *text)
{
    return text ? request_copy(p->request, text, strlen(text)) : NULL;
}

/* ---- lifetime ---- */

static void panel_close(struct panel *p)
{
    struct flow_owner *o = p->owner;
    struct request *r = p->request;
    struct sink *s = p->sink;
    s->job = NULL;
    s->ops->closed(s);
    flow_give_request(o, r); /* the panel is in its arena */
    o->n_jobs--;
}

void panel_enter(struct panel *p)
{
    p->busy++;
}

void panel_leave(struct panel *p)
{
    if (--p->busy == 0 && p->over && p->n_running == 0)
        panel_close(p);
}

void panel_end(struct panel *p)
{
    p->over = true;
    for (uint32_t i = 0; i < p->n_members; i++)
        if (p->members[i].running)
            flow_cancel(&p->members[i].sink);
}

static void on_cancel(struct flow_job *j)
{
    struct panel *p = (struct panel *)(void *)j;
    if (p->over)
        return;
    panel_enter(p);
    panel_end(p);
    panel_leave(p);
}

static void on_resume(struct flow_job *j)
{
    struct panel *p = (struct panel *)(void *)j;
    panel_enter(p);
    for (uint32_t i = 0; i < p->n_members; i++)
        if (p->members[i].running)
            flow_resume(&p->members[i].sink);
    panel_leave(p);
}

/* ---- events of members ---- */

static void on_start(struct sink *s, const struct sink_start *e)
{
    struct panel_member *m = member_of(s);
    struct panel *p = m->panel;
    m->start = *e;
    m->start.model = keep(p, e->model);
    m->start.version = keep(p, e->version ? e->version : "");
    m->start.node = keep(p, e->node);
    m->start.sum =
        e->sum ? (const uint8_t *)request_copy(p->request, (const char *)e->sum, 32) : NULL;
    m->start.question = NULL; /* an answer of several models is not one of the cache */
    m->started = true;
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    struct panel_member *m = member_of(s);
    struct panel *p = m->panel;
    if (p->over || e->choice >= m->n_answers)
        return;
    if (e->logprobs && e->token >= 0 && !e->echo)
        ensemble_running_add(&m->answers[e->choice].running, (double)e->logprobs[0].logprob);
    panel_enter(p);
    p->ops->token(m, e);
    panel_leave(p);
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    struct panel_member *m = member_of(s);
    struct panel *p = m->panel;
    if (e->choice >= m->n_answers)
        return;
    m->answers[e->choice].done = *e;
    m->n_done++;
    m->done = e->last;
    if (p->over) {
        panel_tell_cost(m, e, 0);
        return;
    }
    panel_enter(p);
    p->ops->answer(m, e);
    panel_leave(p);
}

static const struct shoal_result *copy_result(struct panel *p, const struct shoal_result *r)
{
    struct arena *a = &p->request->arena;
    struct shoal_result *out = arena_zalloc(a, sizeof(*out));
    struct shoal_label *labels = arena_zalloc_n(a, r->n_labels + 1, sizeof(*labels));
    if (!out || !labels)
        return NULL;
    *out = *r;
    out->label = keep(p, r->label);
    out->message = NULL;
    out->labels = labels;
    for (uint32_t i = 0; i < r->n_labels; i++)
        labels[i] = (struct shoal_label){keep(p, r->labels[i].name), r->labels[i].score};
    return out;
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    struct panel_member *m = member_of(s);
    struct panel *p = m->panel;
    if (p->over || e->index >= m->n_results)
        return;
    m->results[e->index] = copy_result(p, e->result);
    if (!e->last)
        return;
    m->done = true;
    panel_enter(p);
    if (request_rc(p->request) < 0) {
        struct failure f;
        failure_of(&f, SHOAL_ENOMEM, "out of memory");
        panel_fail(p, &f);
    } else {
        p->ops->results(m);
    }
    panel_leave(p);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct panel_member *m = member_of(s);
    struct panel *p = m->panel;
    if (p->over)
        return;
    m->failed = true;
    m->failure = *f;
    m->failure.reason = keep(p, f->reason);
    m->failure.param = keep(p, f->param);
    panel_enter(p);
    p->ops->failed(m);
    panel_leave(p);
}

static void on_broke_off(struct sink *s, const struct sink_done *e, int code)
{
    panel_tell_cost(member_of(s), e, code);
}

static void on_closed(struct sink *s)
{
    struct panel_member *m = member_of(s);
    struct panel *p = m->panel;
    panel_enter(p);
    m->running = false;
    p->n_running--;
    panel_leave(p);
}

static void on_flush(struct sink *s)
{
    struct panel *p = member_of(s)->panel;
    if (!p->over && member_of(s)->passed)
        sink_flush(p->sink);
}

static bool on_full(struct sink *s)
{
    struct panel *p = member_of(s)->panel;
    return !p->over && member_of(s)->passed && sink_is_full(p->sink);
}

/* ---- starting ---- */

/* False: out of memory. */
static bool copy_plan(struct panel *p, const struct ensemble *from)
{
    struct arena *a = &p->request->arena;
    const char **names = arena_zalloc_n(a, from->n_models + 1, sizeof(*names));
    double *weights = arena_zalloc_n(a, from->n_models + 1, sizeof(*weights));
    p->plan = *from;
    for (uint32_t i = 0; names && weights && i < from->n_models; i++) {
        names[i] = keep(p, from->models[i]);
        weights[i] = from->weights ? from->weights[i] : 1;
    }
    p->plan.models = (char **)(uintptr_t)names; /* never changed */
    p->plan.weights = weights;
    return names && weights;
}

struct panel *panel_create(struct flow_owner *o, const struct router_route *route,
                           struct request *r, struct sink *s, const struct panel_ops *ops,
                           uint32_t n_members)
{
    static const struct flow_job_ops job_ops = {on_cancel, on_resume};
    struct panel *p = arena_zalloc(&r->arena, sizeof(*p));
    if (!p)
        return NULL;
    *p = (struct panel){
        .job = {&job_ops}, .ops = ops, .owner = o, .request = r, .sink = s, .n_members = n_members};
    p->members = arena_zalloc_n(&r->arena, n_members, sizeof(*p->members));
    if (!p->members || !copy_plan(p, &route->ensemble))
        return NULL;
    for (uint32_t i = 0; i < n_members; i++) {
        p->members[i].panel = p;
        p->members[i].index = i;
    }
    p->steps.kind = ensemble_name(p->plan.kind);
    p->choice = (struct routing_choice){.route = keep(p, route->name),
                                        .model = p->plan.models[0],
                                        .rule = -1,
                                        .policy = p->steps.kind,
                                        .ensemble = &p->steps};
    if (request_rc(r) < 0)
        return NULL;
    s->routed = &p->choice;
    s->job = &p->job;
    flow_stamp(o, r);
    o->n_jobs++;
    return p;
}

struct request *panel_request(struct panel *p, uint32_t index, const char *model)
{
    struct request *q = flow_take_request(p->owner);
    if (!q)
        return NULL;
    request_borrow(q, p->request); /* the client's, which lives longer */
    q->model = model;
    q->version = NULL;
    q->node = NULL;
    q->once_key[0] ^= (uint8_t)(index + 1); /* a separate request, with the same key next time */
    return q;
}

void panel_member_run(struct panel_member *m, struct request *q)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .token = on_token,
                                        .result = on_result,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .broke_off = on_broke_off,
                                        .flush = on_flush,
                                        .full = on_full};
    struct panel *p = m->panel;
    struct arena *a = &p->request->arena;
    m->sink.ops = &ops;
    m->model = q->model;
    if (q->kind == REQUEST_GENERATE) {
        m->n_answers = request_choices(&q->generate);
        m->answers = arena_zalloc_n(a, m->n_answers, sizeof(*m->answers));
    } else {
        m->n_results = q->infer.n_inputs;
        m->results = arena_zalloc_n(a, m->n_results, sizeof(struct shoal_result *));
    }
    if (request_rc(p->request) < 0) {
        struct failure f;
        failure_of(&f, SHOAL_ENOMEM, "out of memory");
        flow_give_request(p->owner, q);
        panel_fail(p, &f);
        return;
    }
    m->running = true;
    p->n_running++;
    panel_enter(p);
    flow_run(p->owner, q, &m->sink);
    panel_leave(p);
}

/* ---- events of the client ---- */

struct routing_step *panel_step(struct panel *p, const char *model, double sureness,
                                const char *fmt, ...)
{
    char text[160];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (p->steps.n_steps == ROUTING_MAX_STEPS)
        return &p->lost;
    struct routing_step *x = &p->steps.steps[p->steps.n_steps++];
    *x = (struct routing_step){.model = model, .what = keep(p, text), .sureness = sureness};
    return x;
}

void panel_begin(struct panel *p, const struct panel_member *m)
{
    if (p->began)
        return;
    p->began = true;
    p->choice.model = m->model;
    p->sink->routed = &p->choice;
    p->sink->ops->start(p->sink, &m->start);
}

void panel_tell_cost(struct panel_member *m, const struct sink_done *e, int code)
{
    struct sink *s = m->panel->sink;
    sink_tell_broke_off(s, e, code);
}

void panel_finish(struct panel *p, const struct sink_done *e)
{
    struct sink_done done = *e;
    done.choice = 0;
    done.last = true;
    done.usage = (struct sink_usage){.prompt_tokens = e->prompt_tokens,
                                     .cached_tokens = e->cached_tokens,
                                     .generated_tokens = e->generated_tokens};
    p->over = true;
    p->sink->ops->done(p->sink, &done);
    panel_end(p);
}

void panel_fail(struct panel *p, const struct failure *f)
{
    if (p->over)
        return;
    p->over = true;
    p->sink->ops->fail(p->sink, f);
    panel_end(p);
}
