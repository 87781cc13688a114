/* jinja_filter.c - filters of single values; see jinja_eval.h. */
#include <math.h>
#include <stdio.h>

#include "text/jinja/jinja_eval.h"
#include "text/jinja/jinja_json.h"
#include "text/jinja/jinja_names.h"
#include "text/jinja/jinja_number.h"

enum { MAX_ARGS = 4 };

struct filter_call {
    struct jinja_run *r;
    struct jinja_value v;
    struct jinja_value arg[MAX_ARGS];
};

static bool given(const struct jinja_value *v)
{
    return v->kind != JINJA_ABSENT;
}

static bool flag(const struct jinja_value *v)
{
    return given(v) && jinja_truth(v);
}

/* ---- text ----------------------------------------------------------------------------------- */

/* The operand as text; text that is already marked as safe stays so. */
static int soft_text(const struct filter_call *c, struct jinja_value *out)
{
    struct jinja_str s;
    *out = c->v;
    if (c->v.kind == JINJA_STRING)
        return 0;
    int rc = jinja_print_text(c->r, &c->v, &s);
    if (rc == 0)
        *out = jinja_string(s);
    return rc;
}

static bool starts_word(uint32_t cp)
{
    return jinja_text_is_space(cp) || (cp < 0x80 && cp && strchr("-({[<", (int)cp));
}

/* title: a word begins after white space and some brackets */
static void put_title(struct buf *b, struct jinja_str s)
{
    for (size_t i = 0; i < s.n && b->rc == 0;) {
        uint32_t cp;
        size_t start = i, len = jinja_text_next(s.p + i, s.n - i, &cp);
        bool word = !starts_word(cp);
        for (i += len; i < s.n; i += len) {
            len = jinja_text_next(s.p + i, s.n - i, &cp);
            if (starts_word(cp) == word)
                break;
        }
        jinja_text_next(s.p + start, s.n - start, &cp);
        char bytes[4];
        size_t first = jinja_text_put(bytes, cp);
        jinja_text_upper(b, (struct jinja_str){s.p + start, first});
        jinja_text_lower(b, (struct jinja_str){s.p + start + first, i - start - first});
    }
}

static int change_case(const struct filter_call *c, int id, struct jinja_value *out)
{
    struct jinja_value s;
    struct buf *b = &c->r->out;
    int rc = soft_text(c, &s);
    size_t mark = b->len;
    if (rc < 0)
        return rc;
    if (id == JINJA_FILTER_UPPER)
        jinja_text_upper(b, s.str);
    else if (id == JINJA_FILTER_LOWER)
        jinja_text_lower(b, s.str);
    else if (id == JINJA_FILTER_TITLE)
        put_title(b, s.str);
    else
        jinja_text_capitalize(b, s.str);
    rc = jinja_cut(c->r, mark, out);
    out->markup = s.markup && id != JINJA_FILTER_TITLE;
    return rc;
}

static int trim(const struct filter_call *c, struct jinja_value *out)
{
    int rc = soft_text(c, out);
    const struct jinja_value *set = &c->arg[0];
    bool all = !given(set) || set->kind == JINJA_NONE;
    if (rc == 0 && !all && set->kind != JINJA_STRING)
        rc = jinja_fail(c->r, SHOAL_EINVAL, "trim takes a string, not %s", jinja_kind_name(set));
    if (rc < 0)
        return rc;
    size_t n = out->str.n;
    out->str = jinja_text_strip(out->str, true, true, all ? NULL : &set->str);
    return jinja_charge(c->r, (n - out->str.n) / 64 * (all ? 1 : 1 + set->str.n / 64));
}

static int replace(const struct filter_call *c, struct jinja_value *out)
{
    struct jinja_str s, from, to;
    int64_t count = -1;
    if (given(&c->arg[2]) && c->arg[2].kind != JINJA_NONE && !jinja_as_int(&c->arg[2], &count))
        return jinja_fail(c->r, SHOAL_EINVAL, "the count of replace must be an integer, not %s",
                          jinja_kind_name(&c->arg[2]));
    int rc = jinja_print_text(c->r, &c->v, &s);
    if (rc == 0)
        rc = jinja_print_text(c->r, &c->arg[0], &from);
    if (rc == 0)
        rc = jinja_print_text(c->r, &c->arg[1], &to);
    return rc < 0 ? rc : jinja_string_replace(c->r, s, from, to, count, out);
}

static int indent(const struct filter_call *c, struct jinja_value *out)
{
    struct jinja_run *r = c->r;
    struct jinja_value lines;
    struct jinja_str pad = c->arg[0].str;
    int64_t width = 4;
    bool text = c->arg[0].kind == JINJA_STRING;
    if (c->v.kind == JINJA_UNDEFINED)
        return jinja_fail_undefined(r, &c->v);
    if (c->v.kind != JINJA_STRING)
        return jinja_fail(r, SHOAL_EINVAL, "indent works on strings, not on %s",
                          jinja_kind_name(&c->v));
    if (given(&c->arg[0]) && !text && !jinja_as_int(&c->arg[0], &width))
        return jinja_fail(r, SHOAL_EINVAL, "the width of indent must be an integer, not %s",
                          jinja_kind_name(&c->arg[0]));
    int rc = jinja_list_make(r, &lines, 0);
    if (rc == 0)
        rc = jinja_concat(r, c->v.str, JINJA_STR("\n"), out);
    if (rc == 0)
        rc = jinja_string_lines(r, out->str, false, lines.list);
    size_t mark = r->out.len;
    for (size_t i = 0; rc == 0 && i < lines.list->n; i++) {
        struct jinja_str line = lines.list->at[i].str;
        bool padded = i == 0 ? flag(&c->arg[1]) : line.n > 0 || flag(&c->arg[2]);
        if (i)
            buf_putc(&r->out, '\n');
        if (padded && text)
            buf_put(&r->out, pad.p, pad.n);
        for (int64_t k = 0; padded && !text && k < width && r->out.rc == 0; k++)
            buf_putc(&r->out, ' ');
        buf_put(&r->out, line.p, line.n);
        rc = jinja_check_out(r);
    }
    if (rc == 0)
        rc = jinja_cut(r, mark, out);
    out->markup = c->v.markup;
    return rc;
}

static int wordcount(const struct filter_call *c, struct jinja_value *out)
{
    struct jinja_value s;
    int rc = soft_text(c, &s);
    int64_t n = 0;
    bool in_word = false;
    for (size_t i = 0; rc == 0 && i < s.str.n;) {
        uint32_t cp;
        i += jinja_text_next(s.str.p + i, s.str.n - i, &cp);
        bool word = jinja_text_is_word(cp);
        n += word && !in_word;
        in_word = word;
    }
    *out = jinja_int(n);
    return rc < 0 ? rc : jinja_charge(c->r, s.str.n / 16);
}

static int make_safe(const struct filter_call *c, bool escape, struct jinja_value *out)
{
    int rc = soft_text(c, out);
    if (rc == 0 && escape && !out->markup)
        rc = jinja_string_escape(c->r, out->str, out);
    out->markup = true;
    return rc;
}

/* ---- numbers -------------------------------------------------------------------------------- */

static int parse_int(struct jinja_run *r, struct jinja_str s, unsigned base,
                     struct jinja_value *out, bool *ok)
{
    int64_t i;
    enum jinja_number_kind kind = jinja_number_int(s, base, &i);
    *ok = kind == JINJA_NUMBER_INT;
    if (kind == JINJA_NUMBER_BIG)
        return jinja_fail(r, SHOAL_ELIMIT, "int gives an integer of more than 64 bits");
    if (*ok)
        *out = jinja_int(i);
    return 0;
}

static int to_int(const struct filter_call *c, struct jinja_value *out)
{
    int64_t i, base = 10;
    double x = NAN;
    bool ok = false;
    *out = given(&c->arg[0]) ? c->arg[0] : jinja_int(0);
    if (c->v.kind == JINJA_UNDEFINED)
        return jinja_fail_undefined(c->r, &c->v);
    if (given(&c->arg[1]) &&
        (!jinja_as_int(&c->arg[1], &base) || (base != 2 && base != 8 && base != 10 && base != 16)))
        return jinja_fail(c->r, SHOAL_EUNSUPPORTED, "int knows the bases 2, 8, 10 and 16");
    if (jinja_as_int(&c->v, &i)) {
        *out = jinja_int(i);
        return 0;
    }
    if (c->v.kind == JINJA_BIGINT) {
        *out = c->v;
        return 0;
    }
    if (c->v.kind == JINJA_STRING) {
        int rc = parse_int(c->r, c->v.str, (unsigned)base, out, &ok);
        if (rc < 0 || ok)
            return rc;
        if (!jinja_number_float(c->v.str, &x))
            return 0;
    } else if (c->v.kind == JINJA_FLOAT) {
        x = c->v.num;
    }
    if (isnan(x))
        return 0;
    if (fabs(x) >= 9e18)
        return jinja_fail(c->r, SHOAL_ELIMIT, "int gives an integer of more than 64 bits");
    *out = jinja_int((int64_t)x);
    return 0;
}

static int to_float(const struct filter_call *c, struct jinja_value *out)
{
    double x;
    *out = given(&c->arg[0]) ? c->arg[0] : jinja_float(0);
    if (c->v.kind == JINJA_UNDEFINED)
        return jinja_fail_undefined(c->r, &c->v);
    if (jinja_as_number(&c->v, &x) ||
        (c->v.kind == JINJA_STRING && jinja_number_float(c->v.str, &x)))
        *out = jinja_float(x);
    return 0;
}

static int absolute(const struct filter_call *c, struct jinja_value *out)
{
    int64_t i;
    if (c->v.kind == JINJA_FLOAT)
        *out = jinja_float(fabs(c->v.num));
    else if (jinja_as_int(&c->v, &i) && i != INT64_MIN)
        *out = jinja_int(i < 0 ? -i : i);
    else if (c->v.kind == JINJA_UNDEFINED)
        return jinja_fail_undefined(c->r, &c->v);
    else
        return jinja_fail(c->r, SHOAL_EINVAL, "abs works on numbers, not on %s",
                          jinja_kind_name(&c->v));
    return 0;
}

static int round_number(const struct filter_call *c, struct jinja_value *out)
{
    int64_t digits = 0, i;
    double x, scale;
    char text[400];
    struct jinja_str method =
        given(&c->arg[1]) && c->arg[1].kind == JINJA_STRING ? c->arg[1].str : JINJA_STR("common");
    if (given(&c->arg[0]) && !jinja_as_int(&c->arg[0], &digits))
        return jinja_fail(c->r, SHOAL_EINVAL, "the precision of round must be an integer");
    if (!jinja_as_number(&c->v, &x))
        return c->v.kind == JINJA_UNDEFINED
                   ? jinja_fail_undefined(c->r, &c->v)
                   : jinja_fail(c->r, SHOAL_EINVAL, "round works on numbers, not on %s",
                                jinja_kind_name(&c->v));
    if (digits < 0 || digits > 22 || !isfinite(x))
        return jinja_fail(c->r, SHOAL_EUNSUPPORTED, "round with this number or precision");
    if (jinja_str_is(method, "common")) {
        if (jinja_as_int(&c->v, &i)) {
            *out = jinja_int(i);
            return 0;
        }
        int n = snprintf(text, sizeof(text), "%.*f", (int)digits, x);
        if (!jinja_number_float((struct jinja_str){text, (size_t)n}, &x))
            return jinja_fail(c->r, SHOAL_EINTERNAL, "round cannot read %s", text);
        *out = jinja_float(x);
        return 0;
    }
    scale = pow(10, (double)digits);
    if (!jinja_str_is(method, "ceil") && !jinja_str_is(method, "floor"))
        return jinja_fail(c->r, SHOAL_EINVAL, "round knows the methods common, ceil and floor");
    x = method.p[0] == 'c' ? ceil(x * scale) : floor(x * scale);
    *out = jinja_float((x + 0.0) / scale); /* Python's ceil gives an integer, which has no -0 */
    return 0;
}

/* ---- tojson --------------------------------------------------------------------------------- */

/* transformers' own: not escaped for HTML, keys in their order */
static int tojson(const struct filter_call *c, struct jinja_value *out)
{
    struct jinja_json_opts o = {.ensure_ascii = flag(&c->arg[0]), .sort_keys = flag(&c->arg[3])};
    const struct jinja_value *indent_by = &c->arg[1], *separators = &c->arg[2];
    struct jinja_value blanks;
    struct jinja_list *pair;
    struct jinja_run *r = c->r;
    size_t mark = r->out.len;
    int64_t width;
    int rc = 0;
    if (given(indent_by) && indent_by->kind != JINJA_NONE) {
        o.lines = true;
        o.indent = indent_by->str;
        if (jinja_as_int(indent_by, &width)) {
            for (int64_t i = 0; i < width && r->out.rc == 0; i++)
                buf_putc(&r->out, ' ');
            rc = jinja_cut(r, mark, &blanks);
            if (rc == 0)
                o.indent = blanks.str;
        } else if (indent_by->kind != JINJA_STRING) {
            return jinja_fail(r, SHOAL_EINVAL, "the indent of tojson cannot be %s",
                              jinja_kind_name(indent_by));
        }
    }
    if (rc == 0 && given(separators) && separators->kind != JINJA_NONE) {
        rc = jinja_iterate(r, separators, &pair);
        if (rc < 0)
            return rc;
        if (pair->n != 2 || pair->at[0].kind != JINJA_STRING || pair->at[1].kind != JINJA_STRING)
            return jinja_fail(r, SHOAL_EINVAL, "the separators of tojson must be two strings");
        o.separators = true;
        o.item_separator = pair->at[0].str;
        o.key_separator = pair->at[1].str;
    }
    if (rc == 0)
        rc = jinja_json_write(r, &c->v, &o);
    return rc < 0 ? rc : jinja_cut(r, mark, out);
}

/* ---- all ------------------------------------------------------------------------------------ */

static int to_default(const struct filter_call *c, struct jinja_value *out)
{
    bool replaced = c->v.kind == JINJA_UNDEFINED || (flag(&c->arg[1]) && !jinja_truth(&c->v));
    *out = !replaced ? c->v : given(&c->arg[0]) ? c->arg[0] : jinja_string(JINJA_STR(""));
    return 0;
}

static int apply(const struct filter_call *c, int id, struct jinja_value *out)
{
    int64_t n = 0;
    int rc;
    switch (id) {
    case JINJA_FILTER_UPPER:
    case JINJA_FILTER_LOWER:
    case JINJA_FILTER_TITLE:
    case JINJA_FILTER_CAPITALIZE:
        return change_case(c, id, out);
    case JINJA_FILTER_TRIM:
        return trim(c, out);
    case JINJA_FILTER_REPLACE:
        return replace(c, out);
    case JINJA_FILTER_INDENT:
        return indent(c, out);
    case JINJA_FILTER_WORDCOUNT:
        return wordcount(c, out);
    case JINJA_FILTER_SAFE:
        return make_safe(c, false, out);
    case JINJA_FILTER_ESCAPE:
    case JINJA_FILTER_ESCAPE_:
        return make_safe(c, true, out);
    case JINJA_FILTER_STRING:
        return soft_text(c, out);
    case JINJA_FILTER_INT:
        return to_int(c, out);
    case JINJA_FILTER_FLOAT:
        return to_float(c, out);
    case JINJA_FILTER_ABS:
        return absolute(c, out);
    case JINJA_FILTER_ROUND:
        return round_number(c, out);
    case JINJA_FILTER_TOJSON:
        return tojson(c, out);
    case JINJA_FILTER_DEFAULT:
    case JINJA_FILTER_DEFAULT_:
        return to_default(c, out);
    default: /* length, count */
        rc = jinja_length(c->r, &c->v, &n);
        *out = jinja_int(n);
        return rc;
    }
}

/* 'text' | format(values) */
static int format(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *args,
                  struct jinja_value *out)
{
    struct jinja_value values;
    struct jinja_str s;
    if (args->named && args->n)
        return jinja_fail(r, SHOAL_EINVAL, "format takes values with names or without, not both");
    int rc = jinja_print_text(r, v, &s);
    if (rc == 0 && args->named)
        values = (struct jinja_value){.kind = JINJA_DICT, .dict = args->named};
    else if (rc == 0)
        rc = jinja_list_make(r, &values, 0);
    for (size_t i = 0; rc == 0 && !args->named && i < args->n; i++)
        rc = jinja_list_push(r, values.list, args->at[i]);
    if (rc == 0 && !args->named)
        values.kind = JINJA_TUPLE;
    return rc < 0 ? rc : jinja_format_percent(r, s, &values, out);
}

/* The parameters of each filter; those before `needed` are required. */
static const struct {
    const char *names[MAX_ARGS];
    uint8_t n, needed;
    bool here; /* implemented in this file */
} parameters[JINJA_FILTER_N] = {
    [JINJA_FILTER_ABS] = {.here = true},
    [JINJA_FILTER_CAPITALIZE] = {.here = true},
    [JINJA_FILTER_LENGTH] = {.here = true},
    [JINJA_FILTER_LENGTH_] = {.here = true},
    [JINJA_FILTER_DEFAULT] = {{"default_value", "boolean"}, 2, 0, true},
    [JINJA_FILTER_DEFAULT_] = {{"default_value", "boolean"}, 2, 0, true},
    [JINJA_FILTER_ESCAPE] = {.here = true},
    [JINJA_FILTER_ESCAPE_] = {.here = true},
    [JINJA_FILTER_FLOAT] = {{"default"}, 1, 0, true},
    [JINJA_FILTER_INDENT] = {{"width", "first", "blank"}, 3, 0, true},
    [JINJA_FILTER_INT] = {{"default", "base"}, 2, 0, true},
    [JINJA_FILTER_LOWER] = {.here = true},
    [JINJA_FILTER_REPLACE] = {{"old", "new", "count"}, 3, 2, true},
    [JINJA_FILTER_ROUND] = {{"precision", "method"}, 2, 0, true},
    [JINJA_FILTER_SAFE] = {.here = true},
    [JINJA_FILTER_STRING] = {.here = true},
    [JINJA_FILTER_TITLE] = {.here = true},
    [JINJA_FILTER_TOJSON] = {{"ensure_ascii", "indent", "separators", "sort_keys"}, 4, 0, true},
    [JINJA_FILTER_TRIM] = {{"chars"}, 1, 0, true},
    [JINJA_FILTER_UPPER] = {.here = true},
    [JINJA_FILTER_WORDCOUNT] = {.here = true},
};

int jinja_filter(struct jinja_run *r, int id, struct jinja_str name, const struct jinja_value *v,
                 const struct jinja_args *args, struct jinja_value *out)
{
    char what[64];
    if (id < 0)
        return jinja_fail(r, SHOAL_EUNSUPPORTED, "filter '%.*s' %s", name.n < 60 ? (int)name.n : 60,
                          name.p, id == JINJA_NAME_UNKNOWN ? "does not exist" : "is not supported");
    if (id == JINJA_FILTER_FORMAT)
        return format(r, v, args, out);
    if (!parameters[id].here)
        return jinja_filter_seq(r, id, v, args, out);
    struct filter_call c = {.r = r, .v = *v};
    snprintf(what, sizeof(what), "filter '%.*s'", (int)name.n, name.p);
    int rc = jinja_args_bind(r, what, args, parameters[id].names, parameters[id].n,
                             parameters[id].needed, c.arg);
    return rc < 0 ? rc : apply(&c, id, out);
}
