/* router_estimate.c - see router_estimate.h. */
#include "router/router_estimate.h"

#include "base/work_time.h"

void router_speed_unseen(struct router_speed *s, uint32_t calls)
{
    uint32_t parallel = s->parallel ? s->parallel : 1;
    uint32_t shown = s->in_flight > parallel ? s->in_flight : parallel; /* others find a place */
    if (calls > shown)
        s->queue_ns += (calls - shown) * s->token_ns * s->answer_tokens / parallel;
    if (calls > s->in_flight)
        s->in_flight = calls;
}

struct router_estimate router_estimate(const struct router_speed *s, const struct router_work *w)
{
    const struct work_time_policy *p = &work_time_choose;
    struct router_estimate x = {.queue_ns = s->queue_ns + s->load_ns, .rtt_ns = s->rtt_ns};
    struct work_time_rates r = {.queue_ns = x.queue_ns};
    struct work_time t;
    if (w->specialist) {
        r.prefill_ns = s->unit_ns;
        x.known = s->unit_ns > 0;
        x.tokens = w->prompt_tokens;
        t = work_time_of_units(p, &r, w->prompt_tokens);
    } else {
        /* answers to one prompt are decoded side by side */
        const double tokens = work_time_tokens(p, s->answer_tokens, w->max_tokens);
        r.prefill_ns = s->prefill_ns;
        r.token_ns = s->token_ns;
        x.known = s->token_ns > 0;
        x.tokens = w->prompt_tokens + (w->n_answers ? w->n_answers : 1) * tokens;
        t = work_time_of(p, &r, w->prompt_tokens * (1 - s->held), tokens);
    }
    x.prefill_ns = t.prefill_ns;
    x.decode_ns = t.decode_ns;
    x.total_ns = t.total_ns + x.rtt_ns;
    x.sure_ns = work_time_sure(p, t.total_ns, s->error) + x.rtt_ns;
    return x;
}
