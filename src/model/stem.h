/* stem.h - the convolutions in front of a speech encoder: sound or features in, frames out.
 *
 * A convolution is a product over overlapping windows of its input: frame t reads kernel * in
 * values from t * stride * in on.  After each comes an activation and, if the file has its weights,
 * a norm over all values of the sound (a group norm with one group).  Sums are taken frame by
 * frame, in their order, so that the bits depend on the sound alone.
 *
 * Thread:    crew members run the phases; the rest belongs to the model's thread.
 * Ownership: part of its model, which has its memory.  Private to src/model. */
#ifndef SHOAL_MODEL_STEM_H
#define SHOAL_MODEL_STEM_H

#include "model/products.h"

#define STEM_MAX 4u /* convolutions */
#define STEM_MAX_PHASES (STEM_MAX * 4u)

enum stem_act { STEM_ACT_TANH, STEM_ACT_GELU };

struct stem_config {
    uint32_t n;    /* convolutions; 0: no stem */
    uint32_t n_in; /* values of a frame of the input; 1: samples */
    uint32_t kernel[STEM_MAX], stride[STEM_MAX];
    enum stem_act act[STEM_MAX];
};

struct stem_conv {
    struct linear l;
    uint32_t in, out, kernel, stride;
    enum stem_act act;
    const float *norm_w, *norm_b; /* or NULL */
    enum linear_input form;
    struct kern_act windows; /* its input, one row per window */
    float *y;                /* [frames][out] */
};

struct stem {
    const struct kern_ops *k;
    const struct weights *weights;
    struct stem_conv conv[STEM_MAX];
    uint32_t n, max_in;         /* frames of the input */
    uint32_t frames[STEM_MAX];  /* of the current pass */
    float *sums;                /* [frames of a normed convolution][2]: sum and sum of squares */
    float *ones;                /* [widest] */
    float *norm_mul, *norm_add; /* [widest], of the current pass */
};

/* Frames that n frames of input become; 0: too few. */
uint32_t stem_frames(const struct stem_config *c, uint64_t n);
/* The least input that becomes n frames, n > 0. */
uint64_t stem_least(const struct stem_config *c, uint32_t n);
/* Claims the tensors stem.0.weight, .bias, .norm.weight, .norm.bias, ...; the last has n_out rows.
 */
SHOAL_MUST_CHECK int stem_plan(struct stem *s, struct plan *p, const struct stem_config *c,
                               uint32_t n_out);
/* The memory for max_in frames of input; out: [frames][n_out], where the result goes. */
void stem_lay_out(struct stem *s, struct carve *at, const struct stem_config *c, uint32_t max_in,
                  float *out);
/* Once the weights are planned: the kernel set, and which inputs are rounded. */
void stem_set_up(struct stem *s, const struct kern_ops *k, const struct weights *w);

/* Makes the phases for n frames of input at x, which must stay until they have run; the stem must
 * be the first member of the context of the crew's program.  Returns how many. */
uint32_t stem_phases(struct stem *s, struct crew_phase *to, const float *x, uint32_t n,
                     uint32_t n_members);

#endif
