/* load_report.c - see load_report.h: text and JSON. */
#include "load/load_report.h"

#include <inttypes.h>
#include <stddef.h>

#include "wire/json_out.h"

static const struct {
    const char *name, *key, *meaning;
    size_t at;
} rows[] = {
    {"TTFT", "ttft_ms", "from the time a request was due to its first piece of text",
     offsetof(struct load_summary, ttft)},
    {"ITL", "itl_ms", "between two pieces of text of one answer, all gaps of all answers",
     offsetof(struct load_summary, itl)},
    {"TPOT", "tpot_ms",
     "of an answer: (last piece - first piece) / (output tokens - 1); tokens as the server counts "
     "them, or else pieces",
     offsetof(struct load_summary, tpot)},
    {"E2E", "e2e_ms", "from the time a request was due to the end of its answer",
     offsetof(struct load_summary, e2e)},
    {"late", "late_ms", "from the time a request was due to a connection taking it",
     offsetof(struct load_summary, late)},
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static const struct load_times *times_of(const struct load_summary *s, size_t row)
{
    return (const struct load_times *)(const void *)((const char *)s + rows[row].at);
}

static double share(double part, double whole)
{
    return whole > 0.0 ? part / whole : 0.0;
}

/* ---- text ---- */

static void put_errors(struct buf *b, const struct load_report *r)
{
    for (unsigned o = LOAD_OK + 1; o < LOAD_OUTCOMES; o++) {
        if (r->all.n_outcome[o] == 0)
            continue;
        buf_printf(b, "  %-11s %8" PRIu64, load_outcome_name((enum load_outcome)o),
                   r->all.n_outcome[o]);
        if (r->log->example_status[o])
            buf_printf(b, "  status %u", r->log->example_status[o]);
        buf_printf(b, "%s%s\n", r->log->example[o][0] ? "  " : "", r->log->example[o]);
    }
}

static void put_slo(struct buf *b, const struct load_slo *s)
{
    const double limit[] = {s->ttft, s->tpot, s->e2e};
    static const char *const name[] = {"TTFT", "TPOT", "E2E"};
    bool any = false;
    for (size_t i = 0; i < 3; i++)
        if (limit[i] > 0.0) {
            buf_printf(b, "%s%s <= %g ms", any ? ", " : "", name[i], limit[i]);
            any = true;
        }
    if (!any)
        buf_puts(b, "complete answers; set limits with --slo");
}

static void put_steps(struct buf *b, const struct load_report *r)
{
    buf_puts(b, "\n    rate/s   good   answers/s   tokens/s  TTFT p95   E2E p95\n");
    for (uint32_t i = 0; i < r->n_steps; i++) {
        const struct load_step *s = &r->step[i];
        buf_printf(b, "%10.2f %5.1f%% %11.2f %10.1f %9.1f %9.1f  %s\n", s->rate,
                   100.0 * s->summary.good_share, s->summary.requests_per_s,
                   s->summary.tokens_per_s, s->summary.ttft.p95, s->summary.e2e.p95,
                   s->held ? "held" : "not held");
    }
    buf_printf(b, "held: %s\n", r->held_means);
    if (r->capacity > 0.0)
        buf_printf(b, "capacity: %.2f requests per second; its figures:\n", r->capacity);
    else
        buf_puts(b, "capacity: no rate was held; try a lower --rate or a wider --slo\n");
}

void load_report_text(struct buf *b, const struct load_report *r)
{
    const struct load_summary *s = &r->all;
    const double late = s->late.p99;
    buf_printf(b, "%s (%s)", r->url, r->api);
    if (r->model[0])
        buf_printf(b, ", model %s", r->model);
    if (r->rate > 0.0)
        buf_printf(b, ", %s, %g requests per second\n", r->pattern, r->rate);
    else
        buf_printf(b, ", %s\n", r->pattern);
    if (r->n_steps > 0)
        put_steps(b, r);
    buf_printf(b, "\n%" PRIu64 " requests in %.1f s: %" PRIu64 " answered, %" PRIu64 " failed%s\n",
               s->n, r->log->seconds, s->n_outcome[LOAD_OK], s->n_failed,
               r->interrupted ? ", interrupted" : "");
    put_errors(b, r);
    buf_printf(b, "throughput  %.2f answers/s, %.1f output tokens/s\n", s->requests_per_s,
               s->tokens_per_s);
    buf_printf(b, "goodput     %.2f answers/s, %.1f %% of requests (", s->good_per_s,
               100.0 * s->good_share);
    put_slo(b, r->slo);
    buf_printf(b, ")\n\n%-6s %8s %9s %9s %9s %9s %9s %9s\n", "ms", "n", "mean", "p50", "p90", "p95",
               "p99", "max");
    for (size_t i = 0; i < N_ROWS; i++) {
        const struct load_times *t = times_of(s, i);
        if (t->n > 0)
            buf_printf(b, "%-6s %8zu %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f\n", rows[i].name, t->n,
                       t->mean, t->p50, t->p90, t->p95, t->p99, t->max);
    }
    for (uint32_t i = 0; r->mix->n > 1 && i < r->mix->n; i++)
        buf_printf(b,
                   "%s%-10s %-16s %8" PRIu64 " answered, %" PRIu64
                   " failed, TTFT p95 %.2f, E2E p95 %.2f ms\n",
                   i == 0 ? "\n" : "", load_kind_name(r->mix->part[i].kind), r->mix->part[i].model,
                   r->part[i].n_outcome[LOAD_OK], r->part[i].n_failed, r->part[i].ttft.p95,
                   r->part[i].e2e.p95);
    buf_puts(b, "\n");
    for (size_t i = 0; i < N_ROWS; i++)
        buf_printf(b, "%-5s %s\n", rows[i].name, rows[i].meaning);
    const double cpu = share(r->log->cpu_s, r->log->seconds);
    buf_printf(b, "this program used %.0f %% of a core\n", 100.0 * cpu);
    if (cpu > 0.8 || late > 10.0)
        buf_puts(b,
                 "warning: this program could not send in time; the figures include its own delay. "
                 "Use a lower rate, more --connections, or several machines.\n");
}

/* ---- JSON ---- */

static void json_times(struct json_out *j, const struct load_summary *s)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        const struct load_times *t = times_of(s, i);
        const double v[] = {t->mean, t->p50, t->p90, t->p95, t->p99, t->max};
        static const char *const keys[] = {"mean", "p50", "p90", "p95", "p99", "max"};
        json_out_member_object(j, rows[i].key);
        json_out_member_uint(j, "n", t->n);
        for (size_t k = 0; t->n > 0 && k < 6; k++)
            json_out_member_rounded(j, keys[k], v[k], 4);
        json_out_object_end(j);
    }
}

static void member(struct json_out *j, const char *key, double v)
{
    json_out_member_rounded(j, key, v, 4);
}

static void json_summary(struct json_out *j, const struct load_summary *s)
{
    json_out_member_uint(j, "requests", s->n);
    json_out_member_uint(j, "answered", s->n_outcome[LOAD_OK]);
    json_out_member_uint(j, "failed", s->n_failed);
    json_out_member_uint(j, "unfinished", s->n_outcome[LOAD_UNFINISHED]);
    json_out_member_uint(j, "output_tokens", s->n_tokens);
    member(j, "answers_per_s", s->requests_per_s);
    member(j, "output_tokens_per_s", s->tokens_per_s);
    member(j, "goodput_per_s", s->good_per_s);
    member(j, "goodput_share", s->good_share);
    json_times(j, s);
}

static void json_errors(struct json_out *j, const struct load_report *r)
{
    json_out_member_array(j, "errors");
    for (unsigned o = LOAD_OK + 1; o < LOAD_UNFINISHED; o++) {
        if (r->all.n_outcome[o] == 0)
            continue;
        json_out_object(j);
        json_out_member_str(j, "kind", load_outcome_name((enum load_outcome)o));
        json_out_member_uint(j, "n", r->all.n_outcome[o]);
        json_out_member_uint(j, "status", r->log->example_status[o]);
        json_out_member_str(j, "example", r->log->example[o]);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

static void json_steps(struct json_out *j, const struct load_report *r)
{
    json_out_member_object(j, "capacity");
    member(j, "rate_per_s", r->capacity);
    json_out_member_str(j, "held_means", r->held_means);
    json_out_member_array(j, "steps");
    for (uint32_t i = 0; i < r->n_steps; i++) {
        json_out_object(j);
        member(j, "rate_per_s", r->step[i].rate);
        json_out_member_bool(j, "held", r->step[i].held);
        json_summary(j, &r->step[i].summary);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_object_end(j);
}

void load_report_json(struct buf *b, const struct load_report *r)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_member_str(&j, "url", r->url);
    json_out_member_str(&j, "api", r->api);
    json_out_member_str(&j, "model", r->model);
    json_out_member_str(&j, "arrivals", r->pattern);
    member(&j, "rate_per_s", r->rate);
    member(&j, "seconds", r->log->seconds);
    json_out_member_bool(&j, "interrupted", r->interrupted);
    json_summary(&j, &r->all);
    json_errors(&j, r);
    json_out_member_object(&j, "slo_ms");
    member(&j, "ttft", r->slo->ttft);
    member(&j, "tpot", r->slo->tpot);
    member(&j, "e2e", r->slo->e2e);
    json_out_object_end(&j);
    json_out_member_array(&j, "parts");
    for (uint32_t i = 0; i < r->mix->n; i++) {
        json_out_object(&j);
        json_out_member_str(&j, "kind", load_kind_name(r->mix->part[i].kind));
        json_out_member_str(&j, "model", r->mix->part[i].model);
        json_summary(&j, &r->part[i]);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    if (r->n_steps > 0)
        json_steps(&j, r);
    json_out_member_object(&j, "generator");
    member(&j, "cpu_s", r->log->cpu_s);
    member(&j, "cpu_share", share(r->log->cpu_s, r->log->seconds));
    json_out_object_end(&j);
    json_out_member_object(&j, "definitions");
    for (size_t i = 0; i < N_ROWS; i++)
        json_out_member_str(&j, rows[i].key, rows[i].meaning);
    json_out_object_end(&j);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}
