/* jinja_filter.c - what may stand after |; see jinja_eval.h.
 *
 * Which kinds of value a filter takes, and what it makes of them, follows the reference.  Some
 * forms that the reference lacks follow Jinja itself, because templates use them: x|f() as x|f,
 * select, reject, map('filter'), selectattr with arguments other than literal strings, default
 * without arguments, escape, and list, first, last, reverse on strings and dicts. */
#include <math.h>

#include "text/jinja/jinja_eval.h"
#include "text/jinja/jinja_json.h"
#include "text/jinja/jinja_node.h"

enum filter_id {
    FILTER_ABS,
    FILTER_BOOL,
    FILTER_CAPITALIZE,
    FILTER_DEFAULT,
    FILTER_DICT, /* the dict's method of the same name */
    FILTER_ESCAPE,
    FILTER_FIRST,
    FILTER_FLOAT,
    FILTER_INDENT,
    FILTER_INT,
    FILTER_JOIN,
    FILTER_LAST,
    FILTER_LENGTH,
    FILTER_LIST,
    FILTER_LOWER,
    FILTER_MAP,
    FILTER_MAX,
    FILTER_MIN,
    FILTER_REJECT,
    FILTER_REJECTATTR,
    FILTER_REPLACE,
    FILTER_REVERSE,
    FILTER_SAFE,
    FILTER_SELECT,
    FILTER_SELECTATTR,
    FILTER_SORT,
    FILTER_STRING,
    FILTER_TITLE,
    FILTER_TOJSON,
    FILTER_TRIM,
    FILTER_UNIQUE,
    FILTER_UPPER,
};

static const struct filter {
    const char *name;
    enum filter_id id;
    bool takes_args;
} filters[] = {
    {"abs", FILTER_ABS, false},
    {"bool", FILTER_BOOL, false},
    {"capitalize", FILTER_CAPITALIZE, false},
    {"count", FILTER_LENGTH, false},
    {"d", FILTER_DEFAULT, true},
    {"default", FILTER_DEFAULT, true},
    {"dictsort", FILTER_DICT, true},
    {"e", FILTER_ESCAPE, false},
    {"escape", FILTER_ESCAPE, false},
    {"first", FILTER_FIRST, false},
    {"float", FILTER_FLOAT, true},
    {"get", FILTER_DICT, true},
    {"indent", FILTER_INDENT, true},
    {"int", FILTER_INT, true},
    {"items", FILTER_DICT, true},
    {"join", FILTER_JOIN, true},
    {"keys", FILTER_DICT, true},
    {"last", FILTER_LAST, false},
    {"length", FILTER_LENGTH, false},
    {"list", FILTER_LIST, false},
    {"lower", FILTER_LOWER, false},
    {"map", FILTER_MAP, true},
    {"max", FILTER_MAX, false},
    {"min", FILTER_MIN, false},
    {"reject", FILTER_REJECT, true},
    {"rejectattr", FILTER_REJECTATTR, true},
    {"replace", FILTER_REPLACE, true},
    {"reverse", FILTER_REVERSE, false},
    {"safe", FILTER_SAFE, false},
    {"select", FILTER_SELECT, true},
    {"selectattr", FILTER_SELECTATTR, true},
    {"sort", FILTER_SORT, true},
    {"string", FILTER_STRING, false},
    {"title", FILTER_TITLE, false},
    {"tojson", FILTER_TOJSON, true},
    {"trim", FILTER_TRIM, false},
    {"unique", FILTER_UNIQUE, false},
    {"upper", FILTER_UPPER, false},
    {"values", FILTER_DICT, true},
};

/* One use of a filter. */
struct use {
    struct jinja_run *r;
    const struct filter *filter;
    bool called; /* with parentheses */
    struct jinja_args args;
};

static int apply(struct use *u, const struct jinja_value *v, struct jinja_value *out);

static int wrong_kind(struct use *u, const struct jinja_value *v)
{
    return jinja_fail(u->r, SHOAL_EINVAL, "filter '%s' does not work on %s", u->filter->name,
                      jinja_kind_name(v));
}

static const struct filter *find_filter(struct jinja_run *r, struct jinja_str name)
{
    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
        if (jinja_str_is(name, filters[i].name))
            return &filters[i];
    (void)jinja_fail(r, SHOAL_EUNSUPPORTED, "filter '%.*s' is not supported",
                     name.n < 60 ? (int)name.n : 60, name.p);
    return NULL;
}

/* The argument at place i or with that name; `otherwise` when it is not given. */
static struct jinja_value arg(const struct use *u, size_t i, const char *name,
                              struct jinja_value otherwise)
{
    const struct jinja_value *v = i < u->args.n ? &u->args.at[i] : NULL;
    if ((!v || v->kind == JINJA_ABSENT) && name && u->args.named)
        v = jinja_dict_get(u->r, u->args.named, (struct jinja_str){name, strlen(name)});
    return v && v->kind != JINJA_ABSENT ? *v : otherwise;
}

static int bad_arg(struct use *u, const char *name, const struct jinja_value *v)
{
    return jinja_fail(u->r, SHOAL_EINVAL, "'%s' of filter '%s' cannot be %s", name, u->filter->name,
                      jinja_kind_name(v));
}

static bool is_text(const struct jinja_value *v)
{
    return v->kind == JINJA_STRING && v->str.p;
}

static bool is_container(const struct jinja_value *v)
{
    return jinja_is_dict(v) || v->kind == JINJA_NAMESPACE;
}

/* ---- text ----------------------------------------------------------------------------------- */

static int filter_tojson(struct use *u, const struct jinja_value *v, struct jinja_value *out)
{
    static const size_t named_only = SIZE_MAX;
    struct jinja_json_opts o = {0};
    struct jinja_value indent = arg(u, named_only, "indent", jinja_none());
    struct jinja_value ascii = arg(u, named_only, "ensure_ascii", jinja_bool(false));
    struct jinja_value sort = arg(u, named_only, "sort_keys", jinja_bool(false));
    struct jinja_value separators = arg(u, named_only, "separators", jinja_none());
    if (indent.kind != JINJA_NONE && (indent.kind != JINJA_INT || !(indent.num >= 0)))
        return bad_arg(u, "indent", &indent);
    if (indent.kind == JINJA_INT && indent.num > 10000)
        return jinja_fail(u->r, SHOAL_ELIMIT, "tojson: indent is more than 10000");
    if (ascii.kind != JINJA_BOOL)
        return bad_arg(u, "ensure_ascii", &ascii);
    if (sort.kind != JINJA_BOOL)
        return bad_arg(u, "sort_keys", &sort);
    if (separators.kind != JINJA_NONE) {
        if (!jinja_is_list(&separators) || separators.list->n != 2 ||
            !is_text(&separators.list->at[0]) || !is_text(&separators.list->at[1]))
            return bad_arg(u, "separators", &separators);
        o.separators = true;
        o.item_separator = separators.list->at[0].str;
        o.key_separator = separators.list->at[1].str;
    }
    o.indent = indent.kind == JINJA_INT ? (size_t)indent.num : 0;
    o.ensure_ascii = ascii.b;
    o.sort_keys = sort.b;
    if (jinja_is_hollow(v)) {
        *out = *v;
        return ascii.b ? wrong_kind(u, v) : 0;
    }
    size_t mark = u->r->out.len;
    int rc = jinja_json_write(u->r, v, &o);
    return rc < 0 ? rc : jinja_cut(u->r, mark, out);
}

static int filter_join(struct use *u, const struct jinja_value *v, struct jinja_value *out)
{
    struct jinja_run *r = u->r;
    struct jinja_value sep = arg(u, 0, "separator", jinja_string(JINJA_STR("")));
    struct jinja_value items = *v;
    int rc = 0;
    if (v->kind == JINJA_STRING && !u->called) {
        *out = *v;
        return 0;
    }
    if (is_text(v))
        rc = jinja_split_points(r, v->str, &items);
    if (rc < 0)
        return rc;
    if (!jinja_is_list(&items))
        return wrong_kind(u, v);
    if (!is_text(&sep))
        return bad_arg(u, "separator", &sep);
    size_t mark = r->out.len;
    for (size_t i = 0; rc == 0 && i < items.list->n; i++) {
        const struct jinja_value *item = &items.list->at[i];
        if (i)
            buf_put(&r->out, sep.str.p, sep.str.n);
        rc = jinja_charge(r, 1);
        bool empty =
            item->kind == JINJA_NONE || item->kind == JINJA_UNDEFINED || jinja_is_hollow(item);
        if (rc == 0 && !empty)
            rc = jinja_write_raw(r, item);
    }
    return rc < 0 ? rc : jinja_cut(r, mark, out);
}

static int filter_indent(struct use *u, struct jinja_str s, struct jinja_value *out)
{
    struct buf *b = &u->r->out;
    struct jinja_value width = arg(u, 0, "width", jinja_int(4));
    struct jinja_value first = arg(u, 1, "first", jinja_bool(false));
    struct jinja_value blank = arg(u, 2, "blank", jinja_bool(false));
    if (width.kind != JINJA_INT || !(width.num >= 0))
        return bad_arg(u, "width", &width);
    if (width.num > 10000)
        return jinja_fail(u->r, SHOAL_ELIMIT, "indent is more than 10000");
    size_t mark = b->len;
    for (size_t at = 0; at <= s.n && b->rc == 0;) {
        size_t end = jinja_text_find(s, JINJA_STR("\n"), at);
        if (end == SIZE_MAX)
            end = s.n;
        bool skip = (at == 0 && jinja_not(&first)) || (at == end && jinja_not(&blank));
        if (at)
            buf_putc(b, '\n');
        for (size_t i = 0; !skip && i < (size_t)width.num; i++)
            buf_putc(b, ' ');
        buf_put(b, s.p + at, end - at);
        at = end + 1;
    }
    return jinja_cut(u->r, mark, out);
}

static int filter_escape(struct use *u, struct jinja_str s, struct jinja_value *out)
{
    struct buf *b = &u->r->out;
    size_t mark = b->len;
    for (size_t i = 0; i < s.n; i++)
        switch (s.p[i]) {
        case '&':
            buf_puts(b, "&amp;");
            break;
        case '<':
            buf_puts(b, "&lt;");
            break;
        case '>':
            buf_puts(b, "&gt;");
            break;
        case '"':
            buf_puts(b, "&#34;");
            break;
        case '\'':
            buf_puts(b, "&#39;");
            break;
        default:
            buf_putc(b, s.p[i]);
        }
    return jinja_cut(u->r, mark, out);
}

static int call_method(struct use *u, const struct jinja_value *self, enum jinja_function_id id,
                       const struct jinja_value *args, size_t n, struct jinja_value *out)
{
    struct jinja_function f = {.id = id, .self = *self};
    return jinja_method_call(u->r, &f, args, n, out);
}

/* The filter's arguments, and named ones after them, as a method takes them. */
static int with_named(struct use *u, bool always, struct jinja_list *out)
{
    struct jinja_value named = {.kind = JINJA_KWARGS, .dict = u->args.named};
    *out = (struct jinja_list){u->args.at, u->args.n, u->args.n};
    if (!u->args.named && !always)
        return 0;
    int rc = 0;
    if (!u->args.named) {
        rc = jinja_dict_make(u->r, &named);
        named.kind = JINJA_KWARGS;
    }
    return rc < 0 ? rc : jinja_list_push(u->r, out, named);
}

static int filter_text(struct use *u, const struct jinja_value *v, struct jinja_value *out)
{
    struct jinja_list args;
    int rc;
    if (!is_text(v))
        return wrong_kind(u, v);
    switch (u->filter->id) {
    case FILTER_UPPER:
        return call_method(u, v, JINJA_FN_UPPER, NULL, 0, out);
    case FILTER_LOWER:
        return call_method(u, v, JINJA_FN_LOWER, NULL, 0, out);
    case FILTER_TITLE:
        return call_method(u, v, JINJA_FN_TITLE, NULL, 0, out);
    case FILTER_CAPITALIZE:
        return call_method(u, v, JINJA_FN_CAPITALIZE, NULL, 0, out);
    case FILTER_TRIM:
        return call_method(u, v, JINJA_FN_STRIP, NULL, 0, out);
    case FILTER_INDENT:
        return filter_indent(u, v->str, out);
    case FILTER_ESCAPE:
        return filter_escape(u, v->str, out);
    default: /* replace */
        rc = with_named(u, true, &args);
        return rc < 0 ? rc : call_method(u, v, JINJA_FN_REPLACE, args.at, args.n, out);
    }
}

static int filter_string(struct use *u, const struct jinja_value *v, struct jinja_value *out)
{
    size_t mark = u->r->out.len;
    if (v->kind == JINJA_STRING) {
        *out = *v;
        return 0;
    }
    if (!jinja_is_list(v) && !jinja_is_number(v) && v->kind != JINJA_BOOL)
        return wrong_kind(u, v);
    int rc = jinja_print(u->r, v);
    return rc < 0 ? rc : jinja_cut(u->r, mark, out);
}

/* ---- numbers -------------------------------------------------------------------------------- */

static int filter_number(struct use *u, const struct jinja_value *v, struct jinja_value *out)
{
    bool whole = u->filter->id == FILTER_INT;
    double x;
    if (v->kind == JINJA_STRING) {
        struct jinja_str s = v->str.p ? v->str : JINJA_STR("undefined");
        x = whole ? jinja_text_parse_int(s) : jinja_text_parse_float(s);
        if (isnan(x)) {
            *out = arg(u, 0, "default", whole ? jinja_int(0) : jinja_float(0));
            return 0;
        }
    } else if (!jinja_as_number(v, &x)) {
        return wrong_kind(u, v);
    } else if (u->called && v->kind != JINJA_BOOL) {
        *out = *v; /* as in the reference: int() with parentheses does not round */
        return 0;
    }
    *out = whole ? jinja_int(floor(x)) : jinja_float(x);
    return 0;
}

/* ---- lists ---------------------------------------------------------------------------------- */

static int filter_length(struct use *u, const struct jinja_value *v, struct jinja_value *out)
{
    if (jinja_is_list(v))
        *out = jinja_int((double)v->list->n);
    else if (jinja_is_dict(v))
        *out = jinja_int((double)v->dict->n);
    else if (is_text(v))
        *out = jinja_int((double)jinja_text_units(v->str));
    else
        return wrong_kind(u, v);
    return jinja_charge(u->r, is_text(v) ? v->str.n / 64 : 0);
}

/* What a list filter sees of a string (its characters) or dict (its keys). */
static int as_list(struct use *u, const struct jinja_value *v, struct jinja_value *out)
{
    *out = *v;
    if (jinja_is_list(v))
        return 0;
    if (is_text(v))
        return jinja_split_points(u->r, v->str, out);
    if (jinja_is_dict(v))
        return call_method(u, v, JINJA_FN_KEYS, NULL, 0, out);
    return wrong_kind(u, v);
}

static int filter_reverse(struct use *u, const struct jinja_value *v, struct jinja_value *out)
{
    struct jinja_run *r = u->r;
    struct jinja_value items;
    size_t mark = r->out.len;
    int rc = as_list(u, v, &items);
    if (rc == 0)
        rc = jinja_charge(r, items.list->n);
    if (rc == 0)
        rc = jinja_list_make(r, out, 0);
    for (size_t i = rc == 0 ? items.list->n : 0; rc == 0 && i-- > 0;)
        if (is_text(v))
            buf_put(&r->out, items.list->at[i].str.p, items.list->at[i].str.n);
        else
            rc = jinja_list_push(r, out->list, items.list->at[i]);
    return rc == 0 && is_text(v) ? jinja_cut(r, mark, out) : rc;
}

static int filter_unique(struct use *u, const struct jinja_list *l, struct jinja_value *out)
{
    int rc = jinja_list_make(u->r, out, 0);
    for (size_t i = 0; rc == 0 && i < l->n; i++) {
        bool seen = false;
        rc = jinja_charge(u->r, 1 + out->list->n);
        for (size_t k = 0; !seen && k < out->list->n; k++) {
            const struct jinja_value *a = &out->list->at[k], *b = &l->at[i];
            seen = jinja_same(a, b) ||
                   (jinja_is_number(a) && jinja_is_number(b) && isnan(a->num) && isnan(b->num));
        }
        if (rc == 0 && !seen)
            rc = jinja_list_push(u->r, out->list, l->at[i]);
    }
    return rc;
}

static int filter_sort(struct use *u, const struct jinja_list *l, struct jinja_value *out)
{
    char digits[JINJA_TEXT_NUMBER];
    struct jinja_value reverse = arg(u, 0, "reverse", jinja_bool(false));
    struct jinja_value cased = arg(u, 1, "case_sensitive", jinja_bool(false));
    struct jinja_value attribute = arg(u, 2, "attribute", jinja_none());
    if (reverse.kind != JINJA_BOOL)
        return bad_arg(u, "reverse", &reverse);
    if (cased.kind != JINJA_BOOL)
        return bad_arg(u, "case_sensitive", &cased);
    struct jinja_str path = {0};
    if (attribute.kind == JINJA_INT)
        path = (struct jinja_str){digits, jinja_text_number(digits, attribute.num)};
    else if (is_text(&attribute))
        path = attribute.str;
    else if (attribute.kind != JINJA_NONE)
        return bad_arg(u, "attribute", &attribute);
    return jinja_sort_list(u->r, l, reverse.b, cased.b, path.p ? &path : NULL, out);
}

/* select, reject (first: 0) and selectattr, rejectattr (first: 1, after the attribute) */
static int passes(struct use *u, const struct jinja_value *v, size_t first, bool *out)
{
    struct jinja_value name = arg(u, first, NULL, jinja_none());
    struct jinja_value with = arg(u, first + 1, NULL, (struct jinja_value){.kind = JINJA_ABSENT});
    if (v->kind == JINJA_ABSENT)
        return wrong_kind(u, v);
    if (name.kind == JINJA_NONE) {
        *out = jinja_truth(v);
        return 0;
    }
    if (!is_text(&name))
        return bad_arg(u, "test", &name);
    return jinja_test(u->r, name.str, v, &with, out);
}

static int filter_select(struct use *u, const struct jinja_list *l, struct jinja_value *out)
{
    enum filter_id id = u->filter->id;
    bool by_attr = id == FILTER_SELECTATTR || id == FILTER_REJECTATTR;
    bool want = id == FILTER_SELECT || id == FILTER_SELECTATTR;
    struct jinja_value attr = arg(u, 0, NULL, jinja_undefined());
    struct jinja_value test = arg(u, by_attr, NULL, jinja_none());
    bool yes;
    if (by_attr && !is_text(&attr))
        return bad_arg(u, "attribute", &attr);
    /* A test that does not exist is an error even when there is nothing to test. */
    int rc = is_text(&test) ? jinja_test_check(u->r, test.str) : 0;
    if (rc == 0)
        rc = jinja_list_make(u->r, out, 0);
    for (size_t i = 0; by_attr && i < l->n; i++)
        if (!is_container(&l->at[i]))
            return jinja_fail(u->r, SHOAL_EINVAL, "filter '%s' needs a list of dicts, not of %s",
                              u->filter->name, jinja_kind_name(&l->at[i]));
    for (size_t i = 0; rc == 0 && i < l->n; i++) {
        const struct jinja_value *v = &l->at[i];
        if (by_attr)
            v = jinja_dict_get(u->r, v->dict, attr.str);
        yes = false;
        rc = jinja_charge(u->r, 1);
        if (rc == 0 && v && (!by_attr || v->kind != JINJA_ABSENT))
            rc = passes(u, v, by_attr, &yes);
        if (rc == 0 && yes == want)
            rc = jinja_list_push(u->r, out->list, l->at[i]);
    }
    return rc;
}

/* map(attribute='a.b', default=x), or map('filter', arguments of the filter) */
static int filter_map(struct use *u, const struct jinja_list *l, struct jinja_value *out)
{
    struct jinja_value attr = arg(u, SIZE_MAX, "attribute", (struct jinja_value){0});
    struct jinja_value name = arg(u, 0, NULL, jinja_none());
    struct use inner = *u;
    bool by_attr = attr.kind != JINJA_ABSENT;
    if (by_attr && !is_text(&attr))
        return bad_arg(u, "attribute", &attr);
    if (!by_attr) {
        if (!is_text(&name))
            return jinja_fail(u->r, SHOAL_EUNSUPPORTED,
                              "filter 'map' needs attribute= or the name of a filter");
        inner.filter = find_filter(u->r, name.str);
        if (!inner.filter)
            return SHOAL_EUNSUPPORTED;
        inner.args.at++;
        inner.args.n--;
        inner.called = inner.args.n > 0 || inner.args.named;
    }
    int rc = jinja_list_make(u->r, out, 0);
    for (size_t i = 0; rc == 0 && i < l->n; i++) {
        struct jinja_value v = jinja_undefined();
        rc = jinja_charge(u->r, 1);
        if (rc == 0 && by_attr) {
            if (!is_container(&l->at[i]))
                return jinja_fail(u->r, SHOAL_EINVAL,
                                  "filter 'map' needs a list of dicts, not of %s",
                                  jinja_kind_name(&l->at[i]));
            v = jinja_attribute(u->r, l->at[i], attr.str);
            if (v.kind == JINJA_UNDEFINED)
                v = arg(u, SIZE_MAX, "default", v);
        } else if (rc == 0) {
            rc = apply(&inner, &l->at[i], &v);
        }
        if (rc == 0)
            rc = jinja_list_push(u->r, out->list, v);
    }
    return rc;
}

static int filter_list(struct use *u, const struct jinja_value *v, struct jinja_value *out)
{
    struct jinja_value items = *v;
    int rc = 0;
    enum filter_id id = u->filter->id;
    if (id == FILTER_LIST || id == FILTER_FIRST || id == FILTER_LAST) {
        rc = as_list(u, v, &items);
        if (rc < 0)
            return rc;
    } else if (!jinja_is_list(v)) {
        bool lazy = id == FILTER_MAP || id == FILTER_SELECT || id == FILTER_SELECTATTR ||
                    id == FILTER_REJECT || id == FILTER_REJECTATTR;
        if (!lazy || (v->kind != JINJA_NONE && v->kind != JINJA_UNDEFINED))
            return wrong_kind(u, v);
        rc = jinja_list_make(u->r, &items, 0); /* as Jinja itself has it */
        if (rc < 0)
            return rc;
    }
    const struct jinja_list *l = items.list;
    switch (id) {
    case FILTER_LIST:
        *out = items;
        return 0;
    case FILTER_FIRST:
    case FILTER_LAST:
        *out = l->n ? l->at[id == FILTER_FIRST ? 0 : l->n - 1]
                    : (struct jinja_value){.kind = JINJA_ABSENT};
        return 0;
    case FILTER_UNIQUE:
        return filter_unique(u, l, out);
    case FILTER_SORT:
        return filter_sort(u, l, out);
    case FILTER_MAP:
        return filter_map(u, l, out);
    case FILTER_MAX:
    case FILTER_MIN:
        rc = jinja_sort_list(u->r, l, id == FILTER_MAX, false, NULL, &items);
        *out = rc == 0 && items.list->n ? items.list->at[0] : jinja_undefined();
        return rc;
    default:
        return filter_select(u, l, out);
    }
}

/* ---- the rest ------------------------------------------------------------------------------- */

static int filter_default(struct use *u, const struct jinja_value *v, struct jinja_value *out)
{
    struct jinja_value otherwise = arg(u, 0, NULL, jinja_string(JINJA_STR("")));
    struct jinja_value falsy = arg(u, 1, "boolean", jinja_bool(false));
    if (falsy.kind != JINJA_BOOL)
        return bad_arg(u, "boolean", &falsy);
    if (falsy.b && v->kind == JINJA_ABSENT)
        return wrong_kind(u, v);
    bool use_default = v->kind == JINJA_UNDEFINED || (falsy.b && !jinja_truth(v));
    *out = use_default ? otherwise : *v;
    return 0;
}

static int filter_dict(struct use *u, const struct jinja_value *v, struct jinja_value *out)
{
    struct jinja_str name = {u->filter->name, strlen(u->filter->name)};
    enum jinja_function_id id;
    struct jinja_list args;
    if (!jinja_is_dict(v) || !jinja_method_find(JINJA_DICT, name, &id))
        return wrong_kind(u, v);
    int rc = with_named(u, false, &args);
    return rc < 0 ? rc : call_method(u, v, id, args.at, args.n, out);
}

static int apply(struct use *u, const struct jinja_value *v, struct jinja_value *out)
{
    if (!u->filter->takes_args && (u->args.n || u->args.named))
        return jinja_fail(u->r, SHOAL_EUNSUPPORTED, "filter '%s' with arguments is not supported",
                          u->filter->name);
    *out = *v;
    switch (u->filter->id) {
    case FILTER_SAFE:
        return 0;
    case FILTER_DEFAULT:
        return filter_default(u, v, out);
    case FILTER_BOOL:
        return v->kind == JINJA_BOOL ? 0 : wrong_kind(u, v);
    case FILTER_ABS:
        out->num = fabs(v->num);
        return jinja_is_number(v) ? 0 : wrong_kind(u, v);
    case FILTER_INT:
    case FILTER_FLOAT:
        return filter_number(u, v, out);
    case FILTER_STRING:
        return filter_string(u, v, out);
    case FILTER_TOJSON:
        return filter_tojson(u, v, out);
    case FILTER_JOIN:
        return filter_join(u, v, out);
    case FILTER_LENGTH:
        return filter_length(u, v, out);
    case FILTER_REVERSE:
        return filter_reverse(u, v, out);
    case FILTER_DICT:
        return filter_dict(u, v, out);
    case FILTER_FIRST:
    case FILTER_LAST:
    case FILTER_LIST:
    case FILTER_MAP:
    case FILTER_MAX:
    case FILTER_MIN:
    case FILTER_SELECT:
    case FILTER_REJECT:
    case FILTER_SELECTATTR:
    case FILTER_REJECTATTR:
    case FILTER_SORT:
    case FILTER_UNIQUE:
        return filter_list(u, v, out);
    default:
        return filter_text(u, v, out);
    }
}

int jinja_filter(struct jinja_run *r, const struct jinja_value *operand,
                 const struct jinja_node *filter, struct jinja_scope *scope,
                 struct jinja_value *out)
{
    struct use u = {.r = r, .called = filter->kind == JINJA_NODE_CALL};
    const struct jinja_node *where = r->where, *name = u.called ? filter->a : filter;
    struct jinja_value v = *operand; /* out may be the same place */
    if (name->kind != JINJA_NODE_NAME)
        return jinja_fail(r, SHOAL_EUNSUPPORTED, "only a filter's name and arguments may follow |");
    u.filter = find_filter(r, name->text);
    if (!u.filter)
        return SHOAL_EUNSUPPORTED;
    int rc = u.called ? jinja_eval_args(r, filter->b, scope, &u.args) : 0;
    r->where = where;
    return rc == 0 ? apply(&u, &v, out) : rc;
}
