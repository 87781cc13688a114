/* phonemes.h - a normalized text as the phoneme ids of a voice.
 *
 * Thread: any; no state. */
#ifndef SHOAL_TEXT_SPEECH_PHONEMES_H
#define SHOAL_TEXT_SPEECH_PHONEMES_H

#include <stdint.h>

#include "text/speech/sounds.h"

struct model_file;

/* The symbols that a voice knows, each one character. */
struct phonemes {
    uint32_t codes[256]; /* of the characters, by id */
    uint32_t n;
    uint16_t pad, begin, end;
};

/* From the file's list vits.symbols.  SHOAL_EFORMAT: it is missing, or lacks _ ^ or $. */
SHOAL_MUST_CHECK int phonemes_read(struct phonemes *p, const struct model_file *file,
                                   struct err *e);
/* The phonemes of a text of speech_text_normal, as UTF-8: words with a space between, marks behind
 * them. */
void phonemes_of_text(const struct sounds *s, const char *text, size_t n, struct buf *out);
/* Their ids, with the voice's padding.  Characters that it does not know are left out.  Returns how
 * many; more than cap: nothing was written behind that. */
uint32_t phonemes_ids(const struct phonemes *p, const char *phonemes, size_t n, uint16_t *out,
                      uint32_t cap);

#endif
