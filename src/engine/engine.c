/* engine.c - opening and closing an engine, what it is, and text. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "format/model_file.h"
#include "engine/cache_dir.h"
#include "engine/engine_int.h"
#include "engine/onnx/onnx_files.h"
#include "engine/onnx/onnx_lm.h"
#include "engine/onnx/onnx_session.h"

#define DEFAULT_MAX_TASKS 8u
#define DEFAULT_MAX_QUEUE 256u
#define DEFAULT_CHUNK 128u
/* Below this a second thread costs more than it brings. */
#define TINY_MODEL_BYTES ((size_t)2 << 20)

const char *shoal_version(void)
{
    return SHOAL_VERSION;
}

void shoal_free(void *p)
{
    mem_free(p);
}

static size_t available_bytes(void)
{
    char line[128];
    unsigned long long kb = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb ? (size_t)kb * 1024 : SIZE_MAX;
}

int engine_plan_pages(uint32_t *n_pages, const struct engine_need *need, size_t wanted,
                      const struct shoal_engine_opts *o, struct err *e)
{
    const double mib = 1024.0 * 1024.0;
    size_t limit = o->memory_bytes ? o->memory_bytes : available_bytes();
    size_t pages;
    if (o->kv_bytes) {
        pages = o->kv_bytes / need->kv_page;
    } else {
        pages = wanted;
        if (pages > limit / 4 / need->kv_page) /* the default takes at most a quarter */
            pages = limit / 4 / need->kv_page;
    }
    if (pages == 0)
        return err_set(e, SHOAL_ELIMIT,
                       "one page of the key-value cache (16 tokens) takes %.1f MiB, the limit is "
                       "%.1f MiB",
                       (double)need->kv_page / mib,
                       (double)(o->kv_bytes ? o->kv_bytes : limit / 4) / mib);
    pages = pages < 1u << 30 ? pages : 1u << 30;
    size_t kv = pages * need->kv_page, all = need->weights + need->scratch + kv;
    if (all > limit)
        return err_set(
            e, SHOAL_ELIMIT,
            "does not fit: weights %.1f + scratch %.1f + key-value cache %.1f (%zu pages "
            "of 16 tokens) = %.1f MiB, %s %.1f MiB",
            (double)need->weights / mib, (double)need->scratch / mib, (double)kv / mib, pages,
            (double)all / mib, o->memory_bytes ? "the limit is" : "available are",
            (double)limit / mib);
    *n_pages = (uint32_t)pages;
    return 0;
}

static int plan_memory(struct shoal_engine *en, const struct shoal_engine_opts *o,
                       const struct decoder_sizes *sizes, struct err *e)
{
    const struct engine_need need = {sizes->weights, sizes->scratch, sizes->kv_page};
    size_t tasks = en->max_tasks > 1 ? en->max_tasks / 2 : 1;
    size_t per_task = ((size_t)sizes->n_ctx + KERN_PAGE - 1) / KERN_PAGE + 1;
    int rc = engine_plan_pages(&en->n_pages, &need, per_task * tasks, o, e);
    en->kv_bytes = en->n_pages * sizes->kv_page;
    return rc;
}

static int load_native(struct shoal_engine *en, const char *path, const struct shoal_engine_opts *o,
                       struct err *e)
{
    struct decoder *decoder;
    char dir[PATH_MAX];
    struct decoder_sizes sizes;
    struct decoder_opts d = {.n_threads = o->n_threads,
                             .n_ctx = o->n_ctx,
                             .max_batch = en->chunk > en->max_tasks ? en->chunk : en->max_tasks,
                             .max_logits = en->max_tasks,
                             .kv_kind = o->kv_q8 ? KERN_KV_Q8 : KERN_KV_F16,
                             .cache_dir = cache_dir_wanted(o->cache_dir, dir, sizeof(dir)),
                             .progress = o->progress,
                             .progress_ctx = o->progress_ctx};
    int rc = en->gguf ? 0 : model_open(&en->gguf, path, e);
    if (rc < 0)
        return rc;
    if (o->kernels && !(d.kernels = kern_select(o->kernels, e)))
        return SHOAL_EUNSUPPORTED;
    rc = decoder_measure(&sizes, en->gguf, &d, e);
    if (rc == 0 && d.n_threads == 0 && sizes.weights < TINY_MODEL_BYTES)
        d.n_threads = 1;
    if (rc == 0)
        rc = tokenizer_create(&en->tokenizer, en->gguf, e);
    if (rc == 0)
        rc = plan_memory(en, o, &sizes, e);
    if (rc == 0)
        rc = decoder_create(&decoder, en->gguf, path, &d, e);
    if (rc < 0)
        return err_wrap(e, "%s", path);
    lm_from_decoder(&en->lm, decoder);
    en->kernels = decoder_kernels(decoder);
    en->kv = mem_pages(en->kv_bytes);
    if (!en->kv)
        return err_set(e, SHOAL_ENOMEM, "cannot reserve %zu bytes of key-value cache",
                       en->kv_bytes);
    decoder_set_kv(decoder, en->kv);
    return 0;
}

/* The library keeps keys and values itself: pages only count what it may keep. */
static int load_onnx(struct shoal_engine *en, const char *path, const struct shoal_engine_opts *o,
                     struct err *e)
{
    struct onnx_lm_opts lo = {.n_ctx = o->n_ctx, .max_tasks = en->max_tasks, .chunk = o->chunk};
    struct onnx_session *session = en->onnx;
    struct gguf_str arch;
    lo.n_ctx_train = onnx_files_n_ctx(en->gguf);
    if (!(en->kernels = kern_select(o->kernels, e)))
        return SHOAL_EUNSUPPORTED;
    if (gguf_get_str(en->gguf, "general.architecture", &arch))
        en->arch = mem_strndup(arch.p, arch.n);
    lo.arch = en->arch;
    int rc = tokenizer_create(&en->tokenizer, en->gguf, e);
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

static int load(struct shoal_engine *en, const char *path, const struct shoal_engine_opts *o,
                struct err *e)
{
    int rc = en->onnx ? load_onnx(en, path, o, e) : load_native(en, path, o, e);
    if (rc < 0)
        return rc;
    if (tokenizer_info(en->tokenizer)->n_vocab > en->lm.info.n_vocab)
        return err_set(e, SHOAL_EFORMAT, "%s: the tokenizer has %u tokens, the model %u", path,
                       tokenizer_info(en->tokenizer)->n_vocab, en->lm.info.n_vocab);
    chat_open(en);
    return 0;
}

static int reserve(struct shoal_engine *en, struct err *e)
{
    struct gguf_str name;
    int rc = kv_pages_create(&en->pages, en->n_pages, KERN_PAGE, e);
    if (rc == 0)
        rc = sampler_create(&en->sampler, en->kernels, en->lm.info.n_vocab, e);
    if (rc < 0)
        return rc;
    en->active = mem_zalloc_n(en->max_tasks, sizeof(*en->active));
    en->runs = mem_zalloc_n(en->max_tasks, sizeof(*en->runs));
    en->run_task = mem_zalloc_n(en->max_tasks, sizeof(*en->run_task));
    en->run_slot = mem_zalloc_n(en->max_tasks, sizeof(*en->run_slot));
    en->run_code = mem_zalloc_n(en->max_tasks, sizeof(*en->run_code));
    en->slot_used = mem_zalloc_n(en->max_tasks, sizeof(*en->slot_used));
    en->name = gguf_get_str(en->gguf, "general.name", &name) ? mem_strndup(name.p, name.n)
                                                             : mem_strdup("");
    if (!en->active || !en->runs || !en->run_task || !en->run_slot || !en->run_code ||
        !en->slot_used || !en->name)
        return err_set(e, SHOAL_ENOMEM, "places for %u tasks", en->max_tasks);
    atomic_init(&en->pages_free, en->n_pages);
    return 0;
}

static int open_decoder(struct shoal_engine *en, const char *path,
                        const struct shoal_engine_opts *o, struct err *e)
{
    int rc = load(en, path, o, e);
    en->kinds = SHOAL_KIND_GENERATE;
    return rc < 0 ? rc : reserve(en, e);
}

static int reserve_jobs(struct shoal_engine *en, struct err *e)
{
    en->kinds = en->specialist.kinds;
    en->active = mem_zalloc_n(en->specialist.max_jobs, sizeof(*en->active));
    en->jobs = mem_zalloc_n(en->specialist.max_jobs, sizeof(*en->jobs));
    if (!en->active || !en->jobs)
        return err_set(e, SHOAL_ENOMEM, "batch of %u tasks", en->specialist.max_jobs);
    return 0;
}

int shoal_engine_open(struct shoal_engine **out, const char *path,
                      const struct shoal_engine_opts *opts, struct shoal_error *err)
{
    static const struct shoal_engine_opts defaults;
    const struct shoal_engine_opts *o = opts ? opts : &defaults;
    struct err *e = (struct err *)(void *)err;
    uint64_t t0 = clock_ns();
    *out = NULL;
    struct shoal_engine *en = mem_zalloc(sizeof(*en));
    if (!en)
        return err_set(e, SHOAL_ENOMEM, "engine");
    pthread_mutex_init(&en->lock, NULL);
    pthread_cond_init(&en->wake, NULL);
    pthread_cond_init(&en->finished, NULL);
    en->max_tasks = o->max_tasks ? o->max_tasks : DEFAULT_MAX_TASKS;
    en->max_queue = o->max_queue ? o->max_queue : DEFAULT_MAX_QUEUE;
    en->chunk = o->chunk ? o->chunk : DEFAULT_CHUNK;
    int rc = 0;
    if (en->max_tasks > 1024 || en->chunk > 4096)
        rc = err_set(e, SHOAL_EINVAL, "max_tasks %u (at most 1024), chunk %u (at most 4096)",
                     en->max_tasks, en->chunk);
    if (rc == 0)
        rc = specialist_open(en, path, o, e);
    bool specialist = en->specialist.ops != NULL;
    if (rc == 0)
        rc = specialist ? reserve_jobs(en, e) : open_decoder(en, path, o, e);
    if (rc == 0 &&
        pthread_create(&en->thread, NULL, specialist ? batcher_main : scheduler_main, en) != 0)
        rc = err_set(e, SHOAL_ENOMEM, "cannot start the engine's thread");
    if (rc < 0) {
        shoal_engine_close(en);
        return rc;
    }
    en->has_thread = true;
    en->load_ms = (double)(clock_ns() - t0) / 1e6;
    *out = en;
    return 0;
}

void shoal_engine_close(struct shoal_engine *en)
{
    if (!en)
        return;
    if (en->has_thread) {
        pthread_mutex_lock(&en->lock);
        en->stop = true;
        pthread_cond_signal(&en->wake);
        pthread_mutex_unlock(&en->lock);
        pthread_join(en->thread, NULL);
    }
    lm_close(&en->lm);
    onnx_session_close(en->onnx);
    if (en->specialist.ops)
        en->specialist.ops->close(en->specialist.self);
    chat_close(en);
    tokenizer_destroy(en->tokenizer);
    gguf_close(en->gguf);
    kv_pages_destroy(en->pages);
    sampler_destroy(en->sampler);
    mem_pages_free(en->kv, en->kv_bytes);
    mem_free(en->active);
    mem_free(en->jobs);
    mem_free(en->runs);
    mem_free(en->run_task);
    mem_free(en->run_slot);
    mem_free(en->run_code);
    mem_free(en->slot_used);
    mem_free(en->name);
    mem_free(en->arch);
    pthread_mutex_destroy(&en->lock);
    pthread_cond_destroy(&en->wake);
    pthread_cond_destroy(&en->finished);
    mem_free(en);
}

void shoal_engine_info(const struct shoal_engine *en, struct shoal_engine_info *info)
{
    if (en->specialist.ops) {
        *info = (struct shoal_engine_info){.kinds = en->kinds,
                                           .engine = en->specialist.ops->engine,
                                           .arch = "",
                                           .name = "",
                                           .kernels = "",
                                           .max_tasks = en->specialist.max_jobs,
                                           .load_ms = en->load_ms};
        en->specialist.ops->info(en->specialist.self, info);
        return;
    }
    const struct lm_info *c = &en->lm.info;
    *info = (struct shoal_engine_info){
        .kinds = en->kinds,
        .arch = c->arch,
        .name = en->name,
        .engine = c->engine,
        .kernels = c->kernels,
        .n_vocab = c->n_vocab,
        .n_ctx = c->n_ctx,
        .n_ctx_train = c->n_ctx_train,
        .n_layers = c->n_layers,
        .dim = c->dim,
        .n_threads = c->n_threads,
        .max_tasks = en->max_tasks,
        .n_params = gguf_n_params(en->gguf),
        .file_bytes = c->file_bytes ? c->file_bytes : en->gguf->n_bytes,
        .weights_bytes = c->weights_bytes,
        .scratch_bytes = c->scratch_bytes,
        .kv_bytes = en->kv_bytes,
        .kv_pages = en->n_pages,
        .kv_pages_free = atomic_load_explicit(&((struct shoal_engine *)(uintptr_t)en)->pages_free,
                                              memory_order_relaxed),
        .page_tokens = KERN_PAGE,
        .load_ms = en->load_ms,
        .from_cache = c->from_cache,
        .chat_template = tokenizer_info(en->tokenizer)->chat_template,
    };
}

const char *shoal_engine_metadata(const struct shoal_engine *en, const char *key, size_t *n)
{
    struct gguf_str v;
    if (!en->gguf || !gguf_get_str(en->gguf, key, &v))
        return NULL;
    *n = v.n;
    return v.p;
}

/* ---- text ----------------------------------------------------------------------------------- */

#define MAX_TEXT_TOKENS ((size_t)1 << 26)
#define MAX_TEXT_BYTES ((size_t)1 << 30)

int shoal_tokenize(const struct shoal_engine *en, const char *text, size_t n, unsigned flags,
                   int32_t **tokens, size_t *n_tokens, struct shoal_error *err)
{
    struct err *e = (struct err *)(void *)err;
    struct tok_ids ids;
    unsigned f = (flags & SHOAL_TEXT_ADD_SPECIAL ? TOKENIZER_ADD_SPECIAL : 0u) |
                 (flags & SHOAL_TEXT_PARSE_SPECIAL ? TOKENIZER_PARSE_SPECIAL : 0u);
    *tokens = NULL;
    *n_tokens = 0;
    tok_ids_init(&ids, MAX_TEXT_TOKENS);
    if (!en->tokenizer)
        return err_set(e, SHOAL_EUNSUPPORTED, "this model reads no text");
    int rc = tokenizer_encode(en->tokenizer, &ids, text, n, f, e);
    if (rc < 0) {
        tok_ids_fini(&ids);
        return rc;
    }
    *tokens = ids.ids;
    *n_tokens = ids.n;
    return 0;
}

int shoal_detokenize(const struct shoal_engine *en, const int32_t *tokens, size_t n_tokens,
                     unsigned flags, char **text, size_t *n, struct shoal_error *err)
{
    struct err *e = (struct err *)(void *)err;
    struct buf b;
    if (!en->tokenizer)
        return err_set(e, SHOAL_EUNSUPPORTED, "this model writes no text");
    buf_init(&b, MAX_TEXT_BYTES);
    tokenizer_decode(en->tokenizer, &b, tokens, n_tokens,
                     flags & SHOAL_TEXT_SPECIAL ? TOKENIZER_RENDER_SPECIAL : 0);
    *text = buf_take(&b, n);
    if (!*text) {
        int rc = b.rc < 0 ? b.rc : SHOAL_ENOMEM;
        buf_fini(&b);
        return err_set(e, rc, "text of %zu tokens", n_tokens);
    }
    return 0;
}

const char *shoal_token_text(const struct shoal_engine *en, int32_t token, unsigned flags,
                             size_t *n)
{
    if (!en->tokenizer) {
        *n = 0;
        return "";
    }
    struct tok_piece p = tokenizer_piece(en->tokenizer, token,
                                         flags & SHOAL_TEXT_SPECIAL ? TOKENIZER_RENDER_SPECIAL : 0);
    *n = p.n;
    return p.p;
}
