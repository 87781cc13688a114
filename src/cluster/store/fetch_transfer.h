/* fetch_transfer.h - interface for fetching a model from one source: another node, a URL.
 *
 * Thread:    a transfer belongs to the fetch thread that opened it; its calls block.
 * Ownership: opened by fetch_peer.h or fetch_url.h, closed by close.
 * Failure:   SHOAL_ECANCELLED (stop), SHOAL_EBUSY (the source is busy: later), SHOAL_ENOTFOUND (it
 *            does not have the model), SHOAL_EINVAL (it denies access), SHOAL_EFORMAT (it sent
 *            nonsense), SHOAL_EIO; errors of the sink are passed on. */
#ifndef SHOAL_CLUSTER_STORE_FETCH_TRANSFER_H
#define SHOAL_CLUSTER_STORE_FETCH_TRANSFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct byte_rate;
struct byte_sink;
struct fetch_transfer;
struct model_manifest;

struct fetch_transfer_ops {
    /* The manifest of the model; *m is initialised. */
    int (*manifest)(struct fetch_transfer *t, struct model_manifest *m, struct err *e);
    /* File i from offset to its end. */
    int (*file)(struct fetch_transfer *t, const struct model_manifest *m, uint32_t i,
                uint64_t offset, const struct byte_sink *to, struct err *e);
    void (*close)(struct fetch_transfer *t);
};

struct fetch_transfer {
    const struct fetch_transfer_ops *ops;
};

/* Needed by every transfer; borrowed until it is closed. */
struct fetch_transfer_opts {
    const uint8_t *model;     /* SHA-256 */
    const _Atomic bool *stop; /* give up when it becomes true */
    struct byte_rate *rate;
    bool signature; /* look for the signature, too, where that takes requests of its own */
    uint32_t silent_ms; /* a source is abandoned after this long without data */
};

#endif
