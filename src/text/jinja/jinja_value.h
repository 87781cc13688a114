/* jinja_value.h - values while a template runs, and the state of one run.
 *
 * The reference is JavaScript, and some of its rules show through: numbers are doubles that know
 * whether they are whole by type (INT) or not (FLOAT), lists and dicts are equal only when they
 * are the same object, == converts between strings, numbers and booleans.
 *
 * Thread:    a struct jinja_run and all values made in it belong to the thread that renders.
 * Ownership: values live in the run's arena until the run ends; nothing is freed before.
 * Failure:   functions that return int give 0 or a negative SHOAL_E*, and jinja_fail has then
 *            filled the run's error with line and column. */
#ifndef SHOAL_TEXT_JINJA_JINJA_VALUE_H
#define SHOAL_TEXT_JINJA_JINJA_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/arena.h"
#include "text/jinja/jinja_text.h"

struct jinja_node;
struct jinja_scope;

enum jinja_kind {
    JINJA_ABSENT, /* first/last of an empty list: may be stored and passed on, not used */
    JINJA_UNDEFINED,
    JINJA_NONE,
    JINJA_BOOL,
    JINJA_INT,
    JINJA_FLOAT,
    JINJA_STRING, /* str.p is NULL for s[i] past the end: prints as "undefined", equals none */
    JINJA_LIST,
    JINJA_TUPLE,
    JINJA_DICT,
    JINJA_KWARGS, /* the named arguments of a call, passed as its last argument */
    JINJA_NAMESPACE,
    JINJA_FUNCTION,
};

struct jinja_value {
    enum jinja_kind kind;
    union {
        bool b;
        double num;
        struct jinja_str str;
        struct jinja_list *list; /* LIST, TUPLE */
        struct jinja_dict *dict; /* DICT, KWARGS, NAMESPACE */
        const struct jinja_function *function;
    };
};

struct jinja_list {
    struct jinja_value *at;
    size_t n, cap;
};

struct jinja_entry {
    struct jinja_str key;
    struct jinja_value value;
};

struct jinja_dict { /* in order of insertion */
    struct jinja_entry *at;
    size_t n, cap;
    uint32_t *index; /* entry number + 1 by hash, once there are many */
    size_t n_index;  /* a power of two */
};

/* Functions that templates can call; the values from JINJA_FN_UPPER on are methods. */
enum jinja_function_id {
    JINJA_FN_MACRO,  /* node: MACRO */
    JINJA_FN_CALLER, /* node: CALLBLOCK, scope: where it stands */
    JINJA_FN_NAMESPACE,
    JINJA_FN_RANGE,
    JINJA_FN_RAISE_EXCEPTION,
    JINJA_FN_STRFTIME_NOW,
    JINJA_FN_UPPER,
    JINJA_FN_LOWER,
    JINJA_FN_STRIP,
    JINJA_FN_LSTRIP,
    JINJA_FN_RSTRIP,
    JINJA_FN_TITLE,
    JINJA_FN_CAPITALIZE,
    JINJA_FN_STARTSWITH,
    JINJA_FN_ENDSWITH,
    JINJA_FN_SPLIT,
    JINJA_FN_REPLACE,
    JINJA_FN_FORMAT,
    JINJA_FN_GET,
    JINJA_FN_ITEMS,
    JINJA_FN_KEYS,
    JINJA_FN_VALUES,
    JINJA_FN_DICTSORT,
};

struct jinja_function {
    enum jinja_function_id id;
    struct jinja_value self; /* of a method */
    const struct jinja_node *node;
    struct jinja_scope *scope;
};

struct jinja_run {
    struct arena arena;
    struct buf out; /* output so far; captured blocks are written at its end and cut off */
    struct err *e;
    uint64_t steps_left;
    int depth;
    const struct jinja_node *where; /* what runs now, for errors */
    struct tm now;                  /* for strftime_now, local time */
};

enum { JINJA_MAX_DEPTH = 800, JINJA_MAX_DATA_DEPTH = 200 };

int jinja_fail(struct jinja_run *r, int code, const char *fmt, ...) SHOAL_PRINTF(3, 4);
int jinja_no_memory(struct jinja_run *r); /* for an arena that returned NULL */
/* Pays for work; fails when the run's budget is spent. */
SHOAL_MUST_CHECK int jinja_charge(struct jinja_run *r, uint64_t steps);

static inline struct jinja_value jinja_undefined(void)
{
    return (struct jinja_value){.kind = JINJA_UNDEFINED};
}
static inline struct jinja_value jinja_none(void)
{
    return (struct jinja_value){.kind = JINJA_NONE};
}
static inline struct jinja_value jinja_bool(bool b)
{
    return (struct jinja_value){.kind = JINJA_BOOL, .b = b};
}
static inline struct jinja_value jinja_int(double v)
{
    return (struct jinja_value){.kind = JINJA_INT, .num = v};
}
static inline struct jinja_value jinja_float(double v)
{
    return (struct jinja_value){.kind = JINJA_FLOAT, .num = v};
}
static inline struct jinja_value jinja_string(struct jinja_str s)
{
    return (struct jinja_value){.kind = JINJA_STRING, .str = s};
}

static inline bool jinja_is_number(const struct jinja_value *v)
{
    return v->kind == JINJA_INT || v->kind == JINJA_FLOAT;
}
static inline bool jinja_is_list(const struct jinja_value *v)
{
    return v->kind == JINJA_LIST || v->kind == JINJA_TUPLE;
}
static inline bool jinja_is_dict(const struct jinja_value *v)
{
    return v->kind == JINJA_DICT || v->kind == JINJA_KWARGS;
}
static inline bool jinja_is_hollow(const struct jinja_value *v) /* s[i] past the end */
{
    return v->kind == JINJA_STRING && !v->str.p;
}

const char *jinja_kind_name(const struct jinja_value *v); /* "a list" */
bool jinja_truth(const struct jinja_value *v);            /* what `if` sees */

SHOAL_MUST_CHECK int jinja_list_make(struct jinja_run *r, struct jinja_value *out, size_t cap);
SHOAL_MUST_CHECK int jinja_list_push(struct jinja_run *r, struct jinja_list *l,
                                     struct jinja_value v);
SHOAL_MUST_CHECK int jinja_dict_make(struct jinja_run *r, struct jinja_value *out);
/* A new key goes to the end, a known one keeps its place. */
SHOAL_MUST_CHECK int jinja_dict_set(struct jinja_run *r, struct jinja_dict *d, struct jinja_str key,
                                    struct jinja_value v);
const struct jinja_value *jinja_dict_get(struct jinja_run *r, const struct jinja_dict *d,
                                         struct jinja_str key);

/* Takes what was written to r->out since mark away from it and gives it as a string. */
SHOAL_MUST_CHECK int jinja_cut(struct jinja_run *r, size_t mark, struct jinja_value *out);
SHOAL_MUST_CHECK int jinja_concat(struct jinja_run *r, struct jinja_str a, struct jinja_str b,
                                  struct jinja_value *out);
/* Has what was written to r->out fitted? */
SHOAL_MUST_CHECK int jinja_check_out(struct jinja_run *r);

#endif
