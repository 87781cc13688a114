/* model_signing.c - see model_signing.h. */
#include "supply/model_signing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "host/identity.h"
#include "supply/sign_key.h"

#define MAX_DEPTH 32u
#define BLOCK_BYTES ((size_t)1 << 18)

/* ---- the files of a model ---- */

struct tree {
    struct oms_bundle *b; /* gets the files */
    uint32_t cap;
    dev_t skip_dev; /* of the signature */
    ino_t skip_ino;
    bool skips;
    uint8_t *block;
    size_t name_at;
    char path[PATH_MAX];
};

static bool is_ignored(const struct oms_bundle *b, const char *name)
{
    for (uint32_t i = 0; i < b->n_ignored; i++) {
        size_t n = strlen(b->ignored[i]);
        if (strncmp(name, b->ignored[i], n) == 0 && (name[n] == 0 || name[n] == '/'))
            return true;
    }
    return false;
}

static int hash_file(struct tree *t, uint8_t sum[SHA256_BYTES], struct err *e)
{
    struct sha256 s;
    ssize_t got = 0;
    int rc = 0, fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", t->path, strerror(errno));
    sha256_begin(&s);
    while ((got = read(fd, t->block, BLOCK_BYTES)) > 0)
        sha256_add(&s, t->block, (size_t)got);
    if (got < 0)
        rc = err_set(e, SHOAL_EIO, "cannot read %s: %s", t->path, strerror(errno));
    if (!sha256_end(&s, sum) && rc == 0)
        rc = err_set(e, SHOAL_ENOMEM, "cannot compute SHA-256");
    close(fd);
    return rc;
}

static int add_file(struct tree *t, const char *name, struct err *e)
{
    struct oms_bundle *b = t->b;
    if (strcmp(name, OMS_SINGLE) != 0 && !oms_name_ok(name))
        return err_set(e, SHOAL_EINVAL,
                       "%s: a name in a model must be UTF-8 without control characters", t->path);
    if (b->n_files == OMS_MAX_FILES)
        return err_set(e, SHOAL_ELIMIT, "the model has more than %u files", OMS_MAX_FILES);
    if (b->n_files == t->cap) {
        uint32_t cap = t->cap ? 2 * t->cap : 64;
        struct oms_file *more = arena_zalloc_n(&b->arena, cap, sizeof(*more));
        if (!more)
            return err_set(e, b->arena.rc, "the files of a model");
        if (t->cap)
            memcpy(more, b->files, t->cap * sizeof(*more));
        b->files = more;
        t->cap = cap;
    }
    struct oms_file *f = &b->files[b->n_files++];
    f->name = arena_copy(&b->arena, name, strlen(name) + 1);
    return f->name ? hash_file(t, f->sum, e) : err_set(e, b->arena.rc, "the files of a model");
}

static int add_folder(struct tree *t, size_t len, unsigned depth, struct err *e);

static int add_entry(struct tree *t, size_t len, const char *entry, unsigned depth, struct err *e)
{
    struct stat st;
    int n = snprintf(t->path + len, sizeof(t->path) - len, "/%s", entry);
    if (n < 0 || len + (size_t)n >= sizeof(t->path))
        return err_set(e, SHOAL_ELIMIT, "a path in the model is too long");
    const char *name = t->path + t->name_at;
    if (is_ignored(t->b, name))
        return 0;
    if (lstat(t->path, &st) < 0)
        return err_set(e, SHOAL_EIO, "cannot read %s: %s", t->path, strerror(errno));
    if (t->skips && st.st_dev == t->skip_dev && st.st_ino == t->skip_ino && st.st_nlink == 1)
        return 0;
    if (S_ISDIR(st.st_mode) && depth < MAX_DEPTH)
        return add_folder(t, len + (size_t)n, depth + 1, e);
    if (S_ISREG(st.st_mode))
        return add_file(t, name, e);
    return err_set(e, SHOAL_EINVAL,
                   "%s is %s: a signed model has regular files only; replace it by a copy", t->path,
                   S_ISLNK(st.st_mode)   ? "a symbolic link"
                   : S_ISDIR(st.st_mode) ? "a folder too deep"
                                         : "not a regular file");
}

static int add_folder(struct tree *t, size_t len, unsigned depth, struct err *e)
{
    DIR *d = opendir(t->path);
    int rc = 0;
    if (!d)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", t->path, strerror(errno));
    for (struct dirent *at; rc == 0 && (at = readdir(d));)
        if (strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0) {
            rc = add_entry(t, len, at->d_name, depth, e);
            t->path[len] = 0;
        }
    closedir(d);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return oms_compare_names(((const struct oms_file *)a)->name,
                             ((const struct oms_file *)b)->name);
}

/* Fills the files of b, whose ignored paths are set, and its name. */
static int add_all(struct oms_bundle *b, const char *path, const char *signature, struct err *e)
{
    struct stat st;
    struct tree *t = mem_zalloc(sizeof(*t));
    int rc = 0;
    if (!t || !(t->block = mem_alloc(BLOCK_BYTES))) {
        mem_free(t);
        return err_set(e, SHOAL_ENOMEM, "the files of a model");
    }
    t->b = b;
    if (!realpath(path, t->path) || stat(t->path, &st) < 0)
        rc = err_set(e, errno == ENOENT ? SHOAL_ENOTFOUND : SHOAL_EIO, "cannot open %s: %s", path,
                     strerror(errno));
    if (rc == 0) {
        const char *slash = strrchr(t->path, '/');
        b->model = arena_copy(&b->arena, slash + 1, strlen(slash + 1) + 1);
        t->name_at = strlen(t->path) + 1;
        rc = !b->model              ? err_set(e, b->arena.rc, "a name")
             : S_ISREG(st.st_mode)  ? add_file(t, OMS_SINGLE, e)
             : !S_ISDIR(st.st_mode) ? err_set(e, SHOAL_EINVAL, "%s is no file or folder", path)
                                    : 1;
    }
    if (rc > 0) {
        t->skips = signature && stat(signature, &st) == 0;
        t->skip_dev = st.st_dev;
        t->skip_ino = st.st_ino;
        rc = add_folder(t, t->name_at - 1, 0, e);
        if (rc == 0 && b->n_files == 0)
            rc = err_set(e, SHOAL_EINVAL, "%s has no files", path);
    }
    if (rc == 0)
        qsort(b->files, b->n_files, sizeof(b->files[0]), by_name);
    mem_free(t->block);
    mem_free(t);
    return rc;
}

/* ---- signing ---- */

static int add_certificates(struct oms_bundle *b, const char *path, EVP_PKEY *key, struct err *e)
{
    BIO *bio = BIO_new_file(path, "r");
    uint32_t n = b->n_certificates;
    X509 *c = NULL;
    int rc = bio ? 0 : err_set(e, SHOAL_EIO, "cannot open %s", path);
    while (rc == 0 && (c = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
        int bytes = i2d_X509(c, NULL);
        unsigned char *der =
                          bytes > 0 ? (unsigned char *)arena_bytes(&b->arena, (size_t)bytes) : NULL,
                      *to = der;
        if (b->n_certificates == OMS_MAX_CERTIFICATES)
            rc = err_set(e, SHOAL_ELIMIT, "more than %u certificates", OMS_MAX_CERTIFICATES);
        else if (!der || i2d_X509(c, &to) != bytes)
            rc = err_set(e, SHOAL_ENOMEM, "a certificate");
        else if (b->n_certificates == 0 && EVP_PKEY_eq(X509_get0_pubkey(c), key) != 1)
            rc = err_set(e, SHOAL_EINVAL, "the certificate in %s is not that of the key", path);
        else
            b->certificates[b->n_certificates++] = (struct oms_bytes){der, (size_t)bytes};
        X509_free(c);
    }
    BIO_free(bio);
    if (rc == 0 && b->n_certificates == n)
        rc = err_set(e, SHOAL_EINVAL, "%s has no certificate in PEM form", path);
    char ignored[8];
    sign_key_reason(ignored, sizeof(ignored)); /* the end of the file is an error */
    return rc;
}

static int name_signer(struct oms_bundle *b, const struct model_signing_opts *o, EVP_PKEY *key,
                       struct err *e)
{
    char hint[SIGN_KEY_HINT];
    if (o->certificate) {
        int rc = add_certificates(b, o->certificate, key, e);
        for (uint32_t i = 0; rc == 0 && i < o->n_intermediate; i++)
            rc = add_certificates(b, o->intermediate[i], key, e);
        return rc;
    }
    sign_key_hint(hint, key);
    b->hint = arena_copy(&b->arena, hint, strlen(hint) + 1);
    return b->hint && hint[0] ? 0 : err_set(e, SHOAL_ENOMEM, "a key");
}

static int make_bundle(struct buf *out, struct oms_bundle *b, EVP_PKEY *key, struct err *e)
{
    struct buf payload, text, sig;
    buf_init(&payload, OMS_MAX_BYTES / 2);
    buf_init(&text, OMS_MAX_BYTES);
    buf_init(&sig, 4096);
    int rc = oms_bundle_statement(&payload, b, e);
    b->payload = (struct oms_bytes){(const uint8_t *)buf_str(&payload), payload.len};
    if (rc == 0)
        oms_bundle_signed(&text, b);
    if (rc == 0 && text.rc)
        rc = err_set(e, text.rc, "a signature");
    if (rc == 0)
        rc = sign_key_sign(&sig, key, &text, e);
    b->signature = (struct oms_bytes){(const uint8_t *)buf_str(&sig), sig.len};
    if (rc == 0)
        oms_bundle_write(out, b);
    if (rc == 0 && out->rc)
        rc = err_set(e, out->rc, "a signature");
    buf_fini(&sig);
    buf_fini(&text);
    buf_fini(&payload);
    return rc;
}

int model_signing_sign(struct buf *out, const struct model_signing_opts *o, uint32_t *n_files,
                       struct err *e)
{
    static const char *const ignored[] = {".git", ".gitattributes", ".github", ".gitignore",
                                          MODEL_SIGNING_FILE};
    struct oms_bundle b;
    EVP_PKEY *key = NULL;
    oms_bundle_init(&b);
    while (b.n_ignored < sizeof(ignored) / sizeof(ignored[0])) {
        b.ignored[b.n_ignored] = ignored[b.n_ignored];
        b.n_ignored++;
    }
    int rc = sign_key_private(&key, o->key, e);
    if (rc == 0)
        rc = name_signer(&b, o, key, e);
    if (rc == 0)
        rc = add_all(&b, o->path, o->out, e);
    if (rc == 0)
        rc = make_bundle(out, &b, key, e);
    *n_files = b.n_files;
    EVP_PKEY_free(key);
    oms_bundle_fini(&b);
    return rc;
}

/* ---- comparing ---- */

void model_signing_report_init(struct model_signing_report *r)
{
    *r = (struct model_signing_report){.n_checked = 0};
    arena_init(&r->arena, (size_t)1 << 20);
}

void model_signing_report_fini(struct model_signing_report *r)
{
    arena_fini(&r->arena);
}

const char *model_signing_change_name(enum model_signing_change c)
{
    static const char *const names[] = {"changed", "missing", "not signed"};
    return names[c];
}

static void differs(struct model_signing_report *r, enum model_signing_change c, const char *name)
{
    const uint32_t i = r->n_differences++;
    if (i < MODEL_SIGNING_MAX_SHOWN) {
        const char *copy = arena_copy(&r->arena, name, strlen(name) + 1);
        r->shown[i].change = c;
        r->shown[i].name = copy ? copy : "";
    }
}

static void one_file(struct model_signing_report *r, const struct oms_bundle *b, const char *name,
                     const uint8_t sum[SHA256_BYTES])
{
    const struct oms_file *f = oms_bundle_find(b, name);
    r->n_checked++;
    if (!f)
        differs(r, MODEL_SIGNING_EXTRA, name);
    else if (memcmp(f->sum, sum, SHA256_BYTES) != 0)
        differs(r, MODEL_SIGNING_CHANGED, name);
}

static int verdict(const struct model_signing_report *r, struct err *e)
{
    struct buf b;
    if (r->n_differences == 0)
        return 0;
    buf_init(&b, 4096);
    for (uint32_t i = 0; i < r->n_differences && i < 3; i++)
        buf_printf(&b, "%s%.80s: %s", i ? ", " : "", r->shown[i].name,
                   model_signing_change_name(r->shown[i].change));
    if (r->n_differences > 3)
        buf_printf(&b, ", and %u more", r->n_differences - 3);
    int rc = err_set(e, SHOAL_EFORMAT, "the model is not what was signed: %s", buf_str(&b));
    buf_fini(&b);
    return rc;
}

int model_signing_compare(struct model_signing_report *r, const struct oms_bundle *b,
                          const char *path, const char *signature, struct err *e)
{
    struct oms_bundle now;
    oms_bundle_init(&now);
    memcpy(now.ignored, b->ignored, sizeof(now.ignored));
    now.n_ignored = b->n_ignored;
    int rc = add_all(&now, path, signature, e);
    for (uint32_t i = 0; rc == 0 && i < now.n_files; i++)
        one_file(r, b, now.files[i].name, now.files[i].sum);
    for (uint32_t i = 0; rc == 0 && i < b->n_files; i++)
        if (!oms_bundle_find(&now, b->files[i].name))
            differs(r, MODEL_SIGNING_MISSING, b->files[i].name);
    oms_bundle_fini(&now);
    return rc < 0 ? rc : verdict(r, e);
}

/* The folder, with its slash, of the files beside "../config.json": the one that has the first. */
static void find_below(char *out, size_t cap, const struct oms_bundle *b, const char *name)
{
    out[0] = 0;
    for (uint32_t i = 0; i < b->n_files; i++) {
        const char *slash = strchr(b->files[i].name, '/');
        if (slash && strcmp(slash + 1, name) == 0) {
            snprintf(out, cap, "%.*s", (int)(slash + 1 - b->files[i].name), b->files[i].name);
            return;
        }
    }
}

static const char *signed_name(char *out, size_t cap, const char *below, const char *name)
{
    snprintf(out, cap, "%s%s", strncmp(name, "../", 3) == 0 ? "" : below,
             strncmp(name, "../", 3) == 0 ? name + 3 : name);
    return out;
}

/* The files of the model under the names that were signed, and whether a setting is missing. */
static void compare_folder(struct model_signing_report *r, const struct oms_bundle *b,
                           const struct identity_list *l)
{
    char below[256] = "", name[PATH_MAX];
    const uint32_t n = identity_list_n(l);
    struct identity_file f;
    bool above = false;
    for (uint32_t i = 0; i < n; i++) {
        identity_list_file(l, i, &f);
        above = above || strncmp(f.name, "../", 3) == 0;
    }
    for (uint32_t i = 0; above && i < n && !below[0]; i++) {
        identity_list_file(l, i, &f);
        if (strncmp(f.name, "../", 3) != 0)
            find_below(below, sizeof(below), b, f.name);
    }
    for (uint32_t i = 0; i < n; i++) {
        identity_list_file(l, i, &f);
        one_file(r, b, signed_name(name, sizeof(name), below, f.name), f.sum);
    }
    for (uint32_t k = 0; k < b->n_files; k++) {
        bool there = strchr(b->files[k].name, '/') || !identity_is_setting(b->files[k].name);
        for (uint32_t i = 0; i < n && !there; i++) {
            identity_list_file(l, i, &f);
            there = strcmp(signed_name(name, sizeof(name), below, f.name), b->files[k].name) == 0;
        }
        if (!there)
            differs(r, MODEL_SIGNING_MISSING, b->files[k].name);
    }
}

int model_signing_compare_read(struct model_signing_report *r, const struct oms_bundle *b,
                               const struct identity_list *l, struct err *e)
{
    struct identity_file f;
    if (identity_list_is_folder(l)) {
        compare_folder(r, b, l);
        return verdict(r, e);
    }
    identity_list_file(l, 0, &f);
    r->n_checked = 1;
    for (uint32_t i = 0; i < b->n_files; i++)
        if (memcmp(b->files[i].sum, f.sum, SHA256_BYTES) == 0)
            return 0;
    const char *slash = f.path ? strrchr(f.path, '/') : NULL;
    differs(r, MODEL_SIGNING_CHANGED, slash ? slash + 1 : b->model);
    return verdict(r, e);
}
