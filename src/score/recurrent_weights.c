/* recurrent_weights.c - see recurrent_weights.h. */
#include "score/recurrent_weights.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/tiles.h"

enum {
    BLOCK = 32,              /* columns of an 8-bit block */
    BLOCK_BYTES = 2 + BLOCK, /* of Q8_0: F16 scale, quants */
    MAX_ROWS = 1 << 20,
    MAX_COLS = 1 << 24,
};

int recurrent_weights_init(struct recurrent_weights *w, const struct safetensors *st,
                           struct arena *arena, const struct kern_ops *k, struct err *e)
{
    *w = (struct recurrent_weights){.st = st, .arena = arena, .k = k};
    w->claimed = mem_zalloc_n(st->n_tensors + 1, sizeof(*w->claimed));
    return w->claimed ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for the weights");
}

void recurrent_weights_fini(struct recurrent_weights *w)
{
    mem_free(w->claimed);
    w->claimed = NULL;
}

int recurrent_weights_check(const struct recurrent_weights *w, struct err *e)
{
    for (size_t i = 0; i < w->st->n_tensors; i++)
        if (!w->claimed[i])
            return err_set(e, SHOAL_EFORMAT, "no layer uses tensor %.200s", w->st->tensors[i].name);
    return 0;
}

/* NULL if there is none; end: "" or "_scale". */
static const struct safetensors_tensor *find(const struct recurrent_weights *w, const char *name,
                                             const char *part, const char *end)
{
    char full[320];
    int n = snprintf(full, sizeof(full), "%s%s%s%s", name, *name ? "." : "", part, end);
    if (n < 0 || (size_t)n >= sizeof(full))
        return NULL;
    const struct safetensors_tensor *t = safetensors_find(w->st, full);
    if (t)
        w->claimed[t - w->st->tensors] = true;
    return t;
}

bool recurrent_weights_has(const struct recurrent_weights *w, const char *name, const char *part)
{
    return find(w, name, part, "") != NULL;
}

static uint64_t n_values(const struct safetensors_tensor *t)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < t->n_dims; i++)
        n *= t->dims[i]; /* cannot overflow: the reader checked it against the file size */
    return n;
}

/* Reads n values starting at value `at`; false if the type is not a float. */
static bool read_floats(const struct safetensors_tensor *t, size_t at, size_t n, float *out)
{
    switch (t->type) {
    case SAFETENSORS_F32:
        memcpy(out, t->data + at * 4, n * 4);
        return true;
    case SAFETENSORS_F64:
        for (size_t i = 0; i < n; i++) {
            double d;
            memcpy(&d, t->data + (at + i) * 8, 8);
            out[i] = (float)d;
        }
        return true;
    case SAFETENSORS_F16:
    case SAFETENSORS_BF16:
        for (size_t i = 0; i < n; i++) {
            uint16_t h;
            memcpy(&h, t->data + (at + i) * 2, 2);
            out[i] = t->type == SAFETENSORS_F16 ? quant_f16_to_f32(h) : quant_bf16_to_f32(h);
        }
        return true;
    default:
        return false;
    }
}

static int check_finite(const struct safetensors_tensor *t, const float *v, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return err_set(e, SHOAL_EFORMAT, "%.200s: a value is not finite", t->name);
    return 0;
}

static int read_vector(struct recurrent_weights *w, const struct safetensors_tensor *t, uint32_t n,
                       const float **out, struct err *e)
{
    if (n_values(t) != n)
        return err_set(e, SHOAL_EFORMAT, "%.200s has %llu values, expected %u", t->name,
                       (unsigned long long)n_values(t), n);
    float *v = arena_zalloc_n(w->arena, (size_t)n + BLOCK, sizeof(*v));
    if (!v)
        return err_set(e, w->arena->rc, "%.200s", t->name);
    if (!read_floats(t, 0, n, v))
        return err_set(e, SHOAL_EUNSUPPORTED, "%.200s: type %s is not supported", t->name,
                       safetensors_type_name(t->type));
    *out = v;
    return check_finite(t, v, n, e);
}

int recurrent_weights_vector(struct recurrent_weights *w, const float **out, const char *name,
                             const char *part, uint32_t n, bool required, struct err *e)
{
    const struct safetensors_tensor *t = find(w, name, part, "");
    *out = NULL;
    if (!t)
        return required ? err_set(e, SHOAL_EFORMAT, "tensor %.120s.%s is missing", name, part) : 0;
    return read_vector(w, t, n, out, e);
}

int recurrent_weights_kernel(const struct recurrent_weights *w, const char *name, uint32_t *kernel,
                             struct err *e)
{
    const struct safetensors_tensor *t = find(w, name, "weight", "");
    if (!t)
        return err_set(e, SHOAL_EFORMAT, "tensor %.120s.weight is missing", name);
    if (t->n_dims != 3 || t->dims[2] < 1 || t->dims[2] > MAX_COLS)
        return err_set(e, SHOAL_EFORMAT, "%.200s is not a convolution kernel", t->name);
    *kernel = (uint32_t)t->dims[2];
    return 0;
}

/* One matrix while it is tiled. */
struct source {
    const struct safetensors_tensor *t;
    const float *scales; /* per row, for an I8 tensor; otherwise NULL */
    uint32_t n_rows, n_cols, kernel;
    uint32_t width; /* kernel * n_cols, padded if it becomes 8-bit */
};

/* Reads a row in the order [kernel][n_cols]; for I8 the quants themselves, as floats. */
static void read_row(const struct source *s, uint32_t row, float *plain, float *out)
{
    const uint32_t n = s->kernel * s->n_cols;
    if (s->scales)
        for (uint32_t i = 0; i < n; i++)
            plain[i] = (float)(int8_t)s->t->data[(size_t)row * n + i];
    else
        (void)read_floats(s->t, (size_t)row * n, n, plain);
    for (uint32_t c = 0; c < s->n_cols; c++)
        for (uint32_t k = 0; k < s->kernel; k++)
            out[k * s->n_cols + c] = plain[c * s->kernel + k];
    memset(out + n, 0, (s->width - n) * sizeof(*out));
}

/* Writes Q8_0 blocks with the file's own quants: only the scale is rounded, to F16. */
static void put_quants(const float *values, float scale, uint32_t width, uint8_t *out)
{
    uint16_t d = quant_f32_to_f16(scale);
    for (uint32_t b = 0; b < width / BLOCK; b++, out += BLOCK_BYTES) {
        memcpy(out, &d, sizeof(d));
        for (uint32_t i = 0; i < BLOCK; i++)
            out[2 + i] = (uint8_t)(int8_t)values[b * BLOCK + i];
    }
}

/* Converts all rows to the input of tiles_fill: floats, or Q8_0 blocks. */
static int fill_rows(const struct source *s, bool int8, float *plain, float *row, uint8_t *rows,
                     size_t row_bytes, struct err *e)
{
    for (uint32_t r = 0; r < s->n_rows; r++) {
        uint8_t *to = rows + r * row_bytes;
        read_row(s, r, plain, row);
        int rc = check_finite(s->t, row, s->width, e);
        if (rc < 0)
            return rc;
        if (int8 && s->scales) {
            put_quants(row, s->scales[r], s->width, to);
        } else if (int8) {
            (void)quant_from_f32(QUANT_Q8_0, row, to, s->width, NULL);
        } else {
            for (uint32_t i = 0; s->scales && i < s->width; i++)
                row[i] *= s->scales[r];
            memcpy(to, row, row_bytes);
        }
    }
    return 0;
}

static int tile(struct recurrent_weights *w, struct source *s, struct kern_mat *out, struct err *e)
{
    /* A narrow input would leave an 8-bit block half empty: it stays in floats. */
    const bool int8 = (w->int8 || s->scales) && s->kernel * s->n_cols > BLOCK / 2;
    const enum quant_type type = int8 ? QUANT_Q8_0 : QUANT_F32;
    const uint32_t n = s->kernel * s->n_cols;
    s->width = int8 ? (n + BLOCK - 1) / BLOCK * BLOCK : n;
    size_t row_bytes = int8 ? (size_t)s->width / BLOCK * BLOCK_BYTES : (size_t)n * sizeof(float);
    struct kern_mat m = {.fmt = tiles_fmt_of(type), .n_rows = s->n_rows, .n_cols = s->width};
    m.tile_bytes = tiles_bytes(&w->k->layout, m.fmt, m.n_cols);
    const uint32_t n_tiles = tiles_count(&w->k->layout, s->n_rows);

    uint8_t *data = arena_zalloc_n(w->arena, (size_t)n_tiles + 1, m.tile_bytes + 64);
    float *row = mem_zalloc_n((size_t)s->width + n + 1, sizeof(*row));
    uint8_t *rows = mem_zalloc_n((size_t)s->n_rows + 1, row_bytes);
    void *work = mem_aligned(tiles_work_bytes(s->width));
    int rc = data && row && rows && work ? 0 : err_set(e, SHOAL_ENOMEM, "%.200s", s->t->name);
    if (rc == 0)
        rc = fill_rows(s, int8, row + s->width, row, rows, row_bytes, e);
    if (rc == 0) {
        data += (64 - (uintptr_t)data % 64) % 64;
        m.data = data;
        m.mul = tiles_mul(type, rows, m.n_rows, m.n_cols);
        for (uint32_t i = 0; i < n_tiles; i++)
            tiles_fill(&w->k->layout, type, rows, m.n_rows, m.n_cols, m.mul, i,
                       data + i * m.tile_bytes, work);
        *out = m;
        w->any_int8 |= int8;
    }
    mem_free(row);
    mem_free(rows);
    mem_free(work);
    return rc;
}

int recurrent_weights_matrix(struct recurrent_weights *w, struct recurrent_mat *out,
                             const char *name, const char *part, const char *bias, uint32_t n_rows,
                             uint32_t n_cols, uint32_t kernel, uint32_t *rows_found, struct err *e)
{
    const struct safetensors_tensor *t = find(w, name, part, "");
    struct source s = {.t = t, .n_cols = n_cols, .kernel = kernel};
    if (!t)
        return err_set(e, SHOAL_EFORMAT, "tensor %.120s.%s is missing", name, part);
    /* A convolution over one sample is a matrix with a third dimension of 1. */
    bool shaped = (t->n_dims == 3 && t->dims[2] == kernel) || (t->n_dims == 2 && kernel == 1);
    if (!shaped || t->dims[1] != n_cols || t->dims[0] < 1 || t->dims[0] > MAX_ROWS ||
        (n_rows && t->dims[0] != n_rows))
        return err_set(e, SHOAL_EFORMAT, "%.200s: [%llu, %llu%s] does not fit %u inputs", t->name,
                       (unsigned long long)(t->n_dims > 0 ? t->dims[0] : 0),
                       (unsigned long long)(t->n_dims > 1 ? t->dims[1] : 0),
                       t->n_dims > 2 ? ", ..." : "", n_cols);
    if ((uint64_t)kernel * n_cols > MAX_COLS)
        return err_set(e, SHOAL_ELIMIT, "%.200s: rows of %llu values are too long", t->name,
                       (unsigned long long)kernel * n_cols);
    s.n_rows = *rows_found = (uint32_t)t->dims[0];
    float one;
    int rc = 0;
    if (t->type == SAFETENSORS_I8) {
        const struct safetensors_tensor *scale = find(w, name, part, "_scale");
        rc = scale ? read_vector(w, scale, s.n_rows, &s.scales, e)
                   : err_set(e, SHOAL_EFORMAT, "tensor %.200s_scale is missing", t->name);
    } else if (!read_floats(t, 0, 0, &one)) {
        rc = err_set(e, SHOAL_EUNSUPPORTED, "%.200s: type %s is not supported", t->name,
                     safetensors_type_name(t->type));
    }
    if (rc == 0)
        rc = tile(w, &s, &out->m, e);
    return rc < 0 ? rc : recurrent_weights_vector(w, &out->bias, name, bias, s.n_rows, false, e);
}
