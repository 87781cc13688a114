/* jinja_op.c - binary operators and `not`; see jinja_eval.h. */
#include <math.h>

#include "text/jinja/jinja_eval.h"

bool jinja_not(const struct jinja_value *v)
{
    if (jinja_is_list(v) || jinja_is_dict(v))
        return false; /* the reference asks JavaScript, to which an empty list is true */
    return !jinja_truth(v);
}

static int bad_operands(struct jinja_run *r, enum jinja_op op, const struct jinja_value *a,
                        const struct jinja_value *b)
{
    return jinja_fail(r, SHOAL_EINVAL, "operator '%s' does not work between %s and %s",
                      jinja_op_text(op), jinja_kind_name(a), jinja_kind_name(b));
}

bool jinja_as_number(const struct jinja_value *v, double *out)
{
    *out = v->kind == JINJA_BOOL ? (double)v->b : v->num;
    return v->kind == JINJA_BOOL || jinja_is_number(v);
}

static int power(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b,
                 struct jinja_value *out)
{
    double x, y;
    if (!jinja_as_number(a, &x) || !jinja_as_number(b, &y))
        return bad_operands(r, JINJA_OP_POW, a, b);
    double v = pow(x, y);
    if (fabs(x) == 1 && !isfinite(y))
        v = NAN; /* C says 1 */
    if ((x == 0 && y < 0) || !isfinite(v))
        return jinja_fail(r, SHOAL_EINVAL, "the result of ** is not a finite number");
    bool is_float = a->kind == JINJA_FLOAT || b->kind == JINJA_FLOAT || y < 0;
    *out = is_float ? jinja_float(v) : jinja_int(v);
    return 0;
}

static int arithmetic(struct jinja_run *r, enum jinja_op op, const struct jinja_value *a,
                      const struct jinja_value *b, struct jinja_value *out)
{
    double x = a->num, y = b->num, v;
    switch (op) {
    case JINJA_OP_LT:
        *out = jinja_bool(x < y);
        return 0;
    case JINJA_OP_GT:
        *out = jinja_bool(x > y);
        return 0;
    case JINJA_OP_LE:
        *out = jinja_bool(x <= y);
        return 0;
    case JINJA_OP_GE:
        *out = jinja_bool(x >= y);
        return 0;
    case JINJA_OP_DIV:
        *out = jinja_float(x / y);
        return 0;
    case JINJA_OP_ADD:
        v = x + y;
        break;
    case JINJA_OP_SUB:
        v = x - y;
        break;
    case JINJA_OP_MUL:
        v = x * y;
        break;
    case JINJA_OP_FLOORDIV:
        v = floor(x / y);
        break;
    case JINJA_OP_MOD:
        v = fmod(x, y);
        break;
    default:
        return bad_operands(r, op, a, b);
    }
    *out = a->kind == JINJA_FLOAT || b->kind == JINJA_FLOAT ? jinja_float(v) : jinja_int(v);
    return 0;
}

static int join_lists(struct jinja_run *r, const struct jinja_list *a, const struct jinja_list *b,
                      struct jinja_value *out)
{
    int rc = jinja_charge(r, a->n + b->n);
    if (rc == 0)
        rc = jinja_list_make(r, out, a->n + b->n);
    for (size_t i = 0; rc == 0 && i < a->n; i++)
        rc = jinja_list_push(r, out->list, a->at[i]);
    for (size_t i = 0; rc == 0 && i < b->n; i++)
        rc = jinja_list_push(r, out->list, b->at[i]);
    return rc;
}

static int join_texts(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b,
                      struct jinja_value *out)
{
    struct jinja_str x, y;
    if (jinja_is_hollow(a) || jinja_is_hollow(b))
        return jinja_fail(r, SHOAL_EINVAL, "index past the end of a string");
    int rc = jinja_raw_text(r, a, &x);
    if (rc == 0)
        rc = jinja_raw_text(r, b, &y);
    return rc < 0 ? rc : jinja_concat(r, x, y, out);
}

/* a in b, for b a list, string or dict. */
static int contains(struct jinja_run *r, enum jinja_op op, const struct jinja_value *a,
                    const struct jinja_value *b, bool *out)
{
    bool found = false;
    int rc;
    if (jinja_is_list(b) && !jinja_is_list(a)) {
        rc = jinja_charge(r, b->list->n);
        for (size_t i = 0; rc == 0 && !found && i < b->list->n; i++)
            found = jinja_same(&b->list->at[i], a);
    } else if (a->kind == JINJA_STRING && b->kind == JINJA_STRING && b->str.p) {
        struct jinja_str needle = a->str.p ? a->str : JINJA_STR("undefined");
        rc = jinja_charge(r, b->str.n / 64);
        found = jinja_text_find(b->str, needle, 0) != SIZE_MAX;
    } else if (a->kind == JINJA_STRING && jinja_is_dict(b)) {
        rc = 0;
        found = a->str.p && jinja_dict_get(r, b->dict, a->str) != NULL;
    } else {
        rc = bad_operands(r, op, a, b);
    }
    *out = found;
    return rc;
}

int jinja_binary(struct jinja_run *r, enum jinja_op op, const struct jinja_value *a,
                 const struct jinja_value *b, struct jinja_value *out)
{
    bool yes = false, nothing = b->kind == JINJA_UNDEFINED || (jinja_is_list(b) && b->list->n == 0);
    int rc;
    if ((op == JINJA_OP_IN || op == JINJA_OP_NOT_IN) && nothing &&
        (a->kind == JINJA_ABSENT || b->kind == JINJA_UNDEFINED)) {
        *out = jinja_bool(op == JINJA_OP_NOT_IN);
        return 0;
    }
    if (a->kind == JINJA_ABSENT || b->kind == JINJA_ABSENT)
        return bad_operands(r, op, a, b);
    if (op == JINJA_OP_EQ || op == JINJA_OP_NE) {
        rc = jinja_equal(r, a, b, &yes);
        *out = jinja_bool(yes == (op == JINJA_OP_EQ));
        return rc;
    }
    if (a->kind <= JINJA_NONE || b->kind <= JINJA_NONE)
        return bad_operands(r, op, a, b);
    if (op == JINJA_OP_CONCAT)
        return join_texts(r, a, b, out);
    if (op == JINJA_OP_POW)
        return power(r, a, b, out);
    if (op == JINJA_OP_IN || op == JINJA_OP_NOT_IN) {
        rc = contains(r, op, a, b, &yes);
        *out = jinja_bool(yes == (op == JINJA_OP_IN));
        return rc;
    }
    if (jinja_is_number(a) && jinja_is_number(b))
        return arithmetic(r, op, a, b, out);
    if (op == JINJA_OP_ADD && jinja_is_list(a) && jinja_is_list(b))
        return join_lists(r, a->list, b->list, out);
    if (op == JINJA_OP_ADD && (a->kind == JINJA_STRING || b->kind == JINJA_STRING))
        return join_texts(r, a, b, out);
    return bad_operands(r, op, a, b);
}
