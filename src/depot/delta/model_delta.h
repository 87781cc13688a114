/* model_delta.h - a new version of a model as a patch of the old one, and back.
 *
 * GGUF files are compared tensor by tensor, by name, in blocks; what is left, and other files, in
 * pieces at the same place (delta_block.h).  The old and the new file are known by SHA-256, so a
 * patch is applied to exactly its old file and makes exactly its new one, or fails.
 *
 * Thread:    any that may block for long.
 * Ownership: nothing is kept.
 * Failure:   SHOAL_EIO, SHOAL_EFORMAT: damaged, SHOAL_EINVAL: of another file, SHOAL_ENOMEM; the
 *            file to write is then not there, or unchanged. */
#ifndef SHOAL_DEPOT_DELTA_MODEL_DELTA_H
#define SHOAL_DEPOT_DELTA_MODEL_DELTA_H

#include "depot/delta/delta_block.h"

struct model_delta { /* what was done */
    uint64_t old_bytes, new_bytes, patch_bytes;
    uint64_t copied, differed, packed; /* bytes of the new file, by kind of record */
};

/* 1: the file is a patch, and out says of what; 0: it is another, or cannot be opened. */
SHOAL_MUST_CHECK int model_delta_head(struct delta_head *out, const char *path, struct err *e);
SHOAL_MUST_CHECK int model_delta_make(const char *old_path, const char *new_path, const char *out,
                                      struct model_delta *done, struct err *e);
SHOAL_MUST_CHECK int model_delta_apply(const char *old_path, const char *patch, const char *out,
                                       struct model_delta *done, struct err *e);

#endif
