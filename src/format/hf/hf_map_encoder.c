/* hf_map_encoder.c - names and settings of encoders, and of T5, in Hugging Face folders. */
#include <string.h>

#include "format/hf/hf_map.h"

/* The layers of BERT; RoBERTa has the same names. */
#define BERT_LAYERS                                                                                \
    {"embeddings.word_embeddings.weight", "token_embd.weight", HF_COPY},                           \
        {"embeddings.token_type_embeddings.weight", "token_types.weight", HF_COPY},                \
        {"embeddings.LayerNorm.*", "token_embd_norm.*", HF_COPY},                                  \
        {"embeddings.position_ids", NULL, HF_SKIP}, {"embeddings.token_type_ids", NULL, HF_SKIP},  \
        {"encoder.layer.#.attention.self.query.*", "blk.#.attn_q.*", HF_COPY},                     \
        {"encoder.layer.#.attention.self.key.*", "blk.#.attn_k.*", HF_COPY},                       \
        {"encoder.layer.#.attention.self.value.*", "blk.#.attn_v.*", HF_COPY},                     \
        {"encoder.layer.#.attention.output.dense.*", "blk.#.attn_output.*", HF_COPY},              \
        {"encoder.layer.#.attention.output.LayerNorm.*", "blk.#.attn_output_norm.*", HF_COPY},     \
        {"encoder.layer.#.intermediate.dense.*", "blk.#.ffn_up.*", HF_COPY},                       \
        {"encoder.layer.#.output.dense.*", "blk.#.ffn_down.*", HF_COPY},                           \
        {"encoder.layer.#.output.LayerNorm.*", "blk.#.layer_output_norm.*", HF_COPY},              \
    {                                                                                              \
        "pooler.dense.*", "cls.*", HF_COPY                                                         \
    }

static const struct hf_rule bert_rules[] = {
    BERT_LAYERS,
    {"embeddings.position_embeddings.weight", "position_embd.weight", HF_COPY},
    {"classifier.*", "cls.output.*", HF_HEAD},
    /* our own encoder labels sentences and tokens */
    {"tagger.transitions.*", "tag.transitions.*", HF_COPY},
    {"tagger.*", "tag.output.*", HF_COPY},
    /* heads of the pre-training */
    {"cls.predictions.bias", NULL, HF_SKIP},
    {"cls.predictions.transform.dense.*", NULL, HF_SKIP},
    {"cls.predictions.transform.LayerNorm.*", NULL, HF_SKIP},
    {"cls.predictions.decoder.*", NULL, HF_SKIP},
    {"cls.seq_relationship.*", NULL, HF_SKIP},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule roberta_rules[] = {
    BERT_LAYERS,
    {"embeddings.position_embeddings.weight", "position_embd.weight", HF_POSITIONS},
    {"classifier.dense.*", "cls.*", HF_COPY},
    {"classifier.out_proj.*", "cls.output.*", HF_COPY},
    {"classifier.*", "cls.output.*", HF_HEAD},
    {"lm_head.*", NULL, HF_SKIP},
    {"lm_head.dense.*", NULL, HF_SKIP},
    {"lm_head.layer_norm.*", NULL, HF_SKIP},
    {"lm_head.decoder.*", NULL, HF_SKIP},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule distilbert_rules[] = {
    {"embeddings.word_embeddings.weight", "token_embd.weight", HF_COPY},
    {"embeddings.position_embeddings.weight", "position_embd.weight", HF_COPY},
    {"embeddings.LayerNorm.*", "token_embd_norm.*", HF_COPY},
    {"embeddings.position_ids", NULL, HF_SKIP},
    {"transformer.layer.#.attention.q_lin.*", "blk.#.attn_q.*", HF_COPY},
    {"transformer.layer.#.attention.k_lin.*", "blk.#.attn_k.*", HF_COPY},
    {"transformer.layer.#.attention.v_lin.*", "blk.#.attn_v.*", HF_COPY},
    {"transformer.layer.#.attention.out_lin.*", "blk.#.attn_output.*", HF_COPY},
    {"transformer.layer.#.sa_layer_norm.*", "blk.#.attn_output_norm.*", HF_COPY},
    {"transformer.layer.#.ffn.lin1.*", "blk.#.ffn_up.*", HF_COPY},
    {"transformer.layer.#.ffn.lin2.*", "blk.#.ffn_down.*", HF_COPY},
    {"transformer.layer.#.output_layer_norm.*", "blk.#.layer_output_norm.*", HF_COPY},
    {"pre_classifier.*", "cls.*", HF_COPY},
    {"classifier.*", "cls.output.*", HF_HEAD},
    {"vocab_transform.*", NULL, HF_SKIP},
    {"vocab_layer_norm.*", NULL, HF_SKIP},
    {"vocab_projector.*", NULL, HF_SKIP},
    {NULL, NULL, HF_COPY},
};

static int encoder_sizes(struct hf_folder *f, const char *const keys[5], double eps, struct err *e)
{
    static const char *const to[] = {"context_length", "embedding_length", "block_count",
                                     "attention.head_count", "feed_forward_length"};
    static const uint32_t most[] = {1u << 24, 65536, 1024, 1024, 1u << 20};
    static const char *const acts[] = {"gelu", "gelu_new", "gelu_pytorch_tanh", "relu", NULL};
    const char *positions = hf_config_str(f->config, "position_embedding_type"), *act = "";
    float norm_eps;
    for (size_t i = 0; i < 5; i++) {
        uint32_t v = 0;
        const cJSON *layers = i == 2 ? cJSON_GetObjectItemCaseSensitive(f->config, keys[i]) : NULL;
        /* none: only the embeddings, as created by `shoal router fit --layers 0` */
        const bool none = cJSON_IsNumber(layers) && layers->valueint == 0;
        int rc = none ? 0 : hf_config_u32(f, keys[i], NULL, most[i], &v, e);
        if (rc < 0)
            return rc;
        if (i == 0) {
            if (v <= f->skip_positions)
                return err_set(e, SHOAL_EFORMAT, "config.json: %s is %u, which leaves no positions",
                               keys[i], v);
            v -= f->skip_positions;
        }
        hf_config_put_u32(f, to[i], v);
    }
    if (positions[0] && strcmp(positions, "absolute") != 0)
        return err_set(e, SHOAL_EUNSUPPORTED, "position_embedding_type \"%.60s\"", positions);
    if (hf_config_bool_or(f, "is_decoder", false))
        return err_set(e, SHOAL_EUNSUPPORTED, "%s as a decoder is not supported", f->arch->name);
    int rc = hf_config_act(f, !strcmp(f->arch->name, "distilbert") ? "activation" : "hidden_act",
                           "gelu", acts, &act, e);
    if (rc == 0)
        rc = hf_config_f32_or(f, NULL, "layer_norm_eps", eps, &norm_eps, e);
    if (rc < 0)
        return rc;
    hf_config_put_f32(f, "attention.layer_norm_epsilon", norm_eps);
    hf_config_put_bool(f, "attention.causal", false);
    hf_config_put_str(f, "activation", act);
    return 0;
}

static const char *const bert_keys[5] = {"max_position_embeddings", "hidden_size",
                                         "num_hidden_layers", "num_attention_heads",
                                         "intermediate_size"};

static int configure_bert(struct hf_folder *f, struct err *e)
{
    return encoder_sizes(f, bert_keys, 1e-12, e);
}

/* Positions are counted from the one after the padding token's; rows up to it are never used. */
static int configure_roberta(struct hf_folder *f, struct err *e)
{
    const cJSON *pad = cJSON_GetObjectItemCaseSensitive(f->config, "pad_token_id");
    bool known = cJSON_IsNumber(pad) && pad->valueint >= 0 && pad->valueint < 1 << 16;
    f->skip_positions = (known ? (uint32_t)pad->valueint : 1) + 1;
    return encoder_sizes(f, bert_keys, 1e-12, e);
}

static int configure_distilbert(struct hf_folder *f, struct err *e)
{
    static const char *const keys[5] = {"max_position_embeddings", "dim", "n_layers", "n_heads",
                                        "hidden_dim"};
    return encoder_sizes(f, keys, 1e-12, e);
}

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

static int t5_activation(struct hf_folder *f, struct err *e)
{
    static const char *const known[] = {"relu", "gelu", "gelu_new", "gelu_pytorch_tanh",
                                        "silu", NULL};
    const char *act = hf_config_str(f->config, "feed_forward_proj");
    const char *direct = hf_config_str(f->config, "dense_act_fn");
    if (!act[0])
        act = "relu";
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

/* The first T5 shares one matrix between embedding and output and scales the input of the latter;
 * later ones (v1.1, Flan) do neither.  Files tell by tie_word_embeddings; the newest ones tell by
 * scale_decoder_outputs, and tie_word_embeddings is always true: then the weights are compared. */
static void t5_output(struct hf_folder *f)
{
    const struct safetensors_tensor *head = safetensors_find(f->st, "lm_head.weight");
    const struct safetensors_tensor *shared = safetensors_find(f->st, "shared.weight");
    bool tie = hf_config_bool_or(f, "tie_word_embeddings", true);
    f->tied = !head || (tie && shared && head->n_bytes == shared->n_bytes &&
                        memcmp(head->data, shared->data, head->n_bytes) == 0);
    hf_config_put_bool(f, "scale_decoder_outputs",
                       hf_config_bool_or(f, "scale_decoder_outputs", tie));
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

const struct hf_arch hf_encoders[] = {
    {"bert", "bert", "bert.", bert_rules, configure_bert},
    {"distilbert", "distilbert", "distilbert.", distilbert_rules, configure_distilbert},
    {"roberta", "roberta", "roberta.", roberta_rules, configure_roberta},
    {"xlm-roberta", "roberta", "roberta.", roberta_rules, configure_roberta},
    {"t5", "t5", "", t5_rules, configure_t5},
    {NULL, NULL, NULL, NULL, NULL},
};
