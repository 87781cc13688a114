/* audio_play.h - plays samples by ALSA, if the system has its library (libasound.so.2), which is
 * opened when it is first needed.
 *
 * Thread: one at a time.  Writing waits until the device has room. */
#ifndef SHOAL_AUDIO_AUDIO_PLAY_H
#define SHOAL_AUDIO_AUDIO_PLAY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct audio_play;

/* device: NULL: "default".  SHOAL_EUNSUPPORTED: there is no library; SHOAL_EIO: no device. */
SHOAL_MUST_CHECK int audio_play_open(struct audio_play **out, const char *device, uint32_t rate,
                                     struct err *e);
SHOAL_MUST_CHECK int audio_play_put(struct audio_play *p, const int16_t *samples, size_t n,
                                    struct err *e);
/* Waits until all was heard.  NULL is fine. */
void audio_play_close(struct audio_play *p);

#endif
