/* model_place.c - see model_place.h. */
#include "depot/model_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "depot/source/web.h"

#define SHOAL_PORT ":8080"

static bool cut_prefix(const char **text, const char *prefix)
{
    size_t n = strlen(prefix);
    if (strncasecmp(*text, prefix, n) != 0)
        return false;
    *text += n;
    return true;
}

/* "model" of "https://host/model.gguf?x#y" or of a path. */
static void name_of_file(char *out, size_t cap, const char *path)
{
    size_t end = web_is_url(path) ? strcspn(path, "?#") : strlen(path), k = 0;
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t at = end;
    while (at > 0 && path[at - 1] != '/')
        at--;
    if (end - at > 5 && strncasecmp(path + end - 5, ".gguf", 5) == 0)
        end -= 5;
    for (; at < end && k + 1 < cap; at++) {
        char c = path[at];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     strchr("._-", c);
        out[k++] = plain ? c : '-';
    }
    out[k] = '\0';
}

static bool is_path(const char *text)
{
    return text[0] == '/' || strncmp(text, "./", 2) == 0 || strncmp(text, "../", 3) == 0 ||
           access(text, F_OK) == 0;
}

/* The host behind a login: "user:password@host". A password may have an @, too. */
static const char *after_login(const char *text)
{
    const char *at = memrchr(text, '@', strcspn(text, "/"));
    return at ? at + 1 : text;
}

static bool is_here(const char *text)
{
    const char *host = after_login(text);
    size_t n = strcspn(host, "/"), name = strcspn(host, ":");
    name = name < n ? name : n;
    return (name == 9 && strncasecmp(host, "localhost", 9) == 0) || strncmp(host, "127.", 4) == 0 ||
           strncmp(host, "[::1]", 5) == 0;
}

/* HOST[:PORT]/PATH[:TAG] */
static int read_oci(struct model_place *out, const char *text, bool plain_http, struct err *e)
{
    size_t n = strcspn(text, "/");
    if (!text[n] || !text[n + 1] || n == 0 || n > 300)
        return err_set(e, SHOAL_EINVAL, "'%.100s' names no model: HOST/PATH[:TAG]", text);
    out->kind = PLACE_KIND_OCI;
    snprintf(out->base, sizeof(out->base), "%s://%.*s",
             plain_http || is_here(text) ? "http" : "https", (int)n, text);
    snprintf(out->name, sizeof(out->name), "%s", text + n + 1);
    /* credentials do not become part of the name */
    snprintf(out->stored, sizeof(out->stored), "%s", after_login(text));
    return 0;
}

/* HOST[:PORT]/NAME of another server of Shoal, which speaks the protocol of registries. */
static int read_shoal(struct model_place *out, const char *text, bool tls, struct err *e)
{
    size_t n = strcspn(text, "/");
    if (!text[n] || !text[n + 1] || n == 0 || n > 300)
        return err_set(e, SHOAL_EINVAL, "'%.100s' names no model: shoal://HOST[:PORT]/NAME", text);
    out->kind = PLACE_KIND_OCI;
    bool port = memchr(text, ':', n) && text[n - 1] != ']';
    snprintf(out->base, sizeof(out->base), "%s://%.*s%s", tls ? "https" : "http", (int)n, text,
             port || tls ? "" : SHOAL_PORT);
    snprintf(out->name, sizeof(out->name), "%s", text + n + 1);
    snprintf(out->stored, sizeof(out->stored), "%s", text + n + 1);
    return 0;
}

static int read_hub(struct model_place *out, const char *text)
{
    out->kind = PLACE_KIND_HUB;
    snprintf(out->name, sizeof(out->name), "%s", text);
    return 0;
}

/* The page of a repository: "https://huggingface.co/ORG/REPO", with nothing behind it. */
static bool is_hub_page(const char *text)
{
    const char *p = text;
    if (!cut_prefix(&p, "https://huggingface.co/") && !cut_prefix(&p, "https://hf.co/"))
        return false;
    const char *slash = strchr(p, '/');
    return slash && slash[1] && !strchr(slash + 1, '/');
}

int model_place_read(struct model_place *out, const char *text, bool plain_http, struct err *e)
{
    const char *p = text;
    memset(out, 0, sizeof(*out));
    if (!*text)
        return err_set(e, SHOAL_EINVAL, "the name of the model is empty");
    if (strlen(text) >= sizeof(out->name))
        return err_set(e, SHOAL_EINVAL, "the name of the model is too long");
    if (is_hub_page(text))
        return read_hub(out, strstr(text + 8, "/") + 1);
    if (cut_prefix(&p, "hf://") || cut_prefix(&p, "hf.co/") || cut_prefix(&p, "huggingface.co/"))
        return read_hub(out, p);
    if (cut_prefix(&p, "ollama://")) {
        const char *registry = getenv("OLLAMA_REGISTRY");
        if (!registry || !registry[0])
            return err_set(e, SHOAL_EINVAL,
                           "set OLLAMA_REGISTRY to the URL of Ollama's registry, and pull again");
        out->kind = PLACE_KIND_OCI;
        snprintf(out->base, sizeof(out->base), "%s", registry);
        snprintf(out->name, sizeof(out->name), "%s", p);
        snprintf(out->stored, sizeof(out->stored), "%s", p);
        return 0;
    }
    if (cut_prefix(&p, "oci://"))
        return read_oci(out, p, plain_http, e);
    if (cut_prefix(&p, "docker://")) {
        char full[2100]; /* Docker's registry has no host in its names */
        const char *slash = strchr(p, '/');
        bool host = slash && memchr(p, '.', (size_t)(slash - p));
        snprintf(full, sizeof(full), "%s%s", host ? "" : "registry-1.docker.io/", p);
        int rc = read_oci(out, full, plain_http, e);
        snprintf(out->stored, sizeof(out->stored), "%s", after_login(p));
        return rc;
    }
    if (cut_prefix(&p, "shoal://"))
        return read_shoal(out, p, false, e);
    if (cut_prefix(&p, "shoals://"))
        return read_shoal(out, p, true, e);
    if (web_is_url(text) || is_path(text)) {
        out->kind = web_is_url(text) ? PLACE_KIND_URL : PLACE_KIND_PATH;
        snprintf(out->name, sizeof(out->name), "%s", text);
        name_of_file(out->stored, sizeof(out->stored), text);
        return 0;
    }
    const char *slash = strchr(text, '/');
    if (strstr(text, "://"))
        return err_set(e, SHOAL_EINVAL,
                       "'%.100s' has an unknown scheme: use hf://, oci://, docker://, ollama://, "
                       "shoal://, https:// or http://",
                       text);
    if (slash && (memchr(text, '.', (size_t)(slash - text)) ||
                  memchr(text, ':', (size_t)(slash - text)) || is_here(text)))
        return read_oci(out, text, plain_http, e);
    if (slash)
        return read_hub(out, text);
    out->kind = PLACE_KIND_RECIPE;
    snprintf(out->name, sizeof(out->name), "%s", text);
    return 0;
}
