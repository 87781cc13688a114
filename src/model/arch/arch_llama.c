/* arch_llama.c - Llama 2 and 3, TinyLlama, SmolLM2, Mistral (with its sliding window). */
#include "model/arch/arch.h"

int arch_llama(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    int rc = arch_common(c, file, e);
    if (rc == 0)
        rc = arch_rms_eps(c, file, e);
    if (rc == 0)
        rc = arch_u32_or(c, file, "attention.sliding_window", 0, 1u << 24, 0, &c->window, e);
    c->rope_neox = false;
    c->gated = true;
    c->act = DECODER_ACT_SILU;
    return rc;
}
