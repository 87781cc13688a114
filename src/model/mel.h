/* mel.h - a sound of 30 seconds as Whisper hears it: the logarithm of its energy in bands that are
 * equally wide in mel, every 10 ms.
 *
 * Thread:    the tables are immutable after create: any number of threads.
 * Ownership: create/destroy; sounds and results are the caller's.  Private to src/model. */
#ifndef SHOAL_MODEL_MEL_H
#define SHOAL_MODEL_MEL_H

#include <stdint.h>

#include "base/err.h"

#define MEL_HOP 160u /* samples of 16 kHz */
#define MEL_FRAMES 3000u
#define MEL_SAMPLES (MEL_FRAMES * MEL_HOP)
#define MEL_MOST_BANDS 128u

struct mel;

SHOAL_MUST_CHECK int mel_create(struct mel **out, uint32_t n_bands, struct err *e);
void mel_destroy(struct mel *m); /* NULL is fine */
/* Frames `frame` and frame + 1 (an even one first) of n samples, behind which are zeros: the
 * logarithms of their energies, [2][n_bands].  Returns the greatest of them. */
float mel_frames(const struct mel *m, const float *x, uint32_t n, uint32_t frame, float *out);
/* Logarithms to features, in place; most: the greatest of the whole sound. */
void mel_finish(float *x, uint32_t n, float most);

#endif
