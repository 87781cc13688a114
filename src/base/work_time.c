/* work_time.c - see work_time.h. */
#include "base/work_time.h"

#include <math.h>

/* Most predictions are closer than two errors; more than half of a prediction is no prediction. */
const struct work_time_policy work_time_refuse = {.tokens = 1, .errors = 2, .most_errors = 0.5};

/* More of a margin meets more deadlines and uses better models less: with this one both are near
 * what is possible (bench/bench_router.c). */
const struct work_time_policy work_time_choose = {.prefill_ns = 200000,
                                                  .token_ns = 2000000,
                                                  .unit_ns = 50000,
                                                  .tokens = 64,
                                                  .errors = 1,
                                                  .least_error = 0.05,
                                                  .most_errors = INFINITY};

double work_time_tokens(const struct work_time_policy *p, double learned, double limit)
{
    if (learned <= 0)
        return limit > 0 ? limit : p->tokens;
    return limit > 0 && limit < learned ? limit : learned;
}

static struct work_time sum(double queue_ns, double prefill_ns, double decode_ns)
{
    return (struct work_time){.prefill_ns = prefill_ns,
                              .decode_ns = decode_ns,
                              .total_ns = queue_ns + prefill_ns + decode_ns};
}

struct work_time work_time_of(const struct work_time_policy *p, const struct work_time_rates *r,
                              double prompt_tokens, double steps)
{
    const double prefill = prompt_tokens * (r->prefill_ns > 0 ? r->prefill_ns : p->prefill_ns);
    return sum(r->queue_ns, prefill > r->first_ns ? prefill : r->first_ns,
               steps * (r->token_ns > 0 ? r->token_ns : p->token_ns));
}

struct work_time work_time_of_units(const struct work_time_policy *p,
                                    const struct work_time_rates *r, double units)
{
    return sum(r->queue_ns, units * (r->prefill_ns > 0 ? r->prefill_ns : p->unit_ns), 0);
}

double work_time_sure(const struct work_time_policy *p, double ns, double error)
{
    const double one = error > p->least_error ? error : p->least_error;
    const double all = p->errors * one < p->most_errors ? p->errors * one : p->most_errors;
    return ns * (1 + all);
}
