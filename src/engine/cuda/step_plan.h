/* step_plan.h - describes a decoder to the step kernel (step.h): places its weights, vectors and
 * buffers, and divides a block's shared memory.
 *
 * Thread:    any; a plan belongs to its owner.
 * Ownership: what `place` returns belongs to its ctx.
 * Failure:   SHOAL_EUNSUPPORTED (a matrix that the kernel cannot compute, or a GPU that is too
 *            small for it), or what `place` returns. */
#ifndef SHOAL_ENGINE_CUDA_STEP_PLAN_H
#define SHOAL_ENGINE_CUDA_STEP_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "engine/cuda/step.h"
#include "model/decoder.h"
#include "model/decoder_parts.h"

/* What the kernel runs on. */
struct step_place {
    uint32_t n_blocks, n_threads; /* n_threads: of a block */
    bool cluster;
    size_t shared_bytes; /* that a block may have */
    uint32_t max_tokens; /* of a step; 0: STEP_MAX_TOKENS */
    /* Memory of the GPU with a copy of `from` (NULL: any contents), 256-byte aligned. */
    int (*place)(void *ctx, void **out, const void *from, size_t bytes, struct err *e);
    void *ctx;
};

/* Everything but kv, which the caller sets.  The weights must be laid out for kern_scalar. */
SHOAL_MUST_CHECK int step_plan(struct step_model *out, const struct decoder *d,
                               const struct step_place *at, struct err *e);

#endif
