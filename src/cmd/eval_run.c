/* eval_run.c - rows and running of evaluations, see eval.h. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cmd/eval.h"
#include "cmd/infer_pipe.h"
#include "cmd/lines.h"

static int add_row(struct eval_rows *rows, const char *path, uint64_t number, const char *line,
                   size_t n, struct err *e)
{
    if (rows->n == rows->cap) {
        size_t cap = rows->cap ? rows->cap * 2 : 1024;
        struct eval_row *grown = mem_realloc(rows->rows, cap * sizeof(*grown));
        if (!grown)
            return err_set(e, SHOAL_ENOMEM, "%zu rows", cap);
        rows->rows = grown;
        rows->cap = cap;
    }
    cJSON *json = cJSON_ParseWithLength(line, n);
    if (!cJSON_IsObject(json)) {
        cJSON_Delete(json);
        return err_set(e, SHOAL_EFORMAT, "%s:%llu: not a JSON object", path,
                       (unsigned long long)number);
    }
    rows->rows[rows->n++] = (struct eval_row){json, path, number};
    return 0;
}

int eval_rows_read(struct eval_rows *rows, const char *path, struct err *e)
{
    struct lines lines;
    uint64_t number = 0;
    char *line;
    size_t n;
    int rc = 0, got;
    int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s: %m", path);
    lines_init(&lines, fd);
    while (rc == 0 && (got = lines_next(&lines, -1, &line, &n, e)) != LINES_END) {
        number++;
        if (got < 0)
            rc = got;
        else if (n > 0)
            rc = add_row(rows, path, number, line, n, e);
    }
    lines_fini(&lines);
    if (fd != STDIN_FILENO)
        close(fd);
    if (rc == 0 && rows->n == 0)
        rc = err_set(e, SHOAL_EFORMAT, "%s has no rows", path);
    return rc;
}

void eval_rows_fini(struct eval_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        cJSON_Delete(rows->rows[i].json);
    mem_free(rows->rows);
    *rows = (struct eval_rows){0};
}

int eval_text(const struct eval_row *r, const char *const *keys, const char **out, struct err *e)
{
    for (size_t i = 0; keys[i]; i++) {
        const cJSON *v = cJSON_GetObjectItemCaseSensitive(r->json, keys[i]);
        if (cJSON_IsString(v)) {
            *out = v->valuestring;
            return 0;
        }
    }
    return err_set(e, SHOAL_EFORMAT, "%s:%llu: no text under \"%s\"", r->file,
                   (unsigned long long)r->line, keys[0]);
}

struct running {
    struct eval *ev;
    int (*take)(void *ctx, size_t i, const struct shoal_result *r, struct err *e);
    void *ctx;
};

static int take_one(void *ctx, void *row, const struct shoal_result *r, struct err *e)
{
    struct running *x = ctx;
    if (x->ev->latency_ms)
        x->ev->latency_ms[x->ev->n_latencies++] = (double)r->total_ns / 1e6;
    return x->take(x->ctx, (size_t)(uintptr_t)row, r, e);
}

int eval_run(struct eval *ev,
             int (*make)(void *ctx, size_t i, struct shoal_infer_opts *o, struct err *e),
             int (*take)(void *ctx, size_t i, const struct shoal_result *r, struct err *e),
             void *ctx, size_t n, struct err *e)
{
    struct running x = {ev, take, ctx};
    struct infer_pipe pipe;
    int rc = 0;
    infer_pipe_init(&pipe, ev->engine, ev->in_flight, take_one, &x);
    term_progress_init(&ev->bar, "eval");
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct shoal_infer_opts o = {.size = sizeof(o), .labels = ev->labels};
        rc = make(ctx, i, &o, e);
        if (rc == 0)
            rc = infer_pipe_put(&pipe, &o, (void *)(uintptr_t)i, e);
        term_progress_show(&ev->bar, (double)i / (double)n, NULL);
        if (rc == 0 && term_interrupted(ev->interrupt_fd))
            rc = err_set(e, SHOAL_ECANCELLED, "interrupted");
    }
    if (rc == 0)
        rc = infer_pipe_drain(&pipe, e);
    term_progress_end(&ev->bar);
    infer_pipe_fini(&pipe);
    return rc;
}

void eval_figure(struct json_out *j, struct buf *text, const char *key, double value,
                 const char *fmt)
{
    char shown[64];
    json_out_key(j, key);
    json_out_num(j, value);
    snprintf(shown, sizeof(shown), fmt, value);
    buf_printf(text, "  %-20s %s\n", key, shown);
}
