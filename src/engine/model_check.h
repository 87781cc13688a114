/* model_check.h - whether a path is a model, by its first bytes and settings; nothing is loaded.
 *
 * Thread:    any; reads the files.
 * Failure:   SHOAL_EFORMAT or SHOAL_EUNSUPPORTED: it is none, and why; SHOAL_EIO, SHOAL_ENOMEM. */
#ifndef SHOAL_ENGINE_MODEL_CHECK_H
#define SHOAL_ENGINE_MODEL_CHECK_H

#include "base/err.h"

SHOAL_MUST_CHECK int model_check(const char *path, struct err *e);

#endif
