/* wav_head.h - the beginning of a WAV file that comes through a pipe: which samples follow.
 *
 * Thread:    pure function.
 * Failure:   SHOAL_EFORMAT: no WAV file, or one with other than plain samples. */
#ifndef SHOAL_AUDIO_WAV_HEAD_H
#define SHOAL_AUDIO_WAV_HEAD_H

#include <stddef.h>

#include "audio/pcm.h"

#define WAV_HEAD_MOST 4096u /* bytes before the samples */

/* 1: *form is that of the samples, which begin at *skip; 0: more bytes are needed. */
SHOAL_MUST_CHECK int wav_head(const void *bytes, size_t n, struct pcm_form *form, size_t *skip,
                              struct err *e);

#endif
