/* convert_llama2c.h - llama2.c checkpoints (.bin) to GGUF.
 *
 * Three formats: the legacy one without a magic number (F32), and versions 1 (F32) and 2 (8 bits in
 * groups) that begin with "ak42".  Rotary positions pair neighbouring values in all of them, which
 * is GGUF's order for llama: no weight moves.
 *
 * Thread:    convert_llama2c uses threads of its own; its progress runs on the caller's.
 * Ownership: a parsed checkpoint borrows the bytes it was parsed from.
 * Failure:   SHOAL_EFORMAT when header and file size do not agree (the arithmetic is in the text)
 *            or a weight is not finite, SHOAL_EUNSUPPORTED, SHOAL_EIO, SHOAL_ENOMEM,
 *            SHOAL_ECANCELLED; then no file is left. */
#ifndef SHOAL_FORMAT_CONVERT_CONVERT_LLAMA2C_H
#define SHOAL_FORMAT_CONVERT_CONVERT_LLAMA2C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "format/convert/quantize.h"

enum llama2c_part {
    LLAMA2C_EMBEDDING,
    LLAMA2C_ATTN_NORM, /* from here to FFN_UP: one per layer */
    LLAMA2C_ATTN_Q,
    LLAMA2C_ATTN_K,
    LLAMA2C_ATTN_V,
    LLAMA2C_ATTN_OUTPUT,
    LLAMA2C_FFN_NORM,
    LLAMA2C_FFN_GATE, /* w1 */
    LLAMA2C_FFN_DOWN, /* w2 */
    LLAMA2C_FFN_UP,   /* w3 */
    LLAMA2C_FINAL_NORM,
    LLAMA2C_OUTPUT, /* only when the embedding is not shared */
    LLAMA2C_N_PARTS
};

struct llama2c {
    uint32_t version; /* 0: legacy */
    uint32_t dim, n_hidden, n_layers, n_heads, n_kv_heads, n_vocab, n_ctx;
    bool shared;    /* the embedding is the output matrix too */
    uint32_t group; /* values per scale in version 2, else 0 */
    const uint8_t *bytes;
    size_t offsets[LLAMA2C_N_PARTS]; /* of layer 0's */
};

/* Checks that the bytes hold exactly what their header describes. */
SHOAL_MUST_CHECK int convert_llama2c_parse(struct llama2c *out, const void *bytes, size_t n,
                                           struct err *e);
void convert_llama2c_shape(const struct llama2c *m, enum llama2c_part part, uint64_t *n_rows,
                           uint64_t *n_cols);
/* One row as floats; layer is 0 for parts outside of layers. */
void convert_llama2c_row(const struct llama2c *m, enum llama2c_part part, uint32_t layer,
                         uint64_t row, float *out);

/* o->kind and the rules of quantize.h choose the encodings; importance and progress work as there.
 * name: general.name, NULL for the file's own name. */
SHOAL_MUST_CHECK int convert_llama2c(const char *model_path, const char *tokenizer_path,
                                     const char *out_path, const char *name,
                                     const struct quantize_opts *o, struct quantize_result *result,
                                     struct err *e);

#endif
