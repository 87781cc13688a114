/* scorer_specialist.c - see scorer_specialist.h. */
#include "engine/native/scorer_specialist.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file_open.h"
#include "base/mem.h"
#include "base/plural.h"
#include "engine/cache_dir.h"
#include "engine/native/stream_keeper.h"
#include "score/score_stream.h"
#include "score/scorer.h"

#define MAX_JOBS 64u
#define MAX_ROWS 65536u /* rows per batch */

struct scoring {
    struct scorer *scorer, *raw; /* raw: trees without the objective's transformation */
    struct score_streams *streams, *raw_streams;
    struct stream_keeper *keeper; /* saves streams; NULL: they do not survive a restart */
    void *scratch;
    uint64_t file_bytes;
};

/* Input of a job: room for the scores, followed by the state of its series. */
struct scores {
    uint32_t n_columns;
    double *values;
    void *state;
    struct err error; /* of a stream */
};

static void free_scores(struct scores *x)
{
    if (!x)
        return;
    mem_free(x->values);
    mem_free(x->state);
    mem_free(x);
}

static int prepare(const void *self, struct job *j, struct err *e)
{
    const struct scoring *s = self;
    struct scorer_info info = scorer_info(s->scorer);
    uint32_t own = info.n_inputs ? info.n_inputs : 1;
    uint32_t n_columns = j->o.n_columns ? j->o.n_columns : own;
    if (info.n_inputs ? n_columns != info.n_inputs : n_columns > info.max_inputs)
        return err_set(e, SHOAL_EINVAL, "the rows have %u value%s, but the model reads %s%u",
                       n_columns, plural(n_columns), info.n_inputs ? "" : "at most ",
                       info.max_inputs);
    if (j->o.n_values % n_columns != 0)
        return err_set(e, SHOAL_EINVAL, "%u value%s cannot be split into rows of %u", j->o.n_values,
                       plural(j->o.n_values), n_columns);
    if (j->o.stream && (!*j->o.stream || strlen(j->o.stream) > SCORE_STREAM_MAX_NAME))
        return err_set(e, SHOAL_EINVAL, "the name of a stream must have 1 to %u bytes",
                       SCORE_STREAM_MAX_NAME);
    size_t rows = j->o.n_values / n_columns;
    size_t n =
        j->o.stream ? score_streams_room(s->streams, rows) : scorer_n_scores(s->scorer, rows);
    if (n == 0)
        return err_set(e, SHOAL_EINVAL, "got %zu row%s, but the model needs %u at a time", rows,
                       plural(rows), info.window);
    struct scores *x = j->input = mem_zalloc(sizeof(*x));
    size_t state = j->o.stream ? 0 : scorer_state_bytes(s->scorer, n_columns);
    if (x) {
        x->n_columns = n_columns;
        x->values = mem_zalloc_n(n, info.n_outputs * sizeof(double));
        x->state = state ? mem_aligned(state) : NULL;
    }
    if (!x || !x->values || (state && !x->state))
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu score%s", n, plural(n));
    j->result.values = x->values;
    j->result.n_values = (uint32_t)(n * info.n_outputs);
    j->cost = (uint32_t)rows;
    return 0;
}

static void run_stream(struct scoring *s, struct job *j)
{
    struct scores *x = j->input;
    const struct score_stream_rows rows = {.client = j->o.client,
                                           .name = j->o.stream,
                                           .values = j->values,
                                           .n_rows = j->o.n_values / x->n_columns,
                                           .n_columns = x->n_columns,
                                           .now_ns = clock_ns()};
    stream_keeper_lock(s->keeper);
    int64_t n = score_streams_feed(j->o.raw ? s->raw_streams : s->streams, &rows, x->values,
                                   s->scratch, &x->error);
    stream_keeper_unlock(s->keeper, n >= 0);
    if (n < 0)
        job_fail(j, (int)n, x->error.msg);
    else
        j->result.n_values = (uint32_t)n * scorer_info(s->scorer).n_outputs;
}

static void run(void *self, struct job *const *jobs, uint32_t n)
{
    struct scoring *s = self;
    for (uint32_t i = 0; i < n; i++) {
        const struct scores *x = jobs[i]->input;
        if (jobs[i]->o.stream) {
            run_stream(s, jobs[i]);
            continue;
        }
        scorer_run(jobs[i]->o.raw ? s->raw : s->scorer, jobs[i]->values,
                   jobs[i]->o.n_values / x->n_columns, x->n_columns, x->values, x->state,
                   s->scratch);
    }
}

static void drop(struct job *j)
{
    free_scores(j->input);
}

/* The only label set: the names of the outputs. */
static const char *label_set(const void *self, enum shoal_kind kind, uint32_t i)
{
    (void)self;
    (void)kind;
    return i == 0 ? "" : NULL;
}

static const char *label(const void *self, enum shoal_kind kind, const char *set, uint32_t i)
{
    const struct scoring *s = self;
    struct scorer_info info = scorer_info(s->scorer);
    (void)kind;
    return (!set || !*set) && i < info.n_outputs ? info.output_names[i] : NULL;
}

static const char *input(const void *self, uint32_t i)
{
    const struct scoring *s = self;
    struct scorer_info x = scorer_info(s->scorer);
    return x.input_names && i < x.n_inputs ? x.input_names[i] : NULL;
}

static void info(const void *self, struct shoal_engine_info *out)
{
    const struct scoring *s = self;
    struct scorer_info i = scorer_info(s->scorer);
    out->arch = i.kind == SCORER_TREES     ? "lightgbm"
                : i.kind == SCORER_ANOMALY ? "anomaly"
                                           : "layers";
    out->name = i.description;
    out->n_ctx = i.window;
    out->dim = i.n_inputs;
    out->n_threads = 1;
    out->file_bytes = s->file_bytes;
}

static void close_(void *self)
{
    struct scoring *s = self;
    stream_keeper_close(s->keeper);
    if (s->raw_streams != s->streams)
        score_streams_destroy(s->raw_streams);
    score_streams_destroy(s->streams);
    if (s->raw != s->scorer)
        scorer_close(s->raw);
    scorer_close(s->scorer);
    mem_free(s->scratch);
    mem_free(s);
}

static const struct specialist_ops ops = {
    .engine = "native",
    .prepare = prepare,
    .run = run,
    .drop = drop,
    .label_set = label_set,
    .label = label,
    .input = input,
    .info = info,
    .close = close_,
};

static bool begins_with(const char *path, const char *text)
{
    char head[32];
    int fd = file_open_regular(path, NULL);
    ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof(head));
    if (fd >= 0)
        close(fd);
    return n >= (ssize_t)strlen(text) && memcmp(head, text, strlen(text)) == 0;
}

static bool file_has(const char *path, const char *text)
{
    char block[4096];
    int fd = file_open_regular(path, NULL);
    ssize_t n = fd < 0 ? -1 : read(fd, block, sizeof(block) - 1);
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return false;
    block[n] = '\0';
    return strstr(block, text) != NULL;
}

bool scorer_specialist_knows(const char *path)
{
    char config[PATH_MAX];
    struct stat st;
    if (stat(path, &st) < 0)
        return false;
    if (!S_ISDIR(st.st_mode))
        return begins_with(path, "tree\n") || begins_with(path, "tree\r\n");
    int n = snprintf(config, sizeof(config), "%s/config.json", path);
    return n < (int)sizeof(config) &&
           (file_has(config, "\"shoal_scorer\"") || file_has(config, "\"shoal_anomaly\""));
}

/* Keeps streams across restarts, if there is a folder for their states. */
static int keep_streams(struct scoring *s, const char *path, const struct shoal_engine_opts *o,
                        struct err *e)
{
    char cache[PATH_MAX], dir[PATH_MAX + 16];
    const char *base = cache_dir_wanted(o->cache_dir, cache, sizeof(cache));
    if (o->stream_save_ms == 0 || !base || !score_streams_remember(s->streams))
        return 0;
    (void)mkdir(base, 0700); /* its parents must already exist */
    snprintf(dir, sizeof(dir), "%s/streams", base);
    const struct stream_keeper_opts k = {
        .dir = dir, .model = path, .int8 = o->int8, .every_ms = o->stream_save_ms};
    return stream_keeper_open(&s->keeper, s->streams, &k, e);
}

int scorer_specialist_open(struct specialist *sp, const char *path,
                           const struct shoal_engine_opts *o, struct err *e)
{
    struct scoring *s = mem_zalloc(sizeof(*s));
    struct scorer_opts so = {.int8 = o->int8};
    struct stat st;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a scorer");
    int rc = scorer_open(&s->scorer, path, &so, e);
    s->raw = s->scorer;
    if (rc == 0 && scorer_info(s->scorer).kind == SCORER_TREES) {
        so.raw = true;
        s->raw = NULL;
        rc = scorer_open(&s->raw, path, &so, e);
    }
    const struct score_streams_opts limits = {.max_streams = o->max_streams,
                                              .idle_ns = (uint64_t)o->stream_ttl_ms * 1000000u};
    if (rc == 0)
        rc = score_streams_create(&s->streams, s->scorer, &limits, e);
    s->raw_streams = s->streams;
    if (rc == 0 && s->raw != s->scorer)
        rc = score_streams_create(&s->raw_streams, s->raw, &limits, e);
    if (rc == 0) {
        size_t n = scorer_scratch_bytes(s->scorer), raw = scorer_scratch_bytes(s->raw);
        s->scratch = mem_aligned(n > raw ? n : raw);
        if (!s->scratch)
            rc = err_set(e, SHOAL_ENOMEM, "out of memory for the scratch memory of a scorer");
    }
    if (rc == 0)
        rc = keep_streams(s, path, o, e);
    if (rc < 0) {
        close_(s);
        return err_wrap(e, "%s", path);
    }
    s->file_bytes = stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
    *sp = (struct specialist){.ops = &ops,
                              .self = s,
                              .kinds = SHOAL_KIND_SCORE,
                              .max_cost = MAX_ROWS,
                              .max_jobs = o->max_tasks ? o->max_tasks : MAX_JOBS};
    return 0;
}
