/* jinja_lex.c - see jinja_lex.h. */
#include "text/jinja/jinja_lex.h"

#include <stdbool.h>

#include "base/mem.h"
#include "base/arena.h"

/* The source while it is read.  White space control works by deleting bytes before any token is
 * made, so each byte left remembers where it stood. */
struct lexer {
    struct arena *arena;
    struct err *e;
    const char *src; /* as given, for line and column */
    size_t n_src;
    char *text; /* what is left of it */
    uint32_t *from;
    size_t n, at;
    struct jinja_token *tokens;
    size_t n_tokens, cap_tokens;
    long brace_depth; /* {...} open inside the current expression: "}}" closes two of them */
    size_t located;   /* line and col belong to this offset of src */
    uint32_t line, col;
};

static const struct {
    char text[3];
    enum jinja_token_type type;
    enum jinja_op op;
} symbols[] = {
    /* the longer ones first where one begins another */
    {"{%", JINJA_TOKEN_OPEN_STATEMENT, JINJA_OP_NONE},
    {"%}", JINJA_TOKEN_CLOSE_STATEMENT, JINJA_OP_NONE},
    {"{{", JINJA_TOKEN_OPEN_EXPRESSION, JINJA_OP_NONE},
    {"}}", JINJA_TOKEN_CLOSE_EXPRESSION, JINJA_OP_NONE},
    {"(", JINJA_TOKEN_OPEN_PAREN, JINJA_OP_NONE},
    {")", JINJA_TOKEN_CLOSE_PAREN, JINJA_OP_NONE},
    {"{", JINJA_TOKEN_OPEN_BRACE, JINJA_OP_NONE},
    {"}", JINJA_TOKEN_CLOSE_BRACE, JINJA_OP_NONE},
    {"[", JINJA_TOKEN_OPEN_BRACKET, JINJA_OP_NONE},
    {"]", JINJA_TOKEN_CLOSE_BRACKET, JINJA_OP_NONE},
    {",", JINJA_TOKEN_COMMA, JINJA_OP_NONE},
    {".", JINJA_TOKEN_DOT, JINJA_OP_NONE},
    {":", JINJA_TOKEN_COLON, JINJA_OP_NONE},
    {"|", JINJA_TOKEN_PIPE, JINJA_OP_NONE},
    {"<=", JINJA_TOKEN_COMPARE, JINJA_OP_LE},
    {">=", JINJA_TOKEN_COMPARE, JINJA_OP_GE},
    {"==", JINJA_TOKEN_COMPARE, JINJA_OP_EQ},
    {"!=", JINJA_TOKEN_COMPARE, JINJA_OP_NE},
    {"<", JINJA_TOKEN_COMPARE, JINJA_OP_LT},
    {">", JINJA_TOKEN_COMPARE, JINJA_OP_GT},
    {"+", JINJA_TOKEN_ADD, JINJA_OP_ADD},
    {"-", JINJA_TOKEN_ADD, JINJA_OP_SUB},
    {"~", JINJA_TOKEN_ADD, JINJA_OP_CONCAT},
    {"**", JINJA_TOKEN_POW, JINJA_OP_POW},
    {"*", JINJA_TOKEN_MUL, JINJA_OP_MUL},
    {"//", JINJA_TOKEN_MUL, JINJA_OP_FLOORDIV},
    {"/", JINJA_TOKEN_MUL, JINJA_OP_DIV},
    {"%", JINJA_TOKEN_MUL, JINJA_OP_MOD},
    {"=", JINJA_TOKEN_EQUALS, JINJA_OP_NONE},
};

const char *jinja_op_text(enum jinja_op op)
{
    static const char *const names[] = {
        [JINJA_OP_NONE] = "?",      [JINJA_OP_ADD] = "+",         [JINJA_OP_SUB] = "-",
        [JINJA_OP_CONCAT] = "~",    [JINJA_OP_MUL] = "*",         [JINJA_OP_DIV] = "/",
        [JINJA_OP_FLOORDIV] = "//", [JINJA_OP_MOD] = "%",         [JINJA_OP_POW] = "**",
        [JINJA_OP_LT] = "<",        [JINJA_OP_GT] = ">",          [JINJA_OP_LE] = "<=",
        [JINJA_OP_GE] = ">=",       [JINJA_OP_EQ] = "==",         [JINJA_OP_NE] = "!=",
        [JINJA_OP_IN] = "in",       [JINJA_OP_NOT_IN] = "not in", [JINJA_OP_AND] = "and",
        [JINJA_OP_OR] = "or",       [JINJA_OP_NOT] = "not",
    };
    return names[op];
}

/* Line and column of an offset of src; offsets mostly come in rising order. */
static void locate(struct lexer *x, size_t offset)
{
    if (offset < x->located) {
        x->located = 0;
        x->line = x->col = 1;
    }
    for (; x->located < offset; x->located++) {
        char c = x->src[x->located];
        if (c == '\n') {
            x->line++;
            x->col = 1;
        } else if (((uint8_t)c & 0xc0) != 0x80) {
            x->col++;
        }
    }
}

static size_t origin(const struct lexer *x, size_t at)
{
    return at < x->n ? x->from[at] : x->n_src;
}

static int fail(struct lexer *x, size_t at, const char *what)
{
    locate(x, origin(x, at));
    return err_set(x->e, SHOAL_EFORMAT, "line %u, column %u: %s", x->line, x->col, what);
}

static int no_memory(struct lexer *x)
{
    return err_set(x->e, x->arena->rc ? x->arena->rc : SHOAL_ENOMEM,
                   "out of memory for the template");
}

static bool looking_at(const struct lexer *x, const char *what)
{
    size_t n = strlen(what);
    return x->n - x->at >= n && memcmp(x->text + x->at, what, n) == 0;
}

/* ---- deleting white space ------------------------------------------------------------------- */

static void keep(struct lexer *x, size_t *to, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++, (*to)++) {
        x->text[*to] = x->text[i];
        x->from[*to] = x->from[i];
    }
}

/* Bytes of the line end at i, as the reference's multi-line "^" sees line ends. */
static size_t line_end_at(const struct lexer *x, size_t i)
{
    const uint8_t *p = (const uint8_t *)x->text + i;
    if (p[0] == '\n' || p[0] == '\r')
        return 1;
    if (x->n - i >= 3 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9))
        return 3;
    return 0;
}

/* Removes blanks between the start of a line and a block tag or comment. */
static void strip_before_blocks(struct lexer *x)
{
    size_t to = 0;
    for (size_t i = 0; i < x->n;) { /* i is at the start of a line */
        size_t blank = i;
        while (blank < x->n && (x->text[blank] == ' ' || x->text[blank] == '\t'))
            blank++;
        if (x->n - blank >= 2 && x->text[blank] == '{' && strchr("#%-", x->text[blank + 1]) &&
            x->text[blank + 1])
            i = blank;
        size_t end = i, len = 0;
        while (end < x->n && (len = line_end_at(x, end)) == 0)
            end++;
        end += end < x->n ? len : 0;
        keep(x, &to, i, end);
        i = end;
    }
    x->n = to;
}

/* Removes the newline right after a block tag or comment. */
static void trim_after_blocks(struct lexer *x)
{
    size_t to = 0;
    for (size_t i = 0; i < x->n; i++) {
        char before = to >= 2 ? x->text[to - 2] : '\0';
        if (x->text[i] == '\n' && to >= 2 && x->from[to - 1] + 1 == x->from[i] &&
            x->text[to - 1] == '}' && (before == '#' || before == '%' || before == '-'))
            continue;
        keep(x, &to, i, i + 1);
    }
    x->n = to;
}

/* End of the {% generation %} or {% endgeneration %} tag at i, or 0. */
static size_t generation_tag(const struct lexer *x, size_t i, bool *strip_left, bool *strip_right)
{
    size_t n = x->n;
    if (n - i < 2 || memcmp(x->text + i, "{%", 2) != 0)
        return 0;
    i += 2;
    *strip_left = i < n && x->text[i] == '-';
    i += *strip_left;
    i += jinja_text_skip_space(x->text + i, n - i);
    if (n - i >= 3 && memcmp(x->text + i, "end", 3) == 0)
        i += 3;
    if (n - i < 10 || memcmp(x->text + i, "generation", 10) != 0)
        return 0;
    i += 10;
    i += jinja_text_skip_space(x->text + i, n - i);
    *strip_right = i < n && x->text[i] == '-';
    i += *strip_right;
    return n - i >= 2 && memcmp(x->text + i, "%}", 2) == 0 ? i + 2 : 0;
}

static void drop_generation_tags(struct lexer *x)
{
    size_t to = 0, fixed = 0; /* before `fixed`, nothing may be stripped any more */
    for (size_t i = 0; i < x->n;) {
        bool left = false, right = false;
        size_t end = x->text[i] == '{' ? generation_tag(x, i, &left, &right) : 0;
        if (!end) {
            keep(x, &to, i, i + 1);
            i++;
            continue;
        }
        if (left) {
            struct jinja_str before = {x->text + fixed, to - fixed};
            to = fixed + jinja_text_trim(before, false, true).n;
        }
        size_t space = jinja_text_skip_space(x->text + end, x->n - end);
        if (!right)
            keep(x, &to, end, end + space);
        i = end + space;
        fixed = to;
    }
    x->n = to;
}

/* ---- tokens --------------------------------------------------------------------------------- */

static int push(struct lexer *x, enum jinja_token_type type, enum jinja_op op, size_t at,
                struct jinja_str text)
{
    if (x->n_tokens == x->cap_tokens) {
        size_t cap = x->cap_tokens ? x->cap_tokens * 2 : 256, bytes;
        struct jinja_token *p =
            mem_mul(&bytes, cap, sizeof(*p)) ? mem_realloc(x->tokens, bytes) : NULL;
        if (!p)
            return no_memory(x);
        x->tokens = p;
        x->cap_tokens = cap;
    }
    locate(x, origin(x, at));
    x->tokens[x->n_tokens++] = (struct jinja_token){type, op, x->line, x->col, text};
    return 0;
}

static enum jinja_token_type last_type(const struct lexer *x)
{
    return x->n_tokens ? x->tokens[x->n_tokens - 1].type : JINJA_TOKEN_END;
}

/* {%- and the like remove the white space before them. */
static void strip_last_text(struct lexer *x)
{
    if (last_type(x) != JINJA_TOKEN_TEXT)
        return;
    struct jinja_token *t = &x->tokens[x->n_tokens - 1];
    t->text = jinja_text_trim(t->text, false, true);
    if (t->text.n == 0)
        x->n_tokens--;
}

static void skip_space(struct lexer *x)
{
    x->at += jinja_text_skip_space(x->text + x->at, x->n - x->at);
}

static int lex_text(struct lexer *x)
{
    size_t start = x->at;
    while (x->at < x->n &&
           !(x->text[x->at] == '{' && x->at + 1 < x->n &&
             (x->text[x->at + 1] == '%' || x->text[x->at + 1] == '{' || x->text[x->at + 1] == '#')))
        x->at++;
    if (x->at == start)
        return 0;
    return push(x, JINJA_TOKEN_TEXT, JINJA_OP_NONE, start,
                (struct jinja_str){x->text + start, x->at - start});
}

static int lex_comment(struct lexer *x)
{
    size_t start = x->at;
    x->at += 2;
    bool strip_before = x->at < x->n && x->text[x->at] == '-';
    x->at += strip_before;
    size_t body = x->at;
    while (!looking_at(x, "#}")) {
        if (x->at + 2 >= x->n)
            return fail(x, start, "comment without #}");
        x->at++;
    }
    bool strip_after = x->at > body && x->text[x->at - 1] == '-';
    if (strip_before)
        strip_last_text(x);
    int rc = push(x, JINJA_TOKEN_COMMENT, JINJA_OP_NONE, start, JINJA_STR(""));
    x->at += 2;
    if (strip_after)
        skip_space(x);
    return rc;
}

static bool is_digit(const struct lexer *x, size_t at)
{
    return at < x->n && x->text[at] >= '0' && x->text[at] <= '9';
}

static bool is_word(const struct lexer *x, size_t at)
{
    char c = at < x->n ? x->text[at] : ' ';
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(x, at);
}

/* Digits, and a fraction where one may follow; the sign, if any, stands at start. */
static int lex_number(struct lexer *x, size_t start, bool fraction)
{
    while (is_digit(x, x->at))
        x->at++;
    if (fraction && x->at < x->n && x->text[x->at] == '.' && is_digit(x, x->at + 1)) {
        x->at++;
        while (is_digit(x, x->at))
            x->at++;
    }
    if (x->at >= x->n)
        return fail(x, x->at, "unexpected end of the template");
    return push(x, JINJA_TOKEN_NUMBER, JINJA_OP_NONE, start,
                (struct jinja_str){x->text + start, x->at - start});
}

static int lex_string(struct lexer *x)
{
    static const char escapes[] = "n\nt\tr\rb\bf\fv\v''\"\"\\\\";
    size_t start = x->at;
    char quote = x->text[x->at++];
    size_t end = x->at;
    while (end < x->n && x->text[end] != quote)
        end += x->text[end] == '\\' ? 2 : 1;
    if (end >= x->n)
        return fail(x, start, "string without its closing quote");
    char *to = arena_bytes(x->arena, end - x->at), *p = to;
    if (!to)
        return no_memory(x);
    while (x->at < end) {
        char c = x->text[x->at++];
        if (c == '\\') {
            const char *found = NULL;
            for (size_t i = 0; i + 1 < sizeof(escapes); i += 2)
                if (escapes[i] == x->text[x->at])
                    found = &escapes[i + 1];
            if (!found)
                return fail(x, x->at - 1, "unknown escape in a string");
            c = *found;
            x->at++;
        }
        *p++ = c;
    }
    x->at++;
    return push(x, JINJA_TOKEN_STRING, JINJA_OP_NONE, start,
                (struct jinja_str){to, (size_t)(p - to)});
}

/* + or - without an operand before it is a sign, and part of a number that follows. */
static int lex_sign(struct lexer *x, bool *done)
{
    switch (last_type(x)) {
    case JINJA_TOKEN_NAME:
    case JINJA_TOKEN_NUMBER:
    case JINJA_TOKEN_STRING:
    case JINJA_TOKEN_CLOSE_PAREN:
    case JINJA_TOKEN_CLOSE_BRACKET:
        *done = false;
        return 0;
    default:
        break;
    }
    *done = true;
    size_t start = x->at++;
    if (is_digit(x, x->at))
        return lex_number(x, start, true);
    return push(x, JINJA_TOKEN_SIGN, x->text[start] == '-' ? JINJA_OP_SUB : JINJA_OP_ADD, start,
                (struct jinja_str){x->text + start, 1});
}

static int lex_symbol(struct lexer *x, bool *done)
{
    *done = true;
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        enum jinja_token_type type = symbols[i].type;
        if ((type == JINJA_TOKEN_CLOSE_EXPRESSION && x->brace_depth > 0) ||
            !looking_at(x, symbols[i].text))
            continue;
        if (type == JINJA_TOKEN_OPEN_EXPRESSION)
            x->brace_depth = 0;
        else if (type == JINJA_TOKEN_OPEN_BRACE)
            x->brace_depth++;
        else if (type == JINJA_TOKEN_CLOSE_BRACE)
            x->brace_depth--;
        size_t start = x->at, n = strlen(symbols[i].text);
        x->at += n;
        return push(x, type, symbols[i].op, start, (struct jinja_str){x->text + start, n});
    }
    *done = false;
    return 0;
}

/* One token inside {% %} or {{ }}, after white space. */
static int lex_inside(struct lexer *x)
{
    bool done;
    char c = x->text[x->at];
    if (looking_at(x, "-%}") || looking_at(x, "-}}")) {
        enum jinja_token_type type =
            x->text[x->at + 1] == '%' ? JINJA_TOKEN_CLOSE_STATEMENT : JINJA_TOKEN_CLOSE_EXPRESSION;
        size_t start = x->at;
        x->at += 3;
        skip_space(x);
        return push(x, type, JINJA_OP_NONE, start, (struct jinja_str){x->text + start, 3});
    }
    if (c == '-' || c == '+') {
        int rc = lex_sign(x, &done);
        if (rc < 0 || done)
            return rc;
    }
    int rc = lex_symbol(x, &done);
    if (rc < 0 || done)
        return rc;
    if (c == '\'' || c == '"')
        return lex_string(x);
    if (is_digit(x, x->at))
        return lex_number(x, x->at, last_type(x) != JINJA_TOKEN_DOT);
    if (is_word(x, x->at)) {
        size_t start = x->at;
        while (is_word(x, x->at))
            x->at++;
        if (x->at >= x->n)
            return fail(x, x->at, "unexpected end of the template");
        return push(x, JINJA_TOKEN_NAME, JINJA_OP_NONE, start,
                    (struct jinja_str){x->text + start, x->at - start});
    }
    return fail(x, x->at, "unexpected character");
}

static int lex_next(struct lexer *x)
{
    enum jinja_token_type last = last_type(x);
    if (last == JINJA_TOKEN_END || last == JINJA_TOKEN_CLOSE_STATEMENT ||
        last == JINJA_TOKEN_CLOSE_EXPRESSION || last == JINJA_TOKEN_COMMENT) {
        size_t before = x->at;
        int rc = lex_text(x);
        if (rc < 0 || x->at > before)
            return rc;
    }
    if (looking_at(x, "{#"))
        return lex_comment(x);
    if (looking_at(x, "{%-") || looking_at(x, "{{-")) {
        bool statement = x->text[x->at + 1] == '%';
        strip_last_text(x);
        if (!statement)
            x->brace_depth = 0;
        x->at += 3;
        return push(x, statement ? JINJA_TOKEN_OPEN_STATEMENT : JINJA_TOKEN_OPEN_EXPRESSION,
                    JINJA_OP_NONE, x->at - 3, (struct jinja_str){x->text + x->at - 3, 3});
    }
    skip_space(x);
    if (x->at >= x->n)
        return fail(x, x->at, "unexpected end of the template");
    return lex_inside(x);
}

static int prepare(struct lexer *x)
{
    /* Deleting happens in a copy in the arena: text tokens point into it. */
    x->text = arena_copy(x->arena, x->src, x->n_src);
    x->from = mem_zalloc_n(x->n_src + 1, sizeof(*x->from));
    if (!x->text || !x->from)
        return no_memory(x);
    for (size_t i = 0; i < x->n_src; i++)
        x->from[i] = (uint32_t)i;
    x->n = x->n_src;
    if (x->n && x->text[x->n - 1] == '\n')
        x->n--;
    strip_before_blocks(x);
    trim_after_blocks(x);
    drop_generation_tags(x);
    return 0;
}

int jinja_lex(struct jinja_tokens *out, struct arena *a, const char *src, size_t n, struct err *e)
{
    *out = (struct jinja_tokens){0};
    struct lexer x = {.arena = a, .e = e, .src = src, .n_src = n, .line = 1, .col = 1};
    int rc = prepare(&x);
    while (rc == 0 && x.at < x.n)
        rc = lex_next(&x);
    if (rc == 0)
        rc = push(&x, JINJA_TOKEN_END, JINJA_OP_NONE, x.n, JINJA_STR(""));
    mem_free(x.from);
    if (rc < 0) {
        mem_free(x.tokens);
        return rc;
    }
    out->at = x.tokens;
    out->n = x.n_tokens - 1;
    return 0;
}

void jinja_lex_fini(struct jinja_tokens *t)
{
    mem_free(t->at);
    *t = (struct jinja_tokens){0};
}
