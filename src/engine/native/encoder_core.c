/* encoder_core.c - see encoder_core.h. */
#include "engine/native/encoder_core.h"

#include <limits.h>

#include "engine/cache_dir.h"

static int fits(const struct encoder_sizes *need, const struct shoal_engine_opts *o, struct err *e)
{
    const double mib = 1024.0 * 1024.0;
    if (!o->memory_bytes || need->weights + need->scratch <= o->memory_bytes)
        return 0;
    return err_set(
        e, SHOAL_ELIMIT, "%.1f MiB of weights + %.1f MiB of scratch do not fit in %.1f MiB",
        (double)need->weights / mib, (double)need->scratch / mib, (double)o->memory_bytes / mib);
}

int encoder_core_open(struct encoder **encoder, struct heads **heads, const struct model_file *file,
                      const struct tokenizer *tokenizer, const char *path, struct crew *crew,
                      const struct shoal_engine_opts *o, struct err *e)
{
    char dir[PATH_MAX];
    struct encoder_sizes sizes;
    struct encoder_opts eo = {.crew = crew,
                              .n_threads = o->n_threads,
                              .int8 = o->int8,
                              .max_seqs = o->max_tasks,
                              .cache_dir = cache_dir_wanted(o->cache_dir, dir, sizeof(dir)),
                              .progress = o->progress,
                              .progress_ctx = o->progress_ctx};
    if (o->kernels && !(eo.kernels = kern_select(o->kernels, e)))
        return SHOAL_EUNSUPPORTED;
    int rc = encoder_measure(&sizes, file, &eo, e);
    if (rc == 0)
        rc = fits(&sizes, o, e);
    if (rc == 0)
        rc = encoder_create(encoder, file, path, &eo, e);
    if (rc == 0)
        rc = heads_open(heads, file, *encoder, e);
    if (rc < 0)
        return rc;
    if (!tokenizer) /* it sees images */
        return 0;
    uint32_t n_vocab = encoder_config(*encoder)->n_vocab;
    if (tokenizer_info(tokenizer)->n_vocab > n_vocab)
        return err_set(e, SHOAL_EFORMAT, "the tokenizer has %u tokens, but the model only %u",
                       tokenizer_info(tokenizer)->n_vocab, n_vocab);
    return 0;
}

void encoder_core_info(const struct encoder *encoder, const struct model_file *file,
                       struct shoal_engine_info *out)
{
    const struct encoder_config *c = encoder_config(encoder);
    const struct encoder_sizes sizes = encoder_sizes(encoder);
    out->arch = c->arch;
    out->kernels = encoder_kernels(encoder)->name;
    out->n_vocab = c->n_vocab;
    out->n_ctx = out->n_ctx_train = sizes.n_ctx;
    out->n_layers = c->n_layers;
    out->dim = c->dim;
    out->n_threads = encoder_n_threads(encoder);
    out->n_params = model_file_n_params(file);
    out->file_bytes = file->n_bytes;
    out->weights_bytes = sizes.weights;
    out->scratch_bytes = sizes.scratch;
    out->from_cache = encoder_from_cache(encoder);
}
