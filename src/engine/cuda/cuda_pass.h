/* cuda_pass.h - writes what the kernels read of a pass: tokens, page numbers, embedded vectors.
 *
 * Thread:    any.
 * Ownership: all memory is the caller's. */
#ifndef SHOAL_ENGINE_CUDA_CUDA_PASS_H
#define SHOAL_ENGINE_CUDA_CUDA_PASS_H

#include <stddef.h>

#include "engine/cuda/step.h"
#include "model/decoder.h"

/* Bytes for passes of at most that many tokens with that many page numbers. */
size_t cuda_pass_bytes(uint32_t max_tokens, size_t max_pages, uint32_t dim);

/* Writes the runs to `in`, which will be copied to in_gpu; p gets everything but logits.  tile:
 * most tokens of a tile of attention; work: [2][dim].  Returns the bytes. */
size_t cuda_pass_write(struct step_pass *p, uint8_t *in, uint8_t *in_gpu, const struct decoder *d,
                       const struct decoder_run *runs, uint32_t n_runs, uint32_t tile, float *work);

#endif
