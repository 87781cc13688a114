/* jinja_method_call.c - runs the methods of dicts, lists and the variable loop; see jinja_eval.h.
 */
#include "text/jinja/jinja_eval.h"
#include "text/jinja/jinja_names.h"

/* ---- dicts ---------------------------------------------------------------------------------- */

static int dict_call(struct jinja_run *r, const struct jinja_function *f,
                     const struct jinja_args *args, struct jinja_value *out)
{
    static const char *const names[] = {"", ""};
    const struct jinja_dict *d = f->self.dict;
    const struct jinja_value *found;
    struct jinja_value v[2];
    bool get = f->method == JINJA_METHOD_GET;
    int rc = jinja_args_bind(r, f->name, args, names, get ? 2 : 0, get ? 1 : 0, v);
    if (rc < 0)
        return rc;
    if (get) {
        rc = jinja_dict_find(r, d, &v[0], &found);
        *out = found ? *found : v[1].kind == JINJA_ABSENT ? jinja_none() : v[1];
        return rc;
    }
    if (f->method == JINJA_METHOD_COPY_DICT) {
        rc = jinja_dict_make(r, out);
        for (size_t i = 0; rc == 0 && i < d->n; i++)
            rc = jinja_dict_put(r, out->dict, d->at[i].key, d->at[i].value);
        return rc < 0 ? rc : jinja_charge(r, d->n);
    }
    struct jinja_view *view = arena_zalloc(&r->arena, sizeof(*view));
    if (!view)
        return jinja_no_memory(r);
    view->dict = d;
    view->of = f->method == JINJA_METHOD_KEYS     ? JINJA_VIEW_KEYS
               : f->method == JINJA_METHOD_VALUES ? JINJA_VIEW_VALUES
                                                  : JINJA_VIEW_ITEMS;
    *out = (struct jinja_value){.kind = JINJA_VIEW, .view = view};
    return 0;
}

/* ---- lists ---------------------------------------------------------------------------------- */

static int pop(struct jinja_run *r, struct jinja_list *l, const struct jinja_value *at,
               struct jinja_value *out)
{
    int64_t i = -1;
    if (at->kind != JINJA_ABSENT && !jinja_as_int(at, &i))
        return jinja_fail(r, SHOAL_EINVAL, "pop takes an integer, not %s", jinja_kind_name(at));
    if (i < 0)
        i += (int64_t)l->n;
    if (i < 0 || i >= (int64_t)l->n)
        return jinja_fail(r, SHOAL_EINVAL, "pop from a list that has no such item");
    *out = l->at[i];
    memmove(l->at + i, l->at + i + 1, (l->n - (size_t)i - 1) * sizeof(*l->at));
    l->n--;
    return jinja_charge(r, l->n / 16);
}

static int list_call(struct jinja_run *r, const struct jinja_function *f,
                     const struct jinja_args *args, struct jinja_value *out)
{
    static const char *const names[] = {""};
    struct jinja_list *l = f->self.list;
    struct jinja_value v;
    bool copy = f->method == JINJA_METHOD_COPY, take = f->method == JINJA_METHOD_POP, same;
    int64_t count = 0;
    int rc = jinja_args_bind(r, f->name, args, names, copy ? 0 : 1, copy || take ? 0 : 1, &v);
    if (rc < 0)
        return rc;
    if (take)
        return pop(r, l, &v, out);
    if (copy) {
        rc = jinja_list_make(r, out, l->n);
        for (size_t i = 0; rc == 0 && i < l->n; i++)
            rc = jinja_list_push(r, out->list, l->at[i]);
        return rc < 0 ? rc : jinja_charge(r, l->n);
    }
    for (size_t i = 0; rc == 0 && i < l->n; i++) {
        rc = jinja_equal(r, &l->at[i], &v, &same);
        if (rc == 0 && same && f->method == JINJA_METHOD_INDEX_ITEM) {
            *out = jinja_int((int64_t)i);
            return 0;
        }
        count += rc == 0 && same;
    }
    *out = jinja_int(count);
    if (rc == 0 && f->method == JINJA_METHOD_INDEX_ITEM)
        return jinja_fail(r, SHOAL_EINVAL, "index of a value that is not in the list");
    return rc;
}

/* ---- loop ----------------------------------------------------------------------------------- */

static int loop_call(struct jinja_run *r, const struct jinja_function *f,
                     const struct jinja_args *args, struct jinja_value *out)
{
    struct jinja_loop *l = f->self.loop;
    bool same = false;
    if (args->named)
        return jinja_fail(r, SHOAL_EINVAL, "loop.%s takes no named arguments", f->name);
    if (f->method == JINJA_METHOD_CYCLE) {
        if (args->n == 0)
            return jinja_fail(r, SHOAL_EINVAL, "loop.cycle needs arguments");
        *out = args->at[l->index % args->n];
        return 0;
    }
    struct jinja_value now;
    int rc = jinja_list_make(r, &now, args->n);
    for (size_t i = 0; rc == 0 && i < args->n; i++)
        rc = jinja_list_push(r, now.list, args->at[i]);
    if (rc == 0 && l->changed.kind != JINJA_ABSENT)
        rc = jinja_equal(r, &l->changed, &now, &same);
    l->changed = now;
    *out = jinja_bool(!same);
    return rc;
}

int jinja_method_call(struct jinja_run *r, const struct jinja_function *f,
                      const struct jinja_args *args, struct jinja_value *out)
{
    if (f->method < 0)
        return jinja_fail(r, SHOAL_EUNSUPPORTED, "method '%s' of %s is not supported", f->name,
                          jinja_kind_name(&f->self));
    switch (f->self.kind) {
    case JINJA_STRING:
        return jinja_string_call(r, f, args, out);
    case JINJA_DICT:
        return dict_call(r, f, args, out);
    case JINJA_LOOP:
        return loop_call(r, f, args, out);
    default:
        return list_call(r, f, args, out);
    }
}
