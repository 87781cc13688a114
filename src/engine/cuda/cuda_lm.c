/* cuda_lm.c - see cuda_lm.h. */
#include "engine/cuda/cuda_lm.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "engine/cuda/cuda_pass.h"
#include "engine/cuda/step_plan.h"

struct cuda_lm {
    struct decoder *d;
    struct cuda_gpu *g;
    struct cuda_gpu_grid grid;
    struct step_model m;
    struct one_model one;
    struct many_plan many;
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

/* The kernel that suits the pass best. */
static int launch(struct cuda_lm *lm, const struct step_pass *p, struct err *e)
{
    const struct step_token *tokens = (const struct step_token *)(const void *)lm->in;
    uint32_t last = 0;
    for (uint32_t t = 0; t < p->n_tokens; t++)
        last = tokens[t].pos > last ? tokens[t].pos : last;
    if (lm->one.layers && p->n_tokens == 1 && last < lm->one.most_keys)
        return cuda_gpu_one(lm->g, &lm->m, &lm->one, p, e);
    if (many_plan_fits(&lm->many, p->n_tokens, last))
        return cuda_gpu_many(lm->g, &lm->m, &lm->many, p, last, e);
    return cuda_gpu_step(lm->g, &lm->m, p, &lm->grid, e);
}

static int compute(struct cuda_lm *lm, const struct lm_pass *pass, struct err *e)
{
    struct step_pass p;
    const size_t bytes = cuda_pass_write(&p, lm->in, lm->in_gpu, lm->d, pass->runs, pass->n_runs,
                                         lm->many.layers ? lm->many.tile : 1, lm->work);
    p.logits = lm->logits_gpu;
    if (p.n_tokens == 0)
        return 0;
    int rc = cuda_gpu_use(lm->g, e);
    if (rc == 0)
        rc = cuda_gpu_copy_in(lm->g, lm->in_gpu, lm->in, bytes, e);
    if (rc == 0)
        rc = launch(lm, &p, e);
    if (rc == 0 && p.n_wanted)
        rc = cuda_gpu_copy_out(lm->g, lm->logits, lm->logits_gpu,
                               (size_t)p.n_wanted * lm->m.n_vocab * sizeof(float), e);
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
    many_plan_free(&lm->many);
    mem_free(lm->work);
    mem_free(lm);
}

static int reserve(struct cuda_lm *lm, uint32_t n_pages, struct err *e)
{
    const struct decoder_parts d = decoder_parts(lm->d);
    const uint32_t of_run = (d.n_ctx + KERN_PAGE - 1) / KERN_PAGE;
    lm->max_pages = (size_t)of_run * lm->max_logits + lm->max_batch;
    const size_t in = cuda_pass_bytes(lm->max_batch, lm->max_pages, lm->m.dim);
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
    struct step_place at = {.n_blocks = lm->grid.n_blocks,
                            .n_threads = cuda_gpu_threads(g),
                            .cluster = lm->grid.cluster,
                            .shared_bytes = info->shared_bytes,
                            .one_blocks = cuda_gpu_one_threads(g) ? (uint32_t)info->n_sms : 0,
                            .one_threads = cuda_gpu_one_threads(g),
                            .many_tokens = lm->max_batch,
                            .place = cuda_gpu_place,
                            .ctx = g};
    cuda_gpu_many_threads(g, at.many_threads);
    int rc = step_plan(&lm->m, &lm->one, &lm->many, d, &at, e);
    if (rc == 0)
        rc = cuda_gpu_prepare(g, &lm->m, &lm->one, &lm->grid, e);
    if (rc == 0)
        rc = reserve(lm, n_pages, e);
    if (rc < 0) {
        lm_destroy(lm);
        return rc;
    }
    *out = (struct lm){.ops = &ops, .impl = lm, .weights = decoder_weights(d), .info = info_of(lm)};
    return 0;
}
