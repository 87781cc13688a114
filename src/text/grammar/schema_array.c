/* schema_array.c - arrays of a schema: the first items one by one, then the others. */
#include <string.h>

#include "text/grammar/schema_emit.h"
#include "text/grammar/schema_merge.h"
#include "text/grammar/schema_negate.h"

#define NONE GRAMMAR_TREE_NONE

struct array {
    struct schema_emit *s;
    const cJSON *first; /* list of schemas, or NULL */
    uint32_t item;      /* node of the other items; NONE: no other items */
    uint32_t min, max;
};

/* Items from number i on, after some were written (none if i is 0), and the end. */
static uint32_t items_from(struct array *a, const cJSON *next, uint32_t i)
{
    struct schema_emit *s = a->s;
    struct grammar_tree *t = s->t;
    uint32_t close = grammar_json_close(&s->json, "]");
    if (i >= a->max)
        return close;
    if (!next) {
        uint32_t min = a->min > i ? a->min - i : 0;
        uint32_t max = a->max == GRAMMAR_TREE_UNBOUNDED ? a->max : a->max - i;
        if (a->item == NONE)
            return min > 0 ? schema_emit_nothing(s) : close;
        if (i > 0)
            return grammar_tree_sequence3(
                t, grammar_tree_repeat(t, grammar_json_next(&s->json, a->item), min, max), close,
                NONE);
        uint32_t more =
            grammar_tree_repeat(t, grammar_json_next(&s->json, a->item), min > 0 ? min - 1 : 0,
                                max == GRAMMAR_TREE_UNBOUNDED ? max : max - 1);
        uint32_t some = grammar_tree_sequence3(t, a->item, more, close);
        return min > 0 ? some : grammar_tree_either2(t, some, close);
    }
    uint32_t node = s->below(s, next, "prefixItems");
    if (i > 0)
        node = grammar_json_next(&s->json, node);
    uint32_t with = grammar_tree_sequence3(t, node, items_from(a, next->next, i + 1), NONE);
    return i >= a->min ? grammar_tree_either2(t, with, close) : with;
}

/* Each of n items at most once, in their order. */
static uint32_t each_once(struct schema_emit *s, const struct array *a, const uint32_t *nodes,
                          uint32_t n)
{
    struct grammar_tree *t = s->t;
    struct grammar_tree_list start = {0};
    uint32_t *rest = arena_zalloc_n(&t->arena, (size_t)n + 2, sizeof(*rest));
    if (!rest)
        return grammar_tree_fail(t, SHOAL_ENOMEM, "out of memory for a schema");
    for (uint32_t i = n + 1; i-- > 0 && grammar_tree_rc(t) == 0;) {
        uint32_t node = grammar_json_close(&s->json, "]");
        if (i < n)
            node = grammar_tree_sequence3(
                t, grammar_tree_optional(t, grammar_json_next(&s->json, nodes[i])),
                grammar_tree_call(t, rest[i + 1]), NONE);
        rest[i] = grammar_tree_add_rule(t, NULL, 0);
        grammar_tree_define(t, rest[i], node);
    }
    for (uint32_t i = 0; i < n && grammar_tree_rc(t) == 0; i++)
        grammar_tree_push(
            t, &start,
            grammar_tree_sequence3(t, nodes[i], grammar_tree_call(t, rest[i + 1]), NONE));
    if (a->min == 0)
        grammar_tree_push(t, &start, grammar_json_close(&s->json, "]"));
    return grammar_tree_rc(t) < 0
               ? NONE
               : grammar_json_open(&s->json, "[", grammar_tree_either(t, &start));
}

static uint32_t unique_values(struct schema_emit *s, const struct array *a, const cJSON *values)
{
    struct grammar_tree *t = s->t;
    const uint32_t n = (uint32_t)cJSON_GetArraySize(values);
    uint32_t *nodes = arena_zalloc_n(&t->arena, (size_t)n + 2, sizeof(*nodes)), i = 0;
    const cJSON *one;
    if (!nodes)
        return grammar_tree_fail(t, SHOAL_ENOMEM, "out of memory for a schema");
    cJSON_ArrayForEach(one, values)
    {
        char *text = cJSON_PrintUnformatted(one);
        nodes[i++] = text ? grammar_tree_text(t, text)
                          : grammar_tree_fail(t, SHOAL_ENOMEM, "out of memory for a schema");
        cJSON_free(text);
    }
    return each_once(s, a, nodes, n);
}

/* Whether a schema has no other keywords besides annotations. */
static bool only(const cJSON *schema, const char *keys)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, schema)
    {
        const char *at = strstr(keys, one->string);
        const size_t n = strlen(one->string);
        if (!schema_read_is_annotation(one->string) &&
            (!at || (at[n] != ' ' && at[n] != '\0') || (at > keys && at[-1] != ' ')))
            return false;
    }
    return true;
}

/* Texts with different first characters, in order: so the texts differ. */
static uint32_t unique_texts(struct schema_emit *s, const struct array *a, uint32_t min,
                             uint32_t max)
{
    static const char order[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    struct grammar_tree *t = s->t;
    uint32_t nodes[sizeof(order)], quote = grammar_tree_text(t, "\"");
    uint32_t more = grammar_tree_repeat(t, grammar_json_character(&s->json), min > 0 ? min - 1 : 0,
                                        max == GRAMMAR_TREE_UNBOUNDED ? max : max - 1);
    for (uint32_t i = 0; order[i]; i++) {
        const uint32_t lower = (uint32_t)order[i], upper = lower >= 'a' ? lower - 32 : lower;
        const struct grammar_tree_range r[] = {{lower, lower}, {upper, upper}};
        uint32_t text = grammar_tree_sequence3(t, quote, grammar_tree_class(t, r, 2, false), more);
        nodes[i] = grammar_tree_sequence3(t, text, quote, NONE);
    }
    return each_once(s, a, nodes, sizeof(order) - 1);
}

/* Items that must differ: the values of a list, each once; texts with different first letters; at
 * most one of everything else. False: *a says what is allowed. */
static bool unique_items(struct schema_emit *s, struct array *a, const cJSON *schema,
                         uint32_t *node)
{
    const cJSON *items = schema_read_get(schema, "items");
    cJSON *flat = NULL;
    if (!a->first && !schema_read_get(schema, "contains") && items && !cJSON_IsBool(items) &&
        schema_merge_flatten(&flat, s->root, items, &s->joins, NULL) < 0)
        flat = NULL;
    const cJSON *values = schema_read_get(flat, "enum");
    const int n = cJSON_GetArraySize(values);
    bool done = false;
    unsigned types = 0;
    const cJSON *one;
    if (values && !only(flat, "enum type"))
        values = NULL;
    cJSON_ArrayForEach(one, values)
    {
        if (schema_merge_judge(flat, one) != SCHEMA_VALID)
            values = NULL;
        if (!values)
            break;
    }
    if (cJSON_IsArray(values) && a->min <= 1 && a->max >= (uint32_t)n) {
        *node = unique_values(s, a, values);
        done = true;
    } else if (flat && a->min <= 1 && a->max == GRAMMAR_TREE_UNBOUNDED &&
               only(flat, "type minLength maxLength") &&
               schema_read_types(flat, &types, NULL) == 0 && types == SCHEMA_TYPE_STRING) {
        const uint32_t min = schema_emit_count(s, flat, "minLength", 0),
                       max = schema_emit_count(s, flat, "maxLength", GRAMMAR_TREE_UNBOUNDED);
        done = max > 0 && min <= max;
        if (done)
            *node = unique_texts(s, a, min, max);
    }
    cJSON_Delete(flat);
    if (!done && a->min > 1) {
        *node = schema_emit_refuse(s, "uniqueItems",
                                   "a grammar cannot compare items, and 'minItems' asks for more "
                                   "than one");
        done = true;
    }
    if (!done)
        a->max = 1;
    return done;
}

/* An item that `contains` counts, or one that it does not count. NULL: cannot be described. */
static cJSON *item_of(struct schema_emit *s, const cJSON *items, const cJSON *contains, bool with)
{
    cJSON *one = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(one, "allOf"), *other = NULL;
    if (with)
        other = cJSON_Duplicate(contains, true);
    else if (schema_negate(&other, s->root, contains, NULL) < 0)
        other = NULL;
    if (!list || !other || (items && !cJSON_AddItemToArray(list, cJSON_Duplicate(items, true))) ||
        !cJSON_AddItemToArray(list, other)) {
        cJSON_Delete(other);
        cJSON_Delete(one);
        return NULL;
    }
    return one;
}

/* Puts the items that `contains` requires first. */
static uint32_t array_with(struct schema_emit *s, struct array *a, const cJSON *schema)
{
    const cJSON *items = schema_read_get(schema, "items"),
                *contains = schema_read_get(schema, "contains");
    const uint32_t least = schema_emit_count(s, schema, "minContains", 1);
    if (a->first || least > 100)
        return schema_emit_refuse(
            s, "contains", a->first ? "there are 'prefixItems' too" : "it requires too many");
    if (a->max < least || schema_emit_count(s, schema, "maxContains", least) < least)
        return schema_emit_empty(s, "contains", "that many items are not allowed");
    cJSON *first = cJSON_CreateArray();
    for (uint32_t i = 0; i < least && first; i++)
        cJSON_AddItemToArray(first, item_of(s, items, contains, true));
    if (!first || (uint32_t)cJSON_GetArraySize(first) != least) {
        cJSON_Delete(first);
        return grammar_tree_fail(s->t, SHOAL_ENOMEM, "out of memory for a schema");
    }
    if (schema_read_get(schema, "maxContains")) { /* the others must not count */
        cJSON *other = item_of(s, items, contains, false);
        a->item = other ? s->below(s, other, "items") : NONE;
        cJSON_Delete(other);
    }
    a->min = a->min > least ? a->min : least;
    uint32_t node = grammar_json_open(&s->json, "[", items_from(a, first->child, 0));
    cJSON_Delete(first);
    return node;
}

uint32_t schema_array(struct schema_emit *s, const cJSON *schema)
{
    static const cJSON any = {.type = cJSON_True};
    struct array a = {.s = s, .item = NONE};
    const cJSON *items = schema_read_get(schema, "items"), *rest = items;
    a.first = schema_read_get(schema, "prefixItems");
    if (cJSON_IsArray(items)) { /* drafts before 2020-12 */
        a.first = items;
        rest = schema_read_get(schema, "additionalItems");
    }
    if (a.first && !cJSON_IsArray(a.first))
        return schema_emit_invalid(s, "prefixItems", "it must be a list of schemas");
    a.min = schema_emit_count(s, schema, "minItems", 0);
    a.max = schema_emit_count(s, schema, "maxItems", GRAMMAR_TREE_UNBOUNDED);
    if (grammar_tree_rc(s->t) < 0)
        return NONE;
    if (a.min > a.max)
        return schema_emit_empty(s, "minItems", "it is above 'maxItems'");
    if (cJSON_IsTrue(schema_read_get(schema, "uniqueItems")) && a.max > 1) {
        uint32_t node = NONE;
        if (unique_items(s, &a, schema, &node))
            return node;
    }
    const cJSON *contains = schema_read_get(schema, "contains");
    if (!rest && !contains)
        rest = schema_read_get(schema, "unevaluatedItems");
    /* after a list of first items, others come only if the schema mentions them */
    if (!rest && !a.first)
        rest = &any;
    if (rest && !cJSON_IsFalse(rest))
        a.item = s->below(s, rest, "items");
    if (grammar_tree_rc(s->t) < 0)
        return NONE;
    if (cJSON_GetArraySize(a.first) > 100)
        return grammar_tree_fail(s->t, SHOAL_ELIMIT, "'prefixItems' has more than 100 schemas");
    if (a.item == NONE && a.first && a.min > (uint32_t)cJSON_GetArraySize(a.first))
        a.item = rest ? NONE : s->below(s, &any, "items");
    if (contains)
        return array_with(s, &a, schema);
    return grammar_json_open(&s->json, "[", items_from(&a, a.first ? a.first->child : NULL, 0));
}
