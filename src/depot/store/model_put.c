/* model_put.c - see model_put.h. */
#include "depot/store/model_put.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file_open.h"
#include "base/mem.h"
#include "depot/store/model_intake.h"
#include "depot/store/model_manifest.h"

#define BLOCK_BYTES ((size_t)1 << 18)

/* Into the part that is open. */
static int copy_file(struct model_intake *k, const char *path, uint64_t offset, uint8_t *block,
                     const _Atomic bool *stop, struct err *e)
{
    int rc = 0, fd = file_open_regular(path, NULL);
    ssize_t got = 0;
    if (fd < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", path, file_open_reason(errno));
    while (rc == 0 && (got = pread(fd, block, BLOCK_BYTES, (off_t)offset)) > 0) {
        rc = model_intake_write(k, path, block, (size_t)got, e);
        offset += (uint64_t)got;
        if (rc == 0 && atomic_load_explicit(stop, memory_order_relaxed))
            rc = err_set(e, SHOAL_ECANCELLED, "stopped");
    }
    if (rc == 0 && got < 0)
        rc = err_set(e, SHOAL_EIO, "cannot read %s: %s", path, strerror(errno));
    close(fd);
    return rc;
}

static int copy_all(struct model_intake *k, const struct identity_list *l, const _Atomic bool *stop,
                    struct err *e)
{
    uint8_t *block = mem_alloc(BLOCK_BYTES);
    struct identity_file f;
    uint64_t offset;
    uint32_t i;
    int rc = block ? 1 : err_set(e, SHOAL_ENOMEM, "copy of a model");
    while (rc > 0 && (rc = model_intake_next(k, &i, &offset, e)) > 0) {
        identity_list_file(l, i, &f); /* both are sorted by name */
        rc = copy_file(k, f.path, offset, block, stop, e);
        if (rc == 0)
            rc = model_intake_finish(k, e);
        if (rc == 0)
            rc = 1;
    }
    mem_free(block);
    return rc;
}

static int check_wanted(const uint8_t *want, const struct identity *id, const char *path,
                        struct err *e)
{
    char hex[2 * SHA256_BYTES + 1];
    if (!want || memcmp(want, id->sum, SHA256_BYTES) == 0)
        return 0;
    sha256_hex(hex, id->sum);
    return err_set(e, SHOAL_EFORMAT, "%s is another model: its SHA-256 is %s", path, hex);
}

static int put_listed(struct model_store *s, const char *path, const struct identity_list *l,
                      const struct identity *id, const _Atomic bool *stop, struct err *e)
{
    struct model_intake *k = NULL;
    struct model_manifest m;
    char there[PATH_MAX];
    model_manifest_init(&m);
    int rc = model_manifest_of(&m, l, path, e);
    model_manifest_find_signature(&m, path);
    if (rc == 0)
        rc = model_intake_open(&k, s, id->sum, stop, e);
    if (rc == 0 && !model_intake_manifest(k))
        rc = model_intake_set_manifest(k, &m, e);
    if (rc == 0)
        rc = copy_all(k, l, stop, e);
    if (rc == 0)
        rc = model_intake_commit(k, there, e);
    model_manifest_fini(&m);
    if (rc < 0 && rc != SHOAL_ECANCELLED)
        model_intake_discard(k);
    else
        model_intake_close(k);
    return rc;
}

int model_put(struct model_store *s, const char *path, const uint8_t *want,
              uint8_t sha256[SHA256_BYTES], const _Atomic bool *stop, struct err *e)
{
    struct identity_list *l = NULL;
    struct identity id;
    char there[PATH_MAX];
    int rc = identity_list(&l, path, e);
    if (rc == 0)
        rc = identity_read(&id, l, model_store_memo_dir(s), stop, e);
    if (rc == 0)
        rc = check_wanted(want, &id, path, e);
    if (rc == 0)
        memcpy(sha256, id.sum, SHA256_BYTES);
    if (rc == 0 && model_store_find(s, id.sum, there, NULL) < 0)
        rc = put_listed(s, path, l, &id, stop, e);
    identity_list_free(l);
    return rc;
}
