/* jinja_test.c - tests: v is name(arguments); see jinja_eval.h. */
#include "text/jinja/jinja_eval.h"
#include "text/jinja/jinja_names.h"

/* v % n == rest */
static int has_rest(struct jinja_run *r, const struct jinja_value *v, const struct jinja_value *n,
                    int64_t rest, bool *out)
{
    struct jinja_value left, want = jinja_int(rest);
    int rc = jinja_binary(r, JINJA_OP_MOD, v, n, &left);
    return rc < 0 ? rc : jinja_equal(r, &left, &want, out);
}

/* str(v).islower() or isupper() */
static int is_in_case(struct jinja_run *r, const struct jinja_value *v, bool upper, bool *out)
{
    struct jinja_str s;
    bool cased = false, all = true;
    int rc = jinja_print_text(r, v, &s);
    for (size_t i = 0; rc == 0 && all && i < s.n;) {
        uint32_t cp;
        i += jinja_text_next(s.p + i, s.n - i, &cp);
        if (!jinja_text_is_cased(cp))
            continue;
        cased = true;
        all = upper ? jinja_text_is_upper(cp) : jinja_text_is_lower(cp);
    }
    *out = cased && all;
    return rc;
}

/* Are they one object?  Small integers and short strings are in Python, too. */
static int is_same(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b,
                   bool *out)
{
    *out = false;
    if (a->kind != b->kind)
        return 0;
    if (jinja_is_list(a)) {
        *out = a->list == b->list;
        return 0;
    }
    if (a->kind == JINJA_DICT) {
        *out = a->dict == b->dict;
        return 0;
    }
    return jinja_equal(r, a, b, out);
}

/* Tests of one value; false: id is not one of them. */
static bool of_kind(int id, const struct jinja_value *v, bool *out)
{
    enum jinja_kind k = v->kind;
    switch (id) {
    case JINJA_TEST_DEFINED:
        *out = k != JINJA_UNDEFINED;
        return true;
    case JINJA_TEST_UNDEFINED:
        *out = k == JINJA_UNDEFINED;
        return true;
    case JINJA_TEST_NONE:
        *out = k == JINJA_NONE;
        return true;
    case JINJA_TEST_BOOLEAN:
        *out = k == JINJA_BOOL;
        return true;
    case JINJA_TEST_TRUE:
    case JINJA_TEST_FALSE:
        *out = k == JINJA_BOOL && v->b == (id == JINJA_TEST_TRUE);
        return true;
    case JINJA_TEST_INTEGER:
        *out = k == JINJA_INT || k == JINJA_BIGINT;
        return true;
    case JINJA_TEST_FLOAT:
        *out = k == JINJA_FLOAT;
        return true;
    case JINJA_TEST_NUMBER:
        *out = k == JINJA_BOOL || k == JINJA_INT || k == JINJA_BIGINT || k == JINJA_FLOAT;
        return true;
    case JINJA_TEST_STRING:
        *out = k == JINJA_STRING;
        return true;
    case JINJA_TEST_MAPPING:
        *out = k == JINJA_DICT;
        return true;
    case JINJA_TEST_SEQUENCE: /* has a length and items by index; undefined claims both */
        *out = k == JINJA_STRING || jinja_is_list(v) || k == JINJA_DICT || k == JINJA_RANGE ||
               k == JINJA_UNDEFINED;
        return true;
    case JINJA_TEST_ITERABLE:
        *out = jinja_is_iterable(v);
        return true;
    case JINJA_TEST_CALLABLE:
        *out = k == JINJA_FUNCTION || k == JINJA_UNDEFINED || k == JINJA_LOOP;
        return true;
    case JINJA_TEST_ESCAPED:
        *out = k == JINJA_STRING && v->markup;
        return true;
    default:
        return false;
    }
}

static enum jinja_op comparison(int id)
{
    switch (id) {
    case JINJA_TEST_EQ:
    case JINJA_TEST_EQ_:
    case JINJA_TEST_EQ__:
        return JINJA_OP_EQ;
    case JINJA_TEST_NE:
    case JINJA_TEST_NE_:
        return JINJA_OP_NE;
    case JINJA_TEST_LT:
    case JINJA_TEST_LT_:
    case JINJA_TEST_LT__:
        return JINJA_OP_LT;
    case JINJA_TEST_LE:
    case JINJA_TEST_LE_:
        return JINJA_OP_LE;
    case JINJA_TEST_GT:
    case JINJA_TEST_GT_:
    case JINJA_TEST_GT__:
        return JINJA_OP_GT;
    case JINJA_TEST_GE:
    case JINJA_TEST_GE_:
        return JINJA_OP_GE;
    case JINJA_TEST_IN:
        return JINJA_OP_IN;
    default:
        return JINJA_OP_NONE;
    }
}

static int is_known(struct jinja_run *r, int id, const struct jinja_value *v, bool *out)
{
    if (v->kind != JINJA_STRING)
        return jinja_fail(r, SHOAL_EINVAL, "names of filters and tests are strings");
    *out = (id == JINJA_TEST_FILTER ? jinja_names_filter(v->str) : jinja_names_test(v->str)) !=
           JINJA_NAME_UNKNOWN;
    return 0;
}

int jinja_test(struct jinja_run *r, int id, struct jinja_str name, const struct jinja_value *v,
               const struct jinja_args *args, bool *out)
{
    static const char *const num[] = {"num"}, *const unnamed[] = {"", ""};
    const struct jinja_value two = jinja_int(2);
    struct jinja_value arg;
    if (id < 0)
        return jinja_fail(r, SHOAL_EUNSUPPORTED, "test '%.*s' does not exist",
                          name.n < 60 ? (int)name.n : 60, name.p);
    enum jinja_op op = comparison(id);
    size_t n = op != JINJA_OP_NONE || id == JINJA_TEST_DIVISIBLEBY || id == JINJA_TEST_SAMEAS;
    int rc = jinja_args_bind(r, "the test", args, id == JINJA_TEST_DIVISIBLEBY ? num : unnamed, n,
                             n, &arg);
    if (rc < 0 || of_kind(id, v, out))
        return rc;
    switch (id) {
    case JINJA_TEST_ODD:
        return has_rest(r, v, &two, 1, out);
    case JINJA_TEST_EVEN:
        return has_rest(r, v, &two, 0, out);
    case JINJA_TEST_DIVISIBLEBY:
        return has_rest(r, v, &arg, 0, out);
    case JINJA_TEST_LOWER:
    case JINJA_TEST_UPPER:
        return is_in_case(r, v, id == JINJA_TEST_UPPER, out);
    case JINJA_TEST_SAMEAS:
        return is_same(r, v, &arg, out);
    case JINJA_TEST_FILTER:
    case JINJA_TEST_TEST:
        return is_known(r, id, v, out);
    default:
        return jinja_compare(r, op, v, &arg, out);
    }
}
