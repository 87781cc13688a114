/* oci_registry.c - see oci_registry.h. */
#include "depot/source/oci_registry.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "depot/source/web_parallel.h"
#include "wire/json_in.h"

#define MAX_TOKEN_BYTES ((size_t)64 << 10)
#define HINT "put user:password@ into the URL of the registry, or set a token"

struct oci_registry {
    struct web_opts web_opts;
    struct web *web;
    const struct model_source_opts *o;
    char *base;
    char *token; /* NULL: none yet, or the user's */
    char path[512], tag[130];
    bool push;
};

/* ---- names ---- */

/* Lower-case words, as registries have them; anything else would change the URL. */
static bool path_ok(const char *p)
{
    if (!p[0] || strstr(p, "..") || strstr(p, "//") || p[0] == '/')
        return false;
    for (; *p; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
              strchr("._-/", *p)))
            return false;
    return true;
}

static bool tag_ok(const char *p)
{
    if (!p[0] || strlen(p) > 128)
        return false;
    for (; *p; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
              strchr("._-:", *p)))
            return false;
    return true;
}

static int read_name(struct oci_registry *r, const char *name, struct err *e)
{
    const char *slash = strrchr(name, '/'), *colon = strrchr(name, ':'), *at = strchr(name, '@');
    const char *end = at ? at : colon && (!slash || colon > slash) ? colon : NULL;
    if (!at && colon && slash && colon < slash)
        return err_set(e, SHOAL_EINVAL,
                       "'%.64s' names a host: models come from the configured registry alone",
                       name);
    size_t n = end ? (size_t)(end - name) : strlen(name);
    snprintf(r->path, sizeof(r->path), "%s%.*s", slash ? "" : "library/", (int)(n < 300 ? n : 300),
             name);
    snprintf(r->tag, sizeof(r->tag), "%.129s", end ? end + 1 : "latest");
    return n <= 300 && path_ok(r->path) && tag_ok(r->tag)
               ? 0
               : err_set(e, SHOAL_EINVAL, "'%.64s' is not the name of a model in a registry", name);
}

void oci_registry_url(const struct oci_registry *r, char out[WEB_MAX_URL], const char *kind,
                      const char *id)
{
    size_t n = strlen(r->base);
    while (n > 0 && r->base[n - 1] == '/')
        n--;
    snprintf(out, WEB_MAX_URL, "%.*s/v2/%s/%s/%s", (int)(n < 800 ? n : 800), r->base, r->path, kind,
             id);
}

/* ---- access ---- */

/* KEY="VALUE" of a WWW-Authenticate header. */
static bool challenge(char *out, size_t cap, const char *header, const char *key)
{
    char pattern[32];
    snprintf(pattern, sizeof(pattern), "%s=\"", key);
    const char *at = strcasestr(header, pattern);
    if (!at)
        return false;
    at += strlen(pattern);
    size_t n = strcspn(at, "\"");
    return at[n] == '"' && n > 0 && snprintf(out, cap, "%.*s", (int)n, at) < (int)cap;
}

/* A token for this repository from the service that the registry names. It gets no credentials: it
 * may be another host. */
static int get_token(struct oci_registry *r, const char *header, struct err *e)
{
    char realm[600], service[300] = "", text[1200];
    struct buf url, body;
    struct web *w = NULL;
    cJSON *json = NULL;
    if (strncasecmp(header, "Bearer ", 7) != 0 || !challenge(realm, sizeof(realm), header, "realm"))
        return 0; /* the status says enough */
    (void)challenge(service, sizeof(service), header, "service");
    buf_init(&url, WEB_MAX_URL);
    buf_init(&body, MAX_TOKEN_BYTES);
    buf_printf(&url, "%s%cservice=", realm, strchr(realm, '?') ? '&' : '?');
    web_escape(&url, service, "");
    buf_puts(&url, "&scope=");
    snprintf(text, sizeof(text), "repository:%s:pull%s", r->path, r->push ? ",push" : "");
    web_escape(&url, text, "");
    /* the realm is foreign to the registry: only a public address, or the same host */
    struct web_opts wo = r->web_opts;
    wo.token = NULL;
    int rc =
        url.rc < 0 ? err_set(e, url.rc, "the registry's realm is too long") : web_open(&w, &wo, e);
    if (rc == 0)
        rc = web_text(w, buf_str(&url), "application/json", "token", NULL, &body, e);
    if (rc == 0)
        rc = json_in_object(&json, "token", buf_str(&body), body.len, MAX_TOKEN_BYTES, e);
    const char *token = cJSON_GetStringValue(json_in_item(json, "token"));
    if (!token)
        token = cJSON_GetStringValue(json_in_item(json, "access_token"));
    if (rc == 0 && (!token || strpbrk(token, "\r\n")))
        rc = err_set(e, SHOAL_EFORMAT, "the registry sends no token");
    if (rc == 0) {
        mem_free(r->token);
        r->token = mem_strdup(token);
        r->web_opts.token = r->token;
        rc = r->token ? 0 : err_set(e, SHOAL_ENOMEM, "token");
    }
    cJSON_Delete(json);
    web_close(w);
    buf_fini(&body);
    buf_fini(&url);
    return rc;
}

int oci_registry_ask(struct oci_registry *r, const char *url, const struct web_request *a,
                     struct web_reply *reply, struct err *e)
{
    int rc = web_told(r->web, web_ask(r->web, url, a, reply, e), e);
    if (rc < 0 || reply->status != 401 || r->token || !reply->authenticate[0])
        return rc;
    rc = get_token(r, reply->authenticate, e);
    if (rc == 0 && r->token)
        rc = web_told(r->web, web_ask(r->web, url, a, reply, e), e);
    return rc;
}

int oci_registry_fetch(struct oci_registry *r, const char *url, uint64_t offset, uint64_t total,
                       const struct byte_sink *to, struct web_reply *reply, struct err *e)
{
    int rc = web_parallel(r->web, &r->web_opts, url, offset, total, to, reply, e);
    if (rc < 0 || reply->status != 401 || r->token || !reply->authenticate[0])
        return rc;
    rc = get_token(r, reply->authenticate, e); /* nothing was sent without it */
    if (rc == 0 && r->token)
        rc = web_parallel(r->web, &r->web_opts, url, offset, total, to, reply, e);
    return rc;
}

int oci_registry_refused(const struct oci_registry *r, long status, const char *what, struct err *e)
{
    return web_refused(r->web, status, what, HINT, e);
}

/* ---- texts ---- */

static int keep_text(void *ctx, const char *p, size_t n, bool begins, uint64_t from, struct err *e)
{
    struct buf *b = ctx;
    (void)from;
    if (begins)
        buf_clear(b);
    buf_put(b, p, n);
    return b->rc < 0 ? err_set(e, SHOAL_ELIMIT, "it sends more than is allowed") : 0;
}

static int check_digest(const struct oci_registry *r, const struct buf *b, const char *digest,
                        struct err *e)
{
    uint8_t sum[SHA256_BYTES];
    char hex[2 * SHA256_BYTES + 1];
    struct sha256 h;
    sha256_begin(&h);
    sha256_add(&h, buf_str(b), b->len);
    if (!sha256_end(&h, sum))
        return err_set(e, SHOAL_ENOMEM, "cannot compute SHA-256");
    sha256_hex(hex, sum);
    return strcmp(hex, digest + 7) == 0
               ? 0
               : err_set(e, SHOAL_EFORMAT, "%s sent bytes that do not have the digest %.19s",
                         web_host(r->web), digest);
}

int oci_registry_text(struct oci_registry *r, const char *kind, const char *id, const char *accept,
                      const char *what, const char *digest, struct buf *out, struct err *e)
{
    const struct web_request a = {.accept = accept, .write = keep_text, .ctx = out};
    struct web_reply reply;
    char url[WEB_MAX_URL];
    oci_registry_url(r, url, kind, id);
    int rc = oci_registry_ask(r, url, &a, &reply, e);
    if (rc == 0 && reply.status != 200)
        rc = oci_registry_refused(r, reply.status, what, e);
    return rc == 0 && digest ? check_digest(r, out, digest, e) : rc;
}

/* ---- lifetime ---- */

struct web *oci_registry_web(struct oci_registry *r)
{
    return r->web;
}

const char *oci_registry_tag(const struct oci_registry *r)
{
    return r->tag;
}

int oci_registry_open(struct oci_registry **out, const char *base, const char *name, bool push,
                      const struct model_source_opts *o, struct err *e)
{
    struct oci_registry *r = mem_zalloc(sizeof(*r));
    *out = NULL;
    if (!r)
        return err_set(e, SHOAL_ENOMEM, "registry");
    r->o = o;
    r->push = push;
    r->base = mem_strdup(base);
    r->web_opts = (struct web_opts){.base = r->base,
                                    .token = o->token,
                                    .ca = o->ca,
                                    .silent_ms = o->silent_ms,
                                    .private_ok = o->private_ok,
                                    .strange = o->allow != 0,
                                    .stopped = model_source_stopped,
                                    .ctx = (void *)(uintptr_t)o};
    int rc = r->base ? read_name(r, name, e) : err_set(e, SHOAL_ENOMEM, "registry");
    if (rc == 0)
        rc = web_open(&r->web, &r->web_opts, e);
    if (rc < 0)
        oci_registry_close(r);
    else
        *out = r;
    return rc;
}

void oci_registry_close(struct oci_registry *r)
{
    if (!r)
        return;
    web_close(r->web);
    mem_free(r->base);
    mem_free(r->token);
    mem_free(r);
}
