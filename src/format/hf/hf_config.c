/* hf_config.c - reads config.json into metadata; see hf_map.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "format/hf/hf_map.h"

static const cJSON *item(const cJSON *object, const char *key)
{
    const cJSON *j = key ? cJSON_GetObjectItemCaseSensitive(object, key) : NULL;
    return cJSON_IsNull(j) ? NULL : j;
}

static int to_u32(const cJSON *j, const char *key, uint32_t max, uint32_t *out, struct err *e)
{
    if (!cJSON_IsNumber(j) || j->valuedouble < 1 || j->valuedouble > (double)max ||
        floor(j->valuedouble) != j->valuedouble)
        return err_set(e, SHOAL_EFORMAT, "config.json: %s is not a whole number from 1 to %u", key,
                       max);
    *out = (uint32_t)j->valuedouble;
    return 0;
}

int hf_config_u32(const struct hf_folder *f, const char *key, const char *second, uint32_t max,
                  uint32_t *out, struct err *e)
{
    const cJSON *j = item(f->config, key);
    if (!j && (j = item(f->config, second)))
        key = second;
    if (!j)
        return err_set(e, SHOAL_EFORMAT, "config.json has no %s", key);
    return to_u32(j, key, max, out, e);
}

int hf_config_u32_or(const struct hf_folder *f, const char *key, uint32_t max, uint32_t missing,
                     uint32_t *out, struct err *e)
{
    const cJSON *j = item(f->config, key);
    *out = missing;
    return j ? to_u32(j, key, max, out, e) : 0;
}

int hf_config_f32_or(const struct hf_folder *f, const cJSON *object, const char *key,
                     double missing, float *out, struct err *e)
{
    const cJSON *j = item(object ? object : f->config, key);
    double v = j ? j->valuedouble : missing;
    if (j && (!cJSON_IsNumber(j) || !isfinite(v) || fabs(v) > 1e30))
        return err_set(e, SHOAL_EFORMAT, "config.json: %s is not a number", key);
    *out = (float)v;
    return 0;
}

bool hf_config_bool_or(const struct hf_folder *f, const char *key, bool missing)
{
    const cJSON *j = item(f->config, key);
    return cJSON_IsBool(j) ? cJSON_IsTrue(j) : missing;
}

const char *hf_config_str(const cJSON *object, const char *key)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return s ? s : "";
}

int hf_config_act(const struct hf_folder *f, const char *key, const char *missing,
                  const char *const *known, const char **out, struct err *e)
{
    const char *s = hf_config_str(f->config, key);
    if (!s[0])
        s = missing;
    for (; *known; known++)
        if (!strcmp(s, *known)) {
            *out = *known;
            return 0;
        }
    return err_set(e, SHOAL_EUNSUPPORTED, "config.json: %s \"%.60s\" is not supported for %s", key,
                   s, f->arch->name);
}

static const char *full_key(const struct hf_folder *f, const char *key, char *out, size_t cap)
{
    snprintf(out, cap, "%s.%s", f->arch->name, key);
    return out;
}

void hf_config_put_u32(struct hf_folder *f, const char *key, uint32_t v)
{
    char name[128];
    model_file_put_u32(f->file, full_key(f, key, name, sizeof(name)), v);
}

void hf_config_put_f32(struct hf_folder *f, const char *key, float v)
{
    char name[128];
    model_file_put_f32(f->file, full_key(f, key, name, sizeof(name)), v);
}

void hf_config_put_bool(struct hf_folder *f, const char *key, bool v)
{
    char name[128];
    model_file_put_bool(f->file, full_key(f, key, name, sizeof(name)), v);
}

void hf_config_put_str(struct hf_folder *f, const char *key, const char *v)
{
    char name[128];
    model_file_put_str(f->file, full_key(f, key, name, sizeof(name)), v, strlen(v));
}

int hf_config_two_sides(struct hf_folder *f, struct err *e)
{
    static const struct {
        const char *from, *to;
        uint32_t most;
    } sizes[] = {
        {"d_model", "embedding_length", 65536},
        {"encoder_layers", "block_count", 1024},
        {"decoder_layers", "decoder_block_count", 1024},
        {"encoder_attention_heads", "attention.head_count", 1024},
        {"encoder_ffn_dim", "feed_forward_length", 1u << 20},
    };
    static const char *const same[][2] = {{"encoder_attention_heads", "decoder_attention_heads"},
                                          {"encoder_ffn_dim", "decoder_ffn_dim"}};
    uint32_t v, w;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        rc = hf_config_u32(f, sizes[i].from, NULL, sizes[i].most, &v, e);
        if (rc == 0)
            hf_config_put_u32(f, sizes[i].to, v);
    }
    for (size_t i = 0; rc == 0 && i < 2; i++) {
        rc = hf_config_u32(f, same[i][0], NULL, 1u << 20, &v, e);
        if (rc == 0)
            rc = hf_config_u32(f, same[i][1], NULL, 1u << 20, &w, e);
        if (rc == 0 && v != w)
            rc = err_set(e, SHOAL_EUNSUPPORTED, "%s is %u and %s %u: they must be equal",
                         same[i][0], v, same[i][1], w);
    }
    return rc;
}
