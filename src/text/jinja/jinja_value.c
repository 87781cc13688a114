/* jinja_value.c - see jinja_value.h. */
#include "text/jinja/jinja_value.h"

#include <stdio.h>

#include "base/hash.h"
#include "text/jinja/parse/jinja_node.h"

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

int jinja_fail_undefined(struct jinja_run *r, const struct jinja_value *v)
{
    return jinja_fail(r, SHOAL_EINVAL, "'%.*s' is undefined", v->str.n < 60 ? (int)v->str.n : 60,
                      v->str.n ? v->str.p : "");
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
        [JINJA_ABSENT] = "a missing value",
        [JINJA_UNDEFINED] = "an undefined value",
        [JINJA_NONE] = "none",
        [JINJA_BOOL] = "a boolean",
        [JINJA_INT] = "an integer",
        [JINJA_BIGINT] = "an integer of more than 64 bits",
        [JINJA_FLOAT] = "a float",
        [JINJA_STRING] = "a string",
        [JINJA_LIST] = "a list",
        [JINJA_TUPLE] = "a tuple",
        [JINJA_DICT] = "a dict",
        [JINJA_VIEW] = "a view of a dict",
        [JINJA_RANGE] = "a range",
        [JINJA_LAZY] = "an iterator",
        [JINJA_NAMESPACE] = "a namespace",
        [JINJA_LOOP] = "the loop variable",
        [JINJA_FUNCTION] = "a function",
    };
    return names[v->kind];
}

int64_t jinja_range_length(const struct jinja_range *g)
{
    /* range() rejects more than JINJA_MAX_RANGE items and bounds that could overflow here */
    if (g->step > 0)
        return g->start < g->stop ? (g->stop - g->start - 1) / g->step + 1 : 0;
    return g->start > g->stop ? (g->start - g->stop - 1) / -g->step + 1 : 0;
}

bool jinja_truth(const struct jinja_value *v)
{
    switch (v->kind) {
    case JINJA_ABSENT:
    case JINJA_UNDEFINED:
    case JINJA_NONE:
        return false;
    case JINJA_BOOL:
        return v->b;
    case JINJA_INT:
        return v->i != 0;
    case JINJA_FLOAT:
        return v->num != 0;
    case JINJA_STRING:
        return v->str.n > 0;
    case JINJA_LIST:
    case JINJA_TUPLE:
        return v->list->n > 0;
    case JINJA_DICT:
        return v->dict->n > 0;
    case JINJA_VIEW:
        return v->view->dict->n > 0;
    case JINJA_RANGE:
        return jinja_range_length(v->range) > 0;
    case JINJA_LOOP:
        return v->loop->items->n > 0;
    default: /* an iterator is true even when it is exhausted */
        return true;
    }
}

bool jinja_as_int(const struct jinja_value *v, int64_t *out)
{
    *out = v->kind == JINJA_BOOL ? v->b : v->kind == JINJA_INT ? v->i : 0;
    return v->kind == JINJA_BOOL || v->kind == JINJA_INT;
}

bool jinja_as_number(const struct jinja_value *v, double *out)
{
    int64_t i;
    if (v->kind == JINJA_FLOAT) {
        *out = v->num;
        return true;
    }
    bool whole = jinja_as_int(v, &i);
    *out = (double)i;
    return whole;
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

void jinja_list_reverse(struct jinja_list *l)
{
    for (size_t i = 0; i < l->n / 2; i++) {
        struct jinja_value v = l->at[i];
        l->at[i] = l->at[l->n - 1 - i];
        l->at[l->n - 1 - i] = v;
    }
}

int jinja_dict_make(struct jinja_run *r, struct jinja_value *out)
{
    struct jinja_dict *d = arena_zalloc(&r->arena, sizeof(*d));
    if (!d)
        return jinja_no_memory(r);
    *out = (struct jinja_value){.kind = JINJA_DICT, .dict = d};
    return 0;
}

int jinja_pair_make(struct jinja_run *r, struct jinja_value *out, struct jinja_value a,
                    struct jinja_value b)
{
    int rc = jinja_list_make(r, out, 2);
    if (rc < 0)
        return rc;
    out->kind = JINJA_TUPLE;
    out->list->at[0] = a;
    out->list->at[1] = b;
    out->list->n = 2;
    return 0;
}

/* Equal keys have equal hashes: 1, 1.0 and true are one key.  False when v cannot be a key. */
static bool hash_key(const struct jinja_value *v, int depth, uint64_t *out)
{
    int64_t i;
    uint64_t h = 0;
    bool ok = true;
    switch (v->kind) {
    case JINJA_STRING:
    case JINJA_BIGINT:
        h = hash_bytes(v->str.p, v->str.n, 0);
        break;
    case JINJA_BOOL:
    case JINJA_INT:
        jinja_as_int(v, &i);
        h = hash_bytes(&i, sizeof(i), 1);
        break;
    case JINJA_FLOAT:
        i = v->num >= -9e18 && v->num <= 9e18 ? (int64_t)v->num : 0;
        h = (double)i == v->num ? hash_bytes(&i, sizeof(i), 1)
                                : hash_bytes(&v->num, sizeof(v->num), 2);
        break;
    case JINJA_TUPLE:
        h = v->list->n;
        for (size_t k = 0; ok && k < v->list->n; k++) {
            uint64_t one = 0;
            ok = depth < JINJA_MAX_DATA_DEPTH && hash_key(&v->list->at[k], depth + 1, &one);
            h = h * 1000003 + one;
        }
        break;
    case JINJA_NONE:
    case JINJA_UNDEFINED:
        h = v->kind;
        break;
    case JINJA_LIST:
    case JINJA_DICT:
    case JINJA_VIEW:
        return false;
    default:
        h = hash_bytes(&v->dict, sizeof(v->dict), 3);
        break;
    }
    *out = h;
    return ok;
}

static size_t index_slot(struct jinja_run *r, const struct jinja_dict *d,
                         const struct jinja_value *key)
{
    size_t mask = d->n_index - 1;
    uint64_t h = 0, probes = 0;
    bool same = false;
    hash_key(key, 0, &h);
    size_t i = (size_t)h & mask;
    while (d->index[i] && (jinja_equal(r, &d->at[d->index[i] - 1].key, key, &same) < 0 || !same)) {
        i = (i + 1) & mask;
        probes++;
    }
    /* Keys chosen to collide cost steps, not time; the next jinja_charge notices. */
    r->steps_left -= probes < r->steps_left ? probes : r->steps_left;
    return i;
}

static struct jinja_value *find(struct jinja_run *r, const struct jinja_dict *d,
                                const struct jinja_value *key)
{
    bool same = false;
    if (d->index) {
        uint32_t i = d->index[index_slot(r, d, key)];
        return i ? &d->at[i - 1].value : NULL;
    }
    for (size_t i = 0; i < d->n; i++) {
        const struct jinja_value *k = &d->at[i].key;
        if (k->kind == JINJA_STRING && key->kind == JINJA_STRING)
            same = jinja_str_eq(k->str, key->str);
        else if (jinja_equal(r, k, key, &same) < 0)
            same = false;
        if (same)
            return &d->at[i].value;
    }
    return NULL;
}

const struct jinja_value *jinja_dict_get(struct jinja_run *r, const struct jinja_dict *d,
                                         struct jinja_str key)
{
    struct jinja_value k = jinja_string(key);
    return find(r, d, &k);
}

static int check_key(struct jinja_run *r, const struct jinja_value *key)
{
    uint64_t h;
    if (!hash_key(key, 0, &h))
        return jinja_fail(r, SHOAL_EINVAL, "%s cannot be a key", jinja_kind_name(key));
    return 0;
}

int jinja_dict_find(struct jinja_run *r, const struct jinja_dict *d, const struct jinja_value *key,
                    const struct jinja_value **out)
{
    int rc = check_key(r, key);
    *out = rc == 0 ? find(r, d, key) : NULL;
    return rc;
}

static int build_index(struct jinja_run *r, struct jinja_dict *d)
{
    d->n_index = d->cap * 2;
    d->index = arena_zalloc_n(&r->arena, d->n_index, sizeof(*d->index));
    if (!d->index)
        return jinja_no_memory(r);
    for (size_t i = 0; i < d->n; i++)
        d->index[index_slot(r, d, &d->at[i].key)] = (uint32_t)(i + 1);
    return 0;
}

int jinja_dict_put(struct jinja_run *r, struct jinja_dict *d, struct jinja_value key,
                   struct jinja_value v)
{
    int rc = key.kind == JINJA_STRING ? 0 : check_key(r, &key);
    if (rc < 0)
        return rc;
    struct jinja_value *known = find(r, d, &key);
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
        rc = cap >= INDEX_FROM ? build_index(r, d) : 0;
        if (rc < 0)
            return rc;
    }
    d->at[d->n++] = (struct jinja_entry){key, v};
    if (d->index)
        d->index[index_slot(r, d, &key)] = (uint32_t)d->n;
    return 0;
}

int jinja_dict_set(struct jinja_run *r, struct jinja_dict *d, struct jinja_str key,
                   struct jinja_value v)
{
    return jinja_dict_put(r, d, jinja_string(key), v);
}

/* ---- equality ------------------------------------------------------------------------------- */

static int equal_at(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b,
                    int depth, bool *out);

static int equal_lists(struct jinja_run *r, const struct jinja_list *a, const struct jinja_list *b,
                       int depth, bool *out)
{
    int rc = 0;
    *out = a->n == b->n;
    for (size_t i = 0; rc == 0 && *out && i < a->n; i++)
        rc = equal_at(r, &a->at[i], &b->at[i], depth + 1, out);
    return rc;
}

static int equal_dicts(struct jinja_run *r, const struct jinja_dict *a, const struct jinja_dict *b,
                       int depth, bool *out)
{
    int rc = 0;
    *out = a->n == b->n;
    for (size_t i = 0; rc == 0 && *out && i < a->n; i++) {
        const struct jinja_value *other = find(r, b, &a->at[i].key);
        *out = other != NULL;
        if (other)
            rc = equal_at(r, &a->at[i].value, other, depth + 1, out);
    }
    return rc;
}

static bool equal_ranges(const struct jinja_range *a, const struct jinja_range *b)
{
    int64_t n = jinja_range_length(a);
    return n == jinja_range_length(b) &&
           (n == 0 || (a->start == b->start && (n == 1 || a->step == b->step)));
}

static int equal_at(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b,
                    int depth, bool *out)
{
    double x, y;
    int64_t i, k;
    *out = false;
    if (r->steps_left == 0 || depth > JINJA_MAX_DATA_DEPTH)
        return jinja_fail(r, SHOAL_ELIMIT, "values are too large or too deep to compare");
    r->steps_left--;
    if (jinja_as_int(a, &i) && jinja_as_int(b, &k)) {
        *out = i == k;
        return 0;
    }
    if (jinja_as_number(a, &x) && jinja_as_number(b, &y)) {
        *out = x == y;
        return 0;
    }
    if (a->kind != b->kind)
        return 0;
    switch (a->kind) {
    case JINJA_STRING:
    case JINJA_BIGINT:
        *out = jinja_str_eq(a->str, b->str);
        return 0;
    case JINJA_LIST:
    case JINJA_TUPLE:
        return a->list == b->list ? (*out = true, 0) : equal_lists(r, a->list, b->list, depth, out);
    case JINJA_DICT:
        return a->dict == b->dict ? (*out = true, 0) : equal_dicts(r, a->dict, b->dict, depth, out);
    case JINJA_RANGE:
        *out = equal_ranges(a->range, b->range);
        return 0;
    case JINJA_NONE:
    case JINJA_UNDEFINED:
        *out = true;
        return 0;
    default:
        *out = a->dict == b->dict;
        return 0;
    }
}

int jinja_equal(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b,
                bool *out)
{
    return equal_at(r, a, b, 0, out);
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
