/* jinja_sort.c - sort, dictsort, and attributes by path; see jinja_eval.h. */
#include <math.h>

#include "text/jinja/jinja_eval.h"

struct item {
    struct jinja_value key, value;
};

struct sorter {
    struct jinja_run *r;
    bool reverse;
    int rc; /* first failure of a comparison */
};

static int cannot_compare(struct sorter *s, const struct jinja_value *a,
                          const struct jinja_value *b)
{
    if (s->rc == 0)
        s->rc = jinja_fail(s->r, SHOAL_EINVAL, "%s and %s cannot be ordered", jinja_kind_name(a),
                           jinja_kind_name(b));
    return 0;
}

static int compare(struct sorter *s, const struct jinja_value *a, const struct jinja_value *b)
{
    double x, y;
    int c;
    if (s->rc == 0)
        s->rc = jinja_charge(s->r, 1);
    if (s->rc != 0)
        return 0;
    if ((a->kind == JINJA_NONE || a->kind == JINJA_UNDEFINED) && a->kind == b->kind)
        return 0;
    if (jinja_as_number(a, &x) && jinja_as_number(b, &y))
        c = (x > y) - (x < y);
    else if (a->kind == JINJA_STRING && b->kind == JINJA_STRING && a->str.p && b->str.p)
        c = jinja_text_compare(a->str, b->str);
    else
        return cannot_compare(s, a, b);
    return s->reverse ? -c : c;
}

/* Merge sort: keeps the order of equal items; tmp has room for n. */
static void merge_sort(struct sorter *s, struct item *at, struct item *tmp, size_t n)
{
    if (n < 2)
        return;
    size_t half = n / 2, i = 0, k = half, to = 0;
    merge_sort(s, at, tmp, half);
    merge_sort(s, at + half, tmp, n - half);
    while (i < half && k < n)
        tmp[to++] = compare(s, &at[i].key, &at[k].key) <= 0 ? at[i++] : at[k++];
    while (i < half)
        tmp[to++] = at[i++];
    while (k < n)
        tmp[to++] = at[k++];
    memcpy(at, tmp, n * sizeof(*at));
}

static int sort_items(struct jinja_run *r, struct item *at, size_t n, bool reverse,
                      bool case_sensitive)
{
    struct sorter s = {r, reverse, 0};
    for (size_t i = 0; !case_sensitive && i < n; i++)
        if (at[i].key.kind == JINJA_STRING && at[i].key.str.p) {
            size_t mark = r->out.len;
            jinja_text_lower(&r->out, at[i].key.str);
            int rc = jinja_cut(r, mark, &at[i].key);
            if (rc < 0)
                return rc;
        }
    struct item *tmp = arena_zalloc_n(&r->arena, n + 1, sizeof(*tmp));
    if (!tmp)
        return jinja_no_memory(r);
    merge_sort(&s, at, tmp, n);
    return s.rc;
}

struct jinja_value jinja_attribute(struct jinja_run *r, struct jinja_value v, struct jinja_str path)
{
    for (size_t at = 0;; at++) {
        size_t end = jinja_text_find(path, JINJA_STR("."), at);
        if (end == SIZE_MAX)
            end = path.n;
        struct jinja_str part = {path.p + at, end - at};
        if (jinja_is_dict(&v) || v.kind == JINJA_NAMESPACE) {
            const struct jinja_value *found = jinja_dict_get(r, v.dict, part);
            v = found && found->kind != JINJA_ABSENT ? *found : jinja_undefined();
        } else if (jinja_is_list(&v)) {
            double i = jinja_text_parse_int(part);
            if (isnan(i) || i < 0 || i >= (double)v.list->n)
                return jinja_undefined();
            v = v.list->at[(size_t)i];
        } else {
            return jinja_undefined();
        }
        if (end == path.n)
            return v;
        at = end;
    }
}

int jinja_sort_list(struct jinja_run *r, const struct jinja_list *l, bool reverse,
                    bool case_sensitive, const struct jinja_str *attribute, struct jinja_value *out)
{
    struct item *items = arena_zalloc_n(&r->arena, l->n + 1, sizeof(*items));
    if (!items)
        return jinja_no_memory(r);
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        if (l->at[i].kind != JINJA_ABSENT) {
            items[n].value = l->at[i];
            items[n++].key = attribute ? jinja_attribute(r, l->at[i], *attribute) : l->at[i];
        }
    int rc = jinja_charge(r, l->n);
    if (rc == 0)
        rc = sort_items(r, items, n, reverse, case_sensitive);
    if (rc == 0)
        rc = jinja_list_make(r, out, l->n);
    for (size_t i = 0; rc == 0 && i < l->n; i++)
        rc = jinja_list_push(r, out->list,
                             i < n ? items[i].value : (struct jinja_value){.kind = JINJA_ABSENT});
    return rc;
}

int jinja_sort_dict(struct jinja_run *r, const struct jinja_dict *d, bool reverse,
                    bool case_sensitive, bool by_value, struct jinja_value *out)
{
    struct item *items = arena_zalloc_n(&r->arena, d->n + 1, sizeof(*items));
    if (!items)
        return jinja_no_memory(r);
    int rc = jinja_charge(r, d->n);
    for (size_t i = 0; rc == 0 && i < d->n; i++) {
        struct jinja_value pair, key = jinja_string(d->at[i].key);
        rc = jinja_list_make(r, &pair, 2);
        if (rc == 0)
            rc = jinja_list_push(r, pair.list, key);
        if (rc == 0)
            rc = jinja_list_push(r, pair.list, d->at[i].value);
        items[i] = (struct item){by_value ? d->at[i].value : key, pair};
    }
    if (rc == 0)
        rc = sort_items(r, items, d->n, reverse, case_sensitive);
    if (rc == 0)
        rc = jinja_list_make(r, out, d->n);
    for (size_t i = 0; rc == 0 && i < d->n; i++)
        rc = jinja_list_push(r, out->list, items[i].value);
    return rc;
}
