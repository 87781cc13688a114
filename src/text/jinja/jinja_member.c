/* jinja_member.c - a.b, a[b] and a[b:c:d]; see jinja_eval.h. */
#include <math.h>

#include "text/jinja/jinja_eval.h"

/* s[i], counted in UTF-16 units. */
static int string_at(struct jinja_run *r, struct jinja_str s, double index, struct jinja_value *out)
{
    size_t units = jinja_text_units(s), at = 0;
    int rc = jinja_charge(r, s.n / 64);
    if (rc < 0)
        return rc;
    double i = isnan(index) ? 0 : trunc(index);
    if (i < 0)
        i += (double)units;
    *out = jinja_string((struct jinja_str){NULL, 0});
    if (i < 0 || i >= (double)units)
        return 0;
    size_t want = (size_t)i;
    for (size_t p = 0; p < s.n;) {
        uint32_t cp;
        size_t len = jinja_text_next(s.p + p, s.n - p, &cp);
        size_t width = cp >= 0x10000 ? 2 : 1;
        if (want < at + width) {
            out->str = (struct jinja_str){s.p + p, len};
            if (width == 1)
                return 0;
            uint32_t half =
                want == at ? 0xd800 + ((cp - 0x10000) >> 10) : 0xdc00 + ((cp - 0x10000) & 0x3ff);
            char bytes[4];
            size_t n = jinja_text_put(bytes, half);
            char *copy = arena_copy(&r->arena, bytes, n);
            if (!copy)
                return jinja_no_memory(r);
            out->str = (struct jinja_str){copy, n};
            return 0;
        }
        at += width;
        p += len;
    }
    return 0;
}

static bool is_container(const struct jinja_value *v)
{
    return jinja_is_dict(v) || v->kind == JINJA_NAMESPACE;
}

static int make_method(struct jinja_run *r, const struct jinja_value *self, struct jinja_str name,
                       struct jinja_value *out)
{
    enum jinja_function_id id;
    *out = jinja_undefined();
    if (!jinja_method_find(self->kind, name, &id))
        return 0;
    struct jinja_function *f = arena_zalloc(&r->arena, sizeof(*f));
    if (!f)
        return jinja_no_memory(r);
    f->id = id;
    f->self = *self;
    *out = (struct jinja_value){.kind = JINJA_FUNCTION, .function = f};
    return 0;
}

static int member_by_name(struct jinja_run *r, const struct jinja_value *object,
                          struct jinja_str name, struct jinja_value *out)
{
    if (is_container(object)) {
        const struct jinja_value *v = jinja_dict_get(r, object->dict, name);
        if (v && v->kind != JINJA_ABSENT) {
            *out = *v;
            return 0;
        }
    } else if (jinja_is_hollow(object)) {
        return jinja_fail(r, SHOAL_EINVAL, "index past the end of a string");
    } else if (jinja_is_list(object) && jinja_str_is(name, "length")) {
        *out = jinja_int((double)object->list->n);
        return 0;
    } else if (object->kind == JINJA_STRING && jinja_str_is(name, "length")) {
        *out = jinja_int((double)jinja_text_units(object->str));
        return jinja_charge(r, object->str.n / 64);
    }
    return make_method(r, object, name, out);
}

int jinja_member(struct jinja_run *r, const struct jinja_value *object,
                 const struct jinja_value *property, struct jinja_value *out)
{
    if (object->kind == JINJA_ABSENT)
        return jinja_fail(r, SHOAL_EINVAL, "%s has no members", jinja_kind_name(object));
    if (property->kind == JINJA_STRING && property->str.p)
        return member_by_name(r, object, property->str, out);
    if (property->kind != JINJA_INT ||
        !(jinja_is_list(object) || (object->kind == JINJA_STRING && object->str.p)))
        return jinja_fail(r, SHOAL_EINVAL, "%s cannot be indexed by %s", jinja_kind_name(object),
                          jinja_kind_name(property));
    if (object->kind == JINJA_STRING)
        return string_at(r, object->str, property->num, out);
    double i = isnan(property->num) ? 0 : trunc(property->num), n = (double)object->list->n;
    if (i < 0)
        i += n;
    *out = i >= 0 && i < n ? object->list->at[(size_t)i] : jinja_undefined();
    if (out->kind == JINJA_ABSENT)
        *out = jinja_undefined();
    return 0;
}

/* Start, stop and step of a slice of n items, made safe to walk. */
static bool slice_range(const struct jinja_value v[3], double n, double *start, double *stop,
                        double *step)
{
    bool has_start = v[0].kind == JINJA_INT, has_stop = v[1].kind == JINJA_INT;
    *step = v[2].kind == JINJA_INT ? v[2].num : 1;
    *start = has_start ? v[0].num : *step < 0 ? n - 1 : 0;
    *stop = has_stop ? v[1].num : *step < 0 ? -1 : n;
    if (*step == 0 || isnan(*step) || isnan(*start) || isnan(*stop))
        return false;
    if (*step > 0) {
        *start = *start < 0 ? fmax(n + *start, 0) : fmin(*start, n);
        *stop = *stop < 0 ? fmax(n + *stop, 0) : fmin(*stop, n);
    } else {
        *start = *start < 0 ? fmax(n + *start, -1) : fmin(*start, n - 1);
        *stop = *stop < -1 ? fmax(n + *stop, -1) : fmin(*stop, n - 1);
    }
    return true;
}

/* The code points of a string as a list of strings. */
int jinja_split_points(struct jinja_run *r, struct jinja_str s, struct jinja_value *out)
{
    size_t n = jinja_text_points(s);
    int rc = jinja_charge(r, n);
    if (rc == 0)
        rc = jinja_list_make(r, out, n);
    for (size_t i = 0; rc == 0 && i < s.n;) {
        uint32_t cp;
        size_t len = jinja_text_next(s.p + i, s.n - i, &cp);
        rc = jinja_list_push(r, out->list, jinja_string((struct jinja_str){s.p + i, len}));
        i += len;
    }
    return rc;
}

int jinja_slice(struct jinja_run *r, const struct jinja_value *object,
                const struct jinja_value part[3], struct jinja_value *out)
{
    struct jinja_value items = *object;
    double start, stop, step;
    bool text = object->kind == JINJA_STRING;
    if (!jinja_is_list(object) && !(text && object->str.p))
        return jinja_fail(r, SHOAL_EINVAL, "%s cannot be sliced", jinja_kind_name(object));
    for (size_t i = 0; i < 3; i++)
        if (part[i].kind != JINJA_INT && part[i].kind != JINJA_UNDEFINED)
            return jinja_fail(r, SHOAL_EINVAL, "a slice takes integers, not %s",
                              jinja_kind_name(&part[i]));
    int rc = text ? jinja_split_points(r, object->str, &items) : 0;
    if (rc == 0)
        rc = jinja_list_make(r, out, 0);
    if (rc < 0 || !slice_range(part, (double)items.list->n, &start, &stop, &step))
        start = stop = step = 0;
    size_t mark = r->out.len;
    for (double i = start; rc == 0 && (step > 0 ? i < stop : i > stop); i += step) {
        const struct jinja_value *item = &items.list->at[(size_t)i];
        rc = jinja_charge(r, 1);
        if (rc == 0 && text)
            buf_put(&r->out, item->str.p, item->str.n);
        else if (rc == 0)
            rc = jinja_list_push(r, out->list, *item);
    }
    return rc == 0 && text ? jinja_cut(r, mark, out) : rc;
}
