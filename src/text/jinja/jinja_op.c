/* jinja_op.c - operators; see jinja_eval.h. */
#include <math.h>

#include "text/jinja/jinja_eval.h"

static int bad_operands(struct jinja_run *r, enum jinja_op op, const struct jinja_value *a,
                        const struct jinja_value *b)
{
    if (a->kind == JINJA_UNDEFINED || b->kind == JINJA_UNDEFINED)
        return jinja_fail_undefined(r, a->kind == JINJA_UNDEFINED ? a : b);
    if (a->kind == JINJA_BIGINT || b->kind == JINJA_BIGINT)
        return jinja_fail(r, SHOAL_ELIMIT,
                          "integers of more than 64 bits are not supported in computations");
    return jinja_fail(r, SHOAL_EINVAL, "operator '%s' does not work between %s and %s",
                      jinja_op_text(op), jinja_kind_name(a), jinja_kind_name(b));
}

static int too_large(struct jinja_run *r)
{
    return jinja_fail(r, SHOAL_ELIMIT, "the result is an integer of more than 64 bits");
}

/* ---- numbers -------------------------------------------------------------------------------- */

static int int_power(struct jinja_run *r, int64_t x, int64_t y, struct jinja_value *out)
{
    int64_t v = 1;
    if (y < 0) {
        if (x == 0)
            return jinja_fail(r, SHOAL_EINVAL, "division by zero");
        *out = jinja_float(pow((double)x, (double)y));
        return 0;
    }
    if (x == 0 || x == 1 || x == -1) {
        *out = jinja_int(x == 0 ? y == 0 : x == 1 || y % 2 == 0 ? 1 : -1);
        return 0;
    }
    for (; y > 0; y--) /* at most 63 turns before it overflows */
        if (__builtin_mul_overflow(v, x, &v))
            return too_large(r);
    *out = jinja_int(v);
    return 0;
}

static int int_arithmetic(struct jinja_run *r, enum jinja_op op, int64_t x, int64_t y,
                          struct jinja_value *out)
{
    int64_t v = 0;
    bool over = false;
    switch (op) {
    case JINJA_OP_ADD:
        over = __builtin_add_overflow(x, y, &v);
        break;
    case JINJA_OP_SUB:
        over = __builtin_sub_overflow(x, y, &v);
        break;
    case JINJA_OP_MUL:
        over = __builtin_mul_overflow(x, y, &v);
        break;
    case JINJA_OP_POW:
        return int_power(r, x, y, out);
    default:
        if (y == 0)
            return jinja_fail(r, SHOAL_EINVAL, "division by zero");
        if (op == JINJA_OP_DIV) {
            *out = jinja_float((double)x / (double)y);
            return 0;
        }
        if (y == -1) {
            over = op == JINJA_OP_FLOORDIV && __builtin_sub_overflow((int64_t)0, x, &v);
            break;
        }
        v = op == JINJA_OP_FLOORDIV ? x / y : x % y;
        if (x % y != 0 && (x % y < 0) != (y < 0)) /* rounds down, not towards zero */
            v += op == JINJA_OP_FLOORDIV ? -1 : y;
        break;
    }
    *out = jinja_int(v);
    return over ? too_large(r) : 0;
}

/* x // y and x % y of floats, as Python computes them. */
static double float_divide(double x, double y, double *mod)
{
    double m = fmod(x, y), div = (x - m) / y;
    if (m != 0 && (y < 0) != (m < 0)) {
        m += y;
        div -= 1;
    } else if (m == 0) {
        m = copysign(0, y);
    }
    *mod = m;
    if (div == 0)
        return copysign(0, x / y);
    double floored = floor(div);
    return div - floored > 0.5 ? floored + 1 : floored;
}

static int float_arithmetic(struct jinja_run *r, enum jinja_op op, double x, double y,
                            struct jinja_value *out)
{
    double v, mod;
    if (y == 0 && (op == JINJA_OP_DIV || op == JINJA_OP_FLOORDIV || op == JINJA_OP_MOD))
        return jinja_fail(r, SHOAL_EINVAL, "division by zero");
    switch (op) {
    case JINJA_OP_ADD:
        v = x + y;
        break;
    case JINJA_OP_SUB:
        v = x - y;
        break;
    case JINJA_OP_MUL:
        v = x * y;
        break;
    case JINJA_OP_DIV:
        v = x / y;
        break;
    case JINJA_OP_POW:
        v = pow(x, y);
        if ((x == 0 && y < 0) || (isfinite(x) && isfinite(y) && !isfinite(v)))
            return jinja_fail(r, SHOAL_EINVAL, "the result of ** is not a finite number");
        break;
    default:
        v = float_divide(x, y, &mod);
        if (op == JINJA_OP_MOD)
            v = mod;
        break;
    }
    *out = jinja_float(v);
    return 0;
}

/* ---- strings and lists ---------------------------------------------------------------------- */

/* a + b of strings; if one is marked as safe, the other is escaped. */
static int add_texts(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b,
                     struct jinja_value *out)
{
    struct jinja_value x = *a, y = *b;
    bool markup = a->markup || b->markup;
    int rc = markup && !x.markup ? jinja_string_escape(r, a->str, &x) : 0;
    if (rc == 0 && markup && !y.markup)
        rc = jinja_string_escape(r, b->str, &y);
    if (rc == 0)
        rc = jinja_concat(r, x.str, y.str, out);
    out->markup = markup;
    return rc;
}

static int add_lists(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b,
                     struct jinja_value *out)
{
    const struct jinja_list *const parts[] = {a->list, b->list};
    int rc = jinja_charge(r, parts[0]->n + parts[1]->n);
    if (rc == 0)
        rc = jinja_list_make(r, out, parts[0]->n + parts[1]->n);
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; rc == 0 && i < parts[k]->n; i++)
            rc = jinja_list_push(r, out->list, parts[k]->at[i]);
    out->kind = a->kind;
    return rc;
}

/* v * n for a string, list or tuple */
static int repeat(struct jinja_run *r, const struct jinja_value *v, int64_t n,
                  struct jinja_value *out)
{
    size_t mark = r->out.len;
    bool text = v->kind == JINJA_STRING;
    int rc = text ? 0 : jinja_list_make(r, out, 0);
    if ((text ? v->str.n : v->list->n) == 0)
        n = 0;
    for (int64_t i = 0; rc == 0 && i < n; i++) {
        rc = jinja_charge(r, text ? 1 + v->str.n / 64 : v->list->n);
        if (rc == 0 && text) {
            buf_put(&r->out, v->str.p, v->str.n);
            rc = jinja_check_out(r);
        }
        for (size_t k = 0; rc == 0 && !text && k < v->list->n; k++)
            rc = jinja_list_push(r, out->list, v->list->at[k]);
    }
    if (rc == 0 && text)
        rc = jinja_cut(r, mark, out);
    out->kind = v->kind;
    out->markup = v->markup;
    return rc;
}

static bool is_repeatable(const struct jinja_value *v)
{
    return v->kind == JINJA_STRING || jinja_is_list(v);
}

int jinja_binary(struct jinja_run *r, enum jinja_op op, const struct jinja_value *a,
                 const struct jinja_value *b, struct jinja_value *out)
{
    int64_t i, k;
    double x, y;
    if (jinja_as_int(a, &i) && jinja_as_int(b, &k))
        return int_arithmetic(r, op, i, k, out);
    if (jinja_as_number(a, &x) && jinja_as_number(b, &y))
        return float_arithmetic(r, op, x, y, out);
    if (op == JINJA_OP_ADD && a->kind == JINJA_STRING && b->kind == JINJA_STRING)
        return add_texts(r, a, b, out);
    if (op == JINJA_OP_ADD && jinja_is_list(a) && a->kind == b->kind)
        return add_lists(r, a, b, out);
    if (op == JINJA_OP_MUL && is_repeatable(a) && jinja_as_int(b, &k))
        return repeat(r, a, k, out);
    if (op == JINJA_OP_MUL && is_repeatable(b) && jinja_as_int(a, &i))
        return repeat(r, b, i, out);
    if (op == JINJA_OP_MOD && a->kind == JINJA_STRING) {
        int rc = jinja_format_percent(r, a->str, b, out);
        out->markup = a->markup;
        return rc;
    }
    return bad_operands(r, op, a, b);
}

/* ---- comparison ----------------------------------------------------------------------------- */

int jinja_order(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b,
                int *out)
{
    int64_t i, k;
    double x, y;
    bool same = false;
    *out = 0;
    int rc = jinja_charge(r, 1);
    if (rc < 0)
        return rc;
    if (jinja_as_int(a, &i) && jinja_as_int(b, &k)) {
        *out = (i > k) - (i < k);
        return 0;
    }
    if (jinja_as_number(a, &x) && jinja_as_number(b, &y)) {
        *out = x > y ? 1 : x < y ? -1 : x == y ? 0 : 2; /* 2: neither, one is not a number */
        return 0;
    }
    if (a->kind == JINJA_STRING && b->kind == JINJA_STRING) {
        *out = jinja_text_compare(a->str, b->str);
        return jinja_charge(r, a->str.n / 64);
    }
    if (!jinja_is_list(a) || a->kind != b->kind)
        return bad_operands(r, JINJA_OP_LT, a, b);
    if (++r->depth > JINJA_MAX_DEPTH)
        return jinja_fail(r, SHOAL_ELIMIT, "values are nested too deeply to compare");
    for (size_t n = 0; rc == 0 && *out == 0; n++) {
        if (n == a->list->n || n == b->list->n) {
            *out = (a->list->n > b->list->n) - (a->list->n < b->list->n);
            break;
        }
        rc = jinja_equal(r, &a->list->at[n], &b->list->at[n], &same);
        if (rc == 0 && !same)
            rc = jinja_order(r, &a->list->at[n], &b->list->at[n], out);
    }
    r->depth--;
    return rc;
}

static int in_list(struct jinja_run *r, const struct jinja_value *a, const struct jinja_list *l,
                   bool *out)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && !*out && i < l->n; i++)
        rc = jinja_equal(r, &l->at[i], a, out);
    return rc;
}

/* a in b */
static int contains(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b,
                    bool *out)
{
    struct jinja_list *items;
    const struct jinja_value *found = NULL;
    int rc;
    *out = false;
    if (b->kind == JINJA_STRING) {
        if (a->kind != JINJA_STRING)
            return bad_operands(r, JINJA_OP_IN, a, b);
        *out = jinja_text_find(b->str, a->str, 0) != SIZE_MAX;
        return jinja_charge(r, b->str.n / 64);
    }
    if (b->kind == JINJA_DICT || (b->kind == JINJA_VIEW && b->view->of == JINJA_VIEW_KEYS)) {
        rc = jinja_dict_find(r, b->kind == JINJA_DICT ? b->dict : b->view->dict, a, &found);
        *out = found != NULL;
        return rc;
    }
    if (!jinja_is_iterable(b))
        return bad_operands(r, JINJA_OP_IN, a, b);
    rc = jinja_iterate(r, b, &items);
    return rc < 0 ? rc : in_list(r, a, items, out);
}

int jinja_compare(struct jinja_run *r, enum jinja_op op, const struct jinja_value *a,
                  const struct jinja_value *b, bool *out)
{
    int c = 0, rc;
    if (op == JINJA_OP_EQ || op == JINJA_OP_NE) {
        rc = jinja_equal(r, a, b, out);
        *out = *out == (op == JINJA_OP_EQ);
        return rc;
    }
    if (op == JINJA_OP_IN || op == JINJA_OP_NOT_IN) {
        rc = contains(r, a, b, out);
        *out = *out == (op == JINJA_OP_IN);
        return rc;
    }
    if (a->kind == JINJA_UNDEFINED || b->kind == JINJA_UNDEFINED)
        return bad_operands(r, op, a, b);
    rc = jinja_order(r, a, b, &c);
    if (c == 2)
        *out = false;
    else
        *out = op == JINJA_OP_LT   ? c < 0
               : op == JINJA_OP_LE ? c <= 0
               : op == JINJA_OP_GT ? c > 0
                                   : c >= 0;
    return rc;
}
