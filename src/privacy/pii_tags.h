/* pii_tags.h - names of people and places by a model that tags entities: what its labels mean, and
 * how long texts are cut for it.
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

/* Where the piece that begins at `at` ends: short enough for a small encoder, at a blank if there
 * is one, else between two characters. */
size_t pii_tags_piece_end(const char *text, size_t n, size_t at);
/* A span of the model as a hit, cut before the first byte that hits may not have.  False: its label
 * is of no kind of `kinds`, no letter is left, or it is a person without a capital of which the
 * model is not nearly certain. */
bool pii_tags_hit(struct pii_hit *out, const struct pii_tag *tag, const char *text, unsigned kinds);

#endif
