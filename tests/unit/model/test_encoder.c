/* test_encoder.c - encoders against transformers on a small random model of every architecture,
 * and against themselves: results must not depend on batching, threads or kernels; see
 * tests/data/encoders/README.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "model/encoder.h"
#include "format/model_open.h"
#include "support/ref_file.h"

static const char *const names[] = {
    "bert",           "bert-cls",    "bert-tag",        "bert-tanh",      "distilbert",
    "distilbert-cls", "roberta",     "roberta-cls",     "roberta-tag",    "xlmr-rank",
    "electra-rank",   "albert-rank", "mpnet",           "mpnet-rank",     "deberta-rank",
    "deberta-tag",    "modernbert",  "modernbert-rank", "modernbert-mean"};
#define N_NAMES (sizeof(names) / sizeof(names[0]))

enum { MAX_SEQS = 16 };

struct rig {
    struct ref_file f;
    struct model_file *g;
    struct encoder *d;
    int32_t *tokens;
    struct encoder_seq seqs[MAX_SEQS];
    uint32_t n_seqs, n_tokens;
};

static const struct ref_array *array(const struct rig *r, const char *name)
{
    const struct ref_array *a = ref_find(&r->f, name);
    assert_non_null(a);
    return a;
}

static void rig_open(struct rig *r, const char *name, const struct encoder_opts *o)
{
    char path[512];
    struct err e = {0};
    memset(r, 0, sizeof(*r));
    snprintf(path, sizeof(path), "%s/encoders/%s.ref", SHOAL_TEST_DATA, name);
    assert_int_equal(ref_open(&r->f, path), 0);
    snprintf(path, sizeof(path), "%s/encoders/%s", SHOAL_TEST_DATA, name);
    if (model_open(&r->g, path, &e) < 0 || encoder_create(&r->d, r->g, path, o, &e) < 0)
        fail_msg("%s: %s", name, e.msg);
    const struct ref_array *lengths = array(r, "lengths"), *tokens = array(r, "tokens");
    r->tokens = malloc(tokens->cols * sizeof(int32_t));
    for (uint32_t i = 0; i < tokens->cols; i++)
        r->tokens[i] = ref_int(tokens, i);
    r->n_seqs = lengths->cols;
    assert_true(r->n_seqs <= MAX_SEQS);
    for (uint32_t i = 0; i < r->n_seqs; i++) {
        uint32_t n = (uint32_t)ref_int(lengths, i);
        r->seqs[i] = (struct encoder_seq){.tokens = r->tokens + r->n_tokens,
                                          .types = array(r, "types")->data + r->n_tokens,
                                          .n = n};
        r->n_tokens += n;
    }
}

static void rig_close(struct rig *r)
{
    encoder_destroy(r->d);
    model_file_close(r->g);
    ref_close(&r->f);
    free(r->tokens);
}

struct error {
    double diff, norm;
};

static void compare(struct error *e, const float *got, const float *want, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        double d = (double)got[i] - (double)want[i];
        e->diff += d * d;
        e->norm += (double)want[i] * (double)want[i];
    }
}

/* Over the whole last layer. */
static double hidden_error(const struct rig *r)
{
    const struct ref_array *want = array(r, "hidden");
    uint32_t dim = encoder_config(r->d)->dim, at = 0;
    struct error e = {0, 0};
    assert_int_equal(want->cols, dim);
    for (uint32_t s = 0; s < r->n_seqs; s++)
        for (uint32_t t = 0; t < r->seqs[s].n; t++, at++)
            compare(&e, encoder_hidden(r->d, s, t),
                    (const float *)(const void *)want->data + (size_t)at * dim, dim);
    return sqrt(e.diff / e.norm);
}

static void test_hidden_states_match_transformers(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_NAMES; i++) {
        struct rig r;
        rig_open(&r, names[i], &(struct encoder_opts){.n_threads = 2});
        encoder_forward(r.d, r.seqs, r.n_seqs);
        double error = hidden_error(&r);
        printf("%-16s error %.2e\n", names[i], error);
        if (!(error < 1e-5)) /* 1e-3 is the target */
            fail_msg("%s: error %g", names[i], error);
        rig_close(&r);
    }
}

/* INT8 weights and activations of random models, which are hard to quantize. */
static void test_int8_is_near(void **state)
{
    (void)state;
    static const char *const some[] = {"bert", "distilbert"};
    for (size_t i = 0; i < 2; i++) {
        struct rig r;
        rig_open(&r, some[i], &(struct encoder_opts){.n_threads = 1, .int8 = true});
        encoder_forward(r.d, r.seqs, r.n_seqs);
        double error = hidden_error(&r);
        printf("%-16s error %.2e in INT8\n", some[i], error);
        assert_true(error < 3e-2);
        assert_true(error > 1e-4); /* it is INT8 */
        rig_close(&r);
    }
}

/* The result of every sequence, in order. */
static float *all_hidden(const struct rig *r, float *to)
{
    size_t dim = encoder_config(r->d)->dim;
    for (uint32_t s = 0; s < r->n_seqs; s++)
        to = (float *)memcpy(to, encoder_hidden(r->d, s, 0), r->seqs[s].n * dim * sizeof(float)) +
             r->seqs[s].n * dim;
    return to;
}

static void test_bits_do_not_depend_on_how_they_are_computed(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool int8;
    } cases[] = {{"bert", false},           {"bert", true},         {"distilbert", true},
                 {"roberta", false},        {"electra-rank", true}, {"albert-rank", false},
                 {"mpnet", false},          {"deberta-rank", true}, {"deberta-tag", false},
                 {"modernbert-rank", true}, {"modernbert", false}};
    const struct kern_ops *sets[8];
    size_t n_sets = kern_usable(sets, 8);
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        float *want = NULL;
        for (size_t s = 0; s < n_sets; s++)
            for (uint32_t threads = 1; threads <= 3; threads++) {
                struct rig r;
                rig_open(&r, cases[c].name,
                         &(struct encoder_opts){
                             .kernels = sets[s], .n_threads = threads, .int8 = cases[c].int8});
                size_t dim = encoder_config(r.d)->dim, bytes = r.n_tokens * dim * sizeof(float);
                float *got = malloc(bytes);
                encoder_forward(r.d, r.seqs, r.n_seqs);
                (void)all_hidden(&r, got);
                if (!want) {
                    want = malloc(bytes);
                    memcpy(want, got, bytes);
                }
                if (memcmp(got, want, bytes) != 0)
                    fail_msg("%s: %s with %u threads differs", cases[c].name, sets[s]->name,
                             threads);
                float *at = want; /* each alone */
                for (uint32_t i = 0; i < r.n_seqs; i++, at += r.seqs[i - 1].n * dim) {
                    encoder_forward(r.d, &r.seqs[i], 1);
                    if (memcmp(encoder_hidden(r.d, 0, 0), at, r.seqs[i].n * dim * sizeof(float)) !=
                        0)
                        fail_msg("%s: %s with %u threads: sequence %u alone differs", cases[c].name,
                                 sets[s]->name, threads, i);
                }
                free(got);
                rig_close(&r);
            }
        free(want);
    }
}

/* Many sequences of one token, an empty pass, one sequence that fills the batch. */
static void test_odd_batches(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, "bert", &(struct encoder_opts){.n_threads = 3, .max_tokens = 64, .max_seqs = 64});
    size_t dim = encoder_config(r.d)->dim;
    struct encoder_seq one[64];
    float *want = malloc(dim * sizeof(float));
    for (uint32_t i = 0; i < 64; i++)
        one[i] = (struct encoder_seq){.tokens = r.tokens + i % 8, .n = 1};
    encoder_forward(r.d, one + 5, 1);
    memcpy(want, encoder_hidden(r.d, 0, 0), dim * sizeof(float));
    encoder_forward(r.d, one, 64);
    assert_memory_equal(want, encoder_hidden(r.d, 5, 0), dim * sizeof(float));
    assert_memory_equal(want, encoder_hidden(r.d, 61, 0), dim * sizeof(float));
    assert_int_equal(encoder_seq_len(r.d, 63), 1);
    encoder_forward(r.d, NULL, 0);
    struct encoder_seq full = {.tokens = r.tokens, .n = 64};
    uint64_t calls = mem_calls();
    encoder_forward(r.d, &full, 1);
    assert_int_equal(mem_calls(), calls); /* a pass allocates nothing */
    free(want);
    rig_close(&r);
}

static void test_measure_and_limits(void **state)
{
    (void)state;
    struct rig r;
    struct err e = {0};
    struct encoder_sizes sizes;
    static const char *const others[] = {"albert-rank", "mpnet", "deberta-rank", "modernbert-rank"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        rig_open(&r, others[i], &(struct encoder_opts){.n_threads = 2});
        assert_int_equal(encoder_measure(&sizes, r.g, &(struct encoder_opts){.n_threads = 2}, &e),
                         0);
        assert_true(encoder_sizes(r.d).scratch == sizes.scratch);
        rig_close(&r);
    }
    struct encoder_opts o = {.n_threads = 3, .max_tokens = 40, .max_seqs = 5, .int8 = true};
    rig_open(&r, "bert-cls", &o);
    assert_int_equal(encoder_measure(&sizes, r.g, &o, &e), 0);
    struct encoder_sizes got = encoder_sizes(r.d);
    assert_true(got.weights == sizes.weights && got.scratch == sizes.scratch);
    assert_int_equal(sizes.n_ctx, 40);
    assert_int_equal(encoder_config(r.d)->n_ctx, 40);
    assert_int_equal(encoder_top_rows(r.d, ENCODER_TOP_CLS_OUTPUT), 3);
    assert_int_equal(encoder_top_rows(r.d, ENCODER_TOP_TAG_OUTPUT), 0);
    o.max_tokens = 1u << 30;
    assert_int_equal(encoder_measure(&sizes, r.g, &o, &e), SHOAL_EINVAL);
    rig_close(&r);
}

static void check_out_of_memory(const char *name)
{
    struct rig r;
    rig_open(&r, name, NULL);
    bool done = false;
    for (uint64_t n = 1; !done && n < 1000; n++) {
        struct encoder *d = NULL;
        struct err e = {0};
        mem_fail_at(n);
        int rc = encoder_create(&d, r.g, "", &(struct encoder_opts){.n_threads = 2}, &e);
        done = rc == 0 && mem_calls() > 0;
        mem_fail_at(0);
        if (rc < 0) {
            assert_int_equal(rc, SHOAL_ENOMEM);
            assert_null(d);
        }
        encoder_destroy(d);
    }
    assert_true(done);
    rig_close(&r);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    static const char *const some[] = {"bert-cls", "albert-rank", "mpnet", "deberta-rank",
                                       "modernbert-rank"};
    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
        check_out_of_memory(some[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hidden_states_match_transformers),
        cmocka_unit_test(test_int8_is_near),
        cmocka_unit_test(test_bits_do_not_depend_on_how_they_are_computed),
        cmocka_unit_test(test_odd_batches),
        cmocka_unit_test(test_measure_and_limits),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
