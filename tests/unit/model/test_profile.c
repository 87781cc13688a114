/* A profile changes no bit of what a decoder computes, has every phase, and stops when it is full.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "format/model_open.h"
#include "model/decoder.h"
#include "model/decoder_profile.h"

#define N_TOKENS 24u
#define N_PASSES 5u

struct rig {
    struct model_file *file;
    struct decoder *d;
    uint8_t *kv;
    size_t kv_bytes;
    uint32_t pages[8];
    int32_t ids[N_TOKENS + N_PASSES];
};

static void rig_open(struct rig *r, const char *name, uint32_t n_threads)
{
    char path[512];
    struct err e = {0};
    const struct decoder_opts o = {.n_threads = n_threads, .n_ctx = 64};
    snprintf(path, sizeof(path), "%s/refs/%s.gguf", SHOAL_TEST_DATA, name);
    assert_int_equal(model_open(&r->file, path, &e), 0);
    assert_int_equal(decoder_create(&r->d, r->file, path, &o, &e), 0);
    r->kv_bytes = 8 * decoder_kv_page_bytes(r->d);
    r->kv = mem_pages(r->kv_bytes);
    assert_non_null(r->kv);
    decoder_set_kv(r->d, r->kv);
    for (uint32_t i = 0; i < 8; i++)
        r->pages[i] = i;
    for (uint32_t i = 0; i < N_TOKENS + N_PASSES; i++)
        r->ids[i] = (int32_t)(i * 7 % decoder_config(r->d)->n_vocab);
}

static void rig_close(struct rig *r)
{
    decoder_destroy(r->d);
    mem_pages_free(r->kv, r->kv_bytes);
    model_file_close(r->file);
}

/* A prompt and some tokens; the logits of the last. */
static float *compute(struct rig *r)
{
    const size_t n = decoder_config(r->d)->n_vocab;
    float *out = mem_zalloc_n(n, sizeof(*out));
    for (uint32_t at = 0, k = N_TOKENS; at < N_TOKENS + N_PASSES; at += k, k = 1) {
        const struct decoder_run run = {
            .tokens = r->ids + at, .n = k, .pos0 = at, .pages = r->pages, .n_logits_last = 1};
        decoder_forward(r->d, &run, 1);
    }
    memcpy(out, decoder_logits(r->d, 0), n * sizeof(*out));
    return out;
}

static void check_phases(const struct decoder_profile *f, const struct decoder *d)
{
    const uint32_t n_layers = decoder_config(d)->n_layers;
    uint32_t outputs = 0, joins = 0;
    assert_int_equal(f->n_passes, 1 + N_PASSES);
    for (uint32_t i = 0; i < f->n_phases; i++) {
        const struct profile_phase *x = &f->phases[i];
        assert_true(x->layer >= -1 && x->layer < (int32_t)n_layers);
        assert_true(x->open_ns <= x->finish_ns && x->finish_ns <= x->done_ns);
        assert_true(x->chunks.name || x->finish.name);
        if (i > 0 && x->pass == f->phases[i - 1].pass)
            assert_true(x->open_ns == f->phases[i - 1].done_ns); /* no time is lost */
        outputs += x->chunks.name && strcmp(x->chunks.name, "output") == 0;
        joins += (x->chunks.name && strcmp(x->chunks.name, "join") == 0) ||
                 (x->finish.name && strcmp(x->finish.name, "join") == 0);
        for (int k = 0; k < 2; k++) { /* nothing of this model is without a name */
            const char *name = k ? x->finish.name : x->chunks.name;
            assert_true(!name || strcmp(name, "adapter") != 0);
        }
    }
    assert_int_equal(outputs, 1 + N_PASSES);
    assert_true(joins >= n_layers * (1 + N_PASSES));
}

static void profile_of(const char *name, uint32_t n_threads)
{
    struct rig r = {0};
    struct decoder_profile *f, *small;
    struct err e = {0};
    rig_open(&r, name, n_threads);
    const size_t bytes = decoder_config(r.d)->n_vocab * sizeof(float);
    const uint32_t most = decoder_profile_phases(r.d) * (1 + N_PASSES);
    float *plain = compute(&r);
    assert_int_equal(decoder_profile_create(&f, n_threads, most, most * 64, &e), 0);
    decoder_profile_set(r.d, f);
    float *timed = compute(&r);
    assert_memory_equal(plain, timed, bytes);
    check_phases(f, r.d);
    assert_int_equal(atomic_load(&f->n_left_out), 0);
    /* one without room: it says so, and the result is the same */
    assert_int_equal(decoder_profile_create(&small, n_threads, 1, 1, &e), 0);
    decoder_profile_set(r.d, small);
    float *full = compute(&r);
    assert_memory_equal(plain, full, bytes);
    assert_true(atomic_load(&small->n_left_out) > 0 && small->n_phases == 0);
    mem_free(plain);
    mem_free(timed);
    mem_free(full);
    rig_close(&r);
    decoder_profile_destroy(f);
    decoder_profile_destroy(small);
}

static void test_kinds_of_models(void **state)
{
    static const char *const names[] = {"llama-gqa", "gemma2", "gpt2",  "phi2",
                                        "qwen3moe",  "lfm2",   "mamba2"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (uint32_t threads = 1; threads <= 3; threads += 2)
            profile_of(names[i], threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds_of_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
