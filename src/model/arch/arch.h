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

/* Sizes, heads, rotation: keys that all architectures have in common. */
int arch_common(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_rms_eps(struct decoder_config *c, const struct model_file *file, struct err *e);
int arch_layer_eps(struct decoder_config *c, const struct model_file *file, struct err *e);
/* "<arch>.<key>" within min..max; _or: with a default for a missing key. */
int arch_u32(const struct decoder_config *c, const struct model_file *file, const char *key,
             uint32_t min, uint32_t max, uint32_t *out, struct err *e);
int arch_u32_or(const struct decoder_config *c, const struct model_file *file, const char *key,
                uint32_t min, uint32_t max, uint32_t missing, uint32_t *out, struct err *e);
int arch_f32_or(const struct decoder_config *c, const struct model_file *file, const char *key,
                float missing, float *out, struct err *e);

#endif
