/* jinja_parse.c - see jinja_parse.h.  Recursive descent in the order of Jinja's own parser, one
 * function per level of precedence: if/else < or < and < not < comparisons and in < + - < ~ <
 * * / // % < ** < sign < | is . [] ().  Each returns its node, or NULL after fail() has filled the
 * error. */
#include "text/jinja/jinja_parse.h"

#include "base/decimal.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "text/jinja/jinja_names.h"
#include "text/jinja/jinja_number.h"
#include "text/jinja/jinja_symbols.h"

enum { NAME_SLOTS = 2 * JINJA_MAX_NAMES };

struct names { /* the names of variables, each with an id */
    struct jinja_str at[JINJA_MAX_NAMES];
    uint16_t slots[NAME_SLOTS]; /* id + 1 by hash */
    size_t n;
};

struct parser {
    struct arena *arena;
    struct err *e;
    int rc;
    const struct jinja_token *at; /* next token; the list ends with JINJA_TOKEN_END */
    int depth;
    int loops; /* for statements around: break and continue may stand here */
    bool soft; /* inside an if: what is not known counts only when it is reached */
    struct names *names;
};

/* A chain while it is built. */
struct chain {
    struct jinja_node *first, *last;
};

static struct jinja_node *parse_expression(struct parser *p);
static struct jinja_node *parse_or(struct parser *p);
static struct jinja_node *parse_unary(struct parser *p, bool filters);
static struct jinja_node *parse_primary(struct parser *p);

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

static bool accept_name(struct parser *p, const char *name)
{
    if (!is_name(p->at, name))
        return false;
    p->at++;
    return true;
}

static bool expect_name(struct parser *p, const char *name)
{
    if (!accept_name(p, name))
        unexpected(p, name);
    return p->rc == 0;
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
    const struct jinja_node *const children[] = {n->a, n->b, n->c, n->d, n->test};
    uint16_t h = 0;
    for (size_t i = 0; i < 5; i++) {
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

/* The id of a name; the same name has the same id everywhere. */
static bool intern(struct parser *p, const struct jinja_token *t, int32_t *out)
{
    struct names *s = p->names;
    size_t i = (size_t)hash_bytes(t->text.p, t->text.n, 0) % NAME_SLOTS;
    while (s->slots[i] && !jinja_str_eq(s->at[s->slots[i] - 1], t->text))
        i = (i + 1) % NAME_SLOTS;
    if (!s->slots[i]) {
        if (s->n == JINJA_MAX_NAMES)
            return fail(p, t, SHOAL_ELIMIT, "the template has too many names of variables");
        s->at[s->n++] = t->text;
        s->slots[i] = (uint16_t)s->n;
    }
    *out = s->slots[i] - 1;
    return true;
}

static struct jinja_node *make_name(struct parser *p, const struct jinja_token *t, bool stored)
{
    struct jinja_node *n = make(p, JINJA_NODE_NAME, t);
    if (!n || !intern(p, t, &n->id))
        return NULL;
    n->text = t->text;
    n->flag = stored;
    return n;
}

/* ---- arguments ------------------------------------------------------------------------------ */

static bool bad_arguments(struct parser *p, const struct jinja_token *t)
{
    return fail(p, t, SHOAL_EFORMAT,
                "arguments come in the order: plain ones, named ones, *list, **dict");
}

static struct jinja_node *parse_spread(struct parser *p, enum jinja_node_kind kind)
{
    const struct jinja_token *t = p->at++;
    struct jinja_node *value = parse_expression(p);
    return make_op(p, kind, t, JINJA_OP_NONE, value, NULL);
}

/* (a, b, c=1, *d, **e) */
static bool parse_args(struct parser *p, struct jinja_node **out)
{
    struct chain args = {0};
    bool named = false, spread = false, kwspread = false;
    *out = NULL;
    if (!expect(p, JINJA_TOKEN_OPEN_PAREN, "'('"))
        return false;
    while (!is(p, JINJA_TOKEN_CLOSE_PAREN)) {
        const struct jinja_token *t = p->at;
        struct jinja_node *arg;
        if (args.first && !expect(p, JINJA_TOKEN_COMMA, "','"))
            return false;
        if (is(p, JINJA_TOKEN_CLOSE_PAREN) && args.first)
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
            struct jinja_node *value = parse_expression(p);
            arg = make_op(p, JINJA_NODE_KWARG, t, JINJA_OP_NONE, value, NULL);
            if (arg)
                arg->text = t->text;
        } else {
            if (named || spread || kwspread)
                return bad_arguments(p, t);
            arg = parse_expression(p);
        }
        if (!arg)
            return false;
        chain_add(&args, arg);
    }
    p->at++;
    *out = args.first;
    return true;
}

/* ---- values --------------------------------------------------------------------------------- */

static struct jinja_node *parse_integer(struct parser *p)
{
    const struct jinja_token *t = p->at++;
    struct jinja_node *n = make(p, JINJA_NODE_INT, t);
    char c = t->text.n > 1 ? (char)(t->text.p[1] | 32) : '0';
    unsigned base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 10;
    if (!n || jinja_number_int(t->text, base, &n->i) == JINJA_NUMBER_INT)
        return n;
    if (base != 10)
        return fail(p, t, SHOAL_ELIMIT, "integers of more than 64 bits must be decimal");
    n->kind = JINJA_NODE_BIGINT;
    n->text = t->text;
    return n;
}

static struct jinja_node *parse_float(struct parser *p)
{
    const struct jinja_token *t = p->at++;
    struct jinja_node *n = make(p, JINJA_NODE_FLOAT, t);
    if (n)
        n->num = decimal_read(t->text.p, t->text.n);
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

/* What may stand behind the last comma of a tuple. */
static bool at_tuple_end(const struct parser *p, const char *word)
{
    return is(p, JINJA_TOKEN_CLOSE_EXPRESSION) || is(p, JINJA_TOKEN_CLOSE_STATEMENT) ||
           is(p, JINJA_TOKEN_CLOSE_PAREN) || (word && is_name(p->at, word));
}

/* a, b, c is a tuple; a alone is a.  `word` ends the tuple as well; with `parentheses` it may be
 * empty. */
static struct jinja_node *parse_tuple(struct parser *p, struct jinja_node *(*one)(struct parser *),
                                      const char *word, bool parentheses)
{
    const struct jinja_token *t = p->at;
    struct chain items = {0};
    bool tuple = false;
    for (;;) {
        if (items.first && !expect(p, JINJA_TOKEN_COMMA, "','"))
            return NULL;
        if (at_tuple_end(p, word))
            break;
        struct jinja_node *item = one(p);
        if (!item)
            return NULL;
        chain_add(&items, item);
        if (!is(p, JINJA_TOKEN_COMMA))
            break;
        tuple = true;
    }
    if (!tuple && items.first)
        return items.first;
    if (!tuple && !parentheses)
        return unexpected(p, "a value");
    return make_op(p, JINJA_NODE_TUPLE, t, JINJA_OP_NONE, items.first, NULL);
}

static struct jinja_node *parse_list(struct parser *p)
{
    const struct jinja_token *t = p->at++;
    struct chain items = {0};
    while (!is(p, JINJA_TOKEN_CLOSE_BRACKET)) {
        if (items.first && !expect(p, JINJA_TOKEN_COMMA, "',' or ']'"))
            return NULL;
        if (is(p, JINJA_TOKEN_CLOSE_BRACKET))
            break;
        struct jinja_node *item = parse_expression(p);
        if (!item)
            return NULL;
        chain_add(&items, item);
    }
    p->at++;
    return make_op(p, JINJA_NODE_LIST, t, JINJA_OP_NONE, items.first, NULL);
}

static struct jinja_node *parse_dict(struct parser *p)
{
    const struct jinja_token *t = p->at++;
    struct chain pairs = {0};
    while (!is(p, JINJA_TOKEN_CLOSE_BRACE)) {
        if (pairs.first && !expect(p, JINJA_TOKEN_COMMA, "',' or '}'"))
            return NULL;
        if (is(p, JINJA_TOKEN_CLOSE_BRACE))
            break;
        const struct jinja_token *start = p->at;
        struct jinja_node *key = parse_expression(p);
        if (!key || !expect(p, JINJA_TOKEN_COLON, "':'"))
            return NULL;
        struct jinja_node *value = parse_expression(p);
        struct jinja_node *pair = make_op(p, JINJA_NODE_PAIR, start, JINJA_OP_NONE, key, value);
        if (!pair)
            return NULL;
        chain_add(&pairs, pair);
    }
    p->at++;
    return make_op(p, JINJA_NODE_DICT, t, JINJA_OP_NONE, pairs.first, NULL);
}

/* none, true and false in both spellings, or NULL when the token is a name like any other. */
static struct jinja_node *parse_constant(struct parser *p)
{
    const struct jinja_token *t = p->at;
    bool none = is_name(t, "none") || is_name(t, "None");
    bool yes = is_name(t, "true") || is_name(t, "True");
    if (!none && !yes && !is_name(t, "false") && !is_name(t, "False"))
        return NULL;
    p->at++;
    struct jinja_node *n = make(p, none ? JINJA_NODE_NONE : JINJA_NODE_BOOL, t);
    if (n)
        n->flag = yes;
    return n;
}

static struct jinja_node *parse_primary(struct parser *p)
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
        n = parse_constant(p);
        return n || p->rc < 0 ? n : make_name(p, p->at++, false);
    case JINJA_TOKEN_OPEN_PAREN:
        p->at++;
        if (!enter(p))
            return NULL;
        n = leave(p, parse_tuple(p, parse_expression, NULL, true));
        return n && expect(p, JINJA_TOKEN_CLOSE_PAREN, "')'") ? n : NULL;
    case JINJA_TOKEN_OPEN_BRACKET:
        return parse_list(p);
    case JINJA_TOKEN_OPEN_BRACE:
        return parse_dict(p);
    default:
        return unexpected(p, "a value");
    }
}

/* ---- what follows a value ------------------------------------------------------------------- */

static bool at_part_end(const struct parser *p)
{
    return is(p, JINJA_TOKEN_COLON) || is(p, JINJA_TOKEN_CLOSE_BRACKET) || is(p, JINJA_TOKEN_COMMA);
}

/* One index, or start:stop:step with any of them left out. */
static struct jinja_node *parse_subscribed(struct parser *p)
{
    const struct jinja_token *t = p->at;
    struct jinja_node *part[3] = {0};
    if (!is(p, JINJA_TOKEN_COLON) && !(part[0] = parse_expression(p)))
        return NULL;
    if (!accept(p, JINJA_TOKEN_COLON))
        return part[0];
    if (!at_part_end(p) && !(part[1] = parse_expression(p)))
        return NULL;
    if (accept(p, JINJA_TOKEN_COLON) && !at_part_end(p) && !(part[2] = parse_expression(p)))
        return NULL;
    struct jinja_node *s = make_op(p, JINJA_NODE_SLICE, t, JINJA_OP_NONE, part[0], part[1]);
    if (!s)
        return NULL;
    s->c = part[2];
    return finish(p, s);
}

static struct jinja_node *parse_subscript(struct parser *p, struct jinja_node *object)
{
    const struct jinja_token *t = p->at++;
    struct chain args = {0};
    while (!is(p, JINJA_TOKEN_CLOSE_BRACKET)) {
        if (args.first && !expect(p, JINJA_TOKEN_COMMA, "']'"))
            return NULL;
        struct jinja_node *arg = parse_subscribed(p);
        if (!arg)
            return NULL;
        chain_add(&args, arg);
    }
    p->at++;
    struct jinja_node *index = args.first;
    if (!index || index->next) {
        for (const struct jinja_node *n = index; n; n = n->next)
            if (n->kind == JINJA_NODE_SLICE)
                return fail(p, t, SHOAL_EUNSUPPORTED, "a slice in a tuple of indices");
        index = make_op(p, JINJA_NODE_TUPLE, t, JINJA_OP_NONE, args.first, NULL);
    }
    return make_op(p, JINJA_NODE_GETITEM, t, JINJA_OP_NONE, object, index);
}

/* .name or .0 */
static struct jinja_node *parse_attribute(struct parser *p, struct jinja_node *object)
{
    const struct jinja_token *t = ++p->at;
    if (is(p, JINJA_TOKEN_INTEGER)) {
        struct jinja_node *index = parse_integer(p);
        return make_op(p, JINJA_NODE_GETITEM, t, JINJA_OP_NONE, object, index);
    }
    if (!expect(p, JINJA_TOKEN_NAME, "a name or a whole number"))
        return NULL;
    struct jinja_node *n = make_op(p, JINJA_NODE_GETATTR, t, JINJA_OP_NONE, object, NULL);
    if (n)
        n->text = t->text;
    return n;
}

static struct jinja_node *parse_call(struct parser *p, struct jinja_node *callee)
{
    struct jinja_node *args;
    const struct jinja_token *t = p->at;
    if (!enter(p) || !parse_args(p, &args))
        return NULL;
    struct jinja_node *n = make_op(p, JINJA_NODE_CALL, t, JINJA_OP_NONE, callee, args);
    if (n) { /* errors of a call point at what is called */
        n->line = callee->line;
        n->col = callee->col;
    }
    return leave(p, n);
}

static struct jinja_node *parse_postfix(struct parser *p, struct jinja_node *n)
{
    while (n) {
        if (is(p, JINJA_TOKEN_DOT))
            n = parse_attribute(p, n);
        else if (is(p, JINJA_TOKEN_OPEN_BRACKET))
            n = parse_subscript(p, n);
        else if (is(p, JINJA_TOKEN_OPEN_PAREN))
            n = parse_call(p, n);
        else
            break;
    }
    return n;
}

/* name or name.name, as one text */
static bool parse_dotted(struct parser *p, const char *what, struct jinja_str *out)
{
    *out = p->at->text;
    if (!expect(p, JINJA_TOKEN_NAME, what))
        return false;
    if (is(p, JINJA_TOKEN_DOT))
        return fail(p, p->at, SHOAL_EUNSUPPORTED, "filters and tests have no '.' in their names");
    return true;
}

/* An unknown filter or test is refused here, unless it stands in an if: then when it is reached. */
static bool check_known(struct parser *p, const struct jinja_token *t, const char *what, int id)
{
    if (id >= 0 || p->soft)
        return true;
    p->rc = err_set(p->e, SHOAL_EUNSUPPORTED, "line %u, column %u: %s '%.*s' %s", t->line, t->col,
                    what, t->text.n < 40 ? (int)t->text.n : 40, t->text.p,
                    id == JINJA_NAME_UNKNOWN ? "does not exist" : "is not supported");
    return false;
}

/* The filters after n, from the first name on; n is NULL for a block. */
static struct jinja_node *parse_filter(struct parser *p, struct jinja_node *n)
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
        if (is(p, JINJA_TOKEN_OPEN_PAREN) && !parse_args(p, &args))
            return NULL;
        n = make_op(p, JINJA_NODE_FILTER, t, JINJA_OP_NONE, n, args);
        if (!n)
            return NULL;
        n->text = name;
        n->id = id;
    } while (accept(p, JINJA_TOKEN_PIPE));
    return n;
}

static bool starts_argument(const struct parser *p)
{
    switch (p->at->type) {
    case JINJA_TOKEN_NAME:
        return !is_name(p->at, "else") && !is_name(p->at, "or") && !is_name(p->at, "and");
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

static struct jinja_node *parse_test(struct parser *p, struct jinja_node *operand)
{
    p->at++;
    bool negate = accept_name(p, "not");
    const struct jinja_token *t = p->at;
    struct jinja_node *args = NULL;
    struct jinja_str name;
    if (!parse_dotted(p, "the name of a test", &name))
        return NULL;
    int id = jinja_names_test(name);
    if (!check_known(p, t, "test", id))
        return NULL;
    if (is(p, JINJA_TOKEN_OPEN_PAREN)) {
        if (!parse_args(p, &args))
            return NULL;
    } else if (starts_argument(p)) {
        if (is_name(p->at, "is"))
            return fail(p, p->at, SHOAL_EFORMAT, "tests with is cannot follow each other");
        args = parse_primary(p);
        args = args ? parse_postfix(p, args) : NULL;
        if (!args)
            return NULL;
    }
    struct jinja_node *n = make_op(p, JINJA_NODE_TEST, t, JINJA_OP_NONE, operand, args);
    if (!n)
        return NULL;
    n->text = name;
    n->id = id;
    return negate ? make_op(p, JINJA_NODE_UNARY, t, JINJA_OP_NOT, n, NULL) : n;
}

/* ---- operators, tightest first -------------------------------------------------------------- */

static struct jinja_node *parse_unary(struct parser *p, bool filters)
{
    const struct jinja_token *t = p->at;
    struct jinja_node *n;
    if (accept(p, JINJA_TOKEN_ADD)) {
        if (!enter(p))
            return NULL;
        n = parse_unary(p, false);
        n = leave(p, make_op(p, JINJA_NODE_UNARY, t, t->op, n, NULL));
    } else {
        n = parse_primary(p);
    }
    n = n ? parse_postfix(p, n) : NULL;
    while (n && filters) {
        if (accept(p, JINJA_TOKEN_PIPE))
            n = parse_filter(p, n);
        else if (is_name(p->at, "is"))
            n = parse_test(p, n);
        else if (is(p, JINJA_TOKEN_OPEN_PAREN))
            n = parse_call(p, n);
        else
            break;
    }
    return n;
}

static struct jinja_node *parse_operand(struct parser *p)
{
    return parse_unary(p, true);
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
    return parse_left_assoc(p, JINJA_TOKEN_POW, parse_operand);
}

static struct jinja_node *parse_product(struct parser *p)
{
    return parse_left_assoc(p, JINJA_TOKEN_MUL, parse_power);
}

static struct jinja_node *parse_concat(struct parser *p)
{
    const struct jinja_token *t = p->at;
    struct jinja_node *n = parse_product(p);
    if (!n || !is(p, JINJA_TOKEN_TILDE))
        return n;
    struct chain items = {0};
    chain_add(&items, n);
    while (accept(p, JINJA_TOKEN_TILDE)) {
        n = parse_product(p);
        if (!n)
            return NULL;
        chain_add(&items, n);
    }
    return make_op(p, JINJA_NODE_CONCAT, t, JINJA_OP_NONE, items.first, NULL);
}

static struct jinja_node *parse_sum(struct parser *p)
{
    return parse_left_assoc(p, JINJA_TOKEN_ADD, parse_concat);
}

static struct jinja_node *parse_comparison(struct parser *p)
{
    const struct jinja_token *start = p->at;
    struct jinja_node *left = parse_sum(p);
    struct chain operands = {0};
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
        right = make_op(p, JINJA_NODE_OPERAND, t, op, right, NULL);
        if (!right)
            return NULL;
        chain_add(&operands, right);
    }
    if (!left || !operands.first)
        return left;
    return make_op(p, JINJA_NODE_COMPARE, start, JINJA_OP_NONE, left, operands.first);
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
    bool soft = p->soft;
    if (!enter(p))
        return NULL;
    struct jinja_node *value = parse_or(p);
    while (value && is_name(p->at, "if")) {
        const struct jinja_token *t = p->at++;
        p->soft = true;
        struct jinja_node *test = parse_or(p), *otherwise = NULL;
        if (!test || (accept_name(p, "else") && !(otherwise = parse_expression(p))))
            return NULL;
        value = make_op(p, JINJA_NODE_COND, t, JINJA_OP_NONE, test, value);
        if (value) {
            value->c = otherwise;
            value = finish(p, value);
        }
        p->soft = soft;
    }
    return leave(p, value);
}

/* ---- statements ----------------------------------------------------------------------------- */

static bool parse_chain(struct parser *p, struct jinja_node **out, const char *const ends[]);

static bool close_statement(struct parser *p)
{
    return expect(p, JINJA_TOKEN_CLOSE_STATEMENT, "'%}'");
}

/* %} and statements up to {% one of ends, whose name is left unread. */
static bool parse_body(struct parser *p, struct jinja_node **out, const char *const ends[])
{
    accept(p, JINJA_TOKEN_COLON); /* as Python has it */
    if (!close_statement(p) || !parse_chain(p, out, ends))
        return false;
    if (!is(p, JINJA_TOKEN_END))
        return true;
    p->rc = err_set(p->e, SHOAL_EFORMAT, "line %u, column %u: the template ends without {%% %s %%}",
                    p->at->line, p->at->col, ends[0]);
    return false;
}

/* The same for the body of a scope of its own, up to {% end; `loops`: break may stand in it. */
static bool parse_scope(struct parser *p, struct jinja_node **out, const char *end, bool loops)
{
    const char *const ends[] = {end, NULL};
    bool soft = p->soft;
    int around = p->loops;
    p->soft = false;
    if (!loops)
        p->loops = 0;
    bool ok = parse_body(p, out, ends);
    p->soft = soft;
    p->loops = around;
    if (ok)
        p->at++;
    return ok;
}

/* What is set by set, for and with: a name or a tuple of them. */
static bool mark_target(struct parser *p, const struct jinja_token *t, struct jinja_node *n)
{
    if (n->kind == JINJA_NODE_NAME) {
        n->flag = true;
        return true;
    }
    bool ok = n->kind == JINJA_NODE_TUPLE;
    for (struct jinja_node *item = ok ? n->a : NULL; ok && item; item = item->next)
        ok = mark_target(p, t, item);
    return ok || (p->rc == 0 && fail(p, t, SHOAL_EFORMAT, "only names can be set"));
}

static struct jinja_node *parse_target(struct parser *p, const char *word)
{
    const struct jinja_token *t = p->at;
    struct jinja_node *n = parse_tuple(p, parse_primary, word, false);
    return n && mark_target(p, t, n) ? n : NULL;
}

static struct jinja_node *parse_set(struct parser *p, const struct jinja_token *t)
{
    struct jinja_node *n = make(p, JINJA_NODE_SET, t);
    if (!n)
        return NULL;
    if (p->at[1].type == JINJA_TOKEN_DOT) {
        const struct jinja_token *ns = p->at;
        if (!expect(p, JINJA_TOKEN_NAME, "a name") || !(n->a = make(p, JINJA_NODE_NSREF, ns)) ||
            !intern(p, ns, &n->a->id))
            return NULL;
        n->a->text = ns->text;
        const struct jinja_token *member = ++p->at;
        if (!expect(p, JINJA_TOKEN_NAME, "a name") ||
            !(n->a->b = make(p, JINJA_NODE_STRING, member)))
            return NULL;
        n->a->b->text = member->text;
    } else if (!(n->a = parse_target(p, NULL))) {
        return NULL;
    }
    if (accept(p, JINJA_TOKEN_EQUALS)) {
        n->b = parse_tuple(p, parse_expression, NULL, false);
        return n->b ? finish(p, n) : NULL;
    }
    n->kind = JINJA_NODE_SETBLOCK;
    if ((accept(p, JINJA_TOKEN_PIPE) && !(n->b = parse_filter(p, NULL))) ||
        !parse_scope(p, &n->c, "endset", true))
        return NULL;
    return finish(p, n);
}

static struct jinja_node *parse_if(struct parser *p, const struct jinja_token *t)
{
    static const char *const ends[] = {"endif", "elif", "else", NULL};
    static const char *const last[] = {"endif", NULL};
    struct jinja_node *first = NULL;
    struct chain elifs = {0};
    bool soft = p->soft;
    p->soft = true;
    for (;;) {
        struct jinja_node *n = make(p, JINJA_NODE_IF, t);
        if (!n || !(n->a = parse_tuple(p, parse_or, NULL, false)) || !parse_body(p, &n->b, ends) ||
            !finish(p, n))
            return NULL;
        if (first)
            chain_add(&elifs, n);
        else
            first = n;
        t = p->at++;
        if (!is_name(t, "elif"))
            break;
    }
    first->c = elifs.first;
    if (is_name(t, "else")) {
        if (!parse_body(p, &first->d, last))
            return NULL;
        p->at++;
    }
    p->soft = soft;
    return finish(p, first);
}

/* Does a chain set the name `loop`, which belongs to the for around it? */
static bool sets_loop(const struct jinja_node *n)
{
    for (; n; n = n->next)
        if ((n->kind == JINJA_NODE_NAME && n->flag && jinja_str_is(n->text, "loop")) ||
            sets_loop(n->a) || sets_loop(n->b) || sets_loop(n->c) || sets_loop(n->d))
            return true;
    return false;
}

static struct jinja_node *parse_for(struct parser *p, const struct jinja_token *t)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    struct jinja_node *n = make(p, JINJA_NODE_FOR, t);
    bool soft = p->soft;
    if (!n || !(n->a = parse_target(p, "in")) || !expect_name(p, "in") ||
        !(n->b = parse_tuple(p, parse_or, "recursive", false)))
        return NULL;
    p->soft = false;
    if (accept_name(p, "if") && !(n->test = parse_expression(p)))
        return NULL;
    n->flag = accept_name(p, "recursive");
    p->loops++;
    if (!parse_body(p, &n->c, ends))
        return NULL;
    p->loops--;
    p->soft = soft;
    bool otherwise = is_name(p->at++, "else");
    if (otherwise && !parse_scope(p, &n->d, "endfor", true))
        return NULL;
    if (sets_loop(n->a) || sets_loop(n->c) || sets_loop(n->d))
        return fail(p, t, SHOAL_EFORMAT, "the name loop cannot be set in a for statement");
    return finish(p, n);
}

/* (a, b=1) of a macro or call block */
static bool parse_signature(struct parser *p, struct jinja_node **out)
{
    struct chain args = {0};
    bool defaults = false;
    if (!expect(p, JINJA_TOKEN_OPEN_PAREN, "'('"))
        return false;
    while (!is(p, JINJA_TOKEN_CLOSE_PAREN)) {
        if (args.first && !expect(p, JINJA_TOKEN_COMMA, "','"))
            return false;
        const struct jinja_token *t = p->at;
        struct jinja_node *arg = make(p, JINJA_NODE_KWARG, t);
        if (!arg || !expect(p, JINJA_TOKEN_NAME, "the name of a parameter") ||
            !intern(p, t, &arg->id))
            return false;
        arg->text = t->text;
        for (const struct jinja_node *a = args.first; a; a = a->next)
            if (a->id == arg->id)
                return fail(p, t, SHOAL_EFORMAT, "two parameters have the same name");
        if (accept(p, JINJA_TOKEN_EQUALS)) {
            defaults = true;
            if (!(arg->a = parse_expression(p)) || !finish(p, arg))
                return false;
        } else if (defaults) {
            return fail(p, t, SHOAL_EFORMAT, "parameters without a default come first");
        }
        chain_add(&args, arg);
    }
    p->at++;
    *out = args.first;
    return true;
}

/* Is a name usable as the target of an assignment? */
static bool check_name(struct parser *p)
{
    const struct jinja_token *t = p->at;
    struct jinja_node *constant = is(p, JINJA_TOKEN_NAME) ? parse_constant(p) : NULL;
    if (constant)
        return fail(p, t, SHOAL_EFORMAT, "only names can be set");
    return p->rc == 0;
}

static struct jinja_node *parse_macro(struct parser *p, const struct jinja_token *t)
{
    struct jinja_node *n = make(p, JINJA_NODE_MACRO, t);
    const struct jinja_token *name = p->at;
    if (!n || !check_name(p) || !expect(p, JINJA_TOKEN_NAME, "the name of the macro") ||
        !intern(p, name, &n->id))
        return NULL;
    n->text = name->text;
    bool soft = p->soft;
    p->soft = false;
    if (!parse_signature(p, &n->a) || !parse_scope(p, &n->c, "endmacro", false))
        return NULL;
    p->soft = soft;
    return finish(p, n);
}

static struct jinja_node *parse_call_block(struct parser *p, const struct jinja_token *t)
{
    struct jinja_node *n = make(p, JINJA_NODE_CALLBLOCK, t);
    if (!n || (is(p, JINJA_TOKEN_OPEN_PAREN) && !parse_signature(p, &n->a)))
        return NULL;
    const struct jinja_token *callee = p->at;
    n->text = JINJA_STR("caller");
    if (!(n->b = parse_expression(p)))
        return NULL;
    if (n->b->kind != JINJA_NODE_CALL)
        return fail(p, callee, SHOAL_EFORMAT, "a call must follow");
    return parse_scope(p, &n->c, "endcall", false) ? finish(p, n) : NULL;
}

static struct jinja_node *parse_filter_block(struct parser *p, const struct jinja_token *t)
{
    struct jinja_node *n = make(p, JINJA_NODE_FILTERBLOCK, t);
    bool soft = p->soft;
    p->soft = false;
    if (!n || !(n->b = parse_filter(p, NULL)))
        return NULL;
    p->soft = soft;
    return parse_scope(p, &n->c, "endfilter", true) ? finish(p, n) : NULL;
}

static struct jinja_node *parse_with(struct parser *p, const struct jinja_token *t)
{
    struct jinja_node *n = make(p, JINJA_NODE_WITH, t);
    struct chain pairs = {0};
    while (n && !is(p, JINJA_TOKEN_CLOSE_STATEMENT)) {
        if (pairs.first && !expect(p, JINJA_TOKEN_COMMA, "',' or '%}'"))
            return NULL;
        const struct jinja_token *start = p->at;
        struct jinja_node *target = parse_target(p, NULL);
        if (!target || !expect(p, JINJA_TOKEN_EQUALS, "'='"))
            return NULL;
        struct jinja_node *value = parse_expression(p);
        struct jinja_node *pair = make_op(p, JINJA_NODE_PAIR, start, JINJA_OP_NONE, target, value);
        if (!pair)
            return NULL;
        chain_add(&pairs, pair);
    }
    if (!n)
        return NULL;
    n->a = pairs.first;
    return parse_scope(p, &n->c, "endwith", true) ? finish(p, n) : NULL;
}

/* {% generation %}: marks what a model says; a scope of its own. */
static struct jinja_node *parse_generation(struct parser *p, const struct jinja_token *t)
{
    struct jinja_node *n = make(p, JINJA_NODE_GENERATION, t);
    return n && parse_scope(p, &n->c, "endgeneration", false) ? finish(p, n) : NULL;
}

static struct jinja_node *parse_jump(struct parser *p, const struct jinja_token *t)
{
    if (p->loops == 0)
        return fail(p, t, SHOAL_EFORMAT, "break and continue stand in a for statement only");
    return make(p, is_name(t, "break") ? JINJA_NODE_BREAK : JINJA_NODE_CONTINUE, t);
}

static struct jinja_node *parse_print(struct parser *p, const struct jinja_token *t)
{
    return fail(p, t, SHOAL_EUNSUPPORTED, "statement 'print' is not supported: write {{ }}");
}

static struct jinja_node *parse_statement(struct parser *p)
{
    static const struct {
        const char *name;
        struct jinja_node *(*parse)(struct parser *, const struct jinja_token *);
    } statements[] = {
        {"set", parse_set},         {"if", parse_if},
        {"for", parse_for},         {"macro", parse_macro},
        {"call", parse_call_block}, {"filter", parse_filter_block},
        {"with", parse_with},       {"generation", parse_generation},
        {"break", parse_jump},      {"continue", parse_jump},
        {"print", parse_print},
    };
    const struct jinja_token *t = p->at;
    if (t->type != JINJA_TOKEN_NAME)
        return unexpected(p, "a statement");
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
        if (is_name(t, statements[i].name)) {
            p->at++;
            struct jinja_node *n = statements[i].parse(p, t);
            return n && close_statement(p) ? n : NULL;
        }
    p->rc = err_set(p->e, SHOAL_EUNSUPPORTED,
                    "line %u, column %u: statement '%.*s' is not supported or not expected here",
                    t->line, t->col, t->text.n < 40 ? (int)t->text.n : 40, t->text.p);
    return NULL;
}

/* Text, {{ }} and statements up to the end or to {% one of ends. */
static bool parse_chain(struct parser *p, struct jinja_node **out, const char *const ends[])
{
    struct chain body = {0};
    while (!is(p, JINJA_TOKEN_END)) {
        const struct jinja_token *t = p->at++;
        struct jinja_node *n;
        if (t->type == JINJA_TOKEN_TEXT) {
            n = make(p, JINJA_NODE_TEXT, t);
            if (n)
                n->text = t->text;
        } else if (t->type == JINJA_TOKEN_OPEN_EXPRESSION) {
            n = parse_tuple(p, parse_expression, NULL, false);
            if (n && !expect(p, JINJA_TOKEN_CLOSE_EXPRESSION, "'}}'"))
                return false;
            n = make_op(p, JINJA_NODE_PRINT, t, JINJA_OP_NONE, n, NULL);
        } else {
            for (size_t i = 0; ends && ends[i]; i++)
                if (is_name(p->at, ends[i])) {
                    *out = body.first;
                    return true;
                }
            n = enter(p) ? leave(p, parse_statement(p)) : NULL;
        }
        if (!n)
            return false;
        chain_add(&body, n);
    }
    *out = body.first;
    return true;
}

static int parse_tokens(struct jinja_template *t, const struct jinja_tokens *tokens, struct err *e)
{
    struct names *names = mem_zalloc(sizeof(*names));
    if (!names)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the template");
    struct parser p = {.arena = &t->arena, .e = e, .at = tokens->at, .names = names};
    if (parse_chain(&p, &t->body, NULL))
        p.rc = jinja_symbols_resolve(&t->root, t->body, names->at, names->n, &t->arena, e);
    mem_free(names);
    return p.rc;
}

int jinja_parse(struct jinja_template *out, const char *src, size_t n, struct err *e)
{
    *out = (struct jinja_template){0};
    if (n > JINJA_MAX_SOURCE)
        return err_set(e, SHOAL_ELIMIT, "template has %zu bytes, the limit is %d", n,
                       JINJA_MAX_SOURCE);
    if (utf8_valid_prefix(src, n) < n)
        return err_set(e, SHOAL_EFORMAT, "template is not valid UTF-8");
    /* At worst ("[a,a,a") every second byte becomes a node; the copy of the source, strings with
     * their escapes and the variables of scopes come on top. */
    arena_init(&out->arena, (1u << 20) + n * (sizeof(struct jinja_node) + 64));
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
