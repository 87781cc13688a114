/* file_replace.c - see file_replace.h. */
#include "base/file/file_replace.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

static int write_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -1;
        p += k;
        n -= (size_t)k;
    }
    return fsync(fd);
}

/* The new name is on disk only once its folder is. */
static int sync_folder(const char *path)
{
    char *copy = mem_strdup(path);
    if (!copy) {
        errno = ENOMEM;
        return -1;
    }
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = -1;
    if (fd >= 0) {
        rc = fsync(fd);
        close(fd);
    }
    mem_free(copy);
    return rc;
}

int file_replace(const char *path, const void *bytes, size_t n, struct err *e)
{
    struct buf temp;
    int fd = -1, rc = 0;
    buf_init(&temp, 4096);
    buf_printf(&temp, "%s.new", path);
    if (temp.rc < 0) {
        rc = err_set(e, temp.rc, "the path %.100s is too long", path);
        goto out;
    }
    fd = open(temp.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || write_all(fd, bytes, n) < 0) {
        rc = err_set(e, SHOAL_EIO, "cannot write %s: %s", temp.data, strerror(errno));
        goto out;
    }
    if (rename(temp.data, path) < 0 || sync_folder(path) < 0)
        rc = err_set(e, SHOAL_EIO, "cannot replace %s: %s", path, strerror(errno));
out:
    if (fd >= 0)
        close(fd);
    if (rc < 0 && fd >= 0)
        unlink(temp.data);
    buf_fini(&temp);
    return rc;
}
