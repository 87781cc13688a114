/* graph_expr.c - see graph_expr.h: from text to a tree. */
#include "pipeline/graph/graph_expr.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/ascii.h"
#include "base/decimal.h"
#include "pipeline/graph/graph_expr_int.h"

#define MAX_DEPTH 32u
#define MAX_ARGS 8u     /* of a function */
#define MAX_PIECES 256u /* of a template */
#define MAX_INDEX 1000000u
#define MAX_NODES 1024u /* so that walking the tree cannot exhaust a stack */

static const struct {
    const char *name, *usage;
    uint32_t min, max;
} functions[GRAPH_FN_N] = {
    [GRAPH_FN_LEN] = {"len", "len(x)", 1, 1},
    [GRAPH_FN_LOWER] = {"lower", "lower(text)", 1, 1},
    [GRAPH_FN_UPPER] = {"upper", "upper(text)", 1, 1},
    [GRAPH_FN_TRIM] = {"trim", "trim(text)", 1, 1},
    [GRAPH_FN_CONTAINS] = {"contains", "contains(x, text)", 2, 2},
    [GRAPH_FN_STARTS] = {"starts", "starts(text, text)", 2, 2},
    [GRAPH_FN_DEFAULT] = {"default", "default(x, y)", 2, 2},
    [GRAPH_FN_JOIN] = {"join", "join(list, text)", 2, 2},
    [GRAPH_FN_ROUND] = {"round", "round(number, digits)", 2, 2},
    [GRAPH_FN_NUMBER] = {"number", "number(text)", 1, 1},
    [GRAPH_FN_TEXT] = {"text", "text(x)", 1, 1},
};

struct parser {
    struct arena *arena;
    const char *text;
    size_t n, at;
    uint32_t depth, n_nodes;
    struct graph_expr_error *e;
    bool failed;
};

static struct graph_expr *fail(struct parser *p, size_t at, const char *fmt, ...)
    SHOAL_PRINTF(3, 4);

static struct graph_expr *fail(struct parser *p, size_t at, const char *fmt, ...)
{
    va_list ap;
    if (p->failed)
        return NULL;
    p->failed = true;
    p->e->at = at;
    va_start(ap, fmt);
    vsnprintf(p->e->msg, sizeof(p->e->msg), fmt, ap);
    va_end(ap);
    return NULL;
}

static struct graph_expr *node(struct parser *p, enum graph_op op, size_t at)
{
    if (++p->n_nodes > MAX_NODES)
        return fail(p, at, "the expression is too long: more than %u parts", MAX_NODES);
    struct graph_expr *x = arena_zalloc(p->arena, sizeof(*x));
    if (!x)
        return fail(p, at, "out of memory");
    x->op = op;
    x->at = at;
    return x;
}

/* ---- characters ---- */

static void skip_blanks(struct parser *p)
{
    while (p->at < p->n && strchr(" \t\r\n", p->text[p->at]) && p->text[p->at])
        p->at++;
}

static bool is_letter(char c)
{
    return ascii_is_letter(c) || c == '_';
}

static bool take(struct parser *p, const char *word)
{
    size_t n = strlen(word);
    skip_blanks(p);
    if (p->n - p->at < n || memcmp(p->text + p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

/* Bytes of a name: letters, digits, "_" and "-" between them. */
static size_t name_span(const struct parser *p)
{
    size_t n = 0;
    while (p->at + n < p->n) {
        char c = p->text[p->at + n];
        bool hyphen = c == '-' && n > 0 && p->at + n + 1 < p->n &&
                      (is_letter(p->text[p->at + n + 1]) || ascii_is_digit(p->text[p->at + n + 1]));
        if (!is_letter(c) && !(n > 0 && ascii_is_digit(c)) && !hyphen)
            break;
        n++;
    }
    return n;
}

/* ---- operands ---- */

static struct graph_expr *parse_or(struct parser *p);

static struct graph_expr *parse_text(struct parser *p)
{
    size_t at = p->at, n = 0;
    char quote = p->text[p->at++];
    char *out = arena_bytes(p->arena, p->n - p->at + 1);
    if (!out)
        return fail(p, at, "out of memory");
    while (p->at < p->n && p->text[p->at] != quote) {
        char c = p->text[p->at++];
        if (c == '\\' && p->at < p->n) {
            char k = p->text[p->at++];
            const char *known = strchr("nt\\\"'", k);
            if (!known || !k)
                return fail(p, p->at - 2, "unknown escape: \\n, \\t, \\\\, \\\" and \\' are known");
            c = k == 'n' ? '\n' : k == 't' ? '\t' : k;
        }
        out[n++] = c;
    }
    if (p->at == p->n)
        return fail(p, at, "the text has no closing %c", quote);
    p->at++;
    out[n] = '\0';
    struct graph_expr *x = node(p, GRAPH_OP_CONST, at);
    if (x) {
        x->value = value_text(out, n);
        x->type = &graph_type_text;
    }
    return x;
}

static struct graph_expr *parse_number(struct parser *p)
{
    size_t at = p->at, n = decimal_span(p->text + at, p->n - at);
    double v = n > 0 ? decimal_read(p->text + at, n) : NAN;
    if (!isfinite(v))
        return fail(p, at, "not a number");
    p->at += n;
    if (p->at < p->n && is_letter(p->text[p->at]))
        return fail(p, p->at, "a name must not begin with a digit");
    struct graph_expr *x = node(p, GRAPH_OP_CONST, at);
    if (x) {
        x->value = (struct value){.kind = VALUE_NUMBER, .number = v};
        x->type = &graph_type_number;
    }
    return x;
}

static struct graph_expr *parse_call(struct parser *p, size_t at, const char *name, size_t n)
{
    struct graph_expr *list[MAX_ARGS], *x = node(p, GRAPH_OP_CALL, at);
    uint32_t fn = 0, n_args = 0;
    while (fn < GRAPH_FN_N &&
           (strlen(functions[fn].name) != n || memcmp(functions[fn].name, name, n) != 0))
        fn++;
    if (fn == GRAPH_FN_N)
        return fail(p, at,
                    "there is no function '%.*s'. Available: len, lower, upper, trim, contains, "
                    "starts, default, join, round, number, text",
                    n < 40 ? (int)n : 40, name);
    while (!take(p, ")")) {
        if (n_args == MAX_ARGS || (n_args > 0 && !take(p, ",")))
            return fail(p, p->at, "expected ',' or ')'");
        list[n_args] = parse_or(p);
        if (!list[n_args++])
            return NULL;
    }
    if (n_args < functions[fn].min || n_args > functions[fn].max)
        return fail(p, at, "%s takes %u values: %s", functions[fn].name, functions[fn].min,
                    functions[fn].usage);
    if (!x)
        return NULL;
    x->fn = (enum graph_function)fn;
    x->n_args = n_args;
    x->args = arena_zalloc_n(p->arena, n_args, sizeof(struct graph_expr *));
    if (!x->args)
        return fail(p, at, "out of memory");
    memcpy(x->args, list, n_args * sizeof(struct graph_expr *));
    return x;
}

static struct graph_expr *parse_name(struct parser *p)
{
    size_t at = p->at, n = name_span(p);
    const char *name = p->text + at;
    struct graph_expr *x;
    p->at += n;
    if ((n == 4 && memcmp(name, "true", 4) == 0) || (n == 5 && memcmp(name, "false", 5) == 0)) {
        x = node(p, GRAPH_OP_CONST, at);
        if (x) {
            x->value = value_bool(n == 4);
            x->type = &graph_type_bool;
        }
        return x;
    }
    if (p->at < p->n && p->text[p->at] == '(') {
        p->at++;
        return parse_call(p, at, name, n);
    }
    x = node(p, GRAPH_OP_NAME, at);
    if (x) {
        x->name = name;
        x->name_bytes = n;
    }
    return x;
}

/* .field and [0] after a value */
static struct graph_expr *parse_path(struct parser *p, struct graph_expr *x)
{
    uint32_t n_parts = 0;
    while (x && p->at < p->n && (p->text[p->at] == '.' || p->text[p->at] == '[')) {
        size_t at = p->at;
        bool field = p->text[p->at++] == '.';
        struct graph_expr *y = node(p, field ? GRAPH_OP_FIELD : GRAPH_OP_INDEX, at + 1);
        if (!y)
            return NULL;
        if (++n_parts > MAX_DEPTH)
            return fail(p, at, "the path is too long");
        y->a = x;
        if (field) {
            y->name = p->text + p->at;
            y->name_bytes = name_span(p);
            if (y->name_bytes == 0)
                return fail(p, p->at, "expected the name of a field after '.'");
            p->at += y->name_bytes;
        } else {
            size_t from = p->at;
            while (p->at < p->n && ascii_is_digit(p->text[p->at]) && y->index <= MAX_INDEX)
                y->index = y->index * 10 + (size_t)(p->text[p->at++] - '0');
            if (p->at == from || y->index > MAX_INDEX || !take(p, "]"))
                return fail(p, from, "expected the number of an item, such as [0]");
        }
        x = y;
    }
    return x;
}

static struct graph_expr *parse_closed(struct parser *p, size_t open, char close)
{
    struct graph_expr *x = parse_or(p);
    skip_blanks(p);
    if (!x)
        return NULL;
    if (p->at == p->n || p->text[p->at] != close)
        return fail(p, p->at == p->n ? open : p->at,
                    p->at == p->n ? "this has no closing '%c'" : "expected an operator or '%c'",
                    close);
    p->at++;
    return x;
}

static struct graph_expr *parse_primary(struct parser *p)
{
    skip_blanks(p);
    if (p->at == p->n)
        return fail(p, p->at, "the expression ends where a value is expected");
    size_t at = p->at;
    char c = p->text[at];
    if (c == '"' || c == '\'')
        return parse_path(p, parse_text(p));
    if (ascii_is_digit(c))
        return parse_number(p);
    if (take(p, "${"))
        return parse_path(p, parse_closed(p, at, '}'));
    if (take(p, "("))
        return parse_path(p, parse_closed(p, at, ')'));
    if (name_span(p) > 0)
        return parse_path(p, parse_name(p));
    return fail(p, at, "expected a value: a path such as input.text, a number, or a \"text\"");
}

static struct graph_expr *parse_unary(struct parser *p)
{
    skip_blanks(p);
    size_t at = p->at;
    bool is_not = at < p->n && p->text[at] == '!' && !(at + 1 < p->n && p->text[at + 1] == '=');
    bool minus = at < p->n && p->text[at] == '-';
    if (!is_not && !minus)
        return parse_primary(p);
    if (++p->depth > MAX_DEPTH)
        return fail(p, at, "the expression is nested too deeply");
    p->at++;
    struct graph_expr *x = node(p, is_not ? GRAPH_OP_NOT : GRAPH_OP_MINUS, at);
    if (x)
        x->a = parse_unary(p);
    p->depth--;
    return x && x->a ? x : NULL;
}

/* ---- operators, the weakest first ---- */

struct operator_word {
    const char *word;
    enum graph_op op;
};

/* [level]: the longer word first, where one begins with another. */
static const struct operator_word levels[][5] = {
    {{"||", GRAPH_OP_OR}},
    {{"&&", GRAPH_OP_AND}},
    {{"==", GRAPH_OP_EQ}, {"!=", GRAPH_OP_NE}},
    {{"<=", GRAPH_OP_LE}, {">=", GRAPH_OP_GE}, {"<", GRAPH_OP_LT}, {">", GRAPH_OP_GT}},
    {{"+", GRAPH_OP_ADD}, {"-", GRAPH_OP_SUB}},
    {{"*", GRAPH_OP_MUL}, {"/", GRAPH_OP_DIV}},
};
#define N_LEVELS (sizeof(levels) / sizeof(levels[0]))

static struct graph_expr *parse_level(struct parser *p, size_t level)
{
    struct graph_expr *x = level == N_LEVELS ? parse_unary(p) : parse_level(p, level + 1);
    uint32_t n_chained = 0;
    while (x && level < N_LEVELS) {
        const struct operator_word *w = levels[level];
        skip_blanks(p);
        size_t at = p->at;
        while (w->word && !take(p, w->word))
            w++;
        if (!w->word)
            break;
        if (++n_chained > MAX_PIECES)
            return fail(p, at, "the expression is too long");
        struct graph_expr *y = node(p, w->op, at);
        if (!y)
            return NULL;
        y->a = x;
        y->b = parse_level(p, level + 1);
        x = y->b ? y : NULL;
    }
    return x;
}

static struct graph_expr *parse_or(struct parser *p)
{
    if (p->depth + 1 > MAX_DEPTH)
        return fail(p, p->at, "the expression is nested too deeply");
    p->depth++;
    struct graph_expr *x = parse_level(p, 0);
    p->depth--;
    return x;
}

/* ---- templates ---- */

static struct graph_expr *literal(struct parser *p, size_t from)
{
    struct graph_expr *x = node(p, GRAPH_OP_CONST, from);
    char *out = arena_bytes(p->arena, p->at - from + 1);
    size_t n = 0;
    if (!x || !out)
        return fail(p, from, "out of memory");
    for (size_t i = from; i < p->at; i++) {
        if (p->text[i] == '$' && p->at - i > 2 && p->text[i + 1] == '$' && p->text[i + 2] == '{')
            continue; /* "$${" is "${" */
        out[n++] = p->text[i];
    }
    out[n] = '\0';
    x->value = value_text(out, n);
    x->type = &graph_type_text;
    return x;
}

/* Up to the next "${" that is not "$${". */
static void skip_literal(struct parser *p)
{
    while (p->at < p->n) {
        const char *c = p->text + p->at;
        size_t left = p->n - p->at;
        if (left >= 3 && c[0] == '$' && c[1] == '$' && c[2] == '{')
            p->at += 3;
        else if (left >= 2 && c[0] == '$' && c[1] == '{')
            return;
        else
            p->at++;
    }
}

static struct graph_expr *parse_template(struct parser *p)
{
    struct graph_expr *list[MAX_PIECES], *x;
    uint32_t n = 0;
    while (p->at < p->n) {
        size_t from = p->at;
        if (n == MAX_PIECES)
            return fail(p, from, "more than %u pieces", MAX_PIECES);
        skip_literal(p);
        if (p->at > from) {
            list[n] = literal(p, from);
        } else {
            p->at += 2;
            list[n] = parse_closed(p, from, '}');
            if (list[n])
                list[n]->inserted = true;
        }
        if (!list[n++])
            return NULL;
    }
    if (n == 1)
        return list[0];
    x = node(p, GRAPH_OP_CONCAT, 0);
    if (!x)
        return NULL;
    x->type = &graph_type_text;
    x->n_args = n;
    x->args = arena_zalloc_n(p->arena, n + 1u, sizeof(struct graph_expr *));
    if (!x->args)
        return fail(p, 0, "out of memory");
    memcpy(x->args, list, n * sizeof(struct graph_expr *));
    return x;
}

int graph_expr_parse(struct graph_expr **out, struct arena *a, const char *text, size_t n,
                     enum graph_expr_mode mode, struct graph_expr_error *e)
{
    struct parser p = {.arena = a, .n = n, .e = e};
    *out = NULL;
    *e = (struct graph_expr_error){0};
    if (n > GRAPH_EXPR_MAX_BYTES || memchr(text, '\0', n)) {
        (void)fail(&p, 0, "the expression is too long, or has a NUL");
        return SHOAL_EFORMAT;
    }
    p.text = n > 0 ? arena_copy(a, text, n) : ""; /* names point into it */
    struct graph_expr *x = NULL;
    if (!p.text) {
        (void)fail(&p, 0, "out of memory");
    } else if (mode == GRAPH_EXPR_TEMPLATE) {
        x = parse_template(&p);
    } else {
        x = parse_or(&p);
        skip_blanks(&p);
        if (x && p.at < n)
            x = fail(&p, p.at, "expected an operator, or the end of the expression");
    }
    *out = x;
    if (x)
        return 0;
    return a->rc < 0 ? a->rc : SHOAL_EFORMAT;
}

int graph_expr_names(const struct graph_expr *x,
                     int (*fn)(void *ctx, const char *name, size_t n, size_t at), void *ctx)
{
    int rc = 0;
    if (x->op == GRAPH_OP_NAME)
        rc = fn(ctx, x->name, x->name_bytes, x->at);
    if (rc == 0 && x->a)
        rc = graph_expr_names(x->a, fn, ctx);
    if (rc == 0 && x->b)
        rc = graph_expr_names(x->b, fn, ctx);
    for (uint32_t i = 0; rc == 0 && i < x->n_args; i++)
        rc = graph_expr_names(x->args[i], fn, ctx);
    return rc;
}

const struct graph_type *graph_expr_type(const struct graph_expr *x)
{
    return x->type;
}

uint32_t graph_expr_pieces(const struct graph_expr *x)
{
    return x->op == GRAPH_OP_CONCAT ? x->n_args : 1;
}

const struct graph_expr *graph_expr_piece(const struct graph_expr *x, uint32_t i)
{
    return x->op == GRAPH_OP_CONCAT ? x->args[i] : x;
}

bool graph_expr_is_field(const struct graph_expr *x, const char *name, size_t n, const char *field)
{
    return x->op == GRAPH_OP_FIELD && x->a->op == GRAPH_OP_NAME && x->a->name_bytes == n &&
           memcmp(x->a->name, name, n) == 0 && x->name_bytes == strlen(field) &&
           memcmp(x->name, field, x->name_bytes) == 0;
}
