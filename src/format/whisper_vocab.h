/* whisper_vocab.h - the vocabulary of a Whisper model as tokenizer.ggml.* of GGUF: byte-level BPE.
 *
 * Thread:    no state.
 * Ownership: the tokens are borrowed for the call.
 * Failure:   SHOAL_EFORMAT, SHOAL_ENOMEM. */
#ifndef SHOAL_FORMAT_WHISPER_VOCAB_H
#define SHOAL_FORMAT_WHISPER_VOCAB_H

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct model_file;

/* n tokens as their bytes, in the order of their merges; the model has n_vocab, the rest of which
 * are control tokens.  *start: the token that every text begins with. */
SHOAL_MUST_CHECK int whisper_vocab_put(struct model_file *m, const struct str *tokens, uint32_t n,
                                       uint32_t n_vocab, uint32_t *start, struct err *e);

#endif
