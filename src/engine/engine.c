/* engine.c - opening, closing and describing an engine; text to tokens and back. */
#include <stdio.h>
#include <string.h>

#include "base/arg.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/thread/run_queue.h"
#include "base/thread/thread.h"
#include "engine/backends.h"
#include "engine/batcher.h"
#include "engine/chat/chat.h"
#include "engine/engine_chained.h"
#include "engine/engine_files.h"
#include "engine/engine_state.h"
#include "engine/onnx/onnx_session.h"
#include "engine/decode/scheduler.h"
#include "engine/shared_crew.h"

#define DEFAULT_MAX_TASKS 8u
#define DEFAULT_MAX_QUEUE 256u
#define DEFAULT_CHUNK 128u

const char *shoal_version(void)
{
    return SHOAL_VERSION;
}

int shoal_version_number(void)
{
    return SHOAL_VERSION_NUMBER;
}

const char *shoal_error_name(int code)
{
    return err_name(code);
}

const char *shoal_error_text(int code)
{
    return err_text(code);
}

void shoal_free(void *p)
{
    mem_free(p);
}

static int reserve(struct shoal_engine *en, struct err *e)
{
    struct str name;
    int rc = kv_pages_create(&en->pages, en->n_pages, KERN_PAGE, e);
    if (rc == 0 && en->n_states > en->max_tasks)
        rc =
            states_create(&en->states, en->max_tasks, en->n_states - en->max_tasks, en->n_pages, e);
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
    en->name = model_file_get_str(en->file, "general.name", &name) ? mem_strndup(name.p, name.n)
                                                                   : mem_strdup("");
    if (!en->active || !en->runs || !en->run_task || !en->run_slot || !en->run_code ||
        !en->slot_used || !en->name)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %u tasks", en->max_tasks);
    atomic_init(&en->pages_free, en->n_pages);
    return 0;
}

static int reserve_jobs(struct shoal_engine *en, struct err *e)
{
    en->active = mem_zalloc_n(en->specialist.max_jobs, sizeof(*en->active));
    en->jobs = mem_zalloc_n(en->specialist.max_jobs, sizeof(*en->jobs));
    if (!en->active || !en->jobs)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a batch of %u tasks",
                       en->specialist.max_jobs);
    return 0;
}

static void *engine_main(void *engine)
{
    struct shoal_engine *en = engine;
    const int place = run_queue_join();
    void *result = en->specialist.ops ? batcher_main(en) : scheduler_main(en);
    run_queue_leave(place);
    return result;
}

/* The thread is named after the model: "engine-reply" for models/reply.gguf. */
static int start_thread(struct shoal_engine *en, const char *path, struct err *e)
{
    size_t n = strlen(path);
    while (n > 0 && path[n - 1] == '/')
        n--;
    size_t from = n;
    while (from > 0 && path[from - 1] != '/')
        from--;
    const char *dot = memchr(path + from, '.', n - from);
    const size_t end = dot && dot > path + from ? (size_t)(dot - path) : n;
    char name[THREAD_NAME_BYTES];
    snprintf(name, sizeof(name), "engine-%.*s", (int)(end - from), path + from);
    return thread_create(&en->thread, name, engine_main, en, e);
}

static int open_engine(struct shoal_engine **out, const char *path,
                       const struct shoal_engine_opts *opts, struct chain *chain, struct err *e)
{
    struct shoal_engine_opts o = {.size = sizeof(o)};
    struct err own;
    uint64_t t0 = clock_ns();
    if (!e)
        e = &own;
    int rc = arg_check(out, "out", e);
    if (rc < 0)
        return rc;
    *out = NULL;
    rc = arg_check(path, "path", e);
    if (rc == 0 && opts)
        rc = sized_read(&o, sizeof(o), opts, "shoal_engine_opts", e);
    if (rc < 0)
        return rc;
    struct shoal_engine *en = mem_zalloc(sizeof(*en));
    if (!en)
        return err_set(e, SHOAL_ENOMEM, "out of memory for an engine");
    if (chain) {
        en->chain = *chain;
        chain->ops = NULL;
    }
    pthread_mutex_init(&en->lock, NULL);
    constraints_init(&en->constraints);
    pthread_cond_init(&en->wake, NULL);
    pthread_cond_init(&en->finished, NULL);
    fair_init(&en->fair);
    en->max_tasks = o.max_tasks ? o.max_tasks : DEFAULT_MAX_TASKS;
    en->max_queue = o.max_queue ? o.max_queue : DEFAULT_MAX_QUEUE;
    en->chunk = o.chunk ? o.chunk : DEFAULT_CHUNK;
    if (en->max_tasks > 1024 || en->chunk > 4096)
        rc = err_set(e, SHOAL_EINVAL, "max_tasks is %u (at most 1024), chunk is %u (at most 4096)",
                     en->max_tasks, en->chunk);
    en->path = mem_strdup(path);
    if (rc == 0 && !en->path)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for an engine");
    if (rc == 0)
        rc = shared_crew_get(&en->crew, e);
    if (rc == 0)
        rc = backends_open(en, path, &o, e);
    const bool specialist = en->specialist.ops != NULL;
    if (rc == 0) {
        engine_files_report(en, path);
        rc = engine_files_check(en, e); /* it may have changed while it was read */
    }
    en->context_shift = o.context_shift != 0;
    en->draft_costs.always = o.drafts == SHOAL_DRAFTS_ALWAYS;
    if (rc == 0 && en->context_shift && !(en->lm.ops && en->lm.info.pages_hold_kv))
        rc = err_set(e, SHOAL_EUNSUPPORTED,
                     "context_shift: %s is not computed by the native decoder, whose pages can be "
                     "dropped",
                     path);
    if (rc == 0)
        rc = specialist ? reserve_jobs(en, e) : reserve(en, e);
    if (rc == 0)
        rc = start_thread(en, path, e);
    if (rc < 0) {
        shoal_engine_close(en);
        return rc;
    }
    en->has_thread = true;
    en->load_ms = (double)(clock_ns() - t0) / 1e6;
    *out = en;
    return 0;
}

int shoal_engine_open(struct shoal_engine **out, const char *path,
                      const struct shoal_engine_opts *opts, struct err *e)
{
    return open_engine(out, path, opts, NULL, e);
}

int engine_open_chained(struct shoal_engine **out, const char *path,
                        const struct shoal_engine_opts *o, struct chain *chain, struct err *e)
{
    int rc = open_engine(out, path, o, chain, e);
    chain_close(chain); /* if the engine did not come to take it */
    return rc;
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
    chain_close(&en->chain);
    onnx_session_close(en->onnx);
    if (en->specialist.ops)
        en->specialist.ops->close(en->specialist.self);
    if (en->crew)
        shared_crew_put();
    constraints_fini(&en->constraints);
    chat_close(en);
    tokenizer_destroy(en->tokenizer);
    model_file_close(en->file);
    kv_pages_destroy(en->pages);
    states_destroy(en->states);
    sampler_destroy(en->sampler);
    mem_pages_free(en->kv, en->kv_bytes);
    fair_fini(&en->fair);
    mem_free(en->active);
    mem_free(en->jobs);
    mem_free(en->runs);
    mem_free(en->run_task);
    mem_free(en->run_slot);
    mem_free(en->run_code);
    mem_free(en->slot_used);
    mem_free(en->name);
    mem_free(en->arch);
    mem_free(en->path);
    pthread_mutex_destroy(&en->lock);
    pthread_cond_destroy(&en->wake);
    pthread_cond_destroy(&en->finished);
    mem_free(en);
}

/* general.file_type of a GGUF file by its usual name. */
static const char *quantization_of(const struct shoal_engine *en)
{
    static const char *const names[] = {
        [0] = "F32",      [1] = "F16",      [2] = "Q4_0",    [3] = "Q4_1",    [7] = "Q8_0",
        [8] = "Q5_0",     [9] = "Q5_1",     [10] = "Q2_K",   [11] = "Q3_K_S", [12] = "Q3_K_M",
        [13] = "Q3_K_L",  [14] = "Q4_K_S",  [15] = "Q4_K_M", [16] = "Q5_K_S", [17] = "Q5_K_M",
        [18] = "Q6_K",    [19] = "IQ2_XXS", [20] = "IQ2_XS", [21] = "Q2_K_S", [22] = "IQ3_XS",
        [23] = "IQ3_XXS", [24] = "IQ1_S",   [25] = "IQ4_NL", [26] = "IQ3_S",  [27] = "IQ3_M",
        [28] = "IQ2_S",   [29] = "IQ2_M",   [30] = "IQ4_XS", [31] = "IQ1_M",  [32] = "BF16",
        [36] = "TQ1_0",   [37] = "TQ2_0",   [38] = "MXFP4",  [39] = "NVFP4"};
    uint64_t type;
    if (!en->file || !model_file_get_u64(en->file, "general.file_type", &type) ||
        type >= sizeof(names) / sizeof(names[0]))
        return NULL;
    return names[type];
}

static void read_info(const struct shoal_engine *en, struct shoal_engine_info *info)
{
    if (en->specialist.ops) {
        *info = (struct shoal_engine_info){.kinds = en->kinds,
                                           .engine = en->specialist.ops->engine,
                                           .arch = "",
                                           .name = "",
                                           .kernels = "",
                                           .max_tasks = en->specialist.max_jobs,
                                           .load_ms = en->load_ms,
                                           .images = en->specialist.images};
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
        .n_params = model_file_n_params(en->file),
        .file_bytes = c->file_bytes ? c->file_bytes : en->file->n_bytes,
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
        .quantization = quantization_of(en),
        .constraint_bytes = atomic_load_explicit(
            &((struct shoal_engine *)(uintptr_t)en)->constraints.bytes, memory_order_relaxed),
    };
}

int shoal_engine_info(const struct shoal_engine *en, struct shoal_engine_info *info)
{
    struct shoal_engine_info all;
    if (!en)
        return SHOAL_EINVAL;
    read_info(en, &all);
    return sized_write(info, &all, sizeof(all), "shoal_engine_info", NULL);
}

const char *shoal_engine_metadata(const struct shoal_engine *en, const char *key, size_t *n)
{
    struct str v;
    if (n)
        *n = 0;
    if (!en || !key || !en->file || !model_file_get_str(en->file, key, &v))
        return NULL;
    if (n)
        *n = v.n;
    return v.p;
}

/* ---- text ----------------------------------------------------------------------------------- */

#define MAX_TEXT_TOKENS ((size_t)1 << 26)
#define MAX_TEXT_BYTES ((size_t)1 << 30)

int shoal_tokenize(const struct shoal_engine *en, const char *text, size_t n, unsigned flags,
                   int32_t **tokens, size_t *n_tokens, struct err *e)
{
    return engine_tokenize(en, text, n, flags, MAX_TEXT_TOKENS, tokens, n_tokens, e);
}

int engine_tokenize(const struct shoal_engine *en, const char *text, size_t n, unsigned flags,
                    size_t max_tokens, int32_t **tokens, size_t *n_tokens, struct err *e)
{
    struct tok_ids ids;
    struct err own;
    unsigned f = (flags & SHOAL_TEXT_ADD_SPECIAL ? TOKENIZER_ADD_SPECIAL : 0u) |
                 (flags & SHOAL_TEXT_PARSE_SPECIAL ? TOKENIZER_PARSE_SPECIAL : 0u);
    if (!e)
        e = &own;
    if (n_tokens)
        *n_tokens = 0;
    int rc = arg_check(tokens, "tokens", e);
    if (rc < 0)
        return rc;
    *tokens = NULL;
    rc = arg_check(en, "engine", e);
    if (rc == 0)
        rc = arg_check_n(text, n, "text", e);
    if (rc < 0)
        return rc;
    tok_ids_init(&ids, max_tokens);
    if (!en->tokenizer)
        return err_set(e, SHOAL_EUNSUPPORTED, "this model does not read text");
    rc = tokenizer_encode(en->tokenizer, &ids, text, n, f, e);
    if (rc < 0) {
        tok_ids_fini(&ids);
        return rc;
    }
    *tokens = ids.ids;
    if (n_tokens)
        *n_tokens = ids.n;
    return 0;
}

int shoal_detokenize(const struct shoal_engine *en, const int32_t *tokens, size_t n_tokens,
                     unsigned flags, char **text, size_t *n, struct err *e)
{
    struct buf b;
    if (n)
        *n = 0;
    int rc = arg_check(text, "text", e);
    if (rc < 0)
        return rc;
    *text = NULL;
    rc = arg_check(en, "engine", e);
    if (rc == 0)
        rc = arg_check_n(tokens, n_tokens, "tokens", e);
    if (rc < 0)
        return rc;
    if (!en->tokenizer)
        return err_set(e, SHOAL_EUNSUPPORTED, "this model does not write text");
    buf_init(&b, MAX_TEXT_BYTES);
    tokenizer_decode(en->tokenizer, &b, tokens, n_tokens,
                     flags & SHOAL_TEXT_SPECIAL ? TOKENIZER_RENDER_SPECIAL : 0);
    *text = buf_take(&b, n);
    if (!*text) {
        rc = b.rc < 0 ? b.rc : SHOAL_ENOMEM;
        buf_fini(&b);
        return err_set(e, rc, "cannot render %zu tokens as text", n_tokens);
    }
    return 0;
}

const char *shoal_token_text(const struct shoal_engine *en, int32_t token, unsigned flags,
                             size_t *n)
{
    struct str p = {"", 0};
    if (en && en->tokenizer)
        p = tokenizer_piece(en->tokenizer, token,
                            flags & SHOAL_TEXT_SPECIAL ? TOKENIZER_RENDER_SPECIAL : 0);
    if (n)
        *n = p.n;
    return p.p;
}
