/* sized.c - see sized.h. */
#include "base/sized.h"

#include <string.h>

/* No struct of ours comes near this; a larger size is uninitialised memory. */
#define MAX_SIZE 4096u

static int check(size_t size, const char *name, struct err *e)
{
    if (size >= sizeof(size) && size <= MAX_SIZE)
        return 0;
    return err_set(e, SHOAL_EINVAL, "%s.size is %zu; set it with SHOAL_INIT or = sizeof", name,
                   size);
}

int sized_read(void *to, size_t known, const void *from, const char *name, struct err *e)
{
    size_t size;
    if (!from)
        return err_set(e, SHOAL_EINVAL, "%s is NULL; set it up with SHOAL_INIT or = sizeof", name);
    memcpy(&size, from, sizeof(size));
    int rc = check(size, name, e);
    if (rc < 0)
        return rc;
    const unsigned char *p = from;
    for (size_t i = known; i < size; i++)
        if (p[i])
            return err_set(e, SHOAL_EUNSUPPORTED,
                           "%s has %zu bytes, this version of the library knows %zu, and byte %zu "
                           "is set",
                           name, size, known, i);
    memset(to, 0, known);
    memcpy(to, from, size < known ? size : known);
    memcpy(to, &known, sizeof(known));
    return 0;
}

int sized_write(void *to, const void *from, size_t known, const char *name, struct err *e)
{
    size_t size;
    if (!to)
        return err_set(e, SHOAL_EINVAL, "%s is NULL, but there must be room to fill", name);
    memcpy(&size, to, sizeof(size));
    int rc = check(size, name, e);
    if (rc < 0)
        return rc;
    size = size < known ? size : known;
    memcpy(to, from, size);
    memcpy(to, &size, sizeof(size));
    return 0;
}
