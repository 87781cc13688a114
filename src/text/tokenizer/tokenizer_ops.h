/* tokenizer_ops.h - the operations of one tokenizer algorithm; its state is private to it.
 *
 * Two kinds of tables: those that encode whole texts (SPM, BPE, WordPiece of GGUF files; the
 * Hugging Face pipeline), and those that encode single words for that pipeline (the same three,
 * Unigram, whole words).  A table may have both.
 *
 * Thread:    state is immutable once it is created: any number of calls at once.  Working memory
 *            belongs to a call.
 * Failure:   0 or SHOAL_E*; the caller sets the text of the error. */
#ifndef SHOAL_TEXT_TOKENIZER_TOKENIZER_OPS_H
#define SHOAL_TEXT_TOKENIZER_TOKENIZER_OPS_H

#include <stdbool.h>
#include <stddef.h>

struct tok_call;

#define TOKENIZER_WORK_BYTES 128

struct tokenizer_ops {
    /* Appends the ids of a text; flags select which special tokens in it are parsed. NULL: only
     * words. */
    int (*encode)(const void *state, struct tok_call *c, const char *p, size_t n, unsigned flags);
    /* Appends the ids of one word.  work: TOKENIZER_WORK_BYTES, zeroed before the first word of a
     * text; word_end frees what it holds (NULL: nothing). */
    int (*word)(const void *state, struct tok_call *c, void *work, const char *p, size_t n);
    void (*word_end)(void *work);
    /* How many bytes at p spell a control token that tokenizer.special does not have; *open as in
     * tokenizer_control_at.  NULL: there are none. */
    size_t (*control_at)(const void *state, const char *p, size_t n, bool *open);
    void (*destroy)(void *state);
};

#endif
