/* many_plan.c - see many_plan.h. */
#include "engine/cuda/many_plan.h"

#include <string.h>

#include "base/mem.h"
#include "engine/cuda/one_plan.h"

enum { /* of many.cu */
       STAGES = 3,
       THIN_TOKENS = 8,
       THIN_ROWS = 16,
       THIN_SUMS = 1152,
       THIN_PART = 8,
       WIDE_TOKENS = 32,
       WIDE_PART = 4,
       WIDE_FROM = 33 /* tokens from which wide tiles are used */
};

static bool known_fmt(uint32_t fmt)
{
    return fmt == STEP_Q8 || fmt == STEP_Q4;
}

static bool known(const struct one_layer *layers, const struct step_model *m)
{
    for (uint32_t i = 0; i <= m->n_layers; i++)
        for (uint32_t p = 0; p < (i < m->n_layers ? ONE_PHASES : 1); p++)
            if (!known_fmt(layers[i].mats[p].fmt))
                return false;
    return m->n_heads / m->n_kv_heads <= MANY_ROWS;
}

/* Attention's shared memory for that many keys. */
static uint32_t attend_bytes(const struct step_model *m, uint32_t score_ld)
{
    return (MANY_ROWS * m->head_dim + MANY_ROWS + MANY_ROWS * score_ld) * 4;
}

static int buffers(struct many_plan *k, const struct step_model *m, const struct step_place *at,
                   struct err *e)
{
    const uint32_t heads = m->n_heads * m->head_dim;
    const uint32_t wide = heads > m->ffn_dim ? heads : m->ffn_dim;
    const size_t n = k->max_tokens;
    k->ldq = m->shared.ld;
    k->lds = (k->ldq / 32 + 7) / 8 * 8;
    const struct {
        void *to;
        size_t bytes;
    } all[] = {{&k->qkv, n * (heads + 2 * m->n_kv_heads * m->head_dim) * 4},
               {&k->wide, n * wide * 4},
               {&k->xq, n * k->ldq},
               {&k->scale, n * k->lds * 4}};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(all) / sizeof(all[0]); i++) {
        void *p = NULL;
        rc = at->place(at->ctx, &p, NULL, all[i].bytes, e);
        *(void **)all[i].to = p;
    }
    return rc;
}

int many_plan(struct many_plan *out, const struct step_model *m, const struct step_layer *layers,
              const struct step_place *at, struct err *e)
{
    *out = (struct many_plan){.layers = NULL};
    if (!at->many_threads[MANY_INPUT] || !at->many_tokens || !one_plan_knows(m, layers))
        return 0;
    struct many_plan k = {.max_tokens = at->many_tokens};
    memcpy(k.threads, at->many_threads, sizeof(k.threads));
    k.layers = one_plan_layers(m, layers, 1);
    k.windows = mem_zalloc_n(m->n_layers, sizeof(*k.windows));
    if (!k.layers || !k.windows) {
        many_plan_free(&k);
        return err_set(e, SHOAL_ENOMEM, "out of memory for the plan of %u layers", m->n_layers);
    }
    for (uint32_t i = 0; i < m->n_layers; i++)
        k.windows[i] = layers[i].window;
    k.tile = MANY_ROWS / (m->n_heads / m->n_kv_heads);
    const uint32_t fixed = attend_bytes(m, 0);
    k.most_keys = fixed < at->shared_bytes
                      ? (uint32_t)((at->shared_bytes - fixed) / (MANY_ROWS * 4)) / 16 * 16
                      : 0;
    if (!known(k.layers, m) || k.most_keys < 16) {
        many_plan_free(&k);
        return 0;
    }
    int rc = buffers(&k, m, at, e);
    if (rc < 0)
        many_plan_free(&k);
    else
        *out = k;
    return rc;
}

void many_plan_free(struct many_plan *k)
{
    mem_free(k->layers);
    mem_free(k->windows);
    *k = (struct many_plan){.layers = NULL};
}

bool many_plan_fits(const struct many_plan *k, uint32_t n_tokens, uint32_t last)
{
    return k->layers && n_tokens <= k->max_tokens && last < k->most_keys;
}

/* ---- a pass --------------------------------------------------------------------------------- */

struct run {
    const struct many_plan *k;
    const struct step_model *m;
    const struct step_pass *p;
    const struct many_launcher *to;
    float *x;
    struct err *e;
};

static int launch(const struct run *r, enum many_kernel kernel, uint32_t blocks, uint32_t shared,
                  const void *param)
{
    return r->to->launch(r->to->ctx, kernel, blocks, shared, param, r->e);
}

/* The input of the next product: `from` with n columns, after a norm if it is not NULL. */
static int input(const struct run *r, const float *from, uint32_t n, const float *norm,
                 const uint32_t *which, uint32_t n_tokens)
{
    /* few tokens: a column for each thread, as the time is that of one load after another */
    const uint32_t threads = r->k->threads[MANY_INPUT];
    const uint32_t parts = n_tokens < WIDE_FROM ? (n + threads - 1) / threads : 1;
    const struct many_input in = {.from = from,
                                  .norm = norm,
                                  .which = which,
                                  .xq = r->k->xq,
                                  .scale = r->k->scale,
                                  .ld = n,
                                  .ldq = r->k->ldq,
                                  .lds = r->k->lds,
                                  .n_cols = n,
                                  .parts = parts,
                                  .eps = r->m->norm_eps};
    return launch(r, MANY_INPUT, n_tokens * parts, norm ? n * 4 : 0, &in);
}

static int product(const struct run *r, const struct one_mat *w, uint32_t n_rows, float *out,
                   uint32_t ld, enum many_end end, uint32_t n_tokens)
{
    const bool wide = n_tokens >= WIDE_FROM;
    const enum many_kernel kernel = wide ? MANY_PRODUCT : MANY_PRODUCT_THIN;
    const uint32_t warps = r->k->threads[kernel] / 32, rows = wide ? warps * 32 : THIN_ROWS;
    const uint32_t tokens = wide ? WIDE_TOKENS : THIN_TOKENS, part = wide ? WIDE_PART : THIN_PART;
    const struct many_product p = {.w = *w,
                                   .n_rows = n_rows,
                                   .n_cols = w->n_blocks * 32,
                                   .row_tiles = (n_rows + rows - 1) / rows,
                                   .n_tokens = n_tokens,
                                   .ldq = r->k->ldq,
                                   .lds = r->k->lds,
                                   .xq = r->k->xq,
                                   .scale = r->k->scale,
                                   .out = out,
                                   .ld = ld,
                                   .end = end,
                                   .gelu = r->m->gelu};
    const uint32_t row_bytes = part * (w->fmt == STEP_Q8 ? 32u : 16u) + 16;
    const uint32_t stage = rows * (row_bytes + 2 * part) + tokens * (part * 32 + 16 + 4 * part);
    const uint32_t shared = wide ? STAGES * stage : STAGES * warps * stage + THIN_SUMS;
    return launch(r, kernel, p.row_tiles * ((n_tokens + tokens - 1) / tokens), shared, &p);
}

static int attention(const struct run *r, uint32_t layer, uint32_t last)
{
    const struct step_model *m = r->m;
    const struct one_layer *l = &r->k->layers[layer];
    const struct many_heads h = {.m = *m,
                                 .p = *r->p,
                                 .q_norm = l->q_norm,
                                 .k_norm = l->k_norm,
                                 .rope = m->rope[0],
                                 .qkv = r->k->qkv,
                                 .att = r->k->wide,
                                 .layer = layer,
                                 .window = r->k->windows[layer],
                                 .score_ld = (last + 16) / 16 * 16};
    const uint32_t warps = r->k->threads[MANY_TURN] / 32,
                   n = r->p->n_tokens * (m->n_heads + 2 * m->n_kv_heads);
    int rc = launch(r, MANY_TURN, (n + warps - 1) / warps, warps * m->head_dim * 4, &h);
    if (rc == 0)
        rc = launch(r, MANY_ATTEND, r->p->n_tiles * m->n_kv_heads, attend_bytes(m, h.score_ld), &h);
    return rc;
}

static int layer(const struct run *r, uint32_t i, uint32_t last)
{
    const struct step_model *m = r->m;
    const struct one_layer *l = &r->k->layers[i];
    const uint32_t n = r->p->n_tokens, heads = m->n_heads * m->head_dim;
    const uint32_t qkv = heads + 2 * m->n_kv_heads * m->head_dim;
    int rc = input(r, r->x, m->dim, l->attn_norm, NULL, n);
    if (rc == 0)
        rc = product(r, &l->mats[ONE_QKV], qkv, r->k->qkv, qkv, MANY_STORE, n);
    if (rc == 0)
        rc = attention(r, i, last);
    if (rc == 0)
        rc = input(r, r->k->wide, heads, NULL, NULL, n);
    if (rc == 0)
        rc = product(r, &l->mats[ONE_OUT], m->dim, r->x, m->dim, MANY_ADD, n);
    if (rc == 0)
        rc = input(r, r->x, m->dim, l->ffn_norm, NULL, n);
    if (rc == 0)
        rc = product(r, &l->mats[ONE_FFN], 2 * m->ffn_dim, r->k->wide, m->ffn_dim, MANY_GATED, n);
    if (rc == 0)
        rc = input(r, r->k->wide, m->ffn_dim, NULL, NULL, n);
    if (rc == 0)
        rc = product(r, &l->mats[ONE_DOWN], m->dim, r->x, m->dim, MANY_ADD, n);
    return rc;
}

int many_run(const struct many_plan *k, const struct step_model *m, const struct step_pass *p,
             uint32_t last, const struct many_launcher *to, struct err *e)
{
    struct run r = {.k = k, .m = m, .p = p, .to = to, .e = e};
    r.x = (float *)(uintptr_t)p->embedded;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < m->n_layers; i++)
        rc = layer(&r, i, last);
    if (rc == 0 && p->n_wanted)
        rc = input(&r, r.x, m->dim, m->final_norm_w, p->wanted, p->n_wanted);
    if (rc == 0 && p->n_wanted)
        rc = product(&r, k->layers[m->n_layers].mats, m->n_vocab, p->logits, m->n_vocab, MANY_STORE,
                     p->n_wanted);
    return rc;
}
