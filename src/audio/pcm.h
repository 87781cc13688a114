/* pcm.h - live samples of any usual form as 16-bit samples of one channel, by default at 16 kHz.
 *
 * Thread:    one at a time.
 * Ownership: pcm_create gives, pcm_destroy takes back.
 * Failure:   SHOAL_EINVAL: a form that nobody sends; SHOAL_EFORMAT: a value that is not finite;
 *            SHOAL_ENOMEM; SHOAL_EUNSUPPORTED: another rate needs libsamplerate, which is
 *            missing. */
#ifndef SHOAL_AUDIO_PCM_H
#define SHOAL_AUDIO_PCM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct pcm;

struct pcm_form {
    uint32_t rate, channels; /* channels are averaged */
    uint32_t width;          /* bytes of a sample: 1 (unsigned), 2, 3, 4; little-endian */
    bool is_float;           /* width 4 */
    uint32_t to_rate;        /* what it becomes; 0: 16 kHz */
};

SHOAL_MUST_CHECK int pcm_create(struct pcm **out, const struct pcm_form *form, struct err *e);
void pcm_destroy(struct pcm *p); /* NULL is fine */
/* Appends what n bytes become to out, as int16_t; the rest of an unfinished frame waits for more.
 */
SHOAL_MUST_CHECK int pcm_feed(struct pcm *p, const void *bytes, size_t n, struct buf *out,
                              struct err *e);

#endif
