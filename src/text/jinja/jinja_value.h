/* jinja_value.h - values while a template runs, and the state of one run.
 *
 * Values behave as Python's do.  Lists, dicts and namespaces are shared: a copy of the value is
 * the same object.
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
struct jinja_args;

enum jinja_kind {
    JINJA_ABSENT,    /* no value: a variable that is not set yet, an argument that is not given */
    JINJA_UNDEFINED, /* str: its name, for errors */
    JINJA_NONE,
    JINJA_BOOL,
    JINJA_INT,
    JINJA_BIGINT, /* str: its decimal digits; only printed and compared */
    JINJA_FLOAT,
    JINJA_STRING,
    JINJA_LIST,
    JINJA_TUPLE,
    JINJA_DICT,
    JINJA_VIEW,  /* d.keys(), d.values(), d.items() */
    JINJA_RANGE, /* range(...) */
    JINJA_LAZY,  /* an iterator: what map, select, ... give; can be walked once */
    JINJA_NAMESPACE,
    JINJA_LOOP, /* the variable `loop` */
    JINJA_FUNCTION,
};

struct jinja_value {
    enum jinja_kind kind;
    bool markup; /* of a STRING: came from `safe` or `escape`; + escapes what it is joined with */
    union {
        bool b;
        int64_t i;
        double num;
        struct jinja_str str;
        struct jinja_list *list; /* LIST, TUPLE */
        struct jinja_dict *dict; /* DICT, NAMESPACE */
        const struct jinja_view *view;
        const struct jinja_range *range;
        struct jinja_lazy *lazy;
        struct jinja_loop *loop;
        const struct jinja_function *function;
    };
};

struct jinja_list {
    struct jinja_value *at;
    size_t n, cap;
};

struct jinja_entry {
    struct jinja_value key, value;
};

struct jinja_dict { /* in order of insertion */
    struct jinja_entry *at;
    size_t n, cap;
    uint32_t *index; /* entry number + 1 by hash, once there are many */
    size_t n_index;  /* a power of two */
};

enum jinja_view_of { JINJA_VIEW_KEYS, JINJA_VIEW_VALUES, JINJA_VIEW_ITEMS };

struct jinja_view {
    const struct jinja_dict *dict;
    enum jinja_view_of of;
};

struct jinja_range {
    int64_t start, stop, step;
};

/* A filter that runs when its result is walked for the first time. */
struct jinja_lazy {
    struct jinja_list *items; /* NULL: not run yet */
    size_t at;                /* items before it were consumed */
    int filter;               /* enum jinja_filter_id */
    struct jinja_value source;
    const struct jinja_args *args;
    const struct jinja_node *where;
};

struct jinja_loop {
    const struct jinja_list *items;
    size_t index; /* of the current item, from 0 */
    int64_t depth;
    struct jinja_value changed;    /* last value of loop.changed(), a tuple; ABSENT: none yet */
    const struct jinja_node *node; /* the FOR */
    struct jinja_scope *outer;     /* around the loop, for recursion */
};

/* Functions that templates can call. */
enum jinja_function_id {
    JINJA_FN_MACRO,  /* node: MACRO or CALLBLOCK, scope: where it stands */
    JINJA_FN_NAMED,  /* name: a global function */
    JINJA_FN_METHOD, /* name: a method of self */
};

struct jinja_function {
    enum jinja_function_id id;
    int method; /* enum jinja_method_id or enum jinja_global_id */
    const char *name;
    struct jinja_value self;
    const struct jinja_node *node;
    struct jinja_scope *scope;
};

struct jinja_run {
    struct arena arena;
    struct buf out; /* output so far; captured blocks are written at its end and cut off */
    struct err *e;
    uint64_t steps_left;
    int depth;
    const struct jinja_node *where;   /* the node being run, for errors */
    const struct jinja_dict *context; /* the variables that the caller gave */
    struct tm now;                    /* for strftime_now, local time */
    /* Runs a filter that was deferred: whatever walks values is below the filters. */
    int (*run_lazy)(struct jinja_run *r, struct jinja_lazy *z);
};

enum { JINJA_MAX_DEPTH = 800, JINJA_MAX_DATA_DEPTH = 200 };

int jinja_fail(struct jinja_run *r, int code, const char *fmt, ...) SHOAL_PRINTF(3, 4);
/* Fails for an undefined value, with its name. */
int jinja_fail_undefined(struct jinja_run *r, const struct jinja_value *v);
int jinja_no_memory(struct jinja_run *r); /* for an arena that returned NULL */
/* Charges work; fails when the run's budget is spent. */
SHOAL_MUST_CHECK int jinja_charge(struct jinja_run *r, uint64_t steps);

static inline struct jinja_value jinja_absent(void)
{
    return (struct jinja_value){.kind = JINJA_ABSENT};
}
static inline struct jinja_value jinja_undefined(struct jinja_str name)
{
    return (struct jinja_value){.kind = JINJA_UNDEFINED, .str = name};
}
static inline struct jinja_value jinja_none(void)
{
    return (struct jinja_value){.kind = JINJA_NONE};
}
static inline struct jinja_value jinja_bool(bool b)
{
    return (struct jinja_value){.kind = JINJA_BOOL, .b = b};
}
static inline struct jinja_value jinja_int(int64_t v)
{
    return (struct jinja_value){.kind = JINJA_INT, .i = v};
}
static inline struct jinja_value jinja_float(double v)
{
    return (struct jinja_value){.kind = JINJA_FLOAT, .num = v};
}
static inline struct jinja_value jinja_string(struct jinja_str s)
{
    return (struct jinja_value){.kind = JINJA_STRING, .str = s};
}

static inline bool jinja_is_list(const struct jinja_value *v)
{
    return v->kind == JINJA_LIST || v->kind == JINJA_TUPLE;
}

const char *jinja_kind_name(const struct jinja_value *v); /* "a list" */
bool jinja_truth(const struct jinja_value *v);            /* truth value in `if` */
/* The value of a boolean or integer; false for others. */
bool jinja_as_int(const struct jinja_value *v, int64_t *out);
/* The value of a boolean, integer or float; false for others. */
bool jinja_as_number(const struct jinja_value *v, double *out);
int64_t jinja_range_length(const struct jinja_range *g);

SHOAL_MUST_CHECK int jinja_list_make(struct jinja_run *r, struct jinja_value *out, size_t cap);
SHOAL_MUST_CHECK int jinja_list_push(struct jinja_run *r, struct jinja_list *l,
                                     struct jinja_value v);
void jinja_list_reverse(struct jinja_list *l);
SHOAL_MUST_CHECK int jinja_pair_make(struct jinja_run *r, struct jinja_value *out,
                                     struct jinja_value a, struct jinja_value b);
SHOAL_MUST_CHECK int jinja_dict_make(struct jinja_run *r, struct jinja_value *out);
/* A new key goes to the end, a known one keeps its place. */
SHOAL_MUST_CHECK int jinja_dict_set(struct jinja_run *r, struct jinja_dict *d, struct jinja_str key,
                                    struct jinja_value v);
const struct jinja_value *jinja_dict_get(struct jinja_run *r, const struct jinja_dict *d,
                                         struct jinja_str key);
/* The same with any key; fails when a key cannot be hashed.  *out is NULL when there is none. */
SHOAL_MUST_CHECK int jinja_dict_put(struct jinja_run *r, struct jinja_dict *d,
                                    struct jinja_value key, struct jinja_value v);
SHOAL_MUST_CHECK int jinja_dict_find(struct jinja_run *r, const struct jinja_dict *d,
                                     const struct jinja_value *key, const struct jinja_value **out);

/* Python's ==; only nesting that is too deep fails. */
SHOAL_MUST_CHECK int jinja_equal(struct jinja_run *r, const struct jinja_value *a,
                                 const struct jinja_value *b, bool *out);

/* Removes the output written to r->out since mark and returns it as a string. */
SHOAL_MUST_CHECK int jinja_cut(struct jinja_run *r, size_t mark, struct jinja_value *out);
SHOAL_MUST_CHECK int jinja_concat(struct jinja_run *r, struct jinja_str a, struct jinja_str b,
                                  struct jinja_value *out);
/* Whether the output written to r->out fitted. */
SHOAL_MUST_CHECK int jinja_check_out(struct jinja_run *r);

#endif
