/* tok_bpe.h - BPE with a table of merges, over bytes ("gpt2") or characters ("gemma4").
 *
 * Thread:    immutable after create.
 * Ownership: create gives the state to the caller and takes the pre-tokenizer; tok_bpe_ops.destroy
 *            frees both.  Vocabulary and special tokens are borrowed.
 * Failure:   SHOAL_ENOMEM, SHOAL_ELIMIT, SHOAL_EFORMAT when the merges end early; then *out is NULL
 *            and the pre-tokenizer is destroyed. */
#ifndef SHOAL_TEXT_TOKENIZER_ALGORITHM_TOK_BPE_H
#define SHOAL_TEXT_TOKENIZER_ALGORITHM_TOK_BPE_H

#include "text/tokenizer/split/tok_pretok.h"
#include "text/tokenizer/tok_special.h"
#include "text/tokenizer/tokenizer_ops.h"

extern const struct tokenizer_ops tok_bpe_ops; /* texts and words */

struct tok_bpe_merges { /* where merges come from, the first to apply first */
    uint64_t n;
    size_t n_bytes; /* of their texts, at most */
    bool (*next)(void *ctx, struct str *left, struct str *right);
    void *ctx;
};

struct tok_bpe_opts {
    const struct tok_vocab *v;
    const struct tok_special *special;
    struct tok_pretok *pretok; /* NULL: only words are encoded */
    bool chars;                /* symbols are characters; else bytes, in GPT-2's alphabet */
    bool escaped;              /* chars: U+2581 in merges and texts is a space */
    bool ignore_merges;        /* a word that is a token is that token */
    bool newline_runs;         /* chars: a run of newlines that is a token is that token */
    bool fuse_unk;             /* several unknown characters are one */
};

SHOAL_MUST_CHECK int tok_bpe_create(void **out, const struct tok_bpe_opts *o,
                                    const struct tok_bpe_merges *src, struct err *e);
/* "left right"; a space that is the first character belongs to the left. */
void tok_bpe_split_merge(struct str s, struct str *left, struct str *right);

#endif
