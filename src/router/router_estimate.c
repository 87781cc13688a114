/* router_estimate.c - see router_estimate.h. */
#include "router/router_estimate.h"

/* Of a model that was not measured yet: a small one on a small machine. */
#define UNKNOWN_PREFILL_NS 200000.0
#define UNKNOWN_TOKEN_NS 2000000.0
#define UNKNOWN_UNIT_NS 50000.0
#define UNKNOWN_TOKENS 64.0 /* of an answer without a limit */
/* Predictions are off by `error` on average.  More of a margin meets more deadlines and uses better
 * models less: with this one both are near what is possible (bench/router.c). */
#define MARGIN 1.0
#define LEAST_ERROR 0.05

static double expected_tokens(const struct router_speed *s, const struct router_work *w)
{
    double limit = w->max_tokens, learned = s->answer_tokens;
    if (learned <= 0)
        return limit > 0 ? limit : UNKNOWN_TOKENS;
    return limit > 0 && limit < learned ? limit : learned;
}

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
    struct router_estimate x = {.queue_ns = s->queue_ns + s->load_ns, .rtt_ns = s->rtt_ns};
    double answers = w->n_answers ? w->n_answers : 1;
    if (w->specialist) {
        x.known = s->unit_ns > 0;
        x.tokens = w->prompt_tokens;
        x.prefill_ns = w->prompt_tokens * (x.known ? s->unit_ns : UNKNOWN_UNIT_NS);
    } else {
        double tokens = expected_tokens(s, w);
        x.known = s->token_ns > 0;
        x.tokens = w->prompt_tokens + answers * tokens;
        x.prefill_ns = w->prompt_tokens * (s->prefill_ns > 0 ? s->prefill_ns : UNKNOWN_PREFILL_NS);
        /* answers to one prompt are decoded side by side */
        x.decode_ns = tokens * (s->token_ns > 0 ? s->token_ns : UNKNOWN_TOKEN_NS);
    }
    double error = s->error > LEAST_ERROR ? s->error : LEAST_ERROR;
    double work = x.queue_ns + x.prefill_ns + x.decode_ns;
    x.total_ns = work + x.rtt_ns;
    x.sure_ns = work * (1 + MARGIN * error) + x.rtt_ns;
    return x;
}
