/* shelf.h - finds a model by its SHA-256 in folders of this machine.
 *
 * A thread of low priority computes the hashes and remembers them (host/hash_memo.h). A request for
 * a model that was not found rescans the folders.
 *
 * Thread:    find: any.  Everything else: the owner's.  Inside, a thread "shelf" reads files.
 * Ownership: open gives, close takes back (NULL is fine); strings are copied.
 * Failure:   SHOAL_ENOMEM, SHOAL_EIO (no thread).  Files that cannot be read are left out. */
#ifndef SHOAL_CLUSTER_AGENT_SHELF_H
#define SHOAL_CLUSTER_AGENT_SHELF_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/sha256.h"

struct shelf;

struct shelf_opts {
    const char *const *places; /* folders with models in them, or models themselves */
    size_t n_places;
    const char *cache_dir; /* where hashes are remembered: as in shoal_engine_opts */
};

enum shelf_found {
    SHELF_HERE,
    SHELF_LOOKING, /* ask again soon */
    SHELF_NOWHERE, /* it was in none of the folders a moment ago */
};

SHOAL_MUST_CHECK int shelf_open(struct shelf **out, const struct shelf_opts *o, struct err *e);
void shelf_close(struct shelf *s);
/* path: what to load, if it is here. */
enum shelf_found shelf_find(struct shelf *s, const uint8_t sha256[SHA256_BYTES], char *path,
                            size_t cap);

#endif
