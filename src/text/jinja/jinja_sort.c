/* jinja_sort.c - see jinja_eval.h. */
#include "text/jinja/jinja_eval.h"

struct item {
    struct jinja_value key, value;
};

struct sorter {
    struct jinja_run *r;
    bool reverse;
    int rc; /* first failure of a comparison */
};

/* Does b belong before a? */
static bool is_before(struct sorter *s, const struct jinja_value *b, const struct jinja_value *a)
{
    int c = 0;
    if (s->rc == 0)
        s->rc = s->reverse ? jinja_order(s->r, a, b, &c) : jinja_order(s->r, b, a, &c);
    return s->rc == 0 && c < 0;
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
        tmp[to++] = is_before(s, &at[k].key, &at[i].key) ? at[k++] : at[i++];
    while (i < half)
        tmp[to++] = at[i++];
    while (k < n)
        tmp[to++] = at[k++];
    memcpy(at, tmp, n * sizeof(*at));
}

int jinja_sort(struct jinja_run *r, struct jinja_list *items, struct jinja_list *keys, bool reverse)
{
    size_t n = items->n;
    struct sorter s = {r, reverse, 0};
    struct item *at = arena_zalloc_n(&r->arena, 2 * n + 1, sizeof(*at));
    if (!at)
        return jinja_no_memory(r);
    for (size_t i = 0; i < n; i++)
        at[i] = (struct item){keys->at[i], items->at[i]};
    merge_sort(&s, at, at + n, n);
    for (size_t i = 0; i < n; i++)
        items->at[i] = at[i].value;
    return s.rc;
}
