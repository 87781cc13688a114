/* jinja_format.c - 'text'.format(...) and 'text' % values; see jinja_eval.h. */
#include <math.h>
#include <stdio.h>

#include "base/ascii.h"
#include "text/jinja/jinja_eval.h"
#include "text/jinja/jinja_number.h"

enum { MAX_WIDTH = 1000 }; /* of a field */

struct spec {
    struct jinja_str fill; /* one character */
    char align;            /* < > ^ =, 0: by kind */
    char sign;             /* + - or blank */
    bool alternate, zero;
    char group;           /* , or _ */
    int width, precision; /* precision -1: not given */
    char type;            /* 0: by kind */
};

static int bad_format(struct jinja_run *r, const char *what)
{
    return jinja_fail(r, SHOAL_EUNSUPPORTED, "format of strings: %s", what);
}

/* ---- writing one value ---------------------------------------------------------------------- */

/* text with separate sign and digits, so that zeros can go between them */
static int put_padded(struct jinja_run *r, const struct spec *s, struct jinja_str sign,
                      struct jinja_str text, char align)
{
    struct buf *b = &r->out;
    int missing = s->width - (int)jinja_text_points(sign) - (int)jinja_text_points(text);
    int before = align == '>' ? missing : align == '^' ? missing / 2 : 0;
    if (missing < 0)
        missing = before = 0;
    for (int i = 0; i < before; i++)
        buf_put(b, s->fill.p, s->fill.n);
    buf_put(b, sign.p, sign.n);
    for (int i = 0; align == '=' && i < missing; i++)
        buf_put(b, s->fill.p, s->fill.n);
    buf_put(b, text.p, text.n);
    for (int i = before; align != '=' && i < missing; i++)
        buf_put(b, s->fill.p, s->fill.n);
    return jinja_check_out(r);
}

static int put_text(struct jinja_run *r, const struct spec *s, struct jinja_str text)
{
    if (s->precision >= 0) {
        size_t n = 0;
        for (int i = 0; i < s->precision && n < text.n; i++) {
            uint32_t cp;
            n += jinja_text_next(text.p + n, text.n - n, &cp);
        }
        text.n = n;
    }
    return put_padded(r, s, JINJA_STR(""), text, s->align ? s->align : '<');
}

/* Puts a , or _ between each three digits before the point. */
static size_t group_digits(char *out, const char *digits, size_t n, char mark)
{
    size_t whole = 0, to = 0;
    while (whole < n && ascii_is_digit(digits[whole]))
        whole++;
    for (size_t i = 0; i < n; i++) {
        if (mark && i > 0 && i < whole && (whole - i) % 3 == 0)
            out[to++] = mark;
        out[to++] = digits[i];
    }
    return to;
}

static int put_number(struct jinja_run *r, const struct spec *s, bool minus, const char *prefix,
                      const char *digits)
{
    char sign[8], text[800];
    size_t n = strlen(digits);
    const char *mark = minus ? "-" : s->sign == '+' ? "+" : s->sign == ' ' ? " " : "";
    if (n > 500)
        return bad_format(r, "a number has too many digits");
    snprintf(sign, sizeof(sign), "%s%s", mark, prefix);
    n = group_digits(text, digits, n, s->group);
    return put_padded(r, s, (struct jinja_str){sign, strlen(sign)}, (struct jinja_str){text, n},
                      s->align  ? s->align
                      : s->zero ? '='
                                : '>');
}

static int put_int(struct jinja_run *r, const struct spec *s, int64_t v)
{
    char digits[72];
    size_t n = 0;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    unsigned base = s->type == 'x' || s->type == 'X' ? 16
                    : s->type == 'o'                 ? 8
                    : s->type == 'b'                 ? 2
                                                     : 10;
    const char *letters = s->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    char prefix[3] = {'0', s->type, '\0'};
    if (s->precision >= 0)
        return bad_format(r, "integers have no precision");
    do
        digits[n++] = letters[u % base];
    while ((u /= base) != 0);
    for (size_t i = 0; i < n / 2; i++) {
        char c = digits[i];
        digits[i] = digits[n - 1 - i];
        digits[n - 1 - i] = c;
    }
    digits[n] = '\0';
    return put_number(r, s, v < 0, s->alternate && base != 10 ? prefix : "", digits);
}

static int put_float(struct jinja_run *r, const struct spec *s, double v)
{
    char text[500];
    char type = s->type;
    int precision = s->precision < 0 ? 6 : s->precision;
    double a = fabs(v);
    if (precision > 100)
        return bad_format(r, "the precision is above 100");
    if (!isfinite(v))
        snprintf(text, sizeof(text), isnan(v) ? "nan" : "inf");
    else if (type == 0 && s->precision < 0)
        jinja_number_repr(text, a);
    else if (type == '%')
        snprintf(text, sizeof(text), "%.*f%%", precision, a * 100);
    else if (type == 'f' || type == 'F')
        snprintf(text, sizeof(text), "%.*f", precision, a);
    else if (type == 'e' || type == 'E')
        snprintf(text, sizeof(text), type == 'e' ? "%.*e" : "%.*E", precision, a);
    else if (type == 'g' || type == 'G')
        snprintf(text, sizeof(text), type == 'g' ? "%.*g" : "%.*G", precision, a);
    else
        return bad_format(r, "this type of a number is not supported");
    return put_number(r, s, signbit(v) && !isnan(v), "", text);
}

/* ---- format() ------------------------------------------------------------------------------- */

/* [[fill]align][sign][#][0][width][,][.precision][type] */
static int read_spec(struct jinja_run *r, struct jinja_str s, struct spec *out)
{
    size_t i = 0;
    uint32_t cp;
    size_t first = s.n ? jinja_text_next(s.p, s.n, &cp) : 0;
    *out = (struct spec){.fill = JINJA_STR(" "), .precision = -1};
    if (first && first < s.n && strchr("<>^=", s.p[first]) && s.p[first]) {
        out->fill = (struct jinja_str){s.p, first};
        out->align = s.p[first];
        i = first + 1;
    } else if (s.n && s.p[0] && strchr("<>^=", s.p[0])) {
        out->align = s.p[i++];
    }
    if (i < s.n && s.p[i] && strchr("+- ", s.p[i]))
        out->sign = s.p[i++];
    if (i < s.n && s.p[i] == '#') {
        out->alternate = true;
        i++;
    }
    if (i < s.n && s.p[i] == '0') {
        out->zero = true;
        if (!out->align)
            out->fill = JINJA_STR("0");
        i++;
    }
    for (; i < s.n && ascii_is_digit(s.p[i]) && out->width <= MAX_WIDTH; i++)
        out->width = out->width * 10 + (s.p[i] - '0');
    if (i < s.n && (s.p[i] == ',' || s.p[i] == '_'))
        out->group = s.p[i++];
    if (i < s.n && s.p[i] == '.') {
        if (++i == s.n || !ascii_is_digit(s.p[i]))
            return bad_format(r, "a precision needs digits");
        for (out->precision = 0; i < s.n && ascii_is_digit(s.p[i]) && out->precision <= MAX_WIDTH;
             i++)
            out->precision = out->precision * 10 + (s.p[i] - '0');
    }
    if (i < s.n)
        out->type = s.p[i++];
    if (i < s.n || out->width > MAX_WIDTH || out->precision > MAX_WIDTH)
        return bad_format(r, "a field is not supported");
    return 0;
}

static int put_value(struct jinja_run *r, struct jinja_str text, const struct jinja_value *v)
{
    struct spec s;
    int64_t i;
    double x;
    if (text.n == 0)
        return jinja_print(r, v);
    int rc = read_spec(r, text, &s);
    if (rc < 0)
        return rc;
    if (v->kind == JINJA_STRING && (s.type == 0 || s.type == 's') && s.align != '=' && !s.sign &&
        !s.group && !s.alternate) {
        if (s.zero && !s.align)
            s.align = '<';
        return put_text(r, &s, v->str);
    }
    bool whole = jinja_as_int(v, &i);
    if (whole && (s.type == 0 || strchr("dxXob", s.type)))
        return put_int(r, &s, i);
    if (jinja_as_number(v, &x) && (s.type == 0 || strchr("fFeEgG%", s.type)))
        return put_float(r, &s, x);
    return jinja_fail(r, SHOAL_EINVAL, "format '%.*s' does not work on %s",
                      text.n < 40 ? (int)text.n : 40, text.p, jinja_kind_name(v));
}

struct fields {
    const struct jinja_args *args;
    int64_t next;  /* index of the next field without a number */
    bool numbered; /* a field with a number was seen */
};

/* The value of the field called name: 0, name, name.member, name[item], or nothing for the next. */
static int field_value(struct jinja_run *r, struct fields *f, struct jinja_str name,
                       struct jinja_value *out)
{
    size_t n = 0;
    int64_t index = -1;
    int rc = 0;
    while (n < name.n && name.p[n] != '.' && name.p[n] != '[')
        n++;
    struct jinja_str first = {name.p, n};
    bool number = n && jinja_number_int(first, 10, &index) == JINJA_NUMBER_INT;
    if (n == 0 || number) {
        if (n == 0 ? f->numbered : f->next > 0)
            return jinja_fail(r, SHOAL_EINVAL, "format mixes fields with and without numbers");
        f->numbered |= number;
        index = n == 0 ? f->next++ : index;
        if (index < 0 || index >= (int64_t)f->args->n)
            return jinja_fail(r, SHOAL_EINVAL, "format has no argument for field %lld",
                              (long long)index);
        *out = f->args->at[index];
    } else {
        const struct jinja_value *v =
            f->args->named ? jinja_dict_get(r, f->args->named, first) : NULL;
        if (!v)
            return jinja_fail(r, SHOAL_EINVAL, "format has no argument '%.*s'",
                              n < 60 ? (int)n : 60, first.p);
        *out = *v;
    }
    while (rc == 0 && n < name.n) {
        bool item = name.p[n++] == '[';
        size_t start = n;
        while (n < name.n && (item ? name.p[n] != ']' : name.p[n] != '.' && name.p[n] != '['))
            n++;
        struct jinja_value from = *out,
                           key = jinja_string((struct jinja_str){name.p + start, n - start});
        if (item && n == name.n)
            return bad_format(r, "']' is missing");
        if (item && jinja_number_int(key.str, 10, &index) == JINJA_NUMBER_INT)
            key = jinja_int(index);
        n += item;
        rc = item ? jinja_getitem(r, &from, &key, out) : jinja_getattr(r, &from, key.str, out);
    }
    return rc;
}

/* {name!conversion:spec}, without its braces */
static int put_field(struct jinja_run *r, struct fields *f, struct jinja_str field)
{
    size_t n = 0;
    char conversion = '\0';
    struct jinja_value v, text;
    if (memchr(field.p, '{', field.n))
        return bad_format(r, "fields inside fields are not supported");
    while (n < field.n && field.p[n] != '!' && field.p[n] != ':')
        n += field.p[n] == '[' && memchr(field.p + n, ']', field.n - n)
                 ? (size_t)((const char *)memchr(field.p + n, ']', field.n - n) - (field.p + n))
                 : 1;
    struct jinja_str name = {field.p, n};
    if (n < field.n && field.p[n] == '!') {
        conversion = n + 1 < field.n ? field.p[n + 1] : '?';
        n += 2;
        if ((conversion != 'r' && conversion != 's') || (n < field.n && field.p[n] != ':'))
            return bad_format(r, "only !r and !s are supported");
    }
    struct jinja_str spec =
        n < field.n ? (struct jinja_str){field.p + n + 1, field.n - n - 1} : JINJA_STR("");
    int rc = field_value(r, f, name, &v);
    if (rc < 0 || !conversion)
        return rc < 0 ? rc : put_value(r, spec, &v);
    size_t mark = r->out.len;
    rc = conversion == 'r' ? jinja_print_repr(r, &v) : jinja_print(r, &v);
    if (rc == 0)
        rc = jinja_cut(r, mark, &text);
    return rc < 0 ? rc : put_value(r, spec, &text);
}

int jinja_format(struct jinja_run *r, struct jinja_str s, const struct jinja_args *args,
                 struct jinja_value *out)
{
    size_t mark = r->out.len;
    struct fields f = {.args = args};
    int rc = jinja_charge(r, 1 + s.n / 64);
    for (size_t i = 0; rc == 0 && i < s.n; i++) {
        char c = s.p[i];
        if (c != '{' && c != '}') {
            buf_putc(&r->out, c);
            continue;
        }
        if (i + 1 < s.n && s.p[i + 1] == c) {
            buf_putc(&r->out, c);
            i++;
            continue;
        }
        size_t end = i, depth = 0;
        do
            depth += end < s.n ? (size_t)(s.p[end] == '{') - (size_t)(s.p[end] == '}') : 0;
        while (depth > 0 && ++end < s.n);
        if (c == '}' || end >= s.n)
            return jinja_fail(r, SHOAL_EINVAL, "format has a single '%c'", c);
        rc = jinja_charge(r, 1);
        if (rc == 0)
            rc = put_field(r, &f, (struct jinja_str){s.p + i + 1, end - i - 1});
        i = end;
    }
    return rc < 0 ? rc : jinja_cut(r, mark, out);
}

/* ---- % -------------------------------------------------------------------------------------- */

struct values { /* the right side of % */
    const struct jinja_value *all;
    size_t next, n;
    bool mapped; /* %(name)s was used */
};

static int next_value(struct jinja_run *r, struct values *v, struct jinja_value *out)
{
    if (v->next >= v->n)
        return jinja_fail(r, SHOAL_EINVAL, "%% has fewer values than its text needs");
    *out = v->all->kind == JINJA_TUPLE ? v->all->list->at[v->next] : *v->all;
    v->next++;
    return 0;
}

static int put_converted(struct jinja_run *r, struct spec *s, char type,
                         const struct jinja_value *v)
{
    struct jinja_value text;
    int64_t i = 0;
    double x = 0;
    size_t mark = r->out.len;
    int rc;
    switch (type) {
    case 's':
    case 'r':
        rc = type == 's' ? jinja_print(r, v) : jinja_print_repr(r, v);
        if (rc == 0)
            rc = jinja_cut(r, mark, &text);
        s->fill = JINJA_STR(" ");
        s->align = s->align == '<' ? '<' : '>';
        return rc < 0 ? rc : put_text(r, s, text.str);
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        if (v->kind == JINJA_FLOAT && strchr("diu", type) && fabs(v->num) < 9e18)
            i = (int64_t)v->num;
        else if (!jinja_as_int(v, &i))
            break;
        s->type = strchr("diu", type) ? 'd' : type;
        return put_int(r, s, i);
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
        if (!jinja_as_number(v, &x))
            break;
        s->type = type;
        return put_float(r, s, x);
    default:
        return bad_format(r, "this conversion after % is not supported");
    }
    return jinja_fail(r, SHOAL_EINVAL, "%%%c does not work on %s", type, jinja_kind_name(v));
}

/* One conversion; *at is after its %. */
static int convert(struct jinja_run *r, struct jinja_str s, size_t *at, struct values *values)
{
    size_t i = *at;
    struct spec f = {.fill = JINJA_STR(" "), .precision = -1};
    struct jinja_value v;
    const struct jinja_value *named = NULL;
    if (i < s.n && s.p[i] == '(') {
        size_t end = jinja_text_find(s, JINJA_STR(")"), i);
        if (end == SIZE_MAX || values->all->kind != JINJA_DICT)
            return jinja_fail(r, SHOAL_EINVAL, "%%(name) needs a dict of values");
        named = jinja_dict_get(r, values->all->dict, (struct jinja_str){s.p + i + 1, end - i - 1});
        if (!named)
            return jinja_fail(r, SHOAL_EINVAL, "%% has no value of this name");
        values->mapped = true;
        i = end + 1;
    }
    for (; i < s.n && s.p[i] && strchr("-+ #0", s.p[i]); i++) {
        if (s.p[i] == '-')
            f.align = '<';
        else if (s.p[i] == '#')
            f.alternate = true;
        else if (s.p[i] == '0')
            f.zero = true;
        else if (f.sign != '+')
            f.sign = s.p[i];
    }
    for (; i < s.n && ascii_is_digit(s.p[i]) && f.width <= MAX_WIDTH; i++)
        f.width = f.width * 10 + (s.p[i] - '0');
    if (i < s.n && s.p[i] == '.')
        for (i++, f.precision = 0; i < s.n && ascii_is_digit(s.p[i]) && f.precision <= MAX_WIDTH;
             i++)
            f.precision = f.precision * 10 + (s.p[i] - '0');
    if (i >= s.n || f.width > MAX_WIDTH || f.precision > MAX_WIDTH)
        return jinja_fail(r, SHOAL_EINVAL, "a %% of a format is not complete");
    if (f.zero && f.align != '<') {
        f.fill = JINJA_STR("0");
        f.align = '=';
    }
    *at = i + 1;
    if (s.p[i] == '%') {
        buf_putc(&r->out, '%');
        return 0;
    }
    int rc = named ? 0 : next_value(r, values, &v);
    return rc < 0 ? rc : put_converted(r, &f, s.p[i], named ? named : &v);
}

int jinja_format_percent(struct jinja_run *r, struct jinja_str s, const struct jinja_value *values,
                         struct jinja_value *out)
{
    size_t mark = r->out.len;
    struct values v = {.all = values, .n = values->kind == JINJA_TUPLE ? values->list->n : 1};
    int rc = jinja_charge(r, 1 + s.n / 64);
    for (size_t i = 0; rc == 0 && i < s.n;) {
        if (s.p[i] != '%') {
            buf_putc(&r->out, s.p[i++]);
            continue;
        }
        i++;
        rc = jinja_charge(r, 1);
        if (rc == 0)
            rc = convert(r, s, &i, &v);
    }
    /* Python allows a dict, or an indexable value that is not a string, to go unused. */
    bool may_stay = v.mapped || values->kind == JINJA_DICT || values->kind == JINJA_LIST ||
                    values->kind == JINJA_RANGE || values->kind == JINJA_UNDEFINED;
    if (rc == 0 && v.next < v.n && !may_stay)
        rc = jinja_fail(r, SHOAL_EINVAL, "%% has more values than its text needs");
    return rc < 0 ? rc : jinja_cut(r, mark, out);
}
