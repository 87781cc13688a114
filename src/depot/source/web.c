/* web.c - see web.h. */
#include "depot/source/web.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "depot/source/byte_sink.h"
#include "net/libcurl.h"

#define MS_NS 1000000u
#define MAX_REDIRECTS 5
#define MAX_ERROR_BYTES ((size_t)64 << 10) /* limit of an error response */
#define MAX_HEADER_LINE 2100u
#define CONNECT_MS 10000L
#define SILENT_MS 60000u

struct web {
    const struct web_opts *o;
    const struct libcurl *api;
    CURL *curl;
    char reason[CURL_ERROR_SIZE];
    char host[256]; /* of the base, for messages */
    uint64_t silent_ns;
};

/* ---- addresses ---- */

static bool public4(uint32_t a) /* host order */
{
    static const struct {
        uint32_t net;
        int bits;
    } closed[] = {{0x00000000, 8},  {0x0a000000, 8},  {0x64400000, 10}, {0x7f000000, 8},
                  {0xa9fe0000, 16}, {0xac100000, 12}, {0xc0000000, 24}, {0xc0a80000, 16},
                  {0xc6120000, 15}, {0xc6336400, 24}, {0xcb007100, 24}, {0xe0000000, 3}};
    for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
        if ((a ^ closed[i].net) >> (32 - closed[i].bits) == 0)
            return false;
    return true;
}

bool web_is_public(const void *addr)
{
    const struct sockaddr *sa = addr;
    if (sa->sa_family == AF_INET) {
        struct sockaddr_in four;
        memcpy(&four, addr, sizeof(four));
        return public4(ntohl(four.sin_addr.s_addr));
    }
    if (sa->sa_family != AF_INET6)
        return false;
    struct sockaddr_in6 six;
    memcpy(&six, addr, sizeof(six));
    const uint8_t *b = six.sin6_addr.s6_addr;
    uint32_t last = (uint32_t)b[12] << 24 | (uint32_t)b[13] << 16 | (uint32_t)b[14] << 8 | b[15];
    uint32_t second = (uint32_t)b[2] << 24 | (uint32_t)b[3] << 16 | (uint32_t)b[4] << 8 | b[5];
    static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};
    static const uint8_t zero[10] = {0};
    if (memcmp(b, nat64, sizeof(nat64)) == 0)
        return public4(last);
    if (memcmp(b, zero, sizeof(zero)) == 0) /* ::, ::1, and IPv4 in IPv6 */
        return b[10] == 0xff && b[11] == 0xff && public4(last);
    if (b[0] == 0x20 && b[1] == 0x02) /* 6to4: IPv4 in front */
        return public4(second);
    if (b[0] == 0x20 && b[1] == 0x01 && (second >> 16 == 0 || second >> 16 == 0x0db8))
        return false; /* Teredo, which hides an IPv4 address, and examples in documents */
    return (b[0] & 0xe0) == 0x20; /* 2000::/3 is the allocated range */
}

bool web_is_url(const char *text)
{
    return strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0;
}

static bool is_https(const char *url)
{
    return strncasecmp(url, "https://", 8) == 0;
}

void web_origin(char *out, size_t cap, const char *url)
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    size_t n = strcspn(host, "/?#");
    const char *at = memrchr(host, '@', n);
    if (at) {
        n -= (size_t)(at + 1 - host);
        host = at + 1;
    }
    int k = snprintf(out, cap, "%s://%.*s", is_https(url) ? "https" : "http",
                     (int)(n < 200 ? n : 200), host);
    for (char *p = out; k > 0 && *p; p++)
        *p = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
}

void web_without_login(char *out, size_t cap, const char *url)
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    const char *at = memrchr(host, '@', strcspn(host, "/?#"));
    snprintf(out, cap, "%.*s%s", (int)(host - url), url, at ? at + 1 : host);
}

bool web_same_origin(const char *a, const char *b)
{
    char x[256], y[256];
    web_origin(x, sizeof(x), a);
    web_origin(y, sizeof(y), b);
    return strcmp(x, y) == 0;
}

void web_escape(struct buf *out, const char *text, const char *keep)
{
    static const char digits[] = "0123456789ABCDEF";
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (isalnum(*p) || strchr("-._~", *p) || strchr(keep, *p))
            buf_putc(out, (char)*p);
        else
            buf_printf(out, "%%%c%c", digits[*p >> 4], digits[*p & 15]);
}

/* ---- one request ---- */

struct run {
    struct web *w;
    const struct web_request *a;
    struct web_reply *reply;
    struct err *e;
    int rc;
    bool foreign, began; /* foreign: a host that the base sent us to */
    bool has_range;
    uint64_t range_from, heard_ns, sent;
    size_t n_error;
};

static bool check_stop(struct run *r)
{
    if (!r->w->o->stopped || !r->w->o->stopped(r->w->o->ctx))
        return false;
    r->rc = err_set(r->e, SHOAL_ECANCELLED, "stopped");
    return true;
}

static void read_range(struct run *r, const char *value)
{
    uint64_t from, to, total;
    int n = sscanf(value, "bytes %" SCNu64 "-%" SCNu64 "/%" SCNu64, &from, &to, &total);
    r->has_range = n >= 1;
    r->range_from = n >= 1 ? from : 0;
    if (n == 3) {
        r->reply->total = total;
        r->reply->has_total = true;
    }
}

static size_t on_header(char *p, size_t size, size_t n, void *ctx)
{
    struct run *r = ctx;
    struct web_reply *to = r->reply;
    char line[MAX_HEADER_LINE], *end;
    n *= size;
    r->heard_ns = clock_ns();
    snprintf(line, sizeof(line), "%.*s", (int)(n < sizeof(line) - 1 ? n : sizeof(line) - 1), p);
    line[strcspn(line, "\r\n")] = '\0';
    const char *value = strchr(line, ':');
    value = value ? value + 1 + strspn(value + 1, " \t") : "";
    if (strncmp(line, "HTTP/", 5) == 0) {
        r->has_range = to->has_total = false;
        to->location[0] = to->etag[0] = to->authenticate[0] = '\0';
    } else if (strncasecmp(line, "content-range:", 14) == 0) {
        read_range(r, value);
    } else if (strncasecmp(line, "content-length:", 15) == 0 && !r->has_range) {
        to->total = strtoull(value, &end, 10);
        to->has_total = end > value;
    } else if (strncasecmp(line, "location:", 9) == 0 && strlen(value) < WEB_MAX_URL) {
        snprintf(to->location, sizeof(to->location), "%s", value);
    } else if (strncasecmp(line, "etag:", 5) == 0) {
        snprintf(to->etag, sizeof(to->etag), "%s", value);
    } else if (strncasecmp(line, "www-authenticate:", 17) == 0) {
        snprintf(to->authenticate, sizeof(to->authenticate), "%s", value);
    }
    return n;
}

static size_t on_body(char *p, size_t size, size_t n, void *ctx)
{
    struct run *r = ctx;
    long status = 0;
    n *= size;
    r->heard_ns = clock_ns();
    if (check_stop(r) || r->a->probe)
        return 0;
    (void)r->w->api->easy_getinfo(r->w->curl, CURLINFO_RESPONSE_CODE, &status);
    if ((status != 200 && status != 206) || !r->a->write) {
        r->n_error += n;
        return r->n_error > MAX_ERROR_BYTES ? 0 : n;
    }
    uint64_t from = status == 206 ? r->range_from : 0;
    if (!r->began && status == 206 && (!r->has_range || from != r->a->offset)) {
        r->rc = err_set(r->e, SHOAL_EFORMAT, "it sent a different range than requested");
        return 0;
    }
    r->rc = r->a->write(r->a->ctx, p, n, !r->began, from, r->e);
    r->began = true;
    return r->rc < 0 ? 0 : n;
}

static size_t on_send(char *p, size_t size, size_t n, void *ctx)
{
    struct run *r = ctx;
    uint64_t left = r->a->body_bytes - r->sent;
    n *= size;
    n = n < left ? n : (size_t)left;
    r->heard_ns = clock_ns();
    if (check_stop(r))
        return CURL_READFUNC_ABORT;
    if (r->a->fd > 0) {
        ssize_t got = pread(r->a->fd, p, n, (off_t)r->sent);
        if (got < 0 || (got == 0 && n > 0)) {
            r->rc = err_set(r->e, SHOAL_EIO, "cannot read the model's file: it has changed");
            return CURL_READFUNC_ABORT;
        }
        n = (size_t)got;
    } else if (n > 0) {
        memcpy(p, r->a->body + r->sent, n);
    }
    r->sent += n;
    if (r->a->sent)
        r->a->sent(r->a->ctx, r->sent);
    return n;
}

/* About once a second, even without data. */
static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct run *r = ctx;
    (void)a, (void)b, (void)c, (void)d;
    if (check_stop(r))
        return 1;
    if (clock_ns() - r->heard_ns < r->w->silent_ns)
        return 0;
    r->rc = err_set(r->e, SHOAL_EIO, "it is silent");
    return 1;
}

static curl_socket_t on_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *addr)
{
    struct run *r = ctx;
    if (purpose == CURLSOCKTYPE_IPCXN && (r->foreign || r->w->o->strange) && !r->w->o->private_ok &&
        !web_is_public(&addr->addr)) {
        r->rc = err_set(r->e, SHOAL_EFORMAT,
                        "%s to an address of this machine or of a private network, which is "
                        "refused: shoal pull --allow-private allows it",
                        r->foreign ? "it redirects" : "its name leads");
        return CURL_SOCKET_BAD;
    }
    return socket(addr->family, addr->socktype | SOCK_CLOEXEC, addr->protocol);
}

static bool prepare(struct run *r, const char *url, struct curl_slist *headers)
{
    CURL *c = r->w->curl;
    const struct web_request *a = r->a;
    const char *method = a->method ? a->method : "GET";
    char range[48];
    bool ok = true;
    r->w->api->easy_reset(c);
    r->w->reason[0] = '\0';
#define SET(option, value) ok = ok && r->w->api->easy_setopt(c, (option), (value)) == CURLE_OK
    SET(CURLOPT_URL, url);
    SET(CURLOPT_PROTOCOLS_STR, is_https(url) ? "https" : "http");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    SET(CURLOPT_USERAGENT, "shoal");
    SET(CURLOPT_ERRORBUFFER, r->w->reason);
    SET(CURLOPT_HTTPHEADER, headers);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, (void *)r);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, (void *)r);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, (void *)r);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_OPENSOCKETFUNCTION, on_socket);
    SET(CURLOPT_OPENSOCKETDATA, (void *)r);
    if (r->w->o->ca)
        SET(CURLOPT_CAINFO, r->w->o->ca);
    if (strcmp(method, "HEAD") == 0) {
        SET(CURLOPT_NOBODY, 1L);
    } else if (strcmp(method, "GET") != 0) {
        SET(CURLOPT_UPLOAD, 1L);
        SET(CURLOPT_CUSTOMREQUEST, method);
        SET(CURLOPT_READFUNCTION, on_send);
        SET(CURLOPT_READDATA, (void *)r);
        SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)a->body_bytes);
    }
    if (a->end > 0) {
        snprintf(range, sizeof(range), "%" PRIu64 "-%" PRIu64, a->offset, a->end - 1);
        SET(CURLOPT_RANGE, range);
    } else if (a->offset > 0 || a->probe) {
        snprintf(range, sizeof(range), "%" PRIu64 "-%s", a->offset, a->probe ? "0" : "");
        SET(CURLOPT_RANGE, range);
    }
#undef SET
    return ok;
}

static struct curl_slist *add_header(const struct web *w, struct curl_slist *list, const char *name,
                                     const char *value)
{
    struct buf line;
    if (!list || !value)
        return list;
    buf_init(&line, 16384);
    buf_printf(&line, "%s: %s", name, value);
    struct curl_slist *more = line.rc == 0 ? w->api->slist_append(list, buf_str(&line)) : NULL;
    buf_fini(&line);
    return more ? more : list;
}

static struct curl_slist *make_headers(const struct web *w, const struct web_request *a,
                                       bool foreign)
{
    char bearer[8200];
    struct curl_slist *list = w->api->slist_append(NULL, "Expect:");
    list = add_header(w, list, "Accept", a->accept);
    list = add_header(w, list, "Content-Type", a->type);
    if (w->o->token && w->o->token[0] && !foreign) {
        snprintf(bearer, sizeof(bearer), "Bearer %s", w->o->token);
        list = add_header(w, list, "Authorization", bearer);
    }
    return list;
}

/* One request without redirects. */
static int perform(struct web *w, const char *url, const struct web_request *a,
                   struct web_reply *reply, struct err *e)
{
    struct run r = {.w = w,
                    .a = a,
                    .reply = reply,
                    .e = e,
                    .foreign = !web_same_origin(url, w->o->base),
                    .heard_ns = clock_ns()};
    struct curl_slist *headers = make_headers(w, a, r.foreign);
    *reply = (struct web_reply){.status = 0};
    if (!headers || !prepare(&r, url, headers)) {
        w->api->slist_free_all(headers);
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "libcurl is too old or was built without HTTPS: 7.85 is needed");
    }
    CURLcode code = w->api->easy_perform(w->curl);
    (void)w->api->easy_getinfo(w->curl, CURLINFO_RESPONSE_CODE, &reply->status);
    char *target = NULL;
    if (reply->location[0] &&
        w->api->easy_getinfo(w->curl, CURLINFO_REDIRECT_URL, &target) == CURLE_OK && target &&
        strlen(target) < WEB_MAX_URL) /* made absolute; only of redirects */
        snprintf(reply->location, sizeof(reply->location), "%s", target);
    w->api->slist_free_all(headers);
    bool refused = r.n_error > MAX_ERROR_BYTES || /* the status says enough */
                   (a->probe && reply->status > 0);
    if (code != CURLE_OK && r.rc == 0 && !refused)
        r.rc =
            err_set(e, SHOAL_EIO, "%.200s", w->reason[0] ? w->reason : w->api->easy_strerror(code));
    return r.rc;
}

static bool is_redirect(long status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

int web_ask(struct web *w, const char *url, const struct web_request *a, struct web_reply *reply,
            struct err *e)
{
    char at[WEB_MAX_URL];
    bool may = !a->method || strcmp(a->method, "GET") == 0 || strcmp(a->method, "HEAD") == 0;
    if (strlen(url) >= sizeof(at) || !web_is_url(url))
        return err_set(e, SHOAL_EINVAL, "%.100s is not a URL of a web server", url);
    snprintf(at, sizeof(at), "%s", url);
    for (int i = 0; i <= MAX_REDIRECTS; i++) {
        int rc = perform(w, at, a, reply, e);
        if (rc < 0 || !is_redirect(reply->status))
            return rc;
        if (!may || !web_is_url(reply->location))
            return err_set(e, SHOAL_EFORMAT, "it redirects to an address that is not allowed");
        if (is_https(at) && !is_https(reply->location))
            return err_set(e, SHOAL_EFORMAT, "it redirects from HTTPS to HTTP, which is refused");
        snprintf(at, sizeof(at), "%s", reply->location);
    }
    return err_set(e, SHOAL_EFORMAT, "it redirects more than %d times", MAX_REDIRECTS);
}

/* ---- helpers ---- */

int web_refused(const struct web *w, long status, const char *what, const char *hint, struct err *e)
{
    if (status == 404)
        return err_set(e, SHOAL_ENOTFOUND, "%.100s has no %s", w->host, what);
    if (status == 401 || status == 403)
        return err_set(e, SHOAL_EINVAL, "%.100s refuses the request for %s (HTTP status %ld)%s%s",
                       w->host, what, status, hint ? ": " : "", hint ? hint : "");
    return err_set(e, status == 429 || status == 503 ? SHOAL_EBUSY : SHOAL_EIO,
                   "%.100s answers the request for %s with HTTP status %ld", w->host, what, status);
}

int web_told(const struct web *w, int rc, struct err *e)
{
    if (rc < 0 && rc != SHOAL_ECANCELLED && rc != SHOAL_ENOMEM)
        (void)err_wrap(e, "%.100s", w->host);
    return rc;
}

int web_rest_write(void *web_rest, const char *p, size_t n, bool begins, uint64_t from,
                   struct err *e)
{
    struct web_rest *r = web_rest;
    if (begins)
        r->skip = r->offset - from;
    size_t drop = r->skip < n ? (size_t)r->skip : n;
    r->skip -= drop;
    return drop < n ? r->to->write(r->to->ctx, p + drop, n - drop, e) : 0;
}

static int keep_text(void *ctx, const char *p, size_t n, bool begins, uint64_t from, struct err *e)
{
    struct buf *b = ctx;
    (void)begins, (void)from;
    buf_put(b, p, n);
    return b->rc < 0 ? err_set(e, SHOAL_ELIMIT, "it sends more than is allowed") : 0;
}

int web_text(struct web *w, const char *url, const char *accept, const char *what, const char *hint,
             struct buf *out, struct err *e)
{
    const struct web_request a = {.accept = accept, .write = keep_text, .ctx = out};
    struct web_reply reply;
    int rc = web_told(w, web_ask(w, url, &a, &reply, e), e);
    return rc == 0 && reply.status != 200 ? web_refused(w, reply.status, what, hint, e) : rc;
}

const char *web_host(const struct web *w)
{
    return w->host;
}

/* ---- lifetime ---- */

int web_open(struct web **out, const struct web_opts *o, struct err *e)
{
    char origin[256];
    const struct libcurl *api;
    *out = NULL;
    if (!web_is_url(o->base))
        return err_set(e, SHOAL_EINVAL, "%.100s is not a URL: use https:// or http://", o->base);
    int rc = libcurl_get(&api, e);
    if (rc < 0)
        return rc;
    struct web *w = mem_zalloc(sizeof(*w));
    if (!w)
        return err_set(e, SHOAL_ENOMEM, "web client");
    w->o = o;
    w->api = api;
    web_origin(origin, sizeof(origin), o->base);
    snprintf(w->host, sizeof(w->host), "%s", strstr(origin, "://") + 3);
    w->silent_ns = (uint64_t)(o->silent_ms ? o->silent_ms : SILENT_MS) * MS_NS;
    if (!(w->curl = api->easy_init())) {
        web_close(w);
        return err_set(e, SHOAL_ENOMEM, "web client");
    }
    *out = w;
    return 0;
}

void web_close(struct web *w)
{
    if (!w)
        return;
    if (w->curl)
        w->api->easy_cleanup(w->curl);
    mem_free(w);
}
