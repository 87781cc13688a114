/* test_heads.c - interpreting an encoder's last layer: against transformers on the models of
 * tests/data/encoders, on our own encoder, and on invalid descriptions. */
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "model/encoder.h"
#include "model/heads.h"
#include "format/model_open.h"
#include "support/ref_file.h"

struct rig {
    struct ref_file f;
    struct model_file *g;
    struct encoder *d;
    struct heads *h;
    int32_t *tokens;
    struct encoder_seq seqs[16];
    uint32_t n_seqs;
};

static void rig_open(struct rig *r, const char *name)
{
    char path[512];
    struct err e = {0};
    memset(r, 0, sizeof(*r));
    snprintf(path, sizeof(path), "%s/encoders/%s.ref", SHOAL_TEST_DATA, name);
    assert_int_equal(ref_open(&r->f, path), 0);
    snprintf(path, sizeof(path), "%s/encoders/%s", SHOAL_TEST_DATA, name);
    if (model_open(&r->g, path, &e) < 0 || encoder_create(&r->d, r->g, path, NULL, &e) < 0 ||
        heads_open(&r->h, r->g, r->d, &e) < 0)
        fail_msg("%s: %s", name, e.msg);
    const struct ref_array *lengths = ref_find(&r->f, "lengths");
    const struct ref_array *tokens = ref_find(&r->f, "tokens");
    const struct ref_array *types = ref_find(&r->f, "types");
    uint32_t at = 0;
    r->tokens = malloc(tokens->cols * sizeof(int32_t));
    for (uint32_t i = 0; i < tokens->cols; i++)
        r->tokens[i] = ref_int(tokens, i);
    for (r->n_seqs = 0; r->n_seqs < lengths->cols; r->n_seqs++) {
        uint32_t n = (uint32_t)ref_int(lengths, r->n_seqs);
        r->seqs[r->n_seqs] =
            (struct encoder_seq){.tokens = r->tokens + at, .types = types->data + at, .n = n};
        at += n;
    }
    encoder_forward(r->d, r->seqs, r->n_seqs);
}

static void rig_close(struct rig *r)
{
    heads_destroy(r->h);
    encoder_destroy(r->d);
    model_file_close(r->g);
    ref_close(&r->f);
    free(r->tokens);
}

static const float *row(const struct rig *r, const char *name, uint32_t i)
{
    const struct ref_array *a = ref_find(&r->f, name);
    assert_non_null(a);
    assert_true(i < a->rows);
    return (const float *)(const void *)a->data + (size_t)i * a->cols;
}

static void expect_near(const char *what, const float *got, const float *want, uint32_t n)
{
    double diff = 0, norm = 0;
    for (uint32_t i = 0; i < n; i++) {
        diff += pow((double)got[i] - (double)want[i], 2);
        norm += pow((double)want[i], 2);
    }
    if (!(sqrt(diff) <= 1e-5 * sqrt(norm) + 1e-7))
        fail_msg("%s: error %g", what, sqrt(diff / norm));
}

static void test_classes(void **state)
{
    (void)state;
    static const struct {
        const char *name, *labels[4];
        uint32_t n;
        bool multi;
    } cases[] = {
        {"bert-cls", {"no", "maybe", "yes"}, 3, false},
        {"distilbert-cls", {"toxic", "insult", "threat", "spam"}, 4, true},
        {"modernbert-mean", {"a", "b"}, 2, false}, /* classes of the mean of all tokens */
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct rig r;
        struct err e = {0};
        const struct heads_set *set;
        rig_open(&r, cases[c].name);
        assert_true(heads_has(r.h, HEADS_CLASSIFY) && !heads_has(r.h, HEADS_TAG));
        assert_false(heads_has(r.h, HEADS_RERANK) || heads_has(r.h, HEADS_EMBED));
        assert_int_equal(heads_find_set(r.h, HEADS_CLASSIFY, NULL, &set, &e), 0);
        assert_int_equal(set->count, cases[c].n);
        assert_int_equal(set->multi, cases[c].multi);
        for (uint32_t i = 0; i < set->count; i++)
            assert_string_equal(set->labels[i], cases[c].labels[i]);
        for (uint32_t s = 0; s < r.n_seqs; s++) {
            float logits[4], sum = 0;
            const float *want = row(&r, "logits", s);
            heads_class_logits(r.h, r.d, s, set, logits);
            expect_near(cases[c].name, logits, want, set->count);
            heads_probabilities(encoder_kernels(r.d), set, logits);
            uint32_t best = 0;
            for (uint32_t i = 0; i < set->count; i++) {
                double p = 1 / (1 + exp(-(double)want[i]));
                if (cases[c].multi)
                    assert_true(fabs(p - (double)logits[i]) < 1e-4);
                sum += logits[i];
                best = want[i] > want[best] ? i : best;
            }
            if (!cases[c].multi)
                assert_true(fabs((double)sum - 1) < 1e-5);
            assert_int_equal(heads_answer(set, logits).label, best);
        }
        assert_int_equal(heads_find_set(r.h, HEADS_CLASSIFY, "home", &set, &e), SHOAL_EINVAL);
        assert_int_equal(heads_find_set(r.h, HEADS_TAG, NULL, &set, &e), SHOAL_EINVAL);
        rig_close(&r);
    }
}

static void check_reranker(const char *name)
{
    struct rig r;
    rig_open(&r, name);
    assert_true(heads_has(r.h, HEADS_RERANK) && !heads_has(r.h, HEADS_CLASSIFY));
    for (uint32_t s = 0; s < r.n_seqs; s++) {
        float logit;
        const float *want = row(&r, "logits", s);
        heads_class_logits(r.h, r.d, s, NULL, &logit);
        expect_near(name, &logit, want, 1);
        assert_true(heads_relevance(r.h, logit, true) == logit);
        assert_true(fabs((double)heads_relevance(r.h, logit, false) -
                         1 / (1 + exp(-(double)*want))) < 1e-4);
    }
    rig_close(&r);
}

static void test_rerankers(void **state)
{
    (void)state;
    static const char *const names[] = {"roberta-cls",    "xlmr-rank",  "electra-rank",
                                        "albert-rank",    "mpnet-rank", "deberta-rank",
                                        "modernbert-rank"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        check_reranker(names[i]);
}

static void test_tag_logits(void **state)
{
    (void)state;
    static const char *const names[] = {"bert-tag", "roberta-tag"};
    for (size_t c = 0; c < 2; c++) {
        struct rig r;
        struct err e = {0};
        const struct heads_set *set;
        struct heads_work *w;
        struct heads_word words[64];
        rig_open(&r, names[c]);
        assert_int_equal(heads_find_set(r.h, HEADS_TAG, "", &set, &e), 0);
        assert_int_equal(heads_work_create(&w, r.h, 64, &e), 0);
        uint32_t at = 0;
        for (uint32_t s = 0; s < r.n_seqs; s++) {
            uint16_t tags[64];
            float scores[64];
            for (uint32_t i = 0; i < r.seqs[s].n; i++)
                words[i].token = i;
            heads_word_logits(r.h, r.d, s, set, words, r.seqs[s].n, w);
            for (uint32_t i = 0; i < r.seqs[s].n; i++)
                expect_near(names[c], heads_work_logits(w) + (size_t)i * set->count,
                            row(&r, "logits", at + i), set->count);
            heads_tags(encoder_kernels(r.d), set, r.seqs[s].n, w, tags, scores);
            for (uint32_t i = 0; i < r.seqs[s].n; i++) {
                const float *want = row(&r, "logits", at + i);
                uint32_t best = 0;
                for (uint32_t j = 0; j < set->count; j++)
                    best = want[j] > want[best] ? j : best;
                assert_int_equal(tags[i], best);
                assert_true(scores[i] > 0.199f && scores[i] <= 1.0f);
            }
            at += r.seqs[s].n;
        }
        heads_work_destroy(w);
        rig_close(&r);
    }
}

static struct heads *made(const char *config, const char *pooling, uint32_t dim, uint32_t classes,
                          uint32_t tags, int want)
{
    struct err e = {0};
    struct heads *h = NULL;
    const struct heads_source s = {.config = config,
                                   .n_config = config ? strlen(config) : 0,
                                   .pooling = pooling,
                                   .n_pooling = pooling ? strlen(pooling) : 0,
                                   .arch = "bert",
                                   .dim = dim,
                                   .n_classes = classes,
                                   .n_tags = tags,
                                   .has_pooler = true};
    int rc = heads_create(&h, &s, &e);
    if (rc != want)
        fail_msg("%d (%s), want %d: %s", rc, e.msg, want, config ? config : "no config");
    return h;
}

static void test_vectors(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        enum heads_pooling want;
    } modes[] = {
        {NULL, HEADS_POOLING_MEAN},
        {"{\"pooling_mode_cls_token\":true,\"pooling_mode_mean_tokens\":false}", HEADS_POOLING_CLS},
        {"{\"pooling_mode_max_tokens\":true}", HEADS_POOLING_MAX},
        {"{\"pooling_mode_mean_tokens\":true}", HEADS_POOLING_MEAN},
        {"{\"pooling_mode_lasttoken\":true}", HEADS_POOLING_LAST},
        {"{\"pooling_mode_weightedmean_tokens\":true}", HEADS_POOLING_WEIGHTED_MEAN},
        {"{\"pooling_mode\":\"cls\"}", HEADS_POOLING_CLS},
        {"{\"pooling_mode\":\"max\"}", HEADS_POOLING_MAX},
        {"{\"pooling_mode\":\"mean\"}", HEADS_POOLING_MEAN},
        {"{\"pooling_mode\":\"mean_sqrt_len_tokens\"}", HEADS_POOLING_MEAN_SQRT},
        {"{\"pooling_mode\":[\"lasttoken\"]}", HEADS_POOLING_LAST},
    };
    const float tokens[3][4] = {{1, 2, 3, 4}, {3, 2, 1, 0}, {-1, 5, -1, 2}};
    const float pooled[][4] = {
        [HEADS_POOLING_MEAN] = {1, 3, 1, 2},
        [HEADS_POOLING_CLS] = {1, 2, 3, 4},
        [HEADS_POOLING_MAX] = {3, 5, 3, 4},
        [HEADS_POOLING_LAST] = {-1, 5, -1, 2},
        [HEADS_POOLING_MEAN_SQRT] = {1.7320508f, 5.1961524f, 1.7320508f, 3.4641016f},
        [HEADS_POOLING_WEIGHTED_MEAN] = {4.0f / 6, 21.0f / 6, 2.0f / 6, 10.0f / 6}};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct heads *h = made("{}", modes[i].json, 4, 0, 0, 0);
        float v[4];
        assert_true(heads_has(h, HEADS_EMBED));
        assert_int_equal(heads_info(h)->n_poolings, 1);
        assert_int_equal(heads_info(h)->poolings[0], modes[i].want);
        heads_pool(&kern_scalar, modes[i].want, tokens[0], 3, 4, v);
        expect_near("pool", v, pooled[modes[i].want], 4);
        heads_destroy(h);
    }
    struct rig r;
    rig_open(&r, "bert");
    const uint32_t dim = encoder_config(r.d)->dim;
    float all[64], part[64], want[64], zero[64] = {0};
    for (uint32_t s = 0; s < r.n_seqs; s++) {
        double norm = 0;
        heads_vector(r.h, r.d, s, 0, all);
        heads_vector(r.h, r.d, s, 17, part); /* the first dimensions, normalized again */
        for (uint32_t i = 0; i < 17; i++)
            norm += (double)part[i] * (double)part[i];
        assert_true(fabs(norm - 1) < 1e-5);
        assert_true(fabs((double)(part[3] / part[7] - all[3] / all[7])) < 1e-3);
        for (uint32_t i = 0; i < dim; i++) {
            double sum = 0;
            for (uint32_t t = 0; t < r.seqs[s].n; t++)
                sum += (double)encoder_hidden(r.d, s, t)[i];
            want[i] = (float)(sum / r.seqs[s].n);
        }
        heads_normalize(&kern_scalar, want, dim);
        expect_near("mean vector", all, want, dim);
    }
    heads_normalize(&kern_scalar, zero, 64); /* zero stays zero */
    assert_true(zero[0] == 0.0f && zero[63] == 0.0f);
    rig_close(&r);
}

/* The pooler's vector, and the embed settings of our own config section. */
static void test_pooler_vectors(void **state)
{
    (void)state;
    struct rig r;
    struct err e = {0};
    rig_open(&r, "bert");
    const char *config = "{\"shoal\":{\"embed\":{\"pooling\":\"pooler\",\"dimensions\":48}}}";
    const struct heads_source s = {.config = config,
                                   .n_config = strlen(config),
                                   .arch = "bert",
                                   .dim = 64,
                                   .has_pooler = true};
    struct heads *h;
    float got[64], want[64];
    assert_int_equal(heads_create(&h, &s, &e), 0);
    for (uint32_t i = 0; i < r.n_seqs; i++) {
        heads_vector(h, r.d, i, 0, got);
        memcpy(want, row(&r, "pooled", i), sizeof(want));
        heads_normalize(&kern_scalar, want, 48);
        expect_near("pooler", got, want, 48);
    }
    heads_destroy(h);
    rig_close(&r);
}

static const char *const sets_json =
    "{\"shoal\":{\"intent\":{\"weight\":\"classifier.weight\",\"default\":\"b\",\"label_sets\":{"
    "\"a\":{\"first\":0,\"count\":2,\"temperature\":0.5,\"labels\":[\"x\",\"y\"]},"
    "\"b\":{\"first\":2,\"count\":3,\"temperature\":2,\"labels\":[\"p\",\"q\",\"oos\"],"
    "\"oos\":\"oos\",\"threshold\":0.6}}},"
    "\"entities\":{\"weight\":\"tagger.weight\",\"unit\":\"first piece of each whitespace word\","
    "\"label_sets\":{\"t\":{\"first\":1,\"count\":5,\"cased\":true,\"labels\":[\"O\",\"B-x\",\"I-"
    "x\",\"S-y\","
    "\"E-x\"]}}},\"embed\":{\"pooling\":\"mean\",\"dimensions\":8}}}";

static void test_label_sets(void **state)
{
    (void)state;
    struct heads *h = made(sets_json, NULL, 8, 5, 6, 0);
    struct err e = {0};
    const struct heads_set *s;
    assert_int_equal(heads_n_sets(h, HEADS_CLASSIFY), 2);
    assert_int_equal(heads_n_sets(h, HEADS_TAG), 1);
    assert_int_equal(heads_find_set(h, HEADS_CLASSIFY, NULL, &s, &e), 0);
    assert_string_equal(s->name, "b");
    assert_int_equal(s->first, 2);
    assert_int_equal(s->oos, 2);
    float p[3] = {2, 0, 0}; /* exp(1), 1, 1: the best is 0.576 */
    heads_probabilities(&kern_scalar, s, p);
    assert_true(fabs((double)p[0] - exp(1) / (exp(1) + 2)) < 1e-6);
    struct heads_answer a = heads_answer(s, p);
    assert_int_equal(a.label, 2);
    assert_true(fabs((double)a.confidence - (1 - (double)p[0])) < 1e-6);
    a = heads_answer(s, (const float[]){0.1f, 0.7f, 0.2f});
    assert_int_equal(a.label, 1);
    a = heads_answer(s, (const float[]){0.2f, 0.3f, 0.5f});
    assert_int_equal(a.label, 2);
    assert_true(a.confidence == 0.5f);
    assert_int_equal(heads_find_set(h, HEADS_CLASSIFY, "a", &s, &e), 0);
    assert_int_equal(s->oos, -1);
    assert_int_equal(heads_answer(s, (const float[]){0.1f, 0.2f}).label, 1);
    assert_int_equal(heads_find_set(h, HEADS_CLASSIFY, "c", &s, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "a, b"));
    heads_destroy(h);
}

static void test_wrong_descriptions(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "[]",
        "{\"shoal\"",
        "{\"shoal\":{\"i\":{\"label_sets\":[]}}}",
        "{\"shoal\":{\"i\":{\"label_sets\":{}}}}",
        "{\"shoal\":{\"i\":{\"label_sets\":{\"a\":{\"count\":5,\"labels\":[\"x\"]}}}}}",
        "{\"shoal\":{\"i\":{\"label_sets\":{\"a\":{\"count\":1,\"labels\":[]}}}}}",
        "{\"shoal\":{\"i\":{\"label_sets\":{\"a\":{\"count\":1,\"labels\":[7]}}}}}",
        "{\"shoal\":{\"i\":{\"label_sets\":{\"a\":{\"count\":1,\"labels\":[\"x\"],\"oos\":\"y\"}}}}"
        "}",
        "{\"shoal\":{\"i\":{\"label_sets\":{\"a\":{\"first\":2,\"count\":2,\"labels\":[\"x\",\"y\"]"
        "}}"
        "}}}",
        "{\"shoal\":{\"i\":{\"label_sets\":{\"a\":{\"first\":-1,\"count\":1,\"labels\":[\"x\"]}}}}"
        "}",
        "{\"shoal\":{\"i\":{\"label_sets\":{\"a\":{\"count\":1,\"temperature\":0,\"labels\":[\"x\"]"
        "}}"
        "}}}",
        "{\"shoal\":{\"i\":{\"weight\":\"tagger\",\"label_sets\":{\"a\":{\"count\":1,\"labels\":["
        "\"x\"]"
        ",\"transitions\":\"t\"}}}}}",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_null(made(wrong[i], NULL, 8, 3, 3, SHOAL_EFORMAT));
    struct heads *h = made(NULL, NULL, 8, 2, 0, 0); /* no labels given: numbered ones */
    assert_string_equal(heads_set(h, HEADS_CLASSIFY, 0)->labels[1], "LABEL_1");
    heads_destroy(h);
    for (uint64_t n = 1;; n++) {
        struct err e = {0};
        const struct heads_source s = {.config = sets_json,
                                       .n_config = strlen(sets_json),
                                       .dim = 8,
                                       .n_classes = 5,
                                       .n_tags = 6};
        mem_fail_at(n);
        int rc = heads_create(&h, &s, &e);
        mem_fail_at(0);
        if (rc == 0)
            break;
        assert_int_equal(rc, SHOAL_ENOMEM);
        assert_null(h);
    }
    heads_destroy(h);
}

/* Words from byte ranges of tokens; the first and last token were added. */
static void check_words(const struct heads *h, const char *text, const uint32_t (*ranges)[2],
                        uint32_t n, const char *want)
{
    uint32_t start[32] = {0}, end[32] = {0};
    struct heads_word words[32];
    char got[256] = "";
    for (uint32_t i = 0; i < n; i++) {
        start[i + 1] = ranges[i][0];
        end[i + 1] = ranges[i][1];
    }
    uint32_t m = heads_words(h, text, strlen(text), start, end, n + 2, words);
    for (uint32_t i = 0; i < m; i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%u:%.*s|", words[i].token,
                 (int)(words[i].end - words[i].start), text + words[i].start);
    assert_string_equal(got, want);
}

static void test_words(void **state)
{
    (void)state;
    struct heads *whole = made(sets_json, NULL, 8, 5, 6, 0);
    struct heads *plain = made("{}", NULL, 8, 0, 3, 0);
    const char *text = "Call Ana, re\xc3\xa9lu at 5pm!";
    const uint32_t ranges[][2] = {{0, 4},   {5, 8},   {8, 9},   {10, 12}, {12, 16},
                                  {17, 19}, {20, 21}, {21, 23}, {23, 24}};
    check_words(whole, text, ranges, 9, "1:Call|2:Ana,|4:re\xc3\xa9lu|6:at|7:5pm!|");
    check_words(plain, text, ranges, 9, "1:Call|2:Ana|3:,|4:re\xc3\xa9lu|6:at|7:5pm|9:!|");
    /* truncated: a part without a token is not a word */
    check_words(whole, text, ranges, 4, "1:Call|2:Ana,|4:re\xc3\xa9lu|");
    /* byte-level pieces carry their space; ideographs are words; a character in two tokens */
    const char *other = "in \xe6\x9d\xb1\xe4\xba\xac  \xf0\x9f\x8d\x8e";
    const uint32_t wide[][2] = {{0, 2}, {2, 6}, {6, 9}, {9, 15}, {11, 15}};
    check_words(plain, other, wide, 5, "1:in|2:\xe6\x9d\xb1|3:\xe4\xba\xac|4:\xf0\x9f\x8d\x8e|");
    check_words(whole, "  ", ranges, 1, "");
    heads_destroy(whole);
    heads_destroy(plain);
}

/* The capitals of a word are those of all its tokens; added tokens keep their type. */
static void test_cases(void **state)
{
    (void)state;
    struct heads *h = made(sets_json, NULL, 8, 5, 6, 0);
    const char *text = "Call ANA's \"Reno\" iPad 5pm \xc3\x89lu I";
    const uint32_t start[] = {0, 0, 5, 8, 9, 11, 12, 16, 18, 19, 23, 27, 32, 0};
    const uint32_t end[] = {0, 4, 8, 9, 10, 12, 16, 17, 19, 22, 26, 31, 33, 0};
    const uint8_t want[] = {7, 1, 2, 2, 2, 1, 1, 1, 2, 2, 0, 0, 1, 7};
    uint8_t types[14];
    struct heads_word words[14];
    memset(types, 7, sizeof(types));
    uint32_t n = heads_words(h, text, strlen(text), start, end, 14, words);
    assert_int_equal(n, 7);
    heads_cases(text, words, n, start, end, 14, types);
    assert_memory_equal(types, want, sizeof(want));
    assert_true(heads_set(h, HEADS_TAG, 0)->cased);
    assert_false(heads_set(h, HEADS_CLASSIFY, 0)->cased);
    heads_destroy(h);
}

static void test_spans(void **state)
{
    (void)state;
    static const char *const labels[] = {"O",   "B-x", "I-x", "B-y", "I-y",
                                         "S-x", "E-x", "z",   "L-x", "U-y"};
    const struct heads_set set = {.name = "", .count = 10, .labels = labels};
    struct heads *whole = made(sets_json, NULL, 8, 5, 6, 0);
    struct heads *plain = made("{}", NULL, 8, 0, 3, 0);
    static const struct {
        const char *why;
        uint16_t tags[5];
        const char *want;
    } cases[] = {
        {"nothing", {0, 0, 0, 0, 0}, ""},
        {"BIO", {1, 2, 0, 3, 4}, "x 0-10 0-8 w0+2;y 14-20 12-18 w3+2;"},
        {"B after B opens another", {1, 1, 0, 0, 0}, "x 0-4 0-3 w0+1;x 5-10 4-8 w1+1;"},
        {"an I alone opens", {0, 2, 4, 0, 0}, "x 5-10 4-8 w1+1;y 11-13 9-11 w2+1;"},
        {"BIOES", {1, 2, 6, 5, 0}, "x 0-13 0-11 w0+3;x 14-16 12-14 w3+1;"},
        {"an E ends", {6, 6, 0, 0, 0}, "x 0-4 0-3 w0+1;x 5-10 4-8 w1+1;"},
        {"BILOU", {1, 8, 9, 0, 0}, "x 0-10 0-8 w0+2;y 11-13 9-11 w2+1;"},
        {"plain tags run together", {7, 7, 0, 7, 0}, "z 0-10 0-8 w0+2;z 14-16 12-14 w3+1;"},
    };
    const char *text = "\xc3\xa9gz caf\xc3\xa9 cd ef g)."; /* words of 4, 5, 2, 2, 3 bytes */
    const struct heads_word w[] = {{1, 0, 4}, {2, 5, 10}, {4, 11, 13}, {5, 14, 16}, {6, 17, 20}};
    const float scores[5] = {0.5f, 1.0f, 1.0f, 1.0f, 1.0f};
    struct heads_span spans[5];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char got[256] = "";
        uint32_t n =
            heads_spans(plain, &set, text, strlen(text), w, 5, cases[i].tags, scores, spans);
        for (uint32_t j = 0; j < n; j++)
            snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s %u-%u %u-%u w%u+%u;",
                     spans[j].label, spans[j].start, spans[j].end, spans[j].start_char,
                     spans[j].end_char, spans[j].first_word, spans[j].n_words);
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("%s: %s, want %s", cases[i].why, got, cases[i].want);
    }
    /* words are separated by white space: closing punctuation is not part of the span */
    assert_int_equal(
        heads_spans(whole, &set, text, strlen(text), w, 5, cases[1].tags, scores, spans), 2);
    assert_int_equal(spans[1].end, 18);
    assert_int_equal(spans[1].end_char, 16);
    assert_true(spans[0].score == 0.75f);
    heads_destroy(whole);
    heads_destroy(plain);
}

/* All paths, one by one. */
static float path_score(const struct heads_set *s, const float *lp, const uint32_t *path,
                        uint32_t n)
{
    float sum = 0;
    for (uint32_t t = 0; t < n; t++)
        sum += lp[t * s->count + path[t]] +
               s->transitions[(t ? path[t - 1] : s->count) * s->count + path[t]];
    return sum;
}

static void test_viterbi_finds_the_best_path(void **state)
{
    (void)state;
    enum { N = 4, WORDS = 4 };
    static const char *const labels[N] = {"O", "B-x", "I-x", "I-y"};
    float transitions[(N + 1) * N], lp[WORDS * N];
    const struct heads_set set = {
        .name = "", .count = N, .labels = labels, .transitions = transitions};
    struct heads *h = made("{}", NULL, 8, 0, N, 0);
    struct heads_work *w;
    struct err e = {0};
    uint32_t seed = 1;
    assert_int_equal(heads_work_create(&w, h, WORDS, &e), 0);
    for (int round = 0; round < 50; round++) {
        uint16_t tags[WORDS];
        float scores[WORDS], best = -1e30f;
        for (uint32_t i = 0; i < (N + 1) * N; i++) {
            seed = seed * 1664525u + 1013904223u;
            transitions[i] = (seed >> 28) == 0 ? -10000.0f : (float)(seed >> 16 & 255) / 64.0f;
        }
        for (uint32_t i = 0; i < WORDS * N; i++) {
            seed = seed * 1664525u + 1013904223u;
            heads_work_logits(w)[i] = (float)(seed >> 16 & 255) / 64.0f;
        }
        heads_tags(&kern_scalar, &set, WORDS, w, tags, scores);
        memcpy(lp, heads_work_logits(w), sizeof(lp)); /* now log-probabilities */
        for (uint32_t all = 0; all < N * N * N * N; all++) {
            uint32_t path[WORDS] = {all % N, all / N % N, all / N / N % N, all / N / N / N};
            float score = path_score(&set, lp, path, WORDS);
            best = score > best ? score : best;
        }
        uint32_t got[WORDS] = {tags[0], tags[1], tags[2], tags[3]};
        assert_true(fabs((double)(path_score(&set, lp, got, WORDS) - best)) < 1e-4);
    }
    heads_work_destroy(w);
    heads_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_rerankers),
        cmocka_unit_test(test_tag_logits),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_pooler_vectors),
        cmocka_unit_test(test_label_sets),
        cmocka_unit_test(test_wrong_descriptions),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_viterbi_finds_the_best_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
