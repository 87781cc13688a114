/* phrases.h - phrases that are likely to be said (names of a home, words of a trade): a trie over
 * tokens that helps a recognizer to write them.
 *
 * A token that begins or continues a phrase gets a bonus: it is taken where the recognizer itself
 * finds it nearly as likely as its best one.  If the phrase does not go on, the text goes back to
 * where it was helped, and on without help: speech that only begins like a phrase is not bent.
 *
 * Thread:    immutable after create; a place belongs to one text.
 * Ownership: the caller destroys.
 * Failure:   SHOAL_EINVAL: too many phrases, or one that is too long. */
#ifndef SHOAL_ENGINE_NATIVE_PHRASES_H
#define SHOAL_ENGINE_NATIVE_PHRASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define PHRASES_MAX 2048u
#define PHRASES_MAX_BYTES 256u /* of one */
#define PHRASES_MAX_OPEN 8u    /* phrases that a text can be in the middle of */

struct phrases;
struct tokenizer;

struct phrases_place { /* zero: at the start of a text */
    uint32_t open[PHRASES_MAX_OPEN];
    uint32_t n;
};

/* text: phrases, separated by line ends or commas.  Each is known as it is written, in lower case
 * and with capital initials. */
SHOAL_MUST_CHECK int phrases_create(struct phrases **out, const struct tokenizer *t,
                                    const char *text, size_t n, struct err *e);
void phrases_destroy(struct phrases *p); /* NULL is fine */
/* Adds the bonuses to the logits of the next token; best: the largest of them.  may_begin: also to
 * tokens that begin a phrase. */
void phrases_help(const struct phrases *p, const struct phrases_place *at, float *logits,
                  float best, bool may_begin);

enum phrases_state {
    PHRASES_OUTSIDE, /* the token is in no phrase */
    PHRASES_INSIDE,  /* in the middle of a word of one */
    PHRASES_WORD     /* it ends a word of one, or all of it */
};
/* The text goes on with this token. */
enum phrases_state phrases_take(const struct phrases *p, struct phrases_place *at, int32_t token);

#endif
