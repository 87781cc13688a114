/* word_times.h - when each word of a transcript was said.
 *
 * The text is read once more by the recognizer's decoder; where the heads that follow the sound
 * (model/aligned.h) look while a token is read, warped so that time never runs back, is its time.
 * The method, also how words are divided and which of their ends are not believed, is that of
 * OpenAI's whisper/timing.py.
 *
 * Thread:    word_times_find: the engine's, which owns the model; the others are pure.
 * Failure:   SHOAL_ENOMEM. */
#ifndef SHOAL_ENGINE_NATIVE_WORD_TIMES_H
#define SHOAL_ENGINE_NATIVE_WORD_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct t5;
struct tokenizer;

struct word_times_part { /* of the text, as the model divides it */
    uint32_t n_tokens;
    double start, stop;
};

struct word_times_text {           /* what is read */
    const int32_t *first, *tokens; /* tokens that say how to write; the text's */
    uint32_t n_first, n;
    int32_t end;
    const uint32_t *pages, *source_pages; /* pages: enough for n_first + n + 1 tokens */
    uint32_t n_source, n_heard;           /* frames; those of them that are sound, not padding */
    double step;                          /* seconds from a frame to the next */
    bool spaced;                          /* the language has spaces between words */
    const struct word_times_part *parts;
    uint32_t n_parts;
};

struct word_times_word {
    uint32_t from, to; /* its tokens; of word_times_find its bytes in the text: [from, to) */
    double start, stop;
};

/* Where n_rows tokens were said, by how their rows look: [n_rows][n_heads][n_frames], of which the
 * first n_heard frames count.  begin[i]: the first frame of row first + i, i < n. */
struct word_times_looks {
    const float *weights;
    uint32_t n_rows, n_heads, n_frames, n_heard;
};
SHOAL_MUST_CHECK int word_times_align(uint32_t *begin, const struct word_times_looks *l,
                                      uint32_t first, uint32_t n);

/* Divides n tokens into words: out has room for n.  begin[i]: when token i begins, in seconds;
 * begin[n]: when the text ends.  spaced: the language has spaces between words.  Marks belong to
 * the word that they stand at, but not their time. */
SHOAL_MUST_CHECK int word_times_divide(struct word_times_word *out, uint32_t *n_out,
                                       const struct str *pieces, const double *begin, uint32_t n,
                                       bool spaced, const struct word_times_part *parts,
                                       uint32_t n_parts);

/* The words of a text with their times; *out is the caller's, to be freed with mem_free. */
SHOAL_MUST_CHECK int word_times_find(struct word_times_word **out, uint32_t *n_out, struct t5 *t,
                                     const struct tokenizer *tokenizer,
                                     const struct word_times_text *x);

#endif
