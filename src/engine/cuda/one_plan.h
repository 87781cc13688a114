/* one_plan.h - describes a decoder to the kernel of one token (one.h), if it is one that the kernel
 * knows.
 *
 * Thread:    any.
 * Ownership: as step_plan.h.
 * Failure:   what `place` returns. */
#ifndef SHOAL_ENGINE_CUDA_ONE_PLAN_H
#define SHOAL_ENGINE_CUDA_ONE_PLAN_H

#include "engine/cuda/step_place.h"

/* layers: m's, in the memory of the host.  out->layers is NULL if the kernel cannot compute m. */
SHOAL_MUST_CHECK int one_plan(struct one_model *out, const struct step_model *m,
                              const struct step_layer *layers, const struct step_place *at,
                              struct err *e);

/* Whether m is one of the common decoders, with weights in integers. */
bool one_plan_knows(const struct step_model *m, const struct step_layer *layers);
/* Its layers and its output as one.h has them, dealt out to that many warps; to be freed.  NULL: no
 * memory. */
struct one_layer *one_plan_layers(const struct step_model *m, const struct step_layer *layers,
                                  uint32_t warps);

#endif
