/* graph_expr.h - the small expressions of a flow: `${input.text}`, `${intent.score} > 0.5`.
 *
 * A template is text with `${...}` in it ("$${" is a plain "${"); if it is one `${...}` and nothing
 * else, its value keeps its type.  A condition is an expression that is true or false.  Inside of
 * `${...}`, and in a condition around it, stand paths (step.field, list[0].field), numbers, texts
 * in quotes, true, false, the operators || && ! == != < <= > >= + - * /, parentheses and calls of
 * the functions that graph_expr_functions lists.
 *
 * There are no loops and no variables, and texts are bounded, so an expression always terminates
 * quickly.
 *
 * Thread:    an expression is constant once it is checked.
 * Ownership: expressions lie in the arena of parse, values in that of eval.
 * Failure:   parse and check: SHOAL_EFORMAT with the position in the text; SHOAL_ENOMEM. eval:
 *            errors that types cannot prevent: values of type any, an index, a division by zero,
 *            limits. */
#ifndef SHOAL_PIPELINE_GRAPH_GRAPH_EXPR_H
#define SHOAL_PIPELINE_GRAPH_GRAPH_EXPR_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "pipeline/graph/graph_type.h"

#define GRAPH_EXPR_MAX_BYTES ((size_t)64 << 10) /* limit of the text of an expression */
#define GRAPH_EXPR_MAX_TEXT ((size_t)4 << 20)   /* limit of a text that it produces */

struct graph_expr;

enum graph_expr_mode { GRAPH_EXPR_TEMPLATE, GRAPH_EXPR_CONDITION };

struct graph_expr_error {
    size_t at; /* byte of the text */
    char msg[240];
};

/* How values are written into a template: as they are; inside a JSON text; inside a URL; inside one
 * level of an MQTT topic, where "_" replaces what would change the levels. */
enum graph_expr_form { GRAPH_EXPR_PLAIN, GRAPH_EXPR_JSON, GRAPH_EXPR_URL, GRAPH_EXPR_TOPIC };

/* Resolves the first names of paths. */
struct graph_scope {
    /* The type of a name; NULL: unknown, and *why has the reason or is NULL. */
    const struct graph_type *(*type)(const struct graph_scope *s, const char *name, size_t n,
                                     const char **why);
    const char *const *names; /* all of them, for suggestions; NULL-terminated */
};

struct graph_values {
    /* The value of a name that the scope knows; NULL: it has none. */
    const struct value *(*get)(const struct graph_values *v, const char *name, size_t n);
};

SHOAL_MUST_CHECK int graph_expr_parse(struct graph_expr **out, struct arena *a, const char *text,
                                      size_t n, enum graph_expr_mode mode,
                                      struct graph_expr_error *e);
/* Calls fn with the first name of each path; stops and returns what fn returns if it is not 0. */
int graph_expr_names(const struct graph_expr *x,
                     int (*fn)(void *ctx, const char *name, size_t n, size_t at), void *ctx);
/* Infers the types. wanted: the required type; NULL: any. */
SHOAL_MUST_CHECK int graph_expr_check(struct graph_expr *x, const struct graph_scope *s,
                                      const struct graph_type *wanted, struct graph_expr_error *e);
const struct graph_type *graph_expr_type(const struct graph_expr *x); /* after check */
/* The pieces of a template, in order; anything else is one piece. */
uint32_t graph_expr_pieces(const struct graph_expr *x);
const struct graph_expr *graph_expr_piece(const struct graph_expr *x, uint32_t i);
/* Whether it is only a field of a name, like ${answer.text}. */
bool graph_expr_is_field(const struct graph_expr *x, const char *name, size_t n, const char *field);

SHOAL_MUST_CHECK int graph_expr_eval(struct value *out, const struct graph_expr *x,
                                     const struct graph_values *v, enum graph_expr_form form,
                                     struct arena *a, struct err *e);
/* Appends a value as text: texts as they are, numbers short, lists and maps as JSON. */
void graph_expr_put(struct buf *b, const struct value *v, enum graph_expr_form form);

#endif
