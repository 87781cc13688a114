/* arch_gpt2.c - GPT-2 and DistilGPT-2: layer norms, learned positions, plain GELU. */
#include "model/arch/arch.h"

int arch_gpt2(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    int rc = arch_common(c, file, e);
    if (rc == 0)
        rc = arch_layer_eps(c, file, e);
    c->rope_dim = 0;
    c->learned_positions = true;
    c->act = DECODER_ACT_GELU;
    return rc;
}
