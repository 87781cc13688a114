/* step_place.h - what the plans of the kernels need to know of a GPU, and how they get memory on
 * it.
 *
 * Ownership: what `place` returns belongs to its ctx. */
#ifndef SHOAL_ENGINE_CUDA_STEP_PLACE_H
#define SHOAL_ENGINE_CUDA_STEP_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "engine/cuda/many.h"

/* What the kernel runs on. */
struct step_place {
    uint32_t n_blocks, n_threads; /* n_threads: of a block */
    bool cluster;
    size_t shared_bytes; /* that a block may have */
    /* For the kernel of one token (one.cu): 0 blocks where it cannot run. */
    uint32_t one_blocks, one_threads;
    /* For the kernels of many tokens: of a block of each; 0: they cannot run. */
    uint32_t many_threads[MANY_KERNELS];
    uint32_t many_tokens; /* most of a pass */
    uint32_t max_tokens;  /* of a step; 0: STEP_MAX_TOKENS */
    /* Memory of the GPU with a copy of `from` (NULL: any contents), 256-byte aligned. */
    int (*place)(void *ctx, void **out, const void *from, size_t bytes, struct err *e);
    void *ctx;
};

#endif
