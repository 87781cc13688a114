/* shard_rows.h - slices of results (shard_msg.h) into and out of a decoder's memory, for the parts
 * by rows and for the engine's node.
 *
 * Thread:    no state.
 * Failure:   SHOAL_EFORMAT: a slice of another step, or nonsense. */
#ifndef SHOAL_CLUSTER_SHARD_SHARD_ROWS_H
#define SHOAL_CLUSTER_SHARD_SHARD_ROWS_H

#include "cluster/shard/shard_msg.h"

/* The gather that a process has come to. */
struct shard_gather {
    const struct decoder_gather *g;
    uint64_t chain, step;
    uint32_t n_parts, own; /* own: the part of this process */
    bool q8;               /* columns travel in 8 bits */
    uint32_t got;          /* bit i: the columns of part i are here */
};

/* With the own columns, and parts that have none, as here. */
struct shard_gather shard_gather_begin(const struct decoder_gather *g, uint64_t chain,
                                       uint64_t step, uint32_t n_parts, uint32_t own);
static inline bool shard_gather_done(const struct shard_gather *s)
{
    return s->got == (1u << s->n_parts) - 1;
}
/* The own columns as a frame; nothing if there are none.  In 8 bits they become here what the
 * others get, so that all parts continue with the same values.  packed: memory for it. */
void shard_gather_put(struct buf *out, struct buf *packed, const struct shard_gather *s,
                      uint64_t compute_ns);
/* Copies the columns of another part to their place.  *slice is what was read. */
SHOAL_MUST_CHECK int shard_gather_take(struct shard_gather *s, const struct shard_frame *f,
                                       struct shard_slice *slice, struct err *e);

#endif
