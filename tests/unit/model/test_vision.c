/* test_vision.c - encoders that read images, against transformers on small random models, and
 * against themselves: results must not depend on batching, threads or kernels; see
 * tests/data/vision/README.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stddef.h>

#include <cmocka.h>

#include "format/model_open.h"
#include "model/encoder.h"
#include "model/heads.h"
#include "support/ref_file.h"

static const char *const names[] = {"vit-cls", "vit"};
#define N_NAMES (sizeof(names) / sizeof(names[0]))
enum { MAX_IMAGES = 8 };

struct rig {
    struct ref_file f;
    struct model_file *g;
    struct encoder *d;
    struct heads *heads;
    struct encoder_seq seqs[MAX_IMAGES];
    uint32_t n, dim;
};

static void rig_open(struct rig *r, const char *name, const struct encoder_opts *o)
{
    char path[512];
    struct err e = {0};
    memset(r, 0, sizeof(*r));
    snprintf(path, sizeof(path), "%s/vision/%s.ref", SHOAL_TEST_DATA, name);
    assert_int_equal(ref_open(&r->f, path), 0);
    snprintf(path, sizeof(path), "%s/vision/%s", SHOAL_TEST_DATA, name);
    if (model_open(&r->g, path, &e) < 0 || encoder_create(&r->d, r->g, path, o, &e) < 0 ||
        heads_open(&r->heads, r->g, r->d, &e) < 0)
        fail_msg("%s: %s", name, e.msg);
    const struct ref_array *images = ref_find(&r->f, "images");
    const struct encoder_config *c = encoder_config(r->d);
    assert_true(encoder_sees(r->g));
    assert_int_equal(images->cols, c->picture.size * c->picture.size * 3);
    r->n = images->rows;
    r->dim = c->dim;
    assert_true(r->n <= MAX_IMAGES);
    for (uint32_t i = 0; i < r->n; i++)
        r->seqs[i] =
            (struct encoder_seq){.n = c->n_ctx, .image = images->data + (size_t)i * images->cols};
}

static void rig_close(struct rig *r)
{
    heads_destroy(r->heads);
    encoder_destroy(r->d);
    model_file_close(r->g);
    ref_close(&r->f);
}

static double error_of(const float *got, const float *want, size_t n)
{
    double diff = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        diff += ((double)got[i] - (double)want[i]) * ((double)got[i] - (double)want[i]);
        norm += (double)want[i] * (double)want[i];
    }
    return sqrt(diff / norm);
}

static const float *wanted(const struct rig *r, const char *name, uint32_t row)
{
    const struct ref_array *a = ref_find(&r->f, name);
    assert_non_null(a);
    return (const float *)(const void *)a->data + (size_t)row * a->cols;
}

static void test_results_match_transformers(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_NAMES; i++) {
        struct rig r;
        double worst = 0;
        rig_open(&r, names[i], &(struct encoder_opts){.n_threads = 2, .max_tokens = 200});
        const uint32_t n_ctx = encoder_config(r.d)->n_ctx;
        encoder_forward(r.d, r.seqs, r.n);
        for (uint32_t s = 0; s < r.n; s++)
            worst = fmax(worst, error_of(encoder_hidden(r.d, s, 0), wanted(&r, "hidden", s * n_ctx),
                                         (size_t)n_ctx * r.dim));
        printf("%-8s error %.2e\n", names[i], worst);
        assert_true(worst < 1e-5);
        rig_close(&r);
    }
}

static void test_classes_and_vectors(void **state)
{
    (void)state;
    struct rig r;
    float out[64], want[64];
    const struct heads_set *set;
    struct err e = {0};
    rig_open(&r, "vit-cls", &(struct encoder_opts){.n_threads = 1, .max_tokens = 200});
    assert_true(heads_has(r.heads, HEADS_CLASSIFY) && heads_has(r.heads, HEADS_EMBED));
    assert_int_equal(heads_find_set(r.heads, HEADS_CLASSIFY, NULL, &set, &e), 0);
    assert_int_equal(set->count, 5);
    assert_string_equal(set->labels[2], "ship");
    encoder_forward(r.d, r.seqs, r.n);
    for (uint32_t s = 0; s < r.n; s++) {
        heads_class_logits(r.heads, r.d, s, set, out);
        assert_true(error_of(out, wanted(&r, "logits", s), 5) < 1e-5);
        memcpy(want, encoder_hidden(r.d, s, 0), r.dim * sizeof(float)); /* the class token's */
        heads_normalize(&kern_scalar, want, r.dim);
        heads_vector(r.heads, r.d, s, 0, out);
        assert_true(error_of(out, want, r.dim) < 1e-6);
    }
    rig_close(&r);
    rig_open(&r, "vit", &(struct encoder_opts){.n_threads = 1, .max_tokens = 200});
    assert_true(!heads_has(r.heads, HEADS_CLASSIFY) && heads_has(r.heads, HEADS_EMBED));
    encoder_forward(r.d, r.seqs, r.n);
    for (uint32_t s = 0; s < r.n; s++) { /* the pooler's */
        memcpy(want, wanted(&r, "pooled", s), r.dim * sizeof(float));
        heads_normalize(&kern_scalar, want, r.dim);
        heads_vector(r.heads, r.d, s, 0, out);
        assert_true(error_of(out, want, r.dim) < 1e-5);
    }
    rig_close(&r);
}

static void test_int8_is_near(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, "vit-cls", &(struct encoder_opts){.n_threads = 1, .int8 = true});
    const size_t n = (size_t)encoder_config(r.d)->n_ctx * r.dim;
    encoder_forward(r.d, r.seqs, 2);
    const double error =
        error_of(encoder_hidden(r.d, 1, 0), wanted(&r, "hidden", encoder_config(r.d)->n_ctx), n);
    printf("vit-cls  error %.2e in INT8\n", error);
    assert_true(error > 1e-4 && error < 5e-2);
    rig_close(&r);
}

static void test_bits_do_not_depend_on_how_they_are_computed(void **state)
{
    (void)state;
    const struct kern_ops *sets[8];
    const size_t n_sets = kern_usable(sets, 8);
    for (size_t c = 0; c < 2 * N_NAMES; c++) {
        float *want = NULL;
        for (size_t s = 0; s < n_sets; s++)
            for (uint32_t threads = 1; threads <= 3; threads++) {
                struct rig r;
                rig_open(&r, names[c / 2],
                         &(struct encoder_opts){.kernels = sets[s],
                                                .n_threads = threads,
                                                .int8 = c % 2 != 0,
                                                .max_tokens = 200});
                const size_t each = (size_t)encoder_config(r.d)->n_ctx * r.dim * sizeof(float);
                encoder_forward(r.d, r.seqs, r.n);
                if (!want) {
                    want = malloc(each * r.n);
                    memcpy(want, encoder_hidden(r.d, 0, 0), each * r.n);
                }
                if (memcmp(encoder_hidden(r.d, 0, 0), want, each * r.n) != 0)
                    fail_msg("%s: %s with %u threads differs", names[c / 2], sets[s]->name,
                             threads);
                for (uint32_t i = 0; i < r.n; i++) { /* each alone */
                    encoder_forward(r.d, &r.seqs[i], 1);
                    if (memcmp(encoder_hidden(r.d, 0, 0), want + i * each / sizeof(float), each))
                        fail_msg("%s: %s with %u threads: image %u alone differs", names[c / 2],
                                 sets[s]->name, threads, i);
                }
                rig_close(&r);
            }
        free(want);
    }
}

/* ---- preprocessor_config.json ---------------------------------------------------------------- */

static void read_settings(struct rig *r, const char *text, struct err *e)
{
    char path[512];
    memset(r, 0, sizeof(*r));
    snprintf(path, sizeof(path), "%s/vision/vit-cls", SHOAL_TEST_DATA);
    assert_int_equal(model_open(&r->g, path, e), 0);
    for (size_t i = 0; i < r->g->n_values; i++) /* the metadata: the last of a name does not win */
        if (r->g->values[i].key.n == strlen("huggingface.preprocessor") &&
            memcmp(r->g->values[i].key.p, "huggingface.preprocessor", r->g->values[i].key.n) == 0) {
            r->g->values[i].data = (const uint8_t *)text;
            r->g->values[i].n_bytes = strlen(text);
        }
    (void)!encoder_create(&r->d, r->g, path, &(struct encoder_opts){.n_threads = 1}, e);
}

static void test_settings(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error; /* NULL: fine */
    } cases[] = {
        {"{}", NULL},
        {"{\"size\": 32}", NULL},
        {"{\"size\": {\"shortest_edge\": 40}, \"do_center_crop\": true, \"crop_size\": 32}", NULL},
        {"{\"size\": 40, \"do_center_crop\": true}", NULL},
        {"{\"size\": 31}", "31 pixels"},
        {"{\"size\": {\"height\": 32, \"width\": 30}}", "size is neither"},
        {"{\"size\": {\"shortest_edge\": 40}}", "no square"},
        {"{\"size\": {\"shortest_edge\": 30}, \"do_center_crop\": true}", "30 pixels"},
        {"{\"do_center_crop\": true, \"crop_size\": \"32\"}", "crop_size"},
        {"{\"do_resize\": false}", "do_resize"},
        {"{\"resample\": 0}", "resample 0"},
        {"{\"image_std\": [0.5, 0, 0.5]}", "image_std"},
        {"{\"image_mean\": [0.5, 0.5]}", "image_mean"},
        {"{\"rescale_factor\": 1e300}", "rescale_factor"},
        {"[]", "preprocessor_config.json"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig r;
        struct err e = {0};
        read_settings(&r, cases[i].text, &e);
        if ((r.d != NULL) != (cases[i].error == NULL) ||
            (cases[i].error && !strstr(e.msg, cases[i].error)))
            fail_msg("%s: %s", cases[i].text, e.msg);
        rig_close(&r);
    }
}

static void test_levels(void **state)
{
    (void)state;
    struct rig r;
    struct err e = {0};
    read_settings(&r,
                  "{\"image_mean\": [0.25, 0.5, 0.75], \"image_std\": 0.25, \"resample\": 3, "
                  "\"size\": {\"shortest_edge\": 48}, \"do_center_crop\": true}",
                  &e);
    const struct encoder_picture *p = &encoder_config(r.d)->picture;
    assert_true(p->filter == 3 && p->to == 48 && p->keeps_form && p->size == 32 && p->patch == 8);
    assert_true(fabsf(p->levels[0][255] - 3.0f) < 1e-5f && fabsf(p->levels[2][0] + 3.0f) < 1e-5f);
    rig_close(&r);
    read_settings(&r, "{\"do_normalize\": false, \"do_rescale\": false}", &e);
    assert_true(encoder_config(r.d)->picture.levels[1][200] == 200.0f);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results_match_transformers),
        cmocka_unit_test(test_classes_and_vectors),
        cmocka_unit_test(test_int8_is_near),
        cmocka_unit_test(test_bits_do_not_depend_on_how_they_are_computed),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_levels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
