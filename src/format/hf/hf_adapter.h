/* hf_adapter.h - reads a LoRA adapter in PEFT's form (adapter_config.json and its safetensors) as
 * llama.cpp's form in GGUF: tensors NAME.lora_a (rank rows) and NAME.lora_b (rank columns) for
 * tensor NAME of the base model, and adapter.lora.alpha.
 *
 * Thread:    as model_file.h.
 * Ownership: the adapter belongs to the caller: model_file_close.  The base is only read.
 * Failure:   SHOAL_EIO, SHOAL_EFORMAT, SHOAL_EUNSUPPORTED (a setting that changes the computation,
 *            or a module that the base's architecture does not have, by name), SHOAL_ENOMEM; then
 *            *out is NULL. */
#ifndef SHOAL_FORMAT_HF_HF_ADAPTER_H
#define SHOAL_FORMAT_HF_HF_ADAPTER_H

#include "base/err.h"
#include "format/model_file.h"

SHOAL_MUST_CHECK int hf_adapter_open(struct model_file **out, const char *path,
                                     const struct model_file *base, struct err *e);

#endif
