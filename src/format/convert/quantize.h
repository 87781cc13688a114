/* quantize.h - writes a model of any format as a GGUF file with its matrices in other encodings.
 *
 * Thread:    quantize_run uses threads of its own; its callbacks run on the caller's thread.
 * Ownership: quantize_result_fini frees what a result holds.
 * Failure:   SHOAL_EUNSUPPORTED (a source that is quantized already, unless allowed), SHOAL_EIO,
 *            SHOAL_EFORMAT (values that are not finite), SHOAL_ENOMEM, SHOAL_ECANCELLED; then no
 *            file is left and the result is empty. */
#ifndef SHOAL_FORMAT_CONVERT_QUANTIZE_H
#define SHOAL_FORMAT_CONVERT_QUANTIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/quants/quant.h"

struct model_file;

/* The target: an encoding for most matrices, and rules for the others. */
enum quantize_kind {
    QUANTIZE_F32,
    QUANTIZE_F16,
    QUANTIZE_BF16,
    QUANTIZE_Q8_0,
    QUANTIZE_Q6_K,
    QUANTIZE_Q5_K,
    QUANTIZE_Q4_K, /* with the attention values and ffn_down of some layers in Q6_K */
    QUANTIZE_Q4_0,
    QUANTIZE_IQ4_NL,
    QUANTIZE_MIXED, /* attention in attn_type, feed-forward in ffn_type, the rest in Q8_0 */
    QUANTIZE_N_KINDS
};

const char *quantize_kind_name(enum quantize_kind kind); /* "q8_0", "mixed", ... */
bool quantize_kind_from_name(const char *name, enum quantize_kind *kind);

struct quantize_progress {
    const char *tensor;
    size_t tensor_index, n_tensors;
    uint64_t bytes_done, bytes_total; /* of the source's tensors */
};

struct quantize_opts { /* all zero but kind means defaults */
    enum quantize_kind kind;
    enum quant_type attn_type; /* of MIXED; F32 (0): Q8_0 */
    enum quant_type ffn_type;  /* of MIXED; F32 (0): Q4_0 */
    bool pure;                 /* one encoding for all matrices, no exceptions */
    bool allow_requantize;     /* sources that are quantized already: the losses add up */
    uint32_t n_threads;        /* 0: one per CPU */
    const char *name;          /* general.name of the file; NULL: as the source has it */
    /* How much an error in each column of a tensor matters (mean square of its input over a
     * calibration text): n_cols floats that stay until quantize_run returns, or NULL to weigh
     * all alike.  The name is NUL-terminated.  NULL: no importance. */
    const float *(*importance)(void *ctx, const char *tensor, uint64_t n_cols);
    void *importance_ctx;
    /* Several times per tensor; false cancels. */
    bool (*progress)(void *ctx, const struct quantize_progress *p);
    void *progress_ctx;
};

struct quantize_tensor {
    char *name;
    enum quant_type from, to;
    uint64_t n_values, bytes_from, bytes_to;
    double rmse, relative; /* 0 when copied */
    bool important;        /* importance was used */
};

struct quantize_result {
    uint64_t bytes_from, bytes_to;   /* of the files */
    struct quantize_tensor *tensors; /* in the order of the file */
    size_t n_tensors;
    struct {
        uint32_t n_tensors;
        uint64_t n_values, n_bytes;
    } types[QUANT_N_TYPES]; /* of the output, by enum quant_type */
};

/* The encoding that each tensor would get; types: m->n_tensors of them. */
void quantize_plan(enum quant_type *types, const struct model_file *m,
                   const struct quantize_opts *o);
/* The same for one tensor of a model with n_layers. */
struct quantize_shape {
    const char *name;
    uint32_t n_dims;
    const uint64_t *dims;
    uint32_t n_layers;
};
enum quant_type quantize_choose(const struct quantize_shape *t, enum quant_type from,
                                const struct quantize_opts *o);
/* general.file_type of such a file. */
uint32_t quantize_file_type(const struct quantize_opts *o);

/* in: an open model; out_path may name its own file. */
SHOAL_MUST_CHECK int quantize_run(const struct model_file *in, const char *out_path,
                                  const struct quantize_opts *o, struct quantize_result *result,
                                  struct err *e);
void quantize_result_fini(struct quantize_result *r);

#endif
