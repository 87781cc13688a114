/* flow_trace.c - see flow_trace.h. */
#include "flow/flow_trace.h"

#include "base/clock.h"
#include "base/err.h"
#include "trace/trace_words.h"

/* The span of one piece of work of a model, which took this long until now. */
static uint32_t work_span(const struct trace_at *at, const char *model, const char *name,
                          uint64_t start, uint64_t now)
{
    const uint32_t span = trace_add(at->trace, at->span, name, start, now);
    trace_text(at->trace, span, TRACE_MODEL, model);
    return span;
}

void flow_trace_done(const struct trace_at *at, const char *model, const struct shoal_event *d,
                     const struct sink_energy *energy)
{
    struct trace *t = at->trace;
    if (!t)
        return;
    const uint64_t now = clock_ns(), start = now - d->total_ns;
    const uint64_t first = d->first_token_ns ? start + d->first_token_ns : now;
    const uint32_t all = work_span(at, model, "generate", start, now);
    trace_number(t, all, TRACE_INPUT_TOKENS, d->prompt_tokens);
    trace_number(t, all, TRACE_CACHED_TOKENS, d->cached_tokens);
    trace_number(t, all, TRACE_OUTPUT_TOKENS, d->generated_tokens);
    if (energy->known) {
        trace_number(t, all, TRACE_MICROJOULES, (int64_t)(energy->joules * 1e6));
        trace_text(t, all, TRACE_ENERGY, energy->estimated ? "estimated" : "measured");
    }
    if (d->finish == SHOAL_FINISH_ERROR)
        trace_fail(t, all, err_text(d->code));
    (void)trace_add(t, all, "queue", start, start + d->queue_ns);
    if (d->queue_ns < d->total_ns)
        (void)trace_add(t, all, "prompt", start + d->queue_ns, first);
    if (d->first_token_ns)
        (void)trace_add(t, all, "decode", first, now);
}

void flow_trace_result(const struct trace_at *at, const char *model, const struct shoal_result *r)
{
    struct trace *t = at->trace;
    if (!t)
        return;
    const uint64_t now = clock_ns(), start = now - r->total_ns;
    const uint32_t all = work_span(at, model, "infer", start, now);
    trace_number(t, all, TRACE_INPUT_TOKENS, r->n_tokens);
    trace_number(t, all, TRACE_BATCH, r->batch);
    if (r->code < 0)
        trace_fail(t, all, err_text(r->code));
    (void)trace_add(t, all, "queue", start, start + r->queue_ns);
    (void)trace_add(t, all, "run", start + r->queue_ns, now);
}
