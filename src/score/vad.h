/* vad.h - voice activity: where somebody speaks in a sound.
 *
 * A small recurrent network (recurrent.h; Silero) gives the probability of speech for every hop of
 * samples; speech begins where it is likely and ends after a pause in which it is unlikely.
 *
 * Thread:    immutable after create; any number of threads.
 * Ownership: the caller destroys what create returns; nothing points into the parsed bytes.
 * Failure:   as recurrent_parse; SHOAL_EFORMAT also for a network with other inputs and outputs. */
#ifndef SHOAL_SCORE_VAD_H
#define SHOAL_SCORE_VAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define VAD_RATE 16000u

struct vad;

struct vad_span {
    uint32_t start, end; /* samples */
};

/* config and weights: as of recurrent_parse.  kernels: name of a kernel set; NULL: the best. */
SHOAL_MUST_CHECK int vad_create(struct vad **out, const void *config, size_t n_config,
                                const void *weights, size_t n_weights, const char *kernels,
                                struct err *e);
void vad_destroy(struct vad *v); /* NULL is fine */

/* Where somebody speaks in x: *out (mem_free) holds *n_out spans, in order and apart. */
SHOAL_MUST_CHECK int vad_listen(const struct vad *v, const int16_t *x, uint32_t n,
                                struct vad_span **out, uint32_t *n_out, struct err *e);

/* The decision alone: p[i] is the probability of speech in samples i * hop .. (i + 1) * hop - 1 of
 * n_samples.  Writes at most `most` spans and returns how many; n_p of them always suffice. */
uint32_t vad_find(const float *p, uint32_t n_p, uint32_t hop, uint32_t n_samples,
                  struct vad_span *out, uint32_t most);

#endif
