/* step_plan.h - describes a decoder to the step kernel (step.h): places its weights, vectors and
 * buffers, and divides a block's shared memory.
 *
 * Thread:    any; a plan belongs to its owner.
 * Ownership: what `place` returns belongs to its ctx.
 * Failure:   SHOAL_EUNSUPPORTED (a matrix that the kernel cannot compute, or a GPU that is too
 *            small for it), or what `place` returns. */
#ifndef SHOAL_ENGINE_CUDA_STEP_PLAN_H
#define SHOAL_ENGINE_CUDA_STEP_PLAN_H

#include "engine/cuda/step_place.h"
#include "model/decoder.h"
#include "model/decoder_parts.h"

struct many_plan;

/* Everything but kv, which the caller sets.  The weights must be laid out for kern_scalar.
 * one->layers and many->layers (many: owned by the caller) are NULL where those kernels do not
 * know this decoder. */
SHOAL_MUST_CHECK int step_plan(struct step_model *out, struct one_model *one,
                               struct many_plan *many, const struct decoder *d,
                               const struct step_place *at, struct err *e);

#endif
