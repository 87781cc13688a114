/* oci_client.c - see oci_client.h. */
#include "gateway/api/ollama/oci_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file/file_open.h"
#include "base/mem.h"
#include "gateway/api/model_profiles.h"
#include "host/sha256.h"
#include "net/libcurl.h"
#include "wire/json_out.h"

#define MS_NS 1000000u
#define MAX_URL 2000u
#define MAX_REDIRECTS 5
#define MAX_ERROR_BYTES ((size_t)64 << 10) /* limit of an error response */
#define MAX_TEXT_BYTES ((size_t)1 << 20)
#define CONNECT_MS 10000L
#define SILENT_MS 60000u
#define READ_BYTES ((size_t)1 << 18)

/* ---- addresses ---- */

static bool public4(uint32_t a) /* host order */
{
    static const struct {
        uint32_t net;
        int bits;
    } closed[] = {{0x00000000, 8},  {0x0a000000, 8},  {0x64400000, 10}, {0x7f000000, 8},
                  {0xa9fe0000, 16}, {0xac100000, 12}, {0xc0000000, 24}, {0xc0a80000, 16},
                  {0xc6120000, 15}, {0xe0000000, 3}};
    for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
        if ((a ^ closed[i].net) >> (32 - closed[i].bits) == 0)
            return false;
    return true;
}

bool oci_client_is_public(const void *addr)
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
    static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};
    static const uint8_t zero[10] = {0};
    if (memcmp(b, nat64, sizeof(nat64)) == 0)
        return public4(last);
    if (memcmp(b, zero, sizeof(zero)) == 0) /* ::, ::1, and IPv4 in IPv6 */
        return b[10] == 0xff && b[11] == 0xff && public4(last);
    return (b[0] & 0xe0) == 0x20; /* 2000::/3 is the allocated range */
}

bool oci_client_is_url(const char *text)
{
    return strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0;
}

/* ---- one request ---- */

struct client {
    const struct oci_client_opts *o;
    const struct libcurl *api;
    CURL *curl;
    char reason[CURL_ERROR_SIZE];
    char host[256]; /* of the registry, for messages */
    char path[512]; /* of the model: "library/reply" */
    char tag[130];
    uint64_t silent_ns;
};

/* A request and its destination. */
struct oci_request {
    const char *method, *accept, *type; /* type: of the body; NULL: none */
    const char *body;
    int fd; /* body_bytes of a file instead; -1: none */
    uint64_t body_bytes;
    const char *digest; /* for progress of the body; NULL: none */
    uint64_t offset;    /* where the answer begins */
    /* Of an answer with status 200 or 206; begins: it is the first piece, from this byte on. */
    int (*write)(void *ctx, const char *p, size_t n, bool begins, uint64_t from, struct err *e);
    void *ctx;
};

struct reply {
    long status;
    char location[MAX_URL];
};

struct run { /* of one request */
    struct client *x;
    const struct oci_request *a;
    struct reply *reply;
    struct err *e;
    int rc;
    bool foreign, began; /* foreign: a host that the registry sent us to */
    bool has_range;
    uint64_t range_from, heard_ns, sent;
    size_t n_error;
};

static bool check_stop(struct run *r)
{
    if (!r->x->o->stopped || !r->x->o->stopped(r->x->o->ctx))
        return false;
    r->rc = err_set(r->e, SHOAL_ECANCELLED, "stopped");
    return true;
}

static size_t on_header(char *p, size_t size, size_t n, void *ctx)
{
    struct run *r = ctx;
    char line[MAX_URL];
    uint64_t from;
    n *= size;
    r->heard_ns = clock_ns();
    snprintf(line, sizeof(line), "%.*s", (int)(n < sizeof(line) - 1 ? n : sizeof(line) - 1), p);
    line[strcspn(line, "\r\n")] = '\0';
    const char *value = strchr(line, ':');
    value = value ? value + 1 + strspn(value + 1, " \t") : "";
    if (strncmp(line, "HTTP/", 5) == 0) {
        r->has_range = false;
        r->reply->location[0] = '\0';
    } else if (strncasecmp(line, "content-range:", 14) == 0) {
        r->has_range = sscanf(value, "bytes %" SCNu64 "-", &from) == 1;
        r->range_from = r->has_range ? from : 0;
    } else if (strncasecmp(line, "location:", 9) == 0 && strlen(value) < MAX_URL) {
        snprintf(r->reply->location, sizeof(r->reply->location), "%s", value);
    }
    return n;
}

static size_t on_body(char *p, size_t size, size_t n, void *ctx)
{
    struct run *r = ctx;
    long status = 0;
    n *= size;
    r->heard_ns = clock_ns();
    if (check_stop(r))
        return 0;
    (void)r->x->api->easy_getinfo(r->x->curl, CURLINFO_RESPONSE_CODE, &status);
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
    if (r->a->fd >= 0) {
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
    if (r->a->digest && r->x->o->progress)
        r->x->o->progress(r->x->o->ctx, r->a->digest, r->a->body_bytes, r->sent);
    return n;
}

/* About once a second, even without data. */
static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct run *r = ctx;
    (void)a, (void)b, (void)c, (void)d;
    if (check_stop(r))
        return 1;
    if (clock_ns() - r->heard_ns < r->x->silent_ns)
        return 0;
    r->rc = err_set(r->e, SHOAL_EIO, "it is silent");
    return 1;
}

static curl_socket_t on_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *addr)
{
    struct run *r = ctx;
    if (purpose == CURLSOCKTYPE_IPCXN && r->foreign && !oci_client_is_public(&addr->addr)) {
        r->rc = err_set(r->e, SHOAL_EFORMAT,
                        "it redirects to an address of this machine or of a private network, "
                        "which is refused");
        return CURL_SOCKET_BAD;
    }
    return socket(addr->family, addr->socktype | SOCK_CLOEXEC, addr->protocol);
}

static bool is_https(const char *url)
{
    return strncasecmp(url, "https://", 8) == 0;
}

static bool prepare(struct run *r, const char *url, struct curl_slist *headers)
{
    CURL *c = r->x->curl;
    const struct oci_request *a = r->a;
    char range[32];
    bool ok = true;
    r->x->api->easy_reset(c);
    r->x->reason[0] = '\0';
#define SET(option, value) ok = ok && r->x->api->easy_setopt(c, (option), (value)) == CURLE_OK
    SET(CURLOPT_URL, url);
    SET(CURLOPT_PROTOCOLS_STR, is_https(url) ? "https" : "http");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    SET(CURLOPT_USERAGENT, "shoal");
    SET(CURLOPT_ERRORBUFFER, r->x->reason);
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
    if (strcmp(a->method, "HEAD") == 0) {
        SET(CURLOPT_NOBODY, 1L);
    } else if (strcmp(a->method, "GET") != 0) {
        SET(CURLOPT_UPLOAD, 1L);
        SET(CURLOPT_CUSTOMREQUEST, a->method);
        SET(CURLOPT_READFUNCTION, on_send);
        SET(CURLOPT_READDATA, (void *)r);
        SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)a->body_bytes);
    }
    if (a->offset > 0) {
        snprintf(range, sizeof(range), "%" PRIu64 "-", a->offset);
        SET(CURLOPT_RANGE, range);
    }
#undef SET
    return ok;
}

static struct curl_slist *make_headers(struct client *x, const struct oci_request *a)
{
    char line[256];
    struct curl_slist *list = x->api->slist_append(NULL, "Expect:");
    if (list && a->accept) {
        snprintf(line, sizeof(line), "Accept: %s", a->accept);
        struct curl_slist *more = x->api->slist_append(list, line);
        list = more ? more : list;
    }
    if (list && a->type) {
        snprintf(line, sizeof(line), "Content-Type: %s", a->type);
        struct curl_slist *more = x->api->slist_append(list, line);
        list = more ? more : list;
    }
    return list;
}

/* Scheme, host and port of a URL, without credentials, in lower case. */
static void origin_of(char *out, size_t cap, const char *url)
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

static bool same_origin(const char *a, const char *b)
{
    char x[256], y[256];
    origin_of(x, sizeof(x), a);
    origin_of(y, sizeof(y), b);
    return strcmp(x, y) == 0;
}

/* One request without redirects. */
static int perform(struct client *x, const char *url, const struct oci_request *a,
                   struct reply *reply, struct err *e)
{
    struct run r = {.x = x,
                    .a = a,
                    .reply = reply,
                    .e = e,
                    .foreign = !same_origin(url, x->o->url),
                    .heard_ns = clock_ns()};
    struct curl_slist *headers = make_headers(x, a);
    reply->status = 0;
    reply->location[0] = '\0';
    if (!headers || !prepare(&r, url, headers)) {
        x->api->slist_free_all(headers);
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "libcurl is too old or was built without HTTPS: 7.85 is needed");
    }
    CURLcode code = x->api->easy_perform(x->curl);
    (void)x->api->easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &reply->status);
    char *target = NULL;
    if (reply->location[0] &&
        x->api->easy_getinfo(x->curl, CURLINFO_REDIRECT_URL, &target) == CURLE_OK && target &&
        strlen(target) < MAX_URL) /* made absolute; only of redirects */
        snprintf(reply->location, sizeof(reply->location), "%s", target);
    x->api->slist_free_all(headers);
    bool refused = r.n_error > MAX_ERROR_BYTES; /* the status says enough */
    if (code != CURLE_OK && r.rc == 0 && !refused)
        r.rc =
            err_set(e, SHOAL_EIO, "%.200s", x->reason[0] ? x->reason : x->api->easy_strerror(code));
    return r.rc;
}

static bool is_redirect(long status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Downloads may be redirected. */
static int ask(struct client *x, const char *url, const struct oci_request *a, struct reply *reply,
               struct err *e)
{
    char at[MAX_URL];
    bool may = strcmp(a->method, "GET") == 0 || strcmp(a->method, "HEAD") == 0;
    snprintf(at, sizeof(at), "%s", url);
    for (int i = 0; i <= MAX_REDIRECTS; i++) {
        int rc = perform(x, at, a, reply, e);
        if (rc < 0 || !is_redirect(reply->status))
            return rc;
        if (!may || !oci_client_is_url(reply->location))
            return err_set(e, SHOAL_EFORMAT, "it redirects to an address that is not allowed");
        if (is_https(at) && !is_https(reply->location))
            return err_set(e, SHOAL_EFORMAT, "it redirects from HTTPS to HTTP, which is refused");
        snprintf(at, sizeof(at), "%s", reply->location);
    }
    return err_set(e, SHOAL_EFORMAT, "it redirects more than %d times", MAX_REDIRECTS);
}

/* The error for an unsuccessful status. */
static int refused(const struct client *x, long status, const char *what, struct err *e)
{
    if (status == 404)
        return err_set(e, SHOAL_ENOTFOUND, "the registry %.100s has no %s", x->host, what);
    if (status == 401 || status == 403)
        return err_set(e, SHOAL_EINVAL,
                       "the registry %.100s refuses the request for %s (HTTP status %ld): put "
                       "user:password@ into the URL of ollama.registry",
                       x->host, what, status);
    return err_set(e, status == 429 || status == 503 ? SHOAL_EBUSY : SHOAL_EIO,
                   "the registry %.100s answers the request for %s with HTTP status %ld", x->host,
                   what, status);
}

/* Errors of a transfer name the registry. */
static int told(const struct client *x, int rc, struct err *e)
{
    if (rc < 0 && rc != SHOAL_ECANCELLED && rc != SHOAL_ENOMEM) {
        const struct err was = *e;
        return err_set(e, rc, "the registry %.100s: %.300s", x->host, was.msg);
    }
    return rc;
}

/* ---- the client ---- */

static int client_open(struct client *x, const struct oci_client_opts *o, struct err *e)
{
    char origin[256];
    *x = (struct client){.o = o};
    origin_of(origin, sizeof(origin), o->url);
    snprintf(x->host, sizeof(x->host), "%s", strstr(origin, "://") + 3);
    x->silent_ns = (uint64_t)(o->silent_ms ? o->silent_ms : SILENT_MS) * MS_NS;
    const char *slash = strchr(o->name, '/'), *colon = strrchr(o->name, ':');
    if (colon && slash && colon < strrchr(o->name, '/'))
        return err_set(e, SHOAL_EINVAL,
                       "'%.64s' names a host: models come from the configured registry alone",
                       o->name);
    size_t n = colon ? (size_t)(colon - o->name) : strlen(o->name);
    if (n > 200 || (colon && (!colon[1] || strlen(colon) > 128)))
        return err_set(e, SHOAL_EINVAL, "'%.64s' is not the name of a model in a registry",
                       o->name);
    snprintf(x->path, sizeof(x->path), "%s%.*s", slash ? "" : "library/", (int)n, o->name);
    snprintf(x->tag, sizeof(x->tag), "%s", colon ? colon + 1 : "latest");
    int rc = libcurl_get(&x->api, e);
    if (rc == 0 && !(x->curl = x->api->easy_init()))
        rc = err_set(e, SHOAL_ENOMEM, "out of memory");
    return rc;
}

static void client_close(struct client *x)
{
    if (x->curl)
        x->api->easy_cleanup(x->curl);
}

/* "URL/v2/NAME/KIND/ID" */
static void make_url(const struct client *x, char out[MAX_URL], const char *kind, const char *id)
{
    size_t n = strlen(x->o->url);
    while (n > 0 && x->o->url[n - 1] == '/')
        n--;
    snprintf(out, MAX_URL, "%.*s/v2/%s/%s/%s", (int)(n < 800 ? n : 800), x->o->url, x->path, kind,
             id);
}

static int keep_text(void *ctx, const char *p, size_t n, bool begins, uint64_t from, struct err *e)
{
    struct buf *b = ctx;
    (void)begins, (void)from;
    buf_put(b, p, n);
    return b->rc < 0 ? err_set(e, SHOAL_ELIMIT, "it sends more than is allowed") : 0;
}

static int get_text(struct client *x, const char *kind, const char *id, const char *accept,
                    const char *what, struct buf *out, struct err *e)
{
    char url[MAX_URL];
    const struct oci_request a = {
        .method = "GET", .accept = accept, .fd = -1, .write = keep_text, .ctx = out};
    struct reply reply;
    make_url(x, url, kind, id);
    int rc = told(x, ask(x, url, &a, &reply, e), e);
    return rc == 0 && reply.status != 200 ? refused(x, reply.status, what, e) : rc;
}

/* ---- pull ---- */

struct download {
    struct client *x;
    const struct oci_blob *blob;
    int fd;
    uint64_t at; /* bytes in the file */
    struct sha256 hash;
};

/* Hashes the existing bytes. */
static int hash_file(int fd, struct sha256 *h, uint64_t n, struct err *e)
{
    char *block = mem_alloc(READ_BYTES);
    int rc = block ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory");
    for (uint64_t at = 0; rc == 0 && at < n;) {
        size_t most = n - at < READ_BYTES ? (size_t)(n - at) : READ_BYTES;
        ssize_t got = pread(fd, block, most, (off_t)at);
        if (got <= 0)
            rc = err_set(e, SHOAL_EIO, "cannot read a file of models: %s", strerror(errno));
        else
            sha256_add(h, block, (size_t)got);
        at += got > 0 ? (uint64_t)got : 0;
    }
    mem_free(block);
    return rc;
}

static int restart(struct download *d, struct err *e)
{
    uint8_t sum[SHA256_BYTES];
    (void)!sha256_end(&d->hash, sum);
    sha256_begin(&d->hash);
    d->at = 0;
    return ftruncate(d->fd, 0) == 0
               ? 0
               : err_set(e, SHOAL_EIO, "cannot write a blob: %s", strerror(errno));
}

static int save(void *ctx, const char *p, size_t n, bool begins, uint64_t from, struct err *e)
{
    struct download *d = ctx;
    /* starts over if the server sends the whole file */
    int rc = begins && from == 0 && d->at > 0 ? restart(d, e) : 0;
    if (rc == 0 && n > d->blob->bytes - d->at)
        rc = err_set(e, SHOAL_EFORMAT, "it sends more bytes of %.19s than the manifest says",
                     d->blob->digest);
    for (size_t done = 0; rc == 0 && done < n;) {
        ssize_t k = pwrite(d->fd, p + done, n - done, (off_t)(d->at + done));
        if (k <= 0)
            rc = err_set(e, SHOAL_EIO, "cannot write a blob: %s", strerror(errno));
        done += k > 0 ? (size_t)k : 0;
    }
    if (rc < 0)
        return rc;
    sha256_add(&d->hash, p, n);
    d->at += n;
    if (d->x->o->progress)
        d->x->o->progress(d->x->o->ctx, d->blob->digest, d->blob->bytes, d->at);
    return 0;
}

/* The rest of the blob into the file. */
static int receive(struct download *d, struct err *e)
{
    char url[MAX_URL];
    struct oci_request a = {.method = "GET", .fd = -1, .offset = d->at, .write = save, .ctx = d};
    struct reply reply = {.status = 206};
    make_url(d->x, url, "blobs", d->blob->digest);
    int rc = d->at < d->blob->bytes ? told(d->x, ask(d->x, url, &a, &reply, e), e) : 0;
    if (rc == 0 && reply.status != 200 && reply.status != 206)
        rc = refused(d->x, reply.status, d->blob->digest, e);
    if (rc == 0 && d->at < d->blob->bytes)
        rc = err_set(e, SHOAL_EIO,
                     "the registry %.100s disconnected after %" PRIu64 " of %" PRIu64
                     " bytes: pull again to resume",
                     d->x->host, d->at, d->blob->bytes);
    return rc;
}

static int check_room(int fd, uint64_t wanted, struct err *e)
{
    struct statvfs fs;
    if (fstatvfs(fd, &fs) == 0 && wanted / fs.f_frsize >= fs.f_bavail)
        return err_set(e, SHOAL_ELIMIT,
                       "the disk has no room for %" PRIu64 " bytes: make some, or set ollama.dir",
                       wanted);
    return 0;
}

/* temp: the file that grows; it stays if the transfer breaks off. */
static int download(struct client *x, const struct oci_blob *blob, const char *temp,
                    const char *path, struct err *e)
{
    struct download d = {.x = x, .blob = blob};
    uint8_t sum[SHA256_BYTES];
    char hex[2 * SHA256_BYTES + 1];
    struct stat st;
    int rc = 0;
    d.fd = open(temp, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (d.fd < 0 || fstat(d.fd, &st) < 0) {
        rc = err_set(e, SHOAL_EIO, "cannot write %s: %s", temp, strerror(errno));
        if (d.fd >= 0)
            close(d.fd);
        return rc;
    }
    sha256_begin(&d.hash);
    if (flock(d.fd, LOCK_EX | LOCK_NB) < 0)
        rc = err_set(e, SHOAL_EBUSY, "%.19s is being fetched already", blob->digest);
    d.at = (uint64_t)st.st_size;
    if (rc == 0 && d.at > blob->bytes)
        rc = restart(&d, e);
    if (rc == 0)
        rc = hash_file(d.fd, &d.hash, d.at, e);
    if (rc == 0)
        rc = check_room(d.fd, blob->bytes - d.at, e);
    if (rc == 0)
        rc = receive(&d, e);
    bool hashed = sha256_end(&d.hash, sum);
    sha256_hex(hex, sum);
    if (rc == 0 && (!hashed || strcmp(hex, blob->digest + 7) != 0)) {
        unlink(temp); /* nothing to resume from */
        rc = err_set(e, SHOAL_EFORMAT,
                     "the registry %.100s sent bytes that do not have the digest %.19s", x->host,
                     blob->digest);
    }
    if (rc == 0 && (fsync(d.fd) < 0 || rename(temp, path) < 0))
        rc = err_set(e, SHOAL_EIO, "cannot write %s: %s", path, strerror(errno));
    close(d.fd);
    return rc;
}

static int pull_model(struct client *x, struct oci_client_model *out, const struct oci_blob *blob,
                      struct model_profiles *store, struct err *e)
{
    char temp[PATH_MAX];
    struct err none = {0};
    memcpy(out->digest, blob->digest, sizeof(out->digest));
    out->bytes = blob->bytes;
    if (model_profiles_find_blob(store, blob->digest, out->path, &none) == 0)
        return 0;
    int rc = model_profiles_place_blob(store, blob->digest, out->path, e);
    if (rc < 0)
        return rc;
    int n = snprintf(temp, sizeof(temp), "%s.partial", out->path);
    if (n < 0 || n >= PATH_MAX)
        return err_set(e, SHOAL_EINVAL, "the path of %s is too long", out->path);
    return download(x, blob, temp, out->path, e);
}

/* A small blob as text; NULL: none. */
static int pull_text(struct client *x, char **out, const struct oci_blob *blob, struct err *e)
{
    uint8_t sum[SHA256_BYTES];
    char hex[2 * SHA256_BYTES + 1];
    struct sha256 h;
    struct buf b;
    size_t n;
    if (!blob->digest[0])
        return 0;
    buf_init(&b, MAX_TEXT_BYTES);
    int rc = get_text(x, "blobs", blob->digest, NULL, blob->digest, &b, e);
    sha256_begin(&h);
    sha256_add(&h, buf_str(&b), b.len);
    bool hashed = sha256_end(&h, sum);
    sha256_hex(hex, sum);
    if (rc == 0 && (!hashed || strcmp(hex, blob->digest + 7) != 0 || memchr(buf_str(&b), 0, b.len)))
        rc = err_set(e, SHOAL_EFORMAT,
                     "the registry %.100s sent bytes that do not have the digest %.19s", x->host,
                     blob->digest);
    if (rc == 0 && !(*out = buf_take(&b, &n)))
        rc = err_set(e, SHOAL_ENOMEM, "out of memory");
    buf_fini(&b);
    return rc;
}

int oci_client_pull(struct oci_client_model *out, const struct oci_client_opts *o,
                    struct model_profiles *store, struct err *e)
{
    struct oci_manifest m;
    struct client x;
    struct buf text;
    char what[160];
    buf_init(&text, OCI_MANIFEST_MAX_BYTES);
    int rc = client_open(&x, o, e);
    snprintf(what, sizeof(what), "model '%.64s'", o->name);
    if (rc == 0)
        rc = get_text(&x, "manifests", x.tag,
                      OCI_MANIFEST_TYPE ", application/vnd.oci.image.manifest.v1+json", what, &text,
                      e);
    if (rc == 0)
        rc = told(&x, oci_manifest_read(&m, buf_str(&text), text.len, o->max_model, e), e);
    if (rc == 0)
        rc = pull_model(&x, out, &m.parts[OCI_PART_MODEL], store, e);
    if (rc == 0)
        rc = pull_text(&x, &out->system, &m.parts[OCI_PART_SYSTEM], e);
    if (rc == 0)
        rc = pull_text(&x, &out->parameters, &m.parts[OCI_PART_PARAMETERS], e);
    if (rc == 0)
        rc = pull_text(&x, &out->license, &m.parts[OCI_PART_LICENSE], e);
    buf_fini(&text);
    client_close(&x);
    if (rc < 0)
        oci_client_fini(out);
    return rc;
}

void oci_client_fini(struct oci_client_model *m)
{
    mem_free(m->system);
    mem_free(m->parameters);
    mem_free(m->license);
    m->system = m->parameters = m->license = NULL;
}

/* ---- push ---- */

/* Sends a blob that the registry does not have yet: bytes of memory, or of a file (fd). */
static int send_blob(struct client *x, const struct oci_blob *blob, const char *body, int fd,
                     struct err *e)
{
    char url[MAX_URL], whole[MAX_URL + 128];
    struct oci_request a = {.method = "HEAD", .fd = -1};
    struct reply reply;
    make_url(x, url, "blobs", blob->digest);
    int rc = told(x, ask(x, url, &a, &reply, e), e);
    if (rc < 0)
        return rc;
    if (reply.status == 200) {
        if (x->o->progress && fd >= 0)
            x->o->progress(x->o->ctx, blob->digest, blob->bytes, blob->bytes);
        return 0;
    }
    a.method = "POST";
    make_url(x, url, "blobs", "uploads/");
    rc = told(x, ask(x, url, &a, &reply, e), e);
    if (rc == 0 && (reply.status != 202 || !reply.location[0]))
        rc = refused(x, reply.status, "an upload", e);
    if (rc < 0)
        return rc;
    if (!oci_client_is_url(reply.location)) { /* a path */
        char origin[256];
        origin_of(origin, sizeof(origin), x->o->url);
        snprintf(url, sizeof(url), "%.250s%s%.1600s", origin, reply.location[0] == '/' ? "" : "/",
                 reply.location);
    } else if (same_origin(reply.location, x->o->url)) {
        snprintf(url, sizeof(url), "%s", reply.location);
    } else {
        return err_set(e, SHOAL_EFORMAT,
                       "the registry %.100s wants the upload to go to another host, which is "
                       "refused",
                       x->host);
    }
    snprintf(whole, sizeof(whole), "%s%cdigest=%s", url, strchr(url, '?') ? '&' : '?',
             blob->digest);
    a = (struct oci_request){.method = "PUT",
                             .type = "application/octet-stream",
                             .body = body,
                             .fd = fd,
                             .body_bytes = blob->bytes,
                             .digest = fd >= 0 ? blob->digest : NULL};
    rc = told(x, ask(x, whole, &a, &reply, e), e);
    return rc == 0 && reply.status != 201 ? refused(x, reply.status, "an upload", e) : rc;
}

static int send_text(struct client *x, struct oci_blob *blob, const char *text, struct err *e)
{
    uint8_t sum[SHA256_BYTES];
    char hex[2 * SHA256_BYTES + 1];
    struct sha256 h;
    if (!text || !text[0])
        return 0;
    blob->bytes = strlen(text);
    sha256_begin(&h);
    sha256_add(&h, text, blob->bytes);
    if (!sha256_end(&h, sum))
        return err_set(e, SHOAL_ENOMEM, "out of memory");
    sha256_hex(hex, sum);
    snprintf(blob->digest, sizeof(blob->digest), "sha256:%s", hex);
    return send_blob(x, blob, text, -1, e);
}

static int send_model(struct client *x, struct oci_client_model *m, struct oci_blob *blob,
                      struct err *e)
{
    uint8_t sum[SHA256_BYTES];
    char hex[2 * SHA256_BYTES + 1];
    struct sha256 h;
    struct stat st;
    int fd = file_open_regular(m->path, &st);
    if (fd < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", m->path, file_open_reason(errno));
    blob->bytes = (uint64_t)st.st_size;
    sha256_begin(&h);
    int rc = hash_file(fd, &h, blob->bytes, e);
    if (!sha256_end(&h, sum) && rc == 0)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory");
    sha256_hex(hex, sum);
    snprintf(blob->digest, sizeof(blob->digest), "sha256:%s", hex);
    memcpy(m->digest, blob->digest, sizeof(m->digest));
    m->bytes = blob->bytes;
    if (rc == 0)
        rc = send_blob(x, blob, NULL, fd, e);
    close(fd);
    return rc;
}

static int send_manifest(struct client *x, const struct oci_manifest *m, struct err *e)
{
    char url[MAX_URL];
    struct reply reply;
    struct buf b;
    buf_init(&b, OCI_MANIFEST_MAX_BYTES);
    oci_manifest_write(m, &b);
    const struct oci_request a = {.method = "PUT",
                                  .type = OCI_MANIFEST_TYPE,
                                  .body = buf_str(&b),
                                  .fd = -1,
                                  .body_bytes = b.len};
    make_url(x, url, "manifests", x->tag);
    int rc = b.rc < 0 ? err_set(e, b.rc, "out of memory") : told(x, ask(x, url, &a, &reply, e), e);
    buf_fini(&b);
    return rc == 0 && reply.status != 201 && reply.status != 200
               ? refused(x, reply.status, "a manifest", e)
               : rc;
}

int oci_client_push(struct oci_client_model *m, const struct oci_client_opts *o, struct err *e)
{
    struct oci_manifest manifest;
    struct client x;
    char config[256];
    memset(&manifest, 0, sizeof(manifest));
    int rc = client_open(&x, o, e);
    if (rc == 0)
        rc = send_model(&x, m, &manifest.parts[OCI_PART_MODEL], e);
    if (rc == 0)
        rc = send_text(&x, &manifest.parts[OCI_PART_SYSTEM], m->system, e);
    if (rc == 0)
        rc = send_text(&x, &manifest.parts[OCI_PART_PARAMETERS], m->parameters, e);
    if (rc == 0)
        rc = send_text(&x, &manifest.parts[OCI_PART_LICENSE], m->license, e);
    snprintf(config, sizeof(config),
             "{\"model_format\":\"gguf\",\"architecture\":\"amd64\",\"os\":\"linux\",\"rootfs\":{"
             "\"type\":\"layers\",\"diff_ids\":[\"%s\"]}}",
             m->digest);
    if (rc == 0)
        rc = send_text(&x, &manifest.parts[OCI_PART_CONFIG], config, e);
    if (rc == 0)
        rc = send_manifest(&x, &manifest, e);
    client_close(&x);
    return rc;
}
