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

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct tokenizer;

#define VOCAB_TRIE_MARK 0xffu
#define VOCAB_TRIE_NONE UINT32_MAX

struct vocab_trie_node { /* node 0 is the root; a node's children follow it */
    uint64_t below;      /* classes of the bytes below this node (vocab_trie_class) */
    uint32_t end;        /* the first node after all descendants */
    uint32_t token;      /* first token with this text, or NONE */
    uint32_t first;      /* index in order of the first token that begins with this text */
    uint16_t depth;      /* bytes of the text */
    uint8_t byte;        /* the last of them */
    uint8_t height;      /* additional bytes of the longest text below; 255: or more */
};

struct vocab_trie {
    struct vocab_trie_node *nodes;
    uint32_t *same;        /* [n_vocab]: the next token with the same text, or NONE */
    uint32_t *order;       /* [n_order]: tokens in the order of their texts */
    const uint8_t **texts; /* [n_vocab]: the bytes of each token, as the trie has them */
    uint16_t *text_bytes;  /* 0: not in the trie */
    uint32_t n_nodes, n_vocab, n_order, max_depth;
    uint64_t *ends; /* bits of the tokens that end a generation */
    uint8_t *bytes; /* storage of texts */
    size_t n_bytes;
};

/* n_vocab: tokens known to the model, which may differ from the tokenizer's. */
SHOAL_MUST_CHECK int vocab_trie_create(struct vocab_trie **out, const struct tokenizer *t,
                                       uint32_t n_vocab, struct err *e);
void vocab_trie_destroy(struct vocab_trie *v);
size_t vocab_trie_bytes(const struct vocab_trie *v); /* memory in use */
/* One of 64 classes of bytes. Grammars distinguish punctuation, so each such byte has its own
 * class; non-ASCII bytes are parts of characters and share one. */
static inline uint32_t vocab_trie_class(uint8_t b)
{
    return b >= 0x80              ? 0
           : b < 0x20             ? 1
           : b >= '0' && b <= '9' ? 2
           : b >= 'A' && b <= 'Z' ? 3
           : b >= 'a' && b <= 'z' ? 4
           : b < '0'              ? 5 + b - 0x20u
           : b < 'A'              ? 21 + b - 0x3au
           : b < 'a'              ? 28 + b - 0x5bu
                                  : 34 + b - 0x7bu;
}
/* Index in order after the last token that begins with the text of a node. */
static inline uint32_t vocab_trie_last(const struct vocab_trie *v, uint32_t node)
{
    const uint32_t end = v->nodes[node].end;
    return end < v->n_nodes ? v->nodes[end].first : v->n_order;
}
/* Words of 64 bits that a set of tokens takes. */
static inline uint32_t vocab_trie_words(const struct vocab_trie *v)
{
    return (v->n_vocab + 63) / 64;
}

#endif
