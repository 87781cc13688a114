/* arg.c - see arg.h. */
#include "base/arg.h"

int arg_check(const void *p, const char *name, struct err *e)
{
    return p ? 0 : err_set(e, SHOAL_EINVAL, "the argument '%s' is NULL, but it is required", name);
}

int arg_check_n(const void *p, size_t n, const char *name, struct err *e)
{
    if (p || n == 0)
        return 0;
    return err_set(e, SHOAL_EINVAL, "'%s' is NULL, but its length is %zu: pass both or none", name,
                   n);
}
