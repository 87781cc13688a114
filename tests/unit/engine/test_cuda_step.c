/* test_cuda_step.c - the kernel of engine/cuda, on the emulator: its logits have the bits of the
 * CPU for every model of tests/data/refs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/step_emulator.h"

#include "engine/cuda/many_plan.h"
#include "engine/cuda/step_plan.h"
#include "format/convert/quantize.h"
#include "support/decoder_rig.h"

enum { N_TOKENS = 19, MOST_TOKENS = 41, MAX_PLACED = 4096 };

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
    struct one_model one;
    struct many_plan many;
    struct step_pass p;
    uint32_t tag;
};

static void run_kernel(void *ctx)
{
    const struct launch *l = ctx;
    shoal_step(l->m, l->p);
}

static void run_one(void *ctx)
{
    const struct launch *l = ctx;
    if (l->one.q8)
        shoal_one_q8(l->m, l->one, l->p, l->tag);
    else
        shoal_one(l->m, l->one, l->p, l->tag);
}

struct many_call {
    enum many_kernel kernel;
    const void *param;
};

static void run_many(void *ctx)
{
    const struct many_call *c = ctx;
    switch (c->kernel) {
    case MANY_INPUT:
        shoal_many_input(*(const struct many_input *)c->param);
        break;
    case MANY_PRODUCT:
        shoal_many_product(*(const struct many_product *)c->param);
        break;
    case MANY_PRODUCT_THIN:
        shoal_many_product_thin(*(const struct many_product *)c->param);
        break;
    case MANY_TURN:
        shoal_many_turn(*(const struct many_heads *)c->param);
        break;
    default:
        shoal_many_attend(*(const struct many_heads *)c->param);
        break;
    }
}

static int launch_many(void *ctx, enum many_kernel kernel, uint32_t blocks, uint32_t shared_bytes,
                       const void *param, struct err *e)
{
    (void)ctx;
    (void)e;
    struct many_call c = {kernel, param};
    assert_true(step_emulate(blocks, shared_bytes, run_many, &c));
    return 0;
}

struct variant {
    uint32_t blocks, tokens; /* of the kernel */
    uint32_t batch;          /* tokens of a pass */
    size_t shared;
    bool cluster;
    bool one;  /* by the kernel of one token */
    bool many; /* by those of many tokens */
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
                            .one_blocks = v->one ? v->blocks : 0,
                            .one_threads = STEP_THREADS,
                            .many_tokens = v->batch,
                            .place = place,
                            .ctx = &mem};
    for (int i = 0; i < MANY_KERNELS; i++)
        at.many_threads[i] = v->many ? STEP_THREADS : 0;
    if (step_plan(&l.m, &l.one, &l.many, r->d, &at, &e) < 0)
        fail_msg("%s", e.msg);
    assert_true(!v->one == !l.one.layers);
    assert_true(!v->many == !l.many.layers);
    const struct many_launcher to = {.launch = launch_many};
    uint32_t wanted[MOST_TOKENS], tiles[2 * MOST_TOKENS];
    l.tag = UINT32_MAX - 20; /* it begins again at 0 */
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
            wanted[i] = i;
        }
        const uint32_t tile = v->many ? l.many.tile : 1;
        uint32_t n_tiles = 0;
        for (uint32_t i = 0; i < now; i += tile, n_tiles++) {
            tiles[2 * n_tiles] = i;
            tiles[2 * n_tiles + 1] = now - i < tile ? now - i : tile;
        }
        l.p = (struct step_pass){.n_tokens = now,
                                 .tokens = tokens,
                                 .pages = r->pages,
                                 .embedded = embedded,
                                 .wanted = wanted,
                                 .n_wanted = now,
                                 .tiles = tiles,
                                 .n_tiles = n_tiles,
                                 .logits = out + (size_t)t0 * n_vocab};
        if (v->many) {
            assert_int_equal(many_run(&l.many, &l.m, &l.p, t0 + now - 1, &to, &e), 0);
            continue;
        }
        assert_true(step_emulate(v->blocks, v->one ? l.one.shared.bytes : l.m.shared.bytes,
                                 v->one ? run_one : run_kernel, &l));
        l.tag += l.m.n_layers * ONE_BUFFERS;
    }
    free(l.m.kv);
    free(embedded);
    free(work);
    free(tokens);
    many_plan_free(&l.many);
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

static void check_rig(struct decoder_rig *r, const char *name, uint32_t n, const struct variant *v,
                      size_t n_variants)
{
    struct record want = {.n_vocab = decoder_config(r->d)->n_vocab};
    const size_t row = want.n_vocab * sizeof(float);
    float *got = malloc(n * row);
    int32_t ids[MOST_TOKENS];
    want.logits = malloc(n * row);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = (int32_t)((i * 7919 + 3) % want.n_vocab);
    decoder_rig_logits(r, ids, n, 7, record_row, &want);
    for (size_t i = 0; i < n_variants; i++) {
        memset(got, 0xff, n * row);
        emulate(r, &v[i], ids, n, got);
        for (uint32_t t = 0; t < n; t++)
            if (memcmp(got + t * want.n_vocab, want.logits + t * want.n_vocab, row) != 0)
                fail_msg("%s: %u blocks, steps of %u, passes of %u: logits of token %u differ "
                         "(%g, not %g)",
                         name, v[i].blocks, v[i].tokens, v[i].batch, t,
                         (double)got[t * want.n_vocab], (double)want.logits[t * want.n_vocab]);
    }
    free(got);
    free(want.logits);
}

static void check_model(const char *name, enum kern_kv kv, const struct variant *v,
                        size_t n_variants)
{
    if (!STEP_EMULATOR_RUNS)
        skip();
    struct decoder_rig r = {0};
    decoder_rig_open_kv(&r, name, &kern_scalar, 1, kv);
    check_rig(&r, name, N_TOKENS, v, n_variants);
    decoder_rig_close(&r);
}

/* The same model with all its matrices in another encoding. */
static void check_quantized(const char *name, enum quantize_kind kind, enum kern_kv kv, uint32_t n,
                            const struct variant *v, size_t n_variants)
{
    if (!STEP_EMULATOR_RUNS)
        skip();
    char path[512], file[] = "/tmp/shoal-cuda-XXXXXX";
    const struct quantize_opts o = {.kind = kind, .n_threads = 1, .pure = true};
    struct quantize_result result;
    struct model_file *g;
    struct err e = {0};
    struct decoder_rig r = {0};
    const int fd = mkstemp(file);
    assert_true(fd >= 0);
    close(fd);
    snprintf(path, sizeof(path), "%s/refs/%s.gguf", SHOAL_TEST_DATA, name);
    if (gguf_open(&g, path, &e) < 0 || quantize_run(g, file, &o, &result, &e) < 0)
        fail_msg("%s", e.msg);
    quantize_result_fini(&result);
    model_file_close(g);
    decoder_rig_open_file(&r, file, name, &kern_scalar, 1, kv);
    check_rig(&r, name, n, v, n_variants);
    decoder_rig_close(&r);
    unlink(file);
}

static const char *const names[] = {
    "gemma3-scaled", "gemma3",       "gpt2",     "llama-gqa", "llama-linear", "llama3-rope",
    "mistral-swa",   "phi2",         "phi2-qkv", "quant-a",   "quant-b",      "quant-c",
    "quant-d",       "quant-e",      "quant-f",  "quant-g",   "qwen2",        "qwen3",
    "qwen2-yarn",    "phi-longrope", "ernie4_5", "stablelm"};

static void test_every_model_has_the_bits_of_the_cpu(void **state)
{
    (void)state;
    static const struct variant v = {3,    8,     17,   227u << 10,
                                     true, false, false}; /* steps of 8, 8, 1 and 2 */
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        check_model(names[i], i % 3 == 0 ? KERN_KV_Q8 : KERN_KV_F16, &v, 1);
}

static void test_blocks_tokens_and_memory_do_not_change_bits(void **state)
{
    (void)state;
    static const struct variant v[] = {{1, 1, 1, 227u << 10, false, false, false},
                                       {1, 8, 21, 64u << 10, true, false, false},
                                       {5, 3, 21, 100u << 10, false, false, false},
                                       {7, 2, 1, 48u << 10, true, false, false},
                                       {16, 8, 13, 227u << 10, false, false, false}};
    check_model("llama-gqa", KERN_KV_F16, v, sizeof(v) / sizeof(v[0]));
    check_model("quant-c", KERN_KV_Q8, v, 3);
}

static void test_one_token_has_the_bits_of_the_cpu(void **state)
{
    (void)state;
    static const struct variant v[] = {{1, 1, 1, 227u << 10, false, true, false},
                                       {5, 1, 1, 100u << 10, false, true, false},
                                       {8, 1, 1, 100u << 10, true, true, false}};
    check_model("quant-a", KERN_KV_F16, v, 3); /* all formats */
    check_model("quant-b", KERN_KV_F16, v, 1);
    check_model("quant-c", KERN_KV_F16, v, 1);
    check_model("quant-d", KERN_KV_F16, v, 1);
    check_model("quant-f", KERN_KV_F16, v, 1);
}

static void test_biases_and_norms_of_heads(void **state)
{
    (void)state;
    static const struct variant v[] = {{5, 1, 1, 100u << 10, false, true, false},
                                       {3, 1, 1, 100u << 10, true, true, false}};
    check_quantized("qwen2", QUANTIZE_Q8_0, KERN_KV_F16, N_TOKENS, v, 2);
    check_quantized("qwen3", QUANTIZE_Q4_0, KERN_KV_F16, N_TOKENS, v, 1);
}

static void test_many_tokens_have_the_bits_of_the_cpu(void **state)
{
    (void)state;
    static const struct variant v[] = {{1, 8, 41, 100u << 10, false, false, true},
                                       {1, 8, 13, 100u << 10, false, false, true},
                                       {1, 8, 1, 48u << 10, false, false, true}};
    check_quantized("qwen2", QUANTIZE_Q8_0, KERN_KV_F16, 41, v, 3);
    check_quantized("qwen3", QUANTIZE_Q4_0, KERN_KV_Q8, 41, v, 2);
    check_quantized("mistral-swa", QUANTIZE_Q8_0, KERN_KV_F16, 41, v, 2);
}

static void test_a_gpu_that_is_too_small_is_refused(void **state)
{
    (void)state;
    struct decoder_rig r = {0};
    struct memory mem = {0};
    struct step_model m;
    struct one_model one;
    struct many_plan many;
    struct err e = {0};
    struct step_place at = {.n_blocks = 2,
                            .n_threads = STEP_THREADS,
                            .shared_bytes = 16 << 10,
                            .place = place,
                            .ctx = &mem};
    decoder_rig_open(&r, "llama-gqa", &kern_scalar, 1);
    assert_int_equal(step_plan(&m, &one, &many, r.d, &at, &e), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(e.msg, "16 KiB of shared memory"));
    at.shared_bytes = 227 << 10;
    forget(&mem);
    mem.limit = 100 << 10;
    assert_int_equal(step_plan(&m, &one, &many, r.d, &at, &e), SHOAL_ENOMEM);
    forget(&mem);
    decoder_rig_close(&r);
}

/* What the program for GPUs does not compute is named. */
static void test_other_blocks_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *says;
    } cases[] = {{"gemma2", "gemma2: the GPU cannot compute bounded scores or logits"},
                 {"granite", "granite: the GPU cannot compute scaled blocks or logits"},
                 {"gptneox", "gptneox: the GPU cannot compute parallel blocks with a norm each"},
                 {"hunyuan", "hunyuan-dense: the GPU cannot compute these norms of queries"},
                 {"olmo2", "olmo2: the GPU cannot compute blocks without a norm before them"},
                 {"exaone4", "exaone4: the GPU cannot compute blocks without a norm"},
                 {"smollm3", "smollm3: the GPU cannot compute layers without rotation"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct decoder_rig r = {0};
        struct memory mem = {0};
        struct step_model m;
        struct one_model one;
        struct many_plan many;
        struct err e = {0};
        struct step_place at = {.n_blocks = 2,
                                .n_threads = STEP_THREADS,
                                .shared_bytes = 227 << 10,
                                .place = place,
                                .ctx = &mem};
        decoder_rig_open(&r, cases[i].name, &kern_scalar, 1);
        assert_int_equal(step_plan(&m, &one, &many, r.d, &at, &e), SHOAL_EUNSUPPORTED);
        if (!strstr(e.msg, cases[i].says))
            fail_msg("%s: %s", cases[i].name, e.msg);
        forget(&mem);
        decoder_rig_close(&r);
    }
}

static void test_weights_of_another_layout_are_refused(void **state)
{
    (void)state;
    const struct kern_ops *sets[8];
    struct decoder_rig r = {0};
    struct memory mem = {0};
    struct step_model m;
    struct one_model one;
    struct many_plan many;
    struct err e = {0};
    struct step_place at = {.n_blocks = 1,
                            .n_threads = STEP_THREADS,
                            .shared_bytes = 227 << 10,
                            .place = place,
                            .ctx = &mem};
    if (kern_usable(sets, 8) < 2)
        skip();
    decoder_rig_open(&r, "llama-gqa", sets[0], 1);
    assert_int_equal(step_plan(&m, &one, &many, r.d, &at, &e), SHOAL_EINTERNAL);
    forget(&mem);
    decoder_rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_model_has_the_bits_of_the_cpu),
        cmocka_unit_test(test_blocks_tokens_and_memory_do_not_change_bits),
        cmocka_unit_test(test_one_token_has_the_bits_of_the_cpu),
        cmocka_unit_test(test_biases_and_norms_of_heads),
        cmocka_unit_test(test_many_tokens_have_the_bits_of_the_cpu),
        cmocka_unit_test(test_a_gpu_that_is_too_small_is_refused),
        cmocka_unit_test(test_other_blocks_are_refused),
        cmocka_unit_test(test_weights_of_another_layout_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
