/* hnsw_file.h - the graph of hnsw.h as bytes, so that it need not be made again after a restart.
 *
 * Each row has an id, growing with the rows, and a sum over its numbers: both must be what they
 * were.  Rows that are gone since are left out, and what led to them leads to their neighbours;
 * rows that are new join the graph as any others.  The bytes have a version and a checksum.
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

/* keys: of the rows in the graph.  out->rc says whether there was room. */
void hnsw_file_write(struct buf *out, const struct hnsw *h, const struct hnsw_file_key *keys);
/* Fills an empty graph.  keys: of all n rows that there are now. */
SHOAL_MUST_CHECK int hnsw_file_read(struct hnsw *h, const void *bytes, size_t n_bytes,
                                    const struct hnsw_file_key *keys, uint32_t n, struct err *e);

#endif
