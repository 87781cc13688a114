/* bench_protocol.c - `shoal bench --peer-protocol`: JSON lines in, JSON lines out, so that a
 * driver can alternate between this engine and a peer on the same files (bench/PROTOCOL.md). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/order.h"
#include "cmd/measure/bench_protocol.h"
#include "model/decoder.h"
#include "format/model_open.h"
#include "text/tokenizer/tokenizer.h"
#include "engine/cache_dir.h"
#include "eval/perplexity.h"
#include "shoal/shoal_version.h"
#include "wire/json_out.h"

#define MAX_REPLY ((size_t)1 << 30)
#define BATCH 128u

struct bench {
    struct model_file *file;
    struct decoder *d;
    struct tokenizer *t;
    uint8_t *kv;
    size_t kv_bytes;
    uint32_t ctx, seqs, pages_per_seq;
    uint32_t *pages; /* [seqs][pages_per_seq] */
};

static void unload(struct bench *b)
{
    decoder_destroy(b->d);
    tokenizer_destroy(b->t);
    model_file_close(b->file);
    mem_pages_free(b->kv, b->kv_bytes);
    mem_free(b->pages);
    *b = (struct bench){0};
}

static double number(const cJSON *req, const char *key, double missing)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(req, key);
    return cJSON_IsNumber(v) ? v->valuedouble : missing;
}

static const char *string(const cJSON *req, const char *key, const char *missing)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(req, key);
    return cJSON_IsString(v) ? v->valuestring : missing;
}

static uint32_t whole(const cJSON *req, const char *key, uint32_t missing)
{
    double v = number(req, key, (double)missing);
    return v >= 0 && v < 1e9 ? (uint32_t)v : missing;
}

static int load(struct bench *b, const cJSON *req, struct json_out *j, struct err *e)
{
    char dir[4096];
    const char *path = string(req, "model", "");
    unload(b);
    uint64_t t0 = clock_ns();
    b->ctx = whole(req, "ctx", 512);
    b->seqs = whole(req, "seqs", 1);
    bool q8 = strcmp(string(req, "kv", "f16"), "q8_0") == 0;
    if (b->ctx == 0 || b->seqs == 0 || b->seqs > 1024)
        return err_set(e, SHOAL_EINVAL, "ctx %u, seqs %u", b->ctx, b->seqs);
    int rc = model_open(&b->file, path, e);
    if (rc < 0)
        return rc;
    struct decoder_opts o = {.n_threads = whole(req, "threads", 1),
                             .n_ctx = b->ctx,
                             .max_batch = b->seqs > BATCH ? b->seqs : BATCH,
                             .max_logits = b->seqs > BATCH ? b->seqs : BATCH,
                             .n_states = b->seqs,
                             .kv_kind = q8 ? KERN_KV_Q8 : KERN_KV_F16,
                             .cache_dir = cache_dir_default(dir, sizeof(dir))};
    const char *set = string(req, "kernels", NULL);
    if (set && !(o.kernels = kern_select(set, e)))
        return SHOAL_EUNSUPPORTED;
    rc = decoder_create(&b->d, b->file, path, &o, e);
    if (rc < 0)
        return rc;
    b->pages_per_seq = (b->ctx + KERN_PAGE - 1) / KERN_PAGE;
    b->kv_bytes = decoder_kv_page_bytes(b->d) * b->pages_per_seq * b->seqs;
    b->kv = mem_pages(b->kv_bytes);
    b->pages = mem_zalloc_n((size_t)b->pages_per_seq * b->seqs, sizeof(*b->pages));
    if (!b->kv || !b->pages)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a key-value cache of %zu bytes",
                       b->kv_bytes);
    for (uint32_t i = 0; i < b->pages_per_seq * b->seqs; i++)
        b->pages[i] = i;
    decoder_set_kv(b->d, b->kv);
    double ms = (double)(clock_ns() - t0) / 1e6;
    /* benchmarks do not need the tokenizer; their files may lack one */
    struct err ignored;
    if (tokenizer_create(&b->t, b->file, &ignored) < 0)
        b->t = NULL;
    uint64_t bytes = 0, params = 0;
    for (size_t i = 0; i < b->file->n_tensors; i++) {
        const struct model_file_tensor *t = &b->file->tensors[i];
        bytes += t->n_bytes;
        params += t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
    }
    json_out_member_num(j, "load_ms", ms);
    json_out_member_uint(j, "n_vocab", decoder_config(b->d)->n_vocab);
    json_out_member_uint(j, "n_ctx", b->ctx);
    json_out_member_uint(j, "n_params", params);
    json_out_member_uint(j, "weights_bytes", bytes);
    json_out_member_bool(j, "from_cache", decoder_from_cache(b->d));
    return 0;
}

static int32_t input_id(const struct bench *b, uint32_t i, uint32_t s)
{
    return (int32_t)(((uint64_t)i * 7919 + (uint64_t)s * 104729 + 1) %
                     decoder_config(b->d)->n_vocab);
}

/* Feeds tokens from..to-1 of sequence s in the largest possible passes; logits of the last one. */
static void feed(struct bench *b, uint32_t s, const int32_t *ids, uint32_t from, uint32_t to,
                 bool logits)
{
    uint32_t batch = decoder_max_batch(b->d);
    while (from < to) {
        uint32_t n = to - from < batch ? to - from : batch;
        struct decoder_run run = {.tokens = ids + from,
                                  .n = n,
                                  .pos0 = from,
                                  .pages = b->pages + (size_t)s * b->pages_per_seq,
                                  .n_logits_last = logits && from + n == to ? 1 : 0,
                                  .state = s,
                                  .state_from = s};
        decoder_forward(b->d, &run, 1);
        from += n;
    }
}

static int prompt(struct bench *b, const cJSON *req, struct json_out *j, struct err *e)
{
    uint32_t n = whole(req, "n", 1);
    if (n == 0 || n > b->ctx)
        return err_set(e, SHOAL_EINVAL, "a prompt of %u tokens does not fit a context of %u", n,
                       b->ctx);
    int32_t *ids = mem_zalloc_n(n, sizeof(*ids));
    if (!ids)
        return err_set(e, SHOAL_ENOMEM, "prompt");
    for (uint32_t i = 0; i < n; i++)
        ids[i] = input_id(b, i, 0);
    uint64_t t0 = clock_ns();
    feed(b, 0, ids, 0, n, true);
    double ms = (double)(clock_ns() - t0) / 1e6;
    mem_free(ids);
    json_out_member_num(j, "ms", ms);
    json_out_member_num(j, "tok_s", n * 1e3 / ms);
    return 0;
}

/* One token of every sequence per step. */
struct decoding {
    struct bench *b;
    struct decoder_run *runs; /* [seqs] */
    int32_t *ids;             /* [seqs][past + n] */
    uint64_t *began;          /* [n + 1] */
    uint32_t n, seqs, past, at;
};

static uint32_t next_step(void *ctx, const struct decoder_run **runs)
{
    struct decoding *g = ctx;
    const uint32_t i = g->at++;
    g->began[i] = clock_ns();
    if (i == g->n)
        return 0;
    for (uint32_t s = 0; s < g->seqs; s++)
        g->runs[s] =
            (struct decoder_run){.tokens = g->ids + (size_t)s * (g->past + g->n) + g->past + i,
                                 .n = 1,
                                 .pos0 = g->past + i,
                                 .pages = g->b->pages + (size_t)s * g->b->pages_per_seq,
                                 .n_logits_last = 1,
                                 .state = s,
                                 .state_from = s};
    *runs = g->runs;
    return g->seqs;
}

static int decode_steps(struct decoding *g, struct json_out *j, struct err *e)
{
    const uint32_t n = g->n;
    double *steps = mem_zalloc_n(n, sizeof(*steps));
    if (!steps)
        return err_set(e, SHOAL_ENOMEM, "decode");
    decoder_passes(g->b->d, next_step, g);
    for (uint32_t i = 0; i < n; i++)
        steps[i] = (double)(g->began[i + 1] - g->began[i]) / 1e6;
    const double total = (double)(g->began[n] - g->began[0]) / 1e6;
    qsort(steps, n, sizeof(*steps), order_double);
    json_out_member_num(j, "ms", total);
    json_out_member_num(j, "tok_s", (double)n * g->seqs * 1e3 / total);
    json_out_member_num(j, "step_ms_min", steps[0]);
    json_out_member_num(j, "step_ms_p50", steps[n / 2]);
    json_out_member_num(j, "step_ms_max", steps[n - 1]);
    mem_free(steps);
    return 0;
}

static int decode(struct bench *b, const cJSON *req, struct json_out *j, struct err *e)
{
    uint32_t n = whole(req, "n", 1), seqs = whole(req, "seqs", 1), past = whole(req, "past", 0);
    if (n == 0 || seqs == 0 || seqs > b->seqs || past + n > b->ctx)
        return err_set(e, SHOAL_EINVAL,
                       "%u steps after %u tokens in %u sequences do not fit: loaded for %u tokens, "
                       "%u sequences",
                       n, past, seqs, b->ctx, b->seqs);
    struct decoding g = {.b = b,
                         .runs = mem_zalloc_n(seqs, sizeof(*g.runs)),
                         .ids = mem_zalloc_n((size_t)seqs * (past + n), sizeof(*g.ids)),
                         .began = mem_zalloc_n(n + 1, sizeof(*g.began)),
                         .n = n,
                         .seqs = seqs,
                         .past = past};
    int rc = g.runs && g.ids && g.began ? 0 : err_set(e, SHOAL_ENOMEM, "decode");
    for (uint32_t s = 0; rc == 0 && s < seqs; s++) {
        int32_t *ids = g.ids + (size_t)s * (past + n);
        for (uint32_t i = 0; i < past + n; i++)
            ids[i] = input_id(b, i, s);
        feed(b, s, ids, 0, past, false);
    }
    if (rc == 0)
        rc = decode_steps(&g, j, e);
    mem_free(g.runs);
    mem_free(g.ids);
    mem_free(g.began);
    return rc;
}

/* The request's "tokens", checked; NULL on error. */
static int32_t *token_list(const struct bench *b, const cJSON *req, uint32_t *n, struct err *e)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(req, "tokens"), *v;
    int size = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
    if (size <= 0 || (uint32_t)size > b->ctx) {
        err_set(e, SHOAL_EINVAL, "%d tokens do not fit a context of %u", size, b->ctx);
        return NULL;
    }
    int32_t *ids = mem_zalloc_n((size_t)b->ctx, sizeof(*ids));
    *n = 0;
    if (ids)
        cJSON_ArrayForEach(v, list)
        {
            if (!cJSON_IsNumber(v) || v->valuedouble < 0 ||
                v->valuedouble >= decoder_config(b->d)->n_vocab) {
                err_set(e, SHOAL_EINVAL, "token %u is not in the vocabulary", *n);
                mem_free(ids);
                return NULL;
            }
            ids[(*n)++] = (int32_t)v->valuedouble;
        }
    else
        err_set(e, SHOAL_ENOMEM, "tokens");
    return ids;
}

static int logits(struct bench *b, const cJSON *req, struct json_out *j, struct err *e)
{
    uint32_t n, n_vocab = decoder_config(b->d)->n_vocab, batch = decoder_max_logits(b->d);
    const char *out = string(req, "out", NULL);
    uint32_t asked = whole(req, "batch", batch);
    batch = asked && asked < batch ? asked : batch;
    int32_t *ids = token_list(b, req, &n, e);
    if (!ids)
        return e->code;
    FILE *f = out ? fopen(out, "wb") : NULL;
    int rc = out && !f ? err_set(e, SHOAL_EIO, "cannot write %s", out) : 0;
    json_out_member_uint(j, "n", n);
    json_out_member_uint(j, "n_vocab", n_vocab);
    if (!out)
        json_out_member_array(j, "logits");
    for (uint32_t at = 0; rc == 0 && at < n; at += batch) {
        uint32_t m = n - at < batch ? n - at : batch;
        struct decoder_run run = {
            .tokens = ids + at, .n = m, .pos0 = at, .pages = b->pages, .n_logits_last = m};
        decoder_forward(b->d, &run, 1);
        for (uint32_t i = 0; rc == 0 && i < m; i++) {
            const float *row = decoder_logits(b->d, i);
            if (f && fwrite(row, sizeof(float), n_vocab, f) != n_vocab)
                rc = err_set(e, SHOAL_EIO, "cannot write %s", out);
            if (out)
                continue;
            json_out_array(j);
            for (uint32_t k = 0; k < n_vocab; k++)
                json_out_float(j, row[k]);
            json_out_array_end(j);
        }
    }
    if (!out)
        json_out_array_end(j);
    if (f && fclose(f) != 0 && rc == 0)
        rc = err_set(e, SHOAL_EIO, "cannot write %s", out);
    mem_free(ids);
    return rc;
}

static int generate(struct bench *b, const cJSON *req, struct json_out *j, struct err *e)
{
    uint32_t n, more = whole(req, "n", 1);
    int32_t *ids = token_list(b, req, &n, e);
    if (!ids)
        return e->code;
    json_out_member_array(j, "tokens");
    feed(b, 0, ids, 0, n, true);
    for (uint32_t i = 0; i < more && n < b->ctx; i++) {
        uint32_t best =
            decoder_kernels(b->d)->argmax(decoder_logits(b->d, 0), decoder_config(b->d)->n_vocab);
        if (b->t && tokenizer_is_eog(b->t, (int32_t)best))
            break;
        json_out_uint(j, best);
        ids[n++] = (int32_t)best;
        feed(b, 0, ids, n - 1, n, true);
    }
    json_out_array_end(j);
    mem_free(ids);
    return 0;
}

static int tokenize(struct bench *b, const cJSON *req, struct json_out *j, struct err *e)
{
    const char *text = string(req, "text", "");
    const cJSON *special = cJSON_GetObjectItemCaseSensitive(req, "special");
    struct tok_ids ids;
    if (!b->t)
        return err_set(e, SHOAL_EUNSUPPORTED, "the file has no tokenizer");
    tok_ids_init(&ids, (size_t)1 << 26);
    int rc = tokenizer_encode(b->t, &ids, text, strlen(text),
                              cJSON_IsFalse(special) ? 0 : TOKENIZER_ADD_SPECIAL, e);
    json_out_member_array(j, "tokens");
    for (size_t i = 0; rc == 0 && i < ids.n; i++)
        json_out_int(j, ids.ids[i]);
    json_out_array_end(j);
    tok_ids_fini(&ids);
    return rc;
}

static int detokenize(struct bench *b, const cJSON *req, struct json_out *j, struct err *e)
{
    uint32_t n;
    int32_t *ids = token_list(b, req, &n, e);
    if (!ids || !b->t) {
        mem_free(ids);
        return ids ? err_set(e, SHOAL_EUNSUPPORTED, "the file has no tokenizer") : e->code;
    }
    struct buf text;
    buf_init(&text, MAX_REPLY);
    tokenizer_decode(b->t, &text, ids, n, 0);
    json_out_member_strn(j, "text", buf_str(&text), text.len);
    buf_fini(&text);
    mem_free(ids);
    return 0;
}

static int perplexity(struct bench *b, const cJSON *req, struct json_out *j, struct err *e)
{
    struct perplexity_result r;
    if (!b->t)
        return err_set(e, SHOAL_EUNSUPPORTED, "the file has no tokenizer");
    struct perplexity_opts o = {.ctx = whole(req, "ctx", 512), .chunks = whole(req, "chunks", 0)};
    if (o.ctx > b->ctx)
        return err_set(e, SHOAL_EINVAL, "ctx is %u, but the model was loaded with %u", o.ctx,
                       b->ctx);
    int rc = perplexity_file(&r, b->d, b->t, string(req, "file", ""), &o, e);
    if (rc < 0)
        return rc;
    json_out_member_num(j, "ppl", r.ppl);
    json_out_member_num(j, "nll", r.nll);
    json_out_member_uint(j, "n", r.n_scored);
    json_out_member_uint(j, "n_chunks", r.n_chunks);
    json_out_member_num(j, "ms", r.ms);
    return 0;
}

static int rss(struct json_out *j)
{
    static const struct {
        const char *line, *key;
    } rows[] = {{"VmRSS:", "rss_bytes"},
                {"RssAnon:", "anon_bytes"},
                {"RssFile:", "file_bytes"},
                {"VmHWM:", "peak_bytes"}};
    char line[256];
    unsigned long long kb, shared = 0, values[4] = {0};
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof(line), f)) {
        for (size_t i = 0; i < 4; i++)
            if (strncmp(line, rows[i].line, strlen(rows[i].line)) == 0 &&
                sscanf(line + strlen(rows[i].line), "%llu", &kb) == 1)
                values[i] = kb * 1024;
        if (sscanf(line, "RssShmem: %llu", &kb) == 1)
            shared = kb * 1024;
    }
    if (f)
        fclose(f);
    values[2] += shared;
    for (size_t i = 0; i < 4; i++)
        json_out_member_uint(j, rows[i].key, values[i]);
    return 0;
}

static int answer(struct bench *b, const cJSON *req, const char *op, struct json_out *j,
                  struct err *e)
{
    static const struct {
        const char *op;
        int (*run)(struct bench *b, const cJSON *req, struct json_out *j, struct err *e);
    } with_model[] = {
        {"prompt", prompt},         {"decode", decode},     {"logits", logits},
        {"generate", generate},     {"tokenize", tokenize}, {"detokenize", detokenize},
        {"perplexity", perplexity},
    };
    if (strcmp(op, "hello") == 0) {
        json_out_member_int(j, "protocol", 1);
        json_out_member_str(j, "engine", "shoal");
        json_out_member_str(j, "version", SHOAL_VERSION);
        json_out_member_str(j, "kernels",
                            b->d ? decoder_kernels(b->d)->name : kern_select(NULL, e)->name);
        return 0;
    }
    if (strcmp(op, "load") == 0) {
        int rc = load(b, req, j, e);
        if (rc < 0)
            unload(b);
        return rc;
    }
    if (strcmp(op, "unload") == 0) {
        unload(b);
        return 0;
    }
    if (strcmp(op, "rss") == 0)
        return rss(j);
    if (strcmp(op, "quit") == 0)
        return 0;
    if (!b->d)
        return err_set(e, SHOAL_EINVAL, "no model is loaded");
    if (strcmp(op, "threads") == 0)
        return decoder_set_threads(b->d, whole(req, "n", 1), e);
    if (strcmp(op, "first") == 0) {
        int32_t id = input_id(b, 0, 0);
        uint64_t t0 = clock_ns();
        feed(b, 0, &id, 0, 1, true);
        json_out_member_num(j, "ms", (double)(clock_ns() - t0) / 1e6);
        return 0;
    }
    for (size_t i = 0; i < sizeof(with_model) / sizeof(with_model[0]); i++)
        if (strcmp(op, with_model[i].op) == 0)
            return with_model[i].run(b, req, j, e);
    return err_set(e, SHOAL_EUNSUPPORTED, "unknown operation \"%.40s\"", op);
}

int bench_protocol_run(void)
{
    struct bench b = {0};
    struct buf fields, reply;
    char *line = NULL;
    size_t cap = 0;
    bool go_on = true;
    buf_init(&fields, MAX_REPLY);
    buf_init(&reply, MAX_REPLY);
    while (go_on && getline(&line, &cap, stdin) > 0) {
        struct err e = {0};
        cJSON *req = cJSON_Parse(line);
        const char *op = string(req, "op", "");
        buf_clear(&fields);
        buf_clear(&reply);
        struct json_out f = json_out_make(&fields), r = json_out_make(&reply);
        int rc =
            req ? answer(&b, req, op, &f, &e) : err_set(&e, SHOAL_EFORMAT, "the line is not JSON");
        json_out_object(&r);
        json_out_member_num(&r, "id", number(req, "id", 0));
        json_out_member_bool(&r, "ok", rc == 0);
        if (rc < 0) {
            json_out_member_str(&r, "error", e.msg);
        } else if (fields.len > 0) {
            buf_putc(&reply, ',');
            buf_put(&reply, fields.data, fields.len);
        }
        json_out_object_end(&r);
        puts(buf_str(&reply));
        fflush(stdout);
        go_on = strcmp(op, "quit") != 0;
        cJSON_Delete(req);
    }
    free(line);
    unload(&b);
    buf_fini(&fields);
    buf_fini(&reply);
    return 0;
}
