/* jinja_lazy.c - filters that run when their result is walked: map, select, unique, items; see
 * jinja_eval.h. */
#include "text/jinja/jinja_eval.h"
#include "text/jinja/jinja_names.h"

static int run_map(struct jinja_run *r, const struct jinja_args *args,
                   const struct jinja_list *items, struct jinja_list *out)
{
    const struct jinja_value *attribute =
        args->named ? jinja_dict_get(r, args->named, JINJA_STR("attribute")) : NULL;
    const struct jinja_value *otherwise =
        args->named ? jinja_dict_get(r, args->named, JINJA_STR("default")) : NULL;
    struct jinja_args rest = {args->at ? args->at + 1 : NULL, args->n ? args->n - 1 : 0,
                              args->named};
    bool by_attribute = args->n == 0 && attribute;
    int id = JINJA_NAME_UNKNOWN, rc = 0;
    if (by_attribute && args->named->n > (otherwise ? 2u : 1u))
        return jinja_fail(r, SHOAL_EINVAL, "map knows the named arguments attribute and default");
    if (!by_attribute && (args->n == 0 || args->at[0].kind != JINJA_STRING))
        return jinja_fail(r, SHOAL_EINVAL, "map needs the name of a filter");
    if (!by_attribute)
        id = jinja_names_filter(args->at[0].str);
    for (size_t i = 0; rc == 0 && i < items->n; i++) {
        struct jinja_value v = {.kind = JINJA_ABSENT};
        rc = jinja_charge(r, 1);
        if (rc == 0 && by_attribute)
            rc = jinja_attribute(r, &items->at[i], attribute, otherwise, &v);
        else if (rc == 0)
            rc = jinja_filter(r, id, args->at[0].str, &items->at[i], &rest, &v);
        if (rc == 0)
            rc = jinja_list_push(r, out, v);
    }
    return rc;
}

/* select, reject, selectattr and rejectattr */
static int run_select(struct jinja_run *r, int id, const struct jinja_args *args,
                      const struct jinja_list *items, struct jinja_list *out)
{
    bool keep = id == JINJA_FILTER_SELECT || id == JINJA_FILTER_SELECTATTR;
    size_t skip = id == JINJA_FILTER_SELECTATTR || id == JINJA_FILTER_REJECTATTR;
    if (args->n < skip)
        return jinja_fail(r, SHOAL_EINVAL, "the name of an attribute is missing");
    bool named = args->n > skip;
    struct jinja_str name = {0};
    if (named && args->at[skip].kind != JINJA_STRING)
        return jinja_fail(r, SHOAL_EINVAL, "the name of a test must be a string, not %s",
                          jinja_kind_name(&args->at[skip]));
    if (named)
        name = args->at[skip].str;
    struct jinja_args rest = {named ? args->at + skip + 1 : NULL, named ? args->n - skip - 1 : 0,
                              args->named};
    int test = named ? jinja_names_test(name) : 0, rc = 0;
    for (size_t i = 0; rc == 0 && i < items->n; i++) {
        struct jinja_value v = items->at[i];
        bool yes = false;
        rc = jinja_charge(r, 1);
        if (rc == 0 && skip)
            rc = jinja_attribute(r, &items->at[i], &args->at[0], NULL, &v);
        if (rc == 0 && named)
            rc = jinja_test(r, test, name, &v, &rest, &yes);
        else if (rc == 0)
            yes = jinja_truth(&v);
        if (rc == 0 && yes == keep)
            rc = jinja_list_push(r, out, items->at[i]);
    }
    return rc;
}

static int run_unique(struct jinja_run *r, const struct jinja_args *args,
                      const struct jinja_list *items, struct jinja_list *out)
{
    static const char *const names[] = {"case_sensitive", "attribute"};
    const struct jinja_value *found;
    struct jinja_value arg[2], seen, key, none = jinja_none();
    int rc = jinja_args_bind(r, "unique", args, names, 2, 0, arg);
    if (rc == 0)
        rc = jinja_dict_make(r, &seen);
    for (size_t i = 0; rc == 0 && i < items->n; i++) {
        rc = jinja_attribute(r, &items->at[i], arg[1].kind == JINJA_ABSENT ? &none : &arg[1], NULL,
                             &key);
        if (rc == 0)
            rc = jinja_filter_fold(r, arg[0].kind != JINJA_ABSENT && jinja_truth(&arg[0]), &key);
        if (rc == 0)
            rc = jinja_dict_find(r, seen.dict, &key, &found);
        if (rc < 0 || found)
            continue;
        rc = jinja_dict_put(r, seen.dict, key, none);
        if (rc == 0)
            rc = jinja_list_push(r, out, items->at[i]);
    }
    return rc;
}

static int run_items(struct jinja_run *r, const struct jinja_value *v, struct jinja_list *out)
{
    int rc = 0;
    if (v->kind == JINJA_UNDEFINED)
        return 0;
    if (v->kind != JINJA_DICT)
        return jinja_fail(r, SHOAL_EINVAL, "items works on dicts, not on %s", jinja_kind_name(v));
    for (size_t i = 0; rc == 0 && i < v->dict->n; i++) {
        struct jinja_value pair;
        rc = jinja_pair_make(r, &pair, v->dict->at[i].key, v->dict->at[i].value);
        if (rc == 0)
            rc = jinja_list_push(r, out, pair);
    }
    return rc < 0 ? rc : jinja_charge(r, v->dict->n);
}

int jinja_lazy_run(struct jinja_run *r, struct jinja_lazy *z)
{
    const struct jinja_node *where = r->where;
    struct jinja_value out;
    struct jinja_list *items = NULL;
    int rc = jinja_list_make(r, &out, 0);
    if (rc < 0)
        return rc;
    z->items = out.list; /* an iterator that holds itself finds nothing */
    r->where = z->where;
    if (++r->depth > JINJA_MAX_DEPTH)
        return jinja_fail(r, SHOAL_ELIMIT, "calls are nested too deeply");
    if (z->filter == JINJA_FILTER_ITEMS)
        rc = run_items(r, &z->source, out.list);
    else if (z->filter == JINJA_FILTER_UNIQUE || jinja_truth(&z->source))
        rc = jinja_iterate(r, &z->source, &items);
    if (rc == 0 && items) {
        if (z->filter == JINJA_FILTER_MAP)
            rc = run_map(r, z->args, items, out.list);
        else if (z->filter == JINJA_FILTER_UNIQUE)
            rc = run_unique(r, z->args, items, out.list);
        else
            rc = run_select(r, z->filter, z->args, items, out.list);
    }
    r->depth--;
    r->where = where;
    return rc;
}
