/* vocab_trie.h - the texts of a vocabulary as a tree of bytes, in the order of a walk through it.
 *
 * Tokens without text are left out, as are those that end a generation.  Control tokens are in it
 * by their spelling between two bytes VOCAB_TRIE_MARK, which no text contains: a grammar can ask
 * for them, but no class of characters matches them.
 *
 * Thread:    immutable after create: any.
 * Ownership: create copies what it needs; destroy takes the trie back (NULL is fine).
 * Failure:   SHOAL_ENOMEM; *out is NULL then. */
#ifndef SHOAL_TEXT_GRAMMAR_VOCAB_TRIE_H
#define SHOAL_TEXT_GRAMMAR_VOCAB_TRIE_H

#include <stdint.h>

#include "base/err.h"

struct tokenizer;

#define VOCAB_TRIE_MARK 0xffu
#define VOCAB_TRIE_NONE UINT32_MAX

struct vocab_trie_node { /* node 0 is the root; a node's children follow it */
    uint32_t end;        /* the first node behind everything below this one */
    uint32_t token;      /* first token with this text, or NONE */
    uint16_t depth;      /* bytes of the text */
    uint8_t byte;        /* the last of them */
};

struct vocab_trie {
    struct vocab_trie_node *nodes;
    uint32_t *same;        /* [n_vocab]: the next token with the same text, or NONE */
    const uint8_t **texts; /* [n_vocab]: the bytes of each token, as the trie has them */
    uint16_t *text_bytes;  /* 0: not in the trie */
    uint32_t n_nodes, n_vocab, max_depth;
    uint64_t *ends; /* bits of the tokens that end a generation */
    uint8_t *bytes; /* what texts point to */
};

/* n_vocab: tokens that the model knows, which may be more or fewer than the tokenizer's. */
SHOAL_MUST_CHECK int vocab_trie_create(struct vocab_trie **out, const struct tokenizer *t,
                                       uint32_t n_vocab, struct err *e);
void vocab_trie_destroy(struct vocab_trie *v);
/* Words of 64 bits that a set of tokens takes. */
static inline uint32_t vocab_trie_words(const struct vocab_trie *v)
{
    return (v->n_vocab + 63) / 64;
}

#endif
