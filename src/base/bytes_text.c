/* bytes_text.c - see bytes_text.h. */
#include "base/bytes_text.h"

#include <stddef.h>
#include <stdio.h>

const char *bytes_text(char out[32], double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t u = 0;
    while (bytes >= 1024 && u < 4) {
        bytes /= 1024;
        u++;
    }
    snprintf(out, 32, u == 0 ? "%.0f %s" : "%.1f %s", bytes, units[u]);
    return out;
}
