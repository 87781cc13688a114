/* meter.c - see meter.h. */
#include "gateway/call/meter.h"

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

static void on_token(struct sink *s, const struct sink_token *e)
{
    struct meter *m = meter_of(s);
    m->n_tokens += e->token >= 0 && !m->reads_only;
    sink_front_token(s, e);
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    meter_of(s)->prompt_tokens += e->result->n_tokens;
    sink_front_result(s, e);
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    count(meter_of(s), e);
    sink_front_done(s, e);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    meter_of(s)->failed = true;
    sink_front_fail(s, f);
}

static void on_closed(struct sink *s)
{
    struct meter *m = meter_of(s);
    if (m->generated_tokens < m->n_tokens)
        m->generated_tokens = m->n_tokens;
    if (m->prompt_tokens == 0 && (!m->failed || m->n_tokens > 0))
        m->prompt_tokens = m->prompt_guess;
    admission_spend(m->admission, m->client, m->prompt_tokens, m->generated_tokens);
    sink_front_close(&m->front);
}

static void on_broke_off(struct sink *s, const struct sink_done *e, int code)
{
    count(meter_of(s), e);
    sink_front_broke_off(s, e, code);
}

void meter_init(struct meter *m, struct sink *s, struct admission *a, struct admission_client *c,
                uint32_t prompt_guess)
{
    static const struct sink_ops ops = {.start = sink_front_start,
                                        .plan = sink_front_plan,
                                        .prompt = sink_front_prompt,
                                        .token = on_token,
                                        .call = sink_front_call,
                                        .result = on_result,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .broke_off = on_broke_off,
                                        .may_replace = sink_front_may_replace,
                                        .replace = sink_front_replace,
                                        .flush = sink_front_flush,
                                        .full = sink_front_full};
    *m = (struct meter){.admission = a, .client = c, .n_each = 1, .prompt_guess = prompt_guess};
    sink_front_open(&m->front, &ops, s);
}
