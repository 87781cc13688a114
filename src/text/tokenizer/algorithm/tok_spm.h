/* tok_spm.h - SentencePiece BPE: pieces with scores, spaces as part of words, byte fallback.
 *
 * Thread:    immutable after create.
 * Ownership: create gives the state to the caller; tok_spm_ops.destroy takes it back.  The
 *            vocabulary and the special tokens are borrowed.
 * Failure:   SHOAL_ENOMEM; then *out is NULL. */
#ifndef SHOAL_TEXT_TOKENIZER_ALGORITHM_TOK_SPM_H
#define SHOAL_TEXT_TOKENIZER_ALGORITHM_TOK_SPM_H

#include "text/tokenizer/tok_special.h"
#include "text/tokenizer/tokenizer_ops.h"

extern const struct tokenizer_ops tok_spm_ops; /* texts and words */

typedef double (*tok_spm_score_fn)(const void *ctx, uint32_t id);

/* score: of a token, called once for each.  space_prefix: texts get a space in front. */
SHOAL_MUST_CHECK int tok_spm_create(void **out, const struct tok_vocab *v,
                                    const struct tok_special *special, tok_spm_score_fn score,
                                    const void *ctx, bool space_prefix, struct err *e);

#endif
