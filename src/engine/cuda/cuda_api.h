/* cuda_api.h - NVIDIA's driver, opened at run time; building and running without a GPU does not
 * need it.
 *
 * Thread:    any; a library that is open is immutable.
 * Ownership: cuda_lib_open gives, cuda_lib_close takes back (NULL is fine).
 * Failure:   SHOAL_ENOTFOUND (no driver, or no GPU), SHOAL_EUNSUPPORTED (too old a driver),
 *            SHOAL_ENOMEM.
 *
 * Searched: $SHOAL_CUDA (the file, and then nothing else), and libcuda.so.1 where the system looks.
 */
#ifndef SHOAL_ENGINE_CUDA_CUDA_API_H
#define SHOAL_ENGINE_CUDA_CUDA_API_H

#include "base/err.h"
#include "engine/cuda/cuda_slots.h"

#define CUDA_API_FIELD(field, name, args) int(*field) args;
struct cuda_api {
    CUDA_SLOTS(CUDA_API_FIELD)
};
#undef CUDA_API_FIELD

struct cuda_lib {
    struct cuda_api api;
    void *handle;
    int version; /* of CUDA that the driver knows: 13000 is 13.0 */
    int n_gpus;
};

SHOAL_MUST_CHECK int cuda_lib_open(struct cuda_lib **out, struct err *e);
void cuda_lib_close(struct cuda_lib *lib);
/* 0 when result is 0; else SHOAL_ENOMEM or SHOAL_EIO with "what: the driver's text". */
SHOAL_MUST_CHECK int cuda_lib_check(const struct cuda_lib *lib, int result, const char *what,
                                    struct err *e);

#endif
