/* jinja_call.c - arguments, macros and calls; see jinja_eval.h. */
#include "text/jinja/jinja_eval.h"

/* ---- arguments ------------------------------------------------------------------------------ */

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

static int spread_list(struct jinja_run *r, const struct jinja_value *v, struct jinja_list *out)
{
    struct jinja_list *items;
    int rc = jinja_iterate(r, v, &items);
    if (rc == 0)
        rc = jinja_charge(r, items->n);
    for (size_t i = 0; rc == 0 && i < items->n; i++)
        rc = jinja_list_push(r, out, items->at[i]);
    return rc;
}

static int spread_dict(struct jinja_run *r, const struct jinja_value *v, struct jinja_args *out)
{
    if (v->kind != JINJA_DICT)
        return jinja_fail(r, SHOAL_EINVAL, "** needs a dict, not %s", jinja_kind_name(v));
    int rc = jinja_charge(r, v->dict->n);
    for (size_t i = 0; rc == 0 && i < v->dict->n; i++) {
        const struct jinja_entry *e = &v->dict->at[i];
        if (e->key.kind != JINJA_STRING)
            return jinja_fail(r, SHOAL_EINVAL, "** needs a dict whose keys are strings");
        rc = add_named(r, out, e->key.str, e->value);
    }
    return rc;
}

int jinja_call_args(struct jinja_run *r, const struct jinja_node *chain, struct jinja_scope *scope,
                    struct jinja_args *out)
{
    struct jinja_list plain = {0};
    struct jinja_value v;
    int rc = 0;
    *out = (struct jinja_args){0};
    for (const struct jinja_node *n = chain; rc == 0 && n; n = n->next) {
        bool wraps = n->kind == JINJA_NODE_KWARG || n->kind == JINJA_NODE_SPREAD ||
                     n->kind == JINJA_NODE_KWSPREAD;
        rc = jinja_eval(r, wraps ? n->a : n, scope, &v);
        if (rc != 0)
            break;
        r->where = n;
        if (n->kind == JINJA_NODE_KWARG)
            rc = add_named(r, out, n->text, v);
        else if (n->kind == JINJA_NODE_SPREAD)
            rc = spread_list(r, &v, &plain);
        else if (n->kind == JINJA_NODE_KWSPREAD)
            rc = spread_dict(r, &v, out);
        else
            rc = jinja_list_push(r, &plain, v);
    }
    out->at = plain.at;
    out->n = plain.n;
    return rc;
}

/* ---- macros --------------------------------------------------------------------------------- */

/* The named arguments that no parameter took: `caller`, `kwargs`, or an error. */
static int bind_surplus(struct jinja_run *r, const struct jinja_node *m,
                        const struct jinja_args *args, size_t n_parameters, const bool *used,
                        bool caller_bound, struct jinja_scope *scope)
{
    struct jinja_value kwargs, caller = jinja_undefined(JINJA_STR("caller"));
    int rc = jinja_dict_make(r, &kwargs);
    for (size_t i = 0; rc == 0 && args->named && i < args->named->n; i++) {
        const struct jinja_entry *e = &args->named->at[i];
        struct jinja_str key = e->key.str;
        if (used[i])
            continue;
        if (m->uses_caller && !caller_bound && jinja_str_is(key, "caller"))
            caller = e->value;
        else if (m->uses_kwargs)
            rc = jinja_dict_set(r, kwargs.dict, key, e->value);
        else
            return jinja_fail(r, SHOAL_EINVAL, "macro '%.*s' takes no argument '%.*s'",
                              m->text.n < 60 ? (int)m->text.n : 60, m->text.p,
                              key.n < 60 ? (int)key.n : 60, key.p);
    }
    if (rc == 0 && m->uses_caller && !caller_bound)
        rc = jinja_scope_set(r, scope, JINJA_STR("caller"), caller);
    if (rc == 0 && m->uses_kwargs)
        rc = jinja_scope_set(r, scope, JINJA_STR("kwargs"), kwargs);
    if (rc < 0 || (args->n <= n_parameters && !m->uses_varargs))
        return rc;
    if (!m->uses_varargs)
        return jinja_fail(r, SHOAL_EINVAL, "macro '%.*s' takes at most %zu arguments, %zu given",
                          m->text.n < 60 ? (int)m->text.n : 60, m->text.p, n_parameters, args->n);
    struct jinja_value rest;
    rc = jinja_list_make(r, &rest, 0);
    for (size_t i = n_parameters; rc == 0 && i < args->n; i++)
        rc = jinja_list_push(r, rest.list, args->at[i]);
    rest.kind = JINJA_TUPLE;
    return rc < 0 ? rc : jinja_scope_set(r, scope, JINJA_STR("varargs"), rest);
}

/* Gives every parameter its argument; defaults are computed last, when all names are bound. */
static int bind_parameters(struct jinja_run *r, const struct jinja_node *m,
                           const struct jinja_args *args, struct jinja_scope *scope)
{
    size_t n_named = args->named ? args->named->n : 0, i = 0;
    bool *used = arena_zalloc(&r->arena, n_named + 1), caller_bound = false;
    if (!used)
        return jinja_no_memory(r);
    int rc = 0;
    for (const struct jinja_node *p = m->a; rc == 0 && p; p = p->next, i++) {
        struct jinja_value v = i < args->n ? args->at[i] : jinja_absent();
        for (size_t k = 0; i >= args->n && k < n_named; k++)
            if (jinja_str_eq(args->named->at[k].key.str, p->text)) {
                v = args->named->at[k].value;
                used[k] = true;
            }
        caller_bound |= jinja_str_is(p->text, "caller");
        rc = jinja_scope_set(r, scope, p->text, v);
        if (rc == 0)
            rc = jinja_charge(r, 1 + n_named);
    }
    if (rc == 0)
        rc = bind_surplus(r, m, args, i, used, caller_bound, scope);
    for (const struct jinja_node *p = m->a; rc == 0 && p; p = p->next) {
        const struct jinja_value *v = jinja_dict_get(r, &scope->vars, p->text);
        struct jinja_value value = jinja_undefined(p->text);
        if (v && v->kind != JINJA_ABSENT)
            continue;
        if (p->a)
            rc = jinja_eval(r, p->a, scope, &value);
        if (rc == 0)
            rc = jinja_scope_set(r, scope, p->text, value);
    }
    return rc;
}

static int call_macro(struct jinja_run *r, const struct jinja_function *f,
                      const struct jinja_args *args, struct jinja_value *out)
{
    struct jinja_scope *scope = NULL;
    int rc = jinja_scope_enter(r, &f->node->frames[JINJA_FRAME_BODY], f->scope, &scope);
    if (rc == 0)
        rc = bind_parameters(r, f->node, args, scope);
    size_t mark = r->out.len;
    if (rc == 0)
        rc = jinja_eval_body(r, f->node->c, scope);
    return rc == 0 ? jinja_cut(r, mark, out) : rc;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* loop(items) in a recursive loop */
static int call_loop(struct jinja_run *r, const struct jinja_loop *l, const struct jinja_args *args,
                     struct jinja_value *out)
{
    static const char *const names[] = {"iterable"};
    struct jinja_value items;
    if (!l->node->flag)
        return jinja_fail(r, SHOAL_EINVAL, "loop can be called in a recursive for only");
    int rc = jinja_args_bind(r, "loop", args, names, 1, 1, &items);
    size_t mark = r->out.len;
    if (rc == 0)
        rc = jinja_eval_loop(r, l->node, l->outer, &items, l->depth + 1);
    return rc == 0 ? jinja_cut(r, mark, out) : rc;
}

/* The name of a callee, for the error that it cannot be called. */
static struct jinja_str callee_name(const struct jinja_node *n)
{
    return n->kind == JINJA_NODE_NAME || n->kind == JINJA_NODE_GETATTR ? n->text
                                                                       : JINJA_STR("this");
}

int jinja_call_node(struct jinja_run *r, const struct jinja_node *n, struct jinja_scope *scope,
                    const struct jinja_value *caller, struct jinja_value *out)
{
    struct jinja_args args;
    struct jinja_value f;
    int rc = jinja_eval(r, n->a, scope, &f);
    if (rc == 0)
        rc = jinja_call_args(r, n->b, scope, &args);
    r->where = n;
    if (rc == 0 && caller)
        rc = add_named(r, &args, JINJA_STR("caller"), *caller);
    if (rc != 0)
        return rc;
    if (f.kind == JINJA_LOOP)
        return call_loop(r, f.loop, &args, out);
    if (f.kind != JINJA_FUNCTION) {
        struct jinja_str name = callee_name(n->a);
        return jinja_fail(r, f.kind == JINJA_UNDEFINED ? SHOAL_EUNSUPPORTED : SHOAL_EINVAL,
                          "'%.*s' cannot be called: it is %s", name.n < 60 ? (int)name.n : 60,
                          name.p, jinja_kind_name(&f));
    }
    switch (f.function->id) {
    case JINJA_FN_MACRO:
        return call_macro(r, f.function, &args, out);
    case JINJA_FN_NAMED:
        return jinja_function_call(r, f.function, &args, out);
    default:
        return jinja_method_call(r, f.function, &args, out);
    }
}
