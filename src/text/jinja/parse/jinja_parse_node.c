/* jinja_parse_node.c - tokens in, nodes out: shared by the parsers of statements and
 * expressions; see jinja_parse_int.h. */
#include "base/hash.h"
#include "text/jinja/parse/jinja_parse_int.h"

void *jinja_parse_fail(struct jinja_parser *p, const struct jinja_token *t, int code,
                       const char *what)
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

void *jinja_parse_unexpected(struct jinja_parser *p, const char *wanted)
{
    char text[48];
    p->rc = err_set(p->e, SHOAL_EFORMAT, "line %u, column %u: expected %s, found %s", p->at->line,
                    p->at->col, wanted, describe(p->at, text));
    return NULL;
}

bool jinja_parse_is(const struct jinja_parser *p, enum jinja_token_type type)
{
    return p->at->type == type;
}

bool jinja_parse_is_name(const struct jinja_token *t, const char *name)
{
    return t->type == JINJA_TOKEN_NAME && jinja_str_is(t->text, name);
}

bool jinja_parse_accept(struct jinja_parser *p, enum jinja_token_type type)
{
    if (!jinja_parse_is(p, type))
        return false;
    p->at++;
    return true;
}

bool jinja_parse_expect(struct jinja_parser *p, enum jinja_token_type type, const char *wanted)
{
    if (!jinja_parse_accept(p, type))
        jinja_parse_unexpected(p, wanted);
    return p->rc == 0;
}

bool jinja_parse_accept_name(struct jinja_parser *p, const char *name)
{
    if (!jinja_parse_is_name(p->at, name))
        return false;
    p->at++;
    return true;
}

bool jinja_parse_expect_name(struct jinja_parser *p, const char *name)
{
    if (!jinja_parse_accept_name(p, name))
        jinja_parse_unexpected(p, name);
    return p->rc == 0;
}

struct jinja_node *jinja_parse_make(struct jinja_parser *p, enum jinja_node_kind kind,
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
struct jinja_node *jinja_parse_finish(struct jinja_parser *p, struct jinja_node *n)
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

void jinja_parse_chain_add(struct jinja_chain *c, struct jinja_node *n)
{
    if (c->first)
        c->last->next = n;
    else
        c->first = n;
    c->last = n;
}

bool jinja_parse_enter(struct jinja_parser *p)
{
    if (++p->depth > JINJA_MAX_NESTING)
        jinja_parse_fail(p, p->at, SHOAL_ELIMIT, "nested too deeply");
    return p->rc == 0;
}

struct jinja_node *jinja_parse_leave(struct jinja_parser *p, struct jinja_node *n)
{
    p->depth--;
    return n;
}

struct jinja_node *jinja_parse_make_op(struct jinja_parser *p, enum jinja_node_kind kind,
                                       const struct jinja_token *t, enum jinja_op op,
                                       struct jinja_node *a, struct jinja_node *b)
{
    struct jinja_node *n = p->rc == 0 ? jinja_parse_make(p, kind, t) : NULL;
    if (!n)
        return NULL;
    n->op = op;
    n->a = a;
    n->b = b;
    return jinja_parse_finish(p, n);
}

/* The id of a name; the same name has the same id everywhere. */
bool jinja_parse_intern(struct jinja_parser *p, const struct jinja_token *t, int32_t *out)
{
    struct jinja_parse_names *s = p->names;
    size_t i = (size_t)hash_bytes(t->text.p, t->text.n, 0) % JINJA_PARSE_SLOTS;
    while (s->slots[i] && !jinja_str_eq(s->at[s->slots[i] - 1], t->text))
        i = (i + 1) % JINJA_PARSE_SLOTS;
    if (!s->slots[i]) {
        if (s->n == JINJA_MAX_NAMES)
            return jinja_parse_fail(p, t, SHOAL_ELIMIT,
                                    "the template has too many names of variables");
        s->at[s->n++] = t->text;
        s->slots[i] = (uint16_t)s->n;
    }
    *out = s->slots[i] - 1;
    return true;
}

struct jinja_node *jinja_parse_make_name(struct jinja_parser *p, const struct jinja_token *t,
                                         bool stored)
{
    struct jinja_node *n = jinja_parse_make(p, JINJA_NODE_NAME, t);
    if (!n || !jinja_parse_intern(p, t, &n->id))
        return NULL;
    n->text = t->text;
    n->flag = stored;
    return n;
}
