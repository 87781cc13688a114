/* panel_generate.c - see panel_generate.h. */
#include "flow/panel/panel_generate.h"

#include "flow/panel/panel.h"

struct relay_state {
    uint32_t now;                  /* cascade: the member that answers */
    bool stays;                    /* cascade: it is no longer replaced */
    bool sent;                     /* tokens of it have reached the client */
    bool fast_began;               /* refine: the fast model was started */
    struct panel_member *fallback; /* has a complete answer that was not good enough */
};

static struct relay_state *state_of(struct panel *p)
{
    return p->own;
}

/* A token in the form that the client requested. */
static void pass_token(struct panel *p, const struct sink_token *e)
{
    struct sink_token t = *e;
    if (!p->request->generate.sampling.logprobs) {
        t.logprobs = NULL;
        t.n_logprobs = 0;
    }
    p->sink->ops->token(p->sink, &t);
}

static void keep_token(struct panel_member *m, const struct sink_token *e)
{
    panel_tokens_add(&m->answers[0].tokens, &m->panel->request->arena, e,
                     m->panel->request->generate.sampling.logprobs);
}

static void start_member(struct panel *p, uint32_t index, bool logprobs)
{
    struct request *q = panel_request(p, index, p->plan.models[index]);
    if (!q) {
        struct failure f;
        failure_of(&f, SHOAL_ENOMEM, "out of memory");
        panel_fail(p, &f);
        return;
    }
    q->generate.sampling.logprobs |= logprobs;
    panel_member_run(&p->members[index], q);
}

/* Sends a member's answer so far to the client: as the answer, or as a replacement. */
static void show(struct panel_member *m, const char *why)
{
    struct panel *p = m->panel;
    if (!p->began) {
        panel_begin(p, m);
    } else {
        p->choice.model = m->model;
        const struct sink_replace e = {.start = &m->start, .why = why};
        p->sink->ops->replace(p->sink, &e);
    }
    panel_tokens_send(&m->answers[0].tokens, p->sink);
}

static struct panel *create(struct flow_owner *o, const struct router_route *route,
                            struct request *r, struct sink *s, const struct panel_ops *ops)
{
    struct relay_state *x = arena_zalloc(&r->arena, sizeof(*x));
    struct panel *p = x ? panel_create(o, route, r, s, ops, route->ensemble.n_models) : NULL;
    if (!p) {
        flow_refuse_nomem(o, r, s);
        return NULL;
    }
    p->own = x;
    return p;
}

/* ---- cascade ---- */

/* Switches to the next model. False: the client has tokens that cannot be taken back. */
static bool leave(struct panel_member *m)
{
    struct panel *p = m->panel;
    struct relay_state *x = state_of(p);
    const double sure = ensemble_running_sureness(&m->answers[0].running);
    if (x->sent && !sink_may_replace(p->sink, p->plan.replace)) {
        x->stays = true;
        return false;
    }
    panel_step(p, m->model, sure, "abandoned after %u tokens: not confident enough",
               m->answers[0].running.n);
    if (m->done) {
        x->fallback = m;
        panel_tell_cost(m, &m->answers[0].done, 0);
    }
    m->passed = false;
    x->sent = false;
    x->now = m->index + 1;
    if (m->running && !m->done)
        flow_cancel(&m->sink); /* broke_off reports its cost */
    start_member(p, x->now, x->now + 1 < p->n_members);
    return true;
}

static bool is_last(const struct panel_member *m)
{
    return m->index + 1 == m->panel->n_members || state_of(m->panel)->stays;
}

static void on_cascade_token(struct panel_member *m, const struct sink_token *e)
{
    struct panel *p = m->panel;
    struct relay_state *x = state_of(p);
    if (m->index != x->now)
        return;
    if (!is_last(m) && ensemble_should_leave(&p->plan, &m->answers[0].running, false) && leave(m))
        return;
    if (x->sent) {
        pass_token(p, e);
        return;
    }
    keep_token(m, e);
    if (is_last(m) || m->answers[0].tokens.n > p->plan.hold) {
        show(m, "the previous model was not confident enough");
        x->sent = m->passed = true;
    }
}

static void end_cascade(struct panel_member *m)
{
    struct panel *p = m->panel;
    if (!state_of(p)->sent)
        show(m, "the previous model was not confident enough");
    panel_finish(p, &m->answers[0].done);
}

static void on_cascade_answer(struct panel_member *m, const struct sink_done *e)
{
    struct panel *p = m->panel;
    (void)e;
    if (m->index != state_of(p)->now)
        return;
    if (!is_last(m) && ensemble_should_leave(&p->plan, &m->answers[0].running, true) && leave(m))
        return;
    const struct ensemble_running *run = &m->answers[0].running;
    panel_step(p, m->model, run->n > 0 ? ensemble_running_sureness(run) : -1, "answered")
        ->answered = true;
    end_cascade(m);
}

static void on_cascade_failed(struct panel_member *m)
{
    struct panel *p = m->panel;
    struct relay_state *x = state_of(p);
    if (m->index != x->now)
        return;
    panel_step(p, m->model, -1, "failed: %.100s", m->failure.message);
    if (x->sent || m->failure.kind == FAILURE_INVALID) {
        panel_fail(p, &m->failure);
    } else if (!is_last(m)) {
        p->choice.degraded = true;
        x->now++;
        start_member(p, x->now, x->now + 1 < p->n_members);
    } else if (x->fallback) {
        p->choice.degraded = true;
        panel_step(p, x->fallback->model, -1, "answered after all")->answered = true;
        end_cascade(x->fallback);
    } else {
        panel_fail(p, &m->failure);
    }
}

void panel_generate_cascade(struct flow_owner *o, const struct router_route *route,
                            struct request *r, struct sink *s)
{
    static const struct panel_ops ops = {
        .token = on_cascade_token, .answer = on_cascade_answer, .failed = on_cascade_failed};
    struct panel *p = create(o, route, r, s, &ops);
    if (!p)
        return;
    panel_enter(p);
    start_member(p, 0, p->n_members > 1);
    panel_leave(p);
}

/* ---- refine ---- */

enum { FAST, BETTER };

static void finish_fast(struct panel *p, const char *what)
{
    struct panel_member *fast = &p->members[FAST];
    panel_step(p, fast->model, -1, "%s", what)->answered = true;
    panel_finish(p, &fast->answers[0].done);
}

static void on_refine_token(struct panel_member *m, const struct sink_token *e)
{
    struct panel *p = m->panel;
    if (m->index == BETTER) {
        keep_token(m, e);
        return;
    }
    panel_begin(p, m);
    m->passed = true;
    pass_token(p, e);
}

static void on_refine_answer(struct panel_member *m, const struct sink_done *e)
{
    struct panel *p = m->panel;
    const bool alone = !p->members[BETTER].running && !p->members[BETTER].done;
    if (m->index == FAST) {
        panel_begin(p, m); /* an answer without tokens */
        if (alone)
            finish_fast(p, "answered");
        else
            sink_flush(p->sink);
        return;
    }
    struct panel_member *fast = &p->members[FAST];
    panel_step(p, p->plan.models[FAST], -1, "%s",
               fast->done                ? "answered at once"
               : state_of(p)->fast_began ? "was slower: cancelled"
                                         : "not used: the better answer was ready");
    panel_step(p, m->model, -1, "answered")->answered = true;
    if (fast->done)
        panel_tell_cost(fast, &fast->answers[0].done, 0);
    show(m, "a better model has answered");
    panel_finish(p, e);
}

static void on_refine_failed(struct panel_member *m)
{
    struct panel *p = m->panel;
    const struct panel_member *other = &p->members[m->index == FAST ? BETTER : FAST];
    const bool waits = m->index == BETTER && !state_of(p)->fast_began;
    panel_step(p, m->model, -1, "failed: %.100s", m->failure.message);
    p->choice.degraded = true;
    if (m->index == BETTER && other->done)
        finish_fast(p, "answered; it was not replaced");
    else if (!waits && (!other->running || other->failed))
        panel_fail(p, &m->failure);
}

void panel_generate_refine(struct flow_owner *o, const struct router_route *route,
                           struct request *r, struct sink *s)
{
    static const struct panel_ops ops = {
        .token = on_refine_token, .answer = on_refine_answer, .failed = on_refine_failed};
    struct panel *p = create(o, route, r, s, &ops);
    if (!p)
        return;
    panel_enter(p);
    if (sink_may_replace(p->sink, true)) /* first: the fast one may have its answer in the cache */
        start_member(p, BETTER, false);
    state_of(p)->fast_began = true;
    if (!p->over)
        start_member(p, FAST, false);
    panel_leave(p);
}
