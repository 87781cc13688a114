/* file_map.c - see file_map.h. */
#include "base/file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int file_map_open(struct file_map *out, const char *path, struct err *e)
{
    struct stat st;
    void *map;
    int rc = 0;

    *out = (struct file_map){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        rc = err_set(e, SHOAL_EIO, "cannot open %s: %s", path, strerror(errno));
        goto out;
    }
    if (!S_ISREG(st.st_mode)) {
        rc = err_set(e, SHOAL_EIO, "cannot open %s: not a regular file", path);
        goto out;
    }
    if (st.st_size == 0) {
        rc = err_set(e, SHOAL_EFORMAT, "%s is empty", path);
        goto out;
    }
    map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
        rc = err_set(e, SHOAL_EIO, "cannot map %s: %s", path, strerror(errno));
        goto out;
    }
    /* Few bytes are read again after loading: a huge page around each of them wastes memory. */
    (void)madvise(map, (size_t)st.st_size, MADV_NOHUGEPAGE);
    *out = (struct file_map){.bytes = map,
                             .n_bytes = (size_t)st.st_size,
                             .fd = fd,
                             .mtime_s = st.st_mtim.tv_sec,
                             .mtime_ns = st.st_mtim.tv_nsec};
    fd = -1;
out:
    if (fd >= 0)
        close(fd);
    return rc;
}

void file_map_close(struct file_map *m)
{
    if (m->bytes) {
        munmap((void *)(uintptr_t)m->bytes, m->n_bytes);
        close(m->fd);
    }
    *m = (struct file_map){0};
}

void file_map_trim(const struct file_map *m, size_t n)
{
    if (m->bytes)
        (void)madvise((void *)(uintptr_t)m->bytes, n, MADV_DONTNEED);
}

void file_map_read(const struct file_map *m, size_t at, void *out, size_t n)
{
    ssize_t got = pread(m->fd, out, n, (off_t)at);
    if (got < (ssize_t)n) /* the file was truncated while open: return zeros, do not crash */
        memset((uint8_t *)out + (got > 0 ? got : 0), 0, n - (size_t)(got > 0 ? got : 0));
}
