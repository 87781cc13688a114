/* jinja_iter.c - the items of values; see jinja_eval.h. */
#include "text/jinja/jinja_eval.h"

static int iterate_text(struct jinja_run *r, const struct jinja_value *v, struct jinja_list *out)
{
    int rc = 0;
    struct jinja_str s = v->str;
    for (size_t i = 0; rc == 0 && i < s.n;) {
        uint32_t cp;
        size_t len = jinja_text_next(s.p + i, s.n - i, &cp);
        struct jinja_value c = jinja_string((struct jinja_str){s.p + i, len});
        rc = jinja_charge(r, 1);
        if (rc == 0)
            rc = jinja_list_push(r, out, c);
        i += len;
    }
    return rc;
}

static int iterate_dict(struct jinja_run *r, const struct jinja_dict *d, enum jinja_view_of of,
                        struct jinja_list *out)
{
    int rc = jinja_charge(r, d->n);
    for (size_t i = 0; rc == 0 && i < d->n; i++) {
        struct jinja_value item = of == JINJA_VIEW_KEYS ? d->at[i].key : d->at[i].value;
        if (of == JINJA_VIEW_ITEMS)
            rc = jinja_pair_make(r, &item, d->at[i].key, d->at[i].value);
        if (rc == 0)
            rc = jinja_list_push(r, out, item);
    }
    return rc;
}

static int iterate_lazy(struct jinja_run *r, struct jinja_lazy *z, struct jinja_list *out)
{
    int rc = z->items ? 0 : r->run_lazy(r, z);
    if (rc == 0)
        rc = jinja_charge(r, z->items->n - z->at);
    for (; rc == 0 && z->at < z->items->n; z->at++)
        rc = jinja_list_push(r, out, z->items->at[z->at]);
    return rc;
}

bool jinja_is_iterable(const struct jinja_value *v)
{
    switch (v->kind) {
    case JINJA_UNDEFINED:
    case JINJA_STRING:
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_DICT:
    case JINJA_VIEW:
    case JINJA_RANGE:
    case JINJA_LAZY:
    case JINJA_LOOP:
        return true;
    default:
        return false;
    }
}

int jinja_iterate(struct jinja_run *r, const struct jinja_value *v, struct jinja_list **out)
{
    struct jinja_value list;
    if (jinja_is_list(v)) {
        *out = v->list;
        return 0;
    }
    if (!jinja_is_iterable(v))
        return jinja_fail(r, SHOAL_EINVAL, "cannot loop over %s", jinja_kind_name(v));
    if (v->kind == JINJA_LOOP)
        return jinja_fail(r, SHOAL_EUNSUPPORTED, "looping over the variable loop");
    int rc = jinja_list_make(r, &list, 0);
    if (rc < 0)
        return rc;
    *out = list.list;
    switch (v->kind) {
    case JINJA_STRING:
        return iterate_text(r, v, *out);
    case JINJA_DICT:
        return iterate_dict(r, v->dict, JINJA_VIEW_KEYS, *out);
    case JINJA_VIEW:
        return iterate_dict(r, v->view->dict, v->view->of, *out);
    case JINJA_LAZY:
        return iterate_lazy(r, v->lazy, *out);
    case JINJA_RANGE: {
        int64_t n = jinja_range_length(v->range);
        rc = jinja_charge(r, (uint64_t)n);
        for (int64_t i = 0; rc == 0 && i < n; i++)
            rc = jinja_list_push(r, *out, jinja_int(v->range->start + i * v->range->step));
        return rc;
    }
    default: /* undefined: nothing */
        return 0;
    }
}

int jinja_length(struct jinja_run *r, const struct jinja_value *v, int64_t *out)
{
    switch (v->kind) {
    case JINJA_UNDEFINED:
        *out = 0;
        return 0;
    case JINJA_STRING:
        *out = (int64_t)jinja_text_points(v->str);
        return jinja_charge(r, v->str.n / 64);
    case JINJA_LIST:
    case JINJA_TUPLE:
        *out = (int64_t)v->list->n;
        return 0;
    case JINJA_DICT:
        *out = (int64_t)v->dict->n;
        return 0;
    case JINJA_VIEW:
        *out = (int64_t)v->view->dict->n;
        return 0;
    case JINJA_RANGE:
        *out = jinja_range_length(v->range);
        return 0;
    case JINJA_LOOP:
        *out = (int64_t)v->loop->items->n;
        return 0;
    default:
        return jinja_fail(r, SHOAL_EINVAL, "%s has no length", jinja_kind_name(v));
    }
}
