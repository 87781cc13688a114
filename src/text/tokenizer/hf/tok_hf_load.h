/* tok_hf_load.h - makes a tokenizer from the documents of a Hugging Face folder, which the metadata
 * carries under tokenizer.huggingface.*.
 *
 * Thread:    belongs to the call.
 * Ownership: fills t; after a failure tokenizer_destroy frees the partial result.
 * Failure:   SHOAL_EUNSUPPORTED names the unknown item, SHOAL_EFORMAT the error and its position,
 *            SHOAL_ELIMIT, SHOAL_ENOMEM. */
#ifndef SHOAL_TEXT_TOKENIZER_HF_TOK_HF_LOAD_H
#define SHOAL_TEXT_TOKENIZER_HF_TOK_HF_LOAD_H

#include "text/tokenizer/tokenizer_core.h"

struct model_file;

/* Whether the model has such a tokenizer. */
bool tok_hf_present(const struct model_file *m);
SHOAL_MUST_CHECK int tok_hf_load(struct tokenizer *t, const struct model_file *m, struct err *e);

#endif
