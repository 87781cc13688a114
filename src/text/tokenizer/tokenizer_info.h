/* tokenizer_info.h - properties of a tokenizer, and the flags of its functions. */
#ifndef SHOAL_TEXT_TOKENIZER_TOKENIZER_INFO_H
#define SHOAL_TEXT_TOKENIZER_TOKENIZER_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKENIZER_NONE (-1) /* no such token */

enum tokenizer_kind {
    TOKENIZER_KIND_SPM,     /* SentencePiece BPE */
    TOKENIZER_KIND_BPE,     /* BPE with a table of merges */
    TOKENIZER_KIND_WPM,     /* WordPiece */
    TOKENIZER_KIND_UNIGRAM, /* the most likely way to split a word */
    TOKENIZER_KIND_WORDS    /* whole words */
};

enum tokenizer_flags {
    TOKENIZER_ADD_SPECIAL = 1 << 0,    /* encode: add the BOS, EOS, SEP that the model asks for */
    TOKENIZER_PARSE_SPECIAL = 1 << 1,  /* encode: "<|im_end|>" in the text is that token; only for
                                          our own text, never for user input */
    TOKENIZER_RENDER_SPECIAL = 1 << 2, /* decode: control tokens as their text, else as nothing */
    TOKENIZER_CUT_SECOND = 1 << 3,     /* encode_pair: shorten the second text only */
};

struct tokenizer_range { /* bytes [from, to) of a text */
    uint32_t from, to;
};

struct tokenizer_info {
    enum tokenizer_kind kind;
    const char *model; /* "llama", "gpt2", ... */
    const char *pre;   /* pre-tokenizer, as the file names it; "" when it names none */
    uint32_t n_vocab;
    uint32_t max_piece_bytes;                        /* longest piece */
    int32_t bos, eos, eot, eom, unk, sep, pad, mask; /* TOKENIZER_NONE when there is none */
    int32_t nl;                                      /* what a lone newline encodes to */
    int32_t fim_pre, fim_suf, fim_mid, fim_pad, fim_rep, fim_sep;
    bool add_bos, add_eos, add_sep;
    bool add_space_prefix;
    const char *chat_template; /* NUL-terminated, or NULL when the file has none */
    size_t chat_template_bytes;
};

#endif
