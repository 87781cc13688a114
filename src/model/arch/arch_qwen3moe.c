/* arch_qwen3moe.c - Qwen 3 with experts. */
#include "model/arch/arch.h"

int arch_qwen3moe(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    c->expert_norm = true;
    int rc = arch_experts(c, file, e);
    return rc < 0 ? rc : arch_qwen3(c, file, e);
}
