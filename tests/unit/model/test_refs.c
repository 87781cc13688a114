/* test_refs.c - logits against transformers and llama.cpp on a small random model of every
 * architecture and of every tensor type; see tests/data/refs/README.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "format/gguf.h"
#include "model/decoder.h"
#include "support/ref_file.h"

static const struct model {
    const char *name;
    double bound;      /* relative error of logits, against the exact values */
    double peer_bound; /* the same against llama.cpp, which rounds in places of its own */
    double top1;       /* share of positions of the long text with the same best token */
} models[] = {
    {"llama-gqa", 1e-3, 5e-3, 0.99},     {"llama-linear", 1e-3, 5e-3, 0.99},
    {"llama3-rope", 1e-3, 5e-3, 0.99},   {"mistral-swa", 1e-3, 5e-3, 0.99},
    {"qwen2", 1e-3, 5e-3, 0.99},         {"qwen3", 1e-3, 5e-3, 0.99},
    {"gpt2", 1e-3, 5e-3, 0.99},          {"phi2", 1e-3, 5e-3, 0.99},
    {"phi2-qkv", 1e-3, 5e-3, 0.99},      {"gemma3", 1e-3, 5e-3, 0.99},
    {"gemma3-scaled", 1e-3, 5e-3, 0.99}, {"quant-a", 3e-2, 3e-2, 0.99},
    {"quant-b", 3e-2, 3e-2, 0.99},       {"quant-c", 3e-2, 3e-2, 0.99},
    {"quant-d", 3e-2, 3e-2, 0.99},       {"quant-e", 3e-2, 3e-2, 0.99},
};
#define N_MODELS (sizeof(models) / sizeof(models[0]))

enum { BATCH = 64 };

struct rig {
    struct model_file *g;
    struct decoder *d;
    uint8_t *kv;
    size_t kv_bytes;
    uint32_t pages[256];
};

static void rig_open(struct rig *r, const char *name, const struct kern_ops *k, uint32_t threads)
{
    char path[512];
    struct err e = {0};
    snprintf(path, sizeof(path), "%s/refs/%s.gguf", SHOAL_TEST_DATA, name);
    if (gguf_open(&r->g, path, &e) < 0)
        fail_msg("%s", e.msg);
    struct decoder_opts o = {
        .kernels = k, .n_threads = threads, .n_ctx = 2048, .max_batch = BATCH, .max_logits = BATCH};
    if (strcmp(name, "gpt2") == 0)
        o.n_ctx = 0; /* learned positions: no more than the file has */
    if (decoder_create(&r->d, r->g, path, &o, &e) < 0)
        fail_msg("%s: %s", name, e.msg);
    r->kv_bytes = decoder_kv_page_bytes(r->d) * 256;
    r->kv = mem_pages(r->kv_bytes);
    assert_non_null(r->kv);
    decoder_set_kv(r->d, r->kv);
    for (uint32_t i = 0; i < 256; i++)
        r->pages[i] = (i * 37 + 11) % 256; /* any order */
}

static void rig_close(struct rig *r)
{
    decoder_destroy(r->d);
    model_file_close(r->g);
    mem_pages_free(r->kv, r->kv_bytes);
}

/* Logits of every position, in passes of at most `batch` tokens. */
static void all_logits(struct rig *r, const int32_t *tokens, uint32_t n, uint32_t batch,
                       void (*row)(void *ctx, uint32_t pos, const float *logits), void *ctx)
{
    for (uint32_t at = 0; at < n; at += batch) {
        uint32_t m = n - at < batch ? n - at : batch;
        struct decoder_run run = {
            .tokens = tokens + at, .n = m, .pos0 = at, .pages = r->pages, .n_logits_last = m};
        decoder_forward(r->d, &run, 1);
        for (uint32_t i = 0; i < m; i++)
            row(ctx, at + i, decoder_logits(r->d, i));
    }
}

struct compare {
    const struct ref_array *want, *rows, *top1;
    uint32_t n_vocab;
    double diff, norm;
    uint32_t same, seen;
};

static void compare_row(void *ctx, uint32_t pos, const float *logits)
{
    struct compare *c = ctx;
    uint32_t row = pos;
    if (c->rows) {
        row = UINT32_MAX;
        for (uint32_t i = 0; i < c->rows->cols; i++)
            if ((uint32_t)ref_int(c->rows, i) == pos)
                row = i;
    }
    if (c->want && row < c->want->rows) {
        const float *want = (const float *)(const void *)c->want->data + (size_t)row * c->n_vocab;
        for (uint32_t i = 0; i < c->n_vocab; i++) {
            double d = (double)logits[i] - (double)want[i];
            c->diff += d * d;
            c->norm += (double)want[i] * (double)want[i];
        }
        c->seen++;
    }
    if (c->top1) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < c->n_vocab; i++)
            best = logits[i] > logits[best] ? i : best;
        c->same += best == (uint32_t)ref_int(c->top1, pos);
        c->seen++;
    }
}

static int32_t *ints(const struct ref_array *a)
{
    int32_t *out = malloc(a->cols * sizeof(*out));
    for (uint32_t i = 0; i < a->cols; i++)
        out[i] = ref_int(a, i);
    return out;
}

static void check_model(const struct model *m)
{
    struct ref_file f;
    struct rig r = {0};
    char path[512];
    snprintf(path, sizeof(path), "%s/refs/%s.ref", SHOAL_TEST_DATA, m->name);
    assert_int_equal(ref_open(&f, path), 0);
    rig_open(&r, m->name, NULL, 2);
    const struct ref_array *tokens = ref_find(&f, "tokens"), *lt = ref_find(&f, "long.tokens");
    int32_t *ids = ints(tokens), *long_ids = ints(lt);
    uint32_t n_vocab = decoder_config(r.d)->n_vocab;
    struct compare exact = {
        .want = ref_find(&f, "exact"), .rows = ref_find(&f, "exact.rows"), .n_vocab = n_vocab};
    struct compare peer = {
        .want = ref_find(&f, "llama"), .rows = ref_find(&f, "llama.rows"), .n_vocab = n_vocab};
    struct compare top = {.top1 = ref_find(&f, "long.top1"), .n_vocab = n_vocab};
    assert_non_null(exact.want);
    assert_non_null(peer.want);
    assert_non_null(top.top1);
    assert_int_equal(exact.want->cols, n_vocab);
    all_logits(&r, ids, tokens->cols, BATCH, compare_row, &exact);
    all_logits(&r, ids, tokens->cols, 7, compare_row, &peer);
    all_logits(&r, long_ids, lt->cols, BATCH, compare_row, &top);
    double error = sqrt(exact.diff / exact.norm), peer_error = sqrt(peer.diff / peer.norm);
    double share = (double)top.same / (double)top.seen;
    printf("%-14s error %.2e, from llama.cpp %.2e, same best token at %.2f %% of %u positions\n",
           m->name, error, peer_error, 100 * share, top.seen);
    if (!(error < m->bound) || !(peer_error < m->peer_bound) || !(share >= m->top1))
        fail_msg("%s: bounds are %g, %g and %g", m->name, m->bound, m->peer_bound, m->top1);
    assert_true(exact.seen > 3 && peer.seen >= 3);
    free(ids);
    free(long_ids);
    rig_close(&r);
    ref_close(&f);
}

static void test_logits_match_the_references(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_MODELS; i++)
        check_model(&models[i]);
}

struct record {
    float *logits;
    uint32_t n_vocab;
};

static void record_row(void *ctx, uint32_t pos, const float *logits)
{
    struct record *r = ctx;
    memcpy(r->logits + (size_t)pos * r->n_vocab, logits, r->n_vocab * sizeof(float));
}

/* Whole models agree to the bit over kernel sets, batch sizes and threads. */
static void test_logits_do_not_depend_on_how_they_are_computed(void **state)
{
    (void)state;
    static const char *const names[] = {"llama-gqa", "quant-a", "quant-c", "gemma3"};
    const struct kern_ops *sets[8];
    size_t n_sets = kern_usable(sets, 8);
    for (size_t m = 0; m < sizeof(names) / sizeof(names[0]); m++) {
        float *want = NULL;
        int32_t ids[40];
        size_t bytes = 0;
        for (size_t s = 0; s < n_sets; s++)
            for (uint32_t threads = 1; threads <= 3; threads += 2)
                for (uint32_t batch = 1; batch <= 40; batch = batch * 3 + 1) {
                    struct rig r = {0};
                    rig_open(&r, names[m], sets[s], threads);
                    struct record rec = {.n_vocab = decoder_config(r.d)->n_vocab};
                    for (int i = 0; i < 40; i++)
                        ids[i] = (int32_t)((uint32_t)(i * 7919 + 3) % rec.n_vocab);
                    bytes = (size_t)rec.n_vocab * 40 * sizeof(float);
                    rec.logits = malloc(bytes);
                    all_logits(&r, ids, 40, batch, record_row, &rec);
                    if (!want) {
                        want = rec.logits;
                    } else {
                        if (memcmp(want, rec.logits, bytes) != 0)
                            fail_msg("%s: %s, %u threads, batches of %u differ", names[m],
                                     sets[s]->name, threads, batch);
                        free(rec.logits);
                    }
                    rig_close(&r);
                }
        free(want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits_match_the_references),
        cmocka_unit_test(test_logits_do_not_depend_on_how_they_are_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
