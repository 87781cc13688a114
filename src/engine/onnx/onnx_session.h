/* onnx_session.h - one .onnx file opened in ONNX Runtime: its inputs and outputs by name, type and
 * shape, tensors, runs.
 *
 * Thread:    belongs to one thread; the library's own threads share the work and end with
 *            onnx_session_close.
 * Ownership: onnx_session_open gives the session, close takes it back (NULL is fine). Values are
 *            released by their creator, before the session is closed.
 * Failure:   SHOAL_EFORMAT (not a model that ONNX Runtime can open), SHOAL_EIO, SHOAL_ENOTFOUND (no
 *            library), SHOAL_EINTERNAL (a run failed), SHOAL_ENOMEM.  Declared output shapes
 *            are not trusted: they are read from the results of a run. */
#ifndef SHOAL_ENGINE_ONNX_ONNX_SESSION_H
#define SHOAL_ENGINE_ONNX_ONNX_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/onnx/onnx_api.h"

#define ONNX_PAST "past_key_values."

#define ONNX_MAX_DIMS 8u
struct onnx_shape {
    int type; /* enum onnx_type, or another number of ONNX's */
    uint32_t n_dims;
    int64_t dims[ONNX_MAX_DIMS]; /* -1: any, in declarations only */
};

struct onnx_io {
    char *name;
    struct onnx_shape shape; /* as declared */
};

struct onnx_session {
    struct onnx_lib *lib;
    struct ort_session *session;
    struct ort_memory_info *cpu;
    struct onnx_io *in, *out;
    size_t n_in, n_out;
    uint64_t file_bytes;
    uint32_t n_threads;
    /* private */
    const char **in_names;
    const char **out_names; /* [n_out], scratch of a run */
};

struct onnx_session_opts { /* all zero means defaults */
    uint32_t n_threads;    /* 0: number of cores */
};

SHOAL_MUST_CHECK int onnx_session_open(struct onnx_session **out, const char *path,
                                       const struct onnx_session_opts *o, struct err *e);
void onnx_session_close(struct onnx_session *s);
/* Whether it takes past keys and values. Then it is a decoder (onnx_lm.h), otherwise perhaps an
 * encoder. */
bool onnx_session_has_past(const struct onnx_session *s);
/* Index of the input or output with this name, or -1. */
int onnx_session_input(const struct onnx_session *s, const char *name);
int onnx_session_output(const struct onnx_session *s, const char *name);

/* in: [n_in] in the session's order, none NULL.  want: [n_want] indices of outputs; out: [n_want],
 * the caller's to release; all NULL after a failure. */
SHOAL_MUST_CHECK int onnx_session_run(struct onnx_session *s, struct onnx_value *const *in,
                                      const uint32_t *want, uint32_t n_want,
                                      struct onnx_value **out, struct err *e);

/* A tensor over the caller's memory, which must live until the tensor is released.  data may be
 * NULL when a dimension is 0. */
SHOAL_MUST_CHECK int onnx_value_wrap(struct onnx_value **out, struct onnx_session *s, void *data,
                                     const struct onnx_shape *shape, struct err *e);
/* Shape and memory of a tensor; a value of another kind is an error. */
SHOAL_MUST_CHECK int onnx_value_get(struct onnx_session *s, struct onnx_value *v,
                                    struct onnx_shape *shape, const void **data, struct err *e);
void onnx_value_release(struct onnx_session *s, struct onnx_value *v); /* NULL is fine */

/* Bytes of one element; 0 when it is none of enum onnx_type. */
size_t onnx_type_bytes(int type);
const char *onnx_type_name(int type);
/* "[-1, 2, -1, 64]" for messages. */
void onnx_shape_print(char *out, size_t cap, const struct onnx_shape *shape);
/* Element i of a tensor of type I64, I32 or BOOL. */
void onnx_put(void *data, int type, size_t i, int64_t v);
/* n floats of a tensor of type F32 or F16, from element `at`. */
void onnx_floats(float *out, const void *data, int type, size_t at, size_t n);

#endif
