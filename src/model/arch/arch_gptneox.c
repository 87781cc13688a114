/* arch_gptneox.c - GPT-NeoX and Pythia: layer norms, biases, partial rotation; attention and
 * feed-forward in parallel, each after a norm of its own. */
#include "model/arch/arch.h"

int arch_gptneox(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    int rc = arch_common(c, file, e);
    if (rc == 0)
        rc = arch_layer_eps(c, file, e);
    if (rc == 0)
        rc = arch_bool_or(c, file, "use_parallel_residual", true, &c->parallel, e);
    c->parallel_norms = c->parallel;
    c->rope_neox = true;
    c->act = DECODER_ACT_GELU_ERF;
    return rc;
}
