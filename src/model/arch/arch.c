/* arch.c - the table of architectures. */
#include "model/arch/arch.h"

#include <stdio.h>
#include <string.h>

static const struct arch archs[] = {
    {"llama", arch_llama},   {"qwen2", arch_qwen2}, {"qwen3", arch_qwen3},   {"gpt2", arch_gpt2},
    {"gptneo", arch_gptneo}, {"phi2", arch_phi2},   {"gemma3", arch_gemma3},
};
#define N_ARCHS (sizeof(archs) / sizeof(archs[0]))

const struct arch *arch_find(const char *name, size_t n)
{
    for (size_t i = 0; i < N_ARCHS; i++)
        if (strlen(archs[i].name) == n && memcmp(archs[i].name, name, n) == 0)
            return &archs[i];
    return NULL;
}

void arch_names(char *out, size_t cap)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < N_ARCHS && n < cap; i++)
        n += (size_t)snprintf(out + n, cap - n, "%s%s", i ? ", " : "", archs[i].name);
}
