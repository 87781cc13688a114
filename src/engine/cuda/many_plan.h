/* many_plan.h - a pass of many tokens as a sequence of launches (many.h), if the decoder is one
 * that these kernels know.
 *
 * Thread:    a plan belongs to its owner.
 * Ownership: many_plan_free takes back what many_plan gave; memory of the GPU is `place`'s.
 * Failure:   SHOAL_ENOMEM, what `place` or the launches return. */
#ifndef SHOAL_ENGINE_CUDA_MANY_PLAN_H
#define SHOAL_ENGINE_CUDA_MANY_PLAN_H

#include "engine/cuda/step_place.h"

struct many_plan {
    struct one_layer *layers; /* n_layers + 1 as in one.h, in the memory of the host; NULL: none */
    uint32_t *windows;        /* of each layer */
    uint32_t max_tokens;
    uint32_t tile;                  /* most tokens of a tile of attention */
    uint32_t most_keys;             /* positions that fit */
    uint32_t threads[MANY_KERNELS]; /* of a block */
    float *qkv, *wide;              /* wide: attention's results, or the hidden layer */
    int8_t *xq;
    float *scale;
    uint32_t ldq, lds;
};

/* layers: m's, in the memory of the host. */
SHOAL_MUST_CHECK int many_plan(struct many_plan *out, const struct step_model *m,
                               const struct step_layer *layers, const struct step_place *at,
                               struct err *e);
void many_plan_free(struct many_plan *k);

/* Whether the kernels can compute a pass whose last position is `last`. */
bool many_plan_fits(const struct many_plan *k, uint32_t n_tokens, uint32_t last);

/* Queues `blocks` blocks of a kernel; param: its struct of many.h. */
struct many_launcher {
    int (*launch)(void *ctx, enum many_kernel kernel, uint32_t blocks, uint32_t shared_bytes,
                  const void *param, struct err *e);
    void *ctx;
};

/* The whole pass; p->embedded is overwritten.  last: the highest position. */
SHOAL_MUST_CHECK int many_run(const struct many_plan *k, const struct step_model *m,
                              const struct step_pass *p, uint32_t last,
                              const struct many_launcher *to, struct err *e);

#endif
