/* arch_exaone4.c - EXAONE 4: Qwen 3 with norms behind the blocks; in the large ones every fourth
 * layer has no window and does not rotate. */
#include "model/arch/arch.h"

int arch_exaone4(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    int rc = arch_qwen2(c, file, e);
    if (rc == 0)
        rc = arch_window(c, file, 4, e);
    c->post_norm = true;
    c->nope_global = true;
    return rc;
}
