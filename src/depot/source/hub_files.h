/* hub_files.h - which files of a repository of a Hugging Face hub are the model.
 *
 * Thread:    no state.
 * Ownership: read fills the caller's list; names are in the arena.
 * Failure:   SHOAL_EFORMAT (not a list of files), SHOAL_ENOTFOUND (no such file; says what there
 *            is), SHOAL_EUNSUPPORTED (no files that we load), SHOAL_ELIMIT. */
#ifndef SHOAL_DEPOT_SOURCE_HUB_FILES_H
#define SHOAL_DEPOT_SOURCE_HUB_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "host/sha256.h"

#define HUB_FILES_MAX 4096u
#define HUB_FILES_OID_BYTES 20u

struct hub_file {
    const char *path;
    uint64_t bytes;
    bool lfs; /* sha256 is known; otherwise oid */
    uint8_t sha256[SHA256_BYTES];
    uint8_t oid[HUB_FILES_OID_BYTES]; /* Git's name of the content */
};

struct hub_files {
    struct hub_file *v;
    uint32_t n;
    bool folder; /* after choose: the model is all of them */
};

/* The answer of /api/models/ORG/REPO/tree/REVISION. */
SHOAL_MUST_CHECK int hub_files_read(struct hub_files *out, struct arena *a, const char *json,
                                    size_t n, struct err *e);
/* Leaves the files of the model: a GGUF file, by its tag (a quantization, or its name; NULL: the
 * usual one), or those of a folder. */
SHOAL_MUST_CHECK int hub_files_choose(struct hub_files *f, const char *tag, struct err *e);

#endif
