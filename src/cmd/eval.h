/* eval.h - what the tasks of `shoal eval` share: rows of a data set, results, figures.
 *
 * Thread:    the main thread.
 * Ownership: an evaluation borrows the rows, which live until eval_rows_fini. */
#ifndef SHOAL_CMD_EVAL_H
#define SHOAL_CMD_EVAL_H

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "cmd/opts.h"
#include "cmd/term.h"
#include "shoal/shoal.h"
#include "wire/json_out.h"

struct eval_row {
    cJSON *json;
    const char *file;
    uint64_t line;
};

struct eval_rows {
    struct eval_row *rows;
    size_t n, cap;
};

/* One JSON object a line. */
SHOAL_MUST_CHECK int eval_rows_read(struct eval_rows *rows, const char *path, struct err *e);
void eval_rows_fini(struct eval_rows *rows);
/* A text of the row under the first of these keys (NULL at the end) that it has; fails with file
 * and line. */
SHOAL_MUST_CHECK int eval_text(const struct eval_row *r, const char *const *keys, const char **out,
                               struct err *e);

struct eval { /* one model on one data set */
    const struct opts *o;
    struct shoal_engine *engine;
    const char *model; /* as it was named */
    const char *path;  /* what that name stands for */
    bool int8;
    const char *labels; /* label set, or NULL */
    const struct eval_rows *rows;
    struct eval_rows docs; /* of retrieval; may be empty */
    uint32_t in_flight;
    int interrupt_fd;
    double *latency_ms; /* [rows.n + 1], or more */
    size_t n_latencies;
    struct term_progress bar;
};

/* Runs every row through the engine: make fills the task of row i,
 * take gets each result in order. */
SHOAL_MUST_CHECK int
eval_run(struct eval *ev,
         int (*make)(void *ctx, size_t i, struct shoal_infer_opts *o, struct err *e),
         int (*take)(void *ctx, size_t i, const struct shoal_result *r, struct err *e), void *ctx,
         size_t n, struct err *e);

/* Each measures and writes its figures: members of the open JSON object, and lines for a person. */
SHOAL_MUST_CHECK int eval_classify(struct eval *ev, struct json_out *j, struct buf *text,
                                   struct err *e);
SHOAL_MUST_CHECK int eval_tag(struct eval *ev, struct json_out *j, struct buf *text, struct err *e);
SHOAL_MUST_CHECK int eval_embed(struct eval *ev, struct json_out *j, struct buf *text,
                                struct err *e);
SHOAL_MUST_CHECK int eval_rerank(struct eval *ev, struct json_out *j, struct buf *text,
                                 struct err *e);
SHOAL_MUST_CHECK int eval_summarize(struct eval *ev, struct json_out *j, struct buf *text,
                                    struct err *e);

SHOAL_MUST_CHECK int eval_score(struct eval *ev, struct json_out *j, struct buf *text,
                                struct err *e);

/* A figure: key and value in JSON, "name value" for a person. */
void eval_figure(struct json_out *j, struct buf *text, const char *key, double value,
                 const char *fmt) __attribute__((format(printf, 5, 0)));

#endif
