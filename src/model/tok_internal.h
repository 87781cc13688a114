/* tok_internal.h - what the files of the tokenizer share; nobody else includes it.
 *
 * Thread:    a struct tokenizer is immutable after create, but for `whole`, a cache of pure results
 *            that threads fill with relaxed atomics.  A struct tok_scratch belongs to one call.
 * Ownership: the tokenizer owns everything it points to; scratch is freed by tok_scratch_fini.
 * Failure:   functions return 0 or SHOAL_E*; the text of the error is set where it is understood.
 */
#ifndef SHOAL_MODEL_TOK_INTERNAL_H
#define SHOAL_MODEL_TOK_INTERNAL_H

#include <stdatomic.h>
#include <string.h>

#include "base/hash.h"
#include "model/tok_pretok.h"
#include "model/tokenizer.h"

#define TOK_MAX_VOCAB (1u << 24)
#define TOK_MAX_TEXT ((size_t)1 << 30) /* symbols of a text are counted in 32 bits */
#define TOK_NO_SYM UINT32_MAX

enum tok_attr { /* beside the type of a token */
                TOK_ATTR_EOG = 1 << 0,
                TOK_ATTR_LSTRIP = 1 << 1, /* takes the white space before it away */
                TOK_ATTR_RSTRIP = 1 << 2,
                TOK_ATTR_PLAIN = 1 << 3, /* plain text can become it */
};

enum tok_whole { TOK_WHOLE_UNTRIED, TOK_WHOLE_YES, TOK_WHOLE_NO };

struct tok_vocab {
    uint32_t n;
    char *bytes;   /* the pieces, one after the other; spaces are spaces, not U+2581 */
    uint32_t *at;  /* [n + 1]: piece i is bytes[at[i] .. at[i + 1]) */
    uint8_t *type; /* enum tokenizer_type */
    uint8_t *attr; /* enum tok_attr */
    /* Pieces that plain text can become (no control, unknown and byte tokens): open addressing,
     * n_slots is a power of two.  A slot has the upper half of the hash over id + 1; 0 is free. */
    uint64_t *slots;
    size_t n_slots;
    int32_t byte_id[256]; /* the token of one byte, or TOKENIZER_NONE */
    uint32_t max_len;     /* longest piece in slots */
};

static inline uint64_t tok_hash(const char *p, size_t n)
{
    return hash_bytes(p, n, 0);
}

/* The token whose piece is [p, p + n), of hash h. */
static inline bool tok_find_hashed(const struct tok_vocab *v, const char *p, size_t n, uint64_t h,
                                   uint32_t *id)
{
    for (size_t i = h & (v->n_slots - 1);; i = (i + 1) & (v->n_slots - 1)) {
        uint64_t slot = v->slots[i];
        if (slot == 0)
            return false;
        if (slot >> 32 != h >> 32)
            continue;
        uint32_t k = (uint32_t)slot - 1;
        if (v->at[k + 1] - v->at[k] == n && memcmp(v->bytes + v->at[k], p, n) == 0) {
            *id = k;
            return true;
        }
    }
}

static inline bool tok_find(const struct tok_vocab *v, const char *p, size_t n, uint32_t *id)
{
    return n <= v->max_len && tok_find_hashed(v, p, n, tok_hash(p, n), id);
}

struct tok_special { /* control, user-defined and unknown tokens, sorted by their bytes */
    uint32_t *ids;
    uint32_t n;
    uint32_t first[257]; /* ids[first[b] .. first[b + 1]) begin with byte b */
};

struct bpe_pair {
    uint32_t left, right, merged; /* symbols */
    uint32_t rank1;               /* rank + 1; 0 in a free slot */
};

struct tokenizer {
    struct tokenizer_info info;
    char *strings; /* storage of model, pre and chat template */
    struct tok_vocab v;
    struct tok_special special;

    /* merging (SPM and BPE) */
    bool chars;             /* symbols are characters, and U+2581 is a space; else bytes */
    bool spells_all;        /* every byte has a token: plain text never becomes unknown */
    bool ignore_merges;     /* a word that is a token is that token */
    bool newline_runs;      /* a run of newlines that is a token is that token */
    uint32_t *prio;         /* SPM: [n] smaller merges first */
    struct bpe_pair *pairs; /* BPE: open addressing, n_pairs is a power of two; mem_pages */
    size_t n_pairs;
    uint32_t byte_sym[256];        /* BPE over bytes: first symbol of a byte */
    uint8_t glue[256];             /* chars: nonzero where a token has this byte before a space */
    _Atomic uint8_t *whole;        /* [n] enum tok_whole: does the piece merge to this one token? */
    struct pretok *pretok;         /* BPE */
    bool lowercase, strip_accents; /* WPM */
};

static inline struct tok_piece tok_text(const struct tokenizer *t, uint32_t id)
{
    return (struct tok_piece){t->v.bytes + t->v.at[id], t->v.at[id + 1] - t->v.at[id]};
}

/* One call's working memory; all zero is empty.  It grows to the longest word and stays. */
struct tok_scratch {
    const struct tokenizer *t;
    struct tok_ids *out;
    uint32_t *start, *sym, *rank, *merged, *next, *prev; /* [cap] one block, owned by start */
    size_t cap;
    uint64_t *heap; /* rank << 32 | symbol: the next merge is the smallest */
    size_t n_heap, cap_heap;
    char *text; /* a rewritten copy of the fragment */
    size_t cap_text;
    struct pretok_scratch pre;
};

void tok_scratch_fini(struct tok_scratch *s);
/* s->text with room for n bytes. */
SHOAL_MUST_CHECK int tok_scratch_text(struct tok_scratch *s, size_t n);

/* tok_vocab.c: tokens, types, special ids from the metadata. */
SHOAL_MUST_CHECK int tok_vocab_load(struct tokenizer *t, const struct gguf *g, struct err *e);
void tok_vocab_fini(struct tokenizer *t);

/* Byte-level BPE writes each byte as a character: those that print as themselves, the others as
 * U+0100 and up, in order. */
struct tok_alphabet {
    int16_t byte_of[512]; /* by code point; -1: no byte */
};
void tok_alphabet_init(struct tok_alphabet *a);
/* false when text has characters outside the alphabet; out has room for n bytes. */
bool tok_decode_bytes(char *out, size_t *n_out, const char *text, size_t n,
                      const struct tok_alphabet *a);

/* tok_spm.c, tok_bpe.c, tok_wpm.c: what create needs beyond the vocabulary, and one fragment of
 * plain text to ids. */
SHOAL_MUST_CHECK int spm_load(struct tokenizer *t, const struct gguf *g, struct err *e);
SHOAL_MUST_CHECK int spm_encode(struct tok_scratch *s, const char *p, size_t n, bool space_prefix);
SHOAL_MUST_CHECK int bpe_load(struct tokenizer *t, const struct gguf *g, struct err *e);
void bpe_fini(struct tokenizer *t);
SHOAL_MUST_CHECK int bpe_encode(struct tok_scratch *s, const char *p, size_t n);
SHOAL_MUST_CHECK int wpm_load(struct tokenizer *t, const struct gguf *g, struct err *e);
SHOAL_MUST_CHECK int wpm_encode(struct tok_scratch *s, const char *p, size_t n);

/* tok_merge.c: merges the symbols of one word, which no token can overlap, and emits its tokens. */
SHOAL_MUST_CHECK int tok_merge_word(struct tok_scratch *s, const char *p, size_t n);
/* The words of a text over characters: cut before spaces where no token has one inside. */
SHOAL_MUST_CHECK int tok_merge_spaced(struct tok_scratch *s, const char *p, size_t n);
/* Fills glue and the symbols of ASCII, for tokenizers over characters. */
void tok_merge_index_chars(struct tokenizer *t);
/* U+2581 to space in [p, p + n): the new length. */
size_t tok_unescape(char *out, const char *p, size_t n);

#endif
