/* onnx_api.h - ONNX Runtime, opened at run time; building and running the native engine does not
 * need it.
 *
 * Thread:    any; a library that is open is immutable.
 * Ownership: onnx_lib_open gives, onnx_lib_close takes back (NULL is fine).  Opening it again costs
 *            little: the system keeps one copy, which stays mapped until the process ends.
 * Failure:   SHOAL_ENOTFOUND (not installed; the text says how to), SHOAL_EUNSUPPORTED (too old, or
 *            not this library), SHOAL_ENOMEM.
 *
 * Searched: $SHOAL_ONNXRUNTIME (the file or its folder, and then nothing else), the folder of the
 * program, $XDG_DATA_HOME/shoal/lib or ~/.local/share/shoal/lib, and where the system looks. */
#ifndef SHOAL_ENGINE_ONNX_ONNX_API_H
#define SHOAL_ENGINE_ONNX_ONNX_API_H

#include "base/err.h"
#include "engine/onnx/onnx_slots.h"

/* How to install a missing library. */
#define ONNX_INSTALL_COMMAND "tools/install-onnxruntime"

#define ONNX_API_FIELD(field, name, position, result, args) result(*field) args;
struct onnx_api {
    ONNX_SLOTS(ONNX_API_FIELD)
};
#undef ONNX_API_FIELD

struct onnx_lib {
    struct onnx_api api;
    void *handle;
    struct ort_env *env;
    const char *version; /* "1.24.3" */
    char path[1024];     /* the file */
    char label[48];      /* "onnxruntime 1.24.3" */
};

SHOAL_MUST_CHECK int onnx_lib_open(struct onnx_lib **out, struct err *e);
void onnx_lib_close(struct onnx_lib *lib);
/* 0 when st is NULL; else code with "what: the library's text", and st is released. */
SHOAL_MUST_CHECK int onnx_lib_check(const struct onnx_lib *lib, struct ort_status *st, int code,
                                    const char *what, struct err *e);

#endif
