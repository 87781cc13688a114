/* panel_choose.c - see panel_choose.h.
 *
 * Member 0 writes the answers.  Of a rerank, member 1 + i has the judge read answer i. */
#include "flow/panel/panel_choose.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ensemble/agree.h"
#include "flow/panel/panel.h"

/* A token of a prompt that the judge has read. */
struct read_token {
    size_t bytes;
    double logprob;
};

/* An answer and its score by the judge. */
struct candidate {
    const char *text;
    size_t text_bytes;
    int32_t same_as; /* an earlier one with the same text; -1: none */
    struct read_token *read;
    uint32_t n_read, cap_read;
    bool judged;
    double score; /* mean log-probability of its tokens */
};

static struct candidate *candidates_of(struct panel *p)
{
    return p->own;
}

static void fail_nomem(struct panel *p)
{
    struct failure f;
    failure_of(&f, SHOAL_ENOMEM, "out of memory");
    panel_fail(p, &f);
}

/* The writer's own view: the geometric mean of its tokens' probabilities, as a logarithm. */
static double own_score(const struct panel_answer *a)
{
    return a->running.n > 0 ? a->running.sum / a->running.n : 0;
}

/* ---- both ---- */

static void write_answers(struct panel *p)
{
    struct request *q = panel_request(p, 0, p->plan.models[0]);
    if (!q) {
        fail_nomem(p);
        return;
    }
    struct shoal_sampling *x = &q->generate.sampling;
    q->generate.n = p->plan.samples;
    if (x->temperature <= 0) /* otherwise all answers would be the same */
        x->temperature = (float)p->plan.temperature;
    x->logprobs = true;
    panel_member_run(&p->members[0], q);
}

static void on_writer_token(struct panel_member *m, const struct sink_token *e)
{
    panel_tokens_add(&m->answers[e->choice].tokens, &m->panel->request->arena, e,
                     m->panel->request->generate.sampling.logprobs);
}

/* Sends answer i to the client; reports the cost of the others. */
static void give(struct panel *p, uint32_t i)
{
    struct panel_member *m = &p->members[0];
    struct sink_done done = m->answers[i].done;
    done.prompt_tokens = m->answers[0].done.prompt_tokens;
    for (uint32_t k = 0; k < m->n_answers; k++) {
        struct sink_done each = m->answers[k].done;
        each.prompt_tokens = each.cached_tokens = 0; /* the prompt was read once */
        if (k != i)
            panel_tell_cost(m, &each, 0);
    }
    panel_begin(p, m);
    panel_tokens_send(&m->answers[i].tokens, p->sink);
    panel_finish(p, &done);
}

static struct panel *create(struct flow_owner *o, const struct router_route *route,
                            struct request *r, struct sink *s, const struct panel_ops *ops,
                            uint32_t n_members)
{
    const uint32_t n = route->ensemble.samples;
    struct candidate *list = arena_zalloc_n(&r->arena, n, sizeof(*list));
    struct panel *p = list ? panel_create(o, route, r, s, ops, n_members) : NULL;
    if (!p) {
        flow_refuse_nomem(o, r, s);
        return NULL;
    }
    p->own = list;
    panel_enter(p);
    write_answers(p);
    panel_leave(p);
    return p;
}

/* ---- consensus ---- */

static void choose_majority(struct panel *p)
{
    struct panel_member *m = &p->members[0];
    struct agree_answer answers[ENSEMBLE_MAX_SAMPLES] = {{NULL, 0}};
    const uint32_t n = m->n_answers < ENSEMBLE_MAX_SAMPLES ? m->n_answers : ENSEMBLE_MAX_SAMPLES;
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) {
        const struct panel_tokens *t = &m->answers[i].tokens;
        const char *text = panel_tokens_text(t, &p->request->arena);
        answers[i] = (struct agree_answer){agree_normal(text, strlen(text), p->plan.part),
                                           own_score(&m->answers[i])};
        ok &= answers[i].normal != NULL;
    }
    const struct agree_choice c = ok ? agree_choose(answers, n) : (struct agree_choice){0, 0};
    for (uint32_t i = 0; i < n; i++)
        mem_free((void *)(uintptr_t)answers[i].normal);
    if (!ok || request_rc(p->request) < 0) {
        fail_nomem(p);
        return;
    }
    panel_step(p, m->model, (double)c.n_for / n, "%u of %u answers agree", c.n_for, n)->answered =
        true;
    give(p, c.best);
}

static void on_sample(struct panel_member *m, const struct sink_done *e)
{
    (void)e;
    if (m->done)
        choose_majority(m->panel);
}

static void on_sampler_failed(struct panel_member *m)
{
    panel_step(m->panel, m->model, -1, "failed: %.100s", m->failure.message);
    panel_fail(m->panel, &m->failure);
}

void panel_choose_consensus(struct flow_owner *o, const struct router_route *route,
                            struct request *r, struct sink *s)
{
    static const struct panel_ops ops = {
        .token = on_writer_token, .answer = on_sample, .failed = on_sampler_failed};
    (void)create(o, route, r, s, &ops, 1);
}

/* ---- rerank ---- */

/* Appends the answer to the conversation or the prompt. False: out of memory. */
static bool append_answer(struct panel *p, struct request *q, const struct candidate *c)
{
    const struct request_generate *from = &p->request->generate;
    struct arena *a = &q->arena;
    if (from->chat.n_messages > 0) {
        const uint32_t n = from->chat.n_messages, n_vars = from->chat.n_vars;
        struct chat_message *messages = arena_zalloc_n(a, n + 1, sizeof(*messages));
        struct value_member *vars = arena_zalloc_n(a, n_vars + 1, sizeof(*vars));
        if (!messages || !vars)
            return false;
        memcpy(messages, from->chat.messages, n * sizeof(*messages));
        messages[n] = (struct chat_message){
            .role = "assistant", .content = c->text, .content_bytes = c->text_bytes};
        if (n_vars > 0)
            memcpy(vars, from->chat.vars, n_vars * sizeof(*vars));
        vars[n_vars] = (struct value_member){.key = CHAT_CONTINUE_VAR, .value = value_bool(true)};
        q->generate.chat.messages = messages;
        q->generate.chat.n_messages = n + 1;
        q->generate.chat.vars = vars;
        q->generate.chat.n_vars = n_vars + 1;
        return true;
    }
    const struct request_prompt *was = &from->prompts[0];
    struct request_prompt *prompt = arena_zalloc(a, sizeof(*prompt));
    char *text = prompt ? arena_bytes(a, was->text_bytes + c->text_bytes + 1) : NULL;
    if (!text)
        return false;
    memcpy(text, was->text, was->text_bytes);
    memcpy(text + was->text_bytes, c->text, c->text_bytes);
    text[was->text_bytes + c->text_bytes] = '\0';
    *prompt = (struct request_prompt){.text = text, .text_bytes = was->text_bytes + c->text_bytes};
    q->generate.prompts = prompt;
    return true;
}

static void judge(struct panel *p, uint32_t i)
{
    const struct candidate *c = &candidates_of(p)[i];
    struct request *q = panel_request(p, 1 + i, p->plan.models[1]);
    if (!q || !append_answer(p, q, c)) {
        if (q)
            flow_give_request(p->owner, q);
        fail_nomem(p);
        return;
    }
    struct request_generate *g = &q->generate;
    q->input_bytes += c->text_bytes;
    g->n = 1;
    g->max_tokens = 1;
    g->sampling = (struct shoal_sampling){.logprobs = true};
    g->constraint = (struct request_constraint){.kind = SHOAL_CONSTRAINT_NONE};
    g->stop = NULL;
    g->n_stop = 0;
    g->echo = g->prompt_logprobs = g->prompt_only = true;
    panel_member_run(&p->members[1 + i], q);
}

/* Only its last tokens are the answer; the first of them may begin in the prompt. */
static void score(struct candidate *c)
{
    size_t bytes = 0;
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t i = c->n_read; i-- > 0 && bytes < c->text_bytes;) {
        bytes += c->read[i].bytes;
        if (isfinite(c->read[i].logprob)) {
            sum += c->read[i].logprob;
            n++;
        }
    }
    c->judged = true;
    c->score = n > 0 ? sum / n : -INFINITY; /* an empty answer */
}

/* All candidates have been read, or could not be. */
static void choose_best(struct panel *p)
{
    struct panel_member *writer = &p->members[0];
    struct candidate *list = candidates_of(p);
    uint32_t best = 0, n_judged = 0;
    for (uint32_t i = 0; i < writer->n_answers; i++) {
        struct candidate *c = &list[i];
        const struct panel_member *m = &p->members[1 + i];
        if (c->same_as >= 0) {
            c->judged = list[c->same_as].judged;
            c->score = list[c->same_as].score;
        } else if (!m->done && !m->failed) {
            return;
        }
    }
    for (uint32_t i = 0; i < writer->n_answers; i++) {
        if (!list[i].judged)
            continue;
        if (n_judged++ == 0 || list[i].score > list[best].score)
            best = i;
    }
    if (n_judged == 0) { /* the writer's own view */
        p->choice.degraded = true;
        panel_step(p, p->plan.models[1], -1, "failed: %.100s", p->members[1].failure.message);
        for (uint32_t i = 1; i < writer->n_answers; i++)
            if (own_score(&writer->answers[i]) > own_score(&writer->answers[best]))
                best = i;
    }
    for (uint32_t i = 0; i < writer->n_answers; i++)
        panel_step(p, writer->model, list[i].judged ? exp(list[i].score) : -1, "wrote answer %u",
                   i + 1)
            ->answered = i == best;
    give(p, best);
}

static void on_rerank_token(struct panel_member *m, const struct sink_token *e)
{
    if (m->index == 0) {
        on_writer_token(m, e);
        return;
    }
    struct candidate *c = &candidates_of(m->panel)[m->index - 1];
    struct arena *a = &m->panel->request->arena;
    if (!e->echo || e->token < 0 || !e->logprobs)
        return;
    if (c->n_read == c->cap_read) {
        const uint32_t cap = c->cap_read ? c->cap_read * 2 : 256;
        struct read_token *grown = arena_zalloc_n(a, cap, sizeof(*grown));
        if (!grown)
            return; /* see the arena's rc */
        if (c->n_read > 0)
            memcpy(grown, c->read, c->n_read * sizeof(*grown));
        c->read = grown;
        c->cap_read = cap;
    }
    c->read[c->n_read++] =
        (struct read_token){e->logprobs[0].text_bytes, (double)e->logprobs[0].logprob};
}

static void begin_judging(struct panel *p)
{
    struct panel_member *writer = &p->members[0];
    struct candidate *list = candidates_of(p);
    for (uint32_t i = 0; i < writer->n_answers; i++) {
        list[i].text = panel_tokens_text(&writer->answers[i].tokens, &p->request->arena);
        list[i].text_bytes = strlen(list[i].text);
        list[i].same_as = -1;
        for (uint32_t k = 0; k < i && list[i].same_as < 0; k++)
            if (strcmp(list[k].text, list[i].text) == 0)
                list[i].same_as = (int32_t)k;
    }
    if (request_rc(p->request) < 0)
        fail_nomem(p);
    for (uint32_t i = 0; i < writer->n_answers && !p->over; i++)
        if (list[i].same_as < 0)
            judge(p, i);
}

static void on_rerank_answer(struct panel_member *m, const struct sink_done *e)
{
    struct panel *p = m->panel;
    if (m->index == 0) {
        if (m->done)
            begin_judging(p);
        return;
    }
    score(&candidates_of(p)[m->index - 1]);
    panel_tell_cost(m, e, 0);
    choose_best(p);
}

static void on_rerank_failed(struct panel_member *m)
{
    if (m->index == 0)
        on_sampler_failed(m);
    else
        choose_best(m->panel);
}

void panel_choose_rerank(struct flow_owner *o, const struct router_route *route, struct request *r,
                         struct sink *s)
{
    static const struct panel_ops ops = {
        .token = on_rerank_token, .answer = on_rerank_answer, .failed = on_rerank_failed};
    (void)create(o, route, r, s, &ops, 1 + route->ensemble.samples);
}
