/* jinja_member.c - a.b, a[b] and a[b:c:d]; see jinja_eval.h. */
#include "base/ascii.h"
#include "text/jinja/jinja_eval.h"
#include "text/jinja/jinja_number.h"

static struct jinja_value loop_attribute(const struct jinja_loop *l, struct jinja_str name)
{
    int64_t i = (int64_t)l->index, n = (int64_t)l->items->n;
    if (jinja_str_is(name, "index"))
        return jinja_int(i + 1);
    if (jinja_str_is(name, "index0"))
        return jinja_int(i);
    if (jinja_str_is(name, "revindex"))
        return jinja_int(n - i);
    if (jinja_str_is(name, "revindex0"))
        return jinja_int(n - i - 1);
    if (jinja_str_is(name, "first"))
        return jinja_bool(i == 0);
    if (jinja_str_is(name, "last"))
        return jinja_bool(i + 1 >= n);
    if (jinja_str_is(name, "length"))
        return jinja_int(n);
    if (jinja_str_is(name, "depth"))
        return jinja_int(l->depth + 1);
    if (jinja_str_is(name, "depth0"))
        return jinja_int(l->depth);
    if (jinja_str_is(name, "previtem"))
        return i > 0 ? l->items->at[i - 1] : jinja_undefined(name);
    if (jinja_str_is(name, "nextitem"))
        return i + 1 < n ? l->items->at[i + 1] : jinja_undefined(name);
    return jinja_absent();
}

/* The result of Python's getattr; ABSENT if there is none. */
static int attribute(struct jinja_run *r, const struct jinja_value *object, struct jinja_str name,
                     struct jinja_value *out)
{
    *out = jinja_absent();
    if (object->kind == JINJA_UNDEFINED)
        return jinja_fail_undefined(r, object);
    if (object->kind == JINJA_LOOP) {
        *out = loop_attribute(object->loop, name);
        if (out->kind != JINJA_ABSENT)
            return 0;
    }
    if (object->kind == JINJA_NAMESPACE) {
        const struct jinja_value *v = jinja_dict_get(r, object->dict, name);
        if (v)
            *out = *v;
        return 0;
    }
    return jinja_method(r, object, name, out);
}

int jinja_getattr(struct jinja_run *r, const struct jinja_value *object, struct jinja_str name,
                  struct jinja_value *out)
{
    int rc = attribute(r, object, name, out);
    if (rc < 0 || out->kind != JINJA_ABSENT)
        return rc;
    const struct jinja_value *v =
        object->kind == JINJA_DICT ? jinja_dict_get(r, object->dict, name) : NULL;
    *out = v ? *v : jinja_undefined(name);
    return 0;
}

/* The character with this number, or undefined. */
static int character(struct jinja_run *r, const struct jinja_value *text, int64_t index,
                     struct jinja_value *out)
{
    struct jinja_str s = text->str;
    int rc = jinja_charge(r, s.n / 64);
    for (size_t i = 0; rc == 0 && i < s.n; index--) {
        uint32_t cp;
        size_t len = jinja_text_next(s.p + i, s.n - i, &cp);
        if (index == 0) {
            *out = jinja_string((struct jinja_str){s.p + i, len});
            out->markup = text->markup;
            return 0;
        }
        i += len;
    }
    return rc;
}

static int item_at(struct jinja_run *r, const struct jinja_value *object, int64_t index,
                   struct jinja_value *out)
{
    int64_t n;
    int rc = jinja_length(r, object, &n);
    if (rc < 0)
        return rc;
    if (index < 0)
        index += n;
    if (index < 0 || index >= n)
        return 0;
    if (object->kind == JINJA_STRING)
        return character(r, object, index, out);
    *out = object->kind == JINJA_RANGE
               ? jinja_int(object->range->start + index * object->range->step)
               : object->list->at[index];
    return 0;
}

int jinja_getitem(struct jinja_run *r, const struct jinja_value *object,
                  const struct jinja_value *key, struct jinja_value *out)
{
    const struct jinja_value *found = NULL;
    int64_t index;
    int rc = 0;
    if (object->kind == JINJA_UNDEFINED)
        return jinja_fail_undefined(r, object);
    struct jinja_value nothing =
        jinja_undefined(key->kind == JINJA_STRING ? key->str : JINJA_STR("item"));
    *out = nothing;
    if (object->kind == JINJA_DICT && key->kind != JINJA_LIST && key->kind != JINJA_DICT) {
        rc = jinja_dict_find(r, object->dict, key, &found);
        if (found) {
            *out = *found;
            return 0;
        }
    } else if ((object->kind == JINJA_STRING || object->kind == JINJA_RANGE ||
                jinja_is_list(object)) &&
               jinja_as_int(key, &index)) {
        return item_at(r, object, index, out);
    }
    if (rc < 0 || key->kind != JINJA_STRING)
        return rc;
    rc = attribute(r, object, key->str, out);
    if (rc == 0 && out->kind == JINJA_ABSENT)
        *out = nothing;
    return rc;
}

int jinja_attribute(struct jinja_run *r, const struct jinja_value *object,
                    const struct jinja_value *path, const struct jinja_value *otherwise,
                    struct jinja_value *out)
{
    *out = *object;
    if (path->kind == JINJA_NONE)
        return 0;
    if (path->kind != JINJA_STRING)
        return jinja_getitem(r, object, path, out);
    for (size_t at = 0;; at++) {
        size_t end = jinja_text_find(path->str, JINJA_STR("."), at);
        if (end == SIZE_MAX)
            end = path->str.n;
        struct jinja_value from = *out,
                           part = jinja_string((struct jinja_str){path->str.p + at, end - at});
        bool digits = part.str.n > 0;
        for (size_t i = 0; i < part.str.n; i++)
            digits = digits && ascii_is_digit(part.str.p[i]);
        int64_t index;
        if (digits && jinja_number_int(part.str, 10, &index) == JINJA_NUMBER_INT)
            part = jinja_int(index);
        int rc = jinja_getitem(r, &from, &part, out);
        if (rc < 0)
            return rc;
        if (out->kind == JINJA_UNDEFINED && otherwise && otherwise->kind != JINJA_NONE)
            *out = *otherwise;
        if (end == path->str.n)
            return 0;
        at = end;
    }
}

/* ---- slices --------------------------------------------------------------------------------- */

/* Start, stop and step of a slice of n items, made safe to walk. */
static int slice_range(struct jinja_run *r, const struct jinja_value part[3], int64_t n,
                       struct jinja_range *out)
{
    int64_t v[3] = {0, 0, 1};
    bool given[3];
    for (size_t i = 0; i < 3; i++) {
        given[i] = part[i].kind != JINJA_NONE;
        if (given[i] && !jinja_as_int(&part[i], &v[i]))
            return jinja_fail(r, SHOAL_EINVAL, "a slice takes integers, not %s",
                              jinja_kind_name(&part[i]));
    }
    if (v[2] == 0)
        return jinja_fail(r, SHOAL_EINVAL, "the step of a slice cannot be zero");
    int64_t low = v[2] > 0 ? 0 : -1, high = v[2] > 0 ? n : n - 1;
    for (size_t i = 0; i < 2; i++) {
        if (given[i] && v[i] < 0)
            v[i] = v[i] + n < low ? low : v[i] + n;
        else if (given[i])
            v[i] = v[i] > high ? high : v[i];
        else
            v[i] = (i == 0) == (v[2] > 0) ? low : high;
    }
    if (v[2] > n + 1 || v[2] < -(n + 1)) /* one item at most, and no overflow */
        v[2] = v[2] > 0 ? n + 1 : -(n + 1);
    *out = (struct jinja_range){v[0], v[1], v[2]};
    return 0;
}

static int slice_text(struct jinja_run *r, const struct jinja_value *text,
                      const struct jinja_range *g, struct jinja_value *out)
{
    struct jinja_list *points;
    size_t mark = r->out.len;
    int64_t n = jinja_range_length(g);
    int rc = jinja_iterate(r, text, &points);
    for (int64_t i = 0; rc == 0 && i < n; i++) {
        struct jinja_str c = points->at[g->start + i * g->step].str;
        buf_put(&r->out, c.p, c.n);
    }
    if (rc == 0)
        rc = jinja_cut(r, mark, out);
    out->markup = text->markup;
    return rc;
}

int jinja_slice(struct jinja_run *r, const struct jinja_value *object,
                const struct jinja_value part[3], struct jinja_value *out)
{
    struct jinja_range g;
    int64_t length;
    if (object->kind == JINJA_UNDEFINED)
        return jinja_fail_undefined(r, object);
    if (!jinja_is_list(object) && object->kind != JINJA_STRING && object->kind != JINJA_RANGE)
        return jinja_fail(r, SHOAL_EINVAL, "%s cannot be sliced", jinja_kind_name(object));
    int rc = jinja_length(r, object, &length);
    if (rc == 0)
        rc = slice_range(r, part, length, &g);
    if (rc < 0)
        return rc;
    if (object->kind == JINJA_STRING)
        return slice_text(r, object, &g, out);
    if (object->kind == JINJA_RANGE) {
        const struct jinja_range *from = object->range;
        struct jinja_range *to = arena_zalloc(&r->arena, sizeof(*to));
        if (!to)
            return jinja_no_memory(r);
        *to = (struct jinja_range){from->start + g.start * from->step,
                                   from->start + g.stop * from->step, g.step * from->step};
        *out = (struct jinja_value){.kind = JINJA_RANGE, .range = to};
        return 0;
    }
    int64_t n = jinja_range_length(&g);
    rc = jinja_charge(r, (uint64_t)n);
    if (rc == 0)
        rc = jinja_list_make(r, out, (size_t)n);
    for (int64_t i = 0; rc == 0 && i < n; i++)
        rc = jinja_list_push(r, out->list, object->list->at[g.start + i * g.step]);
    out->kind = object->kind;
    return rc;
}
