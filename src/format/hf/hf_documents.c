/* hf_documents.c - the documents of a Hugging Face folder: reads config.json, and adds all of
 * them to the metadata; see hf_map.h. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "format/hf/hf_map.h"

enum {
    MAX_CONFIG_BYTES = 16 << 20,
    MAX_DOCUMENT_BYTES = 256 << 20,
};

/* false: the path does not fit. */
static bool path_of(char *out, size_t cap, const struct hf_folder *f, const char *name)
{
    return (size_t)snprintf(out, cap, "%s/%s", f->path, name) < cap;
}

bool hf_documents_has(const struct hf_folder *f, const char *name)
{
    char path[PATH_MAX];
    return path_of(path, sizeof(path), f, name) && access(path, F_OK) == 0;
}

/* 1 when the folder has the file (and it is mapped), 0 when not. */
static int map_document(const struct hf_folder *f, const char *name, size_t max, struct file_map *m,
                        struct err *e)
{
    char path[PATH_MAX];
    *m = (struct file_map){0};
    if (!path_of(path, sizeof(path), f, name))
        return err_set(e, SHOAL_EINVAL, "a path of %zu bytes is too long", strlen(f->path));
    if (access(path, F_OK) < 0)
        return 0;
    int rc = file_map_open(m, path, e);
    if (rc == 0 && m->n_bytes > max) {
        rc = err_set(e, SHOAL_ELIMIT, "%s has %zu bytes (at most %zu)", path, m->n_bytes, max);
        file_map_close(m);
    }
    return rc < 0 ? rc : 1;
}

/* ---- as metadata ---------------------------------------------------------------------------- */

struct document {
    const char *file, *key;
    bool binary; /* an array of bytes instead of a string */
};

static int add_list(struct hf_folder *f, const struct document *list, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        struct file_map m;
        if (model_file_find(f->file, list[i].key))
            continue; /* the first of several names */
        int rc = map_document(f, list[i].file, MAX_DOCUMENT_BYTES, &m, e);
        if (rc < 0)
            return rc;
        if (rc == 1)
            model_file_put_document(f->file, list[i].key, list[i].binary, &m);
    }
    return 0;
}

int hf_documents_add(struct hf_folder *f, struct err *e)
{
    static const struct document documents[] = {
        {"config.json", "huggingface.config", false},
        {"generation_config.json", "huggingface.generation_config", false},
        {"preprocessor_config.json", "huggingface.preprocessor", false},
        {"1_Pooling/config.json", "huggingface.sentence_pooling", false},
        {"sentence_bert_config.json", "huggingface.sentence_config", false},
        {"config_sentence_transformers.json", "huggingface.sentence_settings", false},
        {"modules.json", "huggingface.sentence_modules", false},
        {"tokenizer.json", "tokenizer.huggingface.json", false},
        {"tokenizer_config.json", "tokenizer.huggingface.config", false},
        {"chat_template.jinja", "tokenizer.chat_template", false},
    };
    /* Parts of a tokenizer when there is no tokenizer.json. */
    static const struct document parts[] = {
        {"vocab.txt", "tokenizer.huggingface.vocab_txt", false},
        {"spiece.model", "tokenizer.huggingface.spiece", true},
        {"spm.model", "tokenizer.huggingface.spiece", true},
        {"tokenizer.model", "tokenizer.huggingface.spiece", true},
        {"sentencepiece.bpe.model", "tokenizer.huggingface.spiece", true},
        {"source.spm", "tokenizer.huggingface.source_spm", true},
        {"vocab.json", "tokenizer.huggingface.vocab_json", false},
        {"merges.txt", "tokenizer.huggingface.merges_txt", false},
    };
    int rc = add_list(f, documents, sizeof(documents) / sizeof(documents[0]), e);
    if (rc < 0 || model_file_find(f->file, "tokenizer.huggingface.json"))
        return rc;
    return add_list(f, parts, sizeof(parts) / sizeof(parts[0]), e);
}

/* ---- the modules of a sentence embedder ------------------------------------------------------ */

/* A copy of a tensor of a dense layer, under its name in the model. */
static int add_dense_tensor(struct hf_folder *f, const struct safetensors *st, const char *from,
                            const char *to, struct err *e)
{
    static const enum quant_type types[] = {[SAFETENSORS_F32] = QUANT_F32,
                                            [SAFETENSORS_F16] = QUANT_F16,
                                            [SAFETENSORS_BF16] = QUANT_BF16};
    const struct safetensors_tensor *t = safetensors_find(st, from);
    if (!t)
        return 0; /* heads_sentence.c knows whether it is required */
    if ((t->type != SAFETENSORS_F32 && t->type != SAFETENSORS_F16 && t->type != SAFETENSORS_BF16) ||
        t->n_dims < 1 || t->n_dims > 2)
        return err_set(e, SHOAL_EUNSUPPORTED, "tensor %s is of type %s with %u dimensions", from,
                       safetensors_type_name(t->type), t->n_dims);
    uint8_t *data = model_file_alloc(f->file, t->n_bytes);
    char *name = data ? model_file_alloc(f->file, strlen(to) + 1) : NULL;
    struct model_file_tensor *g = name ? model_file_add_tensor(f->file) : NULL;
    if (!g)
        return err_set(e, SHOAL_ENOMEM, "out of memory for tensor %s", from);
    memcpy(data, t->data, t->n_bytes);
    memcpy(name, to, strlen(to) + 1);
    *g = (struct model_file_tensor){
        .name = {name, strlen(to)},
        .type = types[t->type],
        .n_dims = t->n_dims,
        .dims = {t->dims[t->n_dims - 1], t->n_dims == 2 ? t->dims[0] : 1, 1, 1},
        .data = data,
        .n_bytes = t->n_bytes,
        .in_memory = true};
    return 0;
}

static int add_dense(struct hf_folder *f, const char *dir, uint32_t which, struct err *e)
{
    static const char *const parts[] = {"weight", "bias"};
    char path[PATH_MAX], from[32], to[64];
    struct safetensors *st = NULL;
    if ((size_t)snprintf(path, sizeof(path), "%s/%s/model.safetensors", f->path, dir) >=
        sizeof(path))
        return err_set(e, SHOAL_EINVAL, "a path of %zu bytes is too long", strlen(f->path));
    int rc = safetensors_open(&st, path, e);
    for (size_t i = 0; rc == 0 && i < 2; i++) {
        snprintf(from, sizeof(from), "linear.%s", parts[i]);
        snprintf(to, sizeof(to), "sentence_dense.%u.%s", which, parts[i]);
        rc = add_dense_tensor(f, st, from, to, e);
    }
    safetensors_close(st);
    return rc;
}

/* Adds path/config.json of a module under a key. */
static int add_module_config(struct hf_folder *f, const char *dir, const char *key, struct err *e)
{
    char name[300];
    struct file_map m;
    if (!dir[0] || dir[0] == '.' || strchr(dir, '/') || strlen(dir) > 255)
        return err_set(e, SHOAL_EFORMAT, "\"%.80s\" is not the name of a folder", dir);
    snprintf(name, sizeof(name), "%s/config.json", dir);
    int rc = map_document(f, name, MAX_CONFIG_BYTES, &m, e);
    if (rc == 0)
        return err_set(e, SHOAL_EFORMAT, "%s is missing", name);
    if (rc == 1)
        model_file_put_document(f->file, key, false, &m);
    return rc < 0 ? rc : 0;
}

static int add_module(struct hf_folder *f, const cJSON *j, bool tensors, uint32_t *n_dense,
                      struct err *e)
{
    const char *type = hf_config_str(j, "type"), *dot = strrchr(type, '.');
    const char *dir = hf_config_str(j, "path");
    const char *name = dot ? dot + 1 : type;
    char key[64];
    if (!strcmp(name, "Transformer") || !strcmp(name, "Normalize"))
        return 0;
    if (!strcmp(name, "Pooling"))
        return add_module_config(f, dir, "huggingface.sentence_pooling", e);
    if (strcmp(name, "Dense") != 0)
        return err_set(e, SHOAL_EUNSUPPORTED, "\"%.80s\" is not supported", type);
    snprintf(key, sizeof(key), "huggingface.sentence_dense.%u", *n_dense);
    int rc = add_module_config(f, dir, key, e);
    if (rc == 0 && tensors)
        rc = add_dense(f, dir, *n_dense, e);
    ++*n_dense;
    return rc;
}

int hf_documents_add_modules(struct hf_folder *f, bool tensors, struct err *e)
{
    struct file_map m;
    uint32_t n_dense = 0;
    int rc = map_document(f, "modules.json", MAX_CONFIG_BYTES, &m, e);
    if (rc <= 0)
        return rc;
    cJSON *json = cJSON_ParseWithLength((const char *)m.bytes, m.n_bytes);
    rc = cJSON_IsArray(json) ? 0 : err_set(e, SHOAL_EFORMAT, "modules.json is not a JSON array");
    for (const cJSON *j = rc == 0 ? json->child : NULL; rc == 0 && j; j = j->next) {
        rc = add_module(f, j, tensors, &n_dense, e);
        if (rc < 0)
            err_wrap(e, "modules.json");
    }
    cJSON_Delete(json);
    file_map_close(&m);
    return rc;
}

int hf_documents_read_config(struct hf_folder *f, const char *name, struct err *e)
{
    struct file_map m;
    int rc = map_document(f, name, MAX_CONFIG_BYTES, &m, e);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set(e, SHOAL_EIO, "%s is a folder without %s", f->path, name);
    f->config = cJSON_ParseWithLength((const char *)m.bytes, m.n_bytes);
    file_map_close(&m);
    if (!cJSON_IsObject(f->config))
        return err_set(e, SHOAL_EFORMAT, "%s/%s is not a JSON object", f->path, name);
    return 0;
}
