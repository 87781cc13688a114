/* libcurl.c - see libcurl.h. */
#include "net/libcurl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

static struct libcurl api;
static bool ready;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_library(void)
{
    static const struct {
        const char *name;
        void **to;
    } names[] = {{"curl_global_init", (void **)&api.global_init},
                 {"curl_easy_init", (void **)&api.easy_init},
                 {"curl_easy_setopt", (void **)&api.easy_setopt},
                 {"curl_easy_perform", (void **)&api.easy_perform},
                 {"curl_easy_getinfo", (void **)&api.easy_getinfo},
                 {"curl_easy_strerror", (void **)&api.easy_strerror},
                 {"curl_easy_reset", (void **)&api.easy_reset},
                 {"curl_easy_cleanup", (void **)&api.easy_cleanup},
                 {"curl_slist_append", (void **)&api.slist_append},
                 {"curl_slist_free_all", (void **)&api.slist_free_all}};
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    bool ok = library != NULL;
    for (size_t i = 0; ok && i < sizeof(names) / sizeof(names[0]); i++)
        ok = (*names[i].to = dlsym(library, names[i].name)) != NULL;
    ready = ok && api.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

int libcurl_get(const struct libcurl **out, struct err *e)
{
    pthread_once(&once, load_library);
    *out = ready ? &api : NULL;
    return ready ? 0
                 : err_set(e, SHOAL_EUNSUPPORTED,
                           "models from URLs need libcurl: install the package libcurl4");
}
