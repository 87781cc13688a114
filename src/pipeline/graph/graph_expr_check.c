/* graph_expr_check.c - see graph_expr.h: types of an expression. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "pipeline/graph/graph_expr.h"
#include "pipeline/graph/graph_expr_int.h"

#define MAX_NAMES 128u

struct checking {
    const struct graph_scope *scope;
    struct graph_expr_error *e;
};

static int fail(struct checking *c, size_t at, const char *fmt, ...) SHOAL_PRINTF(3, 4);

static int fail(struct checking *c, size_t at, const char *fmt, ...)
{
    va_list ap;
    c->e->at = at;
    va_start(ap, fmt);
    vsnprintf(c->e->msg, sizeof(c->e->msg), fmt, ap);
    va_end(ap);
    return SHOAL_EFORMAT;
}

static int want(struct checking *c, const struct graph_expr *x, const struct graph_type *t)
{
    if (graph_type_fits(x->type, t))
        return 0;
    return fail(c, x->at, "this is %s, but %s is needed", graph_type_name(x->type),
                graph_type_name(t));
}

static int check_name(struct checking *c, struct graph_expr *x)
{
    char typed[64];
    const char *why = NULL;
    x->type = c->scope->type(c->scope, x->name, x->name_bytes, &why);
    if (x->type)
        return 0;
    if (why)
        return fail(c, x->at, "%s", why);
    snprintf(typed, sizeof(typed), "%.*s", x->name_bytes < 60 ? (int)x->name_bytes : 60, x->name);
    const char *near = nearest_word(typed, c->scope->names);
    return fail(c, x->at, "there is no step '%s'%s%s%s", typed, near ? " (did you mean '" : "",
                near ? near : "", near ? "'?)" : "");
}

static int check_field(struct checking *c, struct graph_expr *x)
{
    const struct graph_type *t = x->a->type;
    int n = x->name_bytes < 60 ? (int)x->name_bytes : 60;
    char known[160] = "";
    x->type = graph_type_field(t, x->name, x->name_bytes);
    if (x->type)
        return 0;
    if (t->kind != GRAPH_TYPE_RECORD)
        return fail(c, x->at, "%s has no fields, so no '%.*s'", graph_type_name(t), n, x->name);
    for (uint32_t i = 0; i < t->n_fields; i++) {
        size_t at = strlen(known);
        snprintf(known + at, sizeof(known) - at, "%s%s", i ? ", " : "", t->fields[i].name);
    }
    return fail(c, x->at, "there is no field '%.*s'. Available: %s", n, x->name, known);
}

static int check_index(struct checking *c, struct graph_expr *x)
{
    const struct graph_type *t = x->a->type;
    if (t->kind != GRAPH_TYPE_LIST && t->kind != GRAPH_TYPE_ANY)
        return fail(c, x->at, "%s has no items", graph_type_name(t));
    x->type = t->kind == GRAPH_TYPE_LIST ? t->of : t;
    return 0;
}

static int check_equal(struct checking *c, struct graph_expr *x)
{
    const struct graph_type *a = x->a->type, *b = x->b->type;
    x->type = &graph_type_bool;
    if (a->kind >= GRAPH_TYPE_LIST || b->kind >= GRAPH_TYPE_LIST)
        return fail(c, x->at, "lists and maps cannot be compared");
    if (!graph_type_fits(a, b))
        return fail(c, x->at, "%s is never equal to %s", graph_type_name(a), graph_type_name(b));
    return 0;
}

static int check_call(struct checking *c, struct graph_expr *x)
{
    struct graph_expr *a = x->args[0], *b = x->n_args > 1 ? x->args[1] : NULL;
    int rc = 0;
    switch (x->fn) {
    case GRAPH_FN_LEN:
        x->type = &graph_type_number;
        if (a->type->kind != GRAPH_TYPE_LIST)
            rc = want(c, a, &graph_type_text);
        return rc;
    case GRAPH_FN_LOWER:
    case GRAPH_FN_UPPER:
    case GRAPH_FN_TRIM:
        x->type = &graph_type_text;
        return want(c, a, &graph_type_text);
    case GRAPH_FN_CONTAINS:
        x->type = &graph_type_bool;
        rc = want(c, a, a->type->kind == GRAPH_TYPE_LIST ? &graph_type_texts : &graph_type_text);
        return rc < 0 ? rc : want(c, b, &graph_type_text);
    case GRAPH_FN_STARTS:
        x->type = &graph_type_bool;
        rc = want(c, a, &graph_type_text);
        return rc < 0 ? rc : want(c, b, &graph_type_text);
    case GRAPH_FN_DEFAULT:
        x->type = a->type->kind == GRAPH_TYPE_ANY ? b->type : a->type;
        return want(c, b, a->type);
    case GRAPH_FN_JOIN:
        x->type = &graph_type_text;
        if (a->type->kind == GRAPH_TYPE_LIST && a->type->of->kind >= GRAPH_TYPE_LIST)
            return fail(c, a->at, "the items to join must be texts or numbers");
        if (a->type->kind != GRAPH_TYPE_LIST && a->type->kind != GRAPH_TYPE_ANY)
            return fail(c, a->at, "this is %s, but a list is needed", graph_type_name(a->type));
        return want(c, b, &graph_type_text);
    case GRAPH_FN_ROUND:
        x->type = &graph_type_number;
        rc = want(c, a, &graph_type_number);
        return rc < 0 ? rc : want(c, b, &graph_type_number);
    case GRAPH_FN_NUMBER:
        x->type = &graph_type_number;
        return want(c, a, &graph_type_text);
    case GRAPH_FN_TEXT:
    case GRAPH_FN_N:
        break;
    }
    x->type = &graph_type_text;
    return 0;
}

static int check_parts(struct checking *c, const struct graph_expr *x)
{
    for (uint32_t i = 0; i < x->n_args; i++)
        if (x->args[i]->type->kind >= GRAPH_TYPE_LIST)
            return fail(c, x->args[i]->at,
                        "%s cannot be part of a text: use join(list, \", \"), or text(...) for "
                        "JSON",
                        graph_type_name(x->args[i]->type));
    return 0;
}

static int check_both(struct checking *c, struct graph_expr *x, const struct graph_type *operand,
                      const struct graph_type *result)
{
    int rc = want(c, x->a, operand);
    x->type = result;
    return rc < 0 || !x->b ? rc : want(c, x->b, operand);
}

static int check(struct checking *c, struct graph_expr *x)
{
    int rc = x->a ? check(c, x->a) : 0;
    if (rc == 0 && x->b)
        rc = check(c, x->b);
    for (uint32_t i = 0; rc == 0 && i < x->n_args; i++)
        rc = check(c, x->args[i]);
    if (rc < 0)
        return rc;
    switch (x->op) {
    case GRAPH_OP_CONST:
        return 0;
    case GRAPH_OP_NAME:
        return check_name(c, x);
    case GRAPH_OP_FIELD:
        return check_field(c, x);
    case GRAPH_OP_INDEX:
        return check_index(c, x);
    case GRAPH_OP_NOT:
    case GRAPH_OP_OR:
    case GRAPH_OP_AND:
        return check_both(c, x, &graph_type_bool, &graph_type_bool);
    case GRAPH_OP_EQ:
    case GRAPH_OP_NE:
        return check_equal(c, x);
    case GRAPH_OP_LT:
    case GRAPH_OP_LE:
    case GRAPH_OP_GT:
    case GRAPH_OP_GE:
        return check_both(c, x, &graph_type_number, &graph_type_bool);
    case GRAPH_OP_MINUS:
    case GRAPH_OP_ADD:
    case GRAPH_OP_SUB:
    case GRAPH_OP_MUL:
    case GRAPH_OP_DIV:
        return check_both(c, x, &graph_type_number, &graph_type_number);
    case GRAPH_OP_CALL:
        return check_call(c, x);
    case GRAPH_OP_CONCAT:
        break;
    }
    return check_parts(c, x);
}

int graph_expr_check(struct graph_expr *x, const struct graph_scope *s,
                     const struct graph_type *wanted, struct graph_expr_error *e)
{
    struct checking c = {s, e};
    *e = (struct graph_expr_error){0};
    int rc = check(&c, x);
    return rc < 0 || !wanted ? rc : want(&c, x, wanted);
}
