/* model_profiles.c - see model_profiles.h. */
#include "gateway/api/model_profiles.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "base/file/file_open.h"
#include "base/file/file_read.h"
#include "base/file/file_replace.h"
#include "base/log.h"
#include "base/mem.h"
#include "flow/request.h"
#include "host/sha256.h"
#include "wire/json_out.h"

#define MAX_MANIFEST_BYTES ((size_t)4 << 20)
#define MAX_NAME_BYTES 128u
#define COPY_BYTES ((size_t)1 << 20)
#define N_TEXTS 7u

struct kept {
    struct model_profile profile; /* first; its texts are in the block */
    struct kept *next;
    uint32_t refs; /* the store's own is one of them */
};

struct model_profiles {
    pthread_mutex_t lock;
    char *dir;
    struct kept *all;
};

/* The texts of a profile, in the order of their names. */
static const char *const text_names[N_TEXTS] = {"name",     "path",       "from",   "system",
                                                "template", "parameters", "license"};

static void texts_of(const struct model_profile *p, const char *out[N_TEXTS])
{
    const char *texts[N_TEXTS] = {p->name,     p->path,       p->from,   p->system,
                                  p->template, p->parameters, p->license};
    memcpy(out, texts, sizeof(texts));
}

static struct model_profile profile_of(const char *const texts[N_TEXTS])
{
    return (struct model_profile){texts[0], texts[1], texts[2], texts[3],
                                  texts[4], texts[5], texts[6]};
}

/* A copy in one block; NULL: out of memory. */
static struct kept *copy_profile(const struct model_profile *p)
{
    const char *texts[N_TEXTS], *copies[N_TEXTS];
    size_t n = sizeof(struct kept);
    texts_of(p, texts);
    for (size_t i = 0; i < N_TEXTS; i++)
        n += texts[i] ? strlen(texts[i]) + 1 : 0;
    struct kept *k = mem_zalloc(n);
    if (!k)
        return NULL;
    char *at = (char *)(k + 1);
    for (size_t i = 0; i < N_TEXTS; i++) {
        copies[i] = texts[i] ? at : NULL;
        if (!texts[i])
            continue;
        size_t bytes = strlen(texts[i]) + 1;
        memcpy(at, texts[i], bytes);
        at += bytes;
    }
    k->profile = profile_of(copies);
    k->refs = 1;
    return k;
}

static void unref(struct kept *k)
{
    if (--k->refs == 0)
        mem_free(k);
}

/* ---- names and folders ---- */

bool model_profiles_is_name(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/-");
    return n > 0 && n <= MAX_NAME_BYTES && name[n] == '\0' && name[0] != '.' && name[0] != '/' &&
           name[n - 1] != '/' && !strstr(name, "..") && !strstr(name, "//");
}

/* DIR/models/NAME.json, with '/' and ':' as '%2f' and '%3a'. */
static bool manifest_path(const struct model_profiles *s, const char *name, char path[PATH_MAX])
{
    char file[3 * MAX_NAME_BYTES + 1];
    size_t n = 0;
    for (const char *p = name; *p && n + 4 < sizeof(file); p++) {
        if (*p == '/' || *p == ':')
            n += (size_t)snprintf(file + n, 4, *p == '/' ? "%%2f" : "%%3a");
        else
            file[n++] = *p;
    }
    file[n] = '\0';
    int k = snprintf(path, PATH_MAX, "%s/models/%s.json", s->dir, file);
    return k > 0 && k < PATH_MAX;
}

/* Makes DIR and a folder in it. */
static int make_folder(const struct model_profiles *s, const char *name, struct err *e)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", s->dir, name);
    if (n < 0 || n >= PATH_MAX)
        return err_set(e, SHOAL_EINVAL, "the path of %s is too long", s->dir);
    for (char *p = path + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            if (mkdir(path, 0755) < 0 && errno != EEXIST)
                return err_set(e, SHOAL_EIO, "cannot create the folder %s: %s", path,
                               strerror(errno));
            *p = '/';
        }
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return err_set(e, SHOAL_EIO, "cannot create the folder %s: %s", path, strerror(errno));
    return 0;
}

/* ---- profiles ---- */

static int read_manifest(struct model_profiles *s, const char *path, struct err *e)
{
    const char *texts[N_TEXTS];
    struct buf text;
    buf_init(&text, MAX_MANIFEST_BYTES);
    int rc = file_read(path, &text, e);
    cJSON *json = rc == 0 ? cJSON_ParseWithLength(buf_str(&text), text.len) : NULL;
    for (size_t i = 0; i < N_TEXTS; i++)
        texts[i] = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, text_names[i]));
    const struct model_profile p = profile_of(texts);
    struct kept *k = NULL;
    if (rc == 0 && (!p.name || !p.path || !model_profiles_is_name(p.name)))
        rc = err_set(e, SHOAL_EFORMAT, "%s describes no model", path);
    if (rc == 0 && !(k = copy_profile(&p)))
        rc = err_set(e, SHOAL_ENOMEM, "out of memory");
    if (k) {
        k->next = s->all;
        s->all = k;
    }
    cJSON_Delete(json);
    buf_fini(&text);
    return rc;
}

int model_profiles_open(struct model_profiles **out, const char *dir, struct err *e)
{
    struct model_profiles *s = mem_zalloc(sizeof(*s));
    char path[PATH_MAX];
    *out = NULL;
    if (s)
        s->dir = mem_strdup(dir);
    if (!s || !s->dir) {
        mem_free(s);
        return err_set(e, SHOAL_ENOMEM, "out of memory");
    }
    pthread_mutex_init(&s->lock, NULL);
    snprintf(path, sizeof(path), "%s/models", dir);
    DIR *d = opendir(path);
    for (struct dirent *x; d && (x = readdir(d));) {
        size_t n = strlen(x->d_name);
        char file[PATH_MAX];
        struct err why = {0};
        if (n < 6 || strcmp(x->d_name + n - 5, ".json") != 0 ||
            snprintf(file, sizeof(file), "%s/models/%s", dir, x->d_name) >= PATH_MAX)
            continue;
        if (read_manifest(s, file, &why) < 0)
            log_warn("ollama", "cannot read a model, it is skipped: %s", why.msg);
    }
    if (d)
        closedir(d);
    *out = s;
    return 0;
}

void model_profiles_close(struct model_profiles *s)
{
    if (!s)
        return;
    for (struct kept *k = s->all, *next; k; k = next) {
        next = k->next;
        unref(k);
    }
    pthread_mutex_destroy(&s->lock);
    mem_free(s->dir);
    mem_free(s);
}

void model_profiles_each(struct model_profiles *s,
                         void (*fn)(void *ctx, const struct model_profile *p), void *ctx)
{
    pthread_mutex_lock(&s->lock);
    for (struct kept *k = s->all; k; k = k->next)
        fn(ctx, &k->profile);
    pthread_mutex_unlock(&s->lock);
}

/* With the lock: the place of a profile, or of the end. */
static struct kept **find(struct model_profiles *s, const char *name)
{
    struct kept **at = &s->all;
    while (*at && strcmp((*at)->profile.name, name) != 0)
        at = &(*at)->next;
    return at;
}

const struct model_profile *model_profiles_get(struct model_profiles *s, const char *name)
{
    pthread_mutex_lock(&s->lock);
    struct kept *k = *find(s, name);
    if (k)
        k->refs++;
    pthread_mutex_unlock(&s->lock);
    return k ? &k->profile : NULL;
}

void model_profiles_unref(struct model_profiles *s, const struct model_profile *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&s->lock);
    unref((struct kept *)(uintptr_t)p); /* its first member */
    pthread_mutex_unlock(&s->lock);
}

static int write_manifest(const struct model_profiles *s, const struct model_profile *p,
                          struct err *e)
{
    const char *texts[N_TEXTS];
    char path[PATH_MAX];
    struct buf b;
    texts_of(p, texts);
    if (!manifest_path(s, p->name, path))
        return err_set(e, SHOAL_EINVAL, "the path of %s is too long", s->dir);
    buf_init(&b, MAX_MANIFEST_BYTES);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    for (size_t i = 0; i < N_TEXTS; i++)
        if (texts[i])
            json_out_member_str(&j, text_names[i], texts[i]);
    json_out_object_end(&j);
    buf_putc(&b, '\n');
    int rc = b.rc < 0 ? err_set(e, b.rc, "the model's description is too large") : 0;
    if (rc == 0)
        rc = file_replace(path, buf_str(&b), b.len, e);
    buf_fini(&b);
    return rc;
}

int model_profiles_put(struct model_profiles *s, const struct model_profile *p, struct err *e)
{
    if (!model_profiles_is_name(p->name))
        return err_set(e, SHOAL_EINVAL, "'%.64s' cannot be the name of a model", p->name);
    struct kept *k = copy_profile(p);
    int rc = k ? make_folder(s, "models", e) : err_set(e, SHOAL_ENOMEM, "out of memory");
    if (rc == 0)
        rc = write_manifest(s, p, e);
    if (rc < 0) {
        mem_free(k);
        return rc;
    }
    pthread_mutex_lock(&s->lock);
    struct kept **at = find(s, p->name), *old = *at;
    k->next = old ? old->next : NULL;
    *at = k;
    if (old)
        unref(old);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

int model_profiles_remove(struct model_profiles *s, const char *name, struct err *e)
{
    char path[PATH_MAX], blobs[PATH_MAX];
    pthread_mutex_lock(&s->lock);
    struct kept **at = find(s, name), *k = *at;
    if (k)
        *at = k->next;
    bool shared = false;
    for (struct kept *o = s->all; k && o; o = o->next)
        shared |= strcmp(o->profile.path, k->profile.path) == 0;
    pthread_mutex_unlock(&s->lock);
    if (!k)
        return err_set(e, SHOAL_ENOTFOUND, "model '%.64s' not found", name);
    int rc = 0;
    if (manifest_path(s, name, path) && unlink(path) < 0 && errno != ENOENT)
        rc = err_set(e, SHOAL_EIO, "cannot remove %s: %s", path, strerror(errno));
    int n = snprintf(blobs, sizeof(blobs), "%s/blobs/", s->dir);
    if (!shared && n > 0 && n < PATH_MAX && strncmp(k->profile.path, blobs, (size_t)n) == 0)
        unlink(k->profile.path); /* engines that have it open are unaffected */
    model_profiles_unref(s, &k->profile);
    return rc;
}

/* ---- blobs ---- */

/* "sha256:HEX" or "sha256-HEX" */
static int blob_path(const struct model_profiles *s, const char *digest, uint8_t sum[SHA256_BYTES],
                     char path[PATH_MAX], struct err *e)
{
    char hex[2 * SHA256_BYTES + 1];
    if (strlen(digest) != 7 + 2 * SHA256_BYTES || strncmp(digest, "sha256", 6) != 0 ||
        (digest[6] != ':' && digest[6] != '-') || !sha256_read_hex(sum, digest + 7))
        return err_set(e, SHOAL_EINVAL, "the digest must be sha256: and 64 hex digits");
    sha256_hex(hex, sum);
    int n = snprintf(path, PATH_MAX, "%s/blobs/sha256-%s", s->dir, hex);
    return n > 0 && n < PATH_MAX ? 0 : err_set(e, SHOAL_EINVAL, "the path is too long");
}

int model_profiles_find_blob(struct model_profiles *s, const char *digest, char path[PATH_MAX],
                             struct err *e)
{
    uint8_t sum[SHA256_BYTES];
    struct stat st;
    int rc = blob_path(s, digest, sum, path, e);
    if (rc < 0)
        return rc;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, SHOAL_ENOTFOUND, "there is no blob %.80s: send it to /api/blobs first",
                       digest);
    return 0;
}

int model_profiles_place_blob(struct model_profiles *s, const char *digest, char path[PATH_MAX],
                              struct err *e)
{
    uint8_t sum[SHA256_BYTES];
    int rc = blob_path(s, digest, sum, path, e);
    return rc < 0 ? rc : make_folder(s, "blobs", e);
}

int model_profiles_put_blob(struct model_profiles *s, const char *digest, const void *data,
                            size_t n, struct err *e)
{
    uint8_t want[SHA256_BYTES], got[SHA256_BYTES];
    char path[PATH_MAX];
    struct sha256 h;
    int rc = blob_path(s, digest, want, path, e);
    if (rc < 0)
        return rc;
    sha256_begin(&h);
    sha256_add(&h, data, n);
    if (!sha256_end(&h, got))
        return err_set(e, SHOAL_ENOMEM, "out of memory");
    if (memcmp(want, got, sizeof(got)) != 0)
        return err_set(e, SHOAL_EFORMAT, "the bytes do not have the digest %.80s", digest);
    rc = make_folder(s, "blobs", e);
    return rc < 0 ? rc : file_replace(path, data, n, e);
}

/* Copies the rest of a file and hashes it. */
static int copy_bytes(int from, int to, uint8_t sum[SHA256_BYTES], uint64_t *bytes, struct err *e)
{
    char *block = mem_alloc(COPY_BYTES);
    struct sha256 h;
    int rc = block ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory");
    *bytes = 0;
    sha256_begin(&h);
    while (rc == 0) {
        ssize_t n = read(from, block, COPY_BYTES);
        if (n < 0)
            rc = err_set(e, SHOAL_EIO, "cannot read the model: %s", strerror(errno));
        if (n <= 0)
            break;
        sha256_add(&h, block, (size_t)n);
        for (ssize_t at = 0; at < n && rc == 0;) {
            ssize_t k = write(to, block + at, (size_t)(n - at));
            if (k <= 0)
                rc = err_set(e, SHOAL_EIO, "cannot write the copy: %s", strerror(errno));
            at += k > 0 ? k : 0;
        }
        *bytes += (uint64_t)n;
    }
    if (!sha256_end(&h, sum) && rc == 0)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory");
    mem_free(block);
    return rc;
}

/* Copies to a temporary file beside the destination; temp is its path. */
static int copy_file(const char *from, const char *to, char temp[PATH_MAX],
                     uint8_t sum[SHA256_BYTES], uint64_t *bytes, struct err *e)
{
    int n = snprintf(temp, PATH_MAX, "%s.XXXXXX", to);
    int in = file_open_regular(from, NULL), out = -1, rc = 0;
    if (in < 0)
        rc = err_set(e, SHOAL_EIO, "cannot open %s: %s", from, file_open_reason(errno));
    else if (n < 0 || n >= PATH_MAX || (out = mkostemp(temp, O_CLOEXEC)) < 0)
        rc = err_set(e, SHOAL_EIO, "cannot write beside %s: %s", to, strerror(errno));
    if (rc == 0)
        rc = copy_bytes(in, out, sum, bytes, e);
    if (rc == 0 && (fchmod(out, 0644) < 0 || fsync(out) < 0))
        rc = err_set(e, SHOAL_EIO, "cannot write %s: %s", temp, strerror(errno));
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    if (rc < 0 && out >= 0)
        unlink(temp);
    return rc;
}

static int rename_file(const char *temp, const char *to, struct err *e)
{
    if (rename(temp, to) == 0)
        return 0;
    int rc = err_set(e, SHOAL_EIO, "cannot rename %s: %s", temp, strerror(errno));
    unlink(temp);
    return rc;
}

int model_profiles_take_file(struct model_profiles *s, const char *from,
                             char digest[MODEL_PROFILES_DIGEST_BYTES], uint64_t *bytes,
                             char path[PATH_MAX], struct err *e)
{
    uint8_t sum[SHA256_BYTES];
    char temp[PATH_MAX], hex[2 * SHA256_BYTES + 1];
    int rc = make_folder(s, "blobs", e);
    snprintf(path, PATH_MAX, "%.4000s/blobs/incoming", s->dir);
    if (rc == 0)
        rc = copy_file(from, path, temp, sum, bytes, e);
    if (rc < 0)
        return rc;
    sha256_hex(hex, sum);
    snprintf(digest, MODEL_PROFILES_DIGEST_BYTES, "sha256:%s", hex);
    rc = blob_path(s, digest, sum, path, e);
    return rc < 0 ? rc : rename_file(temp, path, e);
}

int model_profiles_copy_out(const char *from, const char *to, struct err *e)
{
    uint8_t sum[SHA256_BYTES];
    char temp[PATH_MAX];
    uint64_t bytes;
    int rc = copy_file(from, to, temp, sum, &bytes, e);
    return rc < 0 ? rc : rename_file(temp, to, e);
}

/* ---- using them ---- */

static bool has_system(const struct chat *chat)
{
    for (uint32_t i = 0; i < chat->n_messages; i++)
        if (strcmp(chat->messages[i].role, "system") == 0)
            return true;
    return false;
}

static void add_system(struct request *r, const char *text)
{
    struct chat *chat = &r->generate.chat;
    struct chat_message *all = arena_zalloc_n(&r->arena, chat->n_messages + 1u, sizeof(*all));
    if (!all)
        return; /* request_rc tells */
    all[0].role = "system";
    all[0].content = request_copy_utf8(r, text, strlen(text), &all[0].content_bytes);
    r->input_bytes += all[0].content_bytes;
    memcpy(all + 1, chat->messages, chat->n_messages * sizeof(*all));
    chat->messages = all;
    chat->n_messages++;
}

void model_profiles_apply(struct model_profiles *s, struct request *r)
{
    struct chat *chat = &r->generate.chat;
    if (!s || !r->model || chat->n_messages == 0)
        return;
    const struct model_profile *p = model_profiles_get(s, r->model);
    if (!p)
        return;
    if (p->system && p->system[0] && !has_system(chat))
        add_system(r, p->system);
    if (p->template && !chat->template)
        chat->template = request_copy_utf8(r, p->template, strlen(p->template), NULL);
    model_profiles_unref(s, p);
}
