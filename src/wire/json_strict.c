/* json_strict.c - see json_strict.h. */
#include "wire/json_strict.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_PATH 160u
#define MAX_DEPTH 32u
#define MAX_KEYS 4096u /* per object: the search for duplicate keys is quadratic */

/* ---- paths and errors ----------------------------------------------------------------------- */

static uint32_t index_of(const cJSON *parent, const cJSON *v)
{
    uint32_t i = 0;
    for (const cJSON *c = parent->child; c && c != v; c = c->next)
        i++;
    return i;
}

static size_t put_path(char *out, size_t cap, const struct json_node *at)
{
    if (!at || !at->up)
        return 0;
    size_t n = put_path(out, cap, at->up);
    if (n >= cap)
        return n;
    int more = at->v && at->v->string
                   ? snprintf(out + n, cap - n, "%s%.64s", n ? "." : "", at->v->string)
                   : snprintf(out + n, cap - n, "[%u]", at->v ? index_of(at->up->v, at->v) : 0u);
    return more < 0 ? n : n + (size_t)more;
}

void json_strict_fail(struct json_strict *d, const struct json_node *at, const char *fmt, ...)
{
    char path[MAX_PATH] = "", text[200];
    va_list args;
    if (d->rc < 0)
        return;
    put_path(path, sizeof(path), at);
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    d->rc = err_set(d->e, SHOAL_EFORMAT, "%s%s%s", path, *path ? ": " : "", text);
}

void json_strict_no_memory(struct json_strict *d)
{
    if (d->rc == 0)
        d->rc = err_set(d->e, SHOAL_ENOMEM, "out of memory");
}

int json_strict_rc(const struct json_strict *d)
{
    return d->rc;
}

/* ---- the document --------------------------------------------------------------------------- */

static void check_tree(struct json_strict *d, const struct json_node *at, uint32_t depth)
{
    if (depth > MAX_DEPTH) {
        json_strict_fail(d, at, "nested deeper than %u levels", MAX_DEPTH);
        return;
    }
    if (cJSON_IsObject(at->v))
        (void)json_strict_map(d, at, MAX_KEYS);
    for (const cJSON *c = at->v->child; c && d->rc == 0; c = c->next) {
        struct json_node entry = {c, at};
        for (const cJSON *o = at->v->child; c->string && o != c; o = o->next)
            if (strcmp(o->string, c->string) == 0) {
                json_strict_fail(d, &entry, "this key occurs twice");
                return;
            }
        check_tree(d, &entry, depth + 1);
    }
}

int json_strict_parse(struct json_strict *d, const char *text, size_t n, size_t max_bytes,
                      struct err *e)
{
    const char *end = NULL;
    *d = (struct json_strict){.e = e};
    if (n > max_bytes)
        return d->rc = err_set(e, SHOAL_ELIMIT, "%zu bytes are too many; the maximum is %zu", n,
                               max_bytes);
    d->root = cJSON_ParseWithLengthOpts(text, n, &end, false);
    if (!d->root)
        return d->rc = err_set(e, SHOAL_EFORMAT, "not JSON at byte %td", end ? end - text : 0);
    while (end < text + n && strchr(" \t\r\n", *end))
        end++;
    if (end < text + n && *end)
        return d->rc = err_set(e, SHOAL_EFORMAT, "more text after the JSON value, at byte %td",
                               end - text);
    struct json_node root = json_strict_root(d);
    check_tree(d, &root, 0);
    return d->rc;
}

void json_strict_fini(struct json_strict *d)
{
    cJSON_Delete(d->root);
    d->root = NULL;
}

struct json_node json_strict_root(const struct json_strict *d)
{
    return (struct json_node){d->root, NULL};
}

/* ---- shapes --------------------------------------------------------------------------------- */

static bool listed(const char *word, const char *list)
{
    size_t n = strlen(word);
    for (const char *p = list; *p;) {
        size_t len = strcspn(p, " ");
        if (len == n && memcmp(p, word, n) == 0)
            return true;
        p += len + (p[len] == ' ');
    }
    return false;
}

bool json_strict_object(struct json_strict *d, const struct json_node *at, const char *required,
                        const char *optional)
{
    if (d->rc < 0)
        return false;
    if (!cJSON_IsObject(at->v)) {
        json_strict_fail(d, at, "expected an object");
        return false;
    }
    for (const cJSON *c = at->v->child; c; c = c->next)
        if (!listed(c->string, required) && !listed(c->string, optional)) {
            struct json_node entry = {c, at};
            json_strict_fail(d, &entry, "unknown key; known: %s%s%s", required,
                             *required && *optional ? " " : "", optional);
            return false;
        }
    for (const char *p = required; *p;) {
        char key[64];
        size_t n = strcspn(p, " ");
        snprintf(key, sizeof(key), "%.*s", (int)n, p);
        if (!cJSON_GetObjectItemCaseSensitive(at->v, key)) {
            json_strict_fail(d, at, "\"%s\" is missing", key);
            return false;
        }
        p += n + (p[n] == ' ');
    }
    return true;
}

static uint32_t entries(struct json_strict *d, const struct json_node *at, bool right,
                        const char *what, uint32_t max)
{
    if (d->rc < 0 || !at->v)
        return 0;
    if (!right) {
        json_strict_fail(d, at, "expected %s", what);
        return 0;
    }
    uint32_t n = (uint32_t)cJSON_GetArraySize(at->v);
    if (n > max) {
        json_strict_fail(d, at, "%u entries are too many; the maximum is %u", n, max);
        return 0;
    }
    return n;
}

uint32_t json_strict_array(struct json_strict *d, const struct json_node *at, uint32_t max)
{
    return entries(d, at, cJSON_IsArray(at->v), "a list", max);
}

uint32_t json_strict_map(struct json_strict *d, const struct json_node *at, uint32_t max)
{
    return entries(d, at, cJSON_IsObject(at->v), "an object", max);
}

struct json_node json_strict_get(const struct json_node *at, const char *key)
{
    return (struct json_node){at->v ? cJSON_GetObjectItemCaseSensitive(at->v, key) : NULL, at};
}

struct json_node json_strict_first(const struct json_node *at)
{
    return (struct json_node){at->v ? at->v->child : NULL, at};
}

struct json_node json_strict_next(const struct json_node *entry)
{
    return (struct json_node){entry->v ? entry->v->next : NULL, entry->up};
}

const char *json_strict_key(const struct json_node *entry)
{
    return entry->v && entry->v->string ? entry->v->string : "";
}

/* ---- values --------------------------------------------------------------------------------- */

const char *json_strict_any_text(struct json_strict *d, const struct json_node *at,
                                 size_t max_bytes)
{
    if (d->rc < 0)
        return "";
    if (!cJSON_IsString(at->v))
        json_strict_fail(d, at, "expected a string");
    else if (strlen(at->v->valuestring) > max_bytes)
        json_strict_fail(d, at, "the string has %zu bytes; the maximum is %zu",
                         strlen(at->v->valuestring), max_bytes);
    return d->rc < 0 ? "" : at->v->valuestring;
}

const char *json_strict_text(struct json_strict *d, const struct json_node *at, size_t max_bytes)
{
    const char *s = json_strict_any_text(d, at, max_bytes);
    if (d->rc == 0 && !*s)
        json_strict_fail(d, at, "the string is empty");
    return s;
}

double json_strict_number(struct json_strict *d, const struct json_node *at, double min, double max,
                          double missing)
{
    if (d->rc < 0 || !at->v)
        return missing;
    if (cJSON_IsNumber(at->v) && at->v->valuedouble >= min && at->v->valuedouble <= max)
        return at->v->valuedouble;
    json_strict_fail(d, at, "expected a number from %g to %g", min, max);
    return missing;
}

uint32_t json_strict_u32(struct json_strict *d, const struct json_node *at, uint32_t min,
                         uint32_t max, uint32_t missing)
{
    if (d->rc < 0 || !at->v)
        return missing;
    double x = cJSON_IsNumber(at->v) ? at->v->valuedouble : -1.0;
    if (x >= (double)min && x <= (double)max && floor(x) == x)
        return (uint32_t)x;
    json_strict_fail(d, at, "expected a whole number from %u to %u", min, max);
    return missing;
}

bool json_strict_bool(struct json_strict *d, const struct json_node *at, bool missing)
{
    if (d->rc < 0 || !at->v)
        return missing;
    if (!cJSON_IsBool(at->v))
        json_strict_fail(d, at, "expected true or false");
    return cJSON_IsTrue(at->v);
}
