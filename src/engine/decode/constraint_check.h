/* constraint_check.h - compiles a constraint for an engine before a task needs it, so that the
 * submitting thread finds it ready.
 *
 * Thread:    any; takes milliseconds for a large schema.
 * Failure:   as in constraint.h; SHOAL_EUNSUPPORTED also for an engine that generates no text.
 */
#ifndef SHOAL_ENGINE_DECODE_CONSTRAINT_CHECK_H
#define SHOAL_ENGINE_DECODE_CONSTRAINT_CHECK_H

#include <stddef.h>

#include "base/err.h"
#include "shoal/shoal.h"

SHOAL_MUST_CHECK int constraint_check(struct shoal_engine *en, enum shoal_constraint kind,
                                      const char *text, size_t n, struct err *e);

#endif
