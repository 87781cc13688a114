/* test_refs_bits.c - models of tests/data/refs give the same bits with every kernel set, batch
 * size and number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/decoder_rig.h"

struct record {
    float *logits;
    uint32_t n_vocab;
};

static void record_row(void *ctx, uint32_t pos, const float *logits)
{
    struct record *r = ctx;
    memcpy(r->logits + (size_t)pos * r->n_vocab, logits, r->n_vocab * sizeof(float));
}

/* Whole models agree bit for bit over kernel sets, batch sizes and threads. */
static void test_logits_do_not_depend_on_how_they_are_computed(void **state)
{
    (void)state;
    static const char *const names[] = {
        "llama-gqa",    "quant-a", "quant-c",    "quant-f", "quant-g",      "gemma3", "gemma2",
        "phi-longrope", "olmo2",   "gptneox",    "hunyuan", "smollm3",      "lfm2",   "mamba2",
        "qwen3moe",     "olmoe",   "granitemoe", "qwen35",  "granitehybrid"};
    const struct kern_ops *sets[8];
    size_t n_sets = kern_usable(sets, 8);
    for (size_t m = 0; m < sizeof(names) / sizeof(names[0]); m++) {
        float *want = NULL;
        int32_t ids[40];
        size_t bytes = 0;
        for (size_t s = 0; s < n_sets; s++)
            for (uint32_t threads = 1; threads <= 3; threads += 2) {
                struct decoder_rig r = {0};
                decoder_rig_open(&r, names[m], sets[s], threads);
                struct record rec = {.n_vocab = decoder_config(r.d)->n_vocab};
                for (int i = 0; i < 40; i++)
                    ids[i] = (int32_t)((uint32_t)(i * 7919 + 3) % rec.n_vocab);
                bytes = (size_t)rec.n_vocab * 40 * sizeof(float);
                for (uint32_t batch = 1; batch <= 40; batch = batch * 3 + 1) {
                    memset(r.kv, 0x2a, r.kv_bytes); /* no trace of the previous pass */
                    rec.logits = malloc(bytes);
                    decoder_rig_logits(&r, ids, 40, batch, record_row, &rec);
                    if (!want) {
                        want = rec.logits;
                    } else {
                        if (memcmp(want, rec.logits, bytes) != 0)
                            fail_msg("%s: %s, %u threads, batches of %u differ", names[m],
                                     sets[s]->name, threads, batch);
                        free(rec.logits);
                    }
                }
                decoder_rig_close(&r);
            }
        free(want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits_do_not_depend_on_how_they_are_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
