/* test_calibration.c - calibration against sums computed by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cmd/cli/opts.h"
#include "cmd/cmd.h"
#include "cmd/local/bare_model.h"
#include "eval/calibration.h"

#define MODEL SHOAL_TEST_DATA "/refs/qwen3.gguf"

static const struct opts_page page = {.command = "test", .summary = "For tests."};

struct by_hand {
    double sum[64];
    uint64_t n;
};

static void add_by_hand(void *ctx, const char *tensor, const float *x, uint32_t n_cols)
{
    struct by_hand *h = ctx;
    if (strcmp(tensor, "blk.1.ffn_up.weight") != 0)
        return;
    assert_int_equal(n_cols, 64);
    for (uint32_t i = 0; i < n_cols; i++)
        h->sum[i] += (double)x[i] * (double)x[i];
    h->n++;
}

static void test_calibration_is_the_mean_square_of_the_input(void **state)
{
    (void)state;
    static const char text[] = "was the guess that the water was he a the was as the waters were";
    struct bare_model m;
    struct bare_model_opts mo = {.path = MODEL,
                                 .no_cache = true,
                                 .n_ctx = 256,
                                 .max_batch = 16,
                                 .max_logits = 4,
                                 .interrupt_fd = -1};
    struct calibration *c = NULL;
    struct calibration_opts co = {0};
    struct by_hand h = {0};
    struct tok_ids ids;
    struct err e = {0};
    assert_int_equal(bare_model_open(&m, &page, &mo), CMD_OK);
    assert_int_equal(calibration_run(&c, m.d, m.file, m.t, text, sizeof(text) - 1, &co, &e), 0);
    const float *means = calibration_importance(c, "blk.1.ffn_up.weight", 64);
    assert_non_null(means);
    assert_null(calibration_importance(c, "blk.1.ffn_up.weight", 65));
    assert_null(calibration_importance(c, "blk.9.ffn_up.weight", 64));
    assert_null(calibration_importance(c, "blk.0.attn_norm.weight", 64));
    /* the embedding is the output matrix in a model without one */
    bool tied = !model_file_find_tensor(m.file, "output.weight");
    assert_non_null(calibration_importance(c, tied ? "token_embd.weight" : "output.weight", 64));

    tok_ids_init(&ids, 1000);
    assert_int_equal(tokenizer_encode(m.t, &ids, text, sizeof(text) - 1, TOKENIZER_ADD_SPECIAL, &e),
                     0);
    assert_int_equal(calibration_n_tokens(c), ids.n);
    decoder_watch(m.d, add_by_hand, &h);
    for (size_t at = 0; at < ids.n; at++) {
        struct decoder_run run = {
            .tokens = ids.ids + at, .n = 1, .pos0 = (uint32_t)at, .pages = bare_model_pages(&m, 0)};
        decoder_forward(m.d, &run, 1);
    }
    assert_int_equal(h.n, ids.n);
    for (size_t i = 0; i < 64; i++) {
        double want = h.sum[i] / (double)h.n;
        assert_true(means[i] > 0 && (double)means[i] > want * 0.999 &&
                    (double)means[i] < want * 1.001);
    }
    struct calibration *none = NULL;
    assert_int_equal(calibration_run(&none, m.d, m.file, m.t, "a", 1, &co, &e), SHOAL_EINVAL);
    assert_null(none);
    tok_ids_fini(&ids);
    calibration_destroy(c);
    bare_model_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calibration_is_the_mean_square_of_the_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
