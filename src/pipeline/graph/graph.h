/* graph.h - a flow of the configuration: named steps that use each other's results.
 *
 * The file is read into a graph by graph_add_* and graph_set_*; graph_check then parses the
 * expressions, and infers dependencies and types. From then on it is immutable.
 *
 * A step starts when all steps that its expressions name are done. A step reachable only through a
 * `switch`, a `fallback_step` or a `map` starts when it is chosen ("lazy").
 *
 * Thread:    one thread until graph_check; then any, read only.  Counted references.
 * Ownership: create gives one reference, unref takes it back.  Strings are copied.
 * Failure:   SHOAL_EFORMAT with a struct graph_error: what is wrong and where; SHOAL_ENOMEM. */
#ifndef SHOAL_PIPELINE_GRAPH_GRAPH_H
#define SHOAL_PIPELINE_GRAPH_GRAPH_H

#include <stdatomic.h>

#include "base/err.h"
#include "pipeline/graph/graph_expr.h"

#define GRAPH_MAX_STEPS 48u
#define GRAPH_MAX_INPUTS 32u
#define GRAPH_MAX_ARGS 48u  /* expressions of a step */
#define GRAPH_MAX_CASES 32u /* of a switch */
#define GRAPH_NAME_BYTES 64u

/* The kinds of steps, in the order of their names in GRAPH_KINDS. */
enum graph_kind {
    GRAPH_CLASSIFY,
    GRAPH_TAG,
    GRAPH_EMBED,
    GRAPH_RETRIEVE,
    GRAPH_GENERATE,
    GRAPH_SUMMARIZE,
    GRAPH_SCORE,
    GRAPH_SWITCH,
    GRAPH_MAP,
    GRAPH_MERGE,
    GRAPH_CALL,
    GRAPH_TEMPLATE,
    GRAPH_VERIFY,
    GRAPH_ASK,
    GRAPH_N_KINDS
};
#define GRAPH_KINDS                                                                                \
    "classify|tag|embed|retrieve|generate|summarize|score|switch|map|merge|call|template|verify|"  \
    "ask"

/* What an expression of a step is for. */
enum graph_role {
    GRAPH_ROLE_TEXT,
    GRAPH_ROLE_SYSTEM,
    GRAPH_ROLE_QUERY,
    GRAPH_ROLE_VALUES,
    GRAPH_ROLE_PASSAGES,
    GRAPH_ROLE_OVER,
    GRAPH_ROLE_FROM,
    GRAPH_ROLE_WHEN,
    GRAPH_ROLE_FALLBACK,
    GRAPH_ROLE_ON_TIMEOUT,
    GRAPH_ROLE_PATH,     /* call: of a URL */
    GRAPH_ROLE_TOPIC,    /* call */
    GRAPH_ROLE_PAYLOAD,  /* call */
    GRAPH_ROLE_ARGUMENT, /* call: of a command */
    GRAPH_ROLE_CASE_WHEN,
    GRAPH_ROLE_CASE_VALUE,
};

enum graph_how { GRAPH_FIRST, GRAPH_JOIN, GRAPH_LIST };                 /* merge */
enum graph_via { GRAPH_HTTP, GRAPH_MQTT, GRAPH_COMMAND, GRAPH_PLUGIN }; /* call */
enum graph_input_type {
    GRAPH_IN_TEXT,
    GRAPH_IN_NUMBER,
    GRAPH_IN_BOOL,
    GRAPH_IN_TEXTS,
    GRAPH_IN_NUMBERS
};

struct graph_arg {
    enum graph_role role;
    struct graph_expr *expr;
    const char *text;
    const void *where;
};

struct graph_case {
    struct graph_arg *when;  /* NULL: otherwise */
    struct graph_arg *value; /* NULL: the result of `step` */
    const char *step_name;
    int32_t step;
    const void *where;
};

struct graph_call { /* settings of a call besides expressions */
    enum graph_via via;
    const char *server; /* http: "http[s]://HOST:PORT" */
    const char *method;
    const char *plugin; /* path of a shared object */
    uint32_t qos, retry;
    bool retain, json; /* json: the answer is JSON */
};

/* Settings of a step; strings are copied. */
struct graph_step_spec {
    const char *name;
    enum graph_kind kind;
    const char *model, *labels, *collection, *reranker, *separator, *body, *fallback_step;
    uint32_t count, max_tokens, timeout_ms;
    double temperature, share;
    enum graph_how how;
    struct graph_call call;
};

struct graph_step {
    struct graph_step_spec spec;
    const void *where;
    struct graph_arg *args;
    uint32_t n_args;
    struct graph_case *cases;
    uint32_t n_cases;
    /* found by graph_check */
    int32_t body, fallback_step, body_of; /* steps; -1: none */
    uint64_t needs;                       /* bits of the steps that must be done before */
    uint64_t leads; /* bits of the steps it may start: cases, body, fallback_step */
    bool lazy;
    const struct graph_type *gives;
    const char *main; /* the field that a fallback sets; NULL: none */
};

struct graph_input {
    const char *name;
    enum graph_input_type type;
    const char *fallback; /* default, as text; NULL: it must be given */
    const void *where;
    const struct graph_type *of;
    struct value value; /* of the default */
};

struct graph {
    _Atomic uint32_t refs;
    struct arena arena;
    const char *name, *text;
    uint32_t budget_ms; /* 0: none */
    struct graph_input inputs[GRAPH_MAX_INPUTS];
    uint32_t n_inputs;
    struct graph_step steps[GRAPH_MAX_STEPS];
    uint32_t n_steps;
    struct graph_arg output, fallback; /* expr NULL: none */
    /* found by graph_check */
    struct graph_type input_type;
    bool reads_input;                                /* an expression does */
    uint64_t output_needs, fallback_needs, at_start; /* at_start: steps that are not lazy */
};

struct graph_error {
    const void *where; /* as it was given; NULL: the flow itself */
    size_t at;         /* byte of the text of an expression */
    char msg[320];
};

SHOAL_MUST_CHECK int graph_create(struct graph **out, const char *name);
struct graph *graph_ref(struct graph *g);
void graph_unref(struct graph *g); /* NULL is fine */

SHOAL_MUST_CHECK int graph_set_name(struct graph *g, const char *name, const char *text,
                                    uint32_t budget_ms);
/* where: any pointer that graph_error gives back.  SHOAL_ELIMIT: too many. */
SHOAL_MUST_CHECK int graph_add_input(struct graph *g, const char *name, enum graph_input_type type,
                                     const char *fallback, const void *where);
SHOAL_MUST_CHECK int graph_add_step(struct graph *g, const struct graph_step_spec *spec,
                                    const void *where, struct graph_step **out);
SHOAL_MUST_CHECK int graph_add_arg(struct graph *g, struct graph_step *s, enum graph_role role,
                                   const char *text, const void *where);
/* when NULL: otherwise.  One of value and step. */
SHOAL_MUST_CHECK int graph_add_case(struct graph *g, struct graph_step *s, const char *when,
                                    const void *when_where, const char *value,
                                    const void *value_where, const char *step, const void *where);
SHOAL_MUST_CHECK int graph_set_output(struct graph *g, const char *text, const void *where);
SHOAL_MUST_CHECK int graph_set_fallback(struct graph *g, const char *text, const void *where);
SHOAL_MUST_CHECK int graph_check(struct graph *g, struct graph_error *e);

/* The step's argument of a role, from the i-th on; NULL: none. */
const struct graph_arg *graph_arg(const struct graph_step *s, enum graph_role role, uint32_t i);
/* -1: there is none of this name. */
int32_t graph_find(const struct graph *g, const char *name, size_t n);
bool graph_name_ok(const char *name);

#endif
