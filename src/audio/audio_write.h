/* audio_write.h - samples of one channel as the bytes of a sound file, piece by piece.
 *
 * WAV and bare samples are written here; FLAC, Ogg Opus and MP3 by libsndfile, if the system has
 * it. Bytes that were taken cannot change any more: a file that is taken before its end says in its
 * header that its length is not known.
 *
 * Thread:    belongs to one thread at a time.
 * Ownership: the writer owns its bytes until they are taken. */
#ifndef SHOAL_AUDIO_AUDIO_WRITE_H
#define SHOAL_AUDIO_AUDIO_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum audio_form {
    AUDIO_FORM_WAV,
    AUDIO_FORM_PCM,
    AUDIO_FORM_FLAC,
    AUDIO_FORM_OPUS,
    AUDIO_FORM_MP3
};

struct audio_out;

/* "wav", "pcm", "flac", "opus", "mp3"; false: none of them. */
bool audio_form_named(const char *name, enum audio_form *out);
/* 0, or SHOAL_EUNSUPPORTED with the reason: the system cannot write it. */
SHOAL_MUST_CHECK int audio_form_check(enum audio_form form, uint32_t rate, struct err *e);

/* n_samples: how many there will be; 0: not known. */
SHOAL_MUST_CHECK int audio_out_create(struct audio_out **out, enum audio_form form, uint32_t rate,
                                      uint64_t n_samples, struct err *e);
void audio_out_destroy(struct audio_out *a); /* NULL is fine */
SHOAL_MUST_CHECK int audio_out_put(struct audio_out *a, const int16_t *samples, size_t n,
                                   struct err *e);
/* Nothing is put afterwards. */
SHOAL_MUST_CHECK int audio_out_end(struct audio_out *a, struct err *e);
/* Moves what is written so far to the end of `to`; MP3 is taken as a whole, at its end. */
void audio_out_take(struct audio_out *a, struct buf *to);

#endif
