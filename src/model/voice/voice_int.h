/* voice_int.h - the parts of a voice.  Private to src/model/voice.
 *
 * Frames lie one after the other, [frame][channel]; a convolution is a product over overlapping
 * windows of them.  Buffers that a convolution reads have zeros before the first frame and after
 * the last one. */
#ifndef SHOAL_MODEL_VOICE_VOICE_INT_H
#define SHOAL_MODEL_VOICE_VOICE_INT_H

#include "model/plan.h"
#include "model/voice/voice.h"

#define VOICE_MAX_LAYERS 16u
#define VOICE_SPREADS 3u /* convolutions of a stack in the duration predictor */
#define VOICE_DUR_FLOWS 3u
#define VOICE_BINS 10u /* of a spline */
#define VOICE_MAX_FLOWS 8u
#define VOICE_MAX_WN 8u /* layers of a coupling */
#define VOICE_MAX_STAGES 4u
#define VOICE_BRANCHES 3u
#define VOICE_MAX_KERNEL 15u
#define VOICE_ROWS 64u       /* windows that are rounded together */
#define VOICE_FLOW_CHUNK 64u /* frames */
#define VOICE_SOUND_CHUNK 8u /* frames */
#define VOICE_MAX_PHASES 64u

struct voice_conv {
    struct linear l;
    uint32_t in, kernel, out;
    enum linear_input form;
};

struct voice_norm {
    const float *w, *b;
};

struct voice_layer { /* of the text encoder */
    struct voice_conv q, k, v, o, up, down;
    struct voice_norm attn_norm, ffn_norm;
    const float *rel_k, *rel_v; /* [2 * window + 1][head_dim] */
};

struct voice_spread {            /* a separable convolution with its norms */
    const float *sep, *sep_bias; /* [3][dim] */
    struct voice_norm norm1, norm2;
    struct voice_conv point;
};

struct voice_dur_flow {
    const float *pre, *pre_bias; /* [dim] */
    struct voice_spread spread[VOICE_SPREADS];
    struct voice_conv proj;
};

struct voice_coupling {
    struct voice_conv pre, post, in[VOICE_MAX_WN], skip[VOICE_MAX_WN];
};

struct voice_stage { /* of the decoder: an upsampling, then branches whose mean is taken */
    struct voice_conv up;
    uint32_t stride, width;
    struct voice_conv res[VOICE_BRANCHES][2];
};

/* Memory of a member of the crew. */
struct voice_member {
    struct kern_act windows;  /* rounded input of a product, VOICE_ROWS of the widest */
    float *a, *b, *c, *d, *u; /* frames; sizes: voice_load.c */
    float *scores;            /* [VOICE_MAX_IDS + 16] */
};

struct voice {
    struct voice_config c;
    const struct model_file *file;
    const struct kern_ops *k;
    struct crew_lane *lane;
    struct weights weights;
    struct small_tensors vectors;
    uint32_t n_flows, n_wn, flow_kernel, n_stages, post_kernel;
    uint32_t branch_kernel[VOICE_BRANCHES], dilation[VOICE_BRANCHES][2];
    uint32_t branch_halo; /* positions that the widest branch sees to each side */
    /* weights */
    const float *embd; /* [n_symbols][dim], scaled */
    struct voice_layer layers[VOICE_MAX_LAYERS];
    struct voice_conv proj;
    struct voice_conv dur_pre, dur_proj;
    struct voice_spread dur[VOICE_SPREADS];
    struct voice_dur_flow dur_flows[VOICE_DUR_FLOWS];
    const float *affine_shift, *affine_scale;
    struct voice_coupling couplings[VOICE_MAX_FLOWS];
    struct voice_conv pre;
    struct voice_stage stages[VOICE_MAX_STAGES];
    const float *post; /* [post_kernel * width of the last stage] */
    /* scratch */
    uint8_t *scratch;
    size_t scratch_bytes;
    struct voice_member *members; /* [crew_lane_size] */
    float *x, *qkv, *hidden;      /* of the text, with room for a kernel's margins */
    float *cond, *dur_x[2];
    float *stats;         /* [n][2 * dim] */
    float *log_durations; /* [n] */
    float *pairs;         /* [n][2]: the two halves of the duration flow */
    uint32_t *durations;
    struct crew_phase phases[VOICE_MAX_PHASES];
    /* the current text */
    const uint16_t *ids;
    uint32_t n;
    float *frames; /* [n_frames][dim], heap */
    uint32_t n_frames;
    size_t frames_cap;
    float *out; /* of voice_sound */
    uint32_t from, to;
};

/* voice_conv.c: n windows from x on, each ld values after the one before.  out_ld: between two
 * results. */
void voice_conv_run(const struct voice *v, const struct voice_conv *c, struct voice_member *m,
                    const float *x, size_t ld, uint32_t n, float *out, size_t out_ld);
/* First item of a chunk. */
static inline uint32_t voice_part(const struct crew_phase *p, uint32_t chunk)
{
    return (uint32_t)((uint64_t)p->n_items * chunk / p->n_chunks);
}
/* A phase over n items, in chunks of at least `least`. */
void voice_phase(struct voice *v, uint32_t *n_phases, uint32_t arg, uint32_t n, uint32_t least,
                 void (*chunk)(void *ctx, const struct crew_phase *p, uint32_t chunk,
                               uint32_t member));
void voice_phases_run(struct voice *v, uint32_t n_phases);

/* voice_text.c: phonemes to stats and the encoder's output in v->x. */
void voice_text_run(struct voice *v);
/* voice_pace.c: v->x to log_durations. */
void voice_pace_run(struct voice *v, const struct voice_say *say);
/* voice_flow.c: v->frames, in place. */
void voice_flow_run(struct voice *v);
/* voice_sound.c */
void voice_sound_run(struct voice *v, uint32_t from, uint32_t to, float *out);
/* Positions of a stage's buffer for n frames, at most. */
size_t voice_sound_room(const struct voice *v, uint32_t n_frames);

#endif
