/* jinja_eval.h - runs a parsed template.
 *
 * Thread:    a template may run in several threads at once, each with its own struct jinja_run.
 * Ownership: as in jinja_value.h; the caller's scope values must live as long as the run.
 * Failure:   0, a negative SHOAL_E* (error filled, with line and column), or, inside the
 *            evaluator only, one of enum jinja_jump on the way from break/continue to its loop. */
#ifndef SHOAL_TEXT_JINJA_JINJA_EVAL_H
#define SHOAL_TEXT_JINJA_JINJA_EVAL_H

#include "text/jinja/jinja_equal.h"
#include "text/jinja/jinja_lex.h"
#include "text/jinja/jinja_print.h"
#include "text/jinja/jinja_value.h"

struct jinja_template;

enum jinja_jump { JINJA_JUMP_BREAK = 1, JINJA_JUMP_CONTINUE = 2 };

struct jinja_scope {
    struct jinja_scope *parent;
    struct jinja_dict vars;
};

struct jinja_args {
    struct jinja_value *at;
    size_t n;
    struct jinja_dict *named; /* NULL when there are none */
};

/* Runs the template with the entries of `context` as variables; the output is in r->out. */
SHOAL_MUST_CHECK int jinja_eval_template(struct jinja_run *r, const struct jinja_template *t,
                                         const struct jinja_dict *context);

/* For the other files of the evaluator. */
SHOAL_MUST_CHECK int jinja_eval(struct jinja_run *r, const struct jinja_node *n,
                                struct jinja_scope *scope, struct jinja_value *out);
SHOAL_MUST_CHECK int jinja_eval_args(struct jinja_run *r, const struct jinja_node *chain,
                                     struct jinja_scope *scope, struct jinja_args *out);
SHOAL_MUST_CHECK int jinja_eval_call(struct jinja_run *r, const struct jinja_function *f,
                                     const struct jinja_value *args, size_t n,
                                     struct jinja_scope *scope, struct jinja_value *out);
/* jinja_op.c */
SHOAL_MUST_CHECK int jinja_binary(struct jinja_run *r, enum jinja_op op,
                                  const struct jinja_value *a, const struct jinja_value *b,
                                  struct jinja_value *out);
bool jinja_not(const struct jinja_value *v); /* `not v`: a list or dict never is, even empty */
bool jinja_as_number(const struct jinja_value *v, double *out); /* true for numbers, booleans */

/* jinja_member.c: object.property or object[property]; part: start, stop, step */
SHOAL_MUST_CHECK int jinja_member(struct jinja_run *r, const struct jinja_value *object,
                                  const struct jinja_value *property, struct jinja_value *out);
SHOAL_MUST_CHECK int jinja_slice(struct jinja_run *r, const struct jinja_value *object,
                                 const struct jinja_value part[3], struct jinja_value *out);
/* The code points of a string as a list of strings. */
SHOAL_MUST_CHECK int jinja_split_points(struct jinja_run *r, struct jinja_str s,
                                        struct jinja_value *out);

/* jinja_filter.c: operand | filter */
SHOAL_MUST_CHECK int jinja_filter(struct jinja_run *r, const struct jinja_value *operand,
                                  const struct jinja_node *filter, struct jinja_scope *scope,
                                  struct jinja_value *out);
/* jinja_test.c: v is name, v is name arg (arg may be NULL) */
SHOAL_MUST_CHECK int jinja_test(struct jinja_run *r, struct jinja_str name,
                                const struct jinja_value *v, const struct jinja_value *arg,
                                bool *out);
/* Fails when there is no such test. */
SHOAL_MUST_CHECK int jinja_test_check(struct jinja_run *r, struct jinja_str name);
/* jinja_method.c: v.name where v is a string or a dict; false when there is no such method. */
bool jinja_method_find(enum jinja_kind kind, struct jinja_str name, enum jinja_function_id *out);
/* Calls a method, or a function that is not a macro. */
SHOAL_MUST_CHECK int jinja_method_call(struct jinja_run *r, const struct jinja_function *f,
                                       const struct jinja_value *args, size_t n,
                                       struct jinja_value *out);
/* jinja_sort.c */
SHOAL_MUST_CHECK int jinja_sort_list(struct jinja_run *r, const struct jinja_list *l, bool reverse,
                                     bool case_sensitive, const struct jinja_str *attribute,
                                     struct jinja_value *out);
SHOAL_MUST_CHECK int jinja_sort_dict(struct jinja_run *r, const struct jinja_dict *d, bool reverse,
                                     bool case_sensitive, bool by_value, struct jinja_value *out);
/* "a.b.0" of a dict, namespace or list; undefined when there is nothing. */
struct jinja_value jinja_attribute(struct jinja_run *r, struct jinja_value v,
                                   struct jinja_str path);

#endif
