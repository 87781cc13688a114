/* pack.h - a folder of models and tables with a manifest (models.json): names, tasks, files and
 * their hashes.
 *
 * Thread:    immutable after open.
 * Ownership: pack_open gives, pack_close takes back; strings belong to the pack.
 * Failure:   SHOAL_ENOTFOUND (no folder), SHOAL_EFORMAT (the message says where in the manifest),
 *            SHOAL_EIO. Paths in a manifest stay inside its folder: anything else is refused. */
#ifndef SHOAL_HOST_PACK_H
#define SHOAL_HOST_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct pack_file {
    char *path; /* starts with the folder of the pack */
    uint64_t bytes;
    uint8_t sha256[32];
};

struct pack_model {
    const char *name, *task, *format, *licence;
    const char *labels; /* label set that the name stands for; NULL: the model's default */
    bool int8;          /* compute with 8-bit weights, whatever the file contains */
    const char *card;   /* path, or NULL */
    const char *open;   /* what to open: the file, or its folder for formats "hf-*" */
    struct pack_file *files;
    uint32_t n_files;
};

struct pack_table { /* data of an application, such as the words of src/apps/home */
    const char *name;
    struct pack_file file;
};

struct pack {
    char *dir;
    struct pack_model *models;
    struct pack_table *tables;
    uint32_t n_models, n_tables;
    void *json; /* owns the strings */
};

/* dir NULL: $SHOAL_MODELS, else the first of these that has a manifest: ./models, models beside the
 * program or above it, share/shoal/models of the program's or the library's prefix, and of the
 * prefix that was configured. */
SHOAL_MUST_CHECK int pack_open(struct pack **out, const char *dir, struct err *e);
/* The manifest's bytes instead of a file; dir is put in front of its paths. */
SHOAL_MUST_CHECK int pack_parse(struct pack **out, const char *dir, const char *json, size_t n,
                                struct err *e);
void pack_close(struct pack *p);
/* NULL: none of that name. */
const struct pack_model *pack_find(const struct pack *p, const char *name);
const struct pack_table *pack_find_table(const struct pack *p, const char *name);
/* "reply, intent, ..." */
void pack_names(const struct pack *p, char *out, size_t cap);
/* Sizes and SHA-256 of all files of the model are those of the manifest. */
SHOAL_MUST_CHECK int pack_verify(const struct pack_model *m, struct err *e);
SHOAL_MUST_CHECK int pack_verify_table(const struct pack_table *t, struct err *e);

#endif
