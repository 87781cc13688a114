/* rollout_judge.c - see rollout_judge.h. */
#include "cluster/rollout/rollout_judge.h"

#include <stdio.h>

#include "cluster/messages/node_state.h"
#include "cluster/rollout/rollout_view.h"

static void add(struct rollout_figures *f, double *weighted, const struct rollout_side *s)
{
    if (!s->held)
        return;
    f->requests += s->held->requests;
    f->errors += s->held->errors;
    *weighted += (double)s->held->p95_us * (double)s->held->requests;
}

static void finish(struct rollout_figures *f, double weighted)
{
    f->p95_us = f->requests ? (uint64_t)(weighted / (double)f->requests) : 0;
}

void rollout_judge_count(struct rollout_figures *from, struct rollout_figures *to,
                         const struct rollout_view *v)
{
    double weighted[2] = {0, 0};
    *from = *to = (struct rollout_figures){0};
    for (uint32_t i = 0; i < v->n; i++) {
        add(from, &weighted[0], &v->places[i].from);
        add(to, &weighted[1], &v->places[i].to);
    }
    finish(from, weighted[0]);
    finish(to, weighted[1]);
}

/* Errors per 1000 requests. */
static double rate(uint64_t errors, uint64_t requests)
{
    return requests ? 1000.0 * (double)errors / (double)requests : 0;
}

enum rollout_verdict rollout_judge(const struct desired_judge *j,
                                   const struct rollout_figures *from,
                                   const struct rollout_figures *to, char *text, size_t cap)
{
    /* a restarted node counts from zero */
    uint64_t base = from->requests >= j->base_requests ? j->base_requests : 0;
    uint64_t base_errors = base && from->errors >= j->base_errors ? j->base_errors : 0;
    double old = rate(from->errors - base_errors, from->requests - base);
    double allowed = old + j->errors, new = rate(to->errors, to->requests);
    uint64_t enough = j->requests ? j->requests : 1;
    /* too many errors: the rate cannot recover, however the next requests end */
    if (rate(to->errors, to->requests > enough ? to->requests : enough) > allowed) {
        snprintf(text, cap, "%llu of %llu requests failed (%.1f %%; the old version: %.1f %%)",
                 (unsigned long long)to->errors, (unsigned long long)to->requests, new / 10,
                 old / 10);
        return ROLLOUT_BAD;
    }
    if (j->score_from && j->score_to && j->score_to + j->score < j->score_from) {
        snprintf(text, cap, "%.1f %% of the labelled inputs are right; the old version: %.1f %%",
                 (j->score_to - 1) / 10.0, (j->score_from - 1) / 10.0);
        return ROLLOUT_BAD;
    }
    if (to->requests < enough) {
        snprintf(text, cap, "%llu of %llu requests so far", (unsigned long long)to->requests,
                 (unsigned long long)enough);
        return ROLLOUT_WAIT;
    }
    if (j->p95 && from->p95_us && to->p95_us * 100 > from->p95_us * j->p95) {
        snprintf(text, cap, "the p95 is %.1f ms; the old version: %.1f ms",
                 (double)to->p95_us / 1000, (double)from->p95_us / 1000);
        return ROLLOUT_BAD;
    }
    if (j->labelled && (!j->score_from || !j->score_to)) {
        snprintf(text, cap, "the labelled inputs have not been scored yet");
        return ROLLOUT_WAIT;
    }
    snprintf(text, cap,
             "%llu requests, %.1f %% failed, p95 %.1f ms (the old version: %.1f %%, %.1f ms)",
             (unsigned long long)to->requests, new / 10, (double)to->p95_us / 1000, old / 10,
             (double)from->p95_us / 1000);
    return ROLLOUT_GOOD;
}
