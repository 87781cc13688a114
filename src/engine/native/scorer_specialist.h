/* scorer_specialist.h - numbers for numbers: trees and layer programs as tasks. */
#ifndef SHOAL_ENGINE_NATIVE_SCORER_SPECIALIST_H
#define SHOAL_ENGINE_NATIVE_SCORER_SPECIALIST_H

#include "engine/specialist.h"

/* Is the path a scorer's?  Looks at the beginning of the file, or at the folder's config.json. */
bool scorer_specialist_knows(const char *path);
SHOAL_MUST_CHECK int scorer_specialist_open(struct specialist *sp, const char *path,
                                            const struct shoal_engine_opts *o, struct err *e);

#endif
