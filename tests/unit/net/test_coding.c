/* test_coding.c - compressed messages: what is in them, how much may be, and what is damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"
#include "net/coding.h"

/* What Node's brotliCompressSync makes of the text and of the bomb below: the encoder is a library
 * that nothing else needs. */
static const uint8_t brotli_text[] = {0x1b, 0x33, 0x00, 0xf8, 0x8d, 0xd4, 0x62, 0xcd, 0x19, 0xee,
                                      0x04, 0xea, 0x9c, 0xb2, 0xa1, 0x7a, 0x56, 0x0d, 0x2e, 0xff,
                                      0x8e, 0x51, 0xf7, 0xd2, 0xe9, 0x6b, 0x46, 0x24, 0x09, 0x66,
                                      0x22, 0xd9, 0xc0, 0x03, 0x23, 0xfc, 0xaf, 0x59, 0xdf, 0x89,
                                      0xa0, 0x98, 0x3e, 0x78, 0x79, 0x0e, 0xa8, 0xba, 0x0a};
static const uint8_t brotli_bomb[] = {
    0xcb, 0xff, 0xff, 0x3f, 0xf8, 0x27, 0x00, 0xe2, 0xb1, 0x40, 0x20, 0xf7, 0xfe, 0x8f, 0xff, 0xff,
    0x7f, 0xf0, 0x4f, 0x00, 0xc4, 0x61, 0x11, 0x80, 0xee, 0xfd, 0x1f, 0xff, 0xff, 0xff, 0xe0, 0x9f,
    0x00, 0x88, 0xc3, 0x02, 0x00, 0xdd, 0xfb, 0x3f, 0xfe, 0xff, 0xff, 0xc1, 0x3f, 0x01, 0x10, 0x87,
    0x05, 0x00, 0xba, 0xf7, 0x7f, 0xfc, 0xff, 0xff, 0x83, 0x7f, 0x02, 0x20, 0x0e, 0x0b, 0x00, 0x74,
    0xef, 0xff, 0xf8, 0xff, 0xff, 0x07, 0xff, 0x04, 0x40, 0x1c, 0x16, 0x00, 0xe8, 0xde, 0xff, 0xf1,
    0xff, 0xff, 0x0f, 0xfe, 0x09, 0x80, 0x38, 0x2c, 0x00, 0xd0, 0xbd, 0xff, 0xcb, 0xff, 0xff, 0x3f,
    0xfc, 0x13, 0x00, 0x71, 0x58, 0x00, 0xa0, 0x7b, 0xff, 0x07};

static const enum coding codings[] = {CODING_GZIP, CODING_BROTLI, CODING_ZSTD};

/* Compresses n bytes; returns how many it takes. */
static size_t pack(enum coding c, uint8_t *out, size_t room, const void *p, size_t n)
{
    if (c == CODING_GZIP) {
        z_stream z = {.next_in = (Bytef *)(uintptr_t)p, .avail_in = (uInt)n};
        assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
        z.next_out = out;
        z.avail_out = (uInt)room;
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        deflateEnd(&z);
        return room - z.avail_out;
    }
    if (c == CODING_BROTLI) {
        const bool text = n < sizeof(brotli_text) * 4;
        const size_t k = text ? sizeof(brotli_text) : sizeof(brotli_bomb);
        assert_true(k <= room);
        memcpy(out, text ? brotli_text : brotli_bomb, k);
        return k;
    }
    const size_t k = ZSTD_compress(out, room, p, n, 3);
    assert_false(ZSTD_isError(k));
    return k;
}

static void test_names(void **state)
{
    (void)state;
    assert_int_equal(coding_of(NULL), CODING_NONE);
    assert_int_equal(coding_of("identity"), CODING_NONE);
    assert_int_equal(coding_of("GZip"), CODING_GZIP);
    assert_int_equal(coding_of("br"), CODING_BROTLI);
    assert_int_equal(coding_of("zstd"), CODING_ZSTD);
    assert_int_equal(coding_of("gzip, gzip"), CODING_UNKNOWN); /* bombs are nested like this */
    assert_int_equal(coding_of("deflate"), CODING_UNKNOWN);
}

static void test_round_trips_and_damage(void **state)
{
    static const char text[] = "{\"prompt\": \"to be or not to be, to be or not to be\"}";
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        uint8_t packed[512];
        struct buf out;
        const size_t n = pack(codings[i], packed, sizeof(packed) - 1, text, sizeof(text) - 1);
        buf_init(&out, 1 << 20);
        assert_int_equal(coding_decode(&out, codings[i], packed, n, sizeof(text)), 0);
        assert_int_equal(out.len, sizeof(text) - 1);
        assert_memory_equal(out.data, text, out.len);
        for (size_t k = 0; k < n; k++) { /* cut off anywhere */
            buf_clear(&out);
            assert_int_equal(coding_decode(&out, codings[i], packed, k, 1 << 20), SHOAL_EFORMAT);
        }
        packed[n] = 'x'; /* followed by something */
        buf_clear(&out);
        assert_int_equal(coding_decode(&out, codings[i], packed, n + 1, 1 << 20), SHOAL_EFORMAT);
        buf_clear(&out);
        assert_int_equal(coding_decode(&out, codings[i], packed, n, sizeof(text) - 2),
                         SHOAL_ELIMIT);
        buf_clear(&out);
        assert_int_equal(coding_decode(&out, codings[i], "plain text", 10, 1 << 20), SHOAL_EFORMAT);
        buf_fini(&out);
    }
}

/* 64 MiB of zeros in a few KiB: it stops at the limit, and keeps no more than that. */
static void test_bombs_are_refused(void **state)
{
    const size_t bomb = (size_t)64 << 20, max = 1 << 20;
    uint8_t *zeros = mem_zalloc(bomb), *packed = mem_alloc(1 << 20);
    (void)state;
    assert_true(zeros && packed);
    for (size_t i = 0; i < 3; i++) {
        struct buf out;
        const size_t n = pack(codings[i], packed, 1 << 20, zeros, bomb);
        assert_true(n < 200000);
        buf_init(&out, SIZE_MAX / 2);
        assert_int_equal(coding_decode(&out, codings[i], packed, n, max), SHOAL_ELIMIT);
        assert_true(out.len <= max);
        buf_clear(&out);
        assert_int_equal(coding_decode(&out, codings[i], packed, n, bomb), 0);
        assert_int_equal(out.len, bomb);
        buf_fini(&out);
    }
    mem_free(zeros);
    mem_free(packed);
}

/* A frame may ask for a window of 2 GiB before its first byte. */
static void test_large_windows_of_zstd_are_refused(void **state)
{
    static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00};
    struct buf out;
    (void)state;
    buf_init(&out, 1 << 20);
    assert_int_equal(coding_decode(&out, CODING_ZSTD, frame, sizeof(frame), 1 << 20),
                     SHOAL_EFORMAT);
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_round_trips_and_damage),
        cmocka_unit_test(test_bombs_are_refused),
        cmocka_unit_test(test_large_windows_of_zstd_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
