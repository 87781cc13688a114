/* hf_documents.c - the documents of a Hugging Face folder: config.json for us, and all of them as
 * metadata; see hf_map.h. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "model/hf_map.h"

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
        return err_set(e, SHOAL_EINVAL, "path of %zu bytes", strlen(f->path));
    if (access(path, F_OK) < 0)
        return 0;
    int rc = file_map_open(m, path, e);
    if (rc == 0 && m->n_bytes > max) {
        rc = err_set(e, SHOAL_ELIMIT, "%s has %zu bytes (at most %zu)", path, m->n_bytes, max);
        file_map_close(m);
    }
    return rc < 0 ? rc : 1;
}

/* ---- vocab.txt ------------------------------------------------------------------------------ */

struct vocab {
    struct gguf_str *tokens;
    int32_t *types;
    size_t n;
    struct buf text; /* tokens as GGUF spells them; the strings are offsets until it is complete */
};

/* GGUF's spelling: U+2581 in front of what begins a word instead of "##" before what does not. */
static void add_word(struct vocab *v, const char *p, size_t n)
{
    bool special = n > 2 && p[0] == '[' && p[n - 1] == ']';
    bool inside = n > 2 && p[0] == '#' && p[1] == '#';
    size_t from = v->text.len;
    if (!special && !inside)
        buf_puts(&v->text, "\xe2\x96\x81");
    buf_put(&v->text, inside ? p + 2 : p, inside ? n - 2 : n);
    v->tokens[v->n] = (struct gguf_str){NULL, v->text.len - from};
    v->types[v->n++] = special ? 3 : 1; /* control, normal */
}

static void put_vocab(struct hf_folder *f, struct vocab *v)
{
    static const struct {
        const char *word, *key;
    } specials[] = {
        {"[CLS]", "tokenizer.ggml.cls_token_id"},
        {"[CLS]", "tokenizer.ggml.bos_token_id"},
        {"[SEP]", "tokenizer.ggml.seperator_token_id"},
        {"[SEP]", "tokenizer.ggml.eos_token_id"},
        {"[UNK]", "tokenizer.ggml.unknown_token_id"},
        {"[PAD]", "tokenizer.ggml.padding_token_id"},
        {"[MASK]", "tokenizer.ggml.mask_token_id"},
    };
    const char *at = buf_str(&v->text);
    for (size_t i = 0; i < v->n; at += v->tokens[i++].n)
        v->tokens[i].p = at;
    gguf_meta_str(&f->meta, "tokenizer.ggml.model", "bert", 4);
    gguf_meta_strings(&f->meta, "tokenizer.ggml.tokens", v->tokens, v->n);
    gguf_meta_array(&f->meta, "tokenizer.ggml.token_type", GGUF_TYPE_I32, v->types, v->n);
    for (size_t s = 0; s < sizeof(specials) / sizeof(specials[0]); s++)
        for (size_t i = 0; i < v->n; i++)
            if (v->tokens[i].n == strlen(specials[s].word) &&
                !memcmp(v->tokens[i].p, specials[s].word, v->tokens[i].n)) {
                gguf_meta_u32(&f->meta, specials[s].key, (uint32_t)i);
                break;
            }
}

/* One token a line. */
static int add_vocab(struct hf_folder *f, struct err *e)
{
    struct file_map m;
    struct vocab v = {0};
    int rc = map_document(f, "vocab.txt", MAX_DOCUMENT_BYTES, &m, e);
    if (rc <= 0)
        return rc;
    const char *p = (const char *)m.bytes, *end = p + m.n_bytes;
    size_t n = 1;
    for (const char *q = p; q < end; q++)
        n += *q == '\n';
    v.tokens = mem_zalloc_n(n, sizeof(*v.tokens));
    v.types = mem_zalloc_n(n, sizeof(*v.types));
    buf_init(&v.text, (size_t)4 * MAX_DOCUMENT_BYTES);
    rc = v.tokens && v.types ? 0 : err_set(e, SHOAL_ENOMEM, "vocabulary of %zu tokens", n);
    while (rc == 0 && p < end) {
        const char *q = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((q ? q : end) - p);
        add_word(&v, p, len > 0 && p[len - 1] == '\r' ? len - 1 : len);
        p = q ? q + 1 : end;
    }
    if (rc == 0 && v.text.rc < 0)
        rc = err_set(e, v.text.rc, "vocabulary of %zu tokens", n);
    if (rc == 0)
        put_vocab(f, &v);
    mem_free(v.tokens);
    mem_free(v.types);
    buf_fini(&v.text);
    file_map_close(&m);
    return rc;
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
        if (gguf_meta_find(&f->meta, list[i].key))
            continue; /* the first of several names */
        int rc = map_document(f, list[i].file, MAX_DOCUMENT_BYTES, &m, e);
        if (rc < 0)
            return rc;
        if (rc == 1 && list[i].binary)
            gguf_meta_array(&f->meta, list[i].key, GGUF_TYPE_U8, m.bytes, m.n_bytes);
        else if (rc == 1)
            gguf_meta_str(&f->meta, list[i].key, (const char *)m.bytes, m.n_bytes);
        file_map_close(&m);
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
    /* What a tokenizer is made of where there is no tokenizer.json. */
    static const struct document parts[] = {
        {"vocab.txt", "tokenizer.huggingface.vocab_txt", false},
        {"spiece.model", "tokenizer.huggingface.spiece", true},
        {"tokenizer.model", "tokenizer.huggingface.spiece", true},
        {"sentencepiece.bpe.model", "tokenizer.huggingface.spiece", true},
        {"vocab.json", "tokenizer.huggingface.vocab_json", false},
        {"merges.txt", "tokenizer.huggingface.merges_txt", false},
    };
    int rc = add_list(f, documents, sizeof(documents) / sizeof(documents[0]), e);
    if (rc < 0 || gguf_meta_find(&f->meta, "tokenizer.huggingface.json"))
        return rc;
    rc = add_list(f, parts, sizeof(parts) / sizeof(parts[0]), e);
    return rc < 0 ? rc : add_vocab(f, e);
}

int hf_documents_check_modules(const struct hf_folder *f, struct err *e)
{
    static const char *const known[] = {"Transformer", "Pooling", "Normalize"};
    struct file_map m;
    int rc = map_document(f, "modules.json", MAX_CONFIG_BYTES, &m, e);
    if (rc <= 0)
        return rc;
    cJSON *json = cJSON_ParseWithLength((const char *)m.bytes, m.n_bytes);
    rc = cJSON_IsArray(json) ? 0 : err_set(e, SHOAL_EFORMAT, "modules.json is no JSON array");
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
        return err_set(e, SHOAL_EFORMAT, "%s/config.json is no JSON object", f->path);
    return 0;
}
