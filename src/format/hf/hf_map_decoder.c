/* hf_map_decoder.c - names of the tensors of decoders in Hugging Face folders, and the table of
 * decoders; hf_settings_decoder.c has their settings. */
#include <stddef.h>

#include "format/hf/hf_map.h"

/* What most decoders have in common. The tables of those that use it say what differs. */
static const struct hf_rule usual[] = {
    {"embed_tokens.weight", "token_embd.weight", HF_COPY},
    {"layers.#.input_layernorm.weight", "blk.#.attn_norm.weight", HF_COPY},
    {"layers.#.self_attn.q_proj.*", "blk.#.attn_q.*", HF_COPY},
    {"layers.#.self_attn.k_proj.*", "blk.#.attn_k.*", HF_COPY},
    {"layers.#.self_attn.v_proj.*", "blk.#.attn_v.*", HF_COPY},
    {"layers.#.self_attn.o_proj.*", "blk.#.attn_output.*", HF_COPY},
    {"layers.#.self_attn.rotary_emb.inv_freq", NULL, HF_SKIP},
    {"layers.#.post_attention_layernorm.weight", "blk.#.ffn_norm.weight", HF_COPY},
    {"layers.#.mlp.gate_proj.*", "blk.#.ffn_gate.*", HF_COPY},
    {"layers.#.mlp.up_proj.*", "blk.#.ffn_up.*", HF_COPY},
    {"layers.#.mlp.down_proj.*", "blk.#.ffn_down.*", HF_COPY},
    {"norm.weight", "output_norm.weight", HF_COPY},
    {"lm_head.weight", "output.weight", HF_OUTPUT},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule llama_rules[] = {
    {"layers.#.self_attn.q_proj.*", "blk.#.attn_q.*", HF_ROPE_Q},
    {"layers.#.self_attn.k_proj.*", "blk.#.attn_k.*", HF_ROPE_K},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule qwen_rules[] = {
    {"layers.#.self_attn.q_norm.weight", "blk.#.attn_q_norm.weight", HF_COPY},
    {"layers.#.self_attn.k_norm.weight", "blk.#.attn_k_norm.weight", HF_COPY},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule phi_rules[] = {
    {"embed_tokens.weight", "token_embd.weight", HF_COPY},
    {"layers.#.input_layernorm.*", "blk.#.attn_norm.*", HF_COPY},
    {"layers.#.self_attn.q_proj.*", "blk.#.attn_q.*", HF_COPY},
    {"layers.#.self_attn.k_proj.*", "blk.#.attn_k.*", HF_COPY},
    {"layers.#.self_attn.v_proj.*", "blk.#.attn_v.*", HF_COPY},
    {"layers.#.self_attn.dense.*", "blk.#.attn_output.*", HF_COPY},
    {"layers.#.self_attn.rotary_emb.inv_freq", NULL, HF_SKIP},
    {"layers.#.mlp.fc1.*", "blk.#.ffn_up.*", HF_COPY},
    {"layers.#.mlp.fc2.*", "blk.#.ffn_down.*", HF_COPY},
    {"final_layernorm.*", "output_norm.*", HF_COPY},
    {"lm_head.weight", "output.weight", HF_OUTPUT},
    {"lm_head.bias", "output.bias", HF_OUTPUT},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule gpt2_rules[] = {
    {"wte.weight", "token_embd.weight", HF_COPY},
    {"wpe.weight", "position_embd.weight", HF_COPY},
    {"h.#.ln_1.*", "blk.#.attn_norm.*", HF_COPY},
    {"h.#.attn.bias", NULL, HF_SKIP}, /* the causal mask */
    {"h.#.attn.masked_bias", NULL, HF_SKIP},
    {"h.#.attn.c_attn.*", "blk.#.attn_qkv.*", HF_TRANSPOSE},
    {"h.#.attn.c_proj.*", "blk.#.attn_output.*", HF_TRANSPOSE},
    {"h.#.ln_2.*", "blk.#.ffn_norm.*", HF_COPY},
    {"h.#.mlp.c_fc.*", "blk.#.ffn_up.*", HF_TRANSPOSE},
    {"h.#.mlp.c_proj.*", "blk.#.ffn_down.*", HF_TRANSPOSE},
    {"ln_f.*", "output_norm.*", HF_COPY},
    {"lm_head.weight", "output.weight", HF_OUTPUT},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule gptneo_rules[] = {
    {"wte.weight", "token_embd.weight", HF_COPY},
    {"wpe.weight", "position_embd.weight", HF_COPY},
    {"h.#.ln_1.*", "blk.#.attn_norm.*", HF_COPY},
    {"h.#.attn.attention.bias", NULL, HF_SKIP}, /* the causal mask */
    {"h.#.attn.attention.masked_bias", NULL, HF_SKIP},
    {"h.#.attn.attention.q_proj.*", "blk.#.attn_q.*", HF_COPY},
    {"h.#.attn.attention.k_proj.*", "blk.#.attn_k.*", HF_COPY},
    {"h.#.attn.attention.v_proj.*", "blk.#.attn_v.*", HF_COPY},
    {"h.#.attn.attention.out_proj.*", "blk.#.attn_output.*", HF_COPY},
    {"h.#.ln_2.*", "blk.#.ffn_norm.*", HF_COPY},
    {"h.#.mlp.c_fc.*", "blk.#.ffn_up.*", HF_COPY},
    {"h.#.mlp.c_proj.*", "blk.#.ffn_down.*", HF_COPY},
    {"ln_f.*", "output_norm.*", HF_COPY},
    {"lm_head.weight", "output.weight", HF_OUTPUT},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule phi3_rules[] = {
    {"embed_tokens.weight", "token_embd.weight", HF_COPY},
    {"layers.#.input_layernorm.weight", "blk.#.attn_norm.weight", HF_COPY},
    {"layers.#.self_attn.qkv_proj.weight", "blk.#.attn_qkv.weight", HF_COPY},
    {"layers.#.self_attn.o_proj.weight", "blk.#.attn_output.weight", HF_COPY},
    {"layers.#.post_attention_layernorm.weight", "blk.#.ffn_norm.weight", HF_COPY},
    {"layers.#.mlp.gate_up_proj.weight", "blk.#.ffn_up.weight", HF_COPY},
    {"layers.#.mlp.down_proj.weight", "blk.#.ffn_down.weight", HF_COPY},
    {"norm.weight", "output_norm.weight", HF_COPY},
    {"lm_head.weight", "output.weight", HF_OUTPUT},
    {NULL, NULL, HF_COPY},
};

/* OLMo 2 and EXAONE 4: norms behind the blocks. */
static const struct hf_rule post_norm_rules[] = {
    {"layers.#.self_attn.q_norm.weight", "blk.#.attn_q_norm.weight", HF_COPY},
    {"layers.#.self_attn.k_norm.weight", "blk.#.attn_k_norm.weight", HF_COPY},
    {"layers.#.post_attention_layernorm.weight", "blk.#.post_attention_norm.weight", HF_COPY},
    {"layers.#.post_feedforward_layernorm.weight", "blk.#.post_ffw_norm.weight", HF_COPY},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule gemma_rules[] = {
    {"layers.#.input_layernorm.weight", "blk.#.attn_norm.weight", HF_ADD_ONE},
    {"layers.#.self_attn.q_norm.weight", "blk.#.attn_q_norm.weight", HF_ADD_ONE},
    {"layers.#.self_attn.k_norm.weight", "blk.#.attn_k_norm.weight", HF_ADD_ONE},
    {"layers.#.post_attention_layernorm.weight", "blk.#.post_attention_norm.weight", HF_ADD_ONE},
    {"layers.#.pre_feedforward_layernorm.weight", "blk.#.ffn_norm.weight", HF_ADD_ONE},
    {"layers.#.post_feedforward_layernorm.weight", "blk.#.post_ffw_norm.weight", HF_ADD_ONE},
    {"norm.weight", "output_norm.weight", HF_ADD_ONE},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule hunyuan_rules[] = {
    {"layers.#.self_attn.query_layernorm.weight", "blk.#.attn_q_norm.weight", HF_COPY},
    {"layers.#.self_attn.key_layernorm.weight", "blk.#.attn_k_norm.weight", HF_COPY},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule gptneox_rules[] = {
    {"embed_in.weight", "token_embd.weight", HF_COPY},
    {"layers.#.input_layernorm.*", "blk.#.attn_norm.*", HF_COPY},
    {"layers.#.attention.bias", NULL, HF_SKIP}, /* the causal mask */
    {"layers.#.attention.masked_bias", NULL, HF_SKIP},
    {"layers.#.attention.rotary_emb.inv_freq", NULL, HF_SKIP},
    {"layers.#.attention.query_key_value.*", "blk.#.attn_qkv.*", HF_QKV},
    {"layers.#.attention.dense.*", "blk.#.attn_output.*", HF_COPY},
    {"layers.#.post_attention_layernorm.*", "blk.#.ffn_norm.*", HF_COPY},
    {"layers.#.mlp.dense_h_to_4h.*", "blk.#.ffn_up.*", HF_COPY},
    {"layers.#.mlp.dense_4h_to_h.*", "blk.#.ffn_down.*", HF_COPY},
    {"final_layer_norm.*", "output_norm.*", HF_COPY},
    {"embed_out.weight", "output.weight", HF_OUTPUT},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule stablelm_rules[] = {
    {"layers.#.input_layernorm.*", "blk.#.attn_norm.*", HF_COPY},
    {"layers.#.post_attention_layernorm.*", "blk.#.ffn_norm.*", HF_COPY},
    {"norm.*", "output_norm.*", HF_COPY},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule lfm2_rules[] = {
    {"embed_tokens.weight", "token_embd.weight", HF_COPY},
    {"layers.#.operator_norm.weight", "blk.#.attn_norm.weight", HF_COPY},
    {"layers.#.self_attn.q_proj.weight", "blk.#.attn_q.weight", HF_COPY},
    {"layers.#.self_attn.k_proj.weight", "blk.#.attn_k.weight", HF_COPY},
    {"layers.#.self_attn.v_proj.weight", "blk.#.attn_v.weight", HF_COPY},
    {"layers.#.self_attn.out_proj.weight", "blk.#.attn_output.weight", HF_COPY},
    {"layers.#.self_attn.q_layernorm.weight", "blk.#.attn_q_norm.weight", HF_COPY},
    {"layers.#.self_attn.k_layernorm.weight", "blk.#.attn_k_norm.weight", HF_COPY},
    {"layers.#.conv.conv.*", "blk.#.shortconv.conv.*", HF_COPY},
    {"layers.#.conv.in_proj.*", "blk.#.shortconv.in_proj.*", HF_COPY},
    {"layers.#.conv.out_proj.*", "blk.#.shortconv.out_proj.*", HF_COPY},
    {"layers.#.ffn_norm.weight", "blk.#.ffn_norm.weight", HF_COPY},
    {"layers.#.feed_forward.w1.weight", "blk.#.ffn_gate.weight", HF_COPY},
    {"layers.#.feed_forward.w3.weight", "blk.#.ffn_up.weight", HF_COPY},
    {"layers.#.feed_forward.w2.weight", "blk.#.ffn_down.weight", HF_COPY},
    {"embedding_norm.weight", "token_embd_norm.weight", HF_COPY},
    {"lm_head.weight", "output.weight", HF_OUTPUT},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule mamba2_rules[] = {
    {"embeddings.weight", "token_embd.weight", HF_COPY},
    {"layers.#.norm.weight", "blk.#.attn_norm.weight", HF_COPY},
    {"layers.#.mixer.in_proj.*", "blk.#.ssm_in.*", HF_COPY},
    {"layers.#.mixer.conv1d.*", "blk.#.ssm_conv1d.*", HF_COPY},
    {"layers.#.mixer.dt_bias", "blk.#.ssm_dt.bias", HF_COPY},
    {"layers.#.mixer.A_log", "blk.#.ssm_a", HF_MINUS_EXP},
    {"layers.#.mixer.D", "blk.#.ssm_d", HF_COPY},
    {"layers.#.mixer.norm.weight", "blk.#.ssm_norm.weight", HF_COPY},
    {"layers.#.mixer.out_proj.*", "blk.#.ssm_out.*", HF_COPY},
    {"norm_f.weight", "output_norm.weight", HF_COPY},
    {"lm_head.weight", "output.weight", HF_OUTPUT},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule granitehybrid_rules[] = {
    {"layers.#.mamba.in_proj.*", "blk.#.ssm_in.*", HF_COPY},
    {"layers.#.mamba.conv1d.*", "blk.#.ssm_conv1d.*", HF_COPY},
    {"layers.#.mamba.dt_bias", "blk.#.ssm_dt.bias", HF_COPY},
    {"layers.#.mamba.A_log", "blk.#.ssm_a", HF_MINUS_EXP},
    {"layers.#.mamba.D", "blk.#.ssm_d", HF_COPY},
    {"layers.#.mamba.norm.weight", "blk.#.ssm_norm.weight", HF_COPY},
    {"layers.#.mamba.out_proj.*", "blk.#.ssm_out.*", HF_COPY},
    {"layers.#.shared_mlp.input_linear.weight", "blk.#.ffn_up.weight", HF_COPY},
    {"layers.#.shared_mlp.output_linear.weight", "blk.#.ffn_down.weight", HF_COPY},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule qwen35_rules[] = {
    {"layers.#.input_layernorm.weight", "blk.#.attn_norm.weight", HF_ADD_ONE},
    {"layers.#.self_attn.q_norm.weight", "blk.#.attn_q_norm.weight", HF_ADD_ONE},
    {"layers.#.self_attn.k_norm.weight", "blk.#.attn_k_norm.weight", HF_ADD_ONE},
    {"layers.#.linear_attn.in_proj_qkv.weight", "blk.#.attn_qkv.weight", HF_COPY},
    {"layers.#.linear_attn.in_proj_z.weight", "blk.#.attn_gate.weight", HF_COPY},
    {"layers.#.linear_attn.in_proj_b.weight", "blk.#.ssm_beta.weight", HF_COPY},
    {"layers.#.linear_attn.in_proj_a.weight", "blk.#.ssm_alpha.weight", HF_COPY},
    {"layers.#.linear_attn.conv1d.weight", "blk.#.ssm_conv1d.weight", HF_COPY},
    {"layers.#.linear_attn.dt_bias", "blk.#.ssm_dt.bias", HF_COPY},
    {"layers.#.linear_attn.A_log", "blk.#.ssm_a", HF_MINUS_EXP},
    {"layers.#.linear_attn.norm.weight", "blk.#.ssm_norm.weight", HF_COPY},
    {"layers.#.linear_attn.out_proj.weight", "blk.#.ssm_out.weight", HF_COPY},
    {"layers.#.post_attention_layernorm.weight", "blk.#.post_attention_norm.weight", HF_ADD_ONE},
    {"norm.weight", "output_norm.weight", HF_ADD_ONE},
    {NULL, NULL, HF_COPY},
};

const struct hf_arch hf_decoders[] = {
    {"llama", "llama", "model.", llama_rules, usual, hf_settings_llama},
    {"mistral", "llama", "model.", llama_rules, usual, hf_settings_llama},
    {"qwen2", "qwen2", "model.", qwen_rules, usual, hf_settings_llama},
    {"qwen3", "qwen3", "model.", qwen_rules, usual, hf_settings_llama},
    {"phi", "phi2", "model.", phi_rules, NULL, hf_settings_phi},
    {"gpt2", "gpt2", "transformer.", gpt2_rules, NULL, hf_settings_gpt2},
    {"gpt_neo", "gptneo", "transformer.", gptneo_rules, NULL, hf_settings_gptneo},
    {"phi3", "phi3", "model.", phi3_rules, NULL, hf_settings_phi3},
    {"smollm3", "smollm3", "model.", llama_rules, usual, hf_settings_smollm3},
    {"granite", "granite", "model.", llama_rules, usual, hf_settings_granite},
    {"olmo2", "olmo2", "model.", post_norm_rules, usual, hf_settings_llama},
    {"exaone4", "exaone4", "model.", post_norm_rules, usual, hf_settings_exaone4},
    {"ernie4_5", "ernie4_5", "model.", qwen_rules, usual, hf_settings_llama},
    {"hunyuan_v1_dense", "hunyuan-dense", "model.", hunyuan_rules, usual, hf_settings_llama},
    {"gpt_neox", "gptneox", "gpt_neox.", gptneox_rules, NULL, hf_settings_gptneox},
    {"stablelm", "stablelm", "model.", stablelm_rules, usual, hf_settings_stablelm},
    {"gemma2", "gemma2", "model.", gemma_rules, usual, hf_settings_gemma2},
    {"gemma3_text", "gemma3", "model.", gemma_rules, usual, hf_settings_gemma3},
    {"lfm2", "lfm2", "model.", lfm2_rules, NULL, hf_settings_lfm2},
    {"mamba2", "mamba2", "backbone.", mamba2_rules, NULL, hf_settings_mamba2},
    {"granitemoehybrid", "granitehybrid", "model.", granitehybrid_rules, usual,
     hf_settings_granitehybrid},
    {"qwen3_5_text", "qwen35", "model.", qwen35_rules, usual, hf_settings_qwen35},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
