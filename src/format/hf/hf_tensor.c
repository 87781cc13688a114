/* hf_tensor.c - what a tensor of a folder is called in GGUF, and how its rows are stored; see
 * hf_map.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/ascii.h"
#include "format/hf/hf_map.h"

enum { MAX_LAYERS = 1024 };

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

static const struct hf_rule *find_in(const struct hf_rule *r, const char *name, struct match *m)
{
    while (r && r->from && !matches(r->from, name, m))
        r++;
    return r && r->from ? r : NULL;
}

/* Finds the rule for a tensor, with or without the prefix of the architecture. */
static const struct hf_rule *find_rule(const struct hf_arch *a, const char *name, struct match *m)
{
    size_t n = strlen(a->prefix);
    bool has = n > 0 && !strncmp(name, a->prefix, n);
    const struct hf_rule *r = NULL;
    for (int bare = has ? 1 : 0; bare >= 0 && !r; bare--) {
        r = find_in(a->rules, bare ? name + n : name, m);
        if (!r)
            r = find_in(a->usual, bare ? name + n : name, m);
    }
    return r;
}

/* The name in GGUF; false when it is too long. */
static bool make_name(char out[HF_NAME_BYTES], const char *to, const struct match *m)
{
    size_t n = 0;
    const char *last = m->last;
    /* names of BERT's norms in early files */
    if (last && !strcmp(last, "gamma"))
        last = "weight";
    else if (last && !strcmp(last, "beta"))
        last = "bias";
    for (; *to && n < HF_NAME_BYTES; to++) {
        size_t room = HF_NAME_BYTES - n;
        if (*to == '#')
            n += (size_t)snprintf(out + n, room, "%u", m->layer);
        else if (*to == '*')
            n += (size_t)snprintf(out + n, room, "%s", last);
        else
            out[n++] = *to;
    }
    if (n >= HF_NAME_BYTES)
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

/* Reorders the rows of heads, which consist of `parts` of equal size. */
static int head_rows(struct hf_folder *f, struct model_file_tensor *g, enum model_file_order order,
                     uint32_t n_heads, uint32_t parts, struct err *e)
{
    uint64_t rows = g->n_dims == 1 ? g->dims[0] : g->dims[1];
    if (g->n_dims > 2 || rows % n_heads != 0 || rows / n_heads % parts != 0)
        return err_set(e, SHOAL_EFORMAT, "%llu rows are not %u heads", (unsigned long long)rows,
                       n_heads);
    g->n_heads = n_heads;
    reorder(g, order);
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

static float plus_one(float x)
{
    return x + 1.0f;
}

static float minus_exp(float x)
{
    return (float)-exp((double)x);
}

/* Changes each value of a vector. */
static int change(struct hf_folder *f, struct model_file_tensor *g, float (*to)(float),
                  struct err *e)
{
    if (g->n_dims != 1)
        return err_set(e, SHOAL_EFORMAT, "%u dimensions, expected 1", g->n_dims);
    const size_t n = (size_t)g->dims[0];
    float *out = model_file_alloc(f->file, n * sizeof(float));
    if (!out)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu values", n);
    quant_to_f32(g->type, g->data, out, n);
    for (size_t i = 0; i < n; i++)
        out[i] = to(out[i]);
    g->type = QUANT_F32;
    g->data = (const uint8_t *)out;
    g->n_bytes = n * sizeof(float);
    g->in_memory = true;
    return 0;
}

int hf_tensor_conv(struct model_file *m, struct model_file_tensor *g, struct err *e)
{
    const size_t value = quant_info(g->type)->block_bytes;
    const uint64_t taps = g->dims[0], in = g->dims[1], rows = g->dims[2];
    if (g->n_dims != 3 || quant_info(g->type)->block != 1)
        return err_set(e, SHOAL_EUNSUPPORTED, "%u dimensions of %s are not those of a convolution",
                       g->n_dims, quant_info(g->type)->name);
    uint8_t *out = model_file_alloc(m, g->n_bytes);
    if (!out)
        return err_set(e, SHOAL_ENOMEM, "out of memory to reorder a tensor of %zu bytes",
                       g->n_bytes);
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t t = 0; t < taps; t++)
            for (uint64_t i = 0; i < in; i++)
                memcpy(out + ((r * taps + t) * in + i) * value,
                       g->data + ((r * in + i) * taps + t) * value, value);
    g->n_dims = 2;
    g->dims[0] = taps * in;
    g->dims[1] = rows;
    g->dims[2] = 1;
    g->data = out;
    g->in_memory = true;
    return 0;
}

/* [1][...][n] becomes [...][n], and what then has more than two dimensions a matrix whose rows are
 * those of the first one. */
static void flatten(struct model_file_tensor *g)
{
    while (g->n_dims > 1 && g->dims[g->n_dims - 1] == 1)
        g->n_dims--;
    for (; g->n_dims > 2; g->n_dims--) {
        g->dims[0] *= g->dims[1];
        for (uint32_t d = 1; d + 1 < g->n_dims; d++)
            g->dims[d] = g->dims[d + 1];
        g->dims[g->n_dims - 1] = 1;
    }
}

static int apply(struct hf_folder *f, struct model_file_tensor *g, enum hf_op op, struct err *e)
{
    switch (op) {
    case HF_TRANSPOSE:
        transpose(g);
        return 0;
    case HF_ROPE_Q:
        return head_rows(f, g, MODEL_FILE_HALVES, f->n_heads, 2, e);
    case HF_ROPE_K:
        return head_rows(f, g, MODEL_FILE_HALVES, f->n_kv_heads, 2, e);
    case HF_QKV:
        return head_rows(f, g, MODEL_FILE_QKV, f->n_heads, 3, e);
    case HF_ADD_ONE:
        return change(f, g, plus_one, e);
    case HF_MINUS_EXP:
        return change(f, g, minus_exp, e);
    case HF_POSITIONS:
        return drop_rows(f, g, e);
    case HF_CONV:
        return hf_tensor_conv(f->file, g, e);
    case HF_FLAT:
        flatten(g);
        return 0;
    case HF_VECTOR:
        if (g->n_dims == 2 && g->dims[1] == 1)
            g->n_dims = 1;
        return 0;
    default:
        return 0;
    }
}

int hf_tensor_name(const struct hf_folder *f, const char *name, const struct hf_rule **rule,
                   char out[HF_NAME_BYTES], struct err *e)
{
    struct match m = {0, NULL};
    const struct hf_rule *r = *rule = find_rule(f->arch, name, &m);
    if (!r)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "tensor %.150s is not part of the %s architecture as it is known here", name,
                       f->arch->model_type);
    const char *to = r->op == HF_HEAD && f->labels_tokens ? "tag.output.*" : r->to;
    if (to && !make_name(out, to, &m))
        return err_set(e, SHOAL_EFORMAT, "the name of tensor %.150s is too long", name);
    return 0;
}

int hf_tensor_add(struct hf_folder *f, const struct safetensors_tensor *t, enum hf_op op,
                  const char *name, struct err *e)
{
    if (model_file_find_tensor(f->file, name))
        return err_set(e, SHOAL_EFORMAT, "tensor %.150s: %s is there twice", t->name, name);
    struct model_file_tensor *g = model_file_add_tensor(f->file);
    if (!g)
        return err_set(e, SHOAL_ENOMEM, "out of memory for tensor %.150s", t->name);
    int rc = set_shape(g, t, e);
    if (rc < 0)
        return rc;
    if ((rc = apply(f, g, op, e)) < 0) {
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
