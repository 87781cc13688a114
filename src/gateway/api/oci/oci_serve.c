/* oci_serve.c - see oci_serve.h. One step at a time: the pool finds a blob or reads a piece of it,
 * the loop sends the piece, waits until the client has read, and requests the next one. */
#include "gateway/api/oci/oci_serve.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file_open.h"
#include "base/mem.h"
#include "depot/store/model_manifest.h"
#include "depot/store/model_store.h"
#include "depot/source/oci_manifest.h"
#include "flow/pool.h"
#include "gateway/api/model_profiles.h"
#include "gateway/call/call.h"

#define PIECE_BYTES ((size_t)256 << 10)
#define MAX_SERVED 8u /* transfers at once, in the whole server */
#define MAX_NAME 300u

struct served {
    struct call *call; /* held */
    struct model_profiles *profiles;
    struct pool_task read;
    struct executor_task back;
    bool busy, waiting, head;
    char name[MAX_NAME]; /* manifest: "NAME:TAG"; "": a blob */
    char digest[OCI_MANIFEST_DIGEST_BYTES];
    const char *type;
    /* used by the pool while it is busy, otherwise by the loop */
    bool opened;
    int fd; /* of a file; -1: the bytes are in text */
    struct buf text, piece;
    uint64_t bytes, at, from; /* from: the beginning of a range */
    bool ranged;
    int rc;
    struct err e;
    struct oci_manifest manifest;
};

/* ---- on the pool ---- */

/* The parts of a profile's model, from the hashes that the store knows. */
static int describe(struct served *s, const struct model_profile *p, struct err *e)
{
    const char *const texts[] = {p->system, p->parameters, p->license, p->messages};
    struct model_store *store = model_profiles_store(s->profiles);
    struct oci_manifest *m = &s->manifest;
    char config[OCI_MANIFEST_CONFIG_BYTES], hex[2 * SHA256_BYTES + 1];
    struct model_manifest files;
    uint8_t sum[SHA256_BYTES];
    memset(m, 0, sizeof(*m));
    if (!model_store_owns(store, p->path, sum))
        return err_set(e, SHOAL_ENOTFOUND, "%.64s is not in the store", p->name);
    model_manifest_init(&files);
    int rc = model_store_manifest(store, sum, &files, e);
    if (rc == 0 && (files.n_files > OCI_MANIFEST_MAX_FILES || files.above))
        rc = err_set(e, SHOAL_EUNSUPPORTED, "%.64s has files that cannot be shared", p->name);
    m->folder = files.folder;
    for (uint32_t i = 0; rc == 0 && i < files.n_files; i++) {
        struct oci_file *f = &m->files[m->n_files++];
        sha256_hex(hex, files.files[i].sum);
        snprintf(f->name, sizeof(f->name), "%s", files.files[i].name);
        snprintf(f->blob.digest, sizeof(f->blob.digest), "sha256:%s", hex);
        f->blob.bytes = files.files[i].bytes;
    }
    model_manifest_fini(&files);
    for (int i = 0; rc == 0 && i < OCI_PART_CONFIG; i++)
        if (texts[i] && texts[i][0])
            rc = oci_manifest_text(&m->parts[i], texts[i], e);
    if (rc == 0) {
        oci_manifest_config(m, config);
        rc = oci_manifest_text(&m->parts[OCI_PART_CONFIG], config, e);
    }
    return rc;
}

static int find_manifest(struct served *s)
{
    const struct model_profile *p = model_profiles_get(s->profiles, s->name);
    char *latest = strstr(s->name, ":latest");
    if (!p && latest && !latest[7]) {
        *latest = '\0';
        p = model_profiles_get(s->profiles, s->name);
    }
    int rc =
        p ? describe(s, p, &s->e) : err_set(&s->e, SHOAL_ENOTFOUND, "no model '%.100s'", s->name);
    model_profiles_unref(s->profiles, p);
    if (rc < 0)
        return rc;
    struct oci_blob blob;
    oci_manifest_write(&s->manifest, &s->text);
    s->type = oci_manifest_type(&s->manifest);
    s->bytes = s->text.len;
    rc = s->text.rc < 0 ? s->text.rc : oci_manifest_text(&blob, buf_str(&s->text), &s->e);
    if (rc == 0)
        memcpy(s->digest, blob.digest, sizeof(s->digest));
    return rc;
}

static void find_in(void *ctx, const struct model_profile *p)
{
    const char *const texts[] = {p->system, p->parameters, p->license, p->messages};
    struct served *s = ctx;
    char path[PATH_MAX], config[OCI_MANIFEST_CONFIG_BYTES];
    struct model_manifest files;
    uint8_t sum[SHA256_BYTES];
    struct err none = {0};
    if (s->rc == 0 || describe(s, p, &none) < 0 ||
        !model_store_owns(model_profiles_store(s->profiles), p->path, sum))
        return;
    const struct oci_manifest *m = &s->manifest;
    for (int i = 0; i < OCI_N_PARTS; i++)
        if (strcmp(m->parts[i].digest, s->digest) == 0) {
            oci_manifest_config(m, config);
            buf_puts(&s->text, i == OCI_PART_CONFIG ? config : texts[i]);
            s->bytes = s->text.len;
            s->rc = s->text.rc;
            return;
        }
    model_manifest_init(&files);
    int rc = model_store_manifest(model_profiles_store(s->profiles), sum, &files, &none);
    for (uint32_t i = 0; rc == 0 && s->fd < 0 && i < m->n_files; i++)
        if (strcmp(m->files[i].blob.digest, s->digest) == 0 &&
            model_store_file(model_profiles_store(s->profiles), sum, &files, i, path, &none) == 0 &&
            (s->fd = file_open_regular(path, NULL)) >= 0) {
            s->bytes = m->files[i].blob.bytes;
            s->rc = 0;
        }
    model_manifest_fini(&files);
}

static int find_blob(struct served *s)
{
    s->rc = err_set(&s->e, SHOAL_ENOTFOUND, "no blob %.80s", s->digest);
    model_profiles_each(s->profiles, find_in, s);
    return s->rc;
}

static int read_piece(struct served *s)
{
    uint64_t left = s->bytes - s->at;
    size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
    buf_clear(&s->piece);
    if (n == 0 || s->head)
        return 0;
    if (s->fd < 0) {
        buf_put(&s->piece, buf_str(&s->text) + s->at, n);
        s->at += n;
        return s->piece.rc;
    }
    char *to = buf_room(&s->piece, n);
    ssize_t got = to ? pread(s->fd, to, n, (off_t)s->at) : 0;
    if (got <= 0)
        return err_set(&s->e, SHOAL_EIO, "cannot read a model: %s",
                       got < 0 ? strerror(errno) : "it became shorter");
    buf_used(&s->piece, (size_t)got);
    s->at += (uint64_t)got;
    return 0;
}

static void on_read(struct pool_task *t)
{
    struct served *s = EXECUTOR_OF(t, struct served, read);
    int rc = 0;
    if (!s->opened) {
        rc = s->name[0] ? find_manifest(s) : find_blob(s);
        s->at = s->from;
        if (rc == 0 && s->ranged && s->from >= s->bytes)
            rc = err_set(&s->e, SHOAL_EINVAL, "the blob has only %" PRIu64 " bytes", s->bytes);
        s->opened = true;
    }
    s->rc = rc == 0 ? read_piece(s) : rc;
    executor_post(s->call->gl->flow.executor, &s->back);
}

/* ---- on the loop ---- */

static void served_free(struct served *s)
{
    struct call *c = s->call;
    if (s->fd >= 0)
        close(s->fd);
    atomic_fetch_sub(&c->gl->gw->oci_served, 1);
    c->gl->flow.n_jobs--;
    buf_fini(&s->text);
    buf_fini(&s->piece);
    mem_free(s);
    c->job = NULL;
    c->abandon = c->resume = NULL;
    call_release(c);
}

static void next(struct served *s)
{
    s->busy = true;
    if (pool_submit(s->call->gl->gw->pool, &s->read) == 0)
        return;
    s->busy = false;
    if (!s->call->began)
        call_fail(s->call, 503, NULL, NULL, "overloaded", "too much work is waiting");
    else
        call_end(s->call); /* shorter than announced: the client notices */
    served_free(s);
}

static void on_room(struct call *c)
{
    struct served *s = c->job;
    s->waiting = false;
    if (!s->busy)
        next(s);
}

static void on_gone(struct call *c)
{
    struct served *s = c->job;
    if (!s->busy)
        served_free(s);
}

static void begin(struct served *s)
{
    char range[80];
    struct http_header extra[4] = {{"docker-content-digest", s->digest},
                                   {"accept-ranges", "bytes"}};
    size_t n = 2;
    if (s->ranged) {
        snprintf(range, sizeof(range), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, s->from,
                 s->bytes - 1, s->bytes);
        extra[n++] = (struct http_header){"content-range", range};
    }
    call_begin_sized(s->call, s->ranged ? 206 : 200, s->type, extra, n, s->bytes - s->from);
}

static void on_back(struct executor_task *t)
{
    struct served *s = EXECUTOR_OF(t, struct served, back);
    struct call *c = s->call;
    s->busy = false;
    if (!c->req) {
        served_free(s);
        return;
    }
    if (s->rc < 0 && !c->began) {
        call_fail(c,
                  s->rc == SHOAL_ENOTFOUND ? 404
                  : s->rc == SHOAL_EINVAL  ? 416
                                           : 500,
                  NULL, NULL, NULL, "%s", s->e.msg[0] ? s->e.msg : err_text(s->rc));
        served_free(s);
        return;
    }
    if (!c->began)
        begin(s);
    if (s->rc == 0 && s->piece.len > 0)
        call_write(c, buf_str(&s->piece), s->piece.len);
    if (s->rc < 0 || s->head || s->at == s->bytes) {
        call_end(c);
        served_free(s);
        return;
    }
    s->waiting = call_full(c);
    if (!s->waiting)
        next(s);
}

/* ---- the call ---- */

/* NAME/manifests/TAG or NAME/blobs/DIGEST; "library/" says nothing. */
static bool read_path(struct served *s, const char *path)
{
    static const char *const kinds[] = {"/manifests/", "/blobs/"};
    if (strncmp(path, "library/", 8) == 0)
        path += 8;
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(path, kinds[i]);
        const char *id = at ? at + strlen(kinds[i]) : NULL;
        if (!at || at == path || !id[0] || strchr(id, '/'))
            continue;
        if (i == 0)
            return snprintf(s->name, sizeof(s->name), "%.*s:%s", (int)(at - path), path, id) <
                       (int)sizeof(s->name) &&
                   model_profiles_is_name(s->name);
        return snprintf(s->digest, sizeof(s->digest), "%s", id) == 7 + 2 * SHA256_BYTES &&
               strncmp(id, "sha256:", 7) == 0;
    }
    return false;
}

static void read_range(struct served *s)
{
    const char *range = http_header(s->call->req, "range");
    s->ranged = range && !s->name[0] && sscanf(range, "bytes=%" SCNu64 "-", &s->from) == 1;
}

void oci_serve(struct call *c)
{
    struct gw *gw = c->gl->gw;
    const char *path = c->req->path + strlen("/v2/");
    if (!c->gl->config->store_share || !gw->profiles) {
        call_fail(c, 404, NULL, NULL, NULL, "this server shares no models: set 'store.share'");
        return;
    }
    if (!path[0]) { /* clients ask whether this is a registry */
        call_text(c, 200, "application/json", "{}", 2);
        return;
    }
    struct served *s = mem_zalloc(sizeof(*s));
    if (!s) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    s->call = c;
    if (!read_path(s, path)) {
        mem_free(s);
        call_fail(c, 404, NULL, NULL, NULL, "this is neither a manifest nor a blob");
        return;
    }
    if (atomic_fetch_add(&gw->oci_served, 1) >= MAX_SERVED) {
        atomic_fetch_sub(&gw->oci_served, 1);
        mem_free(s);
        call_fail(c, 503, NULL, NULL, "overloaded", "too many models are being pulled: try later");
        return;
    }
    s->profiles = gw->profiles;
    s->head = c->req->head;
    s->type = "application/octet-stream";
    s->fd = -1;
    s->read.fn = on_read;
    s->back.fn = on_back;
    buf_init(&s->text, OCI_MANIFEST_MAX_BYTES);
    buf_init(&s->piece, PIECE_BYTES);
    read_range(s);
    call_hold(c);
    c->job = s;
    c->abandon = on_gone;
    c->resume = on_room;
    c->gl->flow.n_jobs++;
    next(s);
}
