/* step_plan.c - see step_plan.h. */
#include "engine/cuda/step_plan.h"

#include <string.h>

#include "base/mem.h"
#include "engine/cuda/many_plan.h"
#include "engine/cuda/one_plan.h"
#include "kernels/tiles.h"

/* Shared memory for what does not grow with the number of tokens: the more, the more rows of a
 * product are computed between two waits. */
#define WORK_LEAST ((size_t)24 << 10)
#define WORK_ENOUGH ((size_t)96 << 10)

_Static_assert(sizeof(struct step_layer) % 16 == 0, "the kernel copies whole pieces of 16 bytes");

struct making {
    const struct step_place *at;
    struct decoder_parts d;
    struct step_model *m;
    struct step_layer *all; /* of the host; owned */
    struct err *e;
};

static int place(struct making *k, void *out, const void *from, size_t bytes)
{
    void *p = NULL;
    int rc = k->at->place(k->at->ctx, &p, from, bytes ? bytes : 4, k->e);
    memcpy(out, &p, sizeof(p));
    return rc;
}

static int vector(struct making *k, const float **out, const float *from, size_t n)
{
    *out = NULL;
    return from ? place(k, out, from, n * sizeof(float)) : 0;
}

static enum step_fmt format_of(enum kern_fmt fmt)
{
    static const enum step_fmt of[KERN_N_FMTS] = {
        [KERN_F32] = STEP_F32, [KERN_F16] = STEP_F16, [KERN_BF16] = STEP_BF16,
        [KERN_Q8] = STEP_Q8,   [KERN_Q4] = STEP_Q4,   [KERN_Q4M] = STEP_Q4M,
        [KERN_Q5] = STEP_Q5,   [KERN_Q5M] = STEP_Q5M, [KERN_Q6] = STEP_Q6};
    return of[fmt];
}

/* Everything but where it is. */
static int describe(struct making *k, struct step_mat *out, const struct linear *l)
{
    *out = (struct step_mat){.data = NULL};
    if (l->mat == NO_MAT)
        return 0;
    const struct weights *w = k->d.weights;
    const struct kern_mat *m = &w->mats[l->mat];
    const struct tiles_map map = tiles_map(&w->layout, m->fmt, m->n_cols);
    const struct str name = w->tensors[l->mat]->name;
    if (w->layout.tile_rows != 1 || m->fmt == KERN_Q8W)
        return err_set(k->e, SHOAL_EINTERNAL, "tensor %.*s is not laid out by rows", (int)name.n,
                       name.p);
    *out = (struct step_mat){.fmt = format_of(m->fmt),
                             .n_rows = m->n_rows,
                             .n_cols = m->n_cols,
                             .row_bytes = (uint32_t)m->tile_bytes,
                             .mins = (uint32_t)map.mins,
                             .quants = (uint32_t)map.quants,
                             .mul = m->mul};
    if (kern_fmt_is_float(m->fmt)) {
        k->m->any_float = 1;
    } else {
        k->m->any_int = 1;
        k->m->any_sums |= m->fmt != KERN_Q8;
        out->pieces = m->n_cols / (m->fmt == KERN_Q8 ? 16 : 32);
        out->magic = (uint32_t)((((uint64_t)1 << 32) + out->pieces - 1) / out->pieces);
        if (out->pieces * 2 > STEP_PIECES)
            return err_set(k->e, SHOAL_EUNSUPPORTED,
                           "tensor %.*s has %u columns, the GPU computes at most %u: use the CPU",
                           (int)name.n, name.p, m->n_cols, STEP_PIECES * 8);
    }
    return vector(k, &out->bias, l->bias, m->n_rows);
}

static int matrix(struct making *k, struct step_mat *out, const struct linear *l)
{
    int rc = describe(k, out, l);
    if (rc < 0 || l->mat == NO_MAT)
        return rc;
    const struct kern_mat *m = &k->d.weights->mats[l->mat];
    return place(k, &out->data, m->data, m->tile_bytes * m->n_rows);
}

/* Whether one product can cover both: everything but the rows is the same. */
static bool alike(const struct step_mat *a, const struct step_mat *b)
{
    return a->fmt == b->fmt && a->n_cols == b->n_cols && a->row_bytes == b->row_bytes;
}

/* Biases of matrices one after the other, if all have one. */
static int join_biases(struct making *k, struct step_mat *out, const struct linear *const *from,
                       uint32_t n)
{
    size_t rows = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!from[i]->bias)
            return 0;
        rows += out[i].n_rows;
    }
    float *joined = mem_alloc(rows * sizeof(*joined)), *to = joined;
    if (!joined)
        return err_set(k->e, SHOAL_ENOMEM, "out of memory for copying biases to the GPU");
    for (uint32_t i = 0; i < n; to += out[i].n_rows, i++)
        memcpy(to, from[i]->bias, out[i].n_rows * sizeof(*joined));
    const float *base;
    int rc = place(k, &base, joined, rows * sizeof(*joined));
    mem_free(joined);
    for (uint32_t i = 0; rc == 0 && i < n; base += out[i].n_rows, i++)
        out[i].bias = base;
    return rc;
}

/* Up to three matrices of the same shape one after the other, or (turns) a row of each in turns. */
static int matrices(struct making *k, struct step_mat *out, const struct linear *const *from,
                    uint32_t n, bool turns, uint32_t *all_alike)
{
    int rc = 0;
    size_t bytes = 0;
    *all_alike = 1;
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        rc = describe(k, &out[i], from[i]);
        *all_alike &= alike(&out[0], &out[i]);
        bytes += (size_t)out[i].row_bytes * out[i].n_rows;
    }
    if (rc < 0 || !*all_alike || out[0].fmt <= STEP_BF16) {
        for (uint32_t i = 0; rc == 0 && i < n; i++)
            rc = matrix(k, &out[i], from[i]);
        return rc;
    }
    uint8_t *joined = mem_alloc(bytes);
    if (!joined)
        return err_set(k->e, SHOAL_ENOMEM, "out of memory for copying weights to the GPU");
    size_t to[3], at = 0;
    for (uint32_t i = 0; i < n; i++) {
        const size_t row = out[i].row_bytes;
        const uint8_t *data = k->d.weights->mats[from[i]->mat].data;
        to[i] = turns ? i * row : at;
        for (uint32_t r = 0; turns && r < out[i].n_rows; r++)
            memcpy(joined + (r * n + i) * row, data + r * row, row);
        if (!turns)
            memcpy(joined + at, data, row * out[i].n_rows);
        at += row * out[i].n_rows;
    }
    const uint8_t *base;
    rc = place(k, &base, joined, bytes);
    mem_free(joined);
    if (rc == 0 && !turns)
        rc = join_biases(k, out, from, n);
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        out[i].data = base + to[i];
        out[i].row_bytes *= turns ? n : 1;
    }
    return rc;
}

static int layer(struct making *k, struct step_layer *out, const struct layer *l)
{
    const struct decoder_config *c = k->d.c;
    const struct {
        const float **to;
        const float *from;
        uint32_t n;
    } vectors[] = {{&out->attn_norm_w, l->attn_norm_w, c->dim},
                   {&out->attn_norm_b, l->attn_norm_b, c->dim},
                   {&out->ffn_norm_w, l->ffn_norm_w, c->dim},
                   {&out->ffn_norm_b, l->ffn_norm_b, c->dim},
                   {&out->q_norm, l->q_norm, c->head_dim},
                   {&out->k_norm, l->k_norm, c->head_dim},
                   {&out->post_attn_norm, l->post_attn_norm, c->dim},
                   {&out->post_ffn_norm, l->post_ffn_norm, c->dim}};
    int rc = 0;
    out->n_qkv = l->n_qkv;
    out->window = l->window;
    out->local_rope = l->local_rope;
    const struct linear *const qkv[3] = {&l->qkv[0], &l->qkv[1], &l->qkv[2]};
    const struct linear *const ffn[2] = {&l->gate, &l->up};
    struct step_mat both[2] = {{.data = NULL}};
    rc = matrices(k, out->qkv, qkv, l->n_qkv, false, &out->qkv_alike);
    if (rc == 0)
        rc = matrix(k, &out->out, &l->attn_out);
    if (rc == 0 && l->gate.mat != NO_MAT)
        rc = matrices(k, both, ffn, 2, true, &out->ffn_alike);
    else if (rc == 0)
        rc = matrix(k, &both[1], &l->up);
    out->gate = both[0];
    out->up = both[1];
    if (rc == 0)
        rc = matrix(k, &out->down, &l->down);
    for (size_t i = 0; rc == 0 && i < sizeof(vectors) / sizeof(vectors[0]); i++)
        rc = vector(k, vectors[i].to, vectors[i].from, vectors[i].n);
    return rc;
}

static int layers(struct making *k)
{
    const uint32_t n = k->d.c->n_layers;
    struct step_layer *all = mem_zalloc_n(n, sizeof(*all));
    int rc = all ? 0 : err_set(k->e, SHOAL_ENOMEM, "out of memory for the plan of %u layers", n);
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        rc = layer(k, &all[i], &k->d.layers[i]);
    if (rc == 0)
        rc = place(k, &k->m->layers, all, n * sizeof(*all));
    if (rc == 0)
        k->all = all;
    else
        mem_free(all);
    return rc;
}

static int rotations(struct making *k, const struct decoder *d)
{
    const struct decoder_config *c = k->d.c;
    const size_t row = (size_t)2 * c->rope_dim;
    float *cs = mem_alloc((row * k->d.n_ctx + 1) * sizeof(*cs));
    int rc = cs ? 0 : err_set(k->e, SHOAL_ENOMEM, "out of memory for the rotation table");
    for (int which = 0; rc == 0 && which < (c->rope_base_local > 0.0f ? 2 : 1); which++) {
        for (uint32_t pos = 0; c->rope_dim && pos < k->d.n_ctx; pos++)
            decoder_rotation(d, which == 1, pos, cs + pos * row);
        rc = place(k, &k->m->rope[which], cs, row * k->d.n_ctx * sizeof(*cs));
    }
    if (rc == 0 && !k->m->rope[1])
        k->m->rope[1] = k->m->rope[0];
    mem_free(cs);
    return rc;
}

static uint32_t take(uint32_t *at, size_t bytes)
{
    const uint32_t from = *at;
    *at += (uint32_t)((bytes + 127) / 128 * 128);
    return from;
}

/* The least work memory: two rows of terms for each token, the queries of a unit of attention, or
 * a line of each row of a product with floats. */
static size_t least_work(const struct step_model *m, const struct step_place *at, uint32_t tokens,
                         uint32_t widest)
{
    const size_t group = m->n_heads / m->n_kv_heads;
    const size_t terms = (size_t)2 * tokens * (widest / 16 + 1) * 8;
    /* queries, and a page of keys and values beside them */
    const size_t heads = (tokens * (group + 2) * m->head_dim + tokens * group + 64) * 4 +
                         2 * m->kv_head_bytes + 1024;
    const size_t joined = (STEP_MAX_TOKENS * 2 + (size_t)tokens * m->dim) * 4;
    const size_t lines =
        m->any_float ? (size_t)(at->n_threads < 512 ? at->n_threads : 512) * 80 : 0;
    size_t most = terms > heads ? terms : heads;
    most = most > joined ? most : joined;
    return (most > lines ? most : lines) + 128;
}

/* Divides the shared memory for that many tokens; false: they do not fit. */
static bool divide(struct step_model *m, const struct step_place *at, uint32_t tokens)
{
    const uint32_t heads = m->n_heads * m->head_dim;
    uint32_t widest = m->dim > m->ffn_dim ? m->dim : m->ffn_dim, to = 0;
    widest = heads > widest ? heads : widest;
    m->exchange_ld = heads + 2 * m->n_kv_heads * m->head_dim;
    m->exchange_ld = widest > m->exchange_ld ? widest : m->exchange_ld;
    struct step_shared *s = &m->shared;
    *s = (struct step_shared){.ld = (widest + 31) / 32 * 32};
    (void)take(&to, sizeof(struct step_head));
    s->x = take(&to, (size_t)tokens * m->dim * 4);
    s->xf = take(&to, m->any_float ? (size_t)tokens * s->ld * 4 : 0);
    s->xq = take(&to, m->any_int ? (size_t)tokens * s->ld : 0);
    s->scale = take(&to, m->any_int ? (size_t)tokens * s->ld / 32 * 4 : 0);
    s->sums = take(&to, m->any_sums ? (size_t)tokens * s->ld / 16 * 4 : 0);
    s->exchange = take(&to, m->cluster ? (size_t)2 * tokens * m->exchange_ld * 4 : 0);
    s->work = to;
    size_t least = least_work(m, at, tokens, widest);
    least = least > WORK_LEAST ? least : WORK_LEAST;
    if (to + least > at->shared_bytes)
        return false;
    size_t work = at->shared_bytes - to;
    work = work < WORK_ENOUGH ? work : least > WORK_ENOUGH ? least : WORK_ENOUGH;
    s->work_bytes = (uint32_t)(work / 128 * 128);
    s->bytes = to + s->work_bytes;
    m->tokens = tokens;
    return true;
}

static int share(struct making *k)
{
    uint32_t tokens = k->at->max_tokens ? k->at->max_tokens : STEP_MAX_TOKENS;
    while (tokens > 0 && !divide(k->m, k->at, tokens))
        tokens--;
    return tokens ? 0
                  : err_set(k->e, SHOAL_EUNSUPPORTED,
                            "a block of this GPU has %zu KiB of shared memory, too little for a "
                            "model of width %u and %u",
                            k->at->shared_bytes >> 10, k->m->dim, k->m->ffn_dim);
}

static int buffers(struct making *k)
{
    struct step_model *m = k->m;
    static const uint32_t zero;
    m->score_ld = (k->d.n_ctx + 31) / 16 * 16;
    int rc = place(k, &m->exchange, NULL, (size_t)2 * m->tokens * m->exchange_ld * sizeof(float));
    if (rc == 0)
        rc = place(k, &m->scores, NULL, (size_t)k->at->n_blocks * m->score_ld * sizeof(float));
    if (rc == 0)
        rc = place(k, &m->barrier, &zero, sizeof(zero));
    return rc;
}

int step_plan(struct step_model *out, struct one_model *one, struct many_plan *many,
              const struct decoder *d, const struct step_place *at, struct err *e)
{
    struct making k = {.at = at, .d = decoder_parts(d), .m = out, .e = e};
    const struct decoder_config *c = k.d.c;
    *out = (struct step_model){.n_layers = c->n_layers,
                               .dim = c->dim,
                               .n_heads = c->n_heads,
                               .n_kv_heads = c->n_kv_heads,
                               .head_dim = c->head_dim,
                               .ffn_dim = c->ffn_dim,
                               .n_vocab = c->n_vocab,
                               .rope_dim = c->rope_dim,
                               .rope_neox = c->rope_neox,
                               .layer_norm = c->layer_norm,
                               .parallel = c->parallel,
                               .gated = c->gated,
                               .gelu = c->act == DECODER_ACT_GELU,
                               .kv_q8 = k.d.kv_kind == KERN_KV_Q8,
                               .norm_eps = c->norm_eps,
                               .attn_scale = c->attn_scale,
                               .kv_head_bytes = k.d.kv_head_bytes,
                               .kv_page_bytes = k.d.kv_page_bytes,
                               .cluster = at->cluster};
    const char *extra = arch_extra(c);
    if (extra)
        return err_set(e, SHOAL_EUNSUPPORTED, "%s: the GPU cannot compute %s: use the CPU", c->arch,
                       extra);
    int rc = layers(&k);
    if (rc == 0)
        rc = vector(&k, &out->final_norm_w, k.d.final_norm_w, c->dim);
    if (rc == 0)
        rc = vector(&k, &out->final_norm_b, k.d.final_norm_b, c->dim);
    if (rc == 0)
        rc = matrix(&k, &out->output, k.d.output);
    if (rc == 0)
        rc = rotations(&k, d);
    if (rc == 0)
        rc = share(&k);
    if (rc == 0)
        rc = buffers(&k);
    *many = (struct many_plan){.layers = NULL};
    if (rc == 0)
        rc = one_plan(one, out, k.all, at, e);
    if (rc == 0)
        rc = many_plan(many, out, k.all, at, e);
    mem_free(k.all);
    return rc;
}
