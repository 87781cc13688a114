/* eval_series.h - labelled series of numbers from files, and the scores of a model on them.
 *
 * Thread:    belongs to its caller.
 * Ownership: eval_set_fini frees.
 * Failure:   SHOAL_EFORMAT with the file, SHOAL_EINVAL for missing columns,
 *            SHOAL_EIO, SHOAL_ENOMEM, SHOAL_ECANCELLED. */
#ifndef SHOAL_EVAL_EVAL_SERIES_H
#define SHOAL_EVAL_EVAL_SERIES_H

#include "eval/eval.h"

struct eval_series {
    const char *file;
    size_t n;
    uint32_t n_channels;
    double *values;  /* [n][n_channels] */
    double *targets; /* [n]: the label column */
    bool *labels;    /* [n]: whether that is above 0 */
    double step;     /* median seconds from row to row; 0: no times */
    double *scores;  /* [n_scores][n_outputs] of the model */
    size_t n_scores;
};

struct eval_set {
    struct eval_series *series;
    size_t n, n_rows;
    uint32_t n_outputs;
    uint32_t hop, span; /* rows from score to score; rows of the first score */
};

/* One series per file; label_column, columns and windows_file of ev locate the labels. */
SHOAL_MUST_CHECK int eval_set_read(struct eval_set *s, const struct eval *ev,
                                   const char *const *files, size_t n_files, struct err *e);
void eval_set_fini(struct eval_set *s);
/* Scores every series as a stream, row by row; with latency, ev gets the time of each score. */
SHOAL_MUST_CHECK int eval_set_score(struct eval_set *s, struct eval *ev, bool latency,
                                    struct err *e);

#endif
