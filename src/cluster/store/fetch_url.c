/* fetch_url.c - see fetch_url.h. */
#include "cluster/store/fetch_url.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cluster/store/byte_rate.h"
#include "depot/model_manifest.h"
#include "net/libcurl.h"

#define MS_NS 1000000u
#define SLICE_NS (50u * MS_NS)
#define MAX_URL 2000u
#define MAX_REDIRECTS 5L
#define CONNECT_MS 10000L

/* ---- one request ---- */

struct fetch_url {
    struct fetch_transfer transfer; /* first */
    struct fetch_transfer_opts opts;
    const struct libcurl *api;
    CURL *curl;
    char *url, *ca;
    bool folder;
    char reason[CURL_ERROR_SIZE];
    /* of the request that runs */
    const struct fetch_sink *to;
    struct err *e;
    int rc;
    uint64_t offset, skip; /* requested; still to be skipped */
    uint64_t total;        /* size of the file, if the server sent it */
    bool has_total, probe; /* probe: only the size is needed */
    uint64_t range_from;
    bool has_range;
    uint64_t heard_ns;
};

static bool stopped(struct fetch_url *u)
{
    if (!atomic_load_explicit(u->opts.stop, memory_order_relaxed))
        return false;
    u->rc = err_set(u->e, SHOAL_ECANCELLED, "stopped");
    return true;
}

/* Sleeps in slices, so that a cancel is noticed. */
static bool sleep_until(struct fetch_url *u, uint64_t until_ns)
{
    for (uint64_t now; (now = clock_ns()) < until_ns;) {
        uint64_t ns = until_ns - now < SLICE_NS ? until_ns - now : SLICE_NS;
        const struct timespec t = {.tv_nsec = (long)ns};
        if (stopped(u))
            return false;
        (void)nanosleep(&t, NULL);
    }
    return true;
}

static size_t on_header(char *p, size_t size, size_t n, void *ctx)
{
    struct fetch_url *u = ctx;
    char line[256];
    uint64_t from, to, total;
    n *= size;
    u->heard_ns = clock_ns();
    snprintf(line, sizeof(line), "%.*s", (int)(n < 255 ? n : 255), p);
    if (strncmp(line, "HTTP/", 5) == 0) { /* after a redirect, everything is new */
        u->has_total = u->has_range = false;
    } else if (strncasecmp(line, "content-range:", 14) == 0) {
        const char *v = line + 14;
        v += strspn(v, " \t");
        if (sscanf(v, "bytes %" SCNu64 "-%" SCNu64 "/%" SCNu64, &from, &to, &total) == 3) {
            u->range_from = from;
            u->total = total;
            u->has_range = u->has_total = true;
        }
    } else if (strncasecmp(line, "content-length:", 15) == 0 && !u->has_range) {
        char *end;
        u->total = strtoull(line + 15, &end, 10);
        u->has_total = end > line + 15;
    }
    return n;
}

/* Whether the answer fits the question; once, before the first byte. */
static int check_answer(struct fetch_url *u)
{
    long status = 0;
    (void)u->api->easy_getinfo(u->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status == 206) {
        if (!u->has_range || u->range_from != u->offset)
            return err_set(u->e, SHOAL_EFORMAT, "it sent a different range than requested");
        return 0;
    }
    if (status == 200) { /* the whole file: our part is skipped */
        u->skip = u->offset;
        return 0;
    }
    return err_set(u->e,
                   status == 404 || status == 410   ? SHOAL_ENOTFOUND
                   : status == 429 || status == 503 ? SHOAL_EBUSY
                                                    : SHOAL_EIO,
                   "it answers with HTTP status %ld", status);
}

static size_t on_body(char *p, size_t size, size_t n, void *ctx)
{
    struct fetch_url *u = ctx;
    size_t all = n * size, at = 0;
    if (u->rc == 1)
        u->rc = check_answer(u);
    if (u->rc < 0 || u->probe || stopped(u))
        return 0; /* ends the transfer */
    uint64_t wait = byte_rate_take(u->opts.rate, all, clock_ns());
    if (u->skip > 0) {
        at = u->skip < all ? (size_t)u->skip : all;
        u->skip -= at;
    }
    if (at < all)
        u->rc = u->to->write(u->to->ctx, p + at, all - at, u->e);
    if (u->rc == 0 && wait > 0 && !sleep_until(u, clock_ns() + wait))
        return 0;
    u->heard_ns = clock_ns();
    return u->rc < 0 ? 0 : all;
}

/* About once a second, even without data. */
static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct fetch_url *u = ctx;
    (void)a, (void)b, (void)c, (void)d;
    if (stopped(u))
        return 1;
    if (clock_ns() - u->heard_ns < (uint64_t)u->opts.silent_ms * MS_NS)
        return 0;
    u->rc = err_set(u->e, SHOAL_EIO, "it is silent");
    return 1;
}

static bool is_https(const char *url)
{
    return strncasecmp(url, "https://", 8) == 0;
}

static bool prepare(struct fetch_url *u, const char *url)
{
    CURL *c = u->curl;
    char range[32];
    bool ok = true;
    u->api->easy_reset(c);
    u->reason[0] = '\0';
#define SET(option, value) ok = ok && u->api->easy_setopt(c, (option), (value)) == CURLE_OK
    SET(CURLOPT_URL, url);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_REDIR_PROTOCOLS_STR, is_https(url) ? "https" : "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 1L);
    SET(CURLOPT_MAXREDIRS, MAX_REDIRECTS);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    SET(CURLOPT_USERAGENT, "shoal");
    SET(CURLOPT_ERRORBUFFER, u->reason);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, (void *)u);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, (void *)u);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, (void *)u);
    SET(CURLOPT_NOPROGRESS, 0L);
    if (u->ca)
        SET(CURLOPT_CAINFO, u->ca);
    if (u->probe || u->offset > 0) {
        snprintf(range, sizeof(range), "%" PRIu64 "-%s", u->offset, u->probe ? "0" : "");
        SET(CURLOPT_RANGE, range);
    }
#undef SET
    return ok;
}

/* From offset on.  to NULL: only the size is wanted. */
static int get(struct fetch_url *u, const char *url, uint64_t offset, const struct fetch_sink *to,
               struct err *e)
{
    struct err none = {0};
    u->to = to;
    u->probe = to == NULL;
    u->offset = offset;
    u->skip = 0;
    u->has_total = u->has_range = false;
    u->e = e ? e : &none;
    u->rc = 1; /* no byte yet */
    u->heard_ns = clock_ns();
    if (!prepare(u, url))
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "libcurl is too old or was built without HTTPS: 7.85 is needed");
    CURLcode code = u->api->easy_perform(u->curl);
    if (code == CURLE_OK && u->rc == 1)
        u->rc = check_answer(u); /* an empty body */
    if (code != CURLE_OK && u->rc >= 0 && !(u->probe && u->rc == 0))
        u->rc =
            err_set(e, SHOAL_EIO, "%.240s", u->reason[0] ? u->reason : u->api->easy_strerror(code));
    u->e = NULL;
    return u->rc;
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
    char url[MAX_URL + 32];
    struct buf b;
    const struct fetch_sink to = {&b, keep_text};
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

static int get_manifest(struct fetch_transfer *t, struct model_manifest *m, struct err *e)
{
    struct fetch_url *u = (struct fetch_url *)(void *)t;
    char name[MODEL_MANIFEST_MAX_NAME + 1];
    if (u->folder)
        return get_folder_manifest(u, m, e);
    int rc = get(u, u->url, 0, NULL, e);
    if (rc < 0)
        return rc;
    if (!u->has_total)
        return err_set(e, SHOAL_EFORMAT, "it does not say how large the file is");
    file_name(name, u->url);
    return model_manifest_single(m, name, u->total, u->opts.model, e);
}

static int get_file(struct fetch_transfer *t, const struct model_manifest *m, uint32_t i,
                    uint64_t offset, const struct fetch_sink *to, struct err *e)
{
    static const char digits[] = "0123456789ABCDEF";
    struct fetch_url *u = (struct fetch_url *)(void *)t;
    char place[MODEL_MANIFEST_MAX_NAME + 16];
    struct buf url;
    if (!u->folder)
        return get(u, u->url, offset, to, e);
    if (!model_manifest_place(place, sizeof(place), m, i))
        return err_set(e, SHOAL_ELIMIT, "the name of a file is too long");
    buf_init(&url, 4 * MAX_URL);
    buf_printf(&url, "%sfiles/", u->url);
    for (const char *p = place; *p; p++)
        if (isalnum((unsigned char)*p) || strchr("-._~/", *p))
            buf_putc(&url, *p);
        else
            buf_printf(&url, "%%%c%c", digits[(unsigned char)*p >> 4], digits[*p & 15]);
    int rc =
        url.rc < 0 ? err_set(e, url.rc, "a URL is too long") : get(u, buf_str(&url), offset, to, e);
    buf_fini(&url);
    return rc;
}

/* ---- lifetime ---- */

bool fetch_url_ok(const char *url)
{
    size_t n = strnlen(url, MAX_URL + 1);
    if (n > MAX_URL || (!is_https(url) && strncasecmp(url, "http://", 7) != 0))
        return false;
    for (const char *p = url; *p; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f)
            return false;
    return true;
}

static void close_url(struct fetch_transfer *t)
{
    struct fetch_url *u = (struct fetch_url *)(void *)t;
    if (u->curl)
        u->api->easy_cleanup(u->curl);
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
    const struct libcurl *api;
    int rc = libcurl_get(&api, e);
    if (rc < 0)
        return rc;
    struct fetch_url *u = mem_zalloc(sizeof(*u));
    if (!u)
        return err_set(e, SHOAL_ENOMEM, "transfer from a URL");
    u->transfer.ops = &ops;
    u->api = api;
    u->opts = *o;
    u->folder = url[strlen(url) - 1] == '/';
    u->url = mem_strdup(url);
    u->ca = ca ? mem_strdup(ca) : NULL;
    u->curl = u->api->easy_init();
    if (!u->url || (ca && !u->ca) || !u->curl) {
        close_url(&u->transfer);
        return err_set(e, SHOAL_ENOMEM, "transfer from a URL");
    }
    *out = &u->transfer;
    return 0;
}
