/* model_store.h - a folder of models, found by their SHA-256.
 *
 *   DIR/models/HEX/manifest.json   the files with sizes and hashes (model_manifest.h)
 *   DIR/models/HEX/files/...       the files, read-only
 *   DIR/models/HEX/used            its time: when the model was last used; locked while it is
 *   DIR/incoming/HEX/...           a model that is on its way (model_intake.h)
 *   DIR/names/NAME.json            a name for one of the models (model_refs.h)
 *   DIR/lock                       held while something is moved in or out
 *
 * Everything in models/ was verified on arrival. The store has a size limit: the least recently
 * used models are evicted to make room for a new one. Pinned models (assigned to a node) and those
 * with a name stay. A web server that serves DIR/models is a source for other stores.
 *
 * Thread:    any; several processes may use one store.  All of it reads the disk: not for an event
 *            loop, except find and pin, which read one small file.
 * Ownership: open gives, close takes back (NULL is fine). A pin is released with unpin, before
 *            close.
 * Failure:   SHOAL_ENOTFOUND (no such model), SHOAL_ELIMIT (no room; says how much is missing),
 *            SHOAL_EFORMAT (bytes do not fit their hash), SHOAL_EBUSY (in use), SHOAL_EIO,
 *            SHOAL_ENOMEM, SHOAL_ECANCELLED. */
#ifndef SHOAL_DEPOT_STORE_MODEL_STORE_H
#define SHOAL_DEPOT_STORE_MODEL_STORE_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/sha256.h"

struct model_manifest;
struct model_store;
struct model_store_pin;

struct model_store_opts {
    const char *dir;      /* NULL: model_store_default */
    uint64_t max_bytes;   /* limit of all models together; 0: limited by the disk */
    const char *memo_dir; /* where hashes of files are remembered (host/hash_memo.h), so that the
                           * registry does not read them again; NULL: nowhere */
};

SHOAL_MUST_CHECK int model_store_open(struct model_store **out, const struct model_store_opts *o,
                                      struct err *e);
void model_store_close(struct model_store *s);
/* Creates its folders now; otherwise the first model does. */
SHOAL_MUST_CHECK int model_store_make(struct model_store *s, struct err *e);
const char *model_store_dir(const struct model_store *s);
/* Bytes that a model may take on its disk; UINT64_MAX: not known, the folder is not there yet. */
uint64_t model_store_disk_free(const struct model_store *s);
const char *model_store_memo_dir(const struct model_store *s); /* or NULL */

/* The file or folder to load. SHOAL_ENOTFOUND: the model is not in the store, or incomplete. */
SHOAL_MUST_CHECK int model_store_find(struct model_store *s, const uint8_t sha256[SHA256_BYTES],
                                      char path[PATH_MAX], struct err *e);
/* Its manifest; *m must be initialised. */
SHOAL_MUST_CHECK int model_store_manifest(struct model_store *s, const uint8_t sha256[SHA256_BYTES],
                                          struct model_manifest *m, struct err *e);
/* Path of file i of its manifest. */
SHOAL_MUST_CHECK int model_store_file(struct model_store *s, const uint8_t sha256[SHA256_BYTES],
                                      const struct model_manifest *m, uint32_t i,
                                      char path[PATH_MAX], struct err *e);

/* Whether a path is that of a model of the store; then sha256 is the model's. */
bool model_store_owns(const struct model_store *s, const char *path, uint8_t sha256[SHA256_BYTES]);

/* Keeps the model until unpin, and marks it as used. A process crash unpins. */
SHOAL_MUST_CHECK int model_store_pin(struct model_store *s, const uint8_t sha256[SHA256_BYTES],
                                     struct model_store_pin **out, struct err *e);
void model_store_unpin(struct model_store_pin *p); /* NULL is fine */

/* Reads all of it again. SHOAL_EFORMAT names the damaged file. */
SHOAL_MUST_CHECK int model_store_verify(struct model_store *s, const uint8_t sha256[SHA256_BYTES],
                                        const _Atomic bool *stop, struct err *e);
/* SHOAL_EBUSY: it is pinned. */
SHOAL_MUST_CHECK int model_store_remove(struct model_store *s, const uint8_t sha256[SHA256_BYTES],
                                        struct err *e);

/* Takes a damaged model out, also a pinned one: who has it open keeps its bytes.  Nothing of it in
 * the store is no failure. */
SHOAL_MUST_CHECK int model_store_discard(struct model_store *s, const uint8_t sha256[SHA256_BYTES],
                                         struct err *e);

struct model_store_entry {
    uint8_t sha256[SHA256_BYTES];
    uint64_t bytes;       /* size of its files; for an incoming model: on disk so far */
    uint64_t total_bytes; /* when complete; 0: not known yet */
    uint64_t used_s;      /* Unix time of its last use */
    uint32_t n_files;     /* 0: incoming, and not known yet */
    uint32_t n_names;     /* that refer to it */
    bool pinned;
    bool incoming;  /* incoming, or left over from an interrupted fetch */
    bool damaged;   /* its manifest cannot be read: it can only be removed */
    char open[256]; /* "reply.gguf", or "" for a folder */
};

/* By last use, the latest first; mem_free *list. */
SHOAL_MUST_CHECK int model_store_list(struct model_store *s, struct model_store_entry **list,
                                      size_t *n, struct err *e);

struct model_store_swept {
    uint32_t n_models, n_incoming; /* removed */
    uint64_t bytes;
};
/* Makes room for `bytes` more within max_bytes and on the disk, and removes leftovers of fetches
 * older than a week. self: the incoming model that needs the room, or NULL. SHOAL_ELIMIT: evicting
 * all unpinned models would not be enough; then nothing was removed for it. */
SHOAL_MUST_CHECK int model_store_sweep(struct model_store *s, const uint8_t *self, uint64_t bytes,
                                       struct model_store_swept *out, struct err *e);

/* Removes every model without a name that nobody uses, and every interrupted fetch, if it was last
 * used at least spare_s seconds ago: a model that has just arrived gets its name a moment later. */
SHOAL_MUST_CHECK int model_store_gc(struct model_store *s, uint32_t spare_s,
                                    struct model_store_swept *out, struct err *e);

/* ---- for model_intake.h ---- */

/* "DIR/models/HEX", "DIR/incoming/HEX". */
SHOAL_MUST_CHECK int model_store_place(const struct model_store *s, char path[PATH_MAX],
                                       const uint8_t sha256[SHA256_BYTES], bool incoming,
                                       struct err *e);
/* Moves a complete model from incoming/ to models/. */
SHOAL_MUST_CHECK int model_store_admit(struct model_store *s, const uint8_t sha256[SHA256_BYTES],
                                       struct err *e);
/* Removes a folder with everything in it. */
void model_store_delete_tree(const char *path);

#endif
