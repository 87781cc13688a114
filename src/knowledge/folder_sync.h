/* folder_sync.h - makes a collection have the documents of a folder: new and changed files are
 * added, those that are gone are removed.
 *
 * A document is named by its path, FOLDER/..., and only documents of such names are removed. It can
 * be run again: files with the same size and time as in the last run are not read.
 *
 * Thread:    the owner's; files are the pool's.
 * Ownership: the struct is the caller's and must live until `done` was called, as must its texts;
 *            folder_sync_fini frees it.
 * Failure:   typed, to `done`: the folder cannot be read, and nothing was removed. A file that
 *            cannot be added is reported to `file`, and the others go on. */
#ifndef SHOAL_KNOWLEDGE_FOLDER_SYNC_H
#define SHOAL_KNOWLEDGE_FOLDER_SYNC_H

#include "knowledge/ingest.h"
#include "store/doc/doc_folder.h"

struct folder_sync {
    struct flow_owner *owner;
    struct embedding_who who;
    struct collections *collections;
    const char *collection;
    const char *folder;  /* without a slash at its end */
    uint64_t max_chunks; /* of the collection; 0: no limit */
    /* After each file that was read; f NULL: it was added or is unchanged. May be NULL. */
    void (*file)(struct folder_sync *x, const struct ingest *i, const struct failure *f);
    /* at of n files, and the part of the current one. May be NULL. */
    void (*progress)(struct folder_sync *x, uint32_t at, uint32_t n, double part, const char *name);
    void (*removed)(struct folder_sync *x, const char *name); /* May be NULL. */
    void (*done)(struct folder_sync *x, const struct failure *f);
    /* results of the last run */
    uint32_t n_added, n_unchanged, n_removed, n_failed;
    uint64_t n_chunks, n_tokens;
    /* private */
    struct doc_folder now, last;
    bool opened, cancelled;
    uint32_t at;
    struct buf bytes;
    struct ingest ingest;
    struct offload offload;
    struct arena gone; /* names of documents that were removed */
    const char **names;
    int rc;
    struct err error;
};

/* All members are set except private ones and results, which are zero the first time. */
void folder_sync_run(struct folder_sync *x);
void folder_sync_cancel(struct folder_sync *x); /* done is still called */
void folder_sync_fini(struct folder_sync *x);

#endif
