/* schema_array.c - arrays of a schema: the first items one by one, then the others. */
#include "text/grammar/schema_emit.h"
#include "text/grammar/schema_merge.h"

#define NONE GRAMMAR_TREE_NONE

struct array {
    struct schema_emit *s;
    const cJSON *first; /* list of schemas, or NULL */
    uint32_t item;      /* node of the others; NONE: there are none */
    uint32_t min, max;
};

/* Items from number i on, when some were written (or none: i is 0), and the end. */
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

/* A set of given values has each of them once, in their order. */
static uint32_t unique_values(struct schema_emit *s, const struct array *a, const cJSON *values)
{
    struct grammar_tree *t = s->t;
    struct grammar_tree_list start = {0};
    const int n = cJSON_GetArraySize(values);
    uint32_t *rest = arena_zalloc_n(&t->arena, (size_t)n + 2, sizeof(*rest));
    uint32_t *nodes = arena_zalloc_n(&t->arena, (size_t)n + 2, sizeof(*nodes));
    if (!rest || !nodes)
        return grammar_tree_fail(t, SHOAL_ENOMEM, "out of memory for a schema");
    if (a->min > 1 || a->max < (uint32_t)n)
        return schema_emit_refuse(s, "uniqueItems", "there are 'minItems' or 'maxItems' too");
    const cJSON *one;
    int i = 0;
    cJSON_ArrayForEach(one, values)
    {
        char *text = cJSON_PrintUnformatted(one);
        nodes[i++] = text ? grammar_tree_text(t, text)
                          : grammar_tree_fail(t, SHOAL_ENOMEM, "out of memory for a schema");
        cJSON_free(text);
    }
    for (i = n + 1; i-- > 0 && grammar_tree_rc(t) == 0;) {
        uint32_t node = grammar_json_close(&s->json, "]");
        if (i < n)
            node = grammar_tree_sequence3(
                t, grammar_tree_optional(t, grammar_json_next(&s->json, nodes[i])),
                grammar_tree_call(t, rest[i + 1]), NONE);
        rest[i] = grammar_tree_add_rule(t, NULL, 0);
        grammar_tree_define(t, rest[i], node);
    }
    for (i = 0; i < n && grammar_tree_rc(t) == 0; i++)
        grammar_tree_push(
            t, &start,
            grammar_tree_sequence3(t, nodes[i], grammar_tree_call(t, rest[i + 1]), NONE));
    if (a->min == 0)
        grammar_tree_push(t, &start, grammar_json_close(&s->json, "]"));
    return grammar_tree_rc(t) < 0
               ? NONE
               : grammar_json_open(&s->json, "[", grammar_tree_either(t, &start));
}

uint32_t schema_array(struct schema_emit *s, const cJSON *schema)
{
    static const cJSON any = {.type = cJSON_True};
    struct array a = {.s = s, .item = NONE};
    const cJSON *items = schema_merge_get(schema, "items"), *rest = items;
    a.first = schema_merge_get(schema, "prefixItems");
    if (cJSON_IsArray(items)) { /* drafts before 2020-12 */
        a.first = items;
        rest = schema_merge_get(schema, "additionalItems");
    }
    if (a.first && !cJSON_IsArray(a.first))
        return schema_emit_invalid(s, "prefixItems", "it must be a list of schemas");
    a.min = schema_emit_count(s, schema, "minItems", 0);
    a.max = schema_emit_count(s, schema, "maxItems", GRAMMAR_TREE_UNBOUNDED);
    if (grammar_tree_rc(s->t) < 0)
        return NONE;
    if (a.min > a.max)
        return schema_emit_nothing(s);
    if (cJSON_IsTrue(schema_merge_get(schema, "uniqueItems")) && a.max > 1) {
        const cJSON *values = schema_merge_get(items, "enum");
        if (!cJSON_IsArray(values) || a.first)
            return schema_emit_refuse(s, "uniqueItems",
                                      "a grammar cannot compare items, unless they are an 'enum'");
        return unique_values(s, &a, values);
    }
    /* behind a list of first items, others come only if the schema speaks of them */
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
    return grammar_json_open(&s->json, "[", items_from(&a, a.first ? a.first->child : NULL, 0));
}
