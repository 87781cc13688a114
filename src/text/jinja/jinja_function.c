/* jinja_function.c - the global functions; see jinja_eval.h. */
#include "text/jinja/jinja_eval.h"
#include "text/jinja/jinja_names.h"

enum { MAX_RANGE = 100000 }; /* as Jinja's sandbox has it */
enum global { GLOBAL_RANGE, GLOBAL_NAMESPACE, GLOBAL_DICT, GLOBAL_RAISE, GLOBAL_STRFTIME };

static const struct jinja_function functions[] = {
    {.id = JINJA_FN_NAMED, .method = GLOBAL_RANGE, .name = "range"},
    {.id = JINJA_FN_NAMED, .method = GLOBAL_NAMESPACE, .name = "namespace"},
    {.id = JINJA_FN_NAMED, .method = GLOBAL_DICT, .name = "dict"},
    {.id = JINJA_FN_NAMED, .method = GLOBAL_RAISE, .name = "raise_exception"},
    {.id = JINJA_FN_NAMED, .method = GLOBAL_STRFTIME, .name = "strftime_now"},
    {.id = JINJA_FN_NAMED, .method = JINJA_NAME_UNSUPPORTED, .name = "cycler"},
    {.id = JINJA_FN_NAMED, .method = JINJA_NAME_UNSUPPORTED, .name = "joiner"},
    {.id = JINJA_FN_NAMED, .method = JINJA_NAME_UNSUPPORTED, .name = "lipsum"},
};

bool jinja_function_find(struct jinja_str name, struct jinja_value *out)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        if (jinja_str_is(name, functions[i].name)) {
            *out = (struct jinja_value){.kind = JINJA_FUNCTION, .function = &functions[i]};
            return true;
        }
    return false;
}

static int range(struct jinja_run *r, const struct jinja_args *args, struct jinja_value *out)
{
    static const char *const names[] = {"", "", ""};
    struct jinja_value v[3];
    int64_t n[3] = {0, 0, 1};
    int rc = jinja_args_bind(r, "range", args, names, 3, 1, v);
    for (size_t i = 0; rc == 0 && i < args->n; i++) {
        if (!jinja_as_int(&v[i], &n[i]))
            rc =
                jinja_fail(r, SHOAL_EINVAL, "range takes integers, not %s", jinja_kind_name(&v[i]));
        else if (n[i] > INT32_MAX || n[i] < INT32_MIN)
            rc = jinja_fail(r, SHOAL_ELIMIT, "range with bounds of more than 32 bits");
    }
    struct jinja_range *g = rc == 0 ? arena_zalloc(&r->arena, sizeof(*g)) : NULL;
    if (!g)
        return rc < 0 ? rc : jinja_no_memory(r);
    *g = args->n == 1 ? (struct jinja_range){0, n[0], 1} : (struct jinja_range){n[0], n[1], n[2]};
    if (g->step == 0)
        return jinja_fail(r, SHOAL_EINVAL, "the step of range cannot be zero");
    if (jinja_range_length(g) > MAX_RANGE)
        return jinja_fail(r, SHOAL_ELIMIT, "range has more than %d items", MAX_RANGE);
    *out = (struct jinja_value){.kind = JINJA_RANGE, .range = g};
    return 0;
}

/* dict(...) and namespace(...): a dict or pairs, and named values */
static int make_dict(struct jinja_run *r, const char *name, const struct jinja_args *args,
                     struct jinja_value *out)
{
    struct jinja_list *items, *pair;
    int rc = jinja_dict_make(r, out);
    if (rc == 0 && args->n > 1)
        rc = jinja_fail(r, SHOAL_EINVAL, "%s takes one argument without a name", name);
    bool dict = args->n == 1 && args->at[0].kind == JINJA_DICT;
    for (size_t i = 0; rc == 0 && dict && i < args->at[0].dict->n; i++)
        rc = jinja_dict_put(r, out->dict, args->at[0].dict->at[i].key,
                            args->at[0].dict->at[i].value);
    if (rc == 0 && args->n == 1 && !dict) {
        rc = jinja_iterate(r, &args->at[0], &items);
        for (size_t i = 0; rc == 0 && i < items->n; i++) {
            rc = jinja_iterate(r, &items->at[i], &pair);
            if (rc == 0 && pair->n != 2)
                rc = jinja_fail(r, SHOAL_EINVAL, "%s takes pairs, not %zu values", name, pair->n);
            if (rc == 0)
                rc = jinja_dict_put(r, out->dict, pair->at[0], pair->at[1]);
        }
    }
    for (size_t i = 0; rc == 0 && args->named && i < args->named->n; i++)
        rc = jinja_dict_put(r, out->dict, args->named->at[i].key, args->named->at[i].value);
    return rc;
}

static int raise_exception(struct jinja_run *r, const struct jinja_args *args)
{
    static const char *const names[] = {"message"};
    struct jinja_value v;
    struct jinja_str text;
    int rc = jinja_args_bind(r, "raise_exception", args, names, 1, 1, &v);
    if (rc == 0)
        rc = jinja_print_text(r, &v, &text);
    if (rc < 0)
        return rc;
    return jinja_fail(r, SHOAL_EINVAL, "%.*s", text.n < 1000 ? (int)text.n : 1000,
                      text.n ? text.p : "");
}

static int strftime_now(struct jinja_run *r, const struct jinja_args *args, struct jinja_value *out)
{
    static const char *const names[] = {"format"};
    char format[256], text[1024];
    struct jinja_value v;
    int rc = jinja_args_bind(r, "strftime_now", args, names, 1, 1, &v);
    if (rc < 0)
        return rc;
    if (v.kind != JINJA_STRING || v.str.n >= sizeof(format) - 1 || memchr(v.str.p, '\0', v.str.n))
        return jinja_fail(r, SHOAL_EINVAL, "strftime_now takes a short string");
    for (size_t i = 0; i < v.str.n; i++)
        if (v.str.p[i] == '%' &&
            (++i == v.str.n || !strchr("aAbBcdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYC%", v.str.p[i])))
            return jinja_fail(r, SHOAL_EUNSUPPORTED,
                              "strftime_now has a %% that is not supported at byte %zu", i);
    memcpy(format, v.str.p, v.str.n);
    format[v.str.n] = '$'; /* so that a result of no bytes is not an error */
    format[v.str.n + 1] = '\0';
    size_t n = strftime(text, sizeof(text), format, &r->now), mark = r->out.len;
    if (n == 0)
        return jinja_fail(r, SHOAL_ELIMIT, "strftime_now gives too long a text");
    buf_put(&r->out, text, n - 1);
    return jinja_cut(r, mark, out);
}

int jinja_function_call(struct jinja_run *r, const struct jinja_function *f,
                        const struct jinja_args *args, struct jinja_value *out)
{
    int rc;
    switch (f->method) {
    case GLOBAL_RANGE:
        return range(r, args, out);
    case GLOBAL_NAMESPACE:
        rc = make_dict(r, f->name, args, out);
        out->kind = JINJA_NAMESPACE;
        return rc;
    case GLOBAL_DICT:
        return make_dict(r, f->name, args, out);
    case GLOBAL_RAISE:
        return raise_exception(r, args);
    case GLOBAL_STRFTIME:
        return strftime_now(r, args, out);
    default:
        return jinja_fail(r, SHOAL_EUNSUPPORTED, "function '%s' is not supported", f->name);
    }
}
