/* schema_object.c - objects of a schema: the named properties in their order, then others. */
#include <string.h>

#include "base/utf8.h"
#include "text/grammar/grammar_regex.h"
#include "text/grammar/schema_emit.h"
#include "text/grammar/schema_merge.h"

#define NONE GRAMMAR_TREE_NONE
#define MAX_PROPERTIES 1024u
#define MAX_COUNTED 20000u /* rules */
#define MAX_KEY 64u        /* characters compared to tell other keys from named ones */

struct property {
    const char *name;
    uint32_t pair; /* node */
    bool required;
};

struct object {
    struct schema_emit *s;
    const cJSON *schema;
    const cJSON *patterns; /* patternProperties; NULL: none */
    cJSON *names;          /* propertyNames, flat; NULL: none */
    struct property *list;
    uint32_t n, n_required;
    uint32_t other; /* node of an unnamed pair; NONE: not allowed */
    uint32_t min_other, max_other;
    uint32_t max; /* of all pairs */
};

/* ---- keys that differ from the named ones ---- */

struct key_set {
    struct schema_emit *s;
    const struct property *list;
    uint32_t n;
    uint32_t rest; /* node: any characters, and the closing quote */
};

/* Reads one code point of a key, and whether the key continues after it. */
static bool key_char(const char *key, size_t at, uint32_t *cp, size_t *next)
{
    const uint8_t *p = (const uint8_t *)key + at, *end = (const uint8_t *)key + strlen(key);
    if (p >= end)
        return false;
    unsigned n = utf8_decode(p, end, cp);
    if (n == 0) {
        *cp = *p;
        n = 1;
    }
    *next = at + n;
    return true;
}

static uint32_t plain_class(struct schema_emit *s, const struct grammar_tree_range *r, uint32_t n)
{
    return grammar_regex_json_class(s->t, grammar_tree_class(s->t, r, n, true),
                                    GRAMMAR_REGEX_PLAIN);
}

/* All endings after the first `at` bytes of prefix that make no named key, with the closing
 * quote.
 */
static uint32_t other_key(const struct key_set *k, const char *prefix, size_t at, uint32_t depth)
{
    struct schema_emit *s = k->s;
    struct grammar_tree_list l = {0};
    struct grammar_tree_range *seen = arena_zalloc_n(&s->t->arena, k->n + 1, sizeof(*seen));
    uint32_t n_seen = 0;
    bool ends = false;
    if (depth == MAX_KEY)
        return schema_emit_nothing(s);
    if (!seen)
        return grammar_tree_fail(s->t, SHOAL_ENOMEM, "out of memory for a schema");
    for (uint32_t i = 0; i < k->n && grammar_tree_rc(s->t) == 0; i++) {
        const char *name = k->list[i].name;
        uint32_t cp = 0;
        size_t next = 0;
        char bytes[4];
        if (strncmp(name, prefix, at) != 0)
            continue;
        if (!key_char(name, at, &cp, &next)) {
            ends = true;
            continue;
        }
        bool again = false;
        for (uint32_t j = 0; j < n_seen; j++)
            again |= seen[j].lo == cp;
        if (again)
            continue;
        seen[n_seen++] = (struct grammar_tree_range){cp, cp};
        if (cp < 0x20 || cp == '"' || cp == '\\' || (cp >= 0xd800 && cp < 0xe000))
            continue; /* other keys have no such characters */
        uint32_t below = other_key(k, name, next, depth + 1);
        grammar_tree_push(
            s->t, &l,
            grammar_tree_sequence3(s->t, grammar_tree_literal(s->t, bytes, utf8_encode(bytes, cp)),
                                   below, NONE));
    }
    grammar_tree_push(s->t, &l,
                      grammar_tree_sequence3(s->t, plain_class(s, seen, n_seen), k->rest, NONE));
    if (!ends)
        grammar_tree_push(s->t, &l, grammar_tree_text(s->t, "\""));
    return grammar_tree_rc(s->t) < 0 ? NONE : grammar_tree_either(s->t, &l);
}

/* ---- what the schema says ---- */

/* Whether a name matches a pattern of patternProperties. */
static bool name_matches(struct object *o, const char *name, const char *pattern)
{
    struct grammar_product p = {.max = GRAMMAR_TREE_UNBOUNDED};
    struct grammar_tree *t = o->s->t;
    uint32_t node = NONE;
    int rc = grammar_product_add(&p, grammar_tree_text(t, name), false);
    if (rc == 0)
        rc = schema_string_pattern(o->s, &p, pattern, false);
    if (rc == 0)
        rc = grammar_product_build(t, &p, &node);
    return rc == 0 && (t->nodes[node].kind != GRAMMAR_TREE_EITHER || t->nodes[node].n > 0);
}

/* The value of a named property, which patterns may match too. */
static uint32_t value_of(struct object *o, const char *name, const cJSON *schema, bool named)
{
    struct schema_emit *s = o->s;
    cJSON *all = NULL, *list = NULL;
    const cJSON *one;
    if (o->names && !schema_string_allows(s, o->names, name))
        return schema_emit_empty(s, "propertyNames", "a property has another name");
    cJSON_ArrayForEach(one, o->patterns)
    {
        if (grammar_tree_rc(s->t) < 0 || !name_matches(o, name, one->string))
            continue;
        if (!all) {
            all = cJSON_CreateObject();
            list = cJSON_AddArrayToObject(all, "allOf");
            /* rules for other properties do not apply to one that a pattern matches */
            if (list && named)
                cJSON_AddItemToArray(list, cJSON_Duplicate(schema, true));
        }
        if (list)
            cJSON_AddItemToArray(list, cJSON_Duplicate(one, true));
    }
    uint32_t value = s->below(s, all ? all : schema, name);
    cJSON_Delete(all);
    return value;
}

/* schema NULL: any value.  named: it is one of `properties`. */
static int add_property(struct object *o, const char *name, const cJSON *schema, bool required,
                        bool named)
{
    struct schema_emit *s = o->s;
    static const cJSON any = {.type = cJSON_True};
    if (o->n == MAX_PROPERTIES) {
        grammar_tree_fail(s->t, SHOAL_ELIMIT, "'properties' at %s names more than %u",
                          s->path[0] ? s->path : "/", MAX_PROPERTIES);
        return -1;
    }
    uint32_t value = value_of(o, name, schema ? schema : &any, named);
    o->list[o->n++] = (struct property){
        name, grammar_json_pair(&s->json, grammar_json_quoted(&s->json, name, strlen(name)), value),
        required};
    o->n_required += required;
    return grammar_tree_rc(s->t);
}

static int add_named(struct object *o)
{
    const cJSON *props = schema_read_get(o->schema, "properties"),
                *required = schema_read_get(o->schema, "required"),
                *rest = schema_read_get(o->schema, "additionalProperties"), *one;
    if ((props && !cJSON_IsObject(props)) || (required && !cJSON_IsArray(required))) {
        schema_emit_invalid(o->s, props && !cJSON_IsObject(props) ? "properties" : "required",
                            "it must be an object of schemas, or a list of names");
        return -1;
    }
    cJSON_ArrayForEach(one, props)
    {
        bool needed = schema_read_requires(o->schema, one->string);
        if (cJSON_IsFalse(one) && !needed) /* never there, but its name is not free for others */
            o->list[o->n++] = (struct property){one->string, schema_emit_nothing(o->s), false};
        else if (add_property(o, one->string, one, needed, true) < 0)
            return -1;
        if (o->n == MAX_PROPERTIES)
            return add_property(o, "", NULL, false, false); /* fails */
    }
    cJSON_ArrayForEach(one, required)
    {
        const char *name = cJSON_GetStringValue(one);
        bool there = false;
        if (!name) {
            schema_emit_invalid(o->s, "required", "it must be a list of names");
            return -1;
        }
        for (uint32_t i = 0; i < o->n; i++)
            there |= strcmp(o->list[i].name, name) == 0;
        if (!there && add_property(o, name, rest, true, false) < 0)
            return -1;
    }
    return 0;
}

/* Any key but the named ones. */
static uint32_t any_other_key(struct object *o)
{
    struct schema_emit *s = o->s;
    uint32_t any = grammar_tree_repeat(s->t, plain_class(s, NULL, 0), 0, GRAMMAR_TREE_UNBOUNDED);
    uint32_t rest = grammar_tree_add_rule(s->t, NULL, 0);
    grammar_tree_define(s->t, rest,
                        grammar_tree_sequence3(s->t, any, grammar_tree_text(s->t, "\""), NONE));
    const struct key_set k = {s, o->list, o->n, grammar_tree_call(s->t, rest)};
    uint32_t key = other_key(&k, "", 0, 0);
    return grammar_tree_sequence3(s->t, grammar_tree_text(s->t, "\""), key, NONE);
}

/* Keys that are not named, match one pattern (NULL: none) and no other pattern. */
static int key_parts(struct object *o, const cJSON *pattern, struct grammar_product *p)
{
    struct schema_emit *s = o->s;
    struct grammar_tree_list named = {0};
    const cJSON *one;
    int rc = schema_string_parts(s, o->names, p);
    for (uint32_t i = 0; i < o->n; i++)
        grammar_tree_push(s->t, &named, grammar_tree_text(s->t, o->list[i].name));
    if (rc == 0 && named.n > 0)
        rc = grammar_product_add(p, grammar_tree_either(s->t, &named), true);
    cJSON_ArrayForEach(one, o->patterns) if (rc == 0) rc =
        schema_string_pattern(s, p, one->string, one != pattern);
    return rc;
}

/* Adds a pair with an unnamed key; nothing if there are too many keys to tell apart. */
static void add_pairs(struct object *o, const cJSON *pattern, const cJSON *schema,
                      struct grammar_tree_list *pairs)
{
    struct schema_emit *s = o->s;
    struct grammar_product p = {.flags = GRAMMAR_REGEX_JSON | GRAMMAR_REGEX_PLAIN};
    uint32_t key = NONE, quote = grammar_tree_text(s->t, "\"");
    if (cJSON_IsFalse(schema))
        return;
    int rc = key_parts(o, pattern, &p);
    if (rc == 0)
        rc = grammar_product_build(s->t, &p, &key);
    if (grammar_tree_rc(s->t) < 0) {
        s->t->rc = err_wrap(s->t->e, "'patternProperties' at %s", s->path[0] ? s->path : "/");
        return;
    }
    if (rc < 0) {
        if (o->n == 0)
            schema_emit_refuse(s, pattern ? "patternProperties" : "propertyNames",
                               "its patterns are too large together");
        return; /* the named properties alone are valid too */
    }
    key = grammar_tree_sequence3(s->t, quote, key, quote);
    grammar_tree_push(
        s->t, pairs,
        grammar_json_pair(
            &s->json, key,
            s->below(s, schema, pattern ? "patternProperties" : "additionalProperties")));
}

static int add_others(struct object *o)
{
    struct schema_emit *s = o->s;
    const cJSON *rest = schema_read_get(o->schema, "additionalProperties"), *one;
    static const cJSON any = {.type = cJSON_True};
    struct grammar_tree_list pairs = {0};
    if (!rest)
        rest = schema_read_get(o->schema, "unevaluatedProperties");
    o->other = NONE;
    cJSON_ArrayForEach(one, o->patterns) add_pairs(o, one, one, &pairs);
    /* a schema without names is for any object */
    if (!rest && o->n == 0 && !o->patterns)
        rest = &any;
    if (rest && !cJSON_IsFalse(rest)) {
        if (o->patterns || o->names)
            add_pairs(o, NULL, rest, &pairs);
        else
            grammar_tree_push(s->t, &pairs,
                              grammar_json_pair(&s->json, any_other_key(o),
                                                s->below(s, rest, "additionalProperties")));
    }
    if (grammar_tree_rc(s->t) == 0 && pairs.n > 0)
        o->other = grammar_tree_either(s->t, &pairs);
    return grammar_tree_rc(s->t);
}

/* Reads patternProperties and propertyNames. */
static int read_keys(struct object *o)
{
    struct schema_emit *s = o->s;
    const cJSON *patterns = schema_read_get(o->schema, "patternProperties"),
                *names = schema_read_get(o->schema, "propertyNames");
    if (cJSON_IsObject(patterns) && patterns->child)
        o->patterns = patterns;
    if (!names || cJSON_IsTrue(names))
        return 0;
    int rc = schema_merge_flatten(&o->names, s->root, names, &s->joins, s->t->e);
    if (rc < 0) {
        grammar_tree_fail(s->t, rc, "%s", s->t->e ? s->t->e->msg : "'propertyNames'");
        return rc;
    }
    if (!o->names) /* no name is valid: an impossible length */
        o->names = cJSON_Parse("{\"minLength\":1,\"maxLength\":0}");
    if (!o->names)
        return grammar_tree_fail(s->t, SHOAL_ENOMEM, "out of memory for a schema"), -1;
    if (schema_read_get(o->names, "anyOf") || schema_read_get(o->names, "oneOf")) {
        schema_emit_refuse(s, "propertyNames", "'anyOf' and 'oneOf' are not supported in it");
        return -1;
    }
    return 0;
}

/* minProperties and maxProperties: only others are counted. */
static int limit_others(struct object *o)
{
    struct schema_emit *s = o->s;
    uint32_t min = schema_emit_count(s, o->schema, "minProperties", 0);
    uint32_t max = schema_emit_count(s, o->schema, "maxProperties", GRAMMAR_TREE_UNBOUNDED);
    o->min_other = 0;
    o->max_other = o->other == NONE ? 0 : GRAMMAR_TREE_UNBOUNDED;
    if (min > o->n_required) {
        if (o->other == NONE || o->n > o->n_required || min - o->n_required > 1) {
            schema_emit_refuse(s, "minProperties", "only required properties can be relied on");
            return -1;
        }
        o->min_other = min - o->n_required;
    }
    if (max != GRAMMAR_TREE_UNBOUNDED) {
        o->max = max;
        if (o->n > max && o->n_required < o->n) /* counted while they are written */
            o->max_other = 0;
        if (o->max_other > 0)
            o->max_other = max > o->n ? max - o->n : 0;
        if (o->n_required > max)
            o->list[0].pair = schema_emit_empty(s, "maxProperties", "more are required");
    }
    return grammar_tree_rc(s->t);
}

/* ---- the grammar ---- */

/* What follows a pair: others, and the end. */
static uint32_t tail(struct object *o, uint32_t n_before)
{
    struct schema_emit *s = o->s;
    uint32_t close = grammar_json_close(&s->json, "}");
    uint32_t min = o->min_other > n_before ? o->min_other - n_before : 0, max = o->max_other;
    if (max != GRAMMAR_TREE_UNBOUNDED)
        max = max > n_before ? max - n_before : 0;
    if (o->other == NONE || max == 0)
        return close;
    uint32_t more = grammar_tree_repeat(s->t, grammar_json_next(&s->json, o->other), min, max);
    return grammar_tree_sequence3(s->t, more, close, NONE);
}

/* rest[i]: a rule for what follows when a pair was written and i is next. */
static uint32_t build(struct object *o, uint32_t *rest)
{
    struct schema_emit *s = o->s;
    struct grammar_tree *t = s->t;
    struct grammar_tree_list first = {0};
    uint32_t i;
    for (i = o->n + 1; i-- > 0 && grammar_tree_rc(t) == 0;) {
        uint32_t node;
        if (i == o->n) {
            node = tail(o, 0);
        } else {
            uint32_t next = grammar_json_next(&s->json, o->list[i].pair);
            if (!o->list[i].required)
                next = grammar_tree_optional(t, next);
            node = grammar_tree_sequence3(t, next, grammar_tree_call(t, rest[i + 1]), NONE);
        }
        rest[i] = grammar_tree_add_rule(t, NULL, 0);
        grammar_tree_define(t, rest[i], node);
    }
    if (grammar_tree_rc(t) < 0)
        return NONE;
    for (i = 0; i < o->n; i++) {
        uint32_t pair = grammar_json_open(&s->json, "{", o->list[i].pair);
        grammar_tree_push(t, &first,
                          grammar_tree_sequence3(t, pair, grammar_tree_call(t, rest[i + 1]), NONE));
        if (o->list[i].required)
            break;
    }
    if (i == o->n) { /* no named property */
        if (o->other != NONE && o->max_other > 0)
            grammar_tree_push(t, &first,
                              grammar_tree_sequence3(t, grammar_json_open(&s->json, "{", o->other),
                                                     tail(o, 1), NONE));
        if (o->min_other == 0)
            grammar_tree_push(t, &first,
                              grammar_tree_sequence3(t, grammar_tree_text(t, "{"),
                                                     grammar_json_close(&s->json, "}"), NONE));
    }
    return grammar_tree_rc(t) < 0 ? NONE : grammar_tree_either(t, &first);
}

/* The properties from number i on, when n pairs were written, and the end. */
static uint32_t counted_from(struct object *o, uint32_t *rules, uint32_t i, uint32_t n)
{
    struct schema_emit *s = o->s;
    struct grammar_tree *t = s->t;
    struct grammar_tree_list l = {0};
    uint32_t *rule = &rules[i * (o->max + 1) + n];
    if (i == o->n)
        return n == 0 ? grammar_tree_sequence3(t, grammar_tree_text(t, "{"),
                                               grammar_json_close(&s->json, "}"), NONE)
                      : grammar_json_close(&s->json, "}");
    if (grammar_tree_rc(t) < 0)
        return NONE;
    if (*rule)
        return grammar_tree_call(t, *rule - 1);
    *rule = grammar_tree_add_rule(t, NULL, 0) + 1;
    if (n < o->max) {
        uint32_t pair = n == 0 ? grammar_json_open(&s->json, "{", o->list[i].pair)
                               : grammar_json_next(&s->json, o->list[i].pair);
        grammar_tree_push(
            t, &l, grammar_tree_sequence3(t, pair, counted_from(o, rules, i + 1, n + 1), NONE));
    }
    if (!o->list[i].required)
        grammar_tree_push(t, &l, counted_from(o, rules, i + 1, n));
    if (grammar_tree_rc(t) < 0)
        return NONE;
    grammar_tree_define(t, *rule - 1, grammar_tree_either(t, &l));
    return grammar_tree_call(t, *rule - 1);
}

/* At most this many of the named properties. */
static uint32_t build_counted(struct object *o)
{
    const size_t n = ((size_t)o->n + 1) * ((size_t)o->max + 1);
    uint32_t *rules = n < MAX_COUNTED ? arena_zalloc_n(&o->s->t->arena, n, sizeof(*rules)) : NULL;
    if (!rules || o->min_other > 0)
        return schema_emit_refuse(o->s, "maxProperties",
                                  "fewer than there are optional properties, which are many");
    return counted_from(o, rules, 0, 0);
}

static uint32_t build_object(struct object *o, uint32_t *rest)
{
    const uint32_t min = schema_emit_count(o->s, o->schema, "minProperties", 0);
    if (min > schema_emit_count(o->s, o->schema, "maxProperties", GRAMMAR_TREE_UNBOUNDED))
        return schema_emit_empty(o->s, "minProperties", "it is above 'maxProperties'");
    if (read_keys(o) < 0 || add_named(o) < 0 || add_others(o) < 0 || limit_others(o) < 0)
        return NONE;
    return o->n > o->max && o->n_required < o->n ? build_counted(o) : build(o, rest);
}

uint32_t schema_object(struct schema_emit *s, const cJSON *schema)
{
    struct object o = {.s = s, .schema = schema, .max = GRAMMAR_TREE_UNBOUNDED};
    const int size = cJSON_GetArraySize(schema_read_get(schema, "properties")) +
                     cJSON_GetArraySize(schema_read_get(schema, "required"));
    const uint32_t most = (uint32_t)size < MAX_PROPERTIES ? (uint32_t)size : MAX_PROPERTIES;
    o.list = arena_zalloc_n(&s->t->arena, most + 1, sizeof(*o.list));
    uint32_t *rest = arena_zalloc_n(&s->t->arena, most + 2, sizeof(*rest));
    if (!o.list || !rest)
        return grammar_tree_fail(s->t, SHOAL_ENOMEM, "out of memory for a schema");
    uint32_t node = build_object(&o, rest);
    cJSON_Delete(o.names);
    return node;
}
