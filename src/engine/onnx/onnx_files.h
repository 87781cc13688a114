/* onnx_files.h - finds the .onnx file of a path, its tokenizer and its settings.
 *
 * A folder: onnx/model_quantized.onnx, onnx/model.onnx and the like (table in onnx_files.c), the
 * same names in the folder itself, else the only .onnx file.  A folder with
 * safetensors is opened by the native engine: name the file to run it here.  A file: settings and
 * tokenizer are next to it or one folder above.
 *
 * Thread:    any.
 * Failure:   SHOAL_EINVAL (several files, none of which is the usual one), SHOAL_EIO, SHOAL_ELIMIT.
 */
#ifndef SHOAL_ENGINE_ONNX_ONNX_FILES_H
#define SHOAL_ENGINE_ONNX_ONNX_FILES_H

#include <limits.h>
#include <stdint.h>

#include "base/err.h"
#include "format/model_file.h"

struct onnx_files {
    char model[PATH_MAX];
    char folder[PATH_MAX]; /* "": there are no settings and no tokenizer */
};

/* 1: it is an ONNX model, described by *out; 0: it is not. */
SHOAL_MUST_CHECK int onnx_files_find(struct onnx_files *out, const char *path, struct err *e);
/* Tokenizer and settings without tensors (hf_folder.h); model_file_close. */
SHOAL_MUST_CHECK int onnx_files_open(const struct onnx_files *f, struct model_file **out,
                                     struct err *e);
/* Tokenizer and settings of any model: as above when it is an ONNX model, else model_open. */
SHOAL_MUST_CHECK int onnx_files_view(struct model_file **out, const char *path, struct err *e);
/* The longest sequence according to config.json, or 0. */
uint32_t onnx_files_n_ctx(const struct model_file *m);

#endif
