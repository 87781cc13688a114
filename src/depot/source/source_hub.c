/* source_hub.c - see source_hub.h. */
#include "depot/source/source_hub.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file_read.h"
#include "base/mem.h"
#include "depot/source/byte_sink.h"
#include "depot/source/hub_files.h"
#include "depot/source/web.h"
#include "depot/source/web_parallel.h"
#include "wire/json_in.h"

#define HUB "https://huggingface.co"
#define MAX_LIST_BYTES ((size_t)8 << 20)
#define MAX_SMALL_BYTES ((size_t)64 << 20) /* of a file outside of LFS */
#define MAX_ARENA_BYTES ((size_t)256 << 20)
#define MAX_TOKEN_BYTES 4096u
#define HINT                                                                                       \
    "it does not exist or needs a token: --token, $HF_TOKEN; a gated model also wants its terms "  \
    "accepted on its page"

struct source_hub {
    struct model_source source; /* first */
    const struct model_source_opts *o;
    struct web_opts web_opts;
    struct web *web;
    struct arena arena;
    struct hub_files files;
    const char **small; /* contents of the files outside of LFS; NULL: not one of them */
    char hub[512], repo[200], tag[130], revision[130];
    char token[MAX_TOKEN_BYTES];
};

/* ---- requests ---- */

static int get_text(struct source_hub *h, struct buf *url, const char *what, struct buf *out,
                    struct err *e)
{
    return url->rc < 0 ? err_set(e, url->rc, "the URL of the repository is too long")
                       : web_text(h->web, buf_str(url), NULL, what, HINT, out, e);
}

static void file_url(const struct source_hub *h, struct buf *url, const char *path)
{
    buf_printf(url, "%s/%s/resolve/%s/", h->hub, h->repo, h->revision);
    web_escape(url, path, "/");
}

/* The commit of the revision. */
static int get_revision(struct source_hub *h, struct err *e)
{
    struct buf url, body;
    cJSON *json = NULL;
    buf_init(&url, WEB_MAX_URL);
    buf_init(&body, MAX_LIST_BYTES);
    buf_printf(&url, "%s/api/models/%s/revision/", h->hub, h->repo);
    web_escape(&url, h->revision, "");
    int rc = get_text(h, &url, h->repo, &body, e);
    if (rc == 0)
        rc =
            json_in_object(&json, "answer of the hub", buf_str(&body), body.len, MAX_LIST_BYTES, e);
    const char *sha = cJSON_GetStringValue(json_in_item(json, "sha"));
    if (rc == 0 && (!sha || strlen(sha) != 40 || strspn(sha, "0123456789abcdef") != 40))
        rc = err_set(e, SHOAL_EFORMAT, "the hub names no commit of %s", h->repo);
    if (rc == 0)
        snprintf(h->revision, sizeof(h->revision), "%s", sha);
    cJSON_Delete(json);
    buf_fini(&body);
    buf_fini(&url);
    return rc;
}

static int get_files(struct source_hub *h, struct err *e)
{
    struct buf url, body;
    buf_init(&url, WEB_MAX_URL);
    buf_init(&body, MAX_LIST_BYTES);
    buf_printf(&url, "%s/api/models/%s/tree/%s?recursive=true", h->hub, h->repo, h->revision);
    int rc = get_text(h, &url, h->repo, &body, e);
    if (rc == 0)
        rc = hub_files_read(&h->files, &h->arena, buf_str(&body), body.len, e);
    if (rc == 0)
        rc = hub_files_choose(&h->files, h->tag[0] ? h->tag : NULL, e);
    buf_fini(&body);
    buf_fini(&url);
    return rc;
}

/* ---- small files ---- */

/* Git names a content by the SHA-1 of "blob SIZE", a zero byte and the bytes. */
static bool is_git_object(const struct hub_file *f, const struct buf *b)
{
    uint8_t sum[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    char head[48];
    int k = snprintf(head, sizeof(head), "blob %zu", b->len);
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    bool ok = md && EVP_DigestInit_ex(md, EVP_sha1(), NULL) == 1 &&
              EVP_DigestUpdate(md, head, (size_t)k + 1) == 1 &&
              EVP_DigestUpdate(md, buf_str(b), b->len) == 1 && EVP_DigestFinal_ex(md, sum, &n) == 1;
    EVP_MD_CTX_free(md);
    return ok && n == HUB_FILES_OID_BYTES && memcmp(sum, f->oid, n) == 0;
}

static int get_small(struct source_hub *h, uint32_t i, struct err *e)
{
    struct hub_file *f = &h->files.v[i];
    struct sha256 hash;
    struct buf url, body;
    if (f->bytes > MAX_SMALL_BYTES)
        return err_set(e, SHOAL_ELIMIT, "%.100s is too large for a file outside of LFS", f->path);
    buf_init(&url, WEB_MAX_URL);
    buf_init(&body, (size_t)f->bytes + 1);
    file_url(h, &url, f->path);
    int rc = get_text(h, &url, f->path, &body, e);
    if (rc == 0 && (body.len != f->bytes || !is_git_object(f, &body)))
        rc = err_set(e, SHOAL_EFORMAT, "%s sends other bytes for %.100s than it lists",
                     web_host(h->web), f->path);
    sha256_begin(&hash);
    sha256_add(&hash, buf_str(&body), body.len);
    if (!sha256_end(&hash, f->sha256) && rc == 0)
        rc = err_set(e, SHOAL_ENOMEM, "cannot compute SHA-256");
    if (rc == 0 && !(h->small[i] = arena_copy(&h->arena, buf_str(&body), body.len + 1)))
        rc = err_set(e, SHOAL_ENOMEM, "file of a repository");
    buf_fini(&body);
    buf_fini(&url);
    return rc;
}

/* The signature of a file beside it, or that of the repository. */
static void get_signature(struct source_hub *h, struct model_manifest *m)
{
    static const char *const ends[] = {".sig", ".minisig"};
    for (size_t i = h->files.folder ? 2 : 0; i < 3 && !m->n_signature; i++) {
        char path[512];
        struct err none = {0};
        struct buf url, b;
        if (i < 2)
            snprintf(path, sizeof(path), "%.400s%s", h->files.v[0].path, ends[i]);
        else
            snprintf(path, sizeof(path), "model.sig");
        buf_init(&url, WEB_MAX_URL);
        buf_init(&b, MODEL_MANIFEST_MAX_SIGNATURE);
        file_url(h, &url, path);
        if (get_text(h, &url, path, &b, &none) == 0)
            model_manifest_set_signature(m, buf_str(&b), b.len);
        buf_fini(&b);
        buf_fini(&url);
    }
}

/* ---- the interface ---- */

static int describe(struct model_source *s, struct model_described *d, struct err *e)
{
    struct source_hub *h = (struct source_hub *)(void *)s;
    struct hub_files *f = &h->files;
    int rc = get_revision(h, e);
    if (rc == 0)
        rc = get_files(h, e);
    if (rc == 0 && !(h->small = arena_zalloc_n(&h->arena, f->n + 1, sizeof(*h->small))))
        rc = err_set(e, SHOAL_ENOMEM, "files of a repository");
    for (uint32_t i = 0; rc == 0 && i < f->n; i++)
        rc = f->v[i].lfs ? 0 : get_small(h, i, e);
    if (rc < 0)
        return rc;
    snprintf(d->name, sizeof(d->name), "hf.co/%.90s%s%.25s", h->repo, h->tag[0] ? ":" : "", h->tag);
    char hub[1024];
    web_without_login(hub, sizeof(hub), h->hub);
    d->source = arena_printf(&d->manifest.arena, "%s/%s@%.12s", hub, h->repo, h->revision);
    if (h->o->trust && !h->o->signature)
        get_signature(h, &d->manifest);
    if (!f->folder) {
        const char *slash = strrchr(f->v[0].path, '/');
        memcpy(d->sha256, f->v[0].sha256, SHA256_BYTES);
        return model_manifest_single(&d->manifest, slash ? slash + 1 : f->v[0].path, f->v[0].bytes,
                                     f->v[0].sha256, e);
    }
    for (uint32_t i = 0; rc == 0 && i < f->n; i++)
        rc = model_manifest_add(&d->manifest, f->v[i].path, f->v[i].bytes, f->v[i].sha256, e);
    return rc < 0 ? rc : model_manifest_seal(&d->manifest, d->sha256, e);
}

static int file(struct model_source *s, const struct model_manifest *m, uint32_t i, uint64_t offset,
                const struct byte_sink *to, struct err *e)
{
    struct source_hub *h = (struct source_hub *)(void *)s;
    uint32_t k = 0;
    while (h->files.folder && strcmp(h->files.v[k].path, m->files[i].name) != 0)
        k++; /* the manifest is sorted */
    const struct hub_file *f = &h->files.v[k];
    if (h->small[k])
        return to->write(to->ctx, h->small[k] + offset, (size_t)(f->bytes - offset), e);
    struct web_reply reply;
    struct buf url;
    buf_init(&url, WEB_MAX_URL);
    file_url(h, &url, f->path);
    int rc = url.rc < 0 ? err_set(e, url.rc, "the URL of a file is too long")
                        : web_parallel(h->web, &h->web_opts, buf_str(&url), offset, f->bytes, to,
                                       &reply, e);
    buf_fini(&url);
    return rc == 0 && reply.status != 200 && reply.status != 206
               ? web_refused(h->web, reply.status, f->path, HINT, e)
               : rc;
}

static void close_hub(struct model_source *s)
{
    struct source_hub *h = (struct source_hub *)(void *)s;
    web_close(h->web);
    arena_fini(&h->arena);
    mem_free(h);
}

/* ---- opening ---- */

static bool plain(const char *p, const char *also)
{
    if (!p[0] || strstr(p, ".."))
        return false;
    for (; *p; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
              strchr("._-", *p) || strchr(also, *p)))
            return false;
    return true;
}

static int read_what(struct source_hub *h, const char *what, struct err *e)
{
    const char *at = strchr(what, '@');
    size_t n = at ? (size_t)(at - what) : strlen(what);
    const char *colon = memchr(what, ':', n);
    size_t n_repo = colon ? (size_t)(colon - what) : n;
    snprintf(h->revision, sizeof(h->revision), "%.129s", at ? at + 1 : "main");
    snprintf(h->repo, sizeof(h->repo), "%.*s", (int)(n_repo < 199 ? n_repo : 199), what);
    if (colon)
        snprintf(h->tag, sizeof(h->tag), "%.*s",
                 (int)(what + n - colon - 1 < 129 ? what + n - colon - 1 : 129), colon + 1);
    const char *slash = strchr(h->repo, '/');
    return n_repo < 199 && slash && slash > h->repo && slash[1] && !strchr(slash + 1, '/') &&
                   plain(h->repo, "/") && plain(h->revision, "/") && (!colon || plain(h->tag, "/"))
               ? 0
               : err_set(e, SHOAL_EINVAL,
                         "'%.100s' is no repository of a hub: ORG/REPO[:QUANT][@REVISION]", what);
}

/* Without one of the user's: $HF_TOKEN, or the file of the hub's own tools. */
static void find_token(struct source_hub *h)
{
    const char *s = h->o->token, *home = getenv("HOME"), *hf = getenv("HF_HOME");
    char path[PATH_MAX];
    struct buf b;
    if (!s || !s[0])
        s = getenv("HF_TOKEN");
    if (s && s[0]) {
        snprintf(h->token, sizeof(h->token), "%.4000s", s);
        return;
    }
    if (!hf && !home)
        return;
    snprintf(path, sizeof(path), hf ? "%.4000s/token" : "%.4000s/.cache/huggingface/token",
             hf ? hf : home);
    buf_init(&b, MAX_TOKEN_BYTES);
    if (file_read(path, &b, NULL) == 0)
        snprintf(h->token, sizeof(h->token), "%.*s", (int)strcspn(buf_str(&b), "\r\n "),
                 buf_str(&b));
    buf_fini(&b);
}

int source_hub_open(struct model_source **out, const char *what, const struct model_source_opts *o,
                    struct err *e)
{
    static const struct model_source_ops ops = {describe, file, close_hub};
    struct source_hub *h = mem_zalloc(sizeof(*h));
    const char *hub = o->hub && o->hub[0] ? o->hub : getenv("HF_ENDPOINT");
    *out = NULL;
    if (!h)
        return err_set(e, SHOAL_ENOMEM, "source of models");
    h->source.ops = &ops;
    h->o = o;
    arena_init(&h->arena, MAX_ARENA_BYTES);
    hub = hub && hub[0] ? hub : HUB;
    size_t n = strlen(hub);
    while (n > 0 && hub[n - 1] == '/')
        n--;
    snprintf(h->hub, sizeof(h->hub), "%.*s", (int)(n < 500 ? n : 500), hub);
    find_token(h);
    h->web_opts = (struct web_opts){.base = h->hub,
                                    .token = h->token,
                                    .ca = o->ca,
                                    .silent_ms = o->silent_ms,
                                    .private_ok = o->private_ok,
                                    .stopped = model_source_stopped,
                                    .ctx = (void *)(uintptr_t)o};
    int rc = read_what(h, what, e);
    if (rc == 0)
        rc = web_open(&h->web, &h->web_opts, e);
    if (rc < 0)
        close_hub(&h->source);
    else
        *out = &h->source;
    return rc;
}
