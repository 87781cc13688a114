/* schema_read.c - see schema_read.h. */
#include "text/grammar/schema_read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const cJSON *schema_read_get(const cJSON *schema, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(schema, key);
}

bool schema_read_is_annotation(const char *key)
{
    static const char *const known[] = {"title",           "description",   "default",
                                        "example",         "examples",      "deprecated",
                                        "readOnly",        "writeOnly",     "$comment",
                                        "$schema",         "$id",           "id",
                                        "$anchor",         "$defs",         "definitions",
                                        "$vocabulary",     "nullable",      "strict",
                                        "externalDocs",    "xml",           "contentMediaType",
                                        "contentEncoding", "discriminator", "contentSchema"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(key, known[i]) == 0)
            return true;
    return false;
}

/* ---- types ---- */

static unsigned type_named(const char *name)
{
    static const struct {
        const char *name;
        unsigned types;
    } all[] = {
        {"null", SCHEMA_TYPE_NULL},       {"boolean", SCHEMA_TYPE_BOOLEAN},
        {"integer", SCHEMA_TYPE_INTEGER}, {"number", SCHEMA_TYPE_INTEGER | SCHEMA_TYPE_NUMBER},
        {"string", SCHEMA_TYPE_STRING},   {"array", SCHEMA_TYPE_ARRAY},
        {"object", SCHEMA_TYPE_OBJECT}};
    for (size_t i = 0; name && i < sizeof(all) / sizeof(all[0]); i++)
        if (strcmp(name, all[i].name) == 0)
            return all[i].types;
    return 0;
}

int schema_read_types(const cJSON *schema, unsigned *types, struct err *e)
{
    const cJSON *type = schema_read_get(schema, "type"), *one;
    const cJSON *list = cJSON_IsArray(type) ? type : NULL;
    *types = SCHEMA_TYPE_ALL;
    if (!type)
        return 0;
    *types = type_named(cJSON_GetStringValue(type));
    cJSON_ArrayForEach(one, list)
    {
        unsigned t = type_named(cJSON_GetStringValue(one));
        *types = t ? *types | t : 0;
        if (!t)
            break;
    }
    if (*types == 0)
        return err_set(e, SHOAL_EINVAL,
                       "'type' must be null, boolean, integer, number, string, array, object, or a "
                       "list of these");
    return 0;
}

unsigned schema_read_type_of(const cJSON *v)
{
    if (cJSON_IsNull(v))
        return SCHEMA_TYPE_NULL;
    if (cJSON_IsBool(v))
        return SCHEMA_TYPE_BOOLEAN;
    if (cJSON_IsNumber(v))
        return v->valuedouble == floor(v->valuedouble) ? SCHEMA_TYPE_INTEGER : SCHEMA_TYPE_NUMBER;
    if (cJSON_IsString(v))
        return SCHEMA_TYPE_STRING;
    return cJSON_IsArray(v) ? SCHEMA_TYPE_ARRAY : SCHEMA_TYPE_OBJECT;
}

bool schema_read_requires(const cJSON *schema, const char *key)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, schema_read_get(schema, "required")) if (cJSON_IsString(one) &&
                                                                     strcmp(one->valuestring,
                                                                            key) == 0) return true;
    return false;
}

bool schema_read_names_none(const cJSON *schema)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, schema_read_get(schema, "properties"))
    {
        if (!cJSON_IsFalse(one))
            return false;
    }
    return cJSON_GetArraySize(schema_read_get(schema, "required")) == 0;
}

/* ---- references ---- */

/* One step of a JSON pointer: ~1 is /, ~0 is ~. */
static const cJSON *pointer_step(const cJSON *at, const char *p, size_t n)
{
    char key[256];
    size_t k = 0;
    if (n >= sizeof(key))
        return NULL;
    for (size_t i = 0; i < n; i++) {
        char c = p[i];
        unsigned hex;
        if (c == '~' && i + 1 < n)
            c = p[++i] == '1' ? '/' : '~';
        else if (c == '%' && i + 2 < n && sscanf(p + i + 1, "%2x", &hex) == 1) {
            c = (char)hex;
            i += 2;
        }
        key[k++] = c;
    }
    key[k] = '\0';
    if (cJSON_IsArray(at)) {
        int index;
        return sscanf(key, "%d", &index) == 1 ? cJSON_GetArrayItem(at, index) : NULL;
    }
    return schema_read_get(at, key);
}

/* Whether a part of a document has the name: its $id, or "#" and its anchor. */
static bool has_name(const cJSON *at, const char *name, size_t n)
{
    static const char *const keys[] = {"$id", "id", "$anchor"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *have = cJSON_GetStringValue(schema_read_get(at, keys[i]));
        const bool anchor = i == 2;
        if (!have || (anchor && name[0] != '#'))
            continue;
        size_t k = strlen(have);
        k -= k > 0 && !anchor && have[k - 1] == '#'; /* "http://x/y#" is "http://x/y" */
        if (k == n - anchor && strncmp(have, name + anchor, k) == 0)
            return true;
    }
    return false;
}

/* Counts the parts with this name, which has n > 0 bytes; *out is the last of them. */
static uint32_t find_named(const cJSON **out, const cJSON *at, const char *name, size_t n)
{
    uint32_t found = 0;
    const cJSON *one;
    if (cJSON_IsObject(at) && has_name(at, name, n)) {
        *out = at;
        found++;
    }
    if (cJSON_IsObject(at) || cJSON_IsArray(at))
        cJSON_ArrayForEach(one, at) found += find_named(out, one, name, n);
    return found;
}

int schema_read_resolve(const cJSON **out, const cJSON *root, const char *ref, struct err *e)
{
    const char *p = ref + strcspn(ref, "#");
    *out = root;
    /* a relative address depends on the enclosing ones */
    if (p > ref && (!memchr(ref, ':', (size_t)(p - ref)) ||
                    find_named(out, root, ref, (size_t)(p - ref)) != 1))
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "'$ref' to another document is not supported: \"%.80s\"", ref);
    p += *p == '#';
    if (*p && *p != '/' && find_named(out, *out, p - 1, strlen(p) + 1) != 1)
        return err_set(e, SHOAL_EUNSUPPORTED, "'$ref' to an anchor that %s: \"%.80s\"",
                       "does not exist or is ambiguous", ref);
    while (*p == '/' && *out) {
        size_t n = strcspn(++p, "/");
        *out = pointer_step(*out, p, n);
        p += n;
    }
    if (!*out)
        return err_set(e, SHOAL_EINVAL, "'$ref' has no target: \"%.80s\"", ref);
    return 0;
}
