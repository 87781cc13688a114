/* hf_map_decoder.c - names and settings of decoders in Hugging Face folders. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "format/hf/hf_map.h"

static const struct hf_rule llama_rules[] = {
    {"embed_tokens.weight", "token_embd.weight", HF_COPY},
    {"layers.#.input_layernorm.weight", "blk.#.attn_norm.weight", HF_COPY},
    {"layers.#.self_attn.q_proj.*", "blk.#.attn_q.*", HF_ROPE_Q},
    {"layers.#.self_attn.k_proj.*", "blk.#.attn_k.*", HF_ROPE_K},
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

static const struct hf_rule qwen_rules[] = {
    {"embed_tokens.weight", "token_embd.weight", HF_COPY},
    {"layers.#.input_layernorm.weight", "blk.#.attn_norm.weight", HF_COPY},
    {"layers.#.self_attn.q_proj.*", "blk.#.attn_q.*", HF_COPY},
    {"layers.#.self_attn.k_proj.*", "blk.#.attn_k.*", HF_COPY},
    {"layers.#.self_attn.v_proj.*", "blk.#.attn_v.*", HF_COPY},
    {"layers.#.self_attn.o_proj.*", "blk.#.attn_output.*", HF_COPY},
    {"layers.#.self_attn.q_norm.weight", "blk.#.attn_q_norm.weight", HF_COPY},
    {"layers.#.self_attn.k_norm.weight", "blk.#.attn_k_norm.weight", HF_COPY},
    {"layers.#.self_attn.rotary_emb.inv_freq", NULL, HF_SKIP},
    {"layers.#.post_attention_layernorm.weight", "blk.#.ffn_norm.weight", HF_COPY},
    {"layers.#.mlp.gate_proj.*", "blk.#.ffn_gate.*", HF_COPY},
    {"layers.#.mlp.up_proj.*", "blk.#.ffn_up.*", HF_COPY},
    {"layers.#.mlp.down_proj.*", "blk.#.ffn_down.*", HF_COPY},
    {"norm.weight", "output_norm.weight", HF_COPY},
    {"lm_head.weight", "output.weight", HF_OUTPUT},
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
    {"lm_head.*", "output.*", HF_OUTPUT},
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

/* ---- settings ------------------------------------------------------------------------------- */

static const char *const tanh_gelus[] = {"gelu_new", "gelu_pytorch_tanh", NULL};
static const char *const silus[] = {"silu", "swish", NULL};

struct decoder_keys { /* second names of keys in config.json; NULL: there is only one */
    const char *ctx, *dim, *layers, *heads;
};

static int decoder_sizes(struct hf_folder *f, const struct decoder_keys *k, uint32_t *dim,
                         struct err *e)
{
    uint32_t ctx, layers;
    int rc;
    if ((rc = hf_config_u32(f, "max_position_embeddings", k->ctx, 1u << 24, &ctx, e)) < 0 ||
        (rc = hf_config_u32(f, "hidden_size", k->dim, 65536, dim, e)) < 0 ||
        (rc = hf_config_u32(f, "num_hidden_layers", k->layers, 1024, &layers, e)) < 0 ||
        (rc = hf_config_u32(f, "num_attention_heads", k->heads, 1024, &f->n_heads, e)) < 0)
        return rc;
    hf_config_put_u32(f, "context_length", ctx);
    hf_config_put_u32(f, "embedding_length", *dim);
    hf_config_put_u32(f, "block_count", layers);
    hf_config_put_u32(f, "attention.head_count", f->n_heads);
    return 0;
}

/* Older versions of transformers have these at the top and in rope_scaling, newer ones in
 * rope_parameters. */
static const cJSON *rope_object(const struct hf_folder *f)
{
    const cJSON *j = cJSON_GetObjectItemCaseSensitive(f->config, "rope_parameters");
    if (!cJSON_IsObject(j))
        j = cJSON_GetObjectItemCaseSensitive(f->config, "rope_scaling");
    return cJSON_IsObject(j) ? j : NULL;
}

static int rope_number(const struct hf_folder *f, const char *key, double missing, float *out,
                       struct err *e)
{
    const cJSON *rope = rope_object(f);
    int rc = hf_config_f32_or(f, NULL, key, missing, out, e);
    return rc < 0 || !rope ? rc : hf_config_f32_or(f, rope, key, (double)*out, out, e);
}

/* The divisor of each frequency: 1 for short waves, the factor for long ones, a ramp between. */
static int llama3_factors(struct hf_folder *f, const cJSON *rope, double base, uint32_t width,
                          struct err *e)
{
    float factor, low, high, ctx;
    int rc;
    if ((rc = hf_config_f32_or(f, rope, "factor", 8, &factor, e)) < 0 ||
        (rc = hf_config_f32_or(f, rope, "low_freq_factor", 1, &low, e)) < 0 ||
        (rc = hf_config_f32_or(f, rope, "high_freq_factor", 4, &high, e)) < 0 ||
        (rc = hf_config_f32_or(f, rope, "original_max_position_embeddings", 8192, &ctx, e)) < 0)
        return rc;
    if (!(factor > 0) || !(low > 0) || !(high > low) || !(ctx > 0))
        return err_set(e, SHOAL_EFORMAT,
                       "config.json: the factors of the llama3 rope scaling are out of range");
    f->n_rope_freqs = width / 2;
    f->rope_freqs = mem_zalloc_n(f->n_rope_freqs, sizeof(float));
    if (!f->rope_freqs)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the rotation table");
    for (uint32_t i = 0; i < f->n_rope_freqs; i++) {
        double wave = 2 * 3.14159265358979323846 * pow(base, 2.0 * i / width);
        double ramp = ((double)ctx / wave - (double)low) / ((double)high - (double)low);
        double mid = 1 / ((1 - ramp) / (double)factor + ramp);
        f->rope_freqs[i] = (float)(wave < (double)ctx / (double)high  ? 1
                                   : wave > (double)ctx / (double)low ? (double)factor
                                                                      : mid);
    }
    return 0;
}

static int rope(struct hf_folder *f, uint32_t width, struct err *e)
{
    const cJSON *object = rope_object(f);
    const char *type = hf_config_str(object, "rope_type");
    float base, factor;
    if (!type[0])
        type = hf_config_str(object, "type");
    int rc = rope_number(f, "rope_theta", 10000, &base, e);
    if (rc < 0)
        return rc;
    hf_config_put_f32(f, "rope.freq_base", base);
    if (!type[0] || !strcmp(type, "default"))
        return 0;
    if (!strcmp(type, "llama3"))
        return llama3_factors(f, object, (double)base, width, e);
    if (strcmp(type, "linear") != 0)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "rope scaling \"%.60s\" (linear and llama3 are supported)", type);
    if ((rc = hf_config_f32_or(f, object, "factor", 1, &factor, e)) < 0)
        return rc;
    hf_config_put_str(f, "rope.scaling.type", "linear");
    hf_config_put_f32(f, "rope.scaling.factor", factor);
    return 0;
}

/* The embedding, whose name in the file may have the prefix of the architecture. */
static const struct safetensors_tensor *find_embedding(const struct hf_folder *f)
{
    const struct safetensors_tensor *t = NULL;
    for (const struct hf_rule *r = f->arch->rules; !t && r->from; r++) {
        char name[128];
        if (!r->to || strcmp(r->to, "token_embd.weight") != 0)
            continue;
        snprintf(name, sizeof(name), "%s%s", f->arch->prefix, r->from);
        t = safetensors_find(f->st, name);
        if (!t)
            t = safetensors_find(f->st, r->from);
    }
    return t;
}

/* Whether the output matrix is the embedding. The config is overridden if the file has an output
 * matrix with different values, as in transformers. Without the check at the end a missing output
 * matrix that is not tied would be taken as tied. */
static int set_tied(struct hf_folder *f, bool missing, struct err *e)
{
    const struct safetensors_tensor *head = safetensors_find(f->st, "lm_head.weight");
    const struct safetensors_tensor *embedding = find_embedding(f);
    f->tied = hf_config_bool_or(f, "tie_word_embeddings", head ? missing : true);
    if (f->tied && head && embedding)
        f->tied = head->type == embedding->type && head->n_bytes == embedding->n_bytes &&
                  memcmp(head->data, embedding->data, head->n_bytes) == 0;
    if (!f->tied && !head)
        return err_set(e, SHOAL_EFORMAT,
                       "lm_head.weight is missing, and tie_word_embeddings is false");
    return 0;
}

/* Llama, Mistral, Qwen 2 and 3: RMS norms, rotation, gated feed-forward. */
static int configure_llama(struct hf_folder *f, struct err *e)
{
    const struct decoder_keys keys = {0};
    const bool windowed = !strcmp(f->arch->model_type, "mistral");
    uint32_t dim, width, ffn, window = 0;
    const char *act;
    float eps;
    int rc = decoder_sizes(f, &keys, &dim, e);
    if (rc < 0 || (rc = hf_config_u32(f, "intermediate_size", NULL, 1u << 20, &ffn, e)) < 0 ||
        (rc = hf_config_u32_or(f, "num_key_value_heads", 1024, f->n_heads, &f->n_kv_heads, e)) <
            0 ||
        (rc = hf_config_u32_or(f, "head_dim", 1024, dim / f->n_heads, &width, e)) < 0 ||
        (rc = hf_config_f32_or(f, NULL, "rms_norm_eps", 1e-6, &eps, e)) < 0 ||
        (rc = hf_config_act(f, "hidden_act", "silu", silus, &act, e)) < 0 ||
        (rc = set_tied(f, false, e)) < 0)
        return rc;
    hf_config_put_u32(f, "feed_forward_length", ffn);
    hf_config_put_u32(f, "attention.head_count_kv", f->n_kv_heads);
    hf_config_put_u32(f, "attention.key_length", width);
    hf_config_put_u32(f, "attention.value_length", width);
    hf_config_put_u32(f, "rope.dimension_count", width);
    hf_config_put_f32(f, "attention.layer_norm_rms_epsilon", eps);
    if (hf_config_bool_or(f, "use_sliding_window", false))
        return err_set(e, SHOAL_EUNSUPPORTED, "use_sliding_window of %s is not supported",
                       f->arch->model_type);
    if (windowed && (rc = hf_config_u32_or(f, "sliding_window", 1u << 24, 0, &window, e)) < 0)
        return rc;
    if (window)
        hf_config_put_u32(f, "attention.sliding_window", window);
    return rope(f, width, e);
}

static int configure_phi(struct hf_folder *f, struct err *e)
{
    const struct decoder_keys keys = {0};
    uint32_t dim, ffn;
    float eps, part;
    const char *act;
    int rc = decoder_sizes(f, &keys, &dim, e);
    if (rc < 0 || (rc = hf_config_u32(f, "intermediate_size", NULL, 1u << 20, &ffn, e)) < 0 ||
        (rc = hf_config_u32_or(f, "num_key_value_heads", 1024, f->n_heads, &f->n_kv_heads, e)) <
            0 ||
        (rc = hf_config_f32_or(f, NULL, "layer_norm_eps", 1e-5, &eps, e)) < 0 ||
        (rc = rope_number(f, "partial_rotary_factor", 0.5, &part, e)) < 0 ||
        (rc = hf_config_act(f, "hidden_act", "gelu_new", tanh_gelus, &act, e)) < 0 ||
        (rc = set_tied(f, false, e)) < 0)
        return rc;
    if (!(part > 0.0f) || part > 1.0f)
        return err_set(e, SHOAL_EFORMAT, "config.json: partial_rotary_factor is not in 0..1");
    uint32_t width = dim / f->n_heads, turned = (uint32_t)((float)width * part);
    hf_config_put_u32(f, "feed_forward_length", ffn);
    hf_config_put_u32(f, "attention.head_count_kv", f->n_kv_heads);
    hf_config_put_u32(f, "rope.dimension_count", turned);
    hf_config_put_f32(f, "attention.layer_norm_epsilon", eps);
    return rope(f, turned, e);
}

/* GPT-2 and GPT-Neo: layer norms, learned positions, a feed-forward layer 4 times as wide unless
 * the file says otherwise. */
static int configure_gpt(struct hf_folder *f, const struct decoder_keys *keys, const char *ffn_key,
                         struct err *e)
{
    uint32_t dim, ffn;
    float eps;
    const char *act;
    int rc = decoder_sizes(f, keys, &dim, e);
    if (rc < 0 || (rc = hf_config_u32_or(f, ffn_key, 1u << 20, 4 * dim, &ffn, e)) < 0 ||
        (rc = hf_config_f32_or(f, NULL, "layer_norm_epsilon", 1e-5, &eps, e)) < 0 ||
        (rc = hf_config_act(f, "activation_function", "gelu_new", tanh_gelus, &act, e)) < 0 ||
        (rc = set_tied(f, true, e)) < 0)
        return rc;
    hf_config_put_u32(f, "feed_forward_length", ffn);
    hf_config_put_f32(f, "attention.layer_norm_epsilon", eps);
    return 0;
}

static int configure_gpt2(struct hf_folder *f, struct err *e)
{
    const struct decoder_keys keys = {"n_positions", "n_embd", "n_layer", "n_head"};
    if (hf_config_bool_or(f, "scale_attn_by_inverse_layer_idx", false) ||
        !hf_config_bool_or(f, "scale_attn_weights", true))
        return err_set(e, SHOAL_EUNSUPPORTED, "this attention scaling is not supported");
    return configure_gpt(f, &keys, "n_inner", e);
}

/* The kind of layer i by attention_types, a list of kinds with how often they are repeated, such as
 * [[["global", "local"], 6]].  "" past its end. */
static const char *attention_type(const struct hf_folder *f, uint32_t i)
{
    const cJSON *types = cJSON_GetObjectItemCaseSensitive(f->config, "attention_types");
    for (const cJSON *t = cJSON_IsArray(types) ? types->child : NULL; t; t = t->next) {
        const cJSON *kinds = cJSON_GetArrayItem(t, 0), *times = cJSON_GetArrayItem(t, 1);
        uint32_t n = (uint32_t)cJSON_GetArraySize(kinds);
        if (!cJSON_IsArray(kinds) || n == 0 || n > 1024 || !cJSON_IsNumber(times) ||
            times->valueint < 1 || times->valueint > 1024)
            return "";
        if (i < n * (uint32_t)times->valueint) {
            const char *s = cJSON_GetStringValue(cJSON_GetArrayItem(kinds, (int)(i % n)));
            return s ? s : "";
        }
        i -= n * (uint32_t)times->valueint;
    }
    return "";
}

static int configure_gptneo(struct hf_folder *f, struct err *e)
{
    const struct decoder_keys keys = {NULL, NULL, "num_layers", "num_heads"};
    uint32_t window, layers;
    int rc = configure_gpt(f, &keys, "intermediate_size", e);
    if (rc < 0 ||
        (rc = hf_config_u32(f, "num_hidden_layers", "num_layers", 1024, &layers, e)) < 0 ||
        (rc = hf_config_u32_or(f, "window_size", 1u << 24, 256, &window, e)) < 0)
        return rc;
    bool local = false;
    for (uint32_t i = 0; i < layers; i++) {
        const char *type = attention_type(f, i);
        local = local || !strcmp(type, "local");
        if (strcmp(type, i % 2 ? "local" : "global") != 0 && strcmp(type, "global") != 0)
            return err_set(e, SHOAL_EUNSUPPORTED,
                           "attention_types: layer %u is \"%.40s\" (global and local must take "
                           "turns)",
                           i, type);
        if (local && i % 2 && strcmp(type, "local") != 0)
            return err_set(e, SHOAL_EUNSUPPORTED,
                           "attention_types: layer %u is global, but must be local", i);
    }
    if (local)
        hf_config_put_u32(f, "attention.sliding_window", window);
    return 0;
}

const struct hf_arch hf_decoders[] = {
    {"llama", "llama", "model.", llama_rules, configure_llama},
    {"mistral", "llama", "model.", llama_rules, configure_llama},
    {"qwen2", "qwen2", "model.", qwen_rules, configure_llama},
    {"qwen3", "qwen3", "model.", qwen_rules, configure_llama},
    {"phi", "phi2", "model.", phi_rules, configure_phi},
    {"gpt2", "gpt2", "transformer.", gpt2_rules, configure_gpt2},
    {"gpt_neo", "gptneo", "transformer.", gptneo_rules, configure_gptneo},
    {NULL, NULL, NULL, NULL, NULL},
};
