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

static const struct opts_page page = {.command = "test", .summary = "For tests."};

struct by_hand {
    const char *tensor;
    uint32_t n_cols;
    double sum[256];
    uint64_t n;
};

static void add_by_hand(void *ctx, const char *tensor, const float *x, uint32_t n_cols)
{
    struct by_hand *h = ctx;
    if (strcmp(tensor, h->tensor) != 0)
        return;
    assert_int_equal(n_cols, h->n_cols);
    for (uint32_t i = 0; i < n_cols; i++)
        h->sum[i] += (double)x[i] * (double)x[i];
    h->n++;
}

static void open_bare(struct bare_model *m, const char *path)
{
    struct bare_model_opts o = {.path = path,
                                .no_cache = true,
                                .n_ctx = 256,
                                .max_batch = 16,
                                .max_logits = 4,
                                .interrupt_fd = -1};
    assert_int_equal(bare_model_open(m, &page, &o), CMD_OK);
}

static const char text[] = "was the guess that the water was he a the was as the waters were";

static uint64_t columns(const struct bare_model *m, const char *tensor)
{
    const struct model_file_tensor *t = model_file_find_tensor(m->file, tensor);
    assert_true(t && t->dims[0] <= 256);
    return t->dims[0];
}

/* The importance of a tensor is the mean square of the inputs that the decoder reports for it. */
static void compare(struct bare_model *m, struct calibration *c, const char *tensor)
{
    struct by_hand h = {.tensor = tensor, .n_cols = (uint32_t)columns(m, tensor)};
    const float *means = calibration_importance(c, tensor, h.n_cols);
    struct tok_ids ids;
    struct err e = {0};
    assert_non_null(means);
    tok_ids_init(&ids, 1000);
    assert_int_equal(
        tokenizer_encode(m->t, &ids, text, sizeof(text) - 1, TOKENIZER_ADD_SPECIAL, &e), 0);
    assert_int_equal(calibration_n_tokens(c), ids.n);
    decoder_watch(m->d, add_by_hand, &h);
    for (size_t at = 0; at < ids.n; at += 16) { /* logits of the last four tokens of a batch */
        uint32_t n = ids.n - at < 16 ? (uint32_t)(ids.n - at) : 16;
        struct decoder_run run = {.tokens = ids.ids + at,
                                  .n = n,
                                  .pos0 = (uint32_t)at,
                                  .pages = bare_model_pages(m, 0),
                                  .n_logits_last = n < 4 ? n : 4};
        decoder_forward(m->d, &run, 1);
    }
    decoder_watch(m->d, NULL, NULL);
    assert_true(h.n > 0);
    for (size_t i = 0; i < h.n_cols; i++) {
        double want = h.sum[i] / (double)h.n;
        assert_true(means[i] > 0 && (double)means[i] > want * 0.999 &&
                    (double)means[i] < want * 1.001);
    }
    tok_ids_fini(&ids);
}

static void test_calibration_is_the_mean_square_of_the_input(void **state)
{
    struct bare_model m;
    struct calibration *c = NULL, *none = NULL;
    struct calibration_opts co = {0};
    struct err e = {0};
    (void)state;
    open_bare(&m, SHOAL_TEST_DATA "/refs/qwen3.gguf");
    assert_int_equal(calibration_run(&c, m.d, m.file, m.t, text, sizeof(text) - 1, &co, &e), 0);
    compare(&m, c, "blk.1.ffn_up.weight");
    assert_null(calibration_importance(c, "blk.1.ffn_up.weight", 65));
    assert_null(calibration_importance(c, "blk.9.ffn_up.weight", 64));
    assert_null(calibration_importance(c, "blk.0.attn_norm.weight", 64));
    assert_int_equal(calibration_run(&none, m.d, m.file, m.t, "a", 1, &co, &e), SHOAL_EINVAL);
    assert_null(none);
    calibration_destroy(c);
    bare_model_close(&m);
}

/* The embedding is a product's matrix only where it is the output, too; rows that are looked up
 * have no input. */
static void test_a_tied_output_counts_for_the_embedding(void **state)
{
    static const struct {
        const char *path, *output, *other;
    } rows[] = {
        {SHOAL_TEST_DATA "/refs/qwen3.gguf", "token_embd.weight", "output.weight"},
        {SHOAL_TEST_DATA "/refs/llama-gqa.gguf", "output.weight", "token_embd.weight"},
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct bare_model m;
        struct calibration *c = NULL;
        struct calibration_opts co = {0};
        struct err e = {0};
        open_bare(&m, rows[i].path);
        assert_int_equal(calibration_run(&c, m.d, m.file, m.t, text, sizeof(text) - 1, &co, &e), 0);
        compare(&m, c, rows[i].output);
        assert_null(calibration_importance(c, rows[i].other, columns(&m, rows[i].output)));
        calibration_destroy(c);
        bare_model_close(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calibration_is_the_mean_square_of_the_input),
        cmocka_unit_test(test_a_tied_output_counts_for_the_embedding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
