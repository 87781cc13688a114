/* tok_hf.h - the pipeline of Hugging Face's tokenizer.json: added tokens, normalizers,
 * pre-tokenizers, then the model (WordPiece, BPE, Unigram, whole words).  Only the files of the
 * tokenizer include it.
 *
 * Thread:    immutable after load; a struct tok_hf_scratch belongs to one call.
 * Ownership: struct tok_hf owns its steps; tok_hf_destroy frees them.
 * Failure:   loading: SHOAL_EUNSUPPORTED names the unknown item, SHOAL_EFORMAT the error and its
 *            position; encoding: codes only. */
#ifndef SHOAL_TEXT_TOKENIZER_HF_TOK_HF_H
#define SHOAL_TEXT_TOKENIZER_HF_TOK_HF_H

#include "text/tokenizer/split/tok_regex.h"
#include "text/tokenizer/split/tok_split.h"
#include "text/tokenizer/tok_special.h"
#include "text/tokenizer/tokenizer_ops.h"

struct tok_charsmap; /* opaque: tok_charsmap.c */

#define TOK_HF_MAX_NORMS 16
#define TOK_HF_MAX_PRES 8
#define TOK_HF_MAX_DEPTH 8 /* nesting of sequences */

enum tok_hf_norm_kind {
    TOK_HF_NORM_BERT,
    TOK_HF_NORM_NFC,
    TOK_HF_NORM_NFD,
    TOK_HF_NORM_NFKC,
    TOK_HF_NORM_NFKD,
    TOK_HF_NORM_LOWERCASE,
    TOK_HF_NORM_STRIP_ACCENTS,
    TOK_HF_NORM_STRIP,
    TOK_HF_NORM_REPLACE,
    TOK_HF_NORM_PREPEND,
    TOK_HF_NORM_NMT,
    TOK_HF_NORM_PRECOMPILED,
    TOK_HF_NORM_SPIECE, /* SentencePiece's own: charsmap, then white space by the options */
};

enum tok_hf_norm_opt {
    TOK_HF_BERT_CLEAN = 1 << 0,
    TOK_HF_BERT_CJK = 1 << 1,
    TOK_HF_BERT_STRIP_ACCENTS = 1 << 2,
    TOK_HF_BERT_LOWERCASE = 1 << 3,
    TOK_HF_STRIP_LEFT = 1 << 0,
    TOK_HF_STRIP_RIGHT = 1 << 1,
    TOK_HF_SPIECE_DUMMY_PREFIX = 1 << 0,
    TOK_HF_SPIECE_EXTRA_SPACES = 1 << 1, /* removed */
    TOK_HF_SPIECE_ESCAPE = 1 << 2,
};

struct tok_hf_norm {
    enum tok_hf_norm_kind kind;
    unsigned opts;
    struct tok_regex *rx; /* REPLACE by a regex, else by `text` */
    char *text, *content;
    size_t n_text, n_content;
    struct tok_charsmap *charsmap;
};

enum tok_hf_pre_kind {
    TOK_HF_PRE_BERT,
    TOK_HF_PRE_WORDS, /* \w+|[^\w\s]+ */
    TOK_HF_PRE_CLASS, /* single characters of a class */
    TOK_HF_PRE_SCAN,  /* a scanner of tok_split.h */
    TOK_HF_PRE_REGEX,
    TOK_HF_PRE_TEXT,
    TOK_HF_PRE_PREFIX_SPACE,
    TOK_HF_PRE_METASPACE,
};

enum tok_hf_class { TOK_HF_CLASS_SPACE, TOK_HF_CLASS_PUNCTUATION, TOK_HF_CLASS_NUMBER };
enum tok_hf_behavior {
    TOK_HF_REMOVED,
    TOK_HF_ISOLATED,
    TOK_HF_PREVIOUS,
    TOK_HF_NEXT,
    TOK_HF_CONTIGUOUS
};
enum tok_hf_prepend { TOK_HF_PREPEND_NEVER, TOK_HF_PREPEND_FIRST, TOK_HF_PREPEND_ALWAYS };

struct tok_hf_pre {
    enum tok_hf_pre_kind kind;
    enum tok_hf_class class;
    enum tok_hf_behavior behavior;
    bool invert;
    enum tok_hf_prepend prepend; /* METASPACE */
    bool split;                  /* METASPACE */
    tok_split_fn scan;
    unsigned opts;
    struct tok_regex *rx;
    char *text; /* TEXT: the separator; METASPACE: the replacement of a space */
    size_t n_text;
};

struct tok_hf {
    const struct tok_vocab *v; /* borrowed from the tokenizer */
    struct tok_hf_norm norm[TOK_HF_MAX_NORMS];
    struct tok_hf_pre pre[TOK_HF_MAX_PRES];
    unsigned n_norm, n_pre;
    const struct tokenizer_ops *model; /* encodes the words */
    void *model_state;
    bool byte_level;           /* the model sees bytes in the alphabet of GPT-2 */
    struct tok_special raw;    /* added tokens searched in the raw text */
    struct tok_special normal; /* added tokens searched in the normalized text */
    char *added_bytes;         /* their spellings */
};

extern const struct tokenizer_ops tok_hf_ops; /* texts; state: a struct tok_hf */

struct tok_hf_scratch { /* all zero is empty */
    struct tok_rewrite clean, norm[2], pre[TOK_HF_MAX_PRES];
    void *match;
    void *work; /* scratch for normalization by composition */
    size_t cap_work;
};

struct tok_hf_run { /* one text */
    const struct tok_hf *hf;
    struct tok_call *call;
    struct tok_hf_scratch x;
    union {
        max_align_t align;
        char bytes[TOKENIZER_WORK_BYTES];
    } word; /* working memory of the model */
};

void tok_hf_scratch_fini(struct tok_hf_scratch *x);

/* tok_hf_norm.c: runs all normalizers over [*p, *p + *n) of *view and points all three at the
 * result, which lives in x. */
SHOAL_MUST_CHECK int tok_hf_normalize(const struct tok_hf *hf, struct tok_hf_scratch *x,
                                      struct tok_view *view, const char **p, size_t *n);
bool tok_hf_is_space(uint32_t c); /* the White_Space property */
bool tok_hf_is_word(uint32_t c);  /* \w */

/* tok_hf_pre.c: splits a normalized text into words and passes them to the model. */
SHOAL_MUST_CHECK int tok_hf_pretokenize(struct tok_hf_run *s, const char *p, size_t n);

#endif
