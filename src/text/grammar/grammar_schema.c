/* grammar_schema.c - see grammar_schema.h. */
#include "text/grammar/grammar_schema.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/grammar/grammar_regex.h"
#include "text/grammar/schema_emit.h"
#include "text/grammar/schema_merge.h"
#include "text/grammar/schema_negate.h"
#include "text/grammar/schema_number.h"
#include "wire/json_scan.h"

#define NONE GRAMMAR_TREE_NONE
#define MAX_DEPTH 100u
#define MAX_VALUES 250000u /* in the text of a schema */
#define MAX_MULTIPLES 1000u
#define MAX_JOINS 200000u /* per schema: nested branches multiply */

static uint32_t failed(struct schema_emit *s, int rc)
{
    struct err e = s->t->e ? *s->t->e : (struct err){0};
    return grammar_tree_fail(s->t, rc, "%.240s (at %s)", e.msg, schema_emit_where(s));
}

static uint32_t no_memory(struct schema_emit *s)
{
    return grammar_tree_fail(s->t, SHOAL_ENOMEM, "out of memory for a schema");
}

static uint32_t rule_for(struct schema_emit *s, const cJSON *schema);
static uint32_t build_flat(struct schema_emit *s, const cJSON *schema);

/* ---- copies that say more ---- */

static cJSON *copy_without(const cJSON *schema, const char *key)
{
    cJSON *out = cJSON_Duplicate(schema, true);
    if (out)
        cJSON_DeleteItemFromObjectCaseSensitive(out, key);
    return out;
}

/* The property must not be there. */
static bool forbid(cJSON *schema, const char *key)
{
    cJSON *props = cJSON_GetObjectItemCaseSensitive(schema, "properties");
    if (!props)
        props = cJSON_AddObjectToObject(schema, "properties");
    cJSON_DeleteItemFromObjectCaseSensitive(props, key);
    return props && cJSON_AddFalseToObject(props, key);
}

/* Whether the key may appear in text generated for a schema. */
static bool can_have(const cJSON *schema, const char *key)
{
    const cJSON *props = schema_read_get(schema, "properties"),
                *rest = schema_read_get(schema, "additionalProperties"),
                *one = schema_read_get(props, key);
    if (one)
        return !cJSON_IsFalse(one);
    return schema_read_requires(schema, key) || (rest && !cJSON_IsFalse(rest)) ||
           schema_read_get(schema, "patternProperties") ||
           (!rest && schema_read_names_none(schema));
}

/* "Evaluated" is decided for a whole schema, not for the parts that it is merged into. */
static void lift_unevaluated(cJSON *whole, cJSON *part)
{
    static const char *const keys[] = {"unevaluatedProperties", "unevaluatedItems"};
    for (size_t i = 0; i < 2; i++) {
        cJSON *v = cJSON_DetachItemFromObjectCaseSensitive(part, keys[i]);
        if (v && !cJSON_AddItemToObject(whole, keys[i], v))
            cJSON_Delete(v);
    }
}

/* A node for {"allOf": [a, b]}; takes both. */
static uint32_t build_both(struct schema_emit *s, cJSON *a, cJSON *b)
{
    cJSON *out = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(out, "allOf");
    uint32_t node = NONE;
    lift_unevaluated(out, a);
    if (list && cJSON_AddItemToArray(list, a))
        a = NULL;
    if (list && cJSON_AddItemToArray(list, b))
        b = NULL;
    if (!a && !b)
        node = rule_for(s, out);
    else
        no_memory(s);
    cJSON_Delete(a);
    cJSON_Delete(b);
    cJSON_Delete(out);
    return node;
}

/* ---- anyOf, oneOf ---- */

static uint32_t build_any_of(struct schema_emit *s, const cJSON *schema, const cJSON *branches)
{
    struct grammar_tree_list l = {0};
    const cJSON *one;
    cJSON_ArrayForEach(one, branches)
    {
        cJSON *rest = copy_without(schema, "anyOf"), *flat = NULL, *whole = cJSON_CreateObject(),
              *list = cJSON_AddArrayToObject(whole, "allOf");
        if (!rest || !list || !cJSON_AddItemToArray(list, rest) ||
            !cJSON_AddItemToArray(list, cJSON_Duplicate(one, true))) {
            cJSON_Delete(whole);
            return no_memory(s);
        }
        lift_unevaluated(whole, rest);
        int rc = schema_merge_flatten(&flat, s->root, whole, &s->joins, s->t->e);
        if (rc == 0 && flat) /* an unsatisfiable branch adds nothing */
            grammar_tree_push(s->t, &l,
                              rest->child || list->next || whole->child != list ? rule_for(s, whole)
                                                                                : rule_for(s, one));
        cJSON_Delete(flat);
        cJSON_Delete(whole);
        if (rc < 0)
            return failed(s, rc);
        if (grammar_tree_rc(s->t) < 0)
            return NONE;
    }
    return l.n > 0 ? grammar_tree_either(s->t, &l) : schema_emit_nothing(s);
}

#define MAX_BRANCHES 64

/* Keeps only the values of a that b rejects; false: unknown for one of them. */
static bool part_values(cJSON *a, const cJSON *b)
{
    cJSON *values = cJSON_GetObjectItemCaseSensitive(a, "enum"),
          *one = values ? values->child : NULL;
    while (one) {
        cJSON *next = one->next;
        enum schema_verdict v = schema_merge_judge(b, one);
        if (v == SCHEMA_UNKNOWN)
            return false;
        if (v == SCHEMA_VALID)
            cJSON_Delete(cJSON_DetachItemViaPointer(values, one));
        one = next;
    }
    return values;
}

/* The property must be there. */
static bool demand(cJSON *schema, const char *key)
{
    cJSON *list = cJSON_GetObjectItemCaseSensitive(schema, "required");
    if (!list)
        list = cJSON_AddArrayToObject(schema, "required");
    return list && cJSON_AddItemToArray(list, cJSON_CreateString(key));
}

/* Removes from branch a what would also satisfy branch b; false: not possible. */
static bool part_branches(struct schema_emit *s, cJSON *a, const cJSON *b)
{
    const cJSON *one;
    bool parted = false;
    if (cJSON_IsFalse(a) || schema_merge_disjoint(s->root, a, b) || part_values(a, b))
        return true;
    if (schema_merge_common_types(a, b) != SCHEMA_TYPE_OBJECT)
        return false; /* the rest applies to objects only */
    cJSON_ArrayForEach(one, schema_read_get(b, "required"))
    {
        const char *key = cJSON_GetStringValue(one);
        if (key && !schema_read_requires(a, key) && forbid(a, key))
            parted = true;
    }
    cJSON_ArrayForEach(one, schema_read_get(a, "properties"))
    {
        if (parted)
            break;
        parted = schema_merge_parts(s->root, a, b, one->string) && demand(a, one->string);
    }
    return parted;
}

/* Whether a branch that lists values has none left. */
static bool is_empty(const cJSON *schema)
{
    const cJSON *values = schema_read_get(schema, "enum");
    return cJSON_IsArray(values) && !values->child;
}

static int flatten_branches(struct schema_emit *s, const cJSON *schema, const cJSON *branches,
                            cJSON **flat, int n)
{
    cJSON *rest = copy_without(schema, "oneOf");
    int rc = rest ? 0 : SHOAL_ENOMEM;
    for (int i = 0; i < n && rc == 0; i++) {
        cJSON *whole = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(whole, "allOf");
        if (list && cJSON_AddItemToArray(list, cJSON_Duplicate(rest, true)) &&
            cJSON_AddItemToArray(list, cJSON_Duplicate(cJSON_GetArrayItem(branches, i), true))) {
            lift_unevaluated(whole, list->child);
            rc = schema_merge_flatten(&flat[i], s->root, whole, &s->joins, s->t->e);
        } else {
            rc = SHOAL_ENOMEM;
        }
        cJSON_Delete(whole);
    }
    cJSON_Delete(rest);
    return rc;
}

/* What is left of a branch when another must not hold.  Takes the branch. */
static cJSON *branch_without(struct schema_emit *s, cJSON *branch, const cJSON *other)
{
    cJSON *opposite = NULL, *flat = NULL, *both = cJSON_CreateObject(),
          *list = cJSON_AddArrayToObject(both, "allOf");
    int rc = schema_read_get(branch, "unevaluatedProperties") ||
                     schema_read_get(branch, "unevaluatedItems")
                 ? SHOAL_EUNSUPPORTED
                 : schema_negate(&opposite, s->root, other, NULL);
    if (rc == 0 && list && cJSON_AddItemToArray(list, branch))
        branch = NULL;
    if (!branch && cJSON_AddItemToArray(list, opposite)) {
        opposite = NULL;
        rc = schema_merge_flatten(&flat, s->root, both, &s->joins, NULL);
        if (rc == 0 && !flat) /* nothing is left */
            flat = cJSON_CreateFalse();
    }
    cJSON_Delete(opposite);
    cJSON_Delete(branch);
    cJSON_Delete(both);
    return flat;
}

/* Removes from a branch all values that satisfy another branch; NULL: cannot be decided. */
static cJSON *branch_alone(struct schema_emit *s, const cJSON *branches, cJSON *const *flat, int n,
                           int i, int *other)
{
    /* removals from one branch must not change how others compare with it */
    cJSON *less = cJSON_Duplicate(flat[i], true);
    for (int j = 0; less && j < n && !cJSON_IsFalse(less); j++) {
        if (j == i || !flat[j] || part_branches(s, less, flat[j]))
            continue;
        *other = j;
        less = branch_without(s, less, cJSON_GetArrayItem(branches, j));
    }
    return less;
}

static uint32_t build_one_of(struct schema_emit *s, const cJSON *schema, const cJSON *branches)
{
    cJSON *flat[MAX_BRANCHES] = {NULL};
    struct grammar_tree_list l = {0};
    const int n = cJSON_GetArraySize(branches);
    if (n > MAX_BRANCHES)
        return schema_emit_refuse(s, "oneOf", "it has more than 64 branches");
    int rc = flatten_branches(s, schema, branches, flat, n);
    if (rc < 0)
        failed(s, rc);
    for (int i = 0; i < n && grammar_tree_rc(s->t) == 0; i++) {
        int other = 0;
        cJSON *less = flat[i] ? branch_alone(s, branches, flat, n, i, &other) : NULL;
        if (flat[i] && !less) {
            char why[80];
            snprintf(why, sizeof(why), "branches %d and %d can both hold: use 'anyOf'", i + 1,
                     other + 1);
            schema_emit_refuse(s, "oneOf", why);
        }
        if (less && !cJSON_IsFalse(less) && !is_empty(less))
            grammar_tree_push(s->t, &l, rule_for(s, less));
        cJSON_Delete(less);
    }
    for (int i = 0; i < n; i++)
        cJSON_Delete(flat[i]);
    if (grammar_tree_rc(s->t) < 0)
        return NONE;
    return l.n > 0 ? grammar_tree_either(s->t, &l)
                   : schema_emit_empty(s, "oneOf",
                                       "no branch can hold alone beside the other keywords");
}

/* ---- dependencies ---- */

/* Without the property, or with it and its dependencies. */
static uint32_t build_dependency(struct schema_emit *s, const cJSON *schema, const char *keyword,
                                 const cJSON *first)
{
    const char *key = first->string;
    cJSON *less = cJSON_Duplicate(schema, true), *with = NULL, *needs = NULL;
    cJSON *map = cJSON_GetObjectItemCaseSensitive(less, keyword);
    uint32_t node = NONE, without = NONE;
    if (!map) {
        cJSON_Delete(less);
        return no_memory(s);
    }
    cJSON_DeleteItemFromObjectCaseSensitive(map, key);
    if (!map->child)
        cJSON_DeleteItemFromObjectCaseSensitive(less, keyword);
    if (!can_have(schema, key)) {
        node = build_flat(s, less);
        cJSON_Delete(less);
        return node;
    }
    if (!schema_read_requires(schema, key)) {
        cJSON *none = cJSON_Duplicate(less, true);
        if (none && forbid(none, key))
            without = rule_for(s, none);
        else
            no_memory(s);
        cJSON_Delete(none);
    }
    needs = cJSON_CreateObject();
    with = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(needs, "required"),
          *all = cJSON_AddArrayToObject(with, "allOf");
    const cJSON *names = cJSON_IsArray(first) ? first : NULL, *one;
    if (list)
        cJSON_AddItemToArray(list, cJSON_CreateString(key));
    cJSON_ArrayForEach(one, names) if (list) cJSON_AddItemToArray(list, cJSON_Duplicate(one, true));
    if (all && needs)
        cJSON_AddItemToArray(all, needs);
    if (all && !cJSON_IsArray(first))
        cJSON_AddItemToArray(all, cJSON_Duplicate(first, true));
    if (!all || !list) {
        cJSON_Delete(less);
        cJSON_Delete(with);
        return no_memory(s);
    }
    node = build_both(s, less, with);
    return without == NONE || node == NONE ? node : grammar_tree_either2(s->t, without, node);
}

/* ---- values ---- */

static bool limits_texts(const cJSON *schema)
{
    static const char *const keys[] = {"pattern", "minLength", "maxLength", SCHEMA_ALSO_PATTERNS,
                                       SCHEMA_NOT_PATTERNS};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (schema_read_get(schema, keys[i]))
            return true;
    return false;
}

/* Whether an object or a list has as many parts as it may, and those that it must. */
static bool has_room(const cJSON *schema, const cJSON *v)
{
    static const char *const counts[2][2] = {{"minItems", "maxItems"},
                                             {"minProperties", "maxProperties"}};
    const bool object = cJSON_IsObject(v);
    const cJSON *min = schema_read_get(schema, counts[object][0]),
                *max = schema_read_get(schema, counts[object][1]), *one;
    const double n = cJSON_GetArraySize(v);
    if (!object && !cJSON_IsArray(v))
        return true;
    if ((cJSON_IsNumber(min) && n < min->valuedouble) ||
        (cJSON_IsNumber(max) && n > max->valuedouble))
        return false;
    const cJSON *names = object ? schema_read_get(schema, "required") : NULL;
    cJSON_ArrayForEach(one, names)
    {
        if (cJSON_IsString(one) && !schema_read_get(v, one->valuestring))
            return false;
    }
    return true;
}

/* Whether a value may be in an enum, given the other keywords that can be checked here. */
static int check_value(struct schema_emit *s, const cJSON *schema, const cJSON *v, bool *keep)
{
    static const char *const beyond[2][8] = {
        {"items", "prefixItems", "additionalItems", "contains", "uniqueItems", "unevaluatedItems"},
        {"properties", "additionalProperties", "patternProperties", "propertyNames", "dependencies",
         "dependentRequired", "dependentSchemas", "unevaluatedProperties"}};
    const bool object = cJSON_IsObject(v);
    unsigned types;
    int rc = schema_read_types(schema, &types, s->t->e);
    if (rc < 0) {
        failed(s, rc);
        return rc;
    }
    *keep = (schema_read_type_of(v) & types) && has_room(schema, v);
    for (size_t i = 0; *keep && (object || cJSON_IsArray(v)) && i < 8 && beyond[object][i]; i++)
        if (schema_read_get(schema, beyond[object][i])) {
            schema_emit_refuse(s, beyond[object][i], "there is an 'enum' or 'const' too");
            return SHOAL_EUNSUPPORTED;
        }
    const cJSON *one, *multiple = schema_read_get(schema, "multipleOf");
    cJSON_ArrayForEach(one, schema_read_get(schema, SCHEMA_NOT_VALUES)) *keep =
        *keep && !cJSON_Compare(one, v, true);
    if (*keep && cJSON_IsNumber(v) && cJSON_IsNumber(multiple) && multiple->valuedouble > 0)
        *keep = fmod(v->valuedouble, multiple->valuedouble) == 0;
    if (*keep && cJSON_IsString(v) && limits_texts(schema))
        *keep = schema_string_allows(s, schema, v->valuestring);
    const struct {
        const char *key;
        bool above, open;
    } bounds[] = {{"minimum", true, false},
                  {"maximum", false, false},
                  {"exclusiveMinimum", true, true},
                  {"exclusiveMaximum", false, true}};
    for (size_t i = 0; cJSON_IsNumber(v) && i < 4; i++) {
        const cJSON *b = schema_read_get(schema, bounds[i].key);
        if (!cJSON_IsNumber(b))
            continue;
        double d =
            bounds[i].above ? v->valuedouble - b->valuedouble : b->valuedouble - v->valuedouble;
        *keep = *keep && (bounds[i].open ? d > 0 : d >= 0);
    }
    return 0;
}

/* A value as text: a number with all of its digits, which cJSON rounds to 15. */
static char *print_value(const cJSON *v)
{
    char text[40];
    if (!cJSON_IsNumber(v))
        return cJSON_PrintUnformatted(v);
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, v->valuedouble);
        if (strtod(text, NULL) == v->valuedouble)
            break;
    }
    char *out = cJSON_malloc(strlen(text) + 1);
    if (out)
        memcpy(out, text, strlen(text) + 1);
    return out;
}

static uint32_t build_enum(struct schema_emit *s, const cJSON *schema, const cJSON *values)
{
    struct grammar_tree_list l = {0};
    const cJSON *v;
    if (!cJSON_IsArray(values) || !values->child)
        return schema_emit_invalid(s, "enum", "it must be a list with at least one value");
    cJSON_ArrayForEach(v, values)
    {
        bool keep = false;
        if (check_value(s, schema, v, &keep) < 0)
            return NONE;
        char *text = keep ? print_value(v) : NULL;
        if (keep && !text)
            return no_memory(s);
        if (text)
            grammar_tree_push(s->t, &l, grammar_tree_text(s->t, text));
        cJSON_free(text);
    }
    if (grammar_tree_rc(s->t) < 0)
        return NONE;
    return l.n > 0 ? grammar_tree_either(s->t, &l)
                   : schema_emit_empty(s, "enum", "no value fits the other keywords");
}

static bool read_bound(struct schema_emit *s, const cJSON *schema, const char *key, bool *has,
                       double *value)
{
    const cJSON *v = schema_read_get(schema, key);
    if (!v || cJSON_IsBool(v))
        return false;
    if (!cJSON_IsNumber(v) || !isfinite(v->valuedouble)) {
        schema_emit_invalid(s, key, "it must be a number");
        return false;
    }
    *has = true;
    *value = v->valuedouble;
    return true;
}

static struct schema_number_bounds bounds_of(struct schema_emit *s, const cJSON *schema)
{
    struct schema_number_bounds b = {0};
    double v;
    bool has = false;
    read_bound(s, schema, "minimum", &b.has_min, &b.min);
    read_bound(s, schema, "maximum", &b.has_max, &b.max);
    /* in draft 4, a boolean beside minimum */
    b.above = cJSON_IsTrue(schema_read_get(schema, "exclusiveMinimum"));
    b.below = cJSON_IsTrue(schema_read_get(schema, "exclusiveMaximum"));
    if (read_bound(s, schema, "exclusiveMinimum", &has, &v) && (!b.has_min || v >= b.min)) {
        b.has_min = b.above = true;
        b.min = v;
    }
    if (read_bound(s, schema, "exclusiveMaximum", &has, &v) && (!b.has_max || v <= b.max)) {
        b.has_max = b.below = true;
        b.max = v;
    }
    const char *format = cJSON_GetStringValue(schema_read_get(schema, "format"));
    if (format && strcmp(format, "int32") == 0) { /* of OpenAPI */
        if (!b.has_min || b.min < INT32_MIN)
            b.min = INT32_MIN, b.above = false;
        if (!b.has_max || b.max > INT32_MAX)
            b.max = INT32_MAX, b.below = false;
        b.has_min = b.has_max = true;
    }
    return b;
}

/* Whether values of these types are listed as forbidden. */
static bool excludes(const cJSON *schema, unsigned types)
{
    const cJSON *one;
    if (types & SCHEMA_TYPE_INTEGER)
        types |= SCHEMA_TYPE_NUMBER;
    cJSON_ArrayForEach(one,
                       schema_read_get(schema, SCHEMA_NOT_VALUES)) if (schema_read_type_of(one) &
                                                                       types) return true;
    return false;
}

/* The numbers of a node, which has no rules, without the forbidden ones. */
static uint32_t other_numbers(struct schema_emit *s, const cJSON *schema, uint32_t numbers)
{
    struct grammar_product p = {.max = GRAMMAR_TREE_UNBOUNDED};
    uint32_t node = NONE;
    const cJSON *one;
    char text[80];
    int rc = grammar_product_add(&p, numbers, false);
    cJSON_ArrayForEach(one, schema_read_get(schema, SCHEMA_NOT_VALUES))
    {
        if (!cJSON_IsNumber(one) || rc < 0)
            continue;
        /* 5, 5.0 and 5.00 are one number */
        char *plain = cJSON_PrintUnformatted(one);
        const bool point = plain && strchr(plain, '.');
        snprintf(text, sizeof(text), "%s%.40s%s", one->valuedouble == 0 ? "-?" : "",
                 plain ? plain : "", point ? "0*" : "([.]0*)?");
        cJSON_free(plain);
        rc = grammar_product_add(&p, grammar_regex_read(s->t, text, strlen(text), 0), true);
    }
    if (rc == 0)
        rc = grammar_product_build(s->t, &p, &node);
    return rc < 0 ? schema_emit_refuse(s, "not", "it lists too many numbers") : node;
}

/* Lists the multiples between the bounds: only the nearest ones if there are many. */
static uint32_t list_multiples(struct schema_emit *s, const struct schema_number_bounds *b,
                               double m)
{
    struct grammar_tree_list l = {0};
    char text[32];
    const bool down = b->has_max && (!b->has_min || (b->max <= 0 && b->min < 0));
    double at = down ? floor(b->max / m) * m : ceil(b->min / m) * m;
    if (fabs(at) > 1e14)
        return schema_emit_refuse(s, "multipleOf", "there are bounds too, which are very large");
    for (; l.n < MAX_MULTIPLES; at += down ? -m : m) {
        const bool low = b->has_min && (at < b->min || (b->above && at == b->min)),
                   high = b->has_max && (at > b->max || (b->below && at == b->max));
        if ((down && low) || (!down && high))
            break;
        if (low || high)
            continue;
        snprintf(text, sizeof(text), "%.0f", at == 0 ? 0.0 : at);
        grammar_tree_push(s->t, &l, grammar_tree_text(s->t, text));
    }
    if (grammar_tree_rc(s->t) < 0)
        return NONE;
    return l.n > 0 ? grammar_tree_either(s->t, &l)
                   : schema_emit_empty(s, "multipleOf", "no multiple is between the bounds");
}

static uint32_t build_multiple(struct schema_emit *s, const struct schema_number_bounds *b,
                               double m)
{
    const double parts = 1 / m;
    /* A fraction that divides 1 leaves all whole numbers.  Others, such as 1.15 of 0.01, are
     * multiples on paper but not for validators, which compute with binary numbers. */
    if (m < 1 && fabs(parts - round(parts)) < 1e-9 * parts) {
        struct schema_number_bounds near = *b;
        const double most = floor(1e14 * m); /* above this, the quotient has too many digits */
        if (!near.has_min || near.min < -most)
            near.min = -most;
        if (!near.has_max || near.max > most)
            near.max = most;
        near.has_min = near.has_max = true;
        return schema_number_integer(s->t, &near);
    }
    if (m != floor(m))
        return schema_emit_refuse(s, "multipleOf", "only whole numbers and parts of 1 are");
    if (b->has_min || b->has_max || m > SCHEMA_NUMBER_MAX_MULTIPLE) {
        const struct schema_number_bounds from_zero = {.has_min = true};
        return list_multiples(s, b->has_min || b->has_max ? b : &from_zero, m);
    }
    return schema_number_multiple(s->t, (uint32_t)m);
}

static uint32_t build_number(struct schema_emit *s, const cJSON *schema, bool whole)
{
    const struct schema_number_bounds b = bounds_of(s, schema);
    const cJSON *multiple = schema_read_get(schema, "multipleOf");
    double m = cJSON_IsNumber(multiple) ? multiple->valuedouble : 0;
    if (grammar_tree_rc(s->t) < 0)
        return NONE;
    if (multiple && !(m > 0))
        return schema_emit_invalid(s, "multipleOf", "it must be a number above 0");
    whole = whole || multiple;
    uint32_t node =
        multiple && m != 1 ? build_multiple(s, &b, m)
        : b.has_min || b.has_max || excludes(schema, SCHEMA_TYPE_INTEGER)
            ? (whole ? schema_number_integer(s->t, &b) : schema_number_decimal(s->t, &b))
        : whole ? grammar_json_integer(&s->json)
                : grammar_json_number(&s->json);
    return excludes(schema, SCHEMA_TYPE_INTEGER) ? other_numbers(s, schema, node) : node;
}

/* Without `type`: the types that the keywords apply to, or all. */
static unsigned types_meant(const cJSON *schema)
{
    static const struct {
        const char *key;
        unsigned type;
    } keys[] = {
        {"properties", SCHEMA_TYPE_OBJECT},
        {"required", SCHEMA_TYPE_OBJECT},
        {"additionalProperties", SCHEMA_TYPE_OBJECT},
        {"patternProperties", SCHEMA_TYPE_OBJECT},
        {"propertyNames", SCHEMA_TYPE_OBJECT},
        {"minProperties", SCHEMA_TYPE_OBJECT},
        {"maxProperties", SCHEMA_TYPE_OBJECT},
        {"unevaluatedProperties", SCHEMA_TYPE_OBJECT},
        {"items", SCHEMA_TYPE_ARRAY},
        {"prefixItems", SCHEMA_TYPE_ARRAY},
        {"minItems", SCHEMA_TYPE_ARRAY},
        {"maxItems", SCHEMA_TYPE_ARRAY},
        {"uniqueItems", SCHEMA_TYPE_ARRAY},
        {"contains", SCHEMA_TYPE_ARRAY},
        {"unevaluatedItems", SCHEMA_TYPE_ARRAY},
        {"pattern", SCHEMA_TYPE_STRING},
        {"format", SCHEMA_TYPE_STRING},
        {"minLength", SCHEMA_TYPE_STRING},
        {"maxLength", SCHEMA_TYPE_STRING},
        {"minimum", SCHEMA_TYPE_INTEGER | SCHEMA_TYPE_NUMBER},
        {"maximum", SCHEMA_TYPE_INTEGER | SCHEMA_TYPE_NUMBER},
        {"exclusiveMinimum", SCHEMA_TYPE_INTEGER | SCHEMA_TYPE_NUMBER},
        {"exclusiveMaximum", SCHEMA_TYPE_INTEGER | SCHEMA_TYPE_NUMBER},
        {"multipleOf", SCHEMA_TYPE_INTEGER | SCHEMA_TYPE_NUMBER},
    };
    unsigned types = 0;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (schema_read_get(schema, keys[i].key))
            types |= keys[i].type;
    return types ? types : SCHEMA_TYPE_ALL;
}

static uint32_t build_boolean(struct schema_emit *s, const cJSON *schema)
{
    bool no[2] = {false, false};
    const cJSON *one;
    cJSON_ArrayForEach(one, schema_read_get(schema, SCHEMA_NOT_VALUES)) if (cJSON_IsBool(one))
        no[cJSON_IsTrue(one)] = true;
    if (no[0] && no[1])
        return schema_emit_empty(s, "not", "it leaves neither true nor false");
    if (no[0] || no[1])
        return grammar_tree_text(s->t, no[0] ? "true" : "false");
    return grammar_json_boolean(&s->json);
}

static uint32_t build_types(struct schema_emit *s, const cJSON *schema)
{
    struct grammar_tree_list l = {0};
    unsigned types;
    int rc = schema_read_types(schema, &types, s->t->e);
    if (rc < 0)
        return failed(s, rc);
    const unsigned meant = types_meant(schema);
    if (types == SCHEMA_TYPE_ALL && meant == SCHEMA_TYPE_ALL &&
        !schema_read_get(schema, SCHEMA_NOT_VALUES))
        return grammar_json_value(&s->json);
    if (types == SCHEMA_TYPE_ALL && !schema_read_get(schema, "type"))
        types = meant;
    /* lists and objects are not compared: if one is forbidden, none is generated */
    for (unsigned one = SCHEMA_TYPE_ARRAY; one <= SCHEMA_TYPE_OBJECT; one <<= 1)
        if (excludes(schema, one))
            types &= ~one;
    if (types & SCHEMA_TYPE_OBJECT)
        grammar_tree_push(s->t, &l, schema_object(s, schema));
    if (types & SCHEMA_TYPE_ARRAY)
        grammar_tree_push(s->t, &l, schema_array(s, schema));
    if (types & SCHEMA_TYPE_STRING)
        grammar_tree_push(s->t, &l, schema_string(s, schema));
    if (types & (SCHEMA_TYPE_NUMBER | SCHEMA_TYPE_INTEGER))
        grammar_tree_push(s->t, &l, build_number(s, schema, !(types & SCHEMA_TYPE_NUMBER)));
    if (types & SCHEMA_TYPE_BOOLEAN)
        grammar_tree_push(s->t, &l, build_boolean(s, schema));
    if (types & SCHEMA_TYPE_NULL && !excludes(schema, SCHEMA_TYPE_NULL))
        grammar_tree_push(s->t, &l, grammar_json_null(&s->json));
    return grammar_tree_rc(s->t) < 0 ? NONE : grammar_tree_either(s->t, &l);
}

/* ---- minProperties ---- */

#define MAX_CHOICES 8u /* each is a copy of the object's rules */

/* How many optional properties `minProperties` requires, as far as the object has that many. */
static uint32_t wanted_properties(const cJSON *schema)
{
    const cJSON *min = schema_read_get(schema, "minProperties"), *one;
    const int n_required = cJSON_GetArraySize(schema_read_get(schema, "required"));
    uint32_t n = 0;
    if (!cJSON_IsNumber(min) || !(min->valuedouble > n_required && min->valuedouble < 1000) ||
        schema_merge_common_types(schema, schema) != SCHEMA_TYPE_OBJECT)
        return 0;
    cJSON_ArrayForEach(one, schema_read_get(schema, "properties")) n +=
        !cJSON_IsFalse(one) && !schema_read_requires(schema, one->string);
    const uint32_t wanted = (uint32_t)(ceil(min->valuedouble) - n_required);
    return wanted <= n ? wanted : 0;
}

/* Makes that many optional properties required: each in turn if it is one, else the first ones. */
static uint32_t build_min_properties(struct schema_emit *s, const cJSON *schema, uint32_t wanted)
{
    struct grammar_tree_list l = {0};
    const bool each = wanted == 1;
    cJSON *with = copy_without(schema, "minProperties");
    const cJSON *one;
    cJSON_ArrayForEach(one, schema_read_get(schema, "properties"))
    {
        if (cJSON_IsFalse(one) || schema_read_requires(schema, one->string))
            continue;
        if (wanted == 0 || l.n == MAX_CHOICES || grammar_tree_rc(s->t) < 0)
            break;
        if (!with || !demand(with, one->string)) {
            no_memory(s);
        } else if (each) {
            grammar_tree_push(s->t, &l, rule_for(s, with));
            cJSON_Delete(with);
            with = copy_without(schema, "minProperties");
        } else {
            wanted--;
        }
    }
    if (!each && grammar_tree_rc(s->t) == 0)
        grammar_tree_push(s->t, &l, rule_for(s, with));
    cJSON_Delete(with);
    return grammar_tree_rc(s->t) < 0 ? NONE : grammar_tree_either(s->t, &l);
}

/* ---- schemas ---- */

/* Keywords that restrict values in ways that a grammar cannot follow. */
static bool refuse_keywords(struct schema_emit *s, const cJSON *schema)
{
    static const char *const keys[] = {"$dynamicRef", "$recursiveRef"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (schema_read_get(schema, keys[i])) {
            schema_emit_refuse(s, keys[i], "a grammar cannot enforce it");
            return true;
        }
    return false;
}

/* schema has no $ref, allOf or const. */
static uint32_t build_flat(struct schema_emit *s, const cJSON *schema)
{
    static const char *const depend[] = {"dependencies", "dependentRequired", "dependentSchemas"};
    const cJSON *v;
    if (grammar_tree_rc(s->t) < 0 || refuse_keywords(s, schema))
        return NONE;
    for (size_t i = 0; i < sizeof(depend) / sizeof(depend[0]); i++)
        if (cJSON_IsObject(v = schema_read_get(schema, depend[i])) && v->child)
            return build_dependency(s, schema, depend[i], v->child);
    if ((v = schema_read_get(schema, "oneOf")))
        return cJSON_IsArray(v) ? build_one_of(s, schema, v)
                                : schema_emit_invalid(s, "oneOf", "it must be a list");
    if ((v = schema_read_get(schema, "anyOf")))
        return cJSON_IsArray(v) ? build_any_of(s, schema, v)
                                : schema_emit_invalid(s, "anyOf", "it must be a list");
    if ((v = schema_read_get(schema, "enum")))
        return build_enum(s, schema, v);
    const uint32_t wanted = wanted_properties(schema);
    return wanted > 0 ? build_min_properties(s, schema, wanted) : build_types(s, schema);
}

/* Whether it is the only keyword besides annotations. */
static bool is_alone(const cJSON *schema, const char *key)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, schema) if (strcmp(one->string, key) != 0 &&
                                        !schema_read_is_annotation(one->string)) return false;
    return schema_read_get(schema, key);
}

static uint32_t build(struct schema_emit *s, const cJSON *schema)
{
    const cJSON *ref = schema_read_get(schema, "$ref"), *target = NULL;
    cJSON *flat = NULL;
    int rc;
    if (!cJSON_IsObject(schema))
        return grammar_tree_fail(s->t, SHOAL_EINVAL, "a schema must be an object or a boolean: %s",
                                 schema_emit_where(s));
    if (ref && !cJSON_IsString(ref))
        return schema_emit_invalid(s, "$ref", "it must be a text");
    if (ref && is_alone(schema, "$ref")) {
        rc = schema_read_resolve(&target, s->root, ref->valuestring, s->t->e);
        return rc < 0 ? failed(s, rc) : rule_for(s, target);
    }
    static const char *const joined[] = {"allOf", "const", "not", "if", "$ref"};
    bool flatten = false;
    for (size_t i = 0; i < sizeof(joined) / sizeof(joined[0]); i++)
        flatten |= schema_read_get(schema, joined[i]) != NULL;
    if (!flatten)
        return build_flat(s, schema);
    rc = schema_merge_flatten(&flat, s->root, schema, &s->joins, s->t->e);
    if (rc < 0)
        return failed(s, rc);
    uint32_t node = flat ? build_flat(s, flat)
                         : schema_emit_empty(s, "allOf", "the schemas cannot hold together");
    cJSON_Delete(flat);
    return node;
}

/* A call of the schema's rule, which is built on first use: so it may refer to itself.
 */
static uint32_t rule_for(struct schema_emit *s, const cJSON *schema)
{
    uint32_t rule = 0;
    if (grammar_tree_rc(s->t) < 0)
        return NONE;
    if (cJSON_IsTrue(schema))
        return grammar_json_value(&s->json);
    if (cJSON_IsFalse(schema))
        return schema_emit_nothing(s);
    char *text = cJSON_PrintUnformatted(schema);
    if (!text)
        return no_memory(s);
    const size_t n = strlen(text);
    if (!strmap_get(&s->rules, text, n, &rule)) {
        const char *key = arena_copy(&s->t->arena, text, n);
        rule = grammar_tree_add_rule(s->t, schema_emit_where(s), strlen(schema_emit_where(s)));
        if (!key || (grammar_tree_rc(s->t) == 0 && strmap_put(&s->rules, key, n, rule) < 0))
            no_memory(s);
        if (++s->depth > MAX_DEPTH)
            grammar_tree_fail(s->t, SHOAL_ELIMIT, "the schema is nested too deeply at %s",
                              schema_emit_where(s));
        if (grammar_tree_rc(s->t) == 0)
            grammar_tree_define(s->t, rule, build(s, schema));
        s->depth--;
    }
    cJSON_free(text);
    return grammar_tree_call(s->t, rule);
}

static uint32_t build_below(struct schema_emit *s, const cJSON *schema, const char *step)
{
    const size_t n = strlen(s->path);
    snprintf(s->path + n, sizeof(s->path) - n, "/%.40s", step);
    uint32_t node = rule_for(s, schema);
    s->path[n] = '\0';
    return node;
}

uint32_t grammar_schema_of(struct grammar_tree *t, const cJSON *schema)
{
    struct schema_emit s = {.t = t, .root = schema, .joins = MAX_JOINS, .below = build_below};
    if (strmap_init(&s.rules, 16) < 0)
        return grammar_tree_fail(t, SHOAL_ENOMEM, "out of memory for a schema");
    grammar_json_init(&s.json, t);
    uint32_t node = rule_for(&s, schema);
    strmap_fini(&s.rules);
    return node;
}

uint32_t grammar_schema_read(struct grammar_tree *t, const char *p, size_t n)
{
    struct json_scan scan;
    const char *end = NULL;
    if (json_scan(&scan, p, n, MAX_VALUES, t->e) < 0)
        return grammar_tree_fail(t, SHOAL_EINVAL, "the schema is too large or has a NUL in a text");
    cJSON *schema = cJSON_ParseWithLengthOpts(p, n, &end, false);
    if (!schema)
        return grammar_tree_fail(t, SHOAL_EINVAL, "the schema is not JSON, at byte %zu",
                                 end ? (size_t)(end - p) : 0);
    uint32_t node = grammar_schema_of(t, schema);
    cJSON_Delete(schema);
    return node;
}
