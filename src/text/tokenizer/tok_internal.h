/* tok_internal.h - what the files of the tokenizer share; nobody else includes it.
 *
 * Thread:    a struct tokenizer is immutable after create, but for `whole`, a cache of pure results
 *            that threads fill with relaxed atomics.  A struct tok_scratch belongs to one call.
 * Ownership: the tokenizer owns everything it points to; scratch is freed by tok_scratch_fini.
 * Failure:   functions return 0 or SHOAL_E*; the text of the error is set where it is understood.
 */
#ifndef SHOAL_TEXT_TOKENIZER_TOK_INTERNAL_H
#define SHOAL_TEXT_TOKENIZER_TOK_INTERNAL_H

#include <stdatomic.h>
#include <string.h>

#include "base/hash.h"
#include "text/tokenizer/tok_pretok.h"
#include "text/tokenizer/tokenizer.h"

struct str;

#define TOK_MAX_VOCAB (1u << 24)
#define TOK_MAX_TEXT ((size_t)1 << 30) /* symbols of a text are counted in 32 bits */
#define TOK_NO_SYM UINT32_MAX

enum tok_attr { /* beside the type of a token */
                TOK_ATTR_EOG = 1 << 0,
                TOK_ATTR_LSTRIP = 1 << 1, /* takes the white space before it away */
                TOK_ATTR_RSTRIP = 1 << 2,
                TOK_ATTR_PLAIN = 1 << 3,       /* plain text can become it */
                TOK_ATTR_SINGLE_WORD = 1 << 4, /* added token: not next to word characters */
                TOK_ATTR_NORMALIZED = 1 << 5,  /* added token: looked for in normalized text */
};

/* From hashes to the numbers 0 .. n - 1 of things: open addressing, a quarter of the slots is used.
 * A slot has its number + 1 (0 is free) and above it as many bits of the hash as there is room for;
 * what the number stands for is compared by whoever looks. */
struct tok_index {
    uint32_t *slots;
    uint32_t n_slots;
    uint32_t n_bits; /* of number + 1 */
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

/* The number in a slot that is not free; false when it is one of another hash. */
static inline bool tok_index_match(const struct tok_index *x, uint32_t slot, uint64_t h,
                                   uint32_t *k)
{
    *k = (slot ^ (uint32_t)h << x->n_bits) - 1;
    return *k >> x->n_bits == 0;
}

enum tok_whole { TOK_WHOLE_UNTRIED, TOK_WHOLE_YES, TOK_WHOLE_NO };

struct tok_vocab {
    uint32_t n;
    char *bytes;            /* the pieces, one after the other; spaces are spaces, not U+2581 */
    uint32_t *at;           /* [n + 1]: piece i is bytes[at[i] .. at[i + 1]) */
    uint8_t *type;          /* enum token_type */
    uint8_t *attr;          /* enum tok_attr */
    struct tok_index plain; /* what plain text can become: no control, unknown and byte tokens */
    int32_t byte_id[256];   /* the token of one byte, or TOKENIZER_NONE */
    uint32_t max_len;       /* longest piece of `plain` */
};

static inline uint64_t tok_hash(const char *p, size_t n)
{
    return hash_bytes(p, n, 0);
}

/* The token whose piece is [p, p + n), of hash h. */
static inline bool tok_find_hashed(const struct tok_vocab *v, const char *p, size_t n, uint64_t h,
                                   uint32_t *id)
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

static inline bool tok_find(const struct tok_vocab *v, const char *p, size_t n, uint32_t *id)
{
    return n <= v->max_len && tok_find_hashed(v, p, n, tok_hash(p, n), id);
}

struct tok_special_entry {
    const char *p; /* borrowed */
    uint32_t n, id;
};

struct tok_special { /* tokens that are found by their spelling, sorted by their bytes */
    struct tok_special_entry *e;
    uint32_t n;
    uint32_t first[257]; /* e[first[b] .. first[b + 1]) begin with byte b */
};

#define TOK_MAX_TEMPLATE 32
struct tok_template { /* what stands around the texts */
    struct {
        int32_t id; /* or TOK_TEMPLATE_A, _B: the tokens of that text */
        uint8_t type;
    } items[TOK_MAX_TEMPLATE];
    unsigned n;
};
enum { TOK_TEMPLATE_A = -1, TOK_TEMPLATE_B = -2 };

struct bpe_pair {
    uint32_t left, right, merged; /* symbols */
};

static inline uint64_t bpe_pair_hash(uint32_t left, uint32_t right)
{
    return hash_mix((uint64_t)left << 32 | right);
}

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
    struct bpe_pair *pairs; /* BPE: [n_pairs] by rank, the first to apply first */
    uint32_t n_pairs;
    struct tok_index pair_index;
    uint32_t byte_sym[256];        /* BPE over bytes: first symbol of a byte */
    uint8_t glue[256];             /* chars: nonzero where a token has this byte before a space */
    _Atomic uint8_t *whole;        /* [n] enum tok_whole: does the piece merge to this one token? */
    struct pretok *pretok;         /* BPE */
    bool lowercase, strip_accents; /* WPM */
    uint32_t max_word_chars;       /* WPM: a longer word is unknown */
    int32_t model_unk;             /* what the unknown becomes, or NONE: nothing */
    bool fuse_unk;                 /* BPE: several unknown characters are one */
    bool trim_spans;               /* ranges of tokens leave spaces at their ends out */
    struct tok_template single, pair;

    struct tok_hf *hf;       /* Hugging Face's pipeline, else NULL */
    struct unigram *unigram; /* the model of that kind */
    char *piece_bytes;       /* pieces as decoding shows them where v.bytes has other spellings */
    uint32_t *piece_at;      /* [n + 1] */
};

/* The spelling of a token in the model. */
static inline struct tok_piece tok_text(const struct tokenizer *t, uint32_t id)
{
    return (struct tok_piece){t->v.bytes + t->v.at[id], t->v.at[id + 1] - t->v.at[id]};
}

/* Where the bytes of a text in work come from: byte i from bytes [from[i], to[i]) of the input;
 * where from is NULL, from byte base + i. */
struct tok_view {
    const char *p;
    const uint32_t *from, *to;
    uint32_t base;
};

/* Ranges of the tokens in tok_ids, by index; all zero is empty. */
struct tok_spans {
    uint32_t *start, *end; /* one block, owned by start */
    size_t cap;
    const char *input;
    size_t n_input;
};

/* A text that is rewritten, with its way back; all zero is empty. */
struct tok_rewrite {
    char *p;
    uint32_t *from, *to; /* [cap] as in tok_view; one block with p, owned by from */
    size_t n, cap;
};

/* One call's working memory; all zero is empty.  It grows to the longest word and stays. */
struct tok_scratch {
    const struct tokenizer *t;
    struct tok_ids *out;
    uint32_t *start, *sym, *rank, *merged, *next, *prev; /* [cap] one block, owned by start */
    size_t cap;
    uint64_t *heap; /* rank << 32 | symbol: the next merge is the smallest */
    size_t n_heap, cap_heap;
    struct tok_rewrite text; /* a rewritten copy of the fragment */
    struct pretok_scratch pre;
    struct tok_spans *spans; /* NULL: nobody asks where tokens come from */
    struct tok_view view;    /* the text that is being cut */
    struct hf_scratch *hf;   /* of the call, where the tokenizer has a pipeline */
};

void tok_scratch_fini(struct tok_scratch *s);
/* Appends a token that the bytes [p, p + n) of s->view became. */
SHOAL_MUST_CHECK int tok_emit_span(struct tok_scratch *s, const char *p, size_t n);
static inline int tok_emit(struct tok_scratch *s, int32_t id, const char *p, size_t n)
{
    int rc = tok_ids_push(s->out, id);
    return rc < 0 || !s->spans ? rc : tok_emit_span(s, p, n);
}
/* Room for n bytes more. */
SHOAL_MUST_CHECK int tok_rewrite_reserve(struct tok_rewrite *r, size_t n);
void tok_rewrite_fini(struct tok_rewrite *r);
/* Appends bytes that come from [from, to) of the input; reserve first. */
static inline void tok_rewrite_add(struct tok_rewrite *r, const char *p, size_t n, uint32_t from,
                                   uint32_t to)
{
    for (size_t i = 0; i < n; i++, r->n++) {
        r->p[r->n] = p[i];
        r->from[r->n] = from;
        r->to[r->n] = to;
    }
}
static inline struct tok_view tok_rewrite_view(const struct tok_rewrite *r)
{
    return (struct tok_view){r->p, r->from, r->to, 0};
}
/* The range of input that byte q of a view comes from. */
static inline uint32_t tok_view_from(const struct tok_view *v, const char *q)
{
    return v->from ? v->from[q - v->p] : v->base + (uint32_t)(q - v->p);
}
static inline uint32_t tok_view_to(const struct tok_view *v, const char *q)
{
    return v->from ? v->to[q - v->p] : v->base + (uint32_t)(q - v->p) + 1;
}
/* A copy of [p, p + n) of s->view with U+2581 as a space, after a space when `prefix`; it becomes
 * the view. */
SHOAL_MUST_CHECK int tok_unescape_view(struct tok_scratch *s, const char *p, size_t n, bool prefix);

/* tok_special.c: sorts the entries and indexes them; the index of the longest one at p (only
 * user-defined ones where type is given), or NONE; the id of the one spelled so. */
void tok_special_index(struct tok_special *sp);
int32_t tok_special_at(const struct tok_special *sp, const uint8_t *type, const char *p, size_t n);
int32_t tok_special_find(const struct tok_special *sp, const char *p, size_t n);
static inline bool tok_special_may(const struct tok_special *sp, char c)
{
    return sp->first[(uint8_t)c] < sp->first[(uint8_t)c + 1];
}

/* tok_encode.c: the templates that bos, eos and sep of info make. */
void tok_templates_from_info(struct tokenizer *t);

/* tok_vocab.c: tokens, types, special ids from the metadata. */
SHOAL_MUST_CHECK int tok_vocab_load(struct tokenizer *t, const struct model_file *g, struct err *e);
void tok_vocab_fini(struct tokenizer *t);
/* Memory for n tokens, all normal; the table from text to token, once the pieces are there. */
SHOAL_MUST_CHECK int tok_vocab_alloc(struct tokenizer *t, uint32_t n, struct err *e);
SHOAL_MUST_CHECK int tok_vocab_index(struct tok_vocab *v, struct err *e);
/* Room for n numbers; one more, which must not be there. */
SHOAL_MUST_CHECK int tok_index_init(struct tok_index *x, uint32_t n);
void tok_index_put(struct tok_index *x, uint64_t h, uint32_t k);
struct tok_spellings { /* tokens as a file spells them, in any order */
    bool (*next)(void *ctx, uint32_t *id, struct str *text);
    void *ctx;
};
/* End-of-turn and such by their spelling. */
SHOAL_MUST_CHECK int tok_vocab_find_special(struct tokenizer *t, const struct tok_spellings *src,
                                            struct err *e);
bool tok_is_byte_spelling(const char *p, size_t n, uint8_t *byte); /* <0x0A> */

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
SHOAL_MUST_CHECK int spm_load(struct tokenizer *t, const struct model_file *g, struct err *e);
SHOAL_MUST_CHECK int spm_set_scores(struct tokenizer *t, const double *scores, struct err *e);
SHOAL_MUST_CHECK int spm_encode(struct tok_scratch *s, const char *p, size_t n, bool space_prefix);
SHOAL_MUST_CHECK int bpe_load(struct tokenizer *t, const struct model_file *g, struct err *e);
void bpe_fini(struct tokenizer *t);
struct bpe_merges { /* where merges come from, the first to apply first */
    uint64_t n;
    size_t n_bytes; /* of their texts, at most */
    bool (*next)(void *ctx, struct str *left, struct str *right);
    void *ctx;
};
SHOAL_MUST_CHECK int bpe_load_merges(struct tokenizer *t, const struct bpe_merges *src,
                                     struct err *e);
/* "left right"; a space that is the first character belongs to the left. */
void bpe_split_merge(struct str s, struct str *left, struct str *right);
SHOAL_MUST_CHECK int bpe_encode(struct tok_scratch *s, const char *p, size_t n);
SHOAL_MUST_CHECK int wpm_load(struct tokenizer *t, const struct model_file *g, struct err *e);
SHOAL_MUST_CHECK int wpm_encode(struct tok_scratch *s, const char *p, size_t n);
#define WPM_MAX_WORD_CHARS 100 /* a longer word is unknown, as in the models' own tokenizer */
/* One word: a space that is not of the input, then its characters. */
SHOAL_MUST_CHECK int wpm_word(struct tok_scratch *s, const char *p, size_t n, size_t n_chars);
bool wpm_is_cjk(uint32_t c);
/* cat: utf8proc's category of c */
bool wpm_is_punctuation(uint32_t c, int cat);

/* tok_merge.c: merges the symbols of one word, which no token can overlap, and emits its tokens. */
SHOAL_MUST_CHECK int tok_merge_word(struct tok_scratch *s, const char *p, size_t n);
/* The words of a text over characters: cut before spaces where no token has one inside. */
SHOAL_MUST_CHECK int tok_merge_spaced(struct tok_scratch *s, const char *p, size_t n);
/* Fills glue and the symbols of ASCII, for tokenizers over characters. */
void tok_merge_index_chars(struct tokenizer *t);
/* U+2581 to space in [p, p + n): the new length. */
size_t tok_unescape(char *out, const char *p, size_t n);

#endif
