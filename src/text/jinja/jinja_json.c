/* jinja_json.c - see jinja_json.h. */
#include "text/jinja/jinja_json.h"

#include <math.h>
#include <stdlib.h>

#include "base/ascii.h"
#include "base/decimal.h"
#include "base/utf8.h"
#include "text/jinja/jinja_number.h"

/* ---- reading -------------------------------------------------------------------------------- */

struct reader {
    struct jinja_run *r;
    const char *p;
    size_t n, at;
    int depth;
    jinja_json_text *put; /* NULL: strings stay as they are */
    void *put_ctx;
};

static int not_json(struct reader *d)
{
    return jinja_fail(d->r, SHOAL_EFORMAT, "context is not JSON at byte %zu", d->at);
}

static void skip_blanks(struct reader *d)
{
    while (d->at < d->n && d->p[d->at] && strchr(" \t\r\n", d->p[d->at]))
        d->at++;
}

static bool accept(struct reader *d, char c)
{
    skip_blanks(d);
    if (d->at >= d->n || d->p[d->at] != c)
        return false;
    d->at++;
    return true;
}

static bool read_hex(struct reader *d, uint32_t *out)
{
    *out = 0;
    if (d->n - d->at < 4)
        return false;
    for (size_t i = 0; i < 4; i++) {
        int v = ascii_hex(d->p[d->at + i]);
        if (v < 0)
            return false;
        *out = *out * 16 + (uint32_t)v;
    }
    d->at += 4;
    return true;
}

/* Reads an escape; d->at is after its backslash. */
static bool read_escape(struct reader *d, char **to)
{
    static const char simple[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    char c = d->at < d->n ? d->p[d->at++] : '\0';
    uint32_t cp, low;
    for (size_t i = 0; i + 1 < sizeof(simple); i += 2)
        if (simple[i] == c) {
            *(*to)++ = simple[i + 1];
            return true;
        }
    if (c != 'u' || !read_hex(d, &cp))
        return false;
    if (cp >= 0xd800 && cp < 0xdc00 && d->n - d->at >= 6 && d->p[d->at] == '\\' &&
        d->p[d->at + 1] == 'u') {
        size_t back = d->at;
        d->at += 2;
        if (!read_hex(d, &low))
            return false;
        if (low >= 0xdc00 && low <= 0xdfff)
            cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
        else
            d->at = back; /* half a character, which Python keeps */
    }
    *to += jinja_text_put(*to, cp);
    return true;
}

static int read_string(struct reader *d, struct jinja_str *out)
{
    if (!accept(d, '"'))
        return not_json(d);
    size_t end = d->at;
    while (end < d->n && d->p[end] != '"')
        end += d->p[end] == '\\' ? 2 : 1;
    if (end >= d->n)
        return not_json(d);
    char *to = arena_bytes(&d->r->arena, end - d->at + 1), *p = to; /* escapes only get shorter */
    if (!to)
        return jinja_no_memory(d->r);
    while (d->at < end) {
        char c = d->p[d->at++];
        if (c == '\\' ? !read_escape(d, &p) : (uint8_t)c < 0x20)
            return not_json(d);
        if (c != '\\')
            *p++ = c;
    }
    d->at = end + 1;
    *out = (struct jinja_str){to, (size_t)(p - to)};
    return jinja_charge(d->r, 1 + out->n / 64);
}

static int read_text(struct reader *d, struct jinja_value *out)
{
    struct jinja_str s = {0};
    int rc = read_string(d, &s);
    if (rc == 0 && d->put && !d->put(d->put_ctx, &s.p, &s.n))
        rc = jinja_no_memory(d->r);
    *out = jinja_string(s);
    return rc;
}

static int read_number(struct reader *d, struct jinja_value *out)
{
    const char *p = d->p + d->at;
    size_t left = d->n - d->at, n = decimal_span(p, left), sign = n && p[0] == '-';
    bool whole = true;
    /* JSON allows no "+1", "01", ".5" and "5." */
    if (n <= sign || !ascii_is_digit(p[sign]) ||
        (p[sign] == '0' && n > sign + 1 && ascii_is_digit(p[sign + 1])))
        return not_json(d);
    for (size_t i = 0; i < n; i++) {
        whole = whole && p[i] != '.' && (p[i] | 32) != 'e';
        if (p[i] == '.' && (i + 1 == n || !ascii_is_digit(p[i + 1])))
            return not_json(d);
    }
    d->at += n;
    int64_t v;
    if (!whole) {
        *out = jinja_float(decimal_read(p, n));
    } else if (jinja_number_int((struct jinja_str){p, n}, 10, &v) == JINJA_NUMBER_INT) {
        *out = jinja_int(v);
    } else {
        char *copy = arena_copy(&d->r->arena, p, n);
        if (!copy)
            return jinja_no_memory(d->r);
        *out = (struct jinja_value){.kind = JINJA_BIGINT, .str = {copy, n}};
    }
    return 0;
}

static bool read_word(struct reader *d, const char *word)
{
    size_t n = strlen(word);
    if (d->n - d->at < n || memcmp(d->p + d->at, word, n) != 0)
        return false;
    d->at += n;
    return true;
}

static int read_value(struct reader *d, struct jinja_value *out);

static int read_list(struct reader *d, struct jinja_value *out)
{
    struct jinja_value item;
    d->at++;
    int rc = jinja_list_make(d->r, out, 0);
    if (rc < 0 || accept(d, ']'))
        return rc;
    do {
        rc = read_value(d, &item);
        if (rc == 0)
            rc = jinja_list_push(d->r, out->list, item);
    } while (rc == 0 && accept(d, ','));
    return rc == 0 && !accept(d, ']') ? not_json(d) : rc;
}

static int read_dict(struct reader *d, struct jinja_value *out)
{
    struct jinja_value item;
    struct jinja_str key;
    d->at++;
    int rc = jinja_dict_make(d->r, out);
    if (rc < 0 || accept(d, '}'))
        return rc;
    do {
        rc = read_string(d, &key);
        if (rc == 0 && !accept(d, ':'))
            rc = not_json(d);
        if (rc == 0)
            rc = read_value(d, &item);
        if (rc == 0)
            rc = jinja_dict_set(d->r, out->dict, key, item);
    } while (rc == 0 && accept(d, ','));
    return rc == 0 && !accept(d, '}') ? not_json(d) : rc;
}

static int read_value(struct reader *d, struct jinja_value *out)
{
    int rc = jinja_charge(d->r, 1);
    if (rc == 0 && d->depth >= JINJA_MAX_DATA_DEPTH)
        rc = jinja_fail(d->r, SHOAL_ELIMIT, "context is nested too deeply");
    if (rc < 0)
        return rc;
    skip_blanks(d);
    d->depth++;
    switch (d->at < d->n ? d->p[d->at] : '\0') {
    case '{':
        rc = read_dict(d, out);
        break;
    case '[':
        rc = read_list(d, out);
        break;
    case '"':
        rc = read_text(d, out);
        break;
    default:
        *out = jinja_none();
        if (read_word(d, "true"))
            *out = jinja_bool(true);
        else if (read_word(d, "false"))
            *out = jinja_bool(false);
        else if (!read_word(d, "null"))
            rc = read_number(d, out);
        break;
    }
    d->depth--;
    return rc;
}

int jinja_json_read(struct jinja_run *r, struct jinja_value *out, const char *text, size_t n,
                    jinja_json_text *put, void *put_ctx)
{
    struct reader d = {.r = r, .p = text, .n = n, .put = put, .put_ctx = put_ctx};
    if (utf8_valid_prefix(text, n) < n)
        return jinja_fail(r, SHOAL_EFORMAT, "context is not valid UTF-8");
    int rc = read_value(&d, out);
    if (rc < 0)
        return rc;
    skip_blanks(&d);
    if (d.at < n)
        return jinja_fail(r, SHOAL_EFORMAT, "context has trailing data after its JSON at byte %zu",
                          d.at);
    return 0;
}

/* ---- writing -------------------------------------------------------------------------------- */

static void write_string(struct buf *b, struct jinja_str s, bool ascii)
{
    static const char escapes[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    buf_putc(b, '"');
    for (size_t i = 0; i < s.n && b->rc == 0;) {
        uint32_t cp;
        size_t len = jinja_text_next(s.p + i, s.n - i, &cp);
        const char *escape = cp && cp < 0x80 ? strchr(escapes, (int)cp) : NULL;
        /* each pair is the character and its letter; a match of a letter is not an escape */
        if (escape && (escape - escapes) % 2 == 0) {
            buf_putc(b, '\\');
            buf_putc(b, escape[1]);
        } else if (cp < 0x20 || (ascii && cp >= 0x7f && cp < 0x10000)) {
            buf_printf(b, "\\u%04x", cp);
        } else if (ascii && cp >= 0x10000) {
            buf_printf(b, "\\u%04x\\u%04x", 0xd800 + ((cp - 0x10000) >> 10),
                       0xdc00 + ((cp - 0x10000) & 0x3ff));
        } else {
            buf_put(b, s.p + i, len);
        }
        i += len;
    }
    buf_putc(b, '"');
}

struct writer {
    struct jinja_run *r;
    const struct jinja_json_opts *o;
    struct jinja_str item, key; /* separators */
};

static int write_value(struct writer *w, const struct jinja_value *v, size_t depth);

static void new_line(struct writer *w, size_t depth)
{
    if (!w->o->lines)
        return;
    buf_putc(&w->r->out, '\n');
    for (size_t i = 0; i < depth && w->r->out.rc == 0; i++)
        buf_put(&w->r->out, w->o->indent.p, w->o->indent.n);
}

static int write_list(struct writer *w, const struct jinja_list *l, size_t depth)
{
    struct buf *b = &w->r->out;
    int rc = 0;
    buf_putc(b, '[');
    for (size_t i = 0; rc == 0 && i < l->n; i++) {
        if (i)
            buf_put(b, w->item.p, w->item.n);
        new_line(w, depth + 1);
        rc = write_value(w, &l->at[i], depth + 1);
    }
    if (l->n)
        new_line(w, depth);
    buf_putc(b, ']');
    return rc;
}

static void write_float(struct buf *b, double v)
{
    char text[JINJA_NUMBER_TEXT];
    if (isnan(v))
        buf_puts(b, "NaN");
    else if (isinf(v))
        buf_puts(b, v < 0 ? "-Infinity" : "Infinity");
    else
        buf_put(b, text, jinja_number_repr(text, v));
}

/* Keys become strings. */
static int write_key(struct writer *w, const struct jinja_value *key)
{
    struct buf *b = &w->r->out;
    switch (key->kind) {
    case JINJA_STRING:
        write_string(b, key->str, w->o->ensure_ascii);
        return 0;
    case JINJA_NONE:
    case JINJA_BOOL:
    case JINJA_INT:
    case JINJA_BIGINT:
    case JINJA_FLOAT: {
        buf_putc(b, '"');
        int rc = write_value(w, key, 0);
        buf_putc(b, '"');
        return rc;
    }
    default:
        return jinja_fail(w->r, SHOAL_EINVAL, "%s cannot be a key in JSON", jinja_kind_name(key));
    }
}

static int compare_entries(const void *a, const void *b)
{
    const struct jinja_entry *const *x = a, *const *y = b;
    double p, q;
    if ((*x)->key.kind == JINJA_STRING)
        return jinja_text_compare((*x)->key.str, (*y)->key.str);
    jinja_as_number(&(*x)->key, &p);
    jinja_as_number(&(*y)->key, &q);
    return (p > q) - (p < q);
}

/* The entries of a dict by their keys. */
static int sorted_entries(struct jinja_run *r, const struct jinja_dict *d,
                          const struct jinja_entry ***out)
{
    const struct jinja_entry **at = arena_zalloc_n(&r->arena, d->n + 1, sizeof(*at));
    if (!at)
        return jinja_no_memory(r);
    for (size_t i = 0; i < d->n; i++) {
        double x;
        bool text = d->at[0].key.kind == JINJA_STRING;
        at[i] = &d->at[i];
        if (text ? d->at[i].key.kind != JINJA_STRING
                 : d->n > 1 && !jinja_as_number(&d->at[i].key, &x))
            return jinja_fail(r, SHOAL_EINVAL, "tojson cannot sort keys of different kinds");
    }
    if (d->n > 1) /* keys are unique, so stability does not matter */
        qsort(at, d->n, sizeof(*at), compare_entries);
    *out = at;
    return jinja_charge(r, d->n * 8);
}

static int write_dict(struct writer *w, const struct jinja_dict *d, size_t depth)
{
    struct buf *b = &w->r->out;
    const struct jinja_entry **at = NULL;
    int rc = w->o->sort_keys ? sorted_entries(w->r, d, &at) : 0;
    buf_putc(b, '{');
    for (size_t i = 0; rc == 0 && i < d->n; i++) {
        const struct jinja_entry *entry = at ? at[i] : &d->at[i];
        if (i)
            buf_put(b, w->item.p, w->item.n);
        new_line(w, depth + 1);
        rc = write_key(w, &entry->key);
        buf_put(b, w->key.p, w->key.n);
        if (rc == 0)
            rc = write_value(w, &entry->value, depth + 1);
    }
    if (d->n)
        new_line(w, depth);
    buf_putc(b, '}');
    return rc;
}

static int write_value(struct writer *w, const struct jinja_value *v, size_t depth)
{
    struct buf *b = &w->r->out;
    int rc = jinja_charge(w->r, 1);
    if (rc == 0 && depth > JINJA_MAX_DATA_DEPTH)
        rc = jinja_fail(w->r, SHOAL_ELIMIT, "value is nested too deeply for JSON");
    if (rc < 0 || b->rc < 0)
        return rc < 0 ? rc : jinja_check_out(w->r);
    switch (v->kind) {
    case JINJA_NONE:
        buf_puts(b, "null");
        return 0;
    case JINJA_BOOL:
        buf_puts(b, v->b ? "true" : "false");
        return 0;
    case JINJA_INT:
        buf_printf(b, "%lld", (long long)v->i);
        return 0;
    case JINJA_BIGINT:
        buf_put(b, v->str.p, v->str.n);
        return 0;
    case JINJA_FLOAT:
        write_float(b, v->num);
        return 0;
    case JINJA_STRING:
        write_string(b, v->str, w->o->ensure_ascii);
        return 0;
    case JINJA_LIST:
    case JINJA_TUPLE:
        return write_list(w, v->list, depth);
    case JINJA_DICT:
        return write_dict(w, v->dict, depth);
    default:
        return jinja_fail(w->r, SHOAL_EINVAL, "%s cannot be written as JSON", jinja_kind_name(v));
    }
}

int jinja_json_write(struct jinja_run *r, const struct jinja_value *v,
                     const struct jinja_json_opts *o)
{
    struct writer w = {r, o, o->lines ? JINJA_STR(",") : JINJA_STR(", "), JINJA_STR(": ")};
    if (o->separators) {
        w.item = o->item_separator;
        w.key = o->key_separator;
    }
    int rc = write_value(&w, v, 0);
    return rc < 0 ? rc : jinja_check_out(r);
}
