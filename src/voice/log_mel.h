/* log_mel.h - a sound as the logarithm of its energy in 40 bands, every 10 ms.
 *
 * Thread:    the tables are immutable after create; a stream belongs to its caller.
 * Ownership: create/destroy. */
#ifndef SHOAL_VOICE_LOG_MEL_H
#define SHOAL_VOICE_LOG_MEL_H

#include <stdint.h>

#include "base/err.h"

#define LOG_MEL_FRAME 400u /* samples of 16 kHz */
#define LOG_MEL_HOP 160u
#define LOG_MEL_BANDS 40u

struct log_mel;

SHOAL_MUST_CHECK int log_mel_create(struct log_mel **out, struct err *e);
void log_mel_destroy(struct log_mel *m); /* NULL is fine */
/* x: [LOG_MEL_FRAME] samples; out: [LOG_MEL_BANDS]. */
void log_mel_frame(const struct log_mel *m, const int16_t *x, float *out);

#endif
