/* plural.h - "1 row", "2 rows": printf("%zu row%s", n, plural(n)). */
#ifndef SHOAL_BASE_PLURAL_H
#define SHOAL_BASE_PLURAL_H

#include <stdint.h>

static inline const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

#endif
