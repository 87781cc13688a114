/* test_lora.c - LoRA adapters merged into their bases and beside them: logits against PEFT, the
 * same bits from both forms of an adapter, and in every batch; see tests/data/lora/README.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "format/convert/lora.h"
#include "format/convert/quantize.h"
#include "format/gguf.h"
#include "format/model_open.h"
#include "model/adapter.h"
#include "model/adapter_make.h"
#include "model/decoder.h"
#include "support/gguf_build.h"
#include "support/ref_file.h"

enum { MAX_TOKENS = 24 };

#define DATA SHOAL_TEST_DATA

static float *logits_of(const struct model_file *g, const char *path, const int32_t *ids,
                        uint32_t n, uint32_t *n_vocab)
{
    struct err e = {0};
    struct decoder *d;
    const uint32_t pages[] = {0, 1};
    struct decoder_opts o = {.n_threads = 1, .max_batch = MAX_TOKENS, .max_logits = MAX_TOKENS};
    if (decoder_create(&d, g, path, &o, &e) < 0)
        fail_msg("%s: %s", path, e.msg);
    const size_t kv_bytes = decoder_kv_page_bytes(d) * 2;
    uint8_t *kv = mem_pages(kv_bytes);
    *n_vocab = decoder_config(d)->n_vocab;
    float *out = malloc((size_t)n * *n_vocab * sizeof(float));
    assert_true(kv && out);
    decoder_set_kv(d, kv);
    const struct decoder_run run = {.tokens = ids, .n = n, .pages = pages, .n_logits_last = n};
    decoder_forward(d, &run, 1);
    for (uint32_t i = 0; i < n; i++)
        memcpy(out + (size_t)i * *n_vocab, decoder_logits(d, i), *n_vocab * sizeof(float));
    decoder_destroy(d);
    mem_pages_free(kv, kv_bytes);
    return out;
}

/* Merges, writes an F32 file, and computes with that. */
static float *merged_logits(const struct model_file *base, const char *adapter_path, float strength,
                            const int32_t *ids, uint32_t n, uint32_t *n_vocab)
{
    char file[] = "/tmp/shoal-lora-XXXXXX";
    struct model_file *adapter, *merged, *written;
    const struct quantize_opts o = {.kind = QUANTIZE_F32, .n_threads = 1};
    struct quantize_result r;
    struct err e = {0};
    const int fd = mkstemp(file);
    assert_true(fd >= 0);
    close(fd);
    if (lora_open(&adapter, adapter_path, base, &e) < 0 ||
        lora_merge(&merged, base, adapter, strength, &e) < 0 ||
        quantize_run(merged, file, &o, &r, &e) < 0 || gguf_open(&written, file, &e) < 0)
        fail_msg("%s: %s", adapter_path, e.msg);
    quantize_result_fini(&r);
    float *out = logits_of(written, file, ids, n, n_vocab);
    model_file_close(written);
    model_file_close(merged);
    model_file_close(adapter);
    unlink(file);
    return out;
}

static double error_of(const float *got, const struct ref_array *want)
{
    const float *exact = (const float *)(const void *)want->data;
    double diff = 0, norm = 0;
    for (size_t i = 0; i < (size_t)want->rows * want->cols; i++) {
        diff += pow((double)got[i] - (double)exact[i], 2);
        norm += pow((double)exact[i], 2);
    }
    return sqrt(diff / norm);
}

static void check_adapter(const char *name, bool has_gguf)
{
    char path[256], peft[256], ref[256];
    struct ref_file f;
    struct model_file *base;
    struct err e = {0};
    int32_t ids[MAX_TOKENS];
    uint32_t n_vocab;
    snprintf(path, sizeof(path), DATA "/folders/%s", name);
    snprintf(peft, sizeof(peft), DATA "/lora/%s", name);
    snprintf(ref, sizeof(ref), DATA "/lora/%s.ref", name);
    assert_int_equal(ref_open(&f, ref), 0);
    const struct ref_array *tokens = ref_find(&f, "tokens"), *want = ref_find(&f, "logits");
    const uint32_t n = tokens->cols;
    assert_true(n <= MAX_TOKENS && want->rows == n);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = ref_int(tokens, i);
    if (model_open(&base, path, &e) < 0)
        fail_msg("%s", e.msg);
    float *with = merged_logits(base, peft, 1.0f, ids, n, &n_vocab);
    float *none = merged_logits(base, peft, 0.0f, ids, n, &n_vocab);
    float *plain = logits_of(base, path, ids, n, &n_vocab);
    assert_int_equal(n_vocab, want->cols);
    const size_t bytes = (size_t)n * n_vocab * sizeof(float);
    printf("%-8s error %.2e, without the adapter %.2e\n", name, error_of(with, want),
           error_of(plain, want));
    assert_true(error_of(with, want) < 1e-3);
    assert_true(error_of(plain, want) > 0.05);
    assert_memory_equal(none, plain, bytes); /* a strength of 0 changes nothing */
    if (has_gguf) {
        snprintf(peft, sizeof(peft), DATA "/lora/%s.gguf", name);
        float *other = merged_logits(base, peft, 1.0f, ids, n, &n_vocab);
        assert_memory_equal(with, other, bytes);
        free(other);
    }
    free(with);
    free(none);
    free(plain);
    model_file_close(base);
    ref_close(&f);
}

static void test_merged_models_give_pefts_logits(void **state)
{
    (void)state;
    check_adapter("llama", true);
    check_adapter("gptneox", false);
}

/* ---- beside the base ---- */

enum { MAX_RUNS = 6 };

struct beside { /* a decoder with adapters */
    struct model_file *base;
    struct decoder *d;
    struct adapter *adapters[2];
    uint8_t *kv;
    size_t kv_bytes;
};

static void beside_open(struct beside *b, const char *base, const char *const adapters[2],
                        const struct kern_ops *kernels, uint32_t n_threads)
{
    const struct decoder_opts o = {.n_threads = n_threads,
                                   .kernels = kernels,
                                   .max_batch = MAX_RUNS * MAX_TOKENS,
                                   .max_logits = MAX_RUNS * MAX_TOKENS};
    struct err e = {0};
    *b = (struct beside){.base = NULL};
    if (model_open(&b->base, base, &e) < 0 || decoder_create(&b->d, b->base, base, &o, &e) < 0)
        fail_msg("%s: %s", base, e.msg);
    for (int i = 0; i < 2 && adapters[i]; i++) {
        struct model_file *file;
        if (lora_open(&file, adapters[i], b->base, &e) < 0 ||
            adapter_make(&b->adapters[i], b->d, file, &e) < 0)
            fail_msg("%s: %s", adapters[i], e.msg);
        model_file_close(file); /* it is not needed any more */
    }
    b->kv_bytes = decoder_kv_page_bytes(b->d) * 2 * MAX_RUNS;
    b->kv = mem_pages(b->kv_bytes);
    assert_non_null(b->kv);
    decoder_set_kv(b->d, b->kv);
}

static void beside_close(struct beside *b)
{
    decoder_destroy(b->d);
    for (int i = 0; i < 2; i++)
        adapter_destroy(b->adapters[i]);
    mem_pages_free(b->kv, b->kv_bytes);
    model_file_close(b->base);
}

/* The logits of the runs, each of the same n tokens with its own adapter (-1: none), computed
 * together in chunks of `chunk` tokens; into out[run][token][vocabulary]. */
static void beside_logits(struct beside *b, const int *which, const float *scales, uint32_t n_runs,
                          const int32_t *ids, uint32_t n, uint32_t chunk, float *out)
{
    static const uint32_t pages[MAX_RUNS][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}};
    const uint32_t n_vocab = decoder_config(b->d)->n_vocab;
    for (uint32_t from = 0; from < n; from += chunk) {
        const uint32_t part = n - from < chunk ? n - from : chunk;
        struct decoder_run runs[MAX_RUNS];
        for (uint32_t r = 0; r < n_runs; r++)
            runs[r] = (struct decoder_run){.tokens = ids + from,
                                           .n = part,
                                           .pos0 = from,
                                           .pages = pages[r],
                                           .n_logits_last = part,
                                           .adapter = which[r] < 0 ? NULL : b->adapters[which[r]],
                                           .adapter_scale = scales[r]};
        decoder_forward(b->d, runs, n_runs);
        for (uint32_t r = 0; r < n_runs; r++)
            for (uint32_t i = 0; i < part; i++)
                memcpy(out + ((size_t)r * n + from + i) * n_vocab,
                       decoder_logits(b->d, r * part + i), n_vocab * sizeof(float));
    }
}

/* of: the reference in tests/data/lora. */
static void check_beside(const char *name, const char *adapter, const char *of)
{
    char path[256], peft[256], ref[256];
    struct ref_file f;
    struct beside b;
    int32_t ids[MAX_TOKENS];
    const int first = 0;
    const float whole = 1.0f;
    snprintf(path, sizeof(path), DATA "/folders/%s", name);
    snprintf(peft, sizeof(peft), DATA "/lora/%s", adapter);
    snprintf(ref, sizeof(ref), DATA "/lora/%s.ref", of);
    assert_int_equal(ref_open(&f, ref), 0);
    const struct ref_array *tokens = ref_find(&f, "tokens"), *want = ref_find(&f, "logits");
    const uint32_t n = tokens->cols;
    for (uint32_t i = 0; i < n; i++)
        ids[i] = ref_int(tokens, i);
    beside_open(&b, path, (const char *const[]){peft, NULL}, NULL, 2);
    assert_int_equal(decoder_config(b.d)->n_vocab, want->cols);
    float *got = malloc((size_t)n * want->cols * sizeof(float));
    assert_non_null(got);
    beside_logits(&b, &first, &whole, 1, ids, n, n, got);
    printf("%-8s error %.2e, beside its base\n", adapter, error_of(got, want));
    assert_true(error_of(got, want) < 2e-3);
    free(got);
    beside_close(&b);
    ref_close(&f);
}

static void test_adapters_beside_their_base_give_pefts_logits(void **state)
{
    (void)state;
    check_beside("llama", "llama", "llama");
    check_beside("llama", "llama.gguf", "llama");
    check_beside("llama", "llama-qv", "llama-qv");
    check_beside("gptneox", "gptneox", "gptneox");
}

/* Whatever else is computed with a sequence, on whichever kernels and threads: its bits are those
 * that it has alone. */
static void test_a_batch_of_adapters_has_the_bits_of_each_alone(void **state)
{
    (void)state;
    static const int which[MAX_RUNS] = {0, -1, 1, 0, 0, 1};
    static const float scales[MAX_RUNS] = {1.0f, 1.0f, 1.0f, 0.5f, 1.0f, -2.0f};
    static const uint32_t chunks[] = {1, 7, 24};
    static const char *const adapters[2] = {DATA "/lora/llama", DATA "/lora/llama-qv"};
    const struct kern_ops *sets[16];
    const size_t n_sets = kern_usable(sets, 16);
    int32_t ids[MAX_TOKENS];
    float *want = NULL, *got = NULL;
    size_t one = 0;
    for (int i = 0; i < MAX_TOKENS; i++)
        ids[i] = 3 + i * 7;
    for (size_t s = 0; s < n_sets; s++)
        for (uint32_t threads = 1; threads <= 3; threads++) {
            struct beside b;
            beside_open(&b, DATA "/folders/llama", adapters, sets[s], threads);
            one = (size_t)MAX_TOKENS * decoder_config(b.d)->n_vocab;
            if (!want) { /* each alone, without others */
                want = malloc(one * MAX_RUNS * sizeof(float));
                got = malloc(one * MAX_RUNS * sizeof(float));
                assert_true(want && got);
                for (uint32_t r = 0; r < MAX_RUNS; r++)
                    beside_logits(&b, &which[r], &scales[r], 1, ids, MAX_TOKENS, 1, want + r * one);
            }
            for (size_t c = 0; c < sizeof(chunks) / sizeof(chunks[0]); c++) {
                beside_logits(&b, which, scales, MAX_RUNS, ids, MAX_TOKENS, chunks[c], got);
                if (memcmp(got, want, one * MAX_RUNS * sizeof(float)) != 0)
                    fail_msg("%s, %u threads, chunks of %u", sets[s]->name, threads, chunks[c]);
                beside_logits(&b, which + 2, scales + 2, 2, ids, MAX_TOKENS, chunks[c], got);
                assert_memory_equal(got, want + 2 * one, 2 * one * sizeof(float));
            }
            beside_close(&b);
        }
    assert_memory_equal(want, want + 4 * one, one * sizeof(float));
    assert_memory_not_equal(want, want + one, one * sizeof(float));
    assert_memory_not_equal(want, want + 3 * one, one * sizeof(float));
    free(want);
    free(got);
}

static void test_adapters_of_another_base_are_not_put_beside(void **state)
{
    (void)state;
    struct beside b;
    struct model_file *file;
    struct adapter *a;
    struct err e = {0};
    beside_open(&b, DATA "/folders/llama3", (const char *const[]){NULL, NULL}, NULL, 1);
    assert_int_equal(lora_open(&file, DATA "/lora/llama.gguf", b.base, &e), 0);
    assert_int_equal(adapter_make(&a, b.d, file, &e), SHOAL_EFORMAT);
    assert_null(a);
    assert_non_null(strstr(e.msg, "which do not fit"));
    model_file_close(file);
    beside_close(&b);
}

static void put(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void test_adapters_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *config, *says;
    } cases[] = {
        {"{}", "peft_type \"\""},
        {"{\"peft_type\":\"IA3\"}", "peft_type \"IA3\""},
        {"{\"peft_type\":\"LORA\"}", "no r"},
        {"{\"peft_type\":\"LORA\",\"r\":0}", "r is not a whole number"},
        {"{\"peft_type\":\"LORA\",\"r\":4,\"use_dora\":true}", "use_dora is not supported"},
        {"{\"peft_type\":\"LORA\",\"r\":4,\"bias\":\"all\"}", "bias \"all\""},
        {"{\"peft_type\":\"LORA\",\"r\":4,\"rank_pattern\":{\"x\":2}}", "rank_pattern"},
        {"{\"peft_type\":\"LORA\",\"r\":4,\"modules_to_save\":[\"lm_head\"]}", "modules_to_save"},
    };
    char folder[] = "/tmp/shoal-lora-XXXXXX", command[256];
    struct model_file *base, *other, *adapter, *merged;
    struct err e = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof(command), "cp " DATA "/lora/llama/adapter_model.safetensors %s/",
             folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(model_open(&base, DATA "/folders/llama", &e), 0);
    assert_int_equal(model_open(&other, DATA "/folders/gptneox", &e), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        put(folder, "adapter_config.json", cases[i].config);
        if (lora_open(&adapter, folder, base, &e) == 0 || !strstr(e.msg, cases[i].says))
            fail_msg("%s: %s", cases[i].config, e.msg);
        assert_null(adapter);
    }
    /* of another architecture, of another size, no adapter at all */
    assert_true(lora_open(&adapter, DATA "/lora/llama", other, &e) < 0);
    assert_non_null(strstr(e.msg, "is not part of the gpt_neox architecture"));
    assert_true(lora_open(&adapter, DATA "/lora/llama.gguf", other, &e) < 0);
    assert_non_null(strstr(e.msg, "an adapter of llama, but the base is a gptneox"));
    assert_true(lora_open(&adapter, DATA "/refs/qwen2.gguf", base, &e) < 0);
    assert_non_null(strstr(e.msg, "not a LoRA adapter"));
    model_file_close(other);
    assert_int_equal(model_open(&other, DATA "/folders/llama3", &e), 0);
    assert_int_equal(lora_open(&adapter, DATA "/lora/llama.gguf", other, &e), 0);
    assert_true(lora_merge(&merged, other, adapter, 1.0f, &e) < 0);
    assert_null(merged);
    assert_non_null(strstr(e.msg, "which do not fit"));
    model_file_close(adapter);
    model_file_close(other);
    model_file_close(base);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

/* A matrix that its file multiplies by a number gets as much less of the adapter. */
static void test_a_scale_beside_the_matrix_is_taken_out(void **state)
{
    enum { COLS = 256, ROWS = 64 };
    static float a[COLS], b[ROWS], was[COLS], is[COLS];
    struct model_file *base, *adapter, *merged;
    struct model_file_tensor *t;
    struct err e = {0};
    struct buf head;
    float scale;
    (void)state;
    for (int i = 0; i < COLS; i++)
        a[i] = (float)(i % 5 - 2) * 0.5f;
    for (int i = 0; i < ROWS; i++)
        b[i] = (float)(i % 3) - 1.0f;
    gb_begin(&head);
    gb_key(&head, "adapter.lora.alpha", MODEL_FILE_F32);
    buf_put(&head, &(float){2.0f}, sizeof(float));
    if (gguf_parse(&adapter, head.data, head.len, &e) < 0 ||
        gguf_open(&base, DATA "/refs/quant-g.gguf", &e) < 0)
        fail_msg("%s", e.msg);
    static const char name_a[] = "blk.0.attn_v.weight.lora_a",
                      name_b[] = "blk.0.attn_v.weight.lora_b";
    for (int i = 0; i < 2; i++) {
        t = model_file_add_tensor(adapter);
        assert_non_null(t);
        *t = (struct model_file_tensor){.name = {i ? name_b : name_a, sizeof(name_a) - 1},
                                        .type = QUANT_F32,
                                        .n_dims = 2,
                                        .dims = {i ? 1 : COLS, i ? ROWS : 1, 1, 1},
                                        .n_bytes = i ? sizeof(b) : sizeof(a),
                                        .data = (const uint8_t *)(i ? b : a)};
    }
    assert_int_equal(model_file_check(adapter, &e), 0);
    if (lora_merge(&merged, base, adapter, 1.0f, &e) < 0)
        fail_msg("%s", e.msg);
    model_file_row_f32(model_file_find_tensor(base, "blk.0.attn_v.scale"), 0, &scale);
    assert_true(scale > 0.0f && scale < 0.5f);
    for (uint64_t r = 0; r < ROWS; r++) {
        model_file_row_f32(model_file_find_tensor(base, "blk.0.attn_v.weight"), r, was);
        model_file_row_f32(model_file_find_tensor(merged, "blk.0.attn_v.weight"), r, is);
        for (int c = 0; c < COLS; c++)
            if (!(fabsf((is[c] - was[c]) * scale - 2.0f * b[r] * a[c]) < 1e-4f))
                fail_msg("row %d, column %d: %g", (int)r, c, (double)((is[c] - was[c]) * scale));
    }
    model_file_close(merged);
    model_file_close(base);
    model_file_close(adapter);
    buf_fini(&head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merged_models_give_pefts_logits),
        cmocka_unit_test(test_adapters_beside_their_base_give_pefts_logits),
        cmocka_unit_test(test_a_batch_of_adapters_has_the_bits_of_each_alone),
        cmocka_unit_test(test_adapters_of_another_base_are_not_put_beside),
        cmocka_unit_test(test_adapters_that_do_not_fit_are_refused),
        cmocka_unit_test(test_a_scale_beside_the_matrix_is_taken_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
