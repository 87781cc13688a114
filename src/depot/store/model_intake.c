/* model_intake.c - see model_intake.h.
 *
 *   incoming/HEX/intake           locked while it is in use
 *   incoming/HEX/manifest.json
 *   incoming/HEX/signature        if one came with the manifest
 *   incoming/HEX/N.part           file N, growing
 *   incoming/HEX/progress         how much of the part is on disk for certain, and who sent it
 *   incoming/HEX/files/...        complete and verified
 */
#include "depot/store/model_intake.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file_read.h"
#include "base/mem.h"
#include "depot/store/model_manifest.h"
#include "depot/store/model_store.h"
#include "host/hash_memo.h"

#define BLOCK_BYTES ((size_t)1 << 18)
#define SYNC_BYTES ((uint64_t)32 << 20)
#define SMALL_BYTES ((uint64_t)1 << 20) /* such a file is fetched again as a whole */
#define MAX_FROM 96u
#define BOOT_BYTES 37u

struct model_intake {
    struct model_store *store;
    const _Atomic bool *stop;
    uint8_t sha256[SHA256_BYTES];
    char folder[PATH_MAX - 300]; /* incoming/HEX: names of files are added to it */
    int lock;
    struct model_manifest manifest;
    bool has_manifest;
    uint64_t complete; /* bytes of the files that are verified */
    uint32_t n_complete;
    /* the file that is open */
    int fd; /* -1: none */
    uint32_t file;
    uint64_t at, synced;
    struct sha256 hash;
    bool hashing;
    char from[MAX_FROM]; /* the only sender so far */
    bool mixed;
};

/* ---- paths and small files ---- */

static const char *path_of(const struct model_intake *k, char out[PATH_MAX], const char *name)
{
    snprintf(out, PATH_MAX, "%s/%s", k->folder, name);
    return out;
}

static const char *part_path(const struct model_intake *k, char out[PATH_MAX], uint32_t i)
{
    snprintf(out, PATH_MAX, "%s/%u.part", k->folder, i);
    return out;
}

static bool file_path(const struct model_intake *k, char out[PATH_MAX], uint32_t i)
{
    char place[MODEL_MANIFEST_MAX_NAME + 16];
    if (!model_manifest_place(place, sizeof(place), &k->manifest, i))
        return false;
    int n = snprintf(out, PATH_MAX, "%s/files/%s", k->folder, place);
    return n > 0 && n < PATH_MAX;
}

static int fail_io(const char *what, const char *path, struct err *e)
{
    int why = errno;
    if (why == ENOSPC || why == EDQUOT || why == EFBIG)
        return err_set(e, SHOAL_ELIMIT, "no room for %s: %s", path, strerror(why));
    return err_set(e, SHOAL_EIO, "cannot %s %s: %s", what, path, strerror(why));
}

static int write_all(int fd, const void *p, size_t n)
{
    for (const char *at = p; n > 0;) {
        ssize_t k = write(fd, at, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return -1;
        at += k;
        n -= (size_t)k;
    }
    return 0;
}

/* Replaces a small file as a whole. */
static int save(const struct model_intake *k, const char *name, const void *p, size_t n,
                struct err *e)
{
    char path[PATH_MAX], temp[PATH_MAX];
    path_of(k, path, name);
    path_of(k, temp, "saving");
    int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644), rc = 0;
    if (fd < 0 || write_all(fd, p, n) < 0 || fsync(fd) < 0)
        rc = fail_io("write", temp, e);
    if (fd >= 0)
        close(fd);
    if (rc == 0 && rename(temp, path) < 0)
        rc = fail_io("write", path, e);
    if (rc < 0)
        unlink(temp);
    return rc;
}

/* ---- progress ---- */

/* Data written by a process survives its death, but not that of the machine: then only synced bytes
 * count. */
static void boot_id(char out[BOOT_BYTES])
{
    struct buf b;
    buf_init(&b, 256);
    out[0] = '\0';
    if (file_read("/proc/sys/kernel/random/boot_id", &b, NULL) == 0)
        snprintf(out, BOOT_BYTES, "%.*s", (int)strcspn(buf_str(&b), "\n "), buf_str(&b));
    if (!out[0])
        snprintf(out, BOOT_BYTES, "-");
    buf_fini(&b);
}

static int save_progress(struct model_intake *k, struct err *e)
{
    char text[MAX_FROM + 160], boot[BOOT_BYTES];
    boot_id(boot);
    int n = snprintf(text, sizeof(text), "shoal part 1 %u %s %" PRIu64 " %d %s\n", k->file, boot,
                     k->synced, k->mixed, k->from[0] ? k->from : "-");
    return save(k, "progress", text, (size_t)n, e);
}

/* How many of the part's `size` bytes count for file i. */
static uint64_t read_progress(struct model_intake *k, uint32_t i, uint64_t size)
{
    char path[PATH_MAX], boot[BOOT_BYTES], was[BOOT_BYTES] = "", from[MAX_FROM] = "";
    struct buf b;
    uint64_t synced = 0;
    uint32_t file = 0;
    int mixed = 1;
    buf_init(&b, 1024);
    bool ok = file_read(path_of(k, path, "progress"), &b, NULL) == 0 &&
              sscanf(buf_str(&b), "shoal part 1 %" SCNu32 " %36s %" SCNu64 " %d %95s", &file, was,
                     &synced, &mixed, from) == 5 &&
              file == i;
    buf_fini(&b);
    boot_id(boot);
    k->mixed = !ok || mixed;
    snprintf(k->from, sizeof(k->from), "%s", ok && strcmp(from, "-") != 0 ? from : "");
    if (ok && strcmp(boot, was) == 0 && boot[0] != '-')
        return size;
    return ok && synced < size ? synced : ok ? size : 0;
}

/* ---- opening ---- */

static int lock_folder(struct model_intake *k, struct err *e)
{
    char path[PATH_MAX];
    if (mkdir(k->folder, 0755) < 0 && errno != EEXIST)
        return fail_io("make the folder", k->folder, e);
    k->lock = open(path_of(k, path, "intake"), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (k->lock < 0)
        return fail_io("open", path, e);
    if (flock(k->lock, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK
                   ? err_set(e, SHOAL_EBUSY, "%s: another process fetches this model", k->folder)
                   : fail_io("lock", path, e);
    (void)futimens(k->lock, NULL);
    return 0;
}

/* Files that were complete before. */
static void count_complete(struct model_intake *k)
{
    char path[PATH_MAX];
    struct stat st;
    k->n_complete = 0;
    k->complete = 0;
    while (k->n_complete < k->manifest.n_files && file_path(k, path, k->n_complete) &&
           stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
           (uint64_t)st.st_size == k->manifest.files[k->n_complete].bytes)
        k->complete += k->manifest.files[k->n_complete++].bytes;
}

static void load_manifest(struct model_intake *k)
{
    char path[PATH_MAX];
    struct buf b;
    buf_init(&b, MODEL_MANIFEST_MAX_BYTES);
    k->has_manifest = file_read(path_of(k, path, "manifest.json"), &b, NULL) == 0 &&
                      model_manifest_read(&k->manifest, buf_str(&b), b.len, k->sha256, NULL) == 0;
    buf_fini(&b);
    if (k->has_manifest) {
        count_complete(k);
        return;
    }
    model_manifest_fini(&k->manifest);
    model_manifest_init(&k->manifest);
}

int model_intake_open(struct model_intake **out, struct model_store *s,
                      const uint8_t sha256[SHA256_BYTES], const _Atomic bool *stop, struct err *e)
{
    struct model_intake *k = mem_zalloc(sizeof(*k));
    char folder[PATH_MAX];
    *out = NULL;
    if (!k)
        return err_set(e, SHOAL_ENOMEM, "intake of a model");
    k->store = s;
    k->stop = stop;
    k->fd = k->lock = -1;
    memcpy(k->sha256, sha256, SHA256_BYTES);
    model_manifest_init(&k->manifest);
    int rc = model_store_make(s, e);
    if (rc == 0)
        rc = model_store_place(s, folder, sha256, true, e);
    if (rc == 0 && strlen(folder) >= sizeof(k->folder))
        rc = err_set(e, SHOAL_ELIMIT, "the path of the store is too long: %s", folder);
    if (rc == 0) {
        memcpy(k->folder, folder, strlen(folder) + 1);
        rc = lock_folder(k, e);
    }
    if (rc < 0) {
        model_intake_close(k);
        return rc;
    }
    load_manifest(k);
    *out = k;
    return 0;
}

static void close_part(struct model_intake *k)
{
    uint8_t unused[SHA256_BYTES];
    if (k->hashing)
        (void)!sha256_end(&k->hash, unused);
    k->hashing = false;
    if (k->fd >= 0) {
        (void)!ftruncate(k->fd, (off_t)k->at); /* returns the unused part of the reservation */
        close(k->fd);
    }
    k->fd = -1;
}

void model_intake_close(struct model_intake *k)
{
    if (!k)
        return;
    if (k->fd >= 0 && k->at > 0)
        (void)!save_progress(k, NULL);
    close_part(k);
    model_manifest_fini(&k->manifest);
    if (k->lock >= 0)
        close(k->lock);
    mem_free(k);
}

/* The folder stays, with its lock. */
static void clear(struct model_intake *k)
{
    char path[PATH_MAX];
    close_part(k);
    for (uint32_t i = 0; i < k->manifest.n_files; i++)
        unlink(part_path(k, path, i));
    unlink(path_of(k, path, "manifest.json"));
    unlink(path_of(k, path, "progress"));
    unlink(path_of(k, path, "signature"));
    model_store_delete_tree(path_of(k, path, "files"));
    k->complete = k->at = 0;
    k->n_complete = 0;
}

void model_intake_restart(struct model_intake *k)
{
    clear(k);
    model_manifest_fini(&k->manifest);
    model_manifest_init(&k->manifest);
    k->has_manifest = false;
}

void model_intake_discard(struct model_intake *k)
{
    if (!k)
        return;
    clear(k);
    model_store_delete_tree(k->folder);
    model_intake_close(k);
}

/* ---- manifest ---- */

const struct model_manifest *model_intake_manifest(const struct model_intake *k)
{
    return k->has_manifest ? &k->manifest : NULL;
}

int model_intake_set_manifest(struct model_intake *k, struct model_manifest *m, struct err *e)
{
    struct model_store_swept swept;
    struct buf b;
    model_intake_restart(k);
    model_manifest_fini(&k->manifest);
    k->manifest = *m;
    *m = (struct model_manifest){.open = ""};
    int rc = model_store_sweep(k->store, k->sha256, model_manifest_bytes(&k->manifest), &swept, e);
    buf_init(&b, MODEL_MANIFEST_MAX_BYTES);
    model_manifest_write(&b, &k->manifest);
    if (rc == 0 && b.rc < 0)
        rc = err_set(e, b.rc, "manifest of a model");
    if (rc == 0 && k->manifest.n_signature)
        rc = save(k, "signature", k->manifest.signature, k->manifest.n_signature, e);
    if (rc == 0)
        rc = save(k, "manifest.json", b.data, b.len, e);
    buf_fini(&b);
    k->has_manifest = rc == 0;
    return rc;
}

uint64_t model_intake_bytes(const struct model_intake *k)
{
    return k->complete + (k->fd >= 0 ? k->at : 0);
}

bool model_intake_mixed(const struct model_intake *k)
{
    return k->mixed;
}

/* ---- one file ---- */

/* Continues the hash at the end of the part. */
static int hash_part(struct model_intake *k, const char *path, struct err *e)
{
    uint8_t *block = mem_alloc(BLOCK_BYTES);
    int rc = block ? 0 : err_set(e, SHOAL_ENOMEM, "hash");
    for (uint64_t at = 0; rc == 0 && at < k->at;) {
        size_t n = k->at - at < BLOCK_BYTES ? (size_t)(k->at - at) : BLOCK_BYTES;
        ssize_t got = pread(k->fd, block, n, (off_t)at);
        if (got <= 0)
            rc = err_set(e, SHOAL_EIO, "cannot read %s: %s", path,
                         got < 0 ? strerror(errno) : "it became shorter");
        else
            sha256_add(&k->hash, block, (size_t)got);
        at += got > 0 ? (uint64_t)got : 0;
        if (rc == 0 && atomic_load_explicit(k->stop, memory_order_relaxed))
            rc = err_set(e, SHOAL_ECANCELLED, "stopped");
    }
    mem_free(block);
    return rc;
}

static void drop_part(struct model_intake *k)
{
    char path[PATH_MAX];
    k->at = 0;
    close_part(k);
    unlink(part_path(k, path, k->file));
    unlink(path_of(k, path, "progress"));
}

/* Reserves the room now: a full disk is better noticed before the transfer than in its middle. */
static int reserve(struct model_intake *k, const char *path, struct err *e)
{
    struct model_store_swept swept;
    uint64_t all = model_manifest_bytes(&k->manifest), size = k->manifest.files[k->file].bytes;
    int rc = model_store_sweep(k->store, k->sha256, all - k->complete - k->at, &swept, e);
    if (rc < 0 || size <= k->at)
        return rc;
    if (fallocate(k->fd, FALLOC_FL_KEEP_SIZE, (off_t)k->at, (off_t)(size - k->at)) < 0 &&
        (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
        return fail_io("write", path, e);
    return 0;
}

static int open_part(struct model_intake *k, struct err *e)
{
    char path[PATH_MAX];
    struct stat st;
    uint64_t size = k->manifest.files[k->file].bytes;
    part_path(k, path, k->file);
    k->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (k->fd < 0 || fstat(k->fd, &st) < 0)
        return fail_io("open", path, e);
    k->at = st.st_size > 0 ? read_progress(k, k->file, (uint64_t)st.st_size) : 0;
    k->at = k->at > size ? 0 : k->at;
    if (k->at == 0) {
        k->from[0] = '\0';
        k->mixed = false;
    }
    k->synced = k->at;
    if (ftruncate(k->fd, (off_t)k->at) < 0 || lseek(k->fd, (off_t)k->at, SEEK_SET) < 0)
        return fail_io("write", path, e);
    sha256_begin(&k->hash);
    k->hashing = true;
    int rc = reserve(k, path, e);
    return rc < 0 ? rc : hash_part(k, path, e);
}

int model_intake_next(struct model_intake *k, uint32_t *file, uint64_t *offset, struct err *e)
{
    if (!k->has_manifest)
        return err_set(e, SHOAL_EINVAL, "the files of the model are not known yet");
    if (k->n_complete == k->manifest.n_files)
        return 0;
    if (k->fd < 0) {
        k->file = k->n_complete;
        int rc = open_part(k, e);
        if (rc == SHOAL_ELIMIT)
            drop_part(k);
        else if (rc < 0)
            close_part(k);
        if (rc < 0)
            return rc;
    }
    *file = k->file;
    *offset = k->at;
    return 1;
}

int model_intake_write(struct model_intake *k, const char *from, const void *p, size_t n,
                       struct err *e)
{
    char path[PATH_MAX];
    int rc = 0;
    if (k->fd < 0)
        return err_set(e, SHOAL_EINVAL, "no file is open");
    part_path(k, path, k->file);
    if (n > k->manifest.files[k->file].bytes - k->at)
        return err_set(e, SHOAL_ECHANGED, "%s: more bytes than the file has",
                       k->manifest.files[k->file].name);
    if (n == 0)
        return 0;
    if (strncmp(k->from, from, sizeof(k->from) - 1) != 0) {
        k->mixed |= k->from[0] != '\0';
        snprintf(k->from, sizeof(k->from), "%s", from);
        for (char *c = k->from; *c; c++) /* one word of `progress` */
            *c = (unsigned char)*c <= ' ' ? '_' : *c;
        /* now, not only at the end: the process may be killed */
        if (k->at > 0 || k->manifest.files[k->file].bytes >= SMALL_BYTES)
            rc = save_progress(k, e);
    }
    if (rc == 0 && write_all(k->fd, p, n) < 0)
        rc = fail_io("write", path, e);
    if (rc == SHOAL_ELIMIT) {
        drop_part(k);
        return rc;
    }
    if (rc < 0) /* it is unknown how much was written */
        return ftruncate(k->fd, (off_t)k->at) < 0 || lseek(k->fd, (off_t)k->at, SEEK_SET) < 0
                   ? err_set(e, SHOAL_EIO, "cannot write %s", path)
                   : rc;
    sha256_add(&k->hash, p, n);
    k->at += n;
    if (k->at - k->synced < SYNC_BYTES)
        return 0;
    if (fdatasync(k->fd) < 0)
        return fail_io("write", path, e);
    k->synced = k->at;
    return save_progress(k, e);
}

/* The folders on the way to a file, all below k->folder. */
static int make_folders(const struct model_intake *k, const char *path, struct err *e)
{
    char at[PATH_MAX];
    snprintf(at, sizeof(at), "%s", path);
    for (char *p = strchr(at + strlen(k->folder) + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = '\0';
        if (mkdir(at, 0755) < 0 && errno != EEXIST)
            return fail_io("make the folder", at, e);
        *p = '/';
    }
    return 0;
}

/* The name is on disk only once its folders are. */
static void sync_folders(const struct model_intake *k, const char *path)
{
    char at[PATH_MAX];
    snprintf(at, sizeof(at), "%s", path);
    for (char *p = strrchr(at, '/'); p && p >= at + strlen(k->folder); p = strrchr(at, '/')) {
        *p = '\0';
        int fd = open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) {
            (void)fsync(fd);
            close(fd);
        }
    }
}

static int wrong_bytes(struct model_intake *k, const uint8_t sum[SHA256_BYTES], struct err *e)
{
    const struct identity_file *f = &k->manifest.files[k->file];
    char got[2 * SHA256_BYTES + 1], want[2 * SHA256_BYTES + 1];
    sha256_hex(got, sum);
    sha256_hex(want, f->sum);
    drop_part(k);
    return err_set(e, SHOAL_EFORMAT, "%s has the SHA-256 %.16s..., not %.16s...", f->name, got,
                   want);
}

int model_intake_finish(struct model_intake *k, struct err *e)
{
    const struct identity_file *f = &k->manifest.files[k->file];
    char part[PATH_MAX], path[PATH_MAX];
    uint8_t sum[SHA256_BYTES];
    if (k->fd < 0)
        return err_set(e, SHOAL_EINVAL, "no file is open");
    if (k->at < f->bytes)
        return err_set(e, SHOAL_ECHANGED, "%s ends after %" PRIu64 " of %" PRIu64 " bytes", f->name,
                       k->at, f->bytes);
    k->hashing = false;
    if (!sha256_end(&k->hash, sum)) {
        close_part(k); /* the next one hashes it again */
        return err_set(e, SHOAL_ENOMEM, "cannot compute SHA-256");
    }
    if (memcmp(sum, f->sum, SHA256_BYTES) != 0)
        return wrong_bytes(k, sum, e);
    part_path(k, part, k->file);
    if (!file_path(k, path, k->file))
        return err_set(e, SHOAL_ELIMIT, "the path of the store is too long: %s", k->folder);
    int rc = make_folders(k, path, e);
    if (rc == 0 && (fchmod(k->fd, 0444) < 0 || fsync(k->fd) < 0 || rename(part, path) < 0))
        rc = fail_io("write", path, e);
    if (rc < 0) {
        close_part(k);
        return rc;
    }
    sync_folders(k, path);
    close_part(k);
    unlink(path_of(k, part, "progress"));
    k->complete += f->bytes;
    k->n_complete++;
    k->at = 0;
    return 0;
}

int model_intake_file(const struct model_intake *k, uint32_t i, char path[PATH_MAX], struct err *e)
{
    if (i >= k->n_complete)
        return err_set(e, SHOAL_EINVAL, "file %u is not complete", i);
    return file_path(k, path, i) ? 0 : err_set(e, SHOAL_ELIMIT, "a path is too long");
}

/* ---- the whole ---- */

/* The opened path must list exactly the files of the manifest: then its identity is the requested
 * one. */
static int check_listing(const struct model_intake *k, const char *path, struct err *e)
{
    struct identity_list *l;
    struct identity_file f;
    int rc = identity_list(&l, path, e);
    if (rc < 0)
        return rc;
    bool same = identity_list_n(l) == k->manifest.n_files &&
                identity_list_is_folder(l) == k->manifest.folder;
    for (uint32_t i = 0; same && k->manifest.folder && i < k->manifest.n_files; i++) {
        identity_list_file(l, i, &f);
        same = strcmp(f.name, k->manifest.files[i].name) == 0;
    }
    identity_list_free(l);
    return same ? 0
                : err_set(e, SHOAL_EFORMAT,
                          "the manifest says to open '%s', but that is another model",
                          k->manifest.open);
}

static void remember_hashes(const struct model_intake *k)
{
    char path[PATH_MAX];
    struct stat st;
    for (uint32_t i = 0; i < k->manifest.n_files; i++)
        if (model_store_file(k->store, k->sha256, &k->manifest, i, path, NULL) == 0 &&
            stat(path, &st) == 0)
            hash_memo_put_final(model_store_memo_dir(k->store), &st, k->manifest.files[i].sum);
}

int model_intake_commit(struct model_intake *k, char path[PATH_MAX], struct err *e)
{
    char place[MODEL_MANIFEST_MAX_NAME + 16], at[PATH_MAX];
    if (!k->has_manifest || k->n_complete < k->manifest.n_files)
        return err_set(e, SHOAL_EINVAL, "the model is not complete");
    if (!model_manifest_open_place(place, sizeof(place), &k->manifest))
        return err_set(e, SHOAL_ELIMIT, "the path of the store is too long: %s", k->folder);
    int n = snprintf(at, sizeof(at), "%s/files%s%s", k->folder, place[0] ? "/" : "", place);
    int rc = n > 0 && (size_t)n < sizeof(at) ? check_listing(k, at, e)
                                             : err_set(e, SHOAL_ELIMIT, "a path is too long");
    if (rc < 0) {
        model_intake_restart(k);
        return rc;
    }
    rc = model_store_admit(k->store, k->sha256, e);
    if (rc == 0)
        remember_hashes(k);
    return rc < 0 ? rc : model_store_find(k->store, k->sha256, path, e);
}
