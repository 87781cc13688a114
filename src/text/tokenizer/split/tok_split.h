/* tok_split.h - scanners: hand-written pre-tokenizer steps, faster than their regular expressions.
 *
 * Thread:    no state but the caller's.
 * Failure:   none: any bytes can be cut; bytes that are not UTF-8 count as control characters. */
#ifndef SHOAL_TEXT_TOKENIZER_SPLIT_TOK_SPLIT_H
#define SHOAL_TEXT_TOKENIZER_SPLIT_TOK_SPLIT_H

#include <stddef.h>
#include <stdint.h>

enum tok_split_opts {
    TOK_SPLIT_N1 = 1,              /* numbers: one digit per piece */
    TOK_SPLIT_N3 = 3,              /* at most three */
    TOK_SPLIT_N_MASK = 3,          /* 0: no limit */
    TOK_SPLIT_CONTRACT = 1 << 2,   /* 's 't 're 've 'm 'll 'd in any case */
    TOK_SPLIT_MARKS = 1 << 3,      /* combining marks are letters */
    TOK_SPLIT_TAIL_NL = 1 << 4,    /* newlines after punctuation belong to it */
    TOK_SPLIT_TAIL_SLASH = 1 << 5, /* so do slashes */
    TOK_SPLIT_HAN = 1 << 6,        /* runs of Han characters are words of their own */
    TOK_SPLIT_CASCADE = 1 << 8,    /* white space in pieces of 512, 256, ..., 4, 2, 1 */
    TOK_SPLIT_WORD_END = 1 << 7,   /* digits: only numbers that end a word */
};

/* Length (> 0) of the first piece of [p, end), which is not empty.  *state is 0 at the start of a
 * text and belongs to the scanner until its end. */
typedef size_t (*tok_split_fn)(const uint8_t *p, const uint8_t *end, unsigned opts, size_t *state);

/* The regex families of GPT-2, cl100k (llama 3, qwen 2, ...) and o200k (gpt-4o, tekken); the
 * regexes are in tok_pretok.c. */
size_t tok_split_gpt2(const uint8_t *p, const uint8_t *end, unsigned opts, size_t *state);
size_t tok_split_cl100k(const uint8_t *p, const uint8_t *end, unsigned opts, size_t *state);
size_t tok_split_o200k(const uint8_t *p, const uint8_t *end, unsigned opts, size_t *state);
/* Splits off numbers, in pieces of at most TOK_SPLIT_N* digits. */
size_t tok_split_numbers(const uint8_t *p, const uint8_t *end, unsigned opts, size_t *state);
/* Splits off numbers, in groups of three digits counted from the end. */
size_t tok_split_thousands(const uint8_t *p, const uint8_t *end, unsigned opts, size_t *state);
/* Splits off runs of newlines. */
size_t tok_split_lines(const uint8_t *p, const uint8_t *end, unsigned opts, size_t *state);

#endif
