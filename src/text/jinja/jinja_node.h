/* jinja_node.h - the tree of a parsed template.
 *
 * Thread:    written by jinja_parse alone; afterwards any number of threads may read it.
 * Ownership: the nodes live in the arena of their struct jinja_template. */
#ifndef SHOAL_TEXT_JINJA_JINJA_NODE_H
#define SHOAL_TEXT_JINJA_JINJA_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "text/jinja/jinja_lex.h"
#include "text/jinja/jinja_text.h"

/* What the fields a, b, c, d, text and flag mean for each kind.  "chain": linked by next. */
enum jinja_node_kind {
    JINJA_NODE_STRING,      /* text; also the plain text between tags */
    JINJA_NODE_INT,         /* num */
    JINJA_NODE_FLOAT,       /* num */
    JINJA_NODE_NAME,        /* text */
    JINJA_NODE_LIST,        /* a: chain of items */
    JINJA_NODE_TUPLE,       /* a: chain of items */
    JINJA_NODE_DICT,        /* a: chain of PAIR */
    JINJA_NODE_PAIR,        /* a: key, b: value */
    JINJA_NODE_MEMBER,      /* a: object, b: property, flag: a[b] (else a.b) */
    JINJA_NODE_SLICE,       /* a, b, c: start, stop, step, each may be NULL; only as a MEMBER's b */
    JINJA_NODE_CALL,        /* a: callee, b: chain of arguments */
    JINJA_NODE_KWARG,       /* text: name, a: value; argument, or parameter with default */
    JINJA_NODE_SPREAD,      /* a: *list */
    JINJA_NODE_KWSPREAD,    /* a: **dict */
    JINJA_NODE_UNARY,       /* op, a */
    JINJA_NODE_BINARY,      /* op, a, b */
    JINJA_NODE_TERNARY,     /* b if a else c */
    JINJA_NODE_SELECT,      /* a if b, without else; as a loop's iterable: its filter */
    JINJA_NODE_FILTER,      /* a | b, where b is a NAME or a CALL of one */
    JINJA_NODE_TEST,        /* a is text, flag: is not, b: argument or NULL */
    JINJA_NODE_IF,          /* a: test, b: body, c: else body, flag: c is one IF made by elif */
    JINJA_NODE_FOR,         /* a: target, b: iterable, c: body, d: else body */
    JINJA_NODE_SET,         /* a: target, b: value, or NULL and c: body */
    JINJA_NODE_MACRO,       /* text: name, a: chain of NAME/KWARG, c: body; uses_* */
    JINJA_NODE_CALLBLOCK,   /* a: CALL, b: chain of NAME/KWARG, c: body; uses_* */
    JINJA_NODE_FILTERBLOCK, /* b: filter, c: body */
    JINJA_NODE_BREAK,
    JINJA_NODE_CONTINUE,
};

struct jinja_node {
    enum jinja_node_kind kind;
    enum jinja_op op;
    uint32_t line, col;
    uint16_t height;
    bool flag;
    bool uses_kwargs, uses_varargs; /* the body reads these names of surplus arguments */
    struct jinja_node *next;
    struct jinja_node *a, *b, *c, *d;
    union {
        struct jinja_str text;
        double num;
    };
};

#endif
