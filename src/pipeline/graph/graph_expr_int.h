/* graph_expr_int.h - the tree of an expression.  Private to graph_expr*.c.
 *
 * Thread: as graph_expr.h. */
#ifndef SHOAL_PIPELINE_GRAPH_GRAPH_EXPR_INT_H
#define SHOAL_PIPELINE_GRAPH_GRAPH_EXPR_INT_H

#include "pipeline/graph/graph_expr.h"

enum graph_op {
    GRAPH_OP_CONST,
    GRAPH_OP_NAME,  /* name */
    GRAPH_OP_FIELD, /* a.name */
    GRAPH_OP_INDEX, /* a[index] */
    GRAPH_OP_NOT,   /* !a */
    GRAPH_OP_MINUS, /* -a */
    GRAPH_OP_OR,    /* two operands: a, b */
    GRAPH_OP_AND,
    GRAPH_OP_EQ,
    GRAPH_OP_NE,
    GRAPH_OP_LT,
    GRAPH_OP_LE,
    GRAPH_OP_GT,
    GRAPH_OP_GE,
    GRAPH_OP_ADD,
    GRAPH_OP_SUB,
    GRAPH_OP_MUL,
    GRAPH_OP_DIV,
    GRAPH_OP_CALL,   /* function with args */
    GRAPH_OP_CONCAT, /* args as one text; those that are not `inserted` are literal */
};

enum graph_function {
    GRAPH_FN_LEN,
    GRAPH_FN_LOWER,
    GRAPH_FN_UPPER,
    GRAPH_FN_TRIM,
    GRAPH_FN_CONTAINS,
    GRAPH_FN_STARTS,
    GRAPH_FN_DEFAULT,
    GRAPH_FN_JOIN,
    GRAPH_FN_ROUND,
    GRAPH_FN_NUMBER,
    GRAPH_FN_TEXT,
    GRAPH_FN_N
};

struct graph_expr {
    enum graph_op op;
    enum graph_function fn;
    size_t at; /* in the text */
    const struct graph_type *type;
    struct graph_expr *a, *b;
    struct graph_expr **args;
    uint32_t n_args;
    bool inserted; /* a part of CONCAT that came from ${...} */
    const char *name;
    size_t name_bytes;
    size_t index;
    struct value value; /* CONST */
};

#endif
