/* tar_gz.c - see tar_gz.h. */
#include "cmd/support/tar_gz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"

#define BLOCK 512u
#define MAX_NAME 100u

struct tar_gz {
    gzFile gz;
    char *path;
    uint64_t now_s;
    bool failed;
};

int tar_gz_open(struct tar_gz **out, const char *path, uint64_t now_s, struct err *e)
{
    struct tar_gz *t = mem_zalloc(sizeof(*t));
    char *copy = mem_strdup(path);
    *out = NULL;
    const int fd = t && copy ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    const int why = errno;
    gzFile gz = fd >= 0 ? gzdopen(fd, "wb") : NULL;
    if (!gz) {
        if (fd >= 0)
            close(fd);
        mem_free(copy);
        mem_free(t);
        return !copy || !t ? err_set(e, SHOAL_ENOMEM, "out of memory for an archive")
                           : err_set(e, SHOAL_EIO, "%s: %s", path, strerror(why));
    }
    *t = (struct tar_gz){.gz = gz, .path = copy, .now_s = now_s};
    *out = t;
    return 0;
}

/* A header of POSIX ustar. */
static void put_head(char head[BLOCK], const char *name, size_t n, uint64_t now_s)
{
    unsigned sum = 0;
    memset(head, 0, BLOCK);
    memcpy(head, name, strlen(name));
    memcpy(head + 100, "0000600", 8);
    memcpy(head + 108, "0000000", 8);
    memcpy(head + 116, "0000000", 8);
    snprintf(head + 124, 12, "%011zo", n);
    snprintf(head + 136, 12, "%011llo", (unsigned long long)now_s);
    memset(head + 148, ' ', 8);
    head[156] = '0';
    memcpy(head + 257, "ustar\00000", 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)head[i];
    snprintf(head + 148, 8, "%06o", sum);
}

static bool put(struct tar_gz *t, const void *p, size_t n)
{
    t->failed |= n > 0 && gzwrite(t->gz, p, (unsigned)n) != (int)n;
    return !t->failed;
}

int tar_gz_add(struct tar_gz *t, const char *name, const void *p, size_t n, struct err *e)
{
    static const char zeros[BLOCK];
    char head[BLOCK];
    if (strlen(name) >= MAX_NAME || n > INT32_MAX)
        return err_set(e, SHOAL_EINVAL, "%.60s does not fit into an archive", name);
    put_head(head, name, n, t->now_s);
    if (!put(t, head, BLOCK) || !put(t, p, n) || !put(t, zeros, (BLOCK - n % BLOCK) % BLOCK))
        return err_set(e, SHOAL_EIO, "%s cannot be written: is the disk full?", t->path);
    return 0;
}

int tar_gz_close(struct tar_gz *t, bool keep, struct err *e)
{
    static const char end[2 * BLOCK];
    const bool ok = put(t, end, sizeof(end));
    const bool closed = gzclose(t->gz) == Z_OK;
    int rc = 0;
    if (keep && (!ok || !closed))
        rc = err_set(e, SHOAL_EIO, "%s cannot be written: is the disk full?", t->path);
    if (!keep || rc < 0)
        unlink(t->path);
    mem_free(t->path);
    mem_free(t);
    return rc;
}
