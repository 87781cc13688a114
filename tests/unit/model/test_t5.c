/* test_t5.c - T5, mT5, BART and Marian against transformers on small random models; see
 * tests/data/t5/README.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "format/model_open.h"
#include "model/t5.h"
#include "support/ref_file.h"

enum { MAX_SOURCES = 8, PAGES = 64, N_PAGES = 512 };

struct rig {
    struct model_file *g;
    struct t5 *t;
    uint8_t *kv;
    size_t kv_bytes;
    struct ref_file f;
    struct t5_source sources[MAX_SOURCES];
    uint32_t n_sources, pages[2][MAX_SOURCES][PAGES]; /* of sources and of targets */
    int32_t *tokens;
};

static void rig_open(struct rig *r, const char *name, const struct t5_opts *o)
{
    char path[512];
    struct err e = {0};
    memset(r, 0, sizeof(*r));
    snprintf(path, sizeof(path), "%s/t5/%s.ref", SHOAL_TEST_DATA, name);
    assert_int_equal(ref_open(&r->f, path), 0);
    snprintf(path, sizeof(path), "%s/t5/%s", SHOAL_TEST_DATA, name);
    if (model_open(&r->g, path, &e) < 0 || t5_create(&r->t, r->g, path, o, &e) < 0)
        fail_msg("%s: %s", name, e.msg);
    r->kv_bytes = t5_sizes(r->t).kv_page * N_PAGES;
    r->kv = mem_pages(r->kv_bytes);
    assert_non_null(r->kv);
    t5_set_kv(r->t, r->kv);
    const struct ref_array *lengths = ref_find(&r->f, "lengths"), *ids = ref_find(&r->f, "tokens");
    r->tokens = malloc(ids->cols * sizeof(*r->tokens));
    for (uint32_t i = 0; i < ids->cols; i++)
        r->tokens[i] = ref_int(ids, i);
    uint32_t at = 0, page = 0;
    for (uint32_t i = 0; i < lengths->cols; i++) {
        r->sources[i] =
            (struct t5_source){r->tokens + at, (uint32_t)ref_int(lengths, i), r->pages[0][i]};
        at += r->sources[i].n;
        for (uint32_t w = 0; w < 2; w++)
            for (uint32_t j = 0; j < 4; j++)
                r->pages[w][i][j] = page++ * 37 % N_PAGES; /* any order */
    }
    r->n_sources = lengths->cols;
}

static void rig_close(struct rig *r)
{
    t5_destroy(r->t);
    model_file_close(r->g);
    mem_pages_free(r->kv, r->kv_bytes);
    ref_close(&r->f);
    free(r->tokens);
}

struct error {
    double diff, norm;
};

static void compare(struct error *e, const float *got, const struct ref_array *want, size_t row)
{
    const float *w = (const float *)(const void *)want->data + row * want->cols;
    for (uint32_t i = 0; i < want->cols; i++) {
        double d = (double)got[i] - (double)w[i];
        e->diff += d * d;
        e->norm += (double)w[i] * (double)w[i];
    }
}

/* Everything that a model computes: encoder vectors, then logits of the targets, in the order of
 * the references. batch: sources at a time. */
static void compute(struct rig *r, uint32_t batch,
                    void (*row)(void *ctx, bool logits, size_t i, const float *v), void *ctx)
{
    const struct ref_array *targets = ref_find(&r->f, "targets");
    const uint32_t n_target = targets->cols / r->n_sources;
    size_t at = 0;
    for (uint32_t s = 0; s < r->n_sources; s += batch) {
        uint32_t n = r->n_sources - s < batch ? r->n_sources - s : batch;
        t5_encode(r->t, r->sources + s, n);
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < r->sources[s + i].n; j++)
                row(ctx, false, at++, t5_encoded(r->t, i, j));
        for (uint32_t pos = 0; pos < n_target; pos++) {
            struct t5_row rows[MAX_SOURCES];
            for (uint32_t i = 0; i < n; i++)
                rows[i] = (struct t5_row){ref_int(targets, (s + i) * n_target + pos),
                                          pos,
                                          r->pages[1][s + i],
                                          r->pages[0][s + i],
                                          r->sources[s + i].n,
                                          NULL};
            t5_decode(r->t, rows, n);
            for (uint32_t i = 0; i < n; i++)
                row(ctx, true, (size_t)(s + i) * n_target + pos, t5_logits(r->t, i));
        }
    }
}

struct check {
    const struct ref_array *encoded, *logits;
    struct error e[2];
};

static void check_row(void *ctx, bool logits, size_t i, const float *v)
{
    struct check *c = ctx;
    compare(&c->e[logits], v, logits ? c->logits : c->encoded, i);
}

static const struct {
    const char *name;
    struct t5_opts o;
    double encoded, logits; /* bounds of the relative error */
} models[] = {
    {"t5-relu", {.n_threads = 2}, 1e-5, 1e-3},
    {"t5-gated", {.n_threads = 2}, 1e-5, 1e-3},
    {"t5-relu", {.n_threads = 1, .int8 = true}, 3e-2, 5e-2},
    {"t5-gated", {.n_threads = 2, .kv_kind = KERN_KV_Q8}, 1e-5, 3e-2},
    {"mt5", {.n_threads = 2}, 1e-5, 1e-3},
    {"bart", {.n_threads = 2}, 1e-5, 1e-3},
    {"bart", {.n_threads = 1, .kv_kind = KERN_KV_Q8}, 1e-5, 3e-2},
    {"marian", {.n_threads = 2}, 1e-5, 1e-3},
};

static void test_encoder_and_logits_match_transformers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        struct rig r;
        rig_open(&r, models[i].name, &models[i].o);
        struct check c = {.encoded = ref_find(&r.f, "encoded"), .logits = ref_find(&r.f, "logits")};
        assert_int_equal(c.encoded->cols, t5_config(r.t)->dim);
        assert_int_equal(c.logits->cols, t5_config(r.t)->n_vocab);
        compute(&r, 1, check_row, &c);
        double e0 = sqrt(c.e[0].diff / c.e[0].norm), e1 = sqrt(c.e[1].diff / c.e[1].norm);
        printf("%-9s%s%s relative error: encoder %.2e, logits %.2e\n", models[i].name,
               models[i].o.int8 ? " int8" : "", models[i].o.kv_kind == KERN_KV_Q8 ? " kv q8" : "",
               e0, e1);
        if (!(e0 < models[i].encoded) || !(e1 < models[i].logits))
            fail_msg("%s: bounds are %g and %g", models[i].name, models[i].encoded,
                     models[i].logits);
        rig_close(&r);
    }
}

struct record {
    struct rig *r;
    float *v; /* all logits */
};

static void record_row(void *ctx, bool logits, size_t i, const float *v)
{
    struct record *c = ctx;
    const uint32_t n = t5_config(c->r->t)->n_vocab;
    if (logits)
        memcpy(c->v + i * n, v, n * sizeof(float));
}

/* The same bits over kernel sets, threads and batches. */
static void test_bits_do_not_depend_on_how_they_are_computed(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool int8;
    } cases[] = {{"t5-relu", false}, {"t5-relu", true}, {"t5-gated", false},
                 {"mt5", false},     {"bart", false},   {"marian", false}};
    const struct kern_ops *sets[8];
    size_t n_sets = kern_usable(sets, 8);
    for (size_t m = 0; m < sizeof(cases) / sizeof(cases[0]); m++) {
        float *want = NULL;
        for (size_t s = 0; s < n_sets; s++)
            for (uint32_t threads = 1; threads <= 3; threads++)
                for (uint32_t batch = 1; batch <= 6; batch = batch * 2 + 1) {
                    struct rig r;
                    struct t5_opts o = {.kernels = sets[s],
                                        .n_threads = threads,
                                        .max_tokens = 128,
                                        .int8 = cases[m].int8};
                    rig_open(&r, cases[m].name, &o);
                    const struct ref_array *logits = ref_find(&r.f, "logits");
                    size_t bytes = (size_t)logits->rows * logits->cols * sizeof(float);
                    struct record rec = {&r, malloc(bytes)};
                    compute(&r, batch, record_row, &rec);
                    if (!want) {
                        want = rec.v;
                    } else {
                        if (memcmp(want, rec.v, bytes) != 0)
                            fail_msg("%s: %s, %u threads, batches of %u differ", cases[m].name,
                                     sets[s]->name, threads, batch);
                        free(rec.v);
                    }
                    rig_close(&r);
                }
        free(want);
    }
}

static void test_buckets_are_the_references(void **state)
{
    (void)state;
    static const char *const names[] = {"t5-relu", "t5-gated"};
    for (size_t i = 0; i < 2; i++) {
        struct rig r;
        rig_open(&r, names[i], NULL);
        const struct t5_config *c = t5_config(r.t);
        const struct ref_array *enc = ref_find(&r.f, "buckets.enc");
        const struct ref_array *dec = ref_find(&r.f, "buckets.dec");
        for (int32_t d = -1000; d <= 1000; d++) {
            uint32_t both = t5_bucket(d, true, c->n_buckets, c->max_distance);
            uint32_t back = t5_bucket(d, false, c->n_buckets, c->max_distance);
            if (both != (uint32_t)ref_int(enc, (size_t)(d + 1000)) ||
                back != (uint32_t)ref_int(dec, (size_t)(d + 1000)))
                fail_msg("%s: distance %d is in buckets %u and %u, expected %d and %d", names[i], d,
                         both, back, ref_int(enc, (size_t)(d + 1000)),
                         ref_int(dec, (size_t)(d + 1000)));
        }
        rig_close(&r);
    }
}

static struct model_file *open_folder(const char *name, char path[512])
{
    struct model_file *g;
    struct err e = {0};
    snprintf(path, 512, "%s/t5/%s", SHOAL_TEST_DATA, name);
    if (model_open(&g, path, &e) < 0)
        fail_msg("%s", e.msg);
    return g;
}

struct lie { /* a number that is changed, and what is said about it */
    const char *key;
    uint32_t value;
    const char *expect;
};

static void expect_refused(const char *name, const struct lie *lie)
{
    char path[512];
    struct model_file *g = open_folder(name, path);
    struct t5 *t;
    struct err e = {0};
    const struct model_file_value *kv = model_file_find(g, lie->key);
    assert_non_null(kv);
    uint8_t bytes[4];
    memcpy(bytes, &lie->value, 4);
    g->values[kv - g->values].data = bytes;
    if (t5_create(&t, g, path, NULL, &e) == 0)
        fail_msg("%s = %u was believed", lie->key, lie->value);
    assert_null(t);
    if (!strstr(e.msg, lie->expect))
        fail_msg("%s = %u: \"%s\", expected \"%s\"", lie->key, lie->value, e.msg, lie->expect);
    model_file_close(g);
}

static void test_what_lies_is_refused(void **state)
{
    (void)state;
    static const struct lie lies[] = {
        {"t5.embedding_length", 128, "enc.blk.0.attn_norm.weight has 64 values, expected 128"},
        {"t5.embedding_length", 0, "t5.embedding_length is 0"},
        {"t5.embedding_length", 4000000000u, "t5.embedding_length is 4000000000"},
        {"t5.attention.head_count", 3, "enc.blk.0.attn_q.weight is 64 x 64, expected 48 x 64"},
        {"t5.attention.key_length", 32, "value heads of 16 dimensions and key heads of 32"},
        {"t5.attention.value_length", 8, "value heads of 8 dimensions and key heads of 16"},
        {"t5.feed_forward_length", 65, "enc.blk.0.ffn_up.weight is 64 x 64, expected 65 x 64"},
        {"t5.block_count", 3, "enc.blk.2.attn_norm.weight is missing"},
        {"t5.block_count", 1, "enc.blk.1."},
        {"t5.decoder_block_count", 1000, "dec.blk.1.attn_norm.weight is missing"},
        {"t5.attention.relative_buckets_count", 16, "has 32 buckets, expected 16"},
        {"t5.attention.relative_max_distance", 16,
         "32 buckets are too many for distances of up to 16"},
        {"t5.decoder_start_token_id", 128,
         "start_token_id is 128, but the vocabulary has 128 tokens"},
    };
    static const struct lie of_bart[] = {
        {"bart.embedding_length", 30, "30 values are not 4 heads"},
        {"bart.embedding_length", 64, "enc.blk.0.attn_output_norm.weight has 32 values"},
        {"bart.attention.head_count", 0, "bart.attention.head_count is 0"},
        {"bart.attention.head_count", 5, "32 values are not 5 heads"},
        {"bart.block_count", 2, "enc.blk.1.attn_output_norm.weight is missing"},
        {"bart.decoder_block_count", 1, "dec.blk.1."},
        {"bart.feed_forward_length", 49, "enc.blk.0.ffn_up.weight is 48 x 32, expected 49 x 32"},
        {"bart.context_length", 65, "enc.position_embd.weight has 64 positions, expected 65"},
        {"bart.decoder_start_token_id", 288, "is 288, but the vocabulary has 288 tokens"},
    };
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
        expect_refused("t5-relu", &lies[i]);
    for (size_t i = 0; i < sizeof(of_bart) / sizeof(of_bart[0]); i++)
        expect_refused("bart", &of_bart[i]);
}

/* Learned positions end where the file's do; sines and biases by distance do not. */
static void test_a_context_is_bounded_by_learned_positions(void **state)
{
    (void)state;
    static const char *const names[] = {"bart", "marian", "mt5"};
    const struct t5_opts longer = {.n_threads = 1, .n_ctx = 600};
    for (size_t i = 0; i < 3; i++) {
        char path[512];
        struct model_file *g = open_folder(names[i], path);
        struct t5 *t = NULL;
        struct err e = {0};
        if (i == 0) {
            assert_int_equal(t5_create(&t, g, path, &longer, &e), SHOAL_EINVAL);
            assert_non_null(strstr(e.msg, "600 tokens is longer than the 64 positions"));
        } else {
            assert_int_equal(t5_create(&t, g, path, &longer, &e), 0);
            assert_int_equal(t5_sizes(t).n_ctx, 600);
        }
        t5_destroy(t);
        model_file_close(g);
    }
}

static void create_without_memory(const char *name)
{
    char path[512];
    struct model_file *g = open_folder(name, path);
    struct t5 *t = NULL;
    uint64_t n = 0;
    for (int rc = -1; rc < 0; n++) {
        struct err e = {0};
        mem_fail_at(n + 1);
        rc = t5_create(&t, g, path, &(struct t5_opts){.n_threads = 2}, &e);
        mem_fail_at(0);
        if (rc < 0) {
            assert_int_equal(rc, SHOAL_ENOMEM);
            assert_null(t);
            assert_true(e.msg[0]);
        }
    }
    assert_true(n > 30); /* it failed often before it succeeded */
    t5_destroy(t);
    model_file_close(g);
}

static void test_create_without_memory(void **state)
{
    (void)state;
    create_without_memory("t5-gated");
    create_without_memory("bart");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encoder_and_logits_match_transformers),
        cmocka_unit_test(test_bits_do_not_depend_on_how_they_are_computed),
        cmocka_unit_test(test_buckets_are_the_references),
        cmocka_unit_test(test_what_lies_is_refused),
        cmocka_unit_test(test_a_context_is_bounded_by_learned_positions),
        cmocka_unit_test(test_create_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
