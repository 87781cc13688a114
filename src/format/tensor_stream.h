/* tensor_stream.h - encodes one tensor, row by row and on several threads, into a GGUF writer.
 *
 * Thread:    belongs to its caller; row functions run on all of its threads at once.
 * Ownership: create gives the stream to the caller, destroy takes it back (NULL is fine).
 * Failure:   SHOAL_EFORMAT for values that are not finite or that the type cannot hold (which
 *            tensor, which row), SHOAL_ENOMEM, SHOAL_EIO, and what the step function returned. */
#ifndef SHOAL_FORMAT_TENSOR_STREAM_H
#define SHOAL_FORMAT_TENSOR_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/quants/quant.h"

struct gguf_write;
struct tensor_stream;

struct tensor_stream_job {
    const char *name; /* for messages */
    uint64_t n_rows, n_cols;
    enum quant_type type;    /* to write; its block divides n_cols */
    const float *importance; /* per column, or NULL */
    /* One row as floats. */
    void (*row)(const void *ctx, uint64_t row, float *out);
    const void *row_ctx;
    /* Called on the caller's thread after some rows; a negative code ends the job.  May be NULL. */
    int (*step)(void *ctx, uint64_t rows_done, struct err *e);
    void *step_ctx;
};

struct tensor_stream_error {
    double rmse;     /* of the written values, decoded, against the source */
    double relative; /* rmse over the root mean square of the values; 0 for zeros */
};

/* n_threads: 0 is one per CPU that is online. */
SHOAL_MUST_CHECK int tensor_stream_create(struct tensor_stream **out, uint32_t n_threads,
                                          struct err *e);
void tensor_stream_destroy(struct tensor_stream *s);
/* All rows go to gguf_write_data.  error may be NULL. */
SHOAL_MUST_CHECK int tensor_stream_run(struct tensor_stream *s, struct gguf_write *w,
                                       const struct tensor_stream_job *job,
                                       struct tensor_stream_error *error, struct err *e);

#endif
