/* jinja_filter_seq.c - filters over sequences; see jinja_eval.h. */
#include "text/jinja/jinja_eval.h"
#include "text/jinja/jinja_names.h"

static int push_all(struct jinja_run *r, const struct jinja_list *from, struct jinja_list *to)
{
    int rc = jinja_charge(r, from->n);
    for (size_t i = 0; rc == 0 && i < from->n; i++)
        rc = jinja_list_push(r, to, from->at[i]);
    return rc;
}

/* A new list with the items of v. */
static int list_of(struct jinja_run *r, const struct jinja_value *v, struct jinja_value *out)
{
    struct jinja_list *items;
    int rc = jinja_iterate(r, v, &items);
    if (rc == 0)
        rc = jinja_list_make(r, out, items->n);
    return rc < 0 ? rc : push_all(r, items, out->list);
}

static bool flag(const struct jinja_value *v, bool otherwise)
{
    return v->kind == JINJA_ABSENT ? otherwise : jinja_truth(v);
}

/* ---- iterators: map, select, items, ... ----------------------------------------------------- */

/* A filter that runs later, when its result is walked. */
static int defer(struct jinja_run *r, int id, const struct jinja_value *v,
                 const struct jinja_args *args, struct jinja_value *out)
{
    struct jinja_lazy *z = arena_zalloc(&r->arena, sizeof(*z));
    struct jinja_args *copy = arena_zalloc(&r->arena, sizeof(*copy));
    if (!z || !copy)
        return jinja_no_memory(r);
    *copy = *args;
    *z = (struct jinja_lazy){.filter = id, .source = *v, .args = copy, .where = r->where};
    *out = (struct jinja_value){.kind = JINJA_LAZY, .lazy = z};
    return 0;
}

/* An iterator over known items. */
static int make_iterator(struct jinja_run *r, struct jinja_list *items, struct jinja_value *out)
{
    struct jinja_lazy *z = arena_zalloc(&r->arena, sizeof(*z));
    if (!z)
        return jinja_no_memory(r);
    z->items = items;
    *out = (struct jinja_value){.kind = JINJA_LAZY, .lazy = z};
    return 0;
}

int jinja_filter_fold(struct jinja_run *r, bool case_sensitive, struct jinja_value *v)
{
    if (case_sensitive || v->kind != JINJA_STRING)
        return 0;
    size_t mark = r->out.len;
    jinja_text_lower(&r->out, v->str);
    return jinja_cut(r, mark, v);
}

/* ---- whole sequences ------------------------------------------------------------------------ */

static int join(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *args,
                struct jinja_value *out)
{
    static const char *const names[] = {"d", "attribute"};
    struct jinja_value arg[2], item;
    struct jinja_list *items = NULL;
    struct jinja_str sep = JINJA_STR("");
    int rc = jinja_args_bind(r, "join", args, names, 2, 0, arg);
    if (rc == 0)
        rc = jinja_iterate(r, v, &items);
    if (rc == 0 && arg[0].kind != JINJA_ABSENT)
        rc = jinja_print_text(r, &arg[0], &sep);
    size_t mark = r->out.len;
    for (size_t i = 0; rc == 0 && i < items->n; i++) {
        item = items->at[i];
        if (arg[1].kind != JINJA_ABSENT)
            rc = jinja_attribute(r, &items->at[i], &arg[1], NULL, &item);
        if (rc == 0)
            rc = jinja_charge(r, 1);
        if (i)
            buf_put(&r->out, sep.p, sep.n);
        if (rc == 0)
            rc = jinja_print(r, &item);
    }
    return rc < 0 ? rc : jinja_cut(r, mark, out);
}

static bool can_reverse(const struct jinja_value *v)
{
    return jinja_is_list(v) || v->kind == JINJA_STRING || v->kind == JINJA_DICT ||
           v->kind == JINJA_VIEW || v->kind == JINJA_RANGE;
}

static int end_of(struct jinja_run *r, const struct jinja_value *v, bool first,
                  struct jinja_value *out)
{
    struct jinja_list *items;
    if (!first && !can_reverse(v) && v->kind != JINJA_UNDEFINED)
        return jinja_fail(r, SHOAL_EINVAL, "last works on sequences, not on %s",
                          jinja_kind_name(v));
    if (v->kind == JINJA_LAZY) { /* takes one item only */
        struct jinja_lazy *z = v->lazy;
        int rc = z->items ? 0 : r->run_lazy(r, z);
        *out = rc == 0 && z->at < z->items->n ? z->items->at[z->at++]
                                              : jinja_undefined(JINJA_STR("first"));
        return rc;
    }
    int rc = jinja_iterate(r, v, &items);
    if (rc < 0)
        return rc;
    *out = items->n ? items->at[first ? 0 : items->n - 1]
                    : jinja_undefined(first ? JINJA_STR("first") : JINJA_STR("last"));
    if (!first && v->kind == JINJA_STRING)
        out->markup = v->markup;
    return 0;
}

static int reverse(struct jinja_run *r, const struct jinja_value *v, struct jinja_value *out)
{
    struct jinja_value list, none[3] = {jinja_none(), jinja_none(), jinja_int(-1)};
    if (v->kind == JINJA_STRING)
        return jinja_slice(r, v, none, out);
    int rc = list_of(r, v, &list);
    if (rc < 0)
        return rc;
    jinja_list_reverse(list.list);
    if (can_reverse(v) || v->kind == JINJA_UNDEFINED)
        return make_iterator(r, list.list, out);
    *out = list;
    return 0;
}

/* The attributes "a,b" of an item as a list of keys. */
static int sort_keys(struct jinja_run *r, const struct jinja_value *item,
                     const struct jinja_value *attribute, bool case_sensitive,
                     struct jinja_value *out)
{
    struct jinja_value key, path = *attribute;
    int rc = jinja_list_make(r, out, 1);
    for (size_t at = 0, end = 0; rc == 0; at = end + 1) {
        if (attribute->kind == JINJA_STRING) {
            end = jinja_text_find(attribute->str, JINJA_STR(","), at);
            if (end == SIZE_MAX)
                end = attribute->str.n;
            path.str = (struct jinja_str){attribute->str.p + at, end - at};
        }
        rc = jinja_attribute(r, item, &path, NULL, &key);
        if (rc == 0)
            rc = jinja_filter_fold(r, case_sensitive, &key);
        if (rc == 0)
            rc = jinja_list_push(r, out->list, key);
        if (attribute->kind != JINJA_STRING || end == attribute->str.n)
            break;
    }
    return rc;
}

static int sort(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *args,
                struct jinja_value *out)
{
    static const char *const names[] = {"reverse", "case_sensitive", "attribute"};
    struct jinja_value arg[3], keys, key, none = jinja_none();
    int rc = jinja_args_bind(r, "sort", args, names, 3, 0, arg);
    if (rc == 0)
        rc = list_of(r, v, out);
    if (rc == 0)
        rc = jinja_list_make(r, &keys, out->list->n);
    for (size_t i = 0; rc == 0 && i < out->list->n; i++) {
        rc = sort_keys(r, &out->list->at[i], arg[2].kind == JINJA_ABSENT ? &none : &arg[2],
                       flag(&arg[1], false), &key);
        if (rc == 0)
            rc = jinja_list_push(r, keys.list, key);
    }
    return rc < 0 ? rc : jinja_sort(r, out->list, keys.list, flag(&arg[0], false));
}

static int dictsort(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *args,
                    struct jinja_value *out)
{
    static const char *const names[] = {"case_sensitive", "by", "reverse"};
    struct jinja_value arg[3], keys;
    int rc = jinja_args_bind(r, "dictsort", args, names, 3, 0, arg);
    bool by_value = false;
    if (rc < 0)
        return rc;
    if (v->kind != JINJA_DICT)
        return v->kind == JINJA_UNDEFINED
                   ? jinja_fail_undefined(r, v)
                   : jinja_fail(r, SHOAL_EINVAL, "dictsort works on dicts, not on %s",
                                jinja_kind_name(v));
    if (arg[1].kind != JINJA_ABSENT) {
        by_value = arg[1].kind == JINJA_STRING && jinja_str_is(arg[1].str, "value");
        if (!by_value && !(arg[1].kind == JINJA_STRING && jinja_str_is(arg[1].str, "key")))
            return jinja_fail(r, SHOAL_EINVAL, "dictsort is by 'key' or by 'value'");
    }
    const struct jinja_dict *d = v->dict;
    rc = jinja_list_make(r, out, d->n);
    if (rc == 0)
        rc = jinja_list_make(r, &keys, d->n);
    for (size_t i = 0; rc == 0 && i < d->n; i++) {
        struct jinja_value pair, key = by_value ? d->at[i].value : d->at[i].key;
        rc = jinja_filter_fold(r, flag(&arg[0], false), &key);
        if (rc == 0)
            rc = jinja_pair_make(r, &pair, d->at[i].key, d->at[i].value);
        if (rc == 0)
            rc = jinja_list_push(r, out->list, pair);
        if (rc == 0)
            rc = jinja_list_push(r, keys.list, key);
    }
    return rc < 0 ? rc : jinja_sort(r, out->list, keys.list, flag(&arg[2], false));
}

/* min and max: the first of the smallest or largest */
static int extreme(struct jinja_run *r, bool max, const struct jinja_value *v,
                   const struct jinja_args *args, struct jinja_value *out)
{
    static const char *const names[] = {"case_sensitive", "attribute"};
    struct jinja_value arg[2], best = jinja_absent(), key, none = jinja_none();
    struct jinja_list *items;
    int rc = jinja_args_bind(r, max ? "max" : "min", args, names, 2, 0, arg), c = 0;
    if (rc == 0)
        rc = jinja_iterate(r, v, &items);
    *out = jinja_undefined(JINJA_STR("the item of an empty list"));
    for (size_t i = 0; rc == 0 && i < items->n; i++) {
        rc = jinja_attribute(r, &items->at[i], arg[1].kind == JINJA_ABSENT ? &none : &arg[1], NULL,
                             &key);
        if (rc == 0)
            rc = jinja_filter_fold(r, flag(&arg[0], false), &key);
        if (rc == 0 && i > 0)
            rc = max ? jinja_order(r, &best, &key, &c) : jinja_order(r, &key, &best, &c);
        if (rc == 0 && (i == 0 || c < 0)) {
            best = key;
            *out = items->at[i];
        }
    }
    return rc;
}

static int sum(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *args,
               struct jinja_value *out)
{
    static const char *const names[] = {"attribute", "start"};
    struct jinja_value arg[2], total, item;
    struct jinja_list *items;
    int rc = jinja_args_bind(r, "sum", args, names, 2, 0, arg);
    if (rc == 0)
        rc = jinja_iterate(r, v, &items);
    total = arg[1].kind == JINJA_ABSENT ? jinja_int(0) : arg[1];
    if (rc == 0 && total.kind == JINJA_STRING)
        return jinja_fail(r, SHOAL_EINVAL, "sum cannot add strings");
    for (size_t i = 0; rc == 0 && i < items->n; i++) {
        item = items->at[i];
        if (arg[0].kind != JINJA_ABSENT && arg[0].kind != JINJA_NONE)
            rc = jinja_attribute(r, &items->at[i], &arg[0], NULL, &item);
        struct jinja_value before = total;
        if (rc == 0)
            rc = jinja_binary(r, JINJA_OP_ADD, &before, &item, &total);
    }
    *out = total;
    return rc;
}

int jinja_filter_seq(struct jinja_run *r, int id, const struct jinja_value *v,
                     const struct jinja_args *args, struct jinja_value *out)
{
    static const char *const none[] = {""};
    int rc = 0;
    switch (id) {
    case JINJA_FILTER_LIST:
    case JINJA_FILTER_FIRST:
    case JINJA_FILTER_LAST:
    case JINJA_FILTER_REVERSE:
    case JINJA_FILTER_ITEMS:
        rc = jinja_args_bind(r, "this filter", args, none, 0, 0, out);
        break;
    default:
        break;
    }
    if (rc < 0)
        return rc;
    switch (id) {
    case JINJA_FILTER_LIST:
        return list_of(r, v, out);
    case JINJA_FILTER_FIRST:
    case JINJA_FILTER_LAST:
        return end_of(r, v, id == JINJA_FILTER_FIRST, out);
    case JINJA_FILTER_REVERSE:
        return reverse(r, v, out);
    case JINJA_FILTER_JOIN:
        return join(r, v, args, out);
    case JINJA_FILTER_SORT:
        return sort(r, v, args, out);
    case JINJA_FILTER_DICTSORT:
        return dictsort(r, v, args, out);
    case JINJA_FILTER_MIN:
    case JINJA_FILTER_MAX:
        return extreme(r, id == JINJA_FILTER_MAX, v, args, out);
    case JINJA_FILTER_SUM:
        return sum(r, v, args, out);
    default:
        return defer(r, id, v, args, out);
    }
}
