/* shard_part.h - a part of a model (engine/native/layer_part.h) that computes the steps of
 * messages.
 *
 * Thread, ownership, failure: as layer_part.h. */
#ifndef SHOAL_CLUSTER_SHARD_SHARD_PART_H
#define SHOAL_CLUSTER_SHARD_SHARD_PART_H

#include "cluster/shard/shard_msg.h"
#include "engine/native/layer_part.h"

struct shard_part {
    struct layer_part *layers;
    struct layer_part_run *runs; /* [SHARD_MSG_MAX_RUNS] */
    struct buf pages;            /* of all runs */
    struct buf input;            /* tokens or floats, aligned */
};

struct shard_part_opts {
    const char *path, *cache_dir; /* of the model; as in shoal_engine_opts */
    size_t memory_bytes;          /* that it may take; 0: what the machine has */
    decoder_gather_fn gather;     /* for a part by rows; called during shard_part_run */
    void *gather_ctx;
};

/* out is filled, and must be closed also after a failure. */
SHOAL_MUST_CHECK int shard_part_open(struct shard_part *out, const struct shard_open *o,
                                     const struct shard_part_opts *po, struct err *e);
void shard_part_close(struct shard_part *p);
size_t shard_part_bytes(const struct shard_part *p);
/* Computes the layers.  *x [n_tokens][dim] is valid until the next call. */
SHOAL_MUST_CHECK int shard_part_run(struct shard_part *p, const struct shard_step *s,
                                    const float **x, struct err *e);

#endif
