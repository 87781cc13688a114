/* audio_libs.c - see audio_libs.h. */
#include "audio/audio_libs.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

static struct audio_libs api;
static bool ready;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_libraries(void)
{
    static const struct {
        const char *library, *name;
        void **to;
    } names[] = {{"libsndfile.so.1", "sf_open_virtual", (void **)&api.open_virtual},
                 {"libsndfile.so.1", "sf_readf_float", (void **)&api.readf_float},
                 {"libsndfile.so.1", "sf_writef_short", (void **)&api.writef_short},
                 {"libsndfile.so.1", "sf_format_check", (void **)&api.format_check},
                 {"libsndfile.so.1", "sf_close", (void **)&api.close},
                 {"libsndfile.so.1", "sf_error", (void **)&api.error},
                 {"libsndfile.so.1", "sf_error_number", (void **)&api.error_number},
                 {"libsamplerate.so.0", "src_new", (void **)&api.src_new},
                 {"libsamplerate.so.0", "src_process", (void **)&api.src_process},
                 {"libsamplerate.so.0", "src_strerror", (void **)&api.src_strerror},
                 {"libsamplerate.so.0", "src_delete", (void **)&api.src_delete}};
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof(names) / sizeof(names[0]); i++) {
        void *library = dlopen(names[i].library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        ok = library && (*names[i].to = dlsym(library, names[i].name)) != NULL;
    }
    ready = ok;
}

int audio_libs_get(const struct audio_libs **out, struct err *e)
{
    pthread_once(&once, load_libraries);
    *out = ready ? &api : NULL;
    return ready ? 0
                 : err_set(e, SHOAL_EUNSUPPORTED,
                           "sounds need libsndfile and libsamplerate: install the packages "
                           "libsndfile1 and libsamplerate0");
}
