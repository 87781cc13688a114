/* guard.c - see guard.h. */
#include "gateway/call/guard.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "net/listen.h"

/* The length of the name in HOST or HOST:PORT, brackets of an IPv6 address included; 0: neither. */
static size_t name_length(const char *host)
{
    size_t n = strcspn(host, ":");
    if (host[0] == '[') {
        const char *end = strchr(host, ']');
        n = end ? (size_t)(end + 1 - host) : 0;
    }
    if (host[n] == ':' && host[n + 1 + strspn(host + n + 1, "0123456789")] == '\0')
        return n;
    return host[n] == '\0' ? n : 0;
}

static bool is_loopback(const char *name)
{
    struct in_addr four;
    if (strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0)
        return true;
    return inet_pton(AF_INET, name, &four) == 1 && ntohl(four.s_addr) >> 24 == 127;
}

static bool is_listen_host(const char *address, const char *name)
{
    char host[256];
    const char *port;
    size_t n = strlen(name);
    if (listen_is_unix(address) || listen_split(address, host, sizeof(host), &port, NULL) < 0)
        return false;
    if (name[0] == '[')
        return strlen(host) == n - 2 && strncasecmp(host, name + 1, n - 2) == 0;
    return strcasecmp(host, name) == 0;
}

/* Whether host (the value of a Host header) is a name of this server: localhost, 127.0.0.0/8,
 * [::1], the host of a listen address, or one of `hosts`, with or without a port. */
static bool knows_host(const struct config *config, const char *host)
{
    char name[256];
    size_t n = name_length(host);
    for (uint32_t i = 0; i < config->hosts.n; i++)
        if (strcmp(config->hosts.v[i], "*") == 0 || strcasecmp(config->hosts.v[i], host) == 0)
            return true;
    if (n == 0 || n >= sizeof(name))
        return false;
    memcpy(name, host, n);
    name[n] = '\0';
    if (is_loopback(name))
        return true;
    for (uint32_t i = 0; i < config->hosts.n; i++)
        if (strcasecmp(config->hosts.v[i], name) == 0)
            return true;
    for (uint32_t i = 0; i < config->listen.n; i++)
        if (is_listen_host(config->listen.v[i], name))
            return true;
    return false;
}

bool guard_host(struct call *c)
{
    const struct http_req *r = c->req;
    const struct config *config = c->gl->config;
    bool checked = r->via == HTTP_VIA_LOOPBACK || (r->via == HTTP_VIA_NETWORK && config->hosts.n);
    const char *host = checked ? http_header(r, "host") : NULL;
    if (!host || knows_host(config, host)) /* HTTP/1.0 may leave it out, browsers do not */
        return true;
    call_fail(c, 421, NULL, NULL, "unknown_host",
              "this server does not answer for the host '%.100s': use localhost, or add the name "
              "to 'hosts' in "
              "the configuration",
              host);
    return false;
}

/* Whether origin is the page of this server (the same host and port), or allowed by `cors`. */
static bool knows_origin(const struct call *c, const char *origin)
{
    const char *host = http_header(c->req, "host"), *at = strstr(origin, "://");
    bool scheme = strncasecmp(origin, "https://", 8) == 0 ||
                  (!c->req->secure && strncasecmp(origin, "http://", 7) == 0);
    if (call_origin(c))
        return true;
    return scheme && host && strcasecmp(at + 3, host) == 0;
}

bool guard_origin(struct call *c)
{
    const char *origin = http_header(c->req, "origin");
    if (!origin || knows_origin(c, origin)) /* programs other than browsers send none */
        return true;
    call_fail(c, 403, NULL, NULL, "origin_refused",
              "pages from '%.100s' may not use this server: add the origin to 'cors' in the "
              "configuration",
              origin);
    return false;
}

static bool is_local(const char *peer)
{
    struct in_addr four;
    if (strncmp(peer, "::ffff:", 7) == 0)
        peer += 7;
    return strcmp(peer, "unix") == 0 || strcmp(peer, "::1") == 0 ||
           (inet_pton(AF_INET, peer, &four) == 1 && ntohl(four.s_addr) >> 24 == 127);
}

/* Whether a program of this machine asks for itself: over a loopback listener, by its name, without
 * a page, and without a proxy, behind which anybody may be. */
static bool is_here(const struct call *c)
{
    static const char *const proxies[] = {"forwarded", "via", "x-forwarded-for", "x-real-ip",
                                          "x-forwarded-host"};
    const char *host = http_header(c->req, "host"), *origin = http_header(c->req, "origin");
    char name[256] = "";
    size_t n = host ? name_length(host) : 0;
    if (n < sizeof(name))
        memcpy(name, host ? host : "", n);
    for (size_t i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++)
        if (http_header(c->req, proxies[i]))
            return false;
    return c->req->via == HTTP_VIA_LOOPBACK && is_local(c->req->peer) && is_loopback(name) &&
           (!origin || knows_origin(c, origin));
}

bool guard_may_change(const struct call *c)
{
    if (admission_needed(c->gl->gw->admission))
        return c->client && c->client->admin;
    return strcmp(c->req->peer, "unix") == 0 ||
           (c->gl->config->admin == CONFIG_ADMIN_LOOPBACK && is_here(c));
}

bool guard_admin(struct call *c)
{
    const char *origin = http_header(c->req, "origin");
    bool read = strcmp(c->route->method, "GET") == 0;
    if (read && !is_local(c->req->peer)) {
        call_fail(c, 403, NULL, NULL, NULL,
                  "without keys in the configuration, only this machine may see this: configure "
                  "an admin key");
        return false;
    }
    if (!read && !guard_may_change(c)) {
        call_fail(
            c, 403, NULL, NULL, "admin_key_needed",
            "without keys in the configuration, nothing can be changed over TCP: configure "
            "an admin key, use the unix socket, or set 'admin: loopback' for programs of this "
            "machine");
        return false;
    }
    return (read && origin && call_is_local_page(origin)) || guard_origin(c);
}
