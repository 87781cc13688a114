/* schema_merge.c - see schema_merge.h. */
#include "text/grammar/schema_merge.h"

#include <string.h>

#include "text/grammar/schema_negate.h"

#define MAX_DEPTH 64u
#define MAX_BRANCHES 64
#define APART_JOINS 200u /* at most, to compare two properties */

struct merge {
    const cJSON *root;
    struct err *e;
    uint32_t depth;
    uint32_t *joins; /* how many are left */
    bool nothing;    /* both cannot hold */
    bool turned;     /* from not or if: its property keywords do not mark properties as evaluated */
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
    bool there = schema_read_get(acc, key);
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
    const cJSON *type = schema_read_get(acc, "type");
    unsigned x, y;
    cJSON *with = cJSON_CreateObject(), *list = NULL;
    int rc = with && cJSON_AddItemToObject(with, "type", copy(b)) ? 0 : no_memory(m->e);
    if (rc == 0 && type)
        rc = schema_read_types(acc, &x, m->e);
    if (rc == 0)
        rc = schema_read_types(with, &y, m->e);
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
    cJSON_ArrayForEach(one, schema_read_get(acc, "enum")) if (list && list_has(b, one))
        cJSON_AddItemToArray(list, copy(one));
    if (list && !list->child)
        m->nothing = true;
    return set(m, acc, "enum", list);
}

static int join_required(struct merge *m, cJSON *acc, const cJSON *b)
{
    cJSON *list = copy(schema_read_get(acc, "required"));
    const cJSON *one;
    cJSON_ArrayForEach(one, b) if (list && !list_has(list, one))
        cJSON_AddItemToArray(list, copy(one));
    return set(m, acc, "required", list);
}

/* Properties that only one of two schemas names must satisfy the other's rule for the rest. */
static int limit_properties(struct merge *m, cJSON *props, const cJSON *named, const cJSON *rest)
{
    cJSON *one;
    int rc = 0;
    if (!rest || cJSON_IsTrue(rest))
        return 0;
    for (one = props->child; one && rc == 0;) {
        cJSON *next = one->next;
        if (!schema_read_get(named, one->string)) {
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
    const cJSON *a = schema_read_get(acc, "properties"), *b = schema_read_get(schema, "properties"),
                *one;
    a = a ? a : &none;
    b = b ? b : &none;
    cJSON *props = cJSON_CreateObject();
    int rc = props ? 0 : SHOAL_ENOMEM;
    cJSON_ArrayForEach(one, a) if (rc == 0)
    {
        const cJSON *other = schema_read_get(b, one->string);
        cJSON *v = other && !cJSON_Compare(one, other, true) ? both(one, other) : copy(one);
        if (!v || !cJSON_AddItemToObject(props, one->string, v))
            rc = SHOAL_ENOMEM;
    }
    cJSON_ArrayForEach(one, b) if (rc == 0 && !schema_read_get(a, one->string))
    {
        cJSON *v = copy(one);
        if (!v || !cJSON_AddItemToObject(props, one->string, v))
            rc = SHOAL_ENOMEM;
    }
    if (rc == 0)
        rc = limit_properties(m, props, a, schema_read_get(acc, "additionalProperties"));
    if (rc == 0)
        rc = limit_properties(m, props, b, schema_read_get(schema, "additionalProperties"));
    if (rc < 0) {
        cJSON_Delete(props);
        return no_memory(m->e);
    }
    return set(m, acc, "properties", props);
}

static int join(struct merge *m, cJSON *acc, const cJSON *schema);
static bool contradicts(const cJSON *flat);

/* {"allOf": [x, y]}; *out NULL without an error: no value satisfies both. */
static int join_pair(struct merge *m, cJSON **out, const cJSON *x, const cJSON *y)
{
    struct merge sub = {.root = m->root, .depth = m->depth, .joins = m->joins};
    cJSON *pair = both(x, y), *flat = cJSON_CreateObject();
    int rc = pair && flat ? join(&sub, flat, pair) : SHOAL_ENOMEM;
    const bool nothing = rc == 0 && (sub.nothing || contradicts(flat));
    cJSON_Delete(flat);
    *out = NULL;
    if (nothing) {
        cJSON_Delete(pair);
        return 0;
    }
    if (!pair || *m->joins == 0) {
        cJSON_Delete(pair);
        return pair ? SHOAL_ELIMIT : SHOAL_ENOMEM;
    }
    *out = pair; /* a conflict is reported when the branch is built */
    return 0;
}

/* Every branch of one with every branch of the other, as far as both can hold. */
static int join_branches(struct merge *m, cJSON *acc, const char *key, const cJSON *b)
{
    const cJSON *a = schema_read_get(acc, key), *x, *y;
    cJSON *list = cJSON_CreateArray();
    int rc = list ? 0 : SHOAL_ENOMEM, n = 0;
    cJSON_ArrayForEach(x, a) cJSON_ArrayForEach(y, b)
    {
        cJSON *pair = NULL;
        if (rc == 0)
            rc = n > MAX_BRANCHES ? SHOAL_ELIMIT : join_pair(m, &pair, x, y);
        if (rc == 0 && pair && !cJSON_AddItemToArray(list, pair))
            rc = SHOAL_ENOMEM;
        n += pair != NULL;
    }
    if (rc == SHOAL_ENOMEM)
        no_memory(m->e);
    else if (rc < 0)
        refuse(m, key, "too many combinations of branches");
    if (rc < 0) {
        cJSON_Delete(list);
        return rc;
    }
    m->nothing |= n == 0;
    return set(m, acc, key, list);
}

static bool is_one_of(const char *key, const char *list)
{
    const size_t n = strlen(key);
    const char *at = n > 0 ? strstr(list, key) : NULL;
    for (; at; at = strstr(at + 1, key))
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

static int join_number(struct merge *m, cJSON *acc, const cJSON *b, bool larger)
{
    const cJSON *a = schema_read_get(acc, b->string);
    if (!cJSON_IsNumber(a) || !cJSON_IsNumber(b))
        return refuse(m, b->string, "its value must be a number");
    bool take = larger ? b->valuedouble > a->valuedouble : b->valuedouble < a->valuedouble;
    return take ? set(m, acc, b->string, copy(b)) : 0;
}

/* A list with the values of both; b may be one value. */
static int join_lists(struct merge *m, cJSON *acc, const char *key, const cJSON *b)
{
    cJSON *list = copy(schema_read_get(acc, key));
    const cJSON *one;
    if (!list)
        list = cJSON_CreateArray();
    if (!cJSON_IsArray(b) && list)
        cJSON_AddItemToArray(list, copy(b));
    else
        cJSON_ArrayForEach(one, b) if (list) cJSON_AddItemToArray(list, copy(one));
    return set(m, acc, key, list);
}

/* Maps from names to schemas, or to lists of names. */
static int join_maps(struct merge *m, cJSON *acc, const cJSON *b)
{
    cJSON *map = copy(schema_read_get(acc, b->string));
    const cJSON *one;
    int rc = map ? 0 : SHOAL_ENOMEM;
    cJSON_ArrayForEach(one, b)
    {
        const cJSON *have = schema_read_get(map, one->string);
        if (rc < 0 || (have && cJSON_Compare(have, one, true)))
            continue;
        cJSON *v = !have ? copy(one) : both(have, one);
        if (have && (cJSON_IsArray(have) || cJSON_IsArray(one))) {
            cJSON_Delete(v);
            cJSON_Delete(map);
            return refuse(m, b->string, "it is given twice, in schemas that must both hold");
        }
        if (!v || !(have ? cJSON_ReplaceItemInObjectCaseSensitive(map, one->string, v)
                         : cJSON_AddItemToObject(map, one->string, v)))
            rc = SHOAL_ENOMEM;
    }
    if (rc < 0) {
        cJSON_Delete(map);
        return no_memory(m->e);
    }
    return set(m, acc, b->string, map);
}

/* Keys that match only one schema's patterns count as additional for the other. */
static cJSON *limit_patterns(const cJSON *patterns, const cJSON *known, const cJSON *rest)
{
    cJSON *out = copy(patterns), *one = out ? out->child : NULL;
    while (one) {
        cJSON *next = one->next;
        if (!schema_read_get(known, one->string)) {
            cJSON *with = cJSON_IsFalse(rest) ? cJSON_CreateFalse() : both(one, rest);
            if (!with || !cJSON_ReplaceItemInObjectCaseSensitive(out, one->string, with)) {
                cJSON_Delete(out);
                return NULL;
            }
        }
        one = next;
    }
    return out;
}

/* Before the patterns of two schemas are joined: see limit_patterns. */
static int join_patterns(struct merge *m, cJSON *acc, const cJSON *schema)
{
    const cJSON *a = schema_read_get(acc, "patternProperties"),
                *b = schema_read_get(schema, "patternProperties"),
                *rest_a = schema_read_get(acc, "additionalProperties"),
                *rest_b = schema_read_get(schema, "additionalProperties");
    cJSON *less = NULL;
    int rc = 0;
    const bool cut_b = cJSON_IsObject(b) && rest_a && !cJSON_IsTrue(rest_a);
    if (cut_b) {
        less = limit_patterns(b, a, rest_a);
        if (!less)
            return no_memory(m->e);
        b = less;
    }
    if (cJSON_IsObject(a) && rest_b && !cJSON_IsTrue(rest_b)) {
        cJSON *cut = limit_patterns(a, schema_read_get(schema, "patternProperties"), rest_b);
        rc = set(m, acc, "patternProperties", cut);
    }
    if (rc == 0 && cJSON_IsObject(b)) {
        cJSON *named = less ? less : copy(b), *holder = cJSON_CreateObject();
        less = NULL;
        if (!named || !holder || !cJSON_AddItemToObject(holder, "patternProperties", named))
            rc = no_memory(m->e);
        else
            rc = schema_read_get(acc, "patternProperties")
                     ? join_maps(m, acc, named)
                     : set(m, acc, named->string, copy(named));
        cJSON_Delete(holder);
    }
    cJSON_Delete(less);
    return rc;
}

/* Turns if, then and else into two branches: with the condition, or without it. */
static int join_condition(struct merge *m, cJSON *acc, const cJSON *schema)
{
    static const cJSON any = {.type = cJSON_True};
    const cJSON *cond = schema_read_get(schema, "if"), *then = schema_read_get(schema, "then"),
                *other = schema_read_get(schema, "else");
    cJSON *list = cJSON_CreateArray(), *without = NULL;
    int rc = 0;
    m->turned = true;
    if (then || other) {
        /* a condition that cannot be negated is assumed to hold: one valid choice */
        if (schema_negate(&without, m->root, cond, NULL) < 0)
            without = cJSON_CreateFalse();
        cJSON *yes = both(cond, then ? then : &any),
              *no = without ? both(without, other ? other : &any) : NULL;
        if (!list || !yes || !no || !cJSON_AddItemToArray(list, yes)) {
            cJSON_Delete(yes);
            cJSON_Delete(no);
            rc = no_memory(m->e);
        } else if (!cJSON_AddItemToArray(list, no)) {
            cJSON_Delete(no);
            rc = no_memory(m->e);
        }
        if (rc == 0 && schema_read_get(acc, "anyOf"))
            rc = join_branches(m, acc, "anyOf", list);
        else if (rc == 0)
            rc = set(m, acc, "anyOf", copy(list));
    }
    cJSON_Delete(without);
    cJSON_Delete(list);
    return rc;
}

static int join_not(struct merge *m, cJSON *acc, const cJSON * not )
{
    cJSON *without = NULL;
    m->turned = true;
    int rc = schema_negate(&without, m->root, not, m->e);
    if (rc == 0)
        rc = join(m, acc, without);
    cJSON_Delete(without);
    return rc;
}

/* `items` covers other positions beside `prefixItems` than without it. */
static bool places_differ(const cJSON *a, const cJSON *b)
{
    const cJSON *x = schema_read_get(a, "prefixItems"), *y = schema_read_get(b, "prefixItems");
    const bool same = x && y && cJSON_Compare(x, y, true);
    return !same && ((x && schema_read_get(b, "items")) || (y && schema_read_get(a, "items")));
}

static int join_keyword(struct merge *m, cJSON *acc, const cJSON *schema, const cJSON *b)
{
    const char *key = b->string;
    const cJSON *a = schema_read_get(acc, key);
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
    if (key[0] == '\001' || strcmp(key, "pattern") == 0)
        return join_lists(m, acc, key[0] == '\001' ? key : SCHEMA_ALSO_PATTERNS, b);
    if (strcmp(key, "uniqueItems") == 0)
        return cJSON_IsTrue(b) ? set(m, acc, key, copy(b)) : 0;
    if (is_one_of(key, "patternProperties dependencies dependentRequired dependentSchemas"))
        return join_maps(m, acc, b);
    if (is_one_of(key, "format contains minContains maxContains multipleOf prefixItems items "
                       "additionalItems unevaluatedItems"))
        return refuse(m, key, "it is given twice, in schemas that must both hold");
    return 0; /* says nothing about what is valid */
}

static int join_reference(struct merge *m, cJSON *acc, const char *ref)
{
    const cJSON *target;
    int rc = schema_read_resolve(&target, m->root, ref, m->e);
    return rc < 0 ? rc : join(m, acc, target);
}

/* Changes acc to the values that satisfy both. */
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
    if (++m->depth > MAX_DEPTH || *m->joins == 0)
        return err_set(m->e, SHOAL_ELIMIT,
                       "'$ref' and 'allOf' are nested too deeply, or in a "
                       "circle");
    --*m->joins;
    if (m->depth > 1 && (schema_read_get(schema, "unevaluatedProperties") ||
                         schema_read_get(schema, "unevaluatedItems")))
        return refuse(m,
                      schema_read_get(schema, "unevaluatedItems") ? "unevaluatedItems"
                                                                  : "unevaluatedProperties",
                      "it is in a schema that must hold beside another");
    if (places_differ(acc, schema))
        return refuse(m, "prefixItems", "'items' of another schema must hold too");
    /* the effect of additionalProperties depends on the properties beside it: join those first */
    if (schema_read_get(schema, "properties") || schema_read_get(schema, "additionalProperties"))
        rc = join_properties(m, acc, schema);
    if (rc == 0)
        rc = join_patterns(m, acc, schema);
    cJSON_ArrayForEach(one, schema)
    {
        if (rc < 0 || m->nothing)
            break;
        if (schema_read_is_annotation(one->string) ||
            is_one_of(one->string, "properties patternProperties then else"))
            continue;
        if (strcmp(one->string, "$ref") == 0 && cJSON_IsString(one)) {
            rc = join_reference(m, acc, one->valuestring);
        } else if (strcmp(one->string, "not") == 0) {
            rc = join_not(m, acc, one);
        } else if (strcmp(one->string, "if") == 0) {
            rc = join_condition(m, acc, schema);
        } else if (strcmp(one->string, "allOf") == 0) {
            cJSON_ArrayForEach(part, one) if (rc == 0 && !m->nothing) rc = join(m, acc, part);
        } else if (strcmp(one->string, "const") == 0) {
            cJSON *list = cJSON_CreateArray();
            if (!list || !cJSON_AddItemToArray(list, copy(one)))
                rc = no_memory(m->e);
            if (rc == 0 && schema_read_get(acc, "enum"))
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

/* Whether a property is required that must not be there. */
static bool contradicts(const cJSON *flat)
{
    const cJSON *one;
    cJSON_ArrayForEach(
        one, schema_read_get(flat, "properties")) if (cJSON_IsFalse(one) &&
                                                      schema_read_requires(flat, one->string))
    {
        unsigned types;
        return schema_read_types(flat, &types, NULL) == 0 && types == SCHEMA_TYPE_OBJECT;
    }
    return false;
}

int schema_merge_flatten(cJSON **out, const cJSON *root, const cJSON *schema, uint32_t *joins,
                         struct err *e)
{
    struct merge m = {.root = root, .e = e, .joins = joins};
    cJSON *acc = cJSON_CreateObject();
    *out = NULL;
    if (!acc)
        return no_memory(e);
    int rc = join(&m, acc, schema);
    const char *unevaluated = schema_read_get(acc, "unevaluatedItems") ? "unevaluatedItems"
                              : schema_read_get(acc, "unevaluatedProperties")
                                  ? "unevaluatedProperties"
                                  : NULL;
    if (rc == 0 && m.turned && unevaluated)
        rc = refuse(&m, unevaluated, "there is 'not' or 'if' too");
    if (rc == 0 && !m.nothing && !contradicts(acc)) {
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
    const cJSON *one, *list = schema_read_get(s, "enum");
    if (schema_read_types(s, &types, NULL) < 0)
        return SCHEMA_TYPE_ALL;
    if (list) {
        unsigned found = 0;
        cJSON_ArrayForEach(one, list) found |= schema_read_type_of(one);
        types &= found;
    }
    if (generated && types == SCHEMA_TYPE_ALL &&
        (schema_read_get(s, "properties") || schema_read_get(s, "required")))
        types = SCHEMA_TYPE_OBJECT;
    return types;
}

static bool enums_apart(const cJSON *a, const cJSON *b)
{
    const cJSON *x = schema_read_get(a, "enum"), *y = schema_read_get(b, "enum"), *one;
    if (!x || !y)
        return false;
    cJSON_ArrayForEach(one, x) if (list_has(y, one)) return false;
    return true;
}

static bool ranges_apart(const cJSON *a, const cJSON *b, const char *min, const char *max)
{
    const cJSON *lo = schema_read_get(b, min), *hi = schema_read_get(a, max);
    return cJSON_IsNumber(lo) && cJSON_IsNumber(hi) && hi->valuedouble < lo->valuedouble;
}

static bool flat_disjoint(const cJSON *root, const cJSON *a, const cJSON *b, uint32_t depth);

static bool property_apart(const cJSON *root, const cJSON *a, const cJSON *b, const char *key,
                           uint32_t depth)
{
    const cJSON *x = schema_read_get(schema_read_get(a, "properties"), key),
                *y = schema_read_get(schema_read_get(b, "properties"), key);
    cJSON *fx = NULL, *fy = NULL;
    if (!x || !y || depth == 0)
        return false;
    bool apart = false;
    uint32_t joins = APART_JOINS;
    if (schema_merge_flatten(&fx, root, x, &joins, NULL) == 0 &&
        schema_merge_flatten(&fy, root, y, &joins, NULL) == 0)
        apart = !fx || !fy || flat_disjoint(root, fx, fy, depth - 1);
    cJSON_Delete(fx);
    cJSON_Delete(fy);
    return apart;
}

/* No value that has the property is valid. */
static bool closed_to(const cJSON *schema, const char *key)
{
    return cJSON_IsFalse(schema_read_get(schema, "additionalProperties")) &&
           !schema_read_get(schema, "patternProperties") &&
           !schema_read_get(schema_read_get(schema, "properties"), key);
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
    const cJSON *props = schema_read_get(a, "properties"), *one;
    const cJSON *rest = schema_read_get(a, "additionalProperties");
    const bool open = (rest && !cJSON_IsFalse(rest)) || schema_read_get(a, "patternProperties") ||
                      (!rest && schema_read_names_none(a));
    cJSON_ArrayForEach(one, schema_read_get(b, "required"))
    {
        const char *key = cJSON_GetStringValue(one);
        const cJSON *p = key ? schema_read_get(props, key) : NULL;
        if (key && (cJSON_IsFalse(p) || (!p && !open && !schema_read_requires(a, key))))
            return true; /* b needs what a never has */
    }
    cJSON_ArrayForEach(one, schema_read_get(a, "required"))
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
    const cJSON *x = schema_read_get(schema_read_get(a, "properties"), key);
    if (!x || cJSON_IsFalse(x))
        return false; /* the property never occurs */
    return property_apart(root, a, b, key, 8) || closed_to(b, key);
}

/* Keywords that judge_keyword understands for values of these types; others it need not. */
static bool is_judged(const char *key, unsigned type)
{
    if (schema_read_is_annotation(key) || is_one_of(key, "type enum"))
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
    const cJSON *lo = schema_read_get(schema, min), *hi = schema_read_get(schema, max);
    return (cJSON_IsNumber(lo) && v < lo->valuedouble) ||
           (cJSON_IsNumber(hi) && v > hi->valuedouble);
}

enum schema_verdict schema_merge_judge(const cJSON *schema, const cJSON *value)
{
    unsigned types, type = schema_read_type_of(value);
    const cJSON *list = schema_read_get(schema, "enum"), *one;
    if (schema_read_types(schema, &types, NULL) < 0)
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
