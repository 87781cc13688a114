/* cuda_api.c - see cuda_api.h. */
#include "engine/cuda/cuda_api.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define LIBRARY "libcuda.so.1"
#define OLDEST 12000 /* the first with every function of cuda_slots.h, clusters among them */

static int load(struct cuda_lib *lib, struct err *e)
{
    const char *where = getenv("SHOAL_CUDA");
    if (where && where[0]) {
        lib->handle = dlopen(where, RTLD_NOW | RTLD_LOCAL);
        return lib->handle ? 0 : err_set(e, SHOAL_ENOTFOUND, "SHOAL_CUDA: %s; unset it", dlerror());
    }
    lib->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    return lib->handle ? 0
                       : err_set(e, SHOAL_ENOTFOUND,
                                 "no NVIDIA driver: there is no " LIBRARY " on this machine");
}

static int connect(struct cuda_lib *lib, struct err *e)
{
    void *symbol;
#define FILL(field, name, args)                                                                    \
    if (!(symbol = dlsym(lib->handle, name)))                                                      \
        return err_set(e, SHOAL_EUNSUPPORTED,                                                      \
                       "the NVIDIA driver has no " name ": install driver 525 or later");          \
    memcpy(&lib->api.field, &symbol, sizeof(symbol));
    CUDA_SLOTS(FILL)
#undef FILL
    const int rc = lib->api.init(0);
    if (rc == CU_NO_DEVICE)
        return err_set(e, SHOAL_ENOTFOUND, "the NVIDIA driver finds no GPU");
    int failed = cuda_lib_check(lib, rc, "cannot start the NVIDIA driver", e);
    if (failed == 0)
        failed = cuda_lib_check(lib, lib->api.driver_version(&lib->version),
                                "cannot read the driver's version", e);
    if (failed == 0)
        failed = cuda_lib_check(lib, lib->api.device_count(&lib->n_gpus), "cannot count GPUs", e);
    if (failed < 0)
        return failed;
    if (lib->n_gpus < 1)
        return err_set(e, SHOAL_ENOTFOUND, "the NVIDIA driver finds no GPU");
    if (lib->version < OLDEST)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "the NVIDIA driver is for CUDA %d.%d, 12.0 or later is needed: install "
                       "driver 525 or later",
                       lib->version / 1000, lib->version % 1000 / 10);
    return 0;
}

int cuda_lib_open(struct cuda_lib **out, struct err *e)
{
    *out = NULL;
    struct cuda_lib *lib = mem_zalloc(sizeof(*lib));
    if (!lib)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the NVIDIA driver");
    int rc = load(lib, e);
    if (rc == 0)
        rc = connect(lib, e);
    if (rc < 0) {
        cuda_lib_close(lib);
        return rc;
    }
    *out = lib;
    return 0;
}

void cuda_lib_close(struct cuda_lib *lib)
{
    if (!lib)
        return;
    if (lib->handle)
        dlclose(lib->handle);
    mem_free(lib);
}

int cuda_lib_check(const struct cuda_lib *lib, int result, const char *what, struct err *e)
{
    const char *text = NULL;
    if (result == 0)
        return 0;
    (void)lib->api.error_text(result, &text);
    return err_set(e, result == CU_OUT_OF_MEMORY ? SHOAL_ENOMEM : SHOAL_EIO, "%s: %s (%d)", what,
                   text ? text : "unknown error", result);
}
