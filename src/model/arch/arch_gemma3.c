/* arch_gemma3.c - Gemma 3 (text): norms before and after each block, five local layers per global
 * one, each kind with its own rotation base, scaled embeddings, gated GELU. */
#include "model/arch/arch.h"

#include <math.h>

int arch_gemma3(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    int rc = arch_common(c, file, e);
    if (rc == 0)
        rc = arch_rms_eps(c, file, e);
    if (rc == 0)
        rc = arch_u32(c, file, "attention.sliding_window", 1, 1u << 24, &c->window, e);
    if (rc == 0)
        rc = arch_window(c, file, 6, e);
    if (rc == 0)
        rc = arch_f32_or(c, file, "attention.scale", c->attn_scale, &c->attn_scale, e);
    if (rc == 0)
        rc = arch_f32_or(c, file, "final_logit_softcapping", 0.0f, &c->logit_cap, e);
    if (rc == 0)
        rc = arch_f32_or(c, file, "rope.freq_base_swa", 10000.0f, &c->rope_base_local, e);
    c->rope_neox = true;
    c->gated = true;
    c->act = DECODER_ACT_GELU;
    c->embed_scale = sqrtf((float)c->dim);
    return rc;
}
