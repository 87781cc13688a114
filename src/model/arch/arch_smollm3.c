/* arch_smollm3.c - SmolLM 3: Llama in which every fourth layer does not rotate. */
#include "model/arch/arch.h"

int arch_smollm3(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    c->nope_pattern = 4;
    return arch_llama(c, file, e);
}
