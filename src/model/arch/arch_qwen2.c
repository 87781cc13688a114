/* arch_qwen2.c - Qwen 2 and 2.5: like Llama, with biases on query, key and value, and rotation of
 * halves instead of neighbouring pairs. */
#include "model/arch/arch.h"

int arch_qwen2(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    int rc = arch_common(c, file, e);
    if (rc == 0)
        rc = arch_rms_eps(c, file, e);
    c->rope_neox = true;
    c->gated = true;
    c->act = DECODER_ACT_SILU;
    return rc;
}
