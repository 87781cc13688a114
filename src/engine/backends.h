/* backends.h - detects the kind of model at a path and opens it.
 *
 * The one place that knows every kind: native decoders and specialists, CUDA, and ONNX
 * Runtime. */
#ifndef SHOAL_ENGINE_BACKENDS_H
#define SHOAL_ENGINE_BACKENDS_H

#include "base/err.h"
#include "shoal/shoal.h"

/* Whether the path holds a model of a known kind, complete as far as its headers show. Reads no
 * weights. */
SHOAL_MUST_CHECK int backends_check(const char *path, struct err *e);
/* Whether the path holds a LoRA adapter whose matrices fit the model at `base`, in the same way. */
SHOAL_MUST_CHECK int backends_check_adapter(const char *path, const char *base, struct err *e);
/* Whether it is a decoder, by the same headers; false: it is not, or it is not known. */
bool backends_generates(const char *path);
/* Fills en->lm or en->specialist and their members. After a failure, the engine still owns what was
 * opened. */
SHOAL_MUST_CHECK int backends_open(struct shoal_engine *en, const char *path,
                                   const struct shoal_engine_opts *o, struct err *e);

#endif
