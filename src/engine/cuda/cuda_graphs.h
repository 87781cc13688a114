/* cuda_graphs.h - passes that repeat, recorded once: the driver then starts all launches of a pass
 * with one call.  A batch of small models costs more in calls than in work: 300 launches a step.
 *
 * A pass repeats if its shape and its buffers are the same; what the buffers hold may differ.
 *
 * Thread:    belongs to its GPU's thread.
 * Ownership: cuda_graphs_clear gives the recordings back; zeroed memory is an empty store.
 * Failure:   as the launches.  A driver that cannot record is not asked again: the launches are
 *            then made one by one. */
#ifndef SHOAL_ENGINE_CUDA_CUDA_GRAPHS_H
#define SHOAL_ENGINE_CUDA_CUDA_GRAPHS_H

#include <stdbool.h>

#include "engine/cuda/cuda_api.h"
#include "engine/cuda/step.h"

#define CUDA_GRAPHS_MAX 8u

struct cuda_graphs_key { /* what the launches are made of */
    const void *plan;
    struct step_pass pass;
    uint32_t last; /* highest position that they are made for */
};

struct cuda_graphs {
    struct cuda_graphs_kept {
        struct cuda_graphs_key key;
        struct cu_graph_exec *exec; /* NULL: not recorded yet */
        uint32_t seen;
        uint64_t used; /* when, by `now` */
    } kept[CUDA_GRAPHS_MAX];
    uint64_t now;
    bool off;
};

/* Runs what `launch` launches on the stream, which is recorded when it is seen often enough. */
SHOAL_MUST_CHECK int cuda_graphs_run(struct cuda_graphs *s, const struct cuda_lib *lib,
                                     struct cu_stream *stream, const struct cuda_graphs_key *key,
                                     int (*launch)(void *ctx, struct err *e), void *ctx,
                                     struct err *e);
void cuda_graphs_clear(struct cuda_graphs *s, const struct cuda_lib *lib);

#endif
