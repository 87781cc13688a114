/* grammar_gbnf.c - see grammar_gbnf.h. */
#include "text/grammar/grammar_gbnf.h"

#include <string.h>

#include "base/ascii.h"
#include "base/strmap.h"
#include "base/utf8.h"
#include "text/grammar/grammar_tree.h"

#define MAX_DEPTH 200u
#define MAX_RANGES 512u

struct gbnf {
    struct grammar_tree *t;
    const char *start, *p, *end;
    struct strmap names; /* to rules */
    uint32_t depth;
};

static uint32_t fail(struct gbnf *g, const char *at, const char *what)
{
    uint32_t line = 1, column = 1;
    for (const char *p = g->start; p < at; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
    }
    return grammar_tree_fail(g->t, SHOAL_EINVAL, "line %u, column %u of the grammar: %s", line,
                             column, what);
}

static bool ok(const struct gbnf *g)
{
    return grammar_tree_rc(g->t) == 0;
}

static char peek(const struct gbnf *g)
{
    return g->p < g->end ? *g->p : '\0';
}

static void skip_space(struct gbnf *g, bool newlines)
{
    while (g->p < g->end) {
        if (*g->p == '#')
            while (g->p < g->end && *g->p != '\n')
                g->p++;
        else if (*g->p == ' ' || *g->p == '\t' || *g->p == '\r' || (newlines && *g->p == '\n'))
            g->p++;
        else
            break;
    }
}

static bool is_word(char c)
{
    return ascii_is_letter(c) || ascii_is_digit(c) || c == '-' || c == '_';
}

static size_t read_name(struct gbnf *g, const char **name)
{
    *name = g->p;
    while (g->p < g->end && is_word(*g->p))
        g->p++;
    return (size_t)(g->p - *name);
}

/* Returns the rule with this name, which may be defined later. */
static uint32_t rule_of(struct gbnf *g, const char *name, size_t n)
{
    uint32_t rule = 0;
    if (strmap_get(&g->names, name, n, &rule))
        return rule;
    rule = grammar_tree_add_rule(g->t, name, n);
    if (ok(g) && strmap_put(&g->names, name, n, rule) < 0)
        grammar_tree_fail(g->t, SHOAL_ENOMEM, "out of memory for a grammar");
    return rule;
}

static uint32_t read_hex(struct gbnf *g, uint32_t digits)
{
    const char *at = g->p;
    uint32_t v = 0;
    for (uint32_t i = 0; i < digits; i++, g->p++) {
        int d = ascii_hex(peek(g));
        if (d < 0)
            return fail(g, at, "an escape needs more hexadecimal digits");
        v = v << 4 | (uint32_t)d;
    }
    if (v > GRAMMAR_TREE_MAX_CODE || (v >= 0xd800 && v <= 0xdfff))
        return fail(g, at, "an escape is not a Unicode character");
    return v;
}

/* Reads one character, which may be escaped. */
static uint32_t read_char(struct gbnf *g)
{
    static const char from[] = "tnr\\\"[]-^.", to[] = "\t\n\r\\\"[]-^.";
    const char *at = g->p;
    uint32_t cp = 0;
    if (*g->p != '\\') {
        unsigned n = utf8_decode((const uint8_t *)g->p, (const uint8_t *)g->end, &cp);
        if (n == 0)
            return fail(g, at, "the grammar is not valid UTF-8");
        g->p += n;
        return cp;
    }
    g->p++;
    char c = peek(g);
    if (g->p < g->end)
        g->p++;
    if (c == 'x' || c == 'u' || c == 'U')
        return read_hex(g, c == 'x' ? 2 : c == 'u' ? 4 : 8);
    const char *known = c ? strchr(from, c) : NULL;
    return known ? (uint32_t)to[known - from] : fail(g, at, "unknown escape");
}

static uint32_t read_literal(struct gbnf *g)
{
    const char *at = g->p++;
    struct grammar_tree_list l = {0};
    char bytes[256];
    size_t n = 0;
    while (ok(g) && g->p < g->end && *g->p != '"') {
        uint32_t cp = read_char(g);
        if (ok(g))
            n += utf8_encode(bytes + n, cp);
        if (n + 4 > sizeof(bytes)) {
            grammar_tree_push(g->t, &l, grammar_tree_literal(g->t, bytes, n));
            n = 0;
        }
    }
    if (n > 0)
        grammar_tree_push(g->t, &l, grammar_tree_literal(g->t, bytes, n));
    if (!ok(g))
        return GRAMMAR_TREE_NONE;
    if (g->p == g->end)
        return fail(g, at, "a text in quotes has no end");
    g->p++;
    return grammar_tree_sequence(g->t, &l);
}

static uint32_t read_class(struct gbnf *g)
{
    struct grammar_tree_range r[MAX_RANGES];
    const char *at = g->p++;
    uint32_t n = 0;
    bool negated = peek(g) == '^';
    g->p += negated;
    while (ok(g) && g->p < g->end && *g->p != ']') {
        if (n == MAX_RANGES)
            return fail(g, at, "a class has too many characters");
        r[n].lo = r[n].hi = read_char(g);
        if (ok(g) && g->p + 1 < g->end && g->p[0] == '-' && g->p[1] != ']') {
            g->p++;
            r[n].hi = read_char(g);
            if (ok(g) && r[n].hi < r[n].lo)
                return fail(g, at, "a range of characters goes backwards");
        }
        n++;
    }
    if (!ok(g))
        return GRAMMAR_TREE_NONE;
    if (g->p == g->end)
        return fail(g, at, "a class has no closing ]");
    g->p++;
    return grammar_tree_class(g->t, r, n, negated);
}

static uint32_t read_count(struct gbnf *g)
{
    const char *at = g->p;
    uint32_t v = 0;
    while (g->p < g->end && ascii_is_digit(*g->p)) {
        v = 10 * v + (uint32_t)(*g->p++ - '0');
        if (v > GRAMMAR_TREE_MAX_COUNT)
            return fail(g, at, "a repetition count is too large");
    }
    return g->p == at ? fail(g, at, "a repetition needs a number") : v;
}

static uint32_t read_braces(struct gbnf *g, uint32_t node)
{
    const char *at = g->p++;
    uint32_t min = 0, max;
    skip_space(g, false);
    if (peek(g) != ',')
        min = read_count(g);
    skip_space(g, false);
    max = min;
    if (ok(g) && peek(g) == ',') {
        g->p++;
        skip_space(g, false);
        max = peek(g) == '}' ? GRAMMAR_TREE_UNBOUNDED : read_count(g);
        skip_space(g, false);
    }
    if (!ok(g))
        return GRAMMAR_TREE_NONE;
    if (peek(g) != '}')
        return fail(g, at, "a repetition needs the form {m}, {m,} or {m,n}");
    g->p++;
    if (max < min)
        return fail(g, at, "a repetition's largest count is below its smallest");
    return grammar_tree_repeat(g->t, node, min, max);
}

static uint32_t read_either(struct gbnf *g, bool nested);

static uint32_t read_group(struct gbnf *g)
{
    const char *at = g->p++;
    if (++g->depth > MAX_DEPTH)
        return fail(g, at, "groups are nested too deeply");
    skip_space(g, true);
    uint32_t node = read_either(g, true);
    g->depth--;
    if (ok(g) && peek(g) != ')')
        return fail(g, at, "a group has no closing )");
    g->p++;
    return node;
}

/* NONE without an error: no item starts here. */
static uint32_t read_item(struct gbnf *g, bool nested)
{
    const char c = peek(g);
    if (c == '"')
        return read_literal(g);
    if (c == '[')
        return read_class(g);
    if (c == '(')
        return read_group(g);
    if (c == '.') {
        g->p++;
        return grammar_tree_class(g->t, NULL, 0, true);
    }
    if (is_word(c)) {
        const char *name, *at = g->p;
        size_t n = read_name(g, &name);
        if (!nested) { /* the next rule may begin here */
            const char *behind = g->p;
            skip_space(g, false);
            if (g->end - g->p >= 3 && memcmp(g->p, "::=", 3) == 0)
                return fail(g, at, "a rule must begin on a line of its own");
            g->p = behind;
        }
        return grammar_tree_call(g->t, rule_of(g, name, n));
    }
    if (c == '<')
        return fail(g, g->p, "tokens in angle brackets are not supported: write their text");
    return GRAMMAR_TREE_NONE;
}

static uint32_t read_sequence(struct gbnf *g, bool nested)
{
    struct grammar_tree_list l = {0};
    while (ok(g)) {
        uint32_t node = read_item(g, nested);
        if (node == GRAMMAR_TREE_NONE)
            break;
        skip_space(g, false);
        for (bool more = true; more && ok(g);) {
            char c = peek(g);
            more = c == '*' || c == '+' || c == '?' || c == '{';
            if (c == '{')
                node = read_braces(g, node);
            else if (more)
                node = grammar_tree_repeat(g->t, node, c == '+',
                                           c == '?' ? 1 : GRAMMAR_TREE_UNBOUNDED);
            g->p += more && c != '{';
            skip_space(g, nested);
        }
        grammar_tree_push(g->t, &l, node);
    }
    return ok(g) ? grammar_tree_sequence(g->t, &l) : GRAMMAR_TREE_NONE;
}

static uint32_t read_either(struct gbnf *g, bool nested)
{
    struct grammar_tree_list l = {0};
    grammar_tree_push(g->t, &l, read_sequence(g, nested));
    while (ok(g) && peek(g) == '|') {
        g->p++;
        skip_space(g, true);
        grammar_tree_push(g->t, &l, read_sequence(g, nested));
    }
    return ok(g) ? grammar_tree_either(g->t, &l) : GRAMMAR_TREE_NONE;
}

static void read_rule(struct gbnf *g)
{
    const char *name, *at = g->p;
    size_t n = read_name(g, &name);
    if (n == 0) {
        fail(g, at, "expected the name of a rule");
        return;
    }
    skip_space(g, false);
    if (g->end - g->p < 3 || memcmp(g->p, "::=", 3) != 0) {
        fail(g, g->p, "expected ::= behind the name of a rule");
        return;
    }
    g->p += 3;
    uint32_t rule = rule_of(g, name, n);
    if (ok(g) && g->t->rules[rule].node != GRAMMAR_TREE_NONE) {
        fail(g, at, "the rule is defined twice");
        return;
    }
    skip_space(g, true);
    uint32_t node = read_either(g, false);
    grammar_tree_define(g->t, rule, node);
    if (ok(g) && g->p < g->end && *g->p != '\n')
        fail(g, g->p, "expected |, the end of the line or another part of the rule");
}

static void check_defined(struct gbnf *g, uint32_t *root)
{
    struct grammar_tree *t = g->t;
    if (!strmap_get(&g->names, "root", 4, root) || t->rules[*root].node == GRAMMAR_TREE_NONE) {
        grammar_tree_fail(t, SHOAL_EINVAL, "the grammar has no rule named root");
        return;
    }
    for (uint32_t i = 0; i < t->n_rules; i++)
        if (t->rules[i].node == GRAMMAR_TREE_NONE)
            grammar_tree_fail(t, SHOAL_EINVAL, "the grammar uses a rule that is not defined: %s",
                              t->rules[i].name ? t->rules[i].name : "?");
}

uint32_t grammar_gbnf_read(struct grammar_tree *t, const char *p, size_t n)
{
    struct gbnf g = {.t = t, .start = p, .p = p, .end = p + n};
    uint32_t root = 0;
    if (strmap_init(&g.names, 16) < 0)
        return grammar_tree_fail(t, SHOAL_ENOMEM, "out of memory for a grammar");
    for (skip_space(&g, true); g.p < g.end && ok(&g); skip_space(&g, true))
        read_rule(&g);
    if (ok(&g))
        check_defined(&g, &root);
    strmap_fini(&g.names);
    return root;
}
