/* hf_map_seq2seq.c - names and settings of encoders with decoders in Hugging Face folders: T5, mT5,
 * BART, Marian; Whisper's are in hf_map_whisper.c. */
#include <math.h>
#include <string.h>

#include "format/hf/hf_map.h"

/* ---- T5 ------------------------------------------------------------------------------------- */

#define T5_ATTENTION(from, to)                                                                     \
    {from ".q.weight", to "_q.weight", HF_COPY}, {from ".k.weight", to "_k.weight", HF_COPY},      \
        {from ".v.weight", to "_v.weight", HF_COPY},                                               \
    {                                                                                              \
        from ".o.weight", to "_o.weight", HF_COPY                                                  \
    }
#define T5_FFN(from, to)                                                                           \
    {from ".DenseReluDense.wi.weight", to ".ffn_up.weight", HF_COPY},                              \
        {from ".DenseReluDense.wi_0.weight", to ".ffn_gate.weight", HF_COPY},                      \
        {from ".DenseReluDense.wi_1.weight", to ".ffn_up.weight", HF_COPY},                        \
        {from ".DenseReluDense.wo.weight", to ".ffn_down.weight", HF_COPY},                        \
    {                                                                                              \
        from ".layer_norm.weight", to ".ffn_norm.weight", HF_COPY                                  \
    }

static const struct hf_rule t5_rules[] = {
    {"shared.weight", "token_embd.weight", HF_COPY},
    {"encoder.embed_tokens.weight", NULL, HF_SKIP}, /* copies of shared.weight */
    {"decoder.embed_tokens.weight", NULL, HF_SKIP},
    T5_ATTENTION("encoder.block.#.layer.0.SelfAttention", "enc.blk.#.attn"),
    {"encoder.block.#.layer.0.SelfAttention.relative_attention_bias.weight",
     "enc.blk.#.attn_rel_b.weight", HF_COPY},
    {"encoder.block.#.layer.0.layer_norm.weight", "enc.blk.#.attn_norm.weight", HF_COPY},
    T5_FFN("encoder.block.#.layer.1", "enc.blk.#"),
    {"encoder.final_layer_norm.weight", "enc.output_norm.weight", HF_COPY},
    T5_ATTENTION("decoder.block.#.layer.0.SelfAttention", "dec.blk.#.attn"),
    {"decoder.block.#.layer.0.SelfAttention.relative_attention_bias.weight",
     "dec.blk.#.attn_rel_b.weight", HF_COPY},
    {"decoder.block.#.layer.0.layer_norm.weight", "dec.blk.#.attn_norm.weight", HF_COPY},
    T5_ATTENTION("decoder.block.#.layer.1.EncDecAttention", "dec.blk.#.cross_attn"),
    {"decoder.block.#.layer.1.EncDecAttention.relative_attention_bias.weight", NULL, HF_SKIP},
    {"decoder.block.#.layer.1.layer_norm.weight", "dec.blk.#.cross_attn_norm.weight", HF_COPY},
    T5_FFN("decoder.block.#.layer.2", "dec.blk.#"),
    {"decoder.final_layer_norm.weight", "dec.output_norm.weight", HF_COPY},
    {"lm_head.weight", "output.weight", HF_OUTPUT},
    {NULL, NULL, HF_COPY},
};

static bool is_mt5(const struct hf_folder *f)
{
    return !strcmp(f->arch->model_type, "mt5");
}

static int t5_activation(struct hf_folder *f, struct err *e)
{
    static const char *const known[] = {"relu", "gelu", "gelu_new", "gelu_pytorch_tanh",
                                        "silu", NULL};
    const char *act = hf_config_str(f->config, "feed_forward_proj");
    const char *direct = hf_config_str(f->config, "dense_act_fn");
    if (!act[0])
        act = is_mt5(f) ? "gated-gelu" : "relu";
    bool gated = !strncmp(act, "gated-", 6);
    act = gated ? act + 6 : act;
    if (gated && !strcmp(act, "gelu")) /* an exception in transformers itself */
        act = "gelu_new";
    if (direct[0])
        act = direct;
    for (size_t i = 0; known[i]; i++)
        if (!strcmp(act, known[i])) {
            hf_config_put_str(f, "activation", act);
            return 0;
        }
    return err_set(e, SHOAL_EUNSUPPORTED, "feed_forward_proj \"%.60s\" is not supported", act);
}

/* Whether the output matrix is the embedding: there is none of its own, or it is a copy. */
static bool output_is_tied(const struct hf_folder *f)
{
    const struct safetensors_tensor *head = safetensors_find(f->st, "lm_head.weight");
    const struct safetensors_tensor *shared = safetensors_find(f->st, "shared.weight");
    if (!shared)
        shared = safetensors_find(f->st, "model.shared.weight");
    return !head || (hf_config_bool_or(f, "tie_word_embeddings", true) && shared &&
                     head->n_bytes == shared->n_bytes &&
                     memcmp(head->data, shared->data, head->n_bytes) == 0);
}

/* The first T5 shares one matrix between embedding and output and scales the input of the latter;
 * later ones (v1.1, Flan) do neither.  Files tell by tie_word_embeddings; the newest ones tell by
 * scale_decoder_outputs, and tie_word_embeddings is always true: then the weights are compared.
 * mT5's are never scaled. */
static void t5_output(struct hf_folder *f)
{
    const bool tie = hf_config_bool_or(f, "tie_word_embeddings", true);
    f->tied = output_is_tied(f);
    hf_config_put_bool(f, "scale_decoder_outputs",
                       !is_mt5(f) && hf_config_bool_or(f, "scale_decoder_outputs", tie));
}

static int configure_t5(struct hf_folder *f, struct err *e)
{
    static const struct {
        const char *from, *to;
        uint32_t most, missing;
    } sizes[] = {
        {"n_positions", "context_length", 1u << 20, 512},
        {"d_model", "embedding_length", 65536, 0},
        {"num_layers", "block_count", 1024, 0},
        {"num_heads", "attention.head_count", 1024, 0},
        {"d_kv", "attention.key_length", 1024, 0},
        {"d_kv", "attention.value_length", 1024, 0},
        {"d_ff", "feed_forward_length", 1u << 20, 0},
        {"relative_attention_num_buckets", "attention.relative_buckets_count", 65536, 32},
        {"relative_attention_max_distance", "attention.relative_max_distance", 1u << 24, 128},
    };
    uint32_t v, n_layers = 0;
    float eps;
    int rc = 0;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        rc = sizes[i].missing
                 ? hf_config_u32_or(f, sizes[i].from, sizes[i].most, sizes[i].missing, &v, e)
                 : hf_config_u32(f, sizes[i].from, NULL, sizes[i].most, &v, e);
        if (rc < 0)
            return rc;
        hf_config_put_u32(f, sizes[i].to, v);
        n_layers = i == 2 ? v : n_layers;
    }
    if ((rc = hf_config_u32_or(f, "num_decoder_layers", 1024, n_layers, &v, e)) < 0)
        return rc;
    hf_config_put_u32(f, "decoder_block_count", v);
    if ((rc = hf_config_f32_or(f, NULL, "layer_norm_epsilon", 1e-6, &eps, e)) < 0)
        return rc;
    hf_config_put_f32(f, "attention.layer_norm_epsilon", eps);
    hf_config_put_f32(f, "attention.layer_norm_rms_epsilon", eps);
    const cJSON *start = cJSON_GetObjectItemCaseSensitive(f->config, "decoder_start_token_id");
    hf_config_put_u32(f, "decoder_start_token_id",
                      cJSON_IsNumber(start) && start->valueint >= 0 ? (uint32_t)start->valueint
                                                                    : 0);
    t5_output(f);
    return t5_activation(f, e);
}

/* ---- BART and its relatives ------------------------------------------------------------------ */

#define BART_ATTENTION(from, to)                                                                   \
    {from ".q_proj.*", to "_q.*", HF_COPY}, {from ".k_proj.*", to "_k.*", HF_COPY},                \
        {from ".v_proj.*", to "_v.*", HF_COPY},                                                    \
    {                                                                                              \
        from ".out_proj.*", to "_o.*", HF_COPY                                                     \
    }
#define BART_FFN(from, to)                                                                         \
    {from ".fc1.*", to ".ffn_up.*", HF_COPY}, {from ".fc2.*", to ".ffn_down.*", HF_COPY},          \
    {                                                                                              \
        from ".final_layer_norm.*", to ".layer_output_norm.*", HF_COPY                             \
    }

/* Norms are named as those of BERT, which are behind the blocks, too. */
static const struct hf_rule bart_usual[] = {
    {"shared.weight", "token_embd.weight", HF_COPY},
    {"encoder.embed_tokens.weight", NULL, HF_SKIP}, /* copies of shared.weight */
    {"decoder.embed_tokens.weight", NULL, HF_SKIP},
    BART_ATTENTION("encoder.layers.#.self_attn", "enc.blk.#.attn"),
    {"encoder.layers.#.self_attn_layer_norm.*", "enc.blk.#.attn_output_norm.*", HF_COPY},
    BART_FFN("encoder.layers.#", "enc.blk.#"),
    BART_ATTENTION("decoder.layers.#.self_attn", "dec.blk.#.attn"),
    {"decoder.layers.#.self_attn_layer_norm.*", "dec.blk.#.attn_output_norm.*", HF_COPY},
    BART_ATTENTION("decoder.layers.#.encoder_attn", "dec.blk.#.cross_attn"),
    {"decoder.layers.#.encoder_attn_layer_norm.*", "dec.blk.#.cross_attn_output_norm.*", HF_COPY},
    BART_FFN("decoder.layers.#", "dec.blk.#"),
    {"lm_head.weight", "output.weight", HF_OUTPUT},
    {"final_logits_bias", "output.bias", HF_VECTOR},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule bart_rules[] = {
    {"encoder.embed_positions.weight", "enc.position_embd.weight", HF_POSITIONS},
    {"decoder.embed_positions.weight", "dec.position_embd.weight", HF_POSITIONS},
    {"encoder.layernorm_embedding.*", "enc.token_embd_norm.*", HF_COPY},
    {"decoder.layernorm_embedding.*", "dec.token_embd_norm.*", HF_COPY},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule marian_rules[] = {
    {"encoder.embed_positions.weight", NULL, HF_SKIP}, /* sines, which are computed */
    {"decoder.embed_positions.weight", NULL, HF_SKIP},
    {NULL, NULL, HF_COPY},
};

/* The decoder's first token; missing: as in the library, BART's end or Marian's padding. */
static int first_token(struct hf_folder *f, const char *otherwise, struct err *e)
{
    const char *key = "decoder_start_token_id";
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(f->config, key);
    if (!v || cJSON_IsNull(v))
        v = cJSON_GetObjectItemCaseSensitive(f->config, key = otherwise);
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0 && v->valuedouble <= INT32_MAX) ||
        floor(v->valuedouble) != v->valuedouble)
        return err_set(e, SHOAL_EFORMAT, "config.json: %s is not a token's number", key);
    hf_config_put_u32(f, "decoder_start_token_id", (uint32_t)v->valuedouble);
    return 0;
}

static int configure_common(struct hf_folder *f, const char *start_otherwise, struct err *e)
{
    static const char *const known[] = {"gelu", "gelu_new", "relu", "silu", "swish", NULL};
    const char *act;
    uint32_t v;
    int rc = hf_config_act(f, "activation_function", "gelu", known, &act, e);
    if (rc == 0)
        rc = hf_config_u32(f, "max_position_embeddings", NULL, 65536, &v, e);
    if (rc < 0)
        return rc;
    hf_config_put_u32(f, "context_length", v);
    hf_config_put_str(f, "activation", act);
    hf_config_put_f32(f, "attention.layer_norm_epsilon", 1e-5f); /* the library has no setting */
    f->tied = output_is_tied(f);
    rc = hf_config_two_sides(f, e);
    if (rc == 0)
        rc = first_token(f, start_otherwise, e);
    if (rc == 0)
        rc = hf_config_u32(f, "d_model", NULL, 65536, &v, e);
    if (rc == 0 && hf_config_bool_or(f, "scale_embedding", false))
        hf_config_put_f32(f, "embedding_scale", sqrtf((float)v));
    return rc;
}

static int configure_bart(struct hf_folder *f, struct err *e)
{
    f->skip_positions = 2;
    return configure_common(f, "eos_token_id", e);
}

static int configure_marian(struct hf_folder *f, struct err *e)
{
    uint32_t source, target;
    if (!hf_config_bool_or(f, "share_encoder_decoder_embeddings", true))
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "share_encoder_decoder_embeddings false: models with a vocabulary for each "
                       "side are not supported");
    int rc = hf_config_u32(f, "vocab_size", NULL, INT32_MAX, &source, e);
    if (rc == 0)
        rc = hf_config_u32_or(f, "decoder_vocab_size", INT32_MAX, source, &target, e);
    if (rc == 0 && source != target)
        rc = err_set(e, SHOAL_EUNSUPPORTED, "decoder_vocab_size %u is not vocab_size %u", target,
                     source);
    return rc < 0 ? rc : configure_common(f, "pad_token_id", e);
}

const struct hf_arch hf_seq2seqs[] = {
    {"t5", "t5", "", t5_rules, NULL, configure_t5},
    {"mt5", "t5", "", t5_rules, NULL, configure_t5},
    {"bart", "bart", "model.", bart_rules, bart_usual, configure_bart},
    {"marian", "marian", "model.", marian_rules, bart_usual, configure_marian},
    {"whisper", "whisper", "model.", hf_whisper_rules, NULL, hf_settings_whisper},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
