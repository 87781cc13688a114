/* timings_json.c - see timings_json.h. */
#include "gateway/api/timings_json.h"

#include "base/clock.h"
#include "flow/sink.h"
#include "wire/json_out.h"

static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

/* Nanoseconds are as exact as the clock is. */
static void member(struct json_out *j, const char *key, double v)
{
    json_out_member_rounded(j, key, v, 6);
}

static double each(double total, double n)
{
    return n > 0 ? total / n : 0;
}

void timings_json(struct json_out *j, const struct sink_done *d)
{
    const double prompt_ms =
        ms(d->first_token_ns > d->queue_ns ? d->first_token_ns - d->queue_ns : 0);
    const double answer_ms =
        ms(d->total_ns > d->first_token_ns ? d->total_ns - d->first_token_ns : 0);
    const uint32_t computed = d->prompt_tokens - d->cached_tokens;
    /* the first token comes with the prompt, without its own step */
    const uint32_t steps = d->generated_tokens > 0 ? d->generated_tokens - 1 : 0;
    json_out_member_object(j, "timings");
    json_out_member_uint(j, "cache_n", d->cached_tokens);
    json_out_member_uint(j, "prompt_n", computed);
    member(j, "prompt_ms", prompt_ms);
    member(j, "prompt_per_token_ms", each(prompt_ms, computed));
    member(j, "prompt_per_second", each(1000.0 * computed, prompt_ms));
    json_out_member_uint(j, "predicted_n", d->generated_tokens);
    member(j, "predicted_ms", answer_ms);
    member(j, "predicted_per_token_ms", each(answer_ms, steps));
    member(j, "predicted_per_second", each(1000.0 * steps, answer_ms));
    json_out_object_end(j);
}

void timings_json_progress(struct json_out *j, const struct sink_prompt *e, uint64_t began_ns)
{
    json_out_member_object(j, "prompt_progress");
    json_out_member_uint(j, "total", e->tokens);
    json_out_member_uint(j, "cache", e->cached);
    json_out_member_uint(j, "processed", e->computed);
    member(j, "time_ms", ms(clock_ns() - began_ns));
    json_out_object_end(j);
}
