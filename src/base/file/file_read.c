/* file_read.c - see file_read.h. */
#include "base/file/file_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

int file_read(const char *path, struct buf *out, struct err *e)
{
    char block[65536];
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), rc = 0;
    if (fd < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", path, strerror(errno));
    for (;;) {
        ssize_t n = read(fd, block, sizeof(block));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            rc = err_set(e, SHOAL_EIO, "cannot read %s: %s", is_stdin ? "stdin" : path,
                         strerror(errno));
        if (n <= 0)
            break;
        buf_put(out, block, (size_t)n);
    }
    if (rc == 0 && out->rc < 0)
        rc = err_set(e, out->rc, "%s: %s (at most %zu bytes)", is_stdin ? "stdin" : path,
                     err_text(out->rc), out->max);
    if (!is_stdin)
        close(fd);
    return rc;
}
