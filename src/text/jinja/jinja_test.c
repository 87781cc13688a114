/* jinja_test.c - what may stand after `is`; see jinja_eval.h. */
#include <math.h>

#include "text/jinja/jinja_eval.h"

enum test_id {
    TEST_BOOLEAN,
    TEST_CALLABLE,
    TEST_ODD,
    TEST_EVEN,
    TEST_FALSE,
    TEST_TRUE,
    TEST_NONE,
    TEST_STRING,
    TEST_NUMBER,
    TEST_INTEGER,
    TEST_FLOAT,
    TEST_ITERABLE,
    TEST_MAPPING,
    TEST_SEQUENCE,
    TEST_LOWER,
    TEST_UPPER,
    TEST_DEFINED,
    TEST_UNDEFINED,
    TEST_SAME, /* from here on: with an argument */
    TEST_DIVISIBLE,
    TEST_OPERATOR,
};

static const struct {
    const char *name;
    enum test_id id;
    enum jinja_op op;
} tests[] = {
    {"boolean", TEST_BOOLEAN, JINJA_OP_NONE},
    {"callable", TEST_CALLABLE, JINJA_OP_NONE},
    {"odd", TEST_ODD, JINJA_OP_NONE},
    {"even", TEST_EVEN, JINJA_OP_NONE},
    {"false", TEST_FALSE, JINJA_OP_NONE},
    {"true", TEST_TRUE, JINJA_OP_NONE},
    {"none", TEST_NONE, JINJA_OP_NONE},
    {"string", TEST_STRING, JINJA_OP_NONE},
    {"number", TEST_NUMBER, JINJA_OP_NONE},
    {"integer", TEST_INTEGER, JINJA_OP_NONE},
    {"float", TEST_FLOAT, JINJA_OP_NONE},
    {"iterable", TEST_ITERABLE, JINJA_OP_NONE},
    {"mapping", TEST_MAPPING, JINJA_OP_NONE},
    {"sequence", TEST_SEQUENCE, JINJA_OP_NONE},
    {"lower", TEST_LOWER, JINJA_OP_NONE},
    {"upper", TEST_UPPER, JINJA_OP_NONE},
    {"defined", TEST_DEFINED, JINJA_OP_NONE},
    {"undefined", TEST_UNDEFINED, JINJA_OP_NONE},
    {"eq", TEST_SAME, JINJA_OP_NONE},
    {"equalto", TEST_SAME, JINJA_OP_NONE},
    {"divisibleby", TEST_DIVISIBLE, JINJA_OP_NONE},
    {"ne", TEST_OPERATOR, JINJA_OP_NE},
    {"lt", TEST_OPERATOR, JINJA_OP_LT},
    {"le", TEST_OPERATOR, JINJA_OP_LE},
    {"gt", TEST_OPERATOR, JINJA_OP_GT},
    {"ge", TEST_OPERATOR, JINJA_OP_GE},
    {"in", TEST_OPERATOR, JINJA_OP_IN},
};

enum { N_TESTS = sizeof(tests) / sizeof(tests[0]) };

/* Whether upper or lower case leaves the string as it is. */
static int same_in_case(struct jinja_run *r, const struct jinja_value *v, bool upper, bool *out)
{
    struct jinja_value other;
    size_t mark = r->out.len;
    *out = false;
    if (v->kind != JINJA_STRING)
        return 0;
    if (!v->str.p)
        return jinja_fail(r, SHOAL_EINVAL, "index past the end of a string");
    if (upper)
        jinja_text_upper(&r->out, v->str);
    else
        jinja_text_lower(&r->out, v->str);
    int rc = jinja_cut(r, mark, &other);
    *out = rc == 0 && jinja_str_eq(v->str, other.str);
    return rc;
}

static int parity(struct jinja_run *r, const struct jinja_value *v, bool odd, bool *out)
{
    if (v->kind != JINJA_INT)
        return jinja_fail(r, SHOAL_EINVAL, "only an integer is odd or even, not %s",
                          jinja_kind_name(v));
    double rest = fmod(v->num, 2);
    *out = odd ? rest != 0 : rest == 0;
    return 0;
}

static int with_argument(struct jinja_run *r, size_t test, const struct jinja_value *v,
                         const struct jinja_value *arg, bool *out)
{
    struct jinja_value result = jinja_bool(false);
    int rc = 0;
    if (!arg || arg->kind == JINJA_ABSENT)
        return jinja_fail(r, SHOAL_EINVAL, "test '%s' needs something to compare with",
                          tests[test].name);
    if (tests[test].id == TEST_SAME) {
        *out = jinja_same(v, arg);
        return 0;
    }
    if (tests[test].id == TEST_DIVISIBLE) {
        if (v->kind != JINJA_INT || arg->kind != JINJA_INT || arg->num == 0)
            return jinja_fail(r, SHOAL_EINVAL, "divisibleby needs integers and no zero");
        *out = fmod(v->num, arg->num) == 0;
        return 0;
    }
    rc = jinja_binary(r, tests[test].op, v, arg, &result);
    *out = rc == 0 && result.b;
    return rc;
}

static size_t find_test(struct jinja_str name)
{
    size_t i = 0;
    while (i < N_TESTS && !jinja_str_is(name, tests[i].name))
        i++;
    return i;
}

int jinja_test_check(struct jinja_run *r, struct jinja_str name)
{
    if (find_test(name) < N_TESTS)
        return 0;
    return jinja_fail(r, SHOAL_EUNSUPPORTED, "test '%.*s' is not supported",
                      name.n < 60 ? (int)name.n : 60, name.p);
}

int jinja_test(struct jinja_run *r, struct jinja_str name, const struct jinja_value *v,
               const struct jinja_value *arg, bool *out)
{
    size_t i = find_test(name);
    if (i == N_TESTS)
        return jinja_test_check(r, name);
    enum jinja_kind k = v->kind;
    enum test_id id = tests[i].id;
    if (k == JINJA_ABSENT && id != TEST_CALLABLE && id != TEST_NUMBER && id != TEST_INTEGER &&
        id != TEST_MAPPING && id != TEST_SEQUENCE)
        return jinja_fail(r, SHOAL_EINVAL, "%s cannot be tested", jinja_kind_name(v));
    bool yes = false;
    int rc = 0;
    switch (id) {
    case TEST_BOOLEAN:
        yes = k == JINJA_BOOL;
        break;
    case TEST_CALLABLE:
        yes = k == JINJA_FUNCTION;
        break;
    case TEST_ODD:
    case TEST_EVEN:
        rc = parity(r, v, id == TEST_ODD, &yes);
        break;
    case TEST_FALSE:
    case TEST_TRUE:
        yes = k == JINJA_BOOL && v->b == (id == TEST_TRUE);
        break;
    case TEST_NONE:
        yes = k == JINJA_NONE;
        break;
    case TEST_STRING:
        yes = k == JINJA_STRING;
        break;
    case TEST_NUMBER:
        yes = jinja_is_number(v);
        break;
    case TEST_INTEGER:
        yes = k == JINJA_INT;
        break;
    case TEST_FLOAT:
        yes = k == JINJA_FLOAT;
        break;
    case TEST_ITERABLE:
        yes = k == JINJA_LIST || k == JINJA_STRING; /* no tuple, no dict, as in the reference */
        break;
    case TEST_MAPPING:
        yes = jinja_is_dict(v);
        break;
    case TEST_SEQUENCE:
        yes = jinja_is_list(v) || jinja_is_dict(v) || k == JINJA_STRING;
        break;
    case TEST_LOWER:
    case TEST_UPPER:
        rc = same_in_case(r, v, id == TEST_UPPER, &yes);
        break;
    case TEST_DEFINED:
        yes = k != JINJA_UNDEFINED;
        break;
    case TEST_UNDEFINED:
        yes = k == JINJA_UNDEFINED;
        break;
    case TEST_SAME:
    case TEST_DIVISIBLE:
    case TEST_OPERATOR:
        rc = with_argument(r, i, v, arg, &yes);
        break;
    }
    *out = yes;
    return rc;
}
