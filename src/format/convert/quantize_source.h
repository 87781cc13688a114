/* quantize_source.h - what quantize_run and the converters have in common: tensors from anywhere,
 * encoded by the rules of quantize.h.
 *
 * Thread:    as quantize_run; row functions run on several threads at once.
 * Failure:   as quantize_run. */
#ifndef SHOAL_FORMAT_CONVERT_QUANTIZE_SOURCE_H
#define SHOAL_FORMAT_CONVERT_QUANTIZE_SOURCE_H

#include "format/convert/quantize.h"

struct gguf_write;

struct quantize_source_tensor {
    char name[264]; /* longer than readers and writers accept */
    enum quant_type from, to;
    uint32_t n_dims;
    uint64_t dims[4];
    uint64_t n_bytes;    /* of the source, for progress */
    const uint8_t *data; /* as the file has it, to be copied when from == to; NULL: use row */
    void (*row)(const void *ctx, uint64_t row, float *out);
    const void *row_ctx;
};

struct quantize_source {
    struct quantize_source_tensor *tensors;
    size_t n_tensors;
    uint64_t n_bytes; /* of the source file */
    void (*metadata)(const void *ctx, struct gguf_write *w);
    const void *metadata_ctx;
};

SHOAL_MUST_CHECK int quantize_source_run(const struct quantize_source *src, const char *out_path,
                                         const struct quantize_opts *o,
                                         struct quantize_result *result, struct err *e);

#endif
