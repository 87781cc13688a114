/* fetch_pb.h - FetchRequest and FetchChunk of shoal/node/v1, typed on both sides. Incoming bytes
 * are not trusted.
 *
 * Thread:    no state.
 * Ownership: what is read borrows from the bytes or lives in the manifest.
 * Failure:   SHOAL_EFORMAT, SHOAL_ELIMIT, SHOAL_ENOMEM. */
#ifndef SHOAL_CLUSTER_STORE_FETCH_PB_H
#define SHOAL_CLUSTER_STORE_FETCH_PB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "host/sha256.h"

struct model_manifest;

#define FETCH_PB_MAX_REQUEST 256u
#define FETCH_PB_DATA_BYTES ((size_t)128 << 10) /* bytes of a file in one message */
#define FETCH_PB_MAX_CHUNK ((size_t)4 << 20)

struct fetch_request {
    uint8_t model[SHA256_BYTES];
    bool manifest; /* the list of files; else one of them: */
    uint32_t file;
    uint64_t offset;
};

SHOAL_MUST_CHECK int fetch_pb_put_request(struct buf *out, const struct fetch_request *r);
SHOAL_MUST_CHECK int fetch_pb_read_request(struct fetch_request *out, const uint8_t *p, size_t n,
                                           struct err *e);

SHOAL_MUST_CHECK int fetch_pb_put_manifest(struct buf *out, const struct model_manifest *m);
SHOAL_MUST_CHECK int fetch_pb_put_data(struct buf *out, const void *p, size_t n);

struct fetch_chunk {
    bool manifest;       /* the chunk was a manifest, now in the caller's struct */
    const uint8_t *data; /* otherwise: a piece of the file, pointing into the input */
    size_t n_data;
};

/* m: initialised; filled when the chunk is a manifest, which must be that of the model. */
SHOAL_MUST_CHECK int fetch_pb_read_chunk(struct fetch_chunk *out, struct model_manifest *m,
                                         const uint8_t model[SHA256_BYTES], const uint8_t *p,
                                         size_t n, struct err *e);

#endif
