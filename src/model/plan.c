/* plan.c - see plan.h. */
#include "model/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

void plan_small_tensors_fini(struct small_tensors *v)
{
    for (uint32_t i = 0; i < v->n; i++)
        mem_free(v->list[i]);
    mem_free(v->list);
    *v = (struct small_tensors){0};
}

void plan_linear_product(const struct kern_ops *k, const struct weights *w, const struct linear *l,
                         const struct kern_act *a, uint32_t n_tokens, uint32_t t0, uint32_t t1,
                         float *out, size_t ld)
{
    struct kern_mat m = w->mats[l->mat];
    const uint32_t r0 = t0 * k->layout.tile_rows;
    m.data += t0 * m.tile_bytes;
    m.n_rows -= r0;
    if (m.fmt == KERN_Q8W && l->bias)
        m.bias = l->bias + r0; /* vectors are padded, so a whole tile may be read */
    k->gemm(&m, a, n_tokens, 0, t1 - t0, out, ld);
    if (!l->bias || m.bias)
        return;
    uint32_t n = (t1 - t0) * k->layout.tile_rows;
    n = n < m.n_rows ? n : m.n_rows;
    for (uint32_t t = 0; t < n_tokens; t++)
        k->add(out + t * ld, l->bias + r0, n);
}

enum linear_input plan_linear_wants(const struct weights *w, const struct linear *l,
                                    enum linear_input others)
{
    if (l->mat == NO_MAT || kern_fmt_is_float(w->mats[l->mat].fmt))
        return others;
    return w->mats[l->mat].fmt == KERN_Q8W ? LINEAR_INPUT_WIDE : LINEAR_INPUT_BLOCKS;
}

void plan_linear_round(const struct kern_ops *k, const struct kern_act *a, enum linear_input in,
                       uint32_t t, uint32_t u0, uint32_t u1)
{
    if (in == LINEAR_INPUT_WIDE)
        k->quantize_wide(a, t, u0, u1);
    else if (in == LINEAR_INPUT_BLOCKS)
        k->quantize(a, t, u0, u1);
}

void plan_linear_round_all(const struct kern_ops *k, const struct kern_act *a, enum linear_input in,
                           uint32_t t)
{
    const uint32_t unit = linear_input_unit(in);
    plan_linear_round(k, a, in, t, 0, (a->n_cols + unit - 1) / unit);
}

int plan_init(struct plan *p, const struct model_file *file, struct weights *w,
              struct small_tensors *v, struct err *e)
{
    *p = (struct plan){.file = file, .weights = w, .vectors = v, .e = e};
    p->claimed = mem_zalloc_n(file->n_tensors + 1, sizeof(*p->claimed));
    return p->claimed ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for the tensor plan");
}

void plan_fini(struct plan *p)
{
    mem_free(p->claimed);
}

const struct model_file_tensor *plan_claim(struct plan *p, const char *name)
{
    const struct model_file_tensor *t = model_file_find_tensor(p->file, name);
    if (t)
        p->claimed[t - p->file->tensors] = true;
    return t;
}

void plan_claim_prefix(struct plan *p, const char *prefix)
{
    size_t n = strlen(prefix);
    for (size_t i = 0; i < p->file->n_tensors; i++) {
        struct str s = p->file->tensors[i].name;
        if (s.n >= n && memcmp(s.p, prefix, n) == 0)
            p->claimed[i] = true;
    }
}

static void name_of(char *out, size_t cap, int layer, const char *part, const char *kind)
{
    if (layer < 0)
        snprintf(out, cap, "%s.%s", part, kind);
    else
        snprintf(out, cap, "blk.%d.%s%s%s", layer, part, kind ? "." : "", kind ? kind : "");
}

/* n values of t, owned by the plan's vectors and padded with 16 zeros. */
static int floats(struct plan *p, const float **out, const struct model_file_tensor *t, size_t n)
{
    struct small_tensors *all = p->vectors;
    float **bigger = mem_realloc(all->list, (all->n + 1) * sizeof(*bigger));
    if (bigger)
        all->list = bigger;
    float *v = bigger ? mem_aligned((n + 16) * sizeof(*v)) : NULL;
    if (!v)
        return err_set(p->e, SHOAL_ENOMEM, "tensor %.*s", (int)t->name.n, t->name.p);
    all->list[all->n++] = v;
    int rc = model_file_need(t, p->e);
    if (rc < 0)
        return rc;
    quant_to_f32(t->type, t->data, v, n);
    for (size_t i = 0; i < n; i++) /* small, so every load can afford it */
        if (!isfinite(v[i]))
            return err_set(p->e, SHOAL_EFORMAT, "tensor %.*s has a value that is not finite",
                           (int)t->name.n, t->name.p);
    *out = v;
    return 0;
}

int plan_vector(struct plan *p, const float **out, int layer, const char *part, const char *kind,
                uint32_t n, bool required)
{
    char name[96];
    name_of(name, sizeof(name), layer, part, kind);
    const struct model_file_tensor *t = plan_claim(p, name);
    *out = NULL;
    if (!t)
        return required ? err_set(p->e, SHOAL_EFORMAT, "tensor %s is missing", name) : 0;
    if (t->n_dims != 1 || t->dims[0] != n)
        return err_set(p->e, SHOAL_EFORMAT, "tensor %s has %llu values, expected %u", name,
                       (unsigned long long)t->dims[0], n);
    return floats(p, out, t, n);
}

int plan_values(struct plan *p, const float **out, int layer, const char *part, const char *kind,
                uint32_t n)
{
    char name[96];
    name_of(name, sizeof(name), layer, part, kind);
    const struct model_file_tensor *t = plan_claim(p, name);
    uint64_t has = 1;
    *out = NULL;
    if (!t)
        return err_set(p->e, SHOAL_EFORMAT, "tensor %s is missing", name);
    for (uint32_t i = 0; i < t->n_dims && has <= n; i++)
        has *= t->dims[i];
    if (has != n)
        return err_set(p->e, SHOAL_EFORMAT, "tensor %s does not have %u values", name, n);
    return floats(p, out, t, n);
}

int plan_table(struct plan *p, const float **out, const char *name, uint32_t *n_rows,
               uint32_t n_cols, bool required)
{
    const struct model_file_tensor *t = plan_claim(p, name);
    *out = NULL;
    *n_rows = 0;
    if (!t)
        return required ? err_set(p->e, SHOAL_EFORMAT, "tensor %s is missing", name) : 0;
    if (t->n_dims > 2 || t->dims[0] != n_cols || t->dims[1] > INT32_MAX)
        return err_set(p->e, SHOAL_EFORMAT, "tensor %s is not a table of %u columns", name, n_cols);
    *n_rows = (uint32_t)t->dims[1];
    return floats(p, out, t, (size_t)t->dims[1] * n_cols);
}

int plan_taps(struct plan *p, const float **out, int layer, const char *part, uint32_t n_channels,
              uint32_t n_taps)
{
    char name[96];
    name_of(name, sizeof(name), layer, part, "weight");
    const struct model_file_tensor *t = plan_claim(p, name);
    const float *by_channel = NULL;
    *out = NULL;
    if (!t)
        return err_set(p->e, SHOAL_EFORMAT, "tensor %s is missing", name);
    /* transformers has a dimension of 1 between the two */
    const bool between = t->n_dims == 3 && t->dims[1] == 1;
    if ((t->n_dims != 2 && !between) || t->dims[0] != n_taps ||
        t->dims[t->n_dims - 1] != n_channels)
        return err_set(p->e, SHOAL_EFORMAT, "tensor %s is not %u x %u", name, n_channels, n_taps);
    int rc = floats(p, &by_channel, t, (size_t)n_channels * n_taps);
    if (rc == 0)
        rc = floats(p, out, t, (size_t)n_channels * n_taps);
    float *to = rc == 0 ? p->vectors->list[p->vectors->n - 1] : NULL;
    for (uint32_t i = 0; rc == 0 && i < n_taps; i++)
        for (uint32_t c = 0; c < n_channels; c++)
            to[(size_t)i * n_channels + c] = by_channel[(size_t)c * n_taps + i];
    return rc;
}

/* The factor of a whole matrix, which files with NVFP4 have beside it.  Its companion for inputs is
 * of use only to machines that round inputs to 4 bits. */
static int matrix_scale(struct plan *p, const struct linear *l, int layer, const char *part)
{
    const float *scale, *input;
    if (p->weights->round != WEIGHTS_AS_STORED)
        return 0; /* encoders: the tensor stays unclaimed, which is an error */
    int rc = plan_vector(p, &input, layer, part, "input_scale", 1, false);
    if (rc == 0)
        rc = plan_vector(p, &scale, layer, part, "scale", 1, false);
    if (rc < 0 || !scale)
        return rc;
    if (!(*scale > 1e-20f && *scale < 1e20f))
        return err_set(p->e, SHOAL_EFORMAT, "the scale of matrix %s is %g, which is out of range",
                       part, (double)*scale);
    if (l->mat != NO_MAT)
        weights_scale(p->weights, l->mat, *scale);
    return 0;
}

int plan_linear(struct plan *p, struct linear *l, int layer, const char *part, uint32_t n_rows,
                uint32_t n_cols, bool required)
{
    char name[96];
    name_of(name, sizeof(name), layer, part, "weight");
    const struct model_file_tensor *t = plan_claim(p, name);
    *l = (struct linear){.mat = NO_MAT};
    if (!t)
        return required ? err_set(p->e, SHOAL_EFORMAT, "tensor %s is missing", name) : 0;
    if (n_rows == 0 && t->n_dims == 2 && t->dims[1] <= INT32_MAX)
        n_rows = (uint32_t)t->dims[1];
    if (t->n_dims > 2 || t->dims[0] != n_cols || t->dims[1] != n_rows ||
        (t->n_dims < 2 && n_rows != 1))
        return err_set(p->e, SHOAL_EFORMAT, "tensor %s is %llu x %llu, expected %u x %u", name,
                       (unsigned long long)t->dims[1], (unsigned long long)t->dims[0], n_rows,
                       n_cols);
    int rc = weights_add(p->weights, t, &l->mat, p->e);
    if (rc == 0)
        rc = matrix_scale(p, l, layer, part);
    return rc < 0 ? rc : plan_vector(p, &l->bias, layer, part, "bias", n_rows, false);
}

int plan_linear_rows(struct plan *p, struct linear *l, int layer, const char *part, uint32_t row0,
                     uint32_t n_rows, uint32_t n_all, uint32_t n_cols)
{
    char name[96];
    name_of(name, sizeof(name), layer, part, "weight");
    const struct model_file_tensor *t = plan_claim(p, name);
    *l = (struct linear){.mat = NO_MAT};
    if (!t)
        return err_set(p->e, SHOAL_EFORMAT, "tensor %s is missing", name);
    if (t->n_dims != 2 || t->dims[0] != n_cols || t->dims[1] != n_all)
        return err_set(p->e, SHOAL_EFORMAT, "tensor %s is %llu x %llu, expected %u x %u", name,
                       (unsigned long long)t->dims[1], (unsigned long long)t->dims[0], n_all,
                       n_cols);
    return weights_add_rows(p->weights, t, row0, n_rows, &l->mat, p->e);
}

bool plan_has(const struct plan *p, int layer, const char *part)
{
    char name[96];
    name_of(name, sizeof(name), layer, part, "weight");
    return model_file_find_tensor(p->file, name) != NULL;
}

int plan_linear_part(struct plan *p, struct linear *l, int layer, const char *part,
                     const struct plan_part *rows, uint32_t n_cols)
{
    char name[96];
    name_of(name, sizeof(name), layer, part, "weight");
    const struct model_file_tensor *t = plan_claim(p, name);
    *l = (struct linear){.mat = NO_MAT};
    if (!t)
        return err_set(p->e, SHOAL_EFORMAT, "tensor %s is missing", name);
    if (t->n_dims != 2 || t->dims[0] != n_cols || t->dims[1] != rows->n_tensor)
        return err_set(p->e, SHOAL_EFORMAT, "tensor %s is %llu x %llu, expected %u x %u", name,
                       (unsigned long long)t->dims[1], (unsigned long long)t->dims[0],
                       rows->n_tensor, n_cols);
    int rc = plan_vector(p, &l->bias, layer, part, "bias", rows->n_tensor, false);
    if (rc < 0 || rows->n_rows == 0)
        return rc < 0 ? rc : matrix_scale(p, l, layer, part);
    if (l->bias)
        l->bias += rows->first + rows->row0;
    rc = weights_add_part(p->weights, t, rows->first, rows->n_all, rows->row0, rows->n_rows,
                          &l->mat, p->e);
    return rc < 0 ? rc : matrix_scale(p, l, layer, part);
}

int plan_linear_of(struct plan *p, struct linear *l, int layer, const char *part, uint32_t which,
                   uint32_t n_all, uint32_t n_rows, uint32_t n_cols)
{
    char name[96];
    name_of(name, sizeof(name), layer, part, "weight");
    const struct model_file_tensor *t = plan_claim(p, name);
    *l = (struct linear){.mat = NO_MAT};
    if (!t)
        return err_set(p->e, SHOAL_EFORMAT, "tensor %s is missing", name);
    if (t->n_dims != 3 || t->dims[0] != n_cols || t->dims[1] != n_rows || t->dims[2] != n_all ||
        (uint64_t)n_rows * n_all > INT32_MAX)
        return err_set(p->e, SHOAL_EFORMAT, "tensor %s is not %u matrices of %u x %u", name, n_all,
                       n_rows, n_cols);
    struct model_file_tensor flat = *t; /* the same rows, one after the other */
    flat.n_dims = 2;
    flat.dims[1] = (uint64_t)n_rows * n_all;
    flat.dims[2] = 1;
    return weights_add_rows(p->weights, &flat, which * n_rows, n_rows, &l->mat, p->e);
}

int plan_check_all_claimed(const struct plan *p, const char *arch)
{
    for (size_t i = 0; i < p->file->n_tensors; i++)
        if (!p->claimed[i])
            return err_set(p->e, SHOAL_EUNSUPPORTED,
                           "unexpected tensor %.*s: this %s variant is not supported",
                           (int)p->file->tensors[i].name.n, p->file->tensors[i].name.p, arch);
    return 0;
}

void *plan_carve_take(struct carve *c, size_t n)
{
    void *at = c->base ? c->base + c->bytes : NULL;
    c->bytes += (n + 127) / 64 * 64; /* at least 64 bytes apart: vector over-reads stay inside */
    return at;
}

void plan_carve_act(struct carve *c, struct kern_act *a, float *x, uint32_t max_tokens,
                    uint32_t n_cols)
{
    const size_t b = max_tokens;
    *a = (struct kern_act){.x = x, .ld = n_cols, .n_cols = n_cols};
    a->q = plan_carve_take(c, b * n_cols);
    a->scale = plan_carve_take(c, b * (n_cols / 32) * sizeof(float));
    a->sums = plan_carve_take(c, b * (n_cols / 16) * sizeof(int32_t));
}
