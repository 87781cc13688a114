/* test_decoder_parts.c - a decoder cut into parts of layers computes the bits of the whole one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/decoder_rig.h"

#define N_IDS 40u
#define MAX_BATCH 16u

static const char *const names[] = {"llama-gqa", "llama3-rope", "gemma3",  "gemma2",  "gpt2",
                                    "olmo2",     "gptneox",     "hunyuan", "smollm3", "qwen3",
                                    "stablelm",  "granite",     "exaone4"};

struct part {
    struct decoder *d;
    uint8_t *kv;
    size_t kv_bytes;
};

static void part_open(struct part *p, const struct model_file *file, uint32_t first, uint32_t end)
{
    const struct decoder_opts o = {.n_threads = 1,
                                   .n_ctx = 64,
                                   .max_batch = MAX_BATCH,
                                   .max_logits = MAX_BATCH,
                                   .layer_first = first,
                                   .layer_end = end};
    struct err e = {0};
    if (decoder_create(&p->d, file, "", &o, &e) < 0)
        fail_msg("layers %u to %u: %s", first, end, e.msg);
    p->kv_bytes = decoder_kv_page_bytes(p->d) * 4;
    p->kv = mem_pages(p->kv_bytes);
    decoder_set_kv(p->d, p->kv);
}

static void part_close(struct part *p)
{
    decoder_destroy(p->d);
    mem_pages_free(p->kv, p->kv_bytes);
}

/* Logits of all tokens, batch after batch through the parts; the caller frees them. */
static float *logits_of(const struct model_file *file, const uint32_t *cuts, uint32_t n_parts,
                        uint32_t batch)
{
    static const uint32_t pages[] = {2, 0, 3, 1};
    struct part parts[8];
    int32_t ids[N_IDS];
    for (uint32_t i = 0; i < n_parts; i++)
        part_open(&parts[i], file, cuts[i], cuts[i + 1]);
    const struct decoder_config *c = decoder_config(parts[0].d);
    for (uint32_t i = 0; i < N_IDS; i++)
        ids[i] = (int32_t)((i * 7919 + 3) % c->n_vocab);
    float *out = malloc((size_t)N_IDS * c->n_vocab * sizeof(float));
    float *x = malloc((size_t)MAX_BATCH * c->dim * sizeof(float));
    for (uint32_t at = 0; at < N_IDS; at += batch) {
        const uint32_t n = N_IDS - at < batch ? N_IDS - at : batch;
        for (uint32_t i = 0; i < n_parts; i++) {
            const struct decoder_run run = {
                .tokens = i == 0 ? ids + at : NULL,
                .x = i == 0 ? NULL : x,
                .n = n,
                .pos0 = at,
                .pages = pages,
                .n_logits_last = n,
            };
            decoder_forward(parts[i].d, &run, 1);
            if (i + 1 < n_parts)
                memcpy(x, decoder_hidden(parts[i].d, 0), (size_t)n * c->dim * sizeof(float));
        }
        for (uint32_t i = 0; i < n; i++)
            memcpy(out + (size_t)(at + i) * c->n_vocab, decoder_logits(parts[n_parts - 1].d, i),
                   c->n_vocab * sizeof(float));
    }
    free(x);
    for (uint32_t i = 0; i < n_parts; i++)
        part_close(&parts[i]);
    return out;
}

static struct model_file *open_ref(const char *name)
{
    struct model_file *file;
    struct err e = {0};
    char path[512];
    snprintf(path, sizeof(path), "%s/refs/%s.gguf", SHOAL_TEST_DATA, name);
    if (gguf_open(&file, path, &e) < 0)
        fail_msg("%s", e.msg);
    return file;
}

static void test_parts_compute_the_same_bits(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof(names) / sizeof(names[0]); m++) {
        struct model_file *file = open_ref(names[m]);
        struct decoder_costs costs;
        const struct decoder_opts o = {.n_threads = 1};
        assert_int_equal(decoder_costs(&costs, file, &o, NULL), 0);
        const uint32_t n = costs.n_layers, whole[] = {0, n};
        if (n < 2 || costs.layer_bytes == 0 || costs.head_bytes == 0)
            fail_msg("%s: %u layers of %llu bytes, a head of %llu", names[m], n,
                     (unsigned long long)costs.layer_bytes, (unsigned long long)costs.head_bytes);
        float *want = logits_of(file, whole, 1, 7);
        for (uint32_t cut = 1; cut < n; cut++) {
            const uint32_t two[] = {0, cut, n}, three[] = {0, cut, cut + 1, n};
            for (uint32_t parts = 2; parts <= 3 && cut + parts - 2 < n; parts++) {
                float *got = logits_of(file, parts == 2 ? two : three, parts, cut % 2 ? 16 : 5);
                if (memcmp(want, got, (size_t)N_IDS * costs.n_vocab * sizeof(float)) != 0)
                    fail_msg("%s: %u parts, cut at %u of %u, differ", names[m], parts, cut, n);
                free(got);
            }
        }
        free(want);
        model_file_close(file);
    }
}

/* A part has the weights and the keys and values of its own layers only. */
static void test_a_part_holds_only_its_layers(void **state)
{
    (void)state;
    struct model_file *file = open_ref("llama-gqa");
    const struct decoder_opts all = {.n_threads = 1};
    struct decoder_sizes whole, a, b;
    struct decoder_costs costs;
    assert_int_equal(decoder_costs(&costs, file, &all, NULL), 0);
    const struct decoder_opts low = {.n_threads = 1, .layer_end = 1},
                              high = {.n_threads = 1, .layer_first = 1};
    assert_int_equal(decoder_measure(&whole, file, &all, NULL), 0);
    assert_int_equal(decoder_measure(&a, file, &low, NULL), 0);
    assert_int_equal(decoder_measure(&b, file, &high, NULL), 0);
    assert_int_equal(a.weights + b.weights, whole.weights);
    assert_int_equal(a.weights, costs.layer_bytes);
    assert_int_equal(a.kv_page, costs.kv_page_bytes);
    assert_int_equal(a.kv_page + b.kv_page, whole.kv_page);
    model_file_close(file);
}

static void test_refuses_layers_that_are_not_there(void **state)
{
    (void)state;
    struct model_file *file = open_ref("llama-gqa");
    const struct decoder_opts bad[] = {{.layer_first = 2, .layer_end = 2},
                                       {.layer_first = 3, .layer_end = 1},
                                       {.layer_end = 1000},
                                       {.layer_first = 1000}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct decoder *d;
        struct err e = {0};
        assert_int_equal(decoder_create(&d, file, "", &bad[i], &e), SHOAL_EINVAL);
        assert_non_null(strstr(e.msg, "are no part of a model"));
    }
    model_file_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_compute_the_same_bits),
        cmocka_unit_test(test_a_part_holds_only_its_layers),
        cmocka_unit_test(test_refuses_layers_that_are_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
