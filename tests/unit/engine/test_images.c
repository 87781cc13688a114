/* test_images.c - images as tasks: classified and embedded as transformers does, alone and
 * together, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "shoal/shoal.h"
#include "support/ref_file.h"

struct file {
    uint8_t bytes[8192];
    size_t n;
};

static void read_file(struct file *f, const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/vision/images/%s", SHOAL_TEST_DATA, name);
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    f->n = fread(f->bytes, 1, sizeof(f->bytes), in);
    assert_true(f->n > 0 && f->n < sizeof(f->bytes));
    fclose(in);
}

static struct shoal_engine *open_engine(const char *folder)
{
    char path[512];
    struct shoal_engine *en;
    struct shoal_error e = {0};
    snprintf(path, sizeof(path), "%s/%s", SHOAL_TEST_DATA, folder);
    if (shoal_engine_open(&en, path,
                          &(struct shoal_engine_opts){.size = sizeof(struct shoal_engine_opts),
                                                      .n_threads = 2,
                                                      .cache_dir = ""},
                          &e) < 0)
        fail_msg("%s", e.msg);
    return en;
}

static struct shoal_infer_opts opts_of(enum shoal_kind kind, const struct file *f)
{
    return (struct shoal_infer_opts){.size = sizeof(struct shoal_infer_opts),
                                     .kind = kind,
                                     .image = f ? f->bytes : NULL,
                                     .image_bytes = f ? f->n : 0};
}

static struct shoal_task *submit(struct shoal_engine *en, const struct shoal_infer_opts *o)
{
    struct shoal_task *t;
    struct shoal_error e = {0};
    if (shoal_infer_submit(en, o, &t, &e) < 0)
        fail_msg("%s", e.msg);
    return t;
}

/* photo.jpg is the last image of both references. */
static const float *wanted(struct ref_file *f, const char *model, const char *array)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/vision/%s.ref", SHOAL_TEST_DATA, model);
    assert_int_equal(ref_open(f, path), 0);
    const struct ref_array *a = ref_find(f, array);
    assert_non_null(a);
    return (const float *)(const void *)a->data + (size_t)(a->rows - 1) * a->cols;
}

static void test_classes(void **state)
{
    (void)state;
    static const char *const labels[] = {"cat", "dog", "ship", "lamp", "tree"};
    struct shoal_engine *en = open_engine("vision/vit-cls");
    struct shoal_engine_info info = {.size = sizeof(info)};
    struct ref_file f;
    const float *logits = wanted(&f, "vit-cls", "logits");
    struct file photo;
    double sum = 0;
    assert_int_equal(shoal_engine_info(en, &info), 0);
    assert_true(info.images == 1 && info.kinds == (SHOAL_KIND_CLASSIFY | SHOAL_KIND_EMBED));
    assert_string_equal(info.arch, "vit");
    read_file(&photo, "photo.jpg");
    const struct shoal_infer_opts o = opts_of(SHOAL_KIND_CLASSIFY, &photo);
    struct shoal_task *t = submit(en, &o);
    memset(photo.bytes, 0, sizeof(photo.bytes)); /* it was decoded */
    assert_int_equal(shoal_task_wait(t), 0);
    const struct shoal_result *r = shoal_task_result(t);
    assert_int_equal(r->n_labels, 5);
    assert_int_equal(r->n_tokens, 17);
    for (int i = 0; i < 5; i++)
        sum += exp((double)logits[i]);
    for (uint32_t i = 0; i < 5; i++) {
        uint32_t at = 0;
        while (strcmp(r->labels[i].name, labels[at]) != 0)
            at++;
        /* another version of libjpeg-turbo may decode a little differently */
        assert_true(fabs((double)r->labels[i].score - exp((double)logits[at]) / sum) < 5e-3);
    }
    assert_string_equal(r->label, r->labels[0].name);
    shoal_task_free(t);
    shoal_engine_close(en);
    ref_close(&f);
}

static void test_vectors(void **state)
{
    (void)state;
    struct shoal_engine *en = open_engine("vision/vit");
    struct shoal_engine_info info = {.size = sizeof(info)};
    struct ref_file f;
    const float *pooled = wanted(&f, "vit", "pooled");
    struct file photo;
    double dot = 0, norm = 0;
    assert_int_equal(shoal_engine_info(en, &info), 0);
    assert_int_equal(info.kinds, SHOAL_KIND_EMBED);
    read_file(&photo, "photo.jpg");
    const struct shoal_infer_opts o = opts_of(SHOAL_KIND_EMBED, &photo);
    struct shoal_task *t = submit(en, &o);
    assert_int_equal(shoal_task_wait(t), 0);
    const struct shoal_result *r = shoal_task_result(t);
    assert_int_equal(r->n_dims, 40);
    for (uint32_t i = 0; i < 40; i++) {
        dot += (double)r->vector[i] * (double)pooled[i];
        norm += (double)pooled[i] * (double)pooled[i];
    }
    assert_true(dot / sqrt(norm) > 0.9995); /* r->vector has length 1 */
    shoal_task_free(t);
    shoal_engine_close(en);
    ref_close(&f);
}

/* Classified and embedded, several of them, in one batch: the bits of each alone. */
static void test_together_as_alone(void **state)
{
    (void)state;
    static const char *const names[] = {"photo.jpg", "rgb.png", "exact.webp", "turned6.jpg"};
    enum { N = 8 };
    struct shoal_engine *en = open_engine("vision/vit-cls");
    struct shoal_task *tasks[N];
    struct file files[4];
    float want[N][32];
    for (int i = 0; i < N; i++) {
        const enum shoal_kind kind = i % 2 ? SHOAL_KIND_EMBED : SHOAL_KIND_CLASSIFY;
        read_file(&files[i / 2], names[i / 2]);
        const struct shoal_infer_opts o = opts_of(kind, &files[i / 2]);
        struct shoal_task *t = submit(en, &o);
        assert_int_equal(shoal_task_wait(t), 0);
        const struct shoal_result *r = shoal_task_result(t);
        memset(want[i], 0, sizeof(want[i]));
        if (i % 2)
            memcpy(want[i], r->vector, sizeof(want[i]));
        else
            want[i][0] = r->confidence;
        shoal_task_free(t);
    }
    for (int i = 0; i < N; i++) {
        struct shoal_infer_opts o =
            opts_of(i % 2 ? SHOAL_KIND_EMBED : SHOAL_KIND_CLASSIFY, &files[i / 2]);
        o.held = true;
        tasks[i] = submit(en, &o);
    }
    shoal_engine_wake(en);
    for (int i = 0; i < N; i++) {
        assert_int_equal(shoal_task_wait(tasks[i]), 0);
        const struct shoal_result *r = shoal_task_result(tasks[i]);
        if (i % 2)
            assert_memory_equal(r->vector, want[i], sizeof(want[i]));
        else
            assert_true(r->confidence == want[i][0]);
        shoal_task_free(tasks[i]);
    }
    shoal_engine_close(en);
}

static void must_refuse(struct shoal_engine *en, const struct shoal_infer_opts *o, int code,
                        const char *says)
{
    struct shoal_task *t = (struct shoal_task *)en;
    struct shoal_error e = {0};
    const int rc = shoal_infer_submit(en, o, &t, &e);
    if (rc != code || t || !strstr(e.msg, says))
        fail_msg("%d instead of %d: %s", rc, code, e.msg);
}

static void test_what_cannot_be_is_refused(void **state)
{
    (void)state;
    struct shoal_engine *sees = open_engine("vision/vit-cls"),
                        *reads = open_engine("encoders/bert");
    struct file photo, bad;
    read_file(&photo, "photo.jpg");
    struct shoal_infer_opts o = opts_of(SHOAL_KIND_EMBED, &photo);
    must_refuse(reads, &o, SHOAL_EINVAL, "reads texts, not images");
    o.text = "a text";
    o.text_bytes = 6;
    must_refuse(sees, &o, SHOAL_EINVAL, "not both");
    o.image = NULL;
    must_refuse(sees, &o, SHOAL_EINVAL, "reads images, not texts");
    o = opts_of(SHOAL_KIND_TAG, &photo);
    must_refuse(sees, &o, SHOAL_EUNSUPPORTED, "");
    o = opts_of(SHOAL_KIND_CLASSIFY, &photo);
    o.image_bytes /= 2;
    must_refuse(sees, &o, SHOAL_EFORMAT, "damaged");
    o.image_bytes = 0;
    must_refuse(sees, &o, SHOAL_EFORMAT, "empty");
    o.image_bytes = photo.n;
    o.labels = "no such set";
    must_refuse(sees, &o, SHOAL_EINVAL, "unknown label set");
    read_file(&bad, "huge.png");
    o = opts_of(SHOAL_KIND_CLASSIFY, &bad);
    must_refuse(sees, &o, SHOAL_ELIMIT, "30000 x 30000");
    int32_t *tokens;
    size_t n;
    struct shoal_error e = {0};
    assert_int_equal(shoal_tokenize(sees, "a", 1, 0, &tokens, &n, &e), SHOAL_EUNSUPPORTED);
    shoal_engine_close(sees);
    shoal_engine_close(reads);
}

static void test_failed_allocations_leave_nothing(void **state)
{
    (void)state;
    struct shoal_engine *en = open_engine("vision/vit-cls");
    struct file photo;
    unsigned failed = 0;
    read_file(&photo, "rgb.png");
    const struct shoal_infer_opts o = opts_of(SHOAL_KIND_CLASSIFY, &photo);
    for (uint64_t at = 1;; at++) {
        struct shoal_task *t;
        struct shoal_error e = {0};
        mem_fail_at(at);
        const int rc = shoal_infer_submit(en, &o, &t, &e);
        mem_fail_at(0);
        if (rc == 0) {
            assert_int_equal(shoal_task_wait(t), 0);
            shoal_task_free(t);
            break;
        }
        assert_int_equal(rc, SHOAL_ENOMEM);
        assert_null(t);
        failed++;
    }
    assert_true(failed > 10);
    shoal_engine_close(en);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes), cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_together_as_alone), cmocka_unit_test(test_what_cannot_be_is_refused),
        cmocka_unit_test(test_failed_allocations_leave_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
