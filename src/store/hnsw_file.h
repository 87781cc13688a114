/* hnsw_file.h - serializes the graph of hnsw.h, so that it need not be rebuilt after a restart.
 *
 * Each row has an id, growing with the rows, and a checksum over its numbers: both must match.
 * Removed rows are dropped, and links to them are redirected to their neighbours; new rows join the
 * graph as usual. The bytes have a version and a checksum.
 *
 * Thread:    as hnsw.h: writing is for readers, reading for the one writer.
 * Failure:   SHOAL_EFORMAT: damaged, or of another version; SHOAL_ECHANGED: of other rows;
 *            SHOAL_ENOMEM.  Then the graph is empty. */
#ifndef SHOAL_STORE_HNSW_FILE_H
#define SHOAL_STORE_HNSW_FILE_H

#include "store/hnsw.h"

struct buf;

struct hnsw_file_key {
    int64_t id; /* also the key of hnsw_plan */
    uint32_t sum;
};

/* keys: of the rows in the graph. out->rc reports a lack of room. */
void hnsw_file_write(struct buf *out, const struct hnsw *h, const struct hnsw_file_key *keys);
/* Fills an empty graph. keys: of all n current rows. */
SHOAL_MUST_CHECK int hnsw_file_read(struct hnsw *h, const void *bytes, size_t n_bytes,
                                    const struct hnsw_file_key *keys, uint32_t n, struct err *e);

#endif
