/* decoder_int.h - internals of a decoder, shared by decoder.c (loading) and decoder_forward.c.
 * Private to src/model. */
#ifndef SHOAL_MODEL_DECODER_INT_H
#define SHOAL_MODEL_DECODER_INT_H

#include "model/adapter.h"
#include "model/decoder.h"
#include "model/decoder_parts.h"
#include "model/products.h"

struct attn_unit { /* rows of one KV head of one run: the smallest unit of a chunk */
    uint32_t run, kv_head, row0, row1;
};

struct adapted { /* consecutive tokens with the same adapter: what one member adds to */
    const struct adapter *adapter; /* NULL: none */
    float scale;
    uint32_t first, n;
};

struct decoder_profile;

struct decoder {
    struct decoder_config c;
    const struct kern_ops *k;
    const struct model_file *file;
    struct crew *crew; /* shared with other models; NULL: the lane has its own */
    struct crew_lane *lane;
    struct weights weights;
    struct layer *layers;
    const float *final_norm_w, *final_norm_b;
    struct linear output;
    const struct model_file_tensor *embd, *pos_embd;
    struct small_tensors vectors; /* all small tensors */
    float *inv_freq[2];           /* global and local: [rope_dim / 2] */

    uint32_t first, end; /* its layers: all, or a part */
    struct decoder_rows rows;
    uint32_t head0, head1; /* its heads of keys and values: all, or those of its rows */
    decoder_gather_fn gather;
    void *gather_ctx;
    uint32_t n_gathered; /* in this pass */
    bool lost;
    uint32_t n_ctx, max_batch, max_logits, max_threads;
    enum kern_kv kv_kind;
    uint8_t *kv;
    size_t kv_head_bytes, kv_page_bytes;

    /* scratch, one allocation */
    uint8_t *scratch;
    size_t scratch_bytes;
    float *x;    /* [max_batch][dim]: the residual stream */
    float *xn;   /* [max_batch][dim]: x after the norm, input of products */
    float *qkv;  /* [max_batch][qkv_dim] */
    float *att;  /* [max_batch][n_heads * head_dim] */
    float *proj; /* [max_batch][dim]: results of attn_out and down */
    float *keep; /* [max_batch][dim]: attention's result; only for parallel architectures */
    float *gate; /* [max_batch][n_heads * head_dim]: of gated attention */
    float *mix;  /* [max_batch][mix_dim]: what the stages of recurrent blocks leave */
    float *hidden, *hidden_up; /* [max_batch][ffn_dim] */
    float *rope_cs[2];         /* [max_batch][2][rope_dim], see kern.h */
    float *logits;             /* [max_logits][n_vocab] */
    float **attn_scratch;      /* per member */
    float **stage;             /* per member: [2][PRODUCTS_FEW][stage_rows], results of a chunk */
    uint32_t stage_rows;
    struct kern_act act_x, act_att, act_mix, act_hidden;
    struct experts experts;
    struct attn_unit *units;
    decoder_next_fn next; /* of decoder_passes */
    void *next_ctx;
    struct crew_phase *phases;
    uint32_t qkv_dim;
    uint32_t mix_dim;
    float *states; /* [n_states][state_floats] */
    uint32_t n_states;
    size_t state_floats, layer_state_floats;
    bool int_x, int_att, int_mix, int_hidden; /* some product with this input has integer weights */

    /* the current pass */
    const struct decoder_run *runs;
    uint32_t n_runs, n_tokens, n_logits, n_units;
    uint32_t *run_of, *run_first; /* per token; per run */
    uint32_t *logit_token;        /* token of each row of logits */
    struct adapted *adapted;      /* [n_adapted]: all tokens, if `places` is not 0 */
    uint32_t n_adapted;
    unsigned places; /* bit p: some token's adapter changes place p */

    decoder_watch_fn watch;
    void *watch_ctx;
    struct decoder_profile *profile; /* NULL: passes are not timed */
};

/* Of a pass. */
static inline uint32_t decoder_most_phases(const struct decoder_config *c)
{
    return c->n_layers * 17 + 9;
}

static inline bool decoder_has_head(const struct decoder *d)
{
    return d->end == d->c.n_layers && d->rows.index + 1 >= d->rows.n_parts;
}

#endif
