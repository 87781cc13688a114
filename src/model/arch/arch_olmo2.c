/* arch_olmo2.c - OLMo 2: norms follow the blocks, and those of queries and keys cover all heads at
 * once. */
#include "model/arch/arch.h"

int arch_olmo2(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    c->post_norm = true;
    c->qk_norm_whole = true;
    return arch_qwen2(c, file, e);
}
