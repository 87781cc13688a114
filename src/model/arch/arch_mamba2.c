/* arch_mamba2.c - Mamba-2: state space blocks alone, without attention or feed-forward. */
#include "model/arch/arch.h"

int arch_mamba2(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    int rc;
    if ((rc = arch_u32(c, file, "context_length", 1, 1u << 24, &c->n_ctx_train, e)) < 0 ||
        (rc = arch_u32(c, file, "embedding_length", 1, 65536, &c->dim, e)) < 0 ||
        (rc = arch_u32(c, file, "block_count", 1, DECODER_MAX_LAYERS, &c->n_layers, e)) < 0 ||
        (rc = arch_rms_eps(c, file, e)) < 0 || (rc = arch_ssm(c, file, e)) < 0)
        return rc;
    c->n_heads = c->n_kv_heads = c->head_dim = 1;
    c->embed_scale = c->residual_scale = c->logit_scale = c->rope_scale = 1.0f;
    c->no_ffn = true;
    for (uint32_t i = 0; i < c->n_layers; i++)
        c->recurrent[i / 64] |= 1ull << i % 64;
    return 0;
}
