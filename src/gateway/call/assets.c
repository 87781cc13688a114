/* assets.c - see assets.h. */
#include "gateway/call/assets.h"

#include <string.h>

#include "gateway/call/call.h"

/* Only built-in code runs, and only this server is contacted. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; media-src blob:; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'";

static const struct asset *find(const char *path)
{
    for (size_t i = 0; i < n_assets; i++) {
        const char *name = assets[i].path;
        size_t n = strlen(path);
        if (strcmp(name, path) == 0)
            return &assets[i];
        if (n > 1 && strncmp(name, path, n) == 0 && strcmp(name + n, ".html") == 0)
            return &assets[i]; /* "/docs" */
    }
    return NULL;
}

bool assets_has(const char *path)
{
    return strcmp(path, "/") == 0 || find(path);
}

void assets_handle(struct call *c)
{
    const char *path = strcmp(c->req->path, "/") == 0 ? "/index.html" : c->req->path;
    const struct asset *a = find(path);
    if (!a) {
        call_fail(c, 404, NULL, NULL, "not_found", "there is nothing at %.100s", c->req->path);
        return;
    }
    const char *have = http_header(c->req, "if-none-match");
    const char *takes = http_header(c->req, "accept-encoding");
    bool same = have && strstr(have, a->etag);
    bool gzip = a->n_gzip > 0 && takes && strstr(takes, "gzip");
    const struct http_header extra[] = {{"etag", a->etag},
                                        {"cache-control", "no-cache"},
                                        {"vary", "accept-encoding"},
                                        {"x-content-type-options", "nosniff"},
                                        {"content-security-policy", policy},
                                        {"referrer-policy", "no-referrer"},
                                        {"content-encoding", "gzip"}};
    const size_t n_extra = sizeof(extra) / sizeof(extra[0]); /* the last one: only with gzip */
    call_file(c, same ? 304 : 200, a->type, extra, n_extra - (gzip && !same ? 0 : 1),
              (const char *)(gzip ? a->gzip : a->data),
              same   ? 0
              : gzip ? a->n_gzip
                     : a->n);
}
