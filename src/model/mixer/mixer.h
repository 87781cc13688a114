/* mixer.h - recurrent blocks, which take the place of attention in some layers of a decoder.
 *
 * A block is products of the layer's input (struct layer.qkv), then up to two stages that go
 * through the tokens in order with a state, then a product with what they left (attn_out).  The
 * decoder computes the products, gives each stage its units (channels or heads, which do not depend
 * on each other) as chunks of a phase, and keeps the states: a block only says how large they are.
 * A new block is one file with a struct mixer_ops, and an architecture that names it.
 *
 * Thread:    crew members; a unit of a run belongs to one of them at a time.
 * Ownership: borrows everything.  Private to src/model. */
#ifndef SHOAL_MODEL_MIXER_MIXER_H
#define SHOAL_MODEL_MIXER_MIXER_H

#include <stddef.h>
#include <stdint.h>

struct decoder_config;
struct kern_ops;
struct layer;
struct mixer_layer;
struct plan;

#define MIXER_STAGES 2u
#define MIXER_MAX_KEY 256u /* values of a key of the delta rule */

struct mixer_job {
    const struct kern_ops *k;
    const struct decoder_config *c;
    const struct mixer_layer *l;
    float *in; /* [n][in_ld]: the products; a stage may overwrite what the next one reads */
    size_t in_ld;
    float *out; /* [n][out_ld] */
    size_t out_ld;
    uint32_t n; /* tokens */
};

struct mixer_stage {
    uint32_t (*n_units)(const struct decoder_config *c);
    uint32_t (*unit_floats)(const struct decoder_config *c); /* of a unit's state */
    /* Goes through the job's tokens; state: the unit's, all zero before the first token. */
    void (*run)(const struct mixer_job *j, uint32_t unit, float *state);
};

struct mixer_ops {
    uint32_t (*in_dim)(const struct decoder_config *c);
    uint32_t (*out_dim)(const struct decoder_config *c);
    int (*plan)(struct plan *p, const struct decoder_config *c, struct layer *l, int i);
    struct mixer_stage stages[MIXER_STAGES];   /* the second may have no run */
    void (*finish)(const struct mixer_job *j); /* NULL, or: of one token, after the stages */
};

extern const struct mixer_ops mixer_shortconv, mixer_ssd, mixer_delta;

/* Floats of a layer's state up to a stage; MIXER_STAGES: all of it. */
size_t mixer_state_at(const struct mixer_ops *m, const struct decoder_config *c, uint32_t stage);

#endif
