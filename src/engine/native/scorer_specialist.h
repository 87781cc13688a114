/* scorer_specialist.h - maps numbers to numbers: tree ensembles and recurrent models as tasks. */
#ifndef SHOAL_ENGINE_NATIVE_SCORER_SPECIALIST_H
#define SHOAL_ENGINE_NATIVE_SCORER_SPECIALIST_H

#include "engine/specialist.h"

/* Whether it is a scorer. Reads the beginning of the file, or the folder's config.json. */
bool scorer_specialist_knows(const char *path);
SHOAL_MUST_CHECK int scorer_specialist_open(struct specialist *sp, const char *path,
                                            const struct shoal_engine_opts *o, struct err *e);

#endif
