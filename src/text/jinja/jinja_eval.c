/* jinja_eval.c - see jinja_eval.h.  Statements write to r->out, expressions give values. */
#include "text/jinja/jinja_eval.h"

#include "text/jinja/jinja_parse.h"

static int eval_body(struct jinja_run *r, const struct jinja_node *chain,
                     struct jinja_scope *scope);

/* ---- scopes --------------------------------------------------------------------------------- */

static int scope_make(struct jinja_run *r, struct jinja_scope *parent, struct jinja_scope **out)
{
    struct jinja_scope *s = arena_zalloc(&r->arena, sizeof(*s));
    if (!s)
        return jinja_no_memory(r);
    s->parent = parent;
    *out = s;
    return 0;
}

static int scope_set(struct jinja_run *r, struct jinja_scope *s, struct jinja_str name,
                     struct jinja_value v)
{
    return jinja_dict_set(r, &s->vars, name, v);
}

static struct jinja_value scope_get(struct jinja_run *r, const struct jinja_scope *s,
                                    struct jinja_str name)
{
    static const struct jinja_function make_namespace = {.id = JINJA_FN_NAMESPACE};
    /* Every scope of the reference has its own `namespace`, which hides one set further out. */
    bool is_namespace = jinja_str_is(name, "namespace");
    for (; s; s = s->parent) {
        const struct jinja_value *v = jinja_dict_get(r, &s->vars, name);
        if (v)
            return v->kind == JINJA_ABSENT ? jinja_undefined() : *v;
        if (is_namespace)
            return (struct jinja_value){.kind = JINJA_FUNCTION, .function = &make_namespace};
    }
    return jinja_undefined();
}

static int eval_binary(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope,
                       struct jinja_value *out)
{
    struct jinja_value a, b;
    int rc = jinja_eval(r, n->a, scope, &a);
    if (rc != 0)
        return rc;
    if (n->op == JINJA_OP_AND || n->op == JINJA_OP_OR) {
        r->where = n;
        if (a.kind == JINJA_ABSENT)
            return jinja_fail(r, SHOAL_EINVAL, "%s cannot be tested", jinja_kind_name(&a));
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
    double x;
    int rc = jinja_eval(r, n->a, scope, &v);
    if (rc != 0)
        return rc;
    r->where = n;
    if (n->op == JINJA_OP_NOT && v.kind != JINJA_ABSENT) {
        *out = jinja_bool(jinja_not(&v));
        return 0;
    }
    if (n->op == JINJA_OP_NOT || !jinja_as_number(&v, &x))
        return jinja_fail(r, SHOAL_EINVAL, "operator '%s' does not work on %s",
                          jinja_op_text(n->op), jinja_kind_name(&v));
    if (n->op == JINJA_OP_SUB)
        x = -x;
    *out = v.kind == JINJA_FLOAT ? jinja_float(x) : jinja_int(x);
    return 0;
}

/* ---- members and slices --------------------------------------------------------------------- */

static int eval_slice(struct jinja_run *r, const struct jinja_value *object,
                      const struct jinja_node *n, struct jinja_scope *scope,
                      struct jinja_value *out)
{
    const struct jinja_node *const part[3] = {n->a, n->b, n->c};
    struct jinja_value v[3];
    for (size_t i = 0; i < 3; i++) {
        v[i] = jinja_undefined();
        int rc = part[i] ? jinja_eval(r, part[i], scope, &v[i]) : 0;
        if (rc != 0)
            return rc;
    }
    r->where = n;
    return jinja_slice(r, object, v, out);
}

static int eval_member(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope,
                       struct jinja_value *out)
{
    struct jinja_value object, property;
    int rc = jinja_eval(r, n->a, scope, &object);
    if (rc != 0)
        return rc;
    if (n->flag && n->b->kind == JINJA_NODE_SLICE)
        return eval_slice(r, &object, n->b, scope, out);
    if (n->flag || n->b->kind == JINJA_NODE_INT) {
        rc = jinja_eval(r, n->b, scope, &property);
        if (rc != 0)
            return rc;
    } else {
        property = jinja_string(n->b->text);
    }
    r->where = n;
    return jinja_member(r, &object, &property, out);
}

/* ---- calls ---------------------------------------------------------------------------------- */

static int spread_list(struct jinja_run *r, const struct jinja_value *v, struct jinja_list *out)
{
    if (!jinja_is_list(v))
        return jinja_fail(r, SHOAL_EINVAL, "* needs a list, not %s", jinja_kind_name(v));
    int rc = jinja_charge(r, v->list->n);
    for (size_t i = 0; rc == 0 && i < v->list->n; i++)
        rc = jinja_list_push(r, out, v->list->at[i]);
    return rc;
}

static int add_named(struct jinja_run *r, struct jinja_args *out, struct jinja_str key,
                     struct jinja_value v)
{
    if (!out->named) {
        out->named = arena_zalloc(&r->arena, sizeof(*out->named));
        if (!out->named)
            return jinja_no_memory(r);
    }
    if (jinja_dict_get(r, out->named, key))
        return jinja_fail(r, SHOAL_EINVAL, "argument '%.*s' is given twice",
                          key.n < 60 ? (int)key.n : 60, key.p);
    return jinja_dict_set(r, out->named, key, v);
}

static int spread_dict(struct jinja_run *r, const struct jinja_value *v, struct jinja_args *out)
{
    if (!jinja_is_dict(v))
        return jinja_fail(r, SHOAL_EINVAL, "** needs a dict, not %s", jinja_kind_name(v));
    int rc = jinja_charge(r, v->dict->n);
    for (size_t i = 0; rc == 0 && i < v->dict->n; i++)
        rc = add_named(r, out, v->dict->at[i].key, v->dict->at[i].value);
    return rc;
}

int jinja_eval_args(struct jinja_run *r, const struct jinja_node *chain, struct jinja_scope *scope,
                    struct jinja_args *out)
{
    struct jinja_list plain = {0};
    struct jinja_value v;
    int rc = 0;
    *out = (struct jinja_args){0};
    for (const struct jinja_node *n = chain; rc == 0 && n; n = n->next) {
        if (n->kind == JINJA_NODE_KWARG || n->kind == JINJA_NODE_KWSPREAD)
            continue;
        bool spread = n->kind == JINJA_NODE_SPREAD;
        rc = jinja_eval(r, spread ? n->a : n, scope, &v);
        if (rc == 0)
            rc = spread ? spread_list(r, &v, &plain) : jinja_list_push(r, &plain, v);
    }
    for (const struct jinja_node *n = chain; rc == 0 && n; n = n->next) {
        if (n->kind != JINJA_NODE_KWARG && n->kind != JINJA_NODE_KWSPREAD)
            continue;
        rc = jinja_eval(r, n->a, scope, &v);
        if (rc == 0)
            rc = n->kind == JINJA_NODE_KWARG ? add_named(r, out, n->text, v)
                                             : spread_dict(r, &v, out);
    }
    out->at = plain.at;
    out->n = plain.n;
    return rc;
}

static int surplus_named(struct jinja_run *r, const struct jinja_node *macro,
                         const struct jinja_dict *named, const bool *used,
                         struct jinja_scope *scope)
{
    struct jinja_value rest;
    int rc = jinja_dict_make(r, &rest);
    for (size_t i = 0; rc == 0 && named && i < named->n; i++) {
        struct jinja_str key = named->at[i].key;
        if (used[i])
            continue;
        if (!macro->uses_kwargs)
            return jinja_fail(r, SHOAL_EINVAL, "macro takes no argument '%.*s'",
                              key.n < 60 ? (int)key.n : 60, key.p);
        rc = jinja_dict_set(r, rest.dict, key, named->at[i].value);
    }
    return rc == 0 && macro->uses_kwargs ? scope_set(r, scope, JINJA_STR("kwargs"), rest) : rc;
}

static int surplus_plain(struct jinja_run *r, const struct jinja_node *macro,
                         const struct jinja_value *args, size_t n, size_t n_parameters,
                         struct jinja_scope *scope)
{
    struct jinja_value rest;
    if (!macro->uses_varargs && n > n_parameters)
        return jinja_fail(r, SHOAL_EINVAL, "macro takes at most %zu arguments, %zu given",
                          n_parameters, n);
    if (!macro->uses_varargs)
        return 0;
    int rc = jinja_list_make(r, &rest, 0);
    for (size_t i = n_parameters; rc == 0 && i < n; i++)
        rc = jinja_list_push(r, rest.list, args[i]);
    return rc < 0 ? rc : scope_set(r, scope, JINJA_STR("varargs"), rest);
}

/* Gives every parameter its argument; defaults are computed last, when all names are bound. */
static int bind_arguments(struct jinja_run *r, const struct jinja_node *macro,
                          const struct jinja_node *parameters, const struct jinja_value *args,
                          size_t n, struct jinja_scope *scope)
{
    const struct jinja_dict *named = NULL;
    if (n && args[n - 1].kind == JINJA_KWARGS)
        named = args[--n].dict;
    bool *used = arena_zalloc(&r->arena, named ? named->n + 1 : 1);
    if (!used)
        return jinja_no_memory(r);
    size_t i = 0;
    int rc = 0;
    for (const struct jinja_node *p = parameters; rc == 0 && p; p = p->next, i++) {
        struct jinja_value v = i < n ? args[i] : (struct jinja_value){.kind = JINJA_ABSENT};
        for (size_t k = 0; v.kind == JINJA_ABSENT && named && k < named->n; k++)
            if (jinja_str_eq(named->at[k].key, p->text)) {
                v = named->at[k].value;
                used[k] = true;
                break;
            }
        /* until the end of this function, absent means: use the default */
        bool due = v.kind == JINJA_ABSENT && p->kind == JINJA_NODE_KWARG;
        if (v.kind == JINJA_ABSENT && !due)
            v = jinja_undefined();
        rc = scope_set(r, scope, p->text, v);
        if (rc == 0)
            rc = jinja_charge(r, 1 + (named ? named->n : 0));
    }
    if (rc == 0)
        rc = surplus_named(r, macro, named, used, scope);
    if (rc == 0)
        rc = surplus_plain(r, macro, args, n, i, scope);
    for (const struct jinja_node *p = parameters; rc == 0 && p; p = p->next) {
        const struct jinja_value *v = jinja_dict_get(r, &scope->vars, p->text);
        struct jinja_value value;
        if (!v || v->kind != JINJA_ABSENT)
            continue;
        rc = jinja_eval(r, p->a, scope, &value);
        if (rc == 0)
            rc = scope_set(r, scope, p->text, value);
    }
    return rc;
}

static int capture(struct jinja_run *r, const struct jinja_node *chain, struct jinja_scope *scope,
                   struct jinja_value *out)
{
    size_t mark = r->out.len;
    int rc = eval_body(r, chain, scope);
    return rc == 0 ? jinja_cut(r, mark, out) : rc;
}

int jinja_eval_call(struct jinja_run *r, const struct jinja_function *f,
                    const struct jinja_value *args, size_t n, struct jinja_scope *scope,
                    struct jinja_value *out)
{
    if (f->id != JINJA_FN_MACRO && f->id != JINJA_FN_CALLER)
        return jinja_method_call(r, f, args, n, out);
    bool macro = f->id == JINJA_FN_MACRO;
    struct jinja_scope *inner = NULL;
    /* A macro sees the variables of its caller, a call block those around it. */
    int rc = scope_make(r, macro ? scope : f->scope, &inner);
    if (rc == 0)
        rc = bind_arguments(r, f->node, macro ? f->node->a : f->node->b, args, n, inner);
    return rc == 0 ? capture(r, f->node->c, inner, out) : rc;
}

/* The text of a callee, for the error that it cannot be called. */
static struct jinja_str callee_name(const struct jinja_node *n)
{
    if (n->kind == JINJA_NODE_MEMBER && !n->flag && n->b->kind == JINJA_NODE_NAME)
        return n->b->text;
    return n->kind == JINJA_NODE_NAME ? n->text : JINJA_STR("this");
}

/* The method of a dict that one of its keys hides; *out stays when there is none. */
static int method_behind_key(struct jinja_run *r, const struct jinja_node *n,
                             struct jinja_scope *scope, struct jinja_value *out)
{
    struct jinja_value object;
    enum jinja_function_id id;
    if (n->b->kind != JINJA_NODE_NAME || !jinja_method_find(JINJA_DICT, n->b->text, &id))
        return 0;
    int rc = jinja_eval(r, n->a, scope, &object);
    if (rc != 0 || !jinja_is_dict(&object))
        return rc;
    struct jinja_function *f = arena_zalloc(&r->arena, sizeof(*f));
    if (!f)
        return jinja_no_memory(r);
    f->id = id;
    f->self = object;
    *out = (struct jinja_value){.kind = JINJA_FUNCTION, .function = f};
    return 0;
}

static int eval_call(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope,
                     struct jinja_scope *call_scope, bool named_always, struct jinja_value *out)
{
    struct jinja_args args;
    struct jinja_value f;
    struct jinja_list all = {0};
    int rc = jinja_eval_args(r, n->b, scope, &args);
    if (rc == 0)
        rc = jinja_eval(r, n->a, scope, &f);
    if (rc != 0)
        return rc;
    r->where = n;
    if (f.kind != JINJA_FUNCTION && n->a->kind == JINJA_NODE_MEMBER && !n->a->flag) {
        /* d.items() is the method, also when d has a key of that name */
        rc = method_behind_key(r, n->a, scope, &f);
        if (rc != 0)
            return rc;
    }
    if (f.kind != JINJA_FUNCTION) {
        struct jinja_str name = callee_name(n->a);
        return jinja_fail(r, f.kind == JINJA_UNDEFINED ? SHOAL_EUNSUPPORTED : SHOAL_EINVAL,
                          "'%.*s' cannot be called: it is %s", name.n < 60 ? (int)name.n : 60,
                          name.p, jinja_kind_name(&f));
    }
    all = (struct jinja_list){args.at, args.n, args.n};
    if (named_always || args.named) {
        struct jinja_value named = {.kind = JINJA_KWARGS, .dict = args.named};
        if (!args.named) {
            rc = jinja_dict_make(r, &named);
            named.kind = JINJA_KWARGS;
        }
        if (rc == 0)
            rc = jinja_list_push(r, &all, named);
    }
    return rc < 0 ? rc : jinja_eval_call(r, f.function, all.at, all.n, call_scope, out);
}

/* ---- expressions ---------------------------------------------------------------------------- */

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
        r->where = pair;
        if (rc == 0 && (key.kind != JINJA_STRING || !key.str.p))
            rc = jinja_fail(r, SHOAL_EINVAL, "a key must be a string, not %s",
                            jinja_kind_name(&key));
        if (rc == 0)
            rc = jinja_eval(r, pair->b, scope, &value);
        if (rc == 0)
            rc = jinja_dict_set(r, out->dict, key.str, value);
    }
    return rc;
}

static int absent_condition(struct jinja_run *r)
{
    return jinja_fail(r, SHOAL_EINVAL, "first or last of an empty list as a condition");
}

static int eval_choice(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope,
                       struct jinja_value *out)
{
    bool ternary = n->kind == JINJA_NODE_TERNARY;
    struct jinja_value test;
    int rc = jinja_eval(r, ternary ? n->a : n->b, scope, &test);
    if (rc != 0)
        return rc;
    r->where = n;
    if (test.kind == JINJA_ABSENT)
        return absent_condition(r);
    if (jinja_truth(&test))
        return jinja_eval(r, ternary ? n->b : n->a, scope, out);
    if (ternary)
        return jinja_eval(r, n->c, scope, out);
    *out = jinja_undefined();
    return 0;
}

static int eval_test(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope,
                     struct jinja_value *out)
{
    struct jinja_value v, arg;
    bool yes = false;
    int rc = jinja_eval(r, n->a, scope, &v);
    if (rc == 0 && n->b)
        rc = jinja_eval(r, n->b, scope, &arg);
    if (rc != 0)
        return rc;
    r->where = n;
    rc = jinja_test(r, n->text, &v, n->b ? &arg : NULL, &yes);
    *out = jinja_bool(yes != n->flag);
    return rc;
}

static int eval_expression(struct jinja_run *r, const struct jinja_node *n,
                           struct jinja_scope *scope, struct jinja_value *out)
{
    struct jinja_value v;
    int rc;
    switch (n->kind) {
    case JINJA_NODE_STRING:
        *out = jinja_string(n->text);
        return 0;
    case JINJA_NODE_INT:
        *out = jinja_int(n->num);
        return 0;
    case JINJA_NODE_FLOAT:
        *out = jinja_float(n->num);
        return 0;
    case JINJA_NODE_NAME:
        *out = scope_get(r, scope, n->text);
        return 0;
    case JINJA_NODE_LIST:
    case JINJA_NODE_TUPLE:
        return eval_list(r, n, scope, out);
    case JINJA_NODE_DICT:
        return eval_dict(r, n, scope, out);
    case JINJA_NODE_MEMBER:
        return eval_member(r, n, scope, out);
    case JINJA_NODE_CALL:
        return eval_call(r, n, scope, scope, false, out);
    case JINJA_NODE_UNARY:
        return eval_unary(r, n, scope, out);
    case JINJA_NODE_BINARY:
        return eval_binary(r, n, scope, out);
    case JINJA_NODE_TERNARY:
    case JINJA_NODE_SELECT:
        return eval_choice(r, n, scope, out);
    case JINJA_NODE_TEST:
        return eval_test(r, n, scope, out);
    case JINJA_NODE_FILTER:
        rc = jinja_eval(r, n->a, scope, &v);
        r->where = n;
        return rc == 0 ? jinja_filter(r, &v, n->b, scope, out) : rc;
    default:
        return jinja_fail(r, SHOAL_EINTERNAL, "node %d is not an expression", (int)n->kind);
    }
}

int jinja_eval(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope,
               struct jinja_value *out)
{
    *out = jinja_undefined();
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

static int unpack(struct jinja_run *r, const struct jinja_node *names, const struct jinja_list *l,
                  struct jinja_scope *scope)
{
    int rc = 0;
    size_t i = 0;
    for (const struct jinja_node *n = names; rc == 0 && n; n = n->next, i++) {
        if (n->kind != JINJA_NODE_NAME)
            return jinja_fail(r, SHOAL_EINVAL, "can only unpack into names");
        rc = scope_set(r, scope, n->text, l->at[i]);
    }
    return rc;
}

static int check_count(struct jinja_run *r, const struct jinja_node *names, size_t have)
{
    size_t want = 0;
    for (const struct jinja_node *n = names; n; n = n->next)
        want++;
    if (want != have)
        return jinja_fail(r, SHOAL_EINVAL, "%zu values for %zu names", have, want);
    return 0;
}

static int eval_set(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope)
{
    const struct jinja_node *target = n->a;
    struct jinja_value v, object;
    int rc = n->b ? jinja_eval(r, n->b, scope, &v) : capture(r, n->c, scope, &v);
    if (rc != 0)
        return rc;
    r->where = target;
    switch (target->kind) {
    case JINJA_NODE_NAME:
        return scope_set(r, scope, target->text, v);
    case JINJA_NODE_TUPLE:
        if (!jinja_is_list(&v))
            return jinja_fail(r, SHOAL_EINVAL, "%s cannot be unpacked", jinja_kind_name(&v));
        rc = check_count(r, target->a, v.list->n);
        return rc < 0 ? rc : unpack(r, target->a, v.list, scope);
    case JINJA_NODE_MEMBER:
        rc = jinja_eval(r, target->a, scope, &object);
        if (rc != 0)
            return rc;
        r->where = target;
        if (object.kind != JINJA_NAMESPACE)
            return jinja_fail(r, SHOAL_EINVAL, "only members of a namespace can be set, not of %s",
                              jinja_kind_name(&object));
        if (target->b->kind != JINJA_NODE_NAME)
            return jinja_fail(r, SHOAL_EINVAL, "the member to set must be a name");
        return jinja_dict_set(r, object.dict, target->b->text, v);
    default:
        return jinja_fail(r, SHOAL_EINVAL, "cannot assign to this");
    }
}

static int bind_target(struct jinja_run *r, const struct jinja_node *target,
                       const struct jinja_value *v, struct jinja_scope *scope)
{
    if (target->kind == JINJA_NODE_NAME)
        return scope_set(r, scope, target->text, *v);
    return unpack(r, target->a, v->list, scope);
}

/* The items that the loop will see, after its `if`. */
static int loop_items(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope,
                      struct jinja_value *out)
{
    bool filtered = n->b->kind == JINJA_NODE_SELECT;
    struct jinja_value all, test;
    struct jinja_scope *inner = NULL;
    int rc = jinja_eval(r, filtered ? n->b->a : n->b, scope, &all);
    if (rc != 0)
        return rc;
    r->where = n;
    if (all.kind == JINJA_UNDEFINED) /* nothing to loop over, as in Jinja itself */
        return jinja_list_make(r, out, 0);
    if (!jinja_is_list(&all) && !jinja_is_dict(&all))
        return jinja_fail(r, SHOAL_EINVAL, "cannot loop over %s", jinja_kind_name(&all));
    bool dict = jinja_is_dict(&all);
    size_t count = dict ? all.dict->n : all.list->n;
    rc = jinja_charge(r, count);
    if (rc == 0)
        rc = jinja_list_make(r, out, filtered ? 0 : count);
    if (rc == 0 && filtered)
        rc = scope_make(r, scope, &inner);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct jinja_value v = dict ? jinja_string(all.dict->at[i].key) : all.list->at[i];
        r->where = n;
        if (n->a->kind == JINJA_NODE_TUPLE) {
            if (v.kind != JINJA_LIST)
                return jinja_fail(r, SHOAL_EINVAL, "%s cannot be unpacked", jinja_kind_name(&v));
            rc = check_count(r, n->a->a, v.list->n);
        }
        bool keep = true;
        if (rc == 0 && filtered) {
            rc = bind_target(r, n->a, &v, inner);
            if (rc == 0)
                rc = jinja_eval(r, n->b->b, inner, &test);
            if (rc == 0 && test.kind == JINJA_ABSENT)
                rc = absent_condition(r);
            keep = rc == 0 && jinja_truth(&test);
        }
        if (rc == 0 && keep)
            rc = jinja_list_push(r, out->list, v);
    }
    return rc;
}

/* Not inlined: its table must not lie on the stack while the body of the loop runs. */
__attribute__((noinline)) static int set_loop(struct jinja_run *r, struct jinja_scope *scope,
                                              const struct jinja_list *items, size_t i)
{
    size_t n = items->n;
    const struct jinja_entry entries[] = {
        {JINJA_STR("index"), jinja_int((double)(i + 1))},
        {JINJA_STR("index0"), jinja_int((double)i)},
        {JINJA_STR("revindex"), jinja_int((double)(n - i))},
        {JINJA_STR("revindex0"), jinja_int((double)(n - i - 1))},
        {JINJA_STR("first"), jinja_bool(i == 0)},
        {JINJA_STR("last"), jinja_bool(i == n - 1)},
        {JINJA_STR("length"), jinja_int((double)n)},
        {JINJA_STR("previtem"), i > 0 ? items->at[i - 1] : jinja_undefined()},
        {JINJA_STR("nextitem"), i + 1 < n ? items->at[i + 1] : jinja_undefined()},
    };
    struct jinja_value loop;
    int rc = jinja_dict_make(r, &loop); /* a new one each time: a template may keep it */
    if (rc < 0)
        return rc;
    loop.dict->at = arena_zalloc(&r->arena, sizeof(entries));
    if (!loop.dict->at)
        return jinja_no_memory(r);
    memcpy(loop.dict->at, entries, sizeof(entries));
    loop.dict->n = loop.dict->cap = sizeof(entries) / sizeof(entries[0]);
    return scope_set(r, scope, JINJA_STR("loop"), loop);
}

static void drop_output(struct jinja_run *r, size_t mark)
{
    r->out.len = mark;
    if (r->out.data)
        r->out.data[mark] = '\0';
}

static int eval_for(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *outer)
{
    struct jinja_scope *scope = NULL;
    struct jinja_value items;
    int rc = scope_make(r, outer, &scope);
    if (rc == 0)
        rc = loop_items(r, n, scope, &items);
    bool completed = false;
    for (size_t i = 0; rc == 0 && i < items.list->n; i++) {
        size_t mark = r->out.len;
        rc = set_loop(r, scope, items.list, i);
        if (rc == 0)
            rc = bind_target(r, n->a, &items.list->at[i], scope);
        if (rc == 0)
            rc = eval_body(r, n->c, scope);
        if (rc > 0) {
            /* As in the reference, what this turn has written so far is lost. */
            bool stop = rc == JINJA_JUMP_BREAK;
            drop_output(r, mark);
            rc = 0;
            if (stop)
                break;
        } else {
            completed = true;
        }
    }
    /* The reference also takes else when no turn came to its end. */
    return rc == 0 && !completed ? eval_body(r, n->d, scope) : rc;
}

static int eval_if(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope)
{
    for (;;) {
        struct jinja_value test;
        int rc = jinja_eval(r, n->a, scope, &test);
        if (rc != 0)
            return rc;
        r->where = n;
        if (test.kind == JINJA_ABSENT)
            return absent_condition(r);
        if (jinja_truth(&test))
            return eval_body(r, n->b, scope);
        if (!n->flag)
            return eval_body(r, n->c, scope);
        n = n->c; /* elif */
    }
}

static int eval_macro(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope)
{
    struct jinja_function *f = arena_zalloc(&r->arena, sizeof(*f));
    if (!f)
        return jinja_no_memory(r);
    f->id = JINJA_FN_MACRO;
    f->node = n;
    return scope_set(r, scope, n->text,
                     (struct jinja_value){.kind = JINJA_FUNCTION, .function = f});
}

static int print_result(struct jinja_run *r, const struct jinja_value *v)
{
    if (v->kind == JINJA_NONE || v->kind == JINJA_UNDEFINED)
        return 0;
    return jinja_print(r, v);
}

static int eval_call_block(struct jinja_run *r, const struct jinja_node *n,
                           struct jinja_scope *scope)
{
    struct jinja_function *f = arena_zalloc(&r->arena, sizeof(*f));
    struct jinja_scope *inner = NULL;
    struct jinja_value v;
    if (!f)
        return jinja_no_memory(r);
    f->id = JINJA_FN_CALLER;
    f->node = n;
    f->scope = scope;
    int rc = scope_make(r, scope, &inner);
    if (rc == 0)
        rc = scope_set(r, inner, JINJA_STR("caller"),
                       (struct jinja_value){.kind = JINJA_FUNCTION, .function = f});
    if (rc == 0)
        rc = eval_call(r, n->a, scope, inner, true, &v);
    return rc == 0 ? print_result(r, &v) : rc;
}

static int eval_statement(struct jinja_run *r, const struct jinja_node *n,
                          struct jinja_scope *scope)
{
    struct jinja_value v;
    int rc;
    switch (n->kind) {
    case JINJA_NODE_IF:
        return eval_if(r, n, scope);
    case JINJA_NODE_FOR:
        return eval_for(r, n, scope);
    case JINJA_NODE_SET:
        return eval_set(r, n, scope);
    case JINJA_NODE_MACRO:
        return eval_macro(r, n, scope);
    case JINJA_NODE_CALLBLOCK:
        return eval_call_block(r, n, scope);
    case JINJA_NODE_FILTERBLOCK: {
        struct jinja_value body;
        rc = capture(r, n->c, scope, &body);
        r->where = n;
        if (rc == 0)
            rc = jinja_filter(r, &body, n->b, scope, &v);
        return rc == 0 ? print_result(r, &v) : rc;
    }
    case JINJA_NODE_BREAK:
        return JINJA_JUMP_BREAK;
    case JINJA_NODE_CONTINUE:
        return JINJA_JUMP_CONTINUE;
    default:
        rc = jinja_eval(r, n, scope, &v);
        r->where = n;
        return rc == 0 ? print_result(r, &v) : rc;
    }
}

static int eval_body(struct jinja_run *r, const struct jinja_node *chain, struct jinja_scope *scope)
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

/* ---- the whole template --------------------------------------------------------------------- */

static int set_globals(struct jinja_run *r, struct jinja_scope *scope)
{
    static const struct jinja_function functions[] = {
        {.id = JINJA_FN_RAISE_EXCEPTION},
        {.id = JINJA_FN_RANGE},
        {.id = JINJA_FN_STRFTIME_NOW},
    };
    const struct jinja_entry globals[] = {
        {JINJA_STR("false"), jinja_bool(false)},
        {JINJA_STR("true"), jinja_bool(true)},
        {JINJA_STR("none"), jinja_none()},
        {JINJA_STR("raise_exception"), {.kind = JINJA_FUNCTION, .function = &functions[0]}},
        {JINJA_STR("range"), {.kind = JINJA_FUNCTION, .function = &functions[1]}},
        {JINJA_STR("strftime_now"), {.kind = JINJA_FUNCTION, .function = &functions[2]}},
        {JINJA_STR("True"), jinja_bool(true)},
        {JINJA_STR("False"), jinja_bool(false)},
        {JINJA_STR("None"), jinja_none()},
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(globals) / sizeof(globals[0]); i++)
        rc = scope_set(r, scope, globals[i].key, globals[i].value);
    return rc;
}

int jinja_eval_template(struct jinja_run *r, const struct jinja_template *t,
                        const struct jinja_dict *context)
{
    struct jinja_scope *global = NULL;
    int rc = scope_make(r, NULL, &global);
    if (rc == 0)
        rc = set_globals(r, global);
    for (size_t i = 0; rc == 0 && i < context->n; i++) {
        struct jinja_str key = context->at[i].key;
        if (jinja_dict_get(r, &global->vars, key) || jinja_str_is(key, "namespace"))
            return jinja_fail(r, SHOAL_EINVAL, "the context may not redefine '%.*s'", (int)key.n,
                              key.p);
        rc = scope_set(r, global, key, context->at[i].value);
    }
    if (rc == 0)
        rc = eval_body(r, t->body, global);
    if (rc > 0)
        rc = jinja_fail(r, SHOAL_EINVAL, "break or continue outside of a loop");
    return rc;
}
