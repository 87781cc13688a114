/* arch_gptneo.c - GPT-Neo: GPT-2 with separate projections, unscaled attention scores, and a window
 * in every second layer. */
#include "model/arch/arch.h"

int arch_gptneo(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    int rc = arch_gpt2(c, file, e);
    if (rc == 0)
        rc = arch_u32_or(c, file, "attention.sliding_window", 0, 1u << 24, 0, &c->window, e);
    c->window_pattern = 2;
    c->window_global = 0;
    c->attn_scale = 1.0f;
    return rc;
}
