/* arch_olmoe.c - OLMoE: experts whose weights are used as they are, norms of all queries and keys
 * at once. */
#include "model/arch/arch.h"

int arch_olmoe(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    c->qk_norm_whole = true;
    int rc = arch_experts(c, file, e);
    return rc < 0 ? rc : arch_qwen2(c, file, e);
}
