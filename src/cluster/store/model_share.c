/* model_share.c - see model_share.h. */
#include "cluster/store/model_share.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file_open.h"
#include "depot/store/model_manifest.h"
#include "depot/store/model_store.h"

static int changed(const char *path, struct err *e)
{
    return err_set(e, SHOAL_ECHANGED, "%s changed since it was loaded", path);
}

/* The listing of a model outside of the store, with the hashes of its files. A single file is not
 * read: its hash is the model's, and the receiver verifies it. */
static int list(struct identity_list **out, struct model_manifest *m,
                const struct model_share_from *from, const uint8_t sha256[SHA256_BYTES],
                struct err *e)
{
    struct identity_file f;
    struct identity id;
    const char *slash = strrchr(from->path, '/');
    int rc = identity_list(out, from->path, e);
    if (rc < 0)
        return rc;
    if (!identity_list_is_folder(*out)) {
        identity_list_file(*out, 0, &f);
        return model_manifest_single(m, slash ? slash + 1 : from->path, f.bytes, sha256, e);
    }
    id = identity_known(*out, from->memo_dir, NULL);
    if (id.kind != IDENTITY_CONTENT)
        rc = identity_read(&id, *out, from->memo_dir, from->stop, e);
    if (rc == 0 && memcmp(id.sum, sha256, SHA256_BYTES) != 0)
        rc = changed(from->path, e);
    return rc < 0 ? rc : model_manifest_of(m, *out, from->path, e);
}

int model_share_manifest(struct model_manifest *m, const struct model_share_from *from,
                         const uint8_t sha256[SHA256_BYTES], struct err *e)
{
    struct identity_list *l = NULL;
    char path[PATH_MAX];
    if (from->store && model_store_manifest(from->store, sha256, m, e) == 0 &&
        model_store_find(from->store, sha256, path, NULL) == 0) {
        model_manifest_find_signature(m, path);
        return 0;
    }
    model_manifest_fini(m);
    model_manifest_init(m);
    if (!from->path)
        return err_set(e, SHOAL_ENOTFOUND, "this node does not have the model");
    int rc = list(&l, m, from, sha256, e);
    if (rc == 0)
        model_manifest_find_signature(m, from->path);
    identity_list_free(l);
    return rc;
}

/* Its path, if the model is outside the store. */
static int open_outside(int *fd, uint64_t *bytes, const struct model_share_from *from,
                        const uint8_t sha256[SHA256_BYTES], uint32_t i, struct err *e)
{
    struct identity_list *l = NULL;
    struct identity_file f;
    struct model_manifest m;
    model_manifest_init(&m);
    int rc = list(&l, &m, from, sha256, e);
    if (rc == 0 && i >= m.n_files)
        rc = err_set(e, SHOAL_ENOTFOUND, "the model has no file %u", i);
    if (rc == 0) {
        identity_list_file(l, i, &f);
        *bytes = f.bytes;
        *fd = file_open_regular(f.path, NULL);
        if (*fd < 0)
            rc = err_set(e, SHOAL_EIO, "cannot open %s: %s", f.path, file_open_reason(errno));
    }
    model_manifest_fini(&m);
    identity_list_free(l);
    return rc;
}

static int open_stored(int *fd, uint64_t *bytes, const struct model_share_from *from,
                       const uint8_t sha256[SHA256_BYTES], uint32_t i, struct err *e)
{
    struct model_manifest m;
    char path[PATH_MAX];
    model_manifest_init(&m);
    int rc = model_store_manifest(from->store, sha256, &m, e);
    if (rc == 0)
        rc = model_store_file(from->store, sha256, &m, i, path, e);
    if (rc == 0) {
        *bytes = m.files[i].bytes;
        *fd = file_open_regular(path, NULL);
        if (*fd < 0)
            rc = err_set(e, SHOAL_EIO, "cannot open %s: %s", path, file_open_reason(errno));
    }
    model_manifest_fini(&m);
    return rc;
}

int model_share_open(int *fd, uint64_t *bytes, const struct model_share_from *from,
                     const uint8_t sha256[SHA256_BYTES], uint32_t i, struct err *e)
{
    struct stat st;
    int rc = SHOAL_ENOTFOUND;
    *fd = -1;
    if (from->store)
        rc = open_stored(fd, bytes, from, sha256, i, e);
    if (rc < 0 && from->path)
        rc = open_outside(fd, bytes, from, sha256, i, e);
    else if (rc == SHOAL_ENOTFOUND && !from->store)
        rc = err_set(e, rc, "this node does not have the model");
    if (rc == 0 && (fstat(*fd, &st) < 0 || (uint64_t)st.st_size != *bytes))
        rc = changed(from->path ? from->path : "a file of the store", e);
    if (rc < 0 && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    return rc;
}
