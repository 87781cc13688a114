/* jinja_value.c - see jinja_value.h. */
#include "text/jinja/jinja_value.h"

#include <math.h>
#include <stdio.h>

#include "base/hash.h"
#include "text/jinja/jinja_node.h"

enum { INDEX_FROM = 16 }; /* entries; below, looking at each key is faster than hashing */

int jinja_fail(struct jinja_run *r, int code, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (!r->where)
        return err_set(r->e, code, "%s", text);
    return err_set(r->e, code, "line %u, column %u: %s", r->where->line, r->where->col, text);
}

int jinja_no_memory(struct jinja_run *r)
{
    int rc = r->arena.rc ? r->arena.rc : SHOAL_ENOMEM;
    return jinja_fail(r, rc,
                      rc == SHOAL_ELIMIT ? "template needs too much memory" : "out of memory");
}

int jinja_charge(struct jinja_run *r, uint64_t steps)
{
    if (steps > r->steps_left) {
        r->steps_left = 0;
        return jinja_fail(r, SHOAL_ELIMIT, "template runs too long");
    }
    r->steps_left -= steps;
    return 0;
}

const char *jinja_kind_name(const struct jinja_value *v)
{
    static const char *const names[] = {
        [JINJA_ABSENT] = "the end of an empty list",
        [JINJA_UNDEFINED] = "an undefined value",
        [JINJA_NONE] = "none",
        [JINJA_BOOL] = "a boolean",
        [JINJA_INT] = "an integer",
        [JINJA_FLOAT] = "a float",
        [JINJA_STRING] = "a string",
        [JINJA_LIST] = "a list",
        [JINJA_TUPLE] = "a tuple",
        [JINJA_DICT] = "a dict",
        [JINJA_KWARGS] = "named arguments",
        [JINJA_NAMESPACE] = "a namespace",
        [JINJA_FUNCTION] = "a function",
    };
    return names[v->kind];
}

bool jinja_truth(const struct jinja_value *v)
{
    switch (v->kind) {
    case JINJA_BOOL:
        return v->b;
    case JINJA_INT:
    case JINJA_FLOAT:
        return v->num != 0 && !isnan(v->num);
    case JINJA_STRING:
        return v->str.n > 0;
    case JINJA_LIST:
    case JINJA_TUPLE:
        return v->list->n > 0;
    case JINJA_DICT:
    case JINJA_KWARGS:
        return v->dict->n > 0;
    case JINJA_NAMESPACE:
    case JINJA_FUNCTION:
        return true;
    default:
        return false;
    }
}

/* ---- lists and dicts ------------------------------------------------------------------------ */

int jinja_list_make(struct jinja_run *r, struct jinja_value *out, size_t cap)
{
    struct jinja_list *l = arena_zalloc(&r->arena, sizeof(*l));
    if (l && cap) {
        l->at = arena_zalloc_n(&r->arena, cap, sizeof(*l->at));
        l->cap = cap;
    }
    if (!l || (cap && !l->at))
        return jinja_no_memory(r);
    *out = (struct jinja_value){.kind = JINJA_LIST, .list = l};
    return 0;
}

int jinja_list_push(struct jinja_run *r, struct jinja_list *l, struct jinja_value v)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 4;
        struct jinja_value *at = arena_zalloc_n(&r->arena, cap, sizeof(*at));
        if (!at)
            return jinja_no_memory(r);
        if (l->n)
            memcpy(at, l->at, l->n * sizeof(*at));
        l->at = at;
        l->cap = cap;
    }
    l->at[l->n++] = v;
    return 0;
}

int jinja_dict_make(struct jinja_run *r, struct jinja_value *out)
{
    struct jinja_dict *d = arena_zalloc(&r->arena, sizeof(*d));
    if (!d)
        return jinja_no_memory(r);
    *out = (struct jinja_value){.kind = JINJA_DICT, .dict = d};
    return 0;
}

static size_t index_slot(struct jinja_run *r, const struct jinja_dict *d, struct jinja_str key)
{
    size_t mask = d->n_index - 1;
    size_t i = (size_t)hash_bytes(key.p, key.n, 0) & mask;
    uint64_t probes = 0;
    while (d->index[i] && !jinja_str_eq(d->at[d->index[i] - 1].key, key)) {
        i = (i + 1) & mask;
        probes++;
    }
    /* Keys chosen to collide cost steps, not time; the next jinja_charge notices. */
    r->steps_left -= probes < r->steps_left ? probes : r->steps_left;
    return i;
}

static struct jinja_value *find(struct jinja_run *r, const struct jinja_dict *d,
                                struct jinja_str key)
{
    if (d->index) {
        uint32_t i = d->index[index_slot(r, d, key)];
        return i ? &d->at[i - 1].value : NULL;
    }
    for (size_t i = 0; i < d->n; i++)
        if (jinja_str_eq(d->at[i].key, key))
            return &d->at[i].value;
    return NULL;
}

const struct jinja_value *jinja_dict_get(struct jinja_run *r, const struct jinja_dict *d,
                                         struct jinja_str key)
{
    return find(r, d, key);
}

static int build_index(struct jinja_run *r, struct jinja_dict *d)
{
    d->n_index = d->cap * 2;
    d->index = arena_zalloc_n(&r->arena, d->n_index, sizeof(*d->index));
    if (!d->index)
        return jinja_no_memory(r);
    for (size_t i = 0; i < d->n; i++)
        d->index[index_slot(r, d, d->at[i].key)] = (uint32_t)(i + 1);
    return 0;
}

int jinja_dict_set(struct jinja_run *r, struct jinja_dict *d, struct jinja_str key,
                   struct jinja_value v)
{
    struct jinja_value *known = find(r, d, key);
    if (known) {
        *known = v;
        return 0;
    }
    if (d->n == UINT32_MAX / 4)
        return jinja_fail(r, SHOAL_ELIMIT, "dict with too many keys");
    if (d->n == d->cap) {
        size_t cap = d->cap ? d->cap * 2 : 4;
        struct jinja_entry *at = arena_zalloc_n(&r->arena, cap, sizeof(*at));
        if (!at)
            return jinja_no_memory(r);
        if (d->n)
            memcpy(at, d->at, d->n * sizeof(*at));
        d->at = at;
        d->cap = cap;
        int rc = cap >= INDEX_FROM ? build_index(r, d) : 0;
        if (rc < 0)
            return rc;
    }
    d->at[d->n++] = (struct jinja_entry){key, v};
    if (d->index)
        d->index[index_slot(r, d, key)] = (uint32_t)d->n;
    return 0;
}

/* ---- text ----------------------------------------------------------------------------------- */

int jinja_check_out(struct jinja_run *r)
{
    if (r->out.rc == SHOAL_ELIMIT)
        return jinja_fail(r, SHOAL_ELIMIT, "template writes more than %zu bytes", r->out.max);
    if (r->out.rc < 0)
        return jinja_fail(r, r->out.rc, "out of memory");
    return 0;
}

int jinja_cut(struct jinja_run *r, size_t mark, struct jinja_value *out)
{
    int rc = jinja_check_out(r);
    if (rc == 0)
        rc = jinja_charge(r, (r->out.len - mark) / 64);
    if (rc < 0)
        return rc;
    size_t n = r->out.len - mark;
    char *p = arena_copy(&r->arena, n ? r->out.data + mark : "", n);
    if (!p)
        return jinja_no_memory(r);
    r->out.len = mark;
    if (r->out.data)
        r->out.data[mark] = '\0';
    *out = jinja_string((struct jinja_str){p, n});
    return 0;
}

int jinja_concat(struct jinja_run *r, struct jinja_str a, struct jinja_str b,
                 struct jinja_value *out)
{
    int rc = jinja_charge(r, (a.n + b.n) / 64);
    if (rc < 0)
        return rc;
    if (a.n && arena_grow(&r->arena, a.p + a.n, b.n)) {
        /* a is the newest piece: the bytes after it are ours, and a itself stays as it is */
        memcpy((char *)(uintptr_t)(a.p + a.n), b.p, b.n);
        *out = jinja_string((struct jinja_str){a.p, a.n + b.n});
        return 0;
    }
    char *p = arena_bytes(&r->arena, a.n + b.n);
    if (!p)
        return jinja_no_memory(r);
    memcpy(p, a.p, a.n);
    memcpy(p + a.n, b.p, b.n);
    *out = jinja_string((struct jinja_str){p, a.n + b.n});
    return 0;
}
