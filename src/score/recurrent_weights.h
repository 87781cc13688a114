/* recurrent_weights.h - the tensors of a layer program, tiled for the kernels.
 *
 * Thread:    used by one thread while a scorer is opened.
 * Ownership: borrows the safetensors and the arena; its results live in the arena.
 * Failure:   0 or SHOAL_E* with the tensor's name.  Private to src/score. */
#ifndef SHOAL_SCORE_RECURRENT_WEIGHTS_H
#define SHOAL_SCORE_RECURRENT_WEIGHTS_H

#include "score/recurrent_int.h"
#include "format/safetensors.h"

#define RECURRENT_MODEL_TYPE "shoal_scorer"

struct recurrent_weights {
    const struct safetensors *st;
    struct arena *arena;
    const struct kern_ops *k;
    bool int8;     /* for the next matrix */
    bool any_int8; /* some matrix so far is 8-bit */
    bool *claimed; /* per tensor */
};

SHOAL_MUST_CHECK int recurrent_weights_init(struct recurrent_weights *w,
                                            const struct safetensors *st, struct arena *arena,
                                            const struct kern_ops *k, struct err *e);
void recurrent_weights_fini(struct recurrent_weights *w);
/* SHOAL_EFORMAT if a tensor was never used: the file belongs to another program. */
SHOAL_MUST_CHECK int recurrent_weights_check(const struct recurrent_weights *w, struct err *e);

bool recurrent_weights_has(const struct recurrent_weights *w, const char *name, const char *part);
/* The last dimension of NAME.weight, a convolution kernel. */
SHOAL_MUST_CHECK int recurrent_weights_kernel(const struct recurrent_weights *w, const char *name,
                                              uint32_t *kernel, struct err *e);
/* Reads NAME.part of [n_rows][n_cols][kernel] (n_rows 0: any; the last dimension may be missing if
 * kernel is 1) as a matrix of [n_rows][kernel][n_cols], with NAME.bias if there is one. */
SHOAL_MUST_CHECK int recurrent_weights_matrix(struct recurrent_weights *w,
                                              struct recurrent_mat *out, const char *name,
                                              const char *part, const char *bias, uint32_t n_rows,
                                              uint32_t n_cols, uint32_t kernel,
                                              uint32_t *rows_found, struct err *e);
/* Reads NAME.part of [n] as floats; NULL if there is none and it is not required. */
SHOAL_MUST_CHECK int recurrent_weights_vector(struct recurrent_weights *w, const float **out,
                                              const char *name, const char *part, uint32_t n,
                                              bool required, struct err *e);

#endif
