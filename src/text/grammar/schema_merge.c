/* schema_merge.c - see schema_merge.h. */
#include "text/grammar/schema_merge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 64u
#define MAX_BRANCHES 64

struct merge {
    const cJSON *root;
    struct err *e;
    uint32_t depth;
    bool nothing; /* both cannot hold */
};

static int no_memory(struct err *e)
{
    return err_set(e, SHOAL_ENOMEM, "out of memory for a schema");
}

static int refuse(struct merge *m, const char *key, const char *why)
{
    return err_set(m->e, SHOAL_EUNSUPPORTED, "the keyword '%.60s' is not supported here: %s", key,
                   why);
}

const cJSON *schema_merge_get(const cJSON *schema, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(schema, key);
}

bool schema_merge_is_annotation(const char *key)
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

int schema_merge_types(const cJSON *schema, unsigned *types, struct err *e)
{
    const cJSON *type = schema_merge_get(schema, "type"), *one;
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

unsigned schema_merge_type_of(const cJSON *v)
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

bool schema_merge_requires(const cJSON *schema, const char *key)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, schema_merge_get(schema, "required")) if (cJSON_IsString(one) &&
                                                                      strcmp(one->valuestring,
                                                                             key) == 0) return true;
    return false;
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
    return schema_merge_get(at, key);
}

int schema_merge_resolve(const cJSON **out, const cJSON *root, const char *ref, struct err *e)
{
    const char *p = ref;
    *out = root;
    if (*p != '#')
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "'$ref' to another document is not supported: \"%.80s\"", ref);
    p++;
    if (*p && *p != '/')
        return err_set(e, SHOAL_EUNSUPPORTED, "'$ref' to an anchor is not supported: \"%.80s\"",
                       ref);
    while (*p == '/' && *out) {
        size_t n = strcspn(++p, "/");
        *out = pointer_step(*out, p, n);
        p += n;
    }
    if (!*out)
        return err_set(e, SHOAL_EINVAL, "'$ref' leads nowhere: \"%.80s\"", ref);
    return 0;
}

/* ---- joining ---- */

static cJSON *copy(const cJSON *v)
{
    return cJSON_Duplicate(v, true);
}

/* {"allOf": [a, b]}, joined when it is looked at. */
static cJSON *both(const cJSON *a, const cJSON *b)
{
    cJSON *out = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(out, "allOf");
    if (!list || !cJSON_AddItemToArray(list, copy(a)) || !cJSON_AddItemToArray(list, copy(b))) {
        cJSON_Delete(out);
        return NULL;
    }
    return out;
}

static int set(struct merge *m, cJSON *acc, const char *key, cJSON *value)
{
    bool there = schema_merge_get(acc, key);
    if (!value || !(there ? cJSON_ReplaceItemInObjectCaseSensitive(acc, key, value)
                          : cJSON_AddItemToObject(acc, key, value))) {
        cJSON_Delete(value);
        return no_memory(m->e);
    }
    return 0;
}

static const char *type_names[] = {"null",   "boolean", "integer", "number",
                                   "string", "array",   "object"};

static int join_types(struct merge *m, cJSON *acc, const cJSON *b)
{
    const cJSON *type = schema_merge_get(acc, "type");
    unsigned x, y;
    cJSON *with = cJSON_CreateObject(), *list = NULL;
    int rc = with && cJSON_AddItemToObject(with, "type", copy(b)) ? 0 : no_memory(m->e);
    if (rc == 0 && type)
        rc = schema_merge_types(acc, &x, m->e);
    if (rc == 0)
        rc = schema_merge_types(with, &y, m->e);
    cJSON_Delete(with);
    if (rc < 0)
        return rc;
    if ((x & y) == 0) {
        m->nothing = true;
        return 0;
    }
    list = cJSON_CreateArray();
    for (unsigned i = 0; list && i < 7; i++)
        if (x & y & (1u << i) && !(i == 2 && x & y & SCHEMA_TYPE_NUMBER))
            cJSON_AddItemToArray(list, cJSON_CreateString(type_names[i]));
    return set(m, acc, "type", list);
}

static bool list_has(const cJSON *list, const cJSON *v)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, list) if (cJSON_Compare(one, v, true)) return true;
    return false;
}

static int join_enums(struct merge *m, cJSON *acc, const cJSON *b)
{
    cJSON *list = cJSON_CreateArray();
    const cJSON *one;
    cJSON_ArrayForEach(one, schema_merge_get(acc, "enum")) if (list && list_has(b, one))
        cJSON_AddItemToArray(list, copy(one));
    if (list && !list->child)
        m->nothing = true;
    return set(m, acc, "enum", list);
}

static int join_required(struct merge *m, cJSON *acc, const cJSON *b)
{
    cJSON *list = copy(schema_merge_get(acc, "required"));
    const cJSON *one;
    cJSON_ArrayForEach(one, b) if (list && !list_has(list, one))
        cJSON_AddItemToArray(list, copy(one));
    return set(m, acc, "required", list);
}

/* Properties that only one of two schemas names must satisfy what the other says of the rest. */
static int limit_properties(struct merge *m, cJSON *props, const cJSON *named, const cJSON *rest)
{
    cJSON *one;
    int rc = 0;
    if (!rest || cJSON_IsTrue(rest))
        return 0;
    for (one = props->child; one && rc == 0;) {
        cJSON *next = one->next;
        if (!schema_merge_get(named, one->string)) {
            cJSON *with = cJSON_IsFalse(rest) ? cJSON_CreateFalse() : both(one, rest);
            if (!with || !cJSON_ReplaceItemInObjectCaseSensitive(props, one->string, with))
                rc = no_memory(m->e);
        }
        one = next;
    }
    return rc;
}

static int join_properties(struct merge *m, cJSON *acc, const cJSON *schema)
{
    static const cJSON none = {.type = cJSON_Object};
    const cJSON *a = schema_merge_get(acc, "properties"),
                *b = schema_merge_get(schema, "properties"), *one;
    a = a ? a : &none;
    b = b ? b : &none;
    cJSON *props = cJSON_CreateObject();
    int rc = props ? 0 : SHOAL_ENOMEM;
    cJSON_ArrayForEach(one, a) if (rc == 0)
    {
        const cJSON *other = schema_merge_get(b, one->string);
        cJSON *v = other && !cJSON_Compare(one, other, true) ? both(one, other) : copy(one);
        if (!v || !cJSON_AddItemToObject(props, one->string, v))
            rc = SHOAL_ENOMEM;
    }
    cJSON_ArrayForEach(one, b) if (rc == 0 && !schema_merge_get(a, one->string))
    {
        cJSON *v = copy(one);
        if (!v || !cJSON_AddItemToObject(props, one->string, v))
            rc = SHOAL_ENOMEM;
    }
    if (rc == 0)
        rc = limit_properties(m, props, a, schema_merge_get(acc, "additionalProperties"));
    if (rc == 0)
        rc = limit_properties(m, props, b, schema_merge_get(schema, "additionalProperties"));
    if (rc < 0) {
        cJSON_Delete(props);
        return no_memory(m->e);
    }
    return set(m, acc, "properties", props);
}

/* Every branch of one with every branch of the other. */
static int join_branches(struct merge *m, cJSON *acc, const char *key, const cJSON *b)
{
    const cJSON *a = schema_merge_get(acc, key), *x, *y;
    cJSON *list = cJSON_CreateArray();
    if (cJSON_GetArraySize(a) * cJSON_GetArraySize(b) > MAX_BRANCHES) {
        cJSON_Delete(list);
        return refuse(m, key, "too many combinations of branches");
    }
    cJSON_ArrayForEach(x, a) cJSON_ArrayForEach(y, b) if (list)
        cJSON_AddItemToArray(list, both(x, y));
    return set(m, acc, key, list);
}

static bool is_one_of(const char *key, const char *list)
{
    const char *at = strstr(list, key);
    size_t n = strlen(key);
    for (; at; at = strstr(at + 1, key))
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

static int join_number(struct merge *m, cJSON *acc, const cJSON *b, bool larger)
{
    const cJSON *a = schema_merge_get(acc, b->string);
    if (!cJSON_IsNumber(a) || !cJSON_IsNumber(b))
        return refuse(m, b->string, "its value must be a number");
    bool take = larger ? b->valuedouble > a->valuedouble : b->valuedouble < a->valuedouble;
    return take ? set(m, acc, b->string, copy(b)) : 0;
}

static int join_keyword(struct merge *m, cJSON *acc, const cJSON *schema, const cJSON *b)
{
    const char *key = b->string;
    const cJSON *a = schema_merge_get(acc, key);
    if (strcmp(key, "properties") == 0)
        return join_properties(m, acc, schema);
    if (!a)
        return set(m, acc, key, copy(b));
    if (cJSON_Compare(a, b, true) && strcmp(key, "oneOf") != 0)
        return 0;
    if (strcmp(key, "type") == 0)
        return join_types(m, acc, b);
    if (strcmp(key, "enum") == 0)
        return join_enums(m, acc, b);
    if (strcmp(key, "required") == 0)
        return join_required(m, acc, b);
    if (strcmp(key, "anyOf") == 0 || strcmp(key, "oneOf") == 0)
        return join_branches(m, acc, key, b);
    if (is_one_of(key, "minimum exclusiveMinimum minLength minItems minProperties"))
        return join_number(m, acc, b, true);
    if (is_one_of(key, "maximum exclusiveMaximum maxLength maxItems maxProperties"))
        return join_number(m, acc, b, false);
    if (is_one_of(key, "items additionalProperties propertyNames") && !cJSON_IsArray(a) &&
        !cJSON_IsArray(b))
        return set(m, acc, key,
                   cJSON_IsFalse(a) || cJSON_IsFalse(b) ? cJSON_CreateFalse() : both(a, b));
    if (is_one_of(key, "pattern format not if then else contains multipleOf patternProperties "
                       "dependencies dependentRequired dependentSchemas prefixItems items "
                       "additionalItems uniqueItems"))
        return refuse(m, key, "it is given twice, in schemas that must both hold");
    return 0; /* says nothing about what is valid */
}

static int join(struct merge *m, cJSON *acc, const cJSON *schema);

static int join_reference(struct merge *m, cJSON *acc, const char *ref)
{
    const cJSON *target;
    int rc = schema_merge_resolve(&target, m->root, ref, m->e);
    return rc < 0 ? rc : join(m, acc, target);
}

/* acc becomes what satisfies both. */
static int join(struct merge *m, cJSON *acc, const cJSON *schema)
{
    const cJSON *one, *part;
    int rc = 0;
    if (cJSON_IsTrue(schema))
        return 0;
    if (cJSON_IsFalse(schema)) {
        m->nothing = true;
        return 0;
    }
    if (!cJSON_IsObject(schema))
        return err_set(m->e, SHOAL_EINVAL, "a schema must be an object or a boolean");
    if (++m->depth > MAX_DEPTH)
        return err_set(m->e, SHOAL_ELIMIT,
                       "'$ref' and 'allOf' are nested too deeply, or in a "
                       "circle");
    /* what additionalProperties forbids depends on the properties beside it: join those first */
    if (schema_merge_get(schema, "properties") || schema_merge_get(schema, "additionalProperties"))
        rc = join_properties(m, acc, schema);
    cJSON_ArrayForEach(one, schema)
    {
        if (rc < 0 || m->nothing)
            break;
        if (schema_merge_is_annotation(one->string) || strcmp(one->string, "properties") == 0)
            continue;
        if (strcmp(one->string, "$ref") == 0 && cJSON_IsString(one)) {
            rc = join_reference(m, acc, one->valuestring);
        } else if (strcmp(one->string, "allOf") == 0) {
            cJSON_ArrayForEach(part, one) if (rc == 0 && !m->nothing) rc = join(m, acc, part);
        } else if (strcmp(one->string, "const") == 0) {
            cJSON *list = cJSON_CreateArray();
            if (!list || !cJSON_AddItemToArray(list, copy(one)))
                rc = no_memory(m->e);
            if (rc == 0 && schema_merge_get(acc, "enum"))
                rc = join_enums(m, acc, list);
            else if (rc == 0)
                rc = set(m, acc, "enum", copy(list));
            cJSON_Delete(list);
        } else {
            rc = join_keyword(m, acc, schema, one);
        }
    }
    m->depth--;
    return rc;
}

int schema_merge_flatten(cJSON **out, const cJSON *root, const cJSON *schema, struct err *e)
{
    struct merge m = {.root = root, .e = e};
    cJSON *acc = cJSON_CreateObject();
    *out = NULL;
    if (!acc)
        return no_memory(e);
    int rc = join(&m, acc, schema);
    if (rc == 0 && !m.nothing) {
        *out = acc;
        return 0;
    }
    cJSON_Delete(acc);
    return rc;
}

/* ---- whether two can both hold ---- */

/* Types that are generated for a schema, which may be fewer than it allows. */
static unsigned types_of(const cJSON *s, bool generated)
{
    unsigned types = SCHEMA_TYPE_ALL;
    const cJSON *one, *list = schema_merge_get(s, "enum");
    if (schema_merge_types(s, &types, NULL) < 0)
        return SCHEMA_TYPE_ALL;
    if (list) {
        unsigned found = 0;
        cJSON_ArrayForEach(one, list) found |= schema_merge_type_of(one);
        types &= found;
    }
    if (generated && types == SCHEMA_TYPE_ALL &&
        (schema_merge_get(s, "properties") || schema_merge_get(s, "required")))
        types = SCHEMA_TYPE_OBJECT;
    return types;
}

static bool enums_apart(const cJSON *a, const cJSON *b)
{
    const cJSON *x = schema_merge_get(a, "enum"), *y = schema_merge_get(b, "enum"), *one;
    if (!x || !y)
        return false;
    cJSON_ArrayForEach(one, x) if (list_has(y, one)) return false;
    return true;
}

static bool ranges_apart(const cJSON *a, const cJSON *b, const char *min, const char *max)
{
    const cJSON *lo = schema_merge_get(b, min), *hi = schema_merge_get(a, max);
    return cJSON_IsNumber(lo) && cJSON_IsNumber(hi) && hi->valuedouble < lo->valuedouble;
}

static bool flat_disjoint(const cJSON *root, const cJSON *a, const cJSON *b, uint32_t depth);

static bool property_apart(const cJSON *root, const cJSON *a, const cJSON *b, const char *key,
                           uint32_t depth)
{
    const cJSON *x = schema_merge_get(schema_merge_get(a, "properties"), key),
                *y = schema_merge_get(schema_merge_get(b, "properties"), key);
    cJSON *fx = NULL, *fy = NULL;
    if (!x || !y || depth == 0)
        return false;
    bool apart = false;
    if (schema_merge_flatten(&fx, root, x, NULL) == 0 &&
        schema_merge_flatten(&fy, root, y, NULL) == 0)
        apart = !fx || !fy || flat_disjoint(root, fx, fy, depth - 1);
    cJSON_Delete(fx);
    cJSON_Delete(fy);
    return apart;
}

/* No value that has the property is valid. */
static bool closed_to(const cJSON *schema, const char *key)
{
    return cJSON_IsFalse(schema_merge_get(schema, "additionalProperties")) &&
           !schema_merge_get(schema, "patternProperties") &&
           !schema_merge_get(schema_merge_get(schema, "properties"), key);
}

/* Code points of a text in UTF-8. */
static size_t count_characters(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

static bool objects_apart(const cJSON *root, const cJSON *a, const cJSON *b, uint32_t depth)
{
    const cJSON *props = schema_merge_get(a, "properties"), *one;
    const cJSON *rest = schema_merge_get(a, "additionalProperties");
    const bool open = (rest && !cJSON_IsFalse(rest)) || schema_merge_get(a, "patternProperties") ||
                      (!props && !schema_merge_get(a, "required"));
    cJSON_ArrayForEach(one, schema_merge_get(b, "required"))
    {
        const char *key = cJSON_GetStringValue(one);
        const cJSON *p = key ? schema_merge_get(props, key) : NULL;
        if (key && (cJSON_IsFalse(p) || (!p && !open && !schema_merge_requires(a, key))))
            return true; /* b needs what a never has */
    }
    cJSON_ArrayForEach(one, schema_merge_get(a, "required"))
    {
        const char *key = cJSON_GetStringValue(one);
        if (!key)
            continue;
        if (property_apart(root, a, b, key, depth) || closed_to(b, key))
            return true;
    }
    return false;
}

static bool flat_disjoint(const cJSON *root, const cJSON *a, const cJSON *b, uint32_t depth)
{
    unsigned x = types_of(a, true), y = types_of(b, false), common = x & y;
    if (common == 0 || enums_apart(a, b))
        return true;
    if ((common & ~(unsigned)(SCHEMA_TYPE_INTEGER | SCHEMA_TYPE_NUMBER)) == 0)
        return ranges_apart(a, b, "minimum", "maximum") || ranges_apart(b, a, "minimum", "maximum");
    if (common == SCHEMA_TYPE_STRING)
        return ranges_apart(a, b, "minLength", "maxLength") ||
               ranges_apart(b, a, "minLength", "maxLength");
    return common == SCHEMA_TYPE_OBJECT && objects_apart(root, a, b, depth);
}

unsigned schema_merge_common_types(const cJSON *a, const cJSON *b)
{
    return types_of(a, true) & types_of(b, false);
}

bool schema_merge_parts(const cJSON *root, const cJSON *a, const cJSON *b, const char *key)
{
    const cJSON *x = schema_merge_get(schema_merge_get(a, "properties"), key);
    if (!x || cJSON_IsFalse(x))
        return false; /* it is never there */
    return property_apart(root, a, b, key, 8) || closed_to(b, key);
}

/* Keywords that judge_keyword understands for values of these types; others it need not. */
static bool is_judged(const char *key, unsigned type)
{
    if (schema_merge_is_annotation(key) || is_one_of(key, "type enum"))
        return true;
    if (type & (SCHEMA_TYPE_INTEGER | SCHEMA_TYPE_NUMBER))
        return is_one_of(key, "minimum maximum minLength maxLength pattern format required "
                              "properties additionalProperties items");
    if (type == SCHEMA_TYPE_STRING)
        return is_one_of(key, "minLength maxLength minimum maximum multipleOf required "
                              "properties additionalProperties items");
    return type & (SCHEMA_TYPE_NULL | SCHEMA_TYPE_BOOLEAN)
               ? is_one_of(key, "minimum maximum multipleOf minLength maxLength pattern format "
                                "required properties additionalProperties items")
               : false;
}

static bool out_of_bounds(const cJSON *schema, const char *min, const char *max, double v)
{
    const cJSON *lo = schema_merge_get(schema, min), *hi = schema_merge_get(schema, max);
    return (cJSON_IsNumber(lo) && v < lo->valuedouble) ||
           (cJSON_IsNumber(hi) && v > hi->valuedouble);
}

enum schema_verdict schema_merge_judge(const cJSON *schema, const cJSON *value)
{
    unsigned types, type = schema_merge_type_of(value);
    const cJSON *list = schema_merge_get(schema, "enum"), *one;
    if (schema_merge_types(schema, &types, NULL) < 0)
        return SCHEMA_UNKNOWN;
    if (!(types & type) || (list && !list_has(list, value)))
        return SCHEMA_INVALID;
    if (cJSON_IsNumber(value) && out_of_bounds(schema, "minimum", "maximum", value->valuedouble))
        return SCHEMA_INVALID;
    if (cJSON_IsString(value) && out_of_bounds(schema, "minLength", "maxLength",
                                               (double)count_characters(value->valuestring)))
        return SCHEMA_INVALID;
    cJSON_ArrayForEach(one, schema) if (!is_judged(one->string, type)) return SCHEMA_UNKNOWN;
    return SCHEMA_VALID;
}

bool schema_merge_disjoint(const cJSON *root, const cJSON *a, const cJSON *b)
{
    return flat_disjoint(root, a, b, 8);
}
