/* arch_hunyuan.c - Hunyuan (dense): Qwen 3 with the norms of queries and keys after their rotation.
 */
#include "model/arch/arch.h"

int arch_hunyuan(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    c->qk_norm_rotated = true;
    return arch_qwen2(c, file, e);
}
