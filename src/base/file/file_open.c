/* file_open.c - see file_open.h. */
#include "base/file/file_open.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int file_open_regular(const char *path, struct stat *st)
{
    struct stat own = {0};
    st = st ? st : &own;
    /* O_NONBLOCK: a FIFO opens at once.  It means nothing for regular files. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    if (fstat(fd, st) == 0 && S_ISREG(st->st_mode))
        return fd;
    close(fd);
    errno = EINVAL;
    return -1;
}

const char *file_open_reason(int error)
{
    return error == EINVAL || error == ENXIO ? "not a regular file" : strerror(error);
}
