/* tok_hf.h - the pipeline of Hugging Face's tokenizer.json: added tokens, normalizers,
 * pre-tokenizers, then the model (WordPiece, BPE, Unigram, whole words).  Only the files of the
 * tokenizer include it.
 *
 * Thread:    immutable after load; a struct hf_scratch belongs to one call.
 * Ownership: struct tok_hf owns its steps; tok_hf_destroy frees them.
 * Failure:   loading: SHOAL_EUNSUPPORTED names what is not known, SHOAL_EFORMAT what is wrong and
 *            where; encoding: codes only. */
#ifndef SHOAL_TEXT_TOKENIZER_TOK_HF_H
#define SHOAL_TEXT_TOKENIZER_TOK_HF_H

#include "format/model_file.h"
#include "text/tokenizer/tok_internal.h"
#include "text/tokenizer/tok_regex.h"
#include "text/tokenizer/tok_split.h"

struct charsmap; /* opaque: tok_charsmap.c */

#define HF_MAX_NORMS 16
#define HF_MAX_PRES 8
#define HF_MAX_DEPTH 8 /* of sequences in sequences */

enum hf_norm_kind {
    HF_NORM_BERT,
    HF_NORM_NFC,
    HF_NORM_NFD,
    HF_NORM_NFKC,
    HF_NORM_NFKD,
    HF_NORM_LOWERCASE,
    HF_NORM_STRIP_ACCENTS,
    HF_NORM_STRIP,
    HF_NORM_REPLACE,
    HF_NORM_PREPEND,
    HF_NORM_NMT,
    HF_NORM_PRECOMPILED,
    HF_NORM_SPIECE, /* SentencePiece's own: charsmap, then white space by the options */
};

enum hf_norm_opt {
    HF_BERT_CLEAN = 1 << 0,
    HF_BERT_CJK = 1 << 1,
    HF_BERT_STRIP_ACCENTS = 1 << 2,
    HF_BERT_LOWERCASE = 1 << 3,
    HF_STRIP_LEFT = 1 << 0,
    HF_STRIP_RIGHT = 1 << 1,
    HF_SPIECE_DUMMY_PREFIX = 1 << 0,
    HF_SPIECE_EXTRA_SPACES = 1 << 1, /* removed */
    HF_SPIECE_ESCAPE = 1 << 2,
};

struct hf_norm {
    enum hf_norm_kind kind;
    unsigned opts;
    struct tok_regex *rx; /* REPLACE by a regex, else by `text` */
    char *text, *content;
    size_t n_text, n_content;
    struct charsmap *charsmap;
};

enum hf_pre_kind {
    HF_PRE_BERT,
    HF_PRE_WORDS, /* \w+|[^\w\s]+ */
    HF_PRE_CLASS, /* single characters of a class */
    HF_PRE_SCAN,  /* a scanner of tok_split.h */
    HF_PRE_REGEX,
    HF_PRE_TEXT,
    HF_PRE_PREFIX_SPACE,
    HF_PRE_METASPACE,
};

enum hf_class { HF_CLASS_SPACE, HF_CLASS_PUNCTUATION, HF_CLASS_NUMBER };
enum hf_behavior { HF_REMOVED, HF_ISOLATED, HF_PREVIOUS, HF_NEXT, HF_CONTIGUOUS };
enum hf_prepend { HF_PREPEND_NEVER, HF_PREPEND_FIRST, HF_PREPEND_ALWAYS };

struct hf_pre {
    enum hf_pre_kind kind;
    enum hf_class class;
    enum hf_behavior behavior;
    bool invert;
    enum hf_prepend prepend; /* METASPACE */
    bool split;              /* METASPACE */
    split_fn scan;
    unsigned opts;
    struct tok_regex *rx;
    char *text; /* TEXT: what divides; METASPACE: what stands for a space */
    size_t n_text;
};

struct tok_hf {
    struct hf_norm norm[HF_MAX_NORMS];
    struct hf_pre pre[HF_MAX_PRES];
    unsigned n_norm, n_pre;
    bool byte_level;           /* the model sees bytes in the alphabet of GPT-2 */
    bool strip_first;          /* decoding takes a space from the front */
    struct tok_special raw;    /* added tokens looked for in the text as it is */
    struct tok_special normal; /* in the normalized text */
    char *added_bytes;         /* their spellings */
};

struct hf_scratch { /* all zero is empty */
    struct tok_rewrite clean, norm[2], pre[HF_MAX_PRES];
    void *match;
    void *work; /* of normalization by composition, and of Unigram */
    size_t cap_work;
};

/* tok_hf.c */
SHOAL_MUST_CHECK int hf_encode(struct tok_scratch *s, const char *p, size_t n, unsigned flags);
void tok_hf_destroy(struct tok_hf *hf);
/* work with room for n bytes; its content is lost. */
SHOAL_MUST_CHECK int hf_scratch_work(struct hf_scratch *x, size_t n);
void hf_scratch_fini(struct hf_scratch *x);

/* tok_hf_load.c: does the file bring such a tokenizer?  Then it is loaded. */
bool hf_present(const struct model_file *g);
SHOAL_MUST_CHECK int hf_load(struct tokenizer *t, const struct model_file *g, struct err *e);

/* tok_hf_norm.c: runs all normalizers over [*p, *p + *n) of *view and points all three at the
 * result, which lives in x. */
SHOAL_MUST_CHECK int hf_normalize(const struct tok_hf *hf, struct hf_scratch *x,
                                  struct tok_view *view, const char **p, size_t *n);
bool hf_is_space(uint32_t c); /* the White_Space property */
bool hf_is_word(uint32_t c);  /* \w */

/* tok_hf_pre.c: cuts a normalized text into words and gives them to the model. */
SHOAL_MUST_CHECK int hf_pretokenize(struct tok_scratch *s, const char *p, size_t n);

#endif
