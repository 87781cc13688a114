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

/* Of a regular expression inside of a JSON string: a literal is one character with its escape. */
static struct lengths lengths_of(const struct grammar_tree *t, uint32_t node)
{
    const struct grammar_tree_node *n = &t->nodes[node];
    struct lengths l = {1, 1}, c;
    switch (n->kind) {
    case GRAMMAR_TREE_LITERAL:
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

/* The last repetition that can stretch takes what the lengths ask for; the others stay short. */
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

/* A node with the texts of such lengths, or some of them; NONE: not found. */
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

uint32_t schema_string(struct schema_emit *s, const cJSON *schema)
{
    struct grammar_tree *t = s->t;
    const cJSON *pattern = schema_merge_get(schema, "pattern"),
                *format = schema_merge_get(schema, "format");
    const uint32_t min = schema_emit_count(s, schema, "minLength", 0),
                   max = schema_emit_count(s, schema, "maxLength", UNBOUNDED);
    const char *regex = cJSON_IsString(format) ? schema_format_regex(format->valuestring) : NULL;
    if (grammar_tree_rc(t) < 0)
        return NONE;
    if (pattern && !cJSON_IsString(pattern))
        return schema_emit_invalid(s, "pattern", "it must be a text");
    if (pattern && regex)
        return schema_emit_refuse(s, "format", "there is a 'pattern' too");
    if (min > max)
        return schema_emit_nothing(s);
    if (!pattern && !regex)
        return min == 0 && max == UNBOUNDED ? grammar_json_string(&s->json)
                                            : grammar_json_string_of(&s->json, min, max);
    const char *text = pattern ? pattern->valuestring : regex;
    uint32_t node = grammar_regex_read(t, text, strlen(text),
                                       GRAMMAR_REGEX_JSON | (pattern ? GRAMMAR_REGEX_SEARCH : 0));
    if (node == NONE) {
        t->rc = err_wrap(t->e, "'pattern' at %s", s->path[0] ? s->path : "/");
        return NONE;
    }
    const struct lengths want = {min, max == UNBOUNDED ? ENDLESS : max};
    node = fit(t, node, want);
    if (node == NONE)
        return schema_emit_refuse(s, min > 0 ? "minLength" : "maxLength",
                                  pattern ? "it cannot be combined with this 'pattern'"
                                          : "it cannot be combined with this 'format'");
    uint32_t quote = grammar_tree_text(t, "\"");
    return grammar_tree_sequence3(t, quote, node, quote);
}
