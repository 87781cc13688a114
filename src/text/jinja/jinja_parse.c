/* jinja_parse.c - see jinja_parse.h.  Recursive descent, one function per level of precedence:
 * if/else < or < and < not < comparisons and in < + - ~ < * / // % < ** < is < | < sign < . [] ().
 * Each returns its node, or NULL after fail() has filled the error. */
#include "text/jinja/jinja_parse.h"

#include <stdlib.h>

#include "text/jinja/jinja_macro.h"
#include "base/utf8.h"

struct parser {
    struct arena *arena;
    struct err *e;
    int rc;
    const struct jinja_token *at; /* next token; the list ends with JINJA_TOKEN_END */
    int depth;
};

/* A chain while it is built. */
struct chain {
    struct jinja_node *first, *last;
};

static struct jinja_node *parse_expression(struct parser *p);
static struct jinja_node *parse_primary(struct parser *p);
static struct jinja_node *parse_call(struct parser *p, struct jinja_node *callee);

/* ---- helpers ------------------------------------------------------------------------------- */

static void *fail(struct parser *p, const struct jinja_token *t, int code, const char *what)
{
    p->rc = err_set(p->e, code, "line %u, column %u: %s", t->line, t->col, what);
    return NULL;
}

static const char *describe(const struct jinja_token *t, char out[48])
{
    size_t n = t->text.n < 30 ? t->text.n : 30;
    switch (t->type) {
    case JINJA_TOKEN_END:
        return "the end of the template";
    case JINJA_TOKEN_TEXT:
        return "text";
    case JINJA_TOKEN_COMMENT:
        return "a comment";
    case JINJA_TOKEN_STRING:
        return "a string";
    default:
        out[0] = '\'';
        memcpy(out + 1, t->text.p, n);
        memcpy(out + 1 + n, "'", 2);
        return out;
    }
}

static void *unexpected(struct parser *p, const char *wanted)
{
    char text[48];
    p->rc = err_set(p->e, SHOAL_EFORMAT, "line %u, column %u: expected %s, found %s", p->at->line,
                    p->at->col, wanted, describe(p->at, text));
    return NULL;
}

static bool is(const struct parser *p, enum jinja_token_type type)
{
    return p->at->type == type;
}

static bool is_name(const struct jinja_token *t, const char *name)
{
    return t->type == JINJA_TOKEN_NAME && jinja_str_is(t->text, name);
}

static bool accept(struct parser *p, enum jinja_token_type type)
{
    if (!is(p, type))
        return false;
    p->at++;
    return true;
}

static bool expect(struct parser *p, enum jinja_token_type type, const char *wanted)
{
    if (!accept(p, type))
        unexpected(p, wanted);
    return p->rc == 0;
}

static bool expect_name(struct parser *p, const char *name)
{
    if (is_name(p->at, name))
        p->at++;
    else
        unexpected(p, name);
    return p->rc == 0;
}

static bool is_statement(const struct parser *p, const char *name)
{
    return is(p, JINJA_TOKEN_OPEN_STATEMENT) && is_name(p->at + 1, name);
}

static struct jinja_node *make(struct parser *p, enum jinja_node_kind kind,
                               const struct jinja_token *t)
{
    struct jinja_node *n = arena_zalloc(p->arena, sizeof(*n));
    if (!n) {
        p->rc = err_set(p->e, p->arena->rc, "out of memory for the template");
        return NULL;
    }
    n->kind = kind;
    n->line = t->line;
    n->col = t->col;
    n->height = 1;
    return n;
}

static uint16_t height_of(const struct jinja_node *chain)
{
    uint16_t h = 0;
    for (; chain; chain = chain->next)
        if (chain->height > h)
            h = chain->height;
    return h;
}

/* Sets the height of a node whose children are in place.  Too high a tree is refused, so that
 * whatever walks it later may recurse. */
static struct jinja_node *finish(struct parser *p, struct jinja_node *n)
{
    const struct jinja_node *const children[] = {n->a, n->b, n->c, n->d};
    uint16_t h = 0;
    for (size_t i = 0; i < 4; i++) {
        uint16_t k = height_of(children[i]);
        if (k > h)
            h = k;
    }
    n->height = (uint16_t)(h + 1);
    if (n->height <= JINJA_MAX_HEIGHT)
        return n;
    p->rc = err_set(p->e, SHOAL_ELIMIT, "line %u, column %u: nested too deeply", n->line, n->col);
    return NULL;
}

static void chain_add(struct chain *c, struct jinja_node *n)
{
    if (c->first)
        c->last->next = n;
    else
        c->first = n;
    c->last = n;
}

static bool enter(struct parser *p)
{
    if (++p->depth > JINJA_MAX_NESTING)
        fail(p, p->at, SHOAL_ELIMIT, "nested too deeply");
    return p->rc == 0;
}

static struct jinja_node *leave(struct parser *p, struct jinja_node *n)
{
    p->depth--;
    return n;
}

static struct jinja_node *make_op(struct parser *p, enum jinja_node_kind kind,
                                  const struct jinja_token *t, enum jinja_op op,
                                  struct jinja_node *a, struct jinja_node *b)
{
    struct jinja_node *n = p->rc == 0 ? make(p, kind, t) : NULL;
    if (!n)
        return NULL;
    n->op = op;
    n->a = a;
    n->b = b;
    return finish(p, n);
}

/* ---- arguments ------------------------------------------------------------------------------ */

/* name, name=default; errors are reported here, not by the caller. */
static bool check_parameter(struct parser *p, const struct jinja_token *t, struct jinja_node *arg,
                            const struct jinja_node *earlier)
{
    if (arg->kind != JINJA_NODE_NAME && arg->kind != JINJA_NODE_KWARG)
        return fail(p, t, SHOAL_EFORMAT, "a parameter must be a name");
    for (; earlier; earlier = earlier->next)
        if (jinja_str_eq(earlier->text, arg->text))
            return fail(p, t, SHOAL_EFORMAT, "two parameters have the same name");
    return true;
}

static struct jinja_node *parse_spread(struct parser *p, enum jinja_node_kind kind)
{
    const struct jinja_token *t = p->at++;
    struct jinja_node *value = parse_expression(p);
    return make_op(p, kind, t, JINJA_OP_NONE, value, NULL);
}

static struct jinja_node *parse_argument(struct parser *p)
{
    const struct jinja_token *t = p->at;
    struct jinja_node *arg = parse_expression(p);
    if (!arg || !accept(p, JINJA_TOKEN_EQUALS))
        return arg;
    if (arg->kind != JINJA_NODE_NAME)
        return fail(p, t, SHOAL_EFORMAT, "only a name can stand before = in an argument");
    struct jinja_node *value = parse_expression(p);
    struct jinja_node *n = make_op(p, JINJA_NODE_KWARG, t, JINJA_OP_NONE, value, NULL);
    if (n)
        n->text = arg->text;
    return n;
}

/* (a, b, *c, d=1, **e), or with parameters set the head of a macro: (a, b=1). */
static bool parse_args(struct parser *p, bool parameters, struct jinja_node **out)
{
    struct chain args = {0};
    bool seen_kwarg = false, seen_spread = false;
    if (!expect(p, JINJA_TOKEN_OPEN_PAREN, "'('"))
        return false;
    while (!is(p, JINJA_TOKEN_CLOSE_PAREN)) {
        const struct jinja_token *t = p->at;
        bool kwspread = t->type == JINJA_TOKEN_POW;
        bool spread = t->type == JINJA_TOKEN_MUL && t->op == JINJA_OP_MUL;
        struct jinja_node *arg;
        if (parameters && (kwspread || spread))
            return fail(p, t, SHOAL_EFORMAT, "* and ** cannot stand in a list of parameters");
        if (spread && seen_spread)
            return fail(p, t, SHOAL_EFORMAT, "only one * may stand in a list of arguments");
        if (kwspread || spread)
            arg = parse_spread(p, kwspread ? JINJA_NODE_KWSPREAD : JINJA_NODE_SPREAD);
        else
            arg = parse_argument(p);
        if (!arg || (parameters && !check_parameter(p, t, arg, args.first)))
            return false;
        if (!kwspread && !spread && arg->kind != JINJA_NODE_KWARG && (seen_kwarg || seen_spread))
            return fail(p, t, SHOAL_EFORMAT, "a plain argument must come before named ones and *");
        seen_kwarg |= arg->kind == JINJA_NODE_KWARG;
        seen_spread |= spread;
        chain_add(&args, arg);
        accept(p, JINJA_TOKEN_COMMA); /* optional, as in the reference */
        if (kwspread && !is(p, JINJA_TOKEN_CLOSE_PAREN))
            return unexpected(p, "')' after the argument with **");
    }
    p->at++;
    *out = args.first;
    return true;
}

/* ---- expressions, tightest first ------------------------------------------------------------ */

static struct jinja_node *parse_number(struct parser *p)
{
    const struct jinja_token *t = p->at++;
    bool is_float = memchr(t->text.p, '.', t->text.n) != NULL;
    struct jinja_node *n = make(p, is_float ? JINJA_NODE_FLOAT : JINJA_NODE_INT, t);
    if (n)
        n->num = jinja_text_to_number(t->text);
    return n;
}

/* 'a' 'b' is 'ab'. */
static struct jinja_node *parse_string(struct parser *p)
{
    const struct jinja_token *t = p->at;
    struct jinja_node *n = make(p, JINJA_NODE_STRING, t);
    size_t total = 0;
    for (; is(p, JINJA_TOKEN_STRING); p->at++)
        total += p->at->text.n;
    if (!n)
        return NULL;
    n->text = t->text;
    if (p->at == t + 1)
        return n;
    char *to = arena_bytes(p->arena, total);
    if (!to) {
        p->rc = err_set(p->e, p->arena->rc, "out of memory for the template");
        return NULL;
    }
    n->text = (struct jinja_str){to, total};
    for (; t < p->at; t++) {
        memcpy(to, t->text.p, t->text.n);
        to += t->text.n;
    }
    return n;
}

/* a, b, c is a tuple; a alone is a. */
static struct jinja_node *parse_sequence(struct parser *p, bool primary)
{
    struct jinja_node *(*one)(struct parser *) = primary ? parse_primary : parse_expression;
    const struct jinja_token *t = p->at;
    struct jinja_node *first = one(p);
    if (!first || !is(p, JINJA_TOKEN_COMMA))
        return first;
    struct chain items = {0};
    chain_add(&items, first);
    while (accept(p, JINJA_TOKEN_COMMA)) {
        struct jinja_node *item = one(p);
        if (!item)
            return NULL;
        chain_add(&items, item);
    }
    return make_op(p, JINJA_NODE_TUPLE, t, JINJA_OP_NONE, items.first, NULL);
}

static struct jinja_node *parse_list(struct parser *p)
{
    const struct jinja_token *t = p->at++;
    struct chain items = {0};
    while (!accept(p, JINJA_TOKEN_CLOSE_BRACKET)) {
        struct jinja_node *item = parse_expression(p);
        if (!item)
            return NULL;
        chain_add(&items, item);
        accept(p, JINJA_TOKEN_COMMA);
    }
    return make_op(p, JINJA_NODE_LIST, t, JINJA_OP_NONE, items.first, NULL);
}

static struct jinja_node *parse_dict(struct parser *p)
{
    const struct jinja_token *t = p->at++;
    struct chain pairs = {0};
    while (!accept(p, JINJA_TOKEN_CLOSE_BRACE)) {
        const struct jinja_token *start = p->at;
        struct jinja_node *key = parse_expression(p);
        if (!key || !expect(p, JINJA_TOKEN_COLON, "':'"))
            return NULL;
        struct jinja_node *value = parse_expression(p);
        struct jinja_node *pair = make_op(p, JINJA_NODE_PAIR, start, JINJA_OP_NONE, key, value);
        if (!pair)
            return NULL;
        chain_add(&pairs, pair);
        accept(p, JINJA_TOKEN_COMMA);
    }
    return make_op(p, JINJA_NODE_DICT, t, JINJA_OP_NONE, pairs.first, NULL);
}

static struct jinja_node *parse_primary(struct parser *p)
{
    struct jinja_node *n;
    switch (p->at->type) {
    case JINJA_TOKEN_NUMBER:
        return parse_number(p);
    case JINJA_TOKEN_STRING:
        return parse_string(p);
    case JINJA_TOKEN_NAME:
        n = make(p, JINJA_NODE_NAME, p->at);
        if (n)
            n->text = p->at->text;
        p->at++;
        return n;
    case JINJA_TOKEN_OPEN_PAREN:
        p->at++;
        n = parse_sequence(p, false);
        return n && expect(p, JINJA_TOKEN_CLOSE_PAREN, "')'") ? n : NULL;
    case JINJA_TOKEN_OPEN_BRACKET:
        return parse_list(p);
    case JINJA_TOKEN_OPEN_BRACE:
        return parse_dict(p);
    default:
        return unexpected(p, "a value");
    }
}

/* What stands in [ ]: one expression, or start:stop:step with any of them left out. */
static struct jinja_node *parse_subscript(struct parser *p)
{
    const struct jinja_token *t = p->at;
    struct jinja_node *part[3] = {0};
    size_t n = 0;
    bool slice = false;
    while (!is(p, JINJA_TOKEN_CLOSE_BRACKET)) {
        if (n == 3 || (n > 0 && !slice))
            return unexpected(p, "']'");
        if (!accept(p, JINJA_TOKEN_COLON)) {
            part[n] = parse_expression(p);
            if (!part[n])
                return NULL;
            slice |= accept(p, JINJA_TOKEN_COLON);
        } else {
            slice = true;
        }
        n++;
    }
    if (n == 0)
        return unexpected(p, "an index");
    p->at++;
    if (!slice)
        return part[0];
    struct jinja_node *s = make_op(p, JINJA_NODE_SLICE, t, JINJA_OP_NONE, part[0], part[1]);
    if (!s)
        return NULL;
    s->c = part[2];
    return finish(p, s);
}

/* .name, .0, [index], [a:b:c], as many as follow */
static struct jinja_node *parse_members(struct parser *p, struct jinja_node *object)
{
    while (object && (is(p, JINJA_TOKEN_DOT) || is(p, JINJA_TOKEN_OPEN_BRACKET))) {
        bool computed = is(p, JINJA_TOKEN_OPEN_BRACKET);
        const struct jinja_token *t = ++p->at;
        struct jinja_node *property = computed ? parse_subscript(p) : parse_primary(p);
        if (property && !computed && property->kind != JINJA_NODE_NAME &&
            property->kind != JINJA_NODE_INT)
            return fail(p, t, SHOAL_EFORMAT, "a name or a whole number must follow the dot");
        object = make_op(p, JINJA_NODE_MEMBER, t, JINJA_OP_NONE, object, property);
        if (object)
            object->flag = computed;
    }
    return object;
}

static struct jinja_node *parse_call(struct parser *p, struct jinja_node *callee)
{
    while (callee && is(p, JINJA_TOKEN_OPEN_PAREN)) {
        const struct jinja_token *t = p->at;
        struct jinja_node *args = NULL;
        if (!parse_args(p, false, &args))
            return NULL;
        callee = make_op(p, JINJA_NODE_CALL, t, JINJA_OP_NONE, callee, args);
        if (callee) { /* errors of a call point at what is called */
            callee->line = callee->a->line;
            callee->col = callee->a->col;
        }
        callee = parse_members(p, callee);
    }
    return callee;
}

static struct jinja_node *parse_sign(struct parser *p)
{
    const struct jinja_token *t = p->at;
    bool sign = is(p, JINJA_TOKEN_SIGN) || (is(p, JINJA_TOKEN_ADD) && t->op != JINJA_OP_CONCAT);
    if (!sign) {
        struct jinja_node *n = parse_primary(p);
        return n ? parse_call(p, parse_members(p, n)) : NULL;
    }
    if (!enter(p))
        return NULL;
    p->at++;
    struct jinja_node *operand = parse_sign(p);
    return leave(p, make_op(p, JINJA_NODE_UNARY, t, t->op, operand, NULL));
}

static struct jinja_node *parse_filters(struct parser *p)
{
    struct jinja_node *operand = parse_sign(p);
    while (operand && accept(p, JINJA_TOKEN_PIPE)) {
        const struct jinja_token *t = p->at;
        if (!is(p, JINJA_TOKEN_NAME))
            return unexpected(p, "the name of a filter");
        struct jinja_node *filter = parse_primary(p);
        if (filter)
            filter = parse_call(p, filter);
        operand = make_op(p, JINJA_NODE_FILTER, t, JINJA_OP_NONE, operand, filter);
    }
    return operand;
}

/* Tests that compare with something: "x is eq 3", "x is in [1, 2]". */
static bool test_takes_argument(struct jinja_str name)
{
    static const char *const names[] = {"eq", "equalto", "ne", "lt",         "le",
                                        "gt", "ge",      "in", "divisibleby"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (jinja_str_is(name, names[i]))
            return true;
    return false;
}

static bool starts_argument(const struct jinja_token *t)
{
    static const char *const keywords[] = {"and", "or", "not", "is", "in", "if", "else"};
    for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
        if (is_name(t, keywords[i]))
            return false;
    return t->type == JINJA_TOKEN_NAME || t->type == JINJA_TOKEN_NUMBER ||
           t->type == JINJA_TOKEN_STRING || t->type == JINJA_TOKEN_OPEN_PAREN ||
           t->type == JINJA_TOKEN_OPEN_BRACKET || t->type == JINJA_TOKEN_OPEN_BRACE;
}

static struct jinja_node *parse_tests(struct parser *p)
{
    struct jinja_node *operand = parse_filters(p);
    while (operand && is_name(p->at, "is")) {
        p->at++;
        bool negate = is_name(p->at, "not");
        p->at += negate;
        const struct jinja_token *t = p->at;
        struct jinja_node *argument = NULL;
        if (!is(p, JINJA_TOKEN_NAME))
            return unexpected(p, "the name of a test");
        p->at++;
        if (test_takes_argument(t->text) && starts_argument(p->at)) {
            argument = parse_primary(p);
            argument = argument ? parse_members(p, argument) : NULL;
            if (!argument)
                return NULL;
        }
        operand = make_op(p, JINJA_NODE_TEST, t, JINJA_OP_NONE, operand, argument);
        if (operand) {
            operand->flag = negate;
            operand->text = t->text;
        }
    }
    return operand;
}

/* left OP right OP right ..., for the tokens of one type */
static struct jinja_node *parse_left_assoc(struct parser *p, enum jinja_token_type type,
                                           struct jinja_node *(*operand)(struct parser *))
{
    struct jinja_node *left = operand(p);
    while (left && is(p, type)) {
        const struct jinja_token *t = p->at++;
        struct jinja_node *right = operand(p);
        left = make_op(p, JINJA_NODE_BINARY, t, t->op, left, right);
    }
    return left;
}

static struct jinja_node *parse_power(struct parser *p)
{
    return parse_left_assoc(p, JINJA_TOKEN_POW, parse_tests);
}

static struct jinja_node *parse_product(struct parser *p)
{
    return parse_left_assoc(p, JINJA_TOKEN_MUL, parse_power);
}

static struct jinja_node *parse_sum(struct parser *p)
{
    return parse_left_assoc(p, JINJA_TOKEN_ADD, parse_product);
}

static struct jinja_node *parse_comparison(struct parser *p)
{
    struct jinja_node *left = parse_sum(p);
    while (left) {
        const struct jinja_token *t = p->at;
        enum jinja_op op = t->op;
        if (is_name(t, "not") && is_name(t + 1, "in")) {
            op = JINJA_OP_NOT_IN;
            p->at++;
        } else if (is_name(t, "in")) {
            op = JINJA_OP_IN;
        } else if (!is(p, JINJA_TOKEN_COMPARE)) {
            break;
        }
        p->at++;
        struct jinja_node *right = parse_sum(p);
        left = make_op(p, JINJA_NODE_BINARY, t, op, left, right);
    }
    return left;
}

static struct jinja_node *parse_not(struct parser *p)
{
    const struct jinja_token *t = p->at;
    if (!is_name(t, "not"))
        return parse_comparison(p);
    if (!enter(p))
        return NULL;
    p->at++;
    struct jinja_node *operand = parse_not(p);
    return leave(p, make_op(p, JINJA_NODE_UNARY, t, JINJA_OP_NOT, operand, NULL));
}

static struct jinja_node *parse_and(struct parser *p)
{
    struct jinja_node *left = parse_not(p);
    while (left && is_name(p->at, "and")) {
        const struct jinja_token *t = p->at++;
        struct jinja_node *right = parse_not(p);
        left = make_op(p, JINJA_NODE_BINARY, t, JINJA_OP_AND, left, right);
    }
    return left;
}

static struct jinja_node *parse_or(struct parser *p)
{
    struct jinja_node *left = parse_and(p);
    while (left && is_name(p->at, "or")) {
        const struct jinja_token *t = p->at++;
        struct jinja_node *right = parse_and(p);
        left = make_op(p, JINJA_NODE_BINARY, t, JINJA_OP_OR, left, right);
    }
    return left;
}

static struct jinja_node *parse_expression(struct parser *p)
{
    if (!enter(p))
        return NULL;
    struct jinja_node *value = parse_or(p);
    const struct jinja_token *t = p->at;
    if (!value || !is_name(t, "if"))
        return leave(p, value);
    p->at++;
    struct jinja_node *test = parse_or(p);
    if (!test)
        return NULL;
    if (!is_name(p->at, "else"))
        return leave(p, make_op(p, JINJA_NODE_SELECT, t, JINJA_OP_NONE, value, test));
    p->at++;
    struct jinja_node *otherwise = parse_expression(p);
    struct jinja_node *n = make_op(p, JINJA_NODE_TERNARY, t, JINJA_OP_NONE, test, value);
    if (!n || !otherwise)
        return NULL;
    n->c = otherwise;
    return leave(p, finish(p, n));
}

/* ---- statements ----------------------------------------------------------------------------- */

static struct jinja_node *parse_any(struct parser *p);

/* Statements up to {% one of ends %}, whose {% and name are left unread. */
static bool parse_body(struct parser *p, struct jinja_node **out, const char *const ends[])
{
    struct chain body = {0};
    for (;;) {
        for (size_t i = 0; ends[i]; i++)
            if (is_statement(p, ends[i])) {
                *out = body.first;
                return true;
            }
        if (accept(p, JINJA_TOKEN_COMMENT))
            continue;
        if (is(p, JINJA_TOKEN_END)) {
            p->rc = err_set(p->e, SHOAL_EFORMAT,
                            "line %u, column %u: the template ends without {%% %s %%}", p->at->line,
                            p->at->col, ends[0]);
            return false;
        }
        struct jinja_node *n = parse_any(p);
        if (!n)
            return false;
        chain_add(&body, n);
    }
}

static bool close_statement(struct parser *p)
{
    return expect(p, JINJA_TOKEN_CLOSE_STATEMENT, "'%}'");
}

/* {% name %} */
static bool expect_end(struct parser *p, const char *name)
{
    return expect(p, JINJA_TOKEN_OPEN_STATEMENT, "'{%'") && expect_name(p, name) &&
           close_statement(p);
}

static struct jinja_node *parse_set(struct parser *p, const struct jinja_token *t)
{
    static const char *const ends[] = {"endset", NULL};
    struct jinja_node *n = make(p, JINJA_NODE_SET, t);
    if (!n || !(n->a = parse_sequence(p, false)))
        return NULL;
    if (accept(p, JINJA_TOKEN_EQUALS)) {
        n->b = parse_sequence(p, false);
        return n->b && close_statement(p) ? finish(p, n) : NULL;
    }
    if (!expect(p, JINJA_TOKEN_CLOSE_STATEMENT, "'=' or '%}'") || !parse_body(p, &n->c, ends))
        return NULL;
    return expect_end(p, "endset") ? finish(p, n) : NULL;
}

/* From the condition to {% endif %}.  Each elif is an IF in the else body of the one before; they
 * are made in a loop so that a long row of them needs no stack. */
static struct jinja_node *parse_if(struct parser *p, const struct jinja_token *t)
{
    static const char *const ends[] = {"endif", "elif", "else", NULL};
    static const char *const last[] = {"endif", NULL};
    struct jinja_node *first = NULL, *before = NULL;
    for (;;) {
        struct jinja_node *n = make(p, JINJA_NODE_IF, t);
        if (!n || !(n->a = parse_expression(p)) || !close_statement(p) ||
            !parse_body(p, &n->b, ends) || !finish(p, n))
            return NULL;
        if (before) {
            before->c = n;
            before->flag = true;
        } else {
            first = n;
        }
        before = n;
        t = p->at + 1;
        if (!is_statement(p, "elif"))
            break;
        p->at += 2;
    }
    if (is_statement(p, "else")) {
        p->at += 2;
        if (!close_statement(p) || !parse_body(p, &before->c, last) || !finish(p, before))
            return NULL;
    }
    for (const struct jinja_node *n = first; n->flag; n = n->c) /* as high as its highest part */
        if (n->c->height > first->height)
            first->height = n->c->height;
    return expect_end(p, "endif") ? first : NULL;
}

static struct jinja_node *parse_for(struct parser *p, const struct jinja_token *t)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    static const char *const last[] = {"endfor", NULL};
    struct jinja_node *n = make(p, JINJA_NODE_FOR, t);
    const struct jinja_token *target = p->at;
    if (!n || !(n->a = parse_sequence(p, true)))
        return NULL;
    if (n->a->kind != JINJA_NODE_NAME && n->a->kind != JINJA_NODE_TUPLE)
        return fail(p, target, SHOAL_EFORMAT, "the loop variable must be a name or names");
    if (!expect_name(p, "in") || !(n->b = parse_expression(p)))
        return NULL;
    if (is_name(p->at, "recursive"))
        return fail(p, p->at, SHOAL_EUNSUPPORTED, "recursive loops are not supported");
    if (!close_statement(p) || !parse_body(p, &n->c, ends))
        return NULL;
    if (is_statement(p, "else")) {
        p->at += 2;
        if (!close_statement(p) || !parse_body(p, &n->d, last))
            return NULL;
    }
    return expect_end(p, "endfor") ? finish(p, n) : NULL;
}

static struct jinja_node *parse_macro(struct parser *p, const struct jinja_token *t)
{
    static const char *const ends[] = {"endmacro", NULL};
    struct jinja_node *n = make(p, JINJA_NODE_MACRO, t);
    if (!n)
        return NULL;
    n->text = p->at->text;
    if (!expect(p, JINJA_TOKEN_NAME, "the name of the macro") || !parse_args(p, true, &n->a) ||
        !close_statement(p) || !parse_body(p, &n->c, ends) || !expect_end(p, "endmacro") ||
        !finish(p, n))
        return NULL;
    jinja_macro_mark(n, n->a);
    return n;
}

static struct jinja_node *parse_call_block(struct parser *p, const struct jinja_token *t)
{
    static const char *const ends[] = {"endcall", NULL};
    struct jinja_node *n = make(p, JINJA_NODE_CALLBLOCK, t), *args = NULL;
    if (!n || (is(p, JINJA_TOKEN_OPEN_PAREN) && !parse_args(p, true, &n->b)))
        return NULL;
    const struct jinja_token *callee = p->at;
    if (!is(p, JINJA_TOKEN_NAME))
        return unexpected(p, "the name of a macro");
    struct jinja_node *name = parse_primary(p);
    if (!name || !parse_args(p, false, &args) || !close_statement(p) ||
        !(n->a = make_op(p, JINJA_NODE_CALL, callee, JINJA_OP_NONE, name, args)) ||
        !parse_body(p, &n->c, ends) || !expect_end(p, "endcall") || !finish(p, n))
        return NULL;
    jinja_macro_mark(n, n->b);
    return n;
}

static struct jinja_node *parse_filter_block(struct parser *p, const struct jinja_token *t)
{
    static const char *const ends[] = {"endfilter", NULL};
    struct jinja_node *n = make(p, JINJA_NODE_FILTERBLOCK, t);
    if (!n)
        return NULL;
    if (!is(p, JINJA_TOKEN_NAME))
        return unexpected(p, "the name of a filter");
    n->b = parse_primary(p);
    if (n->b)
        n->b = parse_call(p, n->b);
    if (!n->b || !close_statement(p) || !parse_body(p, &n->c, ends) || !expect_end(p, "endfilter"))
        return NULL;
    return finish(p, n);
}

static struct jinja_node *parse_jump(struct parser *p, const struct jinja_token *t)
{
    struct jinja_node *n = make(p, is_name(t, "break") ? JINJA_NODE_BREAK : JINJA_NODE_CONTINUE, t);
    return n && close_statement(p) ? n : NULL;
}

static struct jinja_node *parse_statement(struct parser *p)
{
    static const struct {
        const char *name;
        struct jinja_node *(*parse)(struct parser *, const struct jinja_token *);
    } statements[] = {
        {"set", parse_set},     {"if", parse_if},           {"for", parse_for},
        {"macro", parse_macro}, {"call", parse_call_block}, {"filter", parse_filter_block},
        {"break", parse_jump},  {"continue", parse_jump},
    };
    const struct jinja_token *t = ++p->at;
    if (t->type != JINJA_TOKEN_NAME)
        return unexpected(p, "a statement");
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
        if (is_name(t, statements[i].name)) {
            p->at++;
            return statements[i].parse(p, t);
        }
    p->rc = err_set(p->e, SHOAL_EUNSUPPORTED,
                    "line %u, column %u: statement '%.*s' is not supported or not expected here",
                    t->line, t->col, t->text.n < 40 ? (int)t->text.n : 40, t->text.p);
    return NULL;
}

static struct jinja_node *parse_any(struct parser *p)
{
    struct jinja_node *n;
    switch (p->at->type) {
    case JINJA_TOKEN_TEXT:
        n = make(p, JINJA_NODE_STRING, p->at);
        if (n)
            n->text = p->at->text;
        p->at++;
        return n;
    case JINJA_TOKEN_OPEN_STATEMENT:
        return enter(p) ? leave(p, parse_statement(p)) : NULL;
    case JINJA_TOKEN_OPEN_EXPRESSION:
        p->at++;
        n = parse_expression(p);
        return n && expect(p, JINJA_TOKEN_CLOSE_EXPRESSION, "'}}'") ? n : NULL;
    default:
        return unexpected(p, "text or a tag");
    }
}

static int parse_tokens(struct jinja_template *t, const struct jinja_tokens *tokens, struct err *e)
{
    struct parser p = {.arena = &t->arena, .e = e, .at = tokens->at};
    struct chain body = {0};
    while (!is(&p, JINJA_TOKEN_END)) {
        if (accept(&p, JINJA_TOKEN_COMMENT))
            continue;
        struct jinja_node *n = parse_any(&p);
        if (!n)
            return p.rc;
        chain_add(&body, n);
    }
    t->body = body.first;
    return 0;
}

int jinja_parse(struct jinja_template *out, const char *src, size_t n, struct err *e)
{
    *out = (struct jinja_template){0};
    if (n > JINJA_MAX_SOURCE)
        return err_set(e, SHOAL_ELIMIT, "template has %zu bytes, the limit is %d", n,
                       JINJA_MAX_SOURCE);
    if (utf8_valid_prefix(src, n) < n)
        return err_set(e, SHOAL_EFORMAT, "template is not valid UTF-8");
    /* At worst ("[a,a,a") every second byte becomes a node; the copy of the source comes on top. */
    arena_init(&out->arena, 65536 + n * (sizeof(struct jinja_node) + 8));
    struct jinja_tokens tokens;
    int rc = jinja_lex(&tokens, &out->arena, src, n, e);
    if (rc == 0)
        rc = parse_tokens(out, &tokens, e);
    jinja_lex_fini(&tokens);
    if (rc < 0)
        jinja_parse_fini(out);
    return rc;
}

void jinja_parse_fini(struct jinja_template *t)
{
    arena_fini(&t->arena);
    t->body = NULL;
}
