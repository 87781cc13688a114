/* arch_granite.c - Granite 3: Llama with factors on the embedding, on the scores, on what each
 * block adds and on the logits. */
#include "model/arch/arch.h"

int arch_granite(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    float divisor;
    int rc = arch_llama(c, file, e);
    if (rc < 0 || (rc = arch_f32_or(c, file, "embedding_scale", 1.0f, &c->embed_scale, e)) < 0 ||
        (rc = arch_f32_or(c, file, "residual_scale", 1.0f, &c->residual_scale, e)) < 0 ||
        (rc = arch_f32_or(c, file, "attention.scale", c->attn_scale, &c->attn_scale, e)) < 0 ||
        (rc = arch_f32_or(c, file, "logit_scale", 1.0f, &divisor, e)) < 0)
        return rc;
    if (!(divisor > 0.0f))
        return err_set(e, SHOAL_EFORMAT, "granite.logit_scale is not positive");
    c->logit_scale = 1.0f / divisor;
    return 0;
}
