/* panel_classify.c - see panel_classify.h. */
#include "flow/panel/panel_classify.h"

#include "ensemble/vote.h"
#include "flow/panel/panel.h"

/* The results of all inputs so far; they may be replaced later. */
struct results {
    const struct shoal_result **list; /* [n] */
    const struct panel_member *first; /* whose model `start` names */
    uint32_t n;
};

static struct results *results_of(struct panel *p)
{
    return p->own;
}

/* ---- both ---- */

static struct panel *create(struct flow_owner *o, const struct router_route *route,
                            struct request *r, struct sink *s, const struct panel_ops *ops)
{
    struct panel *p = panel_create(o, route, r, s, ops, route->ensemble.n_models);
    struct results *x = p ? arena_zalloc(&r->arena, sizeof(*x)) : NULL;
    if (!p) {
        flow_refuse_nomem(o, r, s);
        return NULL;
    }
    p->own = x;
    if (x) {
        x->n = r->infer.n_inputs;
        x->list = arena_zalloc_n(&r->arena, x->n, sizeof(struct shoal_result *));
    }
    return p;
}

static void fail_nomem(struct panel *p)
{
    struct failure f;
    failure_of(&f, SHOAL_ENOMEM, "out of memory");
    panel_fail(p, &f);
}

static void send(struct panel *p)
{
    const struct results *x = results_of(p);
    panel_begin(p, x->first);
    p->over = true;
    for (uint32_t i = 0; i < x->n; i++) {
        const struct sink_result e = {i, x->list[i], i + 1 == x->n};
        p->sink->ops->result(p->sink, &e);
    }
    panel_end(p);
}

/* ---- cascade ---- */

static double sureness(const struct panel *p, const struct shoal_result *r)
{
    double best = r->n_labels > 0 ? (double)r->labels[0].score : (double)r->confidence;
    double second = r->n_labels > 1 ? (double)r->labels[1].score : 0;
    return ensemble_sureness(&p->plan, (double)r->confidence, best, second);
}

/* Asks the next model about these inputs, or about all (NULL). */
static void ask(struct panel *p, uint32_t index, const uint32_t *inputs, uint32_t n)
{
    struct panel_member *m = &p->members[index];
    struct arena *a = &p->request->arena;
    struct request *q = panel_request(p, index, p->plan.models[index]);
    struct request_input *list = inputs ? arena_zalloc_n(a, n, sizeof(*list)) : NULL;
    if (!q || (inputs && !list)) {
        if (q)
            flow_give_request(p->owner, q);
        fail_nomem(p);
        return;
    }
    for (uint32_t i = 0; inputs && i < n; i++)
        list[i] = p->request->infer.inputs[inputs[i]];
    if (inputs) {
        q->infer.inputs = list;
        q->infer.n_inputs = n;
        q->input_bytes = 0;
        for (uint32_t i = 0; i < n; i++)
            q->input_bytes += list[i].text_bytes;
    }
    m->inputs = inputs;
    panel_member_run(m, q);
}

static void on_cascade_results(struct panel_member *m)
{
    struct panel *p = m->panel;
    struct results *x = results_of(p);
    const bool last = m->index + 1 == p->n_members;
    uint32_t *unsure = arena_zalloc_n(&p->request->arena, m->n_results, sizeof(*unsure)), n = 0;
    double least = 1;
    if (!unsure) {
        fail_nomem(p);
        return;
    }
    for (uint32_t i = 0; i < m->n_results; i++) {
        const uint32_t at = m->inputs ? m->inputs[i] : i;
        const double sure = sureness(p, m->results[i]);
        x->list[at] = m->results[i];
        if (at == 0 || !x->first)
            x->first = m;
        least = sure < least ? sure : least;
        if (sure < p->plan.threshold)
            unsure[n++] = at;
    }
    const uint32_t n_sure = m->n_results - (last ? 0 : n);
    struct routing_step *step =
        m->n_results == 1
            ? panel_step(p, m->model, least, "%s",
                         n_sure > 0 ? "answered"
                                    : "not confident enough: escalated to the next model")
            : panel_step(p, m->model, least, "answered %u of %u texts", n_sure, m->n_results);
    step->answered = n_sure > 0;
    if (n == 0 || last)
        send(p);
    else
        ask(p, m->index + 1, unsure, n);
}

/* The answers of earlier models are better than nothing. */
static void on_cascade_failed(struct panel_member *m)
{
    struct panel *p = m->panel;
    panel_step(p, m->model, -1, "failed: %.100s", m->failure.message);
    if (m->index == 0 && m->failure.kind != FAILURE_INVALID && p->n_members > 1) {
        p->choice.degraded = true;
        ask(p, 1, NULL, p->request->infer.n_inputs);
    } else if (results_of(p)->first) {
        p->choice.degraded = true;
        send(p);
    } else {
        panel_fail(p, &m->failure);
    }
}

void panel_classify_cascade(struct flow_owner *o, const struct router_route *route,
                            struct request *r, struct sink *s)
{
    static const struct panel_ops ops = {.results = on_cascade_results,
                                         .failed = on_cascade_failed};
    struct panel *p = create(o, route, r, s, &ops);
    if (!p)
        return;
    panel_enter(p);
    if (!p->own || !results_of(p)->list)
        fail_nomem(p);
    else
        ask(p, 0, NULL, r->infer.n_inputs);
    panel_leave(p);
}

/* ---- vote ---- */

/* False: out of memory. */
static bool cast(struct vote *v, const struct panel *p, const struct panel_member *m,
                 const struct shoal_result *r)
{
    const double weight = p->plan.weights[m->index];
    if (p->plan.by == ENSEMBLE_BY_LABEL)
        return vote_add(v, r->label, weight, (double)r->confidence) == 0;
    for (uint32_t i = 0; i < r->n_labels; i++)
        if (vote_add(v, r->labels[i].name, weight * (double)r->labels[i].score,
                     (double)r->labels[i].score) < 0)
            return false;
    return true;
}

/* The votes as a result; its labels have their shares of the votes.  NULL: out of memory. */
static const struct shoal_result *elect(struct panel *p, uint32_t input)
{
    struct arena *a = &p->request->arena;
    struct vote v = {.labels = NULL};
    const struct shoal_result *any = NULL;
    struct shoal_result *out = arena_zalloc(a, sizeof(*out));
    bool ok = out != NULL;
    for (uint32_t i = 0; ok && i < p->n_members; i++)
        if (p->members[i].done) {
            const struct shoal_result *r = p->members[i].results[input];
            any = any ? any : r;
            ok = cast(&v, p, &p->members[i], r);
        }
    vote_sort(&v);
    struct shoal_label *labels = ok ? arena_zalloc_n(a, v.n + 1, sizeof(*labels)) : NULL;
    if (labels) {
        for (uint32_t i = 0; i < v.n; i++)
            labels[i] = (struct shoal_label){v.labels[i].label, (float)vote_share(&v, i)};
        *out = *any;
        out->labels = labels;
        out->n_labels = v.n;
        out->label = labels[0].name;
        out->confidence = labels[0].score;
    }
    vote_fini(&v);
    return labels ? out : NULL;
}

/* All have answered or failed. */
static void count_votes(struct panel *p)
{
    struct results *x = results_of(p);
    for (uint32_t i = 0; i < p->n_members; i++) {
        struct panel_member *m = &p->members[i];
        if (!m->done && !m->failed)
            return;
    }
    for (uint32_t i = 0; i < p->n_members; i++) {
        struct panel_member *m = &p->members[i];
        if (m->failed) {
            panel_step(p, m->model, -1, "failed: %.100s", m->failure.message);
            p->choice.degraded = true;
            continue;
        }
        x->first = x->first ? x->first : m;
        struct routing_step *step =
            m->n_results == 1 ? panel_step(p, m->model, (double)m->results[0]->confidence,
                                           "voted for %.100s", m->results[0]->label)
                              : panel_step(p, m->model, -1, "voted on %u texts", m->n_results);
        step->answered = true;
    }
    if (!x->first) {
        panel_fail(p, &p->members[0].failure);
        return;
    }
    for (uint32_t i = 0; i < x->n; i++) {
        x->list[i] = elect(p, i);
        if (!x->list[i]) {
            fail_nomem(p);
            return;
        }
    }
    send(p);
}

static void on_vote(struct panel_member *m)
{
    count_votes(m->panel);
}

void panel_classify_vote(struct flow_owner *o, const struct router_route *route, struct request *r,
                         struct sink *s)
{
    static const struct panel_ops ops = {.results = on_vote, .failed = on_vote};
    struct panel *p = create(o, route, r, s, &ops);
    if (!p)
        return;
    panel_enter(p);
    if (!p->own || !results_of(p)->list)
        fail_nomem(p);
    for (uint32_t i = 0; i < p->n_members && !p->over; i++)
        ask(p, i, NULL, r->infer.n_inputs);
    panel_leave(p);
}
