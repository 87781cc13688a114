/* fetch_url.c - see fetch_url.h. */
#include "cluster/store/fetch_url.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cluster/store/byte_rate.h"
#include "depot/source/byte_sink.h"
#include "depot/store/model_manifest.h"
#include "depot/source/web.h"

#define MS_NS 1000000u
#define SLICE_NS (50u * MS_NS)

/* ---- one request ---- */

struct fetch_url {
    struct fetch_transfer transfer; /* first */
    struct fetch_transfer_opts opts;
    struct web_opts web_opts;
    struct web *web;
    char *url, *ca;
    bool folder;
    uint64_t total; /* size of the file that was asked for last, if the server sent it */
    bool has_total;
};

static bool stopped(void *fetch_url)
{
    const struct fetch_url *u = fetch_url;
    return atomic_load_explicit(u->opts.stop, memory_order_relaxed);
}

/* Sleeps in slices, so that a cancel is noticed. */
static int sleep_until(struct fetch_url *u, uint64_t until_ns, struct err *e)
{
    for (uint64_t now; (now = clock_ns()) < until_ns;) {
        uint64_t ns = until_ns - now < SLICE_NS ? until_ns - now : SLICE_NS;
        const struct timespec t = {.tv_nsec = (long)ns};
        if (stopped(u))
            return err_set(e, SHOAL_ECANCELLED, "stopped");
        (void)nanosleep(&t, NULL);
    }
    return 0;
}

struct receiving {
    struct fetch_url *u;
    struct web_rest rest;
};

static int on_body(void *ctx, const char *p, size_t n, bool begins, uint64_t from, struct err *e)
{
    struct receiving *r = ctx;
    uint64_t wait = byte_rate_take(r->u->opts.rate, n, clock_ns());
    int rc = web_rest_write(&r->rest, p, n, begins, from, e);
    return rc == 0 && wait > 0 ? sleep_until(r->u, clock_ns() + wait, e) : rc;
}

/* From offset on.  to NULL: only the size is wanted. */
static int get(struct fetch_url *u, const char *url, uint64_t offset, const struct byte_sink *to,
               struct err *e)
{
    struct receiving r = {.u = u, .rest = {.offset = offset, .to = to}};
    const struct web_request a = {
        .offset = offset, .probe = to == NULL, .write = on_body, .ctx = &r};
    struct web_reply reply;
    int rc = web_ask(u->web, url, &a, &reply, e);
    u->has_total = rc == 0 && reply.has_total;
    u->total = reply.total;
    if (rc < 0 || reply.status == 200 || reply.status == 206)
        return rc;
    return err_set(e,
                   reply.status == 404 || reply.status == 410   ? SHOAL_ENOTFOUND
                   : reply.status == 429 || reply.status == 503 ? SHOAL_EBUSY
                                                                : SHOAL_EIO,
                   "it answers with HTTP status %ld", reply.status);
}

/* ---- what is asked ---- */

static int keep_text(void *ctx, const void *p, size_t n, struct err *e)
{
    struct buf *b = ctx;
    buf_put(b, p, n);
    return b->rc < 0 ? err_set(e, b->rc, "its manifest is too large") : 0;
}

static int get_folder_manifest(struct fetch_url *u, struct model_manifest *m, struct err *e)
{
    char url[WEB_MAX_URL + 32];
    struct buf b;
    const struct byte_sink to = {&b, keep_text};
    snprintf(url, sizeof(url), "%smanifest.json", u->url);
    buf_init(&b, MODEL_MANIFEST_MAX_BYTES);
    int rc = get(u, url, 0, &to, e);
    if (rc == 0)
        rc = model_manifest_read(m, buf_str(&b), b.len, u->opts.model, e);
    buf_fini(&b);
    return rc;
}

/* The file's name in a URL, if it may be one. */
static void file_name(char out[MODEL_MANIFEST_MAX_NAME + 1], const char *url)
{
    size_t end = strcspn(url, "?#"), at = end;
    while (at > 0 && url[at - 1] != '/')
        at--;
    snprintf(out, MODEL_MANIFEST_MAX_NAME + 1, "%.*s", (int)(end - at < 200 ? end - at : 200),
             url + at);
    if (!model_manifest_name_ok(out))
        snprintf(out, MODEL_MANIFEST_MAX_NAME + 1, "model.gguf");
}

/* The signature, where servers and stores have it: beside the file, or in the model's folder.  That
 * there is none is no failure. */
static void get_signature(struct fetch_url *u, struct model_manifest *m)
{
    static const char *const ends[] = {".sig", ".minisig"};
    for (size_t i = 0; i < (u->folder ? 1 : 2) && !m->n_signature; i++) {
        char url[WEB_MAX_URL + 32];
        struct err none = {0};
        struct buf b;
        const struct byte_sink to = {&b, keep_text};
        const size_t end = strcspn(u->url, "?#");
        snprintf(url, sizeof(url), "%.*s%s%s", (int)end, u->url, u->folder ? "signature" : ends[i],
                 u->url + end);
        buf_init(&b, MODEL_MANIFEST_MAX_SIGNATURE);
        if (get(u, url, 0, &to, &none) == 0)
            model_manifest_set_signature(m, buf_str(&b), b.len);
        buf_fini(&b);
    }
}

static int get_manifest(struct fetch_transfer *t, struct model_manifest *m, struct err *e)
{
    struct fetch_url *u = (struct fetch_url *)(void *)t;
    char name[MODEL_MANIFEST_MAX_NAME + 1];
    int rc = u->folder ? get_folder_manifest(u, m, e) : get(u, u->url, 0, NULL, e);
    if (rc == 0 && !u->folder && !u->has_total)
        rc = err_set(e, SHOAL_EFORMAT, "it does not say how large the file is");
    if (rc == 0 && !u->folder) {
        file_name(name, u->url);
        rc = model_manifest_single(m, name, u->total, u->opts.model, e);
    }
    if (rc == 0 && u->opts.signature)
        get_signature(u, m);
    return rc;
}

static int get_file(struct fetch_transfer *t, const struct model_manifest *m, uint32_t i,
                    uint64_t offset, const struct byte_sink *to, struct err *e)
{
    struct fetch_url *u = (struct fetch_url *)(void *)t;
    char place[MODEL_MANIFEST_MAX_NAME + 16];
    struct buf url;
    if (!u->folder)
        return get(u, u->url, offset, to, e);
    if (!model_manifest_place(place, sizeof(place), m, i))
        return err_set(e, SHOAL_ELIMIT, "the name of a file is too long");
    buf_init(&url, 4 * WEB_MAX_URL);
    buf_printf(&url, "%sfiles/", u->url);
    web_escape(&url, place, "/");
    int rc =
        url.rc < 0 ? err_set(e, url.rc, "a URL is too long") : get(u, buf_str(&url), offset, to, e);
    buf_fini(&url);
    return rc;
}

/* ---- lifetime ---- */

bool fetch_url_ok(const char *url)
{
    if (strnlen(url, WEB_MAX_URL) == WEB_MAX_URL || !web_is_url(url))
        return false;
    for (const char *p = url; *p; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f)
            return false;
    return true;
}

static void close_url(struct fetch_transfer *t)
{
    struct fetch_url *u = (struct fetch_url *)(void *)t;
    web_close(u->web);
    mem_free(u->url);
    mem_free(u->ca);
    mem_free(u);
}

int fetch_url_open(struct fetch_transfer **out, const char *url, const char *ca,
                   const struct fetch_transfer_opts *o, struct err *e)
{
    static const struct fetch_transfer_ops ops = {get_manifest, get_file, close_url};
    *out = NULL;
    if (!fetch_url_ok(url))
        return err_set(e, SHOAL_EINVAL, "%.100s is not the URL of a model: use https:// or http://",
                       url);
    struct fetch_url *u = mem_zalloc(sizeof(*u));
    if (!u)
        return err_set(e, SHOAL_ENOMEM, "transfer from a URL");
    u->transfer.ops = &ops;
    u->opts = *o;
    u->folder = url[strlen(url) - 1] == '/';
    u->url = mem_strdup(url);
    u->ca = ca ? mem_strdup(ca) : NULL;
    /* the members of a shoal and their servers are in private networks */
    u->web_opts = (struct web_opts){.base = u->url,
                                    .ca = u->ca,
                                    .silent_ms = o->silent_ms,
                                    .private_ok = true,
                                    .stopped = stopped,
                                    .ctx = u};
    int rc = u->url && (!ca || u->ca) ? web_open(&u->web, &u->web_opts, e)
                                      : err_set(e, SHOAL_ENOMEM, "transfer from a URL");
    if (rc < 0)
        close_url(&u->transfer);
    else
        *out = &u->transfer;
    return rc;
}
