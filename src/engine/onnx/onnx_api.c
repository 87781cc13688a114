/* onnx_api.c - see onnx_api.h. */
#include "engine/onnx/onnx_api.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define LIBRARY "libonnxruntime.so.1"

/* The entry point that the library exports. */
struct api_base {
    void (*const *(*get_api)(uint32_t version))(void);
    const char *(*version)(void);
};

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* NODELETE: a C++ library with threads and statics of its own is not safe to unload. */
static void *load(const char *path)
{
    return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

static int load_named(void **out, const char *where, struct err *e)
{
    char path[PATH_MAX];
    struct stat st;
    snprintf(path, sizeof(path), "%s", where);
    if (stat(where, &st) == 0 && S_ISDIR(st.st_mode))
        snprintf(path, sizeof(path), "%s/" LIBRARY, where);
    if (!is_file(path))
        return err_set(e, SHOAL_ENOTFOUND,
                       "SHOAL_ONNXRUNTIME: there is no %s; unset it and run " ONNX_INSTALL_COMMAND,
                       path);
    *out = load(path);
    if (!*out)
        return err_set(e, SHOAL_EUNSUPPORTED, "cannot load ONNX Runtime: %s", dlerror());
    return 0;
}

static int own_folder(char *out, size_t cap)
{
    ssize_t n = readlink("/proc/self/exe", out, cap - 1);
    if (n <= 0)
        return -1;
    out[n] = '\0';
    char *slash = strrchr(out, '/');
    if (!slash)
        return -1;
    *slash = '\0';
    return 0;
}

static int user_folder(char *out, size_t cap)
{
    const char *base;
    int n;
    if ((base = getenv("XDG_DATA_HOME")) && base[0])
        n = snprintf(out, cap, "%s/shoal/lib", base);
    else if ((base = getenv("HOME")) && base[0])
        n = snprintf(out, cap, "%s/.local/share/shoal/lib", base);
    else
        return -1;
    return n > 0 && (size_t)n < cap ? 0 : -1;
}

static int find(void **out, struct err *e)
{
    static const char *const names[] = {LIBRARY, "libonnxruntime.so"};
    static int (*const folders[])(char *, size_t) = {own_folder, user_folder};
    char folder[PATH_MAX - sizeof(LIBRARY) - 1], path[PATH_MAX];
    const char *where = getenv("SHOAL_ONNXRUNTIME");
    if (where && where[0])
        return load_named(out, where, e);
    for (size_t i = 0; i < 2; i++) {
        if (folders[i](folder, sizeof(folder)) < 0)
            continue;
        snprintf(path, sizeof(path), "%s/" LIBRARY, folder);
        if (!is_file(path))
            continue;
        *out = load(path);
        return *out ? 0 : err_set(e, SHOAL_EUNSUPPORTED, "cannot load ONNX Runtime: %s", dlerror());
    }
    for (size_t i = 0; i < 2; i++)
        if ((*out = load(names[i])))
            return 0;
    return err_set(e, SHOAL_ENOTFOUND,
                   "ONNX Runtime is not installed: run " ONNX_INSTALL_COMMAND
                   ", or set SHOAL_ONNXRUNTIME to " LIBRARY);
}

/* GetApi writes to stderr about versions it does not have, so check first. */
static bool recent_enough(const char *version)
{
    unsigned major = 0, minor = 0;
    return sscanf(version, "%u.%u", &major, &minor) == 2 &&
           (major > 1 || (major == 1 && minor >= ONNX_API_VERSION));
}

static int connect(struct onnx_lib *lib, struct err *e)
{
    const struct api_base *(*get_base)(void);
    Dl_info where;
    void *symbol = dlsym(lib->handle, "OrtGetApiBase");
    if (!symbol)
        return err_set(e, SHOAL_EUNSUPPORTED, "not ONNX Runtime: it has no OrtGetApiBase");
    memcpy(&get_base, &symbol, sizeof(get_base));
    if (dladdr(symbol, &where) && where.dli_fname)
        snprintf(lib->path, sizeof(lib->path), "%s", where.dli_fname);
    const struct api_base *base = get_base();
    lib->version = base ? base->version() : NULL;
    if (!lib->version || !recent_enough(lib->version))
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "%s is ONNX Runtime %s, 1.%d or later is needed: run " ONNX_INSTALL_COMMAND,
                       lib->path, lib->version ? lib->version : "?", ONNX_API_VERSION);
    void (*const *table)(void) = base->get_api(ONNX_API_VERSION);
    if (!table)
        return err_set(e, SHOAL_EUNSUPPORTED, "%s: ONNX Runtime %s without API version %d",
                       lib->path, lib->version, ONNX_API_VERSION);
#define FILL(field, name, position, result, args) lib->api.field = (result(*) args)table[position];
    ONNX_SLOTS(FILL)
#undef FILL
    snprintf(lib->label, sizeof(lib->label), "onnxruntime %s", lib->version);
    /* Errors are returned to us; only fatal messages may go to stderr. */
    return onnx_lib_check(lib, lib->api.create_env(ORT_LOG_FATAL, "shoal", &lib->env), SHOAL_ENOMEM,
                          "cannot start ONNX Runtime", e);
}

int onnx_lib_open(struct onnx_lib **out, struct err *e)
{
    *out = NULL;
    struct onnx_lib *lib = mem_zalloc(sizeof(*lib));
    if (!lib)
        return err_set(e, SHOAL_ENOMEM, "out of memory for ONNX Runtime");
    int rc = find(&lib->handle, e);
    if (rc == 0)
        rc = connect(lib, e);
    if (rc < 0) {
        onnx_lib_close(lib);
        return rc;
    }
    *out = lib;
    return 0;
}

void onnx_lib_close(struct onnx_lib *lib)
{
    if (!lib)
        return;
    if (lib->env)
        lib->api.release_env(lib->env);
    if (lib->handle)
        dlclose(lib->handle);
    mem_free(lib);
}

int onnx_lib_check(const struct onnx_lib *lib, struct ort_status *st, int code, const char *what,
                   struct err *e)
{
    if (!st)
        return 0;
    int rc = err_set(e, code, "%s: %s", what, lib->api.error_message(st));
    lib->api.release_status(st);
    return rc;
}
