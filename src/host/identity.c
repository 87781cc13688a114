/* identity.c - see identity.h. */
#include "host/identity.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file_open.h"
#include "base/mem.h"
#include "base/room.h"
#include "engine/onnx/onnx_files.h"
#include "host/hash_memo.h"
#include "host/pack.h"
#include "shoal/shoal.h"

#define MAX_FILES 4096u
#define MAX_DEPTH 4u
#define BLOCK_BYTES ((size_t)1 << 18)

struct file {
    char *path;
    size_t name_at; /* where the name within the model begins in path */
    struct stat st;
    uint8_t sum[SHA256_BYTES];
    bool known;
};

struct identity_list {
    struct file *files; /* sorted by name */
    uint32_t n, cap;
    bool folder;                  /* the hash is over names and hashes */
    struct identity_list **parts; /* [n_parts]: members of an average, which has no files itself */
    double *weights;              /* [n_parts] */
    uint32_t n_parts;
};

enum pick {
    PICK_ALL, /* the folder is the model, with all below it */
    /* for an .onnx file in a folder with its documents: all but other .onnx files */
    PICK_SIBLINGS,
    PICK_SAME_NAME, /* an .onnx file without a folder: files that begin with its name, such as its
                       data */
    PICK_DOCUMENTS, /* settings and tokenizer alone */
};

static const char *name_of(const struct file *f)
{
    return f->path + f->name_at;
}

/* ---- which files ---- */

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n >= k && strcasecmp(name + n - k, end) == 0;
}

/* Nothing that a model reads. */
static bool is_documentation(const char *name)
{
    static const char *const ends[] = {".md",   ".rst", ".html", ".png", ".jpg",
                                       ".jpeg", ".gif", ".svg",  ".pdf"};
    static const char *const names[] = {"LICENSE", "LICENCE", "NOTICE", "COPYING", "model.sig"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (ends_with(name, ends[i]))
            return true;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncasecmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static int add_file(struct identity_list *l, const char *path, size_t name_at,
                    const struct stat *st, struct err *e)
{
    if (l->n == MAX_FILES)
        return err_set(e, SHOAL_ELIMIT, "%s: more than %u files", path, MAX_FILES);
    if (!room_make32(&l->files, &l->cap, l->n, sizeof(*l->files), 16))
        return err_set(e, SHOAL_ENOMEM, "files of %s", path);
    struct file *f = &l->files[l->n];
    *f = (struct file){.path = mem_strdup(path), .name_at = name_at, .st = *st};
    if (!f->path)
        return err_set(e, SHOAL_ENOMEM, "files of %s", path);
    l->n++;
    return 0;
}

static bool is_document(const char *name)
{
    return ends_with(name, ".json") || ends_with(name, ".txt") || ends_with(name, ".model") ||
           ends_with(name, ".jinja");
}

bool identity_is_setting(const char *name)
{
    return name[0] != '.' && !is_documentation(name) && is_document(name);
}

/* only: the name of the requested .onnx file. */
static bool is_picked(enum pick pick, const char *only, const char *name)
{
    if (name[0] == '.' || is_documentation(name))
        return false;
    if (pick == PICK_ALL || strcmp(name, only) == 0)
        return true;
    if (ends_with(name, ".onnx"))
        return false;
    if (pick == PICK_SAME_NAME)
        return strncmp(name, only, strlen(only) - strlen(".onnx")) == 0;
    return pick == PICK_SIBLINGS || is_document(name);
}

struct walk {
    struct identity_list *list;
    enum pick pick;
    const char *only;
    size_t name_at;
    char path[PATH_MAX];
};

static int add_folder(struct walk *w, size_t len, unsigned depth, struct err *e)
{
    DIR *d = opendir(w->path);
    int rc = 0;
    if (!d)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", w->path, strerror(errno));
    for (struct dirent *at; rc == 0 && (at = readdir(d));) {
        struct stat st;
        if (!is_picked(w->pick, w->only, at->d_name))
            continue;
        int n = snprintf(w->path + len, sizeof(w->path) - len, "/%s", at->d_name);
        if (n < 0 || len + (size_t)n >= sizeof(w->path))
            rc = err_set(e, SHOAL_ELIMIT, "a path in %.*s is too long", (int)len, w->path);
        else if (stat(w->path, &st) < 0)
            rc = 0; /* a dangling link: unreadable */
        else if (S_ISDIR(st.st_mode) && w->pick == PICK_ALL && depth < MAX_DEPTH)
            rc = add_folder(w, len + (size_t)n, depth + 1, e);
        else if (S_ISREG(st.st_mode))
            rc = add_file(w->list, w->path, w->name_at, &st, e);
        w->path[len] = '\0';
    }
    closedir(d);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(name_of(a), name_of(b));
}

/* An .onnx file: settings, tokenizer and external weights are in its folder or one above. */
static int add_onnx(struct walk *w, const char *path, struct err *e)
{
    struct onnx_files onnx;
    const char *slash = strrchr(path, '/');
    int rc = onnx_files_find(&onnx, path, e);
    if (rc < 0)
        return rc;
    bool above = ends_with(onnx.folder, "/..");
    snprintf(w->path, sizeof(w->path), "%.*s", slash && slash > path ? (int)(slash - path) : 1,
             slash ? path : ".");
    size_t n = strlen(w->path);
    w->name_at = n + 1;
    w->only = slash ? slash + 1 : path;
    w->pick = onnx.folder[0] && !above ? PICK_SIBLINGS : PICK_SAME_NAME;
    w->list->folder = true;
    rc = add_folder(w, n, 0, e);
    if (rc < 0 || !above)
        return rc;
    snprintf(w->path + n, sizeof(w->path) - n, "/..");
    w->pick = PICK_DOCUMENTS;
    return add_folder(w, n + 3, 0, e);
}

static int add_all(struct walk *w, const char *path, struct err *e)
{
    struct stat st;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (stat(path, &st) < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", path, strerror(errno));
    if (n + 8 >= sizeof(w->path))
        return err_set(e, SHOAL_ELIMIT, "a path of %zu bytes is too long", n);
    if (!S_ISDIR(st.st_mode))
        return ends_with(path, ".onnx") ? add_onnx(w, path, e) : add_file(w->list, path, n, &st, e);
    memcpy(w->path, path, n);
    w->path[n] = '\0';
    w->name_at = n + 1;
    w->list->folder = true;
    return add_folder(w, n, 0, e);
}

int identity_list(struct identity_list **out, const char *path, struct err *e)
{
    struct walk w = {.list = mem_zalloc(sizeof(*w.list)), .pick = PICK_ALL};
    *out = NULL;
    if (!w.list)
        return err_set(e, SHOAL_ENOMEM, "files of %s", path);
    int rc = add_all(&w, path, e);
    if (rc == 0 && w.list->n == 0)
        rc = err_set(e, SHOAL_EIO, "%s holds no files", path);
    if (rc < 0) {
        identity_list_free(w.list);
        return rc;
    }
    qsort(w.list->files, w.list->n, sizeof(*w.list->files), by_name);
    *out = w.list;
    return 0;
}

int identity_list_join(struct identity_list **out, struct identity_list **parts,
                       const double *weights, uint32_t n, struct err *e)
{
    struct identity_list *l = mem_zalloc(sizeof(*l));
    *out = l;
    if (l) {
        l->parts = mem_zalloc_n(n, sizeof(struct identity_list *));
        l->weights = mem_zalloc_n(n, sizeof(*l->weights));
    }
    if (!l || !l->parts || !l->weights) {
        for (uint32_t i = 0; i < n; i++)
            identity_list_free(parts[i]);
        identity_list_free(l);
        *out = NULL;
        return err_set(e, SHOAL_ENOMEM, "files of %u models", n);
    }
    for (; l->n_parts < n; l->n_parts++) {
        l->parts[l->n_parts] = parts[l->n_parts];
        l->weights[l->n_parts] = weights[l->n_parts];
    }
    return 0;
}

void identity_list_free(struct identity_list *l)
{
    if (!l)
        return;
    for (uint32_t i = 0; i < l->n; i++)
        mem_free(l->files[i].path);
    for (uint32_t i = 0; i < l->n_parts; i++)
        identity_list_free(l->parts[i]);
    mem_free(l->parts);
    mem_free(l->weights);
    mem_free(l->files);
    mem_free(l);
}

uint32_t identity_list_n(const struct identity_list *l)
{
    return l->n;
}

bool identity_list_is_folder(const struct identity_list *l)
{
    return l->folder;
}

void identity_list_file(const struct identity_list *l, uint32_t i, struct identity_file *out)
{
    const struct file *f = &l->files[i];
    *out = (struct identity_file){
        .name = name_of(f), .path = f->path, .bytes = (uint64_t)f->st.st_size};
    memcpy(out->sum, f->sum, SHA256_BYTES);
}

uint64_t identity_list_time_s(const struct identity_list *l)
{
    uint64_t newest = 0;
    for (uint32_t i = 0; i < l->n; i++)
        if (l->files[i].st.st_mtim.tv_sec > (time_t)newest)
            newest = (uint64_t)l->files[i].st.st_mtim.tv_sec;
    for (uint32_t i = 0; i < l->n_parts; i++) {
        const uint64_t at = identity_list_time_s(l->parts[i]);
        newest = at > newest ? at : newest;
    }
    return newest;
}

/* ---- identities ---- */

static void add_u64(struct sha256 *s, uint64_t v)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(v >> (8 * i));
    sha256_add(s, bytes, sizeof(bytes));
}

static void add_text(struct sha256 *s, const char *text)
{
    add_u64(s, strlen(text));
    sha256_add(s, text, strlen(text));
}

/* of: the identity of each part, all of one kind. */
static bool join_sums(uint8_t out[SHA256_BYTES], const struct identity_list *l,
                      const struct identity *of)
{
    struct sha256 s;
    sha256_begin(&s);
    add_text(&s, "shoal average 1");
    for (uint32_t i = 0; i < l->n_parts; i++) {
        uint64_t weight;
        memcpy(&weight, &l->weights[i], sizeof(weight));
        add_u64(&s, weight);
        sha256_add(&s, of[i].sum, SHA256_BYTES);
    }
    return sha256_end(&s, out);
}

static struct identity local_of_parts(const struct identity_list *l)
{
    struct identity id = {.kind = IDENTITY_NONE}, of[SHOAL_MAX_AVERAGE];
    for (uint32_t i = 0; i < l->n_parts; i++)
        of[i] = identity_local(l->parts[i]);
    if (join_sums(id.sum, l, of))
        id.kind = IDENTITY_LOCAL;
    return id;
}

struct identity identity_local(const struct identity_list *l)
{
    struct identity id = {.kind = IDENTITY_NONE};
    struct sha256 s;
    if (l->n_parts > 0)
        return local_of_parts(l);
    sha256_begin(&s);
    add_text(&s, "shoal local identity 1");
    for (uint32_t i = 0; i < l->n; i++) {
        const struct stat *st = &l->files[i].st;
        const uint64_t what[] = {st->st_dev,
                                 st->st_ino,
                                 (uint64_t)st->st_size,
                                 (uint64_t)st->st_mtim.tv_sec,
                                 (uint64_t)st->st_mtim.tv_nsec,
                                 (uint64_t)st->st_ctim.tv_sec,
                                 (uint64_t)st->st_ctim.tv_nsec};
        add_text(&s, name_of(&l->files[i]));
        for (size_t k = 0; k < sizeof(what) / sizeof(what[0]); k++)
            add_u64(&s, what[k]);
    }
    if (sha256_end(&s, id.sum))
        id.kind = IDENTITY_LOCAL;
    return id;
}

static void folder_begin(struct sha256 *s)
{
    sha256_begin(s);
    add_text(s, "shoal folder 1");
}

static void folder_add(struct sha256 *s, const char *name, const uint8_t sum[SHA256_BYTES])
{
    add_text(s, name);
    sha256_add(s, sum, SHA256_BYTES);
}

/* ok: id->sum is the hash of the content. */
static void settle(struct identity *id, bool ok)
{
    char hex[2 * SHA256_BYTES + 1];
    if (!ok)
        return;
    id->kind = IDENTITY_CONTENT;
    sha256_hex(hex, id->sum);
    snprintf(id->version, sizeof(id->version), "fp_%.12s", hex);
}

/* All hashes are known. */
static struct identity content(const struct identity_list *l)
{
    struct identity id = {.kind = IDENTITY_NONE};
    bool ok = true;
    if (l->n_parts > 0) {
        struct identity of[SHOAL_MAX_AVERAGE];
        for (uint32_t i = 0; i < l->n_parts; i++)
            of[i] = content(l->parts[i]);
        ok = join_sums(id.sum, l, of);
    } else if (l->folder) {
        struct sha256 s;
        folder_begin(&s);
        for (uint32_t i = 0; i < l->n; i++)
            folder_add(&s, name_of(&l->files[i]), l->files[i].sum);
        ok = sha256_end(&s, id.sum);
    } else {
        memcpy(id.sum, l->files[0].sum, SHA256_BYTES);
    }
    settle(&id, ok);
    return id;
}

struct identity identity_of_folder(const struct identity_file *files, uint32_t n)
{
    struct identity id = {.kind = IDENTITY_NONE};
    struct sha256 s;
    folder_begin(&s);
    for (uint32_t i = 0; i < n; i++)
        folder_add(&s, files[i].name, files[i].sum);
    settle(&id, sha256_end(&s, id.sum));
    return id;
}

static bool in_manifest(const struct pack_model *verified, struct file *f)
{
    for (uint32_t i = 0; verified && i < verified->n_files; i++)
        if (strcmp(verified->files[i].path, f->path) == 0) {
            memcpy(f->sum, verified->files[i].sha256, SHA256_BYTES);
            return true;
        }
    return false;
}

struct identity identity_known(struct identity_list *l, const char *cache_dir,
                               const struct pack_model *verified)
{
    bool all = true;
    for (uint32_t i = 0; i < l->n_parts; i++)
        all &= identity_known(l->parts[i], cache_dir, verified).kind == IDENTITY_CONTENT;
    for (uint32_t i = 0; i < l->n; i++) {
        struct file *f = &l->files[i];
        f->known = f->known || in_manifest(verified, f) || hash_memo_get(cache_dir, &f->st, f->sum);
        all &= f->known;
    }
    return all ? content(l) : (struct identity){.kind = IDENTITY_NONE};
}

/* ---- reading ---- */

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static int read_file(struct file *f, uint8_t *block, const _Atomic bool *stop, struct err *e)
{
    struct stat before, after;
    struct sha256 s;
    ssize_t got = 0;
    int rc = 0, fd = file_open_regular(f->path, &before);
    if (fd < 0)
        rc = err_set(e, SHOAL_EIO, "cannot open %s: %s", f->path, file_open_reason(errno));
    sha256_begin(&s);
    while (rc == 0 && (got = read(fd, block, BLOCK_BYTES)) > 0) {
        sha256_add(&s, block, (size_t)got);
        if (atomic_load_explicit(stop, memory_order_relaxed))
            rc = err_set(e, SHOAL_ECANCELLED, "stopped");
    }
    if (rc == 0 && got < 0)
        rc = err_set(e, SHOAL_EIO, "cannot read %s: %s", f->path, strerror(errno));
    if (!sha256_end(&s, f->sum) && rc == 0)
        rc = err_set(e, SHOAL_ENOMEM, "cannot compute SHA-256");
    if (rc == 0 &&
        (fstat(fd, &after) < 0 || !same_file(&before, &f->st) || !same_file(&after, &f->st)))
        rc = err_set(e, SHOAL_EIO, "%s changed while it was read", f->path);
    if (fd >= 0)
        close(fd);
    return rc;
}

int identity_read(struct identity *out, struct identity_list *l, const char *cache_dir,
                  const _Atomic bool *stop, struct err *e)
{
    uint8_t *block = mem_alloc(BLOCK_BYTES);
    int rc = block ? 0 : err_set(e, SHOAL_ENOMEM, "hash");
    for (uint32_t i = 0; i < l->n_parts && rc == 0; i++)
        rc = identity_read(out, l->parts[i], cache_dir, stop, e);
    *out = (struct identity){.kind = IDENTITY_NONE};
    for (uint32_t i = 0; i < l->n && rc == 0; i++) {
        struct file *f = &l->files[i];
        if (f->known || (f->known = hash_memo_get(cache_dir, &f->st, f->sum)))
            continue;
        rc = read_file(f, block, stop, e);
        if (rc == 0) {
            f->known = true;
            hash_memo_put(cache_dir, &f->st, f->sum);
        }
    }
    mem_free(block);
    if (rc < 0)
        return rc;
    *out = content(l);
    return out->kind == IDENTITY_CONTENT ? 0 : err_set(e, SHOAL_ENOMEM, "cannot compute SHA-256");
}
