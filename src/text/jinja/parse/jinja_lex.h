/* jinja_lex.h - template source to tokens, with white space control already applied.
 *
 * As transformers configures Jinja: a block tag consumes the newline after it and the blanks before
 * it on its line (trim_blocks, lstrip_blocks), and one newline at the very end is dropped.
 *
 * Thread:    no state.
 * Ownership: token texts live in the arena; jinja_lex_fini frees the list.
 * Failure:   SHOAL_E* with line and column; then *out is empty. */
#ifndef SHOAL_TEXT_JINJA_PARSE_JINJA_LEX_H
#define SHOAL_TEXT_JINJA_PARSE_JINJA_LEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "text/jinja/jinja_text.h"

struct arena;

enum jinja_token_type {
    JINJA_TOKEN_END, /* after the last token */
    JINJA_TOKEN_TEXT,
    JINJA_TOKEN_INTEGER, /* without _ */
    JINJA_TOKEN_FLOAT,   /* without _ */
    JINJA_TOKEN_STRING,  /* escapes resolved */
    JINJA_TOKEN_NAME,
    JINJA_TOKEN_OPEN_STATEMENT,
    JINJA_TOKEN_CLOSE_STATEMENT,
    JINJA_TOKEN_OPEN_EXPRESSION,
    JINJA_TOKEN_CLOSE_EXPRESSION,
    JINJA_TOKEN_OPEN_PAREN,
    JINJA_TOKEN_CLOSE_PAREN,
    JINJA_TOKEN_OPEN_BRACKET,
    JINJA_TOKEN_CLOSE_BRACKET,
    JINJA_TOKEN_OPEN_BRACE,
    JINJA_TOKEN_CLOSE_BRACE,
    JINJA_TOKEN_COMMA,
    JINJA_TOKEN_DOT,
    JINJA_TOKEN_COLON,
    JINJA_TOKEN_SEMICOLON,
    JINJA_TOKEN_PIPE,
    JINJA_TOKEN_EQUALS,
    JINJA_TOKEN_TILDE,
    JINJA_TOKEN_COMPARE, /* op: LT GT LE GE EQ NE */
    JINJA_TOKEN_ADD,     /* op: ADD SUB */
    JINJA_TOKEN_MUL,     /* op: MUL DIV FLOORDIV MOD */
    JINJA_TOKEN_POW,
};

enum jinja_op {
    JINJA_OP_NONE,
    JINJA_OP_ADD,
    JINJA_OP_SUB,
    JINJA_OP_MUL,
    JINJA_OP_DIV,
    JINJA_OP_FLOORDIV,
    JINJA_OP_MOD,
    JINJA_OP_POW,
    JINJA_OP_LT,
    JINJA_OP_GT,
    JINJA_OP_LE,
    JINJA_OP_GE,
    JINJA_OP_EQ,
    JINJA_OP_NE,
    JINJA_OP_IN,
    JINJA_OP_NOT_IN,
    JINJA_OP_AND,
    JINJA_OP_OR,
    JINJA_OP_NOT,
};

const char *jinja_op_text(enum jinja_op op);

struct jinja_token {
    enum jinja_token_type type;
    enum jinja_op op;
    uint32_t line, col; /* from 1; columns count code points */
    struct jinja_str text;
};

struct jinja_tokens {
    struct jinja_token *at; /* the one at n is JINJA_TOKEN_END */
    size_t n;
};

SHOAL_MUST_CHECK int jinja_lex(struct jinja_tokens *out, struct arena *a, const char *src, size_t n,
                               struct err *e);
void jinja_lex_fini(struct jinja_tokens *t);

#endif
