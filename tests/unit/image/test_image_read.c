/* test_image_read.c - every form of JPEG, PNG and WebP against Pillow, and what must be refused:
 * too large, cut off, damaged, of a form that is not read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "image/exif.h"
#include "image/image_read.h"
#include "image_files.h"
#include "support/ref_file.h"

static void must_refuse(const void *bytes, size_t n, int code, const char *says)
{
    struct image m;
    struct err e = {0};
    const int got = image_decode(&m, bytes, n, &e);
    if (got != code || m.rgb || !strstr(e.msg, says))
        fail_msg("%d instead of %d: %s", got, code, e.msg);
}

/* Upright files are compared byte by byte here; the others in test_image_fit. */
static void test_files_match_pillow(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_IMAGE_FILES; i++) {
        char path[512];
        struct image m;
        struct ref_file f;
        struct err e = {0};
        size_t n;
        uint8_t *bytes = image_file(image_files[i], &n);
        snprintf(path, sizeof(path), "%s/vision/images/%s.ref", SHOAL_TEST_DATA, image_files[i]);
        assert_int_equal(ref_open(&f, path), 0);
        if (image_decode(&m, bytes, n, &e) < 0)
            fail_msg("%s: %s", image_files[i], e.msg);
        const struct ref_array *want = ref_find(&f, "whole");
        if (m.orientation == 1) {
            assert_true(want->rows == m.height && want->cols == m.width * 3);
            for (size_t k = 0; k < (size_t)want->rows * want->cols; k++)
                if (abs(m.rgb[k] - want->data[k]) > 1) /* another version of the library */
                    fail_msg("%s: byte %zu is %u, expected %u", image_files[i], k, m.rgb[k],
                             want->data[k]);
        } else {
            assert_non_null(strstr(image_files[i], "turned"));
        }
        image_fini(&m);
        ref_close(&f);
        free(bytes);
    }
}

static void test_not_an_image(void **state)
{
    (void)state;
    size_t n;
    uint8_t *gif = image_file("old.gif", &n);
    must_refuse("", 0, SHOAL_EFORMAT, "empty");
    must_refuse("hello", 5, SHOAL_EFORMAT, "not a JPEG, PNG or WebP");
    must_refuse(gif, n, SHOAL_EFORMAT, "not a JPEG, PNG or WebP");
    must_refuse("\xff\xd8\xff", 3, SHOAL_EFORMAT, "JPEG image is damaged");
    must_refuse("\x89PNG\r\n\x1a\n", 8, SHOAL_EFORMAT, "PNG image is damaged");
    must_refuse("RIFF\4\0\0\0WEBP", 12, SHOAL_EFORMAT, "WebP image is damaged");
    must_refuse("", IMAGE_MAX_BYTES + 1, SHOAL_ELIMIT, "at most");
    free(gif);
}

static void test_forms_that_are_not_read(void **state)
{
    (void)state;
    static const struct {
        const char *name, *says;
        int code;
    } cases[] = {{"cmyk.jpg", "CMYK", SHOAL_EUNSUPPORTED},
                 {"moving.webp", "animated", SHOAL_EUNSUPPORTED},
                 {"huge.png", "30000 x 30000", SHOAL_ELIMIT}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t n;
        uint8_t *bytes = image_file(cases[i].name, &n);
        must_refuse(bytes, n, cases[i].code, cases[i].says);
        free(bytes);
    }
}

/* A file that ends early is refused wherever it ends, and so is one with changed bytes or else it
 * is an image: nothing is read beyond it (AddressSanitizer looks). */
static void test_cut_and_damaged(void **state)
{
    (void)state;
    static const char *const names[] = {"rgb.png", "passes.png", "steps.jpg", "lossy.webp"};
    for (size_t i = 0; i < 4; i++) {
        size_t n;
        uint8_t *bytes = image_file(names[i], &n);
        for (size_t cut = 0; cut + 16 < n; cut += 7) {
            struct image m;
            struct err e = {0};
            uint8_t *part = malloc(cut + 1);
            memcpy(part, bytes, cut);
            if (image_decode(&m, part, cut, &e) == 0 || !e.msg[0] || m.rgb)
                fail_msg("%s is read with %zu of %zu bytes", names[i], cut, n);
            memcpy(part, bytes, cut);
            free(part);
            bytes[cut] ^= 0x55;
            if (image_decode(&m, bytes, n, &e) == 0)
                image_fini(&m);
            bytes[cut] ^= 0x55;
        }
        free(bytes);
    }
}

static void test_exif(void **state)
{
    (void)state;
    static const uint8_t big[] = "MM\0*\0\0\0\10\0\1\1\22\0\3\0\0\0\1\0\6\0\0";
    static const uint8_t little[] = "Exif\0\0II*\0\10\0\0\0\1\0\22\1\3\0\1\0\0\0\3\0\0\0";
    uint8_t wrong[sizeof(little)];
    assert_int_equal(exif_orientation(big, sizeof(big) - 1), 6);
    assert_int_equal(exif_orientation(little, sizeof(little) - 1), 3);
    for (size_t n = 0; n < sizeof(little) - 5; n++)
        assert_int_equal(exif_orientation(little, n), 1);
    memcpy(wrong, little, sizeof(little));
    wrong[24] = 9; /* there are 8 */
    assert_int_equal(exif_orientation(wrong, sizeof(little) - 1), 1);
    memcpy(wrong, little, sizeof(little));
    wrong[13] = 0xff; /* far away */
    assert_int_equal(exif_orientation(wrong, sizeof(little) - 1), 1);
    assert_int_equal(exif_orientation_jpeg((const uint8_t *)"\xff\xd8\xff\xe1", 4), 1);
    assert_int_equal(
        exif_orientation_webp((const uint8_t *)"RIFF\0\0\0\0WEBPEXIF\xff\xff\xff\xff", 20), 1);
}

static void *decode_many(void *bytes_and_n)
{
    const uint8_t *const *given = bytes_and_n;
    const size_t n = (size_t)(given[1] - given[0]);
    for (int i = 0; i < 50; i++) {
        struct image m;
        struct err e = {0};
        if (image_decode(&m, given[0], n, &e) < 0)
            return bytes_and_n;
        image_fini(&m);
    }
    return NULL;
}

static void test_many_threads(void **state)
{
    (void)state;
    size_t n;
    uint8_t *bytes = image_file("photo.jpg", &n);
    const uint8_t *given[] = {bytes, bytes + n};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, decode_many, given), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files_match_pillow),
                                       cmocka_unit_test(test_not_an_image),
                                       cmocka_unit_test(test_forms_that_are_not_read),
                                       cmocka_unit_test(test_cut_and_damaged),
                                       cmocka_unit_test(test_exif),
                                       cmocka_unit_test(test_many_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
