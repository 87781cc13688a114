/* microphone.h - a microphone of this machine, through ALSA, whose library is opened at run time.
 *
 * Thread:    one at a time; microphone_read blocks.
 * Ownership: open gives, close takes back.
 * Failure:   SHOAL_EUNSUPPORTED: no libasound; SHOAL_EIO: no such device, or it fails. */
#ifndef SHOAL_AUDIO_MICROPHONE_H
#define SHOAL_AUDIO_MICROPHONE_H

#include <stdint.h>

#include "base/err.h"

struct microphone;

/* device: a name of ALSA ("default", "hw:1,0").  Gives 16-bit samples of one channel at 16 kHz. */
SHOAL_MUST_CHECK int microphone_open(struct microphone **out, const char *device, struct err *e);
void microphone_close(struct microphone *m); /* NULL is fine */
/* Waits for n samples; returns how many there are. */
SHOAL_MUST_CHECK int64_t microphone_read(struct microphone *m, int16_t *to, uint32_t n,
                                         struct err *e);

#endif
