/* tok_merge.h - merging the symbols of a word, for SentencePiece BPE and BPE.
 *
 * Thread:    a struct tok_merge is immutable once it is filled, except for `whole`, a cache of pure
 *            results that threads fill with relaxed atomics. A struct tok_merge_work belongs to a
 *            call.
 * Ownership: fini frees; the vocabulary is borrowed.
 * Failure:   SHOAL_ENOMEM, SHOAL_ELIMIT from the output. */
#ifndef SHOAL_TEXT_TOKENIZER_ALGORITHM_TOK_MERGE_H
#define SHOAL_TEXT_TOKENIZER_ALGORITHM_TOK_MERGE_H

#include <stdatomic.h>

#include "text/tokenizer/tok_call.h"
#include "text/tokenizer/tok_vocab.h"

#define TOK_MERGE_NO_SYM UINT32_MAX

enum tok_merge_whole { TOK_MERGE_WHOLE_UNTRIED, TOK_MERGE_WHOLE_YES, TOK_MERGE_WHOLE_NO };

struct tok_merge_pair {
    uint32_t left, right, merged; /* symbols */
};

static inline uint64_t tok_merge_pair_hash(uint32_t left, uint32_t right)
{
    return hash_mix((uint64_t)left << 32 | right);
}

struct tok_merge {
    const struct tok_vocab *v;
    bool chars;         /* symbols are characters, and U+2581 is a space; else bytes */
    bool ignore_merges; /* a word that is a token is that token */
    bool fuse_unk;      /* several unknown characters are one */
    /* Where ranks come from: pieces with a priority, or pairs. */
    uint32_t *prio;               /* [v->n] smaller merges first; NULL: by pairs */
    struct tok_merge_pair *pairs; /* [n_pairs] by rank, the first to apply first */
    uint32_t n_pairs;
    struct tok_index pair_index;
    uint32_t byte_sym[256]; /* first symbol of a byte */
    uint8_t glue[256];      /* chars: nonzero where a token has this byte before a space */
    _Atomic uint8_t *whole; /* [v->n] enum tok_merge_whole: does the piece merge to this token? */
};

/* Working memory of one call; all zero is empty.  It grows to the longest word and stays. */
struct tok_merge_work {
    uint32_t *start, *sym, *rank, *merged, *next, *prev; /* [cap] one block, owned by start */
    size_t cap;
    uint64_t *heap; /* rank << 32 | symbol: the next merge is the smallest */
    size_t n_heap, cap_heap;
};

SHOAL_MUST_CHECK int tok_merge_init(struct tok_merge *m, const struct tok_vocab *v, bool chars,
                                    struct err *e);
void tok_merge_fini(struct tok_merge *m);
void tok_merge_work_fini(struct tok_merge_work *w);

/* Merges the symbols of one word, which no token crosses, and emits its tokens. */
SHOAL_MUST_CHECK int tok_merge_word(const struct tok_merge *m, struct tok_merge_work *w,
                                    struct tok_call *c, const char *p, size_t n);
/* Merges a text over characters: split before spaces where no token contains one. */
SHOAL_MUST_CHECK int tok_merge_spaced(const struct tok_merge *m, struct tok_merge_work *w,
                                      struct tok_call *c, const char *p, size_t n);

#endif
