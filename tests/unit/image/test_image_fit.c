/* test_image_fit.c - resizing, cropping and turning against Pillow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "image/image_fit.h"
#include "image_files.h"
#include "support/ref_file.h"

/* As FITS and LARGER of tools/make_vision_refs.py. */
static const struct {
    const char *name;
    struct image_fit fit;
} fits[] = {{"b", {14, 11, 14, 11, 0, RESAMPLE_BILINEAR}},
            {"c", {16, 16, 0, 0, 20, RESAMPLE_BICUBIC}},
            {"l", {50, 44, 50, 44, 0, RESAMPLE_LANCZOS}},
            {"w", {50, 11, 50, 11, 0, RESAMPLE_BICUBIC}},
            {"h", {31, 44, 31, 44, 0, RESAMPLE_BILINEAR}}};

static void test_sizes_match_pillow(void **state)
{
    (void)state;
    unsigned n_compared = 0;
    for (size_t i = 0; i < N_IMAGE_FILES; i++) {
        char path[512];
        struct ref_file f;
        size_t n;
        uint8_t *bytes = image_file(image_files[i], &n);
        snprintf(path, sizeof(path), "%s/vision/images/%s.ref", SHOAL_TEST_DATA, image_files[i]);
        assert_int_equal(ref_open(&f, path), 0);
        for (size_t k = 0; k < sizeof(fits) / sizeof(fits[0]); k++) {
            const struct ref_array *want = ref_find(&f, fits[k].name);
            const struct image_fit *fit = &fits[k].fit;
            uint8_t got[50 * 44 * 3];
            struct err e = {0};
            unsigned most = 0;
            if (!want)
                continue;
            assert_true(want->rows == fit->height && want->cols == fit->width * 3);
            if (image_fit(fit, got, bytes, n, &e) < 0)
                fail_msg("%s: %s", image_files[i], e.msg);
            for (size_t b = 0; b < (size_t)want->rows * want->cols; b++) {
                const unsigned away = (unsigned)abs(got[b] - want->data[b]);
                most = away > most ? away : most;
            }
            if (most > 1)
                fail_msg("%s, %s: a value differs by %u", image_files[i], fits[k].name, most);
            n_compared++;
        }
        ref_close(&f);
        free(bytes);
    }
    assert_int_equal(n_compared, 2 * N_IMAGE_FILES + 3);
}

static void test_narrow_images(void **state)
{
    (void)state;
    uint8_t in[3 * 300], out[3 * 300], tall[300 * 3];
    struct err e = {0};
    memset(in, 77, sizeof(in));
    /* one pixel becomes many, and many one */
    assert_int_equal(resample(out, 15, 20, in, 1, 1, RESAMPLE_BICUBIC, &e), 0);
    for (size_t i = 0; i < 900; i++)
        assert_int_equal(out[i], 77);
    assert_int_equal(resample(out, 1, 1, in, 300, 1, RESAMPLE_LANCZOS, &e), 0);
    assert_true(out[0] == 77 && out[1] == 77 && out[2] == 77);
    assert_int_equal(resample(tall, 1, 300, in, 300, 1, RESAMPLE_BILINEAR, &e), 0);
    for (size_t i = 0; i < sizeof(tall); i++)
        assert_int_equal(tall[i], 77);
}

static void test_memory_failures(void **state)
{
    (void)state;
    static const struct image_fit fit = {16, 16, 0, 0, 20, RESAMPLE_BICUBIC};
    size_t n;
    uint8_t *bytes = image_file("rgb.png", &n), out[16 * 16 * 3];
    unsigned failed = 0;
    for (uint64_t at = 1;; at++) {
        struct err e = {0};
        mem_fail_at(at);
        const int rc = image_fit(&fit, out, bytes, n, &e);
        mem_fail_at(0);
        if (rc == 0)
            break;
        assert_int_equal(rc, SHOAL_ENOMEM);
        failed++;
    }
    assert_true(failed >= 10);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes_match_pillow),
                                       cmocka_unit_test(test_narrow_images),
                                       cmocka_unit_test(test_memory_failures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
