/* arch_qwen3.c - Qwen 3: Qwen 2 without biases, with norms on every query and key head (loaded from
 * the tensors attn_q_norm and attn_k_norm). */
#include "model/arch/arch.h"

int arch_qwen3(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    return arch_qwen2(c, file, e);
}
