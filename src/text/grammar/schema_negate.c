/* schema_negate.c - see schema_negate.h. */
#include "text/grammar/schema_negate.h"

#include <string.h>

#include "text/grammar/schema_read.h"

#define MAX_DEPTH 16u

struct negate {
    const cJSON *root;
    cJSON *list;         /* schemas, each of which makes the original one invalid */
    const char *skipped; /* a keyword that cannot be negated; NULL: none */
    uint32_t depth;
    int rc;
};

static int negate(cJSON **out, const cJSON *root, const cJSON *schema, uint32_t depth,
                  const char **skipped);

static cJSON *with_type(const char *type)
{
    cJSON *out = cJSON_CreateObject();
    if (out && !cJSON_AddStringToObject(out, "type", type)) {
        cJSON_Delete(out);
        out = NULL;
    }
    return out;
}

/* Takes the schema. */
static void push(struct negate *g, cJSON *schema)
{
    if (!schema || !cJSON_AddItemToArray(g->list, schema)) {
        cJSON_Delete(schema);
        g->rc = SHOAL_ENOMEM;
    }
}

/* A value of a type that has one more keyword; takes the value. */
static void push_with(struct negate *g, const char *type, const char *key, cJSON *value)
{
    cJSON *out = type ? with_type(type) : cJSON_CreateObject();
    if (!out || !value || !cJSON_AddItemToObject(out, key, value)) {
        cJSON_Delete(value);
        cJSON_Delete(out);
        out = NULL;
    }
    push(g, out);
}

static void other_types(struct negate *g, const cJSON *schema)
{
    static const char *const names[] = {"null", "boolean", "string", "array", "object"};
    static const unsigned bits[] = {SCHEMA_TYPE_NULL, SCHEMA_TYPE_BOOLEAN, SCHEMA_TYPE_STRING,
                                    SCHEMA_TYPE_ARRAY, SCHEMA_TYPE_OBJECT};
    unsigned types;
    if (schema_read_types(schema, &types, NULL) < 0) {
        g->skipped = "type";
        return;
    }
    if (cJSON_IsTrue(schema_read_get(schema, "nullable")))
        types |= SCHEMA_TYPE_NULL; /* of OpenAPI: some validators then accept null */
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < 5 && list; i++)
        if (!(types & bits[i]))
            cJSON_AddItemToArray(list, cJSON_CreateString(names[i]));
    /* non-integer numbers have no type name of their own */
    if (list && !(types & (SCHEMA_TYPE_INTEGER | SCHEMA_TYPE_NUMBER)))
        cJSON_AddItemToArray(list, cJSON_CreateString("number"));
    if (list && !list->child)
        cJSON_Delete(list);
    else
        push_with(g, NULL, "type", list);
}

static void other_properties(struct negate *g, const cJSON *props)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, props)
    {
        cJSON *other = NULL, *out, *map, *required;
        int rc = negate(&other, g->root, one, g->depth + 1, &g->skipped);
        if (rc == SHOAL_EUNSUPPORTED)
            continue;
        out = with_type("object");
        map = cJSON_AddObjectToObject(out, "properties");
        required = cJSON_AddArrayToObject(out, "required");
        if (rc < 0 || !map || !required || !cJSON_AddItemToObject(map, one->string, other)) {
            cJSON_Delete(other);
            cJSON_Delete(out);
            g->rc = SHOAL_ENOMEM;
            return;
        }
        cJSON_AddItemToArray(required, cJSON_CreateString(one->string));
        push(g, out);
    }
}

static void other_required(struct negate *g, const cJSON *names)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, names)
    {
        cJSON *map = cJSON_CreateObject();
        if (!cJSON_IsString(one) || !cJSON_AddFalseToObject(map, one->valuestring)) {
            cJSON_Delete(map);
            g->skipped = "required";
            return;
        }
        push_with(g, "object", "properties", map);
    }
}

/* None of the branches holds. */
static void no_branch(struct negate *g, const cJSON *branches)
{
    cJSON *all = cJSON_CreateArray();
    const cJSON *one;
    cJSON_ArrayForEach(one, branches)
    {
        cJSON *other = NULL;
        int rc = negate(&other, g->root, one, g->depth + 1, &g->skipped);
        if (rc < 0 || !all || !cJSON_AddItemToArray(all, other)) {
            cJSON_Delete(other);
            cJSON_Delete(all);
            g->rc = rc == SHOAL_EUNSUPPORTED ? g->rc : SHOAL_ENOMEM;
            return;
        }
    }
    push_with(g, NULL, "allOf", all);
}

/* One of them does not hold. */
static void some_branch(struct negate *g, const cJSON *branches)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, branches)
    {
        cJSON *other = NULL;
        int rc = negate(&other, g->root, one, g->depth + 1, &g->skipped);
        if (rc == 0)
            push(g, other);
        else if (rc != SHOAL_EUNSUPPORTED)
            g->rc = rc;
    }
}

/* Keywords with a number, negated by another keyword with a number. */
static bool other_number(struct negate *g, const cJSON *schema, const cJSON *one)
{
    static const struct {
        const char *key, *type, *other;
        int add;
    } pairs[] = {
        {"minimum", "number", "exclusiveMaximum", 0},
        {"maximum", "number", "exclusiveMinimum", 0},
        {"exclusiveMinimum", "number", "maximum", 0},
        {"exclusiveMaximum", "number", "minimum", 0},
        {"minLength", "string", "maxLength", -1},
        {"maxLength", "string", "minLength", 1},
        {"minItems", "array", "maxItems", -1},
        {"maxItems", "array", "minItems", 1},
        {"minProperties", "object", "maxProperties", -1},
        {"maxProperties", "object", "minProperties", 1},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        if (strcmp(one->string, pairs[i].key) != 0)
            continue;
        const char *draft4 = i == 0 ? "exclusiveMinimum" : i == 1 ? "exclusiveMaximum" : NULL;
        const bool open = draft4 && cJSON_IsTrue(schema_read_get(schema, draft4));
        if (cJSON_IsBool(one))
            return true; /* draft 4: it belongs to minimum or maximum */
        const double v = cJSON_IsNumber(one) ? one->valuedouble + pairs[i].add : -1;
        if (!cJSON_IsNumber(one) || (pairs[i].add != 0 && v < 0))
            return true; /* nothing is shorter than 0 */
        push_with(g, pairs[i].type, open ? (i == 0 ? "maximum" : "minimum") : pairs[i].other,
                  cJSON_CreateNumber(v));
        return true;
    }
    return false;
}

static void other_reference(struct negate *g, const char *ref)
{
    const cJSON *target;
    cJSON *other = NULL;
    int rc = schema_read_resolve(&target, g->root, ref, NULL);
    if (rc == 0)
        rc = negate(&other, g->root, target, g->depth + 1, &g->skipped);
    else
        g->skipped = "$ref";
    if (rc == 0)
        push(g, other);
    else if (rc == SHOAL_ENOMEM)
        g->rc = rc;
}

static void other_keyword(struct negate *g, const cJSON *schema, const cJSON *one)
{
    const char *key = one->string;
    cJSON *list;
    if (schema_read_is_annotation(key) || other_number(g, schema, one))
        return;
    if (strcmp(key, "type") == 0) {
        other_types(g, schema);
    } else if (strcmp(key, "enum") == 0) {
        push_with(g, NULL, SCHEMA_NOT_VALUES, cJSON_Duplicate(one, true));
    } else if (strcmp(key, "const") == 0 || strcmp(key, "pattern") == 0) {
        const bool value = key[0] == 'c';
        list = cJSON_CreateArray();
        if (list)
            cJSON_AddItemToArray(list, cJSON_Duplicate(one, true));
        push_with(g, value ? NULL : "string", value ? SCHEMA_NOT_VALUES : SCHEMA_NOT_PATTERNS,
                  list);
    } else if (strcmp(key, "properties") == 0) {
        other_properties(g, one);
    } else if (strcmp(key, "required") == 0 && cJSON_IsArray(one)) {
        other_required(g, one);
    } else if (strcmp(key, "anyOf") == 0 || strcmp(key, "oneOf") == 0) {
        no_branch(g, one);
    } else if (strcmp(key, "allOf") == 0) {
        some_branch(g, one);
    } else if (strcmp(key, "not") == 0) {
        push(g, cJSON_Duplicate(one, true));
    } else if (strcmp(key, "$ref") == 0 && cJSON_IsString(one)) {
        other_reference(g, one->valuestring);
    } else if (key[0] != '\001' || strcmp(key, SCHEMA_NOT_VALUES) != 0) {
        g->skipped = key;
    } else {
        push_with(g, NULL, "enum", cJSON_Duplicate(one, true));
    }
}

static int negate(cJSON **out, const cJSON *root, const cJSON *schema, uint32_t depth,
                  const char **skipped)
{
    struct negate g = {.root = root, .depth = depth};
    const cJSON *one;
    *out = NULL;
    if (cJSON_IsBool(schema)) {
        *out = cJSON_CreateBool(cJSON_IsFalse(schema));
        return *out ? 0 : SHOAL_ENOMEM;
    }
    if (depth > MAX_DEPTH || !cJSON_IsObject(schema)) {
        *skipped = "$ref";
        return SHOAL_EUNSUPPORTED;
    }
    g.list = cJSON_CreateArray();
    g.rc = g.list ? 0 : SHOAL_ENOMEM;
    cJSON_ArrayForEach(one, schema) if (g.rc == 0) other_keyword(&g, schema, one);
    const int n = cJSON_GetArraySize(g.list);
    if (g.rc == 0 && n == 0 && g.skipped)
        g.rc = SHOAL_EUNSUPPORTED;
    if (g.rc == 0 && n == 0) {
        *out = cJSON_CreateFalse();
    } else if (g.rc == 0 && n == 1) {
        *out = cJSON_DetachItemFromArray(g.list, 0);
    } else if (g.rc == 0) {
        *out = cJSON_CreateObject();
        if (*out && cJSON_AddItemToObject(*out, "anyOf", g.list))
            g.list = NULL;
        else
            g.rc = SHOAL_ENOMEM;
    }
    cJSON_Delete(g.list);
    if (g.skipped)
        *skipped = g.skipped;
    if (g.rc == 0 && !*out)
        g.rc = SHOAL_ENOMEM;
    if (g.rc < 0) {
        cJSON_Delete(*out);
        *out = NULL;
    }
    return g.rc;
}

int schema_negate(cJSON **out, const cJSON *root, const cJSON *schema, struct err *e)
{
    const char *skipped = "not";
    int rc = negate(out, root, schema, 0, &skipped);
    if (rc == SHOAL_EUNSUPPORTED)
        return err_set(e, rc, "the keyword 'not' is not supported with '%.60s' in it", skipped);
    return rc < 0 ? err_set(e, rc, "out of memory for a schema") : 0;
}
