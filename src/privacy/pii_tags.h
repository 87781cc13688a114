/* pii_tags.h - names of people and places from a tagger: meaning of its labels, and splitting of
 * long texts.
 *
 * Thread:    pure functions. */
#ifndef SHOAL_PRIVACY_PII_TAGS_H
#define SHOAL_PRIVACY_PII_TAGS_H

#include "privacy/pii.h"

struct pii_tag {
    const char *label;
    size_t start, end; /* bytes of the text */
    float score;       /* probability */
};

/* End of the piece that begins at `at`: short enough for a small encoder, at a blank if possible,
 * otherwise between two characters. */
size_t pii_tags_piece_end(const char *text, size_t n, size_t at);
/* Converts a span of the model to a hit, cut before the first byte that hits may not contain.
 * False: its label is none of `kinds`, no letter is left, or it is an uncapitalized person without
 * near certainty. */
bool pii_tags_hit(struct pii_hit *out, const struct pii_tag *tag, const char *text, unsigned kinds);

#endif
