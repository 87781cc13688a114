/* hf_documents.c - the documents of a Hugging Face folder: reads config.json, and adds all of
 * them to the metadata; see hf_map.h. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
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
        {"modules.json", "huggingface.sentence_modules", false},
        {"tokenizer.json", "tokenizer.huggingface.json", false},
        {"tokenizer_config.json", "tokenizer.huggingface.config", false},
        {"chat_template.jinja", "tokenizer.chat_template", false},
    };
    /* Parts of a tokenizer when there is no tokenizer.json. */
    static const struct document parts[] = {
        {"vocab.txt", "tokenizer.huggingface.vocab_txt", false},
        {"spiece.model", "tokenizer.huggingface.spiece", true},
        {"tokenizer.model", "tokenizer.huggingface.spiece", true},
        {"sentencepiece.bpe.model", "tokenizer.huggingface.spiece", true},
        {"vocab.json", "tokenizer.huggingface.vocab_json", false},
        {"merges.txt", "tokenizer.huggingface.merges_txt", false},
    };
    int rc = add_list(f, documents, sizeof(documents) / sizeof(documents[0]), e);
    if (rc < 0 || model_file_find(f->file, "tokenizer.huggingface.json"))
        return rc;
    return add_list(f, parts, sizeof(parts) / sizeof(parts[0]), e);
}

int hf_documents_check_modules(const struct hf_folder *f, struct err *e)
{
    static const char *const known[] = {"Transformer", "Pooling", "Normalize"};
    struct file_map m;
    int rc = map_document(f, "modules.json", MAX_CONFIG_BYTES, &m, e);
    if (rc <= 0)
        return rc;
    cJSON *json = cJSON_ParseWithLength((const char *)m.bytes, m.n_bytes);
    rc = cJSON_IsArray(json) ? 0 : err_set(e, SHOAL_EFORMAT, "modules.json is not a JSON array");
    for (const cJSON *j = rc == 0 ? json->child : NULL; rc == 0 && j; j = j->next) {
        const char *type = hf_config_str(j, "type"), *dot = strrchr(type, '.');
        bool ok = false;
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            ok = ok || !strcmp(dot ? dot + 1 : type, known[i]);
        if (!ok)
            rc = err_set(e, SHOAL_EUNSUPPORTED, "modules.json: \"%.80s\" is not supported", type);
    }
    cJSON_Delete(json);
    file_map_close(&m);
    return rc;
}

int hf_documents_read_config(struct hf_folder *f, struct err *e)
{
    struct file_map m;
    int rc = map_document(f, "config.json", MAX_CONFIG_BYTES, &m, e);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set(e, SHOAL_EIO, "%s is a folder without config.json", f->path);
    f->config = cJSON_ParseWithLength((const char *)m.bytes, m.n_bytes);
    file_map_close(&m);
    if (!cJSON_IsObject(f->config))
        return err_set(e, SHOAL_EFORMAT, "%s/config.json is not a JSON object", f->path);
    return 0;
}
