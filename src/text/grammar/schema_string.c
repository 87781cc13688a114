/* schema_string.c - strings of a schema: patterns, formats and lengths. */
#include <string.h>

#include "text/grammar/grammar_regex.h"
#include "text/grammar/schema_emit.h"
#include "text/grammar/schema_format.h"
#include "text/grammar/schema_merge.h"

#define NONE GRAMMAR_TREE_NONE
#define UNBOUNDED GRAMMAR_TREE_UNBOUNDED

struct lengths { /* in characters */
    uint64_t min, max;
};

#define ENDLESS UINT64_MAX

/* Characters of a literal inside of a JSON string: an escape is a literal of its own. */
static uint64_t literal_length(const struct grammar_tree_node *n)
{
    uint64_t len = 0;
    for (uint32_t i = 0; i < n->n; i++)
        len += ((uint8_t)n->bytes[i] & 0xc0) != 0x80;
    return n->n > 0 && n->bytes[0] == '\\' ? 1 : len;
}

/* Of a regular expression inside of a JSON string. */
static struct lengths lengths_of(const struct grammar_tree *t, uint32_t node)
{
    const struct grammar_tree_node *n = &t->nodes[node];
    struct lengths l = {1, 1}, c;
    switch (n->kind) {
    case GRAMMAR_TREE_LITERAL:
        l.min = l.max = literal_length(n);
        return l;
    case GRAMMAR_TREE_CLASS:
    case GRAMMAR_TREE_RULE: /* there are none */
        return l;
    case GRAMMAR_TREE_REPEAT:
        c = lengths_of(t, n->children[0]);
        l.min = c.min * n->min;
        l.max = c.max == 0 ? 0 : c.max == ENDLESS || n->max == UNBOUNDED ? ENDLESS : c.max * n->max;
        return l;
    case GRAMMAR_TREE_SEQUENCE:
        l = (struct lengths){0, 0};
        for (uint32_t i = 0; i < n->n; i++) {
            c = lengths_of(t, n->children[i]);
            l.min += c.min;
            l.max = c.max == ENDLESS || l.max == ENDLESS ? ENDLESS : l.max + c.max;
        }
        return l;
    case GRAMMAR_TREE_EITHER:
        l = (struct lengths){ENDLESS, 0};
        for (uint32_t i = 0; i < n->n; i++) {
            c = lengths_of(t, n->children[i]);
            l.min = c.min < l.min ? c.min : l.min;
            l.max = c.max > l.max ? c.max : l.max;
        }
        return l;
    }
    return l;
}

/* A repetition of single characters, whose counts are its lengths. */
static bool is_elastic(const struct grammar_tree *t, uint32_t node)
{
    const struct grammar_tree_node *n = &t->nodes[node];
    if (n->kind != GRAMMAR_TREE_REPEAT || n->min == n->max)
        return false;
    struct lengths c = lengths_of(t, n->children[0]);
    return c.min == 1 && c.max == 1;
}

static uint32_t fit(struct grammar_tree *t, uint32_t node, struct lengths want);

/* The last repetition that can stretch takes the required length; the others stay short. */
static uint32_t fit_sequence(struct grammar_tree *t, uint32_t node, struct lengths want)
{
    const struct grammar_tree_node n = t->nodes[node];
    struct grammar_tree_list l = {0};
    uint32_t elastic = n.n;
    uint64_t min = 0, max = 0;
    for (uint32_t i = 0; i < n.n; i++)
        elastic = is_elastic(t, n.children[i]) ? i : elastic;
    if (elastic == n.n)
        return NONE;
    for (uint32_t i = 0; i < n.n; i++) {
        uint32_t child = n.children[i];
        if (i != elastic && is_elastic(t, child) && t->nodes[child].max == UNBOUNDED &&
            want.max != ENDLESS)
            child = grammar_tree_repeat(t, t->nodes[child].children[0], t->nodes[child].min,
                                        t->nodes[child].min);
        if (child == NONE)
            return NONE;
        struct lengths c = lengths_of(t, child);
        if (i != elastic) {
            min += c.min;
            max = c.max == ENDLESS || max == ENDLESS ? ENDLESS : max + c.max;
        }
        grammar_tree_push(t, &l, child);
    }
    if (want.max != ENDLESS && (max == ENDLESS || max > want.max))
        return NONE;
    const struct lengths left = {want.min > min ? want.min - min : 0,
                                 want.max == ENDLESS ? ENDLESS : want.max - max};
    uint32_t stretched = grammar_tree_rc(t) < 0 ? NONE : fit(t, l.items[elastic], left);
    if (stretched == NONE)
        return NONE;
    l.items[elastic] = stretched;
    return grammar_tree_sequence(t, &l);
}

/* A node with the texts of these lengths, or some of them; NONE: not found. */
static uint32_t fit(struct grammar_tree *t, uint32_t node, struct lengths want)
{
    const struct lengths have = lengths_of(t, node);
    const struct grammar_tree_node n = t->nodes[node];
    if (have.min >= want.min && have.max <= want.max)
        return node;
    if (is_elastic(t, node)) {
        uint64_t min = have.min > want.min ? have.min : want.min,
                 max = have.max < want.max ? have.max : want.max;
        if (min > max || min > GRAMMAR_TREE_MAX_COUNT ||
            (max != ENDLESS && max > GRAMMAR_TREE_MAX_COUNT))
            return NONE;
        return grammar_tree_repeat(t, n.children[0], (uint32_t)min,
                                   max == ENDLESS ? UNBOUNDED : (uint32_t)max);
    }
    if (n.kind == GRAMMAR_TREE_SEQUENCE)
        return fit_sequence(t, node, want);
    if (n.kind == GRAMMAR_TREE_EITHER) {
        struct grammar_tree_list l = {0};
        for (uint32_t i = 0; i < n.n; i++) {
            uint32_t child = fit(t, n.children[i], want);
            if (child != NONE)
                grammar_tree_push(t, &l, child);
        }
        return l.n > 0 && grammar_tree_rc(t) == 0 ? grammar_tree_either(t, &l) : NONE;
    }
    return NONE;
}

/* ---- several things that must hold at once ---- */

/* A look-ahead at the beginning of a pattern is another condition on the whole text: "^(?!x)y" is y
 * without "^x". Returns the rest of the pattern, NULL: no look-ahead. */
static const char *look_ahead(const char *p, bool *negative, const char **from, size_t *n)
{
    const char *end;
    if (strncmp(p, "^(?!", 4) != 0 && strncmp(p, "^(?=", 4) != 0)
        return NULL;
    *negative = p[3] == '!';
    *from = p + 4;
    end = grammar_regex_group_end(p + 1, p + strlen(p));
    if (end <= *from || end[-1] != ')')
        return NULL;
    *n = (size_t)(end - *from) - 1;
    /* an alternative would not have the condition */
    for (const char *at = end; *at;) {
        if (*at == '|')
            return NULL;
        if (*at == '(')
            at = grammar_regex_group_end(at, at + strlen(at));
        else
            at += *at == '\\' && at[1] ? 2 : 1;
    }
    return end;
}

int schema_string_pattern(struct schema_emit *s, struct grammar_product *p, const char *pattern,
                          bool without)
{
    struct grammar_tree *t = s->t;
    const char *rest, *from;
    bool negative;
    size_t n;
    while (!without && (rest = look_ahead(pattern, &negative, &from, &n))) {
        const char *inner = arena_printf(&t->arena, "^(?:%.*s)", (int)n, from);
        int rc = schema_string_pattern(s, p, inner, negative);
        if (rc < 0)
            return rc;
        pattern = arena_printf(&t->arena, "^%s", rest);
    }
    uint32_t node = grammar_regex_read(t, pattern, strlen(pattern), GRAMMAR_REGEX_SEARCH);
    if (node == NONE)
        return grammar_tree_rc(t);
    return grammar_product_add(p, node, without);
}

static int add_patterns(struct schema_emit *s, struct grammar_product *p, const cJSON *list,
                        bool without)
{
    const cJSON *one;
    int rc = 0;
    cJSON_ArrayForEach(one, list) if (rc == 0 && cJSON_IsString(one)) rc =
        schema_string_pattern(s, p, one->valuestring, without);
    return rc;
}

static int add_values(struct schema_emit *s, struct grammar_product *p, const cJSON *list,
                      bool without)
{
    struct grammar_tree_list l = {0};
    const cJSON *one;
    cJSON_ArrayForEach(one, list) if (cJSON_IsString(one))
        grammar_tree_push(s->t, &l, grammar_tree_text(s->t, one->valuestring));
    if (grammar_tree_rc(s->t) < 0)
        return grammar_tree_rc(s->t);
    return l.n == 0 && without ? 0 : grammar_product_add(p, grammar_tree_either(s->t, &l), without);
}

int schema_string_parts(struct schema_emit *s, const cJSON *schema, struct grammar_product *p)
{
    const cJSON *pattern = schema_read_get(schema, "pattern"),
                *format = schema_read_get(schema, "format"),
                *values = schema_read_get(schema, "enum");
    const char *regex = cJSON_IsString(format) ? schema_format_regex(format->valuestring) : NULL;
    uint32_t node = grammar_regex_read(s->t, "[^]*", 4, 0);
    int rc = grammar_tree_rc(s->t);
    if (rc == 0)
        rc = grammar_product_add(p, node, false);
    p->min = schema_emit_count(s, schema, "minLength", 0);
    p->max = schema_emit_count(s, schema, "maxLength", UNBOUNDED);
    if (rc == 0 && cJSON_IsString(pattern))
        rc = schema_string_pattern(s, p, pattern->valuestring, false);
    if (rc == 0 && regex) {
        node = grammar_regex_read(s->t, regex, strlen(regex), 0);
        rc = node == NONE ? grammar_tree_rc(s->t) : grammar_product_add(p, node, false);
    }
    if (rc == 0)
        rc = add_patterns(s, p, schema_read_get(schema, SCHEMA_ALSO_PATTERNS), false);
    if (rc == 0)
        rc = add_patterns(s, p, schema_read_get(schema, SCHEMA_NOT_PATTERNS), true);
    if (rc == 0)
        rc = add_values(s, p, schema_read_get(schema, SCHEMA_NOT_VALUES), true);
    if (rc == 0 && values)
        rc = add_values(s, p, values, false);
    return rc < 0 ? rc : grammar_tree_rc(s->t);
}

static bool is_nothing(const struct grammar_tree *t, uint32_t node)
{
    return t->nodes[node].kind == GRAMMAR_TREE_EITHER && t->nodes[node].n == 0;
}

bool schema_string_allows(struct schema_emit *s, const cJSON *schema, const char *text)
{
    struct grammar_product p = {.n = 0};
    uint32_t node = NONE;
    int rc = schema_string_parts(s, schema, &p);
    if (rc == 0)
        rc = grammar_product_add(&p, grammar_tree_text(s->t, text), false);
    if (rc == 0)
        rc = grammar_product_build(s->t, &p, &node);
    return rc == 0 && !is_nothing(s->t, node);
}

/* If long texts would make the automaton too large, generates shorter ones, which are valid too. */
static int build_parts(struct schema_emit *s, struct grammar_product *p, uint32_t *node)
{
    static const uint32_t shorter[] = {64, 24};
    int rc = grammar_product_build(s->t, p, node);
    for (size_t i = 0; i < 2 && rc == SHOAL_ELIMIT && grammar_tree_rc(s->t) == 0; i++)
        if (p->max != UNBOUNDED && p->max > shorter[i] && p->min < shorter[i]) {
            p->max = shorter[i];
            rc = grammar_product_build(s->t, p, node);
        }
    return rc;
}

static uint32_t string_of_parts(struct schema_emit *s, const cJSON *schema)
{
    struct grammar_tree *t = s->t;
    struct grammar_product p = {.flags = GRAMMAR_REGEX_JSON};
    const bool pattern =
        schema_read_get(schema, "pattern") || schema_read_get(schema, SCHEMA_NOT_PATTERNS);
    uint32_t node = NONE;
    int rc = schema_string_parts(s, schema, &p);
    if (rc == 0)
        rc = build_parts(s, &p, &node);
    if (grammar_tree_rc(t) < 0) {
        t->rc = err_wrap(t->e, "'pattern' at %s", s->path[0] ? s->path : "/");
        return NONE;
    }
    if (rc < 0)
        return schema_emit_refuse(s,
                                  p.max != UNBOUNDED ? "maxLength"
                                  : p.min > 0        ? "minLength"
                                  : pattern          ? "pattern"
                                                     : "not",
                                  pattern ? "it cannot be combined with this 'pattern'"
                                          : "it cannot be combined with this 'format'");
    if (is_nothing(t, node))
        return schema_emit_empty(s, pattern ? "pattern" : "format", "no text fits all keywords");
    uint32_t quote = grammar_tree_text(t, "\"");
    return grammar_tree_sequence3(t, quote, node, quote);
}

/* Whether texts must be compared with more than one pattern or format. */
static bool needs_parts(const cJSON *schema, const char *pattern, const char *regex)
{
    bool strings = false;
    const cJSON *one;
    cJSON_ArrayForEach(one, schema_read_get(schema, SCHEMA_NOT_VALUES)) strings |=
        cJSON_IsString(one);
    return strings ||
           (pattern &&
            (regex || strncmp(pattern, "^(?!", 4) == 0 || strncmp(pattern, "^(?=", 4) == 0)) ||
           schema_read_get(schema, SCHEMA_ALSO_PATTERNS) ||
           schema_read_get(schema, SCHEMA_NOT_PATTERNS);
}

uint32_t schema_string(struct schema_emit *s, const cJSON *schema)
{
    struct grammar_tree *t = s->t;
    const cJSON *pattern = schema_read_get(schema, "pattern"),
                *format = schema_read_get(schema, "format");
    const uint32_t min = schema_emit_count(s, schema, "minLength", 0),
                   max = schema_emit_count(s, schema, "maxLength", UNBOUNDED);
    const char *regex = cJSON_IsString(format) ? schema_format_regex(format->valuestring) : NULL;
    if (grammar_tree_rc(t) < 0)
        return NONE;
    if (pattern && !cJSON_IsString(pattern))
        return schema_emit_invalid(s, "pattern", "it must be a text");
    if (min > max)
        return schema_emit_empty(s, "minLength", "it is above 'maxLength'");
    const char *text = pattern ? pattern->valuestring : regex;
    if (needs_parts(schema, pattern ? text : NULL, regex))
        return string_of_parts(s, schema);
    if (!text)
        return min == 0 && max == UNBOUNDED ? grammar_json_string(&s->json)
                                            : grammar_json_string_of(&s->json, min, max);
    uint32_t node = grammar_regex_read(t, text, strlen(text),
                                       GRAMMAR_REGEX_JSON | (pattern ? GRAMMAR_REGEX_SEARCH : 0));
    if (node == NONE) {
        t->rc = err_wrap(t->e, "'pattern' at %s", s->path[0] ? s->path : "/");
        return NONE;
    }
    const struct lengths want = {min, max == UNBOUNDED ? ENDLESS : max};
    node = fit(t, node, want);
    if (node == NONE)
        return string_of_parts(s, schema);
    uint32_t quote = grammar_tree_text(t, "\"");
    return grammar_tree_sequence3(t, quote, node, quote);
}
