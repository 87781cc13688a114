/* doc_folder.h - the documents in a folder and the folders below it.
 *
 * By extension: text (.txt, .text, .rst, .adoc), Markdown, HTML, JSON lines and PDF. Hidden files
 * and folders are left out, and so are links, which could lead outside.
 *
 * Thread:    belongs to its caller; reads the disk.
 * Ownership: init/fini over the caller's storage; paths belong to the list.
 * Failure:   SHOAL_ENOTFOUND, SHOAL_EIO, SHOAL_ELIMIT (more than DOC_FOLDER_MAX_FILES),
 *            SHOAL_ENOMEM; the list is then empty. A folder below that cannot be read is an error
 *            too: its documents would seem to be gone. */
#ifndef SHOAL_STORE_DOC_DOC_FOLDER_H
#define SHOAL_STORE_DOC_DOC_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

#define DOC_FOLDER_MAX_FILES 100000u
#define DOC_FOLDER_MAX_DEPTH 32u

struct doc_folder_file {
    const char *path; /* FOLDER/..., as the folder was given */
    uint64_t n_bytes;
    int64_t changed_ns; /* modification time */
};

struct doc_folder {
    struct arena arena;
    struct doc_folder_file *v; /* in the order of their paths */
    uint32_t n;
};

void doc_folder_init(struct doc_folder *f);
void doc_folder_fini(struct doc_folder *f);
/* folder: without a slash at its end. */
SHOAL_MUST_CHECK int doc_folder_read(struct doc_folder *f, const char *folder, struct err *e);
/* NULL: it is not there. */
const struct doc_folder_file *doc_folder_find(const struct doc_folder *f, const char *path);
/* Whether a file of this name is a document, by its extension. */
bool doc_folder_takes(const char *name);

#endif
