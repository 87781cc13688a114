/* arch_t5.c - T5, its version 1.1, Flan and mT5: biases by distance, RMS norms. */
#include <math.h>
#include <string.h>

#include "model/arch/arch.h"
#include "model/t5_int.h"

static int read_act(struct t5_shape *shape, const struct model_file *file, struct err *e)
{
    static const struct {
        const char *name;
        enum products_act act;
        bool gated, plain; /* variants in which it exists */
    } acts[] = {
        {"relu", PRODUCTS_ACT_RELU, false, true},
        {"gelu", PRODUCTS_ACT_GELU_ERF, false, true},
        {"gelu_new", PRODUCTS_ACT_GELU, true, true},
        {"gelu_pytorch_tanh", PRODUCTS_ACT_GELU, true, true},
        {"silu", PRODUCTS_ACT_SILU, true, true},
    };
    struct str s;
    const bool gated = model_file_find_tensor(file, "enc.blk.0.ffn_gate.weight") != NULL;
    shape->gated[0] = shape->gated[1] = gated;
    shape->act[0] = shape->act[1] = gated ? PRODUCTS_ACT_GELU : PRODUCTS_ACT_RELU;
    if (!model_file_get_str(file, "t5.activation", &s))
        return 0;
    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
        if (strlen(acts[i].name) == s.n && memcmp(acts[i].name, s.p, s.n) == 0 &&
            (gated ? acts[i].gated : acts[i].plain)) {
            shape->act[0] = shape->act[1] = acts[i].act;
            return 0;
        }
    return err_set(e, SHOAL_EUNSUPPORTED, "t5.activation \"%.*s\" is not supported%s",
                   (int)(s.n < 64 ? s.n : 64), s.p, gated ? " with a gate" : "");
}

int arch_t5(struct t5_config *c, struct t5_shape *s, const struct model_file *file, struct err *e)
{
    const struct decoder_config as = {.arch = "t5"}; /* only its name is read */
    uint32_t value_len, start;
    int rc;
    s->attn_scale = 1.0f;
    if ((rc = arch_u32(&as, file, "context_length", 1, 1u << 24, &c->n_ctx_train, e)) < 0 ||
        (rc = arch_u32(&as, file, "embedding_length", 1, 65536, &c->dim, e)) < 0 ||
        (rc = arch_u32(&as, file, "block_count", 1, 1024, &c->n_enc, e)) < 0 ||
        (rc = arch_u32_or(&as, file, "decoder_block_count", 1, 1024, c->n_enc, &c->n_dec, e)) < 0 ||
        (rc = arch_u32(&as, file, "attention.head_count", 1, 1024, &c->n_heads, e)) < 0 ||
        (rc = arch_u32_or(&as, file, "attention.key_length", 1, 1024, c->dim / c->n_heads,
                          &c->head_dim, e)) < 0 ||
        (rc = arch_u32_or(&as, file, "attention.value_length", 1, 1024, c->head_dim, &value_len,
                          e)) < 0 ||
        (rc = arch_u32(&as, file, "feed_forward_length", 1, 1u << 20, &c->ffn_dim, e)) < 0 ||
        (rc = arch_u32_or(&as, file, "attention.relative_buckets_count", 4, 65536, 32,
                          &c->n_buckets, e)) < 0 ||
        (rc = arch_u32_or(&as, file, "attention.relative_max_distance", 1, 1u << 24, 128,
                          &c->max_distance, e)) < 0 ||
        (rc = arch_u32_or(&as, file, "decoder_start_token_id", 0, INT32_MAX, 0, &start, e)) < 0 ||
        (rc = arch_f32_or(&as, file, "attention.layer_norm_rms_epsilon", 1e-6f, &c->norm_eps, e)) <
            0)
        return rc;
    if (c->head_dim == 0 || value_len != c->head_dim)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "value heads of %u dimensions and key heads of %u are not supported: they "
                       "must be equal",
                       value_len, c->head_dim);
    if (c->max_distance <= c->n_buckets / 2)
        return err_set(e, SHOAL_EFORMAT, "%u buckets are too many for distances of up to %u",
                       c->n_buckets, c->max_distance);
    c->start_token = (int32_t)start;
    bool scaled = !model_file_find_tensor(file, "output.weight"); /* default: scaled if tied */
    if (model_file_find(file, "t5.scale_decoder_outputs") &&
        !model_file_get_bool(file, "t5.scale_decoder_outputs", &scaled))
        return err_set(e, SHOAL_EFORMAT, "metadata key t5.scale_decoder_outputs is not a bool");
    c->output_scale = scaled ? 1.0f / sqrtf((float)c->dim) : 1.0f;
    return read_act(s, file, e);
}
