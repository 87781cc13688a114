/* jinja_args.c - the arguments of functions, filters and tests by their names; see jinja_eval.h. */
#include "text/jinja/jinja_eval.h"

int jinja_args_bind(struct jinja_run *r, const char *what, const struct jinja_args *args,
                    const char *const *names, size_t n, size_t needed, struct jinja_value *out)
{
    size_t used = 0;
    if (args->n > n)
        return jinja_fail(r, SHOAL_EINVAL, "%s takes at most %zu arguments, %zu given", what, n,
                          args->n);
    for (size_t i = 0; i < n; i++) {
        struct jinja_str name = {names[i], strlen(names[i])};
        const struct jinja_value *named =
            args->named && name.n ? jinja_dict_get(r, args->named, name) : NULL;
        out[i] = i < args->n ? args->at[i] : named ? *named : jinja_absent();
        used += named && i >= args->n;
        if (i < needed && out[i].kind == JINJA_ABSENT)
            return jinja_fail(r, SHOAL_EINVAL, "%s needs %zu arguments", what, needed);
    }
    if (args->named && used < args->named->n)
        return jinja_fail(r, SHOAL_EINVAL, "%s has an argument with a name that it does not know",
                          what);
    return 0;
}
