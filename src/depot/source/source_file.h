/* source_file.h - a file of this machine whose SHA-256 is known, as a source of models
 * (model_source.h). */
#ifndef SHOAL_DEPOT_SOURCE_SOURCE_FILE_H
#define SHOAL_DEPOT_SOURCE_SOURCE_FILE_H

#include "depot/source/model_source.h"

/* name: of the file in the store. */
SHOAL_MUST_CHECK int source_file_open(struct model_source **out, const char *path, const char *name,
                                      const uint8_t sha256[SHA256_BYTES], struct err *e);

#endif
