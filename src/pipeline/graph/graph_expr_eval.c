/* graph_expr_eval.c - see graph_expr.h: the value of an expression. */
#include <math.h>
#include <string.h>

#include "base/ascii.h"
#include "base/decimal.h"
#include "pipeline/graph/graph_expr.h"
#include "pipeline/graph/graph_expr_int.h"
#include "wire/value_json.h"

#define MAX_DIGITS 9.0

struct evaluation {
    const struct graph_values *values;
    struct arena *arena;
    enum graph_expr_form form;
    struct err *e;
};

static int eval(struct evaluation *v, const struct graph_expr *x, struct value *out);

static struct value number_value(double d)
{
    return (struct value){.kind = VALUE_NUMBER, .number = d};
}

/* ---- values as text ---- */

static void put_url(struct buf *b, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = p[i];
        bool plain = ascii_is_digit(c) || ascii_is_letter(c) || (c && strchr("-._~", c));
        if (plain)
            buf_putc(b, c);
        else
            buf_printf(b, "%%%02X", (unsigned char)c);
    }
}

static void put_level(struct buf *b, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_putc(b, (unsigned char)p[i] < ' ' || strchr("/+#", p[i]) ? '_' : p[i]);
}

/* Between the quotes of a JSON text. */
static void put_json_text(struct buf *b, const char *p, size_t n)
{
    struct buf quoted;
    buf_init(&quoted, b->max);
    struct json_out j = json_out_make(&quoted);
    json_out_strn(&j, p, n);
    if (quoted.rc < 0)
        b->rc = b->rc < 0 ? b->rc : quoted.rc;
    else
        buf_put(b, quoted.data + 1, quoted.len - 2);
    buf_fini(&quoted);
}

static void put_text(struct buf *b, const char *p, size_t n, enum graph_expr_form form)
{
    if (form == GRAPH_EXPR_JSON)
        put_json_text(b, p, n);
    else if (form == GRAPH_EXPR_URL)
        put_url(b, p, n);
    else if (form == GRAPH_EXPR_TOPIC)
        put_level(b, p, n);
    else
        buf_put(b, p, n);
}

void graph_expr_put(struct buf *b, const struct value *v, enum graph_expr_form form)
{
    struct buf own;
    if (v->kind == VALUE_TEXT) {
        put_text(b, v->text.p, v->text.n, form);
        return;
    }
    if (v->kind == VALUE_NULL)
        return;
    buf_init(&own, b->max);
    struct json_out j = json_out_make(&own);
    value_json_put(&j, v);
    if (own.rc < 0)
        b->rc = b->rc < 0 ? b->rc : own.rc;
    else
        put_text(b, buf_str(&own), own.len, form);
    buf_fini(&own);
}

/* Moves what was written into the arena. */
static int take_text(struct evaluation *v, struct buf *b, struct value *out)
{
    int rc = 0;
    char *copy = b->rc < 0 ? NULL : arena_copy(v->arena, buf_str(b), b->len + 1);
    if (b->rc == SHOAL_ELIMIT)
        rc = err_set(v->e, SHOAL_ELIMIT, "a text is longer than %zu bytes", GRAPH_EXPR_MAX_TEXT);
    else if (!copy)
        rc = err_set(v->e, SHOAL_ENOMEM, "out of memory");
    else
        *out = value_text(copy, b->len);
    buf_fini(b);
    return rc;
}

static int eval_concat(struct evaluation *v, const struct graph_expr *x, struct value *out)
{
    struct buf b;
    int rc = 0;
    buf_init(&b, GRAPH_EXPR_MAX_TEXT);
    for (uint32_t i = 0; rc == 0 && i < x->n_args; i++) {
        struct value part;
        rc = eval(v, x->args[i], &part);
        if (rc == 0)
            graph_expr_put(&b, &part, x->args[i]->inserted ? v->form : GRAPH_EXPR_PLAIN);
    }
    if (rc < 0) {
        buf_fini(&b);
        return rc;
    }
    return take_text(v, &b, out);
}

/* ---- kinds: what types of `any` value cannot tell before ---- */

static int want_kind(struct evaluation *v, const struct value *x, enum value_kind kind)
{
    static const char *const names[] = {"nothing", "true or false", "a number",
                                        "a text",  "a list",        "a map"};
    if (x->kind == kind)
        return 0;
    return err_set(v->e, SHOAL_EINVAL, "%s was found where %s is needed", names[x->kind],
                   names[kind]);
}

static int eval_kind(struct evaluation *v, const struct graph_expr *x, enum value_kind kind,
                     struct value *out)
{
    int rc = eval(v, x, out);
    return rc < 0 ? rc : want_kind(v, out, kind);
}

/* ---- paths ---- */

static int eval_field(struct evaluation *v, const struct graph_expr *x, struct value *out)
{
    struct value map;
    int rc = eval(v, x->a, &map);
    if (rc < 0)
        return rc;
    const struct value *m = graph_type_member(&map, x->name, x->name_bytes);
    *out = m ? *m : graph_type_empty(x->type);
    return 0;
}

static int eval_index(struct evaluation *v, const struct graph_expr *x, struct value *out)
{
    struct value list;
    int rc = eval(v, x->a, &list);
    if (rc < 0)
        return rc;
    bool there = list.kind == VALUE_LIST && x->index < list.list.n;
    *out = there ? list.list.items[x->index] : graph_type_empty(x->type);
    return 0;
}

/* ---- operators ---- */

static bool is_equal(const struct value *a, const struct value *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case VALUE_NULL:
        return true;
    case VALUE_BOOL:
        return a->boolean == b->boolean;
    case VALUE_NUMBER:
        return a->number == b->number;
    case VALUE_TEXT:
        return a->text.n == b->text.n && memcmp(a->text.p, b->text.p, a->text.n) == 0;
    default:
        return false;
    }
}

static int eval_logic(struct evaluation *v, const struct graph_expr *x, struct value *out)
{
    int rc = eval_kind(v, x->a, VALUE_BOOL, out);
    if (rc < 0)
        return rc;
    if (x->op == GRAPH_OP_NOT)
        out->boolean = !out->boolean;
    else if (out->boolean == (x->op == GRAPH_OP_AND))
        rc = eval_kind(v, x->b, VALUE_BOOL, out);
    return rc;
}

static int eval_numbers(struct evaluation *v, const struct graph_expr *x, struct value *out)
{
    struct value a, b = number_value(0);
    double d = 0;
    int rc = eval_kind(v, x->a, VALUE_NUMBER, &a);
    if (rc == 0 && x->b)
        rc = eval_kind(v, x->b, VALUE_NUMBER, &b);
    if (rc < 0)
        return rc;
    switch (x->op) {
    case GRAPH_OP_LT:
        *out = value_bool(a.number < b.number);
        return 0;
    case GRAPH_OP_LE:
        *out = value_bool(a.number <= b.number);
        return 0;
    case GRAPH_OP_GT:
        *out = value_bool(a.number > b.number);
        return 0;
    case GRAPH_OP_GE:
        *out = value_bool(a.number >= b.number);
        return 0;
    case GRAPH_OP_ADD:
        d = a.number + b.number;
        break;
    case GRAPH_OP_SUB:
        d = a.number - b.number;
        break;
    case GRAPH_OP_MUL:
        d = a.number * b.number;
        break;
    case GRAPH_OP_DIV:
        if (b.number == 0)
            return err_set(v->e, SHOAL_EINVAL, "a division by zero");
        d = a.number / b.number;
        break;
    default:
        d = -a.number;
        break;
    }
    if (!isfinite(d))
        return err_set(v->e, SHOAL_EINVAL, "a number is too large");
    *out = number_value(d);
    return 0;
}

/* ---- functions ---- */

static int change_case(struct evaluation *v, struct value *x, bool upper)
{
    char *copy = arena_copy(v->arena, x->text.n ? x->text.p : "", x->text.n + 1);
    if (!copy)
        return err_set(v->e, SHOAL_ENOMEM, "out of memory");
    for (size_t i = 0; i < x->text.n; i++)
        copy[i] = upper ? ascii_upper(copy[i]) : ascii_lower(copy[i]);
    *x = value_text(copy, x->text.n);
    return 0;
}

static int trim(struct evaluation *v, struct value *x)
{
    const char *p = x->text.p;
    size_t n = x->text.n;
    while (n > 0 && strchr(" \t\r\n", p[n - 1]) && p[n - 1])
        n--;
    while (n > 0 && strchr(" \t\r\n", *p) && *p) {
        p++;
        n--;
    }
    char *copy = arena_copy(v->arena, n ? p : "", n + 1);
    if (!copy)
        return err_set(v->e, SHOAL_ENOMEM, "out of memory");
    copy[n] = '\0';
    *x = value_text(copy, n);
    return 0;
}

static bool contains(const struct value *x, const struct value *part)
{
    if (x->kind == VALUE_TEXT)
        return memmem(x->text.p, x->text.n, part->text.p, part->text.n) != NULL;
    for (size_t i = 0; x->kind == VALUE_LIST && i < x->list.n; i++)
        if (is_equal(&x->list.items[i], part))
            return true;
    return false;
}

static int join(struct evaluation *v, const struct value *list, const struct value *between,
                struct value *out)
{
    struct buf b;
    int rc = want_kind(v, list, VALUE_LIST);
    if (rc < 0)
        return rc;
    buf_init(&b, GRAPH_EXPR_MAX_TEXT);
    for (size_t i = 0; i < list->list.n; i++) {
        if (i > 0)
            buf_put(&b, between->text.p, between->text.n);
        graph_expr_put(&b, &list->list.items[i], GRAPH_EXPR_PLAIN);
    }
    return take_text(v, &b, out);
}

static int to_number(struct evaluation *v, const struct value *x, struct value *out)
{
    size_t n = decimal_span(x->text.p, x->text.n);
    double d = n > 0 && n == x->text.n ? decimal_read(x->text.p, n) : NAN;
    if (!isfinite(d))
        return err_set(v->e, SHOAL_EINVAL, "'%.*s' is not a number",
                       x->text.n < 40 ? (int)x->text.n : 40, x->text.p);
    *out = number_value(d);
    return 0;
}

static int to_text(struct evaluation *v, const struct value *x, struct value *out)
{
    struct buf b;
    if (x->kind == VALUE_TEXT) {
        *out = *x;
        return 0;
    }
    buf_init(&b, GRAPH_EXPR_MAX_TEXT);
    graph_expr_put(&b, x, GRAPH_EXPR_PLAIN);
    return take_text(v, &b, out);
}

static int eval_call(struct evaluation *v, const struct graph_expr *x, struct value *out)
{
    struct value a, b = {.kind = VALUE_NULL};
    int rc = eval(v, x->args[0], &a);
    if (rc == 0 && x->n_args > 1)
        rc = eval(v, x->args[1], &b);
    if (rc < 0)
        return rc;
    bool list = a.kind == VALUE_LIST && (x->fn == GRAPH_FN_LEN || x->fn == GRAPH_FN_CONTAINS);
    bool any = x->fn == GRAPH_FN_DEFAULT || x->fn == GRAPH_FN_JOIN || x->fn == GRAPH_FN_TEXT;
    if (!any && !list)
        rc = want_kind(v, &a, x->fn == GRAPH_FN_ROUND ? VALUE_NUMBER : VALUE_TEXT);
    if (rc == 0 && x->n_args > 1 && x->fn != GRAPH_FN_DEFAULT)
        rc = want_kind(v, &b, x->fn == GRAPH_FN_ROUND ? VALUE_NUMBER : VALUE_TEXT);
    if (rc < 0)
        return rc;
    *out = a;
    switch (x->fn) {
    case GRAPH_FN_LEN:
        *out = number_value((double)(a.kind == VALUE_LIST ? a.list.n : a.text.n));
        return 0;
    case GRAPH_FN_LOWER:
    case GRAPH_FN_UPPER:
        return change_case(v, out, x->fn == GRAPH_FN_UPPER);
    case GRAPH_FN_TRIM:
        return trim(v, out);
    case GRAPH_FN_CONTAINS:
        *out = value_bool(contains(&a, &b));
        return 0;
    case GRAPH_FN_STARTS:
        *out = value_bool(a.text.n >= b.text.n && memcmp(a.text.p, b.text.p, b.text.n) == 0);
        return 0;
    case GRAPH_FN_DEFAULT:
        *out = graph_type_is_empty(&a) ? b : a;
        return 0;
    case GRAPH_FN_JOIN:
        return join(v, &a, &b, out);
    case GRAPH_FN_ROUND: {
        double digits = b.number < 0 ? 0 : b.number > MAX_DIGITS ? MAX_DIGITS : floor(b.number);
        double scale = pow(10, digits), scaled = round(a.number * scale) / scale;
        *out = number_value(isfinite(scaled) ? scaled : a.number);
        return 0;
    }
    case GRAPH_FN_NUMBER:
        return to_number(v, &a, out);
    case GRAPH_FN_TEXT:
    case GRAPH_FN_N:
        break;
    }
    return to_text(v, &a, out);
}

static int eval(struct evaluation *v, const struct graph_expr *x, struct value *out)
{
    struct value a, b;
    const struct value *found;
    int rc;
    switch (x->op) {
    case GRAPH_OP_CONST:
        *out = x->value;
        return 0;
    case GRAPH_OP_NAME:
        found = v->values->get(v->values, x->name, x->name_bytes);
        *out = found ? *found : graph_type_empty(x->type);
        return 0;
    case GRAPH_OP_FIELD:
        return eval_field(v, x, out);
    case GRAPH_OP_INDEX:
        return eval_index(v, x, out);
    case GRAPH_OP_NOT:
    case GRAPH_OP_OR:
    case GRAPH_OP_AND:
        return eval_logic(v, x, out);
    case GRAPH_OP_EQ:
    case GRAPH_OP_NE:
        rc = eval(v, x->a, &a);
        if (rc == 0)
            rc = eval(v, x->b, &b);
        if (rc == 0)
            *out = value_bool(is_equal(&a, &b) == (x->op == GRAPH_OP_EQ));
        return rc;
    case GRAPH_OP_CALL:
        return eval_call(v, x, out);
    case GRAPH_OP_CONCAT:
        return eval_concat(v, x, out);
    default:
        return eval_numbers(v, x, out);
    }
}

int graph_expr_eval(struct value *out, const struct graph_expr *x, const struct graph_values *vals,
                    enum graph_expr_form form, struct arena *a, struct err *e)
{
    struct evaluation v = {vals, a, form, e};
    struct buf b;
    *out = (struct value){.kind = VALUE_NULL};
    int rc = eval(&v, x, out);
    if (rc < 0 || form == GRAPH_EXPR_PLAIN || x->op == GRAPH_OP_CONCAT || !x->inserted)
        return rc;
    buf_init(&b, GRAPH_EXPR_MAX_TEXT); /* one ${...} alone is inserted too */
    graph_expr_put(&b, out, form);
    return take_text(&v, &b, out);
}
