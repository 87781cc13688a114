/* source_url.c - see source_url.h. */
#include "depot/source/source_url.h"

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
#include "base/file/file_replace.h"
#include "base/mem.h"
#include "depot/source/byte_sink.h"
#include "depot/source/intake_fill.h"
#include "depot/store/model_store.h"
#include "depot/source/web.h"
#include "depot/source/web_parallel.h"

#define BLOCK_BYTES ((size_t)1 << 18)
#define HINT "set a token: --token, $SHOAL_TOKEN"

struct source_url {
    struct model_source source; /* first */
    const struct model_source_opts *o;
    struct web_opts web_opts;
    struct web *web;
    char *url, *base;
    char name[MODEL_MANIFEST_MAX_NAME + 1];
    uint8_t sha256[SHA256_BYTES];
    bool known;
    uint64_t bytes;
    /* a file of unknown hash */
    int part; /* -1: none */
    char path[PATH_MAX - 16];
};

static int get(struct source_url *u, uint64_t offset, const struct byte_sink *to, struct err *e)
{
    struct web_reply reply;
    int rc = web_parallel(u->web, &u->web_opts, u->url, offset, u->bytes, to, &reply, e);
    return rc == 0 && reply.status != 200 && reply.status != 206
               ? web_refused(u->web, reply.status, u->name, HINT, e)
               : rc;
}

/* ---- a file of unknown hash ---- */

static int io_error(const struct source_url *u, struct err *e)
{
    int why = errno;
    return err_set(e, why == ENOSPC || why == EDQUOT ? SHOAL_ELIMIT : SHOAL_EIO,
                   "cannot write %s: %s", u->path, strerror(why));
}

/* The file that grows: DIR/incoming/url-HEX.part, by the hash of the URL. */
static int open_part(struct source_url *u, struct err *e)
{
    uint8_t sum[SHA256_BYTES];
    char hex[2 * SHA256_BYTES + 1];
    struct sha256 h;
    int rc = model_store_make(u->o->store, e);
    if (rc < 0)
        return rc;
    sha256_begin(&h);
    sha256_add(&h, u->url, strlen(u->url));
    if (!sha256_end(&h, sum))
        return err_set(e, SHOAL_ENOMEM, "cannot compute SHA-256");
    sha256_hex(hex, sum);
    int n = snprintf(u->path, sizeof(u->path), "%s/incoming/url-%.32s.part",
                     model_store_dir(u->o->store), hex);
    if (n < 0 || (size_t)n >= sizeof(u->path))
        return err_set(e, SHOAL_ELIMIT, "the path of the store is too long");
    u->part = open(u->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (u->part < 0)
        return io_error(u, e);
    if (flock(u->part, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, SHOAL_EBUSY, "another process fetches %.200s", u->url);
    return 0;
}

/* Whether the part is of the version that the server has now: its ETag is kept in a file. */
static bool same_version(const struct source_url *u, const char *etag)
{
    char path[PATH_MAX];
    struct buf b;
    buf_init(&b, 256);
    snprintf(path, sizeof(path), "%s.tag", u->path);
    bool same = etag[0] && file_read(path, &b, NULL) == 0 && strcmp(buf_str(&b), etag) == 0;
    buf_fini(&b);
    return same;
}

struct part_write {
    struct source_url *u;
    struct sha256 hash;
    uint64_t at;
    struct model_progress progress;
};

static int write_part(void *ctx, const void *p, size_t n, struct err *e)
{
    struct part_write *w = ctx;
    struct source_url *u = w->u;
    if (n > u->bytes - w->at)
        return err_set(e, SHOAL_EFORMAT, "it sends more bytes than it announced");
    for (size_t done = 0; done < n;) {
        ssize_t k = pwrite(u->part, (const char *)p + done, n - done, (off_t)(w->at + done));
        if (k <= 0)
            return io_error(u, e);
        done += (size_t)k;
    }
    sha256_add(&w->hash, p, n);
    w->at += n;
    w->progress.done = w->at;
    if (u->o->progress)
        u->o->progress(u->o->ctx, &w->progress);
    return 0;
}

static int hash_part(struct part_write *w, uint64_t bytes, struct err *e)
{
    char *block = mem_alloc(BLOCK_BYTES);
    int rc = block ? 0 : err_set(e, SHOAL_ENOMEM, "hash");
    while (rc == 0 && w->at < bytes) {
        size_t most = bytes - w->at < BLOCK_BYTES ? (size_t)(bytes - w->at) : BLOCK_BYTES;
        ssize_t got = pread(w->u->part, block, most, (off_t)w->at);
        if (got <= 0)
            rc = err_set(e, SHOAL_EIO, "cannot read %s", w->u->path);
        else
            sha256_add(&w->hash, block, (size_t)got);
        w->at += got > 0 ? (uint64_t)got : 0;
    }
    mem_free(block);
    return rc;
}

/* Size and version of the file. */
static int probe(struct source_url *u, struct web_reply *reply, struct err *e)
{
    const struct web_request a = {.probe = true};
    int rc = web_told(u->web, web_ask(u->web, u->url, &a, reply, e), e);
    if (rc == 0 && reply->status != 200 && reply->status != 206)
        rc = web_refused(u->web, reply->status, u->name, HINT, e);
    if (rc == 0 && !reply->has_total)
        rc = err_set(e, SHOAL_EFORMAT, "%s does not say how large the file is", web_host(u->web));
    if (rc == 0)
        u->bytes = reply->total;
    return rc;
}

static int fetch_unknown(struct source_url *u, struct err *e)
{
    struct model_store_swept swept;
    struct part_write w = {.u = u};
    struct web_reply reply;
    struct stat st;
    char tag[PATH_MAX];
    int rc = probe(u, &reply, e);
    if (rc == 0)
        rc = open_part(u, e);
    if (rc < 0)
        return rc;
    w.progress = (struct model_progress){.what = u->name, .digest = "", .total = u->bytes};
    snprintf(tag, sizeof(tag), "%s.tag", u->path);
    bool keep =
        same_version(u, reply.etag) && fstat(u->part, &st) == 0 && (uint64_t)st.st_size <= u->bytes;
    if (!keep &&
        (ftruncate(u->part, 0) < 0 || file_replace(tag, reply.etag, strlen(reply.etag), e) < 0))
        return io_error(u, e);
    uint64_t have = keep ? (uint64_t)st.st_size : 0;
    /* this copy and that in the store */
    rc = model_store_sweep(u->o->store, NULL, 2 * u->bytes - have, &swept, e);
    sha256_begin(&w.hash);
    if (rc == 0)
        rc = hash_part(&w, have, e);
    const struct byte_sink to = {&w, write_part};
    for (uint32_t attempt = 0; rc == 0 && w.at < u->bytes;) {
        const uint64_t before = w.at;
        rc = get(u, w.at, &to, e);
        if (rc == 0 && w.at < u->bytes)
            rc = err_set(e, SHOAL_EIO, "%s disconnected after %" PRIu64 " of %" PRIu64 " bytes",
                         web_host(u->web), w.at, u->bytes);
        attempt = w.at > before ? 1 : attempt + 1;
        if (rc == SHOAL_EIO || rc == SHOAL_EBUSY)
            rc = intake_fill_again(u->o, attempt, e);
    }
    bool hashed = sha256_end(&w.hash, u->sha256);
    return rc == 0 && !hashed ? err_set(e, SHOAL_ENOMEM, "cannot compute SHA-256") : rc;
}

/* ---- the interface ---- */

/* Beside the file, if there is one. */
static void get_signature(struct source_url *u, struct model_manifest *m)
{
    static const char *const ends[] = {".sig", ".minisig"};
    for (size_t i = 0; i < 2 && !m->n_signature; i++) {
        const size_t end = strcspn(u->url, "?#");
        struct err none = {0};
        struct buf url, b;
        buf_init(&url, WEB_MAX_URL);
        buf_init(&b, MODEL_MANIFEST_MAX_SIGNATURE);
        buf_printf(&url, "%.*s%s%s", (int)end, u->url, ends[i], u->url + end);
        if (url.rc == 0 && web_text(u->web, buf_str(&url), NULL, u->name, HINT, &b, &none) == 0)
            model_manifest_set_signature(m, buf_str(&b), b.len);
        buf_fini(&b);
        buf_fini(&url);
    }
}

static int describe(struct model_source *s, struct model_described *d, struct err *e)
{
    struct source_url *u = (struct source_url *)(void *)s;
    struct web_reply reply;
    int rc = 0;
    if (!u->known)
        rc = fetch_unknown(u, e);
    else if (u->bytes == 0)
        rc = probe(u, &reply, e);
    if (rc < 0)
        return rc;
    memcpy(d->sha256, u->sha256, SHA256_BYTES);
    rc = model_manifest_single(&d->manifest, u->name, u->bytes, u->sha256, e);
    if (rc == 0 && u->o->trust && !u->o->signature)
        get_signature(u, &d->manifest);
    return rc;
}

static int file(struct model_source *s, const struct model_manifest *m, uint32_t i, uint64_t offset,
                const struct byte_sink *to, struct err *e)
{
    struct source_url *u = (struct source_url *)(void *)s;
    (void)m, (void)i;
    if (u->known)
        return get(u, offset, to, e);
    char *block = mem_alloc(BLOCK_BYTES);
    int rc = block ? 0 : err_set(e, SHOAL_ENOMEM, "copy");
    while (rc == 0 && offset < u->bytes) {
        ssize_t got = pread(u->part, block, BLOCK_BYTES, (off_t)offset);
        if (got <= 0)
            rc = err_set(e, SHOAL_EIO, "cannot read %s", u->path);
        else
            rc = to->write(to->ctx, block, (size_t)got, e);
        offset += got > 0 ? (uint64_t)got : 0;
    }
    mem_free(block);
    if (rc == 0) { /* the store has it now */
        char tag[PATH_MAX];
        snprintf(tag, sizeof(tag), "%s.tag", u->path);
        unlink(tag);
        unlink(u->path);
    }
    return rc;
}

static void close_url(struct model_source *s)
{
    struct source_url *u = (struct source_url *)(void *)s;
    web_close(u->web);
    if (u->part >= 0)
        close(u->part);
    mem_free(u->url);
    mem_free(u->base);
    mem_free(u);
}

/* The file's name in a URL, if it may be one. */
static void name_of(char out[MODEL_MANIFEST_MAX_NAME + 1], const char *url)
{
    size_t end = strcspn(url, "?#"), at = end;
    while (at > 0 && url[at - 1] != '/')
        at--;
    snprintf(out, MODEL_MANIFEST_MAX_NAME + 1, "%.*s", (int)(end - at < 200 ? end - at : 200),
             url + at);
    if (!model_manifest_name_ok(out))
        snprintf(out, MODEL_MANIFEST_MAX_NAME + 1, "model.gguf");
}

int source_url_open(struct model_source **out, const struct source_url_opts *a,
                    const struct model_source_opts *o, struct err *e)
{
    static const struct model_source_ops ops = {describe, file, close_url};
    struct source_url *u = mem_zalloc(sizeof(*u));
    *out = NULL;
    if (!u)
        return err_set(e, SHOAL_ENOMEM, "source of models");
    u->source.ops = &ops;
    u->o = o;
    u->part = -1;
    u->bytes = a->bytes;
    u->known = a->sha256 != NULL;
    if (u->known)
        memcpy(u->sha256, a->sha256, SHA256_BYTES);
    u->url = mem_strdup(a->url);
    u->base = mem_strdup(a->base ? a->base : a->url);
    if (a->name)
        snprintf(u->name, sizeof(u->name), "%s", a->name);
    else
        name_of(u->name, a->url);
    u->web_opts = (struct web_opts){.base = u->base,
                                    .token = o->token,
                                    .ca = o->ca,
                                    .silent_ms = o->silent_ms,
                                    .private_ok = o->private_ok,
                                    .strange = o->allow != 0,
                                    .stopped = model_source_stopped,
                                    .ctx = (void *)(uintptr_t)o};
    int rc = u->url && u->base ? web_open(&u->web, &u->web_opts, e)
                               : err_set(e, SHOAL_ENOMEM, "source of models");
    if (rc < 0)
        close_url(&u->source);
    else
        *out = &u->source;
    return rc;
}
