/* jinja_lex.c - see jinja_lex.h. */
#include "text/jinja/parse/jinja_lex.h"

#include <stdbool.h>

#include "base/mem.h"
#include "base/arena.h"
#include "base/ascii.h"

enum { MAX_BRACKETS = 1000 };

struct lexer {
    struct arena *arena;
    struct err *e;
    const char *text; /* the source with every line end as \n, without the last one */
    size_t n, at;
    struct jinja_token *tokens;
    size_t n_tokens, cap_tokens;
    bool line_starting;          /* the last text ended with a newline */
    char brackets[MAX_BRACKETS]; /* the expected closing brackets */
    size_t n_brackets;
    size_t located; /* line and col belong to this offset */
    uint32_t line, col;
};

static const struct {
    char text[3];
    enum jinja_token_type type;
    enum jinja_op op;
} symbols[] = {
    /* longer ones first where one is a prefix of another */
    {"//", JINJA_TOKEN_MUL, JINJA_OP_FLOORDIV},     {"**", JINJA_TOKEN_POW, JINJA_OP_POW},
    {"==", JINJA_TOKEN_COMPARE, JINJA_OP_EQ},       {"!=", JINJA_TOKEN_COMPARE, JINJA_OP_NE},
    {">=", JINJA_TOKEN_COMPARE, JINJA_OP_GE},       {"<=", JINJA_TOKEN_COMPARE, JINJA_OP_LE},
    {"+", JINJA_TOKEN_ADD, JINJA_OP_ADD},           {"-", JINJA_TOKEN_ADD, JINJA_OP_SUB},
    {"/", JINJA_TOKEN_MUL, JINJA_OP_DIV},           {"*", JINJA_TOKEN_MUL, JINJA_OP_MUL},
    {"%", JINJA_TOKEN_MUL, JINJA_OP_MOD},           {"~", JINJA_TOKEN_TILDE, JINJA_OP_NONE},
    {"[", JINJA_TOKEN_OPEN_BRACKET, JINJA_OP_NONE}, {"]", JINJA_TOKEN_CLOSE_BRACKET, JINJA_OP_NONE},
    {"(", JINJA_TOKEN_OPEN_PAREN, JINJA_OP_NONE},   {")", JINJA_TOKEN_CLOSE_PAREN, JINJA_OP_NONE},
    {"{", JINJA_TOKEN_OPEN_BRACE, JINJA_OP_NONE},   {"}", JINJA_TOKEN_CLOSE_BRACE, JINJA_OP_NONE},
    {">", JINJA_TOKEN_COMPARE, JINJA_OP_GT},        {"<", JINJA_TOKEN_COMPARE, JINJA_OP_LT},
    {"=", JINJA_TOKEN_EQUALS, JINJA_OP_NONE},       {".", JINJA_TOKEN_DOT, JINJA_OP_NONE},
    {":", JINJA_TOKEN_COLON, JINJA_OP_NONE},        {"|", JINJA_TOKEN_PIPE, JINJA_OP_NONE},
    {",", JINJA_TOKEN_COMMA, JINJA_OP_NONE},        {";", JINJA_TOKEN_SEMICOLON, JINJA_OP_NONE},
};

const char *jinja_op_text(enum jinja_op op)
{
    static const char *const names[] = {
        [JINJA_OP_NONE] = "?",        [JINJA_OP_ADD] = "+",   [JINJA_OP_SUB] = "-",
        [JINJA_OP_MUL] = "*",         [JINJA_OP_DIV] = "/",   [JINJA_OP_FLOORDIV] = "//",
        [JINJA_OP_MOD] = "%",         [JINJA_OP_POW] = "**",  [JINJA_OP_LT] = "<",
        [JINJA_OP_GT] = ">",          [JINJA_OP_LE] = "<=",   [JINJA_OP_GE] = ">=",
        [JINJA_OP_EQ] = "==",         [JINJA_OP_NE] = "!=",   [JINJA_OP_IN] = "in",
        [JINJA_OP_NOT_IN] = "not in", [JINJA_OP_AND] = "and", [JINJA_OP_OR] = "or",
        [JINJA_OP_NOT] = "not",
    };
    return names[op];
}

/* Line and column of an offset; offsets mostly come in rising order. */
static void locate(struct lexer *x, size_t offset)
{
    if (offset < x->located) {
        x->located = 0;
        x->line = x->col = 1;
    }
    for (; x->located < offset; x->located++) {
        char c = x->text[x->located];
        if (c == '\n') {
            x->line++;
            x->col = 1;
        } else if (((uint8_t)c & 0xc0) != 0x80) {
            x->col++;
        }
    }
}

static int fail(struct lexer *x, size_t at, const char *what)
{
    locate(x, at < x->n ? at : x->n);
    return err_set(x->e, SHOAL_EFORMAT, "line %u, column %u: %s", x->line, x->col, what);
}

static int no_memory(struct lexer *x)
{
    return err_set(x->e, x->arena->rc ? x->arena->rc : SHOAL_ENOMEM,
                   "out of memory for the template");
}

static bool has_at(const struct lexer *x, size_t at, const char *what)
{
    size_t n = strlen(what);
    return at <= x->n && x->n - at >= n && memcmp(x->text + at, what, n) == 0;
}

static char byte_at(const struct lexer *x, size_t at)
{
    return at < x->n ? x->text[at] : '\0';
}

static size_t skip_space(const struct lexer *x, size_t at)
{
    return at + jinja_text_skip_space(x->text + at, x->n - at);
}

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
    locate(x, at);
    x->tokens[x->n_tokens++] = (struct jinja_token){type, op, x->line, x->col, text};
    return 0;
}

static int push_span(struct lexer *x, enum jinja_token_type type, enum jinja_op op, size_t start)
{
    return push(x, type, op, start, (struct jinja_str){x->text + start, x->at - start});
}

/* ---- text between tags ---------------------------------------------------------------------- */

/* Text from start to the tag at end, whose sign is '-', '+' or none; blanks before a statement or
 * comment go with it. */
static int push_text(struct lexer *x, size_t start, size_t end, char sign, bool expression)
{
    struct jinja_str s = {x->text + start, end - start};
    if (sign == '-') {
        s = jinja_text_strip(s, false, true, NULL);
    } else if (sign != '+' && !expression) {
        size_t line = s.n;
        while (line > 0 && s.p[line - 1] != '\n')
            line--;
        if ((line > 0 || x->line_starting) &&
            jinja_text_skip_space(s.p + line, s.n - line) == s.n - line)
            s.n = line;
    }
    return s.n ? push(x, JINJA_TOKEN_TEXT, JINJA_OP_NONE, start, s) : 0;
}

/* The end of `word` and of the tag after white space at `at`: %}, -%} with what follows, or with
 * `plus` +%} and %} with its newline. 0: not found. */
static size_t tag_end(const struct lexer *x, size_t at, bool plus)
{
    if (has_at(x, at, "-%}"))
        return skip_space(x, at + 3);
    if (plus && has_at(x, at, "+%}"))
        return at + 3;
    if (!has_at(x, at, "%}"))
        return 0;
    return at + 2 + (plus && byte_at(x, at + 2) == '\n');
}

/* End of the {% raw %} or {% endraw %} at `at`, or 0; *sign is the one after {%. */
static size_t raw_tag(const struct lexer *x, size_t at, const char *word, char *sign)
{
    if (!has_at(x, at, "{%"))
        return 0;
    at += 2;
    *sign = byte_at(x, at) == '-' || byte_at(x, at) == '+' ? x->text[at] : '\0';
    at = skip_space(x, at + (*sign != '\0'));
    if (!has_at(x, at, word))
        return 0;
    return tag_end(x, skip_space(x, at + strlen(word)), word[0] == 'e');
}

static int lex_raw(struct lexer *x, size_t start)
{
    for (size_t at = start; at < x->n; at++) {
        char sign;
        size_t end = x->text[at] == '{' ? raw_tag(x, at, "endraw", &sign) : 0;
        if (!end)
            continue;
        int rc = push_text(x, start, at, sign, false);
        x->at = end;
        x->line_starting = x->text[end - 1] == '\n';
        return rc;
    }
    return start < x->n ? fail(x, start, "raw block without {% endraw %}") : (x->at = x->n, 0);
}

static int lex_comment(struct lexer *x, size_t start)
{
    for (size_t at = start; at < x->n; at++) {
        if (has_at(x, at, "-#}")) {
            x->at = skip_space(x, at + 3);
        } else if (has_at(x, at, "+#}")) {
            x->at = at + 3;
        } else if (has_at(x, at, "#}")) {
            x->at = at + 2 + (byte_at(x, at + 2) == '\n');
        } else {
            continue;
        }
        x->line_starting = x->text[x->at - 1] == '\n';
        return 0;
    }
    if (start < x->n)
        return fail(x, start, "comment without #}");
    x->at = x->n; /* Jinja treats a {# at the end of the template as an empty comment */
    return 0;
}

/* Text up to the next tag, and the tag's beginning; *tag: '%', '{' or '\0' when none follows. */
static int lex_root(struct lexer *x, char *tag)
{
    size_t start = x->at, end = start;
    while (end < x->n && !(x->text[end] == '{' && end + 1 < x->n && x->text[end + 1] &&
                           strchr("%{#", x->text[end + 1])))
        end++;
    *tag = '\0';
    if (end == x->n) {
        x->at = end;
        return start < end ? push_span(x, JINJA_TOKEN_TEXT, JINJA_OP_NONE, start) : 0;
    }
    char sign, kind = x->text[end + 1];
    size_t raw = kind == '%' ? raw_tag(x, end, "raw", &sign) : 0;
    if (!raw)
        sign = byte_at(x, end + 2) == '-' || byte_at(x, end + 2) == '+' ? x->text[end + 2] : '\0';
    int rc = push_text(x, start, end, sign, kind == '{');
    x->line_starting = false;
    if (rc < 0)
        return rc;
    if (raw) {
        x->line_starting = x->text[raw - 1] == '\n';
        return lex_raw(x, raw);
    }
    x->at = end + 2 + (sign != '\0');
    if (kind == '#')
        return lex_comment(x, x->at);
    *tag = kind;
    return push(x, kind == '%' ? JINJA_TOKEN_OPEN_STATEMENT : JINJA_TOKEN_OPEN_EXPRESSION,
                JINJA_OP_NONE, end, (struct jinja_str){x->text + end, 2});
}

/* ---- inside a tag --------------------------------------------------------------------------- */

/* End of the digits at `at`, with single _ between them; `at` itself if there are none. */
static size_t digits_end(const struct lexer *x, size_t at)
{
    while (ascii_is_digit(byte_at(x, at)) ||
           (byte_at(x, at) == '_' && at > 0 && ascii_is_digit(x->text[at - 1]) &&
            ascii_is_digit(byte_at(x, at + 1))))
        at++;
    return at;
}

static bool in_base(char c, char base)
{
    if (base == 'b')
        return c == '0' || c == '1';
    if (base == 'o')
        return c >= '0' && c <= '7';
    return ascii_hex(c) >= 0;
}

static size_t integer_end(const struct lexer *x, size_t at)
{
    char base = (char)(byte_at(x, at + 1) | 32);
    size_t i = at + 2;
    if (x->text[at] != '0')
        return digits_end(x, at);
    if (base == 'b' || base == 'o' || base == 'x') {
        while (in_base(byte_at(x, i), base) ||
               (byte_at(x, i) == '_' && in_base(byte_at(x, i + 1), base)))
            i++;
        if (i > at + 2)
            return i;
    }
    for (i = at + 1; byte_at(x, i) == '0' || (byte_at(x, i) == '_' && byte_at(x, i + 1) == '0');)
        i++;
    return i;
}

/* End of the float at `at`, or `at`. */
static size_t float_end(const struct lexer *x, size_t at)
{
    if (at > 0 && x->text[at - 1] == '.')
        return at;
    size_t whole = digits_end(x, at), end = whole, power;
    if (byte_at(x, end) == '.' && ascii_is_digit(byte_at(x, end + 1)))
        end = digits_end(x, end + 1);
    if ((byte_at(x, end) | 32) == 'e') {
        power = end + 1;
        power += byte_at(x, power) == '+' || byte_at(x, power) == '-';
        if (ascii_is_digit(byte_at(x, power)))
            return digits_end(x, power);
    }
    return end > whole ? end : at;
}

static int lex_number(struct lexer *x)
{
    size_t start = x->at, end = float_end(x, start);
    bool is_float = end > start;
    if (!is_float)
        end = integer_end(x, start);
    char *to = arena_bytes(x->arena, end - start), *p = to;
    if (!to)
        return no_memory(x);
    for (size_t i = start; i < end; i++)
        if (x->text[i] != '_')
            *p++ = x->text[i];
    x->at = end;
    return push(x, is_float ? JINJA_TOKEN_FLOAT : JINJA_TOKEN_INTEGER, JINJA_OP_NONE, start,
                (struct jinja_str){to, (size_t)(p - to)});
}

/* Reads up to `max` digits of a base; returns how many. */
static size_t read_digits(const struct lexer *x, size_t at, size_t end, size_t max, char base,
                          uint32_t *out)
{
    size_t n = 0;
    *out = 0;
    for (; n < max && at + n < end && in_base(x->text[at + n], base); n++)
        *out = *out * (base == 'o' ? 8 : 16) + (uint32_t)ascii_hex(x->text[at + n]);
    return n;
}

/* Reads one escape of a string, x->at after its backslash; writes at most 4 bytes (11 for a
 * backslash before a non-ASCII letter) and advances x->at. */
static int unescape(struct lexer *x, size_t end, char **to)
{
    static const char simple[] = "n\nt\tr\rb\bf\fv\va\a''\"\"\\\\";
    char c = x->text[x->at];
    uint32_t cp;
    for (size_t i = 0; i + 1 < sizeof(simple); i += 2)
        if (simple[i] == c) {
            *(*to)++ = simple[i + 1];
            x->at++;
            return 0;
        }
    if (c == '\n') {
        x->at++;
        return 0;
    }
    if (c >= '0' && c <= '7') {
        x->at += read_digits(x, x->at, end, 3, 'o', &cp);
        *to += jinja_text_put(*to, cp);
        return 0;
    }
    size_t want = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (want) {
        if (read_digits(x, x->at + 1, end, want, 'x', &cp) != want || cp > 0x10ffff)
            return fail(x, x->at, "bad escape in a string");
        x->at += 1 + want;
        *to += jinja_text_put(*to, cp);
        return 0;
    }
    if (c == 'N')
        return fail(x, x->at, "escapes by the name of a character are not supported");
    *(*to)++ = '\\'; /* Python keeps an unknown escape */
    if ((uint8_t)c < 0x80) {
        *(*to)++ = c;
        x->at++;
        return 0;
    }
    /* Jinja spells such a letter \xe9 first, so that the backslash before it stands for itself. */
    x->at += jinja_text_next(x->text + x->at, end - x->at, &cp);
    static const char hex[] = "0123456789abcdef";
    int width = cp < 0x100 ? 2 : cp < 0x10000 ? 4 : 8;
    *(*to)++ = width == 2 ? 'x' : width == 4 ? 'u' : 'U';
    while (width-- > 0)
        *(*to)++ = hex[cp >> (4 * width) & 15];
    return 0;
}

static int lex_string(struct lexer *x)
{
    size_t start = x->at;
    char quote = x->text[x->at++];
    size_t end = x->at;
    while (end < x->n && x->text[end] != quote)
        end += x->text[end] == '\\' ? 2 : 1;
    if (end >= x->n)
        return fail(x, start, "string without its closing quote");
    /* A backslash and a letter of 2 to 4 bytes may become 11. */
    char *to = arena_bytes(x->arena, (end - x->at) * 4 + 1), *p = to;
    if (!to)
        return no_memory(x);
    while (x->at < end) {
        char c = x->text[x->at++];
        int rc = 0;
        if (c == '\\')
            rc = unescape(x, end, &p);
        else
            *p++ = c;
        if (rc < 0)
            return rc;
    }
    x->at = end + 1;
    return push(x, JINJA_TOKEN_STRING, JINJA_OP_NONE, start,
                (struct jinja_str){to, (size_t)(p - to)});
}

static int lex_name(struct lexer *x)
{
    size_t start = x->at;
    while (x->at < x->n) {
        uint32_t cp;
        size_t len = jinja_text_next(x->text + x->at, x->n - x->at, &cp);
        if (!jinja_text_is_word(cp))
            break;
        x->at += len;
    }
    return push_span(x, JINJA_TOKEN_NAME, JINJA_OP_NONE, start);
}

static int balance(struct lexer *x, char c)
{
    static const char pairs[] = "()[]{}";
    const char *at = strchr(pairs, c);
    if (!at || !c)
        return 0;
    if ((at - pairs) % 2 == 0) {
        if (x->n_brackets == MAX_BRACKETS)
            return err_set(x->e, SHOAL_ELIMIT, "brackets are nested too deeply");
        x->brackets[x->n_brackets++] = at[1];
        return 0;
    }
    if (x->n_brackets == 0 || x->brackets[--x->n_brackets] != c)
        return fail(x, x->at, "closing bracket without its opening one");
    return 0;
}

static int lex_symbol(struct lexer *x)
{
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
        if (has_at(x, x->at, symbols[i].text)) {
            size_t start = x->at;
            int rc = balance(x, symbols[i].text[0]);
            if (rc < 0)
                return rc;
            x->at += strlen(symbols[i].text);
            return push_span(x, symbols[i].type, symbols[i].op, start);
        }
    return fail(x, x->at, "unexpected character");
}

/* Matches the end of the tag here; `tag` is '%' or '{'. */
static bool lex_tag_end(struct lexer *x, char tag, int *rc)
{
    size_t start = x->at, end = 0;
    if (x->n_brackets)
        return false;
    if (tag == '%')
        end = tag_end(x, start, true);
    else if (has_at(x, start, "-}}"))
        end = skip_space(x, start + 3);
    else if (has_at(x, start, "}}"))
        end = start + 2;
    if (!end)
        return false;
    x->at = end;
    x->line_starting = x->text[end - 1] == '\n';
    *rc = push(x, tag == '%' ? JINJA_TOKEN_CLOSE_STATEMENT : JINJA_TOKEN_CLOSE_EXPRESSION,
               JINJA_OP_NONE, start, JINJA_STR("%}"));
    if (tag == '{' && *rc == 0)
        x->tokens[x->n_tokens - 1].text = JINJA_STR("}}");
    return true;
}

static int lex_tag(struct lexer *x, char tag)
{
    int rc = 0;
    while (rc == 0 && x->at < x->n) {
        char c = x->text[x->at];
        uint32_t cp;
        if (lex_tag_end(x, tag, &rc))
            return rc;
        size_t space = skip_space(x, x->at);
        jinja_text_next(x->text + x->at, x->n - x->at, &cp);
        if (space > x->at)
            x->at = space;
        else if (ascii_is_digit(c))
            rc = lex_number(x);
        else if (jinja_text_is_word(cp))
            rc = lex_name(x);
        else if (c == '\'' || c == '"')
            rc = lex_string(x);
        else
            rc = lex_symbol(x);
    }
    return rc; /* the parser reports a tag that does not end */
}

/* ---- the whole ------------------------------------------------------------------------------ */

static int prepare(struct lexer *x, const char *src, size_t n)
{
    char *to = arena_bytes(x->arena, n + 1);
    if (!to)
        return no_memory(x);
    x->text = to;
    for (size_t i = 0; i < n; i++) {
        if (src[i] == '\r' && i + 1 < n && src[i + 1] == '\n')
            continue;
        to[x->n++] = src[i] == '\r' ? '\n' : src[i];
    }
    if (x->n && to[x->n - 1] == '\n')
        x->n--;
    return 0;
}

int jinja_lex(struct jinja_tokens *out, struct arena *a, const char *src, size_t n, struct err *e)
{
    *out = (struct jinja_tokens){0};
    struct lexer x = {.arena = a, .e = e, .line = 1, .col = 1, .line_starting = true};
    int rc = prepare(&x, src, n);
    while (rc == 0 && x.at < x.n) {
        char tag;
        rc = lex_root(&x, &tag);
        if (rc == 0 && tag)
            rc = lex_tag(&x, tag);
    }
    if (rc == 0)
        rc = push(&x, JINJA_TOKEN_END, JINJA_OP_NONE, x.n, JINJA_STR(""));
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
