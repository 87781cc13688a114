/* windows.h - cuts a long sound into pieces that a recognizer hears at a time, at pauses.
 *
 * Thread:    pure functions. */
#ifndef SHOAL_AUDIO_WINDOWS_H
#define SHOAL_AUDIO_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "audio/audio_read.h"

/* Samples of a window: models are trained on up to 30 seconds. */
#define WINDOWS_MOST (28u * AUDIO_RATE)

/* Length of the first window of a sound whose next n samples are at x; last: nothing follows them.
 * If there are more than WINDOWS_MOST, it ends in the middle of the quietest 0.2 seconds of the
 * second half of the window, the latest of equals.  0: more samples are needed. */
uint32_t windows_cut(const int16_t *x, uint32_t n, bool last);

#endif
