/* hf_map_whisper.c - Whisper: names of its tensors in Hugging Face folders and in OpenAI's
 * checkpoints, which whisper.cpp's files (format/whisper_ggml.h) have kept. */
#include "format/hf/hf_map.h"

#define ATTENTION(from, q, k, v, out, to)                                                          \
    {from "." q ".*", to "_q.*", HF_COPY}, {from "." k ".*", to "_k.*", HF_COPY},                  \
        {from "." v ".*", to "_v.*", HF_COPY},                                                     \
    {                                                                                              \
        from "." out ".*", to "_o.*", HF_COPY                                                      \
    }
#define HF_ATTENTION(from, to) ATTENTION(from, "q_proj", "k_proj", "v_proj", "out_proj", to)
#define OPENAI_ATTENTION(from, to) ATTENTION(from, "query", "key", "value", "out", to)

const struct hf_rule hf_whisper_rules[] = {
    {"encoder.conv1.weight", "stem.0.weight", HF_CONV},
    {"encoder.conv1.bias", "stem.0.bias", HF_COPY},
    {"encoder.conv2.weight", "stem.1.weight", HF_CONV},
    {"encoder.conv2.bias", "stem.1.bias", HF_COPY},
    {"encoder.embed_positions.weight", "enc.position_embd.weight", HF_COPY},
    {"encoder.layers.#.self_attn_layer_norm.*", "enc.blk.#.attn_norm.*", HF_COPY},
    HF_ATTENTION("encoder.layers.#.self_attn", "enc.blk.#.attn"),
    {"encoder.layers.#.final_layer_norm.*", "enc.blk.#.ffn_norm.*", HF_COPY},
    {"encoder.layers.#.fc1.*", "enc.blk.#.ffn_up.*", HF_COPY},
    {"encoder.layers.#.fc2.*", "enc.blk.#.ffn_down.*", HF_COPY},
    {"encoder.layer_norm.*", "enc.output_norm.*", HF_COPY},
    {"decoder.embed_tokens.weight", "token_embd.weight", HF_COPY},
    {"decoder.embed_positions.weight", "dec.position_embd.weight", HF_COPY},
    {"decoder.layers.#.self_attn_layer_norm.*", "dec.blk.#.attn_norm.*", HF_COPY},
    HF_ATTENTION("decoder.layers.#.self_attn", "dec.blk.#.attn"),
    {"decoder.layers.#.encoder_attn_layer_norm.*", "dec.blk.#.cross_attn_norm.*", HF_COPY},
    HF_ATTENTION("decoder.layers.#.encoder_attn", "dec.blk.#.cross_attn"),
    {"decoder.layers.#.final_layer_norm.*", "dec.blk.#.ffn_norm.*", HF_COPY},
    {"decoder.layers.#.fc1.*", "dec.blk.#.ffn_up.*", HF_COPY},
    {"decoder.layers.#.fc2.*", "dec.blk.#.ffn_down.*", HF_COPY},
    {"decoder.layer_norm.*", "dec.output_norm.*", HF_COPY},
    {"proj_out.weight", NULL, HF_SKIP}, /* the embedding */
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule openai_rules[] = {
    {"encoder.conv1.weight", "stem.0.weight", HF_CONV},
    {"encoder.conv1.bias", "stem.0.bias", HF_COPY},
    {"encoder.conv2.weight", "stem.1.weight", HF_CONV},
    {"encoder.conv2.bias", "stem.1.bias", HF_COPY},
    {"encoder.positional_embedding", "enc.position_embd.weight", HF_COPY},
    {"encoder.blocks.#.attn_ln.*", "enc.blk.#.attn_norm.*", HF_COPY},
    OPENAI_ATTENTION("encoder.blocks.#.attn", "enc.blk.#.attn"),
    {"encoder.blocks.#.mlp_ln.*", "enc.blk.#.ffn_norm.*", HF_COPY},
    {"encoder.blocks.#.mlp.0.*", "enc.blk.#.ffn_up.*", HF_COPY},
    {"encoder.blocks.#.mlp.2.*", "enc.blk.#.ffn_down.*", HF_COPY},
    {"encoder.ln_post.*", "enc.output_norm.*", HF_COPY},
    {"decoder.token_embedding.weight", "token_embd.weight", HF_COPY},
    {"decoder.positional_embedding", "dec.position_embd.weight", HF_COPY},
    {"decoder.blocks.#.attn_ln.*", "dec.blk.#.attn_norm.*", HF_COPY},
    OPENAI_ATTENTION("decoder.blocks.#.attn", "dec.blk.#.attn"),
    {"decoder.blocks.#.cross_attn_ln.*", "dec.blk.#.cross_attn_norm.*", HF_COPY},
    OPENAI_ATTENTION("decoder.blocks.#.cross_attn", "dec.blk.#.cross_attn"),
    {"decoder.blocks.#.mlp_ln.*", "dec.blk.#.ffn_norm.*", HF_COPY},
    {"decoder.blocks.#.mlp.0.*", "dec.blk.#.ffn_up.*", HF_COPY},
    {"decoder.blocks.#.mlp.2.*", "dec.blk.#.ffn_down.*", HF_COPY},
    {"decoder.ln.*", "dec.output_norm.*", HF_COPY},
    {NULL, NULL, HF_COPY},
};

const struct hf_arch hf_whisper_openai = {"whisper", "whisper", "", openai_rules, NULL, NULL};

int hf_settings_whisper(struct hf_folder *f, struct err *e)
{
    static const struct {
        const char *from, *to;
        uint32_t most;
    } sizes[] = {
        {"max_target_positions", "context_length", 65536},
        {"num_mel_bins", "mel_count", 128},
        {"decoder_start_token_id", "decoder_start_token_id", INT32_MAX},
    };
    static const char *const known[] = {"gelu", NULL};
    const char *act;
    uint32_t v;
    int rc = hf_config_act(f, "activation_function", "gelu", known, &act, e);
    for (size_t i = 0; rc == 0 && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        rc = hf_config_u32(f, sizes[i].from, NULL, sizes[i].most, &v, e);
        if (rc == 0)
            hf_config_put_u32(f, sizes[i].to, v);
    }
    return rc < 0 ? rc : hf_config_two_sides(f, e);
}
