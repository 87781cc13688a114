/* jinja_json.c - see jinja_json.h. */
#include "text/jinja/jinja_json.h"

#include <math.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "base/utf8.h"

/* ---- reading -------------------------------------------------------------------------------- */

static int read_string(struct jinja_run *r, const char *text, struct jinja_str *out)
{
    size_t n = strlen(text);
    char *p = arena_copy(&r->arena, text, n);
    if (!p)
        return jinja_no_memory(r);
    *out = (struct jinja_str){p, n};
    return 0;
}

static int convert(struct jinja_run *r, struct jinja_value *out, const cJSON *j, int depth)
{
    struct jinja_value item;
    int rc = jinja_charge(r, 1);
    if (rc < 0)
        return rc;
    if (depth > JINJA_MAX_DATA_DEPTH)
        return jinja_fail(r, SHOAL_ELIMIT, "context is nested too deeply");
    if (cJSON_IsNull(j)) {
        *out = jinja_none();
    } else if (cJSON_IsBool(j)) {
        *out = jinja_bool(cJSON_IsTrue(j));
    } else if (cJSON_IsNumber(j)) {
        double v = j->valuedouble;
        *out = isfinite(v) && v == floor(v) ? jinja_int(v) : jinja_float(v);
    } else if (cJSON_IsString(j)) {
        struct jinja_str s = {0};
        rc = read_string(r, j->valuestring, &s);
        *out = jinja_string(s);
    } else if (cJSON_IsArray(j)) {
        rc = jinja_list_make(r, out, 0);
        for (const cJSON *c = j->child; rc == 0 && c; c = c->next) {
            rc = convert(r, &item, c, depth + 1);
            if (rc == 0)
                rc = jinja_list_push(r, out->list, item);
        }
    } else if (cJSON_IsObject(j)) {
        rc = jinja_dict_make(r, out);
        for (const cJSON *c = j->child; rc == 0 && c; c = c->next) {
            struct jinja_str key;
            rc = read_string(r, c->string, &key);
            if (rc == 0)
                rc = convert(r, &item, c, depth + 1);
            if (rc == 0)
                rc = jinja_dict_set(r, out->dict, key, item);
        }
    } else {
        rc = jinja_fail(r, SHOAL_EINTERNAL, "unknown JSON value");
    }
    return rc;
}

/* cJSON ends its strings with a NUL: one inside would silently cut off the rest. */
static bool has_nul_escape(const char *p, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++) {
        if (p[i] != '\\')
            continue;
        i++; /* the escaped character, a second backslash included */
        if (p[i] == 'u' && n - i > 4 && memcmp(p + i + 1, "0000", 4) == 0)
            return true;
    }
    return false;
}

int jinja_json_read(struct jinja_run *r, struct jinja_value *out, const char *text, size_t n)
{
    const char *end = NULL;
    if (utf8_valid_prefix(text, n) < n)
        return jinja_fail(r, SHOAL_EFORMAT, "context is not valid UTF-8");
    if (memchr(text, '\0', n) || has_nul_escape(text, n))
        return jinja_fail(r, SHOAL_EFORMAT, "context holds a NUL character");
    int rc = jinja_charge(r, n / 64);
    if (rc < 0)
        return rc;
    cJSON *j = cJSON_ParseWithLengthOpts(text, n, &end, false);
    if (!j)
        return jinja_fail(r, SHOAL_EFORMAT, "context is not JSON at byte %zu",
                          end ? (size_t)(end - text) : 0);
    size_t used = (size_t)(end - text);
    while (used < n && strchr(" \t\r\n", text[used]))
        used++;
    if (used < n)
        rc = jinja_fail(r, SHOAL_EFORMAT, "context goes on after its JSON at byte %zu", used);
    else
        rc = convert(r, out, j, 0);
    cJSON_Delete(j);
    return rc;
}

/* ---- writing -------------------------------------------------------------------------------- */

static void put_unit(struct buf *b, uint32_t unit)
{
    buf_printf(b, "\\u%04x", unit);
}

static void write_string(struct buf *b, struct jinja_str s, bool ascii)
{
    static const char escapes[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    buf_putc(b, '"');
    for (size_t i = 0; i < s.n;) {
        uint32_t cp;
        size_t len = jinja_text_next(s.p + i, s.n - i, &cp);
        const char *escape = cp && cp < 0x80 ? strchr(escapes, (int)cp) : NULL;
        /* each pair is the character and its letter; a match of a letter is not an escape */
        bool special = escape && (escape - escapes) % 2 == 0;
        if (special) {
            buf_putc(b, '\\');
            buf_putc(b, escape[1]);
        } else if (cp < 0x20 || (ascii && cp == 0x7f) || (cp >= 0xd800 && cp <= 0xdfff)) {
            put_unit(b, cp);
        } else if (ascii && cp >= 0x10000) {
            put_unit(b, 0xd800 + ((cp - 0x10000) >> 10));
            put_unit(b, 0xdc00 + ((cp - 0x10000) & 0x3ff));
        } else if (ascii && cp >= 0x80) {
            put_unit(b, cp);
        } else {
            buf_put(b, s.p + i, len);
        }
        i += len;
    }
    buf_putc(b, '"');
}

/* Order of ASCII text in Unicode collation: punctuation, digits, letters; letters that differ only
 * in case are ordered by it when all else is equal, small ones first. */
static int collate_rank(char c)
{
    static const char order[] = "\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789";
    if (c >= 'A' && c <= 'Z')
        c = (char)(c + 32);
    if (c >= 'a' && c <= 'z')
        return 100 + c;
    const char *at = c ? strchr(order, c) : NULL;
    return at ? (int)(at - order) + 1 : 0;
}

static int collate(struct jinja_str a, struct jinja_str b)
{
    int later = 0;
    for (size_t i = 0; i < a.n && i < b.n; i++) {
        int x = collate_rank(a.p[i]), y = collate_rank(b.p[i]);
        if (x != y)
            return x < y ? -1 : 1;
        if (!later && a.p[i] != b.p[i])
            later = a.p[i] > b.p[i] ? -1 : 1;
    }
    if (a.n != b.n)
        return a.n < b.n ? -1 : 1;
    return later;
}

static int compare_entries(const void *a, const void *b)
{
    const struct jinja_entry *const *x = a, *const *y = b;
    return collate((*x)->key, (*y)->key);
}

/* The entries of a dict in the order they are written. */
static int sorted_entries(struct jinja_run *r, const struct jinja_dict *d, bool sort,
                          const struct jinja_entry ***out)
{
    const struct jinja_entry **at = arena_zalloc_n(&r->arena, d->n + 1, sizeof(*at));
    if (!at)
        return jinja_no_memory(r);
    for (size_t i = 0; i < d->n; i++) {
        at[i] = &d->at[i];
        for (size_t k = 0; sort && k < d->at[i].key.n; k++)
            if (collate_rank(d->at[i].key.p[k]) == 0)
                return jinja_fail(r, SHOAL_EUNSUPPORTED,
                                  "tojson(sort_keys=true) with a key that is not ASCII text");
    }
    int rc = jinja_charge(r, sort ? d->n * 8 : 0);
    if (rc < 0)
        return rc;
    if (sort && d->n > 1) /* keys are unique, so stability does not matter */
        qsort(at, d->n, sizeof(*at), compare_entries);
    *out = at;
    return 0;
}

struct writer {
    struct jinja_run *r;
    const struct jinja_json_opts *o;
    struct jinja_str item, key; /* separators */
};

static int write_value(struct writer *w, const struct jinja_value *v, size_t depth);

static void new_line(struct writer *w, size_t depth)
{
    static const char spaces[] = "                                ";
    buf_putc(&w->r->out, '\n');
    for (size_t n = w->o->indent * depth; n > 0 && w->r->out.rc == 0;) {
        size_t part = n < sizeof(spaces) - 1 ? n : sizeof(spaces) - 1;
        buf_put(&w->r->out, spaces, part);
        n -= part;
    }
}

static int write_list(struct writer *w, const struct jinja_list *l, size_t depth)
{
    struct buf *b = &w->r->out;
    int rc = 0;
    if (l->n == 0) {
        buf_puts(b, "[]");
        return 0;
    }
    buf_putc(b, '[');
    if (w->o->indent)
        new_line(w, depth + 1);
    for (size_t i = 0; rc == 0 && i < l->n; i++) {
        if (i) {
            buf_put(b, w->item.p, w->item.n);
            if (w->o->indent)
                new_line(w, depth + 1);
        }
        if (!jinja_is_hollow(&l->at[i])) /* which the reference writes as nothing in a list */
            rc = write_value(w, &l->at[i], depth + 1);
    }
    if (w->o->indent)
        new_line(w, depth);
    buf_putc(b, ']');
    return rc;
}

static int write_dict(struct writer *w, const struct jinja_dict *d, size_t depth)
{
    struct buf *b = &w->r->out;
    const struct jinja_entry **at = NULL;
    int rc = 0;
    if (d->n == 0) {
        buf_puts(b, "{}");
        return 0;
    }
    if (w->o->sort_keys)
        rc = sorted_entries(w->r, d, true, &at);
    buf_putc(b, '{');
    for (size_t i = 0; rc == 0 && i < d->n; i++) {
        const struct jinja_entry *entry = at ? at[i] : &d->at[i];
        if (i)
            buf_put(b, w->item.p, w->item.n);
        if (w->o->indent)
            new_line(w, depth + 1);
        write_string(b, entry->key, w->o->ensure_ascii);
        buf_put(b, w->key.p, w->key.n);
        rc = write_value(w, &entry->value, depth + 1);
    }
    if (w->o->indent)
        new_line(w, depth);
    buf_putc(b, '}');
    return rc;
}

static int write_value(struct writer *w, const struct jinja_value *v, size_t depth)
{
    char text[JINJA_TEXT_NUMBER];
    struct buf *b = &w->r->out;
    int rc = jinja_charge(w->r, 1);
    if (rc < 0)
        return rc;
    if (depth > JINJA_MAX_DATA_DEPTH) /* a namespace may hold itself */
        return jinja_fail(w->r, SHOAL_ELIMIT, "value is nested too deeply for JSON");
    if (b->rc < 0)
        return 0; /* reported by jinja_cut or jinja_print */
    switch (v->kind) {
    case JINJA_NONE:
        buf_puts(b, "null");
        return 0;
    case JINJA_UNDEFINED:
        buf_puts(b, w->o->undefined ? "undefined" : "null");
        return 0;
    case JINJA_BOOL:
        buf_puts(b, v->b ? "true" : "false");
        return 0;
    case JINJA_INT:
    case JINJA_FLOAT:
        if (isfinite(v->num))
            buf_put(b, text, jinja_text_number(text, v->num));
        else
            buf_puts(b, "null");
        return 0;
    case JINJA_STRING:
        if (!v->str.p)
            buf_puts(b, "undefined");
        else
            write_string(b, v->str, w->o->ensure_ascii);
        return 0;
    case JINJA_LIST:
        return write_list(w, v->list, depth);
    case JINJA_DICT:
    case JINJA_NAMESPACE:
        return write_dict(w, v->dict, depth);
    default:
        return jinja_fail(w->r, SHOAL_EINVAL, "%s cannot be written as JSON", jinja_kind_name(v));
    }
}

int jinja_json_write(struct jinja_run *r, const struct jinja_value *v,
                     const struct jinja_json_opts *o)
{
    struct writer w = {r, o, JINJA_STR(", "), JINJA_STR(": ")};
    if (o->separators) {
        w.item = o->item_separator;
        w.key = o->key_separator;
    } else if (o->indent) {
        w.item = JINJA_STR(",");
    }
    return write_value(&w, v, 0);
}
