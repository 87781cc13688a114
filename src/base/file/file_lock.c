/* file_lock.c - see file_lock.h. */
#include "base/file/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

int file_lock(int *fd, const char *path, struct err *e)
{
    char name[PATH_MAX];
    int n = snprintf(name, sizeof(name), "%s.lock", path);
    *fd = -1;
    if (n < 0 || (size_t)n >= sizeof(name))
        return err_set(e, SHOAL_ELIMIT, "the path %.100s is too long", path);
    int got = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (got < 0)
        return err_set(e, SHOAL_EIO, "cannot create %s: %s", name, strerror(errno));
    if (flock(got, LOCK_EX | LOCK_NB) < 0) {
        close(got);
        return err_set(e, SHOAL_EBUSY, "another process uses %s: give each its own file", path);
    }
    *fd = got;
    return 0;
}
