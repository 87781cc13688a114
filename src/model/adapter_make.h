/* adapter_make.h - makes an adapter of a file's matrices, for the decoder that it belongs to.
 *
 * Thread:    any: what it reads of the decoder does not change.
 * Ownership: the adapter belongs to the caller: adapter_destroy.  Neither the file nor the decoder
 *            is needed afterwards.
 * Failure:   SHOAL_EFORMAT (matrices that do not fit, by name), SHOAL_EUNSUPPORTED (a tensor that
 *            cannot be adapted this way), SHOAL_ENOMEM; then *out is NULL. */
#ifndef SHOAL_MODEL_ADAPTER_MAKE_H
#define SHOAL_MODEL_ADAPTER_MAKE_H

#include "base/err.h"
#include "format/model_file.h"

struct adapter;
struct decoder;

/* file: as lora_open gives it, for the decoder's file. */
SHOAL_MUST_CHECK int adapter_make(struct adapter **out, const struct decoder *d,
                                  const struct model_file *file, struct err *e);

#endif
