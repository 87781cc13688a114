/* arch_whisper.c - Whisper: a log-mel spectrum of 30 seconds, two convolutions, an encoder and a
 * decoder with learned positions. */
#include <math.h>

#include "model/arch/arch.h"
#include "model/t5_int.h"

int arch_whisper(struct t5_config *c, struct t5_shape *s, const struct model_file *file,
                 struct err *e)
{
    const struct decoder_config as = {.arch = "whisper"}; /* only its name is read */
    struct stem_config *stem = &s->stem;
    uint32_t start;
    int rc;
    if ((rc = arch_u32(&as, file, "context_length", 8, 65536, &c->n_ctx_train, e)) < 0 ||
        (rc = arch_u32(&as, file, "embedding_length", 1, 65536, &c->dim, e)) < 0 ||
        (rc = arch_u32(&as, file, "block_count", 1, 1024, &c->n_enc, e)) < 0 ||
        (rc = arch_u32_or(&as, file, "decoder_block_count", 1, 1024, c->n_enc, &c->n_dec, e)) < 0 ||
        (rc = arch_u32(&as, file, "attention.head_count", 1, c->dim, &c->n_heads, e)) < 0 ||
        (rc = arch_u32(&as, file, "feed_forward_length", 1, 1u << 20, &c->ffn_dim, e)) < 0 ||
        (rc = arch_u32(&as, file, "decoder_start_token_id", 0, INT32_MAX, &start, e)) < 0 ||
        (rc = arch_u32_or(&as, file, "mel_count", 1, MEL_MOST_BANDS, 80, &stem->n_bands, e)) < 0 ||
        (rc = arch_f32_or(&as, file, "attention.layer_norm_epsilon", 1e-5f, &c->norm_eps, e)) < 0)
        return rc;
    if (c->dim % c->n_heads)
        return err_set(e, SHOAL_EFORMAT, "%u values are not %u heads", c->dim, c->n_heads);
    c->head_dim = c->dim / c->n_heads;
    c->start_token = (int32_t)start;
    c->output_scale = 1.0f;
    stem->n = 2;
    stem->kernel[0] = stem->kernel[1] = 3;
    stem->pad[0] = stem->pad[1] = 1;
    stem->stride[0] = 1;
    stem->stride[1] = 2;
    stem->act[0] = stem->act[1] = STEM_ACT_GELU;
    s->n_frames = stem_frames(stem, MEL_SAMPLES);
    s->layer_norm = s->norm_bias = true;
    s->places = T5_PLACES_LEARNED;
    s->attn_scale = 1.0f / sqrtf((float)c->head_dim);
    s->act[0] = s->act[1] = PRODUCTS_ACT_GELU_ERF;
    return 0;
}
