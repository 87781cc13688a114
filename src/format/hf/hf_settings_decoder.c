/* hf_settings_decoder.c - settings of decoders: config.json to metadata; see hf_map.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "format/hf/hf_map.h"

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

static const struct safetensors_tensor *find_by(const struct hf_folder *f, const struct hf_rule *r,
                                                const char *to)
{
    const struct safetensors_tensor *t = NULL;
    for (; r && !t && r->from; r++) {
        char name[128];
        if (!r->to || strcmp(r->to, to) != 0)
            continue;
        snprintf(name, sizeof(name), "%s%s", f->arch->prefix, r->from);
        t = safetensors_find(f->st, name);
        if (!t)
            t = safetensors_find(f->st, r->from);
    }
    return t;
}

/* The tensor that becomes `to` in GGUF, whose name may have the prefix of the architecture. */
static const struct safetensors_tensor *find_tensor(const struct hf_folder *f, const char *to)
{
    const struct safetensors_tensor *t = find_by(f, f->arch->rules, to);
    return t ? t : find_by(f, f->arch->usual, to);
}

/* Whether the output matrix is the embedding. The config is overridden if the file has an output
 * matrix with different values, as in transformers. Without the check at the end a missing output
 * matrix that is not tied would be taken as tied. */
static int set_tied(struct hf_folder *f, bool missing, struct err *e)
{
    const struct safetensors_tensor *head = find_tensor(f, "output.weight");
    const struct safetensors_tensor *embedding = find_tensor(f, "token_embd.weight");
    f->tied = hf_config_bool_or(f, "tie_word_embeddings", head ? missing : true);
    if (f->tied && head && embedding)
        f->tied = head->type == embedding->type && head->n_bytes == embedding->n_bytes &&
                  memcmp(head->data, embedding->data, head->n_bytes) == 0;
    if (!f->tied && !head)
        return err_set(e, SHOAL_EFORMAT, "%s is missing, and tie_word_embeddings is false",
                       strcmp(f->arch->model_type, "gpt_neox") ? "lm_head.weight"
                                                               : "embed_out.weight");
    return 0;
}

/* Llama, Mistral, Qwen 2 and 3: RMS norms, rotation, gated feed-forward. */
int hf_settings_llama(struct hf_folder *f, struct err *e)
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
    return hf_rope_configure(f, hf_rope_object(f), width, e);
}

int hf_settings_phi(struct hf_folder *f, struct err *e)
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
        (rc = hf_rope_number(f, hf_rope_object(f), "partial_rotary_factor", 0.5, &part, e)) < 0 ||
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
    return hf_rope_configure(f, hf_rope_object(f), turned, e);
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

int hf_settings_gpt2(struct hf_folder *f, struct err *e)
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

int hf_settings_gptneo(struct hf_folder *f, struct err *e)
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

/* Biases of attention and rotation of a part of each head, which phi3, gptneox and stablelm have in
 * common.  Returns the number of values that are rotated, or an error. */
static int rotated_part(struct hf_folder *f, const char *old_key, double missing, uint32_t width,
                        uint32_t *out, struct err *e)
{
    float part;
    int rc = hf_rope_number(f, hf_rope_object(f), "partial_rotary_factor", missing, &part, e);
    if (rc == 0 && old_key && cJSON_GetObjectItemCaseSensitive(f->config, old_key))
        rc = hf_config_f32_or(f, NULL, old_key, missing, &part, e);
    if (rc < 0)
        return rc;
    if (!(part > 0.0f) || part > 1.0f)
        return err_set(e, SHOAL_EFORMAT, "config.json: the rotated part of a head is not in 0..1");
    *out = (uint32_t)((float)width * part);
    hf_config_put_u32(f, "rope.dimension_count", *out);
    return 0;
}

static int put_window(struct hf_folder *f, struct err *e)
{
    uint32_t window;
    int rc = hf_config_u32_or(f, "sliding_window", 1u << 24, 0, &window, e);
    if (rc == 0 && window)
        hf_config_put_u32(f, "attention.sliding_window", window);
    return rc;
}

/* The window and the layers that have it: layer_types, or a number of older files. */
static int put_layer_types(struct hf_folder *f, const char *old_key, struct err *e)
{
    const cJSON *types = cJSON_GetObjectItemCaseSensitive(f->config, "layer_types");
    const cJSON *old = cJSON_GetObjectItemCaseSensitive(f->config, old_key);
    uint8_t local[1024];
    uint32_t n = 0;
    char name[96];
    int rc = put_window(f, e);
    if (rc < 0)
        return rc;
    for (const cJSON *t = cJSON_IsArray(types) ? types->child : NULL; t; t = t->next) {
        const char *s = cJSON_GetStringValue(t);
        if (n == sizeof(local) || !s ||
            (strcmp(s, "sliding_attention") != 0 && strcmp(s, "full_attention") != 0))
            return err_set(e, SHOAL_EUNSUPPORTED, "layer_types: layer %u is \"%.40s\"", n,
                           s ? s : "");
        local[n++] = !strcmp(s, "sliding_attention");
    }
    snprintf(name, sizeof(name), "%s.attention.sliding_window_pattern", f->arch->name);
    if (n)
        model_file_put_array(f->file, name, MODEL_FILE_BOOL, local, n);
    else if (cJSON_IsNumber(old) && old->valuedouble >= 1 && old->valuedouble <= 64)
        hf_config_put_u32(f, "attention.sliding_window_pattern", (uint32_t)old->valuedouble);
    return 0;
}

int hf_settings_phi3(struct hf_folder *f, struct err *e)
{
    const struct decoder_keys keys = {0};
    uint32_t dim, ffn, turned;
    const char *act;
    float eps;
    int rc = decoder_sizes(f, &keys, &dim, e);
    if (rc < 0 || (rc = hf_config_u32(f, "intermediate_size", NULL, 1u << 20, &ffn, e)) < 0 ||
        (rc = hf_config_u32_or(f, "num_key_value_heads", 1024, f->n_heads, &f->n_kv_heads, e)) <
            0 ||
        (rc = hf_config_f32_or(f, NULL, "rms_norm_eps", 1e-5, &eps, e)) < 0 ||
        (rc = hf_config_act(f, "hidden_act", "silu", silus, &act, e)) < 0 ||
        (rc = rotated_part(f, NULL, 1, dim / f->n_heads, &turned, e)) < 0 ||
        (rc = put_window(f, e)) < 0 || (rc = set_tied(f, false, e)) < 0)
        return rc;
    hf_config_put_u32(f, "feed_forward_length", ffn);
    hf_config_put_u32(f, "attention.head_count_kv", f->n_kv_heads);
    hf_config_put_f32(f, "attention.layer_norm_rms_epsilon", eps);
    return hf_rope_configure(f, hf_rope_object(f), turned, e);
}

/* Every fourth layer does not rotate: the list must say just that. */
int hf_settings_smollm3(struct hf_folder *f, struct err *e)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(f->config, "no_rope_layers");
    uint32_t every, i = 0;
    int rc = hf_config_u32_or(f, "no_rope_layer_interval", 1024, 4, &every, e);
    if (rc < 0)
        return rc;
    if (!cJSON_IsArray(list) && every != 4)
        return err_set(e, SHOAL_EUNSUPPORTED, "no_rope_layer_interval %u (4 is supported)", every);
    for (const cJSON *j = cJSON_IsArray(list) ? list->child : NULL; j; j = j->next, i++)
        if (!cJSON_IsNumber(j) || (j->valuedouble != 0) != ((i + 1) % 4 != 0))
            return err_set(e, SHOAL_EUNSUPPORTED,
                           "no_rope_layers: layer %u (every fourth must be 0, the others 1)", i);
    return hf_settings_llama(f, e);
}

int hf_settings_granite(struct hf_folder *f, struct err *e)
{
    static const struct {
        const char *from, *to;
    } keys[] = {{"embedding_multiplier", "embedding_scale"},
                {"residual_multiplier", "residual_scale"},
                {"attention_multiplier", "attention.scale"},
                {"logits_scaling", "logit_scale"}};
    int rc = hf_settings_llama(f, e);
    for (size_t i = 0; rc == 0 && i < sizeof(keys) / sizeof(keys[0]); i++) {
        float v;
        rc = hf_config_f32_or(f, NULL, keys[i].from, 1, &v, e);
        if (rc == 0)
            hf_config_put_f32(f, keys[i].to, v);
    }
    return rc;
}

int hf_settings_exaone4(struct hf_folder *f, struct err *e)
{
    int rc = hf_settings_llama(f, e);
    return rc < 0 ? rc : put_layer_types(f, "sliding_window_pattern", e);
}

int hf_settings_gptneox(struct hf_folder *f, struct err *e)
{
    static const char *const gelus[] = {"gelu", NULL};
    const struct decoder_keys keys = {0};
    uint32_t dim, ffn, turned;
    const char *act;
    float eps, base;
    int rc = decoder_sizes(f, &keys, &dim, e);
    if (rc < 0 || (rc = hf_config_u32(f, "intermediate_size", NULL, 1u << 20, &ffn, e)) < 0 ||
        (rc = hf_config_f32_or(f, NULL, "layer_norm_eps", 1e-5, &eps, e)) < 0 ||
        (rc = hf_config_act(f, "hidden_act", "gelu", gelus, &act, e)) < 0 ||
        (rc = rotated_part(f, "rotary_pct", 0.25, dim / f->n_heads, &turned, e)) < 0 ||
        (rc = set_tied(f, false, e)) < 0 ||
        (rc = hf_rope_configure(f, hf_rope_object(f), turned, e)) < 0 ||
        (rc = hf_config_f32_or(f, NULL, "rotary_emb_base", 0, &base, e)) < 0)
        return rc;
    if (base > 0) /* the name in older files */
        hf_config_put_f32(f, "rope.freq_base", base);
    hf_config_put_u32(f, "feed_forward_length", ffn);
    hf_config_put_f32(f, "attention.layer_norm_epsilon", eps);
    hf_config_put_bool(f, "use_parallel_residual",
                       hf_config_bool_or(f, "use_parallel_residual", true));
    return 0;
}

int hf_settings_stablelm(struct hf_folder *f, struct err *e)
{
    const struct decoder_keys keys = {0};
    uint32_t dim, ffn, turned;
    const char *act;
    float eps;
    int rc = decoder_sizes(f, &keys, &dim, e);
    if (rc < 0 || (rc = hf_config_u32(f, "intermediate_size", NULL, 1u << 20, &ffn, e)) < 0 ||
        (rc = hf_config_u32_or(f, "num_key_value_heads", 1024, f->n_heads, &f->n_kv_heads, e)) <
            0 ||
        (rc = hf_config_f32_or(f, NULL, "layer_norm_eps", 1e-5, &eps, e)) < 0 ||
        (rc = hf_config_act(f, "hidden_act", "silu", silus, &act, e)) < 0 ||
        (rc = rotated_part(f, NULL, 0.25, dim / f->n_heads, &turned, e)) < 0 ||
        (rc = set_tied(f, false, e)) < 0)
        return rc;
    if (hf_config_bool_or(f, "qk_layernorm", false))
        return err_set(e, SHOAL_EUNSUPPORTED, "qk_layernorm of stablelm is not supported");
    hf_config_put_u32(f, "feed_forward_length", ffn);
    hf_config_put_u32(f, "attention.head_count_kv", f->n_kv_heads);
    hf_config_put_f32(f, "attention.layer_norm_epsilon", eps);
    hf_config_put_bool(f, "use_parallel_residual",
                       hf_config_bool_or(f, "use_parallel_residual", false));
    return hf_rope_configure(f, hf_rope_object(f), turned, e);
}

/* What Gemma 2 and 3 have in common, but the rotation. */
static int settings_gemma(struct hf_folder *f, uint32_t *width, struct err *e)
{
    const struct decoder_keys keys = {0};
    uint32_t dim, ffn;
    const char *act;
    float eps, scalar;
    int rc = decoder_sizes(f, &keys, &dim, e);
    if (rc < 0 || (rc = hf_config_u32(f, "intermediate_size", NULL, 1u << 20, &ffn, e)) < 0 ||
        (rc = hf_config_u32(f, "num_key_value_heads", NULL, 1024, &f->n_kv_heads, e)) < 0 ||
        (rc = hf_config_u32_or(f, "head_dim", 1024, 256, width, e)) < 0 ||
        (rc = hf_config_f32_or(f, NULL, "rms_norm_eps", 1e-6, &eps, e)) < 0 ||
        (rc = hf_config_f32_or(f, NULL, "query_pre_attn_scalar", 256, &scalar, e)) < 0 ||
        (rc = hf_config_act(f, "hidden_activation", "gelu_pytorch_tanh", tanh_gelus, &act, e)) <
            0 ||
        (rc = set_tied(f, true, e)) < 0)
        return rc;
    if (!(scalar > 0.0f))
        return err_set(e, SHOAL_EFORMAT, "config.json: query_pre_attn_scalar is not positive");
    if (hf_config_bool_or(f, "use_bidirectional_attention", false))
        return err_set(e, SHOAL_EUNSUPPORTED, "use_bidirectional_attention is not supported");
    hf_config_put_u32(f, "feed_forward_length", ffn);
    hf_config_put_u32(f, "attention.head_count_kv", f->n_kv_heads);
    hf_config_put_u32(f, "attention.key_length", *width);
    hf_config_put_u32(f, "attention.value_length", *width);
    hf_config_put_f32(f, "attention.layer_norm_rms_epsilon", eps);
    hf_config_put_f32(f, "attention.scale", 1.0f / sqrtf(scalar));
    return 0;
}

/* A bound of null or 0 is none. */
static int put_cap(struct hf_folder *f, const char *from, struct err *e)
{
    float cap;
    int rc = hf_config_f32_or(f, NULL, from, 0, &cap, e);
    if (rc == 0)
        hf_config_put_f32(f, from, cap);
    return rc;
}

int hf_settings_gemma2(struct hf_folder *f, struct err *e)
{
    uint32_t width;
    int rc = settings_gemma(f, &width, e);
    if (rc == 0)
        rc = put_cap(f, "attn_logit_softcapping", e);
    if (rc == 0)
        rc = put_cap(f, "final_logit_softcapping", e);
    if (rc == 0)
        rc = put_layer_types(f, "sliding_window_pattern", e);
    return rc < 0 ? rc : hf_rope_configure(f, hf_rope_object(f), width, e);
}

/* Layers with a window rotate in their own way: newer files have settings of both kinds. */
int hf_settings_gemma3(struct hf_folder *f, struct err *e)
{
    uint32_t width;
    float local;
    const cJSON *rope = hf_rope_object(f);
    const cJSON *full = cJSON_GetObjectItemCaseSensitive(rope, "full_attention");
    const cJSON *near = cJSON_GetObjectItemCaseSensitive(rope, "sliding_attention");
    int rc = settings_gemma(f, &width, e);
    if (rc < 0 || (rc = put_cap(f, "final_logit_softcapping", e)) < 0 ||
        (rc = put_layer_types(f, "sliding_window_pattern", e)) < 0 ||
        (rc = hf_config_f32_or(f, NULL, "rope_local_base_freq", 10000, &local, e)) < 0 ||
        (near && (rc = hf_config_f32_or(f, near, "rope_theta", 10000, &local, e)) < 0))
        return rc;
    const char *type = hf_config_str(near, "rope_type");
    if (type[0] && strcmp(type, "default") != 0)
        return err_set(e, SHOAL_EUNSUPPORTED, "rope scaling \"%.60s\" of layers with a window",
                       type);
    hf_config_put_f32(f, "rope.freq_base_swa", local);
    return hf_rope_configure(f, full ? full : rope, width, e);
}

/* attention.head_count_kv of models with recurrent blocks: 0 for the layers that have one.  Which
 * do is said by layer_types, or by the list `old_key` of the layers with attention. */
static int put_kv_heads(struct hf_folder *f, const char *old_key, struct err *e)
{
    static const char *const known[] = {"full_attention", "attention", "linear_attention", "mamba",
                                        "conv"}; /* the first two are attention */
    const cJSON *types = cJSON_GetObjectItemCaseSensitive(f->config, "layer_types");
    const cJSON *old = old_key ? cJSON_GetObjectItemCaseSensitive(f->config, old_key) : NULL;
    uint32_t heads[1024] = {0}, n = 0, n_layers;
    char name[96];
    int rc = hf_config_u32(f, "num_hidden_layers", NULL, 1024, &n_layers, e);
    if (rc < 0)
        return rc;
    for (const cJSON *t = cJSON_IsArray(types) ? types->child : NULL; t; t = t->next, n++) {
        const char *s = cJSON_GetStringValue(t);
        uint32_t kind = 0;
        while (s && kind < 5 && strcmp(s, known[kind]) != 0)
            kind++;
        if (n == n_layers || !s || kind == 5)
            return err_set(e, SHOAL_EUNSUPPORTED, "layer_types: layer %u is \"%.40s\"", n,
                           s ? s : "");
        heads[n] = kind < 2 ? f->n_kv_heads : 0;
    }
    for (const cJSON *t = n == 0 && cJSON_IsArray(old) ? old->child : NULL; t; t = t->next) {
        if (!cJSON_IsNumber(t) || !(t->valuedouble >= 0 && t->valuedouble < n_layers))
            return err_set(e, SHOAL_EFORMAT, "%s: an entry is not a layer", old_key);
        heads[(uint32_t)t->valuedouble] = f->n_kv_heads;
    }
    if (n ? n != n_layers : !cJSON_IsArray(old))
        return err_set(e, SHOAL_EFORMAT, "config.json: layer_types does not say what %u layers are",
                       n_layers);
    snprintf(name, sizeof(name), "%s.attention.head_count_kv", f->arch->name);
    model_file_put_array(f->file, name, MODEL_FILE_U32, heads, n_layers);
    return 0;
}

/* The width of the feed-forward: two thirds of what the config says, rounded up, unless it says
 * otherwise. */
static int lfm2_ffn(const struct hf_folder *f, uint32_t *ffn, struct err *e)
{
    float factor;
    uint32_t unit;
    int rc = hf_config_u32(f, "block_ff_dim", "intermediate_size", 1u << 20, ffn, e);
    if (rc < 0 || !hf_config_bool_or(f, "block_auto_adjust_ff_dim", true))
        return rc;
    if ((rc = hf_config_f32_or(f, NULL, "block_ffn_dim_multiplier", 1, &factor, e)) < 0 ||
        (rc = hf_config_u32_or(f, "block_multiple_of", 1u << 16, 256, &unit, e)) < 0)
        return rc;
    const double wide = (double)factor * (double)(2 * *ffn / 3);
    if (!(wide >= 1 && wide <= 1u << 20))
        return err_set(e, SHOAL_EFORMAT, "config.json: block_ffn_dim_multiplier is out of range");
    *ffn = ((uint32_t)wide + unit - 1) / unit * unit;
    return 0;
}

int hf_settings_lfm2(struct hf_folder *f, struct err *e)
{
    const struct decoder_keys keys = {0};
    uint32_t dim, ffn, taps;
    float eps;
    int rc = decoder_sizes(f, &keys, &dim, e);
    if (rc < 0 || (rc = lfm2_ffn(f, &ffn, e)) < 0 ||
        (rc = hf_config_u32_or(f, "num_key_value_heads", 1024, f->n_heads, &f->n_kv_heads, e)) <
            0 ||
        (rc = hf_config_f32_or(f, NULL, "norm_eps", 1e-5, &eps, e)) < 0 ||
        (rc = hf_config_u32_or(f, "conv_L_cache", 64, 3, &taps, e)) < 0 ||
        (rc = put_kv_heads(f, "full_attn_idxs", e)) < 0 || (rc = set_tied(f, true, e)) < 0)
        return rc;
    hf_config_put_u32(f, "feed_forward_length", ffn);
    hf_config_put_u32(f, "shortconv.l_cache", taps);
    hf_config_put_f32(f, "attention.layer_norm_rms_epsilon", eps);
    return hf_rope_configure(f, hf_rope_object(f), dim / f->n_heads, e);
}

struct ssm_keys { /* of config.json */
    const char *conv, *state, *heads, *groups;
};

/* The keys ssm.*; head: values of a head. */
static int put_ssm(struct hf_folder *f, const struct ssm_keys *k, uint32_t head, struct err *e)
{
    uint32_t conv, state, heads, groups;
    int rc;
    if ((rc = hf_config_u32(f, k->conv, NULL, 64, &conv, e)) < 0 ||
        (rc = hf_config_u32(f, k->state, NULL, 4096, &state, e)) < 0 ||
        (rc = hf_config_u32(f, k->heads, NULL, 65536, &heads, e)) < 0 ||
        (rc = hf_config_u32_or(f, k->groups, 1024, 1, &groups, e)) < 0)
        return rc;
    hf_config_put_u32(f, "ssm.conv_kernel", conv);
    hf_config_put_u32(f, "ssm.inner_size", heads * head);
    hf_config_put_u32(f, "ssm.state_size", state);
    hf_config_put_u32(f, "ssm.time_step_rank", heads);
    hf_config_put_u32(f, "ssm.group_count", groups);
    return 0;
}

int hf_settings_mamba2(struct hf_folder *f, struct err *e)
{
    static const struct ssm_keys keys = {"conv_kernel", "state_size", "num_heads", "n_groups"};
    uint32_t dim, layers, head;
    const char *act;
    float eps;
    int rc;
    if ((rc = hf_config_u32(f, "hidden_size", NULL, 65536, &dim, e)) < 0 ||
        (rc = hf_config_u32(f, "num_hidden_layers", NULL, 1024, &layers, e)) < 0 ||
        (rc = hf_config_u32_or(f, "head_dim", 4096, 64, &head, e)) < 0 ||
        (rc = hf_config_f32_or(f, NULL, "layer_norm_epsilon", 1e-5, &eps, e)) < 0 ||
        (rc = hf_config_act(f, "hidden_act", "silu", silus, &act, e)) < 0 ||
        (rc = put_ssm(f, &keys, head, e)) < 0 || (rc = set_tied(f, false, e)) < 0)
        return rc;
    hf_config_put_u32(f, "context_length", 1u << 20); /* it has no positions */
    hf_config_put_u32(f, "embedding_length", dim);
    hf_config_put_u32(f, "block_count", layers);
    hf_config_put_f32(f, "attention.layer_norm_rms_epsilon", eps);
    return 0;
}

int hf_settings_granitehybrid(struct hf_folder *f, struct err *e)
{
    static const struct ssm_keys keys = {"mamba_d_conv", "mamba_d_state", "mamba_n_heads",
                                         "mamba_n_groups"};
    const cJSON *experts = cJSON_GetObjectItemCaseSensitive(f->config, "num_local_experts");
    uint32_t ffn, dim, heads, expand;
    int rc = hf_settings_granite(f, e);
    if (rc < 0 ||
        (rc = hf_config_u32(f, "shared_intermediate_size", NULL, 1u << 20, &ffn, e)) < 0 ||
        (rc = hf_config_u32(f, "hidden_size", NULL, 65536, &dim, e)) < 0 ||
        (rc = hf_config_u32(f, "mamba_n_heads", NULL, 65536, &heads, e)) < 0 ||
        (rc = hf_config_u32_or(f, "mamba_expand", 64, 2, &expand, e)) < 0 ||
        (rc = put_ssm(f, &keys, expand * dim / heads, e)) < 0 ||
        (rc = put_kv_heads(f, NULL, e)) < 0)
        return rc;
    if (cJSON_IsNumber(experts) && experts->valuedouble > 0)
        hf_config_put_u32(f, "expert_count", 1); /* the model refuses it by name */
    hf_config_put_u32(f, "feed_forward_length", ffn);
    hf_config_put_bool(f, "rope.scaling.finetuned",
                       !strcmp(hf_config_str(f->config, "position_embedding_type"), "rope"));
    return 0;
}

int hf_settings_qwen35(struct hf_folder *f, struct err *e)
{
    static const struct ssm_keys keys = {"linear_conv_kernel_dim", "linear_key_head_dim",
                                         "linear_num_value_heads", "linear_num_key_heads"};
    uint32_t head, width, n_values, n_keys, turned;
    int rc = hf_settings_llama(f, e);
    if (rc < 0 || (rc = hf_config_u32(f, "linear_value_head_dim", NULL, 4096, &head, e)) < 0 ||
        (rc = hf_config_u32(f, "head_dim", NULL, 1024, &width, e)) < 0 ||
        (rc = hf_config_u32(f, "linear_num_value_heads", NULL, 65536, &n_values, e)) < 0 ||
        (rc = hf_config_u32(f, "linear_num_key_heads", NULL, 65536, &n_keys, e)) < 0 ||
        (rc = put_ssm(f, &keys, head, e)) < 0 || (rc = put_kv_heads(f, NULL, e)) < 0 ||
        (rc = rotated_part(f, NULL, 0.25, width, &turned, e)) < 0)
        return rc;
    if (n_values != n_keys) /* GGUF has the values in another order, which matrices would need */
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "folders with %u value heads for %u key heads (GGUF files have them)",
                       n_values, n_keys);
    return 0;
}
