/* arch.c - the table of architectures. */
#include "model/arch/arch.h"

#include <stdio.h>
#include <string.h>

static const struct arch archs[] = {
    {"llama", arch_llama},       {"qwen2", arch_qwen2},
    {"qwen3", arch_qwen3},       {"gpt2", arch_gpt2},
    {"gptneo", arch_gptneo},     {"phi2", arch_phi2},
    {"gemma3", arch_gemma3},     {"gemma2", arch_gemma2},
    {"phi3", arch_phi3},         {"smollm3", arch_smollm3},
    {"granite", arch_granite},   {"olmo2", arch_olmo2},
    {"exaone4", arch_exaone4},   {"ernie4_5", arch_ernie4_5},
    {"gptneox", arch_gptneox},   {"hunyuan-dense", arch_hunyuan},
    {"stablelm", arch_stablelm}, {"lfm2", arch_lfm2},
    {"mamba2", arch_mamba2},     {"granitehybrid", arch_granitehybrid},
    {"qwen35", arch_qwen35},     {"qwen3moe", arch_qwen3moe},
    {"olmoe", arch_olmoe},       {"granitemoe", arch_granitemoe},
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

const char *arch_extra(const struct decoder_config *c)
{
    const struct {
        bool has;
        const char *what;
    } extras[] = {
        {c->nope_pattern || (c->nope_global && c->window), "layers without rotation"},
        {c->post_norm, "blocks without a norm before them"},
        {c->parallel_norms, "parallel blocks with a norm each"},
        {c->qk_norm_whole || c->qk_norm_rotated, "these norms of queries and keys"},
        {c->act == DECODER_ACT_GELU_ERF, "the exact GELU"},
        {c->residual_scale != 1.0f || c->logit_scale != 1.0f, "scaled blocks or logits"},
        {c->n_experts > 0, "experts"},
        {c->mixer != NULL, "recurrent blocks"},
        {c->attn_cap > 0.0f || c->logit_cap > 0.0f, "bounded scores or logits"},
    };
    for (size_t i = 0; i < sizeof(extras) / sizeof(extras[0]); i++)
        if (extras[i].has)
            return extras[i].what;
    return NULL;
}
