/* arch_moonshine.c - Moonshine: samples, three convolutions, an encoder and a decoder with rotary
 * positions. */
#include <math.h>

#include "model/arch/arch.h"
#include "model/t5_int.h"

/* moonshine.stem.<key>: one number for each convolution. */
static int stem_numbers(const struct model_file *file, const char *key, struct stem_config *s,
                        uint32_t out[STEM_MAX], struct err *e)
{
    const struct model_file_value *v = model_file_find(file, key);
    int64_t x = 0;
    if (!v || v->type != MODEL_FILE_ARRAY || v->n_elems == 0 || v->n_elems > STEM_MAX ||
        (s->n && v->n_elems != s->n))
        return err_set(e, SHOAL_EFORMAT, "metadata key %s is not a list of 1 to %u numbers", key,
                       STEM_MAX);
    s->n = (uint32_t)v->n_elems;
    for (uint32_t i = 0; i < s->n; i++) {
        if (!model_file_i64_at(v, i, &x) || x < 1 || x > 4096)
            return err_set(e, SHOAL_EFORMAT, "metadata key %s has a number that is not 1 to 4096",
                           key);
        out[i] = (uint32_t)x;
    }
    return 0;
}

static int read_stem(struct stem_config *s, const struct model_file *file, struct err *e)
{
    int rc = stem_numbers(file, "moonshine.stem.kernels", s, s->kernel, e);
    if (rc == 0)
        rc = stem_numbers(file, "moonshine.stem.strides", s, s->stride, e);
    for (uint32_t i = 0; i < s->n; i++)
        s->act[i] = i == 0 ? STEM_ACT_TANH : STEM_ACT_GELU;
    return rc;
}

int arch_moonshine(struct t5_config *c, struct t5_shape *s, const struct model_file *file,
                   struct err *e)
{
    const struct decoder_config as = {.arch = "moonshine"}; /* only its name is read */
    uint32_t start;
    int rc;
    if ((rc = arch_u32(&as, file, "context_length", 1, 65536, &c->n_ctx_train, e)) < 0 ||
        (rc = arch_u32(&as, file, "embedding_length", 1, 65536, &c->dim, e)) < 0 ||
        (rc = arch_u32(&as, file, "block_count", 1, 1024, &c->n_enc, e)) < 0 ||
        (rc = arch_u32_or(&as, file, "decoder_block_count", 1, 1024, c->n_enc, &c->n_dec, e)) < 0 ||
        (rc = arch_u32(&as, file, "attention.head_count", 1, c->dim, &c->n_heads, e)) < 0 ||
        (rc = arch_u32(&as, file, "feed_forward_length", 1, 1u << 20, &c->ffn_dim, e)) < 0 ||
        (rc = arch_u32_or(&as, file, "decoder_start_token_id", 0, INT32_MAX, 1, &start, e)) < 0 ||
        (rc = arch_f32_or(&as, file, "rope.freq_base", 10000.0f, &s->rope_base, e)) < 0 ||
        (rc = arch_f32_or(&as, file, "attention.layer_norm_epsilon", 1e-5f, &c->norm_eps, e)) < 0)
        return rc;
    c->head_dim = c->dim / c->n_heads;
    if ((rc = arch_u32(&as, file, "rope.dimension_count", 2, c->head_dim, &s->rope_dim, e)) < 0)
        return rc;
    if (s->rope_dim % 2)
        return err_set(e, SHOAL_EFORMAT, "%u values of a head cannot be rotated in pairs",
                       s->rope_dim);
    c->start_token = (int32_t)start;
    c->output_scale = 1.0f;
    s->layer_norm = true;
    s->places = T5_PLACES_ROTATED;
    s->attn_scale = 1.0f / sqrtf((float)c->head_dim);
    s->gated[1] = true;
    s->act[0] = PRODUCTS_ACT_GELU_ERF;
    s->act[1] = PRODUCTS_ACT_SILU;
    return read_stem(&s->stem, file, e);
}
