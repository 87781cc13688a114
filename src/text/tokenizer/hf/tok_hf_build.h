/* tok_hf_build.h - shared by the loaders of Hugging Face's tokenizers while they build one.
 *
 * Thread:    belongs to the call that loads.
 * Ownership: strings are borrowed from the JSON documents and files, which outlive the build; the
 *            arrays are freed by tok_hf_build_fini.
 * Failure:   0 or SHOAL_E* with its text; half-built steps belong to struct tok_hf and go with it.
 */
#ifndef SHOAL_TEXT_TOKENIZER_HF_TOK_HF_BUILD_H
#define SHOAL_TEXT_TOKENIZER_HF_TOK_HF_BUILD_H

#include <cjson/cJSON.h>

#include "base/strmap.h"
#include "text/tokenizer/hf/tok_hf.h"
#include "text/tokenizer/tokenizer_core.h"

#define TOK_HF_MAX_DECODERS 8
#define TOK_HF_KEY_JSON "tokenizer.huggingface.json"
#define TOK_HF_KEY_VOCAB_TXT "tokenizer.huggingface.vocab_txt"
#define TOK_HF_KEY_SPIECE "tokenizer.huggingface.spiece"
#define TOK_HF_KEY_SOURCE_SPM "tokenizer.huggingface.source_spm"
#define TOK_HF_KEY_VOCAB_JSON "tokenizer.huggingface.vocab_json"
#define TOK_HF_KEY_MERGES "tokenizer.huggingface.merges_txt"
#define TOK_HF_KEY_CONFIG "tokenizer.huggingface.config"

struct tok_hf_added {
    struct str text;
    uint32_t id;
    bool single_word, lstrip, rstrip, normalized, special, first_only;
};

struct tok_hf_merge {
    struct str left, right;
};

struct tok_hf_build {
    struct tokenizer *t;
    struct tok_hf *hf;                        /* the state of t */
    cJSON *made, *made_vocab;                 /* documents written or parsed by a loader; owned */
    char *names;                              /* names of tokens that are in no file; owned */
    const cJSON *json;                        /* tokenizer.json */
    bool hides_nul;                           /* U+FDD0 in its strings stands for a NUL */
    const cJSON *config, *model, *generation; /* the other documents; NULL when missing */
    uint32_t n;                               /* ids, and pieces that have none */
    uint32_t n_unnumbered;                    /* such pieces, which are the last */
    struct str *raw;                          /* [n] spellings; p NULL: no such token */
    bool *in_model;                           /* [n] */
    double *scores;                           /* [n] */
    struct strmap ids;                        /* spelling to id */
    struct tok_hf_added *added;
    size_t n_added;
    struct tok_hf_merge *merges;
    size_t n_merges;
    struct str prefix; /* WordPiece: prefix of continuation pieces */
    bool byte_fallback, fuse_unk, ignore_merges;
    uint32_t max_word_chars; /* WordPiece */
    bool strip_first;        /* decoding removes a space from the front */
    bool strip_ends;         /* all spaces from both ends */
    int32_t unk;             /* id for unknown text, or NONE: nothing */
    int32_t bos, eos, pad;   /* as named by the file itself, or NONE */
};

struct str tok_hf_str(const cJSON *j);                           /* of a string */
const cJSON *tok_hf_get(const cJSON *object, const char *key);   /* NULL: missing or null */
struct str tok_hf_get_str(const cJSON *object, const char *key); /* p NULL: no string */
bool tok_hf_get_bool(const cJSON *object, const char *key, bool otherwise);
int32_t tok_hf_find(const struct tok_hf_build *b, struct str spelling); /* id or NONE */

bool tok_hf_is_id(const cJSON *j, uint32_t *id);

/* tok_hf_read.c: the model of b->json; the spellings of added tokens; room for tokens; one of the
 * model's. */
SHOAL_MUST_CHECK int tok_hf_read_model(struct tok_hf_build *b, struct err *e);
SHOAL_MUST_CHECK int tok_hf_add_added(struct tok_hf_build *b, struct err *e);
SHOAL_MUST_CHECK int tok_hf_build_reserve(struct tok_hf_build *b, uint64_t n_tokens, uint32_t n_ids,
                                          struct err *e);
SHOAL_MUST_CHECK int tok_hf_build_token(struct tok_hf_build *b, uint32_t id, struct str s,
                                        double score);
/* {"piece": id, ...} and the added tokens, with room for `more` of them. */
SHOAL_MUST_CHECK int tok_hf_read_vocab_object(struct tok_hf_build *b, const cJSON *vocab,
                                              const cJSON *added, size_t more, struct err *e);
/* tok_hf_files.c: vocabulary, merges and special tokens from the other files, and b->json with the
 * equivalent steps. */
SHOAL_MUST_CHECK int tok_hf_read_vocab_txt(struct tok_hf_build *b, struct str text, struct err *e);
SHOAL_MUST_CHECK int tok_hf_read_vocab_json(struct tok_hf_build *b, struct str vocab,
                                            struct str merges, struct err *e);
SHOAL_MUST_CHECK int tok_hf_read_spiece(struct tok_hf_build *b, const void *bytes, size_t n,
                                        struct err *e);
/* source.spm and vocab.json of a Marian model. */
SHOAL_MUST_CHECK int tok_hf_read_marian(struct tok_hf_build *b, const void *bytes, size_t n,
                                        struct str vocab, struct err *e);
/* tok_hf_steps.c: normalizer and pre_tokenizer of b->json into b->hf. */
SHOAL_MUST_CHECK int tok_hf_parse_normalizer(struct tok_hf_build *b, struct err *e);
SHOAL_MUST_CHECK int tok_hf_parse_pre_tokenizer(struct tok_hf_build *b, struct err *e);
/* tok_hf_post.c: the templates; the pieces as shown by decoding. */
SHOAL_MUST_CHECK int tok_hf_parse_post_processor(struct tok_hf_build *b, struct err *e);
SHOAL_MUST_CHECK int tok_hf_make_pieces(struct tok_hf_build *b, struct err *e);

#endif
