/* jinja_eval.h - runs a parsed template.
 *
 * Thread:    a template may run in several threads at once, each with its own struct jinja_run.
 * Ownership: as in jinja_value.h; the caller's context must live as long as the run.
 * Failure:   0, a negative SHOAL_E* (error filled, with line and column), or, inside the
 *            evaluator only, one of enum jinja_jump on the way from break/continue to its loop. */
#ifndef SHOAL_TEXT_JINJA_JINJA_EVAL_H
#define SHOAL_TEXT_JINJA_JINJA_EVAL_H

#include "text/jinja/parse/jinja_lex.h"
#include "text/jinja/parse/jinja_node.h"
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

/* ---- for the other files of the evaluator --------------------------------------------------- */

SHOAL_MUST_CHECK int jinja_eval(struct jinja_run *r, const struct jinja_node *n,
                                struct jinja_scope *scope, struct jinja_value *out);
/* Statements; what they write goes to r->out. */
SHOAL_MUST_CHECK int jinja_eval_body(struct jinja_run *r, const struct jinja_node *chain,
                                     struct jinja_scope *scope);
/* A for statement over these items; depth is 0 outside of recursion. */
SHOAL_MUST_CHECK int jinja_eval_loop(struct jinja_run *r, const struct jinja_node *n,
                                     struct jinja_scope *outer, const struct jinja_value *items,
                                     int64_t depth);

/* jinja_scope.c */
SHOAL_MUST_CHECK int jinja_scope_enter(struct jinja_run *r, const struct jinja_frame *frame,
                                       struct jinja_scope *parent, struct jinja_scope **out);
SHOAL_MUST_CHECK int jinja_scope_set(struct jinja_run *r, struct jinja_scope *s,
                                     struct jinja_str name, struct jinja_value v);
struct jinja_value jinja_scope_get(struct jinja_run *r, const struct jinja_scope *s,
                                   struct jinja_str name);

/* jinja_args.c: Gives the n parameters called names their arguments, ABSENT where none is given.
 * The first `needed` must be given. */
SHOAL_MUST_CHECK int jinja_args_bind(struct jinja_run *r, const char *what,
                                     const struct jinja_args *args, const char *const *names,
                                     size_t n, size_t needed, struct jinja_value *out);

/* jinja_call.c */
SHOAL_MUST_CHECK int jinja_call_args(struct jinja_run *r, const struct jinja_node *chain,
                                     struct jinja_scope *scope, struct jinja_args *out);
/* caller: the function of a call block, or NULL. */
SHOAL_MUST_CHECK int jinja_call_node(struct jinja_run *r, const struct jinja_node *n,
                                     struct jinja_scope *scope, const struct jinja_value *caller,
                                     struct jinja_value *out);

/* jinja_op.c */
SHOAL_MUST_CHECK int jinja_binary(struct jinja_run *r, enum jinja_op op,
                                  const struct jinja_value *a, const struct jinja_value *b,
                                  struct jinja_value *out);
/* Comparisons, in and not in. */
SHOAL_MUST_CHECK int jinja_compare(struct jinja_run *r, enum jinja_op op,
                                   const struct jinja_value *a, const struct jinja_value *b,
                                   bool *out);
/* <0, 0 or >0 for values that have an order. */
SHOAL_MUST_CHECK int jinja_order(struct jinja_run *r, const struct jinja_value *a,
                                 const struct jinja_value *b, int *out);

/* jinja_member.c: object.name, object[key], object[start:stop:step] */
SHOAL_MUST_CHECK int jinja_getattr(struct jinja_run *r, const struct jinja_value *object,
                                   struct jinja_str name, struct jinja_value *out);
SHOAL_MUST_CHECK int jinja_getitem(struct jinja_run *r, const struct jinja_value *object,
                                   const struct jinja_value *key, struct jinja_value *out);
SHOAL_MUST_CHECK int jinja_slice(struct jinja_run *r, const struct jinja_value *object,
                                 const struct jinja_value part[3], struct jinja_value *out);
/* "a.b.0" as the attribute of map, sort and others; by itself an integer is an index. */
SHOAL_MUST_CHECK int jinja_attribute(struct jinja_run *r, const struct jinja_value *object,
                                     const struct jinja_value *path,
                                     const struct jinja_value *otherwise, struct jinja_value *out);

/* jinja_iter.c: the items that a loop over v sees; an iterator is used up by it. */
SHOAL_MUST_CHECK int jinja_iterate(struct jinja_run *r, const struct jinja_value *v,
                                   struct jinja_list **out);
bool jinja_is_iterable(const struct jinja_value *v);
SHOAL_MUST_CHECK int jinja_length(struct jinja_run *r, const struct jinja_value *v, int64_t *out);

/* jinja_filter.c: args are evaluated already */
SHOAL_MUST_CHECK int jinja_filter(struct jinja_run *r, int id, struct jinja_str name,
                                  const struct jinja_value *v, const struct jinja_args *args,
                                  struct jinja_value *out);
/* jinja_filter_seq.c: filters over sequences; map, select and others are deferred. */
SHOAL_MUST_CHECK int jinja_filter_seq(struct jinja_run *r, int id, const struct jinja_value *v,
                                      const struct jinja_args *args, struct jinja_value *out);
/* Turns v into the key that two strings share when they differ in case only. */
SHOAL_MUST_CHECK int jinja_filter_fold(struct jinja_run *r, bool case_sensitive,
                                       struct jinja_value *v);
/* jinja_lazy.c: runs a deferred filter; called through r->run_lazy. */
SHOAL_MUST_CHECK int jinja_lazy_run(struct jinja_run *r, struct jinja_lazy *z);
/* jinja_test.c */
SHOAL_MUST_CHECK int jinja_test(struct jinja_run *r, int id, struct jinja_str name,
                                const struct jinja_value *v, const struct jinja_args *args,
                                bool *out);
/* jinja_method.c: v.name; *out is ABSENT when v has no such method, UNDEFINED for one that would
 * change v. */
SHOAL_MUST_CHECK int jinja_method(struct jinja_run *r, const struct jinja_value *v,
                                  struct jinja_str name, struct jinja_value *out);
/* jinja_method_call.c */
SHOAL_MUST_CHECK int jinja_method_call(struct jinja_run *r, const struct jinja_function *f,
                                       const struct jinja_args *args, struct jinja_value *out);
/* jinja_string.c: the methods of strings */
SHOAL_MUST_CHECK int jinja_string_call(struct jinja_run *r, const struct jinja_function *f,
                                       const struct jinja_args *args, struct jinja_value *out);
SHOAL_MUST_CHECK int jinja_string_replace(struct jinja_run *r, struct jinja_str s,
                                          struct jinja_str from, struct jinja_str to, int64_t count,
                                          struct jinja_value *out);
SHOAL_MUST_CHECK int jinja_string_escape(struct jinja_run *r, struct jinja_str s,
                                         struct jinja_value *out);
SHOAL_MUST_CHECK int jinja_string_lines(struct jinja_run *r, struct jinja_str s, bool ends,
                                        struct jinja_list *out);
/* jinja_format.c: 'text'.format(...) and 'text' % values */
SHOAL_MUST_CHECK int jinja_format(struct jinja_run *r, struct jinja_str s,
                                  const struct jinja_args *args, struct jinja_value *out);
SHOAL_MUST_CHECK int jinja_format_percent(struct jinja_run *r, struct jinja_str s,
                                          const struct jinja_value *values,
                                          struct jinja_value *out);
/* jinja_function.c: range, namespace and the other global functions */
bool jinja_function_find(struct jinja_str name, struct jinja_value *out);
SHOAL_MUST_CHECK int jinja_function_call(struct jinja_run *r, const struct jinja_function *f,
                                         const struct jinja_args *args, struct jinja_value *out);
/* jinja_sort.c: sorts items by keys of the same place, keeping the order of equal ones. */
SHOAL_MUST_CHECK int jinja_sort(struct jinja_run *r, struct jinja_list *items,
                                struct jinja_list *keys, bool reverse);

#endif
