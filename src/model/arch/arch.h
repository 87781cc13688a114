/* arch.h - shared by the arch_*.c files: reads metadata into a decoder_config.
 * Private to src/model. */
#ifndef SHOAL_MODEL_ARCH_ARCH_H
#define SHOAL_MODEL_ARCH_ARCH_H

#include "model/decoder.h"

int arch_llama(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_qwen2(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_qwen3(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_gpt2(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_gptneo(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_phi2(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_gemma3(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_gemma2(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_phi3(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_smollm3(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_granite(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_olmo2(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_exaone4(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_ernie4_5(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_hunyuan(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_gptneox(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_stablelm(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_qwen3moe(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_olmoe(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_granitemoe(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_lfm2(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_mamba2(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_qwen35(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_granitehybrid(struct decoder_config *c, const struct model_file *file, struct err *e);

/* Sizes, heads, rotation: keys that all architectures have in common. */
int arch_common(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_rms_eps(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_layer_eps(struct decoder_config *c, const struct model_file *file, struct err *e);
/* The feed-forwards are experts: expert_count and expert_used_count, before arch_common. */
int arch_experts(struct decoder_config *c, const struct model_file *file, struct err *e);
/* Recurrent layers have the blocks of Mamba-2: the keys ssm.*. */
int arch_ssm(struct decoder_config *c, const struct model_file *file, struct err *e);
/* "<arch>.<key>" within min..max; _or: with a default for a missing key. */
int arch_u32(const struct decoder_config *c, const struct model_file *file, const char *key,
             uint32_t min, uint32_t max, uint32_t *out, struct err *e);
int arch_u32_or(const struct decoder_config *c, const struct model_file *file, const char *key,
                uint32_t min, uint32_t max, uint32_t missing, uint32_t *out, struct err *e);
int arch_f32_or(const struct decoder_config *c, const struct model_file *file, const char *key,
                float missing, float *out, struct err *e);
int arch_bool_or(const struct decoder_config *c, const struct model_file *file, const char *key,
                 bool missing, bool *out, struct err *e);
/* attention.sliding_window, if the file has it, and which layers have none: every n-th one, or as
 * attention.sliding_window_pattern says, a number or a list with true for layers with a window. */
int arch_window(struct decoder_config *c, const struct model_file *file, uint32_t every,
                struct err *e);

#endif
