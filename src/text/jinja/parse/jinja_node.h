/* jinja_node.h - the tree of a parsed template.
 *
 * Thread:    written by jinja_parse alone; afterwards any number of threads may read it.
 * Ownership: the nodes live in the arena of their struct jinja_template. */
#ifndef SHOAL_TEXT_JINJA_PARSE_JINJA_NODE_H
#define SHOAL_TEXT_JINJA_PARSE_JINJA_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "text/jinja/parse/jinja_lex.h"
#include "text/jinja/jinja_text.h"

/* What the fields a, b, c, d, text and flag mean for each kind.  "chain": linked by next.  "args":
 * a chain of expressions, KWARG, SPREAD and KWSPREAD. */
enum jinja_node_kind {
    /* expressions */
    JINJA_NODE_NONE,
    JINJA_NODE_BOOL,     /* flag */
    JINJA_NODE_STRING,   /* text */
    JINJA_NODE_INT,      /* i */
    JINJA_NODE_BIGINT,   /* text */
    JINJA_NODE_FLOAT,    /* num */
    JINJA_NODE_NAME,     /* text, id; flag: an assignment target */
    JINJA_NODE_LIST,     /* a: chain of items */
    JINJA_NODE_TUPLE,    /* a: chain of items */
    JINJA_NODE_DICT,     /* a: chain of PAIR */
    JINJA_NODE_PAIR,     /* a: key, b: value; of WITH: target and value */
    JINJA_NODE_GETATTR,  /* a.text */
    JINJA_NODE_GETITEM,  /* a[b] */
    JINJA_NODE_SLICE,    /* a, b, c: start, stop, step, each may be NULL; only as a GETITEM's b */
    JINJA_NODE_NSREF,    /* text.b, where it is set; id; b: NAME of the member */
    JINJA_NODE_CALL,     /* a: callee, b: args */
    JINJA_NODE_KWARG,    /* text: name, a: value; of a macro: parameter, id, a: default or NULL */
    JINJA_NODE_SPREAD,   /* a: *list */
    JINJA_NODE_KWSPREAD, /* a: **dict */
    JINJA_NODE_UNARY,    /* op, a */
    JINJA_NODE_BINARY,   /* op, a, b; also and, or */
    JINJA_NODE_COMPARE,  /* a, b: chain of OPERAND */
    JINJA_NODE_OPERAND,  /* op, a */
    JINJA_NODE_CONCAT,   /* a: chain of two or more */
    JINJA_NODE_COND,     /* b if a else c; c may be NULL */
    JINJA_NODE_FILTER,   /* a | text(b: args); id: jinja_names_filter; a is NULL for blocks */
    JINJA_NODE_TEST,     /* a is text(b: args); id: jinja_names_test */
    /* statements */
    JINJA_NODE_TEXT,        /* text */
    JINJA_NODE_PRINT,       /* a */
    JINJA_NODE_IF,          /* a: test, b: body, c: chain of IF made by elif, d: else body */
    JINJA_NODE_FOR,         /* a: target, b: iterable, c: body, d: else body, test; flag: recursive;
                               frames: body, else, test */
    JINJA_NODE_SET,         /* a: target, b: value */
    JINJA_NODE_SETBLOCK,    /* a: target, b: FILTER or NULL, c: body; frames: body */
    JINJA_NODE_MACRO,       /* text: name, id, a: chain of KWARG, c: body; frames: body; uses_* */
    JINJA_NODE_CALLBLOCK,   /* a: chain of KWARG, b: CALL, c: body; frames: body; uses_* */
    JINJA_NODE_FILTERBLOCK, /* b: FILTER, c: body; frames: body */
    JINJA_NODE_WITH,        /* a: chain of PAIR, c: body; frames: body */
    JINJA_NODE_GENERATION,  /* c: body; frames: body */
    JINJA_NODE_BREAK,
    JINJA_NODE_CONTINUE,
};

/* Where a variable of a scope gets its first value from when the scope is entered. */
enum jinja_load {
    JINJA_LOAD_NONE,      /* not a variable of this scope */
    JINJA_LOAD_PARAMETER, /* set by what enters the scope, such as a loop or a call */
    JINJA_LOAD_RESOLVE,   /* the context */
    JINJA_LOAD_ALIAS,     /* the variable of that name in the scopes around */
    JINJA_LOAD_UNDEFINED,
};

struct jinja_symbol {
    struct jinja_str name;
    enum jinja_load load;
};

struct jinja_frame { /* the variables of a scope */
    struct jinja_symbol *at;
    size_t n;
};

enum { JINJA_FRAME_BODY, JINJA_FRAME_ELSE, JINJA_FRAME_TEST };

struct jinja_node {
    enum jinja_node_kind kind;
    enum jinja_op op;
    uint32_t line, col;
    uint16_t height;
    bool flag;
    bool uses_caller, uses_kwargs, uses_varargs; /* the body reads these special names */
    int32_t id;
    struct jinja_node *next;
    struct jinja_node *a, *b, *c, *d, *test;
    struct jinja_frame *frames;
    union {
        struct jinja_str text;
        double num;
        int64_t i;
    };
};

#endif
