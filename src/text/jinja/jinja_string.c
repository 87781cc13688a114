/* jinja_string.c - methods of strings; see jinja_eval.h. */
#include "text/jinja/jinja_eval.h"
#include "text/jinja/jinja_names.h"

struct method_call {
    struct jinja_run *r;
    const char *name;
    struct jinja_value self;
    struct jinja_value arg[3];
};

static int want_text(const struct method_call *c, size_t i)
{
    if (c->arg[i].kind == JINJA_STRING)
        return 0;
    return jinja_fail(c->r, SHOAL_EINVAL, "%s takes a string, not %s", c->name,
                      jinja_kind_name(&c->arg[i]));
}

/* An integer argument; `otherwise` if it is missing. */
static int want_int(const struct method_call *c, size_t i, int64_t otherwise, int64_t *out)
{
    *out = otherwise;
    if (c->arg[i].kind == JINJA_ABSENT || jinja_as_int(&c->arg[i], out))
        return 0;
    return jinja_fail(c->r, SHOAL_EINVAL, "%s takes an integer, not %s", c->name,
                      jinja_kind_name(&c->arg[i]));
}

static int push_text(const struct method_call *c, struct jinja_list *l, const char *p, size_t n)
{
    struct jinja_value v = jinja_string((struct jinja_str){p, n});
    v.markup = c->self.markup;
    int rc = jinja_charge(c->r, 1 + n / 64);
    return rc < 0 ? rc : jinja_list_push(c->r, l, v);
}

int jinja_string_escape(struct jinja_run *r, struct jinja_str s, struct jinja_value *out)
{
    static const char special[] = "&<>'\"";
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    size_t mark = r->out.len;
    for (size_t i = 0; i < s.n; i++) {
        const char *at = s.p[i] ? strchr(special, s.p[i]) : NULL;
        if (at)
            buf_puts(&r->out, names[at - special]);
        else
            buf_putc(&r->out, s.p[i]);
    }
    int rc = jinja_cut(r, mark, out);
    out->markup = true;
    return rc;
}

/* ---- split ---------------------------------------------------------------------------------- */

/* Words between runs of white space; after `limit` of them the rest is one piece. */
static int split_words(const struct method_call *c, int64_t limit, struct jinja_list *out)
{
    struct jinja_str s = jinja_text_strip(c->self.str, true, false, NULL);
    int rc = 0;
    while (rc == 0 && s.n) {
        size_t word = 0;
        uint32_t cp;
        if (limit >= 0 && (int64_t)out->n >= limit)
            return push_text(c, out, s.p, s.n);
        while (word < s.n) {
            size_t len = jinja_text_next(s.p + word, s.n - word, &cp);
            if (jinja_text_is_space(cp))
                break;
            word += len;
        }
        rc = push_text(c, out, s.p, word);
        s = jinja_text_strip((struct jinja_str){s.p + word, s.n - word}, true, false, NULL);
    }
    return rc;
}

static int rsplit_words(const struct method_call *c, int64_t limit, struct jinja_list *out)
{
    struct jinja_str s = jinja_text_strip(c->self.str, false, true, NULL);
    int rc = 0;
    while (rc == 0 && s.n) {
        size_t at = s.n;
        if (limit >= 0 && (int64_t)out->n >= limit) {
            rc = push_text(c, out, s.p, s.n);
            break;
        }
        while (at > 0) {
            size_t start = at - 1;
            uint32_t cp;
            while (start > 0 && ((uint8_t)s.p[start] & 0xc0) == 0x80)
                start--;
            jinja_text_next(s.p + start, s.n - start, &cp);
            if (jinja_text_is_space(cp))
                break;
            at = start;
        }
        rc = push_text(c, out, s.p + at, s.n - at);
        s = jinja_text_strip((struct jinja_str){s.p, at}, false, true, NULL);
    }
    jinja_list_reverse(out);
    return rc;
}

/* Offset of the last needle that ends at or before `end`, or SIZE_MAX. */
static size_t find_last(struct jinja_str s, struct jinja_str needle, size_t end)
{
    for (size_t at = end >= needle.n ? end - needle.n + 1 : 0; at-- > 0;)
        if (needle.n == 0 || memcmp(s.p + at, needle.p, needle.n) == 0)
            return at;
    return SIZE_MAX;
}

static int split_at(const struct method_call *c, int64_t limit, bool from_end,
                    struct jinja_list *out)
{
    struct jinja_str s = c->self.str, sep = c->arg[0].str;
    size_t start = 0, end = s.n;
    int rc = jinja_charge(c->r, s.n / 64);
    for (int64_t i = 0; rc == 0 && (limit < 0 || i < limit); i++) {
        size_t at = from_end ? find_last(s, sep, end) : jinja_text_find(s, sep, start);
        if (at == SIZE_MAX)
            break;
        if (from_end) {
            rc = push_text(c, out, s.p + at + sep.n, end - at - sep.n);
            end = at;
        } else {
            rc = push_text(c, out, s.p + start, at - start);
            start = at + sep.n;
        }
    }
    if (rc == 0)
        rc = push_text(c, out, s.p + start, end - start);
    if (from_end)
        jinja_list_reverse(out);
    return rc;
}

static int split(const struct method_call *c, bool from_end, struct jinja_value *out)
{
    int64_t limit;
    bool words = c->arg[0].kind == JINJA_ABSENT || c->arg[0].kind == JINJA_NONE;
    int rc = words ? 0 : want_text(c, 0);
    if (rc == 0)
        rc = want_int(c, 1, -1, &limit);
    if (rc == 0)
        rc = jinja_list_make(c->r, out, 0);
    if (rc < 0)
        return rc;
    if (words)
        return from_end ? rsplit_words(c, limit, out->list) : split_words(c, limit, out->list);
    if (c->arg[0].str.n == 0)
        return jinja_fail(c->r, SHOAL_EINVAL, "%s takes a string that is not empty", c->name);
    return split_at(c, limit, from_end, out->list);
}

/* Bytes of the line end at p, as str.splitlines() sees them; 0: none. */
static size_t line_end(const char *p, size_t n)
{
    uint32_t cp;
    if (n >= 2 && p[0] == '\r' && p[1] == '\n')
        return 2;
    size_t len = jinja_text_next(p, n, &cp);
    bool end = (cp >= 10 && cp <= 13) || (cp >= 0x1c && cp <= 0x1e) || cp == 0x85 || cp == 0x2028 ||
               cp == 0x2029;
    return end ? len : 0;
}

int jinja_string_lines(struct jinja_run *r, struct jinja_str s, bool ends, struct jinja_list *out)
{
    int rc = 0;
    for (size_t i = 0, start = 0; rc == 0 && i < s.n;) {
        size_t end = line_end(s.p + i, s.n - i);
        uint32_t cp;
        size_t text = i;
        i += end ? end : jinja_text_next(s.p + i, s.n - i, &cp);
        if (!end && i < s.n)
            continue;
        size_t stop = end && !ends ? text : i;
        rc = jinja_charge(r, 1 + (stop - start) / 16);
        if (rc == 0)
            rc = jinja_list_push(r, out,
                                 jinja_string((struct jinja_str){s.p + start, stop - start}));
        start = i;
    }
    return rc;
}

/* (before, separator, after) of the first or last separator */
static int partition(const struct method_call *c, bool from_end, struct jinja_value *out)
{
    struct jinja_str s = c->self.str, sep = c->arg[0].str;
    int rc = want_text(c, 0);
    if (rc == 0 && sep.n == 0)
        rc = jinja_fail(c->r, SHOAL_EINVAL, "%s takes a string that is not empty", c->name);
    if (rc == 0)
        rc = jinja_list_make(c->r, out, 3);
    if (rc < 0)
        return rc;
    size_t at = from_end ? find_last(s, sep, s.n) : jinja_text_find(s, sep, 0);
    bool none = at == SIZE_MAX;
    size_t first = none ? (from_end ? 0 : s.n) : at, rest = none ? first : at + sep.n;
    out->kind = JINJA_TUPLE;
    rc = push_text(c, out->list, s.p, first);
    if (rc == 0)
        rc = push_text(c, out->list, sep.p, none ? 0 : sep.n);
    return rc < 0 ? rc : push_text(c, out->list, s.p + rest, s.n - rest);
}

/* ---- replace, join -------------------------------------------------------------------------- */

int jinja_string_replace(struct jinja_run *r, struct jinja_str s, struct jinja_str from,
                         struct jinja_str to, int64_t count, struct jinja_value *out)
{
    struct buf *b = &r->out;
    size_t at = 0, mark = b->len;
    int rc = jinja_charge(r, s.n / 16);
    for (int64_t i = 0; rc == 0 && (count < 0 || i < count) && b->rc == 0; i++) {
        size_t hit = jinja_text_find(s, from, at);
        if (hit == SIZE_MAX)
            break;
        buf_put(b, s.p + at, hit - at);
        buf_put(b, to.p, to.n);
        at = hit + from.n;
        if (from.n == 0) { /* before every character, and at the end */
            uint32_t cp;
            size_t len = at < s.n ? jinja_text_next(s.p + at, s.n - at, &cp) : 0;
            buf_put(b, s.p + at, len);
            at += len;
            if (len == 0)
                break;
        }
    }
    buf_put(b, s.p + at, s.n - at);
    return rc < 0 ? rc : jinja_cut(r, mark, out);
}

static int replace(const struct method_call *c, struct jinja_value *out)
{
    struct jinja_value from = c->arg[0], to = c->arg[1];
    int64_t count = -1;
    int rc = want_text(c, 0);
    if (rc == 0)
        rc = want_text(c, 1);
    if (rc == 0)
        rc = want_int(c, 2, -1, &count);
    if (rc == 0 && c->self.markup && !from.markup)
        rc = jinja_string_escape(c->r, from.str, &from);
    if (rc == 0 && c->self.markup && !to.markup)
        rc = jinja_string_escape(c->r, to.str, &to);
    return rc < 0 ? rc : jinja_string_replace(c->r, c->self.str, from.str, to.str, count, out);
}

static int join(const struct method_call *c, struct jinja_value *out)
{
    struct jinja_list *items;
    size_t mark = c->r->out.len;
    int rc = jinja_iterate(c->r, &c->arg[0], &items);
    for (size_t i = 0; rc == 0 && i < items->n; i++) {
        const struct jinja_value *v = &items->at[i];
        if (v->kind != JINJA_STRING)
            return jinja_fail(c->r, SHOAL_EINVAL, "join takes strings, not %s", jinja_kind_name(v));
        rc = jinja_charge(c->r, 1);
        if (i)
            buf_put(&c->r->out, c->self.str.p, c->self.str.n);
        buf_put(&c->r->out, v->str.p, v->str.n);
    }
    return rc < 0 ? rc : jinja_cut(c->r, mark, out);
}

/* ---- find and compare ----------------------------------------------------------------------- */

static int affix(const struct method_call *c, bool start, struct jinja_value *out)
{
    const struct jinja_value *v = &c->arg[0];
    struct jinja_str s = c->self.str;
    struct jinja_list one = {(struct jinja_value *)(uintptr_t)v, 1, 1};
    const struct jinja_list *l = v->kind == JINJA_TUPLE ? v->list : &one;
    bool yes = false;
    if (c->arg[1].kind != JINJA_ABSENT || c->arg[2].kind != JINJA_ABSENT)
        return jinja_fail(c->r, SHOAL_EUNSUPPORTED, "%s with a range is not supported", c->name);
    for (size_t i = 0; !yes && i < l->n; i++) {
        struct jinja_str a = l->at[i].str;
        if (l->at[i].kind != JINJA_STRING)
            return jinja_fail(c->r, SHOAL_EINVAL, "%s takes a string or a tuple of strings",
                              c->name);
        yes = a.n <= s.n && (a.n == 0 || memcmp(start ? s.p : s.p + (s.n - a.n), a.p, a.n) == 0);
    }
    *out = jinja_bool(yes);
    return jinja_charge(c->r, l->n);
}

/* find, rfind, index and count */
static int search(const struct method_call *c, int method, struct jinja_value *out)
{
    struct jinja_str s = c->self.str, what = c->arg[0].str;
    int rc = want_text(c, 0);
    int64_t n = 0;
    if (rc == 0 && (c->arg[1].kind != JINJA_ABSENT || c->arg[2].kind != JINJA_ABSENT))
        rc = jinja_fail(c->r, SHOAL_EUNSUPPORTED, "%s with a range is not supported", c->name);
    if (rc == 0)
        rc = jinja_charge(c->r, s.n / 16);
    if (rc < 0)
        return rc;
    if (method == JINJA_METHOD_COUNT) {
        for (size_t at = 0; what.n && (at = jinja_text_find(s, what, at)) != SIZE_MAX; at += what.n)
            n++;
        *out = jinja_int(what.n ? n : (int64_t)jinja_text_points(s) + 1);
        return 0;
    }
    size_t at =
        method == JINJA_METHOD_RFIND ? find_last(s, what, s.n) : jinja_text_find(s, what, 0);
    if (at == SIZE_MAX && method == JINJA_METHOD_INDEX)
        return jinja_fail(c->r, SHOAL_EINVAL, "index of a text that does not occur");
    *out = jinja_int(at == SIZE_MAX ? -1 : (int64_t)jinja_text_points((struct jinja_str){s.p, at}));
    return 0;
}

/* isalpha and the like: every character is of the kind, and there is at least one */
static int classify(const struct method_call *c, int method, struct jinja_value *out)
{
    struct jinja_str s = c->self.str;
    bool all = true, cased = false;
    for (size_t i = 0; all && i < s.n;) {
        uint32_t cp;
        i += jinja_text_next(s.p + i, s.n - i, &cp);
        cased |= jinja_text_is_cased(cp);
        switch (method) {
        case JINJA_METHOD_ISALNUM:
            all = jinja_text_is_word(cp) && cp != '_';
            break;
        case JINJA_METHOD_ISALPHA:
            all = jinja_text_is_alpha(cp);
            break;
        case JINJA_METHOD_ISASCII:
            all = cp < 0x80;
            break;
        case JINJA_METHOD_ISDIGIT:
            all = jinja_text_is_digit(cp);
            break;
        case JINJA_METHOD_ISSPACE:
            all = jinja_text_is_space(cp);
            break;
        case JINJA_METHOD_ISLOWER:
            all = !jinja_text_is_cased(cp) || jinja_text_is_lower(cp);
            break;
        default: /* isupper */
            all = !jinja_text_is_cased(cp) || jinja_text_is_upper(cp);
            break;
        }
    }
    if (method == JINJA_METHOD_ISLOWER || method == JINJA_METHOD_ISUPPER)
        all = all && cased;
    *out = jinja_bool(all && (s.n > 0 || method == JINJA_METHOD_ISASCII));
    return jinja_charge(c->r, s.n / 16);
}

/* ---- ends and case -------------------------------------------------------------------------- */

static int strip(const struct method_call *c, int method, struct jinja_value *out)
{
    bool start = method != JINJA_METHOD_RSTRIP, end = method != JINJA_METHOD_LSTRIP;
    const struct jinja_str *set = NULL;
    if (c->arg[0].kind != JINJA_ABSENT && c->arg[0].kind != JINJA_NONE) {
        int rc = want_text(c, 0);
        if (rc < 0)
            return rc;
        set = &c->arg[0].str;
    }
    *out = jinja_string(jinja_text_strip(c->self.str, start, end, set));
    return jinja_charge(c->r, (c->self.str.n - out->str.n) / 64 * (set ? 1 + set->n / 64 : 1));
}

static int remove_affix(const struct method_call *c, bool start, struct jinja_value *out)
{
    struct jinja_str s = c->self.str, a = c->arg[0].str;
    int rc = want_text(c, 0);
    if (rc < 0)
        return rc;
    if (a.n && a.n <= s.n && memcmp(start ? s.p : s.p + (s.n - a.n), a.p, a.n) == 0) {
        s.p += start ? a.n : 0;
        s.n -= a.n;
    }
    *out = jinja_string(s);
    return 0;
}

static int zfill(const struct method_call *c, struct jinja_value *out)
{
    struct jinja_str s = c->self.str;
    size_t mark = c->r->out.len, sign = s.n && (s.p[0] == '-' || s.p[0] == '+');
    int64_t width;
    int rc = want_int(c, 0, 0, &width);
    if (rc < 0)
        return rc;
    int64_t missing = width - (int64_t)jinja_text_points(s);
    buf_put(&c->r->out, s.p, sign);
    for (int64_t i = 0; i < missing && c->r->out.rc == 0; i++)
        buf_putc(&c->r->out, '0');
    buf_put(&c->r->out, s.p + sign, s.n - sign);
    return jinja_cut(c->r, mark, out);
}

static int change_case(const struct method_call *c, int method, struct jinja_value *out)
{
    struct buf *b = &c->r->out;
    size_t mark = b->len;
    switch (method) {
    case JINJA_METHOD_UPPER:
        jinja_text_upper(b, c->self.str);
        break;
    case JINJA_METHOD_LOWER:
        jinja_text_lower(b, c->self.str);
        break;
    case JINJA_METHOD_TITLE:
        jinja_text_title(b, c->self.str);
        break;
    default:
        jinja_text_capitalize(b, c->self.str);
        break;
    }
    return jinja_cut(c->r, mark, out);
}

static int split_lines(const struct method_call *c, struct jinja_value *out)
{
    int rc = jinja_list_make(c->r, out, 0);
    bool ends = c->arg[0].kind != JINJA_ABSENT && jinja_truth(&c->arg[0]);
    if (rc == 0)
        rc = jinja_string_lines(c->r, c->self.str, ends, out->list);
    for (size_t i = 0; rc == 0 && i < out->list->n; i++)
        out->list->at[i].markup = c->self.markup;
    return rc;
}

static int dispatch(const struct method_call *c, int method, struct jinja_value *out)
{
    switch (method) {
    case JINJA_METHOD_STRIP:
    case JINJA_METHOD_LSTRIP:
    case JINJA_METHOD_RSTRIP:
        return strip(c, method, out);
    case JINJA_METHOD_STARTSWITH:
    case JINJA_METHOD_ENDSWITH:
        return affix(c, method == JINJA_METHOD_STARTSWITH, out);
    case JINJA_METHOD_SPLIT:
    case JINJA_METHOD_RSPLIT:
        return split(c, method == JINJA_METHOD_RSPLIT, out);
    case JINJA_METHOD_SPLITLINES:
        return split_lines(c, out);
    case JINJA_METHOD_PARTITION:
    case JINJA_METHOD_RPARTITION:
        return partition(c, method == JINJA_METHOD_RPARTITION, out);
    case JINJA_METHOD_REPLACE:
        return replace(c, out);
    case JINJA_METHOD_JOIN:
        return join(c, out);
    case JINJA_METHOD_FIND:
    case JINJA_METHOD_RFIND:
    case JINJA_METHOD_INDEX:
    case JINJA_METHOD_COUNT:
        return search(c, method, out);
    case JINJA_METHOD_REMOVEPREFIX:
    case JINJA_METHOD_REMOVESUFFIX:
        return remove_affix(c, method == JINJA_METHOD_REMOVEPREFIX, out);
    case JINJA_METHOD_ZFILL:
        return zfill(c, out);
    case JINJA_METHOD_UPPER:
    case JINJA_METHOD_LOWER:
    case JINJA_METHOD_TITLE:
    case JINJA_METHOD_CAPITALIZE:
        return change_case(c, method, out);
    default:
        return classify(c, method, out);
    }
}

int jinja_string_call(struct jinja_run *r, const struct jinja_function *f,
                      const struct jinja_args *args, struct jinja_value *out)
{
    /* Argument counts of each method: maximum, minimum. */
    static const uint8_t counts[JINJA_METHOD_N][2] = {
        [JINJA_METHOD_COUNT] = {3, 1},        [JINJA_METHOD_ENDSWITH] = {3, 1},
        [JINJA_METHOD_FIND] = {3, 1},         [JINJA_METHOD_INDEX] = {3, 1},
        [JINJA_METHOD_JOIN] = {1, 1},         [JINJA_METHOD_LSTRIP] = {1, 0},
        [JINJA_METHOD_PARTITION] = {1, 1},    [JINJA_METHOD_REMOVEPREFIX] = {1, 1},
        [JINJA_METHOD_REMOVESUFFIX] = {1, 1}, [JINJA_METHOD_REPLACE] = {3, 2},
        [JINJA_METHOD_RFIND] = {3, 1},        [JINJA_METHOD_RPARTITION] = {1, 1},
        [JINJA_METHOD_RSPLIT] = {2, 0},       [JINJA_METHOD_RSTRIP] = {1, 0},
        [JINJA_METHOD_SPLIT] = {2, 0},        [JINJA_METHOD_SPLITLINES] = {1, 0},
        [JINJA_METHOD_STARTSWITH] = {3, 1},   [JINJA_METHOD_STRIP] = {1, 0},
        [JINJA_METHOD_ZFILL] = {1, 1},
    };
    static const char *const unnamed[] = {"", "", ""};
    static const char *const of_split[] = {"sep", "maxsplit", ""};
    static const char *const of_lines[] = {"keepends", "", ""};
    struct method_call c = {.r = r, .name = f->name, .self = f->self};
    int rc;
    if (f->method == JINJA_METHOD_FORMAT) {
        rc = jinja_format(r, f->self.str, args, out);
    } else {
        bool splits = f->method == JINJA_METHOD_SPLIT || f->method == JINJA_METHOD_RSPLIT;
        rc = jinja_args_bind(r, f->name, args,
                             splits                                 ? of_split
                             : f->method == JINJA_METHOD_SPLITLINES ? of_lines
                                                                    : unnamed,
                             counts[f->method][0], counts[f->method][1], c.arg);
        if (rc == 0)
            rc = jinja_charge(r, f->self.str.n / 64);
        if (rc == 0)
            rc = dispatch(&c, f->method, out);
    }
    if (rc == 0 && out->kind == JINJA_STRING)
        out->markup = f->self.markup;
    return rc;
}
