/* speech_fold.h - characters as the rules of speech_text.c know them: accents are dropped, dashes
 * and quotes become ASCII, what is no character or not known becomes a space.
 * Private to src/text/speech. */
#ifndef SHOAL_TEXT_SPEECH_SPEECH_FOLD_H
#define SHOAL_TEXT_SPEECH_SPEECH_FOLD_H

#include "base/buf.h"

void speech_fold(const char *text, size_t n, struct buf *out);

#endif
