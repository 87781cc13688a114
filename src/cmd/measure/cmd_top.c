/* cmd_top.c - shoal top: what a server does now, from two readings of its metrics. */
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes_text.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/server_ask.h"
#include "net/http_ask.h"
#include "wire/json_out.h"
#include "wire/prom_in.h"

cmd_fn cmd_top;

#define MAX_MODELS 256u
#define MAX_BUCKETS 24u
#define ANSWER_MS 30000u

static const struct opts_def defs[] = {
    SERVER_ASK_DEFS,
    {"interval", 'i', OPTS_REAL, "S", "2", 0.01, 3600, "seconds between two readings"},
    {"once", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one interval and end"},
};

static const struct opts_page page = {
    .command = "top",
    .arguments = "",
    .summary = "Shows what a server does now: requests, tokens, latencies, memory of its models.",
    .details = "Rates and latencies are of the last interval. Ctrl-C ends it.\n"
               "'shoal cluster top' shows the nodes of a shoal.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal top\n"
                "  shoal top --server http://10.0.0.7:8080 --once --json\n",
};

struct times { /* a histogram: cumulative counts */
    double le[MAX_BUCKETS], n[MAX_BUCKETS];
    uint32_t n_buckets;
};

/* Counters and gauges of a model; the same order as `rows`. */
enum {
    REQUESTS,
    PROMPT,
    OUTPUT,
    ERRORS,
    RUNNING,
    HITS,
    MISSES,
    BYTES,
    PAGES,
    PAGES_USED,
    N_FIGURES
};
enum { QUEUE, FIRST, PER_TOKEN, N_TIMES };

static const char *const rows[N_FIGURES] = {"shoal_requests_total",
                                            "shoal_prompt_tokens_total",
                                            "shoal_generated_tokens_total",
                                            "shoal_errors_total",
                                            "shoal_in_flight",
                                            "shoal_prompt_cache_hits_total",
                                            "shoal_prompt_cache_misses_total",
                                            "shoal_model_bytes",
                                            "shoal_kv_pages",
                                            "shoal_kv_pages_used"};
static const char *const time_rows[N_TIMES] = {
    "shoal_queue_seconds_bucket", "shoal_first_token_seconds_bucket", "shoal_token_seconds_bucket"};

struct model {
    char name[128];
    double v[N_FIGURES];
    struct times t[N_TIMES];
};

struct glance {
    uint64_t at_ns;
    double responses, failed, refused, calls, uptime, ready, lost;
    struct model model[MAX_MODELS];
    uint32_t n_models;
};

/* ---- reading ---- */

static struct model *find_model(struct glance *r, const struct prom_sample *s)
{
    char name[128];
    if (!prom_in_label(s, "model", name, sizeof(name)))
        return NULL;
    for (uint32_t i = 0; i < r->n_models; i++)
        if (strcmp(r->model[i].name, name) == 0)
            return &r->model[i];
    if (r->n_models == MAX_MODELS)
        return NULL;
    struct model *m = &r->model[r->n_models++];
    *m = (struct model){0};
    memcpy(m->name, name, sizeof(name));
    return m;
}

static void add_server(struct glance *r, const struct prom_sample *s)
{
    char text[32];
    if (prom_in_is(s, "shoal_responses_total") && prom_in_label(s, "status", text, sizeof(text))) {
        r->responses += s->value;
        r->failed += text[0] == '5' ? s->value : 0.0;
    } else if (prom_in_is(s, "shoal_refused_total")) {
        r->refused += s->value;
    } else if (prom_in_is(s, "shoal_calls_in_flight")) {
        r->calls = s->value;
    } else if (prom_in_is(s, "shoal_uptime_seconds")) {
        r->uptime = s->value;
    } else if (prom_in_is(s, "shoal_nodes") && prom_in_label(s, "state", text, sizeof(text))) {
        *(text[0] == 'r' ? &r->ready : &r->lost) = s->value;
    }
}

static void add_sample(struct glance *r, const struct prom_sample *s)
{
    struct model *m = find_model(r, s);
    char le[32];
    if (!m) {
        add_server(r, s);
        return;
    }
    for (uint32_t i = 0; i < N_FIGURES; i++)
        if (prom_in_is(s, rows[i]))
            m->v[i] = s->value;
    for (uint32_t i = 0; i < N_TIMES; i++) {
        struct times *t = &m->t[i];
        if (prom_in_is(s, time_rows[i]) && t->n_buckets < MAX_BUCKETS &&
            prom_in_label(s, "le", le, sizeof(le))) {
            t->le[t->n_buckets] = strtod(le, NULL); /* "+Inf" too */
            t->n[t->n_buckets++] = s->value;
        }
    }
}

static int take(struct glance *r, struct server_ask *ask)
{
    struct err e = {0};
    int status = 0;
    const struct http_ask a = {.server = ask->server,
                               .method = "GET",
                               .path = "/metrics",
                               .key = ask->key,
                               .timeout_ms = ANSWER_MS};
    buf_clear(&ask->body);
    if (http_ask(&a, &status, &ask->body, &e) < 0)
        return cmd_fail(ask->o->page, "%s", e.msg);
    if (status != 200)
        return cmd_fail(ask->o->page, "%s refused the request: status %d%s", ask->server, status,
                        status == 401 || status == 403 ? "; use a key: --key or SHOAL_API_KEY"
                                                       : "");
    struct prom_sample s;
    const char *p = buf_str(&ask->body), *end = p + ask->body.len;
    memset(r, 0, sizeof(*r));
    r->at_ns = clock_ns();
    while (prom_in_next(&p, end, &s))
        add_sample(r, &s);
    if (r->uptime <= 0.0)
        return cmd_fail(ask->o->page, "%s does not respond like 'shoal serve'", ask->server);
    return CMD_OK;
}

/* ---- between two readings ---- */

static const struct model *before(const struct glance *old, const char *name)
{
    static const struct model none;
    for (uint32_t i = 0; i < old->n_models; i++)
        if (strcmp(old->model[i].name, name) == 0)
            return &old->model[i];
    return &none;
}

static double count_up_to(const struct times *t, double le)
{
    double n = 0.0;
    for (uint32_t i = 0; i < t->n_buckets; i++)
        if (t->le[i] <= le)
            n = t->n[i];
    return n;
}

/* The q-quantile in ms of what came between, interpolated within a bucket; NAN: nothing came. */
static double quantile_ms(const struct times *old, const struct times *now, double q)
{
    double below = 0.0, from = 0.0;
    const double all = count_up_to(now, (double)INFINITY) - count_up_to(old, (double)INFINITY);
    for (uint32_t i = 0; all > 0.0 && i < now->n_buckets; i++) {
        const double n = now->n[i] - count_up_to(old, now->le[i]);
        if (n >= q * all && n > below)
            return 1e3 * (isinf(now->le[i])
                              ? from
                              : from + (now->le[i] - from) * (q * all - below) / (n - below));
        below = n;
        from = now->le[i];
    }
    return (double)NAN;
}

static double per_s(double now, double old, double seconds)
{
    return now >= old && seconds > 0.0 ? (now - old) / seconds : 0.0; /* less: it was restarted */
}

static double share(double part, double whole)
{
    return whole > 0.0 ? part / whole : (double)NAN;
}

static void put_number(struct buf *b, double v, int width, int decimals)
{
    if (isnan(v))
        buf_printf(b, " %*s", width, "-");
    else
        buf_printf(b, " %*.*f", width, decimals, v);
}

static void put_text(struct buf *b, const char *server, const struct glance *old,
                     const struct glance *now)
{
    const double s = (double)(now->at_ns - old->at_ns) / 1e9;
    double tokens = 0.0;
    for (uint32_t i = 0; i < now->n_models; i++)
        tokens += per_s(now->model[i].v[OUTPUT], before(old, now->model[i].name)->v[OUTPUT], s);
    buf_printf(
        b,
        "%s  up %.0f s  %.1f answers/s  %.1f output tokens/s  %.0f in flight  %.1f refused/s  "
        "%.1f errors/s\n",
        server, now->uptime, per_s(now->responses, old->responses, s), tokens, now->calls,
        per_s(now->refused, old->refused, s), per_s(now->failed, old->failed, s));
    if (now->ready + now->lost > 0.0)
        buf_printf(b, "nodes: %.0f ready, %.0f lost\n", now->ready, now->lost);
    buf_printf(b, "\n%-20s %7s %7s %8s %7s %8s %8s %8s %7s %6s %6s %9s\n", "model", "req/s",
               "running", "tokens/s", "queue95", "first50", "first95", "first99", "token95",
               "cache", "pages", "memory");
    for (uint32_t i = 0; i < now->n_models; i++) {
        const struct model *m = &now->model[i], *o = before(old, m->name);
        char bytes[32];
        buf_printf(b, "%-20.20s", m->name);
        put_number(b, per_s(m->v[REQUESTS], o->v[REQUESTS], s), 7, 1);
        put_number(b, m->v[RUNNING], 7, 0);
        put_number(b, per_s(m->v[OUTPUT], o->v[OUTPUT], s), 8, 1);
        put_number(b, quantile_ms(&o->t[QUEUE], &m->t[QUEUE], 0.95), 7, 1);
        put_number(b, quantile_ms(&o->t[FIRST], &m->t[FIRST], 0.5), 8, 1);
        put_number(b, quantile_ms(&o->t[FIRST], &m->t[FIRST], 0.95), 8, 1);
        put_number(b, quantile_ms(&o->t[FIRST], &m->t[FIRST], 0.99), 8, 1);
        put_number(b, quantile_ms(&o->t[PER_TOKEN], &m->t[PER_TOKEN], 0.95), 7, 1);
        const double hits = m->v[HITS] - o->v[HITS], misses = m->v[MISSES] - o->v[MISSES];
        put_number(b, 100.0 * share(hits, hits + misses), 5, 0);
        buf_puts(b, isnan(share(hits, hits + misses)) ? " " : "%");
        put_number(b, 100.0 * share(m->v[PAGES_USED], m->v[PAGES]), 5, 0);
        buf_puts(b, m->v[PAGES] > 0.0 ? "%" : " ");
        buf_printf(b, " %9s\n", bytes_text(bytes, m->v[BYTES]));
    }
    buf_puts(b, "\nqueue, first (token) and (per) token: quantiles in ms of the last interval\n");
}

static void member(struct json_out *j, const char *key, double v)
{
    json_out_member_rounded(j, key, v, 4); /* NAN: null */
}

static void put_json(struct buf *b, const struct glance *old, const struct glance *now)
{
    const double s = (double)(now->at_ns - old->at_ns) / 1e9;
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    member(&j, "interval_s", s);
    member(&j, "uptime_s", now->uptime);
    member(&j, "answers_per_s", per_s(now->responses, old->responses, s));
    member(&j, "refused_per_s", per_s(now->refused, old->refused, s));
    member(&j, "errors_per_s", per_s(now->failed, old->failed, s));
    member(&j, "calls_in_flight", now->calls);
    member(&j, "nodes_ready", now->ready);
    member(&j, "nodes_lost", now->lost);
    json_out_member_array(&j, "models");
    for (uint32_t i = 0; i < now->n_models; i++) {
        const struct model *m = &now->model[i], *o = before(old, m->name);
        const double hits = m->v[HITS] - o->v[HITS], misses = m->v[MISSES] - o->v[MISSES];
        json_out_object(&j);
        json_out_member_str(&j, "model", m->name);
        member(&j, "requests_per_s", per_s(m->v[REQUESTS], o->v[REQUESTS], s));
        member(&j, "prompt_tokens_per_s", per_s(m->v[PROMPT], o->v[PROMPT], s));
        member(&j, "output_tokens_per_s", per_s(m->v[OUTPUT], o->v[OUTPUT], s));
        member(&j, "errors_per_s", per_s(m->v[ERRORS], o->v[ERRORS], s));
        member(&j, "running", m->v[RUNNING]);
        member(&j, "queue_p95_ms", quantile_ms(&o->t[QUEUE], &m->t[QUEUE], 0.95));
        member(&j, "first_token_p50_ms", quantile_ms(&o->t[FIRST], &m->t[FIRST], 0.5));
        member(&j, "first_token_p95_ms", quantile_ms(&o->t[FIRST], &m->t[FIRST], 0.95));
        member(&j, "first_token_p99_ms", quantile_ms(&o->t[FIRST], &m->t[FIRST], 0.99));
        member(&j, "token_p95_ms", quantile_ms(&o->t[PER_TOKEN], &m->t[PER_TOKEN], 0.95));
        member(&j, "cache_hit_share", share(hits, hits + misses));
        member(&j, "kv_pages_used_share", share(m->v[PAGES_USED], m->v[PAGES]));
        member(&j, "memory_bytes", m->v[BYTES]);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

static int print(const struct opts *o, const char *server, const struct glance *old,
                 const struct glance *now)
{
    struct buf b;
    buf_init(&b, (size_t)4 << 20);
    if (opts_flag(o, "json")) {
        put_json(&b, old, now);
    } else {
        if (isatty(STDOUT_FILENO) && !opts_flag(o, "once"))
            buf_puts(&b, "\033[H\033[J"); /* clears the screen and starts at the top */
        put_text(&b, server, old, now);
    }
    return cmd_print_end(o->page, &b);
}

int cmd_top(int argc, const char *const *argv)
{
    struct opts o;
    struct server_ask ask;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    const int fd = term_catch_interrupt();
    const int wait_ms = (int)lround(opts_real(&o, "interval") * 1000);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct glance *r = mem_zalloc_n(2, sizeof(*r));
    int now = 0;
    server_ask_init(&ask, &o);
    rc = r ? take(&r[0], &ask) : cmd_fail(&page, "out of memory");
    while (rc == CMD_OK && poll(&p, fd >= 0 ? 1 : 0, wait_ms) == 0) {
        now = !now;
        rc = take(&r[now], &ask);
        if (rc == CMD_OK)
            rc = print(&o, ask.server, &r[!now], &r[now]);
        if (opts_flag(&o, "once"))
            break;
    }
    server_ask_fini(&ask);
    mem_free(r);
    (void)term_interrupted(fd); /* taken: releasing it must not end the program */
    term_release_interrupt(fd);
    opts_fini(&o);
    return rc;
}
