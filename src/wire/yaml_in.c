/* yaml_in.c - see yaml_in.h. */
#include "wire/yaml_in.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/nearest.h"

#define MAX_KEYS 64u

int yaml_in_fail(struct yaml_in *r, const yaml_node_t *at, const char *fmt, ...)
{
    char msg[240];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    return err_set(r->e, SHOAL_EFORMAT, "%s:%zu:%zu: %s", r->name, at->start_mark.line + 1,
                   at->start_mark.column + 1, msg);
}

/* ---- places inside of scalars ---- */

/* A reader of the document that counts lines and characters. */
struct place {
    const char *p, *end;
    size_t line, column;
};

static void step(struct place *c)
{
    if (c->p == c->end)
        return;
    char was = *c->p++;
    if (was == '\n') {
        c->line++;
        c->column = 1;
    } else if (c->p == c->end || ((unsigned char)*c->p & 0xc0) != 0x80) {
        c->column++; /* the last byte of a character */
    }
}

static void skip_spaces(struct place *c, size_t most)
{
    while (most-- > 0 && c->p < c->end && *c->p == ' ')
        step(c);
}

/* Source bytes used by one character of a quoted scalar. */
static size_t source_bytes(const struct place *c, yaml_scalar_style_t style)
{
    size_t left = (size_t)(c->end - c->p), n = 1;
    if (style == YAML_SINGLE_QUOTED_SCALAR_STYLE && left > 1 && c->p[0] == '\'' && c->p[1] == '\'')
        n = 2;
    if (style == YAML_DOUBLE_QUOTED_SCALAR_STYLE && left > 1 && c->p[0] == '\\')
        n = c->p[1] == 'x' ? 4 : c->p[1] == 'u' ? 6 : c->p[1] == 'U' ? 10 : 2;
    if (n == 1) /* a whole character */
        while (n < left && ((unsigned char)c->p[n] & 0xc0) == 0x80)
            n++;
    return n < left ? n : left;
}

static size_t indent_of(struct place c)
{
    size_t n = 0;
    while (c.p < c.end && (*c.p == ' ' || *c.p == '\n')) {
        n = *c.p == ' ' ? n + 1 : 0;
        step(&c);
    }
    return n;
}

void yaml_in_place(const struct yaml_in *r, const yaml_node_t *at, size_t byte, size_t *line,
                   size_t *column)
{
    struct place c = {r->text, r->text + r->n, 1, 1};
    const char *value = yaml_in_scalar(at);
    *line = at->start_mark.line + 1;
    *column = at->start_mark.column + 1;
    if (!value || !r->text)
        return;
    while (c.p < c.end && (c.line < *line || (c.line == *line && c.column < *column)))
        step(&c);
    yaml_scalar_style_t style = at->data.scalar.style;
    bool block = style == YAML_LITERAL_SCALAR_STYLE || style == YAML_FOLDED_SCALAR_STYLE;
    size_t n = at->data.scalar.length, indent = 0;
    if (block) {
        while (c.p < c.end && c.line == *line)
            step(&c);
        indent = indent_of(c);
        skip_spaces(&c, indent);
    } else if (style != YAML_PLAIN_SCALAR_STYLE) {
        step(&c);
    }
    for (size_t i = 0; i < byte && i < n && c.p < c.end;) {
        bool newline = *c.p == '\n';
        for (size_t k = block ? 1 : source_bytes(&c, style); k > 0; k--)
            step(&c);
        if (newline)
            skip_spaces(&c, block ? indent : SIZE_MAX);
        for (i++; !block && i < n && ((unsigned char)value[i] & 0xc0) == 0x80;)
            i++;
    }
    *line = c.line;
    *column = c.column;
}

int yaml_in_fail_at(struct yaml_in *r, const yaml_node_t *at, size_t byte, const char *fmt, ...)
{
    char msg[240];
    size_t line, column;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    yaml_in_place(r, at, byte, &line, &column);
    return err_set(r->e, SHOAL_EFORMAT, "%s:%zu:%zu: %s", r->name, line, column, msg);
}

const char *yaml_in_scalar(const yaml_node_t *v)
{
    return v->type == YAML_SCALAR_NODE ? (const char *)v->data.scalar.value : NULL;
}

const yaml_node_t *yaml_in_find(struct yaml_in *r, const yaml_node_t *map, const char *name)
{
    if (map->type != YAML_MAPPING_NODE)
        return NULL;
    for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
         p++) {
        const yaml_node_t *key = yaml_document_get_node(r->doc, p->key);
        const char *text = key ? yaml_in_scalar(key) : NULL;
        if (text && strcmp(text, name) == 0)
            return yaml_document_get_node(r->doc, p->value);
    }
    return NULL;
}

struct unit {
    const char *name;
    double factor;
};

/* Each list starts with the plain number and ends with a NULL. */
static const struct unit plain[] = {{"", 1}, {NULL, 0}};
static const struct unit bytes[] = {{"", 1},     {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
                                    {"kB", 1e3}, {"MB", 1e6},     {"GB", 1e9},     {NULL, 0}};
static const struct unit bytes_per[] = {{"", 1},           {"KiB/s", 0x1p10}, {"MiB/s", 0x1p20},
                                        {"GiB/s", 0x1p30}, {"kB/s", 1e3},     {"MB/s", 1e6},
                                        {"GB/s", 1e9},     {NULL, 0}};
static const struct unit times[] = {{"", 1},      {"ms", 1},      {"s", 1000},
                                    {"m", 60000}, {"h", 3600000}, {NULL, 0}};
static const struct unit rates[] = {
    {"", 1}, {"/s", 1}, {"/m", 1.0 / 60}, {"/h", 1.0 / 3600}, {NULL, 0}};
static const struct unit shares[] = {{"", 1}, {"%", 0.01}, {NULL, 0}};

static int unknown_unit(struct yaml_in *r, yaml_node_t *v, const char *key, const char *typed,
                        const struct unit *units)
{
    char known[80] = "";
    size_t n = 0;
    for (const struct unit *u = units + 1; u->name && n < sizeof(known); u++)
        n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "", u->name);
    return yaml_in_fail(r, v, "%s: '%.20s' is not a unit here (known: %s)", key, typed,
                        known[0] ? known : "none");
}

static int read_number(struct yaml_in *r, yaml_node_t *v, const char *key, const struct unit *units,
                       double min, double max, double *out)
{
    const char *text = yaml_in_scalar(v);
    char *end = NULL;
    double d = text ? strtod(text, &end) : 0;
    if (!text || end == text || !isfinite(d))
        return yaml_in_fail(r, v, "%s must be a number, not '%.40s'", key,
                            text ? text : "a list or map");
    while (*end == ' ')
        end++;
    const struct unit *u = units;
    while (u->name && strcmp(u->name, end) != 0)
        u++;
    if (!u->name)
        return unknown_unit(r, v, key, end, units);
    d *= u->factor;
    if (!(d >= min && d <= max))
        return yaml_in_fail(r, v, "%s is %.40s, it must be from %.15g to %.15g", key, text, min,
                            max);
    *out = d;
    return 0;
}

static int read_bool(struct yaml_in *r, yaml_node_t *v, const char *key, bool *out)
{
    const char *text = yaml_in_scalar(v);
    if (text && (strcmp(text, "true") == 0 || strcmp(text, "yes") == 0))
        *out = true;
    else if (text && (strcmp(text, "false") == 0 || strcmp(text, "no") == 0))
        *out = false;
    else
        return yaml_in_fail(r, v, "%s must be true or false", key);
    return 0;
}

/* A copy of a scalar replaces *out. */
static int read_str(struct yaml_in *r, yaml_node_t *v, const char *key, char **out)
{
    const char *text = yaml_in_scalar(v);
    if (!text)
        return yaml_in_fail(r, v, "%s must be a text", key);
    if (strlen(text) != v->data.scalar.length)
        return yaml_in_fail(r, v, "%s must not contain NUL", key);
    char *copy = mem_strdup(text);
    if (!copy)
        return err_set(r->e, SHOAL_ENOMEM, "%s", r->name);
    mem_free(*out);
    *out = copy;
    return 0;
}

bool yaml_in_strs_has(const struct yaml_in_strs *list, const char *s)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i], s) == 0)
            return true;
    return false;
}

void yaml_in_strs_fini(struct yaml_in_strs *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        mem_free(s->v[i]);
    mem_free(s->v);
    *s = (struct yaml_in_strs){0};
}

int yaml_in_strs_add(struct yaml_in_strs *s, const char *const *from, size_t n, struct err *e)
{
    if (n == 0)
        return 0;
    if (s->n + n > YAML_IN_MAX_STRS)
        return err_set(e, SHOAL_ELIMIT, "more than %u entries", YAML_IN_MAX_STRS);
    char **v = mem_realloc(s->v, (s->n + n) * sizeof(*v));
    if (!v)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a list");
    s->v = v;
    for (size_t i = 0; i < n; i++) {
        v[s->n] = mem_strdup(from[i]);
        if (!v[s->n])
            return err_set(e, SHOAL_ENOMEM, "out of memory for a list");
        s->n++;
    }
    return 0;
}

static int read_strs(struct yaml_in *r, yaml_node_t *v, const char *key, struct yaml_in_strs *out)
{
    bool list = v->type == YAML_SEQUENCE_NODE;
    size_t n = list ? (size_t)(v->data.sequence.items.top - v->data.sequence.items.start) : 1;
    if (n > YAML_IN_MAX_STRS)
        return yaml_in_fail(r, v, "%s has more than %u entries", key, YAML_IN_MAX_STRS);
    yaml_in_strs_fini(out); /* a default */
    if (n == 0)
        return 0;
    out->v = mem_zalloc_n(n, sizeof(*out->v));
    if (!out->v)
        return err_set(r->e, SHOAL_ENOMEM, "%s", r->name);
    for (size_t i = 0; i < n; i++) {
        yaml_node_t *item =
            list ? yaml_document_get_node(r->doc, v->data.sequence.items.start[i]) : v;
        int rc = read_str(r, item, key, &out->v[i]);
        if (rc < 0)
            return rc;
        out->n++;
    }
    return 0;
}

int yaml_in_value(struct yaml_in *r, const struct yaml_in_key *k, yaml_node_t *v, void *into)
{
    void *at = (char *)into + k->offset;
    double d = 0;
    int rc;
    switch (k->kind) {
    case YAML_IN_BYTES:
        rc = read_number(r, v, k->name, bytes, 0, 0x1p50, &d);
        *(size_t *)at = (size_t)d;
        return rc;
    case YAML_IN_BYTES_PER:
        return read_number(r, v, k->name, bytes_per, 0, 0x1p50, at);
    case YAML_IN_MS:
        rc = read_number(r, v, k->name, times, 0, 2147483647.0, &d);
        *(uint32_t *)at = (uint32_t)d;
        return rc;
    case YAML_IN_U32:
        rc = read_number(r, v, k->name, plain, 0, 2147483647.0, &d);
        if (rc == 0 && d != floor(d))
            return yaml_in_fail(r, v, "%s must be a whole number", k->name);
        *(uint32_t *)at = (uint32_t)d;
        return rc;
    case YAML_IN_I32: {
        const char *text = yaml_in_scalar(v);
        char *end = NULL;
        long n = text ? strtol(text, &end, 10) : 0;
        if (!text || end == text || *end || n < -1000 || n > 1000)
            return yaml_in_fail(r, v, "%s must be a whole number from -1000 to 1000", k->name);
        *(int32_t *)at = (int32_t)n;
        return 0;
    }
    case YAML_IN_NUM:
        return read_number(r, v, k->name, plain, 0, 1e9, at);
    case YAML_IN_SIGNED:
        return read_number(r, v, k->name, plain, -DBL_MAX, DBL_MAX, at);
    case YAML_IN_RATE:
        return read_number(r, v, k->name, rates, 0, 1e9, at);
    case YAML_IN_SHARE:
        return read_number(r, v, k->name, shares, 0, 1, at);
    case YAML_IN_BOOL:
        return read_bool(r, v, k->name, at);
    case YAML_IN_STR:
        return read_str(r, v, k->name, at);
    case YAML_IN_STRS:
        return read_strs(r, v, k->name, at);
    case YAML_IN_CUSTOM:
        return k->custom(r, v, k->name);
    }
    return SHOAL_EINTERNAL;
}

static int unknown_key(struct yaml_in *r, yaml_node_t *at, const char *typed,
                       const struct yaml_in_key *table, size_t n, const char *where)
{
    const char *names[MAX_KEYS + 1];
    for (size_t k = 0; k < n; k++)
        names[k] = table[k].name;
    names[n] = NULL;
    const char *near = nearest_word(typed, names);
    if (near)
        return yaml_in_fail(r, at, "unknown key '%.40s'%s%s (did you mean '%s'?)", typed,
                            where[0] ? " in " : "", where, near);
    return yaml_in_fail(r, at, "unknown key '%.40s'%s%s", typed, where[0] ? " in " : "", where);
}

int yaml_in_map(struct yaml_in *r, yaml_node_t *map, const struct yaml_in_key *table, size_t n_keys,
                void *into, const char *where)
{
    uint64_t seen = 0;
    assert(n_keys <= MAX_KEYS);
    if (map->type != YAML_MAPPING_NODE)
        return yaml_in_fail(r, map, "%s must be a map of keys and values",
                            where[0] ? where : "the file");
    for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
         p++) {
        yaml_node_t *key = yaml_document_get_node(r->doc, p->key);
        yaml_node_t *value = yaml_document_get_node(r->doc, p->value);
        const char *name = key ? yaml_in_scalar(key) : NULL;
        if (!name || !value)
            return yaml_in_fail(r, map, "a key that is not a word");
        size_t i = 0;
        while (i < n_keys && strcmp(table[i].name, name) != 0)
            i++;
        if (i == n_keys)
            return unknown_key(r, key, name, table, n_keys, where);
        if (seen >> i & 1)
            return yaml_in_fail(r, key, "'%s' is given twice", name);
        seen |= (uint64_t)1 << i;
        int rc = yaml_in_value(r, &table[i], value, into);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int yaml_in_each(struct yaml_in *r, yaml_node_t *list, const char *name, yaml_in_fn fn)
{
    if (list->type != YAML_SEQUENCE_NODE)
        return fn(r, list, name);
    for (yaml_node_item_t *i = list->data.sequence.items.start; i < list->data.sequence.items.top;
         i++) {
        int rc = fn(r, yaml_document_get_node(r->doc, *i), name);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int yaml_in_document(const char *text, size_t n, const char *name, yaml_in_fn fn, void *ctx,
                     struct err *e)
{
    yaml_parser_t parser;
    yaml_document_t doc;
    struct yaml_in r = {&doc, name, ctx, e, text, n};
    if (!yaml_parser_initialize(&parser))
        return err_set(e, SHOAL_ENOMEM, "%s", name);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    int rc;
    if (!yaml_parser_load(&parser, &doc)) {
        rc = err_set(e, parser.error == YAML_MEMORY_ERROR ? SHOAL_ENOMEM : SHOAL_EFORMAT,
                     "%s:%zu:%zu: %s", name, parser.problem_mark.line + 1,
                     parser.problem_mark.column + 1, parser.problem ? parser.problem : "not YAML");
    } else {
        yaml_node_t *root = yaml_document_get_root_node(&doc);
        rc = root ? fn(&r, root, "") : 0;
        yaml_document_delete(&doc);
    }
    yaml_parser_delete(&parser);
    return rc;
}

struct top_map {
    const struct yaml_in_key *table;
    size_t n_keys;
    void *into, *ctx;
};

static int read_top(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    const struct top_map *t = r->ctx;
    r->ctx = t->ctx;
    return yaml_in_map(r, v, t->table, t->n_keys, t->into, name);
}

int yaml_in_parse(const char *text, size_t n, const char *name, const struct yaml_in_key *table,
                  size_t n_keys, void *into, void *ctx, struct err *e)
{
    struct top_map t = {table, n_keys, into, ctx};
    return yaml_in_document(text, n, name, read_top, &t, e);
}
