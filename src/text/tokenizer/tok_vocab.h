/* tok_vocab.h - the vocabulary: pieces, their types, and lookup of tokens by text.
 *
 * Thread:    immutable once it is loaded.
 * Ownership: tok_vocab_fini frees; pieces are borrowed until then.
 * Failure:   0 or SHOAL_E* with its text; what was allocated belongs to the vocabulary. */
#ifndef SHOAL_TEXT_TOKENIZER_TOK_VOCAB_H
#define SHOAL_TEXT_TOKENIZER_TOK_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"

#define TOK_MAX_VOCAB (1u << 24)

/* Attributes besides the type of a token. */
enum tok_attr {
    TOK_ATTR_EOG = 1 << 0,
    TOK_ATTR_LSTRIP = 1 << 1, /* removes the white space before it */
    TOK_ATTR_RSTRIP = 1 << 2,
    TOK_ATTR_PLAIN = 1 << 3,       /* plain text can become it */
    TOK_ATTR_SINGLE_WORD = 1 << 4, /* added token: not next to word characters */
    TOK_ATTR_NORMALIZED = 1 << 5,  /* added token: looked for in normalized text */
    TOK_ATTR_FIRST = 1 << 6,       /* added token: only where a text begins */
};

/* Maps hashes to the numbers 0 .. n - 1 of items: open addressing, a quarter of the slots is used.
 * A slot has its number + 1 (0 is free) and above it as many bits of the hash as fit; the caller
 * compares the items themselves. */
struct tok_index {
    uint32_t *slots;
    uint32_t n_slots;
    uint32_t n_bits; /* bits of number + 1 */
};

static inline uint32_t tok_index_first(const struct tok_index *x, uint64_t h)
{
    return (uint32_t)((h >> 32) * x->n_slots >> 32);
}

static inline uint32_t tok_index_after(const struct tok_index *x, uint32_t i)
{
    return i + 1 < x->n_slots ? i + 1 : 0;
}

static inline void tok_index_prefetch(const struct tok_index *x, uint64_t h)
{
    __builtin_prefetch(&x->slots[tok_index_first(x, h)]);
}

/* The number in an occupied slot; false if it has another hash. */
static inline bool tok_index_match(const struct tok_index *x, uint32_t slot, uint64_t h,
                                   uint32_t *k)
{
    *k = (slot ^ (uint32_t)h << x->n_bits) - 1;
    return *k >> x->n_bits == 0;
}

struct tok_vocab {
    uint32_t n;
    uint32_t n_tokens;  /* pieces from this number on are no tokens: text becomes `unk` there */
    char *bytes;        /* the pieces, one after the other; spaces are spaces, not U+2581 */
    uint32_t *at;       /* [n + 1]: piece i is bytes[at[i] .. at[i + 1]) */
    char *shown_bytes;  /* pieces as decoding shows them, where that differs; else NULL */
    uint32_t *shown_at; /* [n + 1], or NULL */
    uint8_t *type;      /* enum token_type */
    uint8_t *attr;      /* enum tok_attr */
    struct tok_index
        plain; /* tokens that plain text can become: no control, unknown and byte tokens */
    int32_t byte_id[256]; /* the token of one byte, or TOKENIZER_NONE */
    uint32_t max_len;     /* longest piece of `plain` */
    int32_t unk;          /* token for text without a token, or TOKENIZER_NONE: nothing */
    bool spells_all;      /* every byte has a token: plain text never becomes unknown */
};

static inline uint64_t tok_vocab_hash(const char *p, size_t n)
{
    return hash_bytes(p, n, 0);
}

/* The token whose piece is [p, p + n), of hash h. */
static inline bool tok_vocab_find_hashed(const struct tok_vocab *v, const char *p, size_t n,
                                         uint64_t h, uint32_t *id)
{
    const struct tok_index *x = &v->plain;
    for (uint32_t i = tok_index_first(x, h);; i = tok_index_after(x, i)) {
        uint32_t slot = x->slots[i], k;
        if (slot == 0)
            return false;
        if (tok_index_match(x, slot, h, &k) && v->at[k + 1] - v->at[k] == n &&
            memcmp(v->bytes + v->at[k], p, n) == 0) {
            *id = k;
            return true;
        }
    }
}

static inline bool tok_vocab_find(const struct tok_vocab *v, const char *p, size_t n, uint32_t *id)
{
    return n <= v->max_len && tok_vocab_find_hashed(v, p, n, tok_vocab_hash(p, n), id);
}

/* The piece of a token, as the model spells it. */
static inline struct str tok_vocab_text(const struct tok_vocab *v, uint32_t id)
{
    return (struct str){v->bytes + v->at[id], v->at[id + 1] - v->at[id]};
}

/* Memory for n tokens, all normal; then, once the pieces are there, the table from text to token.
 */
SHOAL_MUST_CHECK int tok_vocab_alloc(struct tok_vocab *v, uint32_t n, struct err *e);
SHOAL_MUST_CHECK int tok_vocab_index(struct tok_vocab *v, struct err *e);
void tok_vocab_fini(struct tok_vocab *v);

/* Room for n numbers; one more, which must not be there. */
SHOAL_MUST_CHECK int tok_index_init(struct tok_index *x, uint32_t n);
void tok_index_put(struct tok_index *x, uint64_t h, uint32_t k);

bool tok_vocab_byte_spelling(const char *p, size_t n, uint8_t *byte); /* <0x0A> */

/* Byte-level BPE writes each byte as a character: those that print as themselves, the others as
 * U+0100 and up, in order. */
struct tok_alphabet {
    int16_t byte_of[512]; /* by code point; -1: no byte */
};
void tok_alphabet_init(struct tok_alphabet *a);
/* false when text has characters outside the alphabet; out has room for n bytes. */
bool tok_alphabet_decode(char *out, size_t *n_out, const char *text, size_t n,
                         const struct tok_alphabet *a);

#endif
