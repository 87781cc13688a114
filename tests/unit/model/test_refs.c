/* test_refs.c - logits against transformers and llama.cpp on a small random model of every
 * architecture and of every tensor type; see tests/data/refs/README.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/decoder_rig.h"
#include "support/ref_file.h"

static const struct model {
    const char *name;
    double bound;      /* relative error of logits, against the exact values */
    double peer_bound; /* the same against llama.cpp, which rounds at other points */
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
    {"quant-f", 3e-2, 3e-2, 0.99},       {"quant-g", 3e-2, 3e-2, 0.99},
    {"qwen2-yarn", 1e-3, 5e-3, 0.99},    {"phi-longrope", 1e-3, 5e-3, 0.99},
    {"smollm3", 1e-3, 5e-3, 0.99},       {"granite", 1e-3, 5e-3, 0.99},
    {"olmo2", 1e-3, 5e-3, 0.99},         {"exaone4", 1e-3, 5e-3, 0.99},
    {"ernie4_5", 1e-3, 1e-2, 0.99},      {"hunyuan", 1e-3, 1e-2, 0.99},
    {"gptneox", 1e-3, 5e-3, 0.99},       {"stablelm", 1e-3, 5e-3, 0.99},
    {"gemma2", 1e-3, 5e-3, 0.99},        {"lfm2", 1e-3, 5e-3, 0.99},
    {"mamba2", 1e-3, 5e-3, 0.99},        {"qwen3moe", 1e-3, 5e-3, 0.99},
    {"olmoe", 1e-3, 5e-3, 0.99},         {"granitemoe", 1e-3, 5e-3, 0.99},
    {"qwen35", 1e-3, 5e-3, 0.99},        {"granitehybrid", 1e-3, 5e-3, 0.99},
};
#define N_MODELS (sizeof(models) / sizeof(models[0]))

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
    struct decoder_rig r = {0};
    char path[512];
    snprintf(path, sizeof(path), "%s/refs/%s.ref", SHOAL_TEST_DATA, m->name);
    assert_int_equal(ref_open(&f, path), 0);
    decoder_rig_open(&r, m->name, NULL, 2);
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
    decoder_rig_logits(&r, ids, tokens->cols, DECODER_RIG_BATCH, compare_row, &exact);
    decoder_rig_logits(&r, ids, tokens->cols, 7, compare_row, &peer);
    decoder_rig_logits(&r, long_ids, lt->cols, DECODER_RIG_BATCH, compare_row, &top);
    double error = sqrt(exact.diff / exact.norm), peer_error = sqrt(peer.diff / peer.norm);
    double share = (double)top.same / (double)top.seen;
    printf("%-14s error %.2e, from llama.cpp %.2e, same best token at %.2f %% of %u positions\n",
           m->name, error, peer_error, 100 * share, top.seen);
    if (!(error < m->bound) || !(peer_error < m->peer_bound) || !(share >= m->top1))
        fail_msg("%s: bounds are %g, %g and %g", m->name, m->bound, m->peer_bound, m->top1);
    assert_true(exact.seen > 3 && peer.seen >= 3);
    free(ids);
    free(long_ids);
    decoder_rig_close(&r);
    ref_close(&f);
}

static void test_logits_match_the_references(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_MODELS; i++)
        check_model(&models[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits_match_the_references),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
