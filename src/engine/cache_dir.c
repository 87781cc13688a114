/* cache_dir.c - see cache_dir.h. */
#include "engine/cache_dir.h"

#include <stdio.h>
#include <stdlib.h>

const char *cache_dir_default(char *out, size_t cap)
{
    const char *base;
    if ((base = getenv("SHOAL_CACHE_DIR")) && base[0])
        snprintf(out, cap, "%s", base);
    else if ((base = getenv("XDG_CACHE_HOME")) && base[0])
        snprintf(out, cap, "%s/shoal", base);
    else if ((base = getenv("HOME")) && base[0])
        snprintf(out, cap, "%s/.cache/shoal", base);
    else
        return NULL;
    return out;
}

const char *cache_dir_wanted(const char *option, char *out, size_t cap)
{
    if (!option)
        return cache_dir_default(out, cap);
    return option[0] ? option : NULL;
}
