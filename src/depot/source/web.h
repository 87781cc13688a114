/* web.h - requests to a web server that models come from or go to: hubs, registries, package
 * indexes.
 *
 * A client belongs to one server, its base. Only HTTP and HTTPS are spoken. A download may be
 * redirected, never from HTTPS to HTTP, and to another host only if that has a public address:
 * otherwise a server outside could make us read from inside. The address that is connected to
 * counts, whatever its name meant before. Credentials go to the base alone.
 *
 * Thread:    belongs to one thread; calls block.  stopped, write and sent are called on it.
 * Ownership: open gives, close takes back (NULL is fine). Options and requests are borrowed: the
 *            options until close.
 * Failure:   SHOAL_ECANCELLED, SHOAL_EUNSUPPORTED (no libcurl), SHOAL_EFORMAT (a redirect or range
 *            that is not acceptable), SHOAL_EIO (broken or silent: the rest can be requested
 *            later), and what write returns.  A status is no failure: see web_refused. */
#ifndef SHOAL_DEPOT_SOURCE_WEB_H
#define SHOAL_DEPOT_SOURCE_WEB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct web;

#define WEB_MAX_URL 2000u

struct web_opts {
    const char *base;           /* "https://HOST:PORT/...", may contain user:password@ */
    const char *token;          /* sent to the base as a bearer token; or NULL */
    const char *ca;             /* PEM file with the CAs to trust; NULL: those of the system */
    uint32_t silent_ms;         /* a server is abandoned after this long without data; 0: 60 s */
    bool private_ok;            /* redirects may lead to private addresses */
    bool strange;               /* a client has named the base: it must be public, too */
    bool (*stopped)(void *ctx); /* or NULL */
    void *ctx;
};

struct web_request {
    const char *method;        /* NULL: GET */
    const char *accept, *type; /* type: of the body; NULL: none */
    const char *body;
    int fd; /* > 0: body_bytes of this file instead */
    uint64_t body_bytes;
    uint64_t offset; /* where the answer begins */
    uint64_t end;    /* and before which byte it ends; 0: with the resource */
    bool probe;      /* GET for the headers alone: HEAD is not allowed everywhere */
    /* Of an answer with status 200 or 206; begins: it is the first piece, from this byte on. */
    int (*write)(void *ctx, const char *p, size_t n, bool begins, uint64_t from, struct err *e);
    void (*sent)(void *ctx, uint64_t bytes); /* of the body so far; or NULL */
    void *ctx;
};

struct web_reply {
    long status;
    bool has_total;
    uint64_t total; /* size of the whole resource, if the server sent it */
    char location[WEB_MAX_URL];
    char etag[200];
    char authenticate[1024]; /* how to get access, with status 401 */
};

SHOAL_MUST_CHECK int web_open(struct web **out, const struct web_opts *o, struct err *e);
void web_close(struct web *w);
/* Sends a request; redirects of GET and HEAD are followed. */
SHOAL_MUST_CHECK int web_ask(struct web *w, const char *url, const struct web_request *r,
                             struct web_reply *reply, struct err *e);
/* The bytes of a resource from an offset on, for web_request.write: a server that does not know
 * ranges sends the whole. */
struct byte_sink;
struct web_rest {
    uint64_t offset; /* as in the request */
    const struct byte_sink *to;
    uint64_t skip; /* private */
};
int web_rest_write(void *web_rest, const char *p, size_t n, bool begins, uint64_t from,
                   struct err *e);

/* The body of a GET with status 200, appended to out, at most the buffer's limit. what, hint: for
 * web_refused. */
struct buf;
SHOAL_MUST_CHECK int web_text(struct web *w, const char *url, const char *accept, const char *what,
                              const char *hint, struct buf *out, struct err *e);
/* The error for a status that is not a success. hint: what to do about 401 and 403, or NULL. */
int web_refused(const struct web *w, long status, const char *what, const char *hint,
                struct err *e);
/* Puts the host in front of a message about a failed transfer. */
int web_told(const struct web *w, int rc, struct err *e);
const char *web_host(const struct web *w); /* without credentials */

/* Whether a text is a URL of a web server. */
bool web_is_url(const char *text);
/* Scheme, host and port of a URL, without credentials, in lower case. */
void web_origin(char *out, size_t cap, const char *url);
/* A URL, or HOST/PATH, without the "user:password@" of its host: what may be kept and shown. */
void web_without_login(char *out, size_t cap, const char *url);
bool web_same_origin(const char *a, const char *b);
/* Whether an address is public: not of this machine or a private network. addr: struct sockaddr of
 * an IPv4 or IPv6 address. */
bool web_is_public(const void *addr);
/* Appends a text to a URL, with everything but letters, digits, -._~ and the bytes of `keep`
 * escaped. */
void web_escape(struct buf *out, const char *text, const char *keep);

#endif
