/* arch_read.c - shared by the architectures: reads metadata into a decoder_config. */
#include "model/arch/arch.h"

#include <math.h>
#include <stdio.h>

#include "model/mixer/mixer.h"

static const char *full_key(char *out, size_t cap, const struct decoder_config *c, const char *key)
{
    snprintf(out, cap, "%s.%s", c->arch, key);
    return out;
}

int arch_u32(const struct decoder_config *c, const struct model_file *file, const char *key,
             uint32_t min, uint32_t max, uint32_t *out, struct err *e)
{
    char name[128];
    uint64_t v;
    if (!model_file_get_u64(file, full_key(name, sizeof(name), c, key), &v))
        return err_set(e, SHOAL_EFORMAT, "metadata key %s is missing or not a whole number", name);
    if (v < min || v > max)
        return err_set(e, SHOAL_EFORMAT, "%s is %llu, expected %u to %u", name,
                       (unsigned long long)v, min, max);
    *out = (uint32_t)v;
    return 0;
}

int arch_u32_or(const struct decoder_config *c, const struct model_file *file, const char *key,
                uint32_t min, uint32_t max, uint32_t missing, uint32_t *out, struct err *e)
{
    char name[128];
    if (!model_file_find(file, full_key(name, sizeof(name), c, key))) {
        *out = missing;
        return 0;
    }
    return arch_u32(c, file, key, min, max, out, e);
}

int arch_f32_or(const struct decoder_config *c, const struct model_file *file, const char *key,
                float missing, float *out, struct err *e)
{
    char name[128];
    double v;
    if (!model_file_find(file, full_key(name, sizeof(name), c, key))) {
        *out = missing;
        return 0;
    }
    if (!model_file_get_f64(file, name, &v) || !isfinite(v))
        return err_set(e, SHOAL_EFORMAT, "metadata key %s is not a number", name);
    *out = (float)v;
    return 0;
}

int arch_bool_or(const struct decoder_config *c, const struct model_file *file, const char *key,
                 bool missing, bool *out, struct err *e)
{
    char name[128];
    *out = missing;
    if (!model_file_find(file, full_key(name, sizeof(name), c, key)))
        return 0;
    return model_file_get_bool(file, name, out)
               ? 0
               : err_set(e, SHOAL_EFORMAT, "metadata key %s is not true or false", name);
}

/* A list with true for each layer that has a window: it must be regular. */
static int window_list(struct decoder_config *c, const struct model_file_value *v, const char *name,
                       struct err *e)
{
    uint32_t n = 0;
    int64_t has = 0;
    if (v->n_elems != c->n_layers)
        return err_set(e, SHOAL_EFORMAT, "%s has %llu entries, expected %u", name,
                       (unsigned long long)v->n_elems, c->n_layers);
    for (uint32_t i = 0; i < c->n_layers && n < 2; i++)
        if (model_file_i64_at(v, i, &has) && !has) {
            c->window_pattern = n ? i - c->window_global : c->n_layers;
            c->window_global = n ? c->window_global : i;
            n++;
        }
    if (n == 0)
        c->window_pattern = 0;
    for (uint32_t i = 0; i < c->n_layers; i++) {
        bool global = n && i % c->window_pattern == c->window_global;
        if (!model_file_i64_at(v, i, &has) || (has != 0) == global)
            return err_set(e, SHOAL_EUNSUPPORTED,
                           "%s: layers without a window must come at equal distances", name);
    }
    return 0;
}

int arch_window(struct decoder_config *c, const struct model_file *file, uint32_t every,
                struct err *e)
{
    char name[128];
    const char *key = "attention.sliding_window_pattern";
    const struct model_file_value *v = model_file_find(file, full_key(name, sizeof(name), c, key));
    int rc = arch_u32_or(c, file, "attention.sliding_window", 0, 1u << 24, 0, &c->window, e);
    if (rc < 0 || c->window == 0)
        return rc;
    if (v && v->type == MODEL_FILE_ARRAY)
        return window_list(c, v, name, e);
    if ((rc = arch_u32_or(c, file, key, 1, 64, every, &c->window_pattern, e)) < 0)
        return rc;
    c->window_global = c->window_pattern - 1;
    return 0;
}

static int yarn(struct decoder_config *c, const struct model_file *file, float factor,
                struct err *e)
{
    int rc;
    c->rope_kind = DECODER_ROPE_YARN;
    c->rope_factor = factor;
    if ((rc = arch_f32_or(c, file, "rope.scaling.yarn_beta_fast", 32.0f, &c->rope_fast, e)) < 0 ||
        (rc = arch_f32_or(c, file, "rope.scaling.yarn_beta_slow", 1.0f, &c->rope_slow, e)) < 0)
        return rc;
    if (!(factor >= 1.0f) || !(c->rope_fast > c->rope_slow) || !(c->rope_slow > 0.0f))
        return err_set(e, SHOAL_EFORMAT, "the numbers of the yarn scaling are out of range");
    c->rope_amplitude *= 1.0f + 0.1f * logf(factor);
    return 0;
}

/* Scaling of positions, by its name; "llama3" is the tensor rope_freqs.weight. */
static int rope_kind(struct decoder_config *c, const struct model_file *file, struct str type,
                     float factor, struct err *e)
{
    if (str_is(type, "none") || str_is(type, "longrope"))
        return 0;
    if (str_is(type, "yarn"))
        return yarn(c, file, factor, e);
    if (str_is(type, "dynamic") && factor >= 1.0f) {
        c->rope_kind = DECODER_ROPE_DYNAMIC;
        c->rope_factor = factor;
        return 0;
    }
    if (!str_is(type, "linear"))
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "%s.rope.scaling.type \"%.*s\" is not supported (only linear, llama3, "
                       "yarn, longrope and dynamic with a factor of 1 or more)",
                       c->arch, (int)type.n, type.p);
    if (factor > 0.0f)
        c->rope_scale = 1.0f / factor;
    return 0;
}

static int rope_scaling(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    char name[128];
    struct str type = {"linear", 6};
    float factor;
    int rc;
    c->rope_scale = 1.0f;
    if ((rc = arch_f32_or(c, file, "rope.scale_linear", 0.0f, &factor, e)) < 0 || /* old name */
        (rc = arch_f32_or(c, file, "rope.scaling.factor", factor, &factor, e)) < 0 ||
        (rc = arch_u32_or(c, file, "rope.scaling.original_context_length", 1, 1u << 24,
                          c->n_ctx_train, &c->rope_ctx, e)) < 0 ||
        (rc = arch_f32_or(c, file, "rope.scaling.attn_factor", 1.0f, &c->rope_amplitude, e)) < 0)
        return rc;
    if (!(c->rope_amplitude > 0.0f))
        return err_set(e, SHOAL_EFORMAT, "rope.scaling.attn_factor is not positive");
    if (model_file_find_tensor(file, "rope_factors_long.weight"))
        c->rope_kind = DECODER_ROPE_LONG;
    (void)model_file_get_str(file, full_key(name, sizeof(name), c, "rope.scaling.type"), &type);
    return rope_kind(c, file, type, factor, e);
}

/* attention.head_count_kv: a number, or one for each layer with 0 for those without attention. */
static int kv_heads(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    char name[128];
    const char *key = "attention.head_count_kv";
    const struct model_file_value *v = model_file_find(file, full_key(name, sizeof(name), c, key));
    int64_t n = 0, most = 0;
    if (!v || v->type != MODEL_FILE_ARRAY)
        return arch_u32_or(c, file, key, 1, 1024, c->n_heads, &c->n_kv_heads, e);
    if (v->n_elems != c->n_layers)
        return err_set(e, SHOAL_EFORMAT, "%s has %llu entries, expected %u", name,
                       (unsigned long long)v->n_elems, c->n_layers);
    for (uint32_t i = 0; i < c->n_layers; i++) {
        if (!model_file_i64_at(v, i, &n) || n < 0 || n > 1024)
            return err_set(e, SHOAL_EFORMAT, "%s: an entry is not 0 to 1024", name);
        if (n > 0 && most > 0 && n != most)
            return err_set(e, SHOAL_EUNSUPPORTED,
                           "%s: layers with different numbers of key heads are not supported",
                           name);
        most = n > most ? n : most;
        if (n == 0)
            c->recurrent[i / 64] |= 1ull << i % 64;
    }
    c->n_kv_heads = most ? (uint32_t)most : 1;
    return 0;
}

int arch_common(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    const uint32_t most = 1u << 24;
    uint32_t experts;
    int rc;
    if ((rc = arch_u32(c, file, "context_length", 1, most, &c->n_ctx_train, e)) < 0 ||
        (rc = arch_u32(c, file, "embedding_length", 1, 65536, &c->dim, e)) < 0 ||
        (rc = arch_u32(c, file, "block_count", 1, DECODER_MAX_LAYERS, &c->n_layers, e)) < 0 ||
        (rc = arch_u32(c, file, "attention.head_count", 1, 1024, &c->n_heads, e)) < 0 ||
        (rc = kv_heads(c, file, e)) < 0 ||
        (rc = arch_u32_or(c, file, "attention.key_length", 1, 1024, c->dim / c->n_heads,
                          &c->head_dim, e)) < 0 ||
        (rc = arch_u32(c, file, "feed_forward_length", 1, 1u << 20, &c->ffn_dim, e)) < 0 ||
        (rc = arch_u32_or(c, file, "rope.dimension_count", 0, 1024, c->head_dim, &c->rope_dim, e)) <
            0 ||
        (rc = arch_u32_or(c, file, "expert_count", 0, 4096, 0, &experts, e)) < 0 ||
        (rc = arch_f32_or(c, file, "rope.freq_base", 10000.0f, &c->rope_base, e)) < 0 ||
        (rc = rope_scaling(c, file, e)) < 0)
        return rc;
    if (c->n_experts > 0 && (rc = arch_u32_or(c, file, "expert_feed_forward_length", 1, 1u << 20,
                                              c->ffn_dim, &c->ffn_dim, e)) < 0)
        return rc;
    if (experts > 0 && c->n_experts == 0) /* an architecture with experts has read them before */
        return err_set(e, SHOAL_EUNSUPPORTED, "mixture of experts (%u) is not supported", experts);
    if (c->head_dim == 0 || c->n_heads % c->n_kv_heads != 0)
        return err_set(e, SHOAL_EFORMAT, "%u query heads cannot share %u key heads of %u",
                       c->n_heads, c->n_kv_heads, c->head_dim);
    if (c->rope_dim > c->head_dim || c->rope_dim % 2 != 0)
        return err_set(e, SHOAL_EFORMAT, "cannot rotate %u of %u dimensions", c->rope_dim,
                       c->head_dim);
    if (!(c->rope_base > 0.0f))
        return err_set(e, SHOAL_EFORMAT, "rope.freq_base is not positive");
    uint32_t value_len;
    if ((rc = arch_u32_or(c, file, "attention.value_length", 1, 1024, c->head_dim, &value_len, e)) <
        0)
        return rc;
    if (value_len != c->head_dim)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "value heads of %u dimensions and key heads of %u are not supported: they "
                       "must be equal",
                       value_len, c->head_dim);
    c->attn_scale = 1.0f / sqrtf((float)c->head_dim);
    c->embed_scale = c->residual_scale = c->logit_scale = 1.0f;
    return 0;
}

int arch_rms_eps(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    return arch_f32_or(c, file, "attention.layer_norm_rms_epsilon", 1e-5f, &c->norm_eps, e);
}

int arch_layer_eps(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    c->layer_norm = true;
    return arch_f32_or(c, file, "attention.layer_norm_epsilon", 1e-5f, &c->norm_eps, e);
}

int arch_ssm(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    int rc;
    if ((rc = arch_u32(c, file, "ssm.conv_kernel", 2, 64, &c->conv_len, e)) < 0 ||
        (rc = arch_u32(c, file, "ssm.inner_size", 1, 1u << 18, &c->ssm_inner, e)) < 0 ||
        (rc = arch_u32(c, file, "ssm.state_size", 1, 4096, &c->ssm_state, e)) < 0 ||
        (rc = arch_u32(c, file, "ssm.time_step_rank", 1, 65536, &c->ssm_heads, e)) < 0 ||
        (rc = arch_u32_or(c, file, "ssm.group_count", 1, 1024, 1, &c->ssm_groups, e)) < 0)
        return rc;
    if (c->ssm_inner % c->ssm_heads != 0 || c->ssm_heads % c->ssm_groups != 0 ||
        c->ssm_inner / c->ssm_heads > 4096)
        return err_set(e, SHOAL_EFORMAT,
                       "%s.ssm: %u values cannot be divided among %u heads in %u groups", c->arch,
                       c->ssm_inner, c->ssm_heads, c->ssm_groups);
    c->mixer = &mixer_ssd;
    return 0;
}

int arch_experts(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    int rc;
    if ((rc = arch_u32(c, file, "expert_count", 1, 4096, &c->n_experts, e)) < 0 ||
        (rc = arch_u32(c, file, "expert_used_count", 1, c->n_experts, &c->n_experts_used, e)) < 0)
        return rc;
    if (c->n_experts_used > 64)
        return err_set(e, SHOAL_EUNSUPPORTED, "%s.expert_used_count is %u (at most 64)", c->arch,
                       c->n_experts_used);
    return 0;
}
