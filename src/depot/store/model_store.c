/* model_store.c - see model_store.h. */
#include "depot/store/model_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/bytes_text.h"
#include "base/file/file_read.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/room.h"
#include "depot/store/model_manifest.h"
#include "depot/store/model_refs.h"
#include "depot/store/store_lock.h"

#define HEX_BYTES (2u * SHA256_BYTES + 1u)
#define MAX_ENTRIES 65536u
#define MAX_DEPTH 8u
#define BLOCK_BYTES ((size_t)1 << 18)
#define STALE_S (7u * 24 * 3600)
#define DISK_SPARE ((uint64_t)64 << 20) /* disk space left for other programs */

struct model_store {
    char *dir, *memo_dir;
    uint64_t max_bytes;
};

struct model_store_pin {
    int fd; /* DIR/models/HEX/used, with a shared lock */
};

/* ---- paths ---- */

/* $SHOAL_STORE, else $STATE_DIRECTORY/store (systemd: /var/lib/shoal), $XDG_DATA_HOME/shoal/store
 * or
 * ~/.local/share/shoal/store; NULL if none of them is set. */
static const char *default_folder(char *out, size_t cap)
{
    const char *base;
    if ((base = getenv("SHOAL_STORE")) && base[0])
        snprintf(out, cap, "%s", base);
    else if ((base = getenv("STATE_DIRECTORY")) && base[0] && !strchr(base, ':'))
        snprintf(out, cap, "%s/store", base);
    else if ((base = getenv("XDG_DATA_HOME")) && base[0])
        snprintf(out, cap, "%s/shoal/store", base);
    else if ((base = getenv("HOME")) && base[0])
        snprintf(out, cap, "%s/.local/share/shoal/store", base);
    else
        return NULL;
    return out;
}

static bool join(char out[PATH_MAX], const char *folder, const char *name)
{
    int n = snprintf(out, PATH_MAX, "%s/%s", folder, name);
    return n > 0 && n < PATH_MAX;
}

static int too_long(const char *path, struct err *e)
{
    return err_set(e, SHOAL_ELIMIT, "a path in %s is too long", path);
}

int model_store_place(const struct model_store *s, char path[PATH_MAX],
                      const uint8_t sha256[SHA256_BYTES], bool incoming, struct err *e)
{
    char hex[HEX_BYTES];
    sha256_hex(hex, sha256);
    int n = snprintf(path, PATH_MAX, "%s/%s/%s", s->dir, incoming ? "incoming" : "models", hex);
    return n > 0 && n < PATH_MAX ? 0 : too_long(s->dir, e);
}

int model_store_open(struct model_store **out, const struct model_store_opts *o, struct err *e)
{
    char fallback[PATH_MAX];
    const char *dir = o->dir ? o->dir : default_folder(fallback, sizeof(fallback));
    struct model_store *s = mem_zalloc(sizeof(*s));
    int rc = 0;
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "store of models");
    if (!dir)
        rc = err_set(e, SHOAL_EINVAL,
                     "there is no home folder to keep models in: name a folder with --store or "
                     "$SHOAL_STORE, or with cluster.store in a configuration");
    else if (!(s->dir = mem_strdup(dir)) ||
             (o->memo_dir && !(s->memo_dir = mem_strdup(o->memo_dir))))
        rc = err_set(e, SHOAL_ENOMEM, "store of models");
    if (rc < 0) {
        model_store_close(s);
        return rc;
    }
    s->max_bytes = o->max_bytes;
    *out = s;
    return 0;
}

int model_store_make(struct model_store *s, struct err *e)
{
    return store_lock_folders(s->dir, e);
}

void model_store_close(struct model_store *s)
{
    if (!s)
        return;
    mem_free(s->dir);
    mem_free(s->memo_dir);
    mem_free(s);
}

const char *model_store_dir(const struct model_store *s)
{
    return s->dir;
}

const char *model_store_memo_dir(const struct model_store *s)
{
    return s->memo_dir;
}

/* ---- one model ---- */

static int read_manifest(const char *folder, const uint8_t sha256[SHA256_BYTES],
                         struct model_manifest *m, struct err *e)
{
    char path[PATH_MAX];
    struct buf b;
    if (!join(path, folder, "manifest.json"))
        return too_long(folder, e);
    buf_init(&b, MODEL_MANIFEST_MAX_BYTES);
    int rc = file_read(path, &b, e);
    if (rc == 0)
        rc = model_manifest_read(m, buf_str(&b), b.len, sha256, e);
    buf_fini(&b);
    return rc;
}

static int not_here(const struct model_store *s, const uint8_t sha256[SHA256_BYTES], struct err *e)
{
    char hex[HEX_BYTES];
    sha256_hex(hex, sha256);
    return err_set(e, SHOAL_ENOTFOUND, "the store %s has no model %s", s->dir, hex);
}

int model_store_manifest(struct model_store *s, const uint8_t sha256[SHA256_BYTES],
                         struct model_manifest *m, struct err *e)
{
    char folder[PATH_MAX];
    int rc = model_store_place(s, folder, sha256, false, e);
    if (rc < 0)
        return rc;
    return access(folder, F_OK) < 0 ? not_here(s, sha256, e) : read_manifest(folder, sha256, m, e);
}

/* A place within the files of a model. */
static int file_path(const struct model_store *s, const uint8_t sha256[SHA256_BYTES],
                     const char *place, char path[PATH_MAX], struct err *e)
{
    char folder[PATH_MAX];
    int rc = model_store_place(s, folder, sha256, false, e);
    if (rc < 0)
        return rc;
    int n = snprintf(path, PATH_MAX, "%s/files%s%s", folder, place[0] ? "/" : "", place);
    return n > 0 && n < PATH_MAX ? 0 : too_long(folder, e);
}

int model_store_file(struct model_store *s, const uint8_t sha256[SHA256_BYTES],
                     const struct model_manifest *m, uint32_t i, char path[PATH_MAX], struct err *e)
{
    char place[PATH_MAX];
    if (i >= m->n_files || !model_manifest_place(place, sizeof(place), m, i))
        return err_set(e, SHOAL_ENOTFOUND, "the model has no file %u", i);
    return file_path(s, sha256, place, path, e);
}

bool model_store_owns(const struct model_store *s, const char *path, uint8_t sha256[SHA256_BYTES])
{
    static const char models[] = "/models/";
    size_t n = strlen(s->dir), k = sizeof(models) - 1;
    return strncmp(path, s->dir, n) == 0 && strncmp(path + n, models, k) == 0 &&
           strlen(path + n + k) > HEX_BYTES && path[n + k + HEX_BYTES - 1] == '/' &&
           sha256_read_hex(sha256, path + n + k);
}

/* Every file is there with its size. */
static int check_sizes(struct model_store *s, const uint8_t sha256[SHA256_BYTES],
                       const struct model_manifest *m, struct err *e)
{
    char path[PATH_MAX];
    struct stat st;
    for (uint32_t i = 0; i < m->n_files; i++) {
        int rc = model_store_file(s, sha256, m, i, path, e);
        if (rc < 0)
            return rc;
        if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) ||
            (uint64_t)st.st_size != m->files[i].bytes)
            return err_set(e, SHOAL_ENOTFOUND,
                           "%s is missing or has the wrong size: remove the model from the store "
                           "to have it fetched again",
                           path);
    }
    return 0;
}

int model_store_find(struct model_store *s, const uint8_t sha256[SHA256_BYTES], char path[PATH_MAX],
                     struct err *e)
{
    struct model_manifest m;
    char place[PATH_MAX];
    model_manifest_init(&m);
    int rc = model_store_manifest(s, sha256, &m, e);
    if (rc == 0)
        rc = check_sizes(s, sha256, &m, e);
    if (rc == 0)
        rc = model_manifest_open_place(place, sizeof(place), &m)
                 ? file_path(s, sha256, place, path, e)
                 : too_long(s->dir, e);
    model_manifest_fini(&m);
    return rc;
}

int model_store_verify(struct model_store *s, const uint8_t sha256[SHA256_BYTES],
                       const _Atomic bool *stop, struct err *e)
{
    struct identity_list *l = NULL;
    struct model_manifest m;
    struct identity id;
    char path[PATH_MAX];
    model_manifest_init(&m);
    int rc = model_store_find(s, sha256, path, e);
    if (rc == 0)
        rc = model_store_manifest(s, sha256, &m, e);
    if (rc == 0)
        rc = identity_list(&l, path, e);
    if (rc == 0)
        rc = identity_read(&id, l, NULL, stop, e);
    if (rc == 0 && memcmp(id.sum, sha256, SHA256_BYTES) != 0) {
        const char *which = "its list of files";
        for (uint32_t i = 0; i < m.n_files && i < identity_list_n(l); i++) {
            struct identity_file f;
            identity_list_file(l, i, &f);
            if (memcmp(f.sum, m.files[i].sum, SHA256_BYTES) != 0)
                which = m.files[i].name;
        }
        rc = err_set(e, SHOAL_EFORMAT, "%s is damaged: %s does not match its SHA-256", path, which);
    }
    identity_list_free(l);
    model_manifest_fini(&m);
    return rc;
}

/* ---- who uses it ---- */

static int open_used(const struct model_store *s, const uint8_t sha256[SHA256_BYTES],
                     char path[PATH_MAX], struct err *e)
{
    char folder[PATH_MAX];
    int rc = model_store_place(s, folder, sha256, false, e);
    if (rc < 0 || !join(path, folder, "used"))
        return rc < 0 ? rc : too_long(folder, e);
    if (access(folder, F_OK) < 0)
        return not_here(s, sha256, e);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    return fd >= 0 ? fd : err_set(e, SHOAL_EIO, "cannot open %s: %s", path, strerror(errno));
}

int model_store_pin(struct model_store *s, const uint8_t sha256[SHA256_BYTES],
                    struct model_store_pin **out, struct err *e)
{
    char path[PATH_MAX];
    struct stat here, there;
    struct model_store_pin *p = mem_zalloc(sizeof(*p));
    *out = NULL;
    if (!p)
        return err_set(e, SHOAL_ENOMEM, "pin of a model");
    int rc = p->fd = open_used(s, sha256, path, e);
    if (rc >= 0 && flock(p->fd, LOCK_SH) < 0)
        rc = err_set(e, SHOAL_EIO, "cannot lock %s: %s", path, strerror(errno));
    /* it may have been removed while we waited */
    else if (rc >= 0 && (fstat(p->fd, &here) < 0 || stat(path, &there) < 0 ||
                         here.st_ino != there.st_ino || here.st_dev != there.st_dev))
        rc = not_here(s, sha256, e);
    if (rc < 0) {
        if (p->fd >= 0)
            close(p->fd);
        mem_free(p);
        return rc;
    }
    (void)futimens(p->fd, NULL);
    *out = p;
    return 0;
}

void model_store_unpin(struct model_store_pin *p)
{
    if (!p)
        return;
    (void)futimens(p->fd, NULL);
    close(p->fd);
    mem_free(p);
}

/* ---- moving in and out ---- */

/* Below the folder fd, which it closes. */
static void delete_below(int fd, unsigned depth)
{
    DIR *d = fdopendir(fd);
    if (!d) {
        close(fd);
        return;
    }
    for (struct dirent *at; (at = readdir(d));) {
        if (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, at->d_name, 0) == 0 || depth == MAX_DEPTH)
            continue;
        int sub = openat(fd, at->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (sub >= 0)
            delete_below(sub, depth + 1);
        (void)unlinkat(fd, at->d_name, AT_REMOVEDIR);
    }
    closedir(d);
}

void model_store_delete_tree(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0)
        delete_below(fd, 0);
    (void)rmdir(path);
}

static void sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

int model_store_admit(struct model_store *s, const uint8_t sha256[SHA256_BYTES], struct err *e)
{
    char from[PATH_MAX], to[PATH_MAX], used[PATH_MAX], intake[PATH_MAX];
    int lock = -1, rc = model_store_place(s, from, sha256, true, e);
    if (rc == 0)
        rc = model_store_place(s, to, sha256, false, e);
    if (rc == 0)
        rc = lock = store_lock(s->dir, e);
    if (rc < 0)
        return rc;
    rc = 0;
    sync_folder(from);
    if (rename(from, to) < 0) {
        int why = errno;
        if (why == ENOTEMPTY ||
            why == EEXIST) { /* another process was faster: it is the same model */
            model_store_delete_tree(from);
        } else {
            rc = err_set(e, SHOAL_EIO, "cannot move %s to %s: %s", from, to, strerror(why));
        }
    }
    if (rc == 0 && join(intake, to, "intake"))
        unlink(intake);
    if (join(used, s->dir, "models"))
        sync_folder(used);
    close(lock);
    int fd = rc == 0 ? open_used(s, sha256, used, NULL) : -1;
    if (fd >= 0)
        close(fd);
    return rc;
}

/* The store is locked.  Moved aside first: a half removed model is never found. */
static int move_out(struct model_store *s, const char *path, struct err *e)
{
    char aside[PATH_MAX + 32];
    snprintf(aside, sizeof(aside), "%s/incoming/.gone-%d", s->dir, (int)getpid());
    model_store_delete_tree(aside);
    if (rename(path, aside) < 0)
        return err_set(e, SHOAL_EIO, "cannot remove %s: %s", path, strerror(errno));
    model_store_delete_tree(aside);
    return 0;
}

/* The store is locked. */
static int remove_entry(struct model_store *s, const uint8_t sha256[SHA256_BYTES], bool incoming,
                        struct err *e)
{
    char path[PATH_MAX], used[PATH_MAX];
    int rc = model_store_place(s, path, sha256, incoming, e), fd = -1;
    if (rc < 0)
        return rc;
    if (access(path, F_OK) < 0)
        return not_here(s, sha256, e);
    if (join(used, path, incoming ? "intake" : "used"))
        fd = open(used, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        close(fd);
        return err_set(e, SHOAL_EBUSY, "%s is in use: a node serves it, or fetches it now", path);
    }
    rc = move_out(s, path, e);
    if (fd >= 0)
        close(fd);
    return rc;
}

int model_store_discard(struct model_store *s, const uint8_t sha256[SHA256_BYTES], struct err *e)
{
    char path[PATH_MAX];
    int lock = store_lock(s->dir, e), rc = lock;
    if (lock < 0)
        return rc;
    rc = model_store_place(s, path, sha256, false, e);
    if (rc == 0 && access(path, F_OK) == 0)
        rc = move_out(s, path, e);
    close(lock);
    return rc;
}

int model_store_remove(struct model_store *s, const uint8_t sha256[SHA256_BYTES], struct err *e)
{
    struct err why = {0};
    int lock = store_lock(s->dir, e);
    if (lock < 0)
        return lock;
    int rc = remove_entry(s, sha256, false, e);
    if (rc == SHOAL_ENOTFOUND && remove_entry(s, sha256, true, &why) != SHOAL_ENOTFOUND)
        rc = why.code < 0 ? err_set(e, why.code, "%s", why.msg) : 0;
    close(lock);
    return rc;
}

/* ---- listing ---- */

/* Bytes of a model's files and parts, without what describes them. */
static uint64_t tree_bytes(const char *path, unsigned depth)
{
    char at[PATH_MAX];
    struct stat st;
    uint64_t sum = 0;
    DIR *d = depth < MAX_DEPTH ? opendir(path) : NULL;
    for (struct dirent *x; d && (x = readdir(d));) {
        if (strcmp(x->d_name, ".") == 0 || strcmp(x->d_name, "..") == 0 ||
            !join(at, path, x->d_name) || lstat(at, &st) < 0)
            continue;
        const char *dot = strrchr(x->d_name, '.');
        if (S_ISDIR(st.st_mode))
            sum += tree_bytes(at, depth + 1);
        else if (S_ISREG(st.st_mode) && (depth > 0 || (dot && strcmp(dot, ".part") == 0)))
            sum += (uint64_t)st.st_size;
    }
    if (d)
        closedir(d);
    return sum;
}

static bool is_locked(const char *folder, const char *name, uint64_t *time_s)
{
    char path[PATH_MAX];
    struct stat st;
    int fd = join(path, folder, name) ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    *time_s = 0;
    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0)
        *time_s = (uint64_t)st.st_mtim.tv_sec;
    bool locked = flock(fd, LOCK_EX | LOCK_NB) < 0;
    close(fd);
    return locked;
}

static void count_name(void *ctx, const struct model_ref *ref)
{
    struct model_store_entry *x = ctx;
    x->n_names += ref->stored && memcmp(ref->sha256, x->sha256, SHA256_BYTES) == 0;
}

static void describe(struct model_store_entry *x, const char *folder,
                     const struct model_refs *names)
{
    struct model_manifest m;
    model_manifest_init(&m);
    bool known = read_manifest(folder, x->sha256, &m, NULL) == 0;
    x->pinned = is_locked(folder, x->incoming ? "intake" : "used", &x->used_s);
    if (known) {
        x->n_files = m.n_files;
        x->bytes = x->total_bytes = model_manifest_bytes(&m);
        snprintf(x->open, sizeof(x->open), "%s", m.open);
    }
    if (!known || x->incoming)
        x->bytes = tree_bytes(folder, 0);
    x->damaged = !known && !x->incoming;
    if (!x->incoming)
        model_refs_each(names, count_name, x);
    model_manifest_fini(&m);
}

static int latest_first(const void *a, const void *b)
{
    const struct model_store_entry *x = a, *y = b;
    if (x->incoming != y->incoming)
        return x->incoming ? 1 : -1;
    if (x->used_s != y->used_s)
        return x->used_s > y->used_s ? -1 : 1;
    return memcmp(x->sha256, y->sha256, SHA256_BYTES);
}

static int list_folder(struct model_store *s, bool incoming, const struct model_refs *names,
                       struct model_store_entry **list, size_t *n, size_t *cap, struct err *e)
{
    char path[PATH_MAX], at[PATH_MAX];
    int rc = 0;
    if (!join(path, s->dir, incoming ? "incoming" : "models"))
        return too_long(s->dir, e);
    DIR *d = opendir(path);
    if (!d && errno == ENOENT)
        return 0;
    if (!d)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", path, strerror(errno));
    for (struct dirent *x; rc == 0 && (x = readdir(d));) {
        struct model_store_entry entry = {.incoming = incoming};
        if (strlen(x->d_name) != 2 * SHA256_BYTES || !sha256_read_hex(entry.sha256, x->d_name) ||
            !join(at, path, x->d_name) || *n == MAX_ENTRIES)
            continue;
        if (!room_make(list, cap, *n, sizeof(**list), 16)) {
            rc = err_set(e, SHOAL_ENOMEM, "list of models");
            break;
        }
        describe(&entry, at, names);
        (*list)[(*n)++] = entry;
    }
    closedir(d);
    return rc;
}

int model_store_list(struct model_store *s, struct model_store_entry **list, size_t *n,
                     struct err *e)
{
    struct model_refs *names = NULL;
    size_t cap = 0;
    *list = NULL;
    *n = 0;
    int rc = model_refs_open(&names, s->dir, e);
    if (rc == 0)
        rc = list_folder(s, false, names, list, n, &cap, e);
    if (rc == 0)
        rc = list_folder(s, true, names, list, n, &cap, e);
    model_refs_close(names);
    if (rc < 0) {
        mem_free(*list);
        *list = NULL;
        *n = 0;
        return rc;
    }
    if (*n > 1)
        qsort(*list, *n, sizeof(**list), latest_first);
    return 0;
}

/* ---- making room ---- */

static int no_room(const struct model_store *s, uint64_t need, uint64_t have, bool disk,
                   struct err *e)
{
    char a[32], b[32];
    bytes_text(a, (double)need);
    bytes_text(b, (double)have);
    return disk ? err_set(e, SHOAL_ELIMIT, "%s: needs %s, but the disk can free only %s", s->dir, a,
                          b)
                : err_set(e, SHOAL_ELIMIT,
                          "%s: needs %s, but only %s can be freed within its limit: raise "
                          "cluster.store_limit or assign fewer models",
                          s->dir, a, b);
}

uint64_t model_store_disk_free(const struct model_store *s)
{
    struct statvfs v;
    if (statvfs(s->dir, &v) < 0)
        return UINT64_MAX; /* the writes will tell */
    uint64_t have = (uint64_t)v.f_bavail * v.f_frsize;
    /* on a small disk, no more than a sixteenth of it */
    uint64_t spare = (uint64_t)v.f_blocks * v.f_frsize / 16;
    spare = spare < DISK_SPARE ? spare : DISK_SPARE;
    return have > spare ? have - spare : 0;
}

static void drop(struct model_store *s, const struct model_store_entry *x,
                 struct model_store_swept *out)
{
    char hex[HEX_BYTES];
    struct err e = {0};
    sha256_hex(hex, x->sha256);
    if (remove_entry(s, x->sha256, x->incoming, &e) < 0) {
        log_warn("store", "cannot remove %s: %s", hex, e.msg);
        return;
    }
    log_info("store", "removed %s model=%s bytes=%" PRIu64,
             x->incoming ? "leftovers of a fetch" : "an unused model", hex, x->bytes);
    out->bytes += x->bytes;
    out->n_models += !x->incoming;
    out->n_incoming += x->incoming;
}

struct room {
    uint64_t used;  /* bytes that count towards the limit, including transfers in progress */
    uint64_t loose; /* the part of it that can be evicted */
    uint64_t disk;  /* free */
};

static struct room measure(struct model_store *s, const uint8_t *self,
                           const struct model_store_entry *list, size_t n)
{
    struct room r = {.disk = model_store_disk_free(s)};
    for (size_t i = 0; i < n; i++) {
        const struct model_store_entry *x = &list[i];
        bool own = x->incoming && self && memcmp(x->sha256, self, SHA256_BYTES) == 0;
        /* others' incoming models count in full: their room is reserved */
        r.used += x->incoming && x->pinned && !own && x->total_bytes > x->bytes ? x->total_bytes
                                                                                : x->bytes;
        r.loose += x->incoming || x->pinned || x->n_names ? 0 : x->bytes;
    }
    return r;
}

static int check_room(const struct model_store *s, const struct room *r, uint64_t bytes,
                      struct err *e)
{
    uint64_t fixed = r->used - r->loose;
    uint64_t most = s->max_bytes > fixed ? s->max_bytes - fixed : 0;
    if (s->max_bytes && bytes > most)
        return no_room(s, bytes, most, false, e);
    if (r->disk < UINT64_MAX - r->loose && bytes > r->disk + r->loose)
        return no_room(s, bytes, r->disk + r->loose, true, e);
    return 0;
}

static int sweep(struct model_store *s, const uint8_t *self, uint64_t bytes,
                 struct model_store_entry *list, size_t n, struct model_store_swept *out,
                 struct err *e)
{
    const uint64_t now = (uint64_t)time(NULL);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (list[i].incoming && !list[i].pinned && list[i].used_s + STALE_S < now)
            drop(s, &list[i], out);
        else
            list[kept++] = list[i];
    struct room r = measure(s, self, list, kept);
    int rc = check_room(s, &r, bytes, e);
    for (size_t i = kept; rc == 0 && i-- > 0;) {
        const struct model_store_entry *x = &list[i];
        uint64_t before = out->bytes;
        if ((!s->max_bytes || r.used + bytes <= s->max_bytes) && bytes <= r.disk)
            break;
        if (x->incoming || x->pinned || x->n_names)
            continue;
        drop(s, x, out);
        r.used -= out->bytes - before;
        r.disk = model_store_disk_free(s);
    }
    return rc;
}

int model_store_sweep(struct model_store *s, const uint8_t *self, uint64_t bytes,
                      struct model_store_swept *out, struct err *e)
{
    struct model_store_entry *list = NULL;
    size_t n = 0;
    int lock = store_lock(s->dir, e);
    *out = (struct model_store_swept){0};
    if (lock < 0)
        return lock;
    int rc = model_store_list(s, &list, &n, e);
    if (rc == 0)
        rc = sweep(s, self, bytes, list, n, out, e);
    mem_free(list);
    close(lock);
    return rc;
}

// Seconds since the model was last used.  A time ahead of the clock is now: the file system's clock
// may be a tick before time(), and a clock may have been set back since.
static uint64_t unused_s(const struct model_store_entry *x, uint64_t now)
{
    return x->used_s < now ? now - x->used_s : 0;
}

int model_store_gc(struct model_store *s, uint32_t spare_s, struct model_store_swept *out,
                   struct err *e)
{
    const uint64_t now = (uint64_t)time(NULL);
    struct model_store_entry *list = NULL;
    size_t n = 0;
    int lock = store_lock(s->dir, e);
    *out = (struct model_store_swept){0};
    if (lock < 0)
        return lock;
    int rc = model_store_list(s, &list, &n, e);
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (!list[i].pinned && list[i].n_names == 0 && unused_s(&list[i], now) >= spare_s)
            drop(s, &list[i], out);
    mem_free(list);
    close(lock);
    return rc;
}
