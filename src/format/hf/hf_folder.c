/* hf_folder.c - see hf_folder.h.
 *
 * The architecture's table (hf_map_*.c) says what each tensor is called in GGUF and what must be
 * done to it; one that it does not know is an error, since it means a model that would be computed
 * wrongly.  Metadata is encoded as a GGUF header and parsed again, so that the view is built by the
 * code that reads files. */
#include "format/hf/hf_folder.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
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
    const char *last; /* what '*' stands for */
};

static bool matches(const char *pattern, const char *name, struct match *m)
{
    for (; *pattern; pattern++) {
        if (*pattern == '#') {
            const char *from = name;
            m->layer = 0;
            while (*name >= '0' && *name <= '9' && m->layer < MAX_LAYERS)
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

/* The rule for a tensor, which may carry the architecture's prefix or not. */
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
    /* what BERT's norms were called in its first files */
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

/* Memory that will belong to the view. */
static void *own(struct hf_folder *f, size_t n)
{
    void **list = mem_realloc(f->view->owned, (f->view->n_owned + 1) * sizeof(*list));
    if (!list)
        return NULL;
    f->view->owned = list;
    void *p = mem_alloc(n ? n : 1);
    if (p)
        list[f->view->n_owned++] = p;
    return p;
}

static int set_shape(struct gguf_tensor *g, const struct safetensors_tensor *t, struct err *e)
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
    if (t->n_dims == 0 || t->n_dims > GGUF_MAX_DIMS)
        return err_set(e, SHOAL_EUNSUPPORTED, "tensor %.150s has %u dimensions", t->name,
                       t->n_dims);
    g->n_dims = t->n_dims;
    for (uint32_t d = 0; d < GGUF_MAX_DIMS; d++)
        g->dims[d] = d < t->n_dims ? t->dims[t->n_dims - 1 - d] : 1;
    if (t->n_bytes == 0 || g->dims[0] > INT32_MAX)
        return err_set(e, SHOAL_EFORMAT, "tensor %.150s is empty or too wide", t->name);
    g->data = t->data;
    g->n_bytes = t->n_bytes;
    g->map = t->map;
    return 0;
}

/* Matrices stay as they are: whoever packs or converts them turns a few rows at a time. */
static void reorder(struct gguf_tensor *g, enum gguf_order order)
{
    g->order = order;
    g->stored = g->data;
    g->data = NULL;
}

static void transpose(struct gguf_tensor *g)
{
    if (g->n_dims != 2) /* a bias */
        return;
    uint64_t rows = g->dims[1];
    g->dims[1] = g->dims[0];
    g->dims[0] = rows;
    reorder(g, GGUF_ORDER_TURNED);
}

/* Rows of each head from (first half, second half) to neighbouring pairs. */
static int pair_rows(struct hf_folder *f, struct gguf_tensor *g, uint32_t n_heads, struct err *e)
{
    uint64_t rows = g->n_dims == 1 ? g->dims[0] : g->dims[1];
    if (g->n_dims > 2 || rows % n_heads != 0 || rows / n_heads % 2 != 0)
        return err_set(e, SHOAL_EFORMAT, "%llu rows are not %u heads", (unsigned long long)rows,
                       n_heads);
    g->n_heads = n_heads;
    reorder(g, GGUF_ORDER_HALVES);
    if (g->n_dims == 2)
        return 0;
    /* a bias is small: made at once */
    uint8_t *out = own(f, g->n_bytes);
    if (!out)
        return err_set(e, SHOAL_ENOMEM, "%zu bytes for a tensor in another order", g->n_bytes);
    struct gguf_tensor column = *g;
    column.dims[0] = 1;
    column.dims[1] = rows;
    gguf_rows(&column, 0, rows, 0, 1, out);
    g->order = GGUF_ORDER_PLAIN;
    g->data = out;
    g->in_memory = true;
    return 0;
}

static int drop_rows(const struct hf_folder *f, struct gguf_tensor *g, struct err *e)
{
    if (g->n_dims != 2 || g->dims[1] <= f->skip_positions)
        return err_set(e, SHOAL_EFORMAT, "too few positions");
    size_t bytes = g->n_bytes / (size_t)g->dims[1] * f->skip_positions;
    g->dims[1] -= f->skip_positions;
    g->data += bytes;
    g->n_bytes -= bytes;
    return 0;
}

static int apply(struct hf_folder *f, struct gguf_tensor *g, enum hf_op op, struct err *e)
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
    if (gguf_find_tensor(f->view, name))
        return err_set(e, SHOAL_EFORMAT, "tensor %.150s: there are two of %s", t->name, name);
    struct gguf_tensor *g = &f->view->tensors[f->view->n_tensors];
    int rc = set_shape(g, t, e);
    if (rc < 0)
        return rc;
    if ((rc = apply(f, g, r->op, e)) < 0) {
        err_wrap(e, "tensor %.150s", t->name);
        return rc;
    }
    size_t n = strlen(name);
    char *copy = own(f, n + 1);
    if (!copy)
        return err_set(e, SHOAL_ENOMEM, "name of a tensor");
    memcpy(copy, name, n + 1);
    g->name = (struct gguf_str){copy, n};
    f->view->n_tensors++;
    return 0;
}

static int add_rope_freqs(struct hf_folder *f, struct err *e)
{
    static const char name[] = "rope_freqs.weight";
    size_t bytes = f->n_rope_freqs * sizeof(float);
    if (!f->rope_freqs)
        return 0;
    float *copy = own(f, bytes);
    if (!copy)
        return err_set(e, SHOAL_ENOMEM, "rotation table");
    memcpy(copy, f->rope_freqs, bytes);
    f->view->tensors[f->view->n_tensors++] =
        (struct gguf_tensor){.name = {name, sizeof(name) - 1},
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
    f->view->tensors = mem_zalloc_n(f->st->n_tensors + 1, sizeof(*f->view->tensors));
    if (!f->view->tensors)
        return err_set(e, SHOAL_ENOMEM, "directory of %zu tensors", f->st->n_tensors);
    for (size_t i = 0; rc == 0 && i < f->st->n_tensors; i++)
        rc = add_tensor(f, &f->st->tensors[i], e);
    if (rc == 0)
        rc = add_rope_freqs(f, e);
    f->view->n_bytes = f->st->n_bytes;
    safetensors_take_maps(f->st, &f->view->maps, &f->view->n_maps);
    return rc;
}

/* ---- open ----------------------------------------------------------------------------------- */

static void add_general(struct hf_folder *f, const char *arch)
{
    char real[PATH_MAX];
    const char *name = realpath(f->path, real) ? strrchr(real, '/') : NULL;
    const cJSON *classes = cJSON_GetObjectItemCaseSensitive(f->config, "architectures");
    const char *first = cJSON_GetStringValue(cJSON_GetArrayItem(classes, 0));
    static const char tokens[] = "ForTokenClassification";
    size_t n = first ? strlen(first) : 0;
    f->labels_tokens = n >= sizeof(tokens) - 1 && !strcmp(first + n - (sizeof(tokens) - 1), tokens);
    gguf_meta_str(&f->meta, "general.architecture", arch, strlen(arch));
    if (name && name[1])
        gguf_meta_str(&f->meta, "general.name", name + 1, strlen(name + 1));
}

/* The metadata as a view without tensors. */
static int make_view(struct hf_folder *f, struct err *e)
{
    struct buf header;
    size_t n = 0;
    if (f->meta.first.code < 0) {
        if (e)
            *e = f->meta.first;
        return f->meta.first.code;
    }
    buf_init(&header, GGUF_META_MAX_BYTES);
    gguf_meta_encode(&f->meta, &header, 0);
    char *bytes = buf_take(&header, &n);
    int rc = header.rc < 0 ? header.rc : SHOAL_ENOMEM;
    buf_fini(&header);
    if (!bytes)
        return err_set(e, rc, "metadata: %s", err_text(rc));
    void **list = mem_alloc(sizeof(*list));
    rc = list ? gguf_parse(&f->view, bytes, n, e) : err_set(e, SHOAL_ENOMEM, "metadata");
    if (rc < 0) {
        mem_free(list);
        mem_free(bytes);
        return rc;
    }
    mem_free(f->view->tensors);
    f->view->tensors = NULL;
    f->view->version = 0;
    f->view->owned = list;
    f->view->owned[f->view->n_owned++] = bytes;
    return 0;
}

/* Everything but the tensors. */
static int describe(struct hf_folder *f, struct err *e)
{
    int rc = hf_documents_add(f, e);
    return rc < 0 ? rc : make_view(f, e);
}

int hf_folder_open_documents(struct gguf **out, const char *path, struct err *e)
{
    struct hf_folder f = {.path = path};
    struct err ignored = {0};

    *out = NULL;
    e = e ? e : &ignored;
    int rc = hf_documents_has(&f, "config.json") ? hf_documents_read_config(&f, e) : 0;
    if (rc == 0) {
        const char *type = hf_config_str(f.config, "model_type");
        add_general(&f, type[0] ? type : "unknown");
        if ((rc = describe(&f, e)) < 0)
            err_wrap(e, "%s", path);
    }
    *out = f.view;
    gguf_meta_fini(&f.meta);
    cJSON_Delete(f.config);
    return rc;
}

int hf_folder_open(struct gguf **out, const char *path, struct err *e)
{
    struct hf_folder f = {.path = path};
    struct err ignored = {0};

    *out = NULL;
    e = e ? e : &ignored;
    int rc = hf_documents_read_config(&f, e);
    if (rc < 0)
        goto out; /* these texts name the folder themselves */
    rc = safetensors_open(&f.st, path, e);
    if (rc < 0)
        goto out;
    rc = find_arch(&f, e);
    if (rc == 0) {
        add_general(&f, f.arch->name);
        rc = f.arch->configure(&f, e);
    }
    if (rc == 0)
        rc = hf_documents_check_modules(&f, e);
    if (rc == 0)
        rc = describe(&f, e);
    if (rc == 0)
        rc = add_tensors(&f, e);
    if (rc < 0) {
        err_wrap(e, "%s", path);
        goto out;
    }
    *out = f.view;
    f.view = NULL;
out:
    gguf_close(f.view);
    safetensors_close(f.st);
    gguf_meta_fini(&f.meta);
    mem_free(f.rope_freqs);
    cJSON_Delete(f.config);
    return rc;
}
