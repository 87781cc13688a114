/* safetensors.h - reader of .safetensors files: one, or the shards that an index names.
 *
 * Thread:    immutable after open; any number of readers.
 * Ownership: open maps the files read-only, parse borrows the caller's bytes; both must stay until
 *            close.  Names and data are borrowed until then.
 * Failure:   SHOAL_EIO, SHOAL_EFORMAT (what and which tensor), SHOAL_EUNSUPPORTED (a type by name),
 *            SHOAL_ELIMIT, SHOAL_ENOMEM; then *out is NULL.  Every offset is checked against what
 *            is really there. */
#ifndef SHOAL_FORMAT_SAFETENSORS_H
#define SHOAL_FORMAT_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/file/file_map.h"

enum safetensors_type {
    SAFETENSORS_F64,
    SAFETENSORS_F32,
    SAFETENSORS_F16,
    SAFETENSORS_BF16,
    SAFETENSORS_I64,
    SAFETENSORS_I32,
    SAFETENSORS_I16,
    SAFETENSORS_I8,
    SAFETENSORS_U64,
    SAFETENSORS_U32,
    SAFETENSORS_U16,
    SAFETENSORS_U8,
    SAFETENSORS_BOOL,
    SAFETENSORS_F8_E4M3,
    SAFETENSORS_F8_E5M2,
};

#define SAFETENSORS_MAX_DIMS 8
struct safetensors_tensor {
    const char *name;
    enum safetensors_type type;
    uint32_t n_dims;
    uint64_t dims[SAFETENSORS_MAX_DIMS]; /* as the file has them: the last one is the fastest */
    const uint8_t *data;                 /* at any alignment */
    size_t n_bytes;
    const struct file_map *map; /* NULL when parsed from the caller's bytes */
};

struct safetensors {
    struct safetensors_tensor *tensors; /* in the order of the files */
    size_t n_tensors;
    struct file_map *maps;
    size_t n_maps;
    uint64_t n_bytes; /* of the files */
    /* private */
    char *names;
};

/* path: a .safetensors file, or a folder with model.safetensors or model.safetensors.index.json, or
 * with one of another name (model.fp16.safetensors). */
SHOAL_MUST_CHECK int safetensors_open(struct safetensors **out, const char *path, struct err *e);
/* bytes: one whole file. */
SHOAL_MUST_CHECK int safetensors_parse(struct safetensors **out, const void *bytes, size_t n,
                                       struct err *e);
void safetensors_close(struct safetensors *s);
/* Moves the mappings to the caller, who closes and frees them; tensors stay valid until then. */
void safetensors_take_maps(struct safetensors *s, struct file_map **maps, size_t *n);

const char *safetensors_type_name(enum safetensors_type t);
/* NULL when there is none. */
const struct safetensors_tensor *safetensors_find(const struct safetensors *s, const char *name);

#endif
