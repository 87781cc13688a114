/* hf_folder.c - see hf_folder.h.
 *
 * The architecture's table (hf_map_*.c) says what each tensor is called in GGUF and what must be
 * done to it; one that it does not know is an error, since it means a model that would be computed
 * wrongly. */
#include "format/hf/hf_folder.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "format/hf/hf_map.h"

static int find_arch(struct hf_folder *f, struct err *e)
{
    const char *type = hf_config_str(f->config, "model_type");
    const struct hf_arch *const lists[] = {hf_encoders, hf_seq2seqs, hf_decoders};
    char known[400] = "";
    size_t n = 0;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        for (const struct hf_arch *a = lists[i]; a->model_type; a++) {
            if (!strcmp(type, a->model_type)) {
                f->arch = a;
                return 0;
            }
            if (n < sizeof(known))
                n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "",
                                      a->model_type);
        }
    return type[0] ? err_set(e, SHOAL_EUNSUPPORTED, "model_type \"%.60s\" (known: %s)", type, known)
                   : err_set(e, SHOAL_EFORMAT, "config.json has no model_type");
}

/* ---- tensors -------------------------------------------------------------------------------- */

static int add_tensor(struct hf_folder *f, const struct safetensors_tensor *t, struct err *e)
{
    char name[HF_NAME_BYTES];
    const struct hf_rule *r = NULL;
    int rc = hf_tensor_name(f, t->name, &r, name, e);
    if (rc < 0 || r->op == HF_SKIP || (r->op == HF_OUTPUT && f->tied))
        return rc;
    return hf_tensor_add(f, t, r->op, name, e);
}

/* A table of divisors of the rotation frequencies, which config.json has. */
static int add_rope_table(struct hf_folder *f, const struct hf_rope_table *table, struct err *e)
{
    const size_t bytes = table->n * sizeof(float);
    float *copy = model_file_alloc(f->file, bytes);
    struct model_file_tensor *t = copy ? model_file_add_tensor(f->file) : NULL;
    if (!t)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the rotation table");
    memcpy(copy, table->v, bytes);
    *t = (struct model_file_tensor){.name = {table->name, strlen(table->name)},
                                    .type = QUANT_F32,
                                    .n_dims = 1,
                                    .dims = {table->n, 1, 1, 1},
                                    .data = (const uint8_t *)copy,
                                    .n_bytes = bytes,
                                    .in_memory = true};
    return 0;
}

static int add_tensors(struct hf_folder *f, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < f->st->n_tensors; i++)
        rc = add_tensor(f, &f->st->tensors[i], e);
    for (uint32_t i = 0; rc == 0 && i < f->n_rope; i++)
        rc = add_rope_table(f, &f->rope[i], e);
    f->file->n_bytes = f->st->n_bytes;
    safetensors_take_maps(f->st, &f->file->maps, &f->file->n_maps);
    return rc;
}

/* ---- open ----------------------------------------------------------------------------------- */

static void add_general(struct hf_folder *f, const char *arch)
{
    char real[PATH_MAX];
    const char *name = realpath(f->path, real) ? strrchr(real, '/') : NULL;
    const cJSON *classes = cJSON_GetObjectItemCaseSensitive(f->config, "architectures");
    const char *first = cJSON_GetStringValue(cJSON_GetArrayItem(classes, 0));
    f->labels_tokens = first && str_ends_with(first, "ForTokenClassification");
    model_file_put_str(f->file, "general.architecture", arch, strlen(arch));
    if (name && name[1])
        model_file_put_str(f->file, "general.name", name + 1, strlen(name + 1));
}

/* Everything but the tensors. */
static int describe(struct hf_folder *f, struct err *e)
{
    int rc = hf_documents_add(f, e);
    return rc < 0 ? rc : model_file_check(f->file, e);
}

static int read_documents(struct hf_folder *f, struct err *e)
{
    int rc = hf_documents_has(f, "config.json") ? hf_documents_read_config(f, "config.json", e) : 0;
    if (rc < 0)
        return rc; /* this text names the folder */
    const char *type = hf_config_str(f->config, "model_type");
    add_general(f, type[0] ? type : "unknown");
    rc = hf_documents_add_modules(f, false, e);
    if (rc == 0)
        rc = describe(f, e);
    return rc < 0 ? err_wrap(e, "%s", f->path) : 0;
}

static int read_model(struct hf_folder *f, struct err *e)
{
    int rc = hf_documents_read_config(f, "config.json", e);
    if (rc == 0)
        rc = safetensors_open(&f->st, f->path, e);
    if (rc < 0)
        return rc; /* these texts name the folder */
    rc = find_arch(f, e);
    if (rc == 0) {
        add_general(f, f->arch->name);
        rc = f->arch->configure(f, e);
    }
    if (rc == 0)
        rc = hf_documents_add_modules(f, true, e);
    if (rc == 0)
        rc = describe(f, e);
    if (rc == 0)
        rc = add_tensors(f, e);
    return rc < 0 ? err_wrap(e, "%s", f->path) : 0;
}

static int open_folder(struct model_file **out, const char *path,
                       int (*read)(struct hf_folder *f, struct err *e), struct err *e)
{
    struct hf_folder f = {.path = path};
    struct err ignored = {0};

    *out = NULL;
    e = e ? e : &ignored;
    int rc = model_file_create(&f.file, e);
    if (rc == 0)
        rc = read(&f, e);
    if (rc == 0) {
        *out = f.file;
        f.file = NULL;
    }
    model_file_close(f.file);
    safetensors_close(f.st);
    for (uint32_t i = 0; i < f.n_rope; i++)
        mem_free(f.rope[i].v);
    cJSON_Delete(f.config);
    return rc;
}

int hf_folder_open_documents(struct model_file **out, const char *path, struct err *e)
{
    return open_folder(out, path, read_documents, e);
}

int hf_folder_open(struct model_file **out, const char *path, struct err *e)
{
    return open_folder(out, path, read_model, e);
}
