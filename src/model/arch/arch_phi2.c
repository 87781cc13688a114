/* arch_phi2.c - Phi-1.5 and Phi-2: attention and feed-forward in parallel after one layer norm,
 * partial rotation of each head, biases everywhere. */
#include "model/arch/arch.h"

int arch_phi2(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    int rc = arch_common(c, file, e);
    if (rc == 0)
        rc = arch_layer_eps(c, file, e);
    c->rope_neox = true;
    c->parallel = true;
    c->act = DECODER_ACT_GELU;
    return rc;
}
