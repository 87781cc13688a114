/* jinja_expr.c - expressions, in the order of Jinja's own parser, one function per level of
 * precedence: if/else < or < and < not < comparisons and in < + - < ~ < * / // % < ** < sign <
 * | is . [] ().  Each returns its node, or NULL after jinja_parse_fail has filled the error. */
#include "base/decimal.h"
#include "text/jinja/jinja_names.h"
#include "text/jinja/jinja_number.h"
#include "text/jinja/parse/jinja_parse_int.h"

static struct jinja_node *parse_unary(struct jinja_parser *p, bool filters);

/* ---- arguments ------------------------------------------------------------------------------ */

static bool bad_arguments(struct jinja_parser *p, const struct jinja_token *t)
{
    return jinja_parse_fail(p, t, SHOAL_EFORMAT,
                            "arguments come in the order: plain ones, named ones, *list, **dict");
}

static struct jinja_node *parse_spread(struct jinja_parser *p, enum jinja_node_kind kind)
{
    const struct jinja_token *t = p->at++;
    struct jinja_node *value = jinja_expr_parse(p);
    return jinja_parse_make_op(p, kind, t, JINJA_OP_NONE, value, NULL);
}

/* (a, b, c=1, *d, **e) */
static bool parse_args(struct jinja_parser *p, struct jinja_node **out)
{
    struct jinja_chain args = {0};
    bool named = false, spread = false, kwspread = false;
    *out = NULL;
    if (!jinja_parse_expect(p, JINJA_TOKEN_OPEN_PAREN, "'('"))
        return false;
    while (!jinja_parse_is(p, JINJA_TOKEN_CLOSE_PAREN)) {
        const struct jinja_token *t = p->at;
        struct jinja_node *arg;
        if (args.first && !jinja_parse_expect(p, JINJA_TOKEN_COMMA, "','"))
            return false;
        if (jinja_parse_is(p, JINJA_TOKEN_CLOSE_PAREN) && args.first)
            break;
        t = p->at;
        if (t->type == JINJA_TOKEN_MUL && t->op == JINJA_OP_MUL) {
            if (spread || kwspread)
                return bad_arguments(p, t);
            spread = true;
            arg = parse_spread(p, JINJA_NODE_SPREAD);
        } else if (t->type == JINJA_TOKEN_POW) {
            if (kwspread)
                return bad_arguments(p, t);
            kwspread = true;
            arg = parse_spread(p, JINJA_NODE_KWSPREAD);
        } else if (t->type == JINJA_TOKEN_NAME && t[1].type == JINJA_TOKEN_EQUALS) {
            if (kwspread)
                return bad_arguments(p, t);
            named = true;
            p->at += 2;
            struct jinja_node *value = jinja_expr_parse(p);
            arg = jinja_parse_make_op(p, JINJA_NODE_KWARG, t, JINJA_OP_NONE, value, NULL);
            if (arg)
                arg->text = t->text;
        } else {
            if (named || spread || kwspread)
                return bad_arguments(p, t);
            arg = jinja_expr_parse(p);
        }
        if (!arg)
            return false;
        jinja_parse_chain_add(&args, arg);
    }
    p->at++;
    *out = args.first;
    return true;
}

/* ---- values --------------------------------------------------------------------------------- */

static struct jinja_node *parse_integer(struct jinja_parser *p)
{
    const struct jinja_token *t = p->at++;
    struct jinja_node *n = jinja_parse_make(p, JINJA_NODE_INT, t);
    char c = t->text.n > 1 ? (char)(t->text.p[1] | 32) : '0';
    unsigned base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 10;
    if (!n || jinja_number_int(t->text, base, &n->i) == JINJA_NUMBER_INT)
        return n;
    if (base != 10)
        return jinja_parse_fail(p, t, SHOAL_ELIMIT,
                                "integers of more than 64 bits must be decimal");
    n->kind = JINJA_NODE_BIGINT;
    n->text = t->text;
    return n;
}

static struct jinja_node *parse_float(struct jinja_parser *p)
{
    const struct jinja_token *t = p->at++;
    struct jinja_node *n = jinja_parse_make(p, JINJA_NODE_FLOAT, t);
    if (n)
        n->num = decimal_read(t->text.p, t->text.n);
    return n;
}

/* 'a' 'b' is 'ab'. */
static struct jinja_node *parse_string(struct jinja_parser *p)
{
    const struct jinja_token *t = p->at;
    struct jinja_node *n = jinja_parse_make(p, JINJA_NODE_STRING, t);
    size_t total = 0;
    for (; jinja_parse_is(p, JINJA_TOKEN_STRING); p->at++)
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

/* Tokens that may follow the last comma of a tuple. */
static bool at_tuple_end(const struct jinja_parser *p, const char *word)
{
    return jinja_parse_is(p, JINJA_TOKEN_CLOSE_EXPRESSION) ||
           jinja_parse_is(p, JINJA_TOKEN_CLOSE_STATEMENT) ||
           jinja_parse_is(p, JINJA_TOKEN_CLOSE_PAREN) || (word && jinja_parse_is_name(p->at, word));
}

/* a, b, c is a tuple; a alone is a.  `word` ends the tuple as well; with `parentheses` it may be
 * empty. */
struct jinja_node *jinja_expr_tuple(struct jinja_parser *p,
                                    struct jinja_node *(*one)(struct jinja_parser *),
                                    const char *word, bool parentheses)
{
    const struct jinja_token *t = p->at;
    struct jinja_chain items = {0};
    bool tuple = false;
    for (;;) {
        if (items.first && !jinja_parse_expect(p, JINJA_TOKEN_COMMA, "','"))
            return NULL;
        if (at_tuple_end(p, word))
            break;
        struct jinja_node *item = one(p);
        if (!item)
            return NULL;
        jinja_parse_chain_add(&items, item);
        if (!jinja_parse_is(p, JINJA_TOKEN_COMMA))
            break;
        tuple = true;
    }
    if (!tuple && items.first)
        return items.first;
    if (!tuple && !parentheses)
        return jinja_parse_unexpected(p, "a value");
    return jinja_parse_make_op(p, JINJA_NODE_TUPLE, t, JINJA_OP_NONE, items.first, NULL);
}

static struct jinja_node *parse_list(struct jinja_parser *p)
{
    const struct jinja_token *t = p->at++;
    struct jinja_chain items = {0};
    while (!jinja_parse_is(p, JINJA_TOKEN_CLOSE_BRACKET)) {
        if (items.first && !jinja_parse_expect(p, JINJA_TOKEN_COMMA, "',' or ']'"))
            return NULL;
        if (jinja_parse_is(p, JINJA_TOKEN_CLOSE_BRACKET))
            break;
        struct jinja_node *item = jinja_expr_parse(p);
        if (!item)
            return NULL;
        jinja_parse_chain_add(&items, item);
    }
    p->at++;
    return jinja_parse_make_op(p, JINJA_NODE_LIST, t, JINJA_OP_NONE, items.first, NULL);
}

static struct jinja_node *parse_dict(struct jinja_parser *p)
{
    const struct jinja_token *t = p->at++;
    struct jinja_chain pairs = {0};
    while (!jinja_parse_is(p, JINJA_TOKEN_CLOSE_BRACE)) {
        if (pairs.first && !jinja_parse_expect(p, JINJA_TOKEN_COMMA, "',' or '}'"))
            return NULL;
        if (jinja_parse_is(p, JINJA_TOKEN_CLOSE_BRACE))
            break;
        const struct jinja_token *start = p->at;
        struct jinja_node *key = jinja_expr_parse(p);
        if (!key || !jinja_parse_expect(p, JINJA_TOKEN_COLON, "':'"))
            return NULL;
        struct jinja_node *value = jinja_expr_parse(p);
        struct jinja_node *pair =
            jinja_parse_make_op(p, JINJA_NODE_PAIR, start, JINJA_OP_NONE, key, value);
        if (!pair)
            return NULL;
        jinja_parse_chain_add(&pairs, pair);
    }
    p->at++;
    return jinja_parse_make_op(p, JINJA_NODE_DICT, t, JINJA_OP_NONE, pairs.first, NULL);
}

/* none, true and false in both spellings, or NULL if the token is an ordinary name. */
struct jinja_node *jinja_expr_constant(struct jinja_parser *p)
{
    const struct jinja_token *t = p->at;
    bool none = jinja_parse_is_name(t, "none") || jinja_parse_is_name(t, "None");
    bool yes = jinja_parse_is_name(t, "true") || jinja_parse_is_name(t, "True");
    if (!none && !yes && !jinja_parse_is_name(t, "false") && !jinja_parse_is_name(t, "False"))
        return NULL;
    p->at++;
    struct jinja_node *n = jinja_parse_make(p, none ? JINJA_NODE_NONE : JINJA_NODE_BOOL, t);
    if (n)
        n->flag = yes;
    return n;
}

struct jinja_node *jinja_expr_primary(struct jinja_parser *p)
{
    struct jinja_node *n;
    switch (p->at->type) {
    case JINJA_TOKEN_INTEGER:
        return parse_integer(p);
    case JINJA_TOKEN_FLOAT:
        return parse_float(p);
    case JINJA_TOKEN_STRING:
        return parse_string(p);
    case JINJA_TOKEN_NAME:
        n = jinja_expr_constant(p);
        return n || p->rc < 0 ? n : jinja_parse_make_name(p, p->at++, false);
    case JINJA_TOKEN_OPEN_PAREN:
        p->at++;
        if (!jinja_parse_enter(p))
            return NULL;
        n = jinja_parse_leave(p, jinja_expr_tuple(p, jinja_expr_parse, NULL, true));
        return n && jinja_parse_expect(p, JINJA_TOKEN_CLOSE_PAREN, "')'") ? n : NULL;
    case JINJA_TOKEN_OPEN_BRACKET:
        return parse_list(p);
    case JINJA_TOKEN_OPEN_BRACE:
        return parse_dict(p);
    default:
        return jinja_parse_unexpected(p, "a value");
    }
}

/* ---- what follows a value ------------------------------------------------------------------- */

static bool at_part_end(const struct jinja_parser *p)
{
    return jinja_parse_is(p, JINJA_TOKEN_COLON) || jinja_parse_is(p, JINJA_TOKEN_CLOSE_BRACKET) ||
           jinja_parse_is(p, JINJA_TOKEN_COMMA);
}

/* One index, or start:stop:step with any of them left out. */
static struct jinja_node *parse_subscribed(struct jinja_parser *p)
{
    const struct jinja_token *t = p->at;
    struct jinja_node *part[3] = {0};
    if (!jinja_parse_is(p, JINJA_TOKEN_COLON) && !(part[0] = jinja_expr_parse(p)))
        return NULL;
    if (!jinja_parse_accept(p, JINJA_TOKEN_COLON))
        return part[0];
    if (!at_part_end(p) && !(part[1] = jinja_expr_parse(p)))
        return NULL;
    if (jinja_parse_accept(p, JINJA_TOKEN_COLON) && !at_part_end(p) &&
        !(part[2] = jinja_expr_parse(p)))
        return NULL;
    struct jinja_node *s =
        jinja_parse_make_op(p, JINJA_NODE_SLICE, t, JINJA_OP_NONE, part[0], part[1]);
    if (!s)
        return NULL;
    s->c = part[2];
    return jinja_parse_finish(p, s);
}

static struct jinja_node *parse_subscript(struct jinja_parser *p, struct jinja_node *object)
{
    const struct jinja_token *t = p->at++;
    struct jinja_chain args = {0};
    while (!jinja_parse_is(p, JINJA_TOKEN_CLOSE_BRACKET)) {
        if (args.first && !jinja_parse_expect(p, JINJA_TOKEN_COMMA, "']'"))
            return NULL;
        struct jinja_node *arg = parse_subscribed(p);
        if (!arg)
            return NULL;
        jinja_parse_chain_add(&args, arg);
    }
    p->at++;
    struct jinja_node *index = args.first;
    if (!index || index->next) {
        for (const struct jinja_node *n = index; n; n = n->next)
            if (n->kind == JINJA_NODE_SLICE)
                return jinja_parse_fail(p, t, SHOAL_EUNSUPPORTED, "a slice in a tuple of indices");
        index = jinja_parse_make_op(p, JINJA_NODE_TUPLE, t, JINJA_OP_NONE, args.first, NULL);
    }
    return jinja_parse_make_op(p, JINJA_NODE_GETITEM, t, JINJA_OP_NONE, object, index);
}

/* .name or .0 */
static struct jinja_node *parse_attribute(struct jinja_parser *p, struct jinja_node *object)
{
    const struct jinja_token *t = ++p->at;
    if (jinja_parse_is(p, JINJA_TOKEN_INTEGER)) {
        struct jinja_node *index = parse_integer(p);
        return jinja_parse_make_op(p, JINJA_NODE_GETITEM, t, JINJA_OP_NONE, object, index);
    }
    if (!jinja_parse_expect(p, JINJA_TOKEN_NAME, "a name or a whole number"))
        return NULL;
    struct jinja_node *n =
        jinja_parse_make_op(p, JINJA_NODE_GETATTR, t, JINJA_OP_NONE, object, NULL);
    if (n)
        n->text = t->text;
    return n;
}

static struct jinja_node *parse_call(struct jinja_parser *p, struct jinja_node *callee)
{
    struct jinja_node *args;
    const struct jinja_token *t = p->at;
    if (!jinja_parse_enter(p) || !parse_args(p, &args))
        return NULL;
    struct jinja_node *n = jinja_parse_make_op(p, JINJA_NODE_CALL, t, JINJA_OP_NONE, callee, args);
    if (n) { /* errors of a call point at the callee */
        n->line = callee->line;
        n->col = callee->col;
    }
    return jinja_parse_leave(p, n);
}

static struct jinja_node *parse_postfix(struct jinja_parser *p, struct jinja_node *n)
{
    while (n) {
        if (jinja_parse_is(p, JINJA_TOKEN_DOT))
            n = parse_attribute(p, n);
        else if (jinja_parse_is(p, JINJA_TOKEN_OPEN_BRACKET))
            n = parse_subscript(p, n);
        else if (jinja_parse_is(p, JINJA_TOKEN_OPEN_PAREN))
            n = parse_call(p, n);
        else
            break;
    }
    return n;
}

/* name or name.name, as one text */
static bool parse_dotted(struct jinja_parser *p, const char *what, struct jinja_str *out)
{
    *out = p->at->text;
    if (!jinja_parse_expect(p, JINJA_TOKEN_NAME, what))
        return false;
    if (jinja_parse_is(p, JINJA_TOKEN_DOT))
        return jinja_parse_fail(p, p->at, SHOAL_EUNSUPPORTED,
                                "filters and tests have no '.' in their names");
    return true;
}

/* Rejects an unknown filter or test here, unless it is inside an if: then when it is reached. */
static bool check_known(struct jinja_parser *p, const struct jinja_token *t, const char *what,
                        int id)
{
    if (id >= 0 || p->soft)
        return true;
    p->rc = err_set(p->e, SHOAL_EUNSUPPORTED, "line %u, column %u: %s '%.*s' %s", t->line, t->col,
                    what, t->text.n < 40 ? (int)t->text.n : 40, t->text.p,
                    id == JINJA_NAME_UNKNOWN ? "does not exist" : "is not supported");
    return false;
}

/* The filters after n, from the first name on; n is NULL for a block. */
struct jinja_node *jinja_expr_filter(struct jinja_parser *p, struct jinja_node *n)
{
    do {
        const struct jinja_token *t = p->at;
        struct jinja_node *args = NULL;
        struct jinja_str name;
        if (!parse_dotted(p, "the name of a filter", &name))
            return NULL;
        int id = jinja_names_filter(name);
        if (!check_known(p, t, "filter", id))
            return NULL;
        if (jinja_parse_is(p, JINJA_TOKEN_OPEN_PAREN) && !parse_args(p, &args))
            return NULL;
        n = jinja_parse_make_op(p, JINJA_NODE_FILTER, t, JINJA_OP_NONE, n, args);
        if (!n)
            return NULL;
        n->text = name;
        n->id = id;
    } while (jinja_parse_accept(p, JINJA_TOKEN_PIPE));
    return n;
}

static bool starts_argument(const struct jinja_parser *p)
{
    switch (p->at->type) {
    case JINJA_TOKEN_NAME:
        return !jinja_parse_is_name(p->at, "else") && !jinja_parse_is_name(p->at, "or") &&
               !jinja_parse_is_name(p->at, "and");
    case JINJA_TOKEN_STRING:
    case JINJA_TOKEN_INTEGER:
    case JINJA_TOKEN_FLOAT:
    case JINJA_TOKEN_OPEN_BRACKET:
    case JINJA_TOKEN_OPEN_BRACE:
        return true;
    default:
        return false;
    }
}

static struct jinja_node *parse_test(struct jinja_parser *p, struct jinja_node *operand)
{
    p->at++;
    bool negate = jinja_parse_accept_name(p, "not");
    const struct jinja_token *t = p->at;
    struct jinja_node *args = NULL;
    struct jinja_str name;
    if (!parse_dotted(p, "the name of a test", &name))
        return NULL;
    int id = jinja_names_test(name);
    if (!check_known(p, t, "test", id))
        return NULL;
    if (jinja_parse_is(p, JINJA_TOKEN_OPEN_PAREN)) {
        if (!parse_args(p, &args))
            return NULL;
    } else if (starts_argument(p)) {
        if (jinja_parse_is_name(p->at, "is"))
            return jinja_parse_fail(p, p->at, SHOAL_EFORMAT,
                                    "tests with is cannot follow each other");
        args = jinja_expr_primary(p);
        args = args ? parse_postfix(p, args) : NULL;
        if (!args)
            return NULL;
    }
    struct jinja_node *n = jinja_parse_make_op(p, JINJA_NODE_TEST, t, JINJA_OP_NONE, operand, args);
    if (!n)
        return NULL;
    n->text = name;
    n->id = id;
    return negate ? jinja_parse_make_op(p, JINJA_NODE_UNARY, t, JINJA_OP_NOT, n, NULL) : n;
}

/* ---- operators, tightest first -------------------------------------------------------------- */

static struct jinja_node *parse_unary(struct jinja_parser *p, bool filters)
{
    const struct jinja_token *t = p->at;
    struct jinja_node *n;
    if (jinja_parse_accept(p, JINJA_TOKEN_ADD)) {
        if (!jinja_parse_enter(p))
            return NULL;
        n = parse_unary(p, false);
        n = jinja_parse_leave(p, jinja_parse_make_op(p, JINJA_NODE_UNARY, t, t->op, n, NULL));
    } else {
        n = jinja_expr_primary(p);
    }
    n = n ? parse_postfix(p, n) : NULL;
    while (n && filters) {
        if (jinja_parse_accept(p, JINJA_TOKEN_PIPE))
            n = jinja_expr_filter(p, n);
        else if (jinja_parse_is_name(p->at, "is"))
            n = parse_test(p, n);
        else if (jinja_parse_is(p, JINJA_TOKEN_OPEN_PAREN))
            n = parse_call(p, n);
        else
            break;
    }
    return n;
}

static struct jinja_node *parse_operand(struct jinja_parser *p)
{
    return parse_unary(p, true);
}

/* left OP right OP right ..., for the tokens of one type */
static struct jinja_node *parse_left_assoc(struct jinja_parser *p, enum jinja_token_type type,
                                           struct jinja_node *(*operand)(struct jinja_parser *))
{
    struct jinja_node *left = operand(p);
    while (left && jinja_parse_is(p, type)) {
        const struct jinja_token *t = p->at++;
        struct jinja_node *right = operand(p);
        left = jinja_parse_make_op(p, JINJA_NODE_BINARY, t, t->op, left, right);
    }
    return left;
}

static struct jinja_node *parse_power(struct jinja_parser *p)
{
    return parse_left_assoc(p, JINJA_TOKEN_POW, parse_operand);
}

static struct jinja_node *parse_product(struct jinja_parser *p)
{
    return parse_left_assoc(p, JINJA_TOKEN_MUL, parse_power);
}

static struct jinja_node *parse_concat(struct jinja_parser *p)
{
    const struct jinja_token *t = p->at;
    struct jinja_node *n = parse_product(p);
    if (!n || !jinja_parse_is(p, JINJA_TOKEN_TILDE))
        return n;
    struct jinja_chain items = {0};
    jinja_parse_chain_add(&items, n);
    while (jinja_parse_accept(p, JINJA_TOKEN_TILDE)) {
        n = parse_product(p);
        if (!n)
            return NULL;
        jinja_parse_chain_add(&items, n);
    }
    return jinja_parse_make_op(p, JINJA_NODE_CONCAT, t, JINJA_OP_NONE, items.first, NULL);
}

static struct jinja_node *parse_sum(struct jinja_parser *p)
{
    return parse_left_assoc(p, JINJA_TOKEN_ADD, parse_concat);
}

static struct jinja_node *parse_comparison(struct jinja_parser *p)
{
    const struct jinja_token *start = p->at;
    struct jinja_node *left = parse_sum(p);
    struct jinja_chain operands = {0};
    while (left) {
        const struct jinja_token *t = p->at;
        enum jinja_op op = t->op;
        if (jinja_parse_is_name(t, "not") && jinja_parse_is_name(t + 1, "in")) {
            op = JINJA_OP_NOT_IN;
            p->at++;
        } else if (jinja_parse_is_name(t, "in")) {
            op = JINJA_OP_IN;
        } else if (!jinja_parse_is(p, JINJA_TOKEN_COMPARE)) {
            break;
        }
        p->at++;
        struct jinja_node *right = parse_sum(p);
        right = jinja_parse_make_op(p, JINJA_NODE_OPERAND, t, op, right, NULL);
        if (!right)
            return NULL;
        jinja_parse_chain_add(&operands, right);
    }
    if (!left || !operands.first)
        return left;
    return jinja_parse_make_op(p, JINJA_NODE_COMPARE, start, JINJA_OP_NONE, left, operands.first);
}

static struct jinja_node *parse_not(struct jinja_parser *p)
{
    const struct jinja_token *t = p->at;
    if (!jinja_parse_is_name(t, "not"))
        return parse_comparison(p);
    if (!jinja_parse_enter(p))
        return NULL;
    p->at++;
    struct jinja_node *operand = parse_not(p);
    return jinja_parse_leave(
        p, jinja_parse_make_op(p, JINJA_NODE_UNARY, t, JINJA_OP_NOT, operand, NULL));
}

static struct jinja_node *parse_and(struct jinja_parser *p)
{
    struct jinja_node *left = parse_not(p);
    while (left && jinja_parse_is_name(p->at, "and")) {
        const struct jinja_token *t = p->at++;
        struct jinja_node *right = parse_not(p);
        left = jinja_parse_make_op(p, JINJA_NODE_BINARY, t, JINJA_OP_AND, left, right);
    }
    return left;
}

struct jinja_node *jinja_expr_or(struct jinja_parser *p)
{
    struct jinja_node *left = parse_and(p);
    while (left && jinja_parse_is_name(p->at, "or")) {
        const struct jinja_token *t = p->at++;
        struct jinja_node *right = parse_and(p);
        left = jinja_parse_make_op(p, JINJA_NODE_BINARY, t, JINJA_OP_OR, left, right);
    }
    return left;
}

struct jinja_node *jinja_expr_parse(struct jinja_parser *p)
{
    bool soft = p->soft;
    if (!jinja_parse_enter(p))
        return NULL;
    struct jinja_node *value = jinja_expr_or(p);
    while (value && jinja_parse_is_name(p->at, "if")) {
        const struct jinja_token *t = p->at++;
        p->soft = true;
        struct jinja_node *test = jinja_expr_or(p), *otherwise = NULL;
        if (!test || (jinja_parse_accept_name(p, "else") && !(otherwise = jinja_expr_parse(p))))
            return NULL;
        value = jinja_parse_make_op(p, JINJA_NODE_COND, t, JINJA_OP_NONE, test, value);
        if (value) {
            value->c = otherwise;
            value = jinja_parse_finish(p, value);
        }
        p->soft = soft;
    }
    return jinja_parse_leave(p, value);
}
