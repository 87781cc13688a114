/* sys_file.c - see sys_file.h. */
#include "base/sys_file.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PATH 1024u

const char *sys_file_root(void)
{
    const char *root = getenv("SHOAL_SYS_DIR");
    return root && root[0] ? root : "/sys";
}

static bool read_line(char *out, size_t cap, const char *path)
{
    FILE *f = fopen(path, "re");
    bool ok = f && fgets(out, (int)cap, f);
    if (f)
        fclose(f);
    if (ok)
        out[strcspn(out, "\n")] = '\0';
    return ok;
}

bool sys_file_line(char *out, size_t cap, const char *path, ...)
{
    char name[MAX_PATH];
    va_list ap;
    va_start(ap, path);
    const int n = vsnprintf(name, sizeof(name), path, ap);
    va_end(ap);
    return n > 0 && (size_t)n < sizeof(name) && read_line(out, cap, name);
}

bool sys_file_number(double *out, const char *path, ...)
{
    char name[MAX_PATH], line[64], *end;
    va_list ap;
    va_start(ap, path);
    const int n = vsnprintf(name, sizeof(name), path, ap);
    va_end(ap);
    if (n <= 0 || (size_t)n >= sizeof(name) || !read_line(line, sizeof(line), name))
        return false;
    *out = strtod(line, &end);
    return end != line && isfinite(*out);
}
