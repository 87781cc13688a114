/* hf_map_vit.c - ViT: names of its tensors and settings in Hugging Face folders. */
#include <string.h>

#include "format/hf/hf_map.h"

const struct hf_rule hf_vit_rules[] = {
    {"embeddings.cls_token", "class_embd.weight", HF_FLAT},
    {"embeddings.mask_token", NULL, HF_SKIP},
    {"embeddings.position_embeddings", "position_embd.weight", HF_FLAT},
    {"embeddings.patch_embeddings.projection.*", "patch_embd.*", HF_FLAT},
    {"encoder.layer.#.attention.attention.query.*", "blk.#.attn_q.*", HF_COPY},
    {"encoder.layer.#.attention.attention.key.*", "blk.#.attn_k.*", HF_COPY},
    {"encoder.layer.#.attention.attention.value.*", "blk.#.attn_v.*", HF_COPY},
    {"encoder.layer.#.layernorm_before.*", "blk.#.attn_norm.*", HF_COPY},
    {"encoder.layer.#.layernorm_after.*", "blk.#.ffn_norm.*", HF_COPY},
    {"layernorm.*", "output_norm.*", HF_COPY},
    {"decoder.0.*", NULL, HF_SKIP}, /* of the pre-training with masked patches */
    {NULL, NULL, HF_COPY},
};

static int image_sizes(struct hf_folder *f, struct err *e)
{
    uint32_t channels = 0, size = 0, patch = 0;
    int rc = hf_config_u32_or(f, "num_channels", 1024, 3, &channels, e);
    if (rc == 0)
        rc = hf_config_u32_or(f, "image_size", 2048, 224, &size, e);
    if (rc == 0)
        rc = hf_config_u32_or(f, "patch_size", 128, 16, &patch, e);
    if (rc < 0)
        return rc;
    if (channels != 3)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "num_channels %u is not supported: only 3, red, green and blue", channels);
    if (size % patch != 0 || size / patch > 128)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "an image of %u pixels on a side cannot be cut into patches of %u", size,
                       patch);
    hf_config_put_u32(f, "vision.image_size", size);
    hf_config_put_u32(f, "vision.patch_size", patch);
    hf_config_put_u32(f, "context_length", (size / patch) * (size / patch) + 1);
    return 0;
}

int hf_settings_vit(struct hf_folder *f, struct err *e)
{
    static const struct {
        const char *from, *to;
        uint32_t most;
    } sizes[] = {{"hidden_size", "embedding_length", 65536},
                 {"num_hidden_layers", "block_count", 1024},
                 {"num_attention_heads", "attention.head_count", 1024},
                 {"intermediate_size", "feed_forward_length", 1u << 20}};
    static const char *const acts[] = {"gelu", "gelu_new", "gelu_pytorch_tanh", "relu", NULL};
    static const char *const poolers[] = {"tanh", NULL};
    const char *act = "", *pooler = "";
    float eps = 0;
    int rc = image_sizes(f, e);
    for (size_t i = 0; rc == 0 && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint32_t v = 0;
        rc = hf_config_u32(f, sizes[i].from, NULL, sizes[i].most, &v, e);
        hf_config_put_u32(f, sizes[i].to, v);
    }
    if (rc == 0)
        rc = hf_config_act(f, "hidden_act", "gelu", acts, &act, e);
    if (rc == 0)
        rc = hf_config_act(f, "pooler_act", "tanh", poolers, &pooler, e);
    if (rc == 0)
        rc = hf_config_f32_or(f, NULL, "layer_norm_eps", 1e-12, &eps, e);
    if (rc < 0)
        return rc;
    hf_config_put_f32(f, "attention.layer_norm_epsilon", eps);
    hf_config_put_bool(f, "attention.causal", false);
    hf_config_put_str(f, "activation", act);
    return 0;
}
