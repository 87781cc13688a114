/* bench_engine.c - the engine benchmark: ours and libllama on the same files, in turn.  Makes the
 * list of measurements, runs them, and reports; see bench/README.md. */
#include "engine.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define BUILD_SECONDS 1800
#define MAX_PLAN 256u

struct plan {
    struct engine_measure at[MAX_PLAN];
    size_t n, done;
};

void engine_say(const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (isatty(2))
        fprintf(stderr, "\r\x1b[K%s", text);
    else if (text[0])
        fprintf(stderr, "%s\n", text);
}

void engine_failed(struct engine_run *b, const char *text)
{
    const cJSON *old;
    cJSON_ArrayForEach(old, b->failures)
    {
        if (strcmp(old->valuestring, text) == 0)
            return;
    }
    cJSON_AddItemToArray(b->failures, cJSON_CreateString(text));
}

/* ---- the programs ---- */

static void set_argv(struct duel_prog *p, const char *name, const char *const *argv)
{
    p->name = name;
    for (size_t i = 0; i + 1 < DUEL_MAX_ARGS && argv[i]; i++)
        p->argv[i] = argv[i];
}

/* Builds build/peer_llama; works only in the source tree. */
static int build_peer(struct engine_run *b, struct err *e)
{
    const char *const argv[] = {"bench/build-peer", NULL};
    engine_say("building the peer (bench/build-peer)");
    int rc = duel_output(&b->d, argv, false, BUILD_SECONDS, NULL, e);
    engine_say("%s", "");
    return rc;
}

static int find_programs(struct engine_run *b, struct err *e)
{
    const struct engine_opts *o = b->o;
    const char *peer = o->peer ? o->peer : "build/peer_llama";
    const char *const ours[] = {o->ours, "bench", "--peer-protocol", NULL};
    const char *const theirs[] = {peer, o->peer_libs ? "--libs" : NULL, o->peer_libs, NULL};
    b->has_peer = !o->no_peer;
    if (access(o->ours, X_OK) < 0)
        return err_set(e, SHOAL_EIO, "cannot run %s: %s (run make to build it)", o->ours,
                       strerror(errno));
    if (o->peer && access(peer, X_OK) < 0)
        return err_set(e, SHOAL_EIO, "cannot run %s: %s (run bench/build-peer to build it)", peer,
                       strerror(errno));
    if (b->has_peer && !o->peer) {
        int rc = build_peer(b, e);
        if (rc == SHOAL_ECANCELLED)
            return rc;
        if (rc < 0) {
            fprintf(stderr,
                    "%s\nno peer: measuring ours only (run bench/build-peer to build one, or name "
                    "one with --peer PATH)\n",
                    e->msg);
            b->has_peer = false;
        }
    }
    set_argv(&b->d.prog[0], "ours", o->peer_both && b->has_peer ? theirs : ours);
    set_argv(&b->d.prog[1], "peer", theirs);
    return 0;
}

static int hello(struct engine_run *b, size_t side, cJSON *about, struct err *e)
{
    struct duel_prog *p = &b->d.prog[side];
    cJSON *q = cJSON_CreateObject(), *r = NULL;
    cJSON_AddNumberToObject(q, "id", 1);
    cJSON_AddStringToObject(q, "op", "hello");
    int rc = duel_start(&b->d, p, e);
    if (rc == 0)
        rc = duel_ask(&b->d, p, q, b->o->answer_s, &r, e);
    else
        cJSON_Delete(q);
    if (rc == 0) {
        char text[256];
        const char *words[3] = {"engine", "version", "kernels"};
        for (size_t i = 0; i < 3; i++) {
            const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(r, words[i]));
            words[i] = s ? s : "?";
        }
        snprintf(text, sizeof(text), "%s %s (%s)", words[0], words[1], words[2]);
        cJSON_AddStringToObject(about, p->name, text);
    } else {
        cJSON_AddStringToObject(about, p->name, e->msg);
    }
    cJSON_Delete(r);
    duel_quit(&b->d, p);
    return rc;
}

/* Asks both programs for their names and versions; a peer that does not reply is left out. */
static int meet(struct engine_run *b, cJSON *about, struct err *e)
{
    int rc = hello(b, 0, about, e);
    if (rc < 0 || !b->has_peer)
        return rc;
    rc = hello(b, 1, about, e);
    if (rc < 0 && rc != SHOAL_ECANCELLED) {
        fprintf(stderr, "%s\nno peer: measuring ours only\n", e->msg);
        engine_failed(b, e->msg);
        b->has_peer = false;
        rc = 0;
    }
    return rc;
}

/* ---- the run ---- */

static void plan_file(struct plan *p, const struct engine_opts *o, const char *shape,
                      const char *type)
{
    static const uint32_t prompts[] = {32, 128, 512};
    const bool q8 = strcmp(type, "q8_0") == 0;
    const bool for_busy = strcmp(shape, "s15m") == 0 || strcmp(shape, "smol135m") == 0;
    if (engine_wants(o, ENGINE_DECODE))
        p->at[p->n++] = (struct engine_measure){shape, type, ENGINE_DECODE, 0};
    for (size_t i = 0; i < 3 && engine_wants(o, ENGINE_PROMPT); i++)
        p->at[p->n++] = (struct engine_measure){shape, type, ENGINE_PROMPT, prompts[i]};
    if (engine_wants(o, ENGINE_SEQS) && strcmp(type, "q4_k_m") != 0)
        p->at[p->n++] = (struct engine_measure){shape, type, ENGINE_SEQS, 0};
    if (engine_wants(o, ENGINE_BUSY) && q8 && for_busy)
        p->at[p->n++] = (struct engine_measure){shape, type, ENGINE_BUSY, 0};
    if (engine_wants(o, ENGINE_LOAD) && q8)
        p->at[p->n++] = (struct engine_measure){shape, type, ENGINE_LOAD, 0};
}

static void make_plan(struct plan *p, const struct engine_opts *o)
{
    *p = (struct plan){.n = 0};
    for (uint32_t s = 0; s < o->shapes.n; s++)
        for (uint32_t t = 0; t < o->types.n; t++)
            plan_file(p, o, o->shapes.at[s], o->types.at[t]);
}

static cJSON *describe(const struct engine_run *b)
{
    const struct engine_opts *o = b->o;
    char text[96];
    time_t now = time(NULL);
    struct tm tm;
    double load = 0;
    cJSON *about = cJSON_CreateObject();
    strftime(text, sizeof(text), "%Y-%m-%d", gmtime_r(&now, &tm));
    cJSON_AddStringToObject(about, "date", text);
    cJSON_AddStringToObject(about, "cpu", b->limits.cpu[0] ? b->limits.cpu : "?");
    cJSON_AddNumberToObject(about, "cores", o->n_cpus);
    cJSON_AddItemToObject(
        about, "load", getloadavg(&load, 1) == 1 ? cJSON_CreateNumber(load) : cJSON_CreateNull());
    if (o->cpu_list)
        cJSON_AddStringToObject(about, "cpus", o->cpu_list);
    cJSON_AddNumberToObject(about, "rounds", o->rounds);
    snprintf(text, sizeof(text), "%s%s", o->cpu ? "CPU time, " : "", o->best ? "best" : "median");
    cJSON_AddStringToObject(about, "statistic", text);
    return about;
}

static void print_head(const struct engine_run *b, const cJSON *about)
{
    const struct engine_opts *o = b->o;
    const char *peer = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(about, "peer"));
    const cJSON *load = cJSON_GetObjectItemCaseSensitive(about, "load");
    printf("ours: %s\npeer: %s\n%s, %u cores%s%s%s, load %.1f, %s%s of %.0f rounds, threads",
           cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(about, "ours")),
           peer ? peer : "none",
           cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(about, "cpu")), o->n_cpus,
           o->cpu_list ? " (" : "", o->cpu_list ? o->cpu_list : "", o->cpu_list ? ")" : "",
           cJSON_IsNumber(load) ? load->valuedouble : NAN, o->cpu ? "CPU time, " : "",
           o->best ? "best" : "medians", o->rounds);
    for (uint32_t i = 0; i < o->n_threads; i++)
        printf("%s%u", i ? " or " : " ", o->threads[i]);
    printf("\n\n");
    fflush(stdout);
}

/* Writes the results so far, so that an interrupted run keeps them. */
static int write_json(struct engine_run *b, const cJSON *about, const struct plan *p, struct err *e)
{
    char name[ENGINE_NAME_BYTES];
    cJSON *all = cJSON_Duplicate(about, true);
    engine_limits_about(&b->limits, all);
    cJSON_AddItemToObject(all, "failures", cJSON_Duplicate(b->failures, true));
    cJSON *missing = cJSON_AddArrayToObject(all, "not_measured");
    for (size_t i = p->done; i < p->n; i++) {
        engine_measure_name(&p->at[i], name);
        cJSON_AddItemToArray(missing, cJSON_CreateString(name));
    }
    int rc = engine_rows_write(&b->rows, b->o->json, all, e);
    cJSON_Delete(all);
    return rc;
}

static void drop_f16(const struct engine_opts *o, const char *shape)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s-f16.gguf", o->models, shape);
    if (!o->keep_f16 && !engine_has_word(&o->types, "f16"))
        unlink(path);
}

static int measure_limits(struct engine_run *b, struct err *e)
{
    int rc = engine_limits_measure(&b->limits, &b->d, b->o->ours, b->o->no_limits, e);
    if (rc < 0 && rc != SHOAL_ECANCELLED) {
        fprintf(stderr, "cannot measure the limits: %s\n", e->msg);
        engine_failed(b, e->msg);
        rc = 0;
    }
    return rc;
}

/* Runs all measurements of one file, from p->done on, and prints their table. */
static int run_file(struct engine_run *b, struct plan *p, const cJSON *about, struct err *e)
{
    const struct engine_measure *first = &p->at[p->done];
    const int first_row = cJSON_GetArraySize(b->rows.list);
    char file[1024];
    int rc = engine_file(b, first->shape, first->type, file, sizeof(file), e);
    for (const struct engine_measure *m = first;
         rc == 0 && p->done < p->n && m->shape == first->shape && m->type == first->type; m++) {
        rc = engine_measure_run(b, m, file, e);
        if (rc == 0)
            p->done++;
        struct err other = {0};
        if (write_json(b, about, p, rc == 0 ? e : &other) < 0 && rc == 0)
            rc = e->code;
    }
    engine_say("%s", "");
    engine_rows_print(&b->rows, first_row);
    return rc;
}

static int run_plan(struct engine_run *b, struct plan *p, const cJSON *about, struct err *e)
{
    int rc = 0;
    while (rc == 0 && p->done < p->n) {
        const char *shape = p->at[p->done].shape;
        if (p->done > 0 && shape != p->at[p->done - 1].shape)
            rc = measure_limits(b, e);
        if (rc == 0)
            rc = run_file(b, p, about, e);
        if (rc == 0 && (p->done == p->n || p->at[p->done].shape != shape))
            drop_f16(b->o, shape);
    }
    return rc;
}

static void say_missing(const struct engine_run *b, const struct plan *p)
{
    char name[ENGINE_NAME_BYTES];
    const cJSON *f;
    cJSON_ArrayForEach(f, b->failures) fprintf(stderr, "failed: %s\n", f->valuestring);
    if (p->done == p->n)
        return;
    if (b->d.signal)
        printf("interrupted");
    else
        printf("stopped after %.0f s", b->o->limit_s);
    for (size_t i = p->done; i < p->n; i++) {
        engine_measure_name(&p->at[i], name);
        printf("%s%s", i == p->done ? "; not measured: " : ", ", name);
    }
    printf("\n");
}

static int measure(struct engine_run *b, struct err *e)
{
    struct plan p;
    make_plan(&p, b->o);
    int rc = measure_limits(b, e);
    cJSON *about = describe(b);
    if (rc == 0)
        rc = meet(b, about, e);
    if (rc == 0) {
        print_head(b, about);
        rc = run_plan(b, &p, about, e);
    }
    if (rc == 0 || rc == SHOAL_ECANCELLED) {
        say_missing(b, &p);
        engine_rows_judge(&b->rows, b->o->json);
    }
    cJSON_Delete(about);
    return rc;
}

static int make_files(struct engine_run *b, struct err *e)
{
    char file[1024];
    int rc = 0;
    for (uint32_t s = 0; s < b->o->shapes.n && rc == 0; s++) {
        for (uint32_t t = 0; t < b->o->types.n && rc == 0; t++) {
            rc = engine_file(b, b->o->shapes.at[s], b->o->types.at[t], file, sizeof(file), e);
            if (rc == 0)
                printf("%s\n", file);
        }
        drop_f16(b->o, b->o->shapes.at[s]);
    }
    return rc;
}

/* Allocator for cJSON: it never fails, so that callers need no checks. */
static void *must_alloc(size_t n)
{
    void *p = mem_alloc(n);
    if (!p) {
        fprintf(stderr, "bench_engine: out of memory\n");
        _exit(1); /* started processes end with the driver */
    }
    return p;
}

int main(int argc, char **argv)
{
    static struct engine_run b;
    struct engine_opts o;
    struct err e = {0};
    cJSON_InitHooks(&(cJSON_Hooks){must_alloc, mem_free});
    if (engine_opts_read(&o, argc, argv, &e) < 0) {
        fprintf(stderr, "bench_engine: %s\n(--help lists the options)\n", e.msg);
        return 2;
    }
    if (o.help) {
        engine_opts_help(stdout);
        return 0;
    }
    b.o = &o;
    b.failures = cJSON_CreateArray();
    int rc = engine_rows_init(&b.rows, o.jsonl, &e);
    if (rc == 0)
        rc = duel_init(&b.d, &e);
    b.d.pinned = o.pinned, b.d.cpus = o.cpus;
    b.d.until = o.limit_s > 0 ? clock_ns() + (uint64_t)(o.limit_s * 1e9) : 0;
    if (rc == 0)
        rc = find_programs(&b, &e);
    if (rc == 0)
        rc = o.files ? make_files(&b, &e) : measure(&b, &e);
    duel_fini(&b.d);
    engine_rows_fini(&b.rows);
    cJSON_Delete(b.failures);
    if (b.d.signal)
        return 128 + b.d.signal;
    if (rc < 0 && rc != SHOAL_ECANCELLED)
        fprintf(stderr, "bench_engine: %s\n", e.msg);
    return rc == 0 || (rc == SHOAL_ECANCELLED && !o.files) ? 0 : 1;
}
