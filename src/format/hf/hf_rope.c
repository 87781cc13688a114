/* hf_rope.c - rotation of heads as config.json describes it; see hf_map.h.
 *
 * Older versions of transformers have rope_theta at the top and the rest in rope_scaling, newer
 * ones have all of it in rope_parameters. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "format/hf/hf_map.h"

const cJSON *hf_rope_object(const struct hf_folder *f)
{
    const cJSON *j = cJSON_GetObjectItemCaseSensitive(f->config, "rope_parameters");
    if (!cJSON_IsObject(j))
        j = cJSON_GetObjectItemCaseSensitive(f->config, "rope_scaling");
    return cJSON_IsObject(j) ? j : NULL;
}

int hf_rope_number(const struct hf_folder *f, const cJSON *rope, const char *key, double missing,
                   float *out, struct err *e)
{
    int rc = hf_config_f32_or(f, NULL, key, missing, out, e);
    return rc < 0 || !rope ? rc : hf_config_f32_or(f, rope, key, (double)*out, out, e);
}

static struct hf_rope_table *add_table(struct hf_folder *f, const char *name, uint32_t n,
                                       struct err *e)
{
    struct hf_rope_table *t = &f->rope[f->n_rope];
    *t = (struct hf_rope_table){.name = name, .n = n, .v = mem_zalloc_n(n, sizeof(float))};
    if (!t->v) {
        (void)err_set(e, SHOAL_ENOMEM, "out of memory for the rotation table");
        return NULL;
    }
    f->n_rope++;
    return t;
}

/* The divisor of each frequency: 1 for short waves, the factor for long ones, a ramp between. */
static int llama3(struct hf_folder *f, const cJSON *rope, double base, uint32_t width,
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
    struct hf_rope_table *t = add_table(f, "rope_freqs.weight", width / 2, e);
    if (!t)
        return SHOAL_ENOMEM;
    for (uint32_t i = 0; i < t->n; i++) {
        double wave = 2 * 3.14159265358979323846 * pow(base, 2.0 * i / width);
        double ramp = ((double)ctx / wave - (double)low) / ((double)high - (double)low);
        double mid = 1 / ((1 - ramp) / (double)factor + ramp);
        t->v[i] = (float)(wave < (double)ctx / (double)high  ? 1
                          : wave > (double)ctx / (double)low ? (double)factor
                                                             : mid);
    }
    return 0;
}

/* The context of the original training, of the settings or of the top of config.json. */
static int original_ctx(const struct hf_folder *f, const cJSON *rope, uint32_t *out, struct err *e)
{
    const char *key = "original_max_position_embeddings";
    float v;
    uint32_t ctx;
    int rc = hf_config_u32(f, "max_position_embeddings", NULL, 1u << 24, &ctx, e);
    if (rc < 0 || (rc = hf_rope_number(f, rope, key, (double)ctx, &v, e)) < 0)
        return rc;
    if (!(v >= 1) || v > (float)(1u << 24))
        return err_set(e, SHOAL_EFORMAT, "config.json: %s is out of range", key);
    *out = (uint32_t)v;
    return 0;
}

static int yarn(struct hf_folder *f, const cJSON *rope, struct err *e)
{
    float factor, fast, slow, amplitude;
    uint32_t ctx;
    int rc;
    if ((rc = hf_config_f32_or(f, rope, "factor", 1, &factor, e)) < 0 ||
        (rc = hf_config_f32_or(f, rope, "beta_fast", 32, &fast, e)) < 0 ||
        (rc = hf_config_f32_or(f, rope, "beta_slow", 1, &slow, e)) < 0 ||
        (rc = hf_config_f32_or(f, rope, "attention_factor", 0, &amplitude, e)) < 0 ||
        (rc = original_ctx(f, rope, &ctx, e)) < 0)
        return rc;
    if (!(factor >= 1))
        return err_set(e, SHOAL_EFORMAT, "config.json: the factor of yarn is below 1");
    if (cJSON_GetObjectItemCaseSensitive(rope, "mscale") ||
        cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(rope, "truncate")))
        return err_set(e, SHOAL_EUNSUPPORTED, "yarn with mscale or without truncate");
    hf_config_put_str(f, "rope.scaling.type", "yarn");
    hf_config_put_f32(f, "rope.scaling.factor", factor);
    hf_config_put_f32(f, "rope.scaling.yarn_beta_fast", fast);
    hf_config_put_f32(f, "rope.scaling.yarn_beta_slow", slow);
    hf_config_put_u32(f, "rope.scaling.original_context_length", ctx);
    if (amplitude > 0) /* the reader multiplies it by yarn's own */
        hf_config_put_f32(f, "rope.scaling.attn_factor", amplitude / (1 + 0.1f * logf(factor)));
    return 0;
}

static int table_of(struct hf_folder *f, const cJSON *list, const char *name, uint32_t n,
                    struct err *e)
{
    uint32_t i = 0;
    if (!cJSON_IsArray(list) || (uint32_t)cJSON_GetArraySize(list) != n)
        return err_set(e, SHOAL_EFORMAT, "config.json: the longrope factors are not %u numbers", n);
    struct hf_rope_table *t = add_table(f, name, n, e);
    if (!t)
        return SHOAL_ENOMEM;
    for (const cJSON *j = list->child; j; j = j->next, i++) {
        if (!cJSON_IsNumber(j) || !(j->valuedouble > 0) || j->valuedouble > 1e30)
            return err_set(e, SHOAL_EFORMAT, "config.json: a longrope factor is not positive");
        t->v[i] = (float)j->valuedouble;
    }
    return 0;
}

static int longrope(struct hf_folder *f, const cJSON *rope, uint32_t width, struct err *e)
{
    uint32_t ctx, original;
    float amplitude, factor;
    int rc;
    if ((rc = original_ctx(f, rope, &original, e)) < 0 ||
        (rc = hf_config_u32(f, "max_position_embeddings", NULL, 1u << 24, &ctx, e)) < 0 ||
        (rc = hf_config_f32_or(f, rope, "factor", (double)ctx / original, &factor, e)) < 0 ||
        (rc = hf_config_f32_or(f, rope, "attention_factor", 0, &amplitude, e)) < 0 ||
        (rc = table_of(f, cJSON_GetObjectItemCaseSensitive(rope, "long_factor"),
                       "rope_factors_long.weight", width / 2, e)) < 0 ||
        (rc = table_of(f, cJSON_GetObjectItemCaseSensitive(rope, "short_factor"),
                       "rope_factors_short.weight", width / 2, e)) < 0)
        return rc;
    if (!(amplitude > 0))
        amplitude =
            factor > 1 && original > 1 ? sqrtf(1 + logf(factor) / logf((float)original)) : 1;
    hf_config_put_str(f, "rope.scaling.type", "longrope");
    hf_config_put_u32(f, "rope.scaling.original_context_length", original);
    hf_config_put_f32(f, "rope.scaling.attn_factor", amplitude);
    return 0;
}

/* Linear and dynamic have a factor only.  With alpha (Hunyuan), dynamic is a larger base. */
static int by_factor(struct hf_folder *f, const cJSON *rope, const char *type, float base,
                     uint32_t width, struct err *e)
{
    float factor, alpha;
    int rc;
    if ((rc = hf_config_f32_or(f, rope, "factor", 1, &factor, e)) < 0 ||
        (rc = hf_config_f32_or(f, rope, "alpha", 0, &alpha, e)) < 0)
        return rc;
    if (alpha > 0 && !strcmp(type, "dynamic") && width > 2) {
        hf_config_put_f32(f, "rope.freq_base",
                          (float)((double)base * pow((double)alpha, width / (width - 2.0))));
        return 0;
    }
    hf_config_put_str(f, "rope.scaling.type", type);
    hf_config_put_f32(f, "rope.scaling.factor", factor);
    return 0;
}

int hf_rope_configure(struct hf_folder *f, const cJSON *rope, uint32_t width, struct err *e)
{
    const char *type = hf_config_str(rope, "rope_type");
    float base;
    if (!type[0])
        type = hf_config_str(rope, "type");
    int rc = hf_rope_number(f, rope, "rope_theta", 10000, &base, e);
    if (rc < 0)
        return rc;
    hf_config_put_f32(f, "rope.freq_base", base);
    if (!type[0] || !strcmp(type, "default"))
        return 0;
    if (!strcmp(type, "llama3"))
        return llama3(f, rope, (double)base, width, e);
    if (!strcmp(type, "yarn"))
        return yarn(f, rope, e);
    if (!strcmp(type, "longrope") || !strcmp(type, "su"))
        return longrope(f, rope, width, e);
    if (!strcmp(type, "linear") || !strcmp(type, "dynamic"))
        return by_factor(f, rope, type, base, width, e);
    return err_set(e, SHOAL_EUNSUPPORTED,
                   "rope scaling \"%.60s\" (linear, dynamic, llama3, yarn and longrope are "
                   "supported)",
                   type);
}
