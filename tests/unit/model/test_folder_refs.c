/* test_folder_refs.c - decoders from Hugging Face folders: logits against transformers, and the
 * same bits from the GGUF file converted from the folder, for encoders too; see
 * tests/data/folders/README.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stddef.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "format/gguf.h"
#include "model/decoder.h"
#include "model/encoder.h"
#include "format/model_open.h"
#include "format/convert/quantize.h"
#include "model/t5.h"
#include "support/ref_file.h"

static const struct model {
    const char *name, *arch;
    enum quantize_kind kind; /* of the folder's weights */
    double bound;            /* relative error of the logits */
    uint32_t n_ctx;          /* 0: the model's own */
} models[] = {
    {"gpt2", "gpt2", QUANTIZE_F32, 1e-3, 0},
    {"gptneo", "gptneo", QUANTIZE_F32, 1e-3, 0},
    {"llama", "llama", QUANTIZE_BF16, 1e-3, 0},
    {"llama3", "llama", QUANTIZE_F16, 1e-3, 0},
    {"mistral", "llama", QUANTIZE_BF16, 1e-3, 0},
    {"qwen2", "qwen2", QUANTIZE_F32, 1e-3, 0},
    {"qwen3", "qwen3", QUANTIZE_F16, 1e-3, 0},
    {"phi", "phi2", QUANTIZE_F32, 1e-3, 0},
    {"qwen2-yarn", "qwen2", QUANTIZE_F16, 1e-3, 0},
    {"llama-dynamic", "llama", QUANTIZE_F16, 1e-3, 24}, /* longer than its training */
    {"phi3", "phi3", QUANTIZE_BF16, 1e-3, 0},
    {"phi4-mini", "phi3", QUANTIZE_F16, 1e-3, 32}, /* the table of short contexts */
    {"phi4-long", "phi3", QUANTIZE_F16, 1e-3, 0},  /* that of long ones */
    {"smollm3", "smollm3", QUANTIZE_BF16, 1e-3, 0},
    {"granite", "granite", QUANTIZE_F16, 1e-3, 0},
    {"olmo2", "olmo2", QUANTIZE_F16, 1e-3, 0},
    {"exaone4", "exaone4", QUANTIZE_F16, 1e-3, 0},
    {"ernie4_5", "ernie4_5", QUANTIZE_BF16, 1e-3, 0},
    {"hunyuan", "hunyuan-dense", QUANTIZE_BF16, 1e-3, 0},
    {"gptneox", "gptneox", QUANTIZE_F16, 1e-3, 0},
    {"gptneox-serial", "gptneox", QUANTIZE_F16, 1e-3, 0},
    {"stablelm", "stablelm", QUANTIZE_F16, 1e-3, 0},
    {"gemma2", "gemma2", QUANTIZE_BF16, 1e-3, 0},
    {"gemma3", "gemma3", QUANTIZE_BF16, 1e-3, 0},
    {"lfm2", "lfm2", QUANTIZE_F16, 1e-3, 0},
    {"mamba2", "mamba2", QUANTIZE_F16, 1e-3, 0},
    {"granitehybrid", "granitehybrid", QUANTIZE_F16, 1e-3, 0},
    {"qwen35", "qwen35", QUANTIZE_F16, 1e-3, 0},
};
#define N_MODELS (sizeof(models) / sizeof(models[0]))

enum { MAX_TOKENS = 32 };

/* Logits of all tokens, in two passes; free() them. */
static float *logits_of(const struct model_file *g, const char *path, const int32_t *ids,
                        uint32_t n, uint32_t n_ctx, uint32_t *n_vocab)
{
    struct err e = {0};
    struct decoder *d;
    const uint32_t pages[] = {1, 0};
    struct decoder_opts o = {
        .n_threads = 2, .n_ctx = n_ctx, .max_batch = MAX_TOKENS, .max_logits = MAX_TOKENS};
    if (decoder_create(&d, g, path, &o, &e) < 0)
        fail_msg("%s: %s", path, e.msg);
    size_t kv_bytes = decoder_kv_page_bytes(d) * 2;
    uint8_t *kv = mem_pages(kv_bytes);
    decoder_set_kv(d, kv);
    *n_vocab = decoder_config(d)->n_vocab;
    float *out = malloc((size_t)n * *n_vocab * sizeof(float));
    assert_true(kv && out && n <= MAX_TOKENS);
    for (uint32_t at = 0, m = n / 2; at < n; at += m, m = n - at) {
        struct decoder_run run = {
            .tokens = ids + at, .n = m, .pos0 = at, .pages = pages, .n_logits_last = m};
        decoder_forward(d, &run, 1);
        for (uint32_t i = 0; i < m; i++)
            memcpy(out + (size_t)(at + i) * *n_vocab, decoder_logits(d, i),
                   *n_vocab * sizeof(float));
    }
    decoder_destroy(d);
    mem_pages_free(kv, kv_bytes);
    return out;
}

/* file: a pattern for mkstemp; unlink it. */
static struct model_file *convert(const struct model_file *g, enum quantize_kind kind, char *file)
{
    struct quantize_opts o = {.kind = kind, .n_threads = 1};
    struct quantize_result r;
    struct model_file *converted = NULL;
    struct err e = {0};
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    close(fd);
    if (quantize_run(g, file, &o, &r, &e) < 0 || gguf_open(&converted, file, &e) < 0)
        fail_msg("%s", e.msg);
    quantize_result_fini(&r);
    return converted;
}

static void check_model(const struct model *m)
{
    char folder[512], ref[512], file[] = "/tmp/shoal-folder-XXXXXX";
    struct ref_file f;
    struct model_file *g, *converted;
    struct err e = {0};
    struct str arch;
    int32_t ids[MAX_TOKENS];
    uint32_t n_vocab, n_vocab2;
    snprintf(folder, sizeof(folder), "%s/folders/%s", SHOAL_TEST_DATA, m->name);
    snprintf(ref, sizeof(ref), "%s/folders/%s.ref", SHOAL_TEST_DATA, m->name);
    assert_int_equal(ref_open(&f, ref), 0);
    const struct ref_array *tokens = ref_find(&f, "tokens"), *want = ref_find(&f, "logits");
    assert_true(tokens && want && tokens->cols <= MAX_TOKENS && want->rows == tokens->cols);
    for (uint32_t i = 0; i < tokens->cols; i++)
        ids[i] = ref_int(tokens, i);

    if (model_open(&g, folder, &e) < 0)
        fail_msg("%s", e.msg);
    assert_true(model_file_get_str(g, "general.architecture", &arch));
    assert_true(arch.n == strlen(m->arch) && !memcmp(arch.p, m->arch, arch.n));
    float *got = logits_of(g, folder, ids, tokens->cols, m->n_ctx, &n_vocab);
    assert_int_equal(n_vocab, want->cols);
    double diff = 0, norm = 0;
    const float *exact = (const float *)(const void *)want->data;
    for (size_t i = 0; i < (size_t)want->rows * want->cols; i++) {
        diff += pow((double)got[i] - (double)exact[i], 2);
        norm += pow((double)exact[i], 2);
    }
    printf("%-14s error %.2e\n", m->name, sqrt(diff / norm));
    if (!(sqrt(diff / norm) < m->bound))
        fail_msg("%s: error %g", m->name, sqrt(diff / norm));

    converted = convert(g, m->kind, file);
    float *again = logits_of(converted, file, ids, tokens->cols, m->n_ctx, &n_vocab2);
    assert_int_equal(n_vocab, n_vocab2);
    assert_memory_equal(got, again, (size_t)want->rows * want->cols * sizeof(float));
    assert_non_null(model_file_find(converted, "huggingface.config"));
    assert_non_null(model_file_find(converted, "tokenizer.huggingface.json"));
    model_file_close(converted);
    model_file_close(g);
    unlink(file);
    free(got);
    free(again);
    ref_close(&f);
}

static void test_folders_give_the_references_logits(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_MODELS; i++)
        check_model(&models[i]);
}

/* The last layer of some tokens, then the classes of the first and of all; free() them. */
static float *answers_of(const struct model_file *g, const char *path, size_t *n)
{
    struct err e = {0};
    struct encoder *d;
    struct encoder_opts o = {.n_threads = 2};
    int32_t ids[12];
    const float *x[12];
    if (encoder_create(&d, g, path, &o, &e) < 0)
        fail_msg("%s: %s", path, e.msg);
    for (int i = 0; i < 12; i++)
        ids[i] = i * 9 + 3;
    struct encoder_seq seq = {.tokens = ids, .n = 12};
    encoder_forward(d, &seq, 1);
    uint32_t dim = encoder_config(d)->dim;
    uint32_t classes = encoder_top_rows(d, ENCODER_TOP_CLS_OUTPUT);
    uint32_t tags = encoder_top_rows(d, ENCODER_TOP_TAG_OUTPUT);
    *n = 12u * dim + classes + 12u * tags;
    float *out = malloc(*n * sizeof(float));
    assert_non_null(out);
    for (uint32_t i = 0; i < 12; i++) {
        x[i] = encoder_hidden(d, 0, i);
        memcpy(out + i * dim, x[i], dim * sizeof(float));
    }
    if (classes)
        encoder_top(d, ENCODER_TOP_CLS_OUTPUT, x, 1, 0, classes, out + 12u * dim, classes);
    if (tags)
        encoder_top(d, ENCODER_TOP_TAG_OUTPUT, x, 12, 0, tags, out + 12u * dim + classes, tags);
    encoder_destroy(d);
    return out;
}

static void check_converted(const char *path, enum quantize_kind kind,
                            float *(*answers)(const struct model_file *g, const char *path,
                                              size_t *n))
{
    char file[] = "/tmp/shoal-folder-XXXXXX";
    struct model_file *g;
    struct err e = {0};
    size_t n, n2;
    if (model_open(&g, path, &e) < 0)
        fail_msg("%s", e.msg);
    struct model_file *converted = convert(g, kind, file);
    float *got = answers(g, path, &n), *again = answers(converted, file, &n2);
    assert_int_equal(n, n2);
    assert_memory_equal(got, again, n * sizeof(float));
    model_file_close(converted);
    model_file_close(g);
    unlink(file);
    free(got);
    free(again);
}

static void test_converted_encoders_give_the_same_bits(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        enum quantize_kind kind;
    } encoders[] = {
        {"models/encoder", QUANTIZE_F16},
        {SHOAL_TEST_DATA "/encoders/bert", QUANTIZE_F32},
        {SHOAL_TEST_DATA "/encoders/bert-tag", QUANTIZE_F16},
        {SHOAL_TEST_DATA "/encoders/distilbert-cls", QUANTIZE_BF16},
        {SHOAL_TEST_DATA "/encoders/roberta-cls", QUANTIZE_F32},
        {SHOAL_TEST_DATA "/encoders/electra-rank", QUANTIZE_F32},
        {SHOAL_TEST_DATA "/encoders/albert-rank", QUANTIZE_F32},
        {SHOAL_TEST_DATA "/encoders/mpnet-rank", QUANTIZE_F32},
        {SHOAL_TEST_DATA "/encoders/deberta-rank", QUANTIZE_F32},
        {SHOAL_TEST_DATA "/encoders/deberta-tag", QUANTIZE_F16},
        {SHOAL_TEST_DATA "/encoders/modernbert-rank", QUANTIZE_BF16},
    };
    for (size_t i = 0; i < sizeof(encoders) / sizeof(encoders[0]); i++)
        check_converted(encoders[i].path, encoders[i].kind, answers_of);
}

/* Logits of a few steps; free() them. */
static float *t5_answers(const struct model_file *g, const char *path, size_t *n)
{
    enum { STEPS = 4, PAGES = 4 };
    static const int32_t ids[] = {5, 9, 30, 12, 7, 1};
    const uint32_t source_page = 0, page = 1;
    struct err e = {0};
    struct t5 *t;
    struct t5_opts o = {.n_threads = 2};
    if (t5_create(&t, g, path, &o, &e) < 0)
        fail_msg("%s: %s", path, e.msg);
    size_t kv_bytes = t5_sizes(t).kv_page * PAGES;
    uint8_t *kv = mem_pages(kv_bytes);
    uint32_t n_vocab = t5_config(t)->n_vocab;
    *n = (size_t)STEPS * n_vocab;
    float *out = malloc(*n * sizeof(float));
    assert_true(kv && out);
    t5_set_kv(t, kv);
    struct t5_source source = {.tokens = ids, .n = 6, .pages = &source_page};
    t5_encode(t, &source, 1);
    for (uint32_t i = 0; i < STEPS; i++) {
        struct t5_row row = {.token = i ? ids[i] : t5_config(t)->start_token,
                             .pos = i,
                             .pages = &page,
                             .source_pages = &source_page,
                             .n_source = 6};
        t5_decode(t, &row, 1);
        memcpy(out + (size_t)i * n_vocab, t5_logits(t, 0), n_vocab * sizeof(float));
    }
    t5_destroy(t);
    mem_pages_free(kv, kv_bytes);
    return out;
}

static void test_converted_t5_give_the_same_bits(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        enum quantize_kind kind;
    } models_t5[] = {{SHOAL_TEST_DATA "/t5/t5-relu", QUANTIZE_F32},
                     {SHOAL_TEST_DATA "/t5/t5-gated", QUANTIZE_F16}};
    for (size_t i = 0; i < 2; i++)
        check_converted(models_t5[i].path, models_t5[i].kind, t5_answers);
}

/* Packed weights are keyed by the content of the folder's files, not by the folder's name. */
static void test_packed_weights_follow_the_files(void **state)
{
    (void)state;
    char folder[64] = "/tmp/shoal-pack-XXXXXX", cmd[1024], shard[128], cache[128];
    assert_non_null(mkdtemp(folder));
    snprintf(cmd, sizeof(cmd), "cp %s/folders/llama/* %s/", SHOAL_TEST_DATA, folder);
    assert_int_equal(system(cmd), 0);
    snprintf(shard, sizeof(shard), "%s/model-00003-of-00004.safetensors", folder);
    snprintf(cache, sizeof(cache), "%s/cache", folder);
    for (int round = 0; round < 4; round++) {
        struct decoder_opts o = {.n_threads = 1, .cache_dir = cache};
        struct decoder *d = NULL;
        struct model_file *g;
        struct err e = {0};
        if (round == 2) { /* same size, different values and time */
            FILE *f = fopen(shard, "r+b");
            assert_non_null(f);
            assert_int_equal(fseek(f, -2, SEEK_END), 0);
            assert_int_equal(fwrite("\x80\x3f", 1, 2, f), 2);
            assert_int_equal(fclose(f), 0);
            const struct timespec times[2] = {{1700000000, 0}, {1700000000, 0}};
            assert_int_equal(utimensat(AT_FDCWD, shard, times, 0), 0);
        }
        if (model_open(&g, folder, &e) < 0 || decoder_create(&d, g, folder, &o, &e) < 0)
            fail_msg("%s", e.msg);
        assert_int_equal(decoder_from_cache(d), round == 1 || round == 3);
        decoder_destroy(d);
        model_file_close(g);
    }
    snprintf(cmd, sizeof(cmd), "rm -r %s", folder);
    assert_int_equal(system(cmd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folders_give_the_references_logits),
        cmocka_unit_test(test_converted_encoders_give_the_same_bits),
        cmocka_unit_test(test_converted_t5_give_the_same_bits),
        cmocka_unit_test(test_packed_weights_follow_the_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
