/* peer_llama.c - llama.cpp's libllama behind the benchmark protocol (bench/PROTOCOL.md).
 *
 * usage: peer_llama [--libs DIR] [--backend FILE]     (PEER_VERBOSE=1: the library's log)
 *
 * The libraries are those of npm @node-llama-cpp/linux-*, opened at run time from DIR; the headers
 * come from npm node-llama-cpp (see bench/build-peer).  Neither is part of the project.
 *
 * The measurement must be fair to the peer: default parameters (memory-mapped, weights repacked,
 * flash attention where it helps), the CPU library that it rates best for the machine, and a thread
 * pool that lives as long as the context, as in its own benchmark tool; without one it would start
 * its threads again for each token.
 *
 * Thread:    one; libllama has its own pool.
 * Failure:   a failed request gets an error reply; only a missing library ends the program.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <cjson/cJSON.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <llama.h>

#ifndef PEER_LIBS
#define PEER_LIBS "."
#endif

enum { MAX_THREADS = 256 };

#define API_MAP(X)                                                                                 \
    X(llama_version)                                                                               \
    X(llama_backend_init)                                                                          \
    X(llama_log_set)                                                                               \
    X(llama_model_default_params)                                                                  \
    X(llama_context_default_params)                                                                \
    X(llama_model_quantize_default_params)                                                         \
    X(llama_model_load_from_file)                                                                  \
    X(llama_model_free)                                                                            \
    X(llama_init_from_model)                                                                       \
    X(llama_free)                                                                                  \
    X(llama_n_ctx)                                                                                 \
    X(llama_n_batch)                                                                               \
    X(llama_get_memory)                                                                            \
    X(llama_memory_clear)                                                                          \
    X(llama_model_get_vocab)                                                                       \
    X(llama_vocab_n_tokens)                                                                        \
    X(llama_vocab_bos)                                                                             \
    X(llama_vocab_get_add_bos)                                                                     \
    X(llama_vocab_is_eog)                                                                          \
    X(llama_model_size)                                                                            \
    X(llama_model_n_params)                                                                        \
    X(llama_model_quantize)                                                                        \
    X(llama_batch_init)                                                                            \
    X(llama_batch_free)                                                                            \
    X(llama_decode)                                                                                \
    X(llama_encode)                                                                                \
    X(llama_get_embeddings_seq)                                                                    \
    X(llama_synchronize)                                                                           \
    X(llama_set_n_threads)                                                                         \
    X(llama_attach_threadpool)                                                                     \
    X(llama_get_logits_ith)                                                                        \
    X(llama_tokenize)                                                                              \
    X(llama_detokenize)                                                                            \
    X(ggml_backend_load)                                                                           \
    X(ggml_backend_load_all_from_path)                                                             \
    X(ggml_backend_reg_count)                                                                      \
    X(ggml_backend_reg_by_name)                                                                    \
    X(ggml_backend_reg_get_proc_address)                                                           \
    X(ggml_threadpool_params_default)                                                              \
    X(ggml_type_name)

struct api {
#define X(f) __typeof__(&f) f;
    API_MAP(X)
#undef X
    __typeof__(&ggml_threadpool_new) threadpool_new; /* from the CPU library, via its registry */
    __typeof__(&ggml_threadpool_free) threadpool_free;
};

struct peer {
    struct api api;
    char kernels[128];
    struct llama_model *model;
    struct llama_context *ctx;
    const struct llama_vocab *vocab;
    /* Indexed by number of threads.  They live as long as the context: when the CPU library gets
     * another pool, it pauses the previous one. */
    struct ggml_threadpool *pools[MAX_THREADS + 1];
    int n_threads, n_seqs, n_vocab, n_ctx; /* n_ctx: per sequence */
    char error[256];
    char log[200]; /* the library's last error line, for replies */
};

typedef int (*op_fn)(struct peer *p, const cJSON *in, cJSON *out);

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

__attribute__((format(printf, 2, 3))) static int fail(struct peer *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->error, sizeof(p->error), fmt, ap);
    va_end(ap);
    return -1;
}

static int get_int(const cJSON *in, const char *key, int otherwise)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(in, key);
    return cJSON_IsNumber(v) ? v->valueint : otherwise;
}

static bool get_bool(const cJSON *in, const char *key, bool otherwise)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(in, key);
    return cJSON_IsBool(v) ? cJSON_IsTrue(v) : otherwise;
}

static const char *get_str(const cJSON *in, const char *key, const char *otherwise)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(in, key);
    return cJSON_IsString(v) ? v->valuestring : otherwise;
}

static void put_num(cJSON *out, const char *key, double v)
{
    cJSON_AddNumberToObject(out, key, v);
}

static void on_log(enum ggml_log_level level, const char *text, void *arg)
{
    struct peer *p = arg;
    if (level == GGML_LOG_LEVEL_ERROR && strlen(text) > 1)
        snprintf(p->log, sizeof(p->log), "%.*s", (int)strcspn(text, "\n"), text);
    if (getenv("PEER_VERBOSE"))
        fputs(text, stderr);
}

/* ---- libraries ---- */

static int open_libllama(struct peer *p, void **handle, const char *dir)
{
    char path[4096] = "";
    const struct dirent *d;
    DIR *at = opendir(dir);

    if (!at)
        return fail(p, "cannot open %s: %s", dir, strerror(errno));
    while ((d = readdir(at))) /* libllama.so or libllama.vX.so, not libllama-common.so */
        if (!strncmp(d->d_name, "libllama.", 9))
            snprintf(path, sizeof(path), "%s/%s", dir, d->d_name);
    closedir(at);
    if (!path[0])
        return fail(p, "no libllama in %s", dir);
    *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    return *handle ? 0 : fail(p, "%s", dlerror());
}

/* The file name of the chosen CPU library: only that one is mapped. */
static void find_kernels(struct peer *p)
{
    char line[4096];
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof(line), f)) {
        const char *at = strstr(line, "libggml-cpu");
        if (at)
            snprintf(p->kernels, sizeof(p->kernels), "%.*s", (int)strcspn(at, "\n"), at);
    }
    if (f)
        fclose(f);
}

static int open_peer(struct peer *p, const char *dir, const char *backend)
{
    struct api *a = &p->api;
    ggml_backend_reg_t cpu;
    char path[4096];
    void *h;

    if (open_libllama(p, &h, dir) < 0)
        return -1;
#define X(f)                                                                                       \
    a->f = (__typeof__(a->f))dlsym(h, #f);                                                         \
    if (!a->f)                                                                                     \
        return fail(p, "libllama has no %s", #f);
    API_MAP(X)
#undef X
    a->llama_log_set(on_log, p);
    if (backend) {
        snprintf(path, sizeof(path), "%s/%s", dir, backend);
        if (!a->ggml_backend_load(path))
            return fail(p, "cannot load %s", path);
    } else {
        a->ggml_backend_load_all_from_path(dir);
    }
    cpu = a->ggml_backend_reg_by_name("CPU");
    if (!cpu)
        return fail(p, "no CPU library in %s runs on this machine", dir);
    find_kernels(p);
    a->threadpool_new = (__typeof__(a->threadpool_new))a->ggml_backend_reg_get_proc_address(
        cpu, "ggml_threadpool_new");
    a->threadpool_free = (__typeof__(a->threadpool_free))a->ggml_backend_reg_get_proc_address(
        cpu, "ggml_threadpool_free");
    a->llama_backend_init();
    return 0;
}

/* ---- batches ---- */

static int32_t bench_token(const struct peer *p, int i, int s)
{
    return (int32_t)(((int64_t)i * 7919 + (int64_t)s * 104729 + 1) % p->n_vocab);
}

static void batch_add(struct llama_batch *b, int32_t token, int pos, int seq, bool logits)
{
    int i = b->n_tokens++;
    b->token[i] = token;
    b->pos[i] = pos;
    b->n_seq_id[i] = 1;
    b->seq_id[i][0] = seq;
    b->logits[i] = logits;
}

static int run_batch(struct peer *p, struct llama_batch *b)
{
    int rc = p->api.llama_decode(p->ctx, *b);
    if (rc != 0)
        return fail(p, "llama_decode gave %d for %d tokens: %s", rc, b->n_tokens, p->log);
    p->api.llama_synchronize(p->ctx);
    return 0;
}

static int need_model(struct peer *p)
{
    return p->ctx ? 0 : fail(p, "no model is loaded");
}

static void clear_kv(struct peer *p)
{
    p->api.llama_memory_clear(p->api.llama_get_memory(p->ctx), false);
}

/* The ids of the request's "tokens"; the caller frees *ids. */
static int get_tokens(struct peer *p, const cJSON *in, int32_t **ids, int *n)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(in, "tokens"), *v;
    int i = 0;

    *ids = NULL;
    *n = cJSON_GetArraySize(list);
    if (!cJSON_IsArray(list) || *n < 1)
        return fail(p, "tokens must be a list of ids");
    *ids = calloc((size_t)*n, sizeof(**ids));
    if (!*ids)
        return fail(p, "out of memory");
    cJSON_ArrayForEach(v, list)
    {
        if (!cJSON_IsNumber(v) || v->valueint < 0 || v->valueint >= p->n_vocab) {
            free(*ids);
            *ids = NULL;
            return fail(p, "tokens[%d] is not an id below %d", i, p->n_vocab);
        }
        (*ids)[i++] = v->valueint;
    }
    return 0;
}

/* ---- operations ---- */

static int op_hello(struct peer *p, const cJSON *in, cJSON *out)
{
    (void)in;
    put_num(out, "protocol", 1);
    cJSON_AddStringToObject(out, "engine", "llama.cpp");
    cJSON_AddStringToObject(out, "version", p->api.llama_version());
    cJSON_AddStringToObject(out, "kernels", p->kernels);
    return 0;
}

static int set_threads(struct peer *p, int n)
{
    struct ggml_threadpool_params tp;

    if (n < 1 || n > MAX_THREADS)
        return fail(p, "threads: %d is not in 1..%d", n, MAX_THREADS);
    p->n_threads = n;
    p->api.llama_set_n_threads(p->ctx, n, n);
    if (!p->api.threadpool_new)
        return 0;
    if (!p->pools[n]) {
        tp = p->api.ggml_threadpool_params_default(n);
        p->pools[n] = p->api.threadpool_new(&tp);
        if (!p->pools[n])
            return fail(p, "cannot start %d threads", n);
    }
    p->api.llama_attach_threadpool(p->ctx, p->pools[n], NULL);
    return 0;
}

static void unload(struct peer *p)
{
    if (p->ctx)
        p->api.llama_free(p->ctx);
    for (int i = 0; i <= MAX_THREADS; i++) {
        if (p->pools[i])
            p->api.threadpool_free(p->pools[i]);
        p->pools[i] = NULL;
    }
    if (p->model)
        p->api.llama_model_free(p->model);
    p->ctx = NULL;
    p->model = NULL;
}

static int op_unload(struct peer *p, const cJSON *in, cJSON *out)
{
    (void)in;
    (void)out;
    unload(p);
    return 0;
}

static int kv_type(struct peer *p, const char *name, enum ggml_type *type)
{
    if (!strcmp(name, "f16"))
        *type = GGML_TYPE_F16;
    else if (!strcmp(name, "f32"))
        *type = GGML_TYPE_F32;
    else if (!strcmp(name, "q8_0"))
        *type = GGML_TYPE_Q8_0;
    else
        return fail(p, "kv: %s is not f16, f32 or q8_0", name);
    return 0;
}

/* Fields besides the protocol's: "flash" (auto, on, off) and "repack" (true), for references. */
static int op_load(struct peer *p, const cJSON *in, cJSON *out)
{
    struct llama_model_params mp = p->api.llama_model_default_params();
    struct llama_context_params cp = p->api.llama_context_default_params();
    const char *path = get_str(in, "model", NULL);
    const char *flash = get_str(in, "flash", "auto");
    int threads = get_int(in, "threads", 1);
    double start;

    unload(p);
    if (!path)
        return fail(p, "model must be a path");
    p->n_ctx = get_int(in, "ctx", 512);
    p->n_seqs = get_int(in, "seqs", 1);
    if (p->n_ctx < 1 || p->n_seqs < 1 || p->n_seqs > 256)
        return fail(p, "ctx or seqs is out of range");
    if (kv_type(p, get_str(in, "kv", "f16"), &cp.type_k) < 0)
        return -1;
    cp.type_v = cp.type_k;
    cp.n_ctx = (uint32_t)(p->n_ctx * p->n_seqs);
    cp.n_seq_max = (uint32_t)p->n_seqs;
    cp.n_threads = cp.n_threads_batch = threads;
    if (!strcmp(flash, "off"))
        cp.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    else if (!strcmp(flash, "on"))
        cp.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    if (get_bool(in, "embeddings", false)) { /* attention sees a whole batch: use one batch */
        cp.embeddings = true;
        cp.n_batch = cp.n_ubatch = cp.n_ctx;
    }
    mp.use_extra_bufts = get_bool(in, "repack", mp.use_extra_bufts);
    p->log[0] = 0;
    start = now_ms();
    p->model = p->api.llama_model_load_from_file(path, mp);
    if (!p->model)
        return fail(p, "cannot load %s: %s", path, p->log);
    p->vocab = p->api.llama_model_get_vocab(p->model);
    p->n_vocab = p->api.llama_vocab_n_tokens(p->vocab);
    p->ctx = p->api.llama_init_from_model(p->model, cp);
    if (!p->ctx || set_threads(p, threads) < 0) {
        unload(p);
        return fail(p, "cannot create a context for %s: %s", path, p->log);
    }
    put_num(out, "load_ms", now_ms() - start);
    put_num(out, "n_vocab", p->n_vocab);
    put_num(out, "n_ctx", p->api.llama_n_ctx(p->ctx));
    put_num(out, "n_params", (double)p->api.llama_model_n_params(p->model));
    put_num(out, "weights_bytes", (double)p->api.llama_model_size(p->model));
    return 0;
}

static int op_threads(struct peer *p, const cJSON *in, cJSON *out)
{
    (void)out;
    return need_model(p) < 0 ? -1 : set_threads(p, get_int(in, "n", 1));
}

static int op_prompt(struct peer *p, const cJSON *in, cJSON *out)
{
    int n = get_int(in, "n", 128), rc;
    struct llama_batch b;
    double ms;

    if (need_model(p) < 0)
        return -1;
    if (n < 1 || n > p->n_ctx || n > (int)p->api.llama_n_batch(p->ctx))
        return fail(p, "n: %d does not fit a context of %d", n, p->n_ctx);
    b = p->api.llama_batch_init(n, 0, 1);
    clear_kv(p);
    for (int i = 0; i < n; i++)
        batch_add(&b, bench_token(p, i, 0), i, 0, i == n - 1);
    ms = now_ms();
    rc = run_batch(p, &b);
    ms = now_ms() - ms;
    p->api.llama_batch_free(b);
    put_num(out, "ms", ms);
    put_num(out, "tok_s", n * 1e3 / ms);
    return rc;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int op_decode(struct peer *p, const cJSON *in, cJSON *out)
{
    int n = get_int(in, "n", 64), seqs = get_int(in, "seqs", 1), past = get_int(in, "past", 0);
    struct llama_batch b;
    double *step, total = 0;
    int rc = 0;

    if (need_model(p) < 0)
        return -1;
    if (n < 1 || seqs < 1 || past < 0 || seqs > p->n_seqs || n + past > p->n_ctx)
        return fail(p, "%d sequences of %d + %d tokens do not fit the context", seqs, past, n);
    b = p->api.llama_batch_init(seqs + past, 0, 1);
    step = calloc((size_t)n, sizeof(*step));
    clear_kv(p);
    for (int s = 0; past && s < seqs && rc == 0; s++) {
        b.n_tokens = 0;
        for (int i = 0; i < past; i++)
            batch_add(&b, bench_token(p, i, s), i, s, i == past - 1);
        rc = run_batch(p, &b);
    }
    for (int i = 0; i < n && rc == 0; i++) {
        double t = now_ms();
        b.n_tokens = 0;
        for (int s = 0; s < seqs; s++)
            batch_add(&b, bench_token(p, past + i, s), past + i, s, true);
        rc = run_batch(p, &b);
        step[i] = now_ms() - t;
        total += step[i];
    }
    p->api.llama_batch_free(b);
    qsort(step, (size_t)n, sizeof(*step), by_value);
    put_num(out, "ms", total);
    put_num(out, "tok_s", (double)n * seqs * 1e3 / total);
    put_num(out, "step_ms_min", step[0]);
    put_num(out, "step_ms_p50", step[n / 2]);
    put_num(out, "step_ms_max", step[n - 1]);
    free(step);
    return rc;
}

static int op_first(struct peer *p, const cJSON *in, cJSON *out)
{
    struct llama_batch b;
    double t;
    int rc;

    (void)in;
    if (need_model(p) < 0)
        return -1;
    b = p->api.llama_batch_init(1, 0, 1);
    t = now_ms();
    clear_kv(p);
    batch_add(&b, bench_token(p, 0, 0), 0, 0, true);
    rc = run_batch(p, &b);
    put_num(out, "ms", now_ms() - t);
    p->api.llama_batch_free(b);
    return rc;
}

/* Writes the logits rows of the last batch, from index `first` on. */
static int emit_logits(struct peer *p, FILE *f, cJSON *rows, int first, int n_rows)
{
    for (int i = first; i < n_rows; i++) {
        const float *row = p->api.llama_get_logits_ith(p->ctx, i);
        if (!row)
            return fail(p, "no logits at %d", i);
        if (rows)
            cJSON_AddItemToArray(rows, cJSON_CreateFloatArray(row, p->n_vocab));
        else if (fwrite(row, sizeof(*row), (size_t)p->n_vocab, f) != (size_t)p->n_vocab)
            return fail(p, "cannot write logits: %s", strerror(errno));
    }
    return 0;
}

static int op_logits(struct peer *p, const cJSON *in, cJSON *out)
{
    const char *path = get_str(in, "out", NULL);
    int batch = get_int(in, "batch", 0), first = get_int(in, "first", 0), n, rc = 0;
    cJSON *rows = NULL;
    struct llama_batch b;
    FILE *f = NULL;
    int32_t *ids;

    if (need_model(p) < 0 || get_tokens(p, in, &ids, &n) < 0)
        return -1;
    if (batch < 1 || batch > (int)p->api.llama_n_batch(p->ctx))
        batch = (int)p->api.llama_n_batch(p->ctx);
    if (n > p->n_ctx) {
        free(ids);
        return fail(p, "%d tokens do not fit a context of %d", n, p->n_ctx);
    }
    if (path)
        f = fopen(path, "wb");
    if (path && !f) {
        free(ids);
        return fail(p, "cannot open %s: %s", path, strerror(errno));
    }
    if (!path)
        rows = cJSON_AddArrayToObject(out, "logits");
    b = p->api.llama_batch_init(batch, 0, 1);
    clear_kv(p);
    for (int i = 0; i < n && rc == 0; i += batch) {
        b.n_tokens = 0;
        for (int j = i; j < n && j < i + batch; j++)
            batch_add(&b, ids[j], j, 0, j >= first);
        rc = run_batch(p, &b);
        if (rc == 0)
            rc = emit_logits(p, f, rows, first > i ? first - i : 0, b.n_tokens);
    }
    p->api.llama_batch_free(b);
    free(ids);
    if (f && fclose(f) != 0 && rc == 0)
        rc = fail(p, "cannot write %s: %s", path, strerror(errno));
    put_num(out, "n", n);
    put_num(out, "n_vocab", p->n_vocab);
    return rc;
}

/* Computes sequences `from` to `to` of the lists in one batch, with their embeddings. */
static int embed_some(struct peer *p, const cJSON *lists, int from, int to, struct llama_batch *b)
{
    int s = 0;
    const cJSON *list, *id;
    b->n_tokens = 0;
    cJSON_ArrayForEach(list, lists)
    {
        int pos = 0;
        if (s >= from && s < to)
            cJSON_ArrayForEach(id, list)
            {
                if (b->n_tokens == p->n_ctx * p->n_seqs || s - from >= p->n_seqs)
                    return fail(p, "too many tokens or sequences");
                batch_add(b, id->valueint, pos++, s - from, true);
            }
        s++;
    }
    if (p->api.llama_encode(p->ctx, *b) != 0)
        return fail(p, "llama_encode: %s", p->log);
    for (s = from; s < to; s++)
        if (!p->api.llama_get_embeddings_seq(p->ctx, s - from))
            return fail(p, "no embedding");
    return 0;
}

/* Mode "each": sequences one by one; "padded": all in one batch. */
static int op_embed(struct peer *p, const cJSON *in, cJSON *out)
{
    const cJSON *lists = cJSON_GetObjectItemCaseSensitive(in, "tokens");
    int n = cJSON_GetArraySize(lists), times = get_int(in, "n", 1), rc = 0;
    int step = strcmp(get_str(in, "mode", "each"), "padded") == 0 ? n : 1;
    struct llama_batch b;

    if (need_model(p) < 0)
        return -1;
    b = p->api.llama_batch_init(p->n_ctx * p->n_seqs, 0, 1);
    cJSON *list = cJSON_AddArrayToObject(out, "times_ms");
    for (int i = 0; i < times && rc == 0; i++) {
        double start = now_ms();
        for (int s = 0; s < n && rc == 0; s += step)
            rc = embed_some(p, lists, s, s + step, &b);
        cJSON_AddItemToArray(list, cJSON_CreateNumber(now_ms() - start));
    }
    p->api.llama_batch_free(b);
    return rc;
}

static int32_t best_token(const struct peer *p, const float *row)
{
    int32_t best = 0;
    for (int32_t i = 1; i < p->n_vocab; i++)
        if (row[i] > row[best])
            best = i;
    return best;
}

static int op_generate(struct peer *p, const cJSON *in, cJSON *out)
{
    int want = get_int(in, "n", 64), n, rc = 0;
    cJSON *list = cJSON_AddArrayToObject(out, "tokens");
    struct llama_batch b;
    int32_t *ids;

    if (need_model(p) < 0 || get_tokens(p, in, &ids, &n) < 0)
        return -1;
    if (want < 1 || n + want > p->n_ctx) {
        free(ids);
        return fail(p, "%d + %d tokens do not fit a context of %d", n, want, p->n_ctx);
    }
    b = p->api.llama_batch_init(n, 0, 1);
    clear_kv(p);
    for (int i = 0; i < n; i++)
        batch_add(&b, ids[i], i, 0, i == n - 1);
    free(ids);
    for (int i = 0; i < want; i++) {
        int32_t id;
        rc = run_batch(p, &b);
        if (rc < 0)
            break;
        id = best_token(p, p->api.llama_get_logits_ith(p->ctx, -1));
        if (p->api.llama_vocab_is_eog(p->vocab, id))
            break;
        cJSON_AddItemToArray(list, cJSON_CreateNumber(id));
        b.n_tokens = 0;
        batch_add(&b, id, n + i, 0, true);
    }
    p->api.llama_batch_free(b);
    return rc;
}

static int tokenize(struct peer *p, const char *text, size_t len, bool special, int32_t **ids,
                    int *n)
{
    int cap = (int)len + 8;

    *ids = malloc((size_t)cap * sizeof(**ids));
    if (!*ids)
        return fail(p, "out of memory");
    *n = p->api.llama_tokenize(p->vocab, text, (int32_t)len, *ids, cap, special, false);
    if (*n < 0) {
        free(*ids);
        return fail(p, "cannot tokenize");
    }
    return 0;
}

static int op_tokenize(struct peer *p, const cJSON *in, cJSON *out)
{
    const char *text = get_str(in, "text", "");
    int32_t *ids;
    int n;

    if (need_model(p) < 0 ||
        tokenize(p, text, strlen(text), get_bool(in, "special", true), &ids, &n) < 0)
        return -1;
    cJSON_AddItemToObject(out, "tokens", cJSON_CreateIntArray(ids, n));
    free(ids);
    return 0;
}

static int op_detokenize(struct peer *p, const cJSON *in, cJSON *out)
{
    int32_t *ids;
    char *text;
    int n, len, cap;

    if (need_model(p) < 0 || get_tokens(p, in, &ids, &n) < 0)
        return -1;
    cap = n * 64 + 64;
    text = calloc(1, (size_t)cap + 1);
    len = p->api.llama_detokenize(p->vocab, ids, n, text, cap, true, false);
    free(ids);
    if (len < 0) {
        free(text);
        return fail(p, "cannot detokenize");
    }
    cJSON_AddStringToObject(out, "text", text);
    free(text);
    return 0;
}

/* Minus the log-probability of `id` in one row of logits. */
static double row_nll(const struct peer *p, const float *row, int32_t id)
{
    double max = row[0], sum = 0;
    for (int i = 1; i < p->n_vocab; i++)
        if (row[i] > max)
            max = row[i];
    for (int i = 0; i < p->n_vocab; i++)
        sum += exp(row[i] - max);
    return log(sum) - (row[id] - max);
}

/* Scores one chunk of `size` tokens at ids and adds to *nll.  Logits are computed only at the
 * scored positions. */
static int score_chunk(struct peer *p, const int32_t *ids, int size, double *nll)
{
    bool bos = p->api.llama_vocab_get_add_bos(p->vocab);
    int cap = (int)p->api.llama_n_batch(p->ctx), first = size / 2, rc = 0;
    struct llama_batch b = p->api.llama_batch_init(cap, 0, 1);

    clear_kv(p);
    for (int at = 0; at < size && rc == 0; at += cap) {
        int end = at + cap < size ? at + cap : size;
        b.n_tokens = 0;
        for (int i = at; i < end; i++)
            batch_add(&b, i == 0 && bos ? p->api.llama_vocab_bos(p->vocab) : ids[i], i, 0,
                      i >= first && i < size - 1);
        rc = run_batch(p, &b);
        for (int i = at; i < end && rc == 0; i++)
            if (i >= first && i < size - 1)
                *nll += row_nll(p, p->api.llama_get_logits_ith(p->ctx, i - at), ids[i + 1]);
    }
    p->api.llama_batch_free(b);
    return rc;
}

static char *read_file(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    long n;

    if (f && fseek(f, 0, SEEK_END) == 0 && (n = ftell(f)) >= 0 && (text = malloc((size_t)n + 1))) {
        rewind(f);
        *len = fread(text, 1, (size_t)n, f);
        text[*len] = 0;
    }
    if (f)
        fclose(f);
    return text;
}

static int op_perplexity(struct peer *p, const cJSON *in, cJSON *out)
{
    const char *path = get_str(in, "file", "");
    int size = get_int(in, "ctx", 512), most = get_int(in, "chunks", 0), n, n_chunks, rc = 0;
    double nll = 0, start = now_ms();
    int32_t *ids;
    size_t len;
    char *text;

    if (need_model(p) < 0)
        return -1;
    if (size < 4 || size > p->n_ctx)
        return fail(p, "ctx: %d does not fit the loaded %d", size, p->n_ctx);
    text = read_file(path, &len);
    if (!text)
        return fail(p, "cannot read %s: %s", path, strerror(errno));
    rc = tokenize(p, text, len, true, &ids, &n);
    free(text);
    if (rc < 0)
        return rc;
    n_chunks = n / size;
    if (most > 0 && n_chunks > most)
        n_chunks = most;
    for (int k = 0; k < n_chunks && rc == 0; k++)
        rc = score_chunk(p, ids + (size_t)k * (size_t)size, size, &nll);
    free(ids);
    if (rc == 0 && n_chunks == 0)
        return fail(p, "%s has %d tokens, fewer than ctx %d", path, n, size);
    nll /= (double)n_chunks * (size - 1 - size / 2);
    put_num(out, "ppl", exp(nll));
    put_num(out, "nll", nll);
    put_num(out, "n", (double)n_chunks * (size - 1 - size / 2));
    put_num(out, "n_chunks", n_chunks);
    put_num(out, "ms", now_ms() - start);
    return rc;
}

static int op_rss(struct peer *p, const cJSON *in, cJSON *out)
{
    FILE *f = fopen("/proc/self/status", "r");
    double rss = 0, anon = 0, file = 0, shm = 0, peak = 0;
    char line[256];

    (void)in;
    if (!f)
        return fail(p, "cannot read /proc/self/status");
    while (fgets(line, sizeof(line), f)) {
        sscanf(line, "VmRSS: %lf", &rss);
        sscanf(line, "RssAnon: %lf", &anon);
        sscanf(line, "RssFile: %lf", &file);
        sscanf(line, "RssShmem: %lf", &shm);
        sscanf(line, "VmHWM: %lf", &peak);
    }
    fclose(f);
    put_num(out, "rss_bytes", rss * 1024);
    put_num(out, "anon_bytes", anon * 1024);
    put_num(out, "file_bytes", (file + shm) * 1024);
    put_num(out, "peak_bytes", peak * 1024);
    return 0;
}

static const struct {
    const char *name;
    enum llama_ftype type;
} ftypes[] = {
    {"f32", LLAMA_FTYPE_ALL_F32},          {"f16", LLAMA_FTYPE_MOSTLY_F16},
    {"bf16", LLAMA_FTYPE_MOSTLY_BF16},     {"q8_0", LLAMA_FTYPE_MOSTLY_Q8_0},
    {"q4_0", LLAMA_FTYPE_MOSTLY_Q4_0},     {"q4_1", LLAMA_FTYPE_MOSTLY_Q4_1},
    {"q5_0", LLAMA_FTYPE_MOSTLY_Q5_0},     {"q5_1", LLAMA_FTYPE_MOSTLY_Q5_1},
    {"q2_k", LLAMA_FTYPE_MOSTLY_Q2_K},     {"q3_k_s", LLAMA_FTYPE_MOSTLY_Q3_K_S},
    {"q3_k_m", LLAMA_FTYPE_MOSTLY_Q3_K_M}, {"q4_k_s", LLAMA_FTYPE_MOSTLY_Q4_K_S},
    {"q4_k_m", LLAMA_FTYPE_MOSTLY_Q4_K_M}, {"q5_k_s", LLAMA_FTYPE_MOSTLY_Q5_K_S},
    {"q5_k_m", LLAMA_FTYPE_MOSTLY_Q5_K_M}, {"q6_k", LLAMA_FTYPE_MOSTLY_Q6_K},
    {"iq4_nl", LLAMA_FTYPE_MOSTLY_IQ4_NL}, {"iq2_xxs", LLAMA_FTYPE_MOSTLY_IQ2_XXS},
    {"iq4_xs", LLAMA_FTYPE_MOSTLY_IQ4_XS}, {"iq3_s", LLAMA_FTYPE_MOSTLY_IQ3_S},
    {"iq3_m", LLAMA_FTYPE_MOSTLY_IQ3_M},   {"iq3_xxs", LLAMA_FTYPE_MOSTLY_IQ3_XXS},
};

/* "tensors": [{"pattern": regular expression over names, "type": "q6_k"}, ...] -> *list, terminated
 * by a NULL pattern; the caller frees it; patterns are borrowed from the request. */
static int get_overrides(struct peer *p, const cJSON *in, struct llama_model_tensor_override **list)
{
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(in, "tensors"), *v;
    int n = cJSON_GetArraySize(all), at = 0;

    *list = NULL;
    if (n == 0)
        return 0;
    *list = calloc((size_t)n + 1, sizeof(**list));
    if (!*list)
        return fail(p, "out of memory");
    cJSON_ArrayForEach(v, all)
    {
        const char *type = get_str(v, "type", "");
        int t = 0;
        while (t < GGML_TYPE_COUNT && strcasecmp(p->api.ggml_type_name((enum ggml_type)t), type))
            t++;
        if (t == GGML_TYPE_COUNT || !get_str(v, "pattern", NULL)) {
            free(*list);
            return fail(p, "tensors[%d] needs a pattern and a type", at);
        }
        (*list)[at].pattern = get_str(v, "pattern", NULL);
        (*list)[at++].type = (enum ggml_type)t;
    }
    return 0;
}

static int op_quantize(struct peer *p, const cJSON *in, cJSON *out)
{
    struct llama_model_quantize_params qp = p->api.llama_model_quantize_default_params();
    const char *from = get_str(in, "in", NULL), *to = get_str(in, "out", NULL);
    const char *type = get_str(in, "type", "");
    struct llama_model_tensor_override *list;
    size_t i = 0, n = sizeof(ftypes) / sizeof(ftypes[0]);
    int rc = 0;

    (void)out;
    if (!from || !to)
        return fail(p, "in and out must be paths");
    while (i < n && strcmp(ftypes[i].name, type) != 0)
        i++;
    if (i == n)
        return fail(p, "unknown type %s", type);
    qp.ftype = ftypes[i].type;
    qp.nthread = get_int(in, "threads", 2);
    qp.pure = get_bool(in, "pure", false);
    if (get_overrides(p, in, &list) < 0)
        return -1;
    qp.tt_overrides = list;
    p->log[0] = 0;
    if (p->api.llama_model_quantize(from, to, &qp) != 0)
        rc = fail(p, "cannot quantize %s: %s", from, p->log);
    free(list);
    return rc;
}

static int op_quit(struct peer *p, const cJSON *in, cJSON *out)
{
    (void)in;
    (void)out;
    unload(p);
    return 0;
}

static const struct {
    const char *name;
    op_fn run;
} ops[] = {
    {"hello", op_hello},           {"load", op_load},
    {"unload", op_unload},         {"threads", op_threads},
    {"prompt", op_prompt},         {"decode", op_decode},
    {"first", op_first},           {"logits", op_logits},
    {"embed", op_embed},           {"generate", op_generate},
    {"tokenize", op_tokenize},     {"detokenize", op_detokenize},
    {"perplexity", op_perplexity}, {"rss", op_rss},
    {"quantize", op_quantize},     {"quit", op_quit},
};

/* Handles one line; true if it was the last. */
static bool answer(struct peer *p, const char *line)
{
    cJSON *in = cJSON_Parse(line), *out = cJSON_CreateObject(), *id;
    const char *op = get_str(in, "op", "");
    size_t i = 0, n = sizeof(ops) / sizeof(ops[0]);
    char *text;
    int rc;

    while (i < n && strcmp(ops[i].name, op) != 0)
        i++;
    if (!in)
        rc = fail(p, "not JSON");
    else if (i == n)
        rc = fail(p, "unknown op %s", op);
    else
        rc = ops[i].run(p, in, out);
    if (rc < 0) {
        cJSON_Delete(out);
        out = cJSON_CreateObject();
        cJSON_AddStringToObject(out, "error", p->error);
    }
    cJSON_AddBoolToObject(out, "ok", rc == 0);
    id = cJSON_DetachItemFromObjectCaseSensitive(in, "id");
    if (id)
        cJSON_AddItemToObject(out, "id", id);
    text = cJSON_PrintUnformatted(out);
    puts(text ? text : "{\"ok\":false,\"error\":\"out of memory\"}");
    fflush(stdout);
    free(text);
    cJSON_Delete(out);
    rc = strcmp(op, "quit") == 0;
    cJSON_Delete(in);
    return rc;
}

int main(int argc, char **argv)
{
    const char *libs = PEER_LIBS, *backend = NULL;
    struct peer p = {0};
    char *line = NULL;
    size_t cap = 0;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--libs") && i + 1 < argc) {
            libs = argv[++i];
        } else if (!strcmp(argv[i], "--backend") && i + 1 < argc) {
            backend = argv[++i];
        } else {
            fprintf(stderr, "usage: %s [--libs DIR] [--backend FILE]\n", argv[0]);
            return 2;
        }
    }
    if (open_peer(&p, libs, backend) < 0) {
        fprintf(stderr, "peer_llama: %s\n", p.error);
        return 1;
    }
    while (getline(&line, &cap, stdin) > 0)
        if (answer(&p, line))
            break;
    free(line);
    unload(&p);
    return 0;
}
