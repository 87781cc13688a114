/* grammar_tree.h - a grammar as a tree: what the front ends (GBNF, regular expressions, JSON
 * Schema) build and grammar_net.h compiles.
 *
 * Nodes are numbers. A class is a set of code points, a literal is bytes; both may appear below
 * sequences, alternatives, repetitions and rules. Rules may be mutually recursive.
 *
 * Thread:    belongs to its caller.
 * Ownership: init fills the caller's struct, fini frees it; nothing borrows from the input.
 * Failure:   sticky: after the first failure every call returns GRAMMAR_TREE_NONE and does nothing;
 *            grammar_tree_rc and the err given to init say what it was. */
#ifndef SHOAL_TEXT_GRAMMAR_GRAMMAR_TREE_H
#define SHOAL_TEXT_GRAMMAR_GRAMMAR_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

#define GRAMMAR_TREE_NONE UINT32_MAX
#define GRAMMAR_TREE_UNBOUNDED UINT32_MAX
#define GRAMMAR_TREE_MAX_NODES (1u << 19)
#define GRAMMAR_TREE_MAX_COUNT (1u << 20) /* limit of a repetition */
#define GRAMMAR_TREE_MAX_CODE 0x10ffffu

enum grammar_tree_kind {
    GRAMMAR_TREE_LITERAL,
    GRAMMAR_TREE_CLASS,
    GRAMMAR_TREE_SEQUENCE, /* without nodes: the empty text */
    GRAMMAR_TREE_EITHER,   /* without nodes: matches nothing */
    GRAMMAR_TREE_REPEAT,
    GRAMMAR_TREE_RULE,
};

struct grammar_tree_range { /* code points, both included */
    uint32_t lo, hi;
};

struct grammar_tree_node {
    enum grammar_tree_kind kind;
    uint32_t n;        /* bytes, ranges or children */
    uint32_t min, max; /* REPEAT */
    uint32_t rule;     /* RULE */
    union {
        const char *bytes;                       /* LITERAL */
        const struct grammar_tree_range *ranges; /* CLASS: sorted, not overlapping */
        const uint32_t *children;                /* SEQUENCE, EITHER; REPEAT: one */
    };
};

struct grammar_tree_rule {
    uint32_t node;    /* NONE: not defined yet */
    const char *name; /* in messages; NULL: it has none */
};

struct grammar_tree {
    struct arena arena;
    struct grammar_tree_node *nodes;
    uint32_t n_nodes, cap_nodes;
    struct grammar_tree_rule *rules;
    uint32_t n_rules, cap_rules;
    uint64_t work;       /* spent on products, which are bounded together (grammar_product.h) */
    char why_empty[200]; /* why parts of it match nothing, if the front end knows */
    struct err *e;
    int rc;
};

/* A growing list of nodes, for sequences and alternatives. */
struct grammar_tree_list {
    uint32_t *items;
    uint32_t n, cap;
};

void grammar_tree_init(struct grammar_tree *t, struct err *e);
void grammar_tree_fini(struct grammar_tree *t);
static inline int grammar_tree_rc(const struct grammar_tree *t)
{
    return t->rc;
}
/* Records an error, unless there already is one; returns GRAMMAR_TREE_NONE. */
uint32_t grammar_tree_fail(struct grammar_tree *t, int code, const char *fmt, ...)
    SHOAL_PRINTF(3, 4);

void grammar_tree_push(struct grammar_tree *t, struct grammar_tree_list *l, uint32_t node);

uint32_t grammar_tree_literal(struct grammar_tree *t, const char *p, size_t n);
uint32_t grammar_tree_text(struct grammar_tree *t, const char *text); /* NUL-terminated */
/* Sorts and joins the ranges.  negated: every other code point. */
uint32_t grammar_tree_class(struct grammar_tree *t, const struct grammar_tree_range *r, size_t n,
                            bool negated);
uint32_t grammar_tree_sequence(struct grammar_tree *t, const struct grammar_tree_list *l);
uint32_t grammar_tree_either(struct grammar_tree *t, const struct grammar_tree_list *l);
/* NONE at the end: fewer than three. */
uint32_t grammar_tree_sequence3(struct grammar_tree *t, uint32_t a, uint32_t b, uint32_t c);
uint32_t grammar_tree_either2(struct grammar_tree *t, uint32_t a, uint32_t b);
uint32_t grammar_tree_repeat(struct grammar_tree *t, uint32_t node, uint32_t min, uint32_t max);
static inline uint32_t grammar_tree_optional(struct grammar_tree *t, uint32_t node)
{
    return grammar_tree_repeat(t, node, 0, 1);
}

/* A rule is added first and defined later, so that it may refer to itself. */
uint32_t grammar_tree_add_rule(struct grammar_tree *t, const char *name, size_t name_bytes);
void grammar_tree_define(struct grammar_tree *t, uint32_t rule, uint32_t node);
uint32_t grammar_tree_call(struct grammar_tree *t, uint32_t rule);

#endif
