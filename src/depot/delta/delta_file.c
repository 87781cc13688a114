/* delta_file.c - see delta_file.h. */
#include "depot/delta/delta_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int delta_file_open(struct delta_file *f, const char *out, struct err *e)
{
    int n = snprintf(f->path, sizeof(f->path), "%s.new", out);
    f->n = 0;
    f->fd = n > 0 && (size_t)n < sizeof(f->path)
                ? open(f->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644)
                : -1;
    return f->fd < 0 ? err_set(e, SHOAL_EIO, "cannot write %s.new: %s", out, strerror(errno)) : 0;
}

int delta_file_put(struct delta_file *f, const void *p, size_t n, struct err *e)
{
    for (const uint8_t *at = p; n > 0;) {
        ssize_t k = write(f->fd, at, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return err_set(e, SHOAL_EIO, "cannot write %s: %s", f->path, strerror(errno));
        at += k;
        n -= (size_t)k;
        f->n += (size_t)k;
    }
    return 0;
}

int delta_file_end(struct delta_file *f, const char *out, int rc, struct err *e)
{
    if (f->fd < 0)
        return rc;
    if (rc == 0 && (fsync(f->fd) < 0 || rename(f->path, out) < 0))
        rc = err_set(e, SHOAL_EIO, "cannot write %s: %s", out, strerror(errno));
    close(f->fd);
    if (rc < 0)
        unlink(f->path);
    return rc;
}
