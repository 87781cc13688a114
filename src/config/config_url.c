/* config_url.c - see config_url.h. */
#include "config/config_url.h"

#include <string.h>

#include "base/mem.h"

const char *config_url_host(const char *server)
{
    return strstr(server, "//") + 2;
}

bool config_url_is_secure(const char *server)
{
    return strncmp(server, "https://", 8) == 0;
}

const char *config_url_split(const char *url, char **server, char **path)
{
    bool known = strncmp(url, "http://", 7) == 0 || config_url_is_secure(url);
    const char *at = known ? config_url_host(url) : url, *slash = known ? strchr(at, '/') : NULL;
    if (!slash || slash == at || memchr(at, '{', (size_t)(slash - at)) ||
        memchr(at, '@', (size_t)(slash - at)) || strpbrk(url, " \r\n\t"))
        return "url must be http://HOST:PORT/PATH or https://HOST:PORT/PATH, with words in braces "
               "in the path only";
    *server = mem_strndup(url, (size_t)(slash - url));
    *path = mem_strdup(slash);
    return *server && *path ? NULL : "out of memory";
}

bool config_url_allowed(const struct yaml_in_strs *hosts, const char *server)
{
    for (uint32_t i = 0; i < hosts->n; i++)
        if (strcmp(hosts->v[i], config_url_host(server)) == 0)
            return true;
    return false;
}
