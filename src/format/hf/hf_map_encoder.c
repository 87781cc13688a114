/* hf_map_encoder.c - names and settings of encoders in Hugging Face folders. */
#include <string.h>

#include "format/hf/hf_map.h"

/* What BERT and its relatives have in common. The tables of those that use it say what differs. */
static const struct hf_rule usual[] = {
    {"embeddings.word_embeddings.weight", "token_embd.weight", HF_COPY},
    {"embeddings.token_type_embeddings.weight", "token_types.weight", HF_COPY},
    {"embeddings.position_embeddings.weight", "position_embd.weight", HF_COPY},
    {"embeddings.LayerNorm.*", "token_embd_norm.*", HF_COPY},
    {"embeddings.position_ids", NULL, HF_SKIP},
    {"embeddings.token_type_ids", NULL, HF_SKIP},
    {"encoder.layer.#.attention.self.query.*", "blk.#.attn_q.*", HF_COPY},
    {"encoder.layer.#.attention.self.key.*", "blk.#.attn_k.*", HF_COPY},
    {"encoder.layer.#.attention.self.value.*", "blk.#.attn_v.*", HF_COPY},
    {"encoder.layer.#.attention.output.dense.*", "blk.#.attn_output.*", HF_COPY},
    {"encoder.layer.#.attention.output.LayerNorm.*", "blk.#.attn_output_norm.*", HF_COPY},
    {"encoder.layer.#.intermediate.dense.*", "blk.#.ffn_up.*", HF_COPY},
    {"encoder.layer.#.output.dense.*", "blk.#.ffn_down.*", HF_COPY},
    {"encoder.layer.#.output.LayerNorm.*", "blk.#.layer_output_norm.*", HF_COPY},
    {"pooler.dense.*", "cls.*", HF_COPY},
    {"classifier.*", "cls.output.*", HF_HEAD},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule bert_rules[] = {
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
    {"embeddings.position_embeddings.weight", "position_embd.weight", HF_POSITIONS},
    {"classifier.dense.*", "cls.*", HF_COPY},
    {"classifier.out_proj.*", "cls.output.*", HF_COPY},
    {"lm_head.*", NULL, HF_SKIP},
    {"lm_head.dense.*", NULL, HF_SKIP},
    {"lm_head.layer_norm.*", NULL, HF_SKIP},
    {"lm_head.decoder.*", NULL, HF_SKIP},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule electra_rules[] = {
    {"embeddings_project.*", "token_embd_proj.*", HF_COPY},
    {"classifier.dense.*", "cls.*", HF_COPY},
    {"classifier.out_proj.*", "cls.output.*", HF_COPY},
    /* heads of the pre-training */
    {"discriminator_predictions.dense.*", NULL, HF_SKIP},
    {"discriminator_predictions.dense_prediction.*", NULL, HF_SKIP},
    {"generator_predictions.LayerNorm.*", NULL, HF_SKIP},
    {"generator_predictions.dense.*", NULL, HF_SKIP},
    {"generator_lm_head.*", NULL, HF_SKIP},
    {NULL, NULL, HF_COPY},
};

#define ALBERT_LAYER "encoder.albert_layer_groups.#.albert_layers.0."
static const struct hf_rule albert_rules[] = {
    {"encoder.embedding_hidden_mapping_in.*", "token_embd_proj.*", HF_COPY},
    {ALBERT_LAYER "attention.query.*", "blk.#.attn_q.*", HF_COPY},
    {ALBERT_LAYER "attention.key.*", "blk.#.attn_k.*", HF_COPY},
    {ALBERT_LAYER "attention.value.*", "blk.#.attn_v.*", HF_COPY},
    {ALBERT_LAYER "attention.dense.*", "blk.#.attn_output.*", HF_COPY},
    {ALBERT_LAYER "attention.LayerNorm.*", "blk.#.attn_output_norm.*", HF_COPY},
    {ALBERT_LAYER "ffn.*", "blk.#.ffn_up.*", HF_COPY},
    {ALBERT_LAYER "ffn_output.*", "blk.#.ffn_down.*", HF_COPY},
    {ALBERT_LAYER "full_layer_layer_norm.*", "blk.#.layer_output_norm.*", HF_COPY},
    {"pooler.*", "cls.*", HF_COPY},
    {"predictions.*", NULL, HF_SKIP},
    {"predictions.dense.*", NULL, HF_SKIP},
    {"predictions.LayerNorm.*", NULL, HF_SKIP},
    {"predictions.decoder.*", NULL, HF_SKIP},
    {"sop_classifier.classifier.*", NULL, HF_SKIP},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule mpnet_rules[] = {
    {"embeddings.position_embeddings.weight", "position_embd.weight", HF_POSITIONS},
    {"encoder.relative_attention_bias.weight", "rel_attn_bias.weight", HF_COPY},
    {"encoder.layer.#.attention.attn.q.*", "blk.#.attn_q.*", HF_COPY},
    {"encoder.layer.#.attention.attn.k.*", "blk.#.attn_k.*", HF_COPY},
    {"encoder.layer.#.attention.attn.v.*", "blk.#.attn_v.*", HF_COPY},
    {"encoder.layer.#.attention.attn.o.*", "blk.#.attn_output.*", HF_COPY},
    {"encoder.layer.#.attention.LayerNorm.*", "blk.#.attn_output_norm.*", HF_COPY},
    {"classifier.dense.*", "cls.*", HF_COPY},
    {"classifier.out_proj.*", "cls.output.*", HF_COPY},
    {"lm_head.*", NULL, HF_SKIP},
    {"lm_head.dense.*", NULL, HF_SKIP},
    {"lm_head.layer_norm.*", NULL, HF_SKIP},
    {"lm_head.decoder.*", NULL, HF_SKIP},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule deberta_rules[] = {
    {"encoder.rel_embeddings.weight", "rel_embd.weight", HF_COPY},
    {"encoder.LayerNorm.*", "rel_embd_norm.*", HF_COPY},
    {"encoder.layer.#.attention.self.query_proj.*", "blk.#.attn_q.*", HF_COPY},
    {"encoder.layer.#.attention.self.key_proj.*", "blk.#.attn_k.*", HF_COPY},
    {"encoder.layer.#.attention.self.value_proj.*", "blk.#.attn_v.*", HF_COPY},
    {"encoder.layer.#.attention.self.pos_key_proj.*", "blk.#.attn_pos_k.*", HF_COPY},
    {"encoder.layer.#.attention.self.pos_query_proj.*", "blk.#.attn_pos_q.*", HF_COPY},
    /* heads of the pre-training, in files of several ages */
    {"cls.predictions.bias", NULL, HF_SKIP},
    {"cls.predictions.transform.dense.*", NULL, HF_SKIP},
    {"cls.predictions.transform.LayerNorm.*", NULL, HF_SKIP},
    {"cls.predictions.decoder.*", NULL, HF_SKIP},
    {"lm_predictions.lm_head.*", NULL, HF_SKIP},
    {"lm_predictions.lm_head.dense.*", NULL, HF_SKIP},
    {"lm_predictions.lm_head.LayerNorm.*", NULL, HF_SKIP},
    {"mask_predictions.dense.*", NULL, HF_SKIP},
    {"mask_predictions.LayerNorm.*", NULL, HF_SKIP},
    {"mask_predictions.classifier.*", NULL, HF_SKIP},
    {NULL, NULL, HF_COPY},
};

/* Names as in llama.cpp's files. */
static const struct hf_rule modernbert_rules[] = {
    {"embeddings.tok_embeddings.weight", "token_embd.weight", HF_COPY},
    {"embeddings.norm.*", "token_embd_norm.*", HF_COPY},
    {"layers.#.attn.Wqkv.*", "blk.#.attn_qkv.*", HF_COPY},
    {"layers.#.attn.Wo.*", "blk.#.attn_output.*", HF_COPY},
    {"layers.#.attn_norm.*", "blk.#.attn_norm.*", HF_COPY},
    {"layers.#.mlp_norm.*", "blk.#.ffn_norm.*", HF_COPY},
    {"layers.#.mlp.Wi.*", "blk.#.ffn_up.*", HF_COPY},
    {"layers.#.mlp.Wo.*", "blk.#.ffn_down.*", HF_COPY},
    {"final_norm.*", "output_norm.*", HF_COPY},
    {"head.dense.*", "cls.*", HF_COPY},
    {"head.norm.*", "cls.norm.*", HF_COPY},
    {"classifier.*", "cls.output.*", HF_HEAD},
    {"decoder.*", NULL, HF_SKIP},
    {NULL, NULL, HF_COPY},
};

static const struct hf_rule distilbert_rules[] = {
    {"transformer.layer.#.attention.q_lin.*", "blk.#.attn_q.*", HF_COPY},
    {"transformer.layer.#.attention.k_lin.*", "blk.#.attn_k.*", HF_COPY},
    {"transformer.layer.#.attention.v_lin.*", "blk.#.attn_v.*", HF_COPY},
    {"transformer.layer.#.attention.out_lin.*", "blk.#.attn_output.*", HF_COPY},
    {"transformer.layer.#.sa_layer_norm.*", "blk.#.attn_output_norm.*", HF_COPY},
    {"transformer.layer.#.ffn.lin1.*", "blk.#.ffn_up.*", HF_COPY},
    {"transformer.layer.#.ffn.lin2.*", "blk.#.ffn_down.*", HF_COPY},
    {"transformer.layer.#.output_layer_norm.*", "blk.#.layer_output_norm.*", HF_COPY},
    {"pre_classifier.*", "cls.*", HF_COPY},
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
    const char *act_key = !strcmp(f->arch->name, "distilbert")    ? "activation"
                          : !strcmp(f->arch->name, "modern-bert") ? "hidden_activation"
                                                                  : "hidden_act";
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
    int rc = hf_config_act(f, act_key, "gelu", acts, &act, e);
    if (rc == 0)
        rc = hf_config_f32_or(f, NULL,
                              !strcmp(f->arch->name, "modern-bert") ? "norm_eps" : "layer_norm_eps",
                              eps, &norm_eps, e);
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

/* The embedding is narrower than the layers. */
static int configure_narrow(struct hf_folder *f, struct err *e)
{
    uint32_t wide, narrow;
    int rc = encoder_sizes(f, bert_keys, 1e-12, e);
    if (rc == 0)
        rc = hf_config_u32(f, "hidden_size", NULL, 65536, &wide, e);
    if (rc == 0)
        rc = hf_config_u32_or(f, "embedding_size", 65536, 128, &narrow, e);
    if (rc == 0)
        hf_config_put_u32(f, "embedding_length_in", narrow);
    return rc;
}

/* Layers share their weights, all of them or in groups. */
static int configure_albert(struct hf_folder *f, struct err *e)
{
    uint32_t groups, inner, layers;
    int rc = configure_narrow(f, e);
    if (rc == 0)
        rc = hf_config_u32(f, "num_hidden_layers", NULL, 1024, &layers, e);
    if (rc == 0)
        rc = hf_config_u32_or(f, "num_hidden_groups", layers, 1, &groups, e);
    if (rc == 0)
        rc = hf_config_u32_or(f, "inner_group_num", 1024, 1, &inner, e);
    if (rc < 0)
        return rc;
    if (inner != 1)
        return err_set(e, SHOAL_EUNSUPPORTED, "inner_group_num %u is not supported: only 1", inner);
    hf_config_put_u32(f, "different_block_count", groups);
    return 0;
}

static int configure_mpnet(struct hf_folder *f, struct err *e)
{
    uint32_t n;
    int rc = configure_roberta(f, e);
    if (rc == 0)
        rc = hf_config_u32_or(f, "relative_attention_num_buckets", 65536, 32, &n, e);
    if (rc < 0)
        return rc;
    if (n != 32) /* the number that MPNet itself computes with */
        return err_set(e, SHOAL_EUNSUPPORTED, "relative_attention_num_buckets %u: only 32", n);
    hf_config_put_u32(f, "attention.relative_buckets_count", n);
    hf_config_put_u32(f, "attention.relative_max_distance", 128);
    return 0;
}

/* A number that may be -1 (or missing), which means 0. */
static int count_or_none(const struct hf_folder *f, const char *key, uint32_t *out, struct err *e)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(f->config, key);
    *out = 0;
    return cJSON_IsNumber(v) && v->valuedouble >= 1 ? hf_config_u32(f, key, NULL, 1u << 20, out, e)
                                                    : 0;
}

/* Both forms: "c2p|p2c" and ["c2p", "p2c"]. */
static void deberta_kinds(const struct hf_folder *f, bool *c2p, bool *p2c)
{
    const cJSON *kinds = cJSON_GetObjectItemCaseSensitive(f->config, "pos_att_type"), *k;
    const char *text = cJSON_GetStringValue(kinds);
    *c2p = text && strstr(text, "c2p");
    *p2c = text && strstr(text, "p2c");
    cJSON_ArrayForEach(k, kinds)
    {
        *c2p |= cJSON_IsString(k) && !strcmp(k->valuestring, "c2p");
        *p2c |= cJSON_IsString(k) && !strcmp(k->valuestring, "p2c");
    }
}

static int deberta_only(const struct hf_folder *f, struct err *e)
{
    uint32_t kernel = 0, narrow = 0, wide = 0;
    const char *act = hf_config_str(f->config, "pooler_hidden_act");
    int rc = count_or_none(f, "conv_kernel_size", &kernel, e);
    if (rc == 0)
        rc = count_or_none(f, "embedding_size", &narrow, e);
    if (rc == 0)
        rc = hf_config_u32(f, "hidden_size", NULL, 65536, &wide, e);
    if (rc < 0)
        return rc;
    if (kernel)
        return err_set(e, SHOAL_EUNSUPPORTED, "conv_kernel_size: a convolution is not supported");
    if (narrow && narrow != wide)
        return err_set(e, SHOAL_EUNSUPPORTED, "embedding_size %u is not hidden_size", narrow);
    if (!hf_config_bool_or(f, "relative_attention", false))
        return err_set(e, SHOAL_EUNSUPPORTED, "deberta-v2 without relative_attention");
    if (act[0] && strcmp(act, "gelu") != 0)
        return err_set(e, SHOAL_EUNSUPPORTED, "pooler_hidden_act \"%.60s\"", act);
    return 0;
}

static int configure_deberta(struct hf_folder *f, struct err *e)
{
    uint32_t buckets = 0, most = 0;
    bool c2p, p2c;
    int rc = encoder_sizes(f, bert_keys, 1e-7, e);
    if (rc == 0)
        rc = deberta_only(f, e);
    if (rc == 0)
        rc = count_or_none(f, "position_buckets", &buckets, e);
    if (rc == 0)
        rc = count_or_none(f, "max_relative_positions", &most, e);
    if (rc == 0 && !most)
        rc = hf_config_u32(f, "max_position_embeddings", NULL, 1u << 20, &most, e);
    if (rc < 0)
        return rc;
    deberta_kinds(f, &c2p, &p2c);
    if (!c2p && !p2c)
        return err_set(e, SHOAL_EUNSUPPORTED, "pos_att_type names neither c2p nor p2c");
    hf_config_put_u32(f, "attention.relative_buckets_count", buckets);
    hf_config_put_u32(f, "attention.relative_max_distance", most);
    hf_config_put_str(f, "attention.relative_kinds", c2p && p2c ? "c2p|p2c" : c2p ? "c2p" : "p2c");
    return 0;
}

/* The base of a kind of layer: in rope_parameters, or as older files name it. */
static int modernbert_base(const struct hf_folder *f, const char *kind, const char *old,
                           double missing, float *out, struct err *e)
{
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(f->config, "rope_parameters");
    const cJSON *rope = cJSON_GetObjectItemCaseSensitive(all, kind);
    const char *type = hf_config_str(rope, "rope_type");
    if (type[0] && strcmp(type, "default") != 0)
        return err_set(e, SHOAL_EUNSUPPORTED, "rope_type \"%.60s\"", type);
    return cJSON_GetObjectItemCaseSensitive(rope, "rope_theta")
               ? hf_config_f32_or(f, rope, "rope_theta", missing, out, e)
               : hf_config_f32_or(f, NULL, old, missing, out, e);
}

/* Every how many layers one sees everything: the first of each such group. */
static int modernbert_pattern(const struct hf_folder *f, uint32_t *every, struct err *e)
{
    const cJSON *types = cJSON_GetObjectItemCaseSensitive(f->config, "layer_types");
    const int n = cJSON_GetArraySize(types);
    int rc = hf_config_u32_or(f, "global_attn_every_n_layers", 1024, 3, every, e);
    if (rc < 0 || n < 1)
        return rc;
    for (int i = 1; i <= n; i++) {
        const char *type = cJSON_GetStringValue(cJSON_GetArrayItem(types, i));
        if (i == n || (type && !strcmp(type, "full_attention"))) {
            *every = (uint32_t)i;
            break;
        }
    }
    for (int i = 0; i < n; i++) {
        const char *type = cJSON_GetStringValue(cJSON_GetArrayItem(types, i));
        const bool full = (uint32_t)i % *every == 0;
        if (!type || strcmp(type, full ? "full_attention" : "sliding_attention") != 0)
            return err_set(e, SHOAL_EUNSUPPORTED, "layer_types: no regular pattern (layer %d)", i);
    }
    return 0;
}

static int configure_modernbert(struct hf_folder *f, struct err *e)
{
    const char *act = hf_config_str(f->config, "classifier_activation");
    uint32_t window = 0, every = 0;
    float base = 0, local = 0;
    int rc = encoder_sizes(f, bert_keys, 1e-5, e);
    if (rc == 0)
        rc = modernbert_base(f, "full_attention", "global_rope_theta", 160000, &base, e);
    if (rc == 0)
        rc = modernbert_base(f, "sliding_attention", "local_rope_theta", 10000, &local, e);
    if (rc == 0)
        rc = hf_config_u32_or(f, "local_attention", 1u << 20, 128, &window, e);
    if (rc == 0)
        rc = modernbert_pattern(f, &every, e);
    if (rc < 0)
        return rc;
    if (f->labels_tokens)
        return err_set(e, SHOAL_EUNSUPPORTED, "modernbert that labels tokens is not supported");
    if (act[0] && strcmp(act, "gelu") != 0)
        return err_set(e, SHOAL_EUNSUPPORTED, "classifier_activation \"%.60s\"", act);
    hf_config_put_f32(f, "rope.freq_base", base);
    hf_config_put_f32(f, "rope.freq_base_swa", local);
    hf_config_put_u32(f, "attention.sliding_window", window);
    hf_config_put_u32(f, "attention.sliding_window_pattern", every);
    return 0;
}

const struct hf_arch hf_encoders[] = {
    {"bert", "bert", "bert.", bert_rules, usual, configure_bert},
    {"distilbert", "distilbert", "distilbert.", distilbert_rules, usual, configure_distilbert},
    {"roberta", "roberta", "roberta.", roberta_rules, usual, configure_roberta},
    {"xlm-roberta", "roberta", "roberta.", roberta_rules, usual, configure_roberta},
    {"camembert", "roberta", "roberta.", roberta_rules, usual, configure_roberta},
    {"electra", "electra", "electra.", electra_rules, usual, configure_narrow},
    {"albert", "albert", "albert.", albert_rules, usual, configure_albert},
    {"mpnet", "mpnet", "mpnet.", mpnet_rules, usual, configure_mpnet},
    {"deberta-v2", "deberta-v2", "deberta.", deberta_rules, usual, configure_deberta},
    {"modernbert", "modern-bert", "model.", modernbert_rules, NULL, configure_modernbert},
    {"vit", "vit", "vit.", hf_vit_rules, usual, hf_settings_vit},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
