/* hf_adapter.c - see hf_adapter.h. */
#include "format/hf/hf_adapter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "format/hf/hf_map.h"

/* The base's architecture and heads: they say what the modules are called in GGUF, and how the rows
 * of queries and keys are ordered there. */
static int read_base(struct hf_folder *f, const struct model_file *base, struct err *e)
{
    struct str name;
    char key[128];
    uint64_t heads = 0, kv_heads;
    if (!model_file_get_str(base, "general.architecture", &name))
        return err_set(e, SHOAL_EFORMAT, "the base model has no general.architecture");
    for (const struct hf_arch *a = hf_decoders; a->model_type && !f->arch; a++)
        if (str_is(name, a->name))
            f->arch = a;
    if (!f->arch)
        return err_set(e, SHOAL_EUNSUPPORTED, "adapters of the architecture \"%.*s\"",
                       (int)(name.n < 60 ? name.n : 60), name.p);
    snprintf(key, sizeof(key), "%s.attention.head_count", f->arch->name);
    if (!model_file_get_u64(base, key, &heads) || heads == 0 || heads > 1024)
        return err_set(e, SHOAL_EFORMAT, "the base model has no %s from 1 to 1024", key);
    snprintf(key, sizeof(key), "%s.attention.head_count_kv", f->arch->name);
    if (!model_file_get_u64(base, key, &kv_heads) || kv_heads == 0 || kv_heads > heads)
        kv_heads = heads;
    f->n_heads = (uint32_t)heads;
    f->n_kv_heads = (uint32_t)kv_heads;
    return 0;
}

/* Settings under which the adapter is not simply scale * B A. */
static int refuse_variants(const struct hf_folder *f, struct err *e)
{
    static const char *const flags[] = {"use_dora", "use_qalora", "lora_bias", "use_bdlora", NULL};
    static const char *const lists[] = {"rank_pattern",
                                        "alpha_pattern",
                                        "modules_to_save",
                                        "layer_replication",
                                        "target_parameters",
                                        "trainable_token_indices",
                                        "alora_invocation_tokens",
                                        NULL};
    const char *type = hf_config_str(f->config, "peft_type");
    const char *bias = hf_config_str(f->config, "bias");
    if (strcmp(type, "LORA") != 0)
        return err_set(e, SHOAL_EUNSUPPORTED, "peft_type \"%.40s\" (LORA is supported)", type);
    if (bias[0] && strcmp(bias, "none") != 0)
        return err_set(e, SHOAL_EUNSUPPORTED, "bias \"%.40s\" (none is supported)", bias);
    for (size_t i = 0; flags[i]; i++)
        if (hf_config_bool_or(f, flags[i], false))
            return err_set(e, SHOAL_EUNSUPPORTED, "%s is not supported", flags[i]);
    for (size_t i = 0; lists[i]; i++) {
        const cJSON *j = cJSON_GetObjectItemCaseSensitive(f->config, lists[i]);
        if (j && !cJSON_IsNull(j) && (j->child || cJSON_IsString(j)))
            return err_set(e, SHOAL_EUNSUPPORTED, "%s is not supported", lists[i]);
    }
    return 0;
}

static int read_settings(struct hf_folder *f, struct err *e)
{
    uint32_t rank;
    float alpha;
    int rc = refuse_variants(f, e);
    if (rc < 0 || (rc = hf_config_u32(f, "r", NULL, 65536, &rank, e)) < 0 ||
        (rc = hf_config_f32_or(f, NULL, "lora_alpha", 8, &alpha, e)) < 0)
        return rc;
    if (hf_config_bool_or(f, "use_rslora", false)) /* alpha / sqrt(rank) instead of alpha / rank */
        alpha *= sqrtf((float)rank);
    model_file_put_str(f->file, "general.type", "adapter", 7);
    model_file_put_str(f->file, "general.architecture", f->arch->name, strlen(f->arch->name));
    model_file_put_str(f->file, "adapter.type", "lora", 4);
    model_file_put_f32(f->file, "adapter.lora.alpha", alpha);
    return model_file_check(f->file, e);
}

/* base_model.model.MODULE.lora_A.weight */
static int add_tensor(struct hf_folder *f, const struct safetensors_tensor *t, struct err *e)
{
    static const char prefix[] = "base_model.model.";
    static const char *const ends[] = {".lora_A.weight", ".lora_B.weight"};
    const size_t skip = strncmp(t->name, prefix, sizeof(prefix) - 1) ? 0 : sizeof(prefix) - 1;
    char module[192], name[HF_NAME_BYTES], full[HF_NAME_BYTES + 8];
    const struct hf_rule *r;
    for (int b = 0; b < 2; b++) {
        if (!str_ends_with(t->name, ends[b]))
            continue;
        const size_t n = strlen(t->name) - strlen(ends[b]) - skip;
        if ((size_t)snprintf(module, sizeof(module), "%.*s.weight", (int)n, t->name + skip) >=
            sizeof(module))
            break;
        int rc = hf_tensor_name(f, module, &r, name, e);
        if (rc < 0)
            return rc;
        if (r->op == HF_SKIP || !r->to)
            break;
        snprintf(full, sizeof(full), "%s.lora_%c", name, b ? 'b' : 'a');
        /* rows of B are those of the matrix; the rows of A are its own */
        const bool ordered = b && (r->op == HF_ROPE_Q || r->op == HF_ROPE_K || r->op == HF_QKV);
        return hf_tensor_add(f, t, ordered ? r->op : HF_COPY, full, e);
    }
    return err_set(e, SHOAL_EUNSUPPORTED, "tensor %.150s is no LoRA matrix of a %s", t->name,
                   f->arch->model_type);
}

static int read_adapter(struct hf_folder *f, const struct model_file *base, struct err *e)
{
    int rc = hf_documents_read_config(f, "adapter_config.json", e);
    if (rc == 0)
        rc = safetensors_open(&f->st, f->path, e);
    if (rc < 0)
        return rc; /* these texts name the folder */
    rc = read_base(f, base, e);
    if (rc == 0)
        rc = read_settings(f, e);
    for (size_t i = 0; rc == 0 && i < f->st->n_tensors; i++)
        rc = add_tensor(f, &f->st->tensors[i], e);
    f->file->n_bytes = f->st->n_bytes;
    safetensors_take_maps(f->st, &f->file->maps, &f->file->n_maps);
    return rc < 0 ? err_wrap(e, "%s", f->path) : 0;
}

int hf_adapter_open(struct model_file **out, const char *path, const struct model_file *base,
                    struct err *e)
{
    struct hf_folder f = {.path = path};
    *out = NULL;
    int rc = model_file_create(&f.file, e);
    if (rc == 0)
        rc = read_adapter(&f, base, e);
    if (rc == 0) {
        *out = f.file;
        f.file = NULL;
    }
    model_file_close(f.file);
    safetensors_close(f.st);
    cJSON_Delete(f.config);
    return rc;
}
