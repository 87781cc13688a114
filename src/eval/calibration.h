/* calibration.h - importance of each column of a model's matrices on a text: the mean square of its
 * inputs.
 *
 * Thread:    the decoder's; a finished calibration is immutable.
 * Ownership: run gives the calibration to the caller, destroy takes it back (NULL is fine); it does
 *            not refer to the model.
 * Failure:   SHOAL_EINVAL (text too short), SHOAL_ECANCELLED, SHOAL_ENOMEM; then *out is NULL. */
#ifndef SHOAL_EVAL_CALIBRATION_H
#define SHOAL_EVAL_CALIBRATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/decoder.h"
#include "format/model_file.h"
#include "text/tokenizer/tokenizer.h"

struct calibration;

struct calibration_opts { /* all zero means defaults */
    uint32_t ctx;         /* tokens per chunk; 0: 512, at most the decoder's context */
    uint32_t chunks;      /* at most this many; 0: all */
    /* After each chunk, part 0..1; return true to stop. */
    bool (*progress)(void *ctx, double part);
    void *progress_ctx;
};

/* The decoder runs the model of file; pages of its cache from 0 on are used. */
SHOAL_MUST_CHECK int calibration_run(struct calibration **out, struct decoder *d,
                                     const struct model_file *file, const struct tokenizer *t,
                                     const char *text, size_t n, const struct calibration_opts *o,
                                     struct err *e);
void calibration_destroy(struct calibration *c);
/* Number of tokens that were run. */
uint64_t calibration_n_tokens(const struct calibration *c);
/* n_cols floats that live until destroy, or NULL for a tensor that was not used; ctx is the
 * calibration.  For quantize_opts.importance. */
const float *calibration_importance(void *ctx, const char *tensor, uint64_t n_cols);

#endif
