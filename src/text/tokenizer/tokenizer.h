/* tokenizer.h - text to token ids and back, for the tokenizers that model files carry.
 *
 * Kinds: SentencePiece BPE (tokenizer.ggml.model "llama"), byte-level BPE ("gpt2" with its many
 * pre-tokenizers), BPE over characters ("gemma4"), WordPiece ("bert"); and what Hugging Face
 * folders bring (tokenizer.huggingface.*: tokenizer.json, vocab.txt, spiece.model or vocab.json
 * with merges.txt), which goes before tokenizer.ggml.* where a file has both: WordPiece, BPE,
 * Unigram and whole words, with the normalizers and pre-tokenizers that they name.
 *
 * Thread:    immutable after create: any number of threads encode and decode at once.
 * Ownership: create copies what it needs; the model file may be closed afterwards.  Pieces, names
 *            and the chat template are borrowed until destroy.
 * Failure:   SHOAL_EUNSUPPORTED names the model or pre-tokenizer that is not known, SHOAL_EFORMAT
 *            what is wrong in the metadata, SHOAL_ELIMIT an output that would pass its limit.
 *            Text is never an error: invalid UTF-8 is encoded byte by byte; in tokenizers of
 *            Hugging Face folders each maximal piece of it is read as U+FFFD, as decoders of text
 *            on the web and in Python do.
 *
 * Round trip: decode(encode(text)) gives the bytes of text, with these exceptions that lie in the
 * vocabularies: WordPiece normalizes; SentencePiece and gemma4 read U+2581 as a space; a vocabulary
 * that lacks byte tokens turns what it cannot spell into its unknown token. */
#ifndef SHOAL_TEXT_TOKENIZER_TOKENIZER_H
#define SHOAL_TEXT_TOKENIZER_TOKENIZER_H

#include "base/str.h"
#include "base/utf8.h"
#include "format/token_type.h"
#include "text/tokenizer/tok_ids.h"
#include "text/tokenizer/tokenizer_info.h"

struct buf;
struct model_file;
struct tokenizer; /* opaque: tokenizer_core.h */

SHOAL_MUST_CHECK int tokenizer_create(struct tokenizer **out, const struct model_file *m,
                                      struct err *e);
void tokenizer_destroy(struct tokenizer *t);
const struct tokenizer_info *tokenizer_info(const struct tokenizer *t);

/* Appends the ids of text to out; on failure out is as it was. */
SHOAL_MUST_CHECK int tokenizer_encode(const struct tokenizer *t, struct tok_ids *out,
                                      const char *text, size_t n, unsigned flags, struct err *e);

/* As tokenizer_encode with TOKENIZER_PARSE_SPECIAL, but a control token that would touch one of
 * the n_plain ranges (in order, apart from each other) stays text.  The text is encoded as a whole:
 * a range changes nothing else. */
SHOAL_MUST_CHECK int tokenizer_encode_mixed(const struct tokenizer *t, struct tok_ids *out,
                                            const char *text, size_t n,
                                            const struct tokenizer_range *plain, size_t n_plain,
                                            struct err *e);

/* Tokens with the bytes that they come from.  [n] each: */
#define TOK_INPUT_NONE 2
struct tok_encoding {
    int32_t *ids;
    uint32_t *start, *end; /* bytes [start, end) of the input; a token that covers a part of a
                              character has all of it; what was added has an empty range */
    uint8_t *types;        /* segment, as BERT's token_type_ids */
    uint8_t *inputs;       /* 0: a, 1: b, TOK_INPUT_NONE: added by the model's template */
    size_t n, cap;         /* ids owns the block that all of them live in */
    bool cut;              /* the texts were too long and have been cut */
};

void tokenizer_encoding_init(struct tok_encoding *x);
void tokenizer_encoding_fini(struct tok_encoding *x);

/* Replaces the content of x by the tokens of a, or with b != NULL of the pair, between the special
 * tokens that the model wants (TOKENIZER_ADD_SPECIAL).  More than max_tokens (0: no limit) are cut
 * at the end of the texts, never the special tokens: by default from the longer text first, until
 * both are equally long; with TOKENIZER_CUT_SECOND from b alone, and from a only when b is gone. */
SHOAL_MUST_CHECK int tokenizer_encode_pair(const struct tokenizer *t, struct tok_encoding *x,
                                           const char *a, size_t na, const char *b, size_t nb,
                                           size_t max_tokens, unsigned flags, struct err *e);

/* Number of bytes at p that spell a token that only TOKENIZER_PARSE_SPECIAL makes (0: none). *open:
 * the text ends inside such a spelling, so that following text could complete it. */
size_t tokenizer_control_at(const struct tokenizer *t, const char *p, size_t n, bool *open);

/* The bytes of one token, as they stand in the middle of a text; a piece may end inside a
 * character.  Control and unknown tokens are empty unless TOKENIZER_RENDER_SPECIAL.  An id out of
 * range is empty. */
struct str tokenizer_piece(const struct tokenizer *t, int32_t id, unsigned flags);

/* Appends the text of ids.  The space that encode put in front of a text (add_space_prefix) is
 * removed again, at the start and after special tokens. */
void tokenizer_decode(const struct tokenizer *t, struct buf *out, const int32_t *ids, size_t n,
                      unsigned flags);

/* Decoding token by token, whole characters at a time. */
struct tok_stream {
    const struct tokenizer *t;
    struct utf8_stream utf8;
    unsigned flags;
    bool strip_space; /* the next piece follows where encode would have added a space */
};

/* prev: the last token of the prompt, or TOKENIZER_NONE when the text begins here. */
void tokenizer_stream_init(struct tok_stream *s, const struct tokenizer *t, int32_t prev,
                           unsigned flags);
void tokenizer_stream_push(struct tok_stream *s, struct buf *out, int32_t id);
void tokenizer_stream_flush(struct tok_stream *s, struct buf *out);

enum token_type tokenizer_token_type(const struct tokenizer *t, int32_t id);
/* Does this token end a generation (EOS, end of turn, ...)? */
bool tokenizer_is_eog(const struct tokenizer *t, int32_t id);
/* The id whose token is spelled exactly so in the vocabulary (special tokens included), or NONE. */
int32_t tokenizer_find(const struct tokenizer *t, const char *spelling, size_t n);
const char *tokenizer_kind_name(enum tokenizer_kind kind);

#endif
