/* cuda_lm.h - a decoder that a GPU computes, as the scheduler sees it (lm.h).
 *
 * The tokens of a pass go to the GPU with their embedded vectors, the step kernel runs once, and
 * the rows of logits come back.  Keys and values are pages in the GPU's memory, in the CPU's
 * layout.  Logits have the bits of the CPU.
 *
 * Thread, ownership: lm.h.
 * Failure:   as cuda_gpu.h and step_plan.h.  A pass that fails gives SHOAL_EIO to all its runs, and
 *            so do all later ones; the text goes to the log. */
#ifndef SHOAL_ENGINE_CUDA_CUDA_LM_H
#define SHOAL_ENGINE_CUDA_CUDA_LM_H

#include "engine/cuda/cuda_gpu.h"
#include "engine/decode/lm.h"

/* Takes over d, which must be laid out for kern_scalar, and g, also if it fails.  n_pages: of keys
 * and values. */
SHOAL_MUST_CHECK int cuda_lm_create(struct lm *out, struct decoder *d, struct cuda_gpu *g,
                                    uint32_t n_pages, struct err *e);

#endif
