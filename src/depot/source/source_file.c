/* source_file.c - see source_file.h. */
#include "depot/source/source_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file_open.h"
#include "base/mem.h"
#include "depot/source/byte_sink.h"

#define BLOCK_BYTES ((size_t)1 << 20)

struct source_file {
    struct model_source source; /* first */
    int fd;
    uint64_t bytes;
    char name[MODEL_MANIFEST_MAX_NAME + 1];
    uint8_t sha256[SHA256_BYTES];
};

static int describe(struct model_source *s, struct model_described *d, struct err *e)
{
    struct source_file *f = (struct source_file *)(void *)s;
    memcpy(d->sha256, f->sha256, SHA256_BYTES);
    return model_manifest_single(&d->manifest, f->name, f->bytes, f->sha256, e);
}

static int file(struct model_source *s, const struct model_manifest *m, uint32_t i, uint64_t offset,
                const struct byte_sink *to, struct err *e)
{
    struct source_file *f = (struct source_file *)(void *)s;
    char *block = mem_alloc(BLOCK_BYTES);
    int rc = block ? 0 : err_set(e, SHOAL_ENOMEM, "copy of a model");
    (void)m, (void)i;
    while (rc == 0 && offset < f->bytes) {
        ssize_t got = pread(f->fd, block, BLOCK_BYTES, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        /* not SHOAL_EIO, which would be tried again */
        rc = got <= 0 ? err_set(e, SHOAL_ECHANGED, "cannot read %s: %s", f->name,
                                got < 0 ? strerror(errno) : "it became shorter")
                      : to->write(to->ctx, block, (size_t)got, e);
        offset += got > 0 ? (uint64_t)got : 0;
    }
    mem_free(block);
    return rc;
}

static void close_file(struct model_source *s)
{
    struct source_file *f = (struct source_file *)(void *)s;
    if (f->fd >= 0)
        close(f->fd);
    mem_free(f);
}

int source_file_open(struct model_source **out, const char *path, const char *name,
                     const uint8_t sha256[SHA256_BYTES], struct err *e)
{
    static const struct model_source_ops ops = {describe, file, close_file};
    struct source_file *f = mem_zalloc(sizeof(*f));
    struct stat st = {0};
    *out = NULL;
    if (!f)
        return err_set(e, SHOAL_ENOMEM, "source of models");
    f->source.ops = &ops;
    snprintf(f->name, sizeof(f->name), "%s", name);
    memcpy(f->sha256, sha256, SHA256_BYTES);
    f->fd = file_open_regular(path, &st);
    f->bytes = (uint64_t)st.st_size;
    if (f->fd < 0) {
        int rc = err_set(e, SHOAL_EIO, "cannot open %s: %s", path, file_open_reason(errno));
        close_file(&f->source);
        return rc;
    }
    *out = &f->source;
    return 0;
}
