/* arch_gemma2.c - Gemma 2: norms before and after each block, a window in every second layer,
 * scores and logits bounded by tanh, scaled embeddings, gated GELU. */
#include "model/arch/arch.h"

#include <math.h>

int arch_gemma2(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    int rc = arch_common(c, file, e);
    if (rc == 0)
        rc = arch_rms_eps(c, file, e);
    if (rc == 0)
        rc = arch_window(c, file, 2, e);
    if (rc == 0)
        rc = arch_f32_or(c, file, "attn_logit_softcapping", 50.0f, &c->attn_cap, e);
    if (rc == 0)
        rc = arch_f32_or(c, file, "final_logit_softcapping", 30.0f, &c->logit_cap, e);
    if (rc == 0 && c->n_layers == 46 && c->dim >= c->n_heads) /* 27B; its files do not say so */
        c->attn_scale = 1.0f / sqrtf((float)(c->dim / c->n_heads));
    if (rc == 0)
        rc = arch_f32_or(c, file, "attention.scale", c->attn_scale, &c->attn_scale, e);
    c->rope_neox = true;
    c->gated = true;
    c->act = DECODER_ACT_GELU;
    c->embed_scale = sqrtf((float)c->dim);
    return rc;
}
