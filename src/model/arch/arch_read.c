/* arch_read.c - shared by the architectures: reads metadata into a decoder_config. */
#include "model/arch/arch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

/* Scaling of positions: linear is handled here; "llama3" is the tensor rope_freqs.weight. */
static int rope_scaling(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    char name[128];
    struct str type;
    float factor;
    c->rope_scale = 1.0f;
    if (arch_f32_or(c, file, "rope.scale_linear", 0.0f, &factor, e) < 0) /* the key's old name */
        return e->code;
    if (factor == 0.0f && arch_f32_or(c, file, "rope.scaling.factor", 0.0f, &factor, e) < 0)
        return e->code;
    bool typed =
        model_file_get_str(file, full_key(name, sizeof(name), c, "rope.scaling.type"), &type);
    if (typed && type.n == 4 && memcmp(type.p, "none", 4) == 0)
        return 0;
    if (typed && !(type.n == 6 && memcmp(type.p, "linear", 6) == 0))
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "%s \"%.*s\" is not supported (only linear and llama3)", name, (int)type.n,
                       type.p);
    if (factor > 0.0f)
        c->rope_scale = 1.0f / factor;
    return 0;
}

int arch_common(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    const uint32_t most = 1u << 24;
    uint32_t experts;
    int rc;
    if ((rc = arch_u32(c, file, "context_length", 1, most, &c->n_ctx_train, e)) < 0 ||
        (rc = arch_u32(c, file, "embedding_length", 1, 65536, &c->dim, e)) < 0 ||
        (rc = arch_u32(c, file, "block_count", 1, 1024, &c->n_layers, e)) < 0 ||
        (rc = arch_u32(c, file, "attention.head_count", 1, 1024, &c->n_heads, e)) < 0 ||
        (rc = arch_u32_or(c, file, "attention.head_count_kv", 1, 1024, c->n_heads, &c->n_kv_heads,
                          e)) < 0 ||
        (rc = arch_u32_or(c, file, "attention.key_length", 1, 1024, c->dim / c->n_heads,
                          &c->head_dim, e)) < 0 ||
        (rc = arch_u32(c, file, "feed_forward_length", 1, 1u << 20, &c->ffn_dim, e)) < 0 ||
        (rc = arch_u32_or(c, file, "rope.dimension_count", 0, 1024, c->head_dim, &c->rope_dim, e)) <
            0 ||
        (rc = arch_u32_or(c, file, "expert_count", 0, 4096, 0, &experts, e)) < 0 ||
        (rc = arch_f32_or(c, file, "rope.freq_base", 10000.0f, &c->rope_base, e)) < 0 ||
        (rc = rope_scaling(c, file, e)) < 0)
        return rc;
    if (experts > 0)
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
    c->embed_scale = 1.0f;
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
