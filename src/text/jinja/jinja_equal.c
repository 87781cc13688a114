/* jinja_equal.c - see jinja_equal.h. */
#include "text/jinja/jinja_equal.h"

#include "text/jinja/jinja_print.h"

/* The type of a value's content in JavaScript, which decides how == converts. */
enum js_type { JS_UNDEFINED, JS_BOOL, JS_NUMBER, JS_STRING, JS_OBJECT };

static enum js_type js_type_of(const struct jinja_value *v)
{
    switch (v->kind) {
    case JINJA_ABSENT:
    case JINJA_UNDEFINED:
    case JINJA_NONE: /* whose content in the reference is undefined, too */
        return JS_UNDEFINED;
    case JINJA_BOOL:
        return JS_BOOL;
    case JINJA_INT:
    case JINJA_FLOAT:
        return JS_NUMBER;
    case JINJA_STRING:
        return v->str.p ? JS_STRING : JS_UNDEFINED;
    default:
        return JS_OBJECT;
    }
}

static const void *identity(const struct jinja_value *v)
{
    if (jinja_is_list(v))
        return v->list;
    return v->kind == JINJA_FUNCTION ? (const void *)v->function : v->dict;
}

bool jinja_same(const struct jinja_value *a, const struct jinja_value *b)
{
    enum js_type type = js_type_of(a);
    if (type != js_type_of(b))
        return false;
    switch (type) {
    case JS_BOOL:
        return a->b == b->b;
    case JS_NUMBER:
        return a->num == b->num;
    case JS_STRING:
        return jinja_str_eq(a->str, b->str);
    case JS_OBJECT:
        return identity(a) == identity(b);
    default:
        return true;
    }
}

int jinja_equal(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b,
                bool *out)
{
    enum js_type ta = js_type_of(a), tb = js_type_of(b);
    *out = false;
    if (ta == tb) {
        *out = jinja_same(a, b);
        return 0;
    }
    if (ta == JS_UNDEFINED || tb == JS_UNDEFINED)
        return 0;
    if (tb == JS_OBJECT) {
        const struct jinja_value *v = a;
        a = b;
        b = v;
        ta = tb;
        tb = js_type_of(b);
    }
    /* Now b is a boolean, a number or a string; so is a, or it is a list or dict that counts as
     * its text. */
    struct jinja_str text = {0};
    if (ta == JS_OBJECT) {
        int rc = jinja_raw_text(r, a, &text);
        if (rc < 0)
            return rc;
        if (tb == JS_STRING) {
            *out = jinja_str_eq(text, b->str);
            return 0;
        }
    }
    double x = ta == JS_OBJECT   ? jinja_text_to_number(text)
               : ta == JS_STRING ? jinja_text_to_number(a->str)
               : ta == JS_BOOL   ? (double)a->b
                                 : a->num;
    double y = tb == JS_STRING ? jinja_text_to_number(b->str)
               : tb == JS_BOOL ? (double)b->b
                               : b->num;
    *out = x == y;
    return 0;
}
