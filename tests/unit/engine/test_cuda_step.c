/* test_cuda_step.c - the kernel of engine/cuda, on the emulator: its logits have the bits of the
 * CPU for every model of tests/data/refs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/step_emulator.h"

#include "engine/cuda/step_plan.h"
#include "support/decoder_rig.h"

enum { N_TOKENS = 19, MAX_PLACED = 4096 };

struct memory { /* of the GPU that is not there */
    void *list[MAX_PLACED];
    size_t n, limit, used;
};

static int place(void *ctx, void **out, const void *from, size_t bytes, struct err *e)
{
    struct memory *m = ctx;
    m->used += bytes;
    if (m->limit && m->used > m->limit)
        return err_set(e, SHOAL_ENOMEM, "no more memory");
    assert_true(m->n < MAX_PLACED);
    *out = m->list[m->n++] = aligned_alloc(256, (bytes + 255) / 256 * 256);
    memset(*out, 0xcd, (bytes + 255) / 256 * 256);
    if (from)
        memcpy(*out, from, bytes);
    return 0;
}

static void forget(struct memory *m)
{
    for (size_t i = 0; i < m->n; i++)
        free(m->list[i]);
    *m = (struct memory){0};
}

struct launch {
    struct step_model m;
    struct step_pass p;
};

static void run_kernel(void *ctx)
{
    const struct launch *l = ctx;
    shoal_step(l->m, l->p);
}

struct variant {
    uint32_t blocks, tokens; /* of the kernel */
    uint32_t batch;          /* tokens of a pass */
    size_t shared;
    bool cluster;
};

/* Logits of all positions, in passes of v->batch tokens. */
static void emulate(const struct decoder_rig *r, const struct variant *v, const int32_t *ids,
                    uint32_t n, float *out)
{
    struct memory mem = {0};
    struct launch l;
    struct err e = {0};
    struct step_place at = {.n_blocks = v->blocks,
                            .n_threads = STEP_THREADS,
                            .shared_bytes = v->shared,
                            .cluster = v->cluster,
                            .max_tokens = v->tokens,
                            .place = place,
                            .ctx = &mem};
    if (step_plan(&l.m, r->d, &at, &e) < 0)
        fail_msg("%s", e.msg);
    const uint32_t dim = l.m.dim, n_vocab = l.m.n_vocab;
    float *embedded = malloc(n * dim * sizeof(float)), *work = malloc(2 * dim * sizeof(float));
    struct step_token *tokens = calloc(n, sizeof(*tokens));
    l.m.kv = calloc(256, l.m.kv_page_bytes);
    memset(l.m.kv, 0x2a, 256 * l.m.kv_page_bytes);
    for (uint32_t t0 = 0; t0 < n; t0 += v->batch) {
        const uint32_t now = n - t0 < v->batch ? n - t0 : v->batch;
        for (uint32_t i = 0; i < now; i++) {
            decoder_embed(r->d, (uint32_t)ids[t0 + i], t0 + i, embedded + i * dim, work,
                          work + dim);
            tokens[i] = (struct step_token){.pos = t0 + i, .logit_row = i};
        }
        l.p = (struct step_pass){.n_tokens = now,
                                 .tokens = tokens,
                                 .pages = r->pages,
                                 .embedded = embedded,
                                 .logits = out + (size_t)t0 * n_vocab};
        assert_true(step_emulate(v->blocks, l.m.shared.bytes, run_kernel, &l));
    }
    free(l.m.kv);
    free(embedded);
    free(work);
    free(tokens);
    forget(&mem);
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

static void check_model(const char *name, enum kern_kv kv, const struct variant *v,
                        size_t n_variants)
{
    if (!STEP_EMULATOR_RUNS)
        skip();
    struct decoder_rig r = {0};
    decoder_rig_open_kv(&r, name, &kern_scalar, 1, kv);
    struct record want = {.n_vocab = decoder_config(r.d)->n_vocab};
    const size_t row = want.n_vocab * sizeof(float);
    float *got = malloc(N_TOKENS * row);
    int32_t ids[N_TOKENS];
    want.logits = malloc(N_TOKENS * row);
    for (uint32_t i = 0; i < N_TOKENS; i++)
        ids[i] = (int32_t)((i * 7919 + 3) % want.n_vocab);
    decoder_rig_logits(&r, ids, N_TOKENS, 7, record_row, &want);
    for (size_t i = 0; i < n_variants; i++) {
        memset(got, 0xff, N_TOKENS * row);
        emulate(&r, &v[i], ids, N_TOKENS, got);
        for (uint32_t t = 0; t < N_TOKENS; t++)
            if (memcmp(got + t * want.n_vocab, want.logits + t * want.n_vocab, row) != 0)
                fail_msg("%s: %u blocks, steps of %u, passes of %u: logits of token %u differ "
                         "(%g, not %g)",
                         name, v[i].blocks, v[i].tokens, v[i].batch, t,
                         (double)got[t * want.n_vocab], (double)want.logits[t * want.n_vocab]);
    }
    free(got);
    free(want.logits);
    decoder_rig_close(&r);
}

static const char *const names[] = {"gemma3-scaled", "gemma3",      "gpt2",        "llama-gqa",
                                    "llama-linear",  "llama3-rope", "mistral-swa", "phi2",
                                    "phi2-qkv",      "quant-a",     "quant-b",     "quant-c",
                                    "quant-d",       "quant-e",     "qwen2",       "qwen3"};

static void test_every_model_has_the_bits_of_the_cpu(void **state)
{
    (void)state;
    static const struct variant v = {3, 8, 17, 227u << 10, true}; /* steps of 8, 8, 1 and 2 */
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        check_model(names[i], i % 3 == 0 ? KERN_KV_Q8 : KERN_KV_F16, &v, 1);
}

static void test_blocks_tokens_and_memory_do_not_change_bits(void **state)
{
    (void)state;
    static const struct variant v[] = {{1, 1, 1, 227u << 10, false},
                                       {1, 8, 21, 64u << 10, true},
                                       {5, 3, 21, 100u << 10, false},
                                       {7, 2, 1, 48u << 10, true},
                                       {16, 8, 13, 227u << 10, false}};
    check_model("llama-gqa", KERN_KV_F16, v, sizeof(v) / sizeof(v[0]));
    check_model("quant-c", KERN_KV_Q8, v, 3);
}

static void test_a_gpu_that_is_too_small_is_refused(void **state)
{
    (void)state;
    struct decoder_rig r = {0};
    struct memory mem = {0};
    struct step_model m;
    struct err e = {0};
    struct step_place at = {.n_blocks = 2,
                            .n_threads = STEP_THREADS,
                            .shared_bytes = 16 << 10,
                            .place = place,
                            .ctx = &mem};
    decoder_rig_open(&r, "llama-gqa", &kern_scalar, 1);
    assert_int_equal(step_plan(&m, r.d, &at, &e), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(e.msg, "16 KiB of shared memory"));
    at.shared_bytes = 227 << 10;
    forget(&mem);
    mem.limit = 100 << 10;
    assert_int_equal(step_plan(&m, r.d, &at, &e), SHOAL_ENOMEM);
    forget(&mem);
    decoder_rig_close(&r);
}

static void test_weights_of_another_layout_are_refused(void **state)
{
    (void)state;
    const struct kern_ops *sets[8];
    struct decoder_rig r = {0};
    struct memory mem = {0};
    struct step_model m;
    struct err e = {0};
    struct step_place at = {.n_blocks = 1,
                            .n_threads = STEP_THREADS,
                            .shared_bytes = 227 << 10,
                            .place = place,
                            .ctx = &mem};
    if (kern_usable(sets, 8) < 2)
        skip();
    decoder_rig_open(&r, "llama-gqa", sets[0], 1);
    assert_int_equal(step_plan(&m, r.d, &at, &e), SHOAL_EINTERNAL);
    forget(&mem);
    decoder_rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_model_has_the_bits_of_the_cpu),
        cmocka_unit_test(test_blocks_tokens_and_memory_do_not_change_bits),
        cmocka_unit_test(test_a_gpu_that_is_too_small_is_refused),
        cmocka_unit_test(test_weights_of_another_layout_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
