/* file_map.c - see file_map.h. */
#include "base/file/file_map.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file_open.h"
#include "base/file/map_guard.h"

int file_map_open(struct file_map *out, const char *path, struct err *e)
{
    struct stat st;
    void *map;
    int rc = 0;

    *out = (struct file_map){0};
    int fd = file_open_regular(path, &st);
    if (fd < 0) {
        rc = err_set(e, SHOAL_EIO, "cannot open %s: %s", path, file_open_reason(errno));
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
    struct map_guard *guard = map_guard_add(map, (size_t)st.st_size, PROT_READ);
    if (!guard) {
        munmap(map, (size_t)st.st_size);
        rc = err_set(e, SHOAL_ENOMEM, "out of memory to map %s", path);
        goto out;
    }
    /* Few bytes are read again after loading: a huge page around each of them wastes memory. */
    (void)madvise(map, (size_t)st.st_size, MADV_NOHUGEPAGE);
    *out = (struct file_map){.bytes = map,
                             .n_bytes = (size_t)st.st_size,
                             .fd = fd,
                             .guard = guard,
                             .mtime_s = st.st_mtim.tv_sec,
                             .mtime_ns = st.st_mtim.tv_nsec};
    fd = -1;
out:
    if (fd >= 0)
        close(fd);
    return rc;
}

bool file_map_protect(void *bytes, size_t n)
{
    (void)madvise(bytes, n, MADV_DONTDUMP);
    return mlock(bytes, n) == 0;
}

int file_map_secret(struct file_map *out, uint8_t **bytes, size_t n, struct err *e)
{
    struct stat st;
    int fd = memfd_create("shoal-model", MFD_CLOEXEC);
    void *map = fd >= 0 && ftruncate(fd, (off_t)n) == 0 && fstat(fd, &st) == 0
                    ? mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                    : MAP_FAILED;
    struct map_guard *guard = map != MAP_FAILED ? map_guard_add(map, n, PROT_READ) : NULL;
    *out = (struct file_map){0};
    if (!guard) {
        if (map != MAP_FAILED)
            munmap(map, n);
        if (fd >= 0)
            close(fd);
        return err_set(e, SHOAL_ENOMEM, "cannot reserve %zu bytes of memory: %s", n,
                       strerror(errno));
    }
    *out =
        (struct file_map){.bytes = map, .n_bytes = n, .fd = fd, .guard = guard, .is_secret = true};
    (void)madvise(map, n, MADV_DONTDUMP);
    out->locked = mlock2(map, n, MLOCK_ONFAULT) == 0; /* parts may never be filled */
    *bytes = map;
    return 0;
}

void file_map_filled(struct file_map *m)
{
    (void)mprotect((void *)(uintptr_t)m->bytes, m->n_bytes, PROT_READ);
}

int file_map_need(const struct file_map *m, size_t at, size_t n, struct err *e)
{
    return m && m->rest ? m->rest->fill(m->rest, at, n, e) : 0;
}

void file_map_close(struct file_map *m)
{
    if (m->rest)
        m->rest->close(m->rest);
    if (m->bytes) {
        map_guard_remove(m->guard);
        munmap((void *)(uintptr_t)m->bytes, m->n_bytes);
        close(m->fd);
    }
    explicit_bzero(&m->secret, sizeof(m->secret));
    *m = (struct file_map){0};
}

bool file_map_changed(const struct file_map *m)
{
    struct stat st;
    if (!m->bytes)
        return false;
    if (m->is_secret) /* nobody else has it, and parts may still be filled */
        return map_guard_is_broken(m->guard);
    return map_guard_is_broken(m->guard) || fstat(m->fd, &st) < 0 ||
           (uint64_t)st.st_size != m->n_bytes || st.st_mtim.tv_sec != m->mtime_s ||
           st.st_mtim.tv_nsec != m->mtime_ns;
}

void file_map_trim(const struct file_map *m, size_t n)
{
    /* A broken mapping keeps its pages: they hold zeros where there is no file any more. */
    if (m->bytes && !map_guard_is_broken(m->guard))
        (void)madvise((void *)(uintptr_t)m->bytes, n, MADV_DONTNEED);
}

void file_map_read(const struct file_map *m, size_t at, void *out, size_t n)
{
    ssize_t got = pread(m->fd, out, n, (off_t)at);
    if (got >= (ssize_t)n)
        return;
    /* the file was truncated: zeros, and file_map_changed reports it */
    memset((uint8_t *)out + (got > 0 ? got : 0), 0, n - (size_t)(got > 0 ? got : 0));
    map_guard_set_broken(m->guard);
}
