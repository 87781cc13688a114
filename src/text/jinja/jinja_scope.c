/* jinja_scope.c - the variables of a running template; see jinja_eval.h. */
#include "text/jinja/jinja_eval.h"

/* Looks a name up in the context, then in Jinja's globals; ABSENT if not found. */
static struct jinja_value resolve(struct jinja_run *r, struct jinja_str name)
{
    static struct jinja_dict empty; /* a template cannot set a member of self */
    struct jinja_value v = jinja_absent();
    const struct jinja_value *given = jinja_dict_get(r, r->context, name);
    if (jinja_str_is(name, "self")) /* the template, whose members are its blocks: there are none */
        return (struct jinja_value){.kind = JINJA_NAMESPACE, .dict = &empty};
    if (given)
        return *given;
    jinja_function_find(name, &v);
    return v;
}

static const struct jinja_value *find(struct jinja_run *r, const struct jinja_scope *s,
                                      struct jinja_str name)
{
    const struct jinja_value *v = NULL;
    for (; !v && s; s = s->parent)
        v = jinja_dict_get(r, &s->vars, name);
    return v;
}

int jinja_scope_enter(struct jinja_run *r, const struct jinja_frame *frame,
                      struct jinja_scope *parent, struct jinja_scope **out)
{
    struct jinja_scope *s = arena_zalloc(&r->arena, sizeof(*s));
    if (!s)
        return jinja_no_memory(r);
    s->parent = parent;
    int rc = jinja_charge(r, frame->n);
    for (size_t i = 0; rc == 0 && i < frame->n; i++) {
        const struct jinja_symbol *y = &frame->at[i];
        struct jinja_value v = jinja_absent();
        const struct jinja_value *outer;
        if (y->load == JINJA_LOAD_RESOLVE)
            v = resolve(r, y->name);
        else if (y->load == JINJA_LOAD_ALIAS && (outer = find(r, parent, y->name)))
            v = *outer;
        rc = jinja_dict_set(r, &s->vars, y->name, v);
    }
    *out = s;
    return rc;
}

int jinja_scope_set(struct jinja_run *r, struct jinja_scope *s, struct jinja_str name,
                    struct jinja_value v)
{
    return jinja_dict_set(r, &s->vars, name, v);
}

struct jinja_value jinja_scope_get(struct jinja_run *r, const struct jinja_scope *s,
                                   struct jinja_str name)
{
    const struct jinja_value *v = find(r, s, name);
    struct jinja_value value = v ? *v : resolve(r, name);
    return value.kind == JINJA_ABSENT ? jinja_undefined(name) : value;
}
