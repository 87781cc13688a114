/* jinja_eval.c - see jinja_eval.h.  Statements write to r->out, expressions give values. */
#include "text/jinja/jinja_eval.h"

#include "text/jinja/parse/jinja_parse.h"

/* ---- expressions ---------------------------------------------------------------------------- */

static int eval_binary(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope,
                       struct jinja_value *out)
{
    struct jinja_value a, b;
    int rc = jinja_eval(r, n->a, scope, &a);
    if (rc != 0)
        return rc;
    if (n->op == JINJA_OP_AND || n->op == JINJA_OP_OR) {
        if (jinja_truth(&a) == (n->op == JINJA_OP_AND))
            return jinja_eval(r, n->b, scope, out);
        *out = a;
        return 0;
    }
    rc = jinja_eval(r, n->b, scope, &b);
    if (rc != 0)
        return rc;
    r->where = n;
    return jinja_binary(r, n->op, &a, &b, out);
}

static int eval_unary(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope,
                      struct jinja_value *out)
{
    struct jinja_value v;
    int64_t i;
    int rc = jinja_eval(r, n->a, scope, &v);
    if (rc != 0)
        return rc;
    r->where = n;
    if (n->op == JINJA_OP_NOT) {
        *out = jinja_bool(!jinja_truth(&v));
        return 0;
    }
    bool minus = n->op == JINJA_OP_SUB;
    if (v.kind == JINJA_FLOAT)
        *out = jinja_float(minus ? -v.num : v.num);
    else if (jinja_as_int(&v, &i) && !(minus && i == INT64_MIN))
        *out = jinja_int(minus ? -i : i);
    else if (v.kind == JINJA_UNDEFINED)
        return jinja_fail_undefined(r, &v);
    else
        return jinja_fail(r, SHOAL_EINVAL, "operator '%s' does not work on %s",
                          jinja_op_text(n->op), jinja_kind_name(&v));
    return 0;
}

/* a < b <= c ...: each pair, as long as they hold */
static int eval_compare(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope,
                        struct jinja_value *out)
{
    struct jinja_value a, b;
    bool yes = true;
    int rc = jinja_eval(r, n->a, scope, &a);
    for (const struct jinja_node *o = n->b; rc == 0 && yes && o; o = o->next) {
        rc = jinja_eval(r, o->a, scope, &b);
        r->where = o;
        if (rc == 0)
            rc = jinja_compare(r, o->op, &a, &b, &yes);
        a = b;
    }
    *out = jinja_bool(yes);
    return rc;
}

static int eval_concat(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope,
                       struct jinja_value *out)
{
    struct jinja_value v;
    struct jinja_str text;
    int rc = 0;
    *out = jinja_string(JINJA_STR(""));
    for (const struct jinja_node *i = n->a; rc == 0 && i; i = i->next) {
        rc = jinja_eval(r, i, scope, &v);
        r->where = n;
        if (rc == 0)
            rc = jinja_print_text(r, &v, &text);
        if (rc == 0)
            rc = jinja_concat(r, out->str, text, out);
    }
    return rc;
}

static int eval_slice(struct jinja_run *r, const struct jinja_value *object,
                      const struct jinja_node *n, struct jinja_scope *scope,
                      struct jinja_value *out)
{
    const struct jinja_node *const part[3] = {n->a, n->b, n->c};
    struct jinja_value v[3];
    for (size_t i = 0; i < 3; i++) {
        v[i] = jinja_none();
        int rc = part[i] ? jinja_eval(r, part[i], scope, &v[i]) : 0;
        if (rc != 0)
            return rc;
    }
    r->where = n;
    return jinja_slice(r, object, v, out);
}

static int eval_getitem(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope,
                        struct jinja_value *out)
{
    struct jinja_value object, key;
    int rc = jinja_eval(r, n->a, scope, &object);
    if (rc != 0)
        return rc;
    if (n->b->kind == JINJA_NODE_SLICE)
        return eval_slice(r, &object, n->b, scope, out);
    rc = jinja_eval(r, n->b, scope, &key);
    r->where = n;
    return rc == 0 ? jinja_getitem(r, &object, &key, out) : rc;
}

static int eval_list(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope,
                     struct jinja_value *out)
{
    struct jinja_value item;
    int rc = jinja_list_make(r, out, 0);
    for (const struct jinja_node *i = n->a; rc == 0 && i; i = i->next) {
        rc = jinja_eval(r, i, scope, &item);
        if (rc == 0)
            rc = jinja_list_push(r, out->list, item);
    }
    if (n->kind == JINJA_NODE_TUPLE)
        out->kind = JINJA_TUPLE;
    return rc;
}

static int eval_dict(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope,
                     struct jinja_value *out)
{
    struct jinja_value key, value;
    int rc = jinja_dict_make(r, out);
    for (const struct jinja_node *pair = n->a; rc == 0 && pair; pair = pair->next) {
        rc = jinja_eval(r, pair->a, scope, &key);
        if (rc == 0)
            rc = jinja_eval(r, pair->b, scope, &value);
        r->where = pair;
        if (rc == 0)
            rc = jinja_dict_put(r, out->dict, key, value);
    }
    return rc;
}

static int eval_cond(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope,
                     struct jinja_value *out)
{
    struct jinja_value test;
    int rc = jinja_eval(r, n->a, scope, &test);
    if (rc != 0)
        return rc;
    const struct jinja_node *chosen = jinja_truth(&test) ? n->b : n->c;
    if (chosen)
        return jinja_eval(r, chosen, scope, out);
    *out = jinja_undefined(JINJA_STR("the value of an if without else"));
    return 0;
}

static int eval_test(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope,
                     struct jinja_value *out)
{
    struct jinja_args args;
    struct jinja_value v;
    bool yes = false;
    int rc = jinja_eval(r, n->a, scope, &v);
    if (rc == 0)
        rc = jinja_call_args(r, n->b, scope, &args);
    r->where = n;
    if (rc == 0)
        rc = jinja_test(r, n->id, n->text, &v, &args, &yes);
    *out = jinja_bool(yes);
    return rc;
}

/* n is a chain of filters; `block` is the operand of the innermost one if it has none of its
 * own.
 */
static int eval_filter(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope,
                       const struct jinja_value *block, struct jinja_value *out)
{
    struct jinja_args args;
    struct jinja_value v;
    int rc = 0;
    if (n->a && n->a->kind == JINJA_NODE_FILTER && block)
        rc = eval_filter(r, n->a, scope, block, &v);
    else if (n->a)
        rc = jinja_eval(r, n->a, scope, &v);
    else
        v = *block;
    if (rc == 0)
        rc = jinja_call_args(r, n->b, scope, &args);
    r->where = n;
    return rc == 0 ? jinja_filter(r, n->id, n->text, &v, &args, out) : rc;
}

static int eval_expression(struct jinja_run *r, const struct jinja_node *n,
                           struct jinja_scope *scope, struct jinja_value *out)
{
    struct jinja_value v;
    int rc;
    switch (n->kind) {
    case JINJA_NODE_NONE:
        *out = jinja_none();
        return 0;
    case JINJA_NODE_BOOL:
        *out = jinja_bool(n->flag);
        return 0;
    case JINJA_NODE_STRING:
        *out = jinja_string(n->text);
        return 0;
    case JINJA_NODE_INT:
        *out = jinja_int(n->i);
        return 0;
    case JINJA_NODE_BIGINT:
        *out = (struct jinja_value){.kind = JINJA_BIGINT, .str = n->text};
        return 0;
    case JINJA_NODE_FLOAT:
        *out = jinja_float(n->num);
        return 0;
    case JINJA_NODE_NAME:
        *out = jinja_scope_get(r, scope, n->text);
        return 0;
    case JINJA_NODE_LIST:
    case JINJA_NODE_TUPLE:
        return eval_list(r, n, scope, out);
    case JINJA_NODE_DICT:
        return eval_dict(r, n, scope, out);
    case JINJA_NODE_GETATTR:
        rc = jinja_eval(r, n->a, scope, &v);
        r->where = n;
        return rc == 0 ? jinja_getattr(r, &v, n->text, out) : rc;
    case JINJA_NODE_GETITEM:
        return eval_getitem(r, n, scope, out);
    case JINJA_NODE_CALL:
        return jinja_call_node(r, n, scope, NULL, out);
    case JINJA_NODE_UNARY:
        return eval_unary(r, n, scope, out);
    case JINJA_NODE_BINARY:
        return eval_binary(r, n, scope, out);
    case JINJA_NODE_COMPARE:
        return eval_compare(r, n, scope, out);
    case JINJA_NODE_CONCAT:
        return eval_concat(r, n, scope, out);
    case JINJA_NODE_COND:
        return eval_cond(r, n, scope, out);
    case JINJA_NODE_TEST:
        return eval_test(r, n, scope, out);
    case JINJA_NODE_FILTER:
        return eval_filter(r, n, scope, NULL, out);
    default:
        return jinja_fail(r, SHOAL_EINTERNAL, "node %d is not an expression", (int)n->kind);
    }
}

int jinja_eval(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope,
               struct jinja_value *out)
{
    *out = jinja_none();
    r->where = n;
    if (r->steps_left == 0 || r->depth >= JINJA_MAX_DEPTH)
        return jinja_fail(r, SHOAL_ELIMIT,
                          r->steps_left ? "calls are nested too deeply" : "template runs too long");
    r->steps_left--;
    r->depth++;
    int rc = eval_expression(r, n, scope, out);
    r->depth--;
    return rc;
}

/* ---- statements ----------------------------------------------------------------------------- */

/* Gives the value to a name, a member of a namespace, or its items to a tuple of targets. */
static int assign(struct jinja_run *r, const struct jinja_node *target, const struct jinja_value *v,
                  struct jinja_scope *scope)
{
    if (target->kind == JINJA_NODE_NAME)
        return jinja_scope_set(r, scope, target->text, *v);
    if (target->kind == JINJA_NODE_NSREF) {
        struct jinja_value ns = jinja_scope_get(r, scope, target->text);
        if (ns.kind != JINJA_NAMESPACE)
            return jinja_fail(r, SHOAL_EINVAL, "only members of a namespace can be set, not of %s",
                              jinja_kind_name(&ns));
        return jinja_dict_set(r, ns.dict, target->b->text, *v);
    }
    struct jinja_list *items;
    size_t want = 0, i = 0;
    int rc = jinja_iterate(r, v, &items);
    if (rc < 0)
        return rc;
    for (const struct jinja_node *n = target->a; n; n = n->next)
        want++;
    if (want != items->n)
        return jinja_fail(r, SHOAL_EINVAL, "%zu values for %zu names", items->n, want);
    for (const struct jinja_node *n = target->a; rc == 0 && n; n = n->next, i++)
        rc = assign(r, n, &items->at[i], scope);
    return rc;
}

static int eval_set(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope)
{
    struct jinja_value v;
    int rc = jinja_eval(r, n->b, scope, &v);
    r->where = n;
    return rc == 0 ? assign(r, n->a, &v, scope) : rc;
}

static void drop_output(struct jinja_run *r, size_t mark)
{
    r->out.len = mark;
    if (r->out.data)
        r->out.data[mark] = '\0';
}

/* The body of n in a scope of its own, as text. */
static int capture(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *outer,
                   struct jinja_scope **inner, struct jinja_value *out)
{
    size_t mark = r->out.len;
    int rc = jinja_scope_enter(r, &n->frames[JINJA_FRAME_BODY], outer, inner);
    if (rc == 0)
        rc = jinja_eval_body(r, n->c, *inner);
    if (rc > 0)
        drop_output(r, mark); /* break and continue leave the block without its text */
    return rc == 0 ? jinja_cut(r, mark, out) : rc;
}

static int eval_set_block(struct jinja_run *r, const struct jinja_node *n,
                          struct jinja_scope *scope)
{
    struct jinja_scope *inner = NULL;
    struct jinja_value text, v;
    int rc = capture(r, n, scope, &inner, &text);
    if (rc != 0)
        return rc;
    v = text;
    if (n->b)
        rc = eval_filter(r, n->b, inner, &text, &v);
    r->where = n;
    return rc == 0 ? assign(r, n->a, &v, scope) : rc;
}

/* What a block writes must be text: Jinja does not convert it. */
static int print_block(struct jinja_run *r, const struct jinja_value *v)
{
    if (v->kind != JINJA_STRING)
        return jinja_fail(r, SHOAL_EINVAL, "the result of a block is %s, not a string",
                          jinja_kind_name(v));
    return jinja_print(r, v);
}

static int eval_filter_block(struct jinja_run *r, const struct jinja_node *n,
                             struct jinja_scope *scope)
{
    struct jinja_scope *inner = NULL;
    struct jinja_value text, v;
    int rc = capture(r, n, scope, &inner, &text);
    if (rc == 0)
        rc = eval_filter(r, n->b, inner, &text, &v);
    r->where = n;
    return rc == 0 ? print_block(r, &v) : rc;
}

/* The items that the loop will see, after its `if`. */
static int loop_items(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *outer,
                      const struct jinja_value *all, struct jinja_list **out)
{
    struct jinja_list *items;
    struct jinja_scope *inner = NULL;
    struct jinja_value kept, test;
    int rc = jinja_iterate(r, all, &items);
    *out = items;
    if (rc < 0 || !n->test)
        return rc;
    rc = jinja_list_make(r, &kept, 0);
    for (size_t i = 0; rc == 0 && i < items->n; i++) {
        rc = jinja_scope_enter(r, &n->frames[JINJA_FRAME_TEST], outer, &inner);
        if (rc == 0)
            rc = assign(r, n->a, &items->at[i], inner);
        if (rc == 0)
            rc = jinja_eval(r, n->test, inner, &test);
        if (rc == 0 && jinja_truth(&test))
            rc = jinja_list_push(r, kept.list, items->at[i]);
    }
    *out = kept.list;
    return rc;
}

int jinja_eval_loop(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *outer,
                    const struct jinja_value *over, int64_t depth)
{
    struct jinja_loop *loop = arena_zalloc(&r->arena, sizeof(*loop));
    struct jinja_scope *scope = NULL;
    struct jinja_list *items;
    bool completed = false;
    if (!loop)
        return jinja_no_memory(r);
    int rc = loop_items(r, n, outer, over, &items);
    if (rc < 0)
        return rc;
    *loop = (struct jinja_loop){.items = items, .depth = depth, .node = n, .outer = outer};
    for (size_t i = 0; rc == 0 && i < items->n; i++) {
        struct jinja_value item = items->at[i];
        loop->index = i;
        r->where = n;
        rc = jinja_scope_enter(r, &n->frames[JINJA_FRAME_BODY], outer, &scope);
        if (rc == 0)
            rc = jinja_scope_set(r, scope, JINJA_STR("loop"),
                                 (struct jinja_value){.kind = JINJA_LOOP, .loop = loop});
        if (rc == 0)
            rc = assign(r, n->a, &item, scope);
        if (rc == 0)
            rc = jinja_eval_body(r, n->c, scope);
        completed |= rc == 0;
        if (rc == JINJA_JUMP_BREAK) {
            rc = 0;
            break;
        }
        if (rc == JINJA_JUMP_CONTINUE)
            rc = 0;
    }
    /* Jinja also runs else when break or continue ended every iteration. */
    if (rc != 0 || completed || !n->d)
        return rc;
    rc = jinja_scope_enter(r, &n->frames[JINJA_FRAME_ELSE], outer, &scope);
    return rc == 0 ? jinja_eval_body(r, n->d, scope) : rc;
}

static int eval_for(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope)
{
    struct jinja_value items;
    int rc = jinja_eval(r, n->b, scope, &items);
    r->where = n;
    return rc == 0 ? jinja_eval_loop(r, n, scope, &items, 0) : rc;
}

static int eval_if(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope)
{
    const struct jinja_node *otherwise = n->d;
    struct jinja_value test;
    for (const struct jinja_node *i = n; i; i = i == n ? n->c : i->next) {
        int rc = jinja_eval(r, i->a, scope, &test);
        if (rc != 0)
            return rc;
        if (jinja_truth(&test))
            return jinja_eval_body(r, i->b, scope);
    }
    return jinja_eval_body(r, otherwise, scope);
}

static int make_macro(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope,
                      struct jinja_value *out)
{
    struct jinja_function *f = arena_zalloc(&r->arena, sizeof(*f));
    if (!f)
        return jinja_no_memory(r);
    f->id = JINJA_FN_MACRO;
    f->node = n;
    f->scope = scope;
    *out = (struct jinja_value){.kind = JINJA_FUNCTION, .function = f};
    return 0;
}

static int eval_macro(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope)
{
    struct jinja_value f;
    int rc = make_macro(r, n, scope, &f);
    return rc < 0 ? rc : jinja_scope_set(r, scope, n->text, f);
}

static int eval_call_block(struct jinja_run *r, const struct jinja_node *n,
                           struct jinja_scope *scope)
{
    struct jinja_value caller, v;
    int rc = make_macro(r, n, scope, &caller);
    if (rc == 0)
        rc = jinja_call_node(r, n->b, scope, &caller, &v);
    r->where = n;
    return rc == 0 ? print_block(r, &v) : rc;
}

static int eval_with(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *outer)
{
    struct jinja_scope *scope = NULL;
    struct jinja_value v;
    int rc = jinja_scope_enter(r, &n->frames[JINJA_FRAME_BODY], outer, &scope);
    for (const struct jinja_node *p = n->a; rc == 0 && p; p = p->next) {
        rc = jinja_eval(r, p->b, outer, &v);
        if (rc == 0)
            rc = assign(r, p->a, &v, scope);
    }
    return rc == 0 ? jinja_eval_body(r, n->c, scope) : rc;
}

static int eval_generation(struct jinja_run *r, const struct jinja_node *n,
                           struct jinja_scope *outer)
{
    struct jinja_scope *scope = NULL;
    int rc = jinja_scope_enter(r, &n->frames[JINJA_FRAME_BODY], outer, &scope);
    return rc == 0 ? jinja_eval_body(r, n->c, scope) : rc;
}

static int eval_statement(struct jinja_run *r, const struct jinja_node *n,
                          struct jinja_scope *scope)
{
    struct jinja_value v;
    int rc;
    switch (n->kind) {
    case JINJA_NODE_TEXT:
        buf_put(&r->out, n->text.p, n->text.n);
        return jinja_check_out(r);
    case JINJA_NODE_PRINT:
        rc = jinja_eval(r, n->a, scope, &v);
        r->where = n;
        return rc == 0 ? jinja_print(r, &v) : rc;
    case JINJA_NODE_IF:
        return eval_if(r, n, scope);
    case JINJA_NODE_FOR:
        return eval_for(r, n, scope);
    case JINJA_NODE_SET:
        return eval_set(r, n, scope);
    case JINJA_NODE_SETBLOCK:
        return eval_set_block(r, n, scope);
    case JINJA_NODE_MACRO:
        return eval_macro(r, n, scope);
    case JINJA_NODE_CALLBLOCK:
        return eval_call_block(r, n, scope);
    case JINJA_NODE_FILTERBLOCK:
        return eval_filter_block(r, n, scope);
    case JINJA_NODE_WITH:
        return eval_with(r, n, scope);
    case JINJA_NODE_GENERATION:
        return eval_generation(r, n, scope);
    case JINJA_NODE_BREAK:
        return JINJA_JUMP_BREAK;
    case JINJA_NODE_CONTINUE:
        return JINJA_JUMP_CONTINUE;
    default:
        return jinja_fail(r, SHOAL_EINTERNAL, "node %d is not a statement", (int)n->kind);
    }
}

int jinja_eval_body(struct jinja_run *r, const struct jinja_node *chain, struct jinja_scope *scope)
{
    if (r->depth >= JINJA_MAX_DEPTH)
        return jinja_fail(r, SHOAL_ELIMIT, "calls are nested too deeply");
    int rc = 0;
    r->depth++;
    for (const struct jinja_node *n = chain; rc == 0 && n; n = n->next) {
        r->where = n;
        rc = jinja_charge(r, 1);
        if (rc == 0)
            rc = eval_statement(r, n, scope);
    }
    r->depth--;
    return rc;
}

int jinja_eval_template(struct jinja_run *r, const struct jinja_template *t,
                        const struct jinja_dict *context)
{
    struct jinja_scope *root = NULL;
    r->context = context;
    r->run_lazy = jinja_lazy_run;
    int rc = jinja_scope_enter(r, &t->root, NULL, &root);
    return rc < 0 ? rc : jinja_eval_body(r, t->body, root);
}
