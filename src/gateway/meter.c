/* meter.c - see meter.h. */
#include "gateway/meter.h"

#include "host/admission.h"

static struct meter *meter_of(struct sink *s)
{
    return (struct meter *)(void *)s; /* its first member */
}

static void count(struct meter *m, const struct sink_done *e)
{
    if (e->choice % m->n_each == 0)
        m->prompt_tokens += e->prompt_tokens;
    m->generated_tokens += e->generated_tokens;
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    struct sink *to = meter_of(s)->to;
    to->ops->start(to, e);
}

static void on_plan(struct sink *s, const struct sink_plan *e)
{
    struct sink *to = meter_of(s)->to;
    to->ops->plan(to, e);
}

static void on_prompt(struct sink *s, const struct sink_prompt *e)
{
    struct sink *to = meter_of(s)->to;
    if (to->ops->prompt)
        to->ops->prompt(to, e);
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    struct meter *m = meter_of(s);
    m->n_tokens += e->token >= 0;
    m->to->ops->token(m->to, e);
}

static void on_call(struct sink *s, const struct sink_call *e)
{
    struct sink *to = meter_of(s)->to;
    to->ops->call(to, e);
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    struct meter *m = meter_of(s);
    m->prompt_tokens += e->result->n_tokens;
    m->to->ops->result(m->to, e);
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    struct meter *m = meter_of(s);
    count(m, e);
    m->to->ops->done(m->to, e);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct meter *m = meter_of(s);
    m->failed = true;
    m->to->ops->fail(m->to, f);
}

static void on_closed(struct sink *s)
{
    struct meter *m = meter_of(s);
    if (m->generated_tokens < m->n_tokens)
        m->generated_tokens = m->n_tokens;
    if (m->prompt_tokens == 0 && (!m->failed || m->n_tokens > 0))
        m->prompt_tokens = m->prompt_guess;
    admission_spend(m->admission, m->client, m->prompt_tokens, m->generated_tokens);
    m->to->ops->closed(m->to);
}

static void on_broke_off(struct sink *s, const struct sink_done *e, int code)
{
    struct meter *m = meter_of(s);
    count(m, e);
    if (m->to->ops->broke_off)
        m->to->ops->broke_off(m->to, e, code);
}

static bool on_may_replace(struct sink *s, bool marked)
{
    struct sink *to = meter_of(s)->to;
    return to->ops->may_replace && to->ops->may_replace(to, marked);
}

static void on_replace(struct sink *s, const struct sink_replace *e)
{
    struct sink *to = meter_of(s)->to;
    to->ops->replace(to, e);
}

static void on_flush(struct sink *s)
{
    struct sink *to = meter_of(s)->to;
    if (to->ops->flush)
        to->ops->flush(to);
}

static bool on_full(struct sink *s)
{
    struct sink *to = meter_of(s)->to;
    return to->ops->full && to->ops->full(to);
}

void meter_init(struct meter *m, struct sink *s, struct admission *a, struct admission_client *c,
                uint32_t prompt_guess)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .plan = on_plan,
                                        .prompt = on_prompt,
                                        .token = on_token,
                                        .call = on_call,
                                        .result = on_result,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .broke_off = on_broke_off,
                                        .may_replace = on_may_replace,
                                        .replace = on_replace,
                                        .flush = on_flush,
                                        .full = on_full};
    *m = (struct meter){.sink.ops = &ops,
                        .to = s,
                        .admission = a,
                        .client = c,
                        .n_each = 1,
                        .prompt_guess = prompt_guess};
}
