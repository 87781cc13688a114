/* stem.h - the convolutions in front of a speech encoder: a sound in, frames out.  They read its
 * samples, or what mel.h makes of them.
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

#include "model/mel.h"
#include "model/products.h"

#define STEM_MAX 4u /* convolutions */
#define STEM_MAX_PHASES (STEM_MAX * 4u + 2u)

enum stem_act { STEM_ACT_TANH, STEM_ACT_GELU };

struct stem_config {
    uint32_t n;       /* convolutions; 0: no stem */
    uint32_t n_bands; /* they read mel.h's frames of so many; 0: samples */
    uint32_t kernel[STEM_MAX], stride[STEM_MAX];
    uint32_t pad[STEM_MAX]; /* zeros at both ends of the input, in frames; none of samples */
    enum stem_act act[STEM_MAX];
};

struct stem_conv {
    struct linear l;
    uint32_t in, out, kernel, stride, pad;
    enum stem_act act;
    const float *norm_w, *norm_b; /* or NULL */
    enum linear_input form;
    struct kern_act windows; /* its input, one row per window */
    float *x, *y;            /* input without its padding; [frames][out] */
};

struct stem {
    const struct kern_ops *k;
    const struct weights *weights;
    struct stem_conv conv[STEM_MAX];
    uint32_t n, max_in; /* max_in: samples */
    struct mel *mel;    /* or NULL; owned */
    const float *sound; /* of the current pass, for mel */
    uint32_t n_sound;
    float *most;                /* [MEL_FRAMES / 2], the greatest of each two frames */
    uint32_t frames[STEM_MAX];  /* of the current pass */
    float *sums;                /* [frames of a normed convolution][2]: sum and sum of squares */
    float *ones;                /* [widest] */
    float *norm_mul, *norm_add; /* [widest], of the current pass */
};

/* Frames that n samples become; 0: too few. */
uint32_t stem_frames(const struct stem_config *c, uint64_t n);
/* The fewest samples that become n frames, n > 0. */
uint64_t stem_least(const struct stem_config *c, uint32_t n);
/* Claims the tensors stem.0.weight, .bias, .norm.weight, .norm.bias, ...; the last has n_out rows.
 */
SHOAL_MUST_CHECK int stem_plan(struct stem *s, struct plan *p, const struct stem_config *c,
                               uint32_t n_out);
void stem_fini(struct stem *s);
/* The memory for max_in samples; out: [frames][n_out], where the result goes. */
void stem_lay_out(struct stem *s, struct carve *at, const struct stem_config *c, uint32_t max_in,
                  float *out);
/* Once the weights are planned: the kernel set, and which inputs are rounded. */
void stem_set_up(struct stem *s, const struct kern_ops *k, const struct weights *w);

/* Makes the phases for n samples at x, which must stay until they have run; the stem must
 * be the first member of the context of the crew's program.  Returns how many. */
uint32_t stem_phases(struct stem *s, struct crew_phase *to, const float *x, uint32_t n,
                     uint32_t n_members);

#endif
