/* backends.h - finds out what kind of model a path holds and opens it.
 *
 * The one place that knows every kind: native decoders and specialists, and ONNX Runtime. */
#ifndef SHOAL_ENGINE_BACKENDS_H
#define SHOAL_ENGINE_BACKENDS_H

#include "base/err.h"
#include "shoal/shoal.h"

/* Whether the path holds a model of a known kind, whole as far as its headers tell.  Reads no
 * weights. */
SHOAL_MUST_CHECK int backends_check(const char *path, struct err *e);
/* Fills en->lm or en->specialist, with everything that either needs.  After a failure, what was
 * opened is still the engine's. */
SHOAL_MUST_CHECK int backends_open(struct shoal_engine *en, const char *path,
                                   const struct shoal_engine_opts *o, struct err *e);

#endif
