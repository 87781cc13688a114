/* test_base.c - errors, memory, buffers, readers, maps and the JSON writer. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/rd.h"
#include "base/strmap.h"
#include "wire/json_out.h"

static void test_err_wraps_context_in_front(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(err_set(&e, SHOAL_EIO, "cannot read %s", "x"), SHOAL_EIO);
    assert_int_equal(err_wrap(&e, "model %d", 3), SHOAL_EIO);
    assert_string_equal(e.msg, "model 3: cannot read x");
    assert_string_equal(err_name(SHOAL_EIO), "IO");
    assert_string_equal(err_text(SHOAL_ELIMIT), "limit exceeded");
}

static void test_buf_stops_at_its_limit(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 10);
    buf_puts(&b, "12345");
    buf_printf(&b, "%d", 67890);
    assert_int_equal(b.rc, 0);
    assert_string_equal(buf_str(&b), "1234567890");
    buf_putc(&b, 'x');
    assert_int_equal(b.rc, SHOAL_ELIMIT);
    assert_int_equal(b.len, 10);
    assert_null(buf_take(&b, NULL));
    buf_fini(&b);
}

static void test_buf_reports_failed_allocation(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 1000);
    mem_fail_at(1);
    buf_puts(&b, "x");
    assert_int_equal(b.rc, SHOAL_ENOMEM);
    buf_clear(&b);
    buf_puts(&b, "x");
    assert_string_equal(buf_str(&b), "x");
    buf_fini(&b);
}

static void test_rd_is_sticky_at_the_end(void **state)
{
    (void)state;
    const uint8_t bytes[] = {1, 0, 0, 0, 7};
    struct rd r = rd_make(bytes, sizeof(bytes));
    assert_int_equal(rd_u32(&r), 1);
    assert_int_equal(rd_u16(&r), 0);
    assert_true(r.bad);
    assert_int_equal(rd_u8(&r), 0);
    struct rd huge = rd_make(bytes, sizeof(bytes));
    assert_null(rd_take(&huge, UINT64_MAX));
}

static void test_strmap_grows_and_keeps_the_first(void **state)
{
    (void)state;
    static char keys[1000][8];
    struct strmap m;
    assert_int_equal(strmap_init(&m, 1), 0);
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(keys[i], sizeof(keys[i]), "k%u", i);
        assert_int_equal(strmap_put(&m, keys[i], strlen(keys[i]), i), 0);
    }
    assert_int_equal(strmap_put(&m, "k7", 2, 99), 1);
    uint32_t v = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(strmap_get(&m, keys[i], strlen(keys[i]), &v));
        assert_int_equal(v, i);
    }
    assert_false(strmap_get(&m, "k1000", 5, &v));
    strmap_fini(&m);
}

/* Each byte at each place of short and long strings: words of eight are looked at together. */
/* Files in the cache folder are named and checked by hashes: a value must never change. */
static void test_hash_of_any_length_stays(void **state)
{
    uint8_t bytes[40];
    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(0xf1 * (i + 3));
    for (size_t n = 0; n <= sizeof(bytes); n++) {
        uint64_t want = hash_mix(7 ^ (0x9e3779b97f4a7c15u * (n + 1)));
        for (size_t at = 0; at <= n; at += 8) {
            uint64_t word = 0;
            for (size_t k = 0; k < 8 && at + k < n; k++)
                word |= (uint64_t)bytes[at + k] << (8 * k);
            want =
                at + 8 <= n ? hash_mix(want ^ word) + 0x9e3779b97f4a7c15u : hash_mix(want ^ word);
        }
        /* a copy that ends where the bytes do: a sanitizer sees every read beyond */
        uint8_t *copy = malloc(n + !n);
        assert_non_null(copy);
        memcpy(copy, bytes, n);
        assert_true(hash_bytes(copy, n, 7) == want);
        free(copy);
    }
    assert_true(hash_bytes("abc", 3, 0) == 0x9093faa279ea4c14u);
}

static void test_json_out_escapes_every_byte(void **state)
{
    char text[24], want[64];
    struct buf b;
    (void)state;
    buf_init(&b, 4096);
    for (size_t n = 1; n <= sizeof(text); n++)
        for (size_t at = 0; at < n; at++)
            for (int c = 0; c < 256; c++) {
                char one[8] = {(char)c};
                memset(text, 'a', n);
                text[at] = (char)c;
                if (c == '"' || c == '\\')
                    snprintf(one, sizeof(one), "\\%c", c);
                else if (c == '\n' || c == '\t' || c == '\r')
                    snprintf(one, sizeof(one), "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
                else if (c < 0x20 || c == 0x7f)
                    snprintf(one, sizeof(one), "\\u%04x", c);
                else if (c >= 0x80)
                    snprintf(one, sizeof(one), "\xef\xbf\xbd");
                snprintf(want, sizeof(want), "\"%.*s%s%.*s\"", (int)at, "aaaaaaaaaaaaaaaaaaaaaaaa",
                         one, (int)(n - at - 1), "aaaaaaaaaaaaaaaaaaaaaaaa");
                buf_clear(&b);
                struct json_out j = json_out_make(&b);
                json_out_strn(&j, text, n);
                assert_string_equal(buf_str(&b), want);
            }
    buf_fini(&b);
}

/* Every number is read back as it was, in as few digits as %g needs for that. */
static void test_json_out_numbers_read_back(void **state)
{
    static const double edges[] = {0.0,     -0.0,    1.0,  -2.5,  0.1,    0.3,      1e-4,
                                   9.9e-5,  1e9,     1e15, 1e16,  1e22,   1e23,     5e-324,
                                   1.7e308, 1.0 / 3, 1e-7, 123.0, 999999, 99999.95, 0.00012345};
    uint64_t x = 88172645463325252u;
    struct buf b;
    (void)state;
    buf_init(&b, 4096);
    for (int i = 0; i < 40000; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        double scale = (double)((x >> 20) % 1000000007u) / 1e5;
        double v = i < 21       ? edges[i]
                   : i % 4 == 0 ? scale / 1e4
                   : i % 4 == 1 ? -scale / 3.0
                   : i % 4 == 2 ? (double)(int64_t)x / 1e20
                                : round(scale * 100) / 100;
        struct json_out j = json_out_make(&b);
        char want[320];
        int digits = 1;
        do
            snprintf(want, sizeof(want), "%.*g", digits++, v);
        while (strtod(want, NULL) != v);
        buf_clear(&b);
        json_out_num(&j, v);
        if (strtod(buf_str(&b), NULL) != v || (!strchr(want, 'e') && strcmp(want, b.data) != 0))
            fail_msg("%.17g: %s, expected %s", v, buf_str(&b), want);
        float f = (float)v;
        digits = 1;
        do
            snprintf(want, sizeof(want), "%.*g", digits++, (double)f);
        while (strtof(want, NULL) != f);
        buf_clear(&b);
        j = json_out_make(&b);
        json_out_float(&j, f);
        if (isfinite(f) && (strtof(buf_str(&b), NULL) != f || strlen(b.data) > strlen(want) + 6))
            fail_msg("%.9g: %s, expected %s", (double)f, buf_str(&b), want);
    }
    buf_fini(&b);
}

static void test_json_out_escapes_and_separates(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 1000);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    json_out_key(&j, "a\"b");
    json_out_strn(&j, "x\n\xff\xc3\xa9\x01", 6);
    json_out_key(&j, "n");
    json_out_array(&j);
    json_out_int(&j, -3);
    json_out_num(&j, 0.1);
    json_out_float(&j, 0.1f);
    json_out_num(&j, 1.0 / 0.0);
    json_out_bool(&j, true);
    json_out_array_end(&j);
    json_out_key(&j, "z");
    json_out_null(&j);
    json_out_object_end(&j);
    assert_string_equal(buf_str(&b), "{\"a\\\"b\":\"x\\n\xef\xbf\xbd\xc3\xa9\\u0001\","
                                     "\"n\":[-3,0.1,0.1,null,true],\"z\":null}");
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_err_wraps_context_in_front),
        cmocka_unit_test(test_buf_stops_at_its_limit),
        cmocka_unit_test(test_buf_reports_failed_allocation),
        cmocka_unit_test(test_rd_is_sticky_at_the_end),
        cmocka_unit_test(test_strmap_grows_and_keeps_the_first),
        cmocka_unit_test(test_hash_of_any_length_stays),
        cmocka_unit_test(test_json_out_escapes_and_separates),
        cmocka_unit_test(test_json_out_escapes_every_byte),
        cmocka_unit_test(test_json_out_numbers_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
