/* model_share.h - serves a model of this machine to another node: its manifest and its files. Only
 * the files that a manifest lists can be opened, by their number: no name comes from the network.
 *
 * Thread:    any; reads the disk.
 * Failure:   SHOAL_ENOTFOUND (the model or the file is not here), SHOAL_ECHANGED (it changed since
 *            it was hashed), SHOAL_EIO, SHOAL_ENOMEM, SHOAL_ECANCELLED. */
#ifndef SHOAL_CLUSTER_STORE_MODEL_SHARE_H
#define SHOAL_CLUSTER_STORE_MODEL_SHARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/sha256.h"

struct model_manifest;
struct model_store;

struct model_share_from {
    struct model_store *store; /* NULL: none */
    const char *path;          /* where this process has the model outside of the store; or NULL */
    const char *memo_dir;      /* where hashes of its files are remembered; or NULL */
    const _Atomic bool *stop;  /* gives up when it becomes true */
};

/* *m must be initialised. */
SHOAL_MUST_CHECK int model_share_manifest(struct model_manifest *m,
                                          const struct model_share_from *from,
                                          const uint8_t sha256[SHA256_BYTES], struct err *e);
/* A descriptor of file i, to be closed by the caller, and its size. */
SHOAL_MUST_CHECK int model_share_open(int *fd, uint64_t *bytes, const struct model_share_from *from,
                                      const uint8_t sha256[SHA256_BYTES], uint32_t i,
                                      struct err *e);

#endif
