/* store_lock.c - see store_lock.h. */
#include "depot/store/store_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_folders(const char *path, struct err *e)
{
    char at[PATH_MAX];
    size_t n = strlen(path);
    memcpy(at, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (i < n && at[i] != '/')
            continue;
        at[i] = '\0';
        if (mkdir(at, 0755) < 0 && errno != EEXIST)
            return err_set(e, SHOAL_EIO, "cannot create the folder %s: %s", at, strerror(errno));
        at[i] = i < n ? '/' : '\0';
    }
    return 0;
}

int store_lock_folders(const char *dir, struct err *e)
{
    static const char *const names[] = {"models", "incoming", "names"};
    char path[PATH_MAX];
    int rc = 0;
    for (int i = 0; rc == 0 && i < 3; i++) {
        int n = snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        rc = n > 0 && n < PATH_MAX ? make_folders(path, e)
                                   : err_set(e, SHOAL_ELIMIT, "a path in %s is too long", dir);
    }
    return rc;
}

int store_lock(const char *dir, struct err *e)
{
    char path[PATH_MAX];
    int rc = store_lock_folders(dir, e);
    if (rc < 0)
        return rc;
    snprintf(path, sizeof(path), "%.*s/lock", PATH_MAX - 8, dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0 || flock(fd, LOCK_EX) < 0) {
        rc = err_set(e, SHOAL_EIO, "cannot lock %s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return rc;
    }
    return fd;
}
