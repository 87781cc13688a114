/* backends.c - see backends.h. */
#include "engine/backends.h"

#include <limits.h>
#include <string.h>

#include "base/arg.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/decode/average_lm.h"
#include "engine/cache_dir.h"
#include "engine/chat/chat.h"
#include "engine/cuda/cuda_lm.h"
#include "engine/engine_state.h"
#include "engine/memory_plan.h"
#include "engine/native/chained_lm.h"
#include "engine/native/encoder_specialist.h"
#include "engine/native/extract_specialist.h"
#include "engine/native/native_lm.h"
#include "engine/native/scorer_specialist.h"
#include "engine/native/reader.h"
#include "engine/native/seq2seq.h"
#include "engine/native/speaker.h"
#include "engine/native/transcriber.h"
#include "engine/onnx/onnx_files.h"
#include "engine/onnx/onnx_lm.h"
#include "engine/onnx/onnx_session.h"
#include "format/model_open.h"
#include "format/convert/lora.h"
#include "format/sealed_file.h"
#include "model/encoder.h"
#include "model/t5.h"
#include "model/voice/voice.h"
#include "score/extract.h"

/* Below this size a second thread costs more than it gains. */
#define TINY_MODEL_BYTES ((size_t)2 << 20)
#define CHECKPOINT_BYTES ((size_t)32 << 20) /* of recurrent states, if they are small */

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
    int rc = found ? onnx_files_open(&files, &en->file, e)
                   : model_open_parts(&en->file, path, o->key_file, e);
    if (rc < 0)
        return rc;
    const bool decoder =
        !found && !voice_knows(en->file) && !t5_knows(en->file) && !encoder_knows(en->file);
    if (!decoder && (rc = model_file_fill(en->file, e)) < 0)
        return rc;
    if (found) { /* its inputs show what kind of model it is */
        struct onnx_session_opts so = {.n_threads = o->n_threads};
        if ((rc = onnx_session_open(&en->onnx, files.model, &so, e)) < 0)
            return rc;
        if (onnx_session_has_past(en->onnx))
            return 0;
    } else if (voice_knows(en->file)) { /* it has no tokenizer: its file knows how words sound */
        return speaker_open(&en->specialist, en->file, path, en->crew, o, e);
    } else if (encoder_sees(en->file)) {
        return encoder_specialist_open(&en->specialist, en->file, NULL, path, NULL, en->crew, o, e);
    } else if (decoder) {
        return 0;
    }
    rc = tokenizer_create(&en->tokenizer, en->file, e);
    if (rc < 0)
        return err_wrap(e, "%s", path);
    if (!found && reader_knows(en->file))
        return reader_open(&en->specialist, en->file, en->tokenizer, path, en->crew, o, e);
    if (!found && t5_hears(en->file))
        return transcriber_open(&en->specialist, en->file, en->tokenizer, path, en->crew, o, e);
    if (!found && t5_knows(en->file))
        return seq2seq_open(&en->specialist, en->file, en->tokenizer, path, en->crew, o, e);
    struct onnx_session *onnx = en->onnx;
    en->onnx = NULL;
    return encoder_specialist_open(&en->specialist, en->file, en->tokenizer, path, onnx, en->crew,
                                   o, e);
}

/* A state for each task, and checkpoints: two for each task at least, and more of small ones.  They
 * count as scratch. */
static void plan_states(struct shoal_engine *en, struct decoder_opts *d,
                        struct decoder_sizes *sizes)
{
    const size_t least = 2 * (size_t)en->max_tasks, most = (size_t)en->max_tasks * 64;
    if (sizes->state == 0)
        return;
    size_t n = CHECKPOINT_BYTES / sizes->state;
    n = n < least ? least : n > most ? most : n;
    en->n_states = d->n_states = en->max_tasks + (uint32_t)n;
    sizes->scratch += (en->n_states - 1) * sizes->state;
}

/* Pages for half of the tasks with the longest context. */
static size_t wanted_pages(const struct shoal_engine *en, uint32_t n_ctx)
{
    const size_t tasks = en->max_tasks > 1 ? en->max_tasks / 2 : 1;
    return (((size_t)n_ctx + KERN_PAGE - 1) / KERN_PAGE + 1) * tasks;
}

static int plan_memory(struct shoal_engine *en, const struct shoal_engine_opts *o,
                       const struct decoder_sizes *sizes, struct err *e)
{
    const struct memory_plan_need need = {sizes->weights, sizes->scratch, sizes->kv_page};
    int rc = memory_plan_pages(&en->n_pages, &need, wanted_pages(en, sizes->n_ctx), o, e);
    en->kv_bytes = en->n_pages * sizes->kv_page;
    return rc;
}

/* Applies the options of an engine to a decoder. dir: storage for the name of a folder. */
static int decoder_options(struct decoder_opts *out, const struct shoal_engine *en,
                           const struct shoal_engine_opts *o, char dir[PATH_MAX], struct err *e)
{
    *out = (struct decoder_opts){.crew = en->crew,
                                 .n_threads = o->n_threads,
                                 .n_ctx = o->n_ctx,
                                 .max_batch = en->chunk > en->max_tasks ? en->chunk : en->max_tasks,
                                 .max_logits = en->max_tasks,
                                 .kv_kind = o->kv_q8 ? KERN_KV_Q8 : KERN_KV_F16,
                                 .cache_dir = cache_dir_wanted(o->cache_dir, dir, PATH_MAX),
                                 .progress = o->progress,
                                 .progress_ctx = o->progress_ctx};
    return o->kernels && !(out->kernels = kern_select(o->kernels, e)) ? SHOAL_EUNSUPPORTED : 0;
}

/* Rows of logits for guesses, beyond one for each task. */
static uint32_t max_drafts(const struct decoder_opts *d)
{
    const uint32_t room = d->max_batch - d->max_logits;
    return room < DRAFT_MAX ? room : DRAFT_MAX;
}

static bool is_part(const struct decoder_opts *d)
{
    return d->layer_first > 0 || d->rows.n_parts > 0;
}

/* The layers or rows of other processes, before any are loaded here.  Without others the chain is
 * dropped.
 */
static int cut_chain(struct shoal_engine *en, const struct shoal_engine_opts *o,
                     struct decoder_opts *d, const struct decoder_sizes *whole, struct err *e)
{
    struct decoder_costs c;
    if (!en->chain.ops)
        return 0;
    if (whole->state > 0) { /* states of sequences would have to travel, too */
        log_warn("engine", "recurrent layers cannot be divided among nodes: this one runs all");
        chain_close(&en->chain);
        return 0;
    }
    int rc = decoder_costs(&c, en->file, d, e);
    if (rc < 0)
        return rc;
    const uint64_t pages =
        o->kv_bytes ? o->kv_bytes / whole->kv_page : wanted_pages(en, whole->n_ctx);
    const struct chain_costs costs = {.n_layers = c.n_layers,
                                      .dim = c.dim,
                                      .layer = c.layer_bytes,
                                      .head = c.head_bytes,
                                      .kv = c.kv_page_bytes * pages,
                                      .scratch = whole->scratch,
                                      .n_kv_heads = c.n_kv_heads,
                                      .ffn_dim = c.ffn_dim,
                                      .rows = c.rows};
    struct chain_cut cut = {.first = 0};
    rc = en->chain.ops->cut(en->chain.ctx, &costs, &cut, e);
    if (rc < 0)
        return rc;
    d->layer_first = cut.first;
    d->rows = cut.rows;
    if (!is_part(d))
        chain_close(&en->chain);
    if (cut.first > 0 && !o->chunk) { /* pieces for all parts at once */
        en->chunk *= en->chain.ops->n_parts(en->chain.ctx);
        d->max_batch = d->max_batch < en->chunk ? en->chunk : d->max_batch;
    }
    return rc;
}

/* Replaces the engine's native model by one with the layers of others.  Takes the decoder. */
static int join_chain(struct shoal_engine *en, struct decoder *decoder,
                      const struct decoder_opts *d, struct err *e)
{
    const struct decoder_config *c = decoder_config(decoder);
    const struct chain_shape shape = {.n_layers = c->n_layers,
                                      .dim = c->dim,
                                      .n_ctx = decoder_n_ctx(decoder),
                                      .max_batch = decoder_max_batch(decoder),
                                      .n_pages = en->n_pages,
                                      .cut = {d->layer_first, d->rows},
                                      .kv_q8 = d->kv_kind == KERN_KV_Q8};
    int rc = en->chain.ops->connect(en->chain.ctx, &shape, e);
    return rc < 0 ? rc
                  : chained_lm_create(&en->lm, decoder, &en->chain, d->rows.n_parts > 0,
                                      en->max_tasks, e);
}

static int open_native(struct shoal_engine *en, const char *path, const struct shoal_engine_opts *o,
                       struct err *e)
{
    struct decoder *decoder;
    char dir[PATH_MAX];
    struct decoder_sizes sizes, whole = {.kv_page = 1};
    struct decoder_opts d;
    int rc = en->file ? 0 : model_open_parts(&en->file, path, o->key_file, e);
    if (rc == 0)
        rc = decoder_options(&d, en, o, dir, e);
    if (rc < 0)
        return rc;
    if (o->drafts != SHOAL_DRAFTS_NEVER)
        d.max_logits += max_drafts(&d);
    struct decoder_opts most = d; /* with the longer passes of a few parts */
    if (!o->chunk && d.max_batch < 3 * en->chunk)
        most.max_batch = 3 * en->chunk;
    if (en->chain.ops)
        rc = decoder_measure(&whole, en->file, &most, e);
    if (rc == 0)
        rc = cut_chain(en, o, &d, &whole, e);
    if (rc == 0)
        rc = decoder_measure(&sizes, en->file, &d, e);
    if (rc == 0 && d.n_threads == 0 && sizes.weights < TINY_MODEL_BYTES)
        d.n_threads = 1;
    if (rc == 0)
        plan_states(en, &d, &sizes);
    if (rc == 0)
        rc = tokenizer_create(&en->tokenizer, en->file, e);
    struct shoal_engine_opts here = *o; /* the cache's size is that of the whole model's */
    if (rc == 0 && is_part(&d))
        here.kv_bytes = o->kv_bytes / whole.kv_page * sizes.kv_page;
    if (rc == 0)
        rc = plan_memory(en, &here, &sizes, e);
    if (rc == 0)
        rc = decoder_create(&decoder, en->file, path, &d, e);
    if (rc < 0)
        return err_wrap(e, "%s", path);
    native_lm_from_decoder(&en->lm, decoder);
    if (en->chain.ops && (rc = join_chain(en, decoder, &d, e)) < 0)
        return err_wrap(e, "%s", path);
    /* a guess that fails would have to be taken out of a recurrent state */
    en->lm.info.max_drafts = en->n_states ? 0 : d.max_logits - en->max_tasks;
    en->kernels = decoder_kernels(decoder);
    en->kv = mem_pages(en->kv_bytes);
    if (!en->kv)
        return err_set(e, SHOAL_ENOMEM, "cannot reserve %zu bytes of key-value cache",
                       en->kv_bytes);
    decoder_set_kv(decoder, en->kv);
    return 0;
}

/* ---- a GPU ---- */

static bool wants_cuda(const struct shoal_engine_opts *o)
{
    return o->kernels && strcmp(o->kernels, "cuda") == 0;
}

/* As open_native, but weights, keys and values are in the GPU's memory, and its free bytes are a
 * limit too. */
static int open_cuda(struct shoal_engine *en, const char *path, const struct shoal_engine_opts *o,
                     struct err *e)
{
    struct cuda_gpu *gpu = NULL;
    struct decoder *decoder = NULL;
    char dir[PATH_MAX];
    struct decoder_sizes sizes;
    struct decoder_opts d;
    struct shoal_engine_opts here = *o;
    here.kernels = NULL;
    int rc = cuda_gpu_open(&gpu, e);
    if (rc == 0)
        rc = decoder_options(&d, en, &here, dir, e);
    d.kernels = &kern_scalar;
    if (rc == 0)
        rc = decoder_measure(&sizes, en->file, &d, e);
    if (rc == 0)
        rc = tokenizer_create(&en->tokenizer, en->file, e);
    if (rc == 0) {
        const size_t left = cuda_gpu_free_bytes(gpu);
        here.memory_bytes = o->memory_bytes && o->memory_bytes < left ? o->memory_bytes : left;
        rc = plan_memory(en, &here, &sizes, e);
    }
    if (rc == 0)
        rc = decoder_create(&decoder, en->file, path, &d, e);
    if (rc == 0 && !(en->kernels = kern_select(NULL, e)))
        rc = SHOAL_EUNSUPPORTED;
    if (rc < 0) {
        decoder_destroy(decoder);
        cuda_gpu_close(gpu);
        return err_wrap(e, "%s", path);
    }
    rc = cuda_lm_create(&en->lm, decoder, gpu, en->n_pages, e);
    return rc < 0 ? err_wrap(e, "%s", path) : 0;
}

/* ---- several decoders, averaged ---- */

/* Equal for vocabularies with the same ids. */
static uint64_t vocabulary_sum(const struct tokenizer *t)
{
    const struct tokenizer_info *info = tokenizer_info(t);
    uint64_t sum = info->n_vocab;
    for (uint32_t i = 0; i < info->n_vocab; i++) {
        const struct str piece = tokenizer_piece(t, (int32_t)i, TOKENIZER_RENDER_SPECIAL);
        sum = hash_bytes(piece.p, piece.n, sum + tokenizer_is_eog(t, (int32_t)i));
    }
    return sum;
}

static int check_vocabulary(const struct shoal_engine *en, const char *path,
                            const struct model_file *file, const char *other_path, struct err *e)
{
    struct tokenizer *other = NULL;
    int rc = tokenizer_create(&other, file, e);
    if (rc < 0)
        return err_wrap(e, "%s", other_path);
    if (vocabulary_sum(other) != vocabulary_sum(en->tokenizer))
        rc = err_set(e, SHOAL_EINVAL,
                     "%.100s (%u tokens) and %.100s (%u tokens) have different vocabularies: only "
                     "models with the same one can be averaged",
                     path, tokenizer_info(en->tokenizer)->n_vocab, other_path,
                     tokenizer_info(other)->n_vocab);
    tokenizer_destroy(other);
    return rc;
}

static bool is_native_decoder(const char *path, const struct model_file *file)
{
    struct onnx_files files;
    return !scorer_specialist_knows(path) && !extract_detect(path) &&
           onnx_files_find(&files, path, NULL) == 0 && !t5_knows(file) && !encoder_knows(file);
}

/* One model of an average, from its file to its size. */
struct averaged {
    const char *path;
    struct model_file *file; /* the first one's is the engine's */
    struct decoder_sizes sizes;
    double weight;
};

static int check_weights(const struct shoal_engine_opts *o, struct err *e)
{
    double sum = o->average_weights ? 0 : 1;
    for (uint32_t i = 0; o->average_weights && i <= o->n_average; i++) {
        if (!(o->average_weights[i] >= 0 && o->average_weights[i] <= 1e6))
            return err_set(e, SHOAL_EINVAL, "the weight %g is not a number from 0 to a million",
                           o->average_weights[i]);
        sum += o->average_weights[i];
    }
    return sum > 0 ? 0 : err_set(e, SHOAL_EINVAL, "all weights of the average are 0");
}

/* Opens the files, checks that they match, and adds up their sizes. */
static int measure_average(struct shoal_engine *en, struct averaged *list, uint32_t n,
                           const struct decoder_opts *d, struct decoder_sizes *sum, struct err *e)
{
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        struct averaged *a = &list[i];
        if (i > 0 && (rc = model_open(&a->file, a->path, e)) < 0)
            return rc;
        if (!is_native_decoder(a->path, a->file))
            return err_set(e, SHOAL_EINVAL,
                           "%.200s cannot be averaged: it is not a GGUF file or a Hugging Face "
                           "folder of a decoder",
                           a->path);
        rc = i == 0 ? tokenizer_create(&en->tokenizer, a->file, e)
                    : check_vocabulary(en, list[0].path, a->file, a->path, e);
        if (rc == 0 && (rc = decoder_measure(&a->sizes, a->file, d, e)) < 0)
            rc = err_wrap(e, "%s", a->path);
        sum->weights += a->sizes.weights;
        sum->scratch += a->sizes.scratch;
        sum->kv_page += a->sizes.kv_page;
        sum->state += a->sizes.state;
        if (rc == 0 && (i == 0 || a->sizes.n_ctx < sum->n_ctx))
            sum->n_ctx = a->sizes.n_ctx;
    }
    return rc;
}

static int load_averaged(struct average_member *to, struct averaged *a, uint32_t n_pages,
                         const struct decoder_opts *d, struct err *e)
{
    struct decoder *decoder = NULL;
    int rc = decoder_create(&decoder, a->file, a->path, d, e);
    if (rc < 0)
        return err_wrap(e, "%s", a->path);
    native_lm_from_decoder(&to->lm, decoder);
    to->lm.info.file_bytes = a->file->n_bytes;
    to->weight = a->weight;
    to->kv_bytes = n_pages * a->sizes.kv_page;
    to->kv = mem_pages(to->kv_bytes);
    if (!to->kv)
        return err_set(e, SHOAL_ENOMEM, "cannot reserve %zu bytes of key-value cache",
                       to->kv_bytes);
    decoder_set_kv(decoder, to->kv);
    return 0;
}

static int load_average(struct shoal_engine *en, struct averaged *list, uint32_t n,
                        const struct decoder_opts *d, struct err *e)
{
    struct average_member members[SHOAL_MAX_AVERAGE] = {0};
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = load_averaged(&members[i], &list[i], en->n_pages, d, e);
    for (uint32_t i = 1; i < n; i++) { /* whatever happened: the member closes it */
        members[i].file = list[i].file;
        list[i].file = NULL;
    }
    if (rc == 0)
        return average_lm_create(&en->lm, members, n, en->kernels, en->max_tasks, e);
    for (uint32_t i = 0; i < n; i++)
        average_member_fini(&members[i]);
    return rc;
}

static int open_average(struct shoal_engine *en, const char *path,
                        const struct shoal_engine_opts *o, struct err *e)
{
    struct averaged list[SHOAL_MAX_AVERAGE] = {{.path = path, .file = en->file}};
    const uint32_t n = o->n_average + 1;
    struct decoder_sizes sum = {.weights = 0};
    struct decoder_opts d;
    char dir[PATH_MAX];
    int rc = check_weights(o, e);
    if (rc == 0)
        rc = decoder_options(&d, en, o, dir, e);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < n; i++) {
        list[i].path = i == 0 ? path : o->average_paths[i - 1];
        list[i].weight = o->average_weights ? o->average_weights[i] : 1;
    }
    if (!(en->kernels = kern_select(o->kernels, e)))
        return SHOAL_EUNSUPPORTED;
    rc = measure_average(en, list, n, &d, &sum, e);
    d.n_ctx = sum.n_ctx;
    if (d.n_threads == 0 && sum.weights < TINY_MODEL_BYTES)
        d.n_threads = 1;
    if (rc == 0) { /* adds the rows of the mean */
        sum.scratch += (size_t)en->max_tasks * tokenizer_info(en->tokenizer)->n_vocab * 4;
        plan_states(en, &d, &sum);
        rc = plan_memory(en, o, &sum, e);
    }
    if (rc == 0)
        rc = load_average(en, list, n, &d, e);
    for (uint32_t i = 1; i < n; i++)
        model_file_close(list[i].file);
    return rc;
}

/* ---- ONNX Runtime ---- */

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
    int rc = o->n_average > 0 ? open_average(en, path, o, e)
             : en->onnx       ? open_onnx(en, path, o, e)
             : wants_cuda(o)  ? open_cuda(en, path, o, e)
                              : open_native(en, path, o, e);
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
    if (o->n_average >= SHOAL_MAX_AVERAGE)
        return err_set(e, SHOAL_EINVAL, "an average has at most %u models", SHOAL_MAX_AVERAGE);
    int rc = arg_check_n(o->average_paths, o->n_average, "average_paths", e);
    for (uint32_t i = 0; rc == 0 && i < o->n_average; i++)
        rc = arg_check(o->average_paths[i], "average_paths[]", e);
    if (rc == 0)
        rc = open_specialist(en, path, o, e);
    if (rc < 0)
        return rc;
    if (en->chain.ops && (en->specialist.ops || en->onnx || o->n_average > 0 || wants_cuda(o)))
        return err_set(e, SHOAL_EINVAL,
                       "%.200s cannot be sharded: it is not a decoder of the native engine", path);
    if (o->n_average > 0 && (en->specialist.ops || en->onnx))
        return err_set(e, SHOAL_EINVAL,
                       "%.200s cannot be averaged: it is not a GGUF file or a Hugging Face folder "
                       "of a decoder",
                       path);
    if (en->specialist.ops) {
        en->kinds = en->specialist.kinds;
        return 0;
    }
    en->kinds = SHOAL_KIND_GENERATE;
    return open_decoder(en, path, o, e);
}

/* Is it one of the models that do one thing, and no decoder? */
static bool is_specialist(const struct model_file *file)
{
    return t5_knows(file) || encoder_knows(file) || voice_knows(file);
}

bool backends_generates(const char *path)
{
    struct model_file *file = NULL;
    struct onnx_files files;
    struct err e = {0};
    if (scorer_specialist_knows(path) || extract_detect(path) || onnx_files_find(&files, path, &e))
        return false;
    const bool known = model_open(&file, path, &e) == 0 && !is_specialist(file);
    model_file_close(file);
    return known;
}

int backends_check(const char *path, struct err *e)
{
    const struct decoder_opts d = {.max_batch = 1, .max_logits = 1};
    struct model_file *file = NULL;
    struct decoder_sizes sizes;
    struct onnx_files files;
    if (scorer_specialist_knows(path) || extract_detect(path))
        return 0;
    int found = sealed_check(path, e); /* the rest needs its key */
    if (found == 0)
        found = onnx_files_find(&files, path, e);
    if (found != 0)
        return found < 0 ? found : 0;
    int rc = model_open(&file, path, e);
    if (rc == 0 && !is_specialist(file)) {
        rc = decoder_measure(&sizes, file, &d, e);
        if (rc < 0)
            rc = err_wrap(e, "%s", path);
    }
    model_file_close(file);
    return rc;
}

int backends_check_adapter(const char *path, const char *base, struct err *e)
{
    struct model_file *model = NULL, *adapter = NULL;
    int rc = sealed_check(base, e);
    if (rc != 0)
        return rc < 0 ? rc : 0; /* the rest needs its key */
    rc = model_open(&model, base, e);
    if (rc == 0)
        rc = lora_open(&adapter, path, model, e);
    model_file_close(adapter);
    model_file_close(model);
    return rc;
}
