/* backends.c - see backends.h. */
#include "engine/backends.h"

#include <limits.h>

#include "base/mem.h"
#include "engine/cache_dir.h"
#include "engine/chat/chat.h"
#include "engine/engine_state.h"
#include "engine/memory_plan.h"
#include "engine/native/encoder_specialist.h"
#include "engine/native/extract_specialist.h"
#include "engine/native/native_lm.h"
#include "engine/native/scorer_specialist.h"
#include "engine/native/seq2seq.h"
#include "engine/onnx/onnx_files.h"
#include "engine/onnx/onnx_lm.h"
#include "engine/onnx/onnx_session.h"
#include "format/model_open.h"
#include "model/encoder.h"
#include "model/t5.h"
#include "score/extract.h"

/* Below this size a second thread costs more than it gains. */
#define TINY_MODEL_BYTES ((size_t)2 << 20)

/* Opens the model as a specialist if it is one: then en->specialist.ops is set.  Otherwise
 * en->file or en->onnx may be open already, for open_decoder. */
static int open_specialist(struct shoal_engine *en, const char *path,
                           const struct shoal_engine_opts *o, struct err *e)
{
    struct onnx_files files;
    if (scorer_specialist_knows(path))
        return scorer_specialist_open(&en->specialist, path, o, e);
    if (extract_detect(path))
        return extract_specialist_open(&en->specialist, &en->file, &en->tokenizer, path, en->crew,
                                       o, e);
    int found = onnx_files_find(&files, path, e);
    if (found < 0)
        return found;
    int rc = found ? onnx_files_open(&files, &en->file, e) : model_open(&en->file, path, e);
    if (rc < 0)
        return rc;
    if (found) { /* its inputs tell what kind of model it is */
        struct onnx_session_opts so = {.n_threads = o->n_threads};
        if ((rc = onnx_session_open(&en->onnx, files.model, &so, e)) < 0)
            return rc;
        if (onnx_session_has_past(en->onnx))
            return 0;
    } else if (!t5_knows(en->file) && !encoder_knows(en->file)) {
        return 0;
    }
    rc = tokenizer_create(&en->tokenizer, en->file, e);
    if (rc < 0)
        return err_wrap(e, "%s", path);
    if (!found && t5_knows(en->file))
        return seq2seq_open(&en->specialist, en->file, en->tokenizer, path, en->crew, o, e);
    struct onnx_session *onnx = en->onnx;
    en->onnx = NULL;
    return encoder_specialist_open(&en->specialist, en->file, en->tokenizer, path, onnx, en->crew,
                                   o, e);
}

static int plan_memory(struct shoal_engine *en, const struct shoal_engine_opts *o,
                       const struct decoder_sizes *sizes, struct err *e)
{
    const struct memory_plan_need need = {sizes->weights, sizes->scratch, sizes->kv_page};
    size_t tasks = en->max_tasks > 1 ? en->max_tasks / 2 : 1;
    size_t per_task = ((size_t)sizes->n_ctx + KERN_PAGE - 1) / KERN_PAGE + 1;
    int rc = memory_plan_pages(&en->n_pages, &need, per_task * tasks, o, e);
    en->kv_bytes = en->n_pages * sizes->kv_page;
    return rc;
}

static int open_native(struct shoal_engine *en, const char *path, const struct shoal_engine_opts *o,
                       struct err *e)
{
    struct decoder *decoder;
    char dir[PATH_MAX];
    struct decoder_sizes sizes;
    struct decoder_opts d = {.crew = en->crew,
                             .n_threads = o->n_threads,
                             .n_ctx = o->n_ctx,
                             .max_batch = en->chunk > en->max_tasks ? en->chunk : en->max_tasks,
                             .max_logits = en->max_tasks,
                             .kv_kind = o->kv_q8 ? KERN_KV_Q8 : KERN_KV_F16,
                             .cache_dir = cache_dir_wanted(o->cache_dir, dir, sizeof(dir)),
                             .progress = o->progress,
                             .progress_ctx = o->progress_ctx};
    int rc = en->file ? 0 : model_open(&en->file, path, e);
    if (rc < 0)
        return rc;
    if (o->kernels && !(d.kernels = kern_select(o->kernels, e)))
        return SHOAL_EUNSUPPORTED;
    rc = decoder_measure(&sizes, en->file, &d, e);
    if (rc == 0 && d.n_threads == 0 && sizes.weights < TINY_MODEL_BYTES)
        d.n_threads = 1;
    if (rc == 0)
        rc = tokenizer_create(&en->tokenizer, en->file, e);
    if (rc == 0)
        rc = plan_memory(en, o, &sizes, e);
    if (rc == 0)
        rc = decoder_create(&decoder, en->file, path, &d, e);
    if (rc < 0)
        return err_wrap(e, "%s", path);
    native_lm_from_decoder(&en->lm, decoder);
    en->kernels = decoder_kernels(decoder);
    en->kv = mem_pages(en->kv_bytes);
    if (!en->kv)
        return err_set(e, SHOAL_ENOMEM, "cannot reserve %zu bytes of key-value cache",
                       en->kv_bytes);
    decoder_set_kv(decoder, en->kv);
    return 0;
}

/* The library holds the keys and values; pages only limit how many. */
static int open_onnx(struct shoal_engine *en, const char *path, const struct shoal_engine_opts *o,
                     struct err *e)
{
    struct onnx_lm_opts lo = {.n_ctx = o->n_ctx, .max_tasks = en->max_tasks, .chunk = o->chunk};
    struct onnx_session *session = en->onnx;
    struct str arch;
    lo.n_ctx_train = onnx_files_n_ctx(en->file);
    if (!(en->kernels = kern_select(o->kernels, e)))
        return SHOAL_EUNSUPPORTED;
    if (model_file_get_str(en->file, "general.architecture", &arch))
        en->arch = mem_strndup(arch.p, arch.n);
    lo.arch = en->arch;
    int rc = tokenizer_create(&en->tokenizer, en->file, e);
    if (rc == 0) {
        en->onnx = NULL;
        rc = onnx_lm_from_session(&en->lm, session, &lo, e);
    }
    if (rc < 0)
        return err_wrap(e, "%s", path);
    const struct decoder_sizes sizes = {.weights = en->lm.info.weights_bytes,
                                        .scratch = en->lm.info.scratch_bytes,
                                        .kv_page = en->lm.info.kv_page_bytes,
                                        .n_ctx = en->lm.info.n_ctx};
    en->chunk = en->lm.info.max_batch;
    rc = plan_memory(en, o, &sizes, e);
    return rc < 0 ? err_wrap(e, "%s", path) : 0;
}

static int open_decoder(struct shoal_engine *en, const char *path,
                        const struct shoal_engine_opts *o, struct err *e)
{
    int rc = en->onnx ? open_onnx(en, path, o, e) : open_native(en, path, o, e);
    if (rc < 0)
        return rc;
    if (tokenizer_info(en->tokenizer)->n_vocab > en->lm.info.n_vocab)
        return err_set(e, SHOAL_EFORMAT, "%s: the tokenizer has %u tokens, but the model only %u",
                       path, tokenizer_info(en->tokenizer)->n_vocab, en->lm.info.n_vocab);
    chat_open(en);
    return 0;
}

int backends_open(struct shoal_engine *en, const char *path, const struct shoal_engine_opts *o,
                  struct err *e)
{
    int rc = open_specialist(en, path, o, e);
    if (rc < 0)
        return rc;
    if (en->specialist.ops) {
        en->kinds = en->specialist.kinds;
        return 0;
    }
    en->kinds = SHOAL_KIND_GENERATE;
    return open_decoder(en, path, o, e);
}

int backends_check(const char *path, struct err *e)
{
    const struct decoder_opts d = {.max_batch = 1, .max_logits = 1};
    struct model_file *file = NULL;
    struct decoder_sizes sizes;
    struct onnx_files files;
    if (scorer_specialist_knows(path) || extract_detect(path))
        return 0;
    int found = onnx_files_find(&files, path, e);
    if (found != 0)
        return found < 0 ? found : 0;
    int rc = model_open(&file, path, e);
    if (rc == 0 && !t5_knows(file) && !encoder_knows(file)) {
        rc = decoder_measure(&sizes, file, &d, e);
        if (rc < 0)
            rc = err_wrap(e, "%s", path);
    }
    model_file_close(file);
    return rc;
}
