/* native_lm.c - see native_lm.h. */
#include "engine/native/native_lm.h"

#include "base/thread/crew.h"
#include "model/adapter_make.h"

struct passes {
    lm_next_fn next;
    void *ctx;
};

static uint32_t native_next(void *ctx, const struct decoder_run **runs)
{
    const struct passes *p = ctx;
    struct lm_pass pass = {0};
    if (!p->next(p->ctx, &pass))
        return 0;
    *runs = pass.runs;
    return pass.n_runs;
}

static void native_passes(void *impl, lm_next_fn next, void *ctx)
{
    struct passes p = {next, ctx};
    decoder_passes(impl, native_next, &p);
}

static const float *native_logits(const void *impl, uint32_t i)
{
    return decoder_logits(impl, i);
}

static void native_urgency(void *impl, int32_t priority, uint64_t deadline_ns)
{
    crew_lane_set_urgency(decoder_lane(impl), priority, deadline_ns);
}

static int native_adapt(const void *impl, struct adapter **out, const struct model_file *file,
                        struct err *e)
{
    return adapter_make(out, impl, file, e);
}

static void native_close(void *impl)
{
    decoder_destroy(impl);
}

static const struct lm_ops native_ops = {.passes = native_passes,
                                         .logits = native_logits,
                                         .urgency = native_urgency,
                                         .adapt = native_adapt,
                                         .close = native_close};

void native_lm_from_decoder(struct lm *lm, struct decoder *d)
{
    const struct decoder_config *c = decoder_config(d);
    struct decoder_sizes sizes = decoder_sizes(d);
    *lm = (struct lm){.ops = &native_ops,
                      .impl = d,
                      .weights = decoder_weights(d),
                      .info = {.engine = "native",
                               .kernels = decoder_kernels(d)->name,
                               .arch = c->arch,
                               .n_vocab = c->n_vocab,
                               .n_ctx = decoder_n_ctx(d),
                               .n_ctx_train = c->n_ctx_train,
                               .n_layers = c->n_layers,
                               .dim = c->dim,
                               .n_threads = decoder_n_threads(d),
                               .max_batch = decoder_max_batch(d),
                               .weights_bytes = sizes.weights,
                               .scratch_bytes = sizes.scratch,
                               .kv_page_bytes = sizes.kv_page,
                               .from_cache = decoder_from_cache(d),
                               .pages_hold_kv = true}};
}
