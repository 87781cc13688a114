/* arch_granitemoe.c - Granite 3 with experts. */
#include "model/arch/arch.h"

int arch_granitemoe(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    c->expert_norm = true;
    int rc = arch_experts(c, file, e);
    return rc < 0 ? rc : arch_granite(c, file, e);
}
