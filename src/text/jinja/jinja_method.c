/* jinja_method.c - methods of strings and dicts, and the global functions; see jinja_eval.h. */
#include <math.h>
#include <stdio.h>

#include "text/jinja/jinja_eval.h"

static const struct {
    const char *name;
    enum jinja_kind kind;
    enum jinja_function_id id;
} methods[] = {
    {"upper", JINJA_STRING, JINJA_FN_UPPER},
    {"lower", JINJA_STRING, JINJA_FN_LOWER},
    {"strip", JINJA_STRING, JINJA_FN_STRIP},
    {"lstrip", JINJA_STRING, JINJA_FN_LSTRIP},
    {"rstrip", JINJA_STRING, JINJA_FN_RSTRIP},
    {"title", JINJA_STRING, JINJA_FN_TITLE},
    {"capitalize", JINJA_STRING, JINJA_FN_CAPITALIZE},
    {"startswith", JINJA_STRING, JINJA_FN_STARTSWITH},
    {"endswith", JINJA_STRING, JINJA_FN_ENDSWITH},
    {"split", JINJA_STRING, JINJA_FN_SPLIT},
    {"replace", JINJA_STRING, JINJA_FN_REPLACE},
    {"format", JINJA_STRING, JINJA_FN_FORMAT},
    {"get", JINJA_DICT, JINJA_FN_GET},
    {"items", JINJA_DICT, JINJA_FN_ITEMS},
    {"keys", JINJA_DICT, JINJA_FN_KEYS},
    {"values", JINJA_DICT, JINJA_FN_VALUES},
    {"dictsort", JINJA_DICT, JINJA_FN_DICTSORT},
};

bool jinja_method_find(enum jinja_kind kind, struct jinja_str name, enum jinja_function_id *out)
{
    if (kind == JINJA_KWARGS)
        kind = JINJA_DICT;
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        if (methods[i].kind == kind && jinja_str_is(name, methods[i].name)) {
            *out = methods[i].id;
            return true;
        }
    return false;
}

static bool is_text(const struct jinja_value *v)
{
    return v->kind == JINJA_STRING && v->str.p;
}

/* The i-th argument, or NULL when it is not given. */
static const struct jinja_value *arg_at(const struct jinja_value *args, size_t n, size_t i)
{
    return i < n && args[i].kind != JINJA_ABSENT ? &args[i] : NULL;
}

/* ---- strings -------------------------------------------------------------------------------- */

static int capitalize(struct jinja_run *r, struct jinja_str s)
{
    uint32_t cp;
    size_t len = s.n ? jinja_text_next(s.p, s.n, &cp) : 0;
    /* The reference takes one UTF-16 unit, which is not a letter outside the BMP. */
    if (len && len < 4)
        jinja_text_upper(&r->out, (struct jinja_str){s.p, len});
    else
        len = 0;
    buf_put(&r->out, s.p + len, s.n - len);
    return 0;
}

static bool has_affix(struct jinja_str s, struct jinja_str affix, bool start)
{
    return affix.n <= s.n && memcmp(start ? s.p : s.p + (s.n - affix.n), affix.p, affix.n) == 0;
}

static int affix(struct jinja_run *r, struct jinja_str s, const struct jinja_value *args, size_t n,
                 bool start, struct jinja_value *out)
{
    const char *name = start ? "startswith" : "endswith";
    const struct jinja_value *v = arg_at(args, n, 0);
    bool yes = false;
    if (v && is_text(v)) {
        yes = has_affix(s, v->str, start);
    } else if (v && jinja_is_list(v)) {
        for (size_t i = 0; !yes && i < v->list->n; i++) {
            if (!is_text(&v->list->at[i]))
                return jinja_fail(r, SHOAL_EINVAL, "%s() takes strings", name);
            yes = has_affix(s, v->list->at[i].str, start);
        }
    } else {
        return jinja_fail(r, SHOAL_EINVAL, "%s() takes a string or a tuple of strings", name);
    }
    *out = jinja_bool(yes);
    return jinja_charge(r, s.n / 64);
}

static int push_text(struct jinja_run *r, struct jinja_list *l, const char *p, size_t n)
{
    int rc = jinja_charge(r, 1 + n / 64);
    return rc < 0 ? rc : jinja_list_push(r, l, jinja_string((struct jinja_str){p, n}));
}

/* Words between runs of white space; the last of `limit` splits takes the rest as it is. */
static int split_words(struct jinja_run *r, struct jinja_str s, double limit,
                       struct jinja_list *out)
{
    int rc = 0;
    s = jinja_text_trim(s, true, false);
    while (rc == 0 && s.n) {
        size_t word = 0;
        while (word < s.n) {
            uint32_t cp;
            size_t len = jinja_text_next(s.p + word, s.n - word, &cp);
            if (jinja_text_is_space(cp))
                break;
            word += len;
        }
        if (limit != -1 && (double)out->n >= limit)
            return push_text(r, out, s.p, s.n);
        rc = push_text(r, out, s.p, word);
        s = jinja_text_trim((struct jinja_str){s.p + word, s.n - word}, true, false);
    }
    return rc;
}

static int split_at(struct jinja_run *r, struct jinja_str s, struct jinja_str sep, double limit,
                    struct jinja_list *out)
{
    double n = 1; /* pieces without a limit */
    for (size_t at = 0; (at = jinja_text_find(s, sep, at)) != SIZE_MAX; at += sep.n)
        n++;
    double keep = n - 1; /* splits to make */
    if (limit != -1 && n > limit)
        keep = limit >= 0 ? limit : fmax(n + limit, 0); /* below -1 the reference counts back */
    int rc = jinja_charge(r, s.n / 64);
    size_t at = 0;
    for (double i = 0; rc == 0 && i < keep; i++) {
        size_t end = jinja_text_find(s, sep, at);
        if (end == SIZE_MAX)
            break;
        rc = push_text(r, out, s.p + at, end - at);
        at = end + sep.n;
    }
    return rc < 0 ? rc : push_text(r, out, s.p + at, s.n - at);
}

static int split(struct jinja_run *r, struct jinja_str s, const struct jinja_value *args, size_t n,
                 struct jinja_value *out)
{
    const struct jinja_value *sep = arg_at(args, n, 0), *limit = arg_at(args, n, 1);
    if (sep && sep->kind != JINJA_NONE && !is_text(sep))
        return jinja_fail(r, SHOAL_EINVAL, "split() takes a string, not %s", jinja_kind_name(sep));
    if (limit && limit->kind != JINJA_INT)
        return jinja_fail(r, SHOAL_EINVAL, "the limit of split() must be an integer, not %s",
                          jinja_kind_name(limit));
    int rc = jinja_list_make(r, out, 0);
    double max = limit ? limit->num : -1;
    if (rc < 0)
        return rc;
    if (!sep || sep->kind == JINJA_NONE)
        return split_words(r, s, max, out->list);
    if (sep->str.n == 0)
        return jinja_fail(r, SHOAL_EINVAL, "split() takes a string that is not empty");
    return split_at(r, s, sep->str, max, out->list);
}

static void replace_all(struct buf *out, struct jinja_str s, struct jinja_str from,
                        struct jinja_str to, double count)
{
    size_t at = 0;
    for (double i = 0; i < count && out->rc == 0; i++) {
        size_t hit = jinja_text_find(s, from, at);
        if (hit == SIZE_MAX)
            break;
        buf_put(out, s.p + at, hit - at);
        buf_put(out, to.p, to.n);
        at = hit + from.n;
        if (from.n == 0) { /* before every character, and at the end */
            uint32_t cp;
            size_t len = at < s.n ? jinja_text_next(s.p + at, s.n - at, &cp) : 0;
            buf_put(out, s.p + at, len);
            at += len;
            if (len == 0)
                break;
        }
    }
    buf_put(out, s.p + at, s.n - at);
}

static int replace(struct jinja_run *r, struct jinja_str s, const struct jinja_value *args,
                   size_t n, struct jinja_value *out)
{
    const struct jinja_value *count = arg_at(args, n, 2);
    if (n < 2 || !is_text(&args[0]) || !is_text(&args[1]))
        return jinja_fail(r, SHOAL_EINVAL, "replace() takes two strings");
    if (count && count->kind == JINJA_KWARGS)
        count = jinja_dict_get(r, count->dict, JINJA_STR("count"));
    if (count && count->kind != JINJA_INT && count->kind != JINJA_NONE)
        return jinja_fail(r, SHOAL_EINVAL, "the count of replace() must be an integer, not %s",
                          jinja_kind_name(count));
    double max = count && count->kind == JINJA_INT && count->num >= 0 ? count->num : INFINITY;
    size_t mark = r->out.len;
    int rc = jinja_charge(r, s.n / 16);
    if (rc < 0)
        return rc;
    replace_all(&r->out, s, args[0].str, args[1].str, max);
    return jinja_cut(r, mark, out);
}

/* The value that {field} of format() stands for: the next argument, one by place, or by name. */
static const struct jinja_value *field_value(struct jinja_run *r, struct jinja_str field,
                                             const struct jinja_value *args, size_t n, size_t *next)
{
    const struct jinja_dict *named = NULL;
    if (n && args[n - 1].kind == JINJA_KWARGS)
        named = args[--n].dict;
    if (field.n == 0)
        return arg_at(args, n, (*next)++);
    if (field.n == 1 && field.p[0] >= '0' && field.p[0] <= '9')
        return arg_at(args, n, (size_t)(field.p[0] - '0'));
    return named ? jinja_dict_get(r, named, field) : NULL;
}

/* 'a{}b'.format(x): fields without conversions and formats. */
static int format(struct jinja_run *r, struct jinja_str s, const struct jinja_value *args, size_t n,
                  struct jinja_value *out)
{
    size_t mark = r->out.len, next = 0;
    int rc = jinja_charge(r, 1 + s.n / 64);
    for (size_t i = 0; rc == 0 && i < s.n; i++) {
        bool brace = s.p[i] == '{' || s.p[i] == '}';
        if (!brace || (i + 1 < s.n && s.p[i + 1] == s.p[i])) {
            buf_putc(&r->out, s.p[i]);
            i += brace;
            continue;
        }
        size_t end = s.p[i] == '{' ? jinja_text_find(s, JINJA_STR("}"), i) : SIZE_MAX;
        const struct jinja_value *v =
            end == SIZE_MAX
                ? NULL
                : field_value(r, (struct jinja_str){s.p + i + 1, end - i - 1}, args, n, &next);
        if (!v)
            return jinja_fail(r, SHOAL_EINVAL,
                              "format() has no argument for a field, or the field "
                              "is not supported");
        rc = jinja_print(r, v);
        i = end;
    }
    return rc < 0 ? rc : jinja_cut(r, mark, out);
}

/* Does set contain the character of n bytes at p? */
static bool has_char(struct jinja_str set, const char *p, size_t n)
{
    return jinja_text_find(set, (struct jinja_str){p, n}, 0) != SIZE_MAX;
}

/* Removes white space, or the characters of the argument, from the ends. */
static int strip(struct jinja_run *r, struct jinja_str s, const struct jinja_value *args, size_t n,
                 bool start, bool end, struct jinja_value *out)
{
    const struct jinja_value *set = arg_at(args, n, 0);
    uint32_t cp;
    if (!set || !is_text(set)) {
        *out = jinja_string(jinja_text_trim(s, start, end));
        return 0;
    }
    int rc = jinja_charge(r, s.n / 64 * (1 + set->str.n / 64));
    while (start && s.n > 0) {
        size_t len = jinja_text_next(s.p, s.n, &cp);
        if (!has_char(set->str, s.p, len))
            break;
        s.p += len;
        s.n -= len;
    }
    while (end && s.n > 0) {
        size_t at = s.n - 1;
        while (at > 0 && ((uint8_t)s.p[at] & 0xc0) == 0x80)
            at--;
        if (!has_char(set->str, s.p + at, s.n - at))
            break;
        s.n = at;
    }
    *out = jinja_string(s);
    return rc;
}

static int string_method(struct jinja_run *r, const struct jinja_function *f,
                         const struct jinja_value *args, size_t n, struct jinja_value *out)
{
    struct jinja_str s = f->self.str;
    size_t mark = r->out.len;
    switch (f->id) {
    case JINJA_FN_STRIP:
        return strip(r, s, args, n, true, true, out);
    case JINJA_FN_LSTRIP:
        return strip(r, s, args, n, true, false, out);
    case JINJA_FN_RSTRIP:
        return strip(r, s, args, n, false, true, out);
    case JINJA_FN_STARTSWITH:
    case JINJA_FN_ENDSWITH:
        return affix(r, s, args, n, f->id == JINJA_FN_STARTSWITH, out);
    case JINJA_FN_SPLIT:
        return split(r, s, args, n, out);
    case JINJA_FN_REPLACE:
        return replace(r, s, args, n, out);
    case JINJA_FN_FORMAT:
        return format(r, s, args, n, out);
    case JINJA_FN_UPPER:
        jinja_text_upper(&r->out, s);
        break;
    case JINJA_FN_LOWER:
        jinja_text_lower(&r->out, s);
        break;
    case JINJA_FN_TITLE:
        jinja_text_title(&r->out, s);
        break;
    default:
        capitalize(r, s);
        break;
    }
    return jinja_cut(r, mark, out);
}

/* ---- dicts ---------------------------------------------------------------------------------- */

static int dict_get(struct jinja_run *r, const struct jinja_dict *d, const struct jinja_value *args,
                    size_t n, struct jinja_value *out)
{
    const struct jinja_value *key = arg_at(args, n, 0), *otherwise = arg_at(args, n, 1);
    if (!key || !is_text(key))
        return jinja_fail(r, SHOAL_EINVAL, "get() takes a string");
    if (otherwise && otherwise->kind == JINJA_KWARGS)
        return jinja_fail(r, SHOAL_EINVAL, "get() takes no named arguments");
    const struct jinja_value *v = jinja_dict_get(r, d, key->str);
    if (!v || v->kind == JINJA_ABSENT)
        v = otherwise;
    *out = v ? *v : jinja_none();
    return 0;
}

static int dict_list(struct jinja_run *r, const struct jinja_dict *d, enum jinja_function_id id,
                     struct jinja_value *out)
{
    int rc = jinja_charge(r, d->n);
    if (rc == 0)
        rc = jinja_list_make(r, out, d->n);
    for (size_t i = 0; rc == 0 && i < d->n; i++) {
        struct jinja_value key = jinja_string(d->at[i].key), item = d->at[i].value;
        if (id == JINJA_FN_KEYS)
            item = key;
        if (id == JINJA_FN_ITEMS) {
            rc = jinja_list_make(r, &item, 2);
            if (rc == 0)
                rc = jinja_list_push(r, item.list, key);
            if (rc == 0)
                rc = jinja_list_push(r, item.list, d->at[i].value);
        }
        if (rc == 0)
            rc = jinja_list_push(r, out->list, item);
    }
    return rc;
}

static int dict_sort(struct jinja_run *r, const struct jinja_dict *d,
                     const struct jinja_value *args, size_t n, struct jinja_value *out)
{
    static const char *const names[] = {"case_sensitive", "by", "reverse"};
    struct jinja_value v[] = {jinja_bool(false), jinja_string(JINJA_STR("key")), jinja_bool(false)};
    const struct jinja_dict *named = NULL;
    if (n && args[n - 1].kind == JINJA_KWARGS)
        named = args[--n].dict;
    for (size_t i = 0; i < 3; i++) {
        struct jinja_str name = {names[i], strlen(names[i])};
        const struct jinja_value *given = arg_at(args, n, i);
        if (!given && named)
            given = jinja_dict_get(r, named, name);
        if (!given || given->kind == JINJA_ABSENT)
            continue;
        if (given->kind != v[i].kind || jinja_is_hollow(given))
            return jinja_fail(r, SHOAL_EINVAL, "%s of dictsort cannot be %s", names[i],
                              jinja_kind_name(given));
        v[i] = *given;
    }
    bool by_value = jinja_str_is(v[1].str, "value");
    if (!by_value && !jinja_str_is(v[1].str, "key"))
        return jinja_fail(r, SHOAL_EINVAL, "dictsort is by 'key' or by 'value'");
    return jinja_sort_dict(r, d, v[2].b, v[0].b, by_value, out);
}

/* ---- global functions ----------------------------------------------------------------------- */

static int range(struct jinja_run *r, const struct jinja_value *args, size_t n,
                 struct jinja_value *out)
{
    double v[3] = {0, 0, 1};
    if (n < 1 || n > 3)
        return jinja_fail(r, SHOAL_EINVAL, "range() takes one to three numbers");
    for (size_t i = 0; i < n; i++) {
        if (!jinja_is_number(&args[i]))
            return jinja_fail(r, SHOAL_EINVAL, "range() takes numbers, not %s",
                              jinja_kind_name(&args[i]));
        v[n == 1 ? 1 : i] = args[i].num;
    }
    if (v[2] == 0)
        return jinja_fail(r, SHOAL_EINVAL, "the step of range() must not be zero");
    int rc = jinja_list_make(r, out, 0);
    for (double i = v[0]; rc == 0 && (v[2] > 0 ? i < v[1] : i > v[1]); i += v[2]) {
        rc = jinja_charge(r, 1);
        if (rc == 0)
            rc = jinja_list_push(r, out->list, i == floor(i) ? jinja_int(i) : jinja_float(i));
    }
    return rc;
}

static int raise_exception(struct jinja_run *r, const struct jinja_value *args, size_t n)
{
    struct jinja_str s = JINJA_STR("");
    int rc = n && args[0].kind != JINJA_ABSENT ? jinja_raw_text(r, &args[0], &s) : 0;
    if (rc < 0)
        return rc;
    /* No more than fits, and not half a character. */
    size_t max = s.n < 240 ? s.n : 240;
    while (max < s.n && max > 0 && ((uint8_t)s.p[max] & 0xc0) == 0x80)
        max--;
    return jinja_fail(r, SHOAL_EINVAL, "%.*s", (int)max, s.p);
}

static void put_time(struct buf *out, const struct tm *t, char what)
{
    static const char *const months[] = {"January",   "February", "March",    "April",
                                         "May",       "June",     "July",     "August",
                                         "September", "October",  "November", "December"};
    const char *month = months[t->tm_mon >= 0 && t->tm_mon < 12 ? t->tm_mon : 0];
    switch (what) {
    case 'Y':
        buf_printf(out, "%d", t->tm_year + 1900);
        return;
    case 'm':
        buf_printf(out, "%02d", t->tm_mon + 1);
        return;
    case 'd':
        buf_printf(out, "%02d", t->tm_mday);
        return;
    case 'b':
        buf_printf(out, "%.3s", month);
        return;
    case 'B':
        buf_puts(out, month);
        return;
    case 'H':
        buf_printf(out, "%02d", t->tm_hour);
        return;
    case 'M':
        buf_printf(out, "%02d", t->tm_min);
        return;
    case '%':
        buf_putc(out, '%');
        return;
    default: /* the reference keeps unknown ones */
        buf_putc(out, '%');
        buf_putc(out, what);
    }
}

static int strftime_now(struct jinja_run *r, const struct jinja_value *args, size_t n,
                        struct jinja_value *out)
{
    if (n < 1 || !is_text(&args[0]))
        return jinja_fail(r, SHOAL_EINVAL, "strftime_now() takes a string");
    struct jinja_str s = args[0].str;
    size_t mark = r->out.len;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '%' && i + 1 < s.n)
            put_time(&r->out, &r->now, s.p[++i]);
        else
            buf_putc(&r->out, s.p[i]);
    return jinja_cut(r, mark, out);
}

static int add_pair(struct jinja_run *r, struct jinja_dict *d, const struct jinja_value *pair)
{
    struct jinja_value items = *pair;
    int rc = is_text(pair) ? jinja_split_points(r, pair->str, &items) : 0;
    if (rc < 0)
        return rc;
    if (!jinja_is_list(&items) || items.list->n != 2 || !is_text(&items.list->at[0]))
        return jinja_fail(r, SHOAL_EINVAL, "namespace() takes pairs of a string and a value");
    return jinja_dict_set(r, d, items.list->at[0].str, items.list->at[1]);
}

static int add_entries(struct jinja_run *r, struct jinja_dict *to, const struct jinja_dict *from)
{
    int rc = jinja_charge(r, from->n);
    for (size_t i = 0; rc == 0 && i < from->n; i++)
        rc = jinja_dict_set(r, to, from->at[i].key, from->at[i].value);
    return rc;
}

static int make_namespace(struct jinja_run *r, const struct jinja_value *args, size_t n,
                          struct jinja_value *out)
{
    const struct jinja_dict *named = NULL;
    if (n && args[n - 1].kind == JINJA_KWARGS)
        named = args[--n].dict;
    if (n > 1)
        return jinja_fail(r, SHOAL_EINVAL, "namespace() takes at most one plain argument");
    int rc = jinja_dict_make(r, out);
    if (rc < 0)
        return rc;
    out->kind = JINJA_NAMESPACE;
    if (n == 1 && jinja_is_dict(&args[0]))
        rc = add_entries(r, out->dict, args[0].dict);
    else if (n == 1 && jinja_is_list(&args[0]))
        for (size_t i = 0; rc == 0 && i < args[0].list->n; i++)
            rc = add_pair(r, out->dict, &args[0].list->at[i]);
    else if (n == 1)
        rc = jinja_fail(r, SHOAL_EINVAL, "namespace() takes a dict, not %s",
                        jinja_kind_name(&args[0]));
    return rc == 0 && named ? add_entries(r, out->dict, named) : rc;
}

int jinja_method_call(struct jinja_run *r, const struct jinja_function *f,
                      const struct jinja_value *args, size_t n, struct jinja_value *out)
{
    *out = jinja_undefined();
    switch (f->id) {
    case JINJA_FN_NAMESPACE:
        return make_namespace(r, args, n, out);
    case JINJA_FN_RANGE:
        return range(r, args, n, out);
    case JINJA_FN_RAISE_EXCEPTION:
        return raise_exception(r, args, n);
    case JINJA_FN_STRFTIME_NOW:
        return strftime_now(r, args, n, out);
    case JINJA_FN_GET:
        return dict_get(r, f->self.dict, args, n, out);
    case JINJA_FN_ITEMS:
    case JINJA_FN_KEYS:
    case JINJA_FN_VALUES:
        return dict_list(r, f->self.dict, f->id, out);
    case JINJA_FN_DICTSORT:
        return dict_sort(r, f->self.dict, args, n, out);
    default:
        return string_method(r, f, args, n, out);
    }
}
