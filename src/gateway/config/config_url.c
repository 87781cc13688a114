/* config_url.c - see config_url.h. */
#include "gateway/config/config_url.h"

#include <string.h>

#include "base/mem.h"

#define SCHEME "http://"
#define N_SCHEME (sizeof(SCHEME) - 1)

const char *config_url_split(const char *url, char **server, char **path)
{
    const char *at = url + N_SCHEME,
               *slash = strncmp(url, SCHEME, N_SCHEME) == 0 ? strchr(at, '/') : NULL;
    if (!slash || slash == at || memchr(at, '{', (size_t)(slash - at)) ||
        memchr(at, '@', (size_t)(slash - at)) || strpbrk(url, " \r\n\t"))
        return "url must be http://HOST:PORT/PATH, with words in braces in the path only";
    *server = mem_strndup(url, (size_t)(slash - url));
    *path = mem_strdup(slash);
    return *server && *path ? NULL : "out of memory";
}

bool config_url_allowed(const struct yaml_in_strs *hosts, const char *server)
{
    for (uint32_t i = 0; i < hosts->n; i++)
        if (strcmp(hosts->v[i], server + N_SCHEME) == 0)
            return true;
    return false;
}
