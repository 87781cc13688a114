/* arch_stablelm.c - StableLM: Llama with layer norms and partial rotation; some biases, and in one
 * variant attention and feed-forward in parallel after one norm. */
#include "model/arch/arch.h"

int arch_stablelm(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    int rc = arch_common(c, file, e);
    if (rc == 0)
        rc = arch_layer_eps(c, file, e);
    if (rc == 0)
        rc = arch_bool_or(c, file, "use_parallel_residual", false, &c->parallel, e);
    c->rope_neox = true;
    c->gated = true;
    c->act = DECODER_ACT_SILU;
    return rc;
}
