/* load_html.c - see load_report.h: the page with charts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "base/quantile.h"
#include "load/load_chart.h"
#include "load/load_report.h"

#define N_POINTS 60u /* of a chart over time */

static const char style[] =
    "<style>body{font:15px/1.5 system-ui,sans-serif;max-width:1360px;margin:2rem auto;padding:0 "
    "1rem;"
    "color:#1c2733;background:#fff}pre{overflow-x:auto}.charts{display:grid;gap:1rem;"
    "grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr))}svg{width:100%;height:auto;"
    "font-size:12px}svg text{fill:currentColor}.title{font-weight:600}.grid{stroke:#8885;fill:none}"
    ".line{fill:none;stroke-width:2}.s0{stroke:#0a7ea4}.s1{stroke:#d2691e}.s2{stroke:#b3261e}"
    "svg "
    ".legend{stroke:none}.legend.s0{fill:#0a7ea4}.legend.s1{fill:#d2691e}.legend.s2{fill:#b3261e}"
    "@media(prefers-color-scheme:dark){body{color:#dfe6ee;background:#12181f}.s0{stroke:#4cc2e8}"
    ".legend.s0{fill:#4cc2e8}.s1{stroke:#ffa65c}.legend.s1{fill:#ffa65c}.s2{stroke:#ff8a80}"
    ".legend.s2{fill:#ff8a80}}</style>";

static void put_escaped(struct buf *b, const char *s)
{
    for (; *s; s++)
        switch (*s) {
        case '<':
            buf_puts(b, "&lt;");
            break;
        case '>':
            buf_puts(b, "&gt;");
            break;
        case '&':
            buf_puts(b, "&amp;");
            break;
        default:
            buf_putc(b, *s);
        }
}

/* What share of answers took at most how long. */
static void put_shares(struct buf *b, const struct load_report *r, double *scratch)
{
    double x[2][101], y[101];
    struct load_series line[2] = {{"TTFT", x[0], y, 101}, {"E2E", x[1], y, 101}};
    for (size_t k = 0; k < 2; k++) {
        size_t n = 0;
        for (size_t i = 0; i < r->log->n; i++) {
            const struct load_record *rec = &r->log->records[i];
            if (rec->outcome != LOAD_OK || rec->due < r->skip_ns)
                continue;
            scratch[n] = k == 0 ? load_record_ttft(rec) : load_record_e2e(rec);
            n += isnan(scratch[n]) ? 0 : 1;
        }
        qsort(scratch, n, sizeof(*scratch), order_double);
        for (size_t i = 0; i <= 100; i++) {
            y[i] = (double)i;
            x[k][i] = n ? quantile_sorted(scratch, n, (double)i / 100.0) : 0.0;
        }
        if (n == 0)
            line[k].n = 0;
    }
    const struct load_chart c = {"Share of answers within a time", "ms", "%", line, 2};
    load_chart_svg(b, &c);
}

/* Quantiles of E2E, and how much was asked and answered, over the time of the run. */
static void put_over_time(struct buf *b, const struct load_report *r, double *scratch)
{
    double x[N_POINTS], p50[N_POINTS], p95[N_POINTS], due[N_POINTS] = {0}, ok[N_POINTS] = {0},
                                                      failed[N_POINTS] = {0};
    const double width = r->log->seconds / N_POINTS;
    for (size_t i = 0; i < N_POINTS; i++) {
        size_t n = 0;
        x[i] = ((double)i + 0.5) * width;
        for (size_t k = 0; k < r->log->n; k++) {
            const struct load_record *rec = &r->log->records[k];
            const bool began = (size_t)((double)rec->due / 1e9 / width) == i;
            const bool ended = rec->end && (size_t)((double)rec->end / 1e9 / width) == i;
            due[i] += began;
            ok[i] += ended && rec->outcome == LOAD_OK;
            failed[i] += ended && rec->outcome != LOAD_OK;
            if (began && rec->outcome == LOAD_OK)
                scratch[n++] = load_record_e2e(rec);
        }
        qsort(scratch, n, sizeof(*scratch), order_double);
        p50[i] = quantile_sorted(scratch, n, 0.5);
        p95[i] = quantile_sorted(scratch, n, 0.95);
        due[i] /= width;
        ok[i] /= width;
        failed[i] /= width;
    }
    const struct load_series times[] = {{"p50", x, p50, N_POINTS}, {"p95", x, p95, N_POINTS}};
    const struct load_series rates[] = {
        {"due", x, due, N_POINTS}, {"answered", x, ok, N_POINTS}, {"failed", x, failed, N_POINTS}};
    const struct load_chart e2e = {"E2E by the time a request was due", "s", "ms", times, 2};
    const struct load_chart rate = {"Requests", "s", "per second", rates, 3};
    load_chart_svg(b, &e2e);
    load_chart_svg(b, &rate);
}

static int by_rate(const void *a, const void *b)
{
    const struct load_step *x = a, *y = b;
    return (x->rate > y->rate) - (x->rate < y->rate);
}

static void put_search(struct buf *b, const struct load_report *r)
{
    struct load_step step[LOAD_MAX_STEPS];
    double x[LOAD_MAX_STEPS], good[LOAD_MAX_STEPS], ttft[LOAD_MAX_STEPS], e2e[LOAD_MAX_STEPS];
    memcpy(step, r->step, r->n_steps * sizeof(*step));
    qsort(step, r->n_steps, sizeof(*step), by_rate);
    for (uint32_t i = 0; i < r->n_steps; i++) {
        x[i] = step[i].rate;
        good[i] = 100.0 * step[i].summary.good_share;
        ttft[i] = step[i].summary.ttft.p95;
        e2e[i] = step[i].summary.e2e.p95;
    }
    const struct load_series shares[] = {{"good", x, good, r->n_steps}};
    const struct load_series times[] = {{"TTFT p95", x, ttft, r->n_steps},
                                        {"E2E p95", x, e2e, r->n_steps}};
    const struct load_chart g = {"Requests within the limits", "requests per second", "%", shares,
                                 1};
    const struct load_chart t = {"Latency by rate", "requests per second", "ms", times, 2};
    load_chart_svg(b, &g);
    load_chart_svg(b, &t);
}

void load_report_html(struct buf *b, const struct load_report *r)
{
    struct buf text;
    double *scratch = mem_zalloc_n(r->log->n + 1, sizeof(*scratch));
    buf_init(&text, (size_t)1 << 20);
    load_report_text(&text, r);
    buf_printf(b,
               "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
               "content=\"width=device-width\"><title>shoal load</title>%s<h1>shoal load</h1>"
               "<div class=\"charts\">\n",
               style);
    if (r->n_steps > 0)
        put_search(b, r);
    if (scratch && r->log->seconds > 0.0) {
        put_shares(b, r, scratch);
        put_over_time(b, r, scratch);
    }
    buf_puts(b, "</div><pre>");
    put_escaped(b, buf_str(&text));
    buf_puts(b, "</pre></html>\n");
    buf_fini(&text);
    mem_free(scratch);
}
