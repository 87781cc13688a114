/* arch_ernie4_5.c - ERNIE 4.5 (dense): Llama, with biases if the file has them. */
#include "model/arch/arch.h"

int arch_ernie4_5(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    return arch_llama(c, file, e);
}
