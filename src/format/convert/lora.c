/* lora.c - see lora.h. */
#include "format/convert/lora.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "format/gguf.h"
#include "format/hf/hf_adapter.h"

enum { MAX_RANK = 1024 };

struct merged { /* one matrix of the base with what an adapter adds */
    const struct model_file_tensor *base, *a, *b;
    float scale;
    const float *rows; /* of A as floats: [rank][n_cols] */
};

/* ---- opening -------------------------------------------------------------------------------- */

static int check_kind(const struct model_file *adapter, const struct model_file *base,
                      struct err *e)
{
    struct str type, arch, own;
    if (!model_file_get_str(adapter, "general.type", &type) || !str_is(type, "adapter") ||
        !model_file_get_str(adapter, "adapter.type", &type) || !str_is(type, "lora"))
        return err_set(e, SHOAL_EFORMAT, "not a LoRA adapter (general.type, adapter.type)");
    if (model_file_get_str(adapter, "general.architecture", &arch) &&
        model_file_get_str(base, "general.architecture", &own) &&
        (arch.n != own.n || memcmp(arch.p, own.p, own.n) != 0))
        return err_set(e, SHOAL_EFORMAT, "an adapter of %.*s, but the base is a %.*s",
                       (int)(arch.n < 60 ? arch.n : 60), arch.p, (int)(own.n < 60 ? own.n : 60),
                       own.p);
    return 0;
}

int lora_open(struct model_file **out, const char *path, const struct model_file *base,
              struct err *e)
{
    struct stat st;
    int rc;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return hf_adapter_open(out, path, base, e);
    if ((rc = gguf_open(out, path, e)) < 0)
        return rc;
    if ((rc = check_kind(*out, base, e)) < 0) {
        model_file_close(*out);
        *out = NULL;
        return err_wrap(e, "%s", path);
    }
    return 0;
}

/* ---- merging -------------------------------------------------------------------------------- */

/* In double precision: the sum of a few products is then as good as exact. */
static void merged_row(const void *ctx, uint64_t row, float *out)
{
    const struct merged *m = ctx;
    const size_t n = (size_t)m->base->dims[0], rank = (size_t)m->b->dims[0];
    float b[MAX_RANK];
    model_file_row_f32(m->base, row, out);
    model_file_row_f32(m->b, row, b);
    for (size_t c = 0; c < n; c++) {
        double sum = 0;
        for (size_t k = 0; k < rank; k++)
            sum += (double)b[k] * (double)m->rows[k * n + c];
        out[c] = (float)((double)out[c] + (double)m->scale * sum);
    }
}

/* A or B of a tensor of the base; NULL: the adapter has none. */
static const struct model_file_tensor *part_of(const struct model_file *adapter, struct str name,
                                               char which)
{
    char full[160];
    const int n = snprintf(full, sizeof(full), "%.*s.lora_%c", (int)name.n, name.p, which);
    return n > 0 && (size_t)n < sizeof(full) ? model_file_find_tensor(adapter, full) : NULL;
}

static int check_parts(const struct merged *m, struct err *e)
{
    const struct model_file_tensor *w = m->base, *a = m->a, *b = m->b;
    if (!a || !b)
        return err_set(e, SHOAL_EFORMAT, "the adapter has one matrix of two");
    if (w->n_dims != 2 || a->n_dims != 2 || b->n_dims != 2 || a->dims[0] != w->dims[0] ||
        b->dims[1] != w->dims[1] || a->dims[1] != b->dims[0] || a->dims[1] > MAX_RANK)
        return err_set(e, SHOAL_EFORMAT,
                       "the adapter's matrices are %llu x %llu and %llu x %llu, which do not fit "
                       "%llu x %llu at a rank of 1 to %d",
                       (unsigned long long)b->dims[1], (unsigned long long)b->dims[0],
                       (unsigned long long)a->dims[1], (unsigned long long)a->dims[0],
                       (unsigned long long)w->dims[1], (unsigned long long)w->dims[0], MAX_RANK);
    return 0;
}

/* By what the base multiplies a matrix besides (GGUF files in NVFP4 do); 1: nothing. */
static float scale_beside(const struct model_file *base, struct str name)
{
    char full[160];
    float scale = 1.0f;
    if (name.n < 7 || memcmp(name.p + name.n - 7, ".weight", 7) != 0)
        return scale;
    const int n = snprintf(full, sizeof(full), "%.*s.scale", (int)name.n - 7, name.p);
    const struct model_file_tensor *t =
        n > 0 && (size_t)n < sizeof(full) ? model_file_find_tensor(base, full) : NULL;
    if (t && t->n_dims == 1 && t->dims[0] == 1 && t->data)
        model_file_row_f32(t, 0, &scale);
    return scale > 0.0f && isfinite(scale) ? scale : 1.0f;
}

static int merge_tensor(struct model_file *out, struct merged *m, float factor, struct err *e)
{
    int rc = check_parts(m, e);
    if (rc < 0)
        return rc;
    const size_t n = (size_t)m->base->dims[0], rank = (size_t)m->a->dims[1];
    struct merged *own = model_file_alloc(out, sizeof(*own));
    float *rows = model_file_alloc(out, n * rank * sizeof(float));
    struct model_file_tensor *t = own && rows ? model_file_add_tensor(out) : NULL;
    if (!t)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the adapter's matrices");
    for (size_t k = 0; k < rank; k++)
        model_file_row_f32(m->a, k, rows + k * n);
    *own = *m;
    own->rows = rows;
    own->scale = factor / (float)rank;
    *t = (struct model_file_tensor){.name = m->base->name,
                                    .type = QUANT_F32,
                                    .n_dims = 2,
                                    .dims = {m->base->dims[0], m->base->dims[1], 1, 1},
                                    .n_bytes = n * (size_t)m->base->dims[1] * sizeof(float),
                                    .map = m->base->map,
                                    .order = MODEL_FILE_COMPUTED,
                                    .row = merged_row,
                                    .row_ctx = own};
    return 0;
}

static int copy_tensor(struct model_file *out, const struct model_file_tensor *from, struct err *e)
{
    struct model_file_tensor *t = model_file_add_tensor(out);
    if (!t)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the list of tensors");
    *t = *from;
    return 0;
}

static int merge_all(struct model_file *out, const struct model_file *base,
                     const struct model_file *adapter, float factor, struct err *e)
{
    size_t used = 0;
    for (size_t i = 0; i < base->n_tensors; i++) {
        const struct model_file_tensor *w = &base->tensors[i];
        struct merged m = {
            .base = w, .a = part_of(adapter, w->name, 'a'), .b = part_of(adapter, w->name, 'b')};
        int rc = m.a || m.b ? merge_tensor(out, &m, factor / scale_beside(base, w->name), e)
                            : copy_tensor(out, w, e);
        if (rc < 0)
            return err_wrap(e, "tensor %.*s", (int)w->name.n, w->name.p);
        used += (size_t)(m.a != NULL) + (size_t)(m.b != NULL);
    }
    return used == adapter->n_tensors && used > 0
               ? 0
               : err_set(e, SHOAL_EFORMAT,
                         "%zu of the adapter's %zu matrices belong to tensors of the base", used,
                         adapter->n_tensors);
}

int lora_merge(struct model_file **out, const struct model_file *base,
               const struct model_file *adapter, float strength, struct err *e)
{
    double alpha;
    struct model_file *m = NULL;
    *out = NULL;
    if (!model_file_get_f64(adapter, "adapter.lora.alpha", &alpha) || !isfinite(alpha))
        return err_set(e, SHOAL_EFORMAT, "the adapter has no adapter.lora.alpha");
    int rc = model_file_create(&m, e);
    if (rc == 0) {
        model_file_put_all(m, base);
        rc = model_file_check(m, e);
    }
    if (rc == 0)
        rc = merge_all(m, base, adapter, (float)alpha * strength, e);
    if (rc < 0) {
        model_file_close(m);
        return rc;
    }
    m->n_bytes = base->n_bytes;
    *out = m;
    return 0;
}
