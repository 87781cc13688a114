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

#include "base/ascii.h"
#include "base/mem.h"
#include "base/str.h"
#include "format/hf/hf_map.h"

enum {
    MAX_NAME_BYTES = 64, /* of a tensor in GGUF, with its NUL */
    MAX_LAYERS = 1024,
};

static int find_arch(struct hf_folder *f, struct err *e)
{
    const char *type = hf_config_str(f->config, "model_type");
    const struct hf_arch *const lists[] = {hf_encoders, hf_decoders};
    char known[160] = "";
    size_t n = 0;
    for (size_t i = 0; i < 2; i++)
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

/* ---- names ---------------------------------------------------------------------------------- */

struct match {
    uint32_t layer;
    const char *last; /* the value of '*' */
};

static bool matches(const char *pattern, const char *name, struct match *m)
{
    for (; *pattern; pattern++) {
        if (*pattern == '#') {
            const char *from = name;
            m->layer = 0;
            while (ascii_is_digit(*name) && m->layer < MAX_LAYERS)
                m->layer = m->layer * 10 + (uint32_t)(*name++ - '0');
            if (name == from || m->layer >= MAX_LAYERS || (from[0] == '0' && name != from + 1))
                return false;
        } else if (*pattern == '*') {
            m->last = name;
            return name[0] != '\0' && !strchr(name, '.');
        } else if (*pattern != *name++) {
            return false;
        }
    }
    return *name == '\0';
}

/* Finds the rule for a tensor, with or without the prefix of the architecture. */
static const struct hf_rule *find_rule(const struct hf_arch *a, const char *name, struct match *m)
{
    size_t n = strlen(a->prefix);
    bool has = n > 0 && !strncmp(name, a->prefix, n);
    for (int bare = has ? 1 : 0; bare >= 0; bare--)
        for (const struct hf_rule *r = a->rules; r->from; r++)
            if (matches(r->from, bare ? name + n : name, m))
                return r;
    return NULL;
}

/* The name in GGUF; false when it is too long. */
static bool make_name(char out[MAX_NAME_BYTES], const char *to, const struct match *m)
{
    size_t n = 0;
    const char *last = m->last;
    /* names of BERT's norms in early files */
    if (last && !strcmp(last, "gamma"))
        last = "weight";
    else if (last && !strcmp(last, "beta"))
        last = "bias";
    for (; *to && n < MAX_NAME_BYTES; to++) {
        size_t room = MAX_NAME_BYTES - n;
        if (*to == '#')
            n += (size_t)snprintf(out + n, room, "%u", m->layer);
        else if (*to == '*')
            n += (size_t)snprintf(out + n, room, "%s", last);
        else
            out[n++] = *to;
    }
    if (n >= MAX_NAME_BYTES)
        return false;
    out[n] = '\0';
    return true;
}

/* ---- tensors -------------------------------------------------------------------------------- */

static int set_shape(struct model_file_tensor *g, const struct safetensors_tensor *t, struct err *e)
{
    static const struct {
        enum safetensors_type from;
        enum quant_type to;
    } map[] = {
        {SAFETENSORS_F32, QUANT_F32}, {SAFETENSORS_F16, QUANT_F16}, {SAFETENSORS_BF16, QUANT_BF16}};
    bool known = false;
    for (size_t i = 0; i < 3; i++)
        if (map[i].from == t->type) {
            g->type = map[i].to;
            known = true;
        }
    if (!known)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "tensor %.150s is of type %s (F32, F16 and BF16 are supported)", t->name,
                       safetensors_type_name(t->type));
    if (t->n_dims == 0 || t->n_dims > MODEL_FILE_MAX_DIMS)
        return err_set(e, SHOAL_EUNSUPPORTED, "tensor %.150s has %u dimensions", t->name,
                       t->n_dims);
    g->n_dims = t->n_dims;
    for (uint32_t d = 0; d < MODEL_FILE_MAX_DIMS; d++)
        g->dims[d] = d < t->n_dims ? t->dims[t->n_dims - 1 - d] : 1;
    if (t->n_bytes == 0 || g->dims[0] > INT32_MAX)
        return err_set(e, SHOAL_EFORMAT, "tensor %.150s is empty or too wide", t->name);
    g->data = t->data;
    g->n_bytes = t->n_bytes;
    g->map = t->map;
    return 0;
}

/* Matrices stay as they are: model_file_rows reorders a few rows at a time. */
static void reorder(struct model_file_tensor *g, enum model_file_order order)
{
    g->order = order;
    g->stored = g->data;
    g->data = NULL;
}

static void transpose(struct model_file_tensor *g)
{
    if (g->n_dims != 2) /* a bias */
        return;
    uint64_t rows = g->dims[1];
    g->dims[1] = g->dims[0];
    g->dims[0] = rows;
    reorder(g, MODEL_FILE_TRANSPOSED);
}

/* Rows of each head from (first half, second half) to neighbouring pairs. */
static int pair_rows(struct hf_folder *f, struct model_file_tensor *g, uint32_t n_heads,
                     struct err *e)
{
    uint64_t rows = g->n_dims == 1 ? g->dims[0] : g->dims[1];
    if (g->n_dims > 2 || rows % n_heads != 0 || rows / n_heads % 2 != 0)
        return err_set(e, SHOAL_EFORMAT, "%llu rows are not %u heads", (unsigned long long)rows,
                       n_heads);
    g->n_heads = n_heads;
    reorder(g, MODEL_FILE_HALVES);
    if (g->n_dims == 2)
        return 0;
    /* a bias is small: reorder it now */
    uint8_t *out = model_file_alloc(f->file, g->n_bytes);
    if (!out)
        return err_set(e, SHOAL_ENOMEM, "out of memory to reorder a tensor of %zu bytes",
                       g->n_bytes);
    struct model_file_tensor column = *g;
    column.dims[0] = 1;
    column.dims[1] = rows;
    model_file_rows(&column, 0, rows, 0, 1, out);
    g->order = MODEL_FILE_PLAIN;
    g->data = out;
    g->in_memory = true;
    return 0;
}

static int drop_rows(const struct hf_folder *f, struct model_file_tensor *g, struct err *e)
{
    if (g->n_dims != 2 || g->dims[1] <= f->skip_positions)
        return err_set(e, SHOAL_EFORMAT, "too few positions");
    size_t bytes = g->n_bytes / (size_t)g->dims[1] * f->skip_positions;
    g->dims[1] -= f->skip_positions;
    g->data += bytes;
    g->n_bytes -= bytes;
    return 0;
}

static int apply(struct hf_folder *f, struct model_file_tensor *g, enum hf_op op, struct err *e)
{
    switch (op) {
    case HF_TRANSPOSE:
        transpose(g);
        return 0;
    case HF_ROPE_Q:
        return pair_rows(f, g, f->n_heads, e);
    case HF_ROPE_K:
        return pair_rows(f, g, f->n_kv_heads, e);
    case HF_POSITIONS:
        return drop_rows(f, g, e);
    default:
        return 0;
    }
}

static int add_tensor(struct hf_folder *f, const struct safetensors_tensor *t, struct err *e)
{
    struct match m = {0, NULL};
    char name[MAX_NAME_BYTES];
    const struct hf_rule *r = find_rule(f->arch, t->name, &m);
    if (!r)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "tensor %.150s is not part of the %s architecture as it is known here",
                       t->name, f->arch->model_type);
    if (r->op == HF_SKIP || (r->op == HF_OUTPUT && f->tied))
        return 0;
    const char *to = r->op == HF_HEAD && f->labels_tokens ? "tag.output.*" : r->to;
    if (!make_name(name, to, &m))
        return err_set(e, SHOAL_EFORMAT, "the name of tensor %.150s is too long", t->name);
    if (model_file_find_tensor(f->file, name))
        return err_set(e, SHOAL_EFORMAT, "tensor %.150s: %s is there twice", t->name, name);
    struct model_file_tensor *g = model_file_add_tensor(f->file);
    if (!g)
        return err_set(e, SHOAL_ENOMEM, "out of memory for tensor %.150s", t->name);
    int rc = set_shape(g, t, e);
    if (rc < 0)
        return rc;
    if ((rc = apply(f, g, r->op, e)) < 0) {
        err_wrap(e, "tensor %.150s", t->name);
        return rc;
    }
    size_t n = strlen(name);
    char *copy = model_file_alloc(f->file, n + 1);
    if (!copy)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the name of a tensor");
    memcpy(copy, name, n + 1);
    g->name = (struct str){copy, n};
    return 0;
}

static int add_rope_freqs(struct hf_folder *f, struct err *e)
{
    static const char name[] = "rope_freqs.weight";
    size_t bytes = f->n_rope_freqs * sizeof(float);
    if (!f->rope_freqs)
        return 0;
    float *copy = model_file_alloc(f->file, bytes);
    struct model_file_tensor *t = copy ? model_file_add_tensor(f->file) : NULL;
    if (!t)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the rotation table");
    memcpy(copy, f->rope_freqs, bytes);
    *t = (struct model_file_tensor){.name = {name, sizeof(name) - 1},
                                    .type = QUANT_F32,
                                    .n_dims = 1,
                                    .dims = {f->n_rope_freqs, 1, 1, 1},
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
    if (rc == 0)
        rc = add_rope_freqs(f, e);
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
    int rc = hf_documents_has(f, "config.json") ? hf_documents_read_config(f, e) : 0;
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
    int rc = hf_documents_read_config(f, e);
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
    mem_free(f.rope_freqs);
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
