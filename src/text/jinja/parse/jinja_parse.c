/* jinja_parse.c - see jinja_parse.h: statements. */
#include "text/jinja/parse/jinja_parse.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "text/jinja/parse/jinja_parse_int.h"
#include "text/jinja/parse/jinja_symbols.h"

/* ---- statements ----------------------------------------------------------------------------- */

static bool parse_chain(struct jinja_parser *p, struct jinja_node **out, const char *const ends[]);

static bool close_statement(struct jinja_parser *p)
{
    return jinja_parse_expect(p, JINJA_TOKEN_CLOSE_STATEMENT, "'%}'");
}

/* %} and statements up to {% one of ends, whose name is left unread. */
static bool parse_body(struct jinja_parser *p, struct jinja_node **out, const char *const ends[])
{
    jinja_parse_accept(p, JINJA_TOKEN_COLON); /* as Python has it */
    if (!close_statement(p) || !parse_chain(p, out, ends))
        return false;
    if (!jinja_parse_is(p, JINJA_TOKEN_END))
        return true;
    p->rc = err_set(p->e, SHOAL_EFORMAT, "line %u, column %u: the template ends without {%% %s %%}",
                    p->at->line, p->at->col, ends[0]);
    return false;
}

/* The same for a body with its own scope, up to {% end; `loops`: break is allowed in it. */
static bool parse_scope(struct jinja_parser *p, struct jinja_node **out, const char *end,
                        bool loops)
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
static bool mark_target(struct jinja_parser *p, const struct jinja_token *t, struct jinja_node *n)
{
    if (n->kind == JINJA_NODE_NAME) {
        n->flag = true;
        return true;
    }
    bool ok = n->kind == JINJA_NODE_TUPLE;
    for (struct jinja_node *item = ok ? n->a : NULL; ok && item; item = item->next)
        ok = mark_target(p, t, item);
    return ok || (p->rc == 0 && jinja_parse_fail(p, t, SHOAL_EFORMAT, "only names can be set"));
}

static struct jinja_node *parse_target(struct jinja_parser *p, const char *word)
{
    const struct jinja_token *t = p->at;
    struct jinja_node *n = jinja_expr_tuple(p, jinja_expr_primary, word, false);
    return n && mark_target(p, t, n) ? n : NULL;
}

static struct jinja_node *parse_set(struct jinja_parser *p, const struct jinja_token *t)
{
    struct jinja_node *n = jinja_parse_make(p, JINJA_NODE_SET, t);
    if (!n)
        return NULL;
    if (p->at[1].type == JINJA_TOKEN_DOT) {
        const struct jinja_token *ns = p->at;
        if (!jinja_parse_expect(p, JINJA_TOKEN_NAME, "a name") ||
            !(n->a = jinja_parse_make(p, JINJA_NODE_NSREF, ns)) ||
            !jinja_parse_intern(p, ns, &n->a->id))
            return NULL;
        n->a->text = ns->text;
        const struct jinja_token *member = ++p->at;
        if (!jinja_parse_expect(p, JINJA_TOKEN_NAME, "a name") ||
            !(n->a->b = jinja_parse_make(p, JINJA_NODE_STRING, member)))
            return NULL;
        n->a->b->text = member->text;
    } else if (!(n->a = parse_target(p, NULL))) {
        return NULL;
    }
    if (jinja_parse_accept(p, JINJA_TOKEN_EQUALS)) {
        n->b = jinja_expr_tuple(p, jinja_expr_parse, NULL, false);
        return n->b ? jinja_parse_finish(p, n) : NULL;
    }
    n->kind = JINJA_NODE_SETBLOCK;
    if ((jinja_parse_accept(p, JINJA_TOKEN_PIPE) && !(n->b = jinja_expr_filter(p, NULL))) ||
        !parse_scope(p, &n->c, "endset", true))
        return NULL;
    return jinja_parse_finish(p, n);
}

static struct jinja_node *parse_if(struct jinja_parser *p, const struct jinja_token *t)
{
    static const char *const ends[] = {"endif", "elif", "else", NULL};
    static const char *const last[] = {"endif", NULL};
    struct jinja_node *first = NULL;
    struct jinja_chain elifs = {0};
    bool soft = p->soft;
    p->soft = true;
    for (;;) {
        struct jinja_node *n = jinja_parse_make(p, JINJA_NODE_IF, t);
        if (!n || !(n->a = jinja_expr_tuple(p, jinja_expr_or, NULL, false)) ||
            !parse_body(p, &n->b, ends) || !jinja_parse_finish(p, n))
            return NULL;
        if (first)
            jinja_parse_chain_add(&elifs, n);
        else
            first = n;
        t = p->at++;
        if (!jinja_parse_is_name(t, "elif"))
            break;
    }
    first->c = elifs.first;
    if (jinja_parse_is_name(t, "else")) {
        if (!parse_body(p, &first->d, last))
            return NULL;
        p->at++;
    }
    p->soft = soft;
    return jinja_parse_finish(p, first);
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

static struct jinja_node *parse_for(struct jinja_parser *p, const struct jinja_token *t)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    struct jinja_node *n = jinja_parse_make(p, JINJA_NODE_FOR, t);
    bool soft = p->soft;
    if (!n || !(n->a = parse_target(p, "in")) || !jinja_parse_expect_name(p, "in") ||
        !(n->b = jinja_expr_tuple(p, jinja_expr_or, "recursive", false)))
        return NULL;
    p->soft = false;
    if (jinja_parse_accept_name(p, "if") && !(n->test = jinja_expr_parse(p)))
        return NULL;
    n->flag = jinja_parse_accept_name(p, "recursive");
    p->loops++;
    if (!parse_body(p, &n->c, ends))
        return NULL;
    p->loops--;
    p->soft = soft;
    bool otherwise = jinja_parse_is_name(p->at++, "else");
    if (otherwise && !parse_scope(p, &n->d, "endfor", true))
        return NULL;
    if (sets_loop(n->a) || sets_loop(n->c) || sets_loop(n->d))
        return jinja_parse_fail(p, t, SHOAL_EFORMAT,
                                "the name loop cannot be set in a for statement");
    return jinja_parse_finish(p, n);
}

/* (a, b=1) of a macro or call block */
static bool parse_signature(struct jinja_parser *p, struct jinja_node **out)
{
    struct jinja_chain args = {0};
    bool defaults = false;
    if (!jinja_parse_expect(p, JINJA_TOKEN_OPEN_PAREN, "'('"))
        return false;
    while (!jinja_parse_is(p, JINJA_TOKEN_CLOSE_PAREN)) {
        if (args.first && !jinja_parse_expect(p, JINJA_TOKEN_COMMA, "','"))
            return false;
        const struct jinja_token *t = p->at;
        struct jinja_node *arg = jinja_parse_make(p, JINJA_NODE_KWARG, t);
        if (!arg || !jinja_parse_expect(p, JINJA_TOKEN_NAME, "the name of a parameter") ||
            !jinja_parse_intern(p, t, &arg->id))
            return false;
        arg->text = t->text;
        for (const struct jinja_node *a = args.first; a; a = a->next)
            if (a->id == arg->id)
                return jinja_parse_fail(p, t, SHOAL_EFORMAT, "two parameters have the same name");
        if (jinja_parse_accept(p, JINJA_TOKEN_EQUALS)) {
            defaults = true;
            if (!(arg->a = jinja_expr_parse(p)) || !jinja_parse_finish(p, arg))
                return false;
        } else if (defaults) {
            return jinja_parse_fail(p, t, SHOAL_EFORMAT, "parameters without a default come first");
        }
        jinja_parse_chain_add(&args, arg);
    }
    p->at++;
    *out = args.first;
    return true;
}

/* Is a name usable as the target of an assignment? */
static bool check_name(struct jinja_parser *p)
{
    const struct jinja_token *t = p->at;
    struct jinja_node *constant =
        jinja_parse_is(p, JINJA_TOKEN_NAME) ? jinja_expr_constant(p) : NULL;
    if (constant)
        return jinja_parse_fail(p, t, SHOAL_EFORMAT, "only names can be set");
    return p->rc == 0;
}

static struct jinja_node *parse_macro(struct jinja_parser *p, const struct jinja_token *t)
{
    struct jinja_node *n = jinja_parse_make(p, JINJA_NODE_MACRO, t);
    const struct jinja_token *name = p->at;
    if (!n || !check_name(p) || !jinja_parse_expect(p, JINJA_TOKEN_NAME, "the name of the macro") ||
        !jinja_parse_intern(p, name, &n->id))
        return NULL;
    n->text = name->text;
    bool soft = p->soft;
    p->soft = false;
    if (!parse_signature(p, &n->a) || !parse_scope(p, &n->c, "endmacro", false))
        return NULL;
    p->soft = soft;
    return jinja_parse_finish(p, n);
}

static struct jinja_node *parse_call_block(struct jinja_parser *p, const struct jinja_token *t)
{
    struct jinja_node *n = jinja_parse_make(p, JINJA_NODE_CALLBLOCK, t);
    if (!n || (jinja_parse_is(p, JINJA_TOKEN_OPEN_PAREN) && !parse_signature(p, &n->a)))
        return NULL;
    const struct jinja_token *callee = p->at;
    n->text = JINJA_STR("caller");
    if (!(n->b = jinja_expr_parse(p)))
        return NULL;
    if (n->b->kind != JINJA_NODE_CALL)
        return jinja_parse_fail(p, callee, SHOAL_EFORMAT, "a call must follow");
    return parse_scope(p, &n->c, "endcall", false) ? jinja_parse_finish(p, n) : NULL;
}

static struct jinja_node *parse_filter_block(struct jinja_parser *p, const struct jinja_token *t)
{
    struct jinja_node *n = jinja_parse_make(p, JINJA_NODE_FILTERBLOCK, t);
    bool soft = p->soft;
    p->soft = false;
    if (!n || !(n->b = jinja_expr_filter(p, NULL)))
        return NULL;
    p->soft = soft;
    return parse_scope(p, &n->c, "endfilter", true) ? jinja_parse_finish(p, n) : NULL;
}

static struct jinja_node *parse_with(struct jinja_parser *p, const struct jinja_token *t)
{
    struct jinja_node *n = jinja_parse_make(p, JINJA_NODE_WITH, t);
    struct jinja_chain pairs = {0};
    while (n && !jinja_parse_is(p, JINJA_TOKEN_CLOSE_STATEMENT)) {
        if (pairs.first && !jinja_parse_expect(p, JINJA_TOKEN_COMMA, "',' or '%}'"))
            return NULL;
        const struct jinja_token *start = p->at;
        struct jinja_node *target = parse_target(p, NULL);
        if (!target || !jinja_parse_expect(p, JINJA_TOKEN_EQUALS, "'='"))
            return NULL;
        struct jinja_node *value = jinja_expr_parse(p);
        struct jinja_node *pair =
            jinja_parse_make_op(p, JINJA_NODE_PAIR, start, JINJA_OP_NONE, target, value);
        if (!pair)
            return NULL;
        jinja_parse_chain_add(&pairs, pair);
    }
    if (!n)
        return NULL;
    n->a = pairs.first;
    return parse_scope(p, &n->c, "endwith", true) ? jinja_parse_finish(p, n) : NULL;
}

/* {% generation %}: marks the model's output; has its own scope. */
static struct jinja_node *parse_generation(struct jinja_parser *p, const struct jinja_token *t)
{
    struct jinja_node *n = jinja_parse_make(p, JINJA_NODE_GENERATION, t);
    return n && parse_scope(p, &n->c, "endgeneration", false) ? jinja_parse_finish(p, n) : NULL;
}

static struct jinja_node *parse_jump(struct jinja_parser *p, const struct jinja_token *t)
{
    if (p->loops == 0)
        return jinja_parse_fail(p, t, SHOAL_EFORMAT,
                                "break and continue are allowed only in a for statement");
    return jinja_parse_make(
        p, jinja_parse_is_name(t, "break") ? JINJA_NODE_BREAK : JINJA_NODE_CONTINUE, t);
}

static struct jinja_node *parse_print(struct jinja_parser *p, const struct jinja_token *t)
{
    return jinja_parse_fail(p, t, SHOAL_EUNSUPPORTED,
                            "statement 'print' is not supported: write {{ }}");
}

static struct jinja_node *parse_statement(struct jinja_parser *p)
{
    static const struct {
        const char *name;
        struct jinja_node *(*parse)(struct jinja_parser *, const struct jinja_token *);
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
        return jinja_parse_unexpected(p, "a statement");
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
        if (jinja_parse_is_name(t, statements[i].name)) {
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
static bool parse_chain(struct jinja_parser *p, struct jinja_node **out, const char *const ends[])
{
    struct jinja_chain body = {0};
    while (!jinja_parse_is(p, JINJA_TOKEN_END)) {
        const struct jinja_token *t = p->at++;
        struct jinja_node *n;
        if (t->type == JINJA_TOKEN_TEXT) {
            n = jinja_parse_make(p, JINJA_NODE_TEXT, t);
            if (n)
                n->text = t->text;
        } else if (t->type == JINJA_TOKEN_OPEN_EXPRESSION) {
            n = jinja_expr_tuple(p, jinja_expr_parse, NULL, false);
            if (n && !jinja_parse_expect(p, JINJA_TOKEN_CLOSE_EXPRESSION, "'}}'"))
                return false;
            n = jinja_parse_make_op(p, JINJA_NODE_PRINT, t, JINJA_OP_NONE, n, NULL);
        } else {
            for (size_t i = 0; ends && ends[i]; i++)
                if (jinja_parse_is_name(p->at, ends[i])) {
                    *out = body.first;
                    return true;
                }
            n = jinja_parse_enter(p) ? jinja_parse_leave(p, parse_statement(p)) : NULL;
        }
        if (!n)
            return false;
        jinja_parse_chain_add(&body, n);
    }
    *out = body.first;
    return true;
}

static int parse_tokens(struct jinja_template *t, const struct jinja_tokens *tokens, struct err *e)
{
    struct jinja_parse_names *names = mem_zalloc(sizeof(*names));
    if (!names)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the template");
    struct jinja_parser p = {.arena = &t->arena, .e = e, .at = tokens->at, .names = names};
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
