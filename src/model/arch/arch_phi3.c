/* arch_phi3.c - Phi 3, 3.5 and 4 mini: Qwen 2 without biases; query, key and value are one matrix,
 * and so are gate and up; two tables of rotation frequencies, one for long contexts. */
#include "model/arch/arch.h"

int arch_phi3(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    int rc = arch_qwen2(c, file, e);
    if (rc == 0)
        rc = arch_u32_or(c, file, "attention.sliding_window", 0, 1u << 24, 0, &c->window, e);
    c->fused_gate = true;
    return rc;
}
