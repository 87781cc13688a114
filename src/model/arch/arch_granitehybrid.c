/* arch_granitehybrid.c - Granite 4 nano and micro hybrids: Granite's factors, the blocks of
 * Mamba-2, and attention without rotation in some layers. */
#include "model/arch/arch.h"

int arch_granitehybrid(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    bool rotates;
    int rc = arch_granite(c, file, e);
    if (rc == 0)
        rc = arch_ssm(c, file, e);
    if (rc == 0)
        rc = arch_bool_or(c, file, "rope.scaling.finetuned", false, &rotates, e);
    if (rc == 0 && !rotates)
        c->rope_dim = 0;
    c->fused_gate = !model_file_find_tensor(file, "blk.0.ffn_gate.weight"); /* folders */
    return rc;
}
