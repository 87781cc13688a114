/* cmd_load.c - shoal load: sends traffic to a server and reports how it copes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file/file_read.h"
#include "base/file/file_replace.h"
#include "base/mem.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "load/load_knee.h"
#include "load/load_report.h"
#include "load/load_run.h"
#include "load/load_trace.h"
#include "net/http_ask.h"
#include "net/tls.h"
#include "wire/json_in.h"

cmd_fn cmd_load;

#define MAX_FILE_BYTES ((size_t)256 << 20)
#define MAX_ANSWER_BYTES ((size_t)8 << 20)
#define HELD_SHARE 0.95
#define HELD_SLOWER 3.0

static const struct opts_def traffic_defs[] = {
    {"rate", 'r', OPTS_REAL, "N", "1", 0.001, 1000000, "requests per second, on average"},
    {"duration", 'd', OPTS_REAL, "S", "10", 0.01, 86400,
     "seconds in which requests are due; with --find-capacity: of each rate"},
    {"requests", 'n', OPTS_UINT, "N", NULL, 1, 100000000, "send at most so many"},
    {"arrivals", 0, OPTS_CHOICE, "poisson|constant|burst", "poisson", 0, 0,
     "when requests are due: at random, at equal distances, or several at once"},
    {"burst", 0, OPTS_UINT, "N", "10", 1, 100000, "requests of a burst"},
    {"trace", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "replay recorded traffic: JSON Lines with at_ms, kind, model, prompt, max_tokens"},
    {"speed", 0, OPTS_REAL, "X", "1", 0.001, 1000, "of --trace: 2 is twice as fast"},
    {"turns", 0, OPTS_UINT, "N", "1", 1, 1000,
     "each chat is a session of so many turns, sent with all that was said before"},
    {"think", 0, OPTS_REAL, "S", "1", 0, 3600, "seconds between an answer and the next turn"},
    {"warmup", 0, OPTS_REAL, "S", "0", 0, 3600, "leave the first seconds out of the figures"},
    {"seed", 0, OPTS_UINT, "N", "1", 0, 0, "the same seed sends the same requests"},
};

static const struct opts_def request_defs[] = {
    {"api", 0, OPTS_CHOICE, "openai|ollama", "openai", 0, 0,
     "of chat and completion; classify and ask are Shoal's own"},
    {"model", 'm', OPTS_TEXT, "NAME", NULL, 0, 0, "default: the first that the server lists"},
    {"mix", 0, OPTS_TEXT, "LIST", "chat", 0, 0,
     "kinds of requests: [WEIGHT:]KIND[=MODEL],...; kinds: chat, completion, classify, ask"},
    {"prompt", 'p', OPTS_LIST, "TEXT", NULL, 0, 0,
     "text to send; may be repeated; default: some of our own"},
    {"prompts", 0, OPTS_TEXT, "FILE", NULL, 0, 0, "file with one text per line"},
    {"words", 0, OPTS_UINT, "N", NULL, 1, 100000, "make up prompts of so many words, no two alike"},
    {"max-tokens", 0, OPTS_UINT, "N", "64", 1, 1000000, "of an answer"},
    {"extra", 0, OPTS_TEXT, "JSON", NULL, 0, 0,
     "members for chat and completion, as {\"temperature\": 0}"},
    {"key", 0, OPTS_TEXT, "KEY", NULL, 0, 0, "API key; default: $SHOAL_API_KEY"},
    {"timeout", 0, OPTS_REAL, "S", "60", 0.001, 86400,
     "a request without an answer by then has failed"},
    {"connections", 0, OPTS_UINT, "N", "1000", 1, 100000, "at most so many at once"},
};

static const struct opts_def report_defs[] = {
    {"slo", 0, OPTS_TEXT, "LIMITS", NULL, 0, 0,
     "what counts as good, in ms: ttft:200,tpot:50,e2e:2000"},
    {"find-capacity", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "look for the highest rate that the server holds, beginning with --rate"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print the report as JSON"},
    {"html", 0, OPTS_TEXT, "FILE", NULL, 0, 0, "write a page with charts"},
};

static const struct opts_page page = {
    .command = "load",
    .arguments = "URL",
    .min_args = 1,
    .max_args = 1,
    .summary = "Sends traffic to a server and reports how it copes: latencies, goodput, errors.",
    .details =
        "URL: http[s]://HOST[:PORT][/v1] or unix:PATH of a server with OpenAI's API, Ollama's or "
        "Shoal's.\n"
        "Requests are sent when they are due, whether or not earlier ones were answered, and\n"
        "latencies count from then. Ctrl-C ends with the report. docs/LOAD.md explains the "
        "figures.",
    .groups = {OPTS_GROUP("Traffic", traffic_defs), OPTS_GROUP("Requests", request_defs),
               OPTS_GROUP("Report", report_defs)},
    .examples =
        "  shoal load http://127.0.0.1:8080 --rate 20 --duration 30\n"
        "  shoal load http://127.0.0.1:8080 --mix 3:chat=reply,classify=intent,ask --html "
        "load.html\n"
        "  shoal load http://127.0.0.1:11434 --api ollama -m smollm2:135m --arrivals burst\n"
        "  shoal load http://127.0.0.1:8080 --find-capacity --slo ttft:200,e2e:2000 --json\n"
        "  shoal load http://127.0.0.1:8080 --trace monday.jsonl --speed 4\n",
};

struct loading {
    const struct opts *o;
    struct load_target target;
    struct tls_client *tls;
    struct load_mix mix;
    struct load_trace trace;
    struct load_slo slo;
    struct buf prompt_bytes, extra;
    const char **prompts;
    size_t n_prompts;
    struct load_log log, best; /* best: of the last rate that held */
    struct load_report report;
    struct term_progress bar;
    char bar_text[64];
    int interrupt_fd;
};

/* ---- what to send ---- */

static int read_prompts(struct loading *l, struct err *e)
{
    const char *file = opts_text(l->o, "prompts"), *const * given;
    const size_t n_given = opts_list(l->o, "prompt", &given);
    size_t n_lines = 0;
    if (file) {
        int rc = file_read(file, &l->prompt_bytes, e);
        if (rc < 0)
            return rc;
        for (const char *p = buf_str(&l->prompt_bytes); *p; p++)
            n_lines += *p == '\n';
        n_lines++;
    }
    l->prompts = mem_zalloc_n(n_given + n_lines + 1, sizeof(*l->prompts));
    if (!l->prompts)
        return err_set(e, SHOAL_ENOMEM, "out of memory for prompts");
    for (size_t i = 0; i < n_given; i++)
        l->prompts[l->n_prompts++] = given[i];
    char *at = l->prompt_bytes.data, *line;
    while (file && at && (line = strsep(&at, "\n")))
        if (line[0])
            l->prompts[l->n_prompts++] = line;
    if (file && l->n_prompts == n_given)
        return err_set(e, SHOAL_EINVAL, "%s has no texts: write one per line", file);
    return 0;
}

/* "{...}" becomes its members. */
static int read_extra(struct loading *l, struct err *e)
{
    const char *text = opts_text(l->o, "extra");
    cJSON *json = NULL;
    if (!text)
        return 0;
    int rc = json_in_object(&json, "--extra", text, strlen(text), (size_t)1 << 20, e);
    char *whole = rc == 0 ? cJSON_PrintUnformatted(json) : NULL;
    if (whole)
        buf_put(&l->extra, whole + 1, strlen(whole) - 2);
    cJSON_free(whole);
    cJSON_Delete(json);
    return rc;
}

static int read_trace(struct loading *l, struct err *e)
{
    const char *file = opts_text(l->o, "trace");
    struct buf bytes;
    if (!file)
        return 0;
    buf_init(&bytes, MAX_FILE_BYTES);
    l->mix = (struct load_mix){0};
    int rc = file_read(file, &bytes, e);
    struct err why = {0};
    if (rc == 0) {
        rc = load_trace_read(&l->trace, &l->mix, buf_str(&bytes), bytes.len, &why);
        if (rc < 0)
            err_set(e, rc, "%.100s: %s", file, why.msg);
    }
    buf_fini(&bytes);
    return rc;
}

/* The first model of the list that can do this; "": none. */
static const char *first_model(const cJSON *list, enum load_kind kind)
{
    const char *need = kind == LOAD_CLASSIFY ? "classify" : "generate";
    const cJSON *m, *k;
    cJSON_ArrayForEach(m, list)
    {
        const cJSON *kinds = cJSON_GetObjectItemCaseSensitive(m, "kinds");
        const cJSON *id = cJSON_GetObjectItemCaseSensitive(m, "id");
        id = id ? id : cJSON_GetObjectItemCaseSensitive(m, "name");
        bool can = !kinds;
        cJSON_ArrayForEach(k, kinds) can |= cJSON_IsString(k) && strcmp(k->valuestring, need) == 0;
        if (can && cJSON_IsString(id))
            return id->valuestring;
    }
    return "";
}

/* Asks the server for its models, for parts of the mix that name none. */
static int find_models(struct loading *l, struct err *e)
{
    const bool ollama = l->target.api == LOAD_OLLAMA;
    char server[400], path[300];
    struct buf body;
    int status = 0;
    bool needed = false;
    for (uint32_t i = 0; i < l->mix.n; i++)
        needed |= !l->mix.part[i].model[0] && l->mix.part[i].kind != LOAD_ASK;
    if (!needed || l->target.model[0])
        return 0;
    snprintf(path, sizeof(path), "%s%s", l->target.base, ollama ? "/api/tags" : "/v1/models");
    if (strncmp(l->target.address, "unix:", 5) == 0)
        snprintf(server, sizeof(server), "%s", l->target.address);
    else
        snprintf(server, sizeof(server), "http%s://%s", l->target.secure ? "s" : "",
                 l->target.address);
    const struct http_ask a = {.server = server,
                               .tls = l->tls,
                               .method = "GET",
                               .path = path,
                               .key = l->target.key,
                               .timeout_ms = 30000,
                               .stop_fd = l->interrupt_fd >= 0 ? &l->interrupt_fd : NULL};
    buf_init(&body, MAX_ANSWER_BYTES);
    int rc = http_ask(&a, &status, &body, e);
    cJSON *json = rc == 0 ? cJSON_ParseWithLength(buf_str(&body), body.len) : NULL;
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, ollama ? "models" : "data");
    if (rc == 0 && (status != 200 || !cJSON_IsArray(list)))
        rc = err_set(e, SHOAL_EFORMAT,
                     "%s%s does not list models (status %d); name one with --model, or use --api",
                     server, path, status);
    for (uint32_t i = 0; rc == 0 && i < l->mix.n; i++) {
        struct load_part *p = &l->mix.part[i];
        if (p->model[0] || p->kind == LOAD_ASK)
            continue;
        snprintf(p->model, sizeof(p->model), "%s", first_model(list, p->kind));
        if (!p->model[0])
            rc = err_set(e, SHOAL_ENOTFOUND, "%s has no model for %s; name one with --model",
                         server, load_kind_name(p->kind));
    }
    cJSON_Delete(json);
    buf_fini(&body);
    return rc;
}

static int prepare(struct loading *l, struct err *e)
{
    const struct opts *o = l->o;
    const char *key = opts_text(o, "key"), *model = opts_text(o, "model"),
               *slo = opts_text(o, "slo");
    int rc = load_target_parse(&l->target, o->args[0], e);
    key = key ? key : getenv("SHOAL_API_KEY");
    l->target.key = key && key[0] ? key : NULL;
    l->target.api = strcmp(opts_text(o, "api"), "ollama") == 0 ? LOAD_OLLAMA : LOAD_OPENAI;
    l->target.model = model ? model : "";
    if (rc == 0 && strpbrk(l->target.key ? l->target.key : "", " \r\n\t"))
        rc = err_set(e, SHOAL_EINVAL, "the key contains blanks");
    if (rc == 0)
        rc = load_mix_parse(&l->mix, opts_text(o, "mix"), e);
    if (rc == 0 && slo)
        rc = load_slo_parse(&l->slo, slo, e);
    if (rc == 0)
        rc = read_prompts(l, e);
    if (rc == 0)
        rc = read_extra(l, e);
    if (rc == 0)
        rc = read_trace(l, e);
    l->target.extra = buf_str(&l->extra);
    for (uint32_t i = 0; rc == 0 && i < l->mix.n; i++)
        if (!load_kind_path(l->target.api, l->mix.part[i].kind))
            rc = err_set(e, SHOAL_EINVAL,
                         "Ollama's API has no '%s'; use --api openai with a Shoal server",
                         load_kind_name(l->mix.part[i].kind));
    if (rc == 0 && l->target.secure)
        rc = tls_client_open(&l->tls, &(struct tls_opts){.foreign = true}, e);
    return rc == 0 ? find_models(l, e) : rc;
}

/* As many descriptors as the connections need; returns how many connections that makes. */
static uint32_t allow_connections(uint32_t wanted)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return wanted;
    if (r.rlim_cur < (rlim_t)wanted + 64) {
        r.rlim_cur = r.rlim_max < (rlim_t)wanted + 64 ? r.rlim_max : (rlim_t)wanted + 64;
        setrlimit(RLIMIT_NOFILE, &r);
    }
    return r.rlim_cur > (rlim_t)wanted + 64 ? wanted
           : r.rlim_cur > 128               ? (uint32_t)r.rlim_cur - 64
                                            : 64;
}

/* ---- sending ---- */

static void show(void *ctx, const struct load_progress *p)
{
    struct loading *l = ctx;
    char note[120];
    snprintf(note, sizeof(note), "%llu sent, %llu answered, %llu failed, %llu open",
             (unsigned long long)p->n_sent, (unsigned long long)p->n_ok,
             (unsigned long long)p->n_failed, (unsigned long long)p->n_open);
    term_progress_show(&l->bar, p->part, note);
}

/* One run at a rate; its requests are in l->log. */
static int run_once(struct loading *l, double rate, bool *stopped, struct err *e)
{
    const struct opts *o = l->o;
    const char *pattern = opts_text(o, "arrivals");
    const uint64_t seed = opts_uint(o, "seed");
    const double seconds = opts_real(o, "duration");
    const bool timed = !opts_given(o, "trace") || opts_given(o, "duration");
    struct load_plan plan = {.arrivals = {.pattern = pattern[0] == 'p'   ? LOAD_POISSON
                                                     : pattern[0] == 'c' ? LOAD_CONSTANT
                                                                         : LOAD_BURST,
                                          .rate = rate,
                                          .burst = opts_u32(o, "burst"),
                                          .seed = seed},
                             .mix = &l->mix,
                             .trace = opts_given(o, "trace") ? &l->trace : NULL,
                             .speed = opts_real(o, "speed"),
                             .end_ns = timed ? (uint64_t)(seconds * 1e9) : 0,
                             .max_requests =
                                 opts_given(o, "requests") ? opts_uint(o, "requests") : 0,
                             .prompts = l->prompts,
                             .n_prompts = l->n_prompts,
                             .n_words = opts_given(o, "words") ? opts_u32(o, "words") : 0,
                             .max_tokens = opts_u32(o, "max-tokens"),
                             .seed = ~seed};
    uint64_t planned = plan.end_ns;
    if (planned == 0)
        planned = (uint64_t)((double)l->trace.rows[l->trace.n - 1].at_ns / plan.speed) + 1;
    const struct load_run_opts to = {
        .target = &l->target,
        .tls = l->tls,
        .max_connections = allow_connections(opts_u32(o, "connections")),
        .timeout_ms = (uint32_t)(opts_real(o, "timeout") * 1000.0),
        .n_turns = opts_u32(o, "turns"),
        .think_ms = (uint32_t)(opts_real(o, "think") * 1000.0),
        .planned_ns = planned,
        .drain_ns = opts_flag(o, "find-capacity") ? (uint64_t)(seconds * 1e9) : 0,
        .stop_fd = l->interrupt_fd,
        .progress = show,
        .ctx = l};
    load_log_fini(&l->log);
    load_log_init(&l->log, seed);
    snprintf(l->bar_text, sizeof(l->bar_text), "%g/s", rate);
    term_progress_init(&l->bar, plan.trace ? "trace" : l->bar_text);
    int rc = load_run(&plan, &to, &l->log, stopped, e);
    term_progress_end(&l->bar);
    return rc;
}

static int summarize(struct loading *l, const struct load_log *log, struct load_summary *out,
                     int part, struct err *e)
{
    return load_summarize(out, log, part, l->report.skip_ns, &l->slo, e);
}

/* Whether the server kept up: see held_means. */
static bool holds(const struct loading *l, const struct load_summary *s, double *best_ms)
{
    if (opts_given(l->o, "slo"))
        return s->good_share >= HELD_SHARE;
    if (s->e2e.n > 0 && (*best_ms <= 0.0 || s->e2e.p95 < *best_ms))
        *best_ms = s->e2e.p95;
    return s->good_share >= HELD_SHARE && s->e2e.p95 <= HELD_SLOWER * *best_ms;
}

static int find_capacity(struct loading *l, struct err *e)
{
    struct load_report *r = &l->report;
    struct load_knee knee;
    double best_ms = 0.0;
    bool more = true;
    int rc = 0;
    r->held_means = opts_given(l->o, "slo")
                        ? "at least 95 % of the requests are within --slo"
                        : "at least 95 % of the requests are answered, and p95 of E2E is at most "
                          "3 times the lowest that was seen";
    load_knee_init(&knee, opts_real(l->o, "rate"), LOAD_MAX_STEPS);
    while (more && rc == 0 && !r->interrupted) {
        struct load_step *step = &r->step[r->n_steps];
        step->rate = knee.rate;
        rc = run_once(l, knee.rate, &r->interrupted, e);
        if (rc == 0)
            rc = summarize(l, &l->log, &step->summary, -1, e);
        if (rc < 0 || (r->interrupted && r->n_steps > 0))
            break;
        step->held = holds(l, &step->summary, &best_ms) && !r->interrupted;
        if (step->held || r->n_steps == 0) { /* the log moves */
            load_log_fini(&l->best);
            l->best = l->log;
            l->log = (struct load_log){0};
            r->rate = step->rate;
        }
        r->n_steps++;
        more = load_knee_next(&knee, step->held);
    }
    r->capacity = knee.held;
    r->log = &l->best;
    return rc;
}

static int write_report(struct loading *l)
{
    const struct opts_page *p = l->o->page;
    const char *html = opts_text(l->o, "html");
    struct buf b;
    struct err e = {0};
    buf_init(&b, (size_t)16 << 20);
    if (html) {
        load_report_html(&b, &l->report);
        int rc = b.rc < 0 ? err_set(&e, b.rc, "cannot make the page")
                          : file_replace(html, buf_str(&b), b.len, &e);
        if (rc < 0) {
            buf_fini(&b);
            return cmd_fail(p, "%s", e.msg);
        }
        buf_clear(&b);
    }
    if (opts_flag(l->o, "json"))
        load_report_json(&b, &l->report);
    else
        load_report_text(&b, &l->report);
    return cmd_print_end(p, &b);
}

static int run(struct loading *l)
{
    struct err e = {0};
    struct load_report *r = &l->report;
    int rc = prepare(l, &e);
    if (rc < 0)
        return rc == SHOAL_EINVAL ? opts_usage(l->o->page, "%s", e.msg)
                                  : cmd_fail(l->o->page, "%s", e.msg);
    r->url = l->o->args[0];
    r->api = opts_text(l->o, "api");
    r->pattern = opts_given(l->o, "trace") ? "trace" : opts_text(l->o, "arrivals");
    r->model = l->target.model[0] ? l->target.model : l->mix.n == 1 ? l->mix.part[0].model : "";
    r->rate = opts_given(l->o, "trace") ? 0.0 : opts_real(l->o, "rate");
    r->skip_ns = (uint64_t)(opts_real(l->o, "warmup") * 1e9);
    r->mix = &l->mix;
    r->slo = &l->slo;
    r->log = &l->log;
    rc = opts_flag(l->o, "find-capacity") ? find_capacity(l, &e)
                                          : run_once(l, r->rate, &r->interrupted, &e);
    if (rc == 0)
        rc = summarize(l, r->log, &r->all, -1, &e);
    for (uint32_t i = 0; rc == 0 && i < l->mix.n; i++)
        rc = summarize(l, r->log, &r->part[i], (int)i, &e);
    if (rc < 0)
        return cmd_fail(l->o->page, "%s", e.msg);
    rc = write_report(l);
    if (rc == CMD_OK && r->interrupted)
        return CMD_INTERRUPTED;
    return rc == CMD_OK && r->all.n_outcome[LOAD_OK] == 0 ? CMD_FAILED : rc;
}

int cmd_load(int argc, const char *const *argv)
{
    struct opts o;
    struct loading *l;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    if (opts_flag(&o, "find-capacity") && opts_given(&o, "trace")) {
        rc = opts_usage(&page, "--find-capacity chooses rates itself: leave --trace out");
    } else if (!(l = mem_zalloc(sizeof(*l)))) {
        rc = cmd_fail(&page, "out of memory");
    } else {
        l->o = &o;
        buf_init(&l->prompt_bytes, MAX_FILE_BYTES);
        buf_init(&l->extra, (size_t)1 << 20);
        l->interrupt_fd = term_catch_interrupt();
        rc = run(l);
        (void)term_interrupted(l->interrupt_fd); /* taken: releasing it must not end the program */
        term_release_interrupt(l->interrupt_fd);
        tls_client_close(l->tls);
        load_trace_fini(&l->trace);
        load_log_fini(&l->log);
        load_log_fini(&l->best);
        buf_fini(&l->prompt_bytes);
        buf_fini(&l->extra);
        mem_free(l->prompts);
        mem_free(l);
    }
    opts_fini(&o);
    return rc;
}
