/* audio_read.h - reads a sound of any usual format (WAV, FLAC, Ogg Opus and Vorbis, MP3, AIFF,
 * ...), rate and number of channels as 16-bit samples of one channel at 16 kHz.
 *
 * A sound is read block by block: memory does not depend on its length.  Channels are averaged.
 * Values beyond full scale are clipped.  A file that ends before its header says is read as far as
 * it goes.
 *
 * Thread:    one at a time.
 * Ownership: audio_open_* gives, audio_close takes back; memory is borrowed until then.
 * Failure:   SHOAL_EFORMAT: not a sound, or damaged; SHOAL_ELIMIT: a rate or a number of channels
 *            that no microphone has; SHOAL_EIO; SHOAL_EUNSUPPORTED: a library is missing. */
#ifndef SHOAL_AUDIO_AUDIO_READ_H
#define SHOAL_AUDIO_AUDIO_READ_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define AUDIO_RATE 16000u
#define AUDIO_MAX_CHANNELS 64
#define AUDIO_MIN_RATE 2000
#define AUDIO_MAX_RATE 768000

struct audio;

struct audio_info { /* of the file */
    uint32_t rate, channels;
    double seconds; /* as its header says; 0: not known */
};

/* A regular file. */
SHOAL_MUST_CHECK int audio_open_file(struct audio **out, const char *path, struct err *e);
SHOAL_MUST_CHECK int audio_open_memory(struct audio **out, const void *bytes, size_t n,
                                       struct err *e);
void audio_close(struct audio *a); /* NULL is fine */
const struct audio_info *audio_info(const struct audio *a);
/* Reads up to `most` samples; returns how many, 0 at the end, or an error. */
SHOAL_MUST_CHECK int64_t audio_read(struct audio *a, int16_t *to, size_t most, struct err *e);

#endif
