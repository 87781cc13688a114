/* onnx_files.c - see onnx_files.h. */
#include "engine/onnx/onnx_files.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "format/hf/hf_folder.h"
#include "format/model_open.h"

static bool join(char out[PATH_MAX], const char *folder, const char *name)
{
    int n = snprintf(out, PATH_MAX, "%s/%s", folder, name);
    return n > 0 && n < PATH_MAX;
}

static bool has(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    return join(path, folder, name) && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool has_any(const char *folder, const char *const *names)
{
    for (; *names; names++)
        if (has(folder, *names))
            return true;
    return false;
}

/* The only .onnx file of the folder: 1; none: 0. */
static int only_file(char out[PATH_MAX], const char *folder, struct err *e)
{
    DIR *dir = opendir(folder);
    int n = 0;
    for (struct dirent *d; dir && (d = readdir(dir));)
        if (str_ends_with(d->d_name, ".onnx") && has(folder, d->d_name)) {
            n++;
            if (!join(out, folder, d->d_name))
                n = 2;
        }
    if (dir)
        closedir(dir);
    return n < 2 ? n
                 : err_set(e, SHOAL_EINVAL, "%s has several .onnx files: name the one to run",
                           folder);
}

static int find_in(struct onnx_files *out, const char *folder, struct err *e)
{
    /* 8 bits first: best on edge machines, and the default of other programs. */
    static const char *const usual[] = {"model_quantized.onnx", "model_int8.onnx", "model.onnx",
                                        "decoder_model_merged_quantized.onnx",
                                        "decoder_model_merged.onnx"};
    static const char *const native[] = {"model.safetensors", "model.safetensors.index.json", NULL};
    char sub[PATH_MAX];
    if (has_any(folder, native))
        return 0;
    if (!join(sub, folder, "onnx"))
        return err_set(e, SHOAL_ELIMIT, "path of %zu bytes", strlen(folder));
    const char *const folders[] = {sub, folder};
    snprintf(out->folder, sizeof(out->folder), "%s", folder);
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
            if (has(folders[k], usual[i]) && join(out->model, folders[k], usual[i]))
                return 1;
    int rc = only_file(out->model, sub, e);
    return rc == 0 ? only_file(out->model, folder, e) : rc;
}

static void find_folder(struct onnx_files *out)
{
    static const char *const documents[] = {"tokenizer.json", "vocab.txt", "config.json", NULL};
    char *folder = out->folder;
    snprintf(folder, PATH_MAX, "%s", out->model);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    else
        snprintf(folder, PATH_MAX, ".");
    if (has_any(folder, documents))
        return;
    size_t n = strlen(folder);
    if (n + 4 <= PATH_MAX)
        memcpy(folder + n, "/..", 4);
    if (!has_any(folder, documents))
        folder[0] = '\0';
}

int onnx_files_find(struct onnx_files *out, const char *path, struct err *e)
{
    struct stat st;
    memset(out, 0, sizeof(*out));
    if (strlen(path) >= sizeof(out->model))
        return err_set(e, SHOAL_ELIMIT, "path of %zu bytes", strlen(path));
    if (stat(path, &st) < 0)
        return str_ends_with(path, ".onnx")
                   ? err_set(e, SHOAL_EIO, "cannot open %s: %s", path, strerror(errno))
                   : 0;
    if (S_ISDIR(st.st_mode))
        return find_in(out, path, e);
    if (!S_ISREG(st.st_mode) || !str_ends_with(path, ".onnx"))
        return 0;
    snprintf(out->model, sizeof(out->model), "%s", path);
    find_folder(out);
    return 1;
}

int onnx_files_open(const struct onnx_files *f, struct model_file **out, struct err *e)
{
    *out = NULL;
    if (!f->folder[0])
        return err_set(e, SHOAL_EIO,
                       "%s: no tokenizer.json, vocab.txt or config.json next to it or one folder "
                       "above",
                       f->model);
    return hf_folder_open_documents(out, f->folder, e);
}

int onnx_files_view(struct model_file **out, const char *path, struct err *e)
{
    struct onnx_files files;
    *out = NULL;
    int rc = onnx_files_find(&files, path, e);
    return rc < 0 ? rc : rc == 1 ? onnx_files_open(&files, out, e) : model_open(out, path, e);
}

/* RoBERTa and its relatives number positions from the padding id + 1, so those rows do not count.
 */
static uint32_t skipped_positions(const cJSON *config)
{
    static const char *const kin[] = {"roberta", "xlm-roberta", "camembert", "mpnet", "longformer"};
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(config, "model_type"));
    const cJSON *pad = cJSON_GetObjectItemCaseSensitive(config, "pad_token_id");
    for (size_t i = 0; type && i < sizeof(kin) / sizeof(*kin); i++)
        if (strcmp(type, kin[i]) == 0)
            return cJSON_IsNumber(pad) && pad->valuedouble >= 0 && pad->valuedouble < 1000
                       ? (uint32_t)pad->valuedouble + 1
                       : 2;
    return 0;
}

uint32_t onnx_files_n_ctx(const struct model_file *m)
{
    static const char *const keys[] = {"max_position_embeddings", "n_positions", "n_ctx"};
    struct str text;
    uint32_t n_ctx = 0;
    if (!model_file_get_str(m, "huggingface.config", &text))
        return 0;
    cJSON *config = cJSON_ParseWithLength(text.p, text.n);
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys) && n_ctx == 0; i++) {
        const cJSON *v = cJSON_GetObjectItemCaseSensitive(config, keys[i]);
        if (cJSON_IsNumber(v) && v->valuedouble >= 1 && v->valuedouble <= 1 << 24)
            n_ctx = (uint32_t)v->valuedouble;
    }
    uint32_t skip = skipped_positions(config);
    cJSON_Delete(config);
    return n_ctx > skip ? n_ctx - skip : n_ctx;
}
