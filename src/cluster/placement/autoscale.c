/* autoscale.c - see autoscale.h. */
#include "cluster/placement/autoscale.h"

#include <stdio.h>

#define MAX_P95_RATIO                                                                              \
    2.0 /* latency does not grow in proportion: it means "more", not how much more */

struct autoscale_policy autoscale_policy_default(void)
{
    return (struct autoscale_policy){.min = 1,
                                     .max = 1,
                                     .cpu = 0.7,
                                     .queue = 2,
                                     .p95 = 0.8,
                                     .tolerance = 0.1,
                                     .max_growth = 2,
                                     .up_ms = 15 * 1000,
                                     .down_ms = 5 * 60 * 1000,
                                     .idle_ms = 0};
}

void autoscale_start(struct autoscale_state *s, uint32_t wanted, uint64_t now_ms)
{
    *s = (struct autoscale_state){
        .started = true, .wanted = wanted, .start_ms = now_ms, .busy_ms = now_ms};
}

static bool known(double v)
{
    return v > 0 && v < 1e15; /* false for NaN */
}

static uint32_t whole(double v) /* rounded up */
{
    if (!(v < 1e9))
        return 1000000000;
    uint32_t n = (uint32_t)v;
    return n + ((double)n < v - 1e-9);
}

/* Replicas required by the strongest signal; negative: no signal. The reason names it. */
static double ask(const struct autoscale_policy *p, const struct autoscale_signal *in,
                  char reason[AUTOSCALE_REASON_BYTES])
{
    double ready = in->ready ? in->ready : 1, most = -1;
    if (p->cpu > 0 && in->cpu >= 0 && in->cpu < 1e6 && in->ready > 0) {
        most = ready * in->cpu / p->cpu;
        snprintf(reason, AUTOSCALE_REASON_BYTES, "cpu at %.0f %%, target %.0f %%", in->cpu * 100,
                 p->cpu * 100);
    }
    if (known(in->capacity_per_s) && in->arrivals_per_s >= 0) {
        double n = in->arrivals_per_s / (in->capacity_per_s * (p->cpu > 0 ? p->cpu : 1));
        if (n > most) {
            most = n;
            snprintf(reason, AUTOSCALE_REASON_BYTES, "%.3g requests/s, a replica can answer %.3g",
                     in->arrivals_per_s, in->capacity_per_s);
        }
    }
    if (p->queue > 0 && known(in->queue) && in->queue / p->queue > most) {
        most = in->queue / p->queue;
        snprintf(reason, AUTOSCALE_REASON_BYTES, "%.0f requests wait, target %.3g per replica",
                 in->queue, p->queue);
    }
    if (p->p95 > 0 && known(in->p95_ms) && known(in->budget_ms)) {
        double ratio = in->p95_ms / (in->budget_ms * p->p95);
        ratio = ratio < MAX_P95_RATIO ? ratio : MAX_P95_RATIO;
        if (ratio > 1 + p->tolerance && ready * ratio > most) {
            most = ready * ratio;
            snprintf(reason, AUTOSCALE_REASON_BYTES, "p95 %.0f ms, target %.0f of %.0f ms",
                     in->p95_ms, in->budget_ms * p->p95, in->budget_ms);
        }
    }
    return most;
}

/* Records the demand, and returns the maximum of the last down_ms. */
static uint32_t remember(struct autoscale_state *s, const struct autoscale_policy *p,
                         uint64_t now_ms, uint32_t n)
{
    uint64_t width = p->down_ms / AUTOSCALE_SLOTS + 1, number = now_ms / width;
    size_t at = number % AUTOSCALE_SLOTS;
    if (s->slot[at] != number + 1) {
        s->slot[at] = number + 1;
        s->most[at] = 0;
    }
    s->most[at] = n > s->most[at] ? n : s->most[at];
    uint32_t most = 0;
    for (size_t i = 0; i < AUTOSCALE_SLOTS; i++)
        if (s->slot[i] && s->slot[i] + AUTOSCALE_SLOTS > number + 1 && s->most[i] > most)
            most = s->most[i];
    return most;
}

static uint32_t clamp(uint32_t n, uint32_t low, uint32_t high)
{
    return n < low ? low : n > high ? high : n;
}

static struct autoscale_decision decide(struct autoscale_state *s, uint32_t n, uint64_t now_ms,
                                        struct autoscale_decision d)
{
    d.change = n > s->wanted ? AUTOSCALE_UP : n < s->wanted ? AUTOSCALE_DOWN : AUTOSCALE_KEEP;
    d.replicas = s->wanted = n;
    if (d.change == AUTOSCALE_UP)
        s->up_ms = now_ms;
    return d;
}

struct autoscale_decision autoscale_decide(struct autoscale_state *s,
                                           const struct autoscale_policy *p,
                                           const struct autoscale_signal *in)
{
    struct autoscale_decision d = {.reason = "no signal"};
    bool to_zero = p->min == 0 && p->idle_ms > 0;
    bool work = in->arrivals_per_s > 0 || in->queue > 0;
    uint32_t high = p->max > p->min ? p->max : p->min, low = to_zero || p->min ? p->min : 1;
    if (!s->started)
        autoscale_start(s, in->ready, in->now_ms);
    high = high > low ? high : low;
    if (work)
        s->busy_ms = in->now_ms;
    if (s->wanted < low || s->wanted > high) { /* the limits changed */
        snprintf(d.reason, sizeof(d.reason), "between %u and %u are allowed", low, high);
        return decide(s, clamp(s->wanted, low, high), in->now_ms, d);
    }
    if (to_zero && s->wanted == 0) {
        snprintf(d.reason, sizeof(d.reason), work ? "a request came" : "idle");
        return decide(s, work && high > 0 ? 1 : 0, in->now_ms, d);
    }
    if (to_zero && !work && in->now_ms >= s->busy_ms && in->now_ms - s->busy_ms >= p->idle_ms) {
        snprintf(d.reason, sizeof(d.reason), "idle for %.0f s",
                 (double)(in->now_ms - s->busy_ms) / 1000);
        return decide(s, 0, in->now_ms, d);
    }
    double asked = ask(p, in, d.reason);
    double base = in->ready ? in->ready : 1;
    bool near = asked >= base * (1 - p->tolerance) && asked <= base * (1 + p->tolerance);
    uint32_t n = near || asked < 0 ? s->wanted : whole(asked);
    n = clamp(n, low ? low : 1, high);
    uint32_t most = remember(s, p, in->now_ms, n);
    if (n > s->wanted) {
        if (s->up_ms && in->now_ms - s->up_ms < p->up_ms) {
            size_t at = (size_t)snprintf(NULL, 0, "%s", d.reason);
            snprintf(d.reason + at, sizeof(d.reason) - at, "; cool-down after growing");
            return decide(s, s->wanted, in->now_ms, d);
        }
        double grown = s->wanted * (p->max_growth > 1 ? p->max_growth : 1);
        uint32_t limit = grown > s->wanted + 1.0 ? whole(grown) : s->wanted + 1;
        return decide(s, n < limit ? n : limit, in->now_ms, d);
    }
    if (most < s->wanted && in->now_ms - s->start_ms >= p->down_ms)
        return decide(s, most, in->now_ms, d);
    return decide(s, s->wanted, in->now_ms, d);
}
