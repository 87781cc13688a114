/* jinja_parse_int.h - what the parts of the parser share: jinja_parse.c (statements) calls
 * jinja_expr.c (expressions), and both jinja_parse_node.c (tokens and nodes).
 *
 * Thread, ownership: as in jinja_parse.h.
 * Failure: NULL or false; then jinja_parse_fail has set rc and filled the error. */
#ifndef SHOAL_TEXT_JINJA_PARSE_JINJA_PARSE_INT_H
#define SHOAL_TEXT_JINJA_PARSE_JINJA_PARSE_INT_H

#include "text/jinja/parse/jinja_parse.h"

enum { JINJA_PARSE_SLOTS = 2 * JINJA_MAX_NAMES };

struct jinja_parse_names { /* the names of variables, each with an id */
    struct jinja_str at[JINJA_MAX_NAMES];
    uint16_t slots[JINJA_PARSE_SLOTS]; /* id + 1 by hash */
    size_t n;
};

struct jinja_parser {
    struct arena *arena;
    struct err *e;
    int rc;
    const struct jinja_token *at; /* next token; the list ends with JINJA_TOKEN_END */
    int depth;
    int loops; /* enclosing for statements: break and continue are allowed */
    bool soft; /* inside an if: unknown names are errors only when reached */
    struct jinja_parse_names *names;
};

/* A chain while it is built. */
struct jinja_chain {
    struct jinja_node *first, *last;
};

/* Fills the error with the position of a token; returns NULL. */
void *jinja_parse_fail(struct jinja_parser *p, const struct jinja_token *t, int code,
                       const char *what);
/* "expected ..., found ..."; returns NULL. */
void *jinja_parse_unexpected(struct jinja_parser *p, const char *wanted);
/* The next token: of this type?  accept takes it if it is, expect fails if it is not. */
bool jinja_parse_is(const struct jinja_parser *p, enum jinja_token_type type);
bool jinja_parse_is_name(const struct jinja_token *t, const char *name);
bool jinja_parse_accept(struct jinja_parser *p, enum jinja_token_type type);
bool jinja_parse_expect(struct jinja_parser *p, enum jinja_token_type type, const char *wanted);
bool jinja_parse_accept_name(struct jinja_parser *p, const char *name);
bool jinja_parse_expect_name(struct jinja_parser *p, const char *name);
struct jinja_node *jinja_parse_make(struct jinja_parser *p, enum jinja_node_kind kind,
                                    const struct jinja_token *t);
/* Sets the height of a node whose children are in place; refuses a tree that is too high. */
struct jinja_node *jinja_parse_finish(struct jinja_parser *p, struct jinja_node *n);
void jinja_parse_chain_add(struct jinja_chain *c, struct jinja_node *n);
/* Around nested constructs, to bound the parser's own stack. */
bool jinja_parse_enter(struct jinja_parser *p);
struct jinja_node *jinja_parse_leave(struct jinja_parser *p, struct jinja_node *n);
struct jinja_node *jinja_parse_make_op(struct jinja_parser *p, enum jinja_node_kind kind,
                                       const struct jinja_token *t, enum jinja_op op,
                                       struct jinja_node *a, struct jinja_node *b);
/* The id of a name; the same name has the same id everywhere. */
bool jinja_parse_intern(struct jinja_parser *p, const struct jinja_token *t, int32_t *out);
struct jinja_node *jinja_parse_make_name(struct jinja_parser *p, const struct jinja_token *t,
                                         bool stored);

/* ---- jinja_expr.c ---- */

/* a, b, c is a tuple; a alone is a. `word` also ends the tuple; with `parentheses` it may be
 * empty. */
struct jinja_node *jinja_expr_tuple(struct jinja_parser *p,
                                    struct jinja_node *(*one)(struct jinja_parser *),
                                    const char *word, bool parentheses);
/* none, true or false, or NULL without an error when the next token is something else. */
struct jinja_node *jinja_expr_constant(struct jinja_parser *p);
struct jinja_node *jinja_expr_primary(struct jinja_parser *p);
/* The filters after n, from the first name on; n is NULL for a block. */
struct jinja_node *jinja_expr_filter(struct jinja_parser *p, struct jinja_node *n);
/* An expression without and with an inline if. */
struct jinja_node *jinja_expr_or(struct jinja_parser *p);
struct jinja_node *jinja_expr_parse(struct jinja_parser *p);

#endif
