/* lora.h - LoRA adapters: opens one in either form, and merges it into its base model.
 *
 * Thread:    as model_file.h; the rows of a merged model may be read by any thread.
 * Ownership: both functions give a model file to the caller: model_file_close.  A merged one
 *            borrows base and adapter, which must stay open longer.
 * Failure:   SHOAL_EIO, SHOAL_EFORMAT (no adapter, or matrices that do not fit the base, by name),
 *            SHOAL_EUNSUPPORTED, SHOAL_ENOMEM; then *out is NULL. */
#ifndef SHOAL_FORMAT_CONVERT_LORA_H
#define SHOAL_FORMAT_CONVERT_LORA_H

#include "base/err.h"
#include "format/model_file.h"

/* path: a GGUF file as llama.cpp has it, or a folder as PEFT writes it.  The adapter has the form
 * of the former (hf/hf_adapter.h). */
SHOAL_MUST_CHECK int lora_open(struct model_file **out, const char *path,
                               const struct model_file *base, struct err *e);
/* The base with weight + strength * alpha / rank * B A in place of each weight that the adapter
 * has; those are computed row by row when they are read (MODEL_FILE_COMPUTED). */
SHOAL_MUST_CHECK int lora_merge(struct model_file **out, const struct model_file *base,
                                const struct model_file *adapter, float strength, struct err *e);

#endif
