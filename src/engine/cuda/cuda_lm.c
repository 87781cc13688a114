/* cuda_lm.c - see cuda_lm.h. */
#include "engine/cuda/cuda_lm.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "engine/cuda/step_plan.h"

struct cuda_lm {
    struct decoder *d;
    struct cuda_gpu *g;
    struct cuda_gpu_grid grid;
    struct step_model m;
    uint32_t max_batch, max_logits;
    size_t max_pages; /* page numbers of a pass */
    uint8_t *in;      /* of the host: tokens, page numbers, embedded vectors */
    uint8_t *in_gpu;  /* the same on the GPU */
    float *logits;    /* [max_logits][n_vocab] of the host */
    float *logits_gpu;
    float *work; /* [2][dim], for decoder_embed */
    char label[128];
    bool broken;
};

static size_t round16(size_t n)
{
    return (n + 15) / 16 * 16;
}

/* Writes what the kernel reads into lm->in; returns the bytes. */
static size_t lay_out(struct cuda_lm *lm, const struct lm_pass *pass, struct step_pass *p,
                      uint32_t *n_logits)
{
    const uint32_t dim = lm->m.dim;
    struct step_token *tokens = (struct step_token *)(void *)lm->in;
    uint32_t n = 0, n_pages = 0, rows = 0;
    for (uint32_t i = 0; i < pass->n_runs; i++)
        n += pass->runs[i].n;
    const size_t pages_at = round16(n * sizeof(*tokens));
    uint32_t *pages = (uint32_t *)(void *)(lm->in + pages_at), t = 0;
    for (uint32_t i = 0; i < pass->n_runs; i++) {
        const struct decoder_run *r = &pass->runs[i];
        const uint32_t of_run = (r->pos0 + r->n + KERN_PAGE - 1) / KERN_PAGE;
        for (uint32_t j = 0; j < r->n; j++)
            tokens[t++] = (struct step_token){
                .pos = r->pos0 + j,
                .run = i,
                .pages_at = n_pages,
                .logit_row = j >= r->n - r->n_logits_last ? rows++ : STEP_NO_ROW};
        memcpy(pages + n_pages, r->pages, of_run * sizeof(*pages));
        n_pages += of_run;
    }
    const size_t embedded_at = pages_at + round16(n_pages * sizeof(*pages));
    float *x = (float *)(void *)(lm->in + embedded_at);
    for (uint32_t i = 0; i < pass->n_runs; i++)
        for (uint32_t j = 0; j < pass->runs[i].n; j++, x += dim)
            decoder_embed(lm->d, (uint32_t)pass->runs[i].tokens[j], pass->runs[i].pos0 + j, x,
                          lm->work, lm->work + dim);
    *p = (struct step_pass){.n_tokens = n,
                            .tokens = (const struct step_token *)(void *)lm->in_gpu,
                            .pages = (const uint32_t *)(void *)(lm->in_gpu + pages_at),
                            .embedded = (const float *)(void *)(lm->in_gpu + embedded_at),
                            .logits = lm->logits_gpu};
    *n_logits = rows;
    return embedded_at + (size_t)n * dim * sizeof(float);
}

static int compute(struct cuda_lm *lm, const struct lm_pass *pass, struct err *e)
{
    struct step_pass p;
    uint32_t rows;
    const size_t bytes = lay_out(lm, pass, &p, &rows);
    if (p.n_tokens == 0)
        return 0;
    int rc = cuda_gpu_use(lm->g, e);
    if (rc == 0)
        rc = cuda_gpu_copy_in(lm->g, lm->in_gpu, lm->in, bytes, e);
    if (rc == 0)
        rc = cuda_gpu_step(lm->g, &lm->m, &p, &lm->grid, e);
    if (rc == 0 && rows)
        rc = cuda_gpu_copy_out(lm->g, lm->logits, lm->logits_gpu,
                               (size_t)rows * lm->m.n_vocab * sizeof(float), e);
    return rc < 0 ? rc : cuda_gpu_wait(lm->g, e);
}

static void lm_passes(void *impl, lm_next_fn next, void *ctx)
{
    struct cuda_lm *lm = impl;
    struct lm_pass pass;
    while (next(ctx, &pass)) {
        struct err e = {0};
        if (!lm->broken && compute(lm, &pass, &e) < 0) {
            log_warn("cuda", "pass failed, the model must be loaded again error=\"%s\"", e.msg);
            lm->broken = true; /* an error of a kernel ends the whole context */
        }
        for (uint32_t i = 0; lm->broken && i < pass.n_runs; i++)
            pass.codes[i] = SHOAL_EIO;
    }
}

static const float *lm_logits(const void *impl, uint32_t i)
{
    const struct cuda_lm *lm = impl;
    return lm->logits + (size_t)i * lm->m.n_vocab;
}

static void lm_destroy(void *impl)
{
    struct cuda_lm *lm = impl;
    cuda_gpu_close(lm->g);
    decoder_destroy(lm->d);
    mem_free(lm->work);
    mem_free(lm);
}

static int reserve(struct cuda_lm *lm, uint32_t n_pages, struct err *e)
{
    const struct decoder_parts d = decoder_parts(lm->d);
    const uint32_t of_run = (d.n_ctx + KERN_PAGE - 1) / KERN_PAGE;
    lm->max_pages = (size_t)of_run * lm->max_logits + lm->max_batch;
    const size_t in = round16(lm->max_batch * sizeof(struct step_token)) +
                      round16(lm->max_pages * sizeof(uint32_t)) +
                      (size_t)lm->max_batch * lm->m.dim * sizeof(float);
    const size_t rows = (size_t)lm->max_logits * lm->m.n_vocab * sizeof(float);
    void *at = NULL;
    int rc = cuda_gpu_place(lm->g, &at, NULL, n_pages * d.kv_page_bytes, e);
    lm->m.kv = at;
    if (rc == 0)
        rc = cuda_gpu_place(lm->g, &at, NULL, in, e);
    lm->in_gpu = at;
    if (rc == 0)
        rc = cuda_gpu_place(lm->g, &at, NULL, rows, e);
    lm->logits_gpu = at;
    if (rc == 0)
        rc = cuda_gpu_pin(lm->g, &at, in, e);
    lm->in = at;
    if (rc == 0)
        rc = cuda_gpu_pin(lm->g, &at, rows, e);
    lm->logits = at;
    lm->work = rc == 0 ? mem_alloc(2 * lm->m.dim * sizeof(float)) : NULL;
    return rc == 0 && !lm->work ? err_set(e, SHOAL_ENOMEM, "out of memory for a decoder") : rc;
}

static struct lm_info info_of(const struct cuda_lm *lm)
{
    const struct decoder_config *c = decoder_config(lm->d);
    const struct decoder_sizes sizes = decoder_sizes(lm->d);
    return (struct lm_info){.engine = "cuda",
                            .kernels = lm->label,
                            .arch = c->arch,
                            .n_vocab = c->n_vocab,
                            .n_ctx = decoder_n_ctx(lm->d),
                            .n_ctx_train = c->n_ctx_train,
                            .n_layers = c->n_layers,
                            .dim = c->dim,
                            .n_threads = 1,
                            .max_batch = lm->max_batch,
                            .weights_bytes = sizes.weights,
                            .scratch_bytes = sizes.scratch,
                            .kv_page_bytes = sizes.kv_page,
                            .from_cache = decoder_from_cache(lm->d),
                            .pages_hold_kv = true};
}

int cuda_lm_create(struct lm *out, struct decoder *d, struct cuda_gpu *g, uint32_t n_pages,
                   struct err *e)
{
    static const struct lm_ops ops = {
        .passes = lm_passes, .logits = lm_logits, .close = lm_destroy};
    const struct cuda_gpu_info *info = cuda_gpu_info(g);
    memset(out, 0, sizeof(*out));
    struct cuda_lm *lm = mem_zalloc(sizeof(*lm));
    if (!lm) {
        cuda_gpu_close(g);
        decoder_destroy(d);
        return err_set(e, SHOAL_ENOMEM, "out of memory for a decoder");
    }
    lm->d = d;
    lm->g = g;
    lm->max_batch = decoder_max_batch(d);
    lm->max_logits = decoder_max_logits(d);
    lm->grid = cuda_gpu_grid(g);
    snprintf(lm->label, sizeof(lm->label), "cuda sm_%d%d, %s", info->major, info->minor,
             info->name);
    const struct step_place at = {.n_blocks = lm->grid.n_blocks,
                                  .n_threads = cuda_gpu_threads(g),
                                  .cluster = lm->grid.cluster,
                                  .shared_bytes = info->shared_bytes,
                                  .place = cuda_gpu_place,
                                  .ctx = g};
    int rc = step_plan(&lm->m, d, &at, e);
    if (rc == 0)
        rc = cuda_gpu_prepare(g, &lm->m, &lm->grid, e);
    if (rc == 0)
        rc = reserve(lm, n_pages, e);
    if (rc < 0) {
        lm_destroy(lm);
        return rc;
    }
    *out = (struct lm){.ops = &ops, .impl = lm, .weights = decoder_weights(d), .info = info_of(lm)};
    return 0;
}
