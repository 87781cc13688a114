/* tok_gguf.h - makes a tokenizer from the metadata tokenizer.ggml.*, as GGUF files have it.
 *
 * Thread:    belongs to the call.
 * Ownership: fills t; after a failure tokenizer_destroy frees the partial result.
 * Failure:   SHOAL_EUNSUPPORTED names the model or pre-tokenizer that is not known, SHOAL_EFORMAT
 *            what is wrong in the metadata, SHOAL_ELIMIT, SHOAL_ENOMEM. */
#ifndef SHOAL_TEXT_TOKENIZER_TOK_GGUF_H
#define SHOAL_TEXT_TOKENIZER_TOK_GGUF_H

#include "text/tokenizer/tokenizer_core.h"

struct model_file;

SHOAL_MUST_CHECK int tok_gguf_load(struct tokenizer *t, const struct model_file *m, struct err *e);

#endif
