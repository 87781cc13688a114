/* eval.h - measures a model on a data set, one function per task.
 *
 * Thread:    the caller's; the engine works beside it.
 * Ownership: an evaluation borrows everything except latency_ms, which the caller frees.
 * Failure:   SHOAL_EFORMAT with file and line, SHOAL_EINVAL, SHOAL_ECANCELLED, SHOAL_ENOMEM, or the
 *            engine's error. */
#ifndef SHOAL_EVAL_EVAL_H
#define SHOAL_EVAL_EVAL_H

#include "base/buf.h"
#include "eval/eval_rows.h"
#include "shoal/shoal.h"
#include "wire/json_out.h"

struct eval { /* one model on one data set */
    struct shoal_engine *engine;
    const char *model;  /* its name in the figures */
    const char *path;   /* of the model */
    bool int8;          /* 8-bit weights, of scorers */
    const char *labels; /* label set, or NULL */
    double temperature; /* of its calibration, for cascades; 0: none */
    const struct eval_rows *rows;
    const struct eval_rows *docs; /* documents of retrieval; NULL: none */
    uint32_t in_flight;           /* rows at once */
    uint32_t dimensions;          /* of vectors; 0: all */
    uint32_t sentences, beams;    /* of summaries; 0: the model's default */
    /* Tables, for score: files with a series each, others to choose levels on, and where the inputs
     * and labels are (NULL: by the usual names). */
    const char *const *files, *const *tune_files;
    size_t n_files, n_tune_files;
    const char *columns, *label_column, *windows_file;
    uint64_t limit; /* rows of a series; 0: all */
    /* NULL, or called often, part 0..1; true: stop with SHOAL_ECANCELLED. */
    bool (*progress)(void *ctx, double part);
    void *progress_ctx;
    double *latency_ms; /* [rows.n + 1], or more; a realloc'd block (base/mem.h) */
    size_t n_latencies;
};

/* Runs n rows through the engine: make fills the task of row i, take gets each result in order. */
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

/* Runs both models over the rows of the first, one at a time: the curve of their cascade, and the
 * cheapest threshold with this part of the large model's gain. */
SHOAL_MUST_CHECK int eval_cascade(struct eval *small, struct eval *large, double gain,
                                  struct json_out *j, struct buf *text, struct err *e);
struct confidence_calibration;
/* Fits the temperature of a classifier on every other row and measures it on the rest; 1 if it
 * would increase the calibration error there. */
SHOAL_MUST_CHECK int eval_calibrate(struct eval *ev, struct confidence_calibration *out,
                                    struct json_out *j, struct buf *text, struct err *e);

/* SHOAL_ECANCELLED when the caller wants to stop. */
SHOAL_MUST_CHECK int eval_progress(const struct eval *ev, double part, struct err *e);
/* A figure: key and value in JSON, "name value" for a person. */
void eval_figure(struct json_out *j, struct buf *text, const char *key, double value,
                 const char *fmt) __attribute__((format(printf, 5, 0)));

#endif
