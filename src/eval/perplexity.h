/* perplexity.h - how well a model predicts a text; the method is in bench/PROTOCOL.md.
 *
 * Thread:    the decoder's.
 * Failure:   SHOAL_EIO, SHOAL_EINVAL (text shorter than one context), SHOAL_ECANCELLED. */
#ifndef SHOAL_EVAL_PERPLEXITY_H
#define SHOAL_EVAL_PERPLEXITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/decoder.h"
#include "text/tokenizer/tokenizer.h"

struct perplexity_result {
    double ppl, nll, ms; /* nll: mean */
    uint64_t n_scored;
    uint32_t n_chunks, n_tokens;
};

struct perplexity_opts {
    uint32_t ctx;    /* tokens per chunk; 0: 512, at most the decoder's context */
    uint32_t chunks; /* at most this many; 0: all */
    /* After each chunk; return true to stop. */
    bool (*progress)(void *ctx, const struct perplexity_result *so_far, uint32_t n_chunks);
    void *progress_ctx;
};

SHOAL_MUST_CHECK int perplexity_text(struct perplexity_result *out, struct decoder *d,
                                     const struct tokenizer *t, const char *text, size_t n,
                                     const struct perplexity_opts *o, struct err *e);
SHOAL_MUST_CHECK int perplexity_file(struct perplexity_result *out, struct decoder *d,
                                     const struct tokenizer *t, const char *path,
                                     const struct perplexity_opts *o, struct err *e);

#endif
