/* t5_engine.c - see t5_engine.h. */
#include "engine/native/t5_engine.h"

#include "base/mem.h"
#include "engine/cache_dir.h"
#include "model/t5.h"

int t5_engine_opts(struct t5_opts *to, const struct shoal_engine_opts *o, char dir[PATH_MAX],
                   struct err *e)
{
    to->n_threads = o->n_threads;
    to->kv_kind = o->kv_q8 ? KERN_KV_Q8 : KERN_KV_F16;
    to->int8 = o->int8;
    to->cache_dir = cache_dir_wanted(o->cache_dir, dir, PATH_MAX);
    to->progress = o->progress;
    to->progress_ctx = o->progress_ctx;
    to->kernels = o->kernels ? kern_select(o->kernels, e) : NULL;
    return o->kernels && !to->kernels ? SHOAL_EUNSUPPORTED : 0;
}

int t5_engine_reserve(struct t5 *t5, size_t n_pages, uint8_t **kv, size_t *kv_bytes, struct err *e)
{
    *kv_bytes = n_pages * t5_sizes(t5).kv_page;
    *kv = mem_pages(*kv_bytes);
    if (!*kv)
        return err_set(e, SHOAL_ENOMEM, "cannot reserve %zu bytes of key-value cache", *kv_bytes);
    t5_set_kv(t5, *kv);
    return 0;
}

void t5_engine_info(const struct t5 *t5, const struct model_file *file,
                    struct shoal_engine_info *out)
{
    const struct t5_config *c = t5_config(t5);
    const struct t5_sizes sizes = t5_sizes(t5);
    out->arch = c->arch;
    out->kernels = t5_kernels(t5)->name;
    out->n_vocab = c->n_vocab;
    out->n_ctx_train = c->n_ctx_train;
    out->n_layers = c->n_enc + c->n_dec;
    out->dim = c->dim;
    out->n_threads = t5_n_threads(t5);
    out->n_params = model_file_n_params(file);
    out->file_bytes = file->n_bytes;
    out->weights_bytes = sizes.weights;
    out->scratch_bytes = sizes.scratch;
    out->page_tokens = KERN_PAGE;
    out->from_cache = t5_from_cache(t5);
}
