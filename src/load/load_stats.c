/* load_stats.c - see load_stats.h. */
#include "load/load_stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "base/quantile.h"
#include "base/room.h"
#include "load/load_arrivals.h"

static const char *const names[LOAD_OUTCOMES] = {
    [LOAD_OK] = "ok",           [LOAD_CONNECT] = "connect",
    [LOAD_TIMEOUT] = "timeout", [LOAD_REFUSED] = "refused",
    [LOAD_CLIENT] = "client",   [LOAD_SERVER] = "server",
    [LOAD_BROKEN] = "broken",   [LOAD_REPORTED] = "reported",
    [LOAD_FORMAT] = "format",   [LOAD_UNFINISHED] = "unfinished"};

const char *load_outcome_name(enum load_outcome o)
{
    return names[o];
}

/* ---- the log ---- */

void load_log_init(struct load_log *l, uint64_t seed)
{
    *l = (struct load_log){.seed = seed};
}

void load_log_fini(struct load_log *l)
{
    mem_free(l->records);
    mem_free(l->gaps);
    *l = (struct load_log){0};
}

size_t load_log_add(struct load_log *l)
{
    if (!room_make(&l->records, &l->cap, l->n, sizeof(*l->records), 1024))
        return SIZE_MAX;
    l->records[l->n] = (struct load_record){.outcome = LOAD_UNFINISHED};
    return l->n++;
}

void load_log_gap(struct load_log *l, uint64_t ns)
{
    const double ms = (double)ns / 1e6;
    l->seen_gaps++;
    if (l->n_gaps == LOAD_MAX_GAPS) { /* each one seen so far is kept with the same probability */
        uint64_t at = load_random(&l->seed) % l->seen_gaps;
        if (at < LOAD_MAX_GAPS)
            l->gaps[at] = ms;
        return;
    }
    if (!room_make(&l->gaps, &l->cap_gaps, l->n_gaps, sizeof(*l->gaps), 4096))
        return;
    l->gaps[l->n_gaps++] = ms;
}

void load_log_error(struct load_log *l, size_t i, enum load_outcome o, int status,
                    const char *message)
{
    l->records[i].outcome = (uint8_t)o;
    l->records[i].status = (uint16_t)status;
    if (l->example[o][0])
        return;
    snprintf(l->example[o], sizeof(l->example[o]), "%s", message);
    l->example_status[o] = (uint16_t)status;
}

/* ---- one request ---- */

int load_slo_parse(struct load_slo *s, const char *text, struct err *e)
{
    char copy[200], *at = copy, *word, *end;
    *s = (struct load_slo){0};
    snprintf(copy, sizeof(copy), "%s", text);
    while ((word = strsep(&at, ","))) {
        char *colon = strchr(word, ':');
        double *to = strncmp(word, "ttft:", 5) == 0   ? &s->ttft
                     : strncmp(word, "tpot:", 5) == 0 ? &s->tpot
                     : strncmp(word, "e2e:", 4) == 0  ? &s->e2e
                                                      : NULL;
        if (to)
            *to = strtod(colon + 1, &end);
        if (!to || end == colon + 1 || *end || !(*to > 0.0 && *to < 1e9))
            return err_set(e, SHOAL_EINVAL,
                           "'%.60s': write limits in ms, as in ttft:200,tpot:50,e2e:2000", word);
    }
    return 0;
}

double load_record_ttft(const struct load_record *r)
{
    return r->first ? (double)(r->first - r->due) / 1e6 : (double)NAN;
}

static double tpot_of(const struct load_record *r)
{
    const uint32_t n = r->n_tokens ? r->n_tokens : r->n_pieces;
    return r->n_pieces > 1 && n > 1 ? (double)(r->last - r->first) / 1e6 / (n - 1) : (double)NAN;
}

double load_record_e2e(const struct load_record *r)
{
    return (double)(r->end - r->due) / 1e6;
}

/* What an answer does not have cannot be too slow. */
static bool within(double ms, double limit)
{
    return limit <= 0.0 || isnan(ms) || ms <= limit;
}

bool load_record_good(const struct load_record *r, const struct load_slo *s)
{
    return r->outcome == LOAD_OK && within(load_record_ttft(r), s->ttft) &&
           within(tpot_of(r), s->tpot) && within(load_record_e2e(r), s->e2e);
}

/* ---- all of them ---- */

static double late_of(const struct load_record *r)
{
    return r->sent ? (double)(r->sent - r->due) / 1e6 : (double)NAN;
}

/* Sorts the values. */
static void put_times(struct load_times *out, double *values, size_t n)
{
    double sum = 0.0;
    *out = (struct load_times){.n = n};
    if (n == 0)
        return;
    qsort(values, n, sizeof(*values), order_double);
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    out->mean = sum / (double)n;
    out->p50 = quantile_sorted(values, n, 0.5);
    out->p90 = quantile_sorted(values, n, 0.9);
    out->p95 = quantile_sorted(values, n, 0.95);
    out->p99 = quantile_sorted(values, n, 0.99);
    out->max = values[n - 1];
}

int load_summarize(struct load_summary *out, const struct load_log *l, int part, uint64_t skip_ns,
                   const struct load_slo *s, struct err *e)
{
    double (*const of[])(const struct load_record *) = {load_record_ttft, tpot_of, load_record_e2e,
                                                        late_of};
    struct load_times *const to[] = {&out->ttft, &out->tpot, &out->e2e, &out->late};
    const size_t most = l->n > l->n_gaps ? l->n : l->n_gaps;
    const double seconds = l->seconds - (double)skip_ns / 1e9;
    *out = (struct load_summary){0};
    double *values = mem_zalloc_n(most + 1, sizeof(*values));
    if (!values)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu requests", l->n);
    for (size_t i = 0; i < l->n; i++) {
        const struct load_record *r = &l->records[i];
        if ((part >= 0 && r->part != part) || r->due < skip_ns)
            continue;
        out->n++;
        out->n_outcome[r->outcome]++;
        out->n_failed += r->outcome != LOAD_OK && r->outcome != LOAD_UNFINISHED;
        out->n_good += load_record_good(r, s);
        if (r->outcome == LOAD_OK)
            out->n_tokens += r->n_tokens ? r->n_tokens : r->n_pieces;
    }
    for (size_t k = 0; k < 4; k++) {
        size_t n = 0;
        for (size_t i = 0; i < l->n; i++) {
            const struct load_record *r = &l->records[i];
            const bool counts = of[k] == late_of || r->outcome == LOAD_OK;
            if ((part >= 0 && r->part != part) || r->due < skip_ns || !counts)
                continue;
            values[n] = of[k](r);
            n += isnan(values[n]) ? 0 : 1;
        }
        put_times(to[k], values, n);
    }
    if (l->n_gaps > 0)
        memcpy(values, l->gaps, l->n_gaps * sizeof(*values));
    put_times(&out->itl, values, l->n_gaps);
    const uint64_t judged = out->n - out->n_outcome[LOAD_UNFINISHED];
    out->good_share = judged ? (double)out->n_good / (double)judged : 0.0;
    if (seconds > 0.0) {
        out->requests_per_s = (double)out->n_outcome[LOAD_OK] / seconds;
        out->tokens_per_s = (double)out->n_tokens / seconds;
        out->good_per_s = (double)out->n_good / seconds;
    }
    mem_free(values);
    return 0;
}
