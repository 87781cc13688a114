/* extract_specialist.h - summarizes a text by selecting sentences. */
#ifndef SHOAL_ENGINE_NATIVE_EXTRACT_SPECIALIST_H
#define SHOAL_ENGINE_NATIVE_EXTRACT_SPECIALIST_H

#include "format/model_file.h"
#include "text/tokenizer/tokenizer.h"
#include "engine/specialist.h"

struct crew;

/* Fills sp, and *file and *tokenizer with those of its encoder, which the caller closes after sp.
 */
SHOAL_MUST_CHECK int extract_specialist_open(struct specialist *sp, struct model_file **file,
                                             struct tokenizer **tokenizer, const char *path,
                                             struct crew *crew, const struct shoal_engine_opts *o,
                                             struct err *e);

#endif
