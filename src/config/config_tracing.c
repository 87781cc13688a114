/* config_tracing.c - see config_tracing.h. */
#include "config/config_tracing.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "config/config_url.h"

#define OTLP_PATH "/v1/traces"

const char *config_tracing_split(const char *endpoint, char **server, char **path)
{
    char url[512];
    const char *host = strstr(endpoint, "//"), *slash = host ? strchr(host + 2, '/') : NULL;
    const size_t n = strlen(endpoint);
    *server = *path = NULL;
    if (n + sizeof(OTLP_PATH) > sizeof(url))
        return "the address is too long";
    if (!slash)
        snprintf(url, sizeof(url), "%s" OTLP_PATH, endpoint);
    else if (!slash[1])
        snprintf(url, sizeof(url), "%.*s" OTLP_PATH, (int)n - 1, endpoint);
    else
        snprintf(url, sizeof(url), "%s", endpoint);
    if (!config_url_split(url, server, path))
        return NULL;
    mem_free(*server);
    mem_free(*path);
    *server = *path = NULL;
    return "it must be http://HOST:PORT or https://HOST:PORT of a collector that takes OTLP over "
           "HTTP (usually port 4318)";
}

static bool is_header(const char *text)
{
    const char *colon = strchr(text, ':');
    return colon && colon != text && !strpbrk(text, "\r\n") &&
           strcspn(text, " \t") > (size_t)(colon - text);
}

static int fail(const struct config_settings *set, const char *key, const char *file,
                const char *value, const char *why, struct err *e)
{
    const struct config_setting *s = config_settings_find(set, key);
    return err_set(e, SHOAL_EFORMAT, "%s:%u:%u: %s is '%.100s': %s", file, s ? s->line : 1,
                   s ? s->column : 1, key, value, why);
}

int config_tracing_check(const struct config_tracing *t, const struct config_settings *set,
                         const char *file, struct err *e)
{
    char *server = NULL, *path = NULL;
    const char *why = t->endpoint ? config_tracing_split(t->endpoint, &server, &path) : NULL;
    mem_free(server);
    mem_free(path);
    if (why)
        return fail(set, "tracing.endpoint", file, t->endpoint, why, e);
    for (uint32_t i = 0; i < t->headers.n; i++)
        if (!is_header(t->headers.v[i]))
            return fail(set, "tracing.headers", file, t->headers.v[i], "a header is 'name: value'",
                        e);
    return 0;
}
