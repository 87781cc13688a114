/* adapter_make.c - see adapter_make.h. */
#include "model/adapter_make.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "model/adapter_int.h"
#include "model/decoder.h"
#include "model/decoder_parts.h"

#define NAME_BYTES 192u

struct making {
    struct adapter *a;
    const struct model_file *file, *base;
    struct decoder_parts parts;
    struct model_file *made; /* holds the matrices as they are tiled */
    bool *used;              /* per tensor of the file */
    double alpha;
    struct err *e;
};

/* The tensor of the base that a linear is, or some rows of. */
static const struct model_file_tensor *whole_of(const struct making *m, const struct linear *l)
{
    char name[NAME_BYTES];
    const struct str own = m->parts.weights->tensors[l->mat]->name;
    snprintf(name, sizeof(name), "%.*s", (int)own.n, own.p);
    return model_file_find_tensor(m->base, name);
}

static const struct model_file_tensor *find(struct making *m, struct str name, char which)
{
    char full[NAME_BYTES];
    const int n = snprintf(full, sizeof(full), "%.*s.lora_%c", (int)name.n, name.p, which);
    const struct model_file_tensor *t =
        n > 0 && (size_t)n < sizeof(full) ? model_file_find_tensor(m->file, full) : NULL;
    if (t)
        m->used[t - m->file->tensors] = true;
    return t;
}

/* One linear of the base with its two matrices; row0: the first of its rows in the file's tensor.
 */
struct pair {
    const struct linear *l;
    const struct model_file_tensor *a, *b;
    uint32_t row0, out;
};

static int check_pair(const struct making *m, const struct pair *p, struct err *e)
{
    const struct kern_mat *w = &m->parts.weights->mats[p->l->mat];
    const struct str name = m->parts.weights->tensors[p->l->mat]->name;
    const struct model_file_tensor *whole = whole_of(m, p->l);
    const uint64_t rows = whole ? whole->dims[1] : w->n_rows;
    if (!p->a || !p->b)
        return err_set(e, SHOAL_EFORMAT, "tensor %.*s: the adapter has one matrix of two",
                       (int)name.n, name.p);
    if (p->a->n_dims != 2 || p->b->n_dims != 2 || p->a->dims[0] != w->n_cols ||
        p->b->dims[1] != rows || p->a->dims[1] != p->b->dims[0])
        return err_set(e, SHOAL_EFORMAT,
                       "tensor %.*s: the adapter's matrices are %llu x %llu and %llu x %llu, which "
                       "do not fit %llu x %u: it belongs to another base",
                       (int)name.n, name.p, (unsigned long long)p->b->dims[1],
                       (unsigned long long)p->b->dims[0], (unsigned long long)p->a->dims[1],
                       (unsigned long long)p->a->dims[0], (unsigned long long)rows, w->n_cols);
    if (p->a->dims[1] == 0 || p->a->dims[1] > ADAPTER_MAX_RANK)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "tensor %.*s: the adapter's rank is %llu, at most %u is possible beside a "
                       "base; merge it ('shoal model lora merge')",
                       (int)name.n, name.p, (unsigned long long)p->a->dims[1], ADAPTER_MAX_RANK);
    return 0;
}

/* A matrix in memory, as F16: what it adds is small beside the base, and decoding reads all of it.
 * A power of two keeps small values out of the subnormal range; *back undoes it. */
static int add_matrix(struct making *m, struct str name, const float *values, uint64_t rows,
                      uint64_t cols, uint32_t *index, float *back)
{
    const size_t n = (size_t)(rows * cols);
    float most = 0.0f;
    uint16_t *half = model_file_alloc(m->made, n * sizeof(*half));
    struct model_file_tensor *t = half ? model_file_alloc(m->made, sizeof(*t)) : NULL;
    if (!t)
        return err_set(m->e, SHOAL_ENOMEM, "out of memory for the adapter's matrices");
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i]))
            return err_set(m->e, SHOAL_EFORMAT,
                           "tensor %.*s: the adapter has a value that is not finite", (int)name.n,
                           name.p);
        most = fabsf(values[i]) > most ? fabsf(values[i]) : most;
    }
    int exponent = 0;
    (void)frexpf(most, &exponent); /* most < 2^exponent */
    exponent = exponent < -100 ? -100 : exponent;
    for (size_t i = 0; i < n; i++)
        half[i] = quant_f32_to_f16(ldexpf(values[i], -exponent));
    *back = ldexpf(1.0f, exponent);
    *t = (struct model_file_tensor){.name = name,
                                    .type = QUANT_F16,
                                    .n_dims = 2,
                                    .dims = {cols, rows, 1, 1},
                                    .data = (const uint8_t *)half,
                                    .n_bytes = n * sizeof(*half),
                                    .in_memory = true};
    return weights_add(&m->a->weights, t, index, m->e);
}

/* Rows of a tensor in any order and type, one after the other. */
static void copy_rows(float *to, const struct model_file_tensor *t, uint32_t row0, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        model_file_row_f32(t, row0 + i, to + (size_t)i * t->dims[0]);
}

static void plan_part(const struct making *m, struct adapter_site *s, const struct pair *p)
{
    const uint32_t rank = (uint32_t)p->b->dims[0];
    s->parts[s->n_parts++] = (struct adapter_part){.low_at = s->n_low,
                                                   .rank = rank,
                                                   .out = p->out,
                                                   .out_at = p->l->out_at,
                                                   .factor = (float)(m->alpha / rank)};
    s->n_low += rank;
}

static int add_high(struct making *m, struct adapter_part *to, const struct pair *p, float *back)
{
    const struct kern_mat *w = &m->parts.weights->mats[p->l->mat];
    const struct str name = m->parts.weights->tensors[p->l->mat]->name;
    const uint32_t rank = to->rank;
    float *values = mem_zalloc_n((size_t)w->n_rows * rank, sizeof(*values));
    if (!values)
        return err_set(m->e, SHOAL_ENOMEM, "out of memory for the adapter's matrices");
    copy_rows(values, p->b, p->row0, w->n_rows);
    int rc = add_matrix(m, name, values, w->n_rows, rank, &to->b, back);
    mem_free(values);
    return rc;
}

/* The A of all pairs of a place, one below the other. */
static int add_low(struct making *m, struct adapter_site *s, const struct pair *pairs, uint32_t n,
                   float *back)
{
    const uint32_t cols = (uint32_t)pairs[0].a->dims[0];
    const struct str name = m->parts.weights->tensors[pairs[0].l->mat]->name;
    float *values = mem_zalloc_n((size_t)s->n_low * cols, sizeof(*values));
    if (!values)
        return err_set(m->e, SHOAL_ENOMEM, "out of memory for the adapter's matrices");
    for (uint32_t i = 0; i < n; i++)
        copy_rows(values + (size_t)s->parts[i].low_at * cols, pairs[i].a, 0, s->parts[i].rank);
    int rc = add_matrix(m, name, values, s->n_low, cols, &s->a, back);
    mem_free(values);
    return rc;
}

static int add_site(struct making *m, uint32_t layer, enum adapter_place place,
                    const struct linear *const *list, uint32_t n)
{
    struct adapter_site *s = &m->a->sites[layer * ADAPTER_PLACES + place];
    struct pair pairs[ADAPTER_MAX_PARTS];
    float back = 1.0f, a_back = 1.0f;
    uint32_t n_pairs = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (list[i]->mat == NO_MAT)
            continue;
        const struct model_file_tensor *own = m->parts.weights->tensors[list[i]->mat];
        const struct model_file_tensor *whole = whole_of(m, list[i]);
        struct pair *p = &pairs[n_pairs];
        *p = (struct pair){.l = list[i],
                           .a = find(m, own->name, 'a'),
                           .b = find(m, own->name, 'b'),
                           .out = place == ADAPTER_FFN ? i : 0};
        if (!p->a && !p->b)
            continue;
        if (whole && whole != own && whole->dims[1] != own->dims[1]) /* some rows of a matrix */
            p->row0 = (uint32_t)((size_t)(own->data - whole->data) /
                                 (whole->n_bytes / (size_t)whole->dims[1]));
        int rc = check_pair(m, p, m->e);
        if (rc < 0)
            return rc;
        n_pairs++;
    }
    if (n_pairs == 0)
        return 0;
    for (uint32_t i = 0; i < n_pairs; i++)
        plan_part(m, s, &pairs[i]);
    /* in the order in which a pass reads them: then memory is one stream */
    int rc = add_low(m, s, pairs, n_pairs, &a_back);
    for (uint32_t i = 0; rc == 0 && i < n_pairs; i++) {
        rc = add_high(m, &s->parts[i], &pairs[i], &back);
        s->parts[i].factor *= back * a_back;
    }
    m->a->places |= 1u << place;
    return rc;
}

static int add_layer(struct making *m, uint32_t i)
{
    const struct layer *l = &m->parts.layers[i];
    const struct linear *in[ADAPTER_MAX_PARTS], *out = &l->attn_out, *ffn[] = {&l->gate, &l->up};
    const struct linear *down = &l->down;
    assert(l->n_qkv <= ADAPTER_MAX_PARTS);
    for (uint32_t j = 0; j < l->n_qkv; j++)
        in[j] = &l->qkv[j];
    int rc = add_site(m, i, ADAPTER_IN, in, l->n_qkv);
    if (rc == 0)
        rc = add_site(m, i, ADAPTER_OUT, &out, 1);
    if (rc == 0)
        rc = add_site(m, i, ADAPTER_FFN, ffn, 2);
    if (rc == 0)
        rc = add_site(m, i, ADAPTER_DOWN, &down, 1);
    return rc;
}

static int check_all_used(const struct making *m)
{
    for (size_t i = 0; i < m->file->n_tensors; i++)
        if (!m->used[i])
            return err_set(m->e, SHOAL_EUNSUPPORTED,
                           "the adapter's tensor %.*s belongs to no matrix of a layer of the base: "
                           "it is of another model, or must be merged ('shoal model lora merge')",
                           (int)m->file->tensors[i].name.n, m->file->tensors[i].name.p);
    return m->file->n_tensors > 0 ? 0 : err_set(m->e, SHOAL_EFORMAT, "the adapter has no matrices");
}

static int tile(struct making *m)
{
    struct crew_lane *lane = NULL;
    int rc = crew_lane_create(&lane, NULL, 1, m->e);
    if (rc == 0)
        rc = weights_load(&m->a->weights, "", NULL, lane, NULL, NULL, m->e);
    crew_lane_destroy(lane);
    return rc;
}

static int fill(struct making *m)
{
    if (!model_file_get_f64(m->file, "adapter.lora.alpha", &m->alpha) || !isfinite(m->alpha))
        return err_set(m->e, SHOAL_EFORMAT, "the adapter has no adapter.lora.alpha");
    int rc = model_file_create(&m->made, m->e);
    if (rc < 0)
        return rc;
    m->used = mem_zalloc_n(m->file->n_tensors + 1, sizeof(*m->used));
    m->a->sites = mem_zalloc_n((size_t)m->a->n_layers * ADAPTER_PLACES, sizeof(*m->a->sites));
    if (!m->used || !m->a->sites)
        return err_set(m->e, SHOAL_ENOMEM, "out of memory for an adapter");
    for (uint32_t i = 0; rc == 0 && i < m->a->n_layers; i++)
        rc = add_layer(m, i);
    if (rc == 0)
        rc = check_all_used(m);
    return rc < 0 ? rc : tile(m);
}

int adapter_make(struct adapter **out, const struct decoder *d, const struct model_file *file,
                 struct err *e)
{
    struct making m = {.file = file, .base = decoder_file(d), .parts = decoder_parts(d), .e = e};
    *out = NULL;
    m.a = mem_zalloc(sizeof(*m.a));
    if (!m.a)
        return err_set(e, SHOAL_ENOMEM, "out of memory for an adapter");
    m.a->k = decoder_kernels(d);
    m.a->n_layers = m.parts.c->n_layers;
    weights_init(&m.a->weights, &m.a->k->layout);
    int rc = fill(&m);
    model_file_close(m.made);
    mem_free(m.used);
    if (rc < 0) {
        adapter_destroy(m.a);
        return rc;
    }
    *out = m.a;
    return 0;
}
